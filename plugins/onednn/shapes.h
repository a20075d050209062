/* A compiled graph with symbols: a program for each of the sizes that runs have had last, under the values of the
 * symbols. They share one arena, as large as the largest needs, since runs of one object are serial. */
#ifndef ONEDNN_SHAPES_H
#define ONEDNN_SHAPES_H
#include "plugins/onednn/lower.h"

typedef struct shapes shapes;

/* Refers to gm. The program for the hints is made at once, so that what oneDNN lacks is known. NULL: failure tells. */
shapes *shapes_new(bp_graph_module *gm, lower_failure *failure);
bp_status shapes_run(void *state, bp_run *r);
void shapes_destroy(void *state);
#endif
