/* Programs by size, the least recently used one dropped. See shapes.h. */
#include "plugins/onednn/shapes.h"
#include <string.h>

enum { MAX_SHAPES = 64 };

typedef struct { program *p; int64_t *values; uint64_t used; } shape;

struct shapes {
    bp_graph_module *gm;   /* a reference */
    const bp_host *host;
    bp_dim *symbols;
    int64_t *values;       /* of this run */
    uint32_t nsymbols, n;
    shape at[MAX_SHAPES];
    uint64_t clock;
    char *arena;
    size_t arena_bytes;
};

static void drop(shape *s)
{
    program_destroy(s->p);
    free(s->values);
}

void shapes_destroy(void *state)
{
    shapes *s = state;
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n; i++)
        drop(&s->at[i]);
    if (s->arena)
        bp_free(s->host, s->arena);
    free(s->symbols);
    free(s->values);
    bp_gm_unref(s->gm);
    free(s);
}

/* A place for one more: a free one, or that of the program that was not used for longest. */
static shape *make_room(shapes *s)
{
    if (s->n < MAX_SHAPES)
        return &s->at[s->n];
    shape *oldest = &s->at[0];
    for (uint32_t i = 1; i < s->n; i++)
        if (s->at[i].used < oldest->used)
            oldest = &s->at[i];
    return oldest;
}

/* The program for s->values. */
static shape *add(shapes *s, const bp_run *run, lower_failure *failure)
{
    size_t bytes = s->nsymbols * sizeof *s->values;
    shape made = {.values = malloc(bytes + 1)};
    *failure = (lower_failure){BP_RESOURCE_EXHAUSTED, "out of memory"};
    if (!made.values)
        return NULL;
    memcpy(made.values, s->values, bytes);
    made.p = lower_graph(s->gm, run, true, failure);
    if (!made.p) {
        free(made.values);
        return NULL;
    }
    shape *at = make_room(s);
    if (at == &s->at[s->n])
        s->n++;
    else
        drop(at);
    *at = made;
    return at;
}

static shape *find(shapes *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (memcmp(s->at[i].values, s->values, s->nsymbols * sizeof *s->values) == 0)
            return &s->at[i];
    return NULL;
}

static bool read_symbols(shapes *s)
{
    bp_symbol symbol = {.size = sizeof symbol};
    s->nsymbols = bp_symbol_count(s->gm);
    s->symbols = calloc(s->nsymbols + 1u, sizeof *s->symbols);
    s->values = calloc(s->nsymbols + 1u, sizeof *s->values);
    for (uint32_t i = 0; s->symbols && s->values && i < s->nsymbols; i++) {
        if (bp_symbol_at(s->gm, i, &symbol) != BP_OK)
            return false;
        s->symbols[i] = symbol.dim;
        s->values[i] = symbol.hint;
    }
    return s->symbols && s->values;
}

shapes *shapes_new(bp_graph_module *gm, lower_failure *failure)
{
    shapes *s = calloc(1, sizeof *s);
    *failure = (lower_failure){BP_RESOURCE_EXHAUSTED, "out of memory"};
    if (!s)
        return NULL;
    s->host = bp_host_of(gm);
    s->gm = bp_gm_ref(gm);
    if (s->gm && read_symbols(s) && add(s, NULL, failure))
        return s;
    shapes_destroy(s);
    return NULL;
}

/* An arena of at least n bytes; programs find it when they are run. */
static bool grow(shapes *s, size_t n)
{
    if (s->arena && s->arena_bytes >= n)
        return true;
    char *larger = bp_alloc(s->host, n ? n : 1, 64);
    if (!larger)
        return false;
    if (s->arena)
        bp_free(s->host, s->arena);
    s->arena = larger;
    s->arena_bytes = n;
    return true;
}

bp_status shapes_run(void *state, bp_run *r)
{
    shapes *s = state;
    lower_failure failure;
    for (uint32_t i = 0; i < s->nsymbols; i++)
        if (bp_run_dim(r, s->symbols[i], &s->values[i]) != BP_OK)
            return bp_run_fail(r, BP_INTERNAL, "symbol %u of the graph has no value", i);
    shape *at = find(s);
    if (!at && !(at = add(s, r, &failure)))
        return bp_run_fail(r, failure.code, "%s", failure.text);
    at->used = ++s->clock;
    if (!grow(s, at->p->arena_bytes) || !program_lend(at->p, s->arena))
        return bp_run_fail(r, BP_RESOURCE_EXHAUSTED, "no memory for %zu bytes of intermediates", at->p->arena_bytes);
    return program_run(at->p, r);
}
