/* Kernels of operators that join tensors. */
#include "host/op/join_piece.h"
#include "host/op/reference/move.h"
#include "host/op/rows.h"
#include <string.h>

bp_status kernel_join(bp_ctx *c, op_call *k)
{
    join j;
    bp_dim room[2][TENSOR_MAX_RANK + 2];
    int64_t at = 0;
    TRY(join_of(c, k->op, k->args, &j));
    for (uint32_t i = 0; i < arg_list_len(k->args, 0); i++) {
        bp_tensor *t = arg_list_tensor(k->args, 0, i);
        tensor_meta m = {.sizes = room[0], .strides = room[1]};
        if (join_skips(&j, t))
            continue;
        join_piece(&j, t, &m);
        int64_t length = m.sizes[j.dim].value;
        bp_tensor *piece = tensor_view(c, t, &m);
        bp_status st = move_into(c, piece ? move_part(c, k->out[0], j.dim, at, length) : NULL, piece);
        tensor_unref(piece);
        TRY(st);
        at += length;
    }
    return BP_OK;
}

bp_status kernel_block_diag(bp_ctx *c, op_call *k)
{
    int64_t row = 0, column = 0;
    move_clear(k->out[0]);
    for (uint32_t i = 0; i < arg_list_len(k->args, 0); i++) {
        bp_tensor *t = arg_list_tensor(k->args, 0, i);
        bp_dim one = dim_const(1), rows = t->rank == 2 ? t->sizes[0] : one;
        bp_dim columns = t->rank ? t->sizes[t->rank - 1] : one;
        bp_dim strides[] = {t->rank == 2 ? t->strides[0] : one, t->rank ? t->strides[t->rank - 1] : one};
        bp_tensor *block = move_view(c, t, 2, (bp_dim[]){rows, columns}, strides);
        bp_tensor *band = block ? move_part(c, k->out[0], 0, row, rows.value) : NULL;
        bp_status st = move_into(c, band ? move_part(c, band, 1, column, columns.value) : NULL, block);
        tensor_unref(band);
        tensor_unref(block);
        TRY(st);
        row += rows.value;
        column += columns.value;
    }
    return BP_OK;
}

/* Writes the chunks of one tensor from column `at` on. Sizes in front of dim are the output's. */
static bp_status write_chunks(bp_ctx *c, bp_tensor *out, bp_tensor *t, uint32_t d, int64_t at)
{
    int64_t chunks = tensor_dim(out, d), n = tensor_dim(t, d), size = (n + chunks - 1) / chunks, inner = 1;
    bp_dim sizes[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    for (uint32_t i = d + 1; i < t->rank; i++)
        inner *= tensor_dim(t, i);
    for (int64_t chunk = 0; chunk * size < n; chunk++) {
        int64_t length = n - chunk * size < size ? n - chunk * size : size;
        bp_tensor *from = move_part(c, t, d, chunk * size, length);
        bp_tensor *row = from ? move_part(c, out, d, chunk, 1) : NULL;
        bp_tensor *place = row ? move_part(c, row, d + 1, at, length * inner) : NULL;
        layout_contiguous(c, t->rank - d, from ? from->sizes + d : sizes, strides + d);
        for (uint32_t i = 0; place && i < t->rank; i++) {
            sizes[i] = from->sizes[i];
            strides[i] = i < d ? out->strides[i] : strides[i];
        }
        bp_status st = move_into(c, place ? move_view(c, place, t->rank, sizes, strides) : NULL, from);
        tensor_unref(place);
        tensor_unref(row);
        tensor_unref(from);
        TRY(st);
    }
    return BP_OK;
}

bp_status kernel_chunk_cat(bp_ctx *c, op_call *k)
{
    bp_tensor *out = k->out[0];
    uint32_t d = out->rank - 2;
    int64_t at = 0, chunks = tensor_dim(out, d);
    move_clear(out);
    for (uint32_t i = 0; i < arg_list_len(k->args, 0); i++) {
        bp_tensor *t = arg_list_tensor(k->args, 0, i);
        int64_t width = (tensor_dim(t, d) + chunks - 1) / chunks;
        for (uint32_t j = d + 1; j < t->rank; j++)
            width *= tensor_dim(t, j);
        TRY(write_chunks(c, out, t, d, at));
        at += width;
    }
    return BP_OK;
}

/* Row r of the product holds, from the last tensor on, the digits of r. */
bp_status kernel_cartesian_prod(bp_ctx *c, op_call *k)
{
    bp_tensor *out = k->out[0];
    uint32_t n = arg_list_len(k->args, 0);
    size_t nbytes = dtype_size(out->dtype);
    if (n == 1)
        return tensor_copy(c, out, arg_list_tensor(k->args, 0, 0));
    for (int64_t r = 0; r < tensor_dim(out, 0); r++) {
        int64_t rest = r;
        for (uint32_t i = n; i-- > 0;) {
            const bp_tensor *t = arg_list_tensor(k->args, 0, i);
            int64_t digit = rest % tensor_dim(t, 0);
            rest /= tensor_dim(t, 0);
            memcpy((char *)tensor_ptr(out) + (size_t)(r * n + i) * nbytes,
                   (char *)tensor_ptr(t) + (size_t)(digit * tensor_step(t, 0)) * nbytes, nbytes);
        }
    }
    return BP_OK;
}

/* The next combination of r out of n, in order; repeats: an index may occur again. */
static bool next_combination(int64_t *at, int64_t r, int64_t n, bool repeats)
{
    for (int64_t i = r; i-- > 0;) {
        int64_t last = repeats ? n - 1 : n - r + i;
        if (at[i] >= last)
            continue;
        at[i]++;
        for (int64_t j = i + 1; j < r; j++)
            at[j] = repeats ? at[i] : at[j - 1] + 1;
        return true;
    }
    return false;
}

bp_status kernel_combinations(bp_ctx *c, op_call *k)
{
    const bp_tensor *src = arg_tensor(k->args, 0), *out = k->out[0];
    int64_t r = arg_int(c, k->args, 1), n = tensor_dim(src, 0), at[16] = {0};
    bool repeats = arg_bool(k->args, 2);
    size_t nbytes = dtype_size(out->dtype);
    char *to = tensor_ptr(out);
    for (int64_t i = 0; i < r; i++)
        at[i] = repeats ? 0 : i;
    for (int64_t row = 0; r && row < tensor_dim(out, 0); row++) {
        for (int64_t i = 0; i < r; i++, to += nbytes)
            memcpy(to, (char *)tensor_ptr(src) + (size_t)(at[i] * tensor_step(src, 0)) * nbytes, nbytes);
        next_combination(at, r, n, repeats);
    }
    return BP_OK;
}
