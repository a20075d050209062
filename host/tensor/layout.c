/* Layout rules: which strides a result has. They follow PyTorch's to the letter, since strides are part of what a
 * program can see (as_strided, contiguous, guards). Sizes of 0 and 1 make most of the difference. */
#include "host/tensor/tensor.h"
#include "sdk/base/checked.h"
#include <inttypes.h>
#include <stdio.h>

/* -- facts of a tensor's own layout -------------------------------------------------------------------------------- */

static bool has_no_element(const bp_tensor *t)
{
    for (uint32_t d = 0; d < t->rank; d++)
        if (tensor_dim(t, d) == 0)
            return true;
    return false;
}

/* Whether strides are those of the dimensions in this order, innermost first. */
static bool strides_follow(const bp_tensor *t, const uint8_t *order)
{
    int64_t expected = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        uint32_t d = order ? order[i] : t->rank - 1 - i;
        if (tensor_dim(t, d) == 1)
            continue;
        if (tensor_step(t, d) != expected)
            return false;
        expected *= tensor_dim(t, d);
    }
    return true;
}

bool tensor_is_contiguous(const bp_tensor *t)
{
    return has_no_element(t) || strides_follow(t, NULL);
}

static const uint8_t LAST_2D[] = {1, 3, 2, 0}, LAST_3D[] = {1, 4, 3, 2, 0};

bool tensor_is_channels_last(const bp_tensor *t)
{
    return t->rank == 4 ? strides_follow(t, LAST_2D) : t->rank == 5 && strides_follow(t, LAST_3D);
}

bool tensor_is_dense(const bp_tensor *t)
{
    if (tensor_is_contiguous(t))
        return true;
    uint8_t order[TENSOR_MAX_RANK];
    uint32_t n = 0;
    for (uint8_t d = 0; d < t->rank; d++) {
        if (tensor_dim(t, d) < 2)
            continue;
        uint32_t at = n++;
        for (; at && tensor_step(t, order[at - 1]) > tensor_step(t, d); at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    int64_t expected = 1;
    for (uint32_t i = 0; i < n; i++) {
        if (tensor_step(t, order[i]) != expected)
            return false;
        expected *= tensor_dim(t, order[i]);
    }
    return true;
}

/* Whether strides grow in channels-last order. Ambiguous shapes (one channel, one pixel) count as contiguous. */
static bool looks_channels_last(const bp_tensor *t, const uint8_t *order)
{
    int64_t least = 0;
    if (tensor_step(t, 1) == 0)
        return false;
    for (uint32_t i = 0; i < t->rank; i++) {
        uint32_t d = order[i];
        if (tensor_dim(t, d) == 0 || tensor_step(t, d) < least || (d == 0 && least == tensor_step(t, 1)))
            return false;
        least = tensor_step(t, d) * (tensor_dim(t, d) > 1 ? tensor_dim(t, d) : 1);
    }
    return true;
}

int32_t tensor_suggest_format(const bp_tensor *t)
{
    if (t->rank == 4 && looks_channels_last(t, LAST_2D))
        return BP_CHANNELS_LAST;
    if (t->rank == 5 && looks_channels_last(t, LAST_3D))
        return BP_CHANNELS_LAST_3D;
    return BP_CONTIGUOUS;
}

/* -- formats ------------------------------------------------------------------------------------------------------- */

void layout_contiguous(bp_ctx *c, uint32_t rank, const bp_dim *sizes, bp_dim *strides)
{
    bp_dim step = dim_const(1);
    for (uint32_t d = rank; d-- > 0;) {
        strides[d] = step;
        if (d && !dim_is(sizes[d], 0))
            step = dim_mul(c, step, sizes[d]);
    }
}

static void strides_in_order(bp_ctx *c, uint32_t rank, const bp_dim *sizes, const uint8_t *order, bp_dim *strides)
{
    bp_dim step = dim_const(1);
    for (uint32_t i = 0; i < rank; i++) {
        strides[order[i]] = step;
        step = dim_mul(c, step, sizes[order[i]]);
    }
}

bp_status layout_memory_format(bp_ctx *c, uint32_t rank, const bp_dim *sizes, int32_t format, bp_dim *strides)
{
    uint32_t want = format == BP_CHANNELS_LAST ? 4 : format == BP_CHANNELS_LAST_3D ? 5 : rank;
    if (rank != want)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "rank %u tensor where memory format %s needs rank %u", rank,
                        want == 4 ? "channels_last" : "channels_last_3d", want);
    if (format == BP_CONTIGUOUS || format == BP_MEMORY_FORMAT_UNSET)
        layout_contiguous(c, rank, sizes, strides);
    else if (format == BP_CHANNELS_LAST || format == BP_CHANNELS_LAST_3D)
        strides_in_order(c, rank, sizes, want == 4 ? LAST_2D : LAST_3D, strides);
    else
        return ctx_fail(c, BP_INVALID_ARGUMENT, "memory format %d gives no strides of its own", (int)format);
    return c->diag.code;
}

/* -- broadcasting -------------------------------------------------------------------------------------------------- */

static void print_shape(uint32_t rank, const bp_dim *sizes, char *dst, size_t cap)
{
    int n = snprintf(dst, cap, "[");
    for (uint32_t d = 0; d < rank && n >= 0 && (size_t)n < cap; d++)
        n += snprintf(dst + n, cap - (size_t)n, "%s%" PRId64, d ? ", " : "", sizes[d].value);
    if (n >= 0 && (size_t)n < cap)
        snprintf(dst + n, cap - (size_t)n, "]");
}

static bp_status refuse_broadcast(bp_ctx *c, uint32_t ra, const bp_dim *a, uint32_t rb, const bp_dim *b, uint32_t index,
                                  int64_t va, int64_t vb)
{
    char sa[256], sb[256];
    print_shape(ra, a, sa, sizeof sa);
    print_shape(rb, b, sb, sizeof sb);
    bp_status s = ctx_fail(c, BP_INVALID_ARGUMENT,
                           "the size of tensor a (%" PRId64 ") must match the size of tensor b (%" PRId64
                           ") at non-singleton dimension %u", va, vb, index);
    diag_detail(&c->diag, "Shapes %s and %s do not broadcast.", sa, sb);
    return s;
}

bp_status layout_broadcast(bp_ctx *c, uint32_t ra, const bp_dim *a, uint32_t rb, const bp_dim *b, bp_dim *out)
{
    uint32_t rank = ra > rb ? ra : rb;
    for (uint32_t i = 0; i < rank; i++) { /* from the last dimension, so that the rightmost mismatch is named */
        uint32_t d = rank - 1 - i;
        bp_dim x = i < ra ? a[ra - 1 - i] : dim_const(1), y = i < rb ? b[rb - 1 - i] : dim_const(1);
        if (!dim_eq(x, y) && !dim_is(x, 1) && !dim_is(y, 1))
            return refuse_broadcast(c, ra, a, rb, b, d, x.value, y.value);
        out[d] = dim_is(x, 1) ? y : x;
    }
    return BP_OK;
}

/* -- the iterator's order ------------------------------------------------------------------------------------------ */

/* 1: dimension x belongs after y; -1: before; 0: this operand does not say. */
static int compare_dims(int64_t stride_x, int64_t stride_y, int64_t size_x, int64_t size_y)
{
    if (stride_x == 0 || stride_y == 0)
        return 0;
    if (stride_x != stride_y)
        return stride_x < stride_y ? -1 : 1;
    return size_x > size_y ? 1 : 0;
}

/* Stride of an operand along dimension d of the broadcast shape; 0 where it is broadcast. */
static int64_t operand_stride(const bp_tensor *t, uint32_t d, uint32_t rank, const bp_dim *sizes)
{
    if (!t || d < rank - t->rank)
        return 0;
    uint32_t own = d - (rank - t->rank);
    return tensor_dim(t, own) == 1 && !dim_is(sizes[d], 1) ? 0 : tensor_step(t, own);
}

typedef struct { uint32_t n; const bp_tensor *const *operands; uint32_t rank; const bp_dim *sizes; } operand_set;

static int compare_all(const operand_set *s, uint8_t x, uint8_t y)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const bp_tensor *t = s->operands[i];
        if (!t || t->rank == 0)
            continue;
        int r = compare_dims(operand_stride(t, x, s->rank, s->sizes), operand_stride(t, y, s->rank, s->sizes),
                             s->sizes[x].value, s->sizes[y].value);
        if (r)
            return r;
    }
    return 0;
}

/* Dimensions from the fastest to the slowest. An insertion sort that goes on past ties, as PyTorch's: the order of
 * ambiguous dimensions depends on it. */
static void sort_dims(const operand_set *s, uint8_t *perm)
{
    for (uint32_t i = 0; i < s->rank; i++)
        perm[i] = (uint8_t)(s->rank - 1 - i);
    for (uint32_t i = 1; i < s->rank; i++) {
        uint32_t at = i;
        for (uint32_t j = i; j-- > 0;) {
            int r = compare_all(s, perm[j], perm[at]);
            if (r < 0)
                break;
            if (r > 0) {
                uint8_t swap = perm[j];
                perm[j] = perm[at];
                perm[at] = swap;
                at = j;
            }
        }
    }
}

static bool same_shape(const bp_tensor *t, uint32_t rank, const bp_dim *sizes)
{
    if (!t || t->rank != rank)
        return t == NULL && rank == 0;
    for (uint32_t d = 0; d < rank; d++)
        if (!dim_eq(t->sizes[d], sizes[d]))
            return false;
    return true;
}

static bool all_of(const operand_set *s, bool (*holds)(const bp_tensor *t))
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->operands[i] && !holds(s->operands[i]))
            return false;
    return true;
}

static bool is_channels_last_2d(const bp_tensor *t)
{
    return t->rank == 4 && tensor_is_channels_last(t);
}

static bool all_have_strides_of(const operand_set *s, const bp_tensor *first)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t d = 0; d < s->rank; d++)
            if (s->operands[i] && !dim_eq(s->operands[i]->strides[d], first->strides[d]))
                return false;
    return true;
}

/* Operands of one shape that are all contiguous, all channels-last, or all dense with equal strides: the result is as
 * they are. */
static bool fast_layout(bp_ctx *c, const operand_set *s, bp_dim *strides)
{
    const bp_tensor *first = NULL;
    for (uint32_t i = 0; i < s->n; i++) {
        if (!same_shape(s->operands[i], s->rank, s->sizes))
            return false;
        first = first ? first : s->operands[i];
    }
    if (!first || all_of(s, tensor_is_contiguous)) {
        layout_contiguous(c, s->rank, s->sizes, strides);
    } else if (all_of(s, is_channels_last_2d)) {
        strides_in_order(c, s->rank, s->sizes, LAST_2D, strides);
    } else if (all_of(s, tensor_is_dense) && all_have_strides_of(s, first)) {
        for (uint32_t d = 0; d < s->rank; d++)
            strides[d] = first->strides[d];
    } else {
        return false;
    }
    return true;
}

void layout_pointwise(bp_ctx *c, uint32_t n, const bp_tensor *const *operands, uint32_t rank, const bp_dim *sizes,
                      bp_dim *strides)
{
    operand_set s = {n, operands, rank, sizes};
    uint8_t perm[TENSOR_MAX_RANK];
    if (fast_layout(c, &s, strides))
        return;
    sort_dims(&s, perm);
    bool row_major = true;
    for (uint32_t i = 0; i < rank; i++)
        row_major &= perm[i] == rank - 1 - i;
    if (row_major)
        layout_contiguous(c, rank, sizes, strides);
    else
        strides_in_order(c, rank, sizes, perm, strides);
}

void layout_preserve(bp_ctx *c, const bp_tensor *t, bp_dim *strides)
{
    if (tensor_is_dense(t)) {
        for (uint32_t d = 0; d < t->rank; d++)
            strides[d] = t->strides[d];
        return;
    }
    uint8_t perm[TENSOR_MAX_RANK];
    sort_dims(&(operand_set){1, &t, t->rank, t->sizes}, perm);
    bp_dim step = dim_const(1);
    for (uint32_t i = 0; i < t->rank; i++) {
        strides[perm[i]] = step;
        if (tensor_dim(t, perm[i]) > 1)
            step = dim_mul(c, step, t->sizes[perm[i]]);
    }
}

/* -- views --------------------------------------------------------------------------------------------------------- */

static bool shapes_equal(uint32_t ra, const bp_dim *a, uint32_t rb, const bp_dim *b)
{
    for (uint32_t d = 0; d < ra && ra == rb; d++)
        if (!dim_eq(a[d], b[d]))
            return false;
    return ra == rb;
}

/* Lays the new dimensions, last first, over chunks of the old ones that lie in memory without a gap. */
static bool cover_chunks(const bp_tensor *t, uint32_t rank, const bp_dim *sizes, bp_dim *strides)
{
    int64_t base = tensor_step(t, t->rank - 1u), old = 1, fresh = 1;
    uint32_t v = rank;
    for (uint32_t d = t->rank; d-- > 0;) {
        old *= tensor_dim(t, d);
        if (d && (tensor_dim(t, d - 1) == 1 || tensor_step(t, d - 1) == old * base))
            continue; /* the chunk goes on */
        for (; v && (fresh < old || sizes[v - 1].value == 1); v--) {
            strides[v - 1] = dim_const(fresh * base);
            fresh *= sizes[v - 1].value;
        }
        if (fresh != old)
            return false;
        if (d) {
            base = tensor_step(t, d - 1);
            old = fresh = 1;
        }
    }
    return v == 0;
}

bool layout_view(bp_ctx *c, const bp_tensor *t, uint32_t rank, const bp_dim *sizes, bp_dim *strides)
{
    if (has_no_element(t)) {
        if (!shapes_equal(t->rank, t->sizes, rank, sizes)) {
            layout_contiguous(c, rank, sizes, strides);
            return true;
        }
        for (uint32_t d = 0; d < rank; d++)
            strides[d] = t->strides[d];
        return true;
    }
    if (t->rank)
        return cover_chunks(t, rank, sizes, strides);
    for (uint32_t d = 0; d < rank; d++)
        strides[d] = dim_const(1);
    return true;
}

int64_t layout_wrap_dim(bp_ctx *c, int64_t d, uint32_t rank)
{
    int64_t n = rank ? rank : 1;
    if (d >= -n && d < n)
        return d < 0 ? d + n : d;
    ctx_fail(c, BP_INVALID_ARGUMENT, "dimension %" PRId64 " is out of range: expected %" PRId64 " to %" PRId64, d, -n,
             n - 1);
    return 0;
}
