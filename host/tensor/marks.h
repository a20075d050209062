/* Marks: what the user says of a tensor's sizes, for the captures that it is an argument of (bp_mark_dynamic and kin).
 *
 * They lie on the tensor, die with it, and are read when a function is captured and by guards. One block of memory,
 * which is replaced whole; a tensor that is being marked belongs to one thread. */
#ifndef HOST_TENSOR_MARKS_H
#define HOST_TENSOR_MARKS_H
#include "host/tensor/tensor.h"

/* Sets of dimensions are bits. A dimension may be in several; capture/dynamic.c knows which one wins. */
typedef struct {
    int64_t min, max;           /* INT64_MIN, INT64_MAX: none is given */
    int64_t hint;               /* for backends, in place of the size; INT64_MIN: none */
    const int64_t *special;     /* sizes that get code of their own; in the block */
    uint32_t nspecial;
} mark_range;

typedef struct tensor_marks {
    uint64_t dynamic, maybe, fixed, unbacked, strict; /* strict: of unbacked ones: specializing is an error */
    mark_range ranges[];        /* one a dimension */
} tensor_marks;

/* The marks of t with those of dimension d set to *range (NULL: unchanged), to be changed further by the caller. NULL:
 * out of memory, the context says so, and t is as it was. */
tensor_marks *marks_change(bp_ctx *c, bp_tensor *t, uint32_t d, const mark_range *range);
/* Dimensions that a guard compares: those marked dynamic or unbacked. */
static inline uint64_t marks_guarded(const bp_tensor *t)
{
    return t->marks ? t->marks->dynamic | t->marks->unbacked : 0;
}
#endif
