/* Shape rules of copies whose elements lie at other places: repeats, flips, rolls, pads, triangles, diagonals. */
#include "host/op/checks.h"
#include "host/op/rows.h"
#include "host/op/view_rule.h"
#include <string.h>

/* -- repeats, flips, rolls ----------------------------------------------------------------------------------------- */

static bp_status add_repeated(bp_ctx *c, shape_call *s, uint32_t n, const bp_dim *repeats)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK];
    if (n < t->rank || n > TENSOR_MAX_RANK / 2)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%u repeats for a tensor of rank %u", n, t->rank);
    for (uint32_t d = 0; d < n; d++) {
        if (!dim_require(DIM_LE, dim_const(0), repeats[d]))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%s repeats of dimension %u", op_dim_text(c, repeats[d]), d);
        sizes[d] = d < n - t->rank ? repeats[d] : dim_mul(c, repeats[d], t->sizes[d - (n - t->rank)]);
    }
    return out_new(c, s, t->dtype, n, sizes);
}

bp_status shape_repeat(bp_ctx *c, shape_call *s)
{
    uint32_t n;
    bp_dim *repeats = arg_dims(c, s->args, 1, &n);
    return repeats ? add_repeated(c, s, n, repeats) : c->diag.code;
}

/* repeat with ones put in front where dimensions are missing. */
bp_status shape_tile(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim repeats[TENSOR_MAX_RANK];
    uint32_t given = arg_list_len(s->args, 1), n = given > t->rank ? given : t->rank;
    if (n > TENSOR_MAX_RANK)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%u repeats, at most %d are possible", n, TENSOR_MAX_RANK);
    for (uint32_t d = 0; d < n; d++)
        repeats[d] = d < n - given ? dim_const(1) : arg_list_dim(s->args, 1, d - (n - given));
    return add_repeated(c, s, n, repeats);
}

bp_status shape_flip(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bool seen[TENSOR_MAX_RANK] = {false};
    for (uint32_t i = 0; i < arg_list_len(s->args, 1); i++) {
        uint32_t d;
        TRY(op_wrap_dim(c, s->op, "dims", dim_int(c, arg_list_dim(s->args, 1, i)), t->rank, &d));
        if (seen[d])
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "dimension %u occurs twice in \"dims\"", d);
        seen[d] = true;
    }
    return out_like(c, s, t, t->dtype);
}

/* fliplr and flipud: of a matrix, or of a vector and more. */
bp_status shape_flip_named(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    TRY(check_rank(c, s, 0, strcmp(s->op->schema->name, "fliplr") == 0 ? 2 : 1, TENSOR_MAX_RANK));
    return out_like(c, s, t, t->dtype);
}

bp_status shape_rot90(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t a, b;
    if (arg_list_len(s->args, 2) != 2)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"dims\" has %u dimensions, expected 2",
                       arg_list_len(s->args, 2));
    TRY(check_rank(c, s, 0, 2, TENSOR_MAX_RANK));
    TRY(op_wrap_dim(c, s->op, "dims", dim_int(c, arg_list_dim(s->args, 2, 0)), t->rank, &a));
    TRY(op_wrap_dim(c, s->op, "dims", dim_int(c, arg_list_dim(s->args, 2, 1)), t->rank, &b));
    if (a == b)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"dims\" names dimension %u twice", a);
    int64_t turns = arg_int(c, s->args, 1) % 4;
    if (turns == 0)
        return add_copy(c, s, t, t->dtype, BP_CONTIGUOUS);
    TRY(out_like(c, s, t, t->dtype));
    tensor_meta *m = &s->out[0].meta;
    if (turns % 2) { /* a flip whose result is transposed, as PyTorch lays it out */
        bp_dim size = m->sizes[a], stride = m->strides[a];
        m->sizes[a] = m->sizes[b];
        m->strides[a] = m->strides[b];
        m->sizes[b] = size;
        m->strides[b] = stride;
    }
    return BP_OK;
}

bp_status shape_roll(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t nshifts = arg_list_len(s->args, 1), ndims = arg_list_len(s->args, 2), d;
    if (nshifts == 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"shifts\" is empty");
    if (nshifts != ndims && !(ndims == 0 && nshifts == 1))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%u shifts of %u dimensions", nshifts, ndims);
    for (uint32_t i = 0; i < ndims; i++)
        TRY(op_wrap_dim(c, s->op, "dims", dim_int(c, arg_list_dim(s->args, 2, i)), t->rank, &d));
    return out_format_of(c, s, t, t->dtype, t->rank, t->sizes);
}

bp_status shape_shift_half(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    for (uint32_t i = 0; i < arg_list_len(s->args, 1); i++) {
        uint32_t d;
        TRY(op_wrap_dim(c, s->op, "dim", dim_int(c, arg_list_dim(s->args, 1, i)), t->rank, &d));
    }
    return out_new(c, s, t->dtype, t->rank, t->sizes);
}

/* -- pads ---------------------------------------------------------------------------------------------------------- */

/* Argument 1: pairs (before, after) from the last dimension on; negative ones crop. */
bp_status shape_pad_constant(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t n = arg_list_len(s->args, 1);
    bp_dim sizes[TENSOR_MAX_RANK];
    if (n % 2 || n / 2 > t->rank)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                       "argument \"pad\" has %u numbers, expected pairs for %u dimensions", n,
                       t->rank);
    for (uint32_t d = 0; d < t->rank; d++) {
        uint32_t pair = t->rank - 1 - d;
        sizes[d] = t->sizes[d];
        if (pair < n / 2)
            sizes[d] = dim_add(c, dim_add(c, sizes[d], arg_list_dim(s->args, 1, 2 * pair)),
                               arg_list_dim(s->args, 1, 2 * pair + 1));
        if (!dim_require(DIM_LE, dim_const(0), sizes[d]))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                           "argument \"pad\" takes more than there is from dimension %u", d);
    }
    return out_format_of(c, s, t, t->dtype, t->rank, sizes);
}

/* -- triangles and diagonals --------------------------------------------------------------------------------------- */

bp_status shape_triangle(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    TRY(check_rank(c, s, 0, 2, TENSOR_MAX_RANK));
    return out_new(c, s, t->dtype, t->rank, t->sizes);
}

static bp_dim with_offset(bp_ctx *c, bp_dim n, int64_t offset)
{
    return dim_add(c, n, dim_const(offset < 0 ? -offset : offset));
}

bp_status shape_diag_embed(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    uint32_t a, b, from = 0;
    int64_t offset = arg_int(c, s->args, 1);
    TRY(check_rank(c, s, 0, 1, TENSOR_MAX_RANK - 1));
    TRY(op_wrap_dim(c, s->op, "dim1", arg_int(c, s->args, 2), t->rank + 1, &a));
    TRY(op_wrap_dim(c, s->op, "dim2", arg_int(c, s->args, 3), t->rank + 1, &b));
    if (a == b)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "dimensions \"dim1\" and \"dim2\" are both %u", a);
    bp_dim sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d <= t->rank; d++)
        sizes[d] = d == a || d == b ? with_offset(c, t->sizes[t->rank - 1], offset) : t->sizes[from++];
    return out_new(c, s, t->dtype, t->rank + 1, sizes);
}

bp_status shape_diag(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    TRY(check_rank(c, s, 0, 1, 2));
    int64_t offset = arg_int(c, s->args, 1);
    if (t->rank == 1) {
        bp_dim n = with_offset(c, t->sizes[0], offset);
        return out_new(c, s, t->dtype, 2, (bp_dim[]){n, n});
    }
    return out_new(c, s, t->dtype, 1, (bp_dim[]){diagonal_length(c, t->sizes[0], t->sizes[1], offset)});
}

bp_status shape_diagflat(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim n = with_offset(c, tensor_numel(c, t), arg_int(c, s->args, 1));
    return out_new(c, s, t->dtype, 2, (bp_dim[]){n, n});
}

/* -- pixels and channels ------------------------------------------------------------------------------------------- */

bp_status shape_channel_shuffle(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    int64_t groups = arg_int(c, s->args, 1);
    TRY(check_rank(c, s, 0, 3, TENSOR_MAX_RANK));
    if (groups < 1 || !dim_require(DIM_EQ, dim_mod(c, t->sizes[1], dim_const(groups)), dim_const(0)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%s channels do not divide into %lld groups",
                       op_dim_text(c, t->sizes[1]), (long long)groups);
    return out_format_of(c, s, t, t->dtype, t->rank, t->sizes);
}

bp_status shape_pixel_shuffle(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK], factor = arg_dim(s->args, 1), square = dim_mul(c, factor, factor);
    TRY(check_rank(c, s, 0, 3, TENSOR_MAX_RANK));
    bool up = strcmp(s->op->schema->name, "pixel_shuffle") == 0;
    uint32_t channel = t->rank - 3;
    memcpy(sizes, t->sizes, t->rank * sizeof *sizes);
    bool fits = dim_require(DIM_LT, dim_const(0), factor);
    for (uint32_t d = channel; fits && d < t->rank; d++) {
        bool divides = (d == channel) == up;
        bp_dim by = d == channel ? square : factor;
        fits = !divides || dim_require(DIM_EQ, dim_mod(c, sizes[d], by), dim_const(0));
        sizes[d] = divides && fits ? dim_floordiv(c, sizes[d], by) : dim_mul(c, sizes[d], by);
    }
    if (!fits)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "factor %s does not divide the %s", op_dim_text(c, factor),
                       up ? "channels by its square" : "height and width");
    return out_format_of(c, s, t, t->dtype, t->rank, sizes);
}
