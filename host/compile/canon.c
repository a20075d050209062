/* Canonical graphs: values of a node's items are numbered so that equal pieces of different paths are equal. */
#include "host/compile/callable.h"

uint32_t node_position(const tree_node *n, ref r)
{
    if (r >= n->first_value && r < n->end_value)
        return n->nextra_values + (r - n->first_value);
    uint32_t at = 0;
    for (uint32_t i = 0; i < n->nextras; i++) {
        const item *it = n->extras[i];
        if (r >= it->node.first && r < it->node.first + it->node.nresults)
            return at + (r - it->node.first);
        at += it->node.nresults;
    }
    return UINT32_MAX;
}

ref node_value_at(const tree_node *n, uint32_t at)
{
    if (at >= n->nextra_values)
        return n->first_value + (at - n->nextra_values);
    for (uint32_t i = 0; i < n->nextras; i++) {
        if (at < n->extras[i]->node.nresults)
            return n->extras[i]->node.first + at;
        at -= n->extras[i]->node.nresults;
    }
    return 0;
}

const item *path_item_of(tree_node *n, ref r)
{
    n = node_of_value(n, r);
    uint32_t lo = 0, hi = n ? n->nitems : 0;
    while (lo < hi) { /* the last item whose first value is not behind r */
        uint32_t mid = (lo + hi) / 2;
        if (n->items[mid].node.first <= r)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? &n->items[lo - 1] : NULL;
}
