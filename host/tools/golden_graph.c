/* Graph cases: read into a graph module, verified, run, and compared output by output. */
#include "host/pass/pass.h"
#include "host/tools/golden_case.h"
#include <string.h>

typedef struct {
    golden_case *k;
    bp_graph_module *gm;
    VEC(bp_tensor *) inputs;   /* borrowed from the case */
    VEC(bp_tensor *) outputs;  /* owned */
    uint32_t read;             /* of the recorded inputs */
    uint32_t kind;             /* all kinds of its operators */
    uint32_t ndefined;         /* calls that were checked by what defines them */
    uint8_t *taint;            /* by node id: KIND_UNVALUED, KIND_UNFILLED where its value comes from such a node */
    uint8_t *worth;            /* the same by output */
} graph_case;

static void graph_case_fini(graph_case *r)
{
    for (uint32_t i = 0; i < r->outputs.len; i++)
        tensor_unref(r->outputs.at[i]);
    vec_fini(&r->outputs);
    vec_fini(&r->inputs);
    free(r->taint);
    free(r->worth);
    gm_unref(r->gm);
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

static bool is_captured(const golden_case *k) { return (k->o->functionalize || k->o->aot) && !k->widen; }

static bool add_placeholder(graph_case *r, const char *name, const char *target, bp_tensor *t)
{
    tensor_meta m;
    tensor_get_meta(t, &m);
    node_id n = graph_add(&r->gm->g, &(node_spec){.op = BP_NODE_PLACEHOLDER, .role = BP_ROLE_USER, .name = name,
                                                  .exact_name = true, .target = target, .metas = &m, .nmetas = 1});
    return vec_push(&r->inputs, t) && n;
}

static bool read_placeholder(graph_case *r, const char *name, const char *target, const json_t *inputs)
{
    const json_t *j = json_array_get(inputs, r->read++);
    bp_tensor *t = j ? golden_read_tensor(r->k, j) : NULL;
    if (!t)
        return golden_bad(r->k, "placeholder \"%s\" has no input", name);
    return add_placeholder(r, name, target, t);
}

static bool read_constant(graph_case *r, const char *name, const char *target, const json_t *constants)
{
    tensor_meta m;
    const json_t *j = json_object_get(constants, name);
    bp_tensor *t = j ? golden_read_tensor(r->k, j) : NULL;
    if (!t)
        return golden_bad(r->k, "constant \"%s\" has no value", name);
    if (is_captured(r->k)) /* data of its own would be no part of a captured function: one more input */
        return add_placeholder(r, name, target, t);
    tensor_get_meta(t, &m);
    node_id n = graph_add(&r->gm->g, &(node_spec){.op = BP_NODE_GET_ATTR, .name = name, .exact_name = true,
                                                  .target = target, .metas = &m, .nmetas = 1});
    return n && gm_set_constant(r->k->c, r->gm, name, t) == BP_OK;
}

static bool read_call(graph_case *r, const char *name, const char *target, const bp_value *args, const json_t *kw)
{
    const char *key;
    json_t *item;
    uint32_t n = 0;
    node_kwarg *kwargs = arena_array(&r->k->memory, json_object_size(kw), sizeof *kwargs);
    if (!kwargs)
        return golden_bad(r->k, "out of memory");
    json_object_foreach((json_t *)(uintptr_t)kw, key, item) {
        kwargs[n].name = key;
        if (!golden_read_value(r->k, item, &kwargs[n++].value))
            return false;
    }
    return graph_add(&r->gm->g, &(node_spec){.op = BP_NODE_CALL_FUNCTION, .name = name, .exact_name = true,
                                             .target = target, .args = args->v.items, .nargs = args->count,
                                             .kwargs = kwargs, .nkwargs = n}) != 0;
}

static bool read_output(graph_case *r, const bp_value *args)
{
    if (args->count != 1 || args->v.items[0].kind != BP_VALUE_LIST)
        return golden_bad(r->k, "the output is no list");
    return graph_output(&r->gm->g, args->v.items[0].v.items, args->v.items[0].count) != 0;
}

static bool read_node(graph_case *r, const json_t *j, const json_t *whole)
{
    const char *op = json_string_value(json_object_get(j, "op")), *name = json_string_value(json_object_get(j, "name")),
               *target = json_string_value(json_object_get(j, "target"));
    bp_value args = {BP_VALUE_LIST, 0, {0}};
    if (!op || !name || !target)
        return golden_bad(r->k, "a node lacks \"op\", \"name\" or \"target\"");
    if (!strcmp(op, "placeholder"))
        return read_placeholder(r, name, target, json_object_get(whole, "inputs"));
    if (!strcmp(op, "get_attr"))
        return read_constant(r, name, target, json_object_get(whole, "constants"));
    if (!golden_read_value(r->k, json_object_get(j, "args"), &args))
        return false;
    if (args.kind != BP_VALUE_LIST)
        return golden_bad(r->k, "\"args\" of node \"%s\" is no list", name);
    if (!strcmp(op, "output"))
        return read_output(r, &args);
    return !strcmp(op, "call_function") ? read_call(r, name, target, &args, json_object_get(j, "kwargs"))
                                        : golden_bad(r->k, "unknown opcode \"%s\"", op);
}

static bool build(graph_case *r, const json_t *j)
{
    const json_t *nodes = json_object_get(j, "nodes");
    const char *name = json_string_value(json_object_get(j, "name"));
    if (!(r->gm = gm_new(r->k->c, name ? name : "graph")))
        return golden_bad(r->k, "out of memory");
    r->k->g = &r->gm->g;
    for (size_t i = 0; i < json_array_size(nodes); i++)
        if (!read_node(r, json_array_get(nodes, i), j))
            return golden_bad(r->k, "node %zu is out of order, or its name is taken", i);
    if (graph_status(r->k->c, &r->gm->g))
        return false;
    return graph_output_node(&r->gm->g) || golden_bad(r->k, "there is no output");
}

/* -- what its values are worth ------------------------------------------------------------------------------------- */

typedef struct { graph_case *r; uint32_t sum; } tainting;

static void add_taint(void *arg, node_id n)
{
    tainting *t = arg;
    t->sum |= t->r->taint[n];
}

static bool is_written(const op_row *row)
{
    for (uint32_t i = 0; row && i < row->schema->nargs; i++)
        if (row->schema->args[i].ty.writes)
            return true;
    return false;
}

/* Kinds of all nodes, and which values come from random numbers, ambiguous factors or memory that nobody filled. A
 * write fills: after one, nothing counts as unfilled. */
static bool find_kinds(graph_case *r)
{
    const graph *g = &r->gm->g;
    bool filled = false;
    if (!(r->taint = calloc(g->nodes.len, 1)))
        return false;
    for (node_id n = g->first; n; n = graph_get(g, n)->next)
        filled |= is_written(graph_get(g, n)->row);
    for (node_id n = g->first; n; n = graph_get(g, n)->next) {
        if (graph_get(g, n)->op != BP_NODE_CALL_FUNCTION)
            continue;
        uint32_t kind = golden_kind(graph_get(g, n)->target);
        tainting t = {r, kind & (KIND_UNVALUED | (filled ? 0 : KIND_UNFILLED))};
        graph_each_input(g, n, add_taint, &t);
        r->taint[n] = (uint8_t)t.sum;
        r->kind |= kind;
    }
    uint32_t nout = graph_output_count(g);
    if (!(r->worth = calloc(nout + 1, 1)))
        return false;
    for (uint32_t i = 0; i < nout; i++) {
        const bp_value *v = &graph_get(g, g->last)->args[0].v.items[i];
        r->worth[i] = v->kind == BP_VALUE_NODE ? r->taint[v->v.node] : 0;
    }
    return true;
}

static bool on_backend(const golden_case *k)
{
    return k->o->backend && strcmp(k->o->backend, "eager") != 0 && !k->widen;
}

/* The first operator that we lack. */
static const char *unknown_target(const graph *g)
{
    str builtin;
    for (node_id n = g->first; n; n = graph_get(g, n)->next) {
        const graph_node *node = graph_get(g, n);
        if (node->op == BP_NODE_CALL_FUNCTION && !node->row && !graph_is_builtin(node->target, &builtin))
            return node->target;
    }
    return NULL;
}

/* -- running and judging ------------------------------------------------------------------------------------------- */

static bool take_output(void *arg, bp_tensor *t)
{
    graph_case *r = arg;
    return vec_push(&r->outputs, t);
}

static bp_status execute_captured(graph_case *r)
{
    golden_call k = {r->gm, r->inputs.at, r->inputs.len, take_output, r, NULL};
    return golden_run_captured(r->k->c, &k, &r->k->eagerly);
}

/* why: NULL, or where to say which result is not what defines it; that is no error of the run. */
static bp_status run_eager(graph_case *r, uint32_t n, buf *why, bool *wrong)
{
    golden_definer d = {.checked = 0};
    if (why)
        golden_define_begin(r->k->c, &d, why);
    bp_status s = graph_run(r->k->c, r->gm, r->inputs.at, r->inputs.len, r->outputs.at, n, NULL, NULL);
    if (why)
        golden_define_end(r->k->c, &d);
    r->ndefined = d.checked;
    *wrong = s == BP_OK && d.wrong;
    return s;
}

static bp_status execute(graph_case *r, buf *why, bool *wrong)
{
    bp_ctx *c = r->k->c;
    uint32_t n = graph_output_count(&r->gm->g);
    if (!vec_reserve(&r->outputs, n + 1))
        return ctx_nomem(c);
    if (is_captured(r->k))
        return execute_captured(r);
    if (!on_backend(r->k))
        TRY(run_eager(r, n, why, wrong));
    else {
        TRY(golden_propagate(c, r->gm));
        TRY(golden_run_on(c, r->gm, r->k->o->backend, r->inputs.at, r->inputs.len, r->outputs.at, n));
    }
    r->outputs.len = n;
    return BP_OK;
}

typedef struct {
    bool tainted, values_differ;
    golden_bounds bounds;
    const graph_case *wide; /* or NULL */
    buf *why;
} judge;

static bool judge_output(graph_case *r, judge *g, const json_t *j, uint32_t i)
{
    const bp_tensor *got = r->outputs.at[i];
    if (json_is_null(j) && !got)
        return true;
    if (json_is_null(j) || !got) {
        buf_printf(g->why, "output %u is %s, expected %s", i, got ? "a tensor" : "None", got ? "None" : "a tensor");
        return false;
    }
    const bp_tensor *want = golden_read_tensor(r->k, j), *wide = g->wide ? g->wide->outputs.at[i] : NULL;
    golden_diff d;
    if (!want)
        return false;
    bool tainted = r->worth[i];
    g->tainted |= tainted;
    if (tainted)
        golden_compare_type(got, want, &g->bounds, &d);
    else
        golden_compare_wide(got, want, wide && wide->rank == got->rank ? wide : NULL, &g->bounds, &d);
    if (d.equal)
        return true;
    g->values_differ = d.values_differ;
    buf_printf(g->why, "output %u %s", i, d.text);
    return false;
}

static bool judge_outputs(graph_case *r, judge *g, const json_t *j)
{
    const json_t *want = json_object_get(j, "outputs");
    if (json_array_size(want) != r->outputs.len) {
        buf_printf(g->why, "got %u outputs, expected %zu", r->outputs.len, json_array_size(want));
        return false;
    }
    for (uint32_t i = 0; i < r->outputs.len; i++)
        if (!judge_output(r, g, json_array_get(want, i), i))
            return false;
    return true;
}

static bool passes_wider(graph_case *r, judge *g, const json_t *j)
{
    golden_case wide_case = {.c = r->k->c, .o = r->k->o, .file = r->k->file, .line = r->k->line, .widen = true};
    graph_case wide = {.k = &wide_case};
    buf unused = {0};
    judge again = {.bounds = g->bounds, .wide = &wide, .why = &unused};
    bool wrong, ok = build(&wide, j) && execute(&wide, NULL, &wrong) == BP_OK && judge_outputs(r, &again, j);
    diag_clear(&r->k->c->diag);
    graph_case_fini(&wide);
    buf_fini(&unused);
    golden_case_fini(&wide_case);
    return ok;
}

/* Whether these are the outputs that PyTorch's own run of the graph gives, at the same bounds. */
static bool passes_nodewise(graph_case *r, const judge *g)
{
    buf unused = {0};
    judge again = {.bounds = g->bounds, .why = &unused};
    bool ok = r->k->nodewise && judge_outputs(r, &again, r->k->nodewise);
    buf_fini(&unused);
    return ok;
}

/* Whether the captured run left the inputs as a run node by node leaves them. */
static bool judge_inputs(graph_case *r, const json_t *j, buf *why)
{
    golden_case plain_case = {.c = r->k->c, .o = r->k->o, .file = r->k->file, .line = r->k->line};
    graph_case plain = {.k = &plain_case};
    golden_bounds strict = {.strides = true};
    golden_diff d = {.equal = true};
    bool ok = build(&plain, j) && vec_reserve(&plain.outputs, graph_output_count(&plain.gm->g) + 1) &&
              graph_run(r->k->c, plain.gm, plain.inputs.at, plain.inputs.len, plain.outputs.at,
                        graph_output_count(&plain.gm->g), NULL, NULL) == BP_OK;
    if (ok)
        plain.outputs.len = graph_output_count(&plain.gm->g);
    for (uint32_t i = 0; ok && d.equal && i < plain.inputs.len; i++)
        golden_compare(r->inputs.at[i], plain.inputs.at[i], &strict, &d);
    if (!ok)
        golden_judge_error(r->k, why);
    else if (!d.equal)
        buf_printf(why, "an input afterwards: %s", d.text);
    graph_case_fini(&plain);
    golden_case_fini(&plain_case);
    return ok && d.equal;
}

/* The shape rules against what comes out, on inputs that no run has written. */
static bool judge_fake(graph_case *r, const json_t *j, buf *why)
{
    golden_case fresh_case = {.c = r->k->c, .o = r->k->o, .file = r->k->file, .line = r->k->line};
    graph_case fresh = {.k = &fresh_case};
    bool ok = build(&fresh, j) && golden_check_fake(r->k, fresh.gm, fresh.inputs.at, fresh.inputs.len, why);
    graph_case_fini(&fresh);
    golden_case_fini(&fresh_case);
    return ok;
}

/* With symbols for sizes; the run that follows is of that graph. */
static bool judge_symbolic(graph_case *r, const json_t *j, buf *why)
{
    golden_case fixed_case = {.c = r->k->c, .o = r->k->o, .file = r->k->file, .line = r->k->line};
    graph_case fixed = {.k = &fixed_case};
    golden_call call = {.gm = r->gm, .inputs = r->inputs.at, .ninputs = r->inputs.len};
    bool ok = build(&fixed, j) && golden_check_symbolic(r->k, &call, r->gm, fixed.gm, why);
    graph_case_fini(&fixed);
    golden_case_fini(&fixed_case);
    return ok;
}

static golden_verdict judge_case(graph_case *r, const json_t *j, buf *why)
{
    judge g = {.why = why};
    g.bounds = (golden_bounds){.tenfold = r->kind & KIND_SUM, .may_widen = r->kind & (KIND_SUM | KIND_FACTOR),
                               .strides = r->k->o->check_strides};
    if (is_captured(r->k) && !(r->kind & (KIND_UNVALUED | KIND_UNFILLED)) && !judge_inputs(r, j, why))
        return CASE_FAILED;
    if (judge_outputs(r, &g, j))
        return !g.tainted ? CASE_PASSED : r->ndefined ? CASE_DEFINED : CASE_UNVALUED;
    if (g.values_differ && g.bounds.may_widen && passes_wider(r, &g, j))
        return CASE_BY_WIDER;
    return passes_nodewise(r, &g) ? CASE_BY_NODES : CASE_FAILED;
}

/* Whether the graph's text reads back as a graph of the same text, which graph_verify has accepted. */
static bool judge_text(graph_case *r, buf *why)
{
    const golden_options *o = r->k->o;
    buf first = {0}, second = {0};
    graph_print_text(r->gm, &first);
    bp_graph_module *gm = graph_parse_text(r->k->c, "text", buf_text(&first), first.n);
    if (gm)
        graph_print_text(gm, &second);
    else
        golden_judge_error(r->k, why);
    bool same = gm && first.n == second.n && !memcmp(buf_text(&first), buf_text(&second), first.n);
    if (gm && !same)
        buf_puts(why, "its text, read back, prints as another text");
    if (same && o->text)
        o->text(o->arg, buf_text(&first), first.n);
    gm_unref(gm);
    buf_fini(&first);
    buf_fini(&second);
    return same;
}

/* All passes, then what verifies a core graph. What is written in place keeps its operator, which core ATen lacks. */
static bp_status run_passes(graph_case *r)
{
    static const pass all[] = {{"dce", pass_dce, NULL}, {"cse", pass_cse, NULL}, {"fold", pass_fold_constants, NULL},
                               {"decompose", pass_decompose, NULL}, {"cse", pass_cse, NULL}, {"dce", pass_dce, NULL}};
    bool in_place = false;
    if (!r->k->o->passes)
        return BP_OK;
    bp_ctx *c = r->k->c;
    bp_status typed = graph_propagate(c, r->gm); /* where sizes depend on data there are types of inputs alone */
    if (typed == BP_UNIMPLEMENTED || typed == BP_FAILED_PRECONDITION)
        diag_clear(&c->diag);
    else
        TRY(typed);
    TRY(passes_run(c, r->gm, all, sizeof all / sizeof *all));
    TRY(graph_verify(c, r->gm));
    for (node_id n = r->gm->g.first; n; n = graph_get(&r->gm->g, n)->next)
        in_place |= is_written(graph_get(&r->gm->g, n)->row);
    return in_place ? BP_OK : pass_verify_core(c, r->gm, NULL);
}

static golden_verdict run_built(graph_case *r, const json_t *j, buf *why)
{
    const char *unknown = unknown_target(&r->gm->g);
    if (unknown) {
        buf_printf(why, "operator %s is not in the table", unknown);
        return CASE_UNSUPPORTED;
    }
    bool wrong = false;
    golden_call call = {.gm = r->gm, .inputs = r->inputs.at, .ninputs = r->inputs.len};
    if (r->k->o->grad && r->k->o->symbolic && !graph_verify(r->k->c, r->gm) && !judge_symbolic(r, j, why))
        return CASE_FAILED;
    if (r->k->o->grad)
        return graph_verify(r->k->c, r->gm) ? golden_judge_error(r->k, why) : golden_run_grad(r->k, &call, j, why);
    if (!find_kinds(r) || graph_verify(r->k->c, r->gm))
        return golden_judge_error(r->k, why);
    if (r->k->o->symbolic && !judge_symbolic(r, j, why))
        return CASE_FAILED;
    if (run_passes(r) || execute(r, why, &wrong))
        return golden_judge_error(r->k, why);
    if (wrong || (r->k->o->round_trip && !judge_text(r, why)))
        return CASE_FAILED;
    if (r->k->o->check_fake && !on_backend(r->k) && !judge_fake(r, j, why))
        return CASE_FAILED;
    return judge_case(r, j, why);
}

golden_verdict golden_run_graph(golden_case *k, const json_t *j, buf *why)
{
    graph_case r = {.k = k};
    golden_verdict v = CASE_FAILED;
    if (build(&r, j))
        v = run_built(&r, j, why);
    else if (!ctx_ok(k->c))
        v = golden_judge_error(k, why);
    k->g = NULL;
    graph_case_fini(&r);
    return v;
}
