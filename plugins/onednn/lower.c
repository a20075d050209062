/* Lowering: each node of the graph becomes one or two steps. See lower.h; what is taken stands in ops.def. */
#include "plugins/onednn/lower.h"
#include "plugins/onednn/loops.h"
#include <math.h>
#include <string.h>

enum clamp_kind { CLAMP_RELU, CLAMP_HARDTANH };

/* The graph being lowered. */
typedef struct {
    program *p;
    bp_graph_module *gm;
    reader g;            /* of this run's sizes, or the hints */
    uint32_t *value_of; /* by node id; UINT32_MAX: none yet */
    dnnl_primitive_attr_t attr; /* scratchpads are ours */
    dnnl_status_t status; /* sticky */
} lowering;

typedef struct {
    const char *target;
    bool (*check)(const reader *g, uint32_t node, int parameter, why *w);
    void (*lower)(lowering *l, uint32_t node, int parameter);
    int parameter;
} lower_row;

static bool good(lowering *l, dnnl_status_t status)
{
    if (l->status == dnnl_success)
        l->status = status;
    return l->status == dnnl_success;
}

/* Adds a primitive step; pd is taken over. */
static void add_primitive(lowering *l, uint32_t node, dnnl_primitive_desc_t pd, const int *args, const uint32_t *values,
                          uint32_t n)
{
    if (l->status == dnnl_success)
        good(l, program_step(l->p, node, pd, args, values, n));
    else
        dnnl.primitive_desc_destroy(pd);
}

static void destroy_all(const dnnl_memory_desc_t *mds, int n)
{
    for (int i = 0; i < n; i++)
        if (mds[i])
            dnnl.memory_desc_destroy(mds[i]);
}

/* -- values -------------------------------------------------------------------------------------------------------- */

static dnnl_memory_desc_t plain(lowering *l, const operand *o)
{
    dnnl_memory_desc_t md = NULL;
    good(l, dnnl.memory_desc_create_with_strides(&md, o->rank, o->sizes, dnnl_f32, o->strides));
    return l->status == dnnl_success ? md : NULL;
}

/* A descriptor that leaves the layout to the primitive. */
static dnnl_memory_desc_t any(lowering *l, const operand *o)
{
    dnnl_memory_desc_t md = NULL;
    good(l, dnnl.memory_desc_create_with_tag(&md, o->rank, o->sizes, dnnl_f32, dnnl_format_tag_any));
    return l->status == dnnl_success ? md : NULL;
}

/* The operand's value under its own shape. A reshaped operand needs its node's value in plain strides first. */
static uint32_t seen_as(lowering *l, const operand *o, uint32_t node)
{
    uint32_t v = l->value_of[o->node];
    operand whole;
    why w = {(char[128]){0}, 128, false};
    dnnl_memory_desc_t md;
    if (!o->reshaped || l->status != dnnl_success)
        return v;
    if (!operand_get(&l->g, o->node, NULL, &whole, &w))
        return good(l, dnnl_invalid_arguments), v;
    if (!(md = plain(l, &whole)))
        return v;
    good(l, program_reorder(l->p, node, v, md, &v));
    dnnl.memory_desc_destroy(md);
    if (l->status != dnnl_success || !(md = plain(l, o)))
        return v;
    v = program_alias(l->p, v, md);
    return v == UINT32_MAX ? good(l, dnnl_out_of_memory), 0 : v;
}

/* The operand's value in the layout that a primitive wants. */
static uint32_t fetch(lowering *l, const operand *o, const_dnnl_memory_desc_t want, uint32_t node)
{
    uint32_t v = seen_as(l, o, node);
    if (l->status == dnnl_success && want)
        good(l, program_reorder(l->p, node, v, want, &v));
    return v;
}

/* A new value of the node in the layout md; the node's own shape, unless dst is reshaped. Returns the value that the
 * step writes. */
static uint32_t result(lowering *l, uint32_t node, const operand *dst, const_dnnl_memory_desc_t md)
{
    dnnl_memory_desc_t copy = NULL;
    operand whole;
    why w = {(char[128]){0}, 128, false};
    if (l->status != dnnl_success)
        return 0;
    if (!dst->reshaped) {
        if (!good(l, dnnl.memory_desc_clone(&copy, md)))
            return 0;
    } else if (!operand_get(&l->g, node, NULL, &whole, &w) || !(copy = plain(l, &whole))) {
        return good(l, dnnl_invalid_arguments), 0;
    }
    uint32_t v = program_value(l->p, copy, PLACE_ARENA, 0);
    if (v == UINT32_MAX)
        return good(l, dnnl_out_of_memory), 0;
    l->value_of[node] = v;
    if (!dst->reshaped || !(copy = plain(l, dst)))
        return v;
    v = program_alias(l->p, v, copy);
    return v == UINT32_MAX ? good(l, dnnl_out_of_memory), 0 : v;
}

/* -- a kind each: check says whether a node is taken, lower adds its steps -------------------------------------- */

/* Splits the output channels of a grouped convolution's weight: [O, I/g, ...] -> [g, O/g, I/g, ...]. */
static void split_groups(operand *t, int64_t groups)
{
    for (int d = t->rank; d > 0; d--) {
        t->sizes[d] = t->sizes[d - 1];
        t->strides[d] = t->strides[d - 1];
    }
    t->rank++;
    t->sizes[1] /= groups;
    t->sizes[0] = groups;
    t->strides[0] = t->sizes[1] * t->strides[1];
    t->reshaped = true;
}

static bool check_convolution(const reader *g, uint32_t node, int parameter, why *w)
{
    conv_node n;
    (void)parameter;
    return conv_get(g, node, &n, w);
}

static void lower_convolution(lowering *l, uint32_t node, int parameter)
{
    conv_node n;
    dnnl_primitive_desc_t pd = NULL;
    why w = {(char[128]){0}, 128, false};
    (void)parameter;
    if (!conv_get(&l->g, node, &n, &w)) {
        good(l, dnnl_invalid_arguments);
        return;
    }
    if (n.groups > 1)
        split_groups(&n.weights, n.groups);
    for (int d = 0; d < n.spatial; d++)
        n.dilation[d] -= 1; /* oneDNN counts the gap */
    dnnl_memory_desc_t src = any(l, &n.src), weights = any(l, &n.weights), dst = any(l, &n.dst);
    dnnl_memory_desc_t bias = n.bias.node ? any(l, &n.bias) : NULL;
    if (l->status == dnnl_success)
        good(l, dnnl.convolution_forward_primitive_desc_create(&pd, dnnl.engine, dnnl_forward_inference,
                                                               dnnl_convolution_direct, src, weights, bias, dst,
                                                               n.stride, n.dilation, n.padding, n.padding, l->attr));
    if (l->status == dnnl_success) {
        uint32_t v[4];
        v[0] = fetch(l, &n.src, dnnl.primitive_desc_query_md(pd, dnnl_query_src_md, 0), node);
        v[1] = fetch(l, &n.weights, dnnl.primitive_desc_query_md(pd, dnnl_query_weights_md, 0), node);
        v[2] = result(l, node, &n.dst, dnnl.primitive_desc_query_md(pd, dnnl_query_dst_md, 0));
        if (bias)
            v[3] = fetch(l, &n.bias, dnnl.primitive_desc_query_md(pd, dnnl_query_weights_md, 1), node);
        add_primitive(l, node, pd, (const int[]){DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS}, v,
                      bias ? 4 : 3);
    }
    destroy_all((dnnl_memory_desc_t[]){src, weights, bias, dst}, 4);
}

typedef bool (*matmul_reader)(const reader *g, uint32_t node, matmul_node *out, why *w);

/* A product: everything in plain strides, which oneDNN's matmul takes as they are, but the weights, which it may
 * pack. */
static void lower_product(lowering *l, uint32_t node, matmul_reader get)
{
    matmul_node n;
    dnnl_primitive_desc_t pd = NULL;
    why w = {(char[128]){0}, 128, false};
    if (!get(&l->g, node, &n, &w)) {
        good(l, dnnl_invalid_arguments);
        return;
    }
    dnnl_memory_desc_t src = plain(l, &n.src), weights = plain(l, &n.weights), dst = plain(l, &n.dst);
    dnnl_memory_desc_t bias = n.bias.node ? plain(l, &n.bias) : NULL;
    if (l->status == dnnl_success)
        good(l, dnnl.matmul_primitive_desc_create(&pd, dnnl.engine, src, weights, bias, dst, l->attr));
    if (l->status == dnnl_success) {
        uint32_t v[4];
        v[0] = fetch(l, &n.src, src, node);
        v[1] = fetch(l, &n.weights, weights, node);
        if (bias)
            v[3] = fetch(l, &n.bias, bias, node);
        v[2] = result(l, node, &n.dst, dst);
        add_primitive(l, node, pd, (const int[]){DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS}, v,
                      bias ? 4 : 3);
    }
    destroy_all((dnnl_memory_desc_t[]){src, weights, bias, dst}, 4);
}

#define PRODUCT(kind)                                                                              \
    static bool check_##kind(const reader *g, uint32_t node, int parameter, why *w)      \
    {                                                                                              \
        matmul_node n = {0};                                                                       \
        (void)parameter;                                                                           \
        return kind##_get(g, node, &n, w);                                                        \
    }                                                                                              \
    static void lower_##kind(lowering *l, uint32_t node, int parameter)                            \
    {                                                                                              \
        (void)parameter;                                                                           \
        lower_product(l, node, kind##_get);                                                        \
    }
PRODUCT(matmul)
PRODUCT(linear)
PRODUCT(addmm)
#undef PRODUCT

static bool check_avg_pool(const reader *g, uint32_t node, int parameter, why *w)
{
    pool_node n;
    (void)parameter;
    return pool_get(g, node, false, &n, w);
}

static void lower_avg_pool(lowering *l, uint32_t node, int parameter)
{
    pool_node n;
    dnnl_primitive_desc_t pd = NULL;
    why w = {(char[128]){0}, 128, false};
    (void)parameter;
    if (!pool_get(&l->g, node, false, &n, &w)) {
        good(l, dnnl_invalid_arguments);
        return;
    }
    dnnl_memory_desc_t dst = any(l, &n.dst);
    uint32_t src = fetch(l, &n.src, NULL, node);
    if (l->status == dnnl_success)
        good(l, dnnl.pooling_forward_primitive_desc_create(
                    &pd, dnnl.engine, dnnl_forward_inference,
                    n.include_padding ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding,
                    l->p->values.at[src].md, dst, n.stride, n.kernel, (const dnnl_dims_t){0}, n.padding, n.padding,
                    l->attr));
    if (l->status == dnnl_success) {
        uint32_t out = result(l, node, &n.dst, dnnl.primitive_desc_query_md(pd, dnnl_query_dst_md, 0));
        add_primitive(l, node, pd, (const int[]){DNNL_ARG_SRC, DNNL_ARG_DST}, (const uint32_t[]){src, out}, 2);
    }
    destroy_all(&dst, 1);
}

static bool check_max_pool(const reader *g, uint32_t node, int parameter, why *w)
{
    pool_node n;
    (void)parameter;
    return pool_get(g, node, true, &n, w);
}

static void lower_max_pool(lowering *l, uint32_t node, int parameter)
{
    pool_node n;
    why w = {(char[128]){0}, 128, false};
    (void)parameter;
    if (!pool_get(&l->g, node, true, &n, &w)) {
        good(l, dnnl_invalid_arguments);
        return;
    }
    operand contiguous = n.src;
    for (int d = 3, stride = 1; d >= 0; stride *= (int)n.src.sizes[d], d--)
        contiguous.strides[d] = stride;
    operand out = n.dst;
    for (int64_t d = 3, stride = 1; d >= 0; stride *= n.dst.sizes[d], d--)
        out.strides[d] = stride;
    dnnl_memory_desc_t src = plain(l, &contiguous), dst = plain(l, &out);
    step s = {.nargs = 2, .node = node, .loop = loop_max_pool};
    s.args[0].value = fetch(l, &n.src, src, node);
    s.args[1].value = result(l, node, &n.dst, dst);
    loop_max_pool_shape(&s, &n);
    if (l->status == dnnl_success)
        good(l, program_loop(l->p, &s));
    destroy_all((dnnl_memory_desc_t[]){src, dst}, 2);
}

/* Eltwise steps keep the layout of what they read, also a primitive's own. */
static bool check_eltwise(const reader *g, uint32_t node, int parameter, why *w)
{
    operand src, dst;
    (void)parameter;
    return operand_get(g, node, "self", &src, w) && operand_get(g, node, NULL, &dst, w);
}

static void lower_eltwise(lowering *l, uint32_t node, int parameter)
{
    operand src, dst;
    dnnl_primitive_desc_t pd = NULL;
    why w = {(char[128]){0}, 128, false};
    if (!operand_get(&l->g, node, "self", &src, &w) || !operand_get(&l->g, node, NULL, &dst, &w)) {
        good(l, dnnl_invalid_arguments);
        return;
    }
    uint32_t v[2] = {fetch(l, &src, NULL, node), 0};
    dnnl_memory_desc_t md = l->p->values.at[v[0]].md;
    float alpha = parameter == dnnl_eltwise_hardswish ? 1.0f / 6 : parameter == dnnl_eltwise_swish ? 1.0f : 0.0f;
    float beta = parameter == dnnl_eltwise_hardswish ? 0.5f : 0.0f;
    if (!good(l, dnnl.eltwise_forward_primitive_desc_create(&pd, dnnl.engine, dnnl_forward_inference,
                                                            (dnnl_alg_kind_t)parameter, md, md, alpha, beta, l->attr)))
        return;
    v[1] = result(l, node, &dst, md);
    add_primitive(l, node, pd, (const int[]){DNNL_ARG_SRC, DNNL_ARG_DST}, v, 2);
}

static bool check_clamp(const reader *g, uint32_t node, int parameter, why *w)
{
    double lo, hi;
    return check_eltwise(g, node, 0, w) && (parameter == CLAMP_RELU || (number_get(g, node, "min_val", &lo, w) &&
                                                                         number_get(g, node, "max_val", &hi, w)));
}

static void lower_clamp(lowering *l, uint32_t node, int parameter)
{
    operand src, dst;
    double lo = 0, hi = INFINITY;
    why w = {(char[128]){0}, 128, false};
    if (!operand_get(&l->g, node, "self", &src, &w) || !operand_get(&l->g, node, NULL, &dst, &w) ||
        (parameter == CLAMP_HARDTANH &&
         (!number_get(&l->g, node, "min_val", &lo, &w) || !number_get(&l->g, node, "max_val", &hi, &w)))) {
        good(l, dnnl_invalid_arguments);
        return;
    }
    step s = {.nargs = 2, .node = node, .loop = loop_clamp, .bound = {(float)lo, (float)hi}};
    s.args[0].value = fetch(l, &src, NULL, node);
    dnnl_memory_desc_t md = l->p->values.at[s.args[0].value].md;
    s.shape[0] = (int64_t)(dnnl.memory_desc_get_size(md) / sizeof(float));
    s.args[1].value = result(l, node, &dst, md);
    if (l->status == dnnl_success)
        good(l, program_loop(l->p, &s));
}

/* -- the table and the graph --------------------------------------------------------------------------------------- */

static const lower_row rows[] = {
#define ONEDNN_ROW(target, kind, parameter) {target, check_##kind, lower_##kind, parameter},
#include "plugins/onednn/ops.def"
#undef ONEDNN_ROW
};

static const lower_row *find_row(const char *target)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].target, target) == 0)
            return &rows[i];
    return NULL;
}

bool lower_supports(const bp_graph_module *gm, uint32_t node, why *w)
{
    const lower_row *row = find_row(bp_node_target(gm, node));
    const reader g = {gm, NULL, false};
    if (!row)
        return no(w, "%s is not among the operators that oneDNN is used for", bp_node_target(gm, node));
    return row->check(&g, node, row->parameter, w);
}

static void add_input(lowering *l, uint32_t node, uint32_t index)
{
    operand o;
    dnnl_memory_desc_t md;
    char text[128] = "";
    why w = {text, sizeof text, false};
    l->value_of[node] = UINT32_MAX;
    if (!operand_get(&l->g, node, NULL, &o, &w) || !(md = plain(l, &o)))
        return; /* read by nobody that we took; a reader would have been refused */
    l->value_of[node] = program_value(l->p, md, PLACE_INPUT, index);
    if (l->value_of[node] == UINT32_MAX)
        good(l, dnnl_out_of_memory);
}

static void add_constant(lowering *l, uint32_t node)
{
    bp_view view = {.size = sizeof view};
    add_input(l, node, 0);
    if (l->value_of[node] == UINT32_MAX)
        return;
    value *v = &l->p->values.at[l->value_of[node]];
    if (bp_constant_value(l->gm, node, &view) != BP_OK) {
        good(l, dnnl_invalid_arguments);
        return;
    }
    v->place = PLACE_CONSTANT;
    v->data = view.data;
    if (!l->p->gm)
        l->p->gm = bp_gm_ref(l->gm);
}

/* Lets the step that computes a value write output `index` itself. False: the value lies elsewhere or otherwise. */
static bool write_directly(program *p, uint32_t from, const_dnnl_memory_desc_t md, uint32_t index)
{
    value *v = &p->values.at[from];
    if (v->place != PLACE_ARENA || v->base || !dnnl.memory_desc_equal(v->md, md))
        return false;
    for (uint32_t i = from; i < p->values.len; i++)
        if (i == from || p->values.at[i].base == from + 1) {
            p->values.at[i].place = PLACE_OUTPUT;
            p->values.at[i].index = index;
        }
    return true;
}

/* An output that its step cannot write is written by a last reorder into the strides of its fake. */
static void add_output(lowering *l, const bp_value *item, uint32_t index, uint32_t node)
{
    operand o;
    why w = {(char[128]){0}, 128, false};
    dnnl_primitive_desc_t pd;
    if (item->kind != BP_VALUE_NODE || l->value_of[item->v.node] == UINT32_MAX ||
        !operand_get(&l->g, item->v.node, NULL, &o, &w)) {
        good(l, dnnl_invalid_arguments);
        return;
    }
    dnnl_memory_desc_t md = plain(l, &o);
    uint32_t from = l->value_of[item->v.node];
    if (md && write_directly(l->p, from, md, index)) {
        dnnl.memory_desc_destroy(md);
        return;
    }
    uint32_t to = md ? program_value(l->p, md, PLACE_OUTPUT, index) : 0;
    if (l->status != dnnl_success || to == UINT32_MAX) {
        good(l, dnnl_out_of_memory);
        return;
    }
    if (good(l,
             dnnl.reorder_primitive_desc_create(&pd, l->p->values.at[from].md, dnnl.engine, md, dnnl.engine, l->attr)))
        add_primitive(l, node, pd, (const int[]){DNNL_ARG_FROM, DNNL_ARG_TO}, (const uint32_t[]){from, to}, 2);
}

static void lower_node(lowering *l, uint32_t node, uint32_t *next_input)
{
    bp_value args;
    const lower_row *row;
    switch (bp_node_op(l->gm, node)) {
    case BP_NODE_PLACEHOLDER:
        add_input(l, node, (*next_input)++);
        break;
    case BP_NODE_GET_ATTR:
        add_constant(l, node);
        break;
    case BP_NODE_OUTPUT:
        if (bp_node_arg(l->gm, node, "0", &args) != BP_OK || args.kind != BP_VALUE_LIST)
            good(l, dnnl_invalid_arguments);
        for (uint32_t i = 0; l->status == dnnl_success && i < args.count; i++)
            add_output(l, &args.v.items[i], i, node);
        break;
    default:
        row = find_row(bp_node_target(l->gm, node));
        if (row)
            row->lower(l, node, row->parameter);
        else
            good(l, dnnl_unimplemented);
    }
}

/* Walks the nodes; the first that oneDNN refuses ends it. Returns that node, or 0. */
static uint32_t lower_nodes(lowering *l)
{
    uint32_t inputs = 0;
    for (uint32_t i = 0; i < bp_node_count(l->gm); i++) {
        uint32_t node = bp_node_at(l->gm, i);
        lower_node(l, node, &inputs);
        if (l->status != dnnl_success)
            return node;
    }
    good(l, program_finish(l->p));
    return 0;
}

/* Node ids are small but need not be dense. */
static uint32_t largest_id(const bp_graph_module *gm)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < bp_node_count(gm); i++)
        if (bp_node_at(gm, i) > largest)
            largest = bp_node_at(gm, i);
    return largest;
}

static bool has_calls(const bp_graph_module *gm)
{
    for (uint32_t i = 0; i < bp_node_count(gm); i++)
        if (bp_node_op(gm, bp_node_at(gm, i)) == BP_NODE_CALL_FUNCTION)
            return true;
    return false;
}

bool lower_is_empty(const bp_graph_module *gm)
{
    return !has_calls(gm);
}

static void tell(const bp_graph_module *gm, uint32_t at, dnnl_status_t status, lower_failure *failure)
{
    const char *what = at ? bp_node_name(gm, at) : "the graph";
    failure->code = status == dnnl_out_of_memory ? BP_RESOURCE_EXHAUSTED : BP_INTERNAL;
    snprintf(failure->text, sizeof failure->text, "oneDNN refused %.100s with code %d", what, (int)status);
    if (status != dnnl_unimplemented)
        return;
    failure->code = BP_UNIMPLEMENTED;
    snprintf(failure->text, sizeof failure->text, "oneDNN has no primitive for %.100s", what);
}

program *lower_graph(bp_graph_module *gm, const bp_run *run, bool lent, lower_failure *failure)
{
    lowering l = {.gm = gm, .g = {gm, run, true}, .p = calloc(1, sizeof(program))};
    uint32_t n = largest_id(gm) + 1, at = 0;
    l.value_of = malloc(n * sizeof *l.value_of);
    if (!l.p || !l.value_of) {
        l.status = dnnl_out_of_memory;
    } else {
        memset(l.value_of, 0xff, n * sizeof *l.value_of);
        l.p->host = BP_HOST_OF_(gm);
        l.p->is_lent = lent;
        if (good(&l, dnnl.primitive_attr_create(&l.attr)) &&
            good(&l, dnnl.primitive_attr_set_scratchpad_mode(l.attr, dnnl_scratchpad_mode_user)))
            at = lower_nodes(&l);
    }
    if (l.attr)
        dnnl.primitive_attr_destroy(l.attr);
    free(l.value_of);
    if (l.status == dnnl_success)
        return l.p;
    program_destroy(l.p);
    tell(gm, at, l.status, failure);
    return NULL;
}
