/* Shape rules of padding by the image itself, and of windows as columns. */
#include "host/op/checks.h"
#include "host/op/rows.h"
#include <string.h>

/* Only the batch may be empty. */
static bp_status check_filled(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t nd)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    char text[256];
    TRY(check_rank(c, s, i, nd + 1, nd + 2));
    for (uint32_t d = t->rank == nd + 2; d < t->rank; d++)
        if (!dim_require(DIM_NE, t->sizes[d], dim_const(0)))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "an input of sizes %s is empty, and not in its batch",
                           sizes_text(text, sizeof text, t->rank, t->sizes));
    return BP_OK;
}

/* The sizes of argument i padded by argument p, whose numbers begin with the last dimension. */
static bp_status padded_sizes(bp_ctx *c, const shape_call *s, uint32_t i, uint32_t p, bp_dim *sizes)
{
    const bp_tensor *t = arg_tensor(s->args, i);
    uint32_t nd = (uint32_t)s->op->schema->args[p].ty.list_size / 2;
    bool reflects = strncmp(s->op->schema->name, "reflection", 10) == 0;
    TRY(check_filled(c, s, i, nd));
    if (arg_list_len(s->args, p) != 2 * nd)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"padding\" must have %u numbers, and has %u", 2 * nd,
                       arg_list_len(s->args, p));
    if (t->dtype == BP_BOOL)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "there is no %s for bool", s->op->schema->name);
    memcpy(sizes, t->sizes, t->rank * sizeof *sizes);
    for (uint32_t k = 0; k < nd; k++) {
        bp_dim low = arg_list_dim(s->args, p, 2 * k), high = arg_list_dim(s->args, p, 2 * k + 1);
        bp_dim *size = &sizes[t->rank - 1 - k];
        if (reflects && (!dim_require(DIM_LT, low, *size) || !dim_require(DIM_LT, high, *size)))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "padding (%s, %s) must be less than the size %s",
                           op_dim_text(c, low), op_dim_text(c, high), op_dim_text(c, *size));
        *size = dim_add(c, *size, dim_add(c, low, high));
        if (!dim_require(DIM_LT, dim_const(0), *size))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "padding (%s, %s) leaves a size of %s",
                           op_dim_text(c, low), op_dim_text(c, high), op_dim_text(c, *size));
    }
    return c->diag.code;
}

bp_status shape_image_pad(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim sizes[5];
    TRY(padded_sizes(c, s, 0, 1, sizes));
    return s->op->schema->args[1].ty.list_size == 2 ? out_new(c, s, t->dtype, t->rank, sizes)
                                                    : out_format_of(c, s, t, t->dtype, t->rank, sizes);
}

/* Padding by the other end: of all dimensions but two, and no further than once around. */
bp_status shape_pad_circular(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t n = arg_list_len(s->args, 1);
    bp_dim sizes[TENSOR_MAX_RANK];
    if (t->rank < 3 || n != 2 * (t->rank - 2u))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"pad\": %u numbers for a tensor of %u dimensions", n,
                       t->rank);
    for (uint32_t d = 0; d < t->rank; d++) {
        sizes[d] = t->sizes[d];
        if (d < 2)
            continue;
        bp_dim low = arg_list_dim(s->args, 1, 2 * (t->rank - 1 - d));
        bp_dim high = arg_list_dim(s->args, 1, 2 * (t->rank - 1 - d) + 1);
        sizes[d] = dim_add(c, sizes[d], dim_add(c, low, high));
        if (!dim_require(DIM_LE, low, t->sizes[d]) || !dim_require(DIM_LE, high, t->sizes[d]) ||
            !dim_require(DIM_LE, dim_const(0), sizes[d]))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                           "argument \"pad\": %s and %s elements around the %s of dimension %u", op_dim_text(c, low),
                           op_dim_text(c, high), op_dim_text(c, t->sizes[d]), d);
    }
    return out_new(c, s, t->dtype, t->rank, sizes);
}

bp_status shape_image_pad_backward(bp_ctx *c, shape_call *s)
{
    const bp_tensor *grad = arg_tensor(s->args, 0), *t = arg_tensor(s->args, 1);
    bp_dim sizes[5];
    TRY(padded_sizes(c, s, 1, 2, sizes));
    TRY(check_same_dtype(c, s, 0, 1));
    if (grad->rank != t->rank || !sizes_must_match(t->rank, grad->sizes, sizes))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "the gradient's sizes are not those of the padded tensor");
    return s->op->schema->args[2].ty.list_size != 2 ? out_format_of(c, s, t, t->dtype, t->rank, t->sizes)
                                                    : out_new(c, s, t->dtype, t->rank, t->sizes);
}

/* -- windows as columns -- */

/* How many windows fit along dimension d of an image of n elements. */
static bp_status windows(bp_ctx *c, const shape_call *s, uint32_t first, uint32_t d, bp_dim n, bp_dim *out)
{
    static const char *const NAMES[] = {"kernel_size", "dilation", "padding", "stride"};
    int64_t v[4]; /* in that order */
    for (uint32_t i = 0; i < 4; i++) {
        if (arg_list_len(s->args, first + i) != 2)
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" must have 2 numbers", NAMES[i]);
        v[i] = dim_int(c, arg_list_dim(s->args, first + i, d));
        if (v[i] < (i != 2) || v[i] > INT32_MAX)
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"%s\" must be at least %d%s, and is %lld",
                           NAMES[i], i != 2, v[i] < (i != 2) ? "" : " and fit 32 bits", (long long)v[i]);
    }
    bp_dim room = dim_add(c, n, dim_const(2 * v[2] - v[1] * (v[0] - 1) - 1));
    *out = dim_add(c, dim_floordiv(c, room, dim_const(v[3])), dim_const(1));
    if (!dim_require(DIM_LT, dim_const(0), *out))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "no window fits into %s elements", op_dim_text(c, n));
    return c->diag.code;
}

static bp_dim window_size(bp_ctx *c, const shape_call *s, uint32_t i)
{
    return dim_mul(c, arg_list_dim(s->args, i, 0), arg_list_dim(s->args, i, 1));
}

bp_status shape_im2col(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim high, wide, sizes[3];
    TRY(check_filled(c, s, 0, 2));
    if (dtype_is_int(t->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "there is no im2col for %s", dtype_get(t->dtype)->torch);
    uint32_t batch = t->rank == 4;
    TRY(windows(c, s, 1, 0, t->sizes[batch + 1], &high));
    TRY(windows(c, s, 1, 1, t->sizes[batch + 2], &wide));
    sizes[0] = t->sizes[0];
    sizes[batch] = dim_mul(c, t->sizes[batch], window_size(c, s, 1));
    sizes[batch + 1] = dim_mul(c, high, wide);
    return out_new(c, s, t->dtype, batch + 2, sizes);
}

bp_status shape_col2im(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim high, wide, sizes[4];
    TRY(check_filled(c, s, 0, 1));
    if (dtype_is_integral(t->dtype))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "there is no col2im for %s", dtype_get(t->dtype)->torch);
    if (arg_list_len(s->args, 1) != 2)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"output_size\" must have 2 numbers");
    uint32_t batch = t->rank == 3;
    TRY(windows(c, s, 2, 0, arg_list_dim(s->args, 1, 0), &high));
    TRY(windows(c, s, 2, 1, arg_list_dim(s->args, 1, 1), &wide));
    if (!dim_require(DIM_EQ, dim_mod(c, t->sizes[batch], window_size(c, s, 2)), dim_const(0)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%s rows cannot be divided by a window of %s elements",
                       op_dim_text(c, t->sizes[batch]), op_dim_text(c, window_size(c, s, 2)));
    if (!dim_require(DIM_EQ, t->sizes[batch + 1], dim_mul(c, high, wide)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%s columns, and %s x %s windows",
                       op_dim_text(c, t->sizes[batch + 1]), op_dim_text(c, high), op_dim_text(c, wide));
    sizes[0] = t->sizes[0];
    sizes[batch] = dim_floordiv(c, t->sizes[batch], window_size(c, s, 2));
    sizes[batch + 1] = arg_list_dim(s->args, 1, 0), sizes[batch + 2] = arg_list_dim(s->args, 1, 1);
    return out_new(c, s, t->dtype, batch + 3, sizes);
}
