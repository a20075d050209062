/* torch.fx's print_readable: Python-like code with shapes, and each value dropped after its last use. For reading only.
 *
 * A placeholder "a" is the parameter L_a_, which is where torch.compile keeps a function's own names. */
#include "host/graph/print.h"
#include "host/graph/namer.h"
#include <string.h>

typedef struct {
    const graph *g;
    buf *out;
    VEC(node_id) last_use; /* of each node: who uses it last, 0: nobody */
    VEC(node_id) dying;    /* of the node being printed, in order of first mention */
    node_id at;
    const char *file;      /* of the last comment on a place */
    int32_t line;
    bool commented, started; /* a comment was printed; any line of the body was */
} reader;

static void note_use(void *arg, node_id n)
{
    reader *r = arg;
    if (!r->last_use.at[n])
        r->last_use.at[n] = r->at;
}

static bool find_last_uses(reader *r)
{
    if (!vec_reserve(&r->last_use, r->g->nodes.len))
        return false;
    memset(r->last_use.at, 0, r->g->nodes.len * sizeof(node_id));
    for (r->at = r->g->last; r->at; r->at = graph_get(r->g, r->at)->prev)
        graph_each_input(r->g, r->at, note_use, r);
    return true;
}

static void add_type(buf *out, const graph_node *n)
{
    if (n->number.sym) {
        buf_puts(out, ": \"Sym(");
        print_dim(out, n->number);
        buf_puts(out, ")\"");
        return;
    }
    if (n->nmetas != 1)
        return;
    const tensor_meta *m = n->metas;
    buf_printf(out, ": \"%s[", dtype_get(m->dtype)->brief);
    for (uint32_t i = 0; i < m->rank; i++) {
        buf_puts(out, i ? ", " : "");
        print_dim(out, m->sizes[i]);
    }
    buf_puts(out, "]\"");
}

static void add_parameter_name(buf *out, const graph_node *n)
{
    buf_puts(out, "L_");
    for (const char *s = n->target; *s; s++)
        buf_putc(out, namer_is_word(*s) ? *s : '_');
    buf_putc(out, '_');
}

static void add_head(reader *r, const char *name)
{
    buf_printf(r->out, "class %s(torch.nn.Module):\n    def forward(self", name);
    for (node_id i = r->g->first; i; i = graph_get(r->g, i)->next) {
        const graph_node *n = graph_get(r->g, i);
        if (n->op != BP_NODE_PLACEHOLDER)
            continue;
        buf_puts(r->out, ", ");
        add_parameter_name(r->out, n);
        add_type(r->out, n);
    }
    buf_puts(r->out, "):\n");
}

/* "# File: demo.c:12", where the place changes. */
static void add_place(reader *r, const graph_node *n)
{
    bool same = n->file ? r->file && !strcmp(n->file, r->file) && n->line == r->line : !r->file;
    if (r->commented && same)
        return;
    if (r->started)
        buf_putc(r->out, '\n');
    if (n->file)
        buf_printf(r->out, "        # File: %s:%d\n", n->file, n->line);
    else
        buf_puts(r->out, "        # No stacktrace found for following nodes\n");
    r->commented = true;
    r->file = n->file;
    r->line = n->line;
}

static void add_call_args(reader *r, const graph_node *n)
{
    for (uint32_t i = 0; i < n->nargs; i++) {
        buf_puts(r->out, i ? ", " : "");
        print_value(r->out, r->g, &n->args[i], PRINT_SOURCE);
    }
    for (uint32_t i = 0; i < n->nkwargs; i++) {
        buf_printf(r->out, "%s%s = ", i || n->nargs ? ", " : "", n->kwargs[i].name);
        print_value(r->out, r->g, &n->kwargs[i].value, PRINT_SOURCE);
    }
}

/* How torch.fx writes a function of two numbers; NULL: as a call. */
static const char *infix_of(str name)
{
    static const struct { const char *name, *sign; } signs[] = {
        {"add", "+"}, {"sub", "-"}, {"mul", "*"}, {"floordiv", "//"}, {"truediv", "/"}, {"mod", "%"}, {"pow", "**"},
        {"eq", "=="}, {"ne", "!="}, {"lt", "<"},  {"gt", ">"},        {"le", "<="},     {"ge", ">="}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (str_is(name, signs[i].name))
            return signs[i].sign;
    return NULL;
}

static void add_call(reader *r, const graph_node *n)
{
    str builtin;
    buf_printf(r->out, "        %s", n->name);
    add_type(r->out, n);
    buf_puts(r->out, " = ");
    if (!graph_is_builtin(n->target, &builtin)) {
        buf_printf(r->out, "torch.ops.%s(", n->target);
    } else if (str_is(builtin, "getitem") && n->nargs == 2) {
        print_value(r->out, r->g, &n->args[0], PRINT_SOURCE);
        buf_putc(r->out, '[');
        print_value(r->out, r->g, &n->args[1], PRINT_SOURCE);
        buf_putc(r->out, ']');
        return;
    } else if (infix_of(builtin) && n->nargs == 2 && !n->nkwargs) {
        print_value(r->out, r->g, &n->args[0], PRINT_SOURCE);
        buf_printf(r->out, " %s ", infix_of(builtin));
        print_value(r->out, r->g, &n->args[1], PRINT_SOURCE);
        return;
    } else {
        buf_printf(r->out, "%.*s(", (int)builtin.n, builtin.s);
    }
    add_call_args(r, n);
    buf_putc(r->out, ')');
}

static void note_dying(void *arg, node_id n)
{
    reader *r = arg;
    if (r->last_use.at[n] != r->at)
        return;
    r->last_use.at[n] = 0; /* mentioned twice, it still dies once */
    if (!vec_push(&r->dying, n))
        r->out->failed = true;
}

/* ";  a = b = None" */
static void add_deaths(reader *r, node_id id)
{
    r->at = id;
    vec_clear(&r->dying);
    graph_each_input(r->g, id, note_dying, r);
    if (!graph_get(r->g, id)->users.len && !vec_push(&r->dying, id))
        r->out->failed = true;
    for (uint32_t i = 0; i < r->dying.len; i++)
        buf_printf(r->out, "%s%s = ", i ? "" : ";  ", graph_get(r->g, r->dying.at[i])->name);
    buf_puts(r->out, r->dying.len ? "None\n" : "\n");
}

static void add_node(reader *r, node_id id)
{
    const graph_node *n = graph_get(r->g, id);
    if (n->op == BP_NODE_PLACEHOLDER) {
        buf_printf(r->out, "        %s = ", n->name);
        add_parameter_name(r->out, n);
        buf_putc(r->out, '\n');
    } else if (n->op == BP_NODE_OUTPUT) {
        buf_puts(r->out, "        return ");
        if (n->nargs == 1 && n->args[0].kind == BP_VALUE_LIST)
            print_tuple(r->out, r->g, n->args[0].v.items, n->args[0].count, PRINT_SOURCE);
        buf_putc(r->out, '\n');
    } else {
        add_place(r, n);
        if (n->op == BP_NODE_CALL_FUNCTION)
            add_call(r, n);
        else {
            buf_printf(r->out, "        %s", n->name);
            add_type(r->out, n);
            buf_printf(r->out, " = self.%s", n->target);
        }
        add_deaths(r, id);
    }
    r->started = true;
}

void graph_print_readable(const graph *g, const char *name, buf *out)
{
    reader r = {.g = g, .out = out};
    print_scope scope;
    print_begin(&scope, g);
    if (find_last_uses(&r)) {
        add_head(&r, name);
        for (node_id i = g->first; i; i = graph_get(g, i)->next)
            add_node(&r, i);
    } else {
        out->failed = true;
    }
    print_end(&scope);
    vec_fini(&r.last_use);
    vec_fini(&r.dying);
}

/* Text with every line that is not empty moved to the right. */
static void add_deeper(buf *out, const char *text, uint32_t depth)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        if (n)
            buf_pad(out, 4 * depth, ' ');
        buf_add(out, text, n);
        text += n;
        if (*text) {
            buf_putc(out, '\n');
            text++;
        }
    }
}

/* Graphs that it holds are classes inside its class, as torch.fx prints them. */
static void add_module(const bp_graph_module *gm, const char *name, uint32_t depth, buf *out)
{
    buf text = {0};
    graph_print_readable(&gm->g, name, &text);
    add_deeper(out, buf_text(&text), depth);
    out->failed |= text.failed;
    buf_fini(&text);
    for (node_id n = gm->subs.len ? gm->g.first : 0; n; n = graph_get(&gm->g, n)->next) {
        const graph_node *node = graph_get(&gm->g, n);
        const bp_graph_module *sub = node->op == BP_NODE_GET_ATTR ? gm_sub(gm, node->name) : NULL;
        if (!sub)
            continue;
        buf_putc(out, '\n');
        add_module(sub, node->name, depth + 1, out);
    }
}

void gm_print_readable(const bp_graph_module *gm, const char *name, buf *out)
{
    add_module(gm, name, 0, out);
}
