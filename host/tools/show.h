/* Tensors as text: their type and their values as numpy prints them. */
#ifndef HOST_TOOLS_SHOW_H
#define HOST_TOOLS_SHOW_H
#include "host/tensor/tensor.h"

/* Values of a real CPU tensor, laid out as print(array) of numpy lays them out: aligned columns, brackets a dimension,
 * lines of 75 columns, "..." inside what has more than 1,000 elements. No line end at the end. */
void show_values(const bp_tensor *t, buf *out);
#endif
