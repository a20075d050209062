/* Visits the elements of a shape in row-major order, keeping the offsets of strided operands.
 *
 *     walk w;
 *     walk_start(&w, t->rank, t->sizes);
 *     walk_add(&w, t->strides);
 *     for (; w.left; walk_next(&w))
 *         use(data + w.at[0], w.index); */
#ifndef HOST_OP_REFERENCE_WALK_H
#define HOST_OP_REFERENCE_WALK_H
#include "host/tensor/tensor.h"

enum { WALK_OPERANDS = 6 };
typedef struct {
    uint32_t rank, n;
    int64_t left;                                 /* elements to go, the current one included */
    int64_t at[WALK_OPERANDS];                    /* offsets of the current element, in elements */
    int64_t index[TENSOR_MAX_RANK];               /* of the current element */
    int64_t size[TENSOR_MAX_RANK], step[WALK_OPERANDS][TENSOR_MAX_RANK];
} walk;

void walk_start(walk *w, uint32_t rank, const bp_dim *sizes);
/* Adds an operand; its number is w->n before the call. */
void walk_add(walk *w, const bp_dim *strides);
void walk_next(walk *w);
#endif
