/* Reading nodes. Every refusal names the argument, what it is and what would be taken. */
#include "plugins/onednn/node.h"
#include <stdarg.h>
#include <string.h>

bool no(why *w, const char *fmt, ...)
{
    if (w->said)
        return false;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w->text, w->cap, fmt, ap);
    va_end(ap);
    w->said = true;
    return false;
}

/* -- questions on sizes -------------------------------------------------------------------------------------------- */

static bp_dim number(int64_t v)
{
    bp_dim d = {v, 0, 0};
    return d;
}

static bool holds(const reader *g, int32_t relation, bp_dim a, bp_dim b)
{
    if (a.sym || b.sym)
        return bp_dim_holds(g->gm, relation, a, b) == 1;
    return relation == BP_DIM_EQ ? a.value == b.value : a.value < b.value;
}

static bool make(const reader *g, int32_t operation, bp_dim a, bp_dim b, bp_dim *out)
{
    if (a.sym || b.sym)
        return bp_dim_make(g->gm, operation, a, b, out) == BP_OK;
    *out = number(operation == BP_DIM_ADD ? a.value + b.value : operation == BP_DIM_MUL ? a.value * b.value
                                                                                     : a.value % b.value);
    return true;
}

/* The size d + 1 of n steps: how far the last element of a dimension lies. */
static bool add_reach(const reader *g, bp_dim size, bp_dim step, bp_dim *reach)
{
    bp_dim last, span;
    return make(g, BP_DIM_ADD, size, number(-1), &last) && make(g, BP_DIM_MUL, last, step, &span) &&
           make(g, BP_DIM_ADD, *reach, span, reach);
}

/* Whether two indices can reach one element: sizes sorted by stride must not run into the next stride. */
static bool reaches_twice(const reader *g, const operand *o)
{
    bp_dim reach = number(0);
    bool done[MAX_RANK] = {false};
    for (int k = 0; k < o->rank; k++) {
        int best = -1;
        for (int d = 0; d < o->rank; d++)
            if (!done[d] && (best < 0 || o->strides[d] < o->strides[best]))
                best = d;
        done[best] = true;
        if (o->sizes[best] == 1 && holds(g, BP_DIM_EQ, o->size[best], number(1)))
            continue;
        if (!holds(g, BP_DIM_LT, reach, o->step[best]) || !add_reach(g, o->size[best], o->step[best], &reach))
            return true;
    }
    return false;
}

/* The dim as the reader sees it, and as a number. */
static bool read_dim(const reader *g, bp_dim d, bp_dim *seen, int64_t *value)
{
    *value = d.value;
    if (d.sym && g->run && bp_run_dim(g->run, d, value) != BP_OK)
        return false;
    *seen = g->settled ? number(*value) : d;
    return true;
}

static bool from_view(const reader *g, const bp_view *v, const char *name, operand *out, why *w)
{
    if (v->dtype != BP_F32)
        return no(w, "%s is not float32", name);
    if (v->device_kind != BP_CPU)
        return no(w, "%s is not on the CPU", name);
    if (v->rank < 1 || v->rank > MAX_RANK)
        return no(w, "%s has rank %u, taken are 1 to %d", name, v->rank, MAX_RANK);
    out->rank = (int)v->rank;
    for (int d = 0; d < out->rank; d++) {
        if (!read_dim(g, v->sizes[d], &out->size[d], &out->sizes[d]) ||
            !read_dim(g, v->strides[d], &out->step[d], &out->strides[d]))
            return no(w, "%s has a size at index %d that is not known", name, d);
        if (!holds(g, BP_DIM_LT, number(0), out->size[d]))
            return no(w, "%s is empty, or may be", name);
    }
    return reaches_twice(g, out) ? no(w, "%s is expanded: an element is reached twice", name) : true;
}

/* -- arguments ----------------------------------------------------------------------------------------------------- */

bool operand_optional(const reader *g, uint32_t node, const char *name, operand *out, why *w)
{
    bp_value v;
    bp_view view = {.size = sizeof view};
    memset(out, 0, sizeof *out);
    if (bp_node_arg(g->gm, node, name, &v) != BP_OK)
        return no(w, "the node has no argument %s", name);
    if (v.kind == BP_VALUE_NONE)
        return true;
    if (v.kind != BP_VALUE_NODE)
        return no(w, "%s is a number", name);
    out->node = v.v.node;
    if (bp_node_meta(g->gm, v.v.node, 0, &view) != BP_OK)
        return no(w, "the shape of %s is unknown", name);
    return from_view(g, &view, name, out, w);
}

bool operand_get(const reader *g, uint32_t node, const char *name, operand *out, why *w)
{
    if (name)
        return operand_optional(g, node, name, out, w) && (out->node || no(w, "%s is None", name));
    bp_view view = {.size = sizeof view};
    memset(out, 0, sizeof *out);
    out->node = node;
    if (bp_node_meta(g->gm, node, 0, &view) != BP_OK)
        return no(w, "the shape of the result is unknown");
    return from_view(g, &view, "the result", out, w);
}

bool operand_is_contiguous(const reader *g, const operand *o)
{
    bp_dim want = number(1);
    for (int d = o->rank - 1; d >= 0; d--) {
        bool is_one = o->sizes[d] == 1 && holds(g, BP_DIM_EQ, o->size[d], number(1));
        if (!is_one && !holds(g, BP_DIM_EQ, o->step[d], want))
            return false;
        if (!make(g, BP_DIM_MUL, want, o->size[d], &want))
            return false;
    }
    return true;
}

static bool item_int(const bp_value *v, int64_t *out)
{
    if (v->kind == BP_VALUE_INT && v->v.dim.sym == 0)
        return *out = v->v.dim.value, true;
    if (v->kind == BP_VALUE_BOOL)
        return *out = v->v.i, true;
    return false;
}

bool ints_get(const reader *g, uint32_t node, const char *name, int n, const int64_t *fallback, int64_t *out,
              why *w)
{
    bp_value v;
    if (bp_node_arg(g->gm, node, name, &v) != BP_OK)
        return no(w, "the node has no argument %s", name);
    const bp_value *items = v.kind == BP_VALUE_LIST ? v.v.items : &v;
    uint32_t count = v.kind == BP_VALUE_LIST ? v.count : 1;
    if (count == 0 && fallback) {
        memcpy(out, fallback, (size_t)n * sizeof *out);
        return true;
    }
    if (count != 1 && count != (uint32_t)n)
        return no(w, "%s has %u items, wanted are 1 or %d", name, count, n);
    for (int i = 0; i < n; i++)
        if (!item_int(&items[count == 1 ? 0 : i], &out[i]))
            return no(w, "%s is not a list of constants", name);
    return true;
}

bool int_get(const reader *g, uint32_t node, const char *name, int64_t *out, why *w)
{
    return ints_get(g, node, name, 1, NULL, out, w);
}

bool number_get(const reader *g, uint32_t node, const char *name, double *out, why *w)
{
    bp_value v;
    int64_t i;
    if (bp_node_arg(g->gm, node, name, &v) != BP_OK)
        return no(w, "the node has no argument %s", name);
    if (v.kind == BP_VALUE_FLOAT)
        return *out = v.v.f[0], true;
    if (!item_int(&v, &i))
        return no(w, "%s is not a constant number", name);
    *out = (double)i;
    return true;
}

bool conv_get(const reader *g, uint32_t node, conv_node *out, why *w)
{
    int64_t flag = 0;
    bool general = strcmp(bp_node_target(g->gm, node), "aten.convolution.default") == 0;
    if (!operand_get(g, node, "input", &out->src, w) || !operand_get(g, node, "weight", &out->weights, w) ||
        !operand_optional(g, node, "bias", &out->bias, w) || !operand_get(g, node, NULL, &out->dst, w))
        return false;
    if (general && (!int_get(g, node, "transposed", &flag, w) || flag))
        return no(w, "transposed convolution is not taken");
    out->spatial = out->weights.rank - 2;
    if (out->spatial < 1 || out->src.rank != out->weights.rank)
        return no(w, "input has rank %d and weight %d: batched inputs only", out->src.rank, out->weights.rank);
    return ints_get(g, node, "stride", out->spatial, NULL, out->stride, w) &&
           ints_get(g, node, "padding", out->spatial, NULL, out->padding, w) &&
           ints_get(g, node, "dilation", out->spatial, NULL, out->dilation, w) &&
           int_get(g, node, "groups", &out->groups, w);
}

/* oneDNN's window must give PyTorch's output size, which rounding up may not. */
static bool window_fits(const reader *g, const pool_node *p, int64_t ceil_mode, why *w)
{
    for (int d = 0; ceil_mode && d < 2; d++) {
        int64_t span = p->dilation[d] * (p->kernel[d] - 1) + 1;
        bp_dim room;
        if (!make(g, BP_DIM_ADD, p->src.size[p->src.rank - 2 + d], number(2 * p->padding[d] - span), &room) ||
            !make(g, BP_DIM_MOD, room, number(p->stride[d]), &room) || !holds(g, BP_DIM_EQ, room, number(0)))
            return no(w, "ceil_mode adds a partial window");
    }
    return true;
}

bool pool_get(const reader *g, uint32_t node, bool is_max, pool_node *out, why *w)
{
    int64_t ceil_mode = 0, include = 0;
    bp_value divisor = {0};
    out->dilation[0] = out->dilation[1] = 1;
    if (!operand_get(g, node, "self", &out->src, w) || !operand_get(g, node, NULL, &out->dst, w))
        return false;
    if (out->src.rank != 4)
        return no(w, "self has rank %d, taken is 4", out->src.rank);
    if (!ints_get(g, node, "kernel_size", 2, NULL, out->kernel, w) ||
        !ints_get(g, node, "stride", 2, out->kernel, out->stride, w) ||
        !ints_get(g, node, "padding", 2, NULL, out->padding, w) || !int_get(g, node, "ceil_mode", &ceil_mode, w))
        return false;
    if (is_max && !ints_get(g, node, "dilation", 2, NULL, out->dilation, w))
        return false;
    if (!is_max && (bp_node_arg(g->gm, node, "divisor_override", &divisor) != BP_OK || divisor.kind != BP_VALUE_NONE))
        return no(w, "divisor_override is given");
    if (!is_max && !int_get(g, node, "count_include_pad", &include, w))
        return false;
    out->include_padding = include != 0;
    return window_fits(g, out, ceil_mode, w);
}

/* Gives a vector bias the rank of the product. */
static bool shape_bias(operand *bias, int rank, why *w)
{
    if (!bias->node || bias->rank == rank)
        return true;
    if (bias->rank != 1)
        return no(w, "the bias has rank %d", bias->rank);
    int64_t n = bias->sizes[0], stride = bias->strides[0];
    for (int d = 0; d < rank; d++) {
        bias->sizes[d] = d == rank - 1 ? n : 1;
        bias->strides[d] = d == rank - 1 ? stride : n * stride;
    }
    bias->rank = rank;
    bias->reshaped = true;
    return true;
}

bool matmul_get(const reader *g, uint32_t node, matmul_node *out, why *w)
{
    bool plain = strcmp(bp_node_target(g->gm, node), "aten.matmul.default") == 0;
    memset(out, 0, sizeof *out);
    if (!operand_get(g, node, "self", &out->src, w) ||
        !operand_get(g, node, plain ? "other" : "mat2", &out->weights, w) ||
        !operand_get(g, node, NULL, &out->dst, w))
        return false;
    if (out->src.rank != out->weights.rank || out->src.rank < 2)
        return no(w, "operands have ranks %d and %d: equal ranks from 2 are taken", out->src.rank, out->weights.rank);
    return true;
}

/* Folds all dimensions but the last into one; the operand must be contiguous unless it is a matrix already. */
static bool fold_rows(const reader *g, operand *o, const char *name, why *w)
{
    if (o->rank == 2)
        return true;
    if (!operand_is_contiguous(g, o))
        return no(w, "%s is not contiguous", name);
    int64_t rows = 1, cols = o->sizes[o->rank - 1];
    for (int d = 0; d < o->rank - 1; d++)
        rows *= o->sizes[d];
    o->rank = 2;
    o->reshaped = true;
    o->sizes[0] = rows;
    o->sizes[1] = cols;
    o->strides[0] = cols;
    o->strides[1] = 1;
    return true;
}

bool linear_get(const reader *g, uint32_t node, matmul_node *out, why *w)
{
    if (!operand_get(g, node, "input", &out->src, w) || !operand_get(g, node, "weight", &out->weights, w) ||
        !operand_optional(g, node, "bias", &out->bias, w) || !operand_get(g, node, NULL, &out->dst, w))
        return false;
    if (out->weights.rank != 2)
        return no(w, "weight has rank %d, taken is 2", out->weights.rank);
    operand *t = &out->weights;
    int64_t size = t->sizes[0], stride = t->strides[0];
    t->sizes[0] = t->sizes[1], t->strides[0] = t->strides[1];
    t->sizes[1] = size, t->strides[1] = stride;
    t->reshaped = true;
    return fold_rows(g, &out->src, "input", w) && fold_rows(g, &out->dst, "the result", w) &&
           shape_bias(&out->bias, 2, w);
}

bool addmm_get(const reader *g, uint32_t node, matmul_node *out, why *w)
{
    double alpha = 0, beta = 0;
    if (!number_get(g, node, "alpha", &alpha, w) || !number_get(g, node, "beta", &beta, w))
        return false;
    if (alpha != 1 || beta != 1)
        return no(w, "alpha is %g and beta %g, taken are 1 and 1", alpha, beta);
    if (!operand_get(g, node, "self", &out->bias, w) || !operand_get(g, node, "mat1", &out->src, w) ||
        !operand_get(g, node, "mat2", &out->weights, w) || !operand_get(g, node, NULL, &out->dst, w))
        return false;
    if (out->bias.rank == 1 && holds(g, BP_DIM_EQ, out->bias.size[0], number(1)) &&
        !holds(g, BP_DIM_EQ, out->dst.size[1], number(1)))
        return no(w, "self is one number for the whole product");
    return shape_bias(&out->bias, 2, w);
}
