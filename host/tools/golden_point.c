/* A recorded call as a function of its float tensors. All is float64; each run starts with the same generator. */
#include "host/tools/golden_point.h"
#include <backplane/aten.h>
#include <backplane/backplane.h>
#include <math.h>
#include <string.h>

void tensor_list_clear(tensor_list *l)
{
    for (uint32_t i = 0; i < l->len; i++)
        tensor_unref(l->at[i]);
    vec_fini(l);
    memset(l, 0, sizeof *l);
}

/* -- numbers ------------------------------------------------------------------------------------------------------- */

int64_t numbers_of(const bp_tensor *t)
{
    return tensor_nelem(t) * (t->dtype == BP_C128 ? 2 : 1);
}

static bp_dtype wide(bp_dtype d)
{
    return dtype_is_float(d) ? BP_F64 : dtype_is_complex(d) ? BP_C128 : d;
}

bp_tensor *point_plain(bp_ctx *c, bp_tensor *t)
{
    int before = bp_set_grad_enabled(c, 0);
    bp_scope_begin(c);
    bp_tensor *plain = bp_aten_to_dtype(c, t, wide((bp_dtype)t->dtype), 0, 1, BP_CONTIGUOUS);
    plain = plain ? tensor_ref(plain) : NULL;
    bp_scope_end(c);
    bp_set_grad_enabled(c, before);
    return plain;
}

static bp_tensor *like(bp_ctx *c, const bp_tensor *t)
{
    int64_t sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < t->rank; d++)
        sizes[d] = tensor_dim(t, d);
    return tensor_contiguous_new(c, (bp_dtype)t->dtype, t->rank, sizes);
}

bp_tensor *point_fake(bp_ctx *c, const bp_tensor *t)
{
    tensor_meta m;
    tensor_get_meta(t, &m);
    return tensor_new_fake(c, &m);
}

/* From -1 to 1. */
static double draw(point *p)
{
    uint64_t z = p->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)(int64_t)((z ^ z >> 31) >> 11) * 0x1p-52 - 1;
}

bp_tensor *point_weights(point *p, const bp_tensor *t)
{
    bp_tensor *w = like(p->k->c, t);
    for (int64_t i = 0, n = w ? numbers_of(w) : 0; i < n; i++)
        numbers(w)[i] = isfinite(numbers(t)[i]) ? draw(p) : 0;
    return w;
}

bp_tensor *point_shift(bp_ctx *c, const bp_tensor *at, const bp_tensor *along, double t)
{
    bp_tensor *moved = like(c, at);
    for (int64_t i = 0, n = moved ? numbers_of(moved) : 0; i < n; i++)
        numbers(moved)[i] = numbers(at)[i] + (t != 0 ? t * numbers(along)[i] : 0);
    return moved;
}

double point_dot(const bp_tensor *a, const bp_tensor *b, bool finite, double *size)
{
    double sum = 0;
    for (int64_t i = 0, n = numbers_of(a); i < n; i++) {
        double term = numbers(a)[i] * numbers(b)[i];
        if (numbers(a)[i] == 0 || (finite && !isfinite(numbers(b)[i])))
            continue;
        sum += term;
        *size += fabs(term);
    }
    return sum;
}

bool point_is_finite(const bp_tensor *t)
{
    for (int64_t i = 0, n = numbers_of(t); i < n; i++)
        if (!isfinite(numbers(t)[i]))
            return false;
    return true;
}

/* -- kinds of arguments -------------------------------------------------------------------------------------------- */

static const struct { const char *target, *arg; enum point_kind kind; } kinds[] = {
#define DERIVATIVE_ARG(target, arg, kind) {target, arg, POINT_##kind},
#define DERIVATIVE_RESULTS(target, bits)
#define DERIVATIVE_BY(target, by)
#define DERIVATIVE_SOME(target, why)
#define DERIVATIVE_ZERO(target)
#define DERIVATIVE_UNCHECKED(target, why)
#include "host/tools/golden_derivative.def"
#undef DERIVATIVE_ARG
#undef DERIVATIVE_RESULTS
#undef DERIVATIVE_BY
#undef DERIVATIVE_SOME
#undef DERIVATIVE_ZERO
#undef DERIVATIVE_UNCHECKED
};

static enum point_kind kind_of(const char *target, const char *arg)
{
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].target, target) && !strcmp(kinds[i].arg, arg))
            return kinds[i].kind;
    return POINT_FREE;
}

/* -- matrices that are symmetric, or a triangle -------------------------------------------------------------------- */

typedef struct { double *at; int64_t n, m, parts; } matrix; /* n by m numbers of 1 or 2 doubles */

static void make_symmetric(const matrix *x)
{
    for (int64_t i = 0; i < x->n; i++)
        for (int64_t k = 0; k <= i && x->n == x->m; k++)
            for (int64_t q = 0; q < x->parts; q++) {
                double *a = &x->at[(i * x->m + k) * x->parts + q], *b = &x->at[(k * x->m + i) * x->parts + q];
                double mean = (*a + (q ? -*b : *b)) / 2;
                *a = mean;
                *b = q ? -mean : mean;
            }
}

static void make_triangle(const matrix *x, bool upper)
{
    for (int64_t i = 0; i < x->n; i++)
        for (int64_t k = 0; k < x->m; k++)
            for (int64_t q = 0; q < x->parts && (upper ? k < i : k > i); q++)
                x->at[(i * x->m + k) * x->parts + q] = 0;
}

static bool is_upper(const point *p)
{
    int32_t at = schema_find(p->row->schema, "upper");
    return at >= 0 && arg_bool(p->args, (uint32_t)at);
}

/* Gives t the form of its kind. */
static void shape_kind(const point *p, enum point_kind kind, bp_tensor *t)
{
    if (!t || t->rank < 2 || (kind != POINT_SYMMETRIC && kind != POINT_TRIANGLE))
        return;
    matrix x = {numbers(t), tensor_dim(t, t->rank - 2), tensor_dim(t, t->rank - 1), t->dtype == BP_C128 ? 2 : 1};
    int64_t each = x.n * x.m * x.parts;
    for (int64_t left = numbers_of(t); left > 0; left -= each, x.at += each)
        if (kind == POINT_SYMMETRIC)
            make_symmetric(&x);
        else
            make_triangle(&x, is_upper(p));
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

static bool is_wide(const bp_tensor *t)
{
    return dtype_is_float((bp_dtype)t->dtype) || dtype_is_complex((bp_dtype)t->dtype);
}

static bool add_float(point *p, const char *name, bp_tensor *t)
{
    point_float f = {.name = name, .kind = kind_of(p->row->target, name), .given = point_plain(p->k->c, t)};
    if (!f.given)
        return false;
    shape_kind(p, f.kind, f.given);
    if (vec_push(&p->floats, f))
        return true;
    tensor_unref(f.given);
    return golden_bad(p->k, "out of memory");
}

static bool add_floats(point *p, const char *name, const bp_value *v)
{
    if (v->kind == BP_VALUE_TENSOR && is_wide(v->v.tensor))
        return add_float(p, name, v->v.tensor);
    for (uint32_t i = 0; v->kind == BP_VALUE_LIST && i < v->count; i++)
        if (!add_floats(p, name, &v->v.items[i]))
            return false;
    return true;
}

/* The named arguments of the case as two lists. */
static bool read_named(point *p, const json_t *kw, const char **names, bp_value *values)
{
    const char *key;
    json_t *item;
    uint32_t n = 0;
    json_object_foreach((json_t *)(uintptr_t)kw, key, item) {
        names[n] = key;
        if (!golden_read_value(p->k, item, &values[n++]))
            return false;
    }
    return true;
}

static bool bind(point *p, const json_t *j)
{
    const json_t *kw = json_object_get(j, "kwargs");
    const char *names[32];
    bp_value all, values[32], *bound;
    uint32_t n = (uint32_t)json_object_size(kw);
    if (!golden_read_value(p->k, json_object_get(j, "args"), &all))
        return false;
    if (all.kind != BP_VALUE_LIST || n > 32)
        return golden_bad(p->k, "\"args\" is no list, or \"kwargs\" has more than 32 items");
    if (!read_named(p, kw, names, values) ||
        op_bind(p->k->c, p->row, all.v.items, all.count, names, values, n, &bound))
        return false;
    bp_value *args = arena_memdup(&p->k->memory, bound, p->row->schema->nargs * sizeof *bound);
    for (uint32_t i = 0; args && i < p->row->schema->nargs; i++)
        if (args[i].kind == BP_VALUE_DTYPE)
            args[i].v.i = wide((bp_dtype)args[i].v.i);
    p->args = args;
    return args || golden_bad(p->k, "out of memory");
}

bool point_read(point *p, golden_case *k, const op_row *row, const json_t *j)
{
    *p = (point){.k = k, .row = row, .seed = k->c->seed, .rng_offset = k->c->rng_offset, .random = k->line};
    arena_mark mark = arena_get_mark(&k->c->scratch);
    bool ok = bind(p, j);
    arena_reset(&k->c->scratch, mark);
    for (uint32_t i = 0; ok && i < row->schema->nargs; i++)
        ok = add_floats(p, row->schema->args[i].name, &p->args[i]);
    return ok;
}

static void drop_drawn(point_float *f)
{
    tensor_unref(f->at);
    tensor_unref(f->along);
    f->at = f->along = NULL;
}

void point_fini(point *p)
{
    for (uint32_t i = 0; i < p->floats.len; i++) {
        drop_drawn(&p->floats.at[i]);
        tensor_unref(p->floats.at[i].given);
    }
    vec_fini(&p->floats);
}

bp_status point_draw(point *p, double noise)
{
    for (uint32_t i = 0; i < p->floats.len; i++) {
        point_float *f = &p->floats.at[i];
        drop_drawn(f);
        f->at = like(p->k->c, f->given);
        f->along = like(p->k->c, f->given);
        for (int64_t q = 0, n = f->at && f->along ? numbers_of(f->given) : 0; q < n; q++) {
            double x = numbers(f->given)[q], move = noise * draw(p), way = draw(p);
            numbers(f->at)[q] = point_is_held(f) ? x : x + move * (1 + fabs(x));
            numbers(f->along)[q] = point_is_held(f) ? 0 : way * fmin(1 + fabs(x), 10);
        }
        shape_kind(p, f->kind, f->at);
        shape_kind(p, f->kind, f->along);
    }
    return p->k->c->diag.code;
}

/* -- running ------------------------------------------------------------------------------------------------------- */

/* The next float's tensor in this run; lists of arguments are walked in the order of point_read. */
typedef struct { point *p; double t; bool taped; tensor_list *leaves; uint32_t next; } substitution;

static bool substitute(substitution *s, const bp_value *v, bp_value *out)
{
    bp_ctx *c = s->p->k->c;
    *out = *v;
    if (v->kind == BP_VALUE_TENSOR && is_wide(v->v.tensor)) {
        const point_float *f = &s->p->floats.at[s->next++];
        bp_tensor *t = s->p->fakes ? point_fake(c, f->at) : point_shift(c, f->at, f->along, s->t);
        t = scope_own(c, t);
        if (t && s->taped && !point_is_held(f))
            bp_tensor_set_requires_grad(c, t, 1);
        if (s->leaves && t && !vec_push(s->leaves, point_is_held(f) ? NULL : tensor_ref(t)))
            ctx_nomem(c);
        out->v.tensor = t;
    } else if (v->kind == BP_VALUE_LIST && v->count) {
        bp_value *items = arena_array(&c->scratch, v->count, sizeof *items);
        if (!items) {
            ctx_nomem(c);
            return false;
        }
        for (uint32_t i = 0; i < v->count; i++)
            if (!substitute(s, &v->v.items[i], &items[i]))
                return false;
        out->v.items = items;
    }
    return ctx_ok(c);
}

static bp_status dispatch(point *p, const bp_value *args, tensor_list *results)
{
    bp_ctx *c = p->k->c;
    op_call k = {.op = p->row, .args = args, .nargs = p->row->schema->nargs};
    c->seed = p->seed;
    c->rng_offset = p->rng_offset;
    TRY(op_dispatch(c, &k));
    for (uint32_t i = 0; i < k.nout; i++)
        if (!vec_push(results, k.out[i])) {
            tensor_unref(k.out[i]);
            ctx_nomem(c);
        }
    return c->diag.code;
}

bp_status point_run(point *p, double t, tensor_list *leaves, tensor_list *results)
{
    bp_ctx *c = p->k->c;
    int before = bp_set_grad_enabled(c, leaves != NULL);
    bp_scope_begin(c);
    arena_mark mark = arena_get_mark(&c->scratch);
    substitution s = {p, t, leaves != NULL, leaves, 0};
    bp_value *args = arena_array(&c->scratch, p->row->schema->nargs + 1, sizeof *args);
    bool ok = args || ctx_nomem(c) == BP_OK;
    for (uint32_t i = 0; ok && i < p->row->schema->nargs; i++)
        ok = substitute(&s, &p->args[i], &args[i]);
    if (ok)
        dispatch(p, args, results);
    arena_reset(&c->scratch, mark);
    bp_scope_end(c);
    bp_set_grad_enabled(c, before);
    return c->diag.code;
}
