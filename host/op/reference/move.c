/* Kernels of copies whose elements lie at other places. Outputs are fresh: dense, and nobody else's. */
#include "host/op/reference/move.h"
#include "host/op/rows.h"
#include <string.h>

/* -- the parts ----------------------------------------------------------------------------------------------------- */

void move_elements(uint32_t rank, const int64_t *sizes, size_t nbytes, char *dst, const int64_t *dst_strides,
                   const char *src, const int64_t *src_strides)
{
    if (rank == 0) {
        memcpy(dst, src, nbytes);
        return;
    }
    for (int64_t i = 0; i < sizes[0]; i++)
        move_elements(rank - 1, sizes + 1, nbytes, dst + i * dst_strides[0] * (int64_t)nbytes, dst_strides + 1,
                      src + i * src_strides[0] * (int64_t)nbytes, src_strides + 1);
}

bp_tensor *move_view(bp_ctx *c, bp_tensor *t, uint32_t rank, const bp_dim *sizes, const bp_dim *strides)
{
    bp_dim room[2][TENSOR_MAX_RANK];
    if (rank) {
        memcpy(room[0], sizes, rank * sizeof *sizes);
        memcpy(room[1], strides, rank * sizeof *strides);
    }
    return tensor_view(c, t, &(tensor_meta){t->dtype, tensor_device(t), rank, room[0], room[1], t->offset});
}

bp_tensor *move_part(bp_ctx *c, bp_tensor *t, uint32_t d, int64_t start, int64_t length)
{
    bp_dim sizes[TENSOR_MAX_RANK];
    memcpy(sizes, t->sizes, t->rank * sizeof *sizes);
    sizes[d] = dim_const(length);
    tensor_meta m = {t->dtype, tensor_device(t), t->rank, sizes, t->strides, t->offset};
    if (length)
        m.offset.value += start * tensor_step(t, d);
    return tensor_view(c, t, &m);
}

bp_status move_into(bp_ctx *c, bp_tensor *dst, const bp_tensor *src)
{
    bp_status st = dst && src ? tensor_copy(c, dst, src) : c->diag.code;
    tensor_unref(dst);
    return st;
}

void move_clear(bp_tensor *out)
{
    size_t n = tensor_span_bytes(out);
    if (n)
        memset(tensor_ptr(out), 0, n);
}

/* -- repeats ------------------------------------------------------------------------------------------------------- */

/* The output of sizes r * s is seen as pairs (r, s), against the input repeated. */
bp_status kernel_repeat(bp_ctx *c, op_call *k)
{
    bp_tensor *out = k->out[0], *src = arg_tensor(k->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK], outer[TENSOR_MAX_RANK], inner[TENSOR_MAX_RANK];
    uint32_t lead = out->rank - src->rank;
    for (uint32_t d = 0; d < out->rank; d++) {
        int64_t own = d < lead ? 1 : tensor_dim(src, d - lead);
        sizes[2 * d] = dim_const(own ? tensor_dim(out, d) / own : 0);
        sizes[2 * d + 1] = dim_const(own);
        outer[2 * d] = dim_const(own * tensor_step(out, d));
        outer[2 * d + 1] = out->strides[d];
        inner[2 * d] = dim_const(0);
        inner[2 * d + 1] = d < lead ? dim_const(0) : src->strides[d - lead];
    }
    bp_tensor *from = move_view(c, src, 2 * out->rank, sizes, inner);
    bp_status st = from ? move_into(c, move_view(c, out, 2 * out->rank, sizes, outer), from) : c->diag.code;
    tensor_unref(from);
    return st;
}

/* -- flips and turns ----------------------------------------------------------------------------------------------- */

/* Copies src to out, dimension d of out running along order[d] of src, backwards where `back` of src's says so. */
static void move_turned(bp_tensor *out, const bp_tensor *src, const uint32_t *order, const bool *back)
{
    int64_t sizes[TENSOR_MAX_RANK], to[TENSOR_MAX_RANK], from[TENSOR_MAX_RANK], start = 0;
    size_t nbytes = dtype_size(src->dtype);
    for (uint32_t d = 0; d < out->rank; d++) {
        uint32_t o = order[d];
        sizes[d] = tensor_dim(out, d);
        to[d] = tensor_step(out, d);
        from[d] = back[o] ? -tensor_step(src, o) : tensor_step(src, o);
        if (sizes[d] == 0)
            return;
        start += back[o] ? (sizes[d] - 1) * tensor_step(src, o) : 0;
    }
    move_elements(out->rank, sizes, nbytes, tensor_ptr(out), to, (char *)tensor_ptr(src) + start * (int64_t)nbytes,
                  from);
}

static void own_order(uint32_t rank, uint32_t *order)
{
    for (uint32_t d = 0; d < rank; d++)
        order[d] = d;
}

static uint32_t wrapped(const bp_tensor *t, int64_t d)
{
    return (uint32_t)(d < 0 ? d + (t->rank ? t->rank : 1) : d);
}

bp_status kernel_flip(bp_ctx *c, op_call *k)
{
    const bp_tensor *src = arg_tensor(k->args, 0);
    uint32_t order[TENSOR_MAX_RANK];
    bool back[TENSOR_MAX_RANK] = {false};
    own_order(src->rank, order);
    for (uint32_t i = 0; i < arg_list_len(k->args, 1); i++)
        back[wrapped(src, dim_int(c, arg_list_dim(k->args, 1, i)))] = true;
    move_turned(k->out[0], src, order, back);
    return BP_OK;
}

bp_status kernel_flip_named(bp_ctx *c, op_call *k)
{
    (void)c;
    uint32_t order[TENSOR_MAX_RANK];
    bool back[TENSOR_MAX_RANK] = {false};
    own_order(k->out[0]->rank, order);
    back[strcmp(k->op->schema->name, "fliplr") == 0] = true;
    move_turned(k->out[0], arg_tensor(k->args, 0), order, back);
    return BP_OK;
}

bp_status kernel_rot90(bp_ctx *c, op_call *k)
{
    const bp_tensor *src = arg_tensor(k->args, 0);
    uint32_t order[TENSOR_MAX_RANK], a = wrapped(src, dim_int(c, arg_list_dim(k->args, 2, 0)));
    uint32_t b = wrapped(src, dim_int(c, arg_list_dim(k->args, 2, 1)));
    bool back[TENSOR_MAX_RANK] = {false};
    int64_t turns = ((arg_int(c, k->args, 1) % 4) + 4) % 4;
    own_order(src->rank, order);
    if (turns % 2) {
        order[a] = b;
        order[b] = a;
    }
    back[a] = turns == 2 || turns == 3;
    back[b] = turns == 1 || turns == 2;
    move_turned(k->out[0], src, order, back);
    return BP_OK;
}

/* -- rolls --------------------------------------------------------------------------------------------------------- */

/* Moves src by `shift` along d into out, which has src's sizes. */
static bp_status roll_dim(bp_ctx *c, bp_tensor *out, bp_tensor *src, uint32_t d, int64_t shift)
{
    int64_t n = tensor_dim(src, d);
    if (n == 0)
        return BP_OK;
    shift = (shift % n + n) % n;
    bp_tensor *low = move_part(c, src, d, 0, n - shift), *high = move_part(c, src, d, n - shift, shift);
    bp_status st = move_into(c, low ? move_part(c, out, d, shift, n - shift) : NULL, low);
    if (st == BP_OK)
        st = move_into(c, high ? move_part(c, out, d, 0, shift) : NULL, high);
    tensor_unref(low);
    tensor_unref(high);
    return st;
}

/* Rolls by n shifts one after the other; each makes a tensor, the last is copied out. */
static bp_status roll_all(bp_ctx *c, bp_tensor *out, bp_tensor *src, uint32_t n, const uint32_t *dims,
                          const int64_t *shifts)
{
    bp_tensor *at = tensor_ref(src);
    bp_status st = BP_OK;
    for (uint32_t i = 0; i < n && st == BP_OK; i++) {
        tensor_meta m;
        tensor_get_meta(out, &m);
        m.offset = dim_const(0);
        bp_tensor *next = tensor_new(c, &m);
        st = next ? roll_dim(c, next, at, dims[i], shifts[i]) : c->diag.code;
        tensor_unref(at);
        at = next;
    }
    if (st == BP_OK)
        st = tensor_copy(c, out, at);
    tensor_unref(at);
    return st;
}

/* Without dims the elements are rolled in row-major order. */
static bp_status roll_flat(bp_ctx *c, bp_tensor *out, bp_tensor *src, int64_t shift)
{
    bp_dim n = tensor_numel(c, src), one = dim_const(1);
    bp_tensor *packed = tensor_to_contiguous(c, src);
    bp_tensor *flat = packed ? move_view(c, packed, 1, &n, &one) : NULL;
    bp_tensor *rolled = flat ? tensor_contiguous_new(c, src->dtype, 1, &n.value) : NULL;
    bp_status st = rolled ? roll_dim(c, rolled, flat, 0, shift) : c->diag.code;
    bp_dim strides[TENSOR_MAX_RANK];
    layout_contiguous(c, out->rank, out->sizes, strides);
    bp_tensor *shaped = st == BP_OK ? move_view(c, rolled, out->rank, out->sizes, strides) : NULL;
    if (st == BP_OK)
        st = shaped ? tensor_copy(c, out, shaped) : c->diag.code;
    tensor_unref(shaped);
    tensor_unref(rolled);
    tensor_unref(flat);
    tensor_unref(packed);
    return st;
}

bp_status kernel_roll(bp_ctx *c, op_call *k)
{
    bp_tensor *src = arg_tensor(k->args, 0);
    uint32_t n = arg_list_len(k->args, 2), dims[TENSOR_MAX_RANK];
    int64_t shifts[TENSOR_MAX_RANK];
    if (n == 0)
        return roll_flat(c, k->out[0], src, dim_int(c, arg_list_dim(k->args, 1, 0)));
    if (src->rank == 0)
        return tensor_copy(c, k->out[0], src);
    for (uint32_t i = 0; i < n; i++) {
        dims[i] = wrapped(src, dim_int(c, arg_list_dim(k->args, 2, i)));
        shifts[i] = dim_int(c, arg_list_dim(k->args, 1, i));
    }
    return roll_all(c, k->out[0], src, n, dims, shifts);
}

/* fft_fftshift and fft_ifftshift: by half of each dimension, rounded down or up. */
bp_status kernel_shift_half(bp_ctx *c, op_call *k)
{
    bp_tensor *src = arg_tensor(k->args, 0);
    bool all = arg_is_none(k->args, 1), inverse = strcmp(k->op->schema->name, "fft_ifftshift") == 0;
    uint32_t n = all ? src->rank : arg_list_len(k->args, 1), dims[TENSOR_MAX_RANK];
    int64_t shifts[TENSOR_MAX_RANK];
    for (uint32_t i = 0; i < n; i++) {
        dims[i] = all ? i : wrapped(src, dim_int(c, arg_list_dim(k->args, 1, i)));
        int64_t size = src->rank ? tensor_dim(src, dims[i]) : 1;
        shifts[i] = inverse ? (size + 1) / 2 : size / 2;
    }
    return roll_all(c, k->out[0], src, src->rank ? n : 0, dims, shifts);
}

/* -- pads ---------------------------------------------------------------------------------------------------------- */

bp_status kernel_pad_constant(bp_ctx *c, op_call *k)
{
    bp_tensor *to = NULL, *from = NULL, *src = arg_tensor(k->args, 0);
    bp_value fill[] = {value_tensor(k->out[0]), k->args[2]};
    bp_tensor *filled = op_call1(c, ROW_fill_scalar, 2, fill);
    TRY(op_deliver(c, k, 0, filled));
    to = tensor_ref(k->out[0]);
    from = tensor_ref(src);
    for (uint32_t pair = 0; pair < arg_list_len(k->args, 1) / 2 && to && from; pair++) {
        uint32_t d = src->rank - 1 - pair;
        int64_t before = dim_int(c, arg_list_dim(k->args, 1, 2 * pair));
        int64_t after = dim_int(c, arg_list_dim(k->args, 1, 2 * pair + 1));
        int64_t skip = before < 0 ? -before : 0, place = before > 0 ? before : 0;
        int64_t length = tensor_dim(src, d) - skip - (after < 0 ? -after : 0);
        length = length < 0 ? 0 : length;
        bp_tensor *t = move_part(c, to, d, place, length), *f = move_part(c, from, d, skip, length);
        tensor_unref(to);
        tensor_unref(from);
        to = t;
        from = f;
    }
    bp_status st = to && from ? tensor_copy(c, to, from) : c->diag.code;
    tensor_unref(to);
    tensor_unref(from);
    return st;
}

/* -- triangles and diagonals --------------------------------------------------------------------------------------- */

/* Zeros the elements of a matrix whose column lies on the wrong side of row + diagonal. */
static void clear_side(char *at, const bp_tensor *t, int64_t diagonal, bool upper)
{
    size_t nbytes = dtype_size(t->dtype);
    int64_t rows = tensor_dim(t, t->rank - 2), columns = tensor_dim(t, t->rank - 1);
    for (int64_t i = 0; i < rows; i++) {
        int64_t edge = upper ? diagonal : diagonal < columns ? diagonal + 1 : columns; /* in row 0; moves with i */
        edge = edge < -i ? 0 : edge > columns - i ? columns : edge + i;
        char *row = at + (size_t)(i * columns) * nbytes;
        if (upper)
            memset(row, 0, (size_t)edge * nbytes);
        else
            memset(row + (size_t)edge * nbytes, 0, (size_t)(columns - edge) * nbytes);
    }
}

bp_status kernel_triangle(bp_ctx *c, op_call *k)
{
    bp_tensor *out = k->out[0];
    TRY(tensor_copy(c, out, arg_tensor(k->args, 0)));
    int64_t diagonal = arg_int(c, k->args, 1);
    size_t matrix = (size_t)(tensor_dim(out, out->rank - 2) * tensor_dim(out, out->rank - 1)) * dtype_size(out->dtype);
    size_t total = tensor_span_bytes(out);
    bool upper = strcmp(k->op->schema->name, "triu") == 0;
    for (size_t at = 0; matrix && at < total; at += matrix)
        clear_side((char *)tensor_ptr(out) + at, out, diagonal, upper);
    return BP_OK;
}

/* Copies src to the diagonal of out that args of `diagonal` name. */
static bp_status write_diagonal(bp_ctx *c, bp_tensor *out, const bp_tensor *src, bp_value offset, bp_value a,
                                bp_value b)
{
    const bp_value args[] = {value_tensor(out), offset, a, b};
    return move_into(c, op_call1(c, ROW_diagonal_default, 4, args), src);
}

bp_status kernel_diag_embed(bp_ctx *c, op_call *k)
{
    move_clear(k->out[0]);
    return write_diagonal(c, k->out[0], arg_tensor(k->args, 0), k->args[1], k->args[2], k->args[3]);
}

bp_status kernel_diag(bp_ctx *c, op_call *k)
{
    bp_tensor *src = arg_tensor(k->args, 0);
    if (src->rank == 2) {
        bp_tensor *view = op_call1(c, ROW_diagonal_default, 2, k->args);
        bp_status st = view ? tensor_copy(c, k->out[0], view) : c->diag.code;
        tensor_unref(view);
        return st;
    }
    move_clear(k->out[0]);
    return write_diagonal(c, k->out[0], src, k->args[1], value_int(0), value_int(1));
}

bp_status kernel_diagflat(bp_ctx *c, op_call *k)
{
    bp_tensor *flat = op_call1(c, ROW_ravel_default, 1, k->args);
    move_clear(k->out[0]);
    bp_status st = flat ? write_diagonal(c, k->out[0], flat, k->args[1], value_int(0), value_int(1)) : c->diag.code;
    tensor_unref(flat);
    return st;
}

/* -- pixels and channels ------------------------------------------------------------------------------------------- */

/* The i-th of n interleaved copies: out and src seen under `rank` sizes, each with its own strides. */
static bp_status copy_seen(bp_ctx *c, op_call *k, uint32_t rank, const bp_dim *sizes, const bp_dim *to,
                           const bp_dim *from)
{
    bp_tensor *src = move_view(c, arg_tensor(k->args, 0), rank, sizes, from);
    bp_status st = src ? move_into(c, move_view(c, k->out[0], rank, sizes, to), src) : c->diag.code;
    tensor_unref(src);
    return st;
}

static bp_dim times(bp_dim stride, int64_t n)
{
    return dim_const(stride.value * n);
}

/* Channel g * n + i goes to i * groups + g. */
bp_status kernel_channel_shuffle(bp_ctx *c, op_call *k)
{
    const bp_tensor *src = arg_tensor(k->args, 0), *out = k->out[0];
    bp_dim sizes[TENSOR_MAX_RANK], to[TENSOR_MAX_RANK], from[TENSOR_MAX_RANK];
    int64_t groups = arg_int(c, k->args, 1), n = tensor_dim(src, 1) / groups;
    uint32_t rank = 0;
    for (uint32_t d = 0; d < src->rank; d++, rank++) {
        if (d == 1) {
            sizes[rank] = dim_const(groups);
            to[rank] = out->strides[1];
            from[rank++] = times(src->strides[1], n);
        }
        sizes[rank] = d == 1 ? dim_const(n) : src->sizes[d];
        to[rank] = d == 1 ? times(out->strides[1], groups) : out->strides[d];
        from[rank] = src->strides[d];
    }
    return copy_seen(c, k, rank, sizes, to, from);
}

/* The tensor with the larger image splits height and width, the one with more channels splits those: both are seen as
 * batch..., channels, factor, factor, height, width. */
static void see_large(const bp_tensor *t, uint32_t b, int64_t f, bp_dim *strides)
{
    strides[b] = t->strides[b];
    strides[b + 1] = t->strides[b + 1];
    strides[b + 2] = t->strides[b + 2];
    strides[b + 3] = times(t->strides[b + 1], f);
    strides[b + 4] = times(t->strides[b + 2], f);
}

static void see_deep(const bp_tensor *t, uint32_t b, int64_t f, bp_dim *strides)
{
    strides[b] = times(t->strides[b], f * f);
    strides[b + 1] = times(t->strides[b], f);
    strides[b + 2] = t->strides[b];
    strides[b + 3] = t->strides[b + 1];
    strides[b + 4] = t->strides[b + 2];
}

bp_status kernel_pixel_shuffle(bp_ctx *c, op_call *k)
{
    const bp_tensor *src = arg_tensor(k->args, 0), *out = k->out[0];
    bool up = strcmp(k->op->schema->name, "pixel_shuffle") == 0;
    const bp_tensor *large = up ? out : src, *deep = up ? src : out;
    bp_dim sizes[TENSOR_MAX_RANK + 2], wide[TENSOR_MAX_RANK + 2], narrow[TENSOR_MAX_RANK + 2];
    int64_t f = arg_int(c, k->args, 1);
    uint32_t b = src->rank - 3;
    for (uint32_t d = 0; d < b; d++) {
        sizes[d] = src->sizes[d];
        wide[d] = large->strides[d];
        narrow[d] = deep->strides[d];
    }
    sizes[b] = large->sizes[b];
    sizes[b + 1] = sizes[b + 2] = dim_const(f);
    sizes[b + 3] = deep->sizes[b + 1];
    sizes[b + 4] = deep->sizes[b + 2];
    see_large(large, b, f, wide);
    see_deep(deep, b, f, narrow);
    return copy_seen(c, k, b + 5, sizes, up ? wide : narrow, up ? narrow : wide);
}
