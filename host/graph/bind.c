/* Symbols in a run: read off the inputs, and behind the calls that make them.
 *
 * On real tensors each is a number. On fakes of the graph's own environment each is itself, and dims pass as they are;
 * on fakes of another one it is a dim of that one, in whose terms expressions are written anew. */
#include "host/graph/symbols.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_known(bp_dim d)
{
    return d.zero == 0;
}

static void set_symbol(binding *b, uint32_t k, bp_dim d)
{
    b->is[k] = d;
    b->values[k] = d.value;
    b->symbolic |= d.sym != 0;
}

/* -- reading a symbol ---------------------------------------------------------------------------------------------- */

/* A number that is an input. A fake has none: it stands for a symbol of an environment with these very symbols. */
static bp_status read_number(const binding *b, uint32_t k, const bp_tensor *t, bp_dim *out)
{
    const sym_symbol *s = sym_symbol_at(b->syms, k), *same;
    sym_env *now = sym_current();
    if (t->dtype != BP_I64 || t->rank)
        return ctx_fail(b->c, BP_INVALID_ARGUMENT, "the symbol \"%s\" is passed as an i64 tensor of no dimensions",
                        s->name);
    if (!tensor_is_fake(t)) {
        *out = dim_const(*(const int64_t *)tensor_ptr(t));
        return BP_OK;
    }
    same = now && k < sym_symbol_count(now) ? sym_symbol_at(now, k) : NULL;
    if (now && now != b->syms && !(same && !strcmp(same->name, s->name)))
        return ctx_fail(b->c, BP_UNIMPLEMENTED, "a fake input for the symbol \"%s\" of graph \"%s\" has no value",
                        s->name, b->gm->name);
    *out = sym_dim_of(now ? now : b->syms, k);
    return BP_OK;
}

static bp_status read_symbol(const binding *b, uint32_t k, const bp_tensor *t, bp_dim *out)
{
    const sym_symbol *s = sym_symbol_at(b->syms, k);
    sym_source from = s->source;
    if (!t || (from.kind != SYM_VALUE && from.dim >= t->rank))
        return ctx_fail(b->c, BP_INVALID_ARGUMENT,
                        "input \"%s\" of graph \"%s\" has %d dimensions, and the symbol \"%s\" is its %s %u",
                        graph_get(&b->gm->g, from.at)->name, b->gm->name, t ? t->rank : 0, s->name,
                        from.kind == SYM_STRIDE ? "stride" : "size", from.dim);
    if (from.kind == SYM_VALUE)
        return read_number(b, k, t, out);
    *out = from.kind == SYM_STRIDE ? t->strides[from.dim] : t->sizes[from.dim];
    return BP_OK;
}

/* -- facts --------------------------------------------------------------------------------------------------------- */

typedef struct { const binding *b; bool known; } mention;

static void note_known(void *arg, uint32_t k)
{
    mention *m = arg;
    m->known &= k < m->b->n && is_known(m->b->is[k]);
}

static bool all_known(const binding *b, bp_dim d)
{
    mention m = {b, true};
    sym_each_symbol(b->syms, d, note_known, &m);
    return m.known;
}

static bp_status fail_fact(const binding *b, const sym_fact *f)
{
    buf text = {0};
    sym_print(b->syms, f->holds, false, &text);
    if (f->origin == SYM_ASSERTED)
        ctx_fail(b->c, BP_OUT_OF_RANGE, "Runtime assertion failed for expression %s", buf_text(&text));
    else
        ctx_fail(b->c, BP_INVALID_ARGUMENT, "graph \"%s\" is for sizes with %s, which these inputs break", b->gm->name,
                 buf_text(&text));
    buf_fini(&text);
    if (f->file)
        diag_while(&b->c->diag, "an operator at %s:%d asked for it", f->file, f->line);
    return b->c->diag.code;
}

/* Asserted facts whose symbols are known now, and were not before; with all, the others too. */
static bp_status check_facts(binding *b, bool all)
{
    for (uint32_t i = 0; i < b->nfacts && !b->symbolic; i++) {
        const sym_fact *f = sym_fact_at(b->syms, i);
        int64_t holds = 0;
        if (b->checked[i] || (!all && f->origin != SYM_ASSERTED) || !all_known(b, f->holds))
            continue;
        b->checked[i] = true;
        if (!sym_eval(b->syms, f->holds, b->values, &holds) || !holds)
            return fail_fact(b, f);
    }
    return BP_OK;
}

static bp_status check_bounds(const binding *b, uint32_t k)
{
    const sym_symbol *s = sym_symbol_at(b->syms, k);
    if (b->is[k].sym || (b->values[k] >= s->min && b->values[k] <= s->max))
        return BP_OK;
    char least[32] = "-inf", most[32] = "inf";
    if (s->min != INT64_MIN)
        snprintf(least, sizeof least, "%" PRId64, s->min);
    if (s->max != INT64_MAX)
        snprintf(most, sizeof most, "%" PRId64, s->max);
    return ctx_fail(b->c, s->unbacked ? BP_OUT_OF_RANGE : BP_INVALID_ARGUMENT,
                    "the symbol \"%s\" of graph \"%s\" is %" PRId64 ", expected one in [%s, %s]", s->name,
                    b->gm->name, b->values[k], least, most);
}

/* -- at the start -------------------------------------------------------------------------------------------------- */

static bp_status bind_input(binding *b, node_id n, const bp_tensor *t)
{
    for (uint32_t k = 0; k < b->n; k++) {
        bp_dim d = {0};
        if (sym_symbol_at(b->syms, k)->source.at != n)
            continue;
        TRY(read_symbol(b, k, t, &d));
        set_symbol(b, k, d);
        TRY(check_bounds(b, k));
    }
    return BP_OK;
}

static bool mentions_symbols(const graph_node *n)
{
    return n->number.sym || (n->nmetas && !meta_is_constant(n->metas));
}

static bp_status bind_inputs(binding *b, bp_tensor *const *inputs, uint32_t ninputs)
{
    const graph *g = &b->gm->g;
    uint32_t i = 0;
    for (node_id n = g->first; n; n = graph_get(g, n)->next)
        if (graph_get(g, n)->op == BP_NODE_PLACEHOLDER && i++ < ninputs && mentions_symbols(graph_get(g, n)))
            TRY(bind_input(b, n, inputs[i - 1]));
    return BP_OK;
}

/* Symbols of the graph's own environment among fakes of it: each is itself, those too that calls will make. */
static void find_itself(binding *b)
{
    b->itself = b->symbolic && (!sym_current() || sym_current() == b->syms);
    for (uint32_t k = 0; k < b->n && b->itself; k++)
        b->itself = !is_known(b->is[k]) || dim_same(b->is[k], sym_dim_of(b->syms, k));
    for (uint32_t k = 0; k < b->n; k++) {
        node_id at = sym_symbol_at(b->syms, k)->source.at;
        if (!is_known(b->is[k]) && at < b->gm->g.nodes.len)
            b->makes[at] = true;
    }
}

static bp_status allocate(binding *b)
{
    b->n = sym_symbol_count(b->syms);
    b->nfacts = sym_fact_count(b->syms);
    b->is = calloc(b->n + 1, sizeof *b->is);
    b->values = calloc(b->n + 1, sizeof *b->values);
    b->makes = calloc(b->gm->g.nodes.len + 1, sizeof *b->makes);
    b->checked = calloc(b->nfacts + 1, sizeof *b->checked);
    if (!b->is || !b->values || !b->makes || !b->checked)
        return ctx_nomem(b->c);
    for (uint32_t k = 0; k < b->n; k++)
        b->is[k] = GRAPH_UNMAPPED;
    return BP_OK;
}

bp_status binding_init(binding *b, bp_ctx *c, const bp_graph_module *gm, bp_tensor *const *inputs, uint32_t ninputs)
{
    *b = (binding){.c = c, .gm = gm, .syms = gm->g.syms};
    if (!b->syms)
        return BP_OK;
    bp_status s = allocate(b);
    if (!s)
        s = bind_inputs(b, inputs, ninputs);
    if (!s) {
        find_itself(b);
        s = check_facts(b, false);
    }
    if (s)
        binding_fini(b);
    return s;
}

void binding_fini(binding *b)
{
    free(b->is);
    free(b->values);
    free(b->makes);
    free(b->checked);
    *b = (binding){0};
}

/* -- behind a node ------------------------------------------------------------------------------------------------- */

static bp_dim made_by(const binding *b, uint32_t k, bp_tensor *const *results, uint32_t nresults, const bp_dim *number)
{
    sym_source s = sym_symbol_at(b->syms, k)->source;
    if (s.kind == SYM_VALUE)
        return number ? *number : GRAPH_UNMAPPED;
    const bp_tensor *t = s.result < nresults ? results[s.result] : NULL;
    return t && s.dim < t->rank ? t->sizes[s.dim] : GRAPH_UNMAPPED;
}

bp_status binding_learn(binding *b, node_id n, bp_tensor *const *results, uint32_t nresults, const bp_dim *number)
{
    for (uint32_t k = 0; k < b->n; k++) {
        if (sym_symbol_at(b->syms, k)->source.at != n || is_known(b->is[k]))
            continue;
        bp_dim d = made_by(b, k, results, nresults, number);
        if (!is_known(d))
            return ctx_fail(b->c, BP_INVALID_ARGUMENT, "\"%s\" does not give the symbol \"%s\"",
                            graph_get(&b->gm->g, n)->name, sym_symbol_at(b->syms, k)->name);
        set_symbol(b, k, d);
        TRY(check_bounds(b, k));
    }
    return check_facts(b, false);
}

/* -- evaluation ---------------------------------------------------------------------------------------------------- */

static bp_dim fail_eval(const binding *b, bp_dim d, const char *why)
{
    buf text = {0};
    sym_print(b->syms, d, false, &text);
    if (ctx_ok(b->c))
        ctx_fail(b->c, BP_INVALID_ARGUMENT, "\"%s\" %s", buf_text(&text), why);
    buf_fini(&text);
    return dim_const(0);
}

bp_dim binding_eval(const binding *b, bp_dim d)
{
    int64_t v = 0;
    if (!d.sym || b->itself)
        return d;
    if (!b->syms)
        return ctx_fail(b->c, BP_INTERNAL, "graph \"%s\" holds a symbolic size, and has no symbols", b->gm->name),
               dim_const(0);
    if (!all_known(b, d))
        return fail_eval(b, d, "is a size that nothing tells here");
    if (b->symbolic)
        return sym_import(sym_current(), b->c, b->syms, d, b->is);
    return sym_eval(b->syms, d, b->values, &v) ? dim_const(v)
                                               : fail_eval(b, d, "overflows, or divides by zero, at these sizes");
}

static bp_status misfit(const binding *b, node_id n, const bp_tensor *t, uint32_t d, bp_dim expected)
{
    const graph_node *node = graph_get(&b->gm->g, n);
    buf rule = {0};
    if (node->metas->sizes[d].sym) {
        buf_puts(&rule, " (");
        sym_print(b->syms, node->metas->sizes[d], false, &rule);
        buf_putc(&rule, ')');
    }
    ctx_fail(b->c, BP_INVALID_ARGUMENT,
             "input \"%s\" of graph \"%s\": its size in dimension %u must be %" PRId64 "%s, got %" PRId64, node->name,
             b->gm->name, d, expected.value, buf_text(&rule), t->sizes[d].value);
    buf_fini(&rule);
    return b->c->diag.code;
}

/* Another input may be the source of a symbol that an input carries. */
static bp_status check_number(const binding *b, const graph_node *n, const bp_tensor *t)
{
    if (tensor_is_fake(t) || t->dtype != BP_I64 || t->rank)
        return BP_OK;
    bp_dim expected = binding_eval(b, n->number);
    if (!ctx_ok(b->c) || expected.sym || expected.value == *(const int64_t *)tensor_ptr(t))
        return b->c->diag.code;
    buf rule = {0};
    sym_print(b->syms, n->number, false, &rule);
    ctx_fail(b->c, BP_INVALID_ARGUMENT,
             "input \"%s\" of graph \"%s\" must be %" PRId64 " (%s), got %" PRId64, n->name, b->gm->name,
             expected.value, buf_text(&rule), *(const int64_t *)tensor_ptr(t));
    buf_fini(&rule);
    return b->c->diag.code;
}

bp_status binding_check_input(const binding *b, node_id n, const bp_tensor *t)
{
    const graph_node *node = graph_get(&b->gm->g, n);
    if (!t || !b->syms)
        return BP_OK;
    if (node->number.sym)
        return check_number(b, node, t);
    if (!node->nmetas || meta_is_constant(node->metas))
        return BP_OK;
    const tensor_meta *m = node->metas;
    if (t->rank != m->rank)
        return ctx_fail(b->c, BP_INVALID_ARGUMENT, "input \"%s\" of graph \"%s\" must have %u dimensions, got %d",
                        node->name, b->gm->name, m->rank, t->rank);
    for (uint32_t d = 0; d < m->rank; d++) {
        bp_dim expected = binding_eval(b, m->sizes[d]);
        TRY(b->c->diag.code);
        if (!dim_eq(t->sizes[d], expected))
            return ctx_ok(b->c) ? misfit(b, n, t, d, expected) : b->c->diag.code;
    }
    return BP_OK;
}

static bp_status bind_values(bp_ctx *c, const bp_graph_module *gm, bp_tensor *const *inputs, uint32_t ninputs,
                             int64_t *values, bool all_facts)
{
    binding b;
    uint32_t i = 0;
    TRY(binding_init(&b, c, gm, inputs, ninputs));
    bp_status s = BP_OK;
    for (node_id n = gm->g.first; n && !s; n = graph_get(&gm->g, n)->next)
        if (graph_get(&gm->g, n)->op == BP_NODE_PLACEHOLDER && i++ < ninputs)
            s = binding_check_input(&b, n, inputs[i - 1]);
    if (!s && all_facts)
        s = check_facts(&b, true);
    if (!s && b.n)
        memcpy(values, b.values, b.n * sizeof *values);
    binding_fini(&b);
    return s;
}

bp_status graph_bind(bp_ctx *c, const bp_graph_module *gm, bp_tensor *const *inputs, uint32_t ninputs,
                     int64_t *values)
{
    return bind_values(c, gm, inputs, ninputs, values, false);
}

bp_status graph_check_sizes(bp_ctx *c, const bp_graph_module *gm, bp_tensor *const *inputs, uint32_t ninputs,
                            int64_t *values)
{
    return bind_values(c, gm, inputs, ninputs, values, true);
}

/* -- types at values ----------------------------------------------------------------------------------------------- */

void graph_hints(const graph *g, int64_t *values)
{
    for (uint32_t k = 0; g->syms && k < sym_symbol_count(g->syms); k++)
        values[k] = sym_symbol_at(g->syms, k)->unbacked ? 0 : sym_symbol_at(g->syms, k)->hint;
}

static bool dims_at(const graph *g, const bp_dim *from, uint32_t n, const int64_t *values, bp_dim *out)
{
    for (uint32_t d = 0; d < n; d++) {
        out[d] = from[d];
        if (!from[d].sym)
            continue;
        out[d] = dim_const(0);
        if (!g->syms || !sym_eval(g->syms, from[d], values, &out[d].value) || out[d].value < 0)
            return false;
    }
    return true;
}

bp_status graph_meta_at(bp_ctx *c, const graph *g, const tensor_meta *m, const int64_t *values, bp_dim *dims,
                        tensor_meta *out)
{
    *out = *m;
    out->sizes = dims;
    out->strides = dims + m->rank;
    if (dims_at(g, m->sizes, m->rank, values, out->sizes) && dims_at(g, m->strides, m->rank, values, out->strides))
        return BP_OK;
    return ctx_fail(c, BP_INVALID_ARGUMENT, "a size overflows, or is negative, at these values of symbols");
}
