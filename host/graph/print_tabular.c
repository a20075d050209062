/* torch.fx's print_tabular: Python tabulate's "simple" format.
 *
 * A column is as wide as its longest cell, and at least two wider than its title; columns stand two blanks apart; lines
 * have no trailing blanks. Widths count characters, not bytes. */
#include "host/graph/print.h"

enum { COLUMNS = 5, TITLE_PADDING = 2 };
static const char *const titles[COLUMNS] = {"opcode", "name", "target", "args", "kwargs"};

/* Where each cell ends in the text of all cells, row by row. */
typedef struct {
    buf text;
    VEC(size_t) ends;
    size_t width[COLUMNS];
    bool failed;
} table;

static size_t count_chars(str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.s[i] & 0xC0) != 0x80; /* not a continuation byte of UTF-8 */
    return n;
}

static str cell_at(const table *t, uint32_t i)
{
    size_t begin = i ? t->ends.at[i - 1] : 0;
    return (str){buf_text(&t->text) + begin, t->ends.at[i] - begin};
}

/* Ends the cell whose text was just added. */
static void end_cell(table *t, uint32_t column)
{
    if (!vec_push(&t->ends, t->text.n)) {
        t->failed = true;
        return;
    }
    size_t n = count_chars(cell_at(t, t->ends.len - 1));
    if (n > t->width[column])
        t->width[column] = n;
}

static void add_kwargs(buf *out, const graph *g, const graph_node *n)
{
    buf_putc(out, '{');
    for (uint32_t i = 0; i < n->nkwargs; i++) {
        buf_puts(out, i ? ", " : "");
        buf_quote(out, n->kwargs[i].name);
        buf_puts(out, ": ");
        print_value(out, g, &n->kwargs[i].value, PRINT_REPR);
    }
    buf_putc(out, '}');
}

static void add_args(buf *out, const graph *g, const graph_node *n)
{
    if (n->op == BP_NODE_OUTPUT && n->nargs == 1 && n->args[0].kind == BP_VALUE_LIST) {
        buf_putc(out, '('); /* the values returned are a tuple in the tuple of arguments */
        print_tuple(out, g, n->args[0].v.items, n->args[0].count, PRINT_REPR);
        buf_puts(out, ",)");
        return;
    }
    print_tuple(out, g, n->args, n->nargs, PRINT_REPR);
}

static void add_row(table *t, const graph *g, const graph_node *n)
{
    buf_puts(&t->text, print_opcode(n->op));
    end_cell(t, 0);
    buf_puts(&t->text, n->name);
    end_cell(t, 1);
    buf_puts(&t->text, n->target);
    end_cell(t, 2);
    add_args(&t->text, g, n);
    end_cell(t, 3);
    add_kwargs(&t->text, g, n);
    end_cell(t, 4);
}

static void print_row(const table *t, const str *cells, buf *out)
{
    size_t pad = 0;
    for (uint32_t i = 0; i < COLUMNS; i++) {
        if (cells[i].n) {
            buf_pad(out, pad, ' ');
            buf_add(out, cells[i].s, cells[i].n);
            pad = 0;
        }
        pad += t->width[i] - count_chars(cells[i]) + 2;
    }
    buf_putc(out, '\n');
}

static void print_head(const table *t, buf *out)
{
    str cells[COLUMNS];
    for (uint32_t i = 0; i < COLUMNS; i++)
        cells[i] = str_of(titles[i]);
    print_row(t, cells, out);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        buf_puts(out, i ? "  " : "");
        buf_pad(out, t->width[i], '-');
    }
    buf_putc(out, '\n');
}

void graph_print_tabular(const graph *g, buf *out)
{
    table t = {0};
    print_scope scope;
    str cells[COLUMNS];
    for (uint32_t i = 0; i < COLUMNS; i++)
        t.width[i] = str_of(titles[i]).n + TITLE_PADDING;
    print_begin(&scope, g);
    for (node_id n = g->first; n; n = graph_get(g, n)->next)
        add_row(&t, g, graph_get(g, n));
    print_end(&scope);
    if (t.failed || t.text.failed) {
        out->failed = true;
    } else {
        print_head(&t, out);
        for (uint32_t i = 0; i < t.ends.len; i += COLUMNS) {
            for (uint32_t k = 0; k < COLUMNS; k++)
                cells[k] = cell_at(&t, i + k);
            print_row(&t, cells, out);
        }
    }
    buf_fini(&t.text);
    vec_fini(&t.ends);
}

void gm_print_tabular(const bp_graph_module *gm, buf *out)
{
    graph_print_tabular(&gm->g, out);
    for (node_id n = gm->subs.len ? gm->g.first : 0; n; n = graph_get(&gm->g, n)->next) {
        const graph_node *node = graph_get(&gm->g, n);
        const bp_graph_module *sub = node->op == BP_NODE_GET_ATTR ? gm_sub(gm, node->name) : NULL;
        if (!sub)
            continue;
        buf_printf(out, "\n%s:\n", node->name);
        gm_print_tabular(sub, out);
    }
}
