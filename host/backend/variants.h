/* Variants: what was made of a graph with symbols, a payload for the sizes that its conditions admit.
 *
 * Whoever makes a payload may ask of the graph's environment what he needs (passes, shape rules, a backend that reads a
 * size). What was added to it meanwhile are the payload's conditions, over the graph's symbols. A call takes the first
 * payload whose conditions hold for its sizes; when there is none, one more is made with these sizes as hints. The
 * list only grows, so it is read without a lock. A program is such a list, and so is a segment that trains.
 *
 * Threads: making is serial; binding and finding may go on meanwhile. */
#ifndef HOST_BACKEND_VARIANTS_H
#define HOST_BACKEND_VARIANTS_H
#include "host/graph/graph.h"

typedef struct variants variants;

/* make: *payload of gm, a copy of the list's graph whose hints are the sizes of the call; its environment is the
 * thread's while make runs. The copy lives as long as somebody refers to it. On failure the context, or arg, knows why.
 * drop: frees a payload. */
typedef struct {
    bp_status (*make)(bp_ctx *c, void *arg, bp_graph_module *gm, void **payload);
    void (*drop)(void *payload);
} variant_kind;

/* Refers to gm, whose symbols (but those that the code makes) have sources among its placeholders; INTERNAL: one has
 * none. kind is kept, not copied. NULL: the context says why. */
variants *variants_new(bp_ctx *c, bp_graph_module *gm, const variant_kind *kind);
void variants_free(variants *v); /* NULL: nothing; nobody may be reading it */
/* Predicates over the graph's symbols, as marks give them: each gets a payload of its own, made when a call first meets
 * it, and tried before the general ones, in this order. Before the list is used; once. */
bp_status variants_specialize_on(bp_ctx *c, variants *v, const bp_dim *conditions, uint32_t n);

uint32_t variants_nsymbols(const variants *v);
/* values[k] of each symbol that inputs show, one input a placeholder; 0 of the others. Inputs fit their types. */
void variants_bind(const variants *v, bp_tensor *const *inputs, int64_t *values);
/* The payload that serves these values; NULL: none yet. */
void *variants_find(const variants *v, const int64_t *values);
/* The same, made when there is none. values NULL: the graph's own hints. *payload NULL, and BP_OK: the list has
 * recompile_limit variants, and none of them serves. */
bp_status variants_make(bp_ctx *c, variants *v, void *arg, const int64_t *values, void **payload);

/* -- reports -- */
uint32_t variants_count(const variants *v);
void *variants_at(const variants *v, uint32_t i); /* in the order in which they are tried */
/* "s0 == 4, s1 >= 2"; empty: any size. */
void variants_print_conditions(const variants *v, uint32_t i, buf *out);

/* The values of a graph's symbols, on the stack when they are few. */
enum { VARIANT_FEW = 32 };
typedef struct { int64_t few[VARIANT_FEW], *at; } variant_values;
static inline bool variant_values_init(variant_values *x, uint32_t n)
{
    x->at = n <= VARIANT_FEW ? x->few : malloc(n * sizeof *x->at);
    return x->at != NULL;
}
static inline void variant_values_fini(variant_values *x)
{
    if (x->at != x->few)
        free(x->at);
}
#endif
