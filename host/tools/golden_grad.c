/* Gradients of a graph case: its recorded inputs require grad, it runs under the tape or compiled, and backward from
 * the recorded gradients of its outputs must give the recorded gradients of its inputs. No gradient is None, not
 * zeros. */
#include "host/grad/tape.h"
#include "host/tools/golden_case.h"
#include <math.h>
#include <stdlib.h>

typedef struct {
    golden_case *k;
    const golden_call *call;
    bp_tensor **outputs, **roots, **grads, **wanted, **got;
    uint32_t noutputs, nroots, nwanted;
    uint32_t ntaken;         /* outputs that a captured function has given */
    bool turned;             /* some factor has another sign than the recorded one */
    buf *why;
} grad_case;

static bool make_room(grad_case *g, const json_t *j)
{
    g->noutputs = graph_output_count(&g->call->gm->g);
    g->nroots = (uint32_t)json_array_size(json_object_get(j, "differentiable_outputs"));
    g->nwanted = (uint32_t)json_array_size(json_object_get(j, "grad_inputs_of"));
    g->outputs = calloc(g->noutputs + 1, sizeof *g->outputs);
    g->roots = calloc(g->nroots + 1, sizeof *g->roots);
    g->grads = calloc(g->nroots + 1, sizeof *g->grads);
    g->wanted = calloc(g->nwanted + 1, sizeof *g->wanted);
    g->got = calloc(g->nwanted + 1, sizeof *g->got);
    return g->outputs && g->roots && g->grads && g->wanted && g->got;
}

static void grad_case_fini(grad_case *g)
{
    for (uint32_t i = 0; g->outputs && i < g->noutputs; i++)
        tensor_unref(g->outputs[i]);
    for (uint32_t i = 0; g->got && i < g->nwanted; i++)
        tensor_unref(g->got[i]);
    free(g->outputs);
    free(g->roots);
    free(g->grads);
    free(g->wanted);
    free(g->got);
}

/* Item i of a list of numbers; UINT32_MAX when it is none. */
static uint32_t index_at(const json_t *list, uint32_t i)
{
    const json_t *n = json_array_get(list, i);
    return json_is_integer(n) ? (uint32_t)json_integer_value(n) : UINT32_MAX;
}

static bool mark_inputs(grad_case *g, const json_t *j)
{
    for (uint32_t i = 0; i < g->nwanted; i++) {
        uint32_t at = index_at(json_object_get(j, "grad_inputs_of"), i);
        if (at >= g->call->ninputs)
            return golden_bad(g->k, "grad_inputs_of[%u] is no input", i);
        g->wanted[i] = g->call->inputs[at];
        g->wanted[i]->flags |= TENSOR_REQUIRES_GRAD;
    }
    return true;
}

/* -- factors whose signs are free ---------------------------------------------------------------------------------- */

/* One line of a matrix: a column (or a row) of batch `at`. */
typedef struct { int64_t first, step, n; } line;

static line line_of(const bp_tensor *t, int64_t batch, int64_t i, bool rows)
{
    uint32_t down = t->rank - 2, across = t->rank - 1, along = rows ? across : down;
    line l = {i * tensor_step(t, rows ? down : across), tensor_step(t, along), tensor_dim(t, along)};
    for (uint32_t d = t->rank - 2; d-- > 0; batch /= tensor_dim(t, d))
        l.first += batch % tensor_dim(t, d) * tensor_step(t, d);
    return l;
}

static double *element(const bp_tensor *t, line l, int64_t k)
{
    return (double *)tensor_ptr(t) + l.first + k * l.step;
}

/* 1 or -1 where the line of `got` is that of `want`, or its opposite; 0: it is neither. */
static int sign_between(const bp_tensor *got, line g, const bp_tensor *want, line w)
{
    double same = 0, opposite = 0, size = 0;
    for (int64_t k = 0; k < g.n; k++) {
        double a = *element(got, g, k), b = *element(want, w, k);
        same += a == b || (isnan(a) && isnan(b)) ? 0 : (a - b) * (a - b);
        opposite += (a + b) * (a + b);
        size += b * b;
    }
    double least = 1e-12 * size;
    return same <= least ? 1 : opposite <= least ? -1 : 0;
}

/* Turns the lines of grad whose lines in got are those of want with the other sign; false: some line is neither. */
static bool turn_lines(const bp_tensor *got, const bp_tensor *want, const bp_tensor *grad, bool rows, bool *turned)
{
    int64_t lines = tensor_dim(got, got->rank - (rows ? 2 : 1)), batches = 1;
    for (uint32_t d = 0; d + 2 < got->rank; d++)
        batches *= tensor_dim(got, d);
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < batches * lines; i++) {
            line g = line_of(got, i / lines, i % lines, rows), w = line_of(want, i / lines, i % lines, rows);
            line t = line_of(grad, i / lines, i % lines, rows);
            int sign = sign_between(got, g, want, w);
            if (!sign)
                return false;
            for (int64_t k = 0; pass == 1 && sign < 0 && k < t.n; k++)
                *element(grad, t, k) = -*element(grad, t, k);
            *turned |= sign < 0;
        }
    return true;
}

/* Eigenvectors and singular vectors may come with the other sign. A loss that knows the recorded ones has a gradient by
 * ours that is turned likewise, and the same gradient by the input. */
static bool turn_grad(grad_case *g, const json_t *j, uint32_t i)
{
    uint32_t at = index_at(json_object_get(j, "differentiable_outputs"), i);
    const bp_tensor *got = g->outputs[at], *grad = g->grads[i];
    const bp_tensor *want = golden_read_tensor(g->k, json_array_get(json_object_get(j, "outputs"), at));
    if (!want)
        return false;
    bool ours = got->dtype == BP_F64 && want->dtype == BP_F64 && got->rank >= 2 && got->rank == want->rank;
    for (uint32_t d = 0; ours && d < got->rank; d++)
        ours = tensor_dim(got, d) == tensor_dim(want, d) && tensor_dim(got, d) == tensor_dim(grad, d);
    if (ours && !turn_lines(got, want, grad, false, &g->turned))
        turn_lines(got, want, grad, true, &g->turned);
    return true;
}

static bool has_kind(const grad_case *g, uint32_t kind)
{
    const graph *of = &g->call->gm->g;
    for (node_id n = of->first; n; n = graph_get(of, n)->next)
        if (graph_get(of, n)->op == BP_NODE_CALL_FUNCTION && (golden_kind(graph_get(of, n)->target) & kind))
            return true;
    return false;
}

static bool find_roots(grad_case *g, const json_t *j)
{
    for (uint32_t i = 0; i < g->nroots; i++) {
        uint32_t at = index_at(json_object_get(j, "differentiable_outputs"), i);
        if (at >= g->noutputs || !g->outputs[at])
            return golden_bad(g->k, "differentiable_outputs[%u] is no output", i);
        g->roots[i] = g->outputs[at];
        if (!(g->grads[i] = golden_read_tensor(g->k, json_array_get(json_object_get(j, "grad_outputs"), i))))
            return false;
    }
    for (uint32_t i = 0; i < g->nroots && has_kind(g, KIND_FACTOR); i++)
        if (!turn_grad(g, j, i))
            return false;
    return true;
}

/* -- judging ------------------------------------------------------------------------------------------------------- */

static bool judge_one(grad_case *g, const json_t *j, uint32_t i)
{
    const bp_tensor *got = g->got[i];
    const golden_bounds strict = {0};
    golden_diff d = {.equal = json_is_null(j) && !got};
    if (d.equal)
        return true;
    if (json_is_null(j) || !got) {
        buf_printf(g->why, "gradient %u is %s, expected %s", i, got ? "a tensor" : "None", got ? "None" : "a tensor");
        return false;
    }
    const bp_tensor *want = golden_read_tensor(g->k, j);
    if (!want)
        return false;
    golden_compare(got, want, &strict, &d);
    if (!d.equal)
        buf_printf(g->why, "gradient %u %s", i, d.text);
    return d.equal;
}

static bool judge(grad_case *g, const json_t *j)
{
    const json_t *want = json_object_get(j, "grad_inputs");
    for (uint32_t i = 0; i < g->nwanted; i++)
        if (!judge_one(g, json_array_get(want, i), i))
            return false;
    return true;
}

static bool take(void *arg, bp_tensor *t)
{
    grad_case *g = arg;
    if (g->ntaken < g->noutputs)
        g->outputs[g->ntaken++] = t;
    else
        tensor_unref(t);
    return true;
}

static bp_status run(grad_case *g)
{
    const golden_call *k = g->call;
    golden_call own = {.gm = k->gm, .inputs = k->inputs, .ninputs = k->ninputs, .take = take, .arg = g,
                       .backend = g->k->o->aot};
    if (golden_trains_symbolic(g->k, k))
        return golden_train_symbolic(g->k, k, g->outputs, g->noutputs);
    if (own.backend)
        return golden_run_captured(g->k->c, &own, &g->k->eagerly);
    return graph_run(g->k->c, k->gm, k->inputs, k->ninputs, g->outputs, g->noutputs, NULL, NULL);
}

/* -- what was recorded is not always a derivative ------------------------------------------------------------------ */

enum { MOST_ELEMENTS = 256 };

/* Element n of a tensor, in row-major order. */
static double *nth(const bp_tensor *t, int64_t n)
{
    int64_t at = 0;
    for (uint32_t d = t->rank; d-- > 0; n /= tensor_dim(t, d))
        at += n % tensor_dim(t, d) * tensor_step(t, d);
    return (double *)tensor_ptr(t) + at;
}

/* The sum of all roots times their gradients, now that an input has moved. */
static bool value_of(grad_case *g, const json_t *j, double *sum)
{
    const golden_call *k = g->call;
    bp_tensor **out = calloc(g->noutputs + 1, sizeof *out);
    bool ok = out && graph_run(g->k->c, k->gm, k->inputs, k->ninputs, out, g->noutputs, NULL, NULL) == BP_OK;
    *sum = 0;
    for (uint32_t i = 0; ok && i < g->nroots; i++) {
        const bp_tensor *t = out[index_at(json_object_get(j, "differentiable_outputs"), i)];
        ok = t && t->dtype == BP_F64 && g->grads[i]->dtype == BP_F64;
        for (int64_t n = 0; ok && n < tensor_nelem(t); n++)
            *sum += *nth(t, n) * *nth(g->grads[i], n);
    }
    for (uint32_t i = 0; out && i < g->noutputs; i++)
        tensor_unref(out[i]);
    free(out);
    return ok;
}

static bool difference(grad_case *g, const json_t *j, double *x, double *slope)
{
    const double step = 1e-5, was = *x;
    double above = 0, below = 0;
    *x = was + step;
    bool ok = value_of(g, j, &above);
    *x = was - step;
    ok = ok && value_of(g, j, &below);
    *x = was;
    *slope = (above - below) / (2 * step);
    return ok;
}

/* Ours is what differences of the graph itself say; *refuted: the recorded one is not. */
static bool agrees(grad_case *g, const json_t *j, uint32_t i, bool *refuted)
{
    const bp_tensor *x = g->wanted[i], *got = g->got[i];
    const bp_tensor *want = golden_read_tensor(g->k, json_array_get(json_object_get(j, "grad_inputs"), i));
    if (!want || !got || x->dtype != BP_F64 || got->dtype != BP_F64 || want->dtype != BP_F64 ||
        tensor_nelem(x) > MOST_ELEMENTS || tensor_nelem(want) != tensor_nelem(x))
        return false;
    for (int64_t n = 0; n < tensor_nelem(x); n++) {
        double slope;
        if (!difference(g, j, nth(x, n), &slope) || fabs(slope - *nth(got, n)) > 1e-6 * (1 + fabs(slope)))
            return false;
        *refuted |= fabs(slope - *nth(want, n)) > 1e-3 * (1 + fabs(slope));
    }
    return true;
}

/* A recorded gradient that the recorded graph's own differences refute, and ours does not, is PyTorch's fault. */
static bool passes_by_differences(grad_case *g, const json_t *j)
{
    bp_ctx *c = g->k->c;
    uint8_t grad = c->ambient.grad_enabled;
    bool refuted = false, ok = has_kind(g, KIND_MISTAKEN);
    c->ambient.grad_enabled = 0;
    for (uint32_t i = 0; ok && i < g->nwanted; i++)
        ok = agrees(g, j, i, &refuted);
    c->ambient.grad_enabled = grad;
    diag_clear(&c->diag);
    return ok && refuted;
}

static bool judge_fakes(grad_case *g, const json_t *j)
{
    uint32_t *at = calloc(g->nroots + 1, sizeof *at);
    if (!at)
        return golden_bad(g->k, "out of memory");
    for (uint32_t i = 0; i < g->nroots; i++)
        at[i] = index_at(json_object_get(j, "differentiable_outputs"), i);
    golden_grads all = {at, g->grads, g->wanted, g->got, g->nroots, g->nwanted};
    bool ok = golden_grad_on_fakes(g->k, g->call, &all, g->why);
    free(at);
    return ok;
}

static golden_verdict run_grad(grad_case *g, const json_t *j)
{
    bp_ctx *c = g->k->c;
    if (!mark_inputs(g, j))
        return CASE_FAILED;
    if (run(g) != BP_OK)
        return golden_judge_error(g->k, g->why);
    if (!find_roots(g, j))
        return CASE_FAILED;
    if (tape_backward(c, g->roots, g->grads, g->nroots, g->wanted, g->got, g->nwanted, TAPE_ALLOW_UNUSED) != BP_OK)
        return golden_judge_error(g->k, g->why);
    if (g->k->o->check_fake && !judge_fakes(g, j))
        return CASE_FAILED;
    if (g->k->o->aot && !golden_cut_saves_less(g->k, g->call, g->why))
        return CASE_FAILED;
    if (!judge(g, j))
        return passes_by_differences(g, j) ? CASE_BY_DIFFERENCES : CASE_FAILED;
    return g->turned ? CASE_TURNED : CASE_PASSED;
}

golden_verdict golden_run_grad(golden_case *k, const golden_call *call, const json_t *j, buf *why)
{
    grad_case g = {.k = k, .call = call, .why = why};
    golden_verdict v = CASE_FAILED;
    if (make_room(&g, j))
        v = run_grad(&g, j);
    else
        golden_bad(k, "out of memory");
    grad_case_fini(&g);
    return v;
}
