/* Arithmetic on single elements in the widest type of their class: integers wrap when they are stored, and a sum or
 * product of two values of f32 or a half rounds once, so storing gives what the type itself would. */
#ifndef HOST_OP_REFERENCE_NUMBER_H
#define HOST_OP_REFERENCE_NUMBER_H
#include "host/tensor/dtype.h"

num num_add(num a, num b);
num num_mul(num a, num b);
/* Floats: the quotient. Integers: rounded down; b is not 0. */
num num_div(num a, num b);
/* NaN wins, as in torch.maximum. Not for complex numbers. */
num num_max(num a, num b);
num num_min(num a, num b);
bool num_is_zero(num a);
num num_of_int(bp_dtype d, int64_t v);
/* A number as one of type d would be: of its class. */
num num_of_scalar(bp_dtype d, bp_scalar s);
/* Whether a number fits d; PyTorch refuses others as fill values. */
bool num_fits(bp_dtype d, bp_scalar s);
/* The least and the greatest value of a real type: infinities, or the ends of the integers. */
num num_lowest(bp_dtype d);
num num_highest(bp_dtype d);
#endif
