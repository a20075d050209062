/* What rows see of a call: tensors among its arguments by number and by name; gradients made to fit an input. */
#include "host/grad/derivative.h"
#include "host/sym/env.h"
#include <backplane/backplane.h>
#include <string.h>

/* -- numbering ----------------------------------------------------------------------------------------------------- */

static uint32_t tensors_in(const bp_value *v)
{
    uint32_t n = v->kind == BP_VALUE_TENSOR;
    for (uint32_t k = 0; v->kind == BP_VALUE_LIST && k < v->count; k++)
        n += v->v.items[k].kind == BP_VALUE_TENSOR;
    return n;
}

uint32_t grad_count_inputs(const bp_value *args, uint32_t nargs)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < nargs; i++)
        n += tensors_in(&args[i]);
    return n;
}

static bp_tensor *nth_tensor(const bp_value *v, uint32_t n)
{
    if (v->kind == BP_VALUE_TENSOR)
        return v->v.tensor;
    for (uint32_t k = 0; v->kind == BP_VALUE_LIST && k < v->count; k++)
        if (v->v.items[k].kind == BP_VALUE_TENSOR && n-- == 0)
            return v->v.items[k].v.tensor;
    return NULL;
}

bp_tensor *grad_input_at(const bp_value *args, uint32_t nargs, uint32_t i, uint32_t *arg)
{
    for (uint32_t a = 0; a < nargs; a++) {
        uint32_t n = tensors_in(&args[a]);
        if (i < n) {
            if (arg)
                *arg = a;
            return nth_tensor(&args[a], i);
        }
        i -= n;
    }
    return NULL;
}

static int32_t find(const grad_call *g, const char *name)
{
    return schema_find(g->op->schema, name);
}

static uint32_t first_input(const grad_call *g, uint32_t arg)
{
    return grad_count_inputs(g->args, arg);
}

uint32_t grad_input(const grad_call *g, const char *name)
{
    int32_t a = find(g, name);
    return a < 0 || !tensors_in(&g->args[a]) ? UINT32_MAX : first_input(g, (uint32_t)a);
}

bool grad_needs(const grad_call *g, const char *name)
{
    int32_t a = find(g, name);
    uint32_t n = a < 0 ? 0 : tensors_in(&g->args[a]), first = n ? first_input(g, (uint32_t)a) : 0;
    for (uint32_t k = 0; k < n; k++)
        if (g->needs[first + k])
            return true;
    return false;
}

void grad_give(grad_call *g, const char *name, bp_tensor *t)
{
    uint32_t at = grad_input(g, name);
    if (at < g->ninputs)
        g->out[at] = t;
}

void grad_give_item(grad_call *g, const char *name, uint32_t i, bp_tensor *t)
{
    int32_t a = find(g, name);
    const bp_value *v = a < 0 ? NULL : &g->args[a];
    if (!v || v->kind != BP_VALUE_LIST || i >= v->count || v->v.items[i].kind != BP_VALUE_TENSOR)
        return;
    uint32_t at = first_input(g, (uint32_t)a);
    for (uint32_t k = 0; k < i; k++)
        at += v->v.items[k].kind == BP_VALUE_TENSOR;
    if (at < g->ninputs)
        g->out[at] = t;
}

const bp_value *grad_arg(const grad_call *g, const char *name)
{
    int32_t a = find(g, name);
    return a < 0 || g->args[a].kind == BP_VALUE_NONE ? NULL : &g->args[a];
}

bp_tensor *grad_tensor(const grad_call *g, const char *name)
{
    const bp_value *v = grad_arg(g, name);
    return v && v->kind == BP_VALUE_TENSOR ? v->v.tensor : NULL;
}

/* -- making gradients ---------------------------------------------------------------------------------------------- */

static bp_dims dims(const bp_dim *at, uint32_t n)
{
    return (bp_dims){at, n, 1};
}

bp_tensor *grad_zeros(bp_ctx *c, const bp_tensor *t)
{
    if (!t)
        return NULL;
    return bp_aten_zeros_default(c, dims(t->sizes, t->rank), t->dtype, 0, tensor_device(t), (bp_scalar){0});
}

bp_tensor *grad_of(bp_ctx *c, grad_call *g, uint32_t i)
{
    if (i >= g->nresults)
        return NULL;
    return g->grads[i] ? g->grads[i] : g->results[i] ? grad_zeros(c, g->results[i]) : NULL;
}

static bool same_sizes(const bp_tensor *t, uint32_t rank, const bp_dim *sizes)
{
    bool same = t->rank == rank;
    for (uint32_t d = 0; same && d < rank; d++)
        same = dim_eq(t->sizes[d], sizes[d]);
    return same;
}

bp_tensor *grad_sum_to(bp_ctx *c, bp_tensor *t, uint32_t rank, const bp_dim *sizes)
{
    if (!t || same_sizes(t, rank, sizes) || t->rank < rank)
        return t;
    bp_dim over[TENSOR_MAX_RANK];
    uint32_t n = 0, lead = t->rank - rank;
    for (uint32_t d = 0; d < t->rank; d++)
        if (d < lead || (dim_is(sizes[d - lead], 1) && !dim_is(t->sizes[d], 1)))
            over[n++] = dim_const(d);
    if (n)
        t = bp_aten_sum_dim_intlist(c, t, dims(over, n), true, 0);
    return t && lead ? bp_aten_view_default(c, t, dims(sizes, rank)) : t;
}

static bp_tensor *as_type(bp_ctx *c, bp_tensor *t, bp_dtype want)
{
    if (dtype_is_complex(t->dtype) && !dtype_is_complex(want))
        t = bp_aten_real_default(c, t);
    if (!t || t->dtype == want)
        return t;
    return bp_aten_private_to_copy_default(c, t, want, 0, (bp_device){0}, (bp_scalar){0}, 0, 0);
}

bp_tensor *grad_fit(bp_ctx *c, bp_tensor *t, const tensor_meta *input, const char *who)
{
    char have[160];
    bp_tensor *fit = t;
    if (!same_sizes(t, input->rank, input->sizes))
        fit = grad_sum_to(c, t, input->rank, input->sizes);
    if (fit && !same_sizes(fit, input->rank, input->sizes)) {
        buf want = {0};
        for (uint32_t d = 0; d < input->rank; d++) {
            buf_puts(&want, d ? ", " : "");
            sym_print(sym_current(), input->sizes[d], false, &want);
        }
        ctx_fail(c, BP_INTERNAL, "%s gave a gradient of %s, expected shape [%s]", who,
                 tensor_describe(t, have, sizeof have), buf_text(&want));
        buf_fini(&want);
        return NULL;
    }
    return fit && fit->dtype != input->dtype ? as_type(c, fit, input->dtype) : fit;
}
