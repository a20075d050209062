/* Padding by the image itself (reflection, replication) and its gradients; windows as columns and back. */
#include "host/op/reference/conv.h"
#include "host/op/reference/number.h"
#include "host/op/reference/walk.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"
#include <string.h>

static char *element(const bp_tensor *t, int64_t at)
{
    return (char *)tensor_ptr(t) + at * (int64_t)dtype_size(t->dtype);
}

/* -- padding -- */

enum pad_kind { PAD_REFLECTION, PAD_REPLICATION, PAD_CIRCULAR };

static enum pad_kind kind_of(const op_row *op)
{
    const char *name = op->schema->name;
    return strncmp(name, "reflection", 10) == 0 ? PAD_REFLECTION
           : strcmp(name, "_pad_circular") == 0 ? PAD_CIRCULAR : PAD_REPLICATION;
}

/* Which element of n a padded one is: places in front and behind are mirrored at, or moved to, the ends. */
static int64_t source_of(enum pad_kind kind, int64_t n, int64_t at)
{
    if (kind == PAD_REPLICATION)
        return at < 0 ? 0 : at >= n ? n - 1 : at;
    return at < 0 ? -at : at >= n ? 2 * n - 2 - at : at;
}

/* The same in a circle; of an image that is cropped first, only what is left goes round. */
static int64_t circular_source(int64_t n, int64_t low, int64_t high, int64_t i)
{
    int64_t crop = low < 0 ? -low : 0, left = n - crop + (high < 0 ? high : 0), at = i - (low > 0 ? low : 0);
    return left > 0 ? crop + (at % left + left) % left : 0;
}

/* Offsets in `image`, along dimension d, of the elements of the padded one. */
static int64_t *sources(work *w, const op_call *k, const bp_tensor *image, const bp_tensor *padded, uint32_t p,
                        uint32_t d)
{
    enum pad_kind kind = kind_of(k->op);
    uint32_t from_end = image->rank - 1 - d, pairs = arg_list_len(k->args, p) / 2;
    bool pads = from_end < pairs;
    int64_t low = pads ? arg_list_dim(k->args, p, 2 * from_end).value : 0, n = tensor_dim(padded, d);
    int64_t high = pads ? arg_list_dim(k->args, p, 2 * from_end + 1).value : 0, size = tensor_dim(image, d);
    int64_t *out = work_alloc(w, n, sizeof *out);
    for (int64_t i = 0; out && i < n; i++)
        out[i] = (kind == PAD_CIRCULAR ? circular_source(size, low, high, i) : source_of(kind, size, i - low)) *
                 tensor_step(image, d);
    return out;
}

/* Visits the padded elements: copies from the image, or adds to it. */
static void visit(const bp_tensor *image, const bp_tensor *padded, int64_t *const *sources_of, bool adds)
{
    size_t size = dtype_size(image->dtype);
    walk v;
    walk_start(&v, padded->rank, padded->sizes);
    walk_add(&v, padded->strides);
    for (; v.left; walk_next(&v)) {
        int64_t at = 0;
        for (uint32_t d = 0; d < padded->rank; d++)
            at += sources_of[d][v.index[d]];
        char *cell = element(image, at), *outer = element(padded, v.at[0]);
        if (adds)
            dtype_store(image->dtype, cell,
                        num_add(dtype_load(image->dtype, cell), dtype_load(image->dtype, outer)));
        else
            memcpy(outer, cell, size);
    }
}

bp_status kernel_image_pad(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    const bp_tensor *image = arg_tensor(k->args, 0);
    int64_t *sources_of[5] = {NULL};
    for (uint32_t d = 0; d < image->rank; d++)
        sources_of[d] = sources(&w, k, image, k->out[0], 1, d);
    if (work_ok(&w))
        visit(image, k->out[0], sources_of, false);
    return work_end(&w);
}

bp_status kernel_image_pad_backward(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    const bp_tensor *grad = arg_tensor(k->args, 0);
    bp_tensor *out = work_out(&w, k->out[0], BP_DTYPE_UNSET);
    int64_t *sources_of[5] = {NULL};
    for (uint32_t d = 0; work_ok(&w) && d < grad->rank; d++)
        sources_of[d] = sources(&w, k, out, grad, 2, d);
    if (work_ok(&w)) {
        work_clear(out);
        visit(out, grad, sources_of, true);
    }
    return work_end(&w);
}

/* -- windows as columns -- */

static conv_geometry windows(bp_ctx *c, const op_call *k, uint32_t first, const bp_tensor *image)
{
    conv_geometry g = {.batch = image->rank == 4 ? tensor_dim(image, 0) : 1, .groups = 1,
                       .cx = tensor_dim(image, image->rank - 3), .x = {1, 0, 0}, .y = {1, 0, 0}, .k = {1, 0, 0},
                       .stride = {1, 0, 0}, .dilation = {1, 0, 0}};
    int64_t *const to[] = {g.k, g.dilation, g.pad, g.stride};
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t d = 0; d < 2; d++)
            to[i][1 + d] = dim_int(c, arg_list_dim(k->args, first + i, d));
    for (uint32_t d = 1; d < 3; d++) {
        g.x[d] = tensor_dim(image, image->rank - 3 + d);
        g.y[d] = (g.x[d] + 2 * g.pad[d] - g.dilation[d] * (g.k[d] - 1) - 1) / g.stride[d] + 1;
    }
    return g;
}

bp_status kernel_im2col(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *in = work_in(&w, arg_tensor(k->args, 0), BP_DTYPE_UNSET), *out = k->out[0];
    if (work_ok(&w)) {
        conv_geometry g = windows(c, k, 1, in);
        conv_to_columns(&g, in->dtype, tensor_ptr(in), tensor_ptr(out));
    }
    return work_end(&w);
}

bp_status kernel_col2im(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    bp_tensor *in = work_in(&w, arg_tensor(k->args, 0), BP_DTYPE_UNSET), *out = k->out[0];
    if (work_ok(&w)) {
        conv_geometry g = windows(c, k, 2, out);
        work_clear(out);
        conv_from_columns(&g, in->dtype, tensor_ptr(in), tensor_ptr(out));
    }
    return work_end(&w);
}
