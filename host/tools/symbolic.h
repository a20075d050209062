/* Metadata with symbols in place of sizes, evaluated, and other sizes for the same facts: what checks of shape rules
 * share. */
#ifndef HOST_TOOLS_SYMBOLIC_H
#define HOST_TOOLS_SYMBOLIC_H
#include "host/op/op.h"
#include "host/sym/env.h"

/* An environment of duck-shaped symbols: one for each number of at least 2; or, apart, one for each size. */
typedef struct {
    bp_ctx *c;
    sym_env *e;
    uint64_t random;    /* state of the generator; not 0 */
    bool apart;
} symbolic;

bool symbolic_begin(bp_ctx *c, uint64_t seed, symbolic *s); /* false: out of memory */
void symbolic_end(symbolic *s);
uint64_t symbolic_random(symbolic *s, uint64_t below);      /* 0 .. below - 1 */
/* The symbol of a number, new or not; 0, 1 and negative numbers stay constants. */
bp_dim symbolic_number(symbolic *s, int64_t v);
/* A fake of real metadata, with symbols for sizes; strides are expressions of them where they can be, else symbols.
 * NULL: the context says why. */
bp_tensor *symbolic_fake(symbolic *s, const tensor_meta *real);
/* All symbols' hints, into room for sym_symbol_count. */
void symbolic_hints(const symbolic *s, int64_t *values);
/* Whether all facts hold for these values. */
bool symbolic_holds(const symbolic *s, const int64_t *values);
/* Random values for which all facts hold, others than the hints if there are. False: none were found. */
bool symbolic_other(symbolic *s, int64_t *values);
/* d at these values; false: it overflows, or is none of the environment. */
bool symbolic_at(const symbolic *s, bp_dim d, const int64_t *values, int64_t *out);
/* How many symbols there are of which facts leave one number only. */
uint32_t symbolic_pinned(const symbolic *s);
/* A fake of constants: what t, of symbols, is at these values. NULL: the context says why. */
bp_tensor *symbolic_tensor_at(const symbolic *s, const bp_tensor *t, const int64_t *values);
/* The values, "s0 = 4, s1 = 7", for messages. */
void symbolic_print(const symbolic *s, const int64_t *values, buf *out);
#endif
