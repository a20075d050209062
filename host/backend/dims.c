/* Services on symbolic sizes, and specializing by reading. Guards go to the environment of the plugin's view, which is
 * that of the variant that is being compiled; numbers are written to the view's own memory, once a type. */
#include "host/backend/dims.h"
#include "host/backend/service.h"
#include <string.h>

/* -- reading is specializing --------------------------------------------------------------------------------------- */

typedef struct { bp_ctx *c; sym_env *env; bool failed; } specializing;

static void specialize(void *arg, uint32_t k)
{
    specializing *s = arg;
    dim_int(s->c, sym_dim_of(s->env, k));
}

/* d's number; each of its symbols is its hint from now on. False: the record says why. */
static bool number(const bp_graph_module *gm, bp_dim d, int64_t *out)
{
    compile_record *record = compile_record_of(gm);
    *out = dim_hint(d);
    if (dim_is_const(d))
        return true;
    if (!record || !gm->g.syms)
        return false;
    specializing s = {record->c, gm->g.syms, false};
    sym_scope former = sym_push(gm->g.syms, record->c);
    sym_each_symbol(gm->g.syms, d, specialize, &s);
    sym_pop(former);
    if (ctx_ok(record->c))
        return true;
    record->inner = record->c->diag;
    diag_clear(&record->c->diag);
    return false;
}

static bool numbers(const bp_graph_module *gm, uint32_t n, const bp_dim *in, bp_dim *out)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t v;
        if (!number(gm, in[i], &v))
            return false;
        out[i] = dim_const(v);
    }
    return true;
}

static arena *memory_of(const bp_graph_module *gm)
{
    union { const bp_graph_module *seen; bp_graph_module *own; } u = {gm}; /* the plugin's own copy of the graph */
    return &u.own->g.arena;
}

static tensor_meta *settled_meta(const bp_graph_module *gm, const tensor_meta *m)
{
    tensor_meta *out = arena_memdup(memory_of(gm), m, sizeof *m);
    bp_dim *dims = arena_array(memory_of(gm), 2 * (size_t)m->rank + 1, sizeof *dims);
    if (!out || !dims || !numbers(gm, m->rank, m->sizes, dims) || !numbers(gm, m->rank, m->strides, dims + m->rank))
        return NULL;
    out->sizes = dims;
    out->strides = dims + m->rank;
    return out;
}

static bool sees_symbols(const bp_graph_module *gm)
{
    return !gm->g.syms || backend_takes_dims(service_backend(gm->host));
}

const tensor_meta *dims_see_meta(const bp_graph_module *gm, const tensor_meta *m)
{
    compile_record *record = compile_record_of(gm);
    if (sees_symbols(gm) || meta_is_constant(m))
        return m;
    map_value *known = record ? map_put_u64(&record->shown, (uintptr_t)m, NULL) : NULL;
    if (known && !known->p)
        known->p = settled_meta(gm, m);
    return known ? known->p : NULL;
}

static bool is_symbolic(const bp_value *v)
{
    if (v->kind == BP_VALUE_INT)
        return !dim_is_const(v->v.dim);
    for (uint32_t i = 0; v->kind == BP_VALUE_LIST && i < v->count; i++)
        if (is_symbolic(&v->v.items[i]))
            return true;
    return false;
}

static bp_status settle_value(const bp_graph_module *gm, bp_value *v)
{
    int64_t n;
    if (!is_symbolic(v))
        return BP_OK;
    if (v->kind == BP_VALUE_INT) {
        if (!number(gm, v->v.dim, &n))
            return BP_FAILED_PRECONDITION;
        v->v.dim = dim_const(n);
        return BP_OK;
    }
    bp_value *items = arena_memdup(memory_of(gm), v->v.items, v->count * sizeof *items);
    for (uint32_t i = 0; items && i < v->count; i++)
        TRY(settle_value(gm, &items[i]));
    v->v.items = items ? items : v->v.items;
    return items ? BP_OK : BP_RESOURCE_EXHAUSTED;
}

bp_status dims_see_value(const bp_graph_module *gm, bp_value *v)
{
    return sees_symbols(gm) ? BP_OK : settle_value(gm, v);
}

static bp_status settle_node(bp_graph_module *gm, graph_node *n)
{
    for (uint32_t i = 0; i < n->nmetas; i++) {
        const tensor_meta *m = meta_is_constant(&n->metas[i]) ? &n->metas[i] : settled_meta(gm, &n->metas[i]);
        if (!m)
            return BP_FAILED_PRECONDITION;
        n->metas[i] = *m;
    }
    for (uint32_t i = 0; i < n->nargs; i++)
        TRY(settle_value(gm, &n->args[i]));
    for (uint32_t i = 0; i < n->nkwargs; i++)
        TRY(settle_value(gm, &n->kwargs[i].value));
    return BP_OK;
}

/* The plugin need not look at the sizes of data: they stay as they are, and reading them fails. */
bp_status dims_settle(bp_graph_module *gm)
{
    compile_record *record = compile_record_of(gm);
    bp_status st = BP_OK;
    if (sees_symbols(gm) || !record)
        return BP_OK;
    for (node_id n = gm->g.first; n; n = graph_get(&gm->g, n)->next) {
        bp_status one = settle_node(gm, &gm->g.nodes.at[n]);
        st = st ? st : one;
    }
    return st;
}

/* -- services ------------------------------------------------------------------------------------------------------ */

/* Text for a plugin: cut at cap, NUL-terminated. The full length. */
static size_t give_text(buf *text, char *to, size_t cap)
{
    size_t n = text->failed ? 0 : text->n, kept = n < cap ? n : cap ? cap - 1 : 0;
    if (to && cap) {
        memcpy(to, buf_text(text), kept);
        to[kept] = '\0';
    }
    buf_fini(text);
    return n;
}

uint32_t service_symbol_count(const bp_graph_module *gm)
{
    return gm->g.syms ? sym_symbol_count(gm->g.syms) : 0;
}

bp_status service_symbol_at(const bp_graph_module *gm, uint32_t k, bp_symbol *out)
{
    if (!out || out->size < offsetof(bp_symbol, name) || k >= service_symbol_count(gm))
        return BP_INVALID_ARGUMENT;
    const sym_symbol *s = sym_symbol_at(gm->g.syms, k);
    bp_symbol own = {.size = out->size, .flags = s->unbacked ? BP_SYMBOL_UNBACKED : 0, .name = s->name,
                     .dim = sym_dim_of(gm->g.syms, k), .hint = s->unbacked ? 0 : s->hint, .min = s->min,
                     .max = s->max};
    if (!sees_symbols(gm) && !s->unbacked) { /* as of every dim that such a plugin reads */
        if (!number(gm, own.dim, &own.hint))
            return BP_FAILED_PRECONDITION;
        own.dim = dim_const(own.hint);
        own.min = own.max = own.hint;
    } else if (compile_record_of(gm)) /* what was learned since; afterwards several threads may ask */
        sym_bounds(gm->g.syms, own.dim, &own.min, &own.max);
    memcpy(out, &own, out->size < sizeof own ? out->size : sizeof own);
    return BP_OK;
}

uint32_t service_fact_count(const bp_graph_module *gm)
{
    return gm->g.syms ? sym_fact_count(gm->g.syms) : 0;
}

size_t service_fact_text(const bp_graph_module *gm, uint32_t i, char *text, size_t cap)
{
    buf out = {0};
    if (i < service_fact_count(gm))
        sym_print(gm->g.syms, sym_fact_at(gm->g.syms, i)->holds, false, &out);
    return give_text(&out, text, cap);
}

/* Whether d is a dim of the graph: a plugin may hand anything in. */
static bool is_dim(const bp_graph_module *gm, bp_dim d)
{
    return dim_is_const(d) || (gm->g.syms && sym_is_dim(gm->g.syms, d));
}

size_t service_dim_text(const bp_graph_module *gm, bp_dim dim, char *text, size_t cap)
{
    buf out = {0};
    if (is_dim(gm, dim))
        sym_print(gm->g.syms, dim, false, &out);
    return give_text(&out, text, cap);
}

bp_status service_dim_number(const bp_graph_module *gm, bp_dim dim, int64_t *out)
{
    int64_t n;
    if (!out || !is_dim(gm, dim))
        return BP_INVALID_ARGUMENT;
    if (!number(gm, dim, &n))
        return BP_FAILED_PRECONDITION;
    *out = n;
    return BP_OK;
}

/* What the context has to say of a failed question or operation is the record's. */
static bool take_failure(compile_record *record)
{
    bool failed = !ctx_ok(record->c);
    if (failed) {
        record->inner = record->c->diag;
        diag_clear(&record->c->diag);
    }
    return failed;
}

static bool ask(int32_t relation, bp_dim a, bp_dim b)
{
    switch (relation) {
    case BP_DIM_EQ: return dim_eq(a, b);
    case BP_DIM_NE: return !dim_eq(a, b);
    case BP_DIM_LT: return dim_lt(a, b);
    case BP_DIM_LE: return dim_le(a, b);
    case BP_DIM_GT: return dim_lt(b, a);
    default: return dim_le(b, a);
    }
}

int32_t service_dim_holds(const bp_graph_module *gm, int32_t relation, bp_dim a, bp_dim b)
{
    compile_record *record = compile_record_of(gm);
    if (relation < BP_DIM_EQ || relation > BP_DIM_GE || !is_dim(gm, a) || !is_dim(gm, b) || !record)
        return -1;
    sym_scope former = sym_push(gm->g.syms, record->c);
    bool holds = ask(relation, a, b);
    sym_pop(former);
    return take_failure(record) ? -1 : holds;
}

bp_status service_dim_make(const bp_graph_module *gm, int32_t operation, bp_dim a, bp_dim b, bp_dim *out)
{
    static bp_dim (*const MAKE[])(bp_ctx *, bp_dim, bp_dim) = {
        [BP_DIM_ADD] = dim_add, [BP_DIM_SUB] = dim_sub, [BP_DIM_MUL] = dim_mul, [BP_DIM_FLOORDIV] = dim_floordiv,
        [BP_DIM_MOD] = dim_mod, [BP_DIM_MIN] = dim_min, [BP_DIM_MAX] = dim_max};
    compile_record *record = compile_record_of(gm);
    if (operation < BP_DIM_ADD || operation > BP_DIM_MAX || !is_dim(gm, a) || !is_dim(gm, b) || !out)
        return BP_INVALID_ARGUMENT;
    if (!record)
        return BP_FAILED_PRECONDITION;
    sym_scope former = sym_push(gm->g.syms, record->c);
    bp_dim made = MAKE[operation](record->c, a, b);
    sym_pop(former);
    if (take_failure(record))
        return record->inner.code;
    *out = made;
    return BP_OK;
}

bp_status service_run_dim(const bp_run *r, bp_dim dim, int64_t *out)
{
    const sym_env *env = r->k && r->sizes ? r->k->env : NULL;
    if (!out || (!dim_is_const(dim) && (!env || !sym_is_dim(env, dim))))
        return BP_INVALID_ARGUMENT;
    if (dim_is_const(dim))
        *out = dim.value;
    else if (!sym_eval(env, dim, r->sizes->values, out))
        return BP_OUT_OF_RANGE;
    return BP_OK;
}
