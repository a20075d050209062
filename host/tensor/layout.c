/* Layout rules: which strides a result has. They follow PyTorch's to the letter, since strides are part of what a
 * program can see (as_strided, contiguous, guards). Sizes of 0 and 1 make most of the difference.
 *
 * Of symbolic sizes a rule first looks how strides are written and what is proven; only what neither decides is asked,
 * and so guarded. Where data decide and nothing is known of them, the answer is the one that is right in any case: not
 * contiguous, not of size 1. */
#include "host/tensor/tensor.h"
#include "host/sym/env.h"
#include "sdk/base/str.h"
#include <inttypes.h>
#include <stdio.h>

/* -- sizes, as questions ------------------------------------------------------------------------------------------- */

/* What is proven; nothing is asked. */
static bool proven(enum dim_rel rel, bp_dim a, bp_dim b) { return dim_prove(rel, a, b) == DIM_TRUE; }

static bool known_equal(bp_dim a, bp_dim b)
{
    return (a.sym | b.sym) ? dim_same(a, b) || proven(DIM_EQ, a, b) : a.value == b.value;
}

static bool is(bp_dim a, int64_t v)
{
    return a.sym ? dim_eq_or_false(a, dim_const(v)) : a.value == v;
}

static bool less(bp_dim a, bp_dim b)
{
    return (a.sym | b.sym) ? dim_decide(DIM_LT, a, b) == DIM_TRUE : a.value < b.value;
}

static bool equal(bp_dim a, bp_dim b)
{
    return (a.sym | b.sym) ? dim_eq_or_false(a, b) : a.value == b.value;
}

/* Without a context: what is counted here was counted when the tensor was made. */
static bp_dim times(bp_dim a, bp_dim b)
{
    return (a.sym | b.sym) ? dim_mul(sym_context(), a, b) : dim_const((int64_t)((uint64_t)a.value * (uint64_t)b.value));
}

/* d, or 1 where it is 0: what a stride grows by. */
static bp_dim at_least_one(bp_dim d)
{
    if (!d.sym)
        return d.value > 0 ? d : dim_const(1);
    return proven(DIM_LT, dim_const(0), d) ? d : dim_max(sym_context(), d, dim_const(1));
}

static bool has_symbol(const bp_tensor *t)
{
    int64_t sym = 0;
    for (uint32_t d = 0; d < t->rank; d++)
        sym |= t->sizes[d].sym | t->strides[d].sym;
    return sym != 0;
}

/* -- facts of a tensor's own layout -------------------------------------------------------------------------------- */

static bool has_no_element(const bp_tensor *t, bool ask)
{
    for (uint32_t d = 0; d < t->rank; d++)
        if (ask ? is(t->sizes[d], 0) : known_equal(t->sizes[d], dim_const(0)))
            return true;
    return false;
}

/* Whether strides are those of the dimensions in this order, innermost first. With `ask` false, whether that is proven;
 * `grow`: a size of 0 counts as 1. */
static bool strides_follow(const bp_tensor *t, const uint8_t *order, bool grow, bool ask)
{
    bp_dim expected = dim_const(1);
    for (uint32_t i = 0; i < t->rank; i++) {
        uint32_t d = order ? order[i] : t->rank - 1 - i;
        bp_dim size = t->sizes[d], stride = t->strides[d];
        if (!known_equal(stride, expected)) { /* else a size of 1 makes no difference */
            if (ask ? is(size, 1) : known_equal(size, dim_const(1)))
                continue;
            if (!ask || !equal(stride, expected))
                return false;
        }
        expected = times(expected, grow ? at_least_one(size) : size);
    }
    return true;
}

bool tensor_is_contiguous(const bp_tensor *t)
{
    if (has_no_element(t, false) || strides_follow(t, NULL, true, false))
        return true;
    return has_symbol(t) && (has_no_element(t, true) || strides_follow(t, NULL, true, true));
}

static const uint8_t LAST_2D[] = {1, 3, 2, 0}, LAST_3D[] = {1, 4, 3, 2, 0};

bool tensor_is_channels_last(const bp_tensor *t)
{
    const uint8_t *order = t->rank == 4 ? LAST_2D : t->rank == 5 ? LAST_3D : NULL;
    return order && strides_follow(t, order, false, has_symbol(t));
}

bool tensor_is_dense(const bp_tensor *t)
{
    if (tensor_is_contiguous(t))
        return true;
    uint8_t order[TENSOR_MAX_RANK];
    uint32_t n = 0;
    for (uint8_t d = 0; d < t->rank; d++) {
        if (is(t->sizes[d], 1) || is(t->sizes[d], 0))
            continue;
        uint32_t at = n++;
        for (; at && less(t->strides[d], t->strides[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    bp_dim expected = dim_const(1);
    for (uint32_t i = 0; i < n; i++) {
        if (!equal(t->strides[order[i]], expected))
            return false;
        expected = times(expected, t->sizes[order[i]]);
    }
    return true;
}

/* Whether strides grow in channels-last order. Ambiguous shapes (one channel, one pixel) count as contiguous. */
static bool looks_channels_last(const bp_tensor *t, const uint8_t *order)
{
    bp_dim least = dim_const(0);
    if (is(t->strides[1], 0))
        return false;
    for (uint32_t i = 0; i < t->rank; i++) {
        uint32_t d = order[i];
        if (is(t->sizes[d], 0) || less(t->strides[d], least) || (d == 0 && equal(least, t->strides[1])))
            return false;
        least = times(t->strides[d], at_least_one(t->sizes[d]));
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
        if (d)
            step = dim_mul(c, step, at_least_one(sizes[d]));
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

static void print_shape(uint32_t rank, const bp_dim *sizes, buf *out)
{
    buf_putc(out, '[');
    for (uint32_t d = 0; d < rank; d++) {
        buf_puts(out, d ? ", " : "");
        sym_print(sym_current(), sizes[d], false, out);
    }
    buf_putc(out, ']');
}

static bp_status refuse_broadcast(bp_ctx *c, uint32_t ra, const bp_dim *a, uint32_t rb, const bp_dim *b, uint32_t index,
                                  bp_dim va, bp_dim vb)
{
    buf shapes[2] = {{0}, {0}}, sizes[2] = {{0}, {0}};
    print_shape(ra, a, &shapes[0]);
    print_shape(rb, b, &shapes[1]);
    sym_print(sym_current(), va, false, &sizes[0]);
    sym_print(sym_current(), vb, false, &sizes[1]);
    bp_status s = ctx_fail(c, BP_INVALID_ARGUMENT,
                           "the size of tensor a (%s) must match the size of tensor b (%s) at non-singleton dimension "
                           "%u", buf_text(&sizes[0]), buf_text(&sizes[1]), index);
    diag_detail(&c->diag, "Shapes %s and %s do not broadcast.", buf_text(&shapes[0]), buf_text(&shapes[1]));
    for (int i = 0; i < 2; i++) {
        buf_fini(&shapes[i]);
        buf_fini(&sizes[i]);
    }
    return s;
}

/* Whether it is a symbol of which only a run tells the value. */
static bool is_data(bp_dim d)
{
    return d.sym && sym_current() && sym_is_unbacked(sym_current(), d);
}

/* Whether d is the size 1 that is broadcast against `other`. Which question is asked the hints tell; the answer that is
 * built on is guarded. */
static bool counts_as_one(bp_dim d, bp_dim other)
{
    if (!d.sym)
        return d.value == 1;
    if (dim_same(d, other) || proven(DIM_NE, d, dim_const(1)))
        return false;
    if (known_equal(d, dim_const(1)))
        return true;
    return !is_data(d) && !is_data(other) && dim_hint(d) == 1 && dim_hint(other) != 1 && dim_is(d, 1);
}

bool layout_meet(bp_dim a, bp_dim b, bp_dim *out)
{
    if (counts_as_one(a, b))
        *out = b;
    else if (counts_as_one(b, a))
        *out = a;
    else if (dim_same(a, b) || dim_require(DIM_EQ, a, b))
        *out = is_data(a) || !b.sym ? b : a;
    else
        return false;
    return true;
}

bool layout_expands(bp_dim from, bp_dim to)
{
    return dim_same(from, to) || counts_as_one(from, to) || dim_require(DIM_EQ, from, to);
}

bool layout_repeats(bp_dim from, bp_dim to)
{
    return !dim_same(from, to) && known_equal(from, dim_const(1)) && !is(to, 1);
}

bp_status layout_broadcast(bp_ctx *c, uint32_t ra, const bp_dim *a, uint32_t rb, const bp_dim *b, bp_dim *out)
{
    uint32_t rank = ra > rb ? ra : rb;
    for (uint32_t i = 0; i < rank; i++) { /* from the last dimension, so that the rightmost mismatch is named */
        uint32_t d = rank - 1 - i;
        bp_dim x = i < ra ? a[ra - 1 - i] : dim_const(1), y = i < rb ? b[rb - 1 - i] : dim_const(1);
        if (!layout_meet(x, y, &out[d]))
            return refuse_broadcast(c, ra, a, rb, b, d, x, y);
    }
    return c->diag.code;
}

/* -- the iterator's order ------------------------------------------------------------------------------------------ */

/* 1: dimension x belongs after y; -1: before; 0: this operand does not say. */
static int compare_dims(bp_dim stride_x, bp_dim stride_y, bp_dim size_x, bp_dim size_y)
{
    if (is(stride_x, 0) || is(stride_y, 0))
        return 0;
    if (!equal(stride_x, stride_y))
        return less(stride_x, stride_y) ? -1 : 1;
    return less(size_y, size_x) ? 1 : 0;
}

/* Stride of an operand along dimension d of the broadcast shape; 0 where it is broadcast. */
static bp_dim operand_stride(const bp_tensor *t, uint32_t d, uint32_t rank, const bp_dim *sizes)
{
    if (!t || d < rank - t->rank)
        return dim_const(0);
    uint32_t own = d - (rank - t->rank);
    return layout_repeats(t->sizes[own], sizes[d]) ? dim_const(0) : t->strides[own];
}

typedef struct { uint32_t n; const bp_tensor *const *operands; uint32_t rank; const bp_dim *sizes; } operand_set;

static int compare_all(const operand_set *s, uint8_t x, uint8_t y)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const bp_tensor *t = s->operands[i];
        if (!t || t->rank == 0)
            continue;
        int r = compare_dims(operand_stride(t, x, s->rank, s->sizes), operand_stride(t, y, s->rank, s->sizes),
                             s->sizes[x], s->sizes[y]);
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
        if (!equal(t->sizes[d], sizes[d]))
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
            if (s->operands[i] && !equal(s->operands[i]->strides[d], first->strides[d]))
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
        step = dim_mul(c, step, at_least_one(t->sizes[perm[i]]));
    }
}

/* -- views --------------------------------------------------------------------------------------------------------- */

static bool shapes_equal(uint32_t ra, const bp_dim *a, uint32_t rb, const bp_dim *b)
{
    for (uint32_t d = 0; d < ra && ra == rb; d++)
        if (!equal(a[d], b[d]))
            return false;
    return ra == rb;
}

/* Whether dimension d - 1 goes on where the chunk that ends with d, of `old` elements and `base` apart, begins. */
static bool chunk_goes_on(const bp_tensor *t, uint32_t d, bp_dim old, bp_dim base)
{
    bp_dim stride = t->strides[d - 1], whole = times(old, base);
    return known_equal(stride, whole) || is(t->sizes[d - 1], 1) || equal(stride, whole);
}

/* Lays the new dimensions, last first, over chunks of the old ones that lie in memory without a gap. The first chunk
 * takes what is left: both shapes have equally many elements. */
static bool cover_chunks(const bp_tensor *t, uint32_t rank, const bp_dim *sizes, bp_dim *strides)
{
    bp_dim base = t->strides[t->rank - 1], old = dim_const(1), fresh = dim_const(1);
    uint32_t v = rank;
    for (uint32_t d = t->rank; d-- > 0;) {
        old = times(old, t->sizes[d]);
        if (d && chunk_goes_on(t, d, old, base))
            continue;
        for (; v && (d == 0 || (!dim_same(fresh, old) && less(fresh, old)) || is(sizes[v - 1], 1)); v--) {
            strides[v - 1] = times(fresh, base);
            fresh = times(fresh, sizes[v - 1]);
        }
        if (d == 0)
            break;
        if (!equal(fresh, old))
            return false;
        base = t->strides[d - 1];
        old = fresh = dim_const(1);
    }
    return v == 0;
}

bool layout_view(bp_ctx *c, const bp_tensor *t, uint32_t rank, const bp_dim *sizes, bp_dim *strides)
{
    if (has_no_element(t, true)) {
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
