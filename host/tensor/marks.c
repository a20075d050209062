/* The block of a tensor's marks: the struct, a range a dimension, and the lists of special sizes behind them. */
#include "host/tensor/marks.h"
#include <stdlib.h>
#include <string.h>

static const mark_range NO_RANGE = {INT64_MIN, INT64_MAX, INT64_MIN, NULL, 0};

static mark_range range_of(const bp_tensor *t, uint32_t d, uint32_t changed, const mark_range *range)
{
    return d == changed && range ? *range : t->marks ? t->marks->ranges[d] : NO_RANGE;
}

tensor_marks *marks_change(bp_ctx *c, bp_tensor *t, uint32_t d, const mark_range *range)
{
    size_t special = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        special += range_of(t, i, d, range).nspecial;
    size_t head = sizeof(tensor_marks) + t->rank * sizeof(mark_range);
    tensor_marks *m = calloc(1, head + special * sizeof(int64_t));
    if (!m)
        return ctx_nomem(c), NULL;
    if (t->marks)
        memcpy(m, t->marks, sizeof *m);
    int64_t *at = (int64_t *)((char *)m + head);
    for (uint32_t i = 0; i < t->rank; i++) {
        m->ranges[i] = range_of(t, i, d, range);
        if (m->ranges[i].nspecial)
            memcpy(at, m->ranges[i].special, m->ranges[i].nspecial * sizeof *at);
        m->ranges[i].special = at;
        at += m->ranges[i].nspecial;
    }
    free(t->marks);
    return t->marks = m;
}
