/* A small backend of its own: the graph as steps over dense arrays of one dimension, 8 bytes an element. It knows the
 * operators of program texts alone. Its sums of floats are added up as they come, where the reference carries rounding
 * errors along; a clone may be its input's very buffer. */
#include "tests/model/links.h"
#include <stdlib.h>
#include <string.h>

enum own_op {
    OWN_INPUT, OWN_ADD, OWN_MUL, OWN_LT, OWN_WHERE, OWN_SUM, OWN_CUMSUM, OWN_CLONE, OWN_CAST, OWN_SLICE, OWN_SLICE_PUT,
    OWN_STRIDED, OWN_STRIDED_PUT, OWN_EXPAND, OWN_FULL, OWN_INDEX
};
/* Arguments: tensors and numbers by name in a, b, c; off, n and step of a view. */
static const struct { const char *target; enum own_op op; const char *names[3]; } rows[] = {
    {"aten.add.Tensor", OWN_ADD, {"self", "other"}},
    {"aten.add.Scalar", OWN_ADD, {"self", "other"}},
    {"aten.mul.Tensor", OWN_MUL, {"self", "other"}},
    {"aten.mul.Scalar", OWN_MUL, {"self", "other"}},
    {"aten.lt.Scalar", OWN_LT, {"self", "other"}},
    {"aten.where.self", OWN_WHERE, {"condition", "self", "other"}},
    {"aten.sum.dim_IntList", OWN_SUM, {"self"}},
    {"aten.cumsum.default", OWN_CUMSUM, {"self"}},
    {"aten.clone.default", OWN_CLONE, {"self"}},
    {"aten.to.dtype", OWN_CAST, {"self"}},
    {"aten._to_copy.default", OWN_CAST, {"self"}},
    {"aten.slice.Tensor", OWN_SLICE, {"self"}},
    {"aten.slice_scatter.default", OWN_SLICE_PUT, {"self", "src"}},
    {"aten.as_strided.default", OWN_STRIDED, {"self"}},
    {"aten.as_strided_scatter.default", OWN_STRIDED_PUT, {"self", "src"}},
    {"aten.expand.default", OWN_EXPAND, {"self"}},
    {"aten.full.default", OWN_FULL, {NULL, "fill_value"}},
    {"aten.index_select.default", OWN_INDEX, {"self", NULL, "index"}},
};

/* A value while a graph runs. Floats and integers share the 8 bytes. */
typedef union { double f; int64_t i; } cell;
typedef struct { bool is_float; int64_t n; cell *at; } array;
/* An argument: the value of step `from`, or a number. */
typedef struct { uint32_t from; bool is_number, is_float; cell number; } arg;
typedef struct { enum own_op op; bool is_float; int64_t n, off, step; arg args[3]; } own_step;

struct own {
    bool plain, elide;
    uint32_t nsteps, ninputs, nouts;
    own_step *steps;
    uint32_t *outs;
};

/* -- compiling ----------------------------------------------------------------------------------------------------- */

typedef struct { bp_graph_module *gm; own *o; uint32_t *step_of; const char *why; } builder;

static int64_t int_arg(const builder *b, uint32_t node, const char *name, int64_t otherwise)
{
    bp_value v = {0};
    if (bp_node_arg(b->gm, node, name, &v) != BP_OK)
        return otherwise;
    if (v.kind == BP_VALUE_LIST)
        return v.count ? v.v.items[0].v.dim.value : otherwise;
    return v.kind == BP_VALUE_INT ? v.v.dim.value : otherwise;
}

static arg read_arg(builder *b, uint32_t node, const char *name)
{
    bp_value v = {0};
    arg a = {0};
    if (!name || bp_node_arg(b->gm, node, name, &v) != BP_OK)
        return a;
    if (v.kind == BP_VALUE_NODE) {
        a.from = b->step_of[v.v.node];
        return a;
    }
    a.is_number = true;
    a.is_float = v.kind == BP_VALUE_FLOAT;
    if (a.is_float)
        a.number.f = v.v.f[0];
    else
        a.number.i = v.kind == BP_VALUE_BOOL ? v.v.i : v.v.dim.value;
    return a;
}

static void read_view(builder *b, uint32_t node, own_step *s)
{
    bool strided = s->op == OWN_STRIDED || s->op == OWN_STRIDED_PUT;
    s->off = int_arg(b, node, strided ? "storage_offset" : "start", 0);
    s->step = int_arg(b, node, strided ? "stride" : "step", 1);
}

static void add_call(builder *b, uint32_t node)
{
    const char *target = bp_node_target(b->gm, node);
    own_step *s = &b->o->steps[b->o->nsteps];
    size_t i = 0, n = sizeof rows / sizeof *rows;
    bp_view v = {.size = sizeof v};
    while (i < n && strcmp(rows[i].target, target))
        i++;
    if (i == n || bp_node_meta(b->gm, node, 0, &v) != BP_OK || v.rank != 1) {
        b->why = target;
        return;
    }
    s->op = rows[i].op;
    s->is_float = v.dtype == BP_F64;
    s->n = v.sizes[0].value;
    for (int j = 0; j < 3; j++)
        s->args[j] = read_arg(b, node, rows[i].names[j]);
    read_view(b, node, s);
}

static void add_outputs(builder *b, uint32_t node)
{
    bp_value v = {0};
    if (bp_node_arg(b->gm, node, "0", &v) != BP_OK) {
        b->why = "output";
        return;
    }
    b->o->outs = calloc(v.count + 1, sizeof *b->o->outs);
    for (uint32_t i = 0; b->o->outs && i < v.count; i++)
        b->o->outs[b->o->nouts++] = b->step_of[v.v.items[i].v.node];
}

static void add_node(builder *b, uint32_t node)
{
    int32_t op = bp_node_op(b->gm, node);
    if (op == BP_NODE_OUTPUT) {
        add_outputs(b, node);
        return;
    }
    if (op == BP_NODE_PLACEHOLDER) {
        b->o->steps[b->o->nsteps] = (own_step){.op = OWN_INPUT, .off = b->o->ninputs++};
    } else if (op == BP_NODE_CALL_FUNCTION) {
        add_call(b, node);
    } else {
        b->why = "get_attr";
    }
    b->step_of[node] = b->o->nsteps++;
}

static uint32_t highest_node(const bp_graph_module *gm)
{
    uint32_t most = 0, n = bp_node_count(gm);
    for (uint32_t i = 0; i < n; i++)
        most = bp_node_at(gm, i) > most ? bp_node_at(gm, i) : most;
    return most;
}

own *own_new(bp_graph_module *gm, bool plain, bool elide, const char **why)
{
    uint32_t n = bp_node_count(gm);
    own *o = calloc(1, sizeof *o);
    builder b = {.gm = gm, .o = o, .step_of = calloc((size_t)highest_node(gm) + 1, sizeof *b.step_of)};
    if (o)
        o->steps = calloc((size_t)n + 1, sizeof *o->steps);
    *why = "memory";
    if (o && o->steps && b.step_of) {
        o->plain = plain;
        o->elide = elide;
        for (uint32_t i = 0; i < n && !b.why; i++)
            add_node(&b, bp_node_at(gm, i));
        *why = b.why;
    }
    free(b.step_of);
    if (!*why)
        return o;
    own_destroy(o);
    return NULL;
}

void own_destroy(void *state)
{
    own *o = state;
    if (!o)
        return;
    free(o->steps);
    free(o->outs);
    free(o);
}

/* -- running ------------------------------------------------------------------------------------------------------- */

typedef struct { const own *o; bp_run *r; array *values; void **blocks; uint32_t nblocks; bp_status st; } running;

/* Cells that live until the run ends. */
static cell *cells(running *x, int64_t n)
{
    cell *p = calloc((size_t)n + 1, sizeof *p);
    if (p)
        x->blocks[x->nblocks++] = p;
    else
        x->st = bp_run_fail(x->r, BP_RESOURCE_EXHAUSTED, "out of memory");
    return p;
}

static bool arg_is_float(const running *x, const arg *a)
{
    return a->is_number ? a->is_float : x->values[a->from].is_float;
}

static cell get(const running *x, const arg *a, int64_t i)
{
    if (a->is_number)
        return a->number;
    const array *v = &x->values[a->from];
    return v->at[v->n == 1 ? 0 : i];
}

static double as_float(const running *x, const arg *a, int64_t i)
{
    cell c = get(x, a, i);
    return arg_is_float(x, a) ? c.f : (double)c.i;
}

static void load_input(running *x, const own_step *s, array *out)
{
    bp_view v = {.size = sizeof v};
    x->st = bp_run_borrow(x->r, (uint32_t)s->off, &v);
    if (x->st != BP_OK)
        return;
    int64_t stride = v.rank ? v.strides[0].value : 1;
    *out = (array){v.dtype == BP_F64, v.rank ? v.sizes[0].value : 1, NULL};
    if (v.dtype != BP_BOOL && (stride == 1 || out->n == 1)) {
        out->at = v.data; /* read only */
        return;
    }
    out->at = cells(x, out->n);
    for (int64_t i = 0; out->at && i < out->n; i++)
        if (v.dtype == BP_BOOL)
            out->at[i].i = ((const unsigned char *)v.data)[i * stride];
        else
            memcpy(&out->at[i], (const char *)v.data + i * stride * 8, 8);
}

static void pointwise(running *x, const own_step *s, array *out)
{
    const arg *a = &s->args[0], *b = &s->args[1], *c = &s->args[2];
    for (int64_t i = 0; i < s->n; i++) {
        cell *to = &out->at[i];
        if (s->op == OWN_LT)
            to->i = as_float(x, a, i) < as_float(x, b, i);
        else if (s->op == OWN_WHERE && s->is_float)
            to->f = get(x, a, i).i ? as_float(x, b, i) : as_float(x, c, i);
        else if (s->op == OWN_WHERE)
            *to = get(x, a, i).i ? get(x, b, i) : get(x, c, i);
        else if (s->op == OWN_ADD && s->is_float)
            to->f = as_float(x, a, i) + as_float(x, b, i);
        else if (s->op == OWN_ADD)
            to->i = get(x, a, i).i + get(x, b, i).i;
        else if (s->is_float)
            to->f = as_float(x, a, i) * as_float(x, b, i);
        else
            to->i = get(x, a, i).i * get(x, b, i).i;
    }
}

/* s->a += v, the rounding error going to *rest, as the reference does. */
static void add_exactly(double *sum, double *rest, double v)
{
    double total = *sum + v, mine = *sum < 0 ? -*sum : *sum, its = v < 0 ? -v : v;
    *rest += mine >= its ? (*sum - total) + v : (v - total) + *sum;
    *sum = total;
}

static void sums(running *x, const own_step *s, array *out)
{
    const array *a = &x->values[s->args[0].from];
    double sum = 0, rest = 0;
    int64_t whole = 0;
    for (int64_t i = 0; i < a->n; i++) {
        whole += a->is_float ? 0 : a->at[i].i;
        if (a->is_float && s->op == OWN_SUM && !x->o->plain)
            add_exactly(&sum, &rest, a->at[i].f);
        else if (a->is_float)
            sum += a->at[i].f;
        cell *to = &out->at[s->op == OWN_SUM ? 0 : i];
        if (a->is_float)
            to->f = sum + rest;
        else
            to->i = whole;
    }
}

static void convert(running *x, const own_step *s, array *out)
{
    const arg *a = &s->args[0];
    for (int64_t i = 0; i < s->n; i++)
        if (s->is_float)
            out->at[i].f = as_float(x, a, i);
        else
            out->at[i].i = arg_is_float(x, a) ? (int64_t)get(x, a, i).f : get(x, a, i).i;
}

static void views(running *x, const own_step *s, array *out)
{
    const array *a = &x->values[s->args[0].from];
    bool puts = s->op == OWN_SLICE_PUT || s->op == OWN_STRIDED_PUT;
    int64_t n = puts ? x->values[s->args[1].from].n : s->n;
    if (puts)
        memcpy(out->at, a->at, (size_t)a->n * sizeof *a->at);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = s->off + i * s->step;
        if (puts)
            out->at[at] = get(x, &s->args[1], i);
        else
            out->at[i] = a->at[at];
    }
}

static void fill(running *x, const own_step *s, array *out)
{
    const arg *v = &s->args[s->op == OWN_FULL];
    for (int64_t i = 0; i < s->n; i++)
        if (s->op == OWN_FULL && s->is_float)
            out->at[i].f = as_float(x, v, i);
        else
            out->at[i] = get(x, v, i);
}

static void look_up(running *x, const own_step *s, array *out)
{
    const array *a = &x->values[s->args[0].from];
    int64_t i = x->values[s->args[2].from].at[0].i;
    if (i < 0 || i >= a->n)
        x->st = bp_run_fail(x->r, BP_OUT_OF_RANGE, "index %lld is out of range", (long long)i);
    else
        out->at[0] = a->at[i];
}

static void step(running *x, const own_step *s, array *out)
{
    if (s->op == OWN_INPUT) {
        load_input(x, s, out);
        return;
    }
    if (s->op == OWN_CLONE && x->o->elide) {
        *out = x->values[s->args[0].from];
        return;
    }
    *out = (array){s->is_float, s->n, cells(x, s->n)};
    if (!out->at)
        return;
    switch (s->op) {
    case OWN_ADD:
    case OWN_MUL:
    case OWN_LT:
    case OWN_WHERE: pointwise(x, s, out); return;
    case OWN_SUM:
    case OWN_CUMSUM: sums(x, s, out); return;
    case OWN_CLONE:
    case OWN_CAST: convert(x, s, out); return;
    case OWN_EXPAND:
    case OWN_FULL: fill(x, s, out); return;
    case OWN_INDEX: look_up(x, s, out); return;
    default: views(x, s, out); return;
    }
}

/* An output is handed over where it lies, be it an input's own buffer. A bool has a byte an element. */
static void give(running *x, uint32_t i)
{
    const array *a = &x->values[x->o->outs[i]];
    const own_step *s = &x->o->steps[x->o->outs[i]];
    bp_dim size = {a->n, 0, 0}, stride = {1, 0, 0};
    bp_view v = {sizeof v, a->is_float ? BP_F64 : BP_I64, BP_CPU, 0, 1, 0, &size, &stride, a->at};
    if (s->op == OWN_LT) {
        unsigned char *bytes = (unsigned char *)a->at;
        for (int64_t k = 0; k < a->n; k++)
            bytes[k] = a->at[k].i != 0;
        v.dtype = BP_BOOL;
    }
    x->st = bp_run_output(x->r, i, &v);
}

bp_status own_run(void *state, bp_run *r)
{
    const own *o = state;
    running x = {.o = o, .r = r, .values = calloc((size_t)o->nsteps + 1, sizeof *x.values),
                 .blocks = calloc((size_t)o->nsteps + 1, sizeof *x.blocks)};
    if (!x.values || !x.blocks)
        x.st = bp_run_fail(r, BP_RESOURCE_EXHAUSTED, "out of memory");
    for (uint32_t i = 0; i < o->nsteps && x.st == BP_OK; i++)
        step(&x, &o->steps[i], &x.values[i]);
    for (uint32_t i = 0; i < o->nouts && x.st == BP_OK; i++)
        give(&x, i);
    for (uint32_t i = 0; i < x.nblocks; i++)
        free(x.blocks[i]);
    free(x.blocks);
    free(x.values);
    return x.st;
}
