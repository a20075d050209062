/* Checks that shape rules share; each fails with the operator's and the argument's name, and the values. */
#ifndef HOST_OP_CHECKS_H
#define HOST_OP_CHECKS_H
#include "host/op/op.h"

/* Argument i has from `low` to `high` dimensions. */
bp_status check_rank(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t low, uint32_t high);
/* Arguments i and j have one dtype. */
bp_status check_same_dtype(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t j);
/* Argument i holds 32- or 64-bit integers. */
bp_status check_index_dtype(bp_ctx *c, const shape_call *s, uint32_t i);
/* Argument i can be expanded to these sizes. */
bp_status check_expands(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t rank, const bp_dim *sizes);
/* Argument i as a dimension of t, wrapped; a 0-d tensor has one. */
bp_status check_dim(bp_ctx *c, const shape_call *s, uint32_t i, const bp_tensor *t, uint32_t *dim);
/* Adds an output whose sizes are t's, with t's strides as PRESERVE gives them. */
bp_status out_like(bp_ctx *c, shape_call *s, const bp_tensor *t, bp_dtype dtype);
/* Adds a contiguous output. */
bp_status out_new(bp_ctx *c, shape_call *s, bp_dtype dtype, uint32_t rank, const bp_dim *sizes);
/* Adds n outputs whose sizes depend on data. */
bp_status out_unknown(bp_ctx *c, shape_call *s, bp_dtype dtype, uint32_t n);
/* Whether t's strides look like channels-last ones to PyTorch: they grow in that order, gaps or not. 4-d and 5-d. */
bool suggests_channels_last(const bp_tensor *t);
/* Adds an output that is channels-last if t suggests it, else contiguous. */
bp_status out_format_of(bp_ctx *c, shape_call *s, const bp_tensor *t, bp_dtype dtype, uint32_t rank,
                        const bp_dim *sizes);
/* Whether t has no element; what nobody knows of data is no. */
bool is_empty(const bp_tensor *t);
/* n sizes are equal, or the operator fails. */
bool sizes_must_match(uint32_t n, const bp_dim *a, const bp_dim *b);
/* A size that the data tell, from min to max (a constant below 0: nothing is known): a new symbol, where the current
 * environment captures such sizes. False: it does not, or the context says why. */
bool shape_data_size(bp_ctx *c, int64_t min, bp_dim max, bp_dim *out);
/* "[2, 3]", "[s0, 2*s1]" */
const char *sizes_text(char *dst, size_t cap, uint32_t rank, const bp_dim *sizes);
#endif
