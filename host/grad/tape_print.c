/* The tape as text: the nodes behind a tensor, in the order of backward, a line each.
 *
 *     #7 sum -> #6
 *     #6 mul.Tensor -> #1, #3[0]; saves self f32[3] v0, other f32[3] v0; demo.c:12
 *     #1 leaf f32[3] */
#include "host/grad/tape_node.h"
#include "sdk/base/map.h"
#include <backplane/backplane.h>
#include <string.h>

typedef VEC(const tape_node *) node_list;

static bool meet(map *met, node_list *all, const tape_node *n)
{
    bool is_new;
    if (!n)
        return true;
    return map_put_u64(met, (uintptr_t)n, &is_new) && (!is_new || vec_push(all, n));
}

static bool meet_all(const tape_node *root, node_list *all)
{
    map met = {0};
    bool ok = meet(&met, all, root);
    for (uint32_t i = 0; ok && i < all->len; i++)
        for (uint32_t e = 0; ok && e < all->at[i]->ninputs; e++)
            ok = meet(&met, all, all->at[i]->edges[e].node);
    map_fini(&met);
    return ok;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = (*(const tape_node *const *)a)->seq, y = (*(const tape_node *const *)b)->seq;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void print_edges(const tape_node *n, buf *out)
{
    const char *before = " -> ";
    for (uint32_t i = 0; i < n->ninputs; i++) {
        tape_edge e = n->edges[i];
        if (!e.node)
            continue;
        buf_printf(out, "%s#%llu", before, (unsigned long long)e.node->seq);
        if (e.node->nresults > 1)
            buf_printf(out, "[%u]", e.index);
        before = ", ";
    }
}

static void print_saved(const saved *s, const char *name, const char **before, buf *out)
{
    char text[160];
    if (!s->t)
        return;
    buf_printf(out, "%s%s %s v%llu", *before, name, tensor_describe(s->t, text, sizeof text),
               (unsigned long long)s->version);
    *before = ", ";
}

static const char *input_name(const tape_node *n, uint32_t i)
{
    uint32_t arg = 0;
    (void)grad_input_at(n->u.call.args, n->op->schema->nargs, i, &arg);
    return n->op->schema->args[arg].name;
}

static void print_node(const tape_node *n, buf *out)
{
    char text[160];
    const tape_node *of = n->kind == NODE_SCATTER ? n->u.view.inner : n;
    const char *before = "; saves ";
    buf_printf(out, "#%llu %s", (unsigned long long)n->seq, n->kind == NODE_LEAF ? "leaf" : n->label);
    if (n->kind == NODE_LEAF)
        buf_printf(out, " %s", tensor_describe(n->u.leaf.leaf, text, sizeof text));
    if (n->kind == NODE_SCATTER)
        buf_puts(out, ", written to a view");
    print_edges(n, out);
    for (uint32_t i = 0; of->kind == NODE_OP && i < of->ninputs; i++)
        print_saved(&of->u.call.saved[i], input_name(of, i), &before, out);
    for (uint32_t i = 0; i < of->nresults; i++)
        print_saved(&of->results[i], "result", &before, out);
    if (n->freed && n->saves)
        buf_puts(out, "; freed");
    if (n->file)
        buf_printf(out, "; %s:%d", n->file, (int)n->line);
    buf_putc(out, '\n');
}

bp_status bp_print_tape(bp_ctx *c, bp_tensor *t, bp_write_fn write, void *arg)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (!t)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the tensor is NULL");
    tape_edge e = tape_edge_of(c, t);
    node_list all = {0};
    buf out = {0};
    if (!meet_all(e.node, &all))
        ctx_nomem(c);
    if (all.len)
        qsort(all.at, all.len, sizeof *all.at, by_number);
    for (uint32_t i = 0; ctx_ok(c) && i < all.len; i++) {
        buf_clear(&out);
        print_node(all.at[i], &out);
        write(arg, buf_text(&out), out.n);
    }
    buf_fini(&out);
    vec_fini(&all);
    tape_edge_drop(e);
    return c->diag.code;
}
