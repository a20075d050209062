/* Recorded graphs with symbols for sizes: every size of an input from 2 on becomes a symbol, equal sizes the same one,
 * and strides become products of these where they are such. The shape rules then run on symbols. What they give must be
 * the static types at the recorded sizes, the text must read back as the same graph, and the run on the recorded inputs
 * is judged as that of the static graph is. */
#include "host/tools/golden_case.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -- retyping ------------------------------------------------------------------------------------------------------ */

/* The symbol that stands for a size; a new one when it is the first of this size. */
static bp_dim symbol_of(bp_ctx *c, graph *g, int64_t size)
{
    sym_env *e = graph_syms(c, g);
    for (uint32_t k = 0; e && k < sym_symbol_count(e); k++)
        if (sym_symbol_at(e, k)->hint == size)
            return sym_dim_of(e, k);
    char name[24];
    snprintf(name, sizeof name, "s%u", e ? sym_symbol_count(e) : 0);
    return e ? sym_add_symbol(e, c, &(sym_symbol){.name = name, .hint = size, .min = 2, .max = INT64_MAX,
                                                  .source = {.at = SYM_NO_SOURCE}})
             : dim_const(size);
}

/* A stride that is a size times its stride, of a dimension that has its own already; else the number. */
static bp_dim stride_of(bp_ctx *c, const tensor_meta *m, const tensor_meta *new, uint32_t d, const bool *done)
{
    for (uint32_t k = m->rank; m->strides[d].value > 1 && k-- > 0;)
        if (done[k] && m->sizes[k].value > 1 && m->sizes[k].value * m->strides[k].value == m->strides[d].value)
            return dim_mul(c, new->sizes[k], new->strides[k]);
    return m->strides[d];
}

/* Strides from the smallest on, the last dimension first among equals. */
static void set_strides(bp_ctx *c, const tensor_meta *m, tensor_meta *new)
{
    bool done[TENSOR_MAX_RANK] = {false};
    for (uint32_t i = 0; i < m->rank; i++) {
        uint32_t least = UINT32_MAX;
        for (uint32_t d = m->rank; d-- > 0;)
            if (!done[d] && (least == UINT32_MAX || m->strides[d].value < m->strides[least].value))
                least = d;
        new->strides[least] = stride_of(c, m, new, least, done);
        done[least] = true;
    }
}

static bp_status retype(bp_ctx *c, graph *g, node_id n)
{
    bp_dim sizes[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    const tensor_meta *m = graph_get(g, n)->metas;
    tensor_meta new = *m;
    new.sizes = sizes;
    new.strides = strides;
    for (uint32_t d = 0; d < m->rank; d++)
        sizes[d] = m->sizes[d].value < 2 ? m->sizes[d] : symbol_of(c, g, m->sizes[d].value);
    sym_scope scope = sym_push(g->syms, c);
    set_strides(c, m, &new);
    sym_pop(scope);
    graph_set_metas(g, n, &new, 1);
    return graph_status(c, g);
}

static bp_status make_symbolic(bp_ctx *c, bp_graph_module *gm)
{
    for (node_id n = gm->g.first; n; n = graph_get(&gm->g, n)->next)
        if (graph_get(&gm->g, n)->op == BP_NODE_PLACEHOLDER)
            TRY(retype(c, &gm->g, n));
    return graph_verify(c, gm);
}

/* -- types --------------------------------------------------------------------------------------------------------- */

typedef struct {
    golden_case *k;
    const bp_graph_module *gm, *fixed;
    int64_t *values;
    buf *why;
    bool symbolic;  /* some result has a size that is not specialized */
} comparison;

static bool same_dim(comparison *x, bp_dim d, bp_dim fixed)
{
    int64_t v = d.value;
    if (!d.sym)
        return v == fixed.value;
    x->symbolic |= sym_simplify(x->gm->g.syms, x->k->c, d).sym != 0;
    return sym_eval(x->gm->g.syms, d, x->values, &v) && v == fixed.value;
}

static bool same_meta(comparison *x, const tensor_meta *m, const tensor_meta *fixed)
{
    bool same = m->dtype == fixed->dtype && m->rank == fixed->rank, empty = false;
    for (uint32_t d = 0; same && d < m->rank; d++) {
        same = same_dim(x, m->sizes[d], fixed->sizes[d]);
        empty |= fixed->sizes[d].value == 0;
    }
    for (uint32_t d = 0; same && !empty && d < m->rank; d++)
        same = fixed->sizes[d].value == 1 || same_dim(x, m->strides[d], fixed->strides[d]);
    return same;
}

static bool same_node(comparison *x, const graph_node *n, const graph_node *fixed)
{
    bool same = n->nmetas == fixed->nmetas;
    for (uint32_t i = 0; same && i < n->nmetas; i++)
        same = same_meta(x, &n->metas[i], &fixed->metas[i]);
    if (same || !ctx_ok(x->k->c))
        return same;
    buf_printf(x->why, "symbolic: \"%s\" is ", n->name);
    sym_scope scope = sym_push(x->gm->g.syms, x->k->c);
    for (uint32_t i = 0; i < n->nmetas; i++)
        graph_print_type(&n->metas[i], x->why);
    sym_pop(scope);
    buf_puts(x->why, ", and with fixed sizes ");
    for (uint32_t i = 0; i < fixed->nmetas; i++)
        graph_print_type(&fixed->metas[i], x->why);
    return false;
}

static bool same_types(comparison *x)
{
    const graph *g = &x->gm->g, *f = &x->fixed->g;
    node_id a = g->first, b = f->first;
    for (; a && b; a = graph_get(g, a)->next, b = graph_get(f, b)->next)
        if (!same_node(x, graph_get(g, a), graph_get(f, b)))
            return false;
    return !a && !b;
}

static bool compare_types(comparison *x, const golden_call *call)
{
    bp_ctx *c = x->k->c;
    x->values = calloc(sym_symbol_count(x->gm->g.syms) + 1, sizeof *x->values);
    bool ok = x->values && graph_bind(c, x->gm, call->inputs, call->ninputs, x->values) == BP_OK && same_types(x);
    if (!x->values)
        ctx_nomem(c);
    free(x->values);
    return ok;
}

/* -- text and address ---------------------------------------------------------------------------------------------- */

static void tell_difference(str a, str b, buf *why)
{
    str x = str_split(&a, '\n'), y = str_split(&b, '\n');
    while (x.n && str_eq(x, y)) {
        x = str_split(&a, '\n');
        y = str_split(&b, '\n');
    }
    buf_printf(why, "symbolic: its text, read back, prints as another text: \"%.*s\" became \"%.*s\"", (int)x.n, x.s,
               (int)y.n, y.s);
}

static bool same_address(golden_case *k, const bp_graph_module *gm, buf *why)
{
    buf first = {0}, second = {0};
    hash128 a = {0}, b = {0};
    graph_print_text(gm, &first);
    bp_graph_module *read = graph_parse_text(k->c, "text", buf_text(&first), first.n);
    if (read)
        graph_print_text(read, &second);
    bool same = read && first.n == second.n && !memcmp(buf_text(&first), buf_text(&second), first.n);
    if (read && !same)
        tell_difference(str_of(buf_text(&first)), str_of(buf_text(&second)), why);
    if (same && graph_hash(k->c, gm, NULL, &a) == BP_OK && graph_hash(k->c, read, NULL, &b) == BP_OK &&
        memcmp(&a, &b, sizeof a)) {
        buf_puts(why, "symbolic: its text, read back, has another content address");
        same = false;
    }
    if (same && k->o->text)
        k->o->text(k->o->arg, buf_text(&first), first.n);
    if (same)
        graph_check_types(k->c, read);
    gm_unref(read);
    buf_fini(&first);
    buf_fini(&second);
    return same && ctx_ok(k->c);
}

bool golden_check_symbolic(golden_case *k, const golden_call *call, bp_graph_module *gm, bp_graph_module *fixed,
                           buf *why)
{
    bp_ctx *c = k->c;
    comparison x = {.k = k, .gm = gm, .fixed = fixed, .why = why};
    bp_status s = graph_propagate(c, fixed);
    if (s == BP_FAILED_PRECONDITION || s == BP_UNIMPLEMENTED) { /* a size depends on data */
        diag_clear(&c->diag);
        k->by_data = true;
        return true;
    }
    bool ok = s == BP_OK && make_symbolic(c, gm) == BP_OK;
    if (ok && gm->g.syms)
        ok = graph_propagate(c, gm) == BP_OK && compare_types(&x, call) && same_address(k, gm, why);
    k->symbolic = x.symbolic;
    if (!ctx_ok(c)) {
        buf_puts(why, "symbolic: ");
        golden_judge_error(k, why);
    }
    return ok;
}
