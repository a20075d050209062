/* Losses of classes that should stand out by a margin: multi_margin_loss (one class a sample) and
 * multilabel_margin_loss (a list of classes, ended by -1), and their gradients. For float32 and float64. */
#include "host/op/checks.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"

/* self as [n, classes]. A vector or a number is one sample. */
typedef struct {
    int64_t n, classes, reduction, p;
    double margin;
    const double *x, *weight;
    const int64_t *target;
} margin_run;

static uint32_t named(const op_row *op, const char *name) { return (uint32_t)schema_find(op->schema, name); }

static bp_status check_self(bp_ctx *c, const shape_call *s, uint32_t i)
{
    const bp_tensor *x = arg_tensor(s->args, i);
    int64_t reduction = arg_int(c, s->args, named(s->op, "reduction"));
    if (x->dtype != BP_F32 && x->dtype != BP_F64)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"self\": not there for %s",
                       dtype_get(x->dtype)->torch);
    if (arg_tensor(s->args, i + 1)->dtype != BP_I64)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"target\": expected int64, got %s",
                       dtype_get(arg_tensor(s->args, i + 1)->dtype)->torch);
    if (reduction < 0 || reduction > 2)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                       "argument \"reduction\": %lld is none of 0 (none), 1 (mean) and 2 (sum)", (long long)reduction);
    TRY(check_rank(c, s, i, 0, 2));
    if (x->rank && dim_is(x->sizes[x->rank - 1], 0))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"self\" has no classes");
    return BP_OK;
}

static bp_dim samples_of(const bp_tensor *x) { return x->rank == 2 ? x->sizes[0] : dim_const(1); }
static bp_dim classes_of(const bp_tensor *x) { return x->rank ? x->sizes[x->rank - 1] : dim_const(1); }

/* -- multi_margin_loss -- */
static bp_status check_multi(bp_ctx *c, const shape_call *s, uint32_t i)
{
    TRY(check_self(c, s, i));
    const bp_tensor *x = arg_tensor(s->args, i), *t = arg_tensor(s->args, i + 1), *w = arg_tensor(s->args, i + 4);
    double p = scalar_float(arg_scalar(s->args, i + 2));
    if (p != 1 && p != 2)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"p\": %g is neither 1 nor 2", p);
    if (t->rank > 1 || !dim_eq(t->rank ? t->sizes[0] : dim_const(1), samples_of(x)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"target\": expected a class for each of %lld samples",
                       (long long)samples_of(x).value);
    if (w && (w->rank > 1 || !dim_eq(w->rank ? w->sizes[0] : dim_const(1), classes_of(x))))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"weight\": expected a number for each of %lld classes",
                       (long long)classes_of(x).value);
    return w ? check_same_dtype(c, s, i, i + 4) : BP_OK;
}

bp_status shape_multi_margin_loss(bp_ctx *c, shape_call *s)
{
    TRY(check_multi(c, s, 0));
    const bp_tensor *x = arg_tensor(s->args, 0), *t = arg_tensor(s->args, 1);
    bool is_each = arg_int(c, s->args, named(s->op, "reduction")) == 0 && t->rank > 0;
    return out_new(c, s, x->dtype, is_each, t->sizes);
}

/* The gradient that comes back is a number, or one a sample. */
static bp_status add_gradient(bp_ctx *c, shape_call *s)
{
    const bp_tensor *grad = arg_tensor(s->args, 0), *x = arg_tensor(s->args, 1);
    TRY(check_same_dtype(c, s, 0, 1));
    bool is_each = arg_int(c, s->args, named(s->op, "reduction")) == 0 && grad->rank > 0;
    if (grad->rank > 1 || !dim_eq(grad->rank ? grad->sizes[0] : dim_const(1), is_each ? samples_of(x) : dim_const(1)))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"grad_output\" has not the loss's sizes");
    return out_new(c, s, x->dtype, x->rank, x->sizes);
}

bp_status shape_multi_margin_backward(bp_ctx *c, shape_call *s)
{
    TRY(check_multi(c, s, 1));
    return add_gradient(c, s);
}

static bool start(work *w, const op_call *k, uint32_t self, margin_run *r)
{
    const bp_value *a = k->args;
    bp_tensor *from = arg_tensor(a, self), *x = work_in(w, from, BP_F64);
    bp_tensor *target = work_in(w, arg_tensor(a, self + 1), BP_I64);
    bool multi = schema_find(k->op->schema, "margin") >= 0;
    bp_tensor *weight = multi ? work_in(w, arg_tensor(a, self + 4), BP_F64) : NULL;
    if (!work_ok(w))
        return false;
    *r = (margin_run){.n = samples_of(from).value, .classes = classes_of(from).value, .p = 1, .margin = 1,
                      .reduction = arg_int(w->c, a, named(k->op, "reduction")), .x = tensor_ptr(x),
                      .target = tensor_ptr(target), .weight = weight ? tensor_ptr(weight) : NULL};
    if (multi) {
        r->p = scalar_int(arg_scalar(a, self + 2));
        r->margin = scalar_float(arg_scalar(a, self + 3));
    }
    int64_t low = multi ? 0 : -1, count = multi ? r->n : r->n * r->classes;
    for (int64_t i = 0; i < count; i++)
        if (r->target[i] < low || r->target[i] >= r->classes) {
            op_fail(w->c, k->op, BP_OUT_OF_RANGE, "argument \"target\": %lld is no class of %lld",
                    (long long)r->target[i], (long long)r->classes);
            return false;
        }
    return true;
}

/* The loss of sample i; *slope, if given, takes its gradient. */
static double multi_loss(const margin_run *r, int64_t i, double *slope)
{
    const double *x = r->x + i * r->classes;
    int64_t t = r->target[i];
    double sum = 0, by = r->weight ? r->weight[t] : 1;
    for (int64_t d = 0; d < r->classes; d++) {
        double z = r->margin - x[t] + x[d];
        if (d == t || !(z > 0))
            continue;
        sum += by * (r->p == 1 ? z : z * z);
        if (slope) {
            double g = by * (r->p == 1 ? 1 : 2 * z) / (double)r->classes;
            slope[d] += g, slope[t] -= g;
        }
    }
    return sum / (double)r->classes;
}

/* A loss a sample, or their mean or sum. */
static void put_losses(const margin_run *r, const double *each, bp_tensor *out)
{
    double *to = tensor_ptr(out), sum = 0;
    for (int64_t i = 0; i < r->n; i++)
        sum += each[i];
    if (r->reduction == 1)
        sum /= (double)r->n;
    for (int64_t i = 0; i < r->n && r->reduction == 0; i++)
        to[i] = each[i];
    if (r->reduction != 0)
        to[0] = sum;
}

/* The gradient times what comes back: one number, or one a sample. */
static void scale_slopes(const margin_run *r, const bp_tensor *grad, double *slope)
{
    const double *g = tensor_ptr(grad);
    bool is_each = r->reduction == 0 && grad->rank > 0;
    double by = r->reduction == 1 ? 1 / (double)r->n : 1;
    for (int64_t i = 0; i < r->n * r->classes; i++)
        slope[i] *= by * g[is_each ? i / r->classes : 0];
}

typedef double (*sample_loss)(const margin_run *r, int64_t i, double *slope);

static bp_status run_loss(work *w, op_call *k, const margin_run *r, sample_loss f)
{
    bp_tensor *out = work_out(w, k->out[0], BP_F64);
    double *each = work_alloc(w, r->n, sizeof *each);
    for (int64_t i = 0; each && i < r->n; i++)
        each[i] = f(r, i, NULL);
    if (work_ok(w))
        put_losses(r, each, out);
    return work_end(w);
}

static bp_status run_backward(bp_ctx *c, op_call *k, sample_loss f)
{
    work w = {.c = c};
    margin_run r;
    bp_tensor *grad = work_in(&w, arg_tensor(k->args, 0), BP_F64), *out = work_out(&w, k->out[0], BP_F64);
    if (!work_ok(&w) || !start(&w, k, 1, &r))
        return work_end(&w);
    work_clear(out);
    double *slope = tensor_ptr(out);
    for (int64_t i = 0; i < r.n; i++)
        f(&r, i, slope + i * r.classes);
    scale_slopes(&r, grad, slope);
    return work_end(&w);
}

bp_status kernel_multi_margin_loss(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    margin_run r;
    return start(&w, k, 0, &r) ? run_loss(&w, k, &r, multi_loss) : work_end(&w);
}

bp_status kernel_multi_margin_backward(bp_ctx *c, op_call *k) { return run_backward(c, k, multi_loss); }

/* -- multilabel_margin_loss: targets are read up to the first -1 -- */
static bp_status check_labels(bp_ctx *c, const shape_call *s, uint32_t i)
{
    TRY(check_self(c, s, i));
    const bp_tensor *x = arg_tensor(s->args, i), *t = arg_tensor(s->args, i + 1);
    bool fits = x->rank == t->rank || (x->rank < 2 && t->rank < 2);
    for (uint32_t d = 0; fits && d < t->rank; d++)
        fits = dim_eq(t->sizes[d], x->rank ? x->sizes[d] : dim_const(1));
    if (!fits)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"target\" has not the sizes of \"self\"");
    return BP_OK;
}

bp_status shape_multilabel_margin_loss(bp_ctx *c, shape_call *s)
{
    TRY(check_labels(c, s, 0));
    const bp_tensor *x = arg_tensor(s->args, 0), *t = arg_tensor(s->args, 1);
    bool is_each = arg_int(c, s->args, named(s->op, "reduction")) == 0 && t->rank > 1;
    TRY(out_new(c, s, x->dtype, is_each, t->sizes));
    return s->op->schema->nreturns > 1 ? out_new(c, s, x->dtype, t->rank, t->sizes) : BP_OK;
}

bp_status shape_multilabel_margin_backward(bp_ctx *c, shape_call *s)
{
    TRY(check_labels(c, s, 1));
    return add_gradient(c, s);
}

static bool is_label(const margin_run *r, int64_t i, int64_t class)
{
    const int64_t *list = r->target + i * r->classes;
    for (int64_t d = 0; d < r->classes && list[d] >= 0; d++)
        if (list[d] == class)
            return true;
    return false;
}

static double label_loss(const margin_run *r, int64_t i, double *slope)
{
    const double *x = r->x + i * r->classes;
    const int64_t *list = r->target + i * r->classes;
    double sum = 0, share = 1 / (double)r->classes;
    for (int64_t at = 0; at < r->classes && list[at] >= 0; at++)
        for (int64_t d = 0; d < r->classes; d++) {
            double z = 1 - x[list[at]] + x[d];
            if (!(z > 0) || is_label(r, i, d))
                continue;
            sum += z;
            if (slope)
                slope[d] += share, slope[list[at]] -= share;
        }
    return sum * share;
}

/* Output 1, where there is one, marks the classes that are labels. */
bp_status kernel_multilabel_margin_loss(bp_ctx *c, op_call *k)
{
    work w = {.c = c};
    margin_run r;
    if (!start(&w, k, 0, &r))
        return work_end(&w);
    bp_tensor *marks = k->nout > 1 ? work_out(&w, k->out[1], BP_F64) : NULL;
    for (int64_t i = 0; marks && i < r.n * r.classes; i++)
        ((double *)tensor_ptr(marks))[i] = is_label(&r, i / r.classes, i % r.classes);
    return run_loss(&w, k, &r, label_loss);
}

bp_status kernel_multilabel_margin_backward(bp_ctx *c, op_call *k) { return run_backward(c, k, label_loss); }
