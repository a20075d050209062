/* Derivatives proven by differences. A case is a function of its float tensors; with random weights w of its results
 * and a random direction v of its inputs, the tape's <J^T w, v> must be the slope of <w, f(x + t v)>. The same once
 * more for the tape's gradients themselves, which are functions of x and of w.
 *
 * A point may lie on a kink, and a difference may be too coarse: noise moves it, and several steps are tried, before a
 * case fails. A wrong derivative fails at each. */
#include "host/tools/golden_derivative.h"
#include "host/grad/derivative.h"
#include "host/grad/tape.h"
#include "host/pass/decomp.h"
#include "host/tools/golden_point.h"
#include <backplane/backplane.h>
#include <math.h>
#include <string.h>

typedef struct {
    point p;
    tensor_list w, u;        /* weights of results and of gradients; NULL: of none */
    tensor_list turn;        /* directions of w */
    bool rough;              /* some result was not finite, and has no weight */
    double size;             /* what was added up, without signs */
} proof;

typedef enum { AGREES, DIFFERS, UNKNOWN } outcome;

/* What is known of an operator by its name: golden_derivative.def. */
enum known_kind { KNOWN_RESULTS, KNOWN_BY, KNOWN_SOME, KNOWN_ZERO, KNOWN_UNCHECKED };
static const struct { const char *target, *text; enum known_kind kind; uint32_t bits; } knowns[] = {
#define DERIVATIVE_ARG(target, arg, kind)
#define DERIVATIVE_RESULTS(target, bits) {target, NULL, KNOWN_RESULTS, bits},
#define DERIVATIVE_BY(target, by) {target, by, KNOWN_BY, 0},
#define DERIVATIVE_SOME(target, why) {target, why, KNOWN_SOME, 0},
#define DERIVATIVE_ZERO(target) {target, "", KNOWN_ZERO, 0},
#define DERIVATIVE_UNCHECKED(target, why) {target, why, KNOWN_UNCHECKED, 0},
#include "host/tools/golden_derivative.def"
#undef DERIVATIVE_ARG
#undef DERIVATIVE_RESULTS
#undef DERIVATIVE_BY
#undef DERIVATIVE_SOME
#undef DERIVATIVE_ZERO
#undef DERIVATIVE_UNCHECKED
};

/* The text of what is known; NULL: that is not. */
static const char *known(const op_row *row, enum known_kind kind)
{
    for (uint32_t i = 0; i < sizeof knowns / sizeof *knowns; i++)
        if (knowns[i].kind == kind && !strcmp(knowns[i].target, row->target))
            return knowns[i].text;
    return NULL;
}

/* Which results count, as bits. */
static uint32_t counting(const op_row *row)
{
    for (uint32_t i = 0; i < sizeof knowns / sizeof *knowns; i++)
        if (knowns[i].kind == KNOWN_RESULTS && !strcmp(knowns[i].target, row->target))
            return knowns[i].bits;
    return UINT32_MAX;
}

/* -- the call's tape ----------------------------------------------------------------------------------------------- */

typedef struct { tensor_list leaves, results, w; } taped;

static void taped_clear(taped *t)
{
    tensor_list_clear(&t->leaves);
    tensor_list_clear(&t->results);
    tensor_list_clear(&t->w);
}

static bool is_function(const bp_tensor *t)
{
    return t && bp_tensor_requires_grad((bp_tensor *)(uintptr_t)t);
}

static bp_status push(bp_ctx *c, tensor_list *l, bp_tensor *t)
{
    if (vec_push(l, t))
        return BP_OK;
    tensor_unref(t);
    return ctx_nomem(c);
}

/* Gradients of those results that have weights, a new reference an input or NULL. wleaves: weights as inputs too. */
static bp_status gradients(bp_ctx *c, const taped *t, uint32_t flags, tensor_list *out)
{
    VEC(bp_tensor *) roots = {0}, weights = {0}, inputs = {0};
    bp_status s = BP_OK;
    for (uint32_t i = 0; i < t->results.len && !s; i++)
        if (i < t->w.len && t->w.at[i] && is_function(t->results.at[i]))
            s = vec_push(&roots, t->results.at[i]) && vec_push(&weights, t->w.at[i]) ? BP_OK : ctx_nomem(c);
    for (uint32_t i = 0; i < t->leaves.len && !s; i++)
        if (t->leaves.at[i] && !vec_push(&inputs, t->leaves.at[i]))
            s = ctx_nomem(c);
    bp_tensor **got = s ? NULL : calloc(inputs.len + 1, sizeof *got);
    if (got && roots.len)
        s = tape_backward(c, roots.at, weights.at, roots.len, inputs.at, got, inputs.len, flags | TAPE_ALLOW_UNUSED);
    for (uint32_t i = 0, k = 0; got && i < t->leaves.len; i++)
        if (push(c, out, t->leaves.at[i] ? got[k++] : NULL))
            s = c->diag.code;
    free(got);
    vec_fini(&roots);
    vec_fini(&weights);
    vec_fini(&inputs);
    return s;
}

/* The taped call at x + t v with weights w + t turn, as leaves. */
static bp_status tape_at(proof *f, double t, taped *out)
{
    bp_ctx *c = f->p.k->c;
    TRY(point_run(&f->p, t, &out->leaves, &out->results));
    for (uint32_t i = 0; i < f->w.len; i++) {
        bp_tensor *w = f->w.at[i] ? point_shift(c, f->w.at[i], f->turn.len ? f->turn.at[i] : f->w.at[i],
                                                f->turn.len ? t : 0) : NULL;
        if (w && f->turn.len)
            bp_tensor_set_requires_grad(c, w, 1);
        TRY(push(c, &out->w, w));
    }
    return c->diag.code;
}

/* -- slopes -------------------------------------------------------------------------------------------------------- */

typedef double (*value_fn)(proof *f, double t);

/* <w, f(x + t v)> */
static double value_of_results(proof *f, double t)
{
    tensor_list results = {0};
    double sum = NAN, size = 0;
    if (!point_run(&f->p, t, NULL, &results)) {
        sum = 0;
        for (uint32_t i = 0; i < results.len && i < f->w.len; i++) {
            bp_tensor *plain = f->w.at[i] ? point_plain(f->p.k->c, results.at[i]) : NULL;
            if (plain && numbers_of(plain) == numbers_of(f->w.at[i]))
                sum += point_dot(f->w.at[i], plain, false, &size);
            tensor_unref(plain);
        }
    }
    tensor_list_clear(&results);
    f->size = fmax(f->size, size);
    return sum;
}

/* <u, the tape's gradients at x + t v with weights w + t turn> */
static double value_of_gradients(proof *f, double t)
{
    taped at = {0};
    tensor_list g = {0};
    double sum = NAN, size = 0;
    if (!tape_at(f, t, &at) && !gradients(f->p.k->c, &at, 0, &g)) {
        sum = 0;
        for (uint32_t i = 0; i < g.len && i < f->u.len; i++) {
            bp_tensor *plain = f->u.at[i] && g.at[i] ? point_plain(f->p.k->c, g.at[i]) : NULL;
            if (plain)
                sum += point_dot(f->u.at[i], plain, false, &size);
            tensor_unref(plain);
        }
    }
    tensor_list_clear(&g);
    taped_clear(&at);
    f->size = fmax(f->size, size);
    return sum;
}

static double central(proof *f, value_fn value, double h)
{
    return (value(f, h) - value(f, -h)) / (2 * h);
}

/* Whether `want`, a sum of terms of that size altogether, is the slope of value at 0; *got: a difference. */
static outcome compare(proof *f, value_fn value, double want, double terms, double *got)
{
    static const double steps[] = {1e-6, 1e-5, 1e-4, 1e-7, 1e-3};
    outcome o = UNKNOWN;
    for (uint32_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        double h = steps[i];
        f->size = 0;
        double d = central(f, value, h), again = h >= 1e-5 ? (4 * central(f, value, h / 2) - d) / 3 : d;
        if (!isfinite(d))
            continue;
        double bound = 1e-5 * fmax(fabs(want), fabs(d)) + 1e-7 * terms + 1e-14 * f->size / h + 1e-11;
        *got = d;
        o = DIFFERS;
        if (fabs(want - d) <= bound || fabs(want - again) <= bound)
            return AGREES;
    }
    return o;
}

/* -- weights ------------------------------------------------------------------------------------------------------- */

/* Random weights of the tensors that are functions of the leaves, by bits of `which`. */
static bp_status weigh(proof *f, const tensor_list *of, uint32_t which, tensor_list *w)
{
    bp_ctx *c = f->p.k->c;
    for (uint32_t i = 0; i < of->len; i++) {
        bp_tensor *plain = is_function(of->at[i]) && (i > 31 || which >> i & 1) ? point_plain(c, of->at[i]) : NULL;
        f->rough |= plain && !point_is_finite(plain);
        bp_tensor *weights = plain ? point_weights(&f->p, plain) : NULL;
        tensor_unref(plain);
        TRY(push(c, w, weights));
    }
    return c->diag.code;
}

static bool has_any(const tensor_list *l)
{
    for (uint32_t i = 0; i < l->len; i++)
        if (l->at[i])
            return true;
    return false;
}

/* <along, gradients> of the inputs; *terms: without signs. Where a result is not finite, neither is all of a gradient:
 * such places of an input stay where they are. */
static bp_status along_gradients(proof *f, const tensor_list *g, double *sum, double *terms)
{
    bp_ctx *c = f->p.k->c;
    for (uint32_t i = 0; i < f->p.floats.len && i < g->len; i++) {
        point_float *x = &f->p.floats.at[i];
        bp_tensor *plain = g->at[i] ? point_plain(c, g->at[i]) : NULL;
        for (int64_t q = 0, n = plain && f->rough ? numbers_of(plain) : 0; q < n; q++)
            if (!isfinite(numbers(plain)[q]))
                numbers(x->along)[q] = 0;
        if (plain)
            *sum += point_dot(x->along, plain, false, terms);
        tensor_unref(plain);
    }
    return c->diag.code;
}

/* -- on fakes: a derivative reads metadata alone ------------------------------------------------------------------- */

static bp_status fake_gradients(proof *f, tensor_list *g)
{
    bp_ctx *c = f->p.k->c;
    taped t = {0};
    bp_status s = point_run(&f->p, 0, &t.leaves, &t.results);
    for (uint32_t i = 0; i < t.results.len && !s; i++)
        s = push(c, &t.w, i < f->w.len && f->w.at[i] ? point_fake(c, t.results.at[i]) : NULL);
    if (!s)
        s = gradients(c, &t, 0, g);
    taped_clear(&t);
    return s;
}

static bool same_form(const bp_tensor *a, const bp_tensor *b)
{
    bool same = (!a && !b) || (a && b && a->rank == b->rank && a->dtype == b->dtype);
    for (uint32_t d = 0; same && a && d < a->rank; d++)
        same = tensor_dim(a, d) == tensor_dim(b, d);
    return same;
}

/* Whether gradients come out of fakes as they do of tensors. Sizes that depend on data are none of a derivative's. */
static bool holds_on_fakes(proof *f, const tensor_list *real)
{
    bp_ctx *c = f->p.k->c;
    dispatch_mode fake, tape;
    tensor_list g = {0};
    mode_init_fake(&fake);
    tape_mode_init(&tape);
    mode_push(c, &fake);
    mode_push(c, &tape);
    f->p.fakes = true;
    bp_status s = fake_gradients(f, &g);
    f->p.fakes = false;
    mode_pop(c, &tape);
    mode_pop(c, &fake);
    bool same = s == BP_FAILED_PRECONDITION || s == BP_OK;
    for (uint32_t i = 0; s == BP_OK && i < real->len && same; i++)
        same = same_form(i < g.len ? g.at[i] : NULL, real->at[i]);
    if (s == BP_FAILED_PRECONDITION)
        diag_clear(&c->diag);
    tensor_list_clear(&g);
    return same;
}

/* -- one attempt --------------------------------------------------------------------------------------------------- */

typedef struct { outcome first, second; bool moved, has_second; char text[300]; } attempt;

static void say(attempt *a, const char *what, double want, double got)
{
    snprintf(a->text, sizeof a->text, "%s is %.9g by the tape, and %.9g by differences", what, want, got);
}

static bp_status prove_first(proof *f, attempt *a)
{
    bp_ctx *c = f->p.k->c;
    taped t = {0};
    tensor_list g = {0};
    double want = 0, terms = 0, got = NAN;
    bp_status s = point_run(&f->p, 0, &t.leaves, &t.results);
    if (!s)
        s = weigh(f, &t.results, counting(f->p.row), &f->w);
    for (uint32_t i = 0; i < f->w.len && !s; i++)
        s = push(c, &t.w, f->w.at[i] ? tensor_ref(f->w.at[i]) : NULL);
    if (!s && has_any(&f->w) && !(s = gradients(c, &t, 0, &g)) && !(s = along_gradients(f, &g, &want, &terms))) {
        a->first = compare(f, value_of_results, want, terms, &got);
        a->moved = terms > 1e-7;
        say(a, "the derivative", want, got);
        if (a->first == AGREES && !holds_on_fakes(f, &g)) {
            a->first = DIFFERS;
            snprintf(a->text, sizeof a->text, "the derivative of fakes is another: %.200s",
                     ctx_ok(c) ? "sizes or types differ" : c->diag.message);
            diag_clear(&c->diag);
        }
    }
    tensor_list_clear(&g);
    taped_clear(&t);
    return s;
}

/* Moves the gradients of t's results to its place of results, so that they are what is differentiated. */
static bp_status differentiate(proof *f, taped *t)
{
    bp_ctx *c = f->p.k->c;
    tensor_list g = {0};
    bp_status s = gradients(c, t, TAPE_CREATE, &g);
    if (!s)
        s = weigh(f, &g, UINT32_MAX, &f->u);
    tensor_list_clear(&t->results);
    t->results = g;
    for (uint32_t i = 0; i < t->w.len && !s; i++)
        s = push(c, &t->leaves, t->w.at[i] ? tensor_ref(t->w.at[i]) : NULL);
    tensor_list_clear(&t->w);
    for (uint32_t i = 0; i < f->u.len && !s; i++)
        s = push(c, &t->w, f->u.at[i] ? tensor_ref(f->u.at[i]) : NULL);
    return s;
}

static bp_status along_weights(proof *f, const tensor_list *g, double *sum, double *terms)
{
    for (uint32_t i = 0, k = f->p.floats.len; i < f->turn.len && k < g->len; i++, k++) {
        bp_tensor *plain = g->at[k] ? point_plain(f->p.k->c, g->at[k]) : NULL;
        if (plain && f->turn.at[i])
            *sum += point_dot(f->turn.at[i], plain, f->rough, terms);
        tensor_unref(plain);
    }
    return f->p.k->c->diag.code;
}

static bp_status prove_second(proof *f, attempt *a)
{
    bp_ctx *c = f->p.k->c;
    taped t = {0};
    tensor_list g = {0};
    double want = 0, terms = 0, got = NAN;
    bp_status s = BP_OK;
    for (uint32_t i = 0; i < f->w.len && !s; i++)
        s = push(c, &f->turn, f->w.at[i] ? point_weights(&f->p, f->w.at[i]) : NULL);
    if (!s && !(s = tape_at(f, 0, &t)) && !(s = differentiate(f, &t)) && has_any(&f->u) &&
        !(s = gradients(c, &t, 0, &g)) && !(s = along_gradients(f, &g, &want, &terms)) &&
        !(s = along_weights(f, &g, &want, &terms))) {
        a->has_second = true;
        a->second = compare(f, value_of_gradients, want, terms, &got);
        if (a->second != AGREES)
            say(a, "the second derivative", want, got);
    }
    tensor_list_clear(&g);
    taped_clear(&t);
    return s;
}

static void proof_clear(proof *f)
{
    tensor_list_clear(&f->w);
    tensor_list_clear(&f->u);
    tensor_list_clear(&f->turn);
    f->rough = false;
}

/* UNIMPLEMENTED from the second derivative alone: there is none. */
static bp_status try_at(proof *f, double noise, attempt *a)
{
    *a = (attempt){.first = UNKNOWN, .second = UNKNOWN};
    proof_clear(f);
    TRY(point_draw(&f->p, noise));
    TRY(prove_first(f, a));
    if (a->first != AGREES)
        return BP_OK;
    bp_status s = prove_second(f, a);
    if (s == BP_UNIMPLEMENTED) {
        diag_clear(&f->p.k->c->diag);
        s = BP_OK;
    }
    return s;
}

/* -- a case -------------------------------------------------------------------------------------------------------- */

static golden_verdict unsupported(buf *why, const char *reason)
{
    buf_puts(why, reason);
    return CASE_UNSUPPORTED;
}

static void note(golden_derivatives *seen, const op_row *row, const attempt *a)
{
    derivative_seen *s = &seen->rows[row->number];
    s->checked++;
    s->moved += a->moved;
    s->second += a->has_second;
}

/* Attempts with more and more noise. One that agrees is enough: a kink or an edge of the domain is a matter of the
 * point. One whose gradient is zero shows little, and stands only if the others do no better. */
static golden_verdict prove(proof *f, golden_derivatives *seen, buf *why)
{
    static const double noises[] = {1e-3, 0, 1e-2, 0.1, 0.3};
    bp_ctx *c = f->p.k->c;
    attempt best = {.first = UNKNOWN};
    char text[300] = "";
    buf error = {0};
    for (uint32_t i = 0; i < sizeof noises / sizeof *noises; i++) {
        attempt a;
        if (try_at(f, noises[i], &a)) {
            buf_clear(&error);
            golden_judge_error(f->p.k, &error);
            continue;
        }
        if (a.first == AGREES && (!a.has_second || a.second == AGREES)) {
            best = a;
            if (a.moved)
                break;
            continue;
        }
        if (a.first == DIFFERS || (a.first == AGREES && a.second == DIFFERS))
            memcpy(text, a.text, sizeof text);
    }
    diag_clear(&c->diag);
    if (best.first == AGREES) {
        note(seen, f->p.row, &best);
        buf_fini(&error);
        return CASE_PASSED;
    }
    const char *some = known(f->p.row, KNOWN_SOME);
    golden_verdict v = text[0] && !some ? CASE_FAILED : CASE_UNSUPPORTED;
    const char *none = error.n ? buf_text(&error) : "no result is finite, or none requires grad";
    buf_puts(why, !text[0] ? none : some ? some : text);
    buf_fini(&error);
    return v;
}

static bool has_free_float(const point *p)
{
    for (uint32_t i = 0; i < p->floats.len; i++)
        if (!point_is_held(&p->floats.at[i]))
            return true;
    return false;
}

/* Arguments and results that may have a gradient. */
static bool takes_tensors(const op_row *row)
{
    bool takes = false, gives = false;
    for (uint32_t i = 0; i < row->schema->nargs; i++)
        takes |= row->schema->args[i].ty.type == TYPE_TENSOR;
    for (uint32_t i = 0; i < row->schema->nreturns; i++)
        gives |= row->schema->returns[i].type == TYPE_TENSOR;
    return takes && gives;
}

static bool needs_proof(const op_row *row)
{
    if (row->functional || (row->flags & (OP_NO_GRAD_OUT | OP_ITEM)))
        return false;
    if (row->flags & OP_HIGHER) /* a case has no graphs: tests/unit/compile/test_control_flow_grad.c */
        return false;
    const decomp_row *parts = decomp_of(row);
    return grad_row_of(row) || (parts && parts->composite && takes_tensors(row));
}

golden_verdict golden_check_derivative(golden_case *k, const json_t *j, golden_derivatives *seen, buf *why)
{
    const char *target = json_string_value(json_object_get(j, "op"));
    const op_row *row = target ? op_by_target(target) : NULL;
    if (!row)
        return unsupported(why, target ? "its operator is not in the table" : "it is a graph");
    if (!needs_proof(row))
        return unsupported(why, row->functional ? "it writes in place: its functional row is the one with a derivative"
                                                : "its operator has no derivative");
    if (known(row, KNOWN_BY) || known(row, KNOWN_UNCHECKED))
        return unsupported(why, known(row, KNOWN_BY) ? "its arguments belong together" : "it cannot be differenced");
    const derivative_seen *s = &seen->rows[row->number];
    if (seen->once && s->moved)
        return CASE_SKIPPED;
    proof f = {0};
    golden_verdict v = CASE_FAILED;
    if (!point_read(&f.p, k, row, j))
        v = ctx_ok(k->c) ? CASE_FAILED : golden_judge_error(k, why);
    else if (!has_free_float(&f.p))
        v = unsupported(why, "no argument is of floats that have a gradient");
    else
        v = prove(&f, seen, why);
    proof_clear(&f);
    point_fini(&f.p);
    return v;
}

/* -- rows ---------------------------------------------------------------------------------------------------------- */

golden_derivatives *golden_derivatives_new(bool once)
{
    golden_derivatives *d = calloc(1, sizeof *d);
    if (d && !(d->rows = calloc(op_count() + 1, sizeof *d->rows))) {
        free(d);
        return NULL;
    }
    if (d)
        d->once = once;
    return d;
}

void golden_derivatives_free(golden_derivatives *d)
{
    if (d)
        free(d->rows);
    free(d);
}

/* Why the row counts as proven, or not. */
const char *golden_unproven(const golden_derivatives *d, const op_row *row)
{
    const derivative_seen *s = &d->rows[row->number];
    if (!needs_proof(row))
        return NULL;
    if (known(row, KNOWN_UNCHECKED))
        return NULL;
    if (known(row, KNOWN_BY)) {
        const op_row *by = op_by_target(known(row, KNOWN_BY));
        return by && d->rows[by->number].second ? NULL : "the second derivative that proves it was not checked";
    }
    if (!s->checked)
        return "no case of it could be checked";
    bool zero = known(row, KNOWN_ZERO) || (grad_row_of(row) && grad_row_of(row)->zero);
    return s->moved || zero ? NULL : "its gradient was zero in every case";
}

bool golden_proven(const golden_derivatives *d, const op_row *row)
{
    return needs_proof(row) && !golden_unproven(d, row);
}
