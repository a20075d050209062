/* Tree nodes and their places. Lists are copied to be changed; the old ones are retired. */
#include "host/cache/tree.h"
#include <backplane/backplane.h>
#include <stdlib.h>
#include <string.h>

tree_node *node_new(void)
{
    return calloc(1, sizeof(tree_node));
}

void node_destroy(tree_node *n)
{
    if (!n)
        return;
    guard_destroy(n->guards);
    sym_env_unref(n->env);
    for (uint32_t i = 0; i < n->nattrs; i++) {
        bp_module_unref(n->attrs[i].module);
        tensor_unref(n->attrs[i].constant);
    }
    segment_use_destroy(atomic_load(&n->use));
    arena_fini(&n->arena);
    free(n);
}

/* -- freeing a tree: without recursion, since paths are long ------------------------------------------------------- */

static bool take_places(tree_node *n, node_list **todo)
{
    place_list *l = atomic_load(&n->places);
    for (uint32_t i = 0; l && i < l->n; i++) {
        node_list *kids = atomic_load(&l->at[i]->nodes);
        if (kids) {
            kids->link.next = (epoch_link *)*todo; /* the link is free while nothing is retired */
            *todo = kids;
        }
        free(l->at[i]);
    }
    free(l);
    return true;
}

void place_destroy_nodes(place *p)
{
    node_list *todo = atomic_load(&p->nodes);
    atomic_store(&p->nodes, NULL);
    place_note_hit(p, NULL);
    if (todo)
        todo->link.next = NULL;
    while (todo) {
        node_list *l = todo;
        todo = (node_list *)l->link.next;
        for (uint32_t i = 0; i < l->n; i++) {
            take_places(l->at[i], &todo);
            node_destroy(l->at[i]);
        }
        free(l);
    }
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

place *node_place(const tree_node *n, outcome o)
{
    const place_list *l = atomic_load(&n->places);
    for (uint32_t i = 0; l && i < l->n; i++)
        if (outcome_eq(l->at[i]->out, o))
            return l->at[i];
    return NULL;
}

uint32_t node_place_count(const tree_node *n)
{
    const place_list *l = atomic_load(&n->places);
    return l ? l->n : 0;
}

const item *node_item(const tree_node *n, uint32_t k)
{
    while (n && k < n->first_item)
        n = n->parent;
    if (!n || k > n->first_item + n->nitems)
        return NULL;
    return k == n->first_item + n->nitems ? n->term : &n->items[k - n->first_item];
}

const tensor_meta *node_meta_of(const tree_node *n, uint32_t i)
{
    for (; n && i < n->ninputs; n = n->parent)
        for (uint32_t k = 0; k < n->nmetas; k++)
            if (n->metas[k].source == i)
                return &n->metas[k].meta;
    return NULL;
}

const path_symbol *node_symbol(const tree_node *n, uint32_t k)
{
    for (; n; n = n->parent)
        for (uint32_t i = n->ntold; i-- > 0;)
            if (n->told[i].symbol == k)
                return &n->told[i];
    return NULL;
}

tree_node *node_of_value(tree_node *n, ref r)
{
    while (n && r < n->first_value)
        n = n->parent;
    return n && r < n->end_value ? n : NULL;
}

/* -- changing ------------------------------------------------------------------------------------------------------ */

static void free_link(epoch_link *self)
{
    free(self);
}

place *node_add_place(epochs *e, tree_node *n, outcome o)
{
    place *p = node_place(n, o);
    if (p)
        return p;
    place_list *old = atomic_load(&n->places);
    uint32_t len = old ? old->n : 0;
    place_list *to = malloc(sizeof *to + (len + 1) * sizeof *to->at);
    p = calloc(1, sizeof *p);
    if (!to || !p) {
        free(to);
        free(p);
        return NULL;
    }
    p->out = o;
    p->parent = n;
    to->n = len + 1;
    if (len)
        memcpy(to->at, old->at, len * sizeof *to->at);
    to->at[len] = p;
    atomic_store(&n->places, to);
    if (old)
        epoch_retire(e, &old->link, free_link);
    return p;
}

bool place_add(epochs *e, place *p, tree_node *n)
{
    node_list *old = atomic_load(&p->nodes);
    uint32_t len = old ? old->n : 0;
    node_list *to = malloc(sizeof *to + (len + 1) * sizeof *to->at);
    if (!to)
        return false;
    to->n = len + 1;
    to->at[0] = n;
    if (len)
        memcpy(to->at + 1, old->at, len * sizeof *to->at);
    atomic_store(&p->nodes, to);
    place_note_hit(p, n);
    if (old)
        epoch_retire(e, &old->link, free_link);
    return true;
}
