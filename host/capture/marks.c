/* Marks of tensors, as users set them. */
#define BP_WITHOUT_OPERATORS
#include "host/capture/frame.h"
#include "host/tensor/marks.h"
#include <inttypes.h>
#include <string.h>

enum mark { MARK_DYNAMIC, MARK_MAYBE, MARK_STATIC, MARK_UNBACKED, MARK_STRICT };

static bp_status check(bp_ctx *c, const bp_tensor *t, int64_t dim, const bp_mark_options *o)
{
    if (!t)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "a mark: the tensor is NULL");
    if (capture_current(c) || t->flags & TENSOR_POISONED || tensor_is_fake(t))
        return ctx_fail(c, BP_FAILED_PRECONDITION, "a size is marked inside a function that is captured: mark what is "
                                                   "passed to it");
    if (dim < -1 || dim >= t->rank)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "a mark: dimension %" PRId64 " of a tensor of rank %u (-1: all)", dim,
                        t->rank);
    if (o->min < 0 || o->max < 0 || (o->max && o->max < o->min))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "a mark: the range %" PRId64 " to %" PRId64 " has no size in it",
                        o->min, o->max);
    return BP_OK;
}

static void set(tensor_marks *m, uint32_t d, enum mark how)
{
    uint64_t bit = (uint64_t)1 << d;
    switch (how) {
    case MARK_DYNAMIC: m->dynamic |= bit; break;
    case MARK_MAYBE: m->maybe |= bit; break;
    case MARK_STATIC: m->fixed |= bit; break;
    case MARK_STRICT: m->strict |= bit; /* FALLTHROUGH */
    default: m->unbacked |= bit; break;
    }
}

/* Inside a captured function a static size is that number from there on. */
static bp_status specialize(bp_ctx *c, const bp_tensor *t, int64_t dim)
{
    for (uint32_t d = 0; d < t->rank; d++)
        if (dim < 0 || d == dim)
            dim_int(c, t->sizes[d]);
    return c->diag.code;
}

static bp_status mark(bp_ctx *c, bp_tensor *t, int64_t dim, enum mark how, const bp_mark_options *o)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (how == MARK_STATIC && t && capture_current(c) && tensor_is_fake(t))
        return specialize(c, t, dim);
    TRY(check(c, t, dim, o));
    mark_range r = {o->min ? o->min : INT64_MIN, o->max ? o->max : INT64_MAX,
                    o->hint_override ? o->hint_override : INT64_MIN, o->specialize_on, o->nspecialize_on};
    for (uint32_t d = dim < 0 ? 0 : (uint32_t)dim; d < t->rank && (dim < 0 || d == dim); d++) {
        tensor_marks *m = marks_change(c, t, d, how == MARK_DYNAMIC ? &r : NULL);
        if (!m)
            return c->diag.code;
        set(m, d, how);
    }
    t->is_marked = marks_guarded(t) != 0;
    return BP_OK;
}

bp_status bp_mark_dynamic_at(bp_ctx *c, bp_tensor *t, int64_t dim, const bp_mark_options *options, size_t options_size)
{
    bp_mark_options o = {0};
    if (options)
        memcpy(&o, options, options_size < sizeof o ? options_size : sizeof o);
    return mark(c, t, dim, MARK_DYNAMIC, &o);
}

bp_status bp_maybe_mark_dynamic(bp_ctx *c, bp_tensor *t, int64_t dim)
{
    return mark(c, t, dim, MARK_MAYBE, &(bp_mark_options){0});
}

bp_status bp_mark_static(bp_ctx *c, bp_tensor *t, int64_t dim)
{
    return mark(c, t, dim, MARK_STATIC, &(bp_mark_options){0});
}

bp_status bp_mark_unbacked(bp_ctx *c, bp_tensor *t, int64_t dim, int strict)
{
    return mark(c, t, dim, strict ? MARK_STRICT : MARK_UNBACKED, &(bp_mark_options){0});
}
