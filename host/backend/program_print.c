/* What a program shows of itself: which backend answers for which node, and why it is that one. */
#include "host/backend/plan.h"
#include <string.h>

static program *rest_of(const group *g)
{
    return atomic_load_explicit(&g->rest, memory_order_acquire);
}

/* -- assignment ---------------------------------------------------------------------------------------------------- */

static void print_program(const program *p, const char *because, buf *out);

static void join(buf *out, const char *text)
{
    if (text && *text)
        buf_printf(out, "%s%s", out->n ? "; " : "", text);
}

/* Why it is this link: what each link before it said, of this node or of any. */
static void print_node(const program *p, const group *g, node_id n, const char *because, buf *out)
{
    const graph_node *node = graph_get(&p->gm->g, n);
    const chain_link *l = &p->chain->links[g->link];
    buf why = {0};
    join(&why, because);
    join(&why, p->passed);
    join(&why, p->why[n]);
    if (!why.n)
        buf_puts(&why, l->b->info.supports ? "supported" : "takes whole graphs");
    buf_printf(out, "%s (%s) -> %s -> %s\n", node->name, node->target, l->name, buf_text(&why));
    buf_fini(&why);
}

static void print_own(const program *p, const group *g, const char *because, buf *out)
{
    if (g->compiled->program) {
        print_program(g->compiled->program, because, out);
        return;
    }
    if (!p->is_whole) {
        for (uint32_t i = 0; i < g->nodes.len; i++)
            print_node(p, g, g->nodes.at[i], because, out);
        return;
    }
    for (node_id n = p->gm->g.first; n; n = graph_get(&p->gm->g, n)->next)
        if (graph_get(&p->gm->g, n)->op == BP_NODE_CALL_FUNCTION)
            print_node(p, g, n, because, out);
}

static void print_group(const program *p, group *g, const char *because, buf *out)
{
    program *rest = rest_of(g);
    if (group_answers(g) || !rest) {
        if (g->compiled)
            print_own(p, g, because, out);
        return;
    }
    buf why = {0};
    join(&why, because);
    join(&why, p->passed);
    join(&why, p->chain->links[g->link].name);
    pthread_mutex_lock(&g->lock);
    buf_printf(&why, ": %s", g->why ? g->why : "a run of it failed before");
    pthread_mutex_unlock(&g->lock);
    print_program(rest, buf_text(&why), out);
    buf_fini(&why);
}

/* A graph with symbols: each variant, behind a line that says which sizes it serves. */
static void print_variants(const program *p, const char *because, buf *out)
{
    for (uint32_t i = 0; i < variants_count(p->variants); i++) {
        buf conditions = {0};
        variants_print_conditions(p->variants, i, &conditions);
        buf_printf(out, "%s: %s\n", p->gm->name, conditions.n ? buf_text(&conditions) : "any size");
        print_program(variants_at(p->variants, i), because, out);
        buf_fini(&conditions);
    }
}

static void print_program(const program *p, const char *because, buf *out)
{
    if (p->variants) {
        print_variants(p, because, out);
        return;
    }
    for (uint32_t i = 0; i < p->ngroups; i++)
        print_group(p, &p->groups[i], because, out);
}

void program_print_assignment(const program *p, buf *out)
{
    print_program(p, NULL, out);
}

void program_print_variants(const program *p, buf *out)
{
    for (uint32_t i = 0; p->variants && i < variants_count(p->variants); i++) {
        buf conditions = {0};
        variants_print_conditions(p->variants, i, &conditions);
        buf_printf(out, "compiled for %s\n", conditions.n ? buf_text(&conditions) : "any size");
        buf_fini(&conditions);
    }
}

/* -- who and how often --------------------------------------------------------------------------------------------- */

typedef struct { const char *at[64]; uint32_t n; } names;

static void add_name(names *list, const char *name)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (strcmp(list->at[i], name) == 0)
            return;
    if (list->n < 64)
        list->at[list->n++] = name;
}

static void collect(const program *p, names *list)
{
    for (uint32_t i = 0; p->variants && i < variants_count(p->variants); i++)
        collect(variants_at(p->variants, i), list);
    for (uint32_t i = 0; i < p->ngroups; i++) {
        const group *g = &p->groups[i];
        const program *rest = rest_of(g);
        if (!group_answers(g) && rest)
            collect(rest, list);
        else if (g->compiled && g->compiled->program)
            collect(g->compiled->program, list);
        else
            add_name(list, p->chain->links[g->link].name);
    }
}

void program_print_backends(const program *p, buf *out)
{
    names list = {.n = 0};
    collect(p, &list);
    for (uint32_t i = 0; i < list.n; i++)
        buf_printf(out, "%s%s", i ? ", " : "", list.at[i]);
}

uint32_t program_fallbacks(const program *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; p->variants && i < variants_count(p->variants); i++)
        n += program_fallbacks(variants_at(p->variants, i));
    for (uint32_t i = 0; i < p->ngroups; i++) {
        const group *g = &p->groups[i];
        bool fell = !group_answers(g);
        n += fell;
        if (!fell && g->compiled->program)
            n += program_fallbacks(g->compiled->program);
    }
    return n;
}
