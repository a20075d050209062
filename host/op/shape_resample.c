/* Shape rules of upsampling, its gradients, and of sampling at given places. */
#include "host/op/checks.h"
#include "host/op/resample_args.h"
#include "host/op/rows.h"
#include <string.h>

/* Halves and floats; bytes where they are only moved, or filtered as images. */
static bp_status check_type(bp_ctx *c, const shape_call *s, const bp_tensor *t, const resample_args *a)
{
    bool moves = a->kind == RESAMPLE_NEAREST || a->kind == RESAMPLE_NEAREST_EXACT;
    if (dtype_is_float(t->dtype) || (t->dtype == BP_U8 && !a->backward && (moves || a->nd == 2)))
        return BP_OK;
    return op_fail(c, s->op, BP_INVALID_ARGUMENT, "there is no %s for %s", s->op->schema->name,
                   dtype_get(t->dtype)->torch);
}

bp_status shape_upsample(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    resample_args a;
    bp_dim sizes[5];
    TRY(resample_args_read(c, s->op, s->args, &a));
    TRY(check_type(c, s, t, &a));
    sizes[0] = a.batch, sizes[1] = a.channels;
    memcpy(sizes + 2, a.out, a.nd * sizeof *sizes);
    return out_format_of(c, s, t, t->dtype, t->rank, sizes);
}

/* Gradients of bicubic images and of nearest volumes alone forget the layout. */
bp_status shape_upsample_backward(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    resample_args a;
    bp_dim sizes[5];
    TRY(resample_args_read(c, s->op, s->args, &a));
    TRY(check_type(c, s, t, &a));
    bp_dim two[] = {a.batch, a.channels};
    if (!sizes_must_match(2, t->sizes, two) || !sizes_must_match(a.nd, t->sizes + 2, a.out))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "the gradient's sizes are not those of the result");
    sizes[0] = a.batch, sizes[1] = a.channels;
    memcpy(sizes + 2, a.in, a.nd * sizeof *sizes);
    bool keeps = a.kind == RESAMPLE_LINEAR || (a.nd == 2 && a.kind != RESAMPLE_CUBIC);
    return keeps ? out_format_of(c, s, t, t->dtype, t->rank, sizes) : out_new(c, s, t->dtype, t->rank, sizes);
}

/* grid_sampler: as many values as the grid has places; a place has a coordinate a dimension, the last dimension first.
 */
bp_status shape_grid_sampler(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0), *grid = arg_tensor(s->args, 1);
    int64_t mode = arg_int(c, s->args, 2), padding = arg_int(c, s->args, 3);
    bp_dim sizes[5];
    TRY(check_rank(c, s, 0, 4, 5));
    TRY(check_rank(c, s, 1, t->rank, t->rank));
    TRY(check_same_dtype(c, s, 0, 1));
    if (!dtype_is_float(t->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "there is no sampling of %s", dtype_get(t->dtype)->torch);
    if (mode < 0 || mode > (t->rank == 4 ? 2 : 1) || padding < 0 || padding > 2)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "interpolation mode %lld, padding mode %lld", (long long)mode,
                       (long long)padding);
    if (!dim_require(DIM_EQ, t->sizes[0], grid->sizes[0]) ||
        !dim_require(DIM_EQ, grid->sizes[t->rank - 1], dim_const(t->rank - 2)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                       "a grid needs the input's batch of %s, and %u coordinates in its last dimension",
                       op_dim_text(c, t->sizes[0]), t->rank - 2u);
    for (uint32_t d = 2; d < t->rank; d++) {
        if (!dim_require(DIM_NE, t->sizes[d], dim_const(0)))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "the input has no elements along dimension %u", d);
        sizes[d] = grid->sizes[d - 1];
    }
    sizes[0] = t->sizes[0], sizes[1] = t->sizes[1];
    return out_new(c, s, t->dtype, t->rank, sizes);
}
