/* The canonical text of a graph module: docs/ir.md. parse.c reads it back. */
#include "host/graph/text.h"
#include "host/graph/namer.h"
#include "host/graph/print.h"
#include "sdk/base/base64.h"
#include <string.h>

typedef struct { const bp_graph_module *gm; buf *out; uint32_t depth; } writer; /* depth: of graphs around it */

const char *text_role(int32_t role)
{
    switch (role) {
    case BP_ROLE_PARAMETER: return "parameter";
    case BP_ROLE_BUFFER: return "buffer";
    case BP_ROLE_CONSTANT: return "constant";
    case BP_ROLE_SYMINT: return "symint";
    default: return "user";
    }
}

bool text_is_plain_name(const char *name)
{
    if (!namer_is_identifier((const char[]){*name, 0}))
        return false;
    while (namer_is_word(*name) || *name == '.' || *name == '-')
        name++;
    return *name == 0;
}

void text_quote(buf *out, const char *s)
{
    buf_putc(out, '"');
    for (; *s; s++) {
        unsigned char ch = (unsigned char)*s;
        if (ch == '"' || ch == '\\')
            buf_printf(out, "\\%c", *s);
        else if (ch == '\n' || ch == '\t' || ch == '\r')
            buf_printf(out, "\\%c", ch == '\n' ? 'n' : ch == '\t' ? 't' : 'r');
        else if (ch < 0x20 || ch == 0x7f)
            buf_printf(out, "\\x%02x", ch);
        else
            buf_putc(out, *s);
    }
    buf_putc(out, '"');
}

/* -- types --------------------------------------------------------------------------------------------------------- */

bool text_strides(bp_ctx *c, uint32_t rank, const bp_dim *sizes, bp_dim *strides)
{
    bp_dim expected = dim_const(1);
    for (uint32_t d = rank; d-- > 0;) {
        strides[d] = expected;
        if (sizes[d].sym || sizes[d].value > 1)
            expected = dim_mul(c, expected, sizes[d]);
    }
    return ctx_ok(c);
}

static bool needs_no_strides(const tensor_meta *m, buf *out)
{
    bp_dim expected[TENSOR_MAX_RANK];
    bp_ctx quiet = {0};
    bool same = text_strides(&quiet, m->rank, m->sizes, expected);
    out->failed |= quiet.diag.code == BP_RESOURCE_EXHAUSTED;
    for (uint32_t d = 0; same && d < m->rank; d++)
        same = dim_same(m->strides[d], expected[d]);
    return same;
}

static void add_dims(buf *out, const bp_dim *d, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        buf_puts(out, i ? ", " : "");
        print_dim(out, d[i]);
    }
}

void graph_print_type(const tensor_meta *m, buf *out)
{
    buf_printf(out, "%s[", dtype_get(m->dtype)->brief);
    add_dims(out, m->sizes, m->rank);
    if (!needs_no_strides(m, out)) {
        buf_puts(out, "; ");
        add_dims(out, m->strides, m->rank);
    }
    buf_putc(out, ']');
    if (m->device.kind != BP_CPU)
        buf_printf(out, " @%s:%d", print_device_kind(m->device.kind), m->device.index);
}

static void add_types(buf *out, const graph_node *n)
{
    if (n->number.sym) {
        buf_puts(out, ": Sym(");
        print_dim(out, n->number);
        buf_putc(out, ')');
        return;
    }
    if (!n->metas)
        return;
    bool list = n->nmetas != 1;
    buf_puts(out, list ? ": (" : ": ");
    for (uint32_t i = 0; i < n->nmetas; i++) {
        buf_puts(out, i ? ", " : "");
        graph_print_type(&n->metas[i], out);
    }
    buf_puts(out, list ? ")" : "");
}

/* -- values -------------------------------------------------------------------------------------------------------- */

static void add_value(const writer *w, const bp_value *v);

static void add_device(buf *out, bp_device d)
{
    buf_printf(out, "device(%s", print_device_kind(d.kind));
    if (d.kind != BP_CPU)
        buf_printf(out, ":%d", d.index);
    buf_putc(out, ')');
}

static void add_list(const writer *w, const bp_value *v)
{
    buf_putc(w->out, '[');
    for (uint32_t i = 0; i < v->count; i++) {
        buf_puts(w->out, i ? ", " : "");
        add_value(w, &v->v.items[i]);
    }
    buf_putc(w->out, ']');
}

static void add_value(const writer *w, const bp_value *v)
{
    buf *out = w->out;
    switch (v->kind) {
    case BP_VALUE_NODE: buf_printf(out, "%%%s", graph_get(&w->gm->g, v->v.node)->name); return;
    case BP_VALUE_BOOL: buf_puts(out, v->v.i ? "True" : "False"); return;
    case BP_VALUE_INT: print_dim(out, v->v.dim); return;
    case BP_VALUE_FLOAT: buf_double(out, v->v.f[0]); return;
    case BP_VALUE_COMPLEX:
        buf_puts(out, "complex(");
        buf_double(out, v->v.f[0]);
        buf_puts(out, ", ");
        buf_double(out, v->v.f[1]);
        buf_putc(out, ')');
        return;
    case BP_VALUE_STRING: text_quote(out, v->v.str); return;
    case BP_VALUE_DTYPE: buf_printf(out, "dtype(%s)", dtype_get((bp_dtype)v->v.i)->brief); return;
    case BP_VALUE_LAYOUT: buf_puts(out, "layout(strided)"); return;
    case BP_VALUE_DEVICE: add_device(out, v->v.device); return;
    case BP_VALUE_MEMORY_FORMAT:
        buf_printf(out, "format(%s)", print_memory_format((int32_t)v->v.i, true));
        return;
    case BP_VALUE_LIST: add_list(w, v); return;
    default: buf_puts(out, "None"); return;
    }
}

/* -- nodes --------------------------------------------------------------------------------------------------------- */

static void add_arguments(const writer *w, const graph_node *n)
{
    buf_putc(w->out, '(');
    for (uint32_t i = 0; i < n->nargs; i++) {
        buf_puts(w->out, i ? ", " : "");
        add_value(w, &n->args[i]);
    }
    for (uint32_t i = 0; i < n->nkwargs; i++) {
        buf_printf(w->out, "%s%s=", i || n->nargs ? ", " : "", n->kwargs[i].name);
        add_value(w, &n->kwargs[i].value);
    }
    buf_putc(w->out, ')');
}

static void add_data(const writer *w, const graph_node *n)
{
    const bp_tensor *t = gm_constant(w->gm, n->name);
    if (gm_sub(w->gm, n->name))
        buf_puts(w->out, " graph");
    if (!t || tensor_is_fake(t))
        return;
    buf_puts(w->out, " data \"");
    base64_encode(w->out, tensor_ptr(t), tensor_span_bytes(t));
    buf_putc(w->out, '"');
}

static void add_output(const writer *w, const graph_node *n)
{
    buf_puts(w->out, "output(");
    for (uint32_t i = 0; n->nargs && i < n->args[0].count; i++) {
        buf_puts(w->out, i ? ", " : "");
        add_value(w, &n->args[0].v.items[i]);
    }
    buf_puts(w->out, ")\n");
}

static void add_node(const writer *w, const graph_node *n)
{
    buf_pad(w->out, 2 * (w->depth + 1), ' ');
    if (n->op == BP_NODE_OUTPUT) {
        add_output(w, n);
        return;
    }
    buf_printf(w->out, "%%%s", n->name);
    add_types(w->out, n);
    buf_puts(w->out, " = ");
    if (n->op == BP_NODE_CALL_FUNCTION) {
        buf_puts(w->out, n->target);
        add_arguments(w, n);
    } else {
        buf_printf(w->out, "%s ", print_opcode(n->op));
        text_quote(w->out, n->target);
        if (n->op == BP_NODE_PLACEHOLDER)
            buf_printf(w->out, " %s", text_role(n->role));
        else
            add_data(w, n);
    }
    buf_putc(w->out, '\n');
}

/* -- symbols ------------------------------------------------------------------------------------------------------- */

const char *const text_origins[3] = {"given", "fact", "assert"};

static void add_bound(buf *out, int64_t v)
{
    if (v == INT64_MIN || v == INT64_MAX)
        buf_puts(out, v < 0 ? "-inf" : "inf");
    else
        buf_printf(out, "%lld", (long long)v);
}

static void add_symbols(const writer *w)
{
    const sym_env *e = w->gm->g.syms;
    buf *out = w->out;
    for (uint32_t k = 0; e && k < sym_symbol_count(e); k++) {
        const sym_symbol *s = sym_symbol_at(e, k);
        buf_pad(out, 2 * w->depth, ' ');
        buf_printf(out, "  symbol %s in [", s->name);
        add_bound(out, s->min);
        buf_puts(out, ", ");
        add_bound(out, s->max);
        if (s->unbacked)
            buf_puts(out, "] unbacked\n");
        else
            buf_printf(out, "] hint %lld\n", (long long)s->hint);
    }
    for (uint32_t i = 0; e && i < sym_fact_count(e); i++) {
        const sym_fact *f = sym_fact_at(e, i);
        buf_pad(out, 2 * w->depth, ' ');
        buf_printf(out, "  %s ", text_origins[f->origin]);
        print_dim(out, f->holds);
        buf_putc(out, '\n');
    }
}

static void add_graph(const bp_graph_module *gm, const char *name, uint32_t depth, buf *out)
{
    writer w = {gm, out, depth};
    print_scope scope;
    print_begin(&scope, &gm->g);
    buf_pad(out, 2 * depth, ' ');
    buf_puts(out, "graph ");
    if (text_is_plain_name(name))
        buf_puts(out, name);
    else
        text_quote(out, name);
    buf_puts(out, " {\n");
    add_symbols(&w);
    for (node_id n = gm->g.first; n; n = graph_get(&gm->g, n)->next)
        add_node(&w, graph_get(&gm->g, n));
    for (node_id n = gm->subs.len ? gm->g.first : 0; n; n = graph_get(&gm->g, n)->next) {
        const graph_node *node = graph_get(&gm->g, n);
        const bp_graph_module *sub = node->op == BP_NODE_GET_ATTR ? gm_sub(gm, node->name) : NULL;
        if (sub)
            add_graph(sub, node->name, depth + 1, out);
    }
    buf_pad(out, 2 * depth, ' ');
    buf_puts(out, "}\n");
    print_end(&scope);
}

void graph_print_text(const bp_graph_module *gm, buf *out)
{
    add_graph(gm, gm->name, 0, out);
}
