/* Walks over shapes (walk.h). */
#include "host/op/reference/walk.h"

void walk_start(walk *w, uint32_t rank, const bp_dim *sizes)
{
    w->rank = rank;
    w->n = 0;
    w->left = 1;
    for (uint32_t d = 0; d < rank; d++) {
        w->size[d] = sizes[d].value;
        w->index[d] = 0;
        w->left *= sizes[d].value;
    }
}

void walk_add(walk *w, const bp_dim *strides)
{
    for (uint32_t d = 0; d < w->rank; d++)
        w->step[w->n][d] = strides[d].value;
    w->at[w->n++] = 0;
}

void walk_next(walk *w)
{
    w->left--;
    for (uint32_t d = w->rank; d-- > 0;) {
        bool carries = ++w->index[d] == w->size[d];
        for (uint32_t k = 0; k < w->n; k++)
            w->at[k] += carries ? -w->step[k][d] * (w->size[d] - 1) : w->step[k][d];
        if (!carries)
            return;
        w->index[d] = 0;
    }
}
