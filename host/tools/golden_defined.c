/* The mode that checks calls by what defines their results, and the laws of random numbers.
 *
 * A random call is drawn again and again beforehand, from the same generator: the first draw must be what the call then
 * gives (the seed alone decides), and all of them together must have the law's mean and variance, within six standard
 * errors. */
#include "host/tools/golden_defined.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ENOUGH = 4096, DRAWS_MAX = 5000 };

/* How one element is distributed. */
typedef struct { double mean, variance, low, high, tail; } law;

static double element(const bp_tensor *t, int64_t i)
{
    int64_t at = 0;
    for (uint32_t d = t->rank; d-- > 0; i /= tensor_dim(t, d))
        at += i % tensor_dim(t, d) * tensor_step(t, d);
    num v = dtype_load(t->dtype, (const char *)tensor_ptr(t) + at * (int64_t)dtype_size(t->dtype));
    return v.kind == NUM_INT ? (double)v.i : v.f;
}

/* A number, or the element of a tensor that belongs to element i. */
static double param(const bp_value *v, int64_t i)
{
    if (v->kind != BP_VALUE_TENSOR)
        return v->kind == BP_VALUE_FLOAT ? v->v.f[0] : (double)v->v.dim.value;
    return element(v->v.tensor, tensor_nelem(v->v.tensor) == 1 ? 0 : i);
}

static law uniform(double low, double high)
{
    return (law){(low + high) / 2, (high - low) * (high - low) / 12, low, high, 1};
}

/* Integers of [low, high). */
static law integers(double low, double high)
{
    double n = high - low;
    return (law){(low + high - 1) / 2, (n * n - 1) / 12, low, high - 1, 1};
}

static law normal(double mean, double deviation)
{
    return (law){mean, deviation * deviation, -INFINITY, INFINITY, 2};
}

static law bernoulli(double p)
{
    double q = p * (1 - p);
    return (law){p, q, p == 1, p != 0, q > 0 ? 1 / q : 1};
}

/* As many integers as a type holds without gaps. */
static double integers_of(bp_dtype d)
{
    static const double floats[] = {[BP_F16] = 0x1p11, [BP_BF16] = 0x1p8, [BP_F32] = 0x1p24, [BP_F64] = 0x1p53};
    return dtype_is_float(d) ? floats[d] + 1 : d == BP_BOOL ? 2 : ldexp(1, 8 * (int)dtype_size(d) - (d != BP_U8));
}

/* The law of element i of a call; false: the operator has none. */
static bool law_of(const golden_seen *s, int64_t i, law *out)
{
    const char *name = s->op->schema->name, *overload = strchr(s->op->label, '.');
    const bp_value *a = s->args;
    bool is_low = overload && (!strcmp(overload, ".low") || !strcmp(overload, ".low_dtype"));
    if (!strncmp(name, "randint", 7)) {
        uint32_t at = !strcmp(name, "randint_like");
        *out = is_low ? integers(param(&a[at], i), param(&a[at + 1], i)) : integers(0, param(&a[at], i));
    } else if (!strncmp(name, "randn", 5)) {
        *out = normal(0, 1);
    } else if (!strcmp(name, "rand") || !strcmp(name, "rand_like")) {
        *out = uniform(0, 1);
    } else if (!strcmp(name, "random") || !strcmp(name, "random_")) {
        bool from = overload && !strcmp(overload, ".from"), to = overload && !strcmp(overload, ".to");
        double all = integers_of(s->out[0]->dtype), low = from ? param(&a[1], i) : 0;
        *out = integers(low, to ? param(&a[1], i) : from && a[2].kind != BP_VALUE_NONE ? param(&a[2], i) : all);
    } else if (!strncmp(name, "uniform", 7)) {
        *out = uniform(param(&a[1], i), param(&a[2], i));
    } else if (!strcmp(name, "normal_") || !strcmp(name, "normal_functional")) {
        *out = normal(param(&a[1], i), param(&a[2], i));
    } else if (!strcmp(name, "normal")) {
        *out = normal(param(&a[0], i), param(&a[1], i));
    } else if (!strncmp(name, "exponential", 11)) {
        double by = param(&a[1], i);
        *out = (law){1 / by, 1 / (by * by), 0, INFINITY, 8};
    } else if (!strncmp(name, "bernoulli", 9)) {
        bool given = overload && strcmp(overload, ".default") != 0;
        *out = bernoulli(param(&a[given], i));
    } else {
        return false;
    }
    return true;
}

/* -- dropout: each element is gone, or what makes up for those that are -- */
static bool is_dropout(const op_row *op)
{
    return strncmp(op->schema->name, "dropout", 7) == 0 || strcmp(op->schema->name, "native_dropout") == 0;
}

static bool define_dropout(const golden_seen *s, const bp_tensor *in)
{
    bool trains = s->args[2].kind == BP_VALUE_NONE || s->args[2].v.i;
    double p = trains ? param(&s->args[1], 0) : 0, bound = dtype_real_of(in->dtype) == BP_F64 ? 1e-15 : 1e-2;
    for (int64_t i = 0; i < tensor_nelem(in); i++) {
        double x = element(in, i), kept = p < 1 ? x / (1 - p) : 0, y = element(s->out[0], i);
        bool gone = y == 0 && p > 0, whole = fabs(y - kept) <= bound * fabs(kept) || (isnan(y) && isnan(kept));
        bool fits = s->nout < 2 || element(s->out[1], i) != 0 ? whole || x == 0 : gone;
        if (!(s->nout < 2 ? gone || whole : fits)) {
            buf_printf(s->why, "element %lld is %g of %g, dropped by %g", (long long)i, y, x, p);
            return false;
        }
    }
    return true;
}

/* -- indices -- */
static bool define_multinomial(const golden_seen *s)
{
    const bp_tensor *weight = s->args[0].v.tensor, *out = s->out[0];
    int64_t n = tensor_dim(weight, weight->rank - 1), each = tensor_dim(out, out->rank - 1);
    for (int64_t i = 0; i < tensor_nelem(out); i++) {
        double at = element(out, i);
        bool again = false;
        for (int64_t j = i / each * each; j < i && !s->args[2].v.i; j++)
            again |= element(out, j) == at;
        if (!(at >= 0 && at < (double)n) || again || element(weight, i / each * n + (int64_t)at) == 0) {
            buf_printf(s->why, "index %g of %lld", at, (long long)n);
            return false;
        }
    }
    return true;
}

static bool define_permutation(const golden_seen *s)
{
    int64_t n = tensor_nelem(s->out[0]);
    for (int64_t i = 0; i < n; i++) {
        bool found = false;
        for (int64_t j = 0; j < n && !found; j++)
            found = element(s->out[0], j) == (double)i;
        if (!found) {
            buf_printf(s->why, "%lld is not in the permutation", (long long)i);
            return false;
        }
    }
    return true;
}

/* -- drawing again -- */

typedef struct { double sum, squares, tail; int64_t n; bool good; } moments;

static void add_draw(const golden_seen *s, moments *m)
{
    law l;
    for (int64_t i = 0; m->good && i < tensor_nelem(s->out[0]) && law_of(s, i, &l); i++) {
        double x = element(s->out[0], i), deviation = sqrt(l.variance);
        double z = (x - l.mean) / (deviation > 0 ? deviation : 1);
        m->good = x >= l.low && x <= l.high * (1 + 1e-2) && (deviation > 0 || x == l.mean);
        if (!m->good)
            buf_printf(s->why, "element %lld is %g, and not from %g to %g", (long long)i, x, l.low, l.high);
        if (deviation == 0)
            continue;
        m->sum += z, m->squares += z * z, m->n++;
        m->tail = l.tail > m->tail ? l.tail : m->tail;
    }
}

static bool moments_fit(const moments *m, buf *why)
{
    double n = (double)m->n, mean = m->sum / n, spread = m->squares / n - 1;
    if (m->n < ENOUGH || (fabs(mean) <= 6 / sqrt(n) + 4e-3 && fabs(spread) <= 6 * sqrt(m->tail / n) + 2e-2))
        return true;
    buf_printf(why, "of %lld numbers the mean is off by %g deviations, the variance by %g", (long long)m->n, mean,
               spread);
    return false;
}

static bool same_values(const bp_tensor *a, const bp_tensor *b)
{
    for (int64_t i = 0; i < tensor_nelem(a); i++)
        if (element(a, i) != element(b, i) && !isnan(element(a, i)))
            return false;
    return true;
}

/* A contiguous copy: a new reference, NULL after an error. */
static bp_tensor *copy_of(bp_ctx *c, const bp_tensor *t)
{
    int64_t sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < t->rank; d++)
        sizes[d] = tensor_dim(t, d);
    bp_tensor *out = tensor_contiguous_new(c, (bp_dtype)t->dtype, t->rank, sizes);
    if (out)
        tensor_copy(c, out, t);
    return out;
}

/* The same call once more at the bottom, on a copy of what it writes: a new reference. NULL: an error. */
static bp_tensor *draw(bp_ctx *c, const op_call *k)
{
    bp_value args[8];
    op_call again = {.op = k->op, .args = args, .nargs = k->nargs};
    bp_tensor *copy = NULL, *out[4] = {NULL};
    if (k->nargs > 8)
        return NULL;
    memcpy(args, k->args, k->nargs * sizeof *args);
    if (k->op->schema->args[0].ty.writes && args[0].kind == BP_VALUE_TENSOR) {
        copy = copy_of(c, args[0].v.tensor);
        args[0] = value_tensor(copy);
    }
    again.out = out, again.nout = 4;
    bool drawn = op_run_reference(c, &again) == BP_OK && again.nout;
    for (uint32_t i = 1; drawn && i < again.nout; i++)
        tensor_unref(out[i]);
    tensor_unref(copy);
    return drawn ? out[0] : NULL;
}

/* Draws until there are enough numbers; *first: what the first draw gave. The generator is left as it was. */
static bool draw_all(bp_ctx *c, const op_call *k, buf *why, bp_tensor **first)
{
    uint64_t offset = c->rng_offset;
    moments m = {.tail = 1, .good = true};
    golden_seen s = {k->op, k->args, k->nargs, NULL, 1, why};
    for (int i = 0; m.good && m.n < ENOUGH && i < DRAWS_MAX; i++) {
        bp_tensor *t = draw(c, k);
        if (!t)
            break;
        s.out = &t;
        add_draw(&s, &m);
        bool none = m.n == 0;
        if (i == 0)
            *first = tensor_ref(t);
        tensor_unref(t);
        if (none)
            break;
    }
    diag_clear(&c->diag);
    c->rng_offset = offset;
    return m.good && moments_fit(&m, why);
}

/* -- the mode -- */

static bool define_random(const golden_seen *s, const bp_tensor *before, const bp_tensor *first)
{
    if (first && !same_values(s->out[0], first)) {
        buf_puts(s->why, "the same seed and offset give other numbers");
        return false;
    }
    if (is_dropout(s->op))
        return define_dropout(s, before);
    if (!strcmp(s->op->schema->name, "multinomial"))
        return define_multinomial(s);
    return strcmp(s->op->schema->name, "randperm") != 0 || define_permutation(s);
}

/* Whether the operator is checked here; *good: what came of it. */
static bool define_factors(const golden_seen *s, bool *good)
{
    const char *name = s->op->schema->name;
    if (!strcmp(name, "_linalg_svd"))
        *good = golden_define_svd(s, true, s->args[2].v.i);
    else if (!strcmp(name, "linalg_svd"))
        *good = golden_define_svd(s, true, true);
    else if (!strcmp(name, "svd"))
        *good = golden_define_svd(s, false, s->args[2].v.i);
    else if (!strcmp(name, "_linalg_eigh"))
        *good = golden_define_eig(s, true, s->args[2].v.i);
    else if (!strcmp(name, "linalg_eigh"))
        *good = golden_define_eig(s, true, true);
    else if (!strcmp(name, "linalg_eig") || !strcmp(name, "linalg_eigvals"))
        *good = golden_define_eig(s, false, name[10] == 0);
    else if (!strcmp(name, "linalg_qr"))
        *good = golden_define_qr(s, strcmp(s->args[1].v.str, "r") != 0);
    else if (!strcmp(name, "geqrf"))
        *good = golden_define_geqrf(s);
    else
        return false;
    return true;
}

static bp_status see(bp_ctx *c, dispatch_mode *mode, void *call)
{
    golden_definer *d = (golden_definer *)mode;
    op_call *k = call;
    bp_tensor *before = NULL, *first = NULL;
    bool random = k->op->flags & OP_RANDOM, good = true, checked = random;
    if (random && is_dropout(k->op))
        before = copy_of(c, k->args[0].v.tensor);
    if (random)
        good = draw_all(c, k, d->why, &first);
    bp_status st = op_dispatch_below(c, mode, k);
    if (st == BP_OK && good) {
        golden_seen s = {k->op, k->args, k->op->schema->nargs, k->out, k->nout, d->why};
        if (random)
            good = define_random(&s, before, first);
        else
            checked = define_factors(&s, &good);
    }
    if (!good)
        buf_printf(d->why, " (%s)", k->op->target);
    d->checked += checked;
    d->wrong |= !good;
    tensor_unref(before);
    tensor_unref(first);
    return st;
}

void golden_define_begin(bp_ctx *c, golden_definer *d, buf *why)
{
    *d = (golden_definer){.mode = {.call = see, .name = "definer"}, .why = why};
    mode_push(c, &d->mode);
}

void golden_define_end(bp_ctx *c, golden_definer *d)
{
    mode_pop(c, &d->mode);
}
