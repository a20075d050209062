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

/* Whether two indices can reach one element: sizes sorted by stride must not run into the next stride. */
static bool reaches_twice(const operand *o)
{
    int64_t reach = 0;
    bool done[MAX_RANK] = {false};
    for (int k = 0; k < o->rank; k++) {
        int best = -1;
        for (int d = 0; d < o->rank; d++)
            if (!done[d] && (best < 0 || o->strides[d] < o->strides[best]))
                best = d;
        done[best] = true;
        if (o->sizes[best] == 1)
            continue;
        if (o->strides[best] <= reach)
            return true;
        reach += (o->sizes[best] - 1) * o->strides[best];
    }
    return false;
}

static bool from_view(const bp_view *v, const char *name, operand *out, why *w)
{
    if (v->dtype != BP_F32)
        return no(w, "%s is not float32", name);
    if (v->device_kind != BP_CPU)
        return no(w, "%s is not on the CPU", name);
    if (v->rank < 1 || v->rank > MAX_RANK)
        return no(w, "%s has rank %u, taken are 1 to %d", name, v->rank, MAX_RANK);
    out->rank = (int)v->rank;
    for (int d = 0; d < out->rank; d++) {
        if (v->sizes[d].sym || v->strides[d].sym)
            return no(w, "%s has a symbolic size at index %d", name, d);
        out->sizes[d] = v->sizes[d].value;
        out->strides[d] = v->strides[d].value;
        if (out->sizes[d] == 0)
            return no(w, "%s is empty", name);
    }
    return reaches_twice(out) ? no(w, "%s is expanded: an element is reached twice", name) : true;
}

bool operand_optional(const bp_graph_module *gm, uint32_t node, const char *name, operand *out, why *w)
{
    bp_value v;
    bp_view view = {.size = sizeof view};
    memset(out, 0, sizeof *out);
    if (bp_node_arg(gm, node, name, &v) != BP_OK)
        return no(w, "the node has no argument %s", name);
    if (v.kind == BP_VALUE_NONE)
        return true;
    if (v.kind != BP_VALUE_NODE)
        return no(w, "%s is a number", name);
    out->node = v.v.node;
    if (bp_node_meta(gm, v.v.node, 0, &view) != BP_OK)
        return no(w, "the shape of %s is unknown", name);
    return from_view(&view, name, out, w);
}

bool operand_get(const bp_graph_module *gm, uint32_t node, const char *name, operand *out, why *w)
{
    if (name)
        return operand_optional(gm, node, name, out, w) && (out->node || no(w, "%s is None", name));
    bp_view view = {.size = sizeof view};
    memset(out, 0, sizeof *out);
    out->node = node;
    if (bp_node_meta(gm, node, 0, &view) != BP_OK)
        return no(w, "the shape of the result is unknown");
    return from_view(&view, "the result", out, w);
}

bool operand_is_contiguous(const operand *o)
{
    int64_t want = 1;
    for (int d = o->rank - 1; d >= 0; d--) {
        if (o->sizes[d] != 1 && o->strides[d] != want)
            return false;
        want *= o->sizes[d];
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

bool ints_get(const bp_graph_module *gm, uint32_t node, const char *name, int n, const int64_t *fallback, int64_t *out,
              why *w)
{
    bp_value v;
    if (bp_node_arg(gm, node, name, &v) != BP_OK)
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

bool int_get(const bp_graph_module *gm, uint32_t node, const char *name, int64_t *out, why *w)
{
    return ints_get(gm, node, name, 1, NULL, out, w);
}

bool number_get(const bp_graph_module *gm, uint32_t node, const char *name, double *out, why *w)
{
    bp_value v;
    int64_t i;
    if (bp_node_arg(gm, node, name, &v) != BP_OK)
        return no(w, "the node has no argument %s", name);
    if (v.kind == BP_VALUE_FLOAT)
        return *out = v.v.f[0], true;
    if (!item_int(&v, &i))
        return no(w, "%s is not a constant number", name);
    *out = (double)i;
    return true;
}

bool conv_get(const bp_graph_module *gm, uint32_t node, conv_node *out, why *w)
{
    int64_t flag = 0;
    bool general = strcmp(bp_node_target(gm, node), "aten.convolution.default") == 0;
    if (!operand_get(gm, node, "input", &out->src, w) || !operand_get(gm, node, "weight", &out->weights, w) ||
        !operand_optional(gm, node, "bias", &out->bias, w) || !operand_get(gm, node, NULL, &out->dst, w))
        return false;
    if (general && (!int_get(gm, node, "transposed", &flag, w) || flag))
        return no(w, "transposed convolution is not taken");
    out->spatial = out->weights.rank - 2;
    if (out->spatial < 1 || out->src.rank != out->weights.rank)
        return no(w, "input has rank %d and weight %d: batched inputs only", out->src.rank, out->weights.rank);
    return ints_get(gm, node, "stride", out->spatial, NULL, out->stride, w) &&
           ints_get(gm, node, "padding", out->spatial, NULL, out->padding, w) &&
           ints_get(gm, node, "dilation", out->spatial, NULL, out->dilation, w) &&
           int_get(gm, node, "groups", &out->groups, w);
}

/* oneDNN's window must give PyTorch's output size, which rounding up may not. */
static bool window_fits(const pool_node *p, int64_t ceil_mode, why *w)
{
    for (int d = 0; d < 2; d++) {
        int64_t span = p->dilation[d] * (p->kernel[d] - 1) + 1;
        int64_t room = p->src.sizes[p->src.rank - 2 + d] + 2 * p->padding[d] - span;
        if (ceil_mode && room % p->stride[d])
            return no(w, "ceil_mode adds a partial window");
    }
    return true;
}

bool pool_get(const bp_graph_module *gm, uint32_t node, bool is_max, pool_node *out, why *w)
{
    int64_t ceil_mode = 0, include = 0;
    bp_value divisor = {0};
    out->dilation[0] = out->dilation[1] = 1;
    if (!operand_get(gm, node, "self", &out->src, w) || !operand_get(gm, node, NULL, &out->dst, w))
        return false;
    if (out->src.rank != 4)
        return no(w, "self has rank %d, taken is 4", out->src.rank);
    if (!ints_get(gm, node, "kernel_size", 2, NULL, out->kernel, w) ||
        !ints_get(gm, node, "stride", 2, out->kernel, out->stride, w) ||
        !ints_get(gm, node, "padding", 2, NULL, out->padding, w) || !int_get(gm, node, "ceil_mode", &ceil_mode, w))
        return false;
    if (is_max && !ints_get(gm, node, "dilation", 2, NULL, out->dilation, w))
        return false;
    if (!is_max && (bp_node_arg(gm, node, "divisor_override", &divisor) != BP_OK || divisor.kind != BP_VALUE_NONE))
        return no(w, "divisor_override is given");
    if (!is_max && !int_get(gm, node, "count_include_pad", &include, w))
        return false;
    out->include_padding = include != 0;
    return window_fits(out, ceil_mode, w);
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

bool matmul_get(const bp_graph_module *gm, uint32_t node, matmul_node *out, why *w)
{
    bool plain = strcmp(bp_node_target(gm, node), "aten.matmul.default") == 0;
    memset(out, 0, sizeof *out);
    if (!operand_get(gm, node, "self", &out->src, w) ||
        !operand_get(gm, node, plain ? "other" : "mat2", &out->weights, w) ||
        !operand_get(gm, node, NULL, &out->dst, w))
        return false;
    if (out->src.rank != out->weights.rank || out->src.rank < 2)
        return no(w, "operands have ranks %d and %d: equal ranks from 2 are taken", out->src.rank, out->weights.rank);
    return true;
}

/* Folds all dimensions but the last into one; the operand must be contiguous unless it is a matrix already. */
static bool fold_rows(operand *o, const char *name, why *w)
{
    if (o->rank == 2)
        return true;
    if (!operand_is_contiguous(o))
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

bool linear_get(const bp_graph_module *gm, uint32_t node, matmul_node *out, why *w)
{
    if (!operand_get(gm, node, "input", &out->src, w) || !operand_get(gm, node, "weight", &out->weights, w) ||
        !operand_optional(gm, node, "bias", &out->bias, w) || !operand_get(gm, node, NULL, &out->dst, w))
        return false;
    if (out->weights.rank != 2)
        return no(w, "weight has rank %d, taken is 2", out->weights.rank);
    operand *t = &out->weights;
    int64_t size = t->sizes[0], stride = t->strides[0];
    t->sizes[0] = t->sizes[1], t->strides[0] = t->strides[1];
    t->sizes[1] = size, t->strides[1] = stride;
    t->reshaped = true;
    return fold_rows(&out->src, "input", w) && fold_rows(&out->dst, "the result", w) && shape_bias(&out->bias, 2, w);
}

bool addmm_get(const bp_graph_module *gm, uint32_t node, matmul_node *out, why *w)
{
    double alpha = 0, beta = 0;
    if (!number_get(gm, node, "alpha", &alpha, w) || !number_get(gm, node, "beta", &beta, w))
        return false;
    if (alpha != 1 || beta != 1)
        return no(w, "alpha is %g and beta %g, taken are 1 and 1", alpha, beta);
    if (!operand_get(gm, node, "self", &out->bias, w) || !operand_get(gm, node, "mat1", &out->src, w) ||
        !operand_get(gm, node, "mat2", &out->weights, w) || !operand_get(gm, node, NULL, &out->dst, w))
        return false;
    if (out->bias.rank == 1 && out->bias.sizes[0] == 1 && out->dst.sizes[1] != 1)
        return no(w, "self is one number for the whole product");
    return shape_bias(&out->bias, 2, w);
}
