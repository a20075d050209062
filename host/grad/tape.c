/* Recording: a call whose result requires grad becomes a node, between its arguments' history and its results'.
 *
 * The tape acts at the bottom of the stack, or as a mode over a recorder. Edges are taken and arguments saved before
 * the call, since it may write them; results are saved after it. A composite runs its parts instead, each of which
 * comes back here. */
#include "host/grad/custom.h"
#include "host/graph/higher.h"
#include "host/op/rows.h"
#include "host/op/run.h"
#include <string.h>

/* Where the call goes on: to the modes below `self`, or, NULL, to the kernels. */
static bp_status run_below(bp_ctx *c, dispatch_mode *self, op_call *k)
{
    return self ? op_dispatch_below(c, self, k) : op_run_reference(c, k);
}

typedef struct {
    bp_ctx *c;
    dispatch_mode *self;
    op_call *k;
    const op_row *op;       /* functional */
    bp_value *args;         /* the functional row's */
    bool written;           /* k->op writes argument 0, which is args[0] */
    uint64_t wanted;        /* arguments that require grad */
    formula_reads reads;
    tape_node *n;
} record;

/* -- looking at arguments ------------------------------------------------------------------------------------------ */

static bp_status refresh(bp_ctx *c, const bp_value *v, bool *any)
{
    bp_tensor *t = v->kind == BP_VALUE_TENSOR ? v->v.tensor : NULL;
    if (t && t->base)
        TRY(view_refresh(c, t));
    *any |= t && tape_requires(t);
    return BP_OK;
}

static bp_status any_requires(bp_ctx *c, const op_call *k, bool *any)
{
    for (uint32_t i = 0; i < k->op->schema->nargs; i++) {
        const bp_value *v = &k->args[i];
        TRY(refresh(c, v, any));
        for (uint32_t j = 0; v->kind == BP_VALUE_LIST && j < v->count; j++)
            TRY(refresh(c, &v->v.items[j], any));
    }
    return BP_OK;
}

/* -- views --------------------------------------------------------------------------------------------------------- */

static bp_tensor *argument_over(const op_call *k, const storage *s)
{
    for (uint32_t i = 0; i < k->op->schema->nargs; i++)
        for (uint32_t j = 0; j < arg_list_len(k->args, i); j++) {
            bp_tensor *t = arg_list_tensor(k->args, i, j);
            if (t && t->store == s)
                return t;
        }
    return NULL;
}

/* A result that lies in an argument's memory knows the root of its views, so that a write to either reaches both. */
static void note_views(const bp_ctx *c, const op_call *k)
{
    if (k->op->functional || (k->op->flags & OP_NO_GRAD_OUT) || c->ambient.inference_mode)
        return;
    for (uint32_t i = 0; i < k->nout; i++) {
        bp_tensor *t = k->out[i], *from;
        if (!t || t->base || atomic_load_explicit(&t->store->refs, memory_order_relaxed) == 1)
            continue;
        from = argument_over(k, t->store);
        if (!from || from == t)
            continue;
        t->base = tensor_ref(from->base ? from->base : from);
        if (!c->ambient.grad_enabled || (from->flags & TENSOR_VIEW_NO_GRAD))
            t->flags |= TENSOR_VIEW_NO_GRAD;
        if (k->nout > 1 || (from->flags & TENSOR_VIEW_OF_MANY))
            t->flags |= TENSOR_VIEW_OF_MANY;
    }
}

/* -- the node ------------------------------------------------------------------------------------------------------ */

/* The functional row's arguments, by name; the first one by place too. */
static bp_status functional_args(record *r)
{
    const schema *from = r->k->op->schema, *to = r->op->schema;
    bp_value *args = arena_array(&r->c->scratch, to->nargs, sizeof *args);
    if (!args)
        return ctx_nomem(r->c);
    for (uint32_t i = 0; i < to->nargs; i++) {
        int32_t j = r->op == r->k->op ? (int32_t)i : schema_find(from, to->args[i].name);
        j = j < 0 && i == 0 ? 0 : j;
        args[i] = j >= 0 ? r->k->args[j] : to->args[i].has_default ? to->args[i].default_value : value_none();
    }
    r->args = args;
    return BP_OK;
}

static void look_at_inputs(record *r, uint32_t ninputs)
{
    for (uint32_t i = 0; i < ninputs; i++) {
        uint32_t arg = 0;
        bp_tensor *t = grad_input_at(r->args, r->op->schema->nargs, i, &arg);
        if (t && tape_requires(t))
            r->wanted |= UINT64_C(1) << (arg & 63);
    }
}

static bp_status make_edges(record *r)
{
    tape_node *n = r->n;
    for (uint32_t i = 0; i < n->ninputs; i++) {
        bp_tensor *t = grad_input_at(r->args, r->op->schema->nargs, i, NULL);
        if (!t || !tape_requires(t))
            continue;
        n->edges[i] = tape_edge_of(r->c, t);
        TRY(r->c->diag.code);
    }
    return BP_OK;
}

/* What the write will overwrite; NULL: an error. */
static bp_tensor *copy_of(record *r, bp_tensor *t)
{
    bp_ctx *c = r->c;
    bp_tensor *copy = NULL;
    uint8_t grad = c->ambient.grad_enabled;
    c->ambient.grad_enabled = 0;
    bp_value args[2] = {value_tensor(t), value_none()};
    op_call k = {.op = op_at(ROW_clone_default), .args = args, .out = &copy, .nout = 1};
    bp_status st = k.op ? run_below(c, r->self, &k) : ctx_nomem(c);
    c->ambient.grad_enabled = grad;
    return st == BP_OK ? k.out[0] : NULL;
}

/* Before the call: argument 0 of a write in place is kept as it was, with its history, if the derivative reads it. */
static bp_status save_inputs(record *r)
{
    bool overwritten = r->written && !(r->op->flags & OP_VIEW) && r->args[0].kind == BP_VALUE_TENSOR;
    if (!overwritten || !(r->reads.args & 1))
        return save_args(r->c, r->n, r->args, &r->reads);
    bp_tensor *self = r->args[0].v.tensor, *old = copy_of(r, self);
    if (!old)
        return ctx_ok(r->c) ? ctx_nomem(r->c) : r->c->diag.code;
    tape_edge before = r->n->edges[0];
    bp_status st = before.node ? tape_set_node(r->c, old, before.node, before.index) : BP_OK;
    r->args[0].v.tensor = old;
    if (st == BP_OK)
        st = save_args(r->c, r->n, r->args, &r->reads);
    r->args[0].v.tensor = self;
    tensor_unref(old);
    return st;
}

static bp_status begin_node(record *r, const grad_row *row)
{
    bp_ctx *c = r->c;
    uint32_t ninputs = grad_count_inputs(r->args, r->op->schema->nargs);
    look_at_inputs(r, ninputs);
    if (row)
        TRY(grad_reads(c, r->op, r->wanted, &r->reads));
    if (!(r->n = tape_node_new(c, row ? NODE_OP : NODE_FAIL, ninputs, 0)))
        return c->diag.code;
    r->n->op = r->op;
    r->n->label = r->op->label;
    TRY(make_edges(r));
    if (!row)
        return BP_OK;
    r->n->u.call.row = row;
    return save_inputs(r);
}

/* Whether result i is new, or newly written, and takes part in gradients. */
static bool is_recorded(const record *r, uint32_t i)
{
    const bp_tensor *t = r->k->out[i];
    return t && tape_requires(t) && tape_differentiable(t->dtype) &&
           (r->written || argument_over(r->k, t->store) != t);
}

static bp_status give_history(record *r, uint32_t i)
{
    bp_tensor *t = r->k->out[i];
    if (r->written && t->base && !(r->op->flags & OP_VIEW))
        return view_wrote(r->c, t, r->n);
    return tape_set_node(r->c, t, r->n, i);
}

/* What a functional operator leaves in an argument (the slopes that rrelu_with_noise drew) is what its derivative
 * reads. */
static void save_what_was_left(record *r)
{
    const schema *s = r->op->schema;
    for (uint32_t i = 0; !r->written && r->n->kind == NODE_OP && i < r->n->ninputs; i++) {
        uint32_t arg = 0;
        saved *v = &r->n->u.call.saved[i];
        if (grad_input_at(r->args, s->nargs, i, &arg) && s->args[arg].ty.writes && v->kind == SAVED_INPUT)
            v->version = tape_version(v->t);
    }
}

static bp_status end_node(record *r)
{
    bp_ctx *c = r->c;
    op_call *k = r->k;
    bool any = false;
    save_what_was_left(r);
    for (uint32_t i = 0; i < k->nout; i++)
        any |= is_recorded(r, i);
    if (!any)
        return BP_OK;
    if (r->op->own && r->n->kind == NODE_OP)
        TRY(custom_setup(c, r->n, k, r->args, &r->reads));
    if (!(r->n->results = tape_node_alloc(c, r->n, k->nout * sizeof *r->n->results)))
        return c->diag.code;
    r->n->nresults = k->nout;
    for (uint32_t i = 0; i < k->nout; i++)
        if (k->out[i])
            TRY(save_result(c, r->n, i, k->out[i], r->reads.results >> (i & 63) & 1));
    tape_node_number(r->n);
    for (uint32_t i = 0; i < k->nout; i++)
        if (is_recorded(r, i))
            TRY(give_history(r, i));
    return BP_OK;
}

/* A call that fails leaves no result. */
static bp_status drop_results(op_call *k, bp_status st)
{
    for (uint32_t i = 0; i < k->nout; i++) {
        tensor_unref(k->out[i]);
        k->out[i] = NULL;
    }
    k->nout = 0;
    return st;
}

static bp_status run_recorded(record *r, const grad_row *row)
{
    bp_status st = begin_node(r, row);
    if (st == BP_OK)
        st = run_below(r->c, r->self, r->k);
    if (st == BP_OK) {
        note_views(r->c, r->k);
        st = end_node(r);
        if (st != BP_OK)
            drop_results(r->k, st);
    }
    tape_node_unref(r->n);
    return st;
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

/* Views of leaves are the kernels' to refuse, but for those taken before the leaf required grad. */
static bp_status check_written(const record *r)
{
    const bp_tensor *t = arg_tensor(r->args, 0);
    const uint8_t leaf = TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF;
    const char *how = NULL;
    if (!r->written || !t || (t->flags & TENSOR_VIEW_OF_LEAF) || !tape_differentiable(t->dtype))
        return BP_OK;
    if (t->flags & TENSOR_VIEW_OF_MANY)
        how = "one of several views that an operator gave together";
    if (t->base && (t->base->flags & leaf) == leaf)
        how = "a view of a leaf that requires grad";
    if (t->flags & TENSOR_VIEW_NO_GRAD)
        how = "a view that was made without grad mode";
    if (!how)
        return BP_OK;
    op_fail(r->c, r->k->op, BP_INVALID_ARGUMENT, "%s is written in place (argument \"%s\")", how,
            r->k->op->schema->args[0].name);
    diag_hint(&r->c->diag, "clone() what it is a view of first, or switch grad mode off around the write");
    return r->c->diag.code;
}

static RARE bp_status call_taped(bp_ctx *c, dispatch_mode *self, op_call *k)
{
    record r = {.c = c, .self = self, .k = k, .op = k->op->functional ? k->op->functional : k->op};
    r.written = k->op->functional && !k->op->schema->out_variant;
    if (k->op->schema->out_variant)
        return run_below(c, self, k);
    if ((k->op->flags & OP_HIGHER) && !self)
        return higher_run(c, k); /* its operators come back here, one by one */
    TRY(functional_args(&r));
    TRY(check_written(&r));
    static const grad_row overwritten = {.zero = true};
    const grad_row *row = grad_row_of(r.op);
    if (!row && r.op->own && custom_is_composite(r.op))
        return custom_run_parts(c, self, k);
    if (!row && r.written && (r.op->flags & OP_NO_GRAD_OUT))
        row = &overwritten;
    if (!row && composite_is(r.op))
        return composite_run(c, self, k, r.op, r.args);
    return run_recorded(&r, row);
}

/* detach_: what it is called on becomes a leaf. */
static RARE bp_status call_detach(bp_ctx *c, dispatch_mode *self, op_call *k)
{
    bp_tensor *t = arg_tensor(k->args, 0);
    if (t && t->base && tensor_requires_grad(t)) {
        op_fail(c, k->op, BP_INVALID_ARGUMENT, "a view cannot be detached in place");
        diag_hint(&c->diag, "use detach()");
        return c->diag.code;
    }
    TRY(run_below(c, self, k));
    return tape_forget(t);
}

static bp_status call(bp_ctx *c, dispatch_mode *self, op_call *k)
{
    bool any = false;
    if (k->op->number == ROW_detach_inplace_default)
        return call_detach(c, self, k);
    if (grad_on(c))
        TRY(any_requires(c, k, &any));
    if (any && !(k->op->flags & (OP_NO_GRAD_OUT | OP_ITEM)))
        return call_taped(c, self, k);
    TRY(run_below(c, self, k));
    note_views(c, k);
    return BP_OK;
}

static bp_status call_at_bottom(bp_ctx *c, void *op_call_)
{
    return call(c, NULL, op_call_);
}

static bp_status call_as_mode(bp_ctx *c, dispatch_mode *self, void *op_call_)
{
    return call(c, self, op_call_);
}

void tape_attach(bp_ctx *c)
{
    c->bottom = call_at_bottom;
}

void tape_mode_init(dispatch_mode *m)
{
    *m = (dispatch_mode){.call = call_as_mode, .name = "tape"};
}

/* -- nodes of other rooms ------------------------------------------------------------------------------------------ */

static bp_status own_node(bp_ctx *c, tape_node *n, bp_tensor *const *inputs, bp_tensor *const *results)
{
    if (!(n->u.own.inputs = tape_node_alloc(c, n, n->ninputs * sizeof *n->u.own.inputs)))
        return c->diag.code;
    for (uint32_t i = 0; i < n->ninputs; i++) {
        if (!inputs[i])
            continue;
        n->edges[i] = tape_edge_of(c, inputs[i]);
        if (!tape_node_meta(c, n, inputs[i], &n->u.own.inputs[i]))
            return c->diag.code;
    }
    for (uint32_t i = 0; i < n->nresults; i++)
        if (results[i])
            TRY(save_result(c, n, i, results[i], false));
    tape_node_number(n);
    for (uint32_t i = 0; i < n->nresults; i++)
        if (results[i] && tape_differentiable(results[i]->dtype))
            TRY(tape_set_node(c, results[i], n, i));
    return c->diag.code;
}

void *tape_state_of(const bp_tensor *t, const tape_fn *fn)
{
    const tape_meta *m = tape_meta_get(t);
    const tape_node *n = m ? m->node : NULL;
    return n && n->kind == NODE_FN && n->u.own.fn == fn ? n->u.own.state : NULL;
}

bp_status tape_record(bp_ctx *c, const tape_fn *fn, void *state, bp_tensor *const *inputs, uint32_t ninputs,
                      bp_tensor *const *results, uint32_t nresults)
{
    tape_node *n = ctx_ok(c) ? tape_node_new(c, NODE_FN, ninputs, nresults) : NULL;
    if (!n) {
        if (fn->destroy)
            fn->destroy(state);
        return c->diag.code;
    }
    n->label = fn->name;
    n->u.own.fn = fn;
    n->u.own.state = state;
    bp_status st = own_node(c, n, inputs, results);
    tape_node_unref(n);
    return st;
}
