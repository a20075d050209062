/* Decompositions of what gathers and scatters over images to core ATen: resampling, padding's gradients, unpooling,
 * windows; and losses over margins. */
#include "host/op/resample_args.h"
#include "host/pass/parts.h"
#include <string.h>

static bp_tensor *choose(work *w, bp_tensor *condition, bp_value x, bp_value y)
{
    return condition ? CALL(where_self, T(condition), x, y) : NULL;
}

static bp_tensor *counted(work *w, bp_dim from, bp_dim to)
{
    return CALL(arange_start_step, D(from), D(to), I(1), value_dtype(BP_I64));
}

static bp_tensor *count_to(work *w, bp_dim to)
{
    return counted(w, dim_const(0), to);
}

static bp_dim last_of(work *w, bp_dim size)
{
    return dim_sub(w->c, size, dim_const(1));
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

/* How far apart the places of neighbours are. A quotient of sizes is a factor, and makes numbers of both. */
static double step_of(work *w, const resample_args *r, uint32_t d)
{
    if (r->scale[d] > 0)
        return 1 / r->scale[d];
    return (double)dim_int(w->c, r->in[d]) / (double)dim_int(w->c, r->out[d]);
}

/* The same where the first and the last places meet. */
static double step_between_corners(work *w, const resample_args *r)
{
    int64_t in = dim_int(w->c, r->in[0]), out = dim_int(w->c, r->out[0]);
    return out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
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
        bp_tensor *t = CALL(arange_start_step, I(0), D(r.out[d]), I(1), value_dtype(BP_F32));
        t = r.kind == RESAMPLE_NEAREST_EXACT && t ? CALL(add_scalar, T(t), F(0.5)) : t;
        t = t ? CALL(mul_scalar, T(t), F((double)(float)step_of(w, &r, d))) : NULL;
        at[d] = t ? CALL(clamp_default, T(part_cast(w, t, BP_I64)), NONE, D(last_of(w, r.in[d]))) : NULL;
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
    bp_value last = D(last_of(w, r.in[0]));
    bp_tensor *t = CALL(arange_start_step, I(0), D(r.out[0]), I(1), value_dtype(up));
    if (r.align_corners)
        t = t ? CALL(mul_scalar, T(t), F(step_between_corners(w, &r))) : NULL;
    else
        t = t ? CALL(sub_scalar, T(CALL(mul_scalar, T(CALL(add_scalar, T(t), F(0.5))), F(step_of(w, &r, 0)))), F(0.5))
            : NULL;
    t = t ? CALL(clamp_default, T(t), F(0)) : NULL;
    bp_tensor *low = t ? part_cast(w, t, BP_I64) : NULL;
    low = low ? CALL(clamp_default, T(low), NONE, last) : NULL;
    bp_tensor *high = low ? CALL(clamp_default, T(CALL(add_scalar, T(low), I(1))), NONE, last) : NULL;
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
static void pads_of(const bp_value *a, uint32_t i, uint32_t nd, uint32_t d, bp_dim out[2])
{
    out[0] = arg_list_dim(a, i, 2 * (nd - 1 - d));
    out[1] = arg_list_dim(a, i, 2 * (nd - 1 - d) + 1);
}

/* The places of a padded dimension of n elements, as seen from its first one. */
static bp_tensor *padded_places(work *w, bp_dim n, const bp_dim pad[2])
{
    return counted(w, dim_sub(w->c, dim_const(0), pad[0]), dim_add(w->c, n, pad[1]));
}

/* grad_output, self, padding: each place of the padded image gives its gradient to the one that it mirrors. */
PART(reflection_pad_backward)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 1), *at[3];
    uint32_t nd = arg_list_len(a, 2) / 2, lead = x->rank - nd;
    for (uint32_t d = 0; d < nd; d++) {
        bp_dim n = x->sizes[lead + d], pad[2];
        bp_value last = D(last_of(w, n));
        pads_of(a, 2, nd, d, pad);
        bp_tensor *t = CALL(abs_default, T(padded_places(w, n, pad)));
        t = t ? CALL(abs_default, T(CALL(rsub_scalar, T(t), last))) : NULL;
        at[d] = t ? CALL(rsub_scalar, T(t), last) : NULL;
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
        bp_dim n = x->sizes[lead + d], pad[2];
        pads_of(a, 1, nd, d, pad);
        at[d] = CALL(clamp_default, T(padded_places(w, n, pad)), I(0), D(last_of(w, n)));
    }
    return work_ok(w) ? CALL(index_tensor, a[0], grid(w, lead, nd, at)) : NULL;
}

/* -- windows ------------------------------------------------------------------------------------------------------- */

static bp_dim pair(const bp_value *a, uint32_t i, uint32_t d)
{
    return arg_list_dim(a, i, arg_list_len(a, i) == 1 ? 0 : d);
}

/* How many windows lie along dimension d of the image. */
static bp_dim windows_along(work *w, const bp_value *a, bp_dim size, uint32_t d)
{
    bp_ctx *c = w->c;
    bp_dim reach = dim_mul(c, pair(a, 2, d), last_of(w, pair(a, 1, d)));
    bp_dim room = dim_sub(c, dim_add(c, size, dim_mul(c, dim_const(2), pair(a, 3, d))), reach);
    return dim_add(c, dim_floordiv(c, last_of(w, room), pair(a, 4, d)), dim_const(1));
}

/* self, kernel_size, dilation, padding, stride */
PART(im2col)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *at[4];
    bool batched = x->rank == 4;
    x = batched ? x : compose_unsqueeze(w, x, 0);
    bp_dim count[2], kernel[2];
    if (!x)
        return NULL;
    for (uint32_t d = 0; d < 2; d++) {
        kernel[d] = pair(a, 1, d);
        count[d] = windows_along(w, a, x->sizes[2 + d], d);
        bp_tensor *windows = CALL(mul_scalar, T(count_to(w, count[d])), D(pair(a, 4, d)));
        bp_tensor *inside = CALL(mul_scalar, T(count_to(w, kernel[d])), D(pair(a, 2, d)));
        at[d] = windows && inside ? CALL(add_tensor, T(compose_unsqueeze(w, inside, -1)), T(windows)) : NULL;
    }
    bp_value pad = DIMS(pair(a, 3, 1), pair(a, 3, 1), pair(a, 3, 0), pair(a, 3, 0));
    x = CALL(constant_pad_nd_default, T(x), pad, I(0));
    if (!x || !work_ok(w))
        return NULL;
    bp_value list[4] = {NONE, NONE, T(compose_unsqueeze(w, compose_unsqueeze(w, at[0], -1), -1)), T(at[1])};
    bp_tensor *t = CALL(index_tensor, T(x), value_list(list, 4)); /* N, C, kh, oh, kw, ow */
    t = t ? compose_permute(w, t, (const int64_t[]){0, 1, 2, 4, 3, 5}) : NULL;
    bp_dim rows[] = {x->sizes[1], kernel[0], kernel[1]};
    t = compose_reshape(w, t, 3, (bp_dim[]){x->sizes[0], dim_product(w->c, rows, 3), dim_product(w->c, count, 2)});
    return batched || !t ? t : CALL(squeeze_dim, T(t), I(0));
}

/* self, indices, output_size: indices count over the image of a channel. */
PART(max_unpool)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0);
    uint32_t nd = arg_list_len(a, 2), lead = x->rank - nd;
    bp_dim sizes[TENSOR_MAX_RANK], flat[TENSOR_MAX_RANK];
    memcpy(sizes, x->sizes, lead * sizeof *sizes);
    memcpy(flat, x->sizes, lead * sizeof *flat);
    for (uint32_t d = 0; d < nd; d++)
        sizes[lead + d] = arg_list_dim(a, 2, d);
    flat[lead] = dim_product(w->c, sizes + lead, nd);
    bp_tensor *zero = CALL(zeros_default, value_dims(w->c, flat, lead + 1), value_dtype((bp_dtype)x->dtype));
    flat[lead] = dim_const(-1);
    bp_tensor *from = CALL(reshape_default, a[0], value_dims(w->c, flat, lead + 1));
    bp_tensor *at = CALL(reshape_default, a[1], value_dims(w->c, flat, lead + 1));
    bp_tensor *t = zero && from && at ? CALL(scatter_src, T(zero), I(-1), T(at), T(from)) : NULL;
    return t ? formatted(w, x, CALL(view_default, T(t), value_dims(w->c, sizes, x->rank))) : NULL;
}

/* -- losses over margins ------------------------------------------------------------------------------------------- */

/* self, target, p, margin, weight, reduction */
PART(multi_margin_loss)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *target = arg_tensor(a, 1);
    bool vector = x->rank < 2;
    int64_t how = arg_int(w->c, a, 5);
    if (x->rank == 0)
        x = compose_reshape(w, x, 2, (const bp_dim[]){dim_const(1), dim_const(1)});
    else
        x = vector ? compose_unsqueeze(w, x, 0) : x;
    target = x ? compose_reshape(w, target, 2, (bp_dim[]){x->sizes[0], dim_const(1)}) : NULL;
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
    z = choose(w, CALL(ne_tensor, T(count_to(w, x->sizes[1])), T(target)), T(z), I(0));
    if (how == 1)
        return CALL(mean_default, T(z));
    if (how == 2)
        return CALL(div_scalar, T(CALL(sum_default, T(z))), D(x->sizes[1]));
    bp_tensor *t = CALL(mean_dim, T(z), INTS(1));
    return part_rank(a, 1) == 0 && t ? CALL(squeeze_dim, T(t), I(0)) : t;
}

/* self, target, reduction: targets end at the first -1. */
PARTS(multilabel_margin)
{
    (void)op;
    bp_tensor *x = arg_tensor(a, 0), *target = arg_tensor(a, 1), *out[2];
    int64_t how = arg_int(w->c, a, 2);
    bp_dim n = x->rank ? x->sizes[x->rank - 1u] : dim_const(1);
    bp_dim both[] = {x->rank == 2 ? x->sizes[0] : dim_const(1), n};
    x = compose_reshape(w, x, 2, both);
    bp_tensor *all = compose_reshape(w, target, 2, both), *count = count_to(w, n);
    bp_tensor *end = choose(w, CALL(eq_scalar, T(all), I(-1)), T(count), D(n));
    end = end ? CALL(amin_default, T(end), INTS(-1), B(true)) : NULL;
    bp_tensor *used = end ? CALL(lt_tensor, T(count), T(end)) : NULL;
    bp_tensor *own = used ? CALL(gather_default, T(x), I(-1), T(choose(w, used, T(all), I(0)))) : NULL; /* row, j */
    bp_tensor *marks = choose(w, used, T(all), I(-1));
    bp_tensor *is = marks ? CALL(any_dim, T(CALL(eq_tensor, T(count), T(compose_unsqueeze(w, marks, -1)))), I(1))
        : NULL;
    bp_tensor *z = own ? CALL(add_tensor, T(CALL(rsub_scalar, T(compose_unsqueeze(w, own, -1)), F(1))),
                              T(compose_unsqueeze(w, x, 1))) : NULL;
    z = z ? CALL(div_scalar, T(CALL(clamp_default, T(z), I(0))), D(n)) : NULL; /* row, j, i */
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
