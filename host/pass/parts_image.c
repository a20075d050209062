/* Decompositions of what gathers and scatters over images to core ATen: resampling, padding's gradients, unpooling,
 * windows; and losses over margins. */
#include "host/op/resample_args.h"
#include "host/pass/parts.h"
#include <string.h>

static bp_tensor *choose(work *w, bp_tensor *condition, bp_value x, bp_value y)
{
    return condition ? CALL(where_self, T(condition), x, y) : NULL;
}

static bp_tensor *counted(work *w, int64_t from, int64_t to)
{
    return CALL(arange_start_step, I(from), I(to), I(1), value_dtype(BP_I64));
}

/* Indices of an image's dimensions, at[d] for the d-th of nd, behind `lead` dimensions that are taken whole. */
static bp_value grid(work *w, uint32_t lead, uint32_t nd, bp_tensor *const *at)
{
    bp_value *list = arena_array(&w->c->scratch, lead + nd, sizeof *list);
    if (!list) {
        ctx_nomem(w->c);
        return value_none();
    }
    for (uint32_t d = 0; d < nd; d++) {
        bp_tensor *t = at[d];
        for (uint32_t k = d + 1; k < nd; k++)
            t = compose_unsqueeze(w, t, -1);
        list[lead + d] = value_tensor(t);
    }
    return value_list(list, lead + nd);
}

/* -- resampling ---------------------------------------------------------------------------------------------------- */

/* How far apart the places of neighbours are. */
static double step_of(const resample_args *r, uint32_t d)
{
    return r->scale[d] > 0 ? 1 / r->scale[d] : (double)r->in[d].value / (double)r->out[d].value;
}

/* t in the memory format of x. */
static bp_tensor *formatted(work *w, const bp_tensor *x, bp_tensor *t)
{
    bp_value format = {.kind = BP_VALUE_MEMORY_FORMAT, .v.i = tensor_suggest_format(x)};
    return format.v.i == BP_CONTIGUOUS || !t ? t : CALL(clone_default, T(t), format);
}

PART(upsample_nearest)
{
    resample_args r;
    bp_tensor *at[3];
    if (resample_args_read(w->c, op, a, &r) != BP_OK)
        return NULL;
    for (uint32_t d = 0; d < r.nd; d++) {
        bp_tensor *t = CALL(arange_start_step, I(0), I(r.out[d].value), I(1), value_dtype(BP_F32));
        t = r.kind == RESAMPLE_NEAREST_EXACT && t ? CALL(add_scalar, T(t), F(0.5)) : t;
        t = t ? CALL(mul_scalar, T(t), F((double)(float)step_of(&r, d))) : NULL;
        at[d] = t ? CALL(clamp_default, T(part_cast(w, t, BP_I64)), NONE, I(r.in[d].value - 1)) : NULL;
    }
    bp_tensor *t = work_ok(w) ? CALL(index_tensor, a[0], grid(w, 2, r.nd, at)) : NULL;
    return formatted(w, arg_tensor(a, 0), t);
}

PART(upsample_linear)
{
    resample_args r;
    if (resample_args_read(w->c, op, a, &r) != BP_OK)
        return NULL;
    bp_dtype d = (bp_dtype)arg_tensor(a, 0)->dtype, up = d == BP_F16 || d == BP_BF16 ? BP_F32 : d;
    int64_t in = r.in[0].value, out = r.out[0].value;
    bp_tensor *t = CALL(arange_start_step, I(0), I(out), I(1), value_dtype(up));
    if (r.align_corners)
        t = t ? CALL(mul_scalar, T(t), F(out > 1 ? (double)(in - 1) / (double)(out - 1) : 0)) : NULL;
    else
        t = t ? CALL(sub_scalar, T(CALL(mul_scalar, T(CALL(add_scalar, T(t), F(0.5))), F(step_of(&r, 0)))), F(0.5))
            : NULL;
    t = t ? CALL(clamp_default, T(t), F(0)) : NULL;
    bp_tensor *low = t ? part_cast(w, t, BP_I64) : NULL;
    low = low ? CALL(clamp_default, T(low), NONE, I(in - 1)) : NULL;
    bp_tensor *high = low ? CALL(clamp_default, T(CALL(add_scalar, T(low), I(1))), NONE, I(in - 1)) : NULL;
    bp_tensor *share = low ? CALL(clamp_default, T(CALL(sub_tensor, T(t), T(low))), F(0), F(1)) : NULL;
    bp_tensor *x = part_cast(w, arg_tensor(a, 0), up);
    if (!share || !work_ok(w))
        return NULL;
    bp_tensor *left = CALL(index_tensor, T(x), grid(w, 2, 1, &low)),
        *right = CALL(index_tensor, T(x), grid(w, 2, 1, &high));
    left = CALL(mul_tensor, T(left), T(CALL(rsub_scalar, T(share), I(1))));
    return part_cast(w, CALL(add_tensor, T(left), T(CALL(mul_tensor, T(right), T(share)))), d);
}

/* -- padding ------------------------------------------------------------------------------------------------------- */

/* Padding argument i, last dimension first, of dimension d of nd. */
static void pads_of(const bp_value *a, uint32_t i, uint32_t nd, uint32_t d, int64_t out[2])
{
    out[0] = arg_list_dim(a, i, 2 * (nd - 1 - d)).value;
    out[1] = arg_list_dim(a, i, 2 * (nd - 1 - d) + 1).value;
}

/* grad_output, self, padding: each place of the padded image gives its gradient to the one that it mirrors. */
PART(reflection_pad_backward)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 1), *at[3];
    uint32_t nd = arg_list_len(a, 2) / 2, lead = x->rank - nd;
    for (uint32_t d = 0; d < nd; d++) {
        int64_t n = tensor_dim(x, lead + d), pad[2];
        pads_of(a, 2, nd, d, pad);
        bp_tensor *t = CALL(abs_default, T(counted(w, -pad[0], n + pad[1])));
        t = t ? CALL(abs_default, T(CALL(rsub_scalar, T(t), I(n - 1)))) : NULL;
        at[d] = t ? CALL(rsub_scalar, T(t), I(n - 1)) : NULL;
    }
    bp_tensor *zero = CALL(full_like_default, a[1], I(0));
    return zero ? CALL(index_put_default, T(zero), grid(w, lead, nd, at), a[0], B(true)) : NULL;
}

PART(replication_pad)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *at[3];
    uint32_t nd = arg_list_len(a, 1) / 2, lead = x->rank - nd;
    for (uint32_t d = 0; d < nd; d++) {
        int64_t n = tensor_dim(x, lead + d), pad[2];
        pads_of(a, 1, nd, d, pad);
        at[d] = CALL(clamp_default, T(counted(w, -pad[0], n + pad[1])), I(0), I(n - 1));
    }
    return work_ok(w) ? CALL(index_tensor, a[0], grid(w, lead, nd, at)) : NULL;
}

/* -- windows ------------------------------------------------------------------------------------------------------- */

static int64_t pair(const bp_value *a, uint32_t i, uint32_t d)
{
    return arg_list_dim(a, i, arg_list_len(a, i) == 1 ? 0 : d).value;
}

/* self, kernel_size, dilation, padding, stride */
PART(im2col)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *at[4];
    bool batched = x->rank == 4;
    x = batched ? x : compose_unsqueeze(w, x, 0);
    int64_t count[2], kernel[2];
    if (!x)
        return NULL;
    for (uint32_t d = 0; d < 2; d++) {
        kernel[d] = pair(a, 1, d);
        count[d] = (tensor_dim(x, 2 + d) + 2 * pair(a, 3, d) - pair(a, 2, d) * (kernel[d] - 1) - 1) / pair(a, 4, d) + 1;
        bp_tensor *windows = CALL(mul_scalar, T(counted(w, 0, count[d])), I(pair(a, 4, d)));
        bp_tensor *inside = CALL(mul_scalar, T(counted(w, 0, kernel[d])), I(pair(a, 2, d)));
        at[d] = windows && inside ? CALL(add_tensor, T(compose_unsqueeze(w, inside, -1)), T(windows)) : NULL;
    }
    int64_t pad[] = {pair(a, 3, 1), pair(a, 3, 1), pair(a, 3, 0), pair(a, 3, 0)};
    x = CALL(constant_pad_nd_default, T(x), value_ints(w->c, pad, 4), I(0));
    if (!x || !work_ok(w))
        return NULL;
    bp_value list[4] = {NONE, NONE, T(compose_unsqueeze(w, compose_unsqueeze(w, at[0], -1), -1)), T(at[1])};
    bp_tensor *t = CALL(index_tensor, T(x), value_list(list, 4)); /* N, C, kh, oh, kw, ow */
    t = t ? compose_permute(w, t, (const int64_t[]){0, 1, 2, 4, 3, 5}) : NULL;
    int64_t sizes[] = {tensor_dim(x, 0), tensor_dim(x, 1) * kernel[0] * kernel[1], count[0] * count[1]};
    t = compose_reshape(w, t, 3, sizes);
    return batched || !t ? t : CALL(squeeze_dim, T(t), I(0));
}

/* self, indices, output_size: indices count over the image of a channel. */
PART(max_unpool)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    uint32_t nd = arg_list_len(a, 2), lead = x->rank - nd;
    int64_t sizes[TENSOR_MAX_RANK], flat[TENSOR_MAX_RANK], all = 1;
    for (uint32_t d = 0; d < lead; d++)
        sizes[d] = flat[d] = tensor_dim(x, d);
    for (uint32_t d = 0; d < nd; d++)
        all *= sizes[lead + d] = arg_list_dim(a, 2, d).value;
    flat[lead] = all;
    bp_tensor *zero = CALL(zeros_default, value_ints(w->c, flat, lead + 1), value_dtype((bp_dtype)x->dtype));
    flat[lead] = -1;
    bp_tensor *from = CALL(reshape_default, a[0], value_ints(w->c, flat, lead + 1));
    bp_tensor *at = CALL(reshape_default, a[1], value_ints(w->c, flat, lead + 1));
    bp_tensor *t = zero && from && at ? CALL(scatter_src, T(zero), I(-1), T(at), T(from)) : NULL;
    return t ? formatted(w, x, CALL(view_default, T(t), value_ints(w->c, sizes, x->rank))) : NULL;
}

/* -- losses over margins ------------------------------------------------------------------------------------------- */

/* self, target, p, margin, weight, reduction */
PART(multi_margin_loss)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *target = arg_tensor(a, 1);
    bool vector = x->rank < 2;
    int64_t how = arg_int(w->c, a, 5);
    x = x->rank == 0 ? compose_reshape(w, x, 2, (const int64_t[]){1, 1}) : vector ? compose_unsqueeze(w, x, 0) : x;
    target = x ? compose_reshape(w, target, 2, (const int64_t[]){tensor_dim(x, 0), 1}) : NULL;
    bp_tensor *own = target ? CALL(gather_default, T(x), I(1), T(target)) : NULL;
    bp_tensor *z = own ? CALL(add_tensor, T(CALL(rsub_scalar, T(own), a[3])), T(x)) : NULL;
    z = z ? CALL(clamp_default, T(z), I(0)) : NULL;
    if (scalar_float(arg_scalar(a, 2)) == 2)
        z = CALL(mul_tensor, T(z), T(z));
    if (!arg_is_none(a, 4) && z)
        z = CALL(mul_tensor, T(z), T(CALL(index_tensor, a[4],
                                          value_list(&(bp_value){.kind = BP_VALUE_TENSOR, .v.tensor = target}, 1))));
    if (!z || !work_ok(w))
        return NULL;
    z = choose(w, CALL(ne_tensor, T(counted(w, 0, tensor_dim(x, 1))), T(target)), T(z), I(0));
    if (how == 1)
        return CALL(mean_default, T(z));
    if (how == 2)
        return CALL(div_scalar, T(CALL(sum_default, T(z))), I(tensor_dim(x, 1)));
    bp_tensor *t = CALL(mean_dim, T(z), INTS(1));
    return part_rank(a, 1) == 0 && t ? CALL(squeeze_dim, T(t), I(0)) : t;
}

/* self, target, reduction: targets end at the first -1. */
PARTS(multilabel_margin)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *target = arg_tensor(a, 1), *out[2];
    int64_t how = arg_int(w->c, a, 2), n = x->rank ? tensor_dim(x, x->rank - 1u) : 1;
    int64_t rows = x->rank == 2 ? tensor_dim(x, 0) : 1;
    x = compose_reshape(w, x, 2, (const int64_t[]){rows, n});
    bp_tensor *all = compose_reshape(w, target, 2, (const int64_t[]){rows, n}), *count = counted(w, 0, n);
    bp_tensor *end = choose(w, CALL(eq_scalar, T(all), I(-1)), T(count), I(n));
    end = end ? CALL(amin_default, T(end), INTS(-1), B(true)) : NULL;
    bp_tensor *used = end ? CALL(lt_tensor, T(count), T(end)) : NULL;
    bp_tensor *own = used ? CALL(gather_default, T(x), I(-1), T(choose(w, used, T(all), I(0)))) : NULL; /* row, j */
    bp_tensor *marks = choose(w, used, T(all), I(-1));
    bp_tensor *is = marks ? CALL(any_dim, T(CALL(eq_tensor, T(count), T(compose_unsqueeze(w, marks, -1)))), I(1))
        : NULL;
    bp_tensor *z = own ? CALL(add_tensor, T(CALL(rsub_scalar, T(compose_unsqueeze(w, own, -1)), F(1))),
                              T(compose_unsqueeze(w, x, 1))) : NULL;
    z = z ? CALL(div_scalar, T(CALL(clamp_default, T(z), I(0))), I(n)) : NULL; /* row, j, i */
    z = z ? choose(w, compose_unsqueeze(w, used, -1), T(z), I(0)) : NULL;
    z = z && is ? choose(w, compose_unsqueeze(w, is, 1), I(0), T(z)) : NULL;
    bp_tensor *each = z ? CALL(sum_dim_intlist, T(z), INTS(1, 2)) : NULL;
    if (!each)
        return w->c->diag.code;
    out[0] = how == 1 ? CALL(mean_default, T(each)) : how == 2 ? CALL(sum_default, T(each)) : each;
    if (how == 0 && arg_tensor(a, 0)->rank < 2)
        out[0] = CALL(squeeze_dim, T(each), I(0));
    bp_tensor *flags = part_cast(w, is, (bp_dtype)x->dtype);
    out[1] = flags ? CALL(reshape_default, T(flags), part_sizes(w, target)) : NULL;
    return parts_give(w, k, out, 2);
}
