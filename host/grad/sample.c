/* The derivative of grid_sampler's gradient.
 *
 * A sample is a sum of input elements around the place that the grid says, each times the product of a weight an axis.
 * The gradient of the grid is the sum with one weight's slope in its place; here that sum is differentiated again. A
 * coordinate that is clipped or mirrored moves the place by 0, 1 or -1 times what it would, without curvature. */
#include "host/grad/write.h"

enum { NEAREST = 1, BICUBIC = 2 };           /* interpolation_mode, beside linear */
enum { PAD_ZEROS, PAD_BORDER, PAD_MIRROR };

/* An element's position along an axis (in bounds), its weight, and that weight's first and second derivative by the
 * grid's number; NULL: zero. */
typedef struct { bp_tensor *at, *w[3]; } tap;

typedef struct {
    int64_t size;
    uint32_t ntaps;
    tap taps[4];
    bp_tensor *along; /* the gradient of the grid's gradient */
    bp_tensor *sum;   /* what flows to the grid */
} axis;

typedef struct {
    bp_ctx *c;
    bp_tensor *go, *input, *grid;
    int64_t mode, padding;
    bool align;
    uint32_t naxes;
    axis axes[3];      /* in the grid's order: the input's last dimension first */
    bp_tensor *of_go, *of_input;
} sampling;

static bp_tensor *plus(bp_ctx *c, bp_tensor *t, double k)
{
    return bp_aten_add_scalar(c, t, bp_scalar_float(k), (bp_scalar){0});
}

/* ((a x + b) x + d) x + e */
static bp_tensor *cubic(bp_ctx *c, bp_tensor *x, double a, double b, double d, double e)
{
    bp_tensor *t = plus(c, grad_scaled(c, x, a), b);
    t = plus(c, grad_mul(c, t, x), d);
    return plus(c, grad_mul(c, t, x), e);
}

/* t as a number of go's type. */
static bp_tensor *numbers(const sampling *s, bp_tensor *t)
{
    return bp_aten_private_to_copy_default(s->c, t, s->grid->dtype, 0, (bp_device){0}, (bp_scalar){0}, 0, 0);
}

/* -- coordinates --------------------------------------------------------------------------------------------------- */

/* x kept within [0, size - 1]; *slope times 0 where it was not inside. */
static bp_tensor *clipped(const sampling *s, bp_tensor *x, int64_t size, bp_tensor **slope)
{
    bp_ctx *c = s->c;
    double last = (double)(size - 1);
    bp_tensor *inside = bp_aten_logical_and_default(c, bp_aten_gt_scalar(c, x, bp_scalar_float(0)),
                                                    bp_aten_lt_scalar(c, x, bp_scalar_float(last)));
    *slope = grad_mul(c, *slope, numbers(s, inside));
    return bp_aten_clamp_default(c, x, bp_scalar_float(0), bp_scalar_float(last));
}

/* x mirrored at the first and last element (or at their outer edges), as often as it takes. */
static bp_tensor *mirrored(const sampling *s, bp_tensor *x, int64_t size, bp_tensor **slope)
{
    bp_ctx *c = s->c;
    double low = s->align ? 0 : -0.5, span = (double)(s->align ? size - 1 : size);
    if (span <= 0) {
        *slope = grad_zeros(c, x);
        return grad_zeros(c, x);
    }
    bp_tensor *u = plus(c, x, -low), *away = bp_aten_abs_default(c, u);
    bp_tensor *before = bp_aten_lt_scalar(c, u, bp_scalar_int(0));
    bp_tensor *turns = bp_aten_floor_default(c, bp_aten_div_scalar(c, away, bp_scalar_float(span)));
    bp_tensor *rest = bp_aten_fmod_scalar(c, away, bp_scalar_float(span));
    bp_tensor *odd = bp_aten_ne_scalar(c, bp_aten_remainder_scalar(c, turns, bp_scalar_int(2)), bp_scalar_int(0));
    bp_tensor *back = bp_aten_ne_tensor(c, odd, before);
    *slope = bp_aten_where_self(c, back, grad_neg(c, *slope), *slope);
    return plus(c, bp_aten_where_self(c, odd, plus(c, grad_neg(c, rest), span), rest), low);
}

static bp_tensor *padded(const sampling *s, bp_tensor *x, int64_t size, bp_tensor **slope)
{
    if (s->padding == PAD_MIRROR)
        x = mirrored(s, x, size, slope);
    return s->padding == PAD_ZEROS ? x : clipped(s, x, size, slope);
}

/* -- weights ------------------------------------------------------------------------------------------------------- */

/* A tap at place x (a whole number), which counts only within bounds. */
static void tap_make(const sampling *s, tap *t, bp_tensor *x, int64_t size)
{
    bp_ctx *c = s->c;
    bp_tensor *low = bp_aten_ge_scalar(c, x, bp_scalar_int(0)), *high = bp_aten_lt_scalar(c, x, bp_scalar_int(size));
    bp_tensor *inside = numbers(s, bp_aten_logical_and_default(c, low, high));
    bp_tensor *kept = bp_aten_clamp_default(c, x, bp_scalar_int(0), bp_scalar_int(size - 1));
    t->at = bp_aten_private_to_copy_default(c, kept, BP_I64, 0, (bp_device){0}, (bp_scalar){0}, 0, 0);
    for (int k = 0; k < 3; k++)
        t->w[k] = t->w[k] ? grad_mul(c, t->w[k], inside) : NULL;
}

static void linear_taps(const sampling *s, axis *a, bp_tensor *x, bp_tensor *slope)
{
    bp_ctx *c = s->c;
    x = padded(s, x, a->size, &slope);
    bp_tensor *first = bp_aten_floor_default(c, x), *t = grad_sub(c, x, first);
    a->ntaps = 2;
    a->taps[0] = (tap){.w = {plus(c, grad_neg(c, t), 1), grad_neg(c, slope), NULL}};
    a->taps[1] = (tap){.w = {t, slope, NULL}};
    tap_make(s, &a->taps[0], first, a->size);
    tap_make(s, &a->taps[1], plus(c, first, 1), a->size);
}

/* Of the convolution with A = -0.75, at distance x: below 1, and from 1 to 2. */
static void cubic_weight(const sampling *s, tap *to, bp_tensor *x, bool near, double sign, bp_tensor *slope)
{
    static const double A = -0.75;
    bp_ctx *c = s->c;
    bp_tensor *first = near ? cubic(c, x, 0, 3 * (A + 2), -2 * (A + 3), 0) : cubic(c, x, 0, 3 * A, -10 * A, 8 * A);
    bp_tensor *second = near ? cubic(c, x, 0, 0, 6 * (A + 2), -2 * (A + 3)) : cubic(c, x, 0, 0, 6 * A, -10 * A);
    to->w[0] = near ? cubic(c, x, A + 2, -(A + 3), 0, 1) : cubic(c, x, A, -5 * A, 8 * A, -4 * A);
    to->w[1] = grad_mul(c, grad_scaled(c, first, sign), slope);
    to->w[2] = grad_mul(c, second, grad_mul(c, slope, slope));
}

static void cubic_taps(const sampling *s, axis *a, bp_tensor *x, bp_tensor *slope)
{
    bp_ctx *c = s->c;
    bp_tensor *first = bp_aten_floor_default(c, x), *t = grad_sub(c, x, first);
    a->ntaps = 4;
    for (int k = 0; k < 4; k++) {
        bp_tensor *away = k < 2 ? plus(c, t, 1 - k) : plus(c, grad_neg(c, t), k - 1), *unused = slope;
        cubic_weight(s, &a->taps[k], away, k == 1 || k == 2, k < 2 ? 1 : -1, slope);
        tap_make(s, &a->taps[k], padded(s, plus(c, first, k - 1), a->size, &unused), a->size);
    }
}

static void axis_make(sampling *s, uint32_t d, bp_tensor *of_grid)
{
    bp_ctx *c = s->c;
    axis *a = &s->axes[d];
    bp_tensor *g = bp_aten_select_int(c, s->grid, -1, bp_dim_of(d));
    a->size = dim_int(c, grad_size(s->input, -1 - (int32_t)d)); /* a number: halves of it are factors */
    double by = (double)(s->align ? a->size - 1 : a->size) / 2;
    bp_tensor *x = plus(c, grad_scaled(c, g, by), s->align ? by : by - 0.5), *slope = plus(c, grad_scaled(c, g, 0), by);
    a->along = bp_aten_select_int(c, of_grid, -1, bp_dim_of(d));
    (s->mode == BICUBIC ? cubic_taps : linear_taps)(s, a, x, slope);
}

/* -- sums ---------------------------------------------------------------------------------------------------------- */

/* The product of a weight an axis, each derived as often as `times` says; NULL: zero. */
static bp_tensor *weight(const sampling *s, const uint32_t *at, const int *times)
{
    bp_tensor *product = NULL;
    for (uint32_t d = 0; d < s->naxes; d++) {
        bp_tensor *w = s->axes[d].taps[at[d]].w[times[d]];
        if (!w)
            return NULL;
        product = product ? grad_mul(s->c, product, w) : w;
    }
    return product;
}

/* The slope of an element's weight along the gradient, derived once more by axis `by` (naxes: not derived). */
static bp_tensor *slope_along(const sampling *s, const uint32_t *at, uint32_t by)
{
    bp_tensor *sum = NULL;
    for (uint32_t d = 0; d < s->naxes; d++) {
        int times[3] = {0};
        times[d]++;
        if (by < s->naxes)
            times[by]++;
        bp_tensor *w = weight(s, at, times);
        sum = w ? grad_add(s->c, sum, grad_mul(s->c, w, s->axes[d].along)) : sum;
    }
    return sum;
}

/* Where the element is in its plane: (N, 1, places). */
static bp_tensor *position(const sampling *s, const uint32_t *at)
{
    bp_ctx *c = s->c;
    bp_tensor *sum = NULL;
    for (uint32_t d = s->naxes; d-- > 0;) {
        const axis *a = &s->axes[d];
        sum = sum ? bp_aten_mul_scalar(c, sum, bp_scalar_int(a->size)) : NULL;
        sum = grad_add(c, sum, a->taps[at[d]].at);
    }
    return bp_aten_unsqueeze_default(c, bp_aten_flatten_using_ints(c, sum, 1, -1), 1);
}

/* (N, places ...) as (N, 1, places) */
static bp_tensor *line(const sampling *s, bp_tensor *t)
{
    return t ? bp_aten_unsqueeze_default(s->c, bp_aten_flatten_using_ints(s->c, t, 1, -1), 1) : NULL;
}

/* What one element of all around a place adds. */
static void add_element(sampling *s, const uint32_t *at, bp_tensor *go, bp_tensor *planes)
{
    bp_ctx *c = s->c;
    bp_tensor *where = bp_aten_expand_default(c, position(s, at), grad_sizes(go), 0);
    bp_tensor *value = bp_aten_gather_default(c, planes, 2, where, 0), *along = line(s, slope_along(s, at, s->naxes));
    s->of_go = grad_add(c, s->of_go, grad_mul(c, value, along));
    s->of_input = bp_aten_scatter_add_default(c, s->of_input, 2, where, grad_mul(c, go, along));
    bp_tensor *of_weight = grad_sum(c, grad_mul(c, go, value), 1, true);
    for (uint32_t d = 0; d < s->naxes; d++) {
        bp_tensor *w = line(s, slope_along(s, at, d));
        s->axes[d].sum = grad_add(c, s->axes[d].sum, w ? grad_mul(c, of_weight, w) : NULL);
    }
}

static void add_all(sampling *s)
{
    bp_ctx *c = s->c;
    bp_tensor *go = bp_aten_flatten_using_ints(c, s->go, 2, -1);
    bp_tensor *planes = bp_aten_flatten_using_ints(c, s->input, 2, -1);
    uint32_t at[3] = {0}, d = 0;
    s->of_input = grad_zeros(c, planes);
    while (d < s->naxes && ctx_ok(c)) {
        add_element(s, at, go, planes);
        for (d = 0; d < s->naxes && ++at[d] == s->axes[d].ntaps; d++)
            at[d] = 0;
    }
}

/* What flows to the grid, its numbers side by side again. */
static bp_tensor *grid_sum(sampling *s)
{
    bp_tensor *each[3] = {NULL};
    bp_dim sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < s->naxes; d++)
        each[d] = s->axes[d].sum ? s->axes[d].sum : grad_zeros(s->c, s->axes[0].sum ? s->axes[0].sum : s->of_go);
    for (uint32_t d = 0; d < s->grid->rank; d++)
        sizes[d] = s->grid->sizes[d];
    return bp_aten_reshape_default(s->c, bp_aten_stack_default(s->c, (bp_tensors){each, s->naxes}, -1),
                                   (bp_dims){sizes, s->grid->rank, 1});
}

static bool is_empty(const bp_tensor *t)
{
    bool empty = false;
    for (uint32_t d = 0; d < t->rank; d++)
        empty = empty || dim_is(t->sizes[d], 0);
    return empty;
}

/* Through the gradient of the grid. */
static void give_second(bp_ctx *c, grad_call *g, bp_tensor *of_grid, bp_tensor **of_go, bp_tensor **to_grid)
{
    sampling s = {.c = c, .go = grad_tensor(g, "grad_output"), .input = grad_tensor(g, "input"),
                  .grid = grad_tensor(g, "grid"), .mode = grad_arg_int(c, g, "interpolation_mode"),
                  .padding = grad_arg_int(c, g, "padding_mode"), .align = grad_arg_bool(g, "align_corners")};
    s.naxes = s.grid->rank - 2;
    if (s.mode == NEAREST || s.naxes > 3 || is_empty(s.go) || is_empty(s.input) || !ctx_ok(c))
        return;
    for (uint32_t d = 0; d < s.naxes; d++)
        axis_make(&s, d, of_grid);
    add_all(&s);
    if (!ctx_ok(c))
        return;
    *of_go = grad_add(c, *of_go, bp_aten_reshape_default(c, s.of_go, grad_sizes(s.go)));
    *to_grid = grad_add(c, *to_grid, grid_sum(&s));
    if (grad_needs(g, "input"))
        grad_give(g, "input", bp_aten_reshape_default(c, s.of_input, grad_sizes(s.input)));
}

/* Through the gradient of the input, which is a sum of grad_output with the same weights. */
static void give_first(bp_ctx *c, grad_call *g, bp_tensor *of_input, bp_tensor **of_go, bp_tensor **to_grid)
{
    bool flat = g->op->number == ROW_grid_sampler_2d_backward_default;
    bp_value mask[2] = {value_bool(false), value_bool(true)}, args[7] = {g->args[0], value_tensor(of_input)};
    for (uint32_t i = 2; i < 6; i++)
        args[i] = g->args[i];
    args[6] = value_list(mask, 2);
    *of_go = grad_op(c, flat ? ROW_grid_sampler_2d_default : ROW_grid_sampler_3d_default, 5, args + 1);
    if (grad_needs(g, "grid")) {
        bp_tensor *out[2];
        grad_op_all(c, g->op->number, 7, args, out, 2);
        *to_grid = out[1];
    }
}

bp_status derive_grid_sampler_backward(bp_ctx *c, grad_call *g)
{
    bp_tensor *of_go = NULL, *to_grid = NULL;
    if (g->grads[0])
        give_first(c, g, g->grads[0], &of_go, &to_grid);
    if (g->grads[1])
        give_second(c, g, g->grads[1], &of_go, &to_grid);
    grad_give(g, "grad_output", of_go);
    grad_give(g, "grid", to_grid);
    return grad_done(c);
}
