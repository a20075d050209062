/* Arithmetic of sizes, and questions on them. Every shape rule goes through these functions.
 *
 * A size is a constant, or an expression of the thread's current environment (env.h) with a hint, its value in the call
 * that is being captured. Three kinds of comparison: dim_same compares how two sizes are written, and never asks;
 * dim_eq and kin ask, and their answer, unless it is proven, becomes a guard; dim_require says that an operator is
 * wrong otherwise. Without an environment a symbol equals itself alone, and cannot be computed with.
 *
 * `.value` of a size that may be a symbol is read by dim_hint alone, by whoever wants an estimate; dim_int makes it a
 * constant, and leaves a guard. Threads: an environment belongs to one thread at a time. */
#ifndef HOST_SYM_DIM_H
#define HOST_SYM_DIM_H
#include "host/base/ctx.h"

static inline bp_dim dim_const(int64_t v) { return (bp_dim){v, 0, 0}; }
static inline bool dim_is_const(bp_dim d) { return d.sym == 0; }
static inline int64_t dim_hint(bp_dim d) { return d.value; }
/* Written alike: constants of equal value, or one expression. Asks nothing. */
static inline bool dim_same(bp_dim a, bp_dim b) { return a.sym == b.sym && (a.sym || a.value == b.value); }
static inline bool dim_same_as(bp_dim a, int64_t v) { return !a.sym && a.value == v; }

/* -- questions: the answer holds for every call that passes the guards --------------------------------------------- */
enum dim_rel { DIM_EQ, DIM_NE, DIM_LT, DIM_LE };
/* Proven: by the expressions, ranges and what is known. Nothing is assumed. */
enum dim_truth { DIM_FALSE, DIM_TRUE, DIM_UNKNOWN };
enum dim_truth dim_prove(enum dim_rel rel, bp_dim a, bp_dim b);
/* With a symbol among the two. A question on data (an unbacked symbol) that cannot be proven is an error of the
 * environment's context, UNIMPLEMENTED, "could not guard on data-dependent expression ...", and false. */
bool dim_ask(enum dim_rel rel, bp_dim a, bp_dim b);
static inline bool dim_eq(bp_dim a, bp_dim b)
{
    return (a.sym | b.sym) ? dim_same(a, b) || dim_ask(DIM_EQ, a, b) : a.value == b.value;
}
static inline bool dim_lt(bp_dim a, bp_dim b) { return (a.sym | b.sym) ? dim_ask(DIM_LT, a, b) : a.value < b.value; }
static inline bool dim_le(bp_dim a, bp_dim b) { return (a.sym | b.sym) ? dim_ask(DIM_LE, a, b) : a.value <= b.value; }
static inline bool dim_is(bp_dim a, int64_t v) { return dim_eq(a, dim_const(v)); }
static inline bool dim_below(bp_dim a, int64_t v) { return dim_lt(a, dim_const(v)); } /* a < v */
static inline bool dim_above(bp_dim a, int64_t v) { return dim_lt(dim_const(v), a); } /* a > v */
/* The same, but what cannot be proven of data is false, and no error: for the choice between two right ways, of which
 * the one for "false" is right always. */
bool dim_eq_or_false(bp_dim a, bp_dim b);
/* The same for any relation, with the question left open: proven, asked, or of data and UNKNOWN. */
enum dim_truth dim_decide(enum dim_rel rel, bp_dim a, bp_dim b);
/* The relation must hold, or the operator fails for the reason that the caller gives when this is false: a guard on
 * sizes that are known, a deferred assertion on data, which each run checks. */
bool dim_require(enum dim_rel rel, bp_dim a, bp_dim b);
/* The number: of a symbol, its hint, and a guard that it is that. Of data: an error, and 0. */
int64_t dim_int(bp_ctx *c, bp_dim d);
/* The same for those who have no context: errors go to the environment's. */
int64_t dim_number(bp_dim d);

/* -- arithmetic: overflow (of the hint, or in a later call) is an INVALID_ARGUMENT error that names both values; the
 * result is then 0. floordiv and mod floor; a divisor that may be 0 is asked about. -- */
bp_dim dim_add(bp_ctx *c, bp_dim a, bp_dim b);
bp_dim dim_sub(bp_ctx *c, bp_dim a, bp_dim b);
bp_dim dim_mul(bp_ctx *c, bp_dim a, bp_dim b);
bp_dim dim_floordiv(bp_ctx *c, bp_dim a, bp_dim b);
bp_dim dim_mod(bp_ctx *c, bp_dim a, bp_dim b);
/* Without asking which it is. */
bp_dim dim_min(bp_ctx *c, bp_dim a, bp_dim b);
bp_dim dim_max(bp_ctx *c, bp_dim a, bp_dim b);
/* 1 where the relation holds, else 0, without asking. */
bp_dim dim_compare(bp_ctx *c, enum dim_rel rel, bp_dim a, bp_dim b);
/* Product of n sizes; 1 for none. */
bp_dim dim_product(bp_ctx *c, const bp_dim *d, uint32_t n);
#endif
