/* Where a new segment's values come from (C3.2).
 *
 * A value of an earlier segment is handed on if that segment's list has it. If not, and the segment is new itself, its
 * list simply gets it. If the segment is an old one, the value is recomputed where that is cheap, pure, and cannot
 * contradict what the function was told; else the old segment's list grows, and it is compiled again. */
#include "host/base/log.h"
#include "host/compile/callable.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    call *k;
    tree_node *n;        /* the node that is supplied */
    uint32_t nold;       /* values of old segments: refs 1 .. nold - 1 */
    uint8_t *asked;      /* by ref: part of a value that the function was told */
    uint8_t *cheap;      /* by ref: may be recomputed */
    uint8_t *extra;      /* by ref: n recomputes it */
    VEC(ref) todo;
    bool failed;
} supply;

/* -- what may be recomputed ---------------------------------------------------------------------------------------- */

static bool handed(const tree_node *maker, ref r)
{
    uint32_t at = node_position(maker, r);
    return at != UINT32_MAX && segment_list_has(maker->list, at);
}

static void mark_asked(void *arg, ref r)
{
    supply *s = arg;
    if (ref_is_node(r))
        s->asked[r] = 1;
}

/* Backwards along the old path: what breaks were told, and what that was made of. */
static void find_asked(supply *s, const tree_node *last)
{
    for (const tree_node *n = last; n; n = n->parent) {
        if (n->term->kind == ITEM_BREAK)
            item_each_ref(n->term, mark_asked, s);
        for (uint32_t i = n->nitems; i-- > 0;) {
            const item *it = &n->items[i];
            bool told = false;
            for (uint32_t j = 0; j < it->node.nresults; j++)
                told |= s->asked[it->node.first + j];
            if (told)
                item_each_ref(it, mark_asked, s);
        }
    }
}

typedef struct { const supply *s; const tree_node *last; bool all; } have_all;

static void check_have(void *arg, ref r)
{
    have_all *h = arg;
    if (ref_is_node(r) && !h->s->cheap[r])
        h->all = false;
}

static bool recomputable(supply *s, const item *it, const tree_node *last)
{
    uint32_t never = OP_RANDOM | OP_EFFECT | OP_MAY_FAIL_ON_DATA | OP_DYNAMIC_OUT;
    have_all h = {s, last, true};
    if (!(it->node.op->flags & OP_CHEAP) || it->node.op->flags & never)
        return false;
    for (uint32_t j = 0; j < it->node.nresults; j++)
        if (s->asked[it->node.first + j])
            return false;
    item_each_ref(it, check_have, &h);
    return h.all;
}

/* Forwards along the old path; what is handed on counts as cheap. */
static void find_cheap(supply *s, const tree_node *n)
{
    if (!n)
        return;
    const tree_node *path[BREAK_LIMIT + 2];
    uint32_t len = 0;
    for (const tree_node *p = n; p && len < BREAK_LIMIT + 2; p = p->parent)
        path[len++] = p;
    while (len-- > 0) {
        for (uint32_t i = 0; i < path[len]->nitems; i++) {
            const item *it = &path[len]->items[i];
            bool again = recomputable(s, it, n);
            for (uint32_t j = 0; j < it->node.nresults; j++)
                s->cheap[it->node.first + j] = again || handed(path[len], it->node.first + j);
        }
    }
}

/* -- needs --------------------------------------------------------------------------------------------------------- */

static void want(void *arg, ref r)
{
    supply *s = arg;
    if (ref_is_node(r) && !vec_push(&s->todo, r))
        s->failed = true;
}

static void grow(supply *s, tree_node *maker)
{
    segment_list *l = maker->list;
    code_count(s->k->st, growths, 1);
    log_line(s->k->c->rt, LOG_recompiles, "a segment of \"%s\" is compiled again: handed-on list grew",
             s->k->g->code->is.name);
    if (++l->growths <= GROWTH_LIMIT)
        return;
    for (ref r = maker->first_value; r < maker->end_value; r++)
        if (!(path_item_of(maker, r)->node.op->flags & OP_ITEM)) /* a number does not cross a break */
            s->failed |= !segment_list_add(l, node_position(maker, r));
}

static void need(supply *s, ref r)
{
    tree_node *maker = node_of_value(s->n, r);
    if (!maker || maker == s->n || handed(maker, r) || (r < s->nold && s->extra[r]))
        return;
    if (r < s->nold && s->cheap[r]) {
        const item *it = path_item_of(maker, r);
        for (uint32_t j = 0; j < it->node.nresults; j++)
            s->extra[it->node.first + j] = 1;
        item_each_ref(it, want, s);
        return;
    }
    s->failed |= !segment_list_add(maker->list, node_position(maker, r));
    if (r < s->nold)
        grow(s, maker);
}

static bool take_extras(supply *s)
{
    tree_node *n = s->n;
    uint32_t count = 0;
    for (ref r = 1; r < s->nold; r++)
        count += s->extra[r];
    n->extras = arena_array(&n->arena, count, sizeof *n->extras);
    for (ref r = 1; n->extras && r < s->nold;) {
        const item *it = s->extra[r] ? path_item_of(n->parent, r) : NULL;
        if (it) {
            n->extras[n->nextras++] = it;
            n->nextra_values += it->node.nresults;
        }
        r += it ? it->node.nresults : 1;
    }
    return n->extras != NULL;
}

/* -- the canonical graph ------------------------------------------------------------------------------------------- */

/* known: by slot, which of the inputs a value is, from 1 on. */
typedef struct { const tree_node *n; VEC(ref) inputs; uint32_t *known; bool failed; } naming;

static void name_ref(void *arg, ref r, buf *out)
{
    naming *m = arg;
    uint32_t at = ref_is_node(r) ? node_position(m->n, r) : UINT32_MAX;
    if (at != UINT32_MAX) {
        buf_printf(out, "t%u", at);
        return;
    }
    uint32_t *known = &m->known[node_slot(m->n, r)];
    if (!*known) {
        m->failed |= !vec_push(&m->inputs, r);
        *known = m->inputs.len;
    }
    buf_printf(out, "i%u", *known - 1);
}

/* Where a random node's numbers start, from the segment's start. */
static void print_place(bp_dim at, bp_dim start, buf *out)
{
    if (at.sym || start.sym)
        buf_printf(out, " at $%u - $%u", at.sym, start.sym);
    else
        buf_printf(out, " at %lld", (long long)(at.value - start.value));
}

static void print_item(naming *m, const item *it, buf *out)
{
    buf_printf(out, "%u", it->node.op->number);
    for (uint32_t i = 0; i < it->node.nargs; i++) {
        buf_putc(out, ' ');
        value_print(&it->node.args[i], name_ref, m, out);
    }
    if (it->node.op->flags & OP_RANDOM)
        print_place(it->node.rng_offset, m->n->rng_start, out);
    buf_putc(out, '\n');
}

static void print_input(call *k, tree_node *n, ref r, buf *out)
{
    tensor_meta m = {0};
    const item *it = ref_is_node(r) ? path_item_of(n, r) : NULL;
    bp_tensor *t = it ? NULL : bind_get(&k->vals, r);
    if (it)
        m = it->node.metas[r - it->node.first];
    else if (ref_kind(r) == REF_INPUT && node_meta_of(n, ref_index(r)))
        m = *node_meta_of(n, ref_index(r));
    else if (t)
        tensor_get_meta(t, &m);
    meta_print(&m, out);
    buf_putc(out, '\n');
}

static bp_status find_list(supply *s)
{
    tree_node *n = s->n;
    naming m = {.n = n, .known = calloc(node_slots(n) + 1u, sizeof *m.known)};
    buf text = {0};
    if (!m.known)
        return ctx_nomem(s->k->c);
    for (uint32_t i = 0; i < n->nextras; i++)
        print_item(&m, n->extras[i], &text);
    for (uint32_t i = 0; i < n->nitems; i++)
        print_item(&m, &n->items[i], &text);
    for (uint32_t i = 0; i < m.inputs.len; i++)
        print_input(s->k, n, m.inputs.at[i], &text);
    buf_add(&text, (const char *)&n->ambient, sizeof n->ambient);
    if (!text.failed && !m.failed)
        n->list = segment_list_of(&s->k->st->store, hash128_bytes(text.s, text.n));
    vec_fini(&m.inputs);
    free(m.known);
    buf_fini(&text);
    return n->list ? BP_OK : ctx_nomem(s->k->c);
}

/* What the end of the segment itself asks of it, in the order in which it is returned. */
static void list_term(void *arg, ref r)
{
    supply *s = arg;
    uint32_t at = ref_is_node(r) ? node_position(s->n, r) : UINT32_MAX;
    if (at != UINT32_MAX)
        s->failed |= !segment_list_add(s->n->list, at);
}

static bp_status supply_node(supply *s)
{
    tree_node *n = s->n;
    memset(s->extra, 0, s->nold);
    for (uint32_t i = 0; i < n->nitems; i++)
        item_each_ref(&n->items[i], want, s);
    item_each_ref(n->term, want, s);
    while (s->todo.len && !s->failed)
        need(s, vec_pop(&s->todo));
    if (s->failed || !take_extras(s))
        return ctx_nomem(s->k->c);
    TRY(find_list(s));
    item_each_ref(n->term, list_term, s);
    return s->failed ? ctx_nomem(s->k->c) : BP_OK;
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Lists that nothing was compiled for yet hand on in the order of recording; an end keeps the order of its results. */
static void sort_lists(call *k)
{
    for (uint32_t i = 0; i < k->fresh.len; i++) {
        tree_node *n = k->fresh.at[i];
        if (n->term && n->term->kind == ITEM_BREAK && !n->list->built && n->list->at.len)
            qsort(n->list->at.at, n->list->at.len, sizeof *n->list->at.at, ascending);
    }
}

bp_status call_supply(call *k, tree_node *parent)
{
    supply s = {.k = k, .nold = parent ? parent->end_value : 1};
    bp_status st = BP_OK;
    s.asked = calloc(3, s.nold);
    if (!s.asked)
        return ctx_nomem(k->c);
    s.cheap = s.asked + s.nold;
    s.extra = s.cheap + s.nold;
    find_asked(&s, parent);
    find_cheap(&s, parent);
    for (uint32_t i = 0; i < k->fresh.len && st == BP_OK; i++) {
        s.n = k->fresh.at[i];
        if (s.n->term)
            st = supply_node(&s);
    }
    if (st == BP_OK)
        sort_lists(k);
    vec_fini(&s.todo);
    free(s.asked);
    return st;
}
