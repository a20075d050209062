/* Environments of symbolic sizes: symbols, expressions over them, what is known of them, and what was asked.
 *
 * An expression is hash-consed and in a normal form (a sum of products with integer factors; floordiv, mod, min, max
 * and comparisons are atoms of it), so that equal polynomials are one id. The same sequence of calls gives the same
 * ids, in every environment. A condition is an expression that is 0 or 1; a fact is a condition that holds. A symbol
 * is backed (its value is read off an input before the code runs) or not (the code computes it: data).
 *
 * The current environment is the thread's: the innermost that was pushed. Captures push their own; whoever runs shape
 * rules over a graph pushes the graph's. */
#ifndef HOST_SYM_ENV_H
#define HOST_SYM_ENV_H
#include "host/sym/dim.h"
#include "sdk/base/str.h"

typedef struct sym_env sym_env;

/* Where a symbol's value is read: of a capture, `at` is a source; of a graph, a node, of which `result` is one. */
enum sym_kind { SYM_SIZE, SYM_STRIDE, SYM_OFFSET, SYM_VALUE };
typedef struct { uint32_t at; uint16_t result; uint8_t kind, dim; } sym_source;
#define SYM_NO_SOURCE UINT32_MAX

/* A symbol. name: NULL: made from `of` as PyTorch makes it (s and a number from a hash of `of`; unbacked: u0, u1 ...).
 * min, max: inclusive; INT64_MIN and INT64_MAX are no bounds. */
typedef struct {
    const char *name, *of;       /* of: "L['x'].size()[0]": the source's name in guards; copied; may be NULL */
    int64_t hint, min, max;
    bool unbacked;               /* the hint is then no value, and never read */
    sym_source source;
} sym_symbol;

/* What holds. GIVEN: the caller said so (bounds, marks); GUARD: asked, and answered by the hints; ASSERTED: required of
 * data, and checked by each run. */
enum sym_origin { SYM_GIVEN, SYM_GUARD, SYM_ASSERTED };
typedef struct {
    bp_dim holds;                /* a condition */
    enum sym_origin origin;
    uint32_t tag;                /* sym_set_tag's, when it came: of a capture, the segment */
    const char *file;            /* the operator's call, or NULL */
    int32_t line;
} sym_fact;

sym_env *sym_env_new(void);                    /* one reference; NULL: out of memory */
sym_env *sym_env_ref(sym_env *e);
void sym_env_unref(sym_env *e);                /* NULL: nothing */
sym_env *sym_env_clone(const sym_env *e);      /* ids stay; NULL: out of memory */
/* An environment without symbols and facts, in which expressions over the first nsymbols symbols of e get the ids that
 * they have in e, whatever else is computed in between; for replays. values: of these symbols. NULL: out of memory. */
sym_env *sym_env_again(const sym_env *e, uint32_t nsymbols, const int64_t *values);
/* Pushes e (NULL: none) for errors of c; gives what was current, for sym_pop. */
typedef struct { sym_env *env; bp_ctx *c; } sym_scope;
sym_scope sym_push(sym_env *e, bp_ctx *c);
void sym_pop(sym_scope former);
sym_env *sym_current(void);
bp_ctx *sym_context(void);                     /* of the scope; NULL: none */
/* Whether sizes that the data tell (nonzero, a mask as an index) become unbacked symbols; at first they do not. */
void sym_capture_data(sym_env *e, bool on);
bool sym_captures_data(const sym_env *e);

/* -- symbols -- */
uint32_t sym_symbol_count(const sym_env *e);
const sym_symbol *sym_symbol_at(const sym_env *e, uint32_t k);
/* Adds one; its dim. A backed one whose hint is 0 or 1 is not special here. {0}: out of memory (so says c). */
bp_dim sym_add_symbol(sym_env *e, bp_ctx *c, const sym_symbol *s);
/* The number of the symbol that d is, alone; UINT32_MAX: it is a constant, or a larger expression. */
uint32_t sym_symbol_of(const sym_env *e, bp_dim d);
bool sym_is_dim(const sym_env *e, bp_dim d);          /* false: its number is none of the environment's */
bp_dim sym_dim_of(const sym_env *e, uint32_t k);      /* with its hint */
void sym_set_source(sym_env *e, uint32_t k, sym_source s);
/* Calls each for every symbol in d, in order of their numbers, once. */
void sym_each_symbol(const sym_env *e, bp_dim d, void (*each)(void *arg, uint32_t k), void *arg);
bool sym_is_unbacked(const sym_env *e, bp_dim d);     /* some symbol of it is */

/* -- facts -- */
uint32_t sym_fact_count(const sym_env *e);
const sym_fact *sym_fact_at(const sym_env *e, uint32_t i);
void sym_set_tag(sym_env *e, uint32_t tag);
/* Says that a condition holds (a mark's bounds, a graph's header). False: it contradicts what is known. */
bool sym_assume(sym_env *e, bp_ctx *c, bp_dim condition, enum sym_origin origin);
/* The same, and it is kept as it is written, even if it follows from what is known: for who reads facts back. */
bool sym_restore(sym_env *e, bp_ctx *c, bp_dim condition, enum sym_origin origin);
/* What a dim is by the equalities that are known: s1 == s0 makes s1 an s0, s0 == 5 makes s0 the constant 5. */
bp_dim sym_simplify(sym_env *e, bp_ctx *c, bp_dim d);
/* Inclusive bounds of d that are known. */
void sym_bounds(const sym_env *e, bp_dim d, int64_t *min, int64_t *max);

/* -- values -- */
/* d where symbol k is values[k]. False: an overflow, or a division by zero. */
bool sym_eval(const sym_env *e, bp_dim d, const int64_t *values, int64_t *out);
/* n dims compiled into one flat program, for hot paths. NULL: out of memory. */
typedef struct sym_program sym_program;
sym_program *sym_compile(const sym_env *e, const bp_dim *dims, uint32_t n);
void sym_program_free(sym_program *p);
/* Each dim's value into out[0 .. n). False: as above. */
bool sym_run(const sym_program *p, const int64_t *values, int64_t *out);
/* The first condition that is not 1, which includes one that overflows; n: all hold. */
uint32_t sym_first_false(const sym_program *p, const int64_t *values);

/* -- between environments, and text -- */
/* d of `from` in `to`: symbol k of `from` is map[k] there. {0}: out of memory (the context says so). */
bp_dim sym_import(sym_env *to, bp_ctx *c, const sym_env *from, bp_dim d, const bp_dim *map);
/* "2*s0 + 1", "s0//4", "Mod(s0, 4)", "Max(1, s0)", "s0 + s1 >= 4"; of_names: symbols by their source's name, as guards
 * print ("L['x'].size()[0] == 5"). e NULL: constants only. */
void sym_print(const sym_env *e, bp_dim d, bool of_names, buf *out);
/* Reads what sym_print writes, with symbols by their names; n characters. INVALID_ARGUMENT: text[offset] is wrong. */
bp_status sym_parse(sym_env *e, bp_ctx *c, const char *text, size_t n, bp_dim *out, size_t *offset);
#endif
