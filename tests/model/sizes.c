/* Argument sets of other sizes than a program's text has, for calls with changing sizes. */
#include "tests/model/text.h"
#include <string.h>

/* The same numbers over and over. */
static bool grow_buffer(arena *a, const text_buffer *from, uint32_t by, text_buffer *to)
{
    *to = *from;
    to->n = from->n + by;
    to->values = arena_array(a, to->n, sizeof *to->values);
    for (uint32_t i = 0; to->values && i < to->n; i++)
        to->values[i] = from->values[i % from->n];
    return to->values != NULL;
}

bool text_args_grow(arena *a, const text_args *from, uint32_t by, text_args *to)
{
    *to = *from;
    for (uint32_t i = 0; i < from->nbuffers; i++)
        if (!grow_buffer(a, &from->buffers[i], 2 * by, &to->buffers[i])) /* strides are 1 and 2 */
            return false;
    for (uint32_t i = 0; i < from->nviews; i++)
        if (from->views[i].n > 1 || by == 3)
            to->views[i].n += by;
    return true;
}
