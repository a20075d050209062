/* Environments: their life, the current one, their symbols, and the entry points on what is known. */
#include "host/sym/expr.h"
#include "sdk/base/hash.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Thread_local sym_scope sym_now __attribute__((tls_model("initial-exec")));

/* -- life ---------------------------------------------------------------------------------------------------------- */

static bool first_chunk(sym_env *e)
{
    e->chunks = calloc(1, sizeof *e->chunks);
    e->memo = calloc(SYM_MEMO, sizeof *e->memo);
    if (!e->chunks || !e->memo)
        return false;
    e->chunks[0] = calloc(SYM_CHUNK, sizeof **e->chunks);
    e->nchunks = e->chunks[0] != NULL;
    return e->nchunks;
}

/* Node 0, which ids that are none lead to. */
static void make_none(sym_env *e)
{
    *sym_at(e, 0) = (sym_node){.kind = SYM_SYMBOL, .n = UINT32_MAX, .known = SYM_ANY, .modulus = 1, .scale = 1};
}

sym_env *sym_env_new(void)
{
    sym_env *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    atomic_init(&e->refs, 1);
    e->epoch = 1;
    if (!first_chunk(e)) {
        sym_env_unref(e);
        return NULL;
    }
    make_none(e);
    return e;
}

sym_env *sym_env_ref(sym_env *e)
{
    if (e)
        atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
    return e;
}

void sym_env_unref(sym_env *e)
{
    if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < e->nchunks; i++)
        free(e->chunks[i]);
    free(e->chunks);
    free(e->table);
    free(e->memo);
    vec_fini(&e->symbols);
    vec_fini(&e->ids);
    vec_fini(&e->replaced);
    vec_fini(&e->facts);
    vec_fini(&e->bounded);
    arena_fini(&e->memory);
    arena_fini(&e->scratch);
    free(e);
}

/* -- copies -------------------------------------------------------------------------------------------------------- */

static bool copy_node(sym_env *to, sym_node *n)
{
    if (n->kind == SYM_SUM)
        n->terms = arena_memdup(&to->memory, n->terms, n->n * sizeof *n->terms);
    if (n->kind == SYM_PRODUCT)
        n->factors = arena_memdup(&to->memory, n->factors, n->n * sizeof *n->factors);
    if (n->nsymbols)
        n->symbols = arena_memdup(&to->memory, n->symbols, n->nsymbols * sizeof *n->symbols);
    if (n->nsymbols && !n->symbols)
        return false;
    return (n->kind != SYM_SUM || n->terms) && (n->kind != SYM_PRODUCT || n->factors);
}

static bool copy_nodes(sym_env *to, const sym_env *from)
{
    if (from->nchunks > 1) {
        sym_node **chunks = realloc(to->chunks, from->nchunks * sizeof *chunks);
        if (!chunks)
            return false;
        to->chunks = chunks;
    }
    for (; to->nchunks < from->nchunks; to->nchunks++)
        if (!(to->chunks[to->nchunks] = malloc(SYM_CHUNK * sizeof **to->chunks)))
            return false;
    for (uint32_t i = 0; i < from->nchunks; i++)
        memcpy(to->chunks[i], from->chunks[i], SYM_CHUNK * sizeof **to->chunks);
    to->len = from->len;
    for (uint32_t id = 1; id <= to->len; id++)
        if (!copy_node(to, sym_at(to, id)))
            return false;
    to->table_cap = from->table_cap;
    to->table = to->table_cap ? malloc(to->table_cap * sizeof *to->table) : NULL;
    if (to->table)
        memcpy(to->table, from->table, to->table_cap * sizeof *to->table);
    return to->table || !to->table_cap;
}

static bool copy_text(sym_env *to, const char **text)
{
    return !*text || (*text = arena_strdup(&to->memory, *text)) != NULL;
}

static bool copy_lists(sym_env *to, const sym_env *from)
{
    bool well = true;
    for (uint32_t i = 0; i < from->symbols.len && well; i++) {
        sym_symbol s = from->symbols.at[i];
        well = copy_text(to, &s.name) && copy_text(to, &s.of) && vec_push(&to->symbols, s) &&
               vec_push(&to->ids, from->ids.at[i]) && vec_push(&to->replaced, from->replaced.at[i]);
    }
    for (uint32_t i = 0; i < from->facts.len && well; i++) {
        sym_fact f = from->facts.at[i];
        well = copy_text(to, &f.file) && vec_push(&to->facts, f);
    }
    for (uint32_t i = 0; i < from->bounded.len && well; i++)
        well = vec_push(&to->bounded, from->bounded.at[i]);
    return well;
}

sym_env *sym_env_clone(const sym_env *e)
{
    sym_env *to = sym_env_new();
    if (!to)
        return NULL;
    if (!copy_nodes(to, e) || !copy_lists(to, e)) {
        to->len = 0;
        sym_env_unref(to);
        return NULL;
    }
    to->tag = e->tag;
    to->epoch = e->epoch;
    to->nunbacked = e->nunbacked;
    to->divisible = e->divisible;
    to->contradiction = e->contradiction;
    to->captures_data = e->captures_data;
    return to;
}

/* Forgets what facts have told of a node. */
static void renew_node(sym_env *e, uint32_t id, const int64_t *values)
{
    sym_node *n = sym_at(e, id);
    n->known = SYM_ANY;
    n->modulus = 1;
    n->residue = 0;
    n->listed = false;
    n->range_epoch = n->plain_epoch = 0;
    if (n->kind == SYM_SYMBOL)
        n->hint = n->unbacked ? 0 : values[n->n];
    else
        sym_hint_again(e, n);
}

sym_env *sym_env_again(const sym_env *e, uint32_t nsymbols, const int64_t *values)
{
    sym_env *to = sym_env_new();
    if (!to)
        return NULL;
    if (!copy_nodes(to, e)) {
        to->len = 0;
        sym_env_unref(to);
        return NULL;
    }
    if (nsymbols < e->ids.len) /* what came behind is of another path */
        to->len = e->ids.at[nsymbols] - 1;
    for (uint32_t id = 1; id <= to->len; id++)
        renew_node(to, id, values);
    sym_index_again(to);
    return to;
}

/* -- the current one ----------------------------------------------------------------------------------------------- */

sym_scope sym_push(sym_env *e, bp_ctx *c)
{
    sym_scope former = sym_now;
    sym_now = (sym_scope){e, c};
    return former;
}

void sym_pop(sym_scope former)
{
    sym_now = former;
}

sym_env *sym_current(void)
{
    return sym_now.env;
}

bp_ctx *sym_context(void)
{
    return sym_now.c;
}

void sym_capture_data(sym_env *e, bool on)
{
    e->captures_data = on;
}

bool sym_captures_data(const sym_env *e)
{
    return e->captures_data;
}

/* -- entry points -------------------------------------------------------------------------------------------------- */

bp_dim sym_dim(const sym_env *e, sym_ex x)
{
    int64_t hint = 0;
    sym_ex_hint(e, x, &hint);
    return (bp_dim){hint, x.id, 0};
}

bool sym_ends_well(sym_env *e, bp_ctx *c, const char *sign, bp_dim a, bp_dim b)
{
    enum sym_fail f = e->fail;
    if (!f && !e->scratch.last)
        return true;
    arena_reset(&e->scratch, (arena_mark){0});
    e->fail = SYM_FINE;
    if (f == SYM_NOMEM && c)
        ctx_nomem(c);
    else if (f == SYM_OVERFLOW && c)
        ctx_fail(c, BP_INVALID_ARGUMENT, "size %" PRId64 " %s %" PRId64 " does not fit 64 bits", a.value, sign,
                 b.value);
    else if (f == SYM_ZERO && c)
        ctx_fail(c, BP_INVALID_ARGUMENT, "a size divides by 0 there");
    else if (f && c)
        ctx_fail(c, BP_UNIMPLEMENTED, "a size is an expression of more than %d parts", (int)SYM_TERMS_MAX);
    return !f;
}

bool sym_restore(sym_env *e, bp_ctx *c, bp_dim condition, enum sym_origin origin)
{
    bool holds = !e->fail && sym_record(e, c, sym_ex_of(condition), origin);
    e->contradiction = false;
    return sym_ends_well(e, c, "of", condition, condition) && holds;
}

bool sym_assume(sym_env *e, bp_ctx *c, bp_dim condition, enum sym_origin origin)
{
    sym_ex x = sym_plain(e, sym_ex_of(condition));
    bool holds = !e->fail && !sym_ex_is(x, 0);
    if (x.id && holds)
        holds = sym_record(e, c, x, origin);
    e->contradiction = false;
    return sym_ends_well(e, c, "of", condition, condition) && holds;
}

bp_dim sym_simplify(sym_env *e, bp_ctx *c, bp_dim d)
{
    if (!d.sym || !sym_belongs(e, d))
        return d;
    sym_ex x = sym_plain(e, sym_ex_id(d.sym));
    return sym_ends_well(e, c, "as", d, d) ? sym_dim(e, x) : d;
}

/* Ranges are kept in the nodes, which an environment that is const still may. */
void sym_bounds(const sym_env *e, bp_dim d, int64_t *min, int64_t *max)
{
    union { const sym_env *seen; sym_env *own; } u = {e};
    sym_range r = sym_range_of(u.own, sym_ex_of(d));
    *min = r.min;
    *max = r.max;
}

/* -- symbols ------------------------------------------------------------------------------------------------------- */

static bool name_taken(const sym_env *e, const char *name)
{
    for (uint32_t i = 0; i < e->symbols.len; i++)
        if (strcmp(e->symbols.at[i].name, name) == 0)
            return true;
    return false;
}

/* s and a number from the source's name, counted up until it is free; u and the next number for data. */
static const char *new_name(sym_env *e, const sym_symbol *s)
{
    enum { NUMBERS = 100 };
    char name[24];
    uint64_t number = e->nunbacked;
    if (!s->unbacked)
        number = s->of ? hash_bytes(s->of, strlen(s->of), 0) % NUMBERS : e->symbols.len;
    do
        snprintf(name, sizeof name, "%c%" PRIu64, s->unbacked ? 'u' : 's', number++);
    while (name_taken(e, name));
    return arena_strdup(&e->memory, name);
}

static sym_node symbol_node(const sym_env *e, const sym_symbol *s)
{
    return (sym_node){.kind = SYM_SYMBOL, .n = e->symbols.len, .unbacked = s->unbacked, .has_hint = !s->unbacked,
                      .hint = s->unbacked ? 0 : s->hint};
}

static bool reserve_symbol(sym_env *e)
{
    uint64_t n = (uint64_t)e->symbols.len + 1;
    return vec_reserve(&e->symbols, n) && vec_reserve(&e->ids, n) && vec_reserve(&e->replaced, n);
}

bp_dim sym_add_symbol(sym_env *e, bp_ctx *c, const sym_symbol *s)
{
    sym_symbol own = *s;
    own.hint = s->unbacked ? 0 : s->hint;
    own.of = s->of ? arena_strdup(&e->memory, s->of) : NULL;
    own.name = s->name ? arena_strdup(&e->memory, s->name) : new_name(e, s);
    sym_node n = symbol_node(e, s);
    uint32_t id = own.name && (own.of || !s->of) && reserve_symbol(e) ? sym_intern(e, &n) : 0;
    if (!id) {
        if (c)
            ctx_nomem(c);
        sym_ends_well(e, NULL, "", dim_const(0), dim_const(0));
        return dim_const(0);
    }
    sym_at(e, id)->known = (sym_range){s->min, s->max};
    sym_at(e, id)->range_epoch = 0;
    e->nunbacked += s->unbacked;
    e->symbols.at[e->symbols.len++] = own;
    e->ids.at[e->ids.len++] = id;
    e->replaced.at[e->replaced.len++] = sym_ex_id(id);
    return sym_dim(e, sym_ex_id(id));
}

uint32_t sym_symbol_count(const sym_env *e)
{
    return e->symbols.len;
}

const sym_symbol *sym_symbol_at(const sym_env *e, uint32_t k)
{
    return k < e->symbols.len ? &e->symbols.at[k] : NULL;
}

uint32_t sym_symbol_of(const sym_env *e, bp_dim d)
{
    const sym_node *n = sym_at(e, d.sym);
    return d.sym && sym_belongs(e, d) && n->kind == SYM_SYMBOL ? n->n : UINT32_MAX;
}

bool sym_is_dim(const sym_env *e, bp_dim d)
{
    return sym_belongs(e, d);
}

bp_dim sym_dim_of(const sym_env *e, uint32_t k)
{
    return k < e->ids.len ? sym_dim(e, sym_ex_id(e->ids.at[k])) : dim_const(0);
}

void sym_set_source(sym_env *e, uint32_t k, sym_source s)
{
    if (k < e->symbols.len)
        e->symbols.at[k].source = s;
}

bool sym_is_unbacked(const sym_env *e, bp_dim d)
{
    return sym_is_data(e, d);
}

void sym_each_symbol(const sym_env *e, bp_dim d, void (*each)(void *arg, uint32_t k), void *arg)
{
    const sym_node *n = sym_at(e, d.sym);
    for (uint32_t i = 0; d.sym && i < n->nsymbols; i++)
        each(arg, n->symbols[i]);
}
