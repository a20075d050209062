/* What shape rules are written with: adding results, wrapping dimension numbers. */
#include "host/op/op.h"
#include "host/sym/env.h"
#include <string.h>

static shape_out *add(bp_ctx *c, shape_call *s)
{
    if (s->nout == s->cap) {
        uint32_t cap = s->cap ? 2 * s->cap : 4;
        shape_out *grown = arena_array(&c->scratch, cap, sizeof *grown);
        if (!grown) {
            ctx_nomem(c);
            return NULL;
        }
        if (s->nout)
            memcpy(grown, s->out, s->nout * sizeof *grown);
        s->out = grown;
        s->cap = cap;
    }
    shape_out *o = &s->out[s->nout++];
    *o = (shape_out){.alias_of = -1};
    return o;
}

static bool make_room(bp_ctx *c, tensor_meta *m, uint32_t rank)
{
    m->rank = rank;
    m->sizes = arena_array(&c->scratch, rank, sizeof *m->sizes);
    m->strides = arena_array(&c->scratch, rank, sizeof *m->strides);
    if (m->sizes && m->strides)
        return true;
    ctx_nomem(c);
    return false;
}

shape_out *shape_add_out(bp_ctx *c, shape_call *s, bp_dtype dtype, uint32_t rank, const bp_dim *sizes)
{
    if (rank > TENSOR_MAX_RANK) {
        op_fail(c, s->op, BP_INVALID_ARGUMENT, "a result of %u dimensions, at most %d are possible", rank,
                TENSOR_MAX_RANK);
        return NULL;
    }
    shape_out *o = add(c, s);
    if (!o || !make_room(c, &o->meta, rank))
        return NULL;
    for (uint32_t d = 0; d < rank; d++) {
        if (sizes[d].sym ? !dim_require(DIM_LE, dim_const(0), sizes[d]) : sizes[d].value < 0) {
            op_fail(c, s->op, BP_INVALID_ARGUMENT, "size %s of dimension %u is negative", op_dim_text(c, sizes[d]), d);
            return NULL;
        }
        o->meta.sizes[d] = sizes[d];
    }
    o->meta.dtype = dtype;
    o->meta.device = s->device;
    layout_contiguous(c, rank, o->meta.sizes, o->meta.strides);
    return ctx_ok(c) ? o : NULL;
}

shape_out *shape_add_view(bp_ctx *c, shape_call *s, uint32_t i, uint32_t rank, const bp_dim *sizes)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    shape_out *o = shape_add_out(c, s, t->dtype, rank, sizes);
    if (!o)
        return NULL;
    uint32_t n = rank < t->rank ? rank : t->rank;
    if (n)
        memcpy(o->meta.strides, t->strides, n * sizeof *t->strides);
    o->meta.device = tensor_device(t);
    o->meta.offset = t->offset;
    o->alias_of = (int32_t)i;
    return o;
}

shape_out *shape_add_same(bp_ctx *c, shape_call *s, uint32_t i)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    shape_out *o = shape_add_view(c, s, i, t->rank, t->sizes);
    if (o)
        o->is_argument = true;
    return o;
}

const char *op_dim_text(bp_ctx *c, bp_dim d)
{
    buf text = {0};
    sym_print(sym_current(), d, false, &text);
    const char *copy = arena_memdup(&c->scratch, buf_text(&text), text.n + 1);
    buf_fini(&text);
    return copy ? copy : "?";
}

bp_status op_wrap_dim(bp_ctx *c, const op_row *op, const char *arg, int64_t d, uint32_t rank, uint32_t *out)
{
    int64_t n = rank ? rank : 1;
    if (d < -n || d >= n)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"%s\" is %lld, expected a dimension from %lld to %lld",
                       arg,
                       (long long)d, (long long)-n, (long long)(n - 1));
    *out = (uint32_t)(d < 0 ? d + n : d);
    return BP_OK;
}
