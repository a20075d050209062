/* What the C rows of decomps/ are: part_<name> gives one tensor, which the work owns (or an argument); parts_<name>
 * gives several by parts_give. Steps are written as in host/op/reference/steps.h, and go through the modes. */
#ifndef HOST_PASS_PARTS_H
#define HOST_PASS_PARTS_H
#include "host/op/reference/steps.h"
#include "host/op/rows.h"
#include "host/pass/decomp.h"

#define DECOMP(id, text)
#define DECOMP_WIDE(id, text)
#define DECOMP_FN(id, name) bp_tensor *part_##name(work *w, const op_row *op, const bp_value *a);
#define DECOMP_MANY(id, name) bp_status parts_##name(work *w, const op_row *op, const bp_value *a, op_call *k);
#define DECOMP_BODY(id, name) bp_tensor *composed_##name(work *w, const op_row *op, const bp_value *a);
#define COMPOSITE(id, text)
#define COMPOSITE_WIDE(id, text)
#define COMPOSITE_FN(id, name) DECOMP_FN(id, name)
#define COMPOSITE_MANY(id, name) DECOMP_MANY(id, name)
#define COMPOSITE_BODY(id, name) DECOMP_BODY(id, name)
#define KEPT(id, reason)
#include "host/pass/decomps.def"
#include "host/pass/decomps_undef.h"

#define PART(name) bp_tensor *part_##name(work *w, const op_row *op, const bp_value *a)
#define PARTS(name) bp_status parts_##name(work *w, const op_row *op, const bp_value *a, op_call *k)
#define B(number) value_bool(number)
#define INTS(...) \
    value_ints(w->c, (const int64_t[]){__VA_ARGS__}, (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
#define NONE value_none()
/* Sizes as arguments: they stay symbols where they are. */
#define D(size) value_dim(size)
#define DIMS(...) \
    value_dims(w->c, (const bp_dim[]){__VA_ARGS__}, (uint32_t)(sizeof((bp_dim[]){__VA_ARGS__}) / sizeof(bp_dim)))

/* -- short steps; NULL gives NULL -- */
bp_tensor *part_fail(work *w, const op_row *op, const char *why);       /* NULL, after an error */
bp_tensor *part_cast(work *w, bp_tensor *t, bp_dtype d);                /* t itself where it is of that type already */
bp_value part_sizes(work *w, const bp_tensor *t);                       /* as an argument */
int64_t part_dim(work *w, const bp_value *a, uint32_t i, uint32_t rank); /* argument i, wrapped */
bool part_is_empty(const bp_tensor *t);  /* whether some size is 0; what only data tell is not */
/* Product of the sizes from dimension `from` to before `to`. */
static inline bp_dim part_count(work *w, const bp_tensor *t, uint32_t from, uint32_t to)
{
    return dim_product(w->c, t->sizes + from, to - from);
}
static inline uint32_t part_rank(const bp_value *a, uint32_t i) { return arg_tensor(a, i)->rank; }
#endif
