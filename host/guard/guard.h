/* Guards: what must hold of a call so that code compiled for another one may serve it.
 *
 * A guard_set is immutable, one block of memory, and is checked on every call: records in one flat array, in the order
 * of contract section 7 (ambient modes, number and kind of inputs, tensors, aliasing). The first that fails decides and
 * can be explained with its expected and actual values. guards.def has a row a kind: how it prints, what it costs. */
#ifndef HOST_GUARD_GUARD_H
#define HOST_GUARD_GUARD_H
#include "host/sym/env.h"
#include "host/tensor/tensor.h"
#include "sdk/base/str.h"

/* What a call brought, in the order of its code's sources: arguments first, then attributes. Kinds TENSOR, NONE, INT,
 * FLOAT, BOOL, STRING. nargs is the number that the caller passed; attributes follow. syms: the values of the symbols
 * of its path, by their numbers; a guard on shapes writes those that it reads first. NULL: no set has such a guard. */
typedef struct { const bp_value *at; uint32_t n, nargs; int64_t *syms; } guard_inputs;
/* The name under which a source is printed: "a" gives L['a'], an attribute "fc.weight" gives L['m'].fc.weight. */
typedef struct { const char *name; int32_t role; } guard_source;

/* Where a call's symbol is read: a size or stride of an input, or the integer that it is. brings: it is read here
 * first, and lies within min and max; else it must be what was read before. A product is a stride that brings none: it
 * must be size `symbol` times stride `symbol` of its tensor. */
typedef struct {
    int64_t min, max;
    uint32_t source, symbol;
    uint8_t kind, dim;            /* kind: enum sym_kind */
    bool brings, product;
} guard_read;
/* A guard on shapes: reads in order, then conditions, expressions of env that are 1. Arrays are copied. */
typedef struct {
    sym_env *env;
    const guard_read *reads;
    const bp_dim *conditions;
    uint32_t nreads, nconditions;
} guard_shapes;

typedef struct guard_set guard_set;
typedef struct guard_builder guard_builder;

/* -- building; a builder is sticky and is consumed by guard_finish. sources and in, with what they point to, are
 * borrowed until then. A NULL builder (out of memory) is accepted everywhere. -- */
guard_builder *guard_begin(bp_ctx *c, const guard_source *sources, uint32_t nsources, const guard_inputs *in);
void guard_add_ambient(guard_builder *b);                 /* the modes as they are now; the number of arguments */
void guard_add_input(guard_builder *b, uint32_t i);       /* kind, and all that C6 and contract 7.2 say of a tensor */
/* The same for a tensor some of whose sizes and strides may differ: those that are symbols in `like`. marked: the sizes
 * that were marked dynamic when it was captured; a tensor with other marks is another one. */
void guard_add_dynamic(guard_builder *b, uint32_t i, const tensor_meta *like, uint64_t marked);
void guard_add_integer(guard_builder *b, uint32_t i);     /* any integer: a guard on shapes reads it */
void guard_add_shapes(guard_builder *b, const guard_shapes *s); /* once */
void guard_add_version(guard_builder *b, uint32_t i);     /* what input i holds is baked in */
/* Which inputs are the same object, which are not: each input that has a guard in this set against all others, so that
 * a set of a branch covers the inputs of its ancestors too. */
void guard_add_identity(guard_builder *b);
void guard_add_layout(guard_builder *b, uint32_t i);      /* input i is written: who overlaps it, and where (C6.2) */
/* NULL: the context says why. The set checks itself against the inputs and modes it was built from, which must still be
 * as they were; "guard check failed: REASON" is INTERNAL. */
guard_set *guard_finish(guard_builder *b);
void guard_destroy(guard_set *g);

/* -- checking; no allocation, no lock -- */
bool guard_check(const guard_set *g, const bp_ctx *c, const guard_inputs *in);
/* The first failing guard as a reason: "tensor 'a' size mismatch at index 0. expected 3, actual 2". False: all hold. */
bool guard_explain(const guard_set *g, const bp_ctx *c, const guard_inputs *in, buf *why);
/* code_parts, one a line. */
void guard_print(const guard_set *g, buf *out);
/* "L['x'].size()[0]", "L['m'].fc.weight.stride()[1]", "L['n']": a symbol's source by the name and role of its input. */
void guard_print_source(const guard_source *s, uint8_t kind, uint32_t dim, buf *out);
uint32_t guard_count(const guard_set *g);
size_t guard_nbytes(const guard_set *g);
#endif
