/* Operator cases: each is a graph of one call, so that eager and backends are asked the same.
 *
 * Eagerly the results are those that the call gave, and arguments that it wrote are looked at afterwards. A backend may
 * not write its inputs: there the call gets clones of what it writes, and the clones are outputs. */
#include "host/tools/golden_case.h"
#include <string.h>

typedef struct {
    golden_case *k;
    bp_graph_module *gm;
    const op_row *row;
    bp_value *args;              /* positional, with tensors */
    uint32_t nargs, nwritten, ndefined; /* ndefined: calls that were checked by what defines them */
    VEC(bp_tensor *) inputs;     /* borrowed from the case */
    VEC(bp_tensor *) results;    /* owned */
    bp_tensor *written[8];       /* by order of written arguments: after the call */
    uint32_t written_at[8];      /* their positions */
} op_run;

static void run_fini(op_run *r)
{
    for (uint32_t i = 0; i < r->results.len; i++)
        tensor_unref(r->results.at[i]);
    vec_fini(&r->results);
    vec_fini(&r->inputs);
    gm_unref(r->gm);
}

static bool on_backend(const golden_case *k)
{
    return k->o->backend && strcmp(k->o->backend, "eager") != 0;
}

static bool is_captured(const golden_case *k)
{
    return k->o->functionalize && !on_backend(k) && !k->widen;
}

golden_verdict golden_judge_error(golden_case *k, buf *why)
{
    diag *d = &k->c->diag;
    golden_verdict v = d->code == BP_UNIMPLEMENTED ? CASE_UNSUPPORTED : CASE_FAILED;
    if (v == CASE_FAILED)
        buf_printf(why, "%s: ", status_name(d->code));
    buf_puts(why, d->message);
    diag_clear(d);
    return v;
}

/* -- building the graph -------------------------------------------------------------------------------------------- */

static bp_value add_input(op_run *r, bp_tensor *t)
{
    char name[32];
    tensor_meta m;
    snprintf(name, sizeof name, "arg%u_1", r->inputs.len);
    tensor_get_meta(t, &m);
    node_id n = graph_placeholder(&r->gm->g, name, name, BP_ROLE_USER, &m);
    if (!vec_push(&r->inputs, t))
        ctx_nomem(r->k->c);
    return graph_ref(n);
}

/* The clone that a backend's call may write in place of an input. */
static bp_value add_clone(op_run *r, bp_value of)
{
    return graph_ref(graph_call(&r->gm->g, NULL, "aten.clone.default", &of, 1, NULL, 0));
}

static bp_value lower(op_run *r, const bp_value *v, bool written)
{
    if (v->kind == BP_VALUE_TENSOR) {
        bp_value in = add_input(r, v->v.tensor);
        return written && on_backend(r->k) ? add_clone(r, in) : in;
    }
    if (v->kind != BP_VALUE_LIST)
        return *v;
    bp_value *items = arena_array(&r->k->memory, v->count, sizeof *items);
    if (!items) {
        ctx_nomem(r->k->c);
        return (bp_value){0};
    }
    for (uint32_t i = 0; i < v->count; i++)
        items[i] = lower(r, &v->v.items[i], written);
    return (bp_value){BP_VALUE_LIST, v->count, {.items = items}};
}

static bool lower_args(op_run *r, bp_value *out)
{
    const schema *s = r->row->schema;
    for (uint32_t i = 0; i < r->nargs; i++) {
        bool written = i < s->nargs && s->args[i].ty.writes && r->args[i].kind == BP_VALUE_TENSOR;
        out[i] = lower(r, &r->args[i], written);
        if (written && r->nwritten < 8) {
            r->written_at[r->nwritten] = i;
            r->written[r->nwritten++] = r->args[i].v.tensor;
        }
    }
    return ctx_ok(r->k->c);
}

static bool lower_kwargs(op_run *r, const json_t *j, node_kwarg *out, uint32_t *n)
{
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)(uintptr_t)j, key, item) {
        bp_value v;
        if (!golden_read_value(r->k, item, &v))
            return false;
        int32_t at = schema_find(r->row->schema, key);
        out[*n] = (node_kwarg){key, lower(r, &v, at >= 0 && r->row->schema->args[at].ty.writes)};
        ++*n;
    }
    return true;
}

/* Outputs of a graph for a backend: each result, then each written argument. */
static void add_outputs(op_run *r, node_id call, const bp_value *args, uint32_t nresults, bool list)
{
    bp_value *items = arena_array(&r->k->memory, nresults + r->nwritten, sizeof *items);
    if (!items) {
        ctx_nomem(r->k->c);
        return;
    }
    for (uint32_t i = 0; i < nresults; i++) {
        bp_value pick[2] = {graph_ref(call), {BP_VALUE_INT, 0, {.dim = {i, 0, 0}}}};
        items[i] = pick[0];
        if (list)
            items[i] = graph_ref(graph_call(&r->gm->g, NULL, "<built-in function getitem>", pick, 2, NULL, 0));
    }
    for (uint32_t i = 0; i < r->nwritten; i++)
        items[nresults + i] = args[r->written_at[i]];
    graph_output(&r->gm->g, items, nresults + r->nwritten);
}

static bool build(op_run *r, const json_t *j)
{
    const json_t *out = json_object_get(j, "out"), *kw = json_object_get(j, "kwargs");
    bp_value all;
    if (!golden_read_value(r->k, json_object_get(j, "args"), &all))
        return false;
    if (all.kind != BP_VALUE_LIST || !json_is_object(kw))
        return golden_bad(r->k, "\"args\" is no list, or \"kwargs\" no object");
    r->nargs = all.count;
    r->args = arena_memdup(&r->k->memory, all.v.items, all.count * sizeof all);
    bp_value *args = arena_array(&r->k->memory, all.count, sizeof *args);
    node_kwarg *kwargs = arena_array(&r->k->memory, json_object_size(kw), sizeof *kwargs);
    uint32_t nkwargs = 0;
    r->gm = gm_new(r->k->c, r->row->schema->name);
    if (!r->args || !args || !kwargs || !r->gm)
        return golden_bad(r->k, "out of memory");
    if (!lower_args(r, args) || !lower_kwargs(r, kw, kwargs, &nkwargs))
        return golden_bad(r->k, "out of memory");
    node_id call = graph_call(&r->gm->g, NULL, r->row->target, args, r->nargs, kwargs, nkwargs);
    if (on_backend(r->k) && !r->k->widen)
        add_outputs(r, call, args, json_is_array(out) ? (uint32_t)json_array_size(out) : 1, json_is_array(out));
    else
        graph_output(&r->gm->g, NULL, 0);
    return true;
}

/* -- running ------------------------------------------------------------------------------------------------------- */

static bp_status take_results(void *arg, node_id n, bp_tensor *const *results, uint32_t nresults)
{
    op_run *r = arg;
    if (graph_get(&r->gm->g, n)->op != BP_NODE_CALL_FUNCTION)
        return BP_OK;
    for (uint32_t i = 0; i < nresults; i++)
        if (!vec_push(&r->results, results[i] ? tensor_ref(results[i]) : NULL))
            return ctx_nomem(r->k->c);
    return BP_OK;
}

static bp_status run_eager_defined(op_run *r, buf *why, bool *wrong)
{
    golden_definer d;
    golden_decomposer parts;
    if (r->k->o->decompose)
        golden_decompose_begin(r->k->c, &parts, r->k->o->decompose > 1);
    golden_define_begin(r->k->c, &d, why);
    bp_status s = graph_run(r->k->c, r->gm, r->inputs.at, r->inputs.len, NULL, 0, take_results, r);
    golden_define_end(r->k->c, &d);
    if (r->k->o->decompose)
        golden_decompose_end(r->k->c, &parts);
    r->k->decomposed = r->k->o->decompose && parts.decomposed;
    r->ndefined = d.checked;
    *wrong = s == BP_OK && d.wrong;
    return s;
}

static bp_status run_eager(op_run *r)
{
    return graph_run(r->k->c, r->gm, r->inputs.at, r->inputs.len, NULL, 0, take_results, r);
}

static bool take_result(void *arg, bp_tensor *t)
{
    op_run *r = arg;
    return vec_push(&r->results, t);
}

static bp_status run_captured(op_run *r)
{
    golden_call k = {r->gm, r->inputs.at, r->inputs.len, take_result, r, NULL};
    return golden_run_captured(r->k->c, &k, &r->k->eagerly);
}

static bp_status run_backend(op_run *r)
{
    uint32_t n = graph_output_count(&r->gm->g), results = n - r->nwritten;
    TRY(golden_propagate(r->k->c, r->gm));
    if (!vec_reserve(&r->results, n + 1))
        return ctx_nomem(r->k->c);
    TRY(golden_run_on(r->k->c, r->gm, r->k->o->backend, r->inputs.at, r->inputs.len, r->results.at, n));
    r->results.len = n;
    for (uint32_t i = 0; i < r->nwritten; i++)
        r->written[i] = r->results.at[results + i];
    return BP_OK;
}

static bp_status run_somewhere(op_run *r, buf *why, bool *wrong)
{
    return on_backend(r->k) ? run_backend(r) : is_captured(r->k) ? run_captured(r) : run_eager_defined(r, why, wrong);
}

/* -- judging ------------------------------------------------------------------------------------------------------- */

typedef struct {
    golden_bounds bounds;
    uint32_t kind;
    const op_run *wide;  /* or NULL */
    bool values_differ;  /* all that is wrong are float32 values */
    buf *why;
} judge;

static bool differs(judge *g, const char *what, uint32_t i, const bp_tensor *got, const bp_tensor *want,
                    const bp_tensor *wide)
{
    golden_diff d;
    if (g->kind & (KIND_UNVALUED | KIND_UNFILLED))
        golden_compare_type(got, want, &g->bounds, &d);
    else
        golden_compare_wide(got, want, wide && wide->rank == got->rank ? wide : NULL, &g->bounds, &d);
    if (d.equal)
        return false;
    g->values_differ = d.values_differ;
    buf_printf(g->why, "%s %u %s", what, i, d.text);
    return true;
}

/* One recorded result against ours; false: why says what is wrong. */
static bool judge_result(op_run *r, judge *g, const json_t *j, uint32_t i)
{
    const bp_tensor *got = i < r->results.len ? r->results.at[i] : NULL;
    if (json_is_null(j) && !got)
        return true;
    if (json_is_null(j) || !got) {
        buf_printf(g->why, "result %u is %s, expected %s", i, got ? "a tensor" : "None", got ? "None" : "a tensor");
        return false;
    }
    const bp_tensor *want = golden_read_tensor(r->k, j), *wide = NULL;
    if (!want)
        return false;
    if (g->wide && i < g->wide->results.len)
        wide = g->wide->results.at[i];
    return !differs(g, "result", i, got, want, wide);
}

static bool judge_results(op_run *r, judge *g, const json_t *out)
{
    uint32_t n = json_is_array(out) ? (uint32_t)json_array_size(out) : !json_is_null(out);
    uint32_t got = r->results.len - (on_backend(r->k) ? r->nwritten : 0);
    if (json_is_null(out) && got == 1 && !r->results.at[0])
        return true;
    if (got != n) {
        buf_printf(g->why, "got %u results, expected %u", got, n);
        return false;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!judge_result(r, g, json_is_array(out) ? json_array_get(out, i) : out, i))
            return false;
    return true;
}

static bool judge_written(op_run *r, judge *g, const json_t *mutated)
{
    for (size_t i = 0; i < json_array_size(mutated); i++) {
        const json_t *pair = json_array_get(mutated, i);
        uint32_t at = (uint32_t)json_integer_value(json_array_get(pair, 0)), k = 0;
        const bp_tensor *want = golden_read_tensor(r->k, json_array_get(pair, 1));
        while (k < r->nwritten && r->written_at[k] != at)
            k++;
        if (!want)
            return false;
        if (k == r->nwritten) {
            buf_printf(g->why, "argument %u is not written by our schema", at);
            return false;
        }
        const bp_tensor *wide = g->wide && k < g->wide->nwritten ? g->wide->written[k] : NULL;
        if (differs(g, "written argument", at, r->written[k], want, wide))
            return false;
    }
    return true;
}

static bool judge_all(op_run *r, judge *g, const json_t *j)
{
    return judge_results(r, g, json_object_get(j, "out")) && judge_written(r, g, json_object_get(j, "mutated"));
}

/* The shape rule against what comes out. */
static bool judge_fake(op_run *r, const json_t *j, buf *why)
{
    golden_case fresh_case = {.c = r->k->c, .o = r->k->o, .file = r->k->file, .line = r->k->line};
    op_run fresh = {.k = &fresh_case, .row = r->row};
    bool ok = build(&fresh, j) && golden_check_fake(r->k, fresh.gm, fresh.inputs.at, fresh.inputs.len, why);
    run_fini(&fresh);
    golden_case_fini(&fresh_case);
    return ok;
}

/* Once more in float64, to see whose rounding it was. */
static bool passes_wider(op_run *r, judge *g, const json_t *j)
{
    golden_case wide_case = {.c = r->k->c, .o = r->k->o, .file = r->k->file, .line = r->k->line, .widen = true};
    op_run wide = {.k = &wide_case, .row = r->row};
    buf unused = {0};
    judge again = {.bounds = g->bounds, .kind = g->kind, .wide = &wide, .why = &unused};
    bool ok = build(&wide, j) && run_eager(&wide) == BP_OK && judge_all(r, &again, j);
    diag_clear(&r->k->c->diag);
    run_fini(&wide);
    buf_fini(&unused);
    golden_case_fini(&wide_case);
    return ok;
}

/* Whether the captured run left all inputs as the operator itself leaves them, also where its schema does not tell. */
static bool judge_inputs(op_run *r, const json_t *j, buf *why)
{
    golden_case plain_case = {.c = r->k->c, .o = r->k->o, .file = r->k->file, .line = r->k->line};
    op_run plain = {.k = &plain_case, .row = r->row};
    golden_bounds strict = {.strides = true};
    golden_diff d = {.equal = true};
    bool ok = build(&plain, j) && run_eager(&plain) == BP_OK;
    for (uint32_t i = 0; ok && d.equal && i < plain.inputs.len; i++)
        golden_compare(r->inputs.at[i], plain.inputs.at[i], &strict, &d);
    if (!ok)
        golden_judge_error(r->k, why);
    else if (!d.equal)
        buf_printf(why, "an input afterwards: %s", d.text);
    run_fini(&plain);
    golden_case_fini(&plain_case);
    return ok && d.equal;
}

static golden_verdict judge_case(op_run *r, const json_t *j, buf *why)
{
    uint32_t kind = golden_kind(r->row->target);
    judge g = {.kind = kind, .why = why};
    g.bounds = (golden_bounds){.tenfold = kind & KIND_SUM, .may_widen = kind & (KIND_SUM | KIND_FACTOR),
                               .strides = r->k->o->check_strides};
    if (is_captured(r->k) && !(kind & (KIND_UNVALUED | KIND_UNFILLED)) && !judge_inputs(r, j, why))
        return CASE_FAILED;
    bool ok = judge_all(r, &g, j);
    if (!ok && g.values_differ && g.bounds.may_widen && passes_wider(r, &g, j))
        return CASE_BY_WIDER;
    if (!ok || (r->k->o->check_fake && !on_backend(r->k) && !judge_fake(r, j, why)))
        return CASE_FAILED;
    if (!(kind & (KIND_UNVALUED | KIND_UNFILLED)))
        return CASE_PASSED;
    return r->ndefined ? CASE_DEFINED : CASE_UNVALUED;
}

/* An operator that gives a value: dispatched by itself, since a graph has no place for it. */
static golden_verdict run_item(op_run *r, const json_t *j, buf *why)
{
    bp_value all, want, *args;
    if (on_backend(r->k)) {
        buf_puts(why, "it gives a value, and a backend's graph gives tensors");
        return CASE_UNSUPPORTED;
    }
    if (!golden_read_value(r->k, json_object_get(j, "args"), &all) || all.kind != BP_VALUE_LIST ||
        !golden_read_value(r->k, json_object_get(j, "out"), &want)) {
        golden_bad(r->k, "\"args\" or \"out\" cannot be read");
        return CASE_FAILED;
    }
    op_call k = {.op = r->row, .nargs = r->row->schema->nargs};
    arena_mark mark = arena_get_mark(&r->k->c->scratch);
    bp_status s = op_bind(r->k->c, r->row, all.v.items, all.count, NULL, NULL, 0, &args);
    if (!s) {
        k.args = args;
        s = op_dispatch(r->k->c, &k);
    }
    arena_reset(&r->k->c->scratch, mark);
    if (s)
        return golden_judge_error(r->k, why);
    if (value_eq(&k.item, &want))
        return CASE_PASSED;
    buf_puts(why, "the value differs from the recorded one");
    return CASE_FAILED;
}

golden_verdict golden_run_op(golden_case *k, const json_t *j, buf *why)
{
    const char *target = json_string_value(json_object_get(j, "op"));
    op_run r = {.k = k, .row = op_by_target(target)};
    if (!r.row) {
        buf_printf(why, "operator %s is not in the table", target);
        return CASE_UNSUPPORTED;
    }
    if (r.row->flags & OP_ITEM)
        return run_item(&r, j, why);
    golden_verdict v = CASE_FAILED;
    bool wrong = false;
    if (build(&r, j)) {
        bp_status s = run_somewhere(&r, why, &wrong);
        v = s ? golden_judge_error(k, why) : wrong ? CASE_FAILED : judge_case(&r, j, why);
    } else if (!ctx_ok(k->c)) {
        v = golden_judge_error(k, why);
    }
    run_fini(&r);
    return v;
}
