/* Control flow as ordinary code: the functions run on the tensors themselves, and the tape sees what they call. What
 * capture would refuse and is cheap to see here is refused here, too. */
#include "host/capture/flow_part.h"
#include <stdlib.h>
#include <string.h>

/* -- one function -------------------------------------------------------------------------------------------------- */

static bp_status check_result(const flow_call *f, const flow_fn *fn, bp_tensor *const *in, uint32_t n,
                              bp_tensor *const *out, uint32_t i)
{
    const char *with = NULL;
    if (!out[i])
        return ctx_fail(f->c, BP_INVALID_ARGUMENT, "%s: \"%s\" gives no result %u", f->op, fn->name, i);
    for (uint32_t j = 0; j < n; j++)
        with = out[i]->store == in[j]->store ? "what it was given" : with;
    for (uint32_t j = 0; j < i; j++)
        with = out[i]->store == out[j]->store ? "another result" : with;
    if (!with)
        return BP_OK;
    ctx_fail(f->c, BP_FAILED_PRECONDITION, "%s: result %u of \"%s\" shares memory with %s", f->op, i, fn->name, with);
    diag_hint(&f->c->diag, "return a clone of it: what a graph gives must be its own");
    return f->c->diag.code;
}

static uint64_t version(const bp_tensor *t)
{
    return atomic_load_explicit(&t->store->version, memory_order_relaxed);
}

static bp_status check_unwritten(const flow_call *f, const flow_fn *fn, bp_tensor *const *in, uint32_t n,
                                 const uint64_t *before)
{
    for (uint32_t i = 0; i < n; i++)
        if (version(in[i]) != before[i])
            return ctx_fail(f->c, BP_FAILED_PRECONDITION,
                            "%s: \"%s\" writes its input %u in place, and must leave it as it is", f->op, fn->name, i);
    return BP_OK;
}

static bp_status call_checked(const flow_call *f, const flow_fn *fn, bp_tensor *const *in, uint32_t n, bp_tensor **out,
                              uint64_t *versions)
{
    bp_ctx *c = f->c;
    for (uint32_t i = 0; i < n; i++)
        versions[i] = version(in[i]);
    fn->fn(c, f->user, in, n, out, fn->nouts);
    TRY(c->diag.code);
    TRY(check_unwritten(f, fn, in, n, versions));
    for (uint32_t i = 0; i < fn->nouts; i++)
        out[i] = out[i] ? capture_real(c, out[i]) : NULL;
    for (uint32_t i = 0; i < fn->nouts; i++)
        TRY(check_result(f, fn, in, n, out, i));
    for (uint32_t i = 0; i < fn->nouts; i++)
        tensor_ref(out[i]);
    return BP_OK;
}

/* Runs it in a scope of its own; out: new references. */
static bp_status call(const flow_call *f, const flow_fn *fn, bp_tensor *const *in, uint32_t n, bp_tensor **out)
{
    bp_ctx *c = f->c;
    uint32_t depth = scope_depth(c);
    uint64_t *versions = calloc(n + 1u, sizeof *versions);
    if (!versions)
        return ctx_nomem(c);
    memset(out, 0, fn->nouts * sizeof *out);
    scope_push(c);
    bp_status st = call_checked(f, fn, in, n, out, versions);
    while (scope_depth(c) > depth)
        scope_pop(c);
    free(versions);
    if (st != BP_OK)
        memset(out, 0, fn->nouts * sizeof *out);
    return st;
}

/* -- tensors of a call --------------------------------------------------------------------------------------------- */

typedef struct {
    bp_tensor **in;    /* what the functions get: the caller's tensors, carried values, items */
    bp_tensor **own;   /* references: what is carried, or this round's items, by place in `in`; NULL: the caller's */
    bp_tensor **out;   /* references: a round's results */
    uint32_t n, nout;
} round;

static bp_status round_make(const flow_call *f, round *r, uint32_t nout)
{
    *r = (round){.n = f->n[0] + f->n[1], .nout = nout};
    r->in = calloc(r->n + 1u, sizeof *r->in);
    r->own = calloc(r->n + 1u, sizeof *r->own);
    r->out = calloc(nout + 1u, sizeof *r->out);
    if (!r->in || !r->own || !r->out)
        return ctx_nomem(f->c);
    for (uint32_t i = 0; i < r->n; i++)
        r->in[i] = i < f->n[0] ? f->in[0][i] : f->in[1][i - f->n[0]];
    return BP_OK;
}

static void round_fini(round *r)
{
    for (uint32_t i = 0; r->own && i < r->n; i++)
        tensor_unref(r->own[i]);
    for (uint32_t i = 0; r->out && i < r->nout; i++)
        tensor_unref(r->out[i]);
    free(r->in);
    free(r->own);
    free(r->out);
}

static bool same_type(const bp_tensor *a, const bp_tensor *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank && a->device_kind == b->device_kind &&
                a->device_index == b->device_index;
    for (uint32_t d = 0; same && d < a->rank; d++)
        same = dim_eq(a->sizes[d], b->sizes[d]);
    return same;
}

/* The first results take the place of what was carried, and must be like it. */
static bp_status carry(const flow_call *f, const flow_fn *fn, round *r, uint32_t n)
{
    char a[160], b[160];
    for (uint32_t i = 0; i < n; i++)
        if (!same_type(r->in[i], r->out[i]))
            return ctx_fail(f->c, BP_INVALID_ARGUMENT,
                            "%s: carried value %u is %s, and \"%s\" gives %s: what is carried keeps its type and sizes",
                            f->op, i, tensor_describe(r->in[i], a, sizeof a), fn->name,
                            tensor_describe(r->out[i], b, sizeof b));
    for (uint32_t i = 0; i < n; i++) {
        tensor_unref(r->own[i]);
        r->in[i] = r->own[i] = r->out[i];
        r->out[i] = NULL;
    }
    return BP_OK;
}

/* A reference becomes the scope's, and the caller's result. */
static bp_status give(const flow_call *f, uint32_t i, bp_tensor **from)
{
    f->out[i] = scope_own(f->c, *from);
    *from = NULL;
    return f->c->diag.code;
}

static bp_status give_carried(const flow_call *f, round *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!r->own[i]) { /* no round has run: results are the caller's own in value alone */
            f->out[i] = bp_aten_clone_default(f->c, r->in[i], BP_MEMORY_FORMAT_UNSET);
            TRY(f->c->diag.code);
            continue;
        }
        TRY(give(f, i, &r->own[i]));
    }
    return BP_OK;
}

/* -- cond and while_loop ------------------------------------------------------------------------------------------- */

static bp_status read_choice(const flow_call *f, const char *what, const bp_tensor *t, bool *yes)
{
    char text[160];
    if (tensor_is_fake(t)) {
        ctx_fail(f->c, BP_UNIMPLEMENTED, "%s: %s is a fake tensor outside of a capture", f->op, what);
        return f->c->diag.code;
    }
    if (t->dtype != BP_BOOL || tensor_nelem(t) != 1)
        return ctx_fail(f->c, BP_INVALID_ARGUMENT, "%s: %s must be a bool tensor of one element, and is %s", f->op,
                        what, tensor_describe(t, text, sizeof text));
    *yes = dtype_load(t->dtype, tensor_ptr(t)).i != 0;
    return BP_OK;
}

static bp_status run_cond(const flow_call *f, round *r)
{
    bool yes = false;
    TRY(read_choice(f, "pred", f->pred, &yes));
    TRY(call(f, &f->fn[yes ? 0 : 1], r->in, r->n, r->out));
    for (uint32_t i = 0; i < r->nout; i++)
        TRY(give(f, i, &r->out[i]));
    return BP_OK;
}

bp_status flow_cond(const flow_call *f)
{
    round r;
    bp_status st = round_make(f, &r, f->nout);
    if (st == BP_OK)
        st = run_cond(f, &r);
    round_fini(&r);
    return st;
}

static bp_status goes_on(const flow_call *f, round *r, bool *yes)
{
    bp_tensor *answer = NULL;
    TRY(call(f, &f->fn[0], r->in, r->n, &answer));
    bp_status st = read_choice(f, "what \"cond_fn\" gives", answer, yes);
    tensor_unref(answer);
    return st;
}

static bp_status run_while_loop(const flow_call *f, round *r)
{
    bool yes = false;
    for (;;) {
        TRY(goes_on(f, r, &yes));
        if (!yes)
            return give_carried(f, r, f->nout);
        TRY(call(f, &f->fn[1], r->in, r->n, r->out));
        TRY(carry(f, &f->fn[1], r, f->nout));
    }
}

bp_status flow_while_loop(const flow_call *f)
{
    round r;
    bp_status st = round_make(f, &r, f->nout);
    if (st == BP_OK)
        st = run_while_loop(f, &r);
    round_fini(&r);
    return st;
}

/* -- map and scan -------------------------------------------------------------------------------------------------- */

/* Items i of nxs tensors, in place `first` of the inputs. */
static bp_status take_items(const flow_call *f, round *r, bp_tensor *const *xs, uint32_t nxs, uint32_t first, int64_t i)
{
    for (uint32_t j = 0; j < nxs; j++) {
        bp_tensor *piece = bp_aten_select_int(f->c, xs[j], 0, bp_dim_of(i));
        TRY(f->c->diag.code);
        tensor_unref(r->own[first + j]);
        r->in[first + j] = r->own[first + j] = tensor_ref(piece);
    }
    return BP_OK;
}

static bp_status stack(const flow_call *f, bp_tensor **at, int64_t rounds, uint32_t to)
{
    f->out[to] = bp_aten_stack_default(f->c, (bp_tensors){at, (uint32_t)rounds}, 0);
    return f->c->diag.code;
}

/* Runs all rounds; kept: [nys][rounds] references. */
static bp_status go_along(const flow_call *f, round *r, bp_tensor *const *xs, uint32_t nxs, uint32_t ncarry,
                          int64_t rounds, bp_tensor **kept)
{
    for (int64_t i = 0; i < rounds; i++) {
        scope_push(f->c);
        bp_status st = take_items(f, r, xs, nxs, ncarry, i);
        scope_pop(f->c);
        TRY(st);
        TRY(call(f, &f->fn[0], r->in, r->n, r->out));
        TRY(carry(f, &f->fn[0], r, ncarry));
        for (uint32_t j = ncarry; j < r->nout; j++) {
            kept[(j - ncarry) * (size_t)rounds + (size_t)i] = r->out[j];
            r->out[j] = NULL;
        }
    }
    return BP_OK;
}

static bp_status run_along(const flow_call *f, round *r, bp_tensor *const *xs, uint32_t nxs, uint32_t ncarry)
{
    int64_t rounds = tensor_dim(xs[0], 0);
    size_t total = (size_t)rounds * (r->nout - ncarry);
    bp_tensor **kept = calloc(total + 1, sizeof *kept);
    bp_status st = kept ? go_along(f, r, xs, nxs, ncarry, rounds, kept) : ctx_nomem(f->c);
    if (st == BP_OK)
        st = give_carried(f, r, ncarry);
    for (uint32_t j = ncarry; j < r->nout && st == BP_OK; j++)
        st = stack(f, kept + (j - ncarry) * (size_t)rounds, rounds, j);
    for (size_t i = 0; kept && i < total; i++)
        tensor_unref(kept[i]);
    free(kept);
    return st;
}

bp_status flow_map(const flow_call *f)
{
    round r;
    bp_status st = round_make(f, &r, f->nout);
    if (st == BP_OK)
        st = run_along(f, &r, f->in[0], f->n[0], 0);
    round_fini(&r);
    return st;
}

bp_status flow_scan(const flow_call *f)
{
    round r;
    bp_status st = round_make(f, &r, f->nout);
    if (st == BP_OK)
        st = run_along(f, &r, f->in[1], f->n[1], f->n[0]);
    round_fini(&r);
    return st;
}
