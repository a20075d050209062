/* Arithmetic of sizes. Only constants can be computed with: a symbol is an UNIMPLEMENTED error that says so. Every
 * shape rule goes through these functions, so that symbols can come without touching a rule. */
#ifndef HOST_SYM_DIM_H
#define HOST_SYM_DIM_H
#include "host/base/ctx.h"

static inline bp_dim dim_const(int64_t v) { return (bp_dim){v, 0, 0}; }
static inline bool dim_is_const(bp_dim d) { return d.sym == 0; }
/* Whether two sizes are known to be equal (constants: equal values). */
static inline bool dim_eq(bp_dim a, bp_dim b) { return a.sym == b.sym && (a.sym || a.value == b.value); }
static inline bool dim_is(bp_dim a, int64_t v) { return dim_is_const(a) && a.value == v; }
/* The number, specializing a symbol (which will leave a guard). */
int64_t dim_int(bp_ctx *c, bp_dim d);
/* Overflow: an INVALID_ARGUMENT error that names both values; the result is then 0. */
bp_dim dim_add(bp_ctx *c, bp_dim a, bp_dim b);
bp_dim dim_sub(bp_ctx *c, bp_dim a, bp_dim b);
bp_dim dim_mul(bp_ctx *c, bp_dim a, bp_dim b);
bp_dim dim_floordiv(bp_ctx *c, bp_dim a, bp_dim b);
bp_dim dim_mod(bp_ctx *c, bp_dim a, bp_dim b);
/* Product of n sizes; 1 for none. */
bp_dim dim_product(bp_ctx *c, const bp_dim *d, uint32_t n);
#endif
