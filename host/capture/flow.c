/* bp_cond, bp_while_loop, bp_map and bp_scan: what they check, and how they are recorded.
 *
 * Recorded, a call is one node of the path: the graphs of its functions, their inputs, and behind them what the graphs
 * read of the function around them. Nested calls record their graphs inside. */
#include "host/capture/flow_part.h"
#include "host/graph/higher.h"
#include "host/op/rows.h"
#include <stdlib.h>
#include <string.h>

/* -- recording ----------------------------------------------------------------------------------------------------- */

typedef struct {
    trace *t;
    const flow_call *f;
    const op_row *op;
    ref *in[2];               /* of f->in */
    tensor_meta *params;      /* what the functions take */
    uint8_t *requires;
    uint32_t nparams, sliced; /* sliced: the list whose items they take; 2: none */
    sub_graph graph[2];
    uint32_t ngraphs;
    ref_list free;
} recording;

static bp_status read_list(recording *r, uint32_t list)
{
    uint32_t n = r->f->n[list];
    if (!(r->in[list] = arena_array(&r->t->arena, n, sizeof(ref))))
        return trace_nomem(r->t);
    for (uint32_t i = 0; i < n; i++) {
        bp_tensor *h = r->f->in[list][i];
        if (trace_grad_on(r->t) && trace_handle_of(r->t, h))
            TRY(trace_check_history(r->t, h));
        if (!(r->in[list][i] = trace_read(r->t, h)))
            return ctx_ok(r->t->c) ? BP_ABORTED : r->t->c->diag.code;
    }
    return BP_OK;
}

static bp_status list_params(recording *r)
{
    uint32_t n = r->f->n[0] + r->f->n[1];
    r->params = arena_array(&r->t->arena, n, sizeof *r->params);
    r->requires = arena_array(&r->t->arena, n, 1);
    if (!r->params || !r->requires)
        return trace_nomem(r->t);
    for (uint32_t list = 0; list < r->f->nlists; list++)
        for (uint32_t i = 0; i < r->f->n[list]; i++) {
            const bp_tensor *fake = trace_fake(r->t, r->in[list][i]);
            bool ok = true;
            tensor_meta m;
            tensor_get_meta(fake, &m);
            m = meta_copy(&r->t->arena, &m, &ok);
            if (!ok)
                return trace_nomem(r->t);
            if (list == r->sliced)
                m.rank--, m.sizes++, m.strides++;
            r->requires[r->nparams] = (fake->flags & TENSOR_REQUIRES_GRAD) && trace_grad_on(r->t);
            r->params[r->nparams++] = m;
        }
    return BP_OK;
}

/* Where no gradient flows into a call, none flows inside. */
static bp_status record_functions(recording *r)
{
    for (; r->ngraphs < 2 && r->f->fn[r->ngraphs].fn; r->ngraphs++) {
        const flow_fn *fn = &r->f->fn[r->ngraphs];
        sub_spec spec = {r->f->op, fn->name, fn->fn, r->f->user, r->params, r->requires, r->nparams, fn->nouts};
        TRY(sub_record(r->t, &spec, &r->graph[r->ngraphs]));
    }
    for (uint32_t i = 0; i < r->ngraphs; i++)
        TRY(sub_free_refs(r->t, &r->graph[i], &r->free));
    return BP_OK;
}

static bp_value node_value(ref r)
{
    return (bp_value){.kind = BP_VALUE_NODE, .v.node = r};
}

/* A list of refs; what the graphs read besides stands at the end of the last one. */
static bp_status list_value(recording *r, const ref *at, uint32_t n, bool last, bp_value *to)
{
    uint32_t more = last ? r->free.len : 0;
    bp_value *items = arena_array(&r->t->arena, n + more, sizeof *items);
    if (!items)
        return trace_nomem(r->t);
    for (uint32_t i = 0; i < n; i++)
        items[i] = node_value(at[i]);
    for (uint32_t i = 0; i < more; i++)
        items[n + i] = node_value(r->free.at[i]);
    *to = value_list(items, n + more);
    return BP_OK;
}

/* Arguments in the order of the schema: pred, graphs, lists; lists that the call does not have are empty. */
static bp_status make_args(recording *r, bp_value *args)
{
    uint32_t at = 0, list = 0;
    for (uint32_t i = 0; i < r->op->schema->nargs; i++) {
        const schema_ty *ty = &r->op->schema->args[i].ty;
        if (ty->type == TYPE_GRAPH) {
            const bp_graph_module *gm = sub_build(r->t, &r->graph[at++], &r->free);
            if (!gm)
                return ctx_ok(r->t->c) ? trace_nomem(r->t) : r->t->c->diag.code;
            args[i] = value_graph(gm);
        } else if (ty->list) {
            uint32_t n = list < r->f->nlists ? r->f->n[list] : 0;
            TRY(list_value(r, n ? r->in[list] : NULL, n, i + 1 == r->op->schema->nargs, &args[i]));
            list++;
        } else {
            ref pred = trace_read(r->t, r->f->pred);
            if (!pred)
                return ctx_ok(r->t->c) ? BP_ABORTED : r->t->c->diag.code;
            args[i] = node_value(pred);
        }
    }
    return BP_OK;
}

static bp_status give_results(recording *r, ref first)
{
    trace *t = r->t;
    for (uint32_t i = 0; i < r->f->nout; i++) {
        bp_tensor *h = t->values.at[first + i].fake;
        fake_storage *fs = trace_add_storage(t, -1, first + i);
        if (!fs || !trace_add_handle(t, tensor_ref(h), fs, 0))
            return BP_RESOURCE_EXHAUSTED;
        r->f->out[i] = scope_own(t->c, tensor_ref(h));
    }
    return t->c->diag.code;
}

/* What the graphs give does not fit: the caller's mistake, which eager would not see. */
static bp_status say_misfit(const flow_call *f)
{
    if (f->c->diag.code == BP_INVALID_ARGUMENT)
        f->c->diag.code = BP_FAILED_PRECONDITION;
    return f->c->diag.code;
}

static bp_status record_all(recording *r)
{
    trace *t = r->t;
    ref first = 0;
    bp_value *args = arena_array(&t->arena, r->op->schema->nargs, sizeof *args);
    if (!args)
        return trace_nomem(t);
    for (uint32_t list = 0; list < r->f->nlists; list++)
        TRY(read_list(r, list));
    TRY(list_params(r));
    TRY(record_functions(r));
    TRY(make_args(r, args));
    if (trace_node(t, r->op, args, NULL, 0, &first) != BP_OK)
        return say_misfit(r->f);
    return give_results(r, first);
}

bp_status flow_record(trace *t, uint32_t row, const flow_call *f)
{
    if (t->why != TRACE_RUNNING)
        return ctx_fail(f->c, BP_ABORTED, "the capture of \"%s\" has ended", t->r->name);
    recording r = {.t = t, .f = f, .op = op_at(row), .sliced = 2};
    if (!r.op)
        return ctx_nomem(f->c);
    if (row == ROW_higher_order_map_impl_default)
        r.sliced = 0;
    if (row == ROW_higher_order_scan_default)
        r.sliced = 1;
    bp_status st = record_all(&r);
    vec_fini(&r.free);
    return st;
}

/* -- checks -------------------------------------------------------------------------------------------------------- */

static bp_status check_list(flow_call *f, const char *what, bp_tensor *const *at, uint32_t n)
{
    bp_tensor **real = arena_array(&f->c->scratch, n, sizeof *real);
    if (!real)
        return ctx_nomem(f->c);
    if (n && !at)
        return ctx_fail(f->c, BP_INVALID_ARGUMENT, "%s: \"%s\" is NULL, expected %u tensors", f->op, what, n);
    for (uint32_t i = 0; i < n; i++) {
        if (!at[i])
            return ctx_fail(f->c, BP_INVALID_ARGUMENT, "%s: tensor %u of \"%s\" is NULL", f->op, i, what);
        real[i] = capture_real(f->c, at[i]);
    }
    f->in[f->nlists] = real;
    f->n[f->nlists++] = n;
    return BP_OK;
}

static bp_status check_function(const flow_call *f, const char *name, bp_branch_fn fn)
{
    return fn ? BP_OK : ctx_fail(f->c, BP_INVALID_ARGUMENT, "%s: \"%s\" is NULL, expected a function", f->op, name);
}

static bp_status check_out(const flow_call *f)
{
    return f->nout && !f->out
               ? ctx_fail(f->c, BP_INVALID_ARGUMENT, "%s: there is no room for its %u results", f->op, f->nout) : BP_OK;
}

static void clear(bp_tensor **out, uint32_t n)
{
    for (uint32_t i = 0; out && i < n; i++)
        out[i] = NULL;
}

static bp_status check_condition(const flow_call *f, const char *what, const bp_tensor *t)
{
    char text[160];
    bool one = t->dtype == BP_BOOL;
    for (uint32_t d = 0; d < t->rank; d++)
        one = one && dim_is(t->sizes[d], 1);
    return one ? BP_OK : ctx_fail(f->c, BP_INVALID_ARGUMENT, "%s: %s must be a bool tensor of one element, and is %s",
                                  f->op, what, tensor_describe(t, text, sizeof text));
}

/* Items go along dimension 0. */
static bp_status check_lead(const flow_call *f, bp_tensor *const *xs, uint32_t n)
{
    if (!n)
        return ctx_fail(f->c, BP_INVALID_ARGUMENT, "%s: \"xs\" is empty: there is nothing to go along", f->op);
    for (uint32_t i = 0; i < n; i++) {
        if (!xs[i]->rank)
            return ctx_fail(f->c, BP_INVALID_ARGUMENT, "%s: tensor %u of \"xs\" has no dimensions to go along", f->op,
                            i);
        if (!dim_eq(xs[i]->sizes[0], xs[0]->sizes[0]))
            return ctx_fail(f->c, BP_INVALID_ARGUMENT,
                            "%s: the tensors of \"xs\" must have equal sizes to go along, and have %lld and %lld",
                            f->op, (long long)xs[0]->sizes[0].value, (long long)xs[i]->sizes[0].value);
    }
    return dim_is(xs[0]->sizes[0], 0)
               ? ctx_fail(f->c, BP_INVALID_ARGUMENT, "%s: \"xs\" has size 0 along its dimension", f->op) : BP_OK;
}

/* -- the calls ----------------------------------------------------------------------------------------------------- */

static void set_site(bp_ctx *c, const char *file, int32_t line)
{
    c->site_file = file;
    c->site_line = line;
}

/* A failure names the call; its results are none. */
static bp_status end(const flow_call *f, arena_mark mark, const char *file, int32_t line)
{
    for (uint32_t i = 0; i < f->nout && f->out && !ctx_ok(f->c); i++)
        f->out[i] = NULL;
    arena_reset(&f->c->scratch, mark);
    if (ctx_ok(f->c))
        return BP_OK;
    diag_while(&f->c->diag, "calling %s (%s:%d)", f->op, file ? file : "?", line);
    return f->c->diag.code;
}

static bp_status cond(flow_call *f, bp_tensor *pred, bp_tensor *const *operands, uint32_t n, const char *file,
                      int32_t line)
{
    TRY(check_out(f));
    if (!pred)
        return ctx_fail(f->c, BP_INVALID_ARGUMENT, "bp_cond: \"pred\" is NULL, expected a bool tensor of one element");
    f->pred = capture_real(f->c, pred);
    TRY(check_condition(f, "\"pred\"", f->pred));
    TRY(check_function(f, "true_fn", f->fn[0].fn));
    TRY(check_function(f, "false_fn", f->fn[1].fn));
    TRY(check_list(f, "operands", operands, n));
    set_site(f->c, file, line);
    trace *t = capture_current(f->c);
    return t ? flow_record(t, ROW_higher_order_cond_default, f) : flow_cond(f);
}

bp_status bp_cond_at(bp_ctx *c, bp_tensor *pred, bp_branch_fn true_fn, bp_branch_fn false_fn, void *user,
                     bp_tensor *const *operands, uint32_t n, bp_tensor **out, uint32_t nout, const char *file,
                     int32_t line)
{
    flow_call f = {.c = c, .op = "bp_cond", .user = user, .out = out, .nout = nout,
                   .fn = {{"true_fn", true_fn, nout}, {"false_fn", false_fn, nout}}};
    clear(out, nout);
    if (!ctx_ok(c))
        return c->diag.code;
    arena_mark mark = arena_get_mark(&c->scratch);
    cond(&f, pred, operands, n, file, line);
    return end(&f, mark, file, line);
}

static bp_status while_loop(flow_call *f, bp_tensor *const *carried, uint32_t n, bp_tensor *const *additional,
                            uint32_t m, const char *file, int32_t line)
{
    TRY(check_out(f));
    TRY(check_function(f, "cond_fn", f->fn[0].fn));
    TRY(check_function(f, "body_fn", f->fn[1].fn));
    TRY(check_list(f, "carried", carried, n));
    TRY(check_list(f, "additional", additional, m));
    if (!n)
        return ctx_fail(f->c, BP_INVALID_ARGUMENT, "bp_while_loop: nothing is carried: it would never end");
    set_site(f->c, file, line);
    trace *t = capture_current(f->c);
    return t ? flow_record(t, ROW_higher_order_while_loop_default, f) : flow_while_loop(f);
}

bp_status bp_while_loop_at(bp_ctx *c, bp_branch_fn cond_fn, bp_branch_fn body_fn, void *user,
                           bp_tensor *const *carried, uint32_t n, bp_tensor *const *additional, uint32_t m,
                           bp_tensor **out, const char *file, int32_t line)
{
    flow_call f = {.c = c, .op = "bp_while_loop", .user = user, .out = out, .nout = n,
                   .fn = {{"cond_fn", cond_fn, 1}, {"body_fn", body_fn, n}}};
    clear(out, n);
    if (!ctx_ok(c))
        return c->diag.code;
    arena_mark mark = arena_get_mark(&c->scratch);
    while_loop(&f, carried, n, additional, m, file, line);
    return end(&f, mark, file, line);
}

static bp_status map_over(flow_call *f, bp_tensor *const *xs, uint32_t n, bp_tensor *const *args, uint32_t m,
                          const char *file, int32_t line)
{
    TRY(check_out(f));
    TRY(check_function(f, "fn", f->fn[0].fn));
    TRY(check_list(f, "xs", xs, n));
    TRY(check_list(f, "args", args, m));
    TRY(check_lead(f, f->in[0], n));
    set_site(f->c, file, line);
    trace *t = capture_current(f->c);
    return t ? flow_record(t, ROW_higher_order_map_impl_default, f) : flow_map(f);
}

bp_status bp_map_at(bp_ctx *c, bp_branch_fn fn, void *user, bp_tensor *const *xs, uint32_t n, bp_tensor *const *args,
                    uint32_t m, bp_tensor **out, uint32_t nout, const char *file, int32_t line)
{
    flow_call f = {.c = c, .op = "bp_map", .user = user, .out = out, .nout = nout, .fn = {{"fn", fn, nout}}};
    clear(out, nout);
    if (!ctx_ok(c))
        return c->diag.code;
    arena_mark mark = arena_get_mark(&c->scratch);
    map_over(&f, xs, n, args, m, file, line);
    return end(&f, mark, file, line);
}

/* -- scan ---------------------------------------------------------------------------------------------------------- */

/* The tensors with the dimension that is gone along in front, in the order in which it is. */
static bp_status turn(flow_call *f, int64_t dim, bool reverse)
{
    bp_tensor **xs = (bp_tensor **)(uintptr_t)f->in[1]; /* check_list's copy */
    for (uint32_t i = 0; i < f->n[1]; i++) {
        if (dim >= xs[i]->rank)
            return ctx_fail(f->c, BP_INVALID_ARGUMENT,
                            "bp_scan: tensor %u of \"xs\" has %u dimensions, and the scan goes along dimension %lld", i,
                            xs[i]->rank, (long long)dim);
        if (dim)
            xs[i] = bp_aten_movedim_int(f->c, xs[i], dim, 0);
        if (reverse && xs[i])
            xs[i] = bp_aten_flip_default(f->c, xs[i], BP_DIMS(0));
        TRY(f->c->diag.code);
    }
    return BP_OK;
}

static bp_status turn_back(const flow_call *f, int64_t dim, bool reverse)
{
    for (uint32_t i = f->n[0]; i < f->nout; i++) {
        if (reverse)
            f->out[i] = bp_aten_flip_default(f->c, f->out[i], BP_DIMS(0));
        if (dim && f->out[i] && dim < f->out[i]->rank)
            f->out[i] = bp_aten_movedim_int(f->c, f->out[i], 0, dim);
        TRY(f->c->diag.code);
    }
    return BP_OK;
}

static bp_status scan(flow_call *f, bp_tensor *const *init, uint32_t ninit, bp_tensor *const *xs, uint32_t nxs,
                      const bp_scan_options *o, const char *file, int32_t line)
{
    TRY(check_function(f, "combine", f->fn[0].fn));
    TRY(check_list(f, "init", init, ninit));
    TRY(check_list(f, "xs", xs, nxs));
    if (!ninit)
        return ctx_fail(f->c, BP_INVALID_ARGUMENT, "bp_scan: nothing is carried: use bp_map");
    if (!nxs)
        return check_lead(f, xs, 0);
    int64_t dim = layout_wrap_dim(f->c, o->dim, f->in[1][0]->rank);
    TRY(f->c->diag.code);
    set_site(f->c, file, line);
    TRY(turn(f, dim, o->reverse != 0));
    TRY(check_lead(f, f->in[1], nxs));
    set_site(f->c, file, line);
    trace *t = capture_current(f->c);
    TRY(t ? flow_record(t, ROW_higher_order_scan_default, f) : flow_scan(f));
    set_site(f->c, file, line);
    return turn_back(f, dim, o->reverse != 0);
}

bp_status bp_scan_at(bp_ctx *c, bp_branch_fn combine, void *user, bp_tensor *const *init, uint32_t ninit,
                     bp_tensor *const *xs, uint32_t nxs, bp_tensor **out_carry, bp_tensor **out_ys, uint32_t nys,
                     const bp_scan_options *options, const char *file, int32_t line)
{
    bp_scan_options o = {.size = sizeof o};
    clear(out_carry, ninit);
    clear(out_ys, nys);
    if (!ctx_ok(c))
        return c->diag.code;
    if (options)
        memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    arena_mark mark = arena_get_mark(&c->scratch);
    flow_call f = {.c = c, .op = "bp_scan", .user = user, .nout = ninit + nys,
                   .fn = {{"combine", combine, ninit + nys}}};
    f.out = arena_array(&c->scratch, f.nout, sizeof *f.out);
    if (!f.out || (ninit && !out_carry) || (nys && !out_ys))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "bp_scan: there is no room for its results");
    scan(&f, init, ninit, xs, nxs, &o, file, line);
    for (uint32_t i = 0; i < f.nout; i++)
        *(i < ninit ? &out_carry[i] : &out_ys[i - ninit]) = f.out[i];
    return end(&f, mark, file, line);
}
