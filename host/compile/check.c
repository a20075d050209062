/* Two checks that a config asks for: does the function still record what it recorded (check_capture), and does the
 * compiled path compute what eager computes (verify_correctness). Both come before the commit. */
#include "host/base/env.h"
#include "host/base/log.h"
#include "host/compile/callable.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- check_capture ------------------------------------------------------------------------------------------------- */

static bool wants_recheck(call *k, const tree_node *n)
{
    int64_t mode = config_int(k->c->rt, KEY_CHECK_CAPTURE);
    const char *verify = env_get(ENV_BACKPLANE_VERIFY);
    if (verify && !strcmp(verify, "capture"))
        mode = CHECK_CAPTURE_ALWAYS;
    if (mode == CHECK_CAPTURE_OFF || k->captured)
        return false;
    return mode == CHECK_CAPTURE_ALWAYS || !atomic_exchange(&((tree_node *)(uintptr_t)n)->checked, true);
}

step call_recheck(call *k, const tree_node *n)
{
    if (!wants_recheck(k, n))
        return STEP_OK;
    trace *t = call_trace(k, n);
    if (!t)
        return STEP_FAILED;
    step s = STEP_OK;
    if (t->why != TRACE_RETURNED) {
        diag_clear(&k->c->diag);
        s = call_impure(k, t->reason);
    }
    trace_destroy(t);
    return s;
}

/* -- verify_correctness -------------------------------------------------------------------------------------------- */

/* Copies of inputs, which share memory as the inputs do. */
typedef struct {
    bp_value *args;
    bp_tensor **flats;        /* by input: a copy of its whole storage, at the first input of that storage */
    uint32_t n;
} copies;

static bp_tensor *flat_copy(bp_ctx *c, const storage *s)
{
    int64_t nbytes = (int64_t)s->nbytes;
    bp_tensor *flat = tensor_contiguous_new(c, BP_U8, 1, &nbytes);
    if (flat && nbytes)
        memcpy(tensor_ptr(flat), s->data, s->nbytes);
    return flat;
}

static bp_status copy_input(call *k, copies *to, uint32_t i)
{
    const bp_tensor *t = bind_input(&k->vals, i);
    to->args[i] = k->vals.inputs[i];
    for (uint32_t j = 0; t && j < i; j++)
        if (bind_input(&k->vals, j) == t) {
            to->args[i] = to->args[j];
            return BP_OK;
        }
    bp_tensor *flat = NULL;
    for (uint32_t j = 0; t && j < i && !flat; j++)
        if (to->flats[j] && bind_input(&k->vals, j)->store == t->store)
            flat = to->flats[j];
    if (t && !flat)
        flat = to->flats[i] = flat_copy(k->c, t->store);
    if (!t)
        return BP_OK;
    tensor_meta m;
    tensor_get_meta(t, &m);
    bp_tensor *copy = flat ? tensor_view(k->c, flat, &m) : NULL;
    if (copy)
        copy->flags = (uint8_t)(t->flags & (TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF));
    to->args[i] = value_tensor(scope_own(k->c, copy));
    return copy ? BP_OK : k->c->diag.code;
}

static double number_at(const bp_tensor *t, const char *p, double *im)
{
    num v = dtype_load(t->dtype, p);
    *im = v.kind == NUM_COMPLEX ? v.im : 0;
    return v.kind == NUM_INT ? (double)v.i : v.f;
}

static bool near(double a, double b, double tolerance)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * (1 + fabs(b));
}

/* Whether two tensors hold the same numbers, floats within PyTorch's tolerance for this check. */
static bool same(bp_ctx *c, const bp_tensor *a, const bp_tensor *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (!dim_eq(a->sizes[d], b->sizes[d]))
            return false;
    union { const bp_tensor *seen; bp_tensor *own; } x = {a}, y = {b};
    bp_tensor *p = tensor_to_contiguous(c, x.own), *q = tensor_to_contiguous(c, y.own);
    double tolerance = dtype_is_integral(a->dtype) ? 0 : dtype_size(a->dtype) == 2 ? 1e-2 : 1e-4;
    bool ok = p && q;
    for (int64_t i = 0, n = tensor_nelem(a); ok && i < n; i++) {
        size_t at = (size_t)i * dtype_size(a->dtype);
        double im, jm, re = number_at(p, (char *)tensor_ptr(p) + at, &im);
        ok = near(re, number_at(q, (char *)tensor_ptr(q) + at, &jm), tolerance) && near(im, jm, tolerance);
    }
    tensor_unref(p);
    tensor_unref(q);
    return ok;
}

static step differs(call *k, const char *what, uint32_t i)
{
    ctx_fail(k->c, BP_INTERNAL, "verify_correctness: %s %u of \"%s\" differs from what eager gives, compiled by \"%s\"",
             what, i, k->g->code->is.name, backend_name(k->g->backend));
    return STEP_FAILED;
}

static step compare_all(call *k, const item *end, bp_tensor *const *outs, const write_job *jobs, const copies *in)
{
    bp_args args = {in->args, k->vals.nargs};
    bp_outputs eager = {0};
    uint64_t rng = k->c->rng_offset;
    bp_status st = function_run(k->c, k->g->fn, k->g->user, &args, &eager);
    k->c->rng_offset = rng;
    if (st != BP_OK)
        return STEP_FAILED;
    for (uint32_t i = 0; i < end->end.nouts; i++)
        if (i >= eager.n || !eager.at[i] != !outs[i] ||
            (outs[i] && !end->end.outs[i].is_source && end->end.outs[i].source < 0 &&
             !same(k->c, outs[i], eager.at[i])))
            return differs(k, "result", i);
    for (uint32_t i = 0; i < end->end.nwrites; i++) {
        const write_spec *w = &end->end.writes[i];
        if (!w->whole && !same(k->c, jobs[i].value, in->args[w->source].v.tensor))
            return differs(k, "the value written to input", w->source);
    }
    return STEP_OK;
}

/* A path that writes a module's buffer is not run eagerly: it would be written twice. */
static bool writes_attribute(const call *k, const item *end)
{
    for (uint32_t i = 0; i < end->end.nwrites; i++)
        if (end->end.writes[i].source >= k->vals.nargs)
            return true;
    return false;
}

step call_compare(call *k, const item *end, bp_tensor *const *outs, const write_job *jobs)
{
    if (!k->captured || !config_int(k->c->rt, KEY_VERIFY_CORRECTNESS) || writes_attribute(k, end))
        return STEP_OK;
    copies in = {.n = k->vals.nargs};
    in.args = calloc(in.n + 1, sizeof *in.args);
    in.flats = calloc(in.n + 1, sizeof *in.flats);
    scope_push(k->c);
    bp_status st = in.args && in.flats ? BP_OK : ctx_nomem(k->c);
    for (uint32_t i = 0; i < in.n && st == BP_OK; i++)
        st = copy_input(k, &in, i);
    step s = st == BP_OK ? compare_all(k, end, outs, jobs, &in) : STEP_FAILED;
    scope_pop(k->c);
    for (uint32_t i = 0; in.flats && i < in.n; i++)
        tensor_unref(in.flats[i]);
    free(in.args);
    free(in.flats);
    return s;
}
