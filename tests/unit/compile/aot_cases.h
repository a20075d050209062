/* Functions that train, run eagerly and compiled: results, flags, identity, shared memory, inputs and gradients must be
 * eager's. */
#ifndef TESTS_COMPILE_AOT_CASES_H
#define TESTS_COMPILE_AOT_CASES_H
#include "tests/unit/compile/fixture.h"
#include <math.h>

/* Inputs of a case, a letter each: L leaf that requires grad, N no leaf, P plain, S the same object as the one before,
 * A overlaps the one before (a slice of the same memory), V view of a tensor that is no leaf. All f32[2, 3].
 * '!' in front: such calls are not compiled. */
typedef struct { const char *name; bp_fn fn; const char *inputs; } aot_case;

enum { CASE_MAX = 8 };
typedef struct {
    bp_tensor *leaves[2 * CASE_MAX], *in[CASE_MAX], *out[CASE_MAX];
    uint32_t nleaves, nin, nout;
    bp_status error;
} case_run;

static inline bp_tensor *case_tensor(fixture *f, uint32_t seed, int64_t rows)
{
    float v[12];
    for (uint32_t i = 0; i < 12; i++)
        v[i] = (float)((seed * 37 + i * 11) % 19) / 8 - 1;
    return bp_tensor_from(f->c, BP_F32, 2, (int64_t[]){rows, 3}, v);
}

static inline bp_tensor *case_leaf(fixture *f, case_run *r, uint32_t seed, int64_t rows)
{
    bp_tensor *t = case_tensor(f, seed, rows);
    bp_tensor_set_requires_grad(f->c, t, 1);
    return r->leaves[r->nleaves++] = t;
}

static inline void case_make(fixture *f, case_run *r, const char *kinds)
{
    for (; *kinds; kinds++, r->nin++) {
        bp_tensor **t = &r->in[r->nin];
        uint32_t seed = r->nin + 1;
        switch (*kinds) {
        case 'L': *t = case_leaf(f, r, seed, 2); break;
        case 'N': *t = bp_mul(f->c, case_leaf(f, r, seed, 2), 1.5); break;
        case 'V': *t = bp_slice(f->c, bp_mul(f->c, case_leaf(f, r, seed, 4), 1.5), .end = BP_SCALAR(2)); break;
        case 'S': *t = r->in[r->nin - 1]; break;
        case 'A': {
            bp_tensor *whole = case_tensor(f, seed, 4);
            r->in[r->nin - 1] = bp_slice(f->c, whole, .end = BP_SCALAR(2));
            *t = bp_slice(f->c, whole, .start = BP_SCALAR(1), .end = BP_SCALAR(3));
            break;
        }
        default: *t = case_tensor(f, seed, 2);
        }
    }
}

static inline void case_call(fixture *f, case_run *r, bp_fn fn, bp_callable *g)
{
    bp_value v[CASE_MAX];
    bp_outputs out = {0};
    for (uint32_t i = 0; i < r->nin; i++)
        v[i] = bp_arg_of_tensor(r->in[i]);
    bp_args args = {v, r->nin};
    r->error = g ? bp_call(f->c, g, &args, &out) : bp_run_eager(f->c, fn, NULL, &args, &out);
    r->nout = r->error ? 0 : out.n;
    for (uint32_t i = 0; i < r->nout; i++)
        r->out[i] = out.at[i];
}

/* Backward from all that has history: outputs and inputs. */
static inline void case_backward(fixture *f, case_run *r)
{
    bp_tensor *loss = NULL;
    for (uint32_t i = 0; i < r->nout + r->nin; i++) {
        bp_tensor *t = i < r->nout ? r->out[i] : r->in[i - r->nout];
        if (!t || !bp_tensor_requires_grad(t))
            continue;
        bp_tensor *part = bp_sum(f->c, bp_mul(f->c, bp_mul(f->c, t, t), 0.25 * (i + 1)));
        loss = loss ? bp_add(f->c, loss, part) : part;
    }
    if (loss && bp_tensor_requires_grad(loss))
        bp_backward(f->c, loss, NULL, 0);
}

static inline bool case_same_values(fixture *f, bp_tensor *a, bp_tensor *b)
{
    float x[64] = {0}, y[64] = {0};
    if (!a || !b)
        return a == b;
    int64_t n = bp_tensor_numel(a);
    size_t nbytes = (size_t)n * sizeof *x;
    if (n != bp_tensor_numel(b) || n > 64 || bp_tensor_dtype(a) != bp_tensor_dtype(b))
        return false;
    if (bp_tensor_dtype(a) != BP_F32)
        return true;
    bp_tensor_read(f->c, a, x, nbytes);
    bp_tensor_read(f->c, b, y, nbytes);
    return !memcmp(x, y, nbytes);
}

/* Gradients of a leaf that is used in several places are summed in another order; none is zero. */
static inline bool case_near(fixture *f, bp_tensor *a, bp_tensor *b)
{
    float x[64] = {0}, y[64] = {0};
    for (int i = 0; i < 2; i++) {
        bp_tensor *t = i ? b : a;
        if (t && bp_tensor_read(f->c, t, i ? y : x, (size_t)bp_tensor_numel(t) * sizeof *x) != BP_OK)
            return false;
    }
    for (int i = 0; i < 64; i++)
        if (!(fabsf(x[i] - y[i]) <= 1e-5f * (1 + fabsf(x[i]))))
            return false;
    return true;
}

static inline bool case_same_layout(const bp_tensor *a, const bp_tensor *b)
{
    bool same = bp_tensor_rank(a) == bp_tensor_rank(b);
    for (uint32_t d = 0; same && d < bp_tensor_rank(a); d++)
        same = bp_tensor_size(a, d) == bp_tensor_size(b, d) && bp_tensor_stride(a, d) == bp_tensor_stride(b, d);
    return same;
}

#define case_fail(...) fail_msg(__VA_ARGS__)
static inline void case_compare(fixture *f, const char *what, const case_run *e, const case_run *g)
{
    bp_tensor *x[2 * CASE_MAX], *y[2 * CASE_MAX];
    if ((e->error != 0) != (g->error != 0) || e->nout != g->nout)
        case_fail("%s: %u results, code %d, and eager %u, code %d: %s", what, g->nout, g->error, e->nout, e->error,
                  bp_error_text(f->c));
    for (uint32_t i = 0; i < e->nout + e->nin; i++) {
        x[i] = i < e->nout ? e->out[i] : e->in[i - e->nout];
        y[i] = i < e->nout ? g->out[i] : g->in[i - e->nout];
        if (!case_same_values(f, x[i], y[i]))
            case_fail("%s: value %u differs", what, i);
        if (bp_tensor_requires_grad(x[i]) != bp_tensor_requires_grad(y[i]))
            case_fail("%s: value %u: requires_grad is %d", what, i, bp_tensor_requires_grad(y[i]));
        if (bp_tensor_is_leaf(x[i]) != bp_tensor_is_leaf(y[i]))
            case_fail("%s: value %u: is_leaf is %d", what, i, bp_tensor_is_leaf(y[i]));
        if (!case_same_layout(x[i], y[i]))
            case_fail("%s: value %u is laid out otherwise", what, i);
        for (uint32_t k = 0; k < i; k++) {
            if ((x[k] == x[i]) != (y[k] == y[i]))
                case_fail("%s: values %u and %u are %sone object", what, k, i, y[k] == y[i] ? "" : "not ");
            if (bp_tensor_same_storage(x[k], x[i]) != bp_tensor_same_storage(y[k], y[i]))
                case_fail("%s: values %u and %u %sshare memory", what, k, i,
                          x[k]->store == x[i]->store ? "do not " : "");
        }
    }
}

static inline void case_compare_grads(fixture *f, const char *what, const case_run *e, const case_run *g)
{
    if (bp_error(f->c))
        case_fail("%s: %s", what, bp_error_text(f->c));
    for (uint32_t i = 0; i < e->nleaves; i++) {
        bp_tensor *a = bp_tensor_grad(f->c, e->leaves[i]), *b = bp_tensor_grad(f->c, g->leaves[i]);
        if (!case_near(f, a, b))
            case_fail("%s: the gradient of leaf %u differs%s", what, i, !b ? ": there is none" : "");
    }
}

static inline bp_compiled *plain_backend(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    return bp_forward(gm);
}

static inline void case_check(fixture *f, const aot_case *k, const char *backend)
{
    bp_compile_options o = {.backend = backend, .backend_fn = backend ? NULL : plain_backend};
    bp_callable *g = bp_compile_at(f->c, k->fn, &o, sizeof o, k->name, __FILE__, __LINE__);
    char what[160];
    assert_non_null(g);
    for (int round = 0; round < 3; round++) {
        case_run e = {0}, r = {0};
        snprintf(what, sizeof what, "%s on %s, call %d", k->name, backend ? backend : "a function", round);
        bp_scope_begin(f->c);
        case_make(f, &e, k->inputs + (k->inputs[0] == '!'));
        case_make(f, &r, k->inputs + (k->inputs[0] == '!'));
        case_call(f, &e, k->fn, NULL);
        bp_error_clear(f->c);
        case_call(f, &r, NULL, g);
        case_compare(f, what, &e, &r);
        bp_error_clear(f->c);
        case_backward(f, &e);
        if (bp_error(f->c))
            case_fail("%s: eager: %s", what, bp_error_text(f->c));
        case_backward(f, &r);
        case_compare_grads(f, what, &e, &r);
        bp_scope_end(f->c);
    }
    if ((stats(f, g).eager_calls > 0) != (k->inputs[0] == '!'))
        case_fail("%s: %u calls ran eagerly", what, stats(f, g).eager_calls);
    bp_callable_unref(g);
}

static const char *const CASE_BACKENDS[] = {"eager", NULL, "aot_eager", "aot_eager_default_partitioner"};
static inline void case_check_all(fixture *f, const aot_case *k)
{
    for (size_t i = 0; i < sizeof CASE_BACKENDS / sizeof *CASE_BACKENDS; i++)
        case_check(f, k, CASE_BACKENDS[i]);
}
#endif
