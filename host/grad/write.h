/* The short ways to write a derivative in C: arguments by name, and the few operators that most derivatives need.
 *
 * Everything is sticky: with an error pending nothing is done and NULL is given, so one check at the end is enough. A
 * derivative returns grad_done. Where a NULL tensor means zero, the function says so. */
#ifndef HOST_GRAD_WRITE_H
#define HOST_GRAD_WRITE_H
#include "host/grad/rows.h"
#include "host/op/rows.h"
#include <backplane/aten.h>

static inline bp_status grad_done(const bp_ctx *c) { return c->diag.code; }

/* -- arguments by name, of the types that the schema says -- */
/* The value itself; None where it was not given, or where there is no such argument. */
const bp_value *grad_value(const grad_call *g, const char *name);
static inline bp_dim grad_arg_dim(const grad_call *g, const char *name) { return arg_dim(grad_value(g, name), 0); }
static inline bool grad_arg_bool(const grad_call *g, const char *name) { return arg_bool(grad_value(g, name), 0); }
static inline const char *grad_arg_str(const grad_call *g, const char *name) { return arg_str(grad_value(g, name), 0); }
static inline double grad_arg_float(const grad_call *g, const char *name) { return arg_float(grad_value(g, name), 0); }
static inline bp_scalar grad_arg_scalar(const grad_call *g, const char *name)
{
    return arg_scalar(grad_value(g, name), 0);
}
int64_t grad_arg_int(bp_ctx *c, const grad_call *g, const char *name);
/* Lists, in the scratch arena. None: not given. */
bp_dims grad_arg_dims(bp_ctx *c, const grad_call *g, const char *name);
bp_tensors grad_arg_tensors(bp_ctx *c, const grad_call *g, const char *name);
/* A dimension's number, counted from the front, of a tensor of that rank. */
uint32_t grad_arg_wrapped(bp_ctx *c, const grad_call *g, const char *name, uint32_t rank);

/* -- metadata -- */
/* Sizes of t, borrowed; NULL: the empty list. */
static inline bp_dims grad_sizes(const bp_tensor *t)
{
    return t ? (bp_dims){t->sizes, t->rank, 1} : (bp_dims){0, 0, 1};
}
/* Rank of t; 0 for NULL. */
static inline uint32_t grad_rank(const bp_tensor *t) { return t ? t->rank : 0; }
/* The size of dimension d, which may count from the end; 0 when there is none such. */
bp_dim grad_size(const bp_tensor *t, int32_t d);
static inline bool grad_complex(const bp_tensor *t) { return t && (t->dtype == BP_C64 || t->dtype == BP_C128); }

/* -- operators by row, on values in the schema's order, keywords too; those that are left out are defaults -- */
bp_tensor *grad_op(bp_ctx *c, uint32_t row, uint32_t n, const bp_value *args);
/* Several results: fills out[0 .. nout); absent ones and errors are NULL. */
void grad_op_all(bp_ctx *c, uint32_t row, uint32_t n, const bp_value *args, bp_tensor **out, uint32_t nout);
#define GRAD_OP(c, row, ...) \
    grad_op(c, ROW_##row, sizeof((bp_value[]){__VA_ARGS__}) / sizeof(bp_value), (bp_value[]){__VA_ARGS__})

/* -- tensors -- */
bp_tensor *grad_new_zeros(bp_ctx *c, bp_tensor *like, bp_dims sizes); /* of like's type and device */
bp_tensor *grad_add(bp_ctx *c, bp_tensor *a, bp_tensor *b);       /* NULL is zero */
bp_tensor *grad_sub(bp_ctx *c, bp_tensor *a, bp_tensor *b);       /* NULL is zero */
static inline bp_tensor *grad_mul(bp_ctx *c, bp_tensor *a, bp_tensor *b) { return bp_aten_mul_tensor(c, a, b); }
static inline bp_tensor *grad_div(bp_ctx *c, bp_tensor *a, bp_tensor *b) { return bp_aten_div_tensor(c, a, b); }
static inline bp_tensor *grad_neg(bp_ctx *c, bp_tensor *a) { return bp_aten_neg_default(c, a); }
static inline bp_tensor *grad_scaled(bp_ctx *c, bp_tensor *a, double by)
{
    return bp_aten_mul_scalar(c, a, bp_scalar_float(by));
}
/* t times the conjugate of `by`; t itself where that is 1. */
bp_tensor *grad_times(bp_ctx *c, bp_tensor *t, bp_scalar by);
bp_tensor *grad_conj(bp_ctx *c, bp_tensor *t);                    /* t itself where it is real */
bp_tensor *grad_real(bp_ctx *c, bp_tensor *t);                    /* likewise */
bp_tensor *grad_sum(bp_ctx *c, bp_tensor *t, int64_t dim, bool keepdim);
bp_tensor *grad_slice(bp_ctx *c, bp_tensor *t, int64_t dim, int64_t start, int64_t end);
bp_tensor *grad_cut(bp_ctx *c, bp_tensor *t, int64_t dim, bp_dim start, bp_dim end); /* the same by sizes */

/* -- matrices in the last two dimensions -- */
bp_tensor *grad_mt(bp_ctx *c, bp_tensor *t);                      /* transposed */
bp_tensor *grad_mh(bp_ctx *c, bp_tensor *t);                      /* transposed and conjugated */
static inline bp_tensor *grad_mm(bp_ctx *c, bp_tensor *a, bp_tensor *b) { return bp_aten_matmul_default(c, a, b); }
#endif
