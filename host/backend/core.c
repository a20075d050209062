/* Graphs in core ATen, for backends that want them: a backend's own view is decomposed down to what it wants whole, by
 * its own rows before the host's, and verified before it is handed over.
 *
 * A backend's rows are made once, when it is first asked: from its list, or from what its function gives. They are
 * never changed: whoever sets others puts a new table in their place, and the old ones live as long as the backend. */
#include "host/backend/chain.h"
#include "host/pass/pass.h"
#include <backplane/backplane.h>
#include <string.h>

typedef struct { const op_row *op; decomp_row row; } own_row;
typedef struct wants {
    bp_backend_wants says;
    pthread_mutex_t lock;   /* making the rows */
    bool is_made;
    VEC(own_row) rows;
    struct wants *before;   /* what was set earlier */
} wants;

/* -- rows ---------------------------------------------------------------------------------------------------------- */

static bp_status give(bp_ctx *c, const void *user, const bp_value *args, op_call *k)
{
    const bp_decomposition *d = user;
    bp_tensor *out[16] = {NULL};
    shape_call s;
    TRY(op_infer(c, k->op, args, &s));
    if (s.nout > 16)
        return op_fail(c, k->op, BP_INVALID_ARGUMENT,
                       "its decomposition would give %u results, at most 16 are possible", s.nout);
    bp_status st = d->fn(c, args, k->op->schema->nargs, out, s.nout);
    if (st != BP_OK)
        return ctx_ok(c) ? op_fail(c, k->op, st, "the backend's decomposition failed") : c->diag.code;
    for (uint32_t i = 0; i < s.nout; i++)
        if (!out[i] && !s.out[i].absent)
            return ctx_ok(c) ? op_fail(c, k->op, BP_INVALID_ARGUMENT, "the backend's decomposition gave no result %u",
                                       i)
                             : c->diag.code;
    work w = {.c = c};
    return parts_give(&w, k, out, s.nout);
}

static bp_status add_row(bp_ctx *c, wants *w, const bp_decomposition *d)
{
    own_row own = {.op = op_by_target(d->target), .row = {.text = d->formula}};
    if (!own.op) {
        const char *near = op_nearest(d->target);
        ctx_fail(c, BP_INVALID_ARGUMENT, "a decomposition of \"%s\", which is no operator", d->target);
        if (near)
            diag_hint(&c->diag, "did you mean \"%s\"?", near);
        return c->diag.code;
    }
    if (d->formula && !(own.row.parsed = formula_parse(c, own.op, d->formula)))
        return c->diag.code;
    if (d->fn && !d->formula)
        own.row.user = d, own.row.give = give;
    if (!d->formula && !d->fn)
        own.row.kept = "the backend wants it whole";
    if (vec_push(&w->rows, own))
        return BP_OK;
    formula_free((formula *)(uintptr_t)own.row.parsed);
    return ctx_nomem(c);
}

static void drop_rows(wants *w)
{
    for (uint32_t i = 0; i < w->rows.len; i++)
        formula_free((formula *)(uintptr_t)w->rows.at[i].row.parsed);
    vec_fini(&w->rows);
}

static bp_status add_rows(bp_ctx *c, wants *w, const bp_decomposition *list)
{
    for (; list && list->target; list++)
        if (add_row(c, w, list) != BP_OK) {
            drop_rows(w);
            return c->diag.code;
        }
    return BP_OK;
}

/* The backend's rows, made by whoever comes first. */
static bp_status rows_ready(bp_ctx *c, wants *w)
{
    bp_status s = BP_OK;
    pthread_mutex_lock(&w->lock);
    if (!w->is_made) {
        const bp_decomposition *list = w->says.decompositions;
        if (!list && w->says.give_decompositions)
            list = w->says.give_decompositions(w->says.arg);
        s = add_rows(c, w, list);
        w->is_made = s == BP_OK;
    }
    pthread_mutex_unlock(&w->lock);
    return s;
}

static void free_wants(wants *w)
{
    while (w) {
        wants *before = w->before;
        drop_rows(w);
        pthread_mutex_destroy(&w->lock);
        free(w);
        w = before;
    }
}

void wants_free(backend *b)
{
    free_wants(atomic_load(&b->wants));
}

/* -- setting ------------------------------------------------------------------------------------------------------- */

static bp_status check_whole(bp_ctx *c, const char *const *targets)
{
    for (; targets && *targets; targets++)
        if (!op_by_target(*targets)) {
            const char *near = op_nearest(*targets);
            ctx_fail(c, BP_INVALID_ARGUMENT, "\"%s\" is wanted whole, and is no operator", *targets);
            if (near)
                diag_hint(&c->diag, "did you mean \"%s\"?", near);
            return c->diag.code;
        }
    return BP_OK;
}

static bp_status put(bp_ctx *c, const char *name, wants *w)
{
    backend *b = backend_find(c->rt, name);
    if (!b || b->kind != ORIGIN_REGISTERED)
        return ctx_fail(c, BP_NOT_FOUND, "no backend \"%s\" was registered from C", name);
    w->before = atomic_load(&b->wants);
    while (!atomic_compare_exchange_weak(&b->wants, &w->before, w)) {
    }
    return BP_OK;
}

bp_status bp_set_backend_wants(bp_ctx *c, const char *name, const bp_backend_wants *says)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (!name || !says || says->size < sizeof says->size + sizeof says->graph)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "bp_set_backend_wants: a name and a struct with its size are needed");
    bp_backend_wants own = {0};
    memcpy(&own, says, says->size < sizeof own ? says->size : sizeof own);
    if (own.dynamic_shapes > 1 || own.reserved)
        return ctx_fail(c, BP_INVALID_ARGUMENT,
                        "bp_set_backend_wants: dynamic_shapes is %u and reserved %u, expected 0 or 1, and 0",
                        (unsigned)own.dynamic_shapes, (unsigned)own.reserved);
    if (own.graph < BP_GRAPH_UNSET || own.graph > BP_GRAPH_CORE)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "bp_set_backend_wants: graph is %d, expected BP_GRAPH_*",
                        (int)own.graph);
    TRY(check_whole(c, own.whole_ops));
    wants *w = calloc(1, sizeof *w);
    if (!w)
        return ctx_nomem(c);
    w->says = own;
    pthread_mutex_init(&w->lock, NULL);
    bp_status s = own.decompositions ? rows_ready(c, w) : BP_OK;
    if (!s)
        s = put(c, name, w);
    if (s)
        free_wants(w);
    return s;
}

/* -- views --------------------------------------------------------------------------------------------------------- */

int32_t backend_wanted_graph(const backend *b)
{
    const wants *w = atomic_load(&((backend *)(uintptr_t)b)->wants);
    return w && w->says.graph ? w->says.graph : b->info.graph;
}

bool backend_takes_dims(const backend *b)
{
    const wants *w = atomic_load(&((backend *)(uintptr_t)b)->wants);
    return (w && w->says.dynamic_shapes) || (b->info.flags & BP_DYNAMIC_SHAPES);
}

typedef struct { const wants *w; link_view *v; bool lacks_memory; } making;

static const decomp_row *row_of(void *arg, const op_row *op)
{
    const wants *w = ((making *)arg)->w;
    for (uint32_t i = 0; w && i < w->rows.len; i++)
        if (w->rows.at[i].op == op)
            return &w->rows.at[i].row;
    return NULL;
}

static void note_origin(void *arg, node_id of, node_id n)
{
    making *m = arg;
    if (n >= m->v->norigins) {
        uint32_t more = 2 * n + 16;
        node_id *grown = realloc(m->v->origin, more * sizeof *grown);
        if (!grown) {
            m->lacks_memory = true;
            return;
        }
        memset(grown + m->v->norigins, 0, (more - m->v->norigins) * sizeof *grown);
        m->v->origin = grown;
        m->v->norigins = more;
    }
    m->v->origin[n] = of;
}

static bp_status decompose(bp_ctx *c, link_view *v, wants *w)
{
    making m = {w, v, false};
    const char *const *whole = w && w->says.whole_ops ? w->says.whole_ops : v->record.b->info.whole_ops;
    decompose_options o = {whole, row_of, note_origin, &m};
    if (w)
        TRY(rows_ready(c, w));
    const pass all[] = {{"decompose", pass_decompose, &o}, {"dce", pass_dce, NULL}, {"verify", pass_verify_core, &o}};
    TRY(passes_run(c, v->gm, all, sizeof all / sizeof *all));
    return m.lacks_memory ? ctx_nomem(c) : BP_OK;
}

bp_status link_view_make_core(bp_ctx *c, link_view *v)
{
    sym_scope former = sym_push(v->gm->g.syms, c);
    bp_status s = decompose(c, v, atomic_load(&v->record.b->wants));
    sym_pop(former);
    if (s == BP_OK || s == BP_RESOURCE_EXHAUSTED)
        return s;
    v->unfit = strdup(c->diag.message);
    diag_clear(&c->diag);
    return v->unfit ? BP_OK : ctx_nomem(c);
}
