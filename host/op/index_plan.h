/* How a tensor is indexed by tensors: which dimensions, and what shape comes out. For the rule and for the kernels. */
#ifndef HOST_OP_INDEX_PLAN_H
#define HOST_OP_INDEX_PLAN_H
#include "host/op/op.h"

/* at[d]: the index of dimension d of self, or NULL. They are broadcast to `nb` sizes, which stand in the result at
 * `first`; the dimensions that are not indexed keep their order around them. */
typedef struct {
    uint32_t nself, count, nb, first, rank;
    const bp_tensor *at[TENSOR_MAX_RANK];
    bp_dim broadcast[TENSOR_MAX_RANK], sizes[TENSOR_MAX_RANK];
} index_plan;

/* Whether an index is a mask (bool, or uint8 in its old sense), which stands for the positions of its nonzeros. */
static inline bool index_is_mask(const bp_tensor *t) { return t->dtype == BP_BOOL || t->dtype == BP_U8; }
/* Plans for self and at[0 .. nself), none of which is a mask. */
bp_status index_plan_make(bp_ctx *c, const op_row *op, const bp_tensor *self, index_plan *p);
/* Strides of the result, as PyTorch's iterator gives them. */
bp_status index_plan_strides(bp_ctx *c, const bp_tensor *self, const index_plan *p, bp_dim *strides);
/* Puts into at[] what masks stand for: vectors of as many places as the data tell. False: sizes of data are not
 * captured, or the context says why. */
bool index_plan_capture(bp_ctx *c, const bp_value *args, uint32_t i, index_plan *p);
/* The list argument i as indices by dimension. A mask: *masked becomes true and at[] of its dimensions stays NULL. */
bp_status index_plan_read(bp_ctx *c, const op_row *op, const bp_value *args, uint32_t i, const bp_tensor *self,
                          index_plan *p, bool *masked);
#endif
