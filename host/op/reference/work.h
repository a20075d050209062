/* Operands as a kernel wants them: contiguous, in the type it computes in.
 *
 *     work w = {.c = c};
 *     bp_tensor *x = work_in(&w, arg_tensor(k->args, 0), BP_F64), *y = work_out(&w, k->out[0], BP_F64);
 *     if (work_ok(&w))
 *         compute(data(x), data(y));
 *     return work_end(&w);
 *
 * Sticky like everything of a context: after a failure each step gives NULL, and work_end returns the code. */
#ifndef HOST_OP_REFERENCE_WORK_H
#define HOST_OP_REFERENCE_WORK_H
#include "host/op/op.h"

typedef struct work_entry work_entry;
/* What is held lies in the context's scratch arena. parts: steps go through the modes, so that they can be recorded or
 * differentiated (compose_parts); else they run at the bottom. */
typedef struct { bp_ctx *c; work_entry *last; bool parts; } work;

/* t's elements, contiguous and of this type: t itself when it is so already. dtype UNSET: t's own. NULL gives NULL. */
bp_tensor *work_in(work *w, bp_tensor *t, bp_dtype dtype);
/* Where to compute the result t: t itself, or a tensor that work_end copies to t. Its data are undefined. */
bp_tensor *work_out(work *w, bp_tensor *t, bp_dtype dtype);
/* The same, holding the elements of `from`, which has t's sizes. */
bp_tensor *work_out_copy(work *w, bp_tensor *t, bp_tensor *from);
/* t expanded to the sizes of a result: a view that lives until work_end. */
bp_tensor *work_expand(work *w, const bp_tensor *t, uint32_t rank, const bp_dim *sizes);
/* t's elements as one vector. */
bp_tensor *work_flat(work *w, bp_tensor *t);
/* Takes over a reference until work_end; NULL gives NULL. */
bp_tensor *work_own(work *w, bp_tensor *t);
/* A view of t that lives until work_end. */
bp_tensor *work_view(work *w, const bp_tensor *t, const tensor_meta *m);
/* A new contiguous tensor that lives until work_end. */
bp_tensor *work_new(work *w, bp_dtype dtype, uint32_t rank, const int64_t *sizes);
/* The same of t's sizes and type. */
bp_tensor *work_like(work *w, const bp_tensor *t);
/* Whether t can be expanded to these sizes. */
bool work_fits(const bp_tensor *t, uint32_t rank, const bp_dim *sizes);
/* Memory that lives until work_end; not cleared. */
void *work_alloc(work *w, int64_t count, size_t size);
static inline bool work_ok(const work *w) { return ctx_ok(w->c); }
/* Zeros in a contiguous tensor. */
void work_clear(bp_tensor *t);
/* Copies results to their places if all went well, gives everything up, returns the context's code. */
bp_status work_end(work *w);

/* A number as an element of type d; one that does not fit is an error, as PyTorch has it for fill values. */
bp_status work_number(bp_ctx *c, const op_row *op, bp_dtype d, bp_scalar s, num *out);
/* The only element of t, cast to type d. */
num work_item(const bp_tensor *t, bp_dtype d);

/* A contiguous tensor seen around dimension d: element (o, i, x) is at (o * n + i) * inner + x. 0-d: 1, 1, 1. */
typedef struct { int64_t outer, n, inner; } work_split;
work_split work_around(const bp_tensor *t, int64_t d);
/* Argument i as a dimension of t, wrapped (the shape rule has checked it). */
uint32_t work_dim(bp_ctx *c, const bp_value *args, uint32_t i, const bp_tensor *t);
#endif
