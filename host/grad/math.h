/* The arithmetic that derivatives of elements and of reductions share, in the manner of host/grad/write.h: with an
 * error pending nothing is done, and NULL is given. */
#ifndef HOST_GRAD_MATH_H
#define HOST_GRAD_MATH_H
#include "host/grad/rows.h"
#include "host/grad/write.h"

static inline bp_tensor *grad_plus(bp_ctx *c, bp_tensor *t, double k)
{
    return bp_aten_add_scalar(c, t, bp_scalar_float(k), bp_scalar_int(1));
}
/* k - t */
static inline bp_tensor *grad_from(bp_ctx *c, double k, bp_tensor *t)
{
    return bp_aten_rsub_scalar(c, t, bp_scalar_float(k), bp_scalar_int(1));
}
static inline bp_tensor *grad_square(bp_ctx *c, bp_tensor *t) { return bp_aten_mul_tensor(c, t, t); }
/* t where the condition holds, else 0: what is not taken does not flow, whatever it is. */
static inline bp_tensor *grad_where(bp_ctx *c, bp_tensor *condition, bp_tensor *t)
{
    return bp_aten_where_scalarother(c, condition, t, bp_scalar_int(0));
}
/* 0 where the condition holds, else t. */
static inline bp_tensor *grad_unless(bp_ctx *c, bp_tensor *condition, bp_tensor *t)
{
    return bp_aten_where_scalarself(c, condition, bp_scalar_int(0), t);
}
static inline bp_tensor *grad_is_zero(bp_ctx *c, bp_tensor *t)
{
    return bp_aten_eq_scalar(c, t, bp_scalar_int(0));
}
static inline bp_tensor *grad_to(bp_ctx *c, bp_tensor *t, bp_dtype dtype)
{
    return t && t->dtype != dtype ? bp_aten_to_dtype(c, t, dtype, 0, 0, 0) : t;
}
static inline bool grad_given(const grad_call *g, const char *name) { return grad_arg(g, name) != NULL; }
/* Conjugated. */
static inline bp_scalar grad_conj_number(bp_scalar s)
{
    if (s.kind == BP_SCALAR_COMPLEX)
        s.v.f[1] = -s.v.f[1];
    return s;
}

/* -- dimensions that a reduction took away (host/grad/reduce.c) -- */
/* Which dimensions of a tensor of that rank a list names, as bits; none given, or an empty list: all. */
uint64_t grad_dim_set(bp_ctx *c, const grad_call *g, const char *name, uint32_t rank);
/* t with dimensions of size 1 where the reduction of a tensor of that rank took them; t itself if it kept them. */
bp_tensor *grad_restore(bp_ctx *c, bp_tensor *t, uint64_t dims, uint32_t rank, bool kept);
/* How many elements of `of` one result stands for. */
bp_dim grad_count(bp_ctx *c, const bp_tensor *of, uint64_t dims);
/* The sum over them, which stay with size 1. */
bp_tensor *grad_sum_over(bp_ctx *c, bp_tensor *t, uint64_t dims);

/* The gradient of the norm of order p: grad and norm have the reduced dimensions with size 1. NULL without an error:
 * none flows (p = 0). host/grad/norms.c */
bp_tensor *grad_of_norm(bp_ctx *c, bp_tensor *grad, bp_tensor *self, double p, bp_tensor *norm, uint64_t dims);
#endif
