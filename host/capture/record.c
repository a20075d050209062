/* Operator calls under capture: what each kind of row leaves in the trace.
 *
 * The shape rule runs on the function's handles first, so that the function sees the metadata, aliasing and errors that
 * eager gives. Then the call is recorded on values: a functional row as it is; a view as a link of its handle's chain;
 * a row in place as its functional row and a write. */
#include "host/capture/trace.h"
#include "host/op/library.h"
#include <stdio.h>
#include <string.h>

/* -- functional rows ----------------------------------------------------------------------------------------------- */

static bool plain_value(trace *t, const bp_value *arg, const bp_value *value)
{
    for (uint32_t i = 0; arg->kind == BP_VALUE_LIST && i < arg->count; i++)
        if (!plain_value(t, &arg->v.items[i], &value->v.items[i]))
            return false;
    if (arg->kind != BP_VALUE_TENSOR || value->kind != BP_VALUE_NODE)
        return true;
    return trace_same_layout(arg->v.tensor, trace_fake(t, value->v.node));
}

/* Whether values are laid out as the handles that they are read through: their results are then alike too. */
static bool plain(trace *t, const op_call *k, const bp_value *values)
{
    for (uint32_t i = 0; i < k->nargs; i++)
        if (!plain_value(t, &k->args[i], &values[i]))
            return false;
    return true;
}

static bp_status own_result(trace *t, bp_tensor *h, ref value)
{
    fake_storage *fs = trace_add_storage(t, -1, value);
    return fs && trace_add_handle(t, tensor_ref(h), fs, 0) ? BP_OK : BP_RESOURCE_EXHAUSTED;
}

static bp_status record_functional(trace *t, op_call *k)
{
    bp_value *values = trace_refs(t, k->args, k->nargs);
    if (!values)
        return BP_ABORTED;
    for (uint32_t i = 0; i < k->nout; i++)
        if (!k->out[i])
            return trace_stop(t, TRACE_DECLINED, "%s gives a result that is None", k->op->target);
    ref first;
    bool made = t->nplaced < sym_symbol_count(t->env); /* its sizes are symbols of these very results */
    bool known = made || plain(t, k, values);
    TRY(trace_node(t, k->op, values, known ? k->out : NULL, k->nout, &first));
    for (uint32_t i = 0; i < k->nout; i++)
        TRY(own_result(t, k->out[i], first + i));
    return BP_OK;
}

/* -- views --------------------------------------------------------------------------------------------------------- */

enum { CHAIN_MAX = 4096 };

static uint32_t chain_length(const trace *t, uint32_t n)
{
    uint32_t len = 0;
    for (; t->handles.at[n].parent; n = t->handles.at[n].parent)
        len++;
    return len;
}

/* as_strided counts from the start of the storage: it becomes a view of the whole storage, at an explicit offset. */
static bp_status absolute(trace *t, const op_call *k, const bp_tensor *out, uint32_t *parent, bp_value *args)
{
    const trace_handle *h = &t->handles.at[*parent];
    bool from_self = k->nargs == 4 && arg_is_none(k->args, 3);
    if (h->fs->source < 0 && h->fs->base) {
        *parent = h->fs->base;
        args[3] = value_dim(out->offset);
        return BP_OK;
    }
    if (from_self && !h->parent && !h->fs->group)
        return BP_OK;
    return trace_stop(t, TRACE_DECLINED, "as_strided of an input at an offset in its storage");
}

static uint8_t kind_of_view(const trace *t, const op_call *k, uint32_t parent)
{
    uint8_t of = t->handles.at[parent].kind;
    if (of == VIEW_DETACHED || k->op->flags & OP_NO_GRAD_OUT)
        return VIEW_DETACHED;
    if (of == VIEW_WITHOUT_GRAD || !trace_grad_on(t))
        return VIEW_WITHOUT_GRAD;
    return of == VIEW_OF_MANY || k->nout > 1 ? VIEW_OF_MANY : VIEW_PLAIN;
}

static bp_status add_view(trace *t, const op_call *k, bp_tensor *out, uint32_t parent, const bp_value *args,
                          uint32_t result)
{
    uint8_t kind = kind_of_view(t, k, parent);
    bp_value *own = arena_memdup(&t->arena, args, k->nargs * sizeof *own);
    if (!own)
        return trace_nomem(t);
    if (!strcmp(k->op->id, "as_strided_default"))
        TRY(absolute(t, k, out, &parent, own));
    uint32_t n = trace_add_handle(t, tensor_ref(out), t->handles.at[parent].fs, parent);
    if (!n)
        return BP_RESOURCE_EXHAUSTED;
    trace_handle *h = &t->handles.at[n];
    h->view = k->op;
    h->args = own;
    h->nargs = k->nargs;
    h->result = result;
    h->kind = kind;
    return BP_OK;
}

static bp_status record_view(trace *t, op_call *k)
{
    const bp_tensor *self = arg_tensor(k->args, 0);
    uint32_t parent = self->fake_id;
    bp_value *args = trace_refs(t, k->args, k->nargs); /* argument 0 is set anew at each reading */
    if (!args)
        return BP_ABORTED;
    if (chain_length(t, parent) >= CHAIN_MAX)
        return trace_stop(t, TRACE_DECLINED, "a view of a view, %d deep", CHAIN_MAX);
    for (uint32_t i = 0; i < k->nout; i++)
        TRY(add_view(t, k, k->out[i], parent, args, i));
    return k->nout && trace_read(t, k->out[0]) ? BP_OK : BP_ABORTED; /* recorded where it was called */
}

/* -- rows in place ------------------------------------------------------------------------------------------------- */

/* The functional row's arguments, by the names that both schemas share. */
static bp_value *functional_args(trace *t, const op_call *k)
{
    const schema *from = k->op->schema, *to = k->op->functional->schema;
    bp_value *args = arena_array(&t->arena, to->nargs, sizeof *args);
    if (!args)
        return trace_nomem(t), NULL;
    for (uint32_t i = 0; i < to->nargs; i++) {
        int32_t j = schema_find(from, to->args[i].name);
        j = j < 0 && i == 0 ? 0 : j; /* dropout's input is dropout_'s self */
        args[i] = j >= 0 ? k->args[j] : to->args[i].has_default ? to->args[i].default_value : value_none();
    }
    return trace_refs(t, args, to->nargs);
}

static bool same_sizes(const bp_tensor *a, const bp_tensor *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (!dim_eq(a->sizes[d], b->sizes[d]))
            return false;
    return true;
}

/* Stores a value in a handle as eager stores a result: cast and expanded to the tensor that is written. */
static bp_status store(trace *t, const bp_tensor *h, ref value)
{
    value = value ? trace_cast(t, value, h->dtype) : 0;
    if (value && !same_sizes(trace_fake(t, value), h))
        value = trace_expand(t, value, h);
    return value ? trace_write(t, h, value) : BP_ABORTED;
}

/* copy_ keeps nothing of what was there: the source's value becomes the tensor's. */
static bp_status record_copy(trace *t, const op_call *k)
{
    const bp_tensor *src = arg_tensor(k->args, 1);
    return src ? store(t, arg_tensor(k->args, 0), trace_read(t, src))
               : trace_stop(t, TRACE_DECLINED, "copy_ from a number");
}

static bp_status record_inplace(trace *t, op_call *k)
{
    if (k->op->functional->flags & (OP_VIEW | OP_DYNAMIC_OUT | OP_EFFECT))
        return trace_stop(t, TRACE_DECLINED, "%s changes a tensor's sizes in place", k->op->target);
    if (!strcmp(k->op->id, "copy_inplace_default"))
        return record_copy(t, k);
    bp_value *values = functional_args(t, k);
    ref first;
    if (!values)
        return BP_ABORTED;
    TRY(trace_node(t, k->op->functional, values, NULL, 0, &first));
    uint32_t n = vec_last(&t->items).node.nresults;
    for (uint32_t i = 0; i < n && i < k->nout; i++)
        TRY(store(t, k->out[i], first + i));
    return BP_OK;
}

/* -- custom operators that write ----------------------------------------------------------------------------------- */

static bool is_own_result(const op_call *k, uint32_t i)
{
    return !custom_result_is(k->op->schema, k->args, i);
}

/* The twin gives the new results, then the values of what is written; each is stored as a write in place is. */
static bp_status record_written(trace *t, op_call *k)
{
    const schema *s = k->op->schema;
    bp_value *values = trace_refs(t, k->args, k->nargs);
    ref at;
    if (!values)
        return BP_ABORTED;
    TRY(trace_node(t, &k->op->own->twin, values, NULL, 0, &at));
    for (uint32_t i = 0; i < k->nout; i++)
        if (is_own_result(k, i))
            TRY(own_result(t, k->out[i], at++));
    bp_tensor *h;
    for (uint32_t i = 0; (h = custom_written(s, k->args, i)) != NULL; i++)
        TRY(trace_write(t, h, at++));
    return BP_OK;
}

static bool may_share(const trace *t, const bp_tensor *a, const bp_tensor *b)
{
    const fake_storage *x = t->handles.at[a->fake_id].fs, *y = t->handles.at[b->fake_id].fs;
    if (x == y || (x->group && x->group == y->group))
        return true;
    if (x->source < 0 || y->source < 0)
        return false;
    return tensor_may_overlap(bind_input(t->r->vals, (uint32_t)x->source), bind_input(t->r->vals, (uint32_t)y->source));
}

/* Whether what is written shares memory with another argument: the kernel would see the write there, its copy not. */
static bool writes_shared(const trace *t, const op_call *k)
{
    bp_tensor *h;
    for (uint32_t i = 0; (h = custom_written(k->op->schema, k->args, i)) != NULL; i++) {
        uint32_t met = 0;
        for (uint32_t a = 0; a < k->nargs; a++)
            for (uint32_t j = 0; j < arg_list_len(k->args, a); j++) {
                const bp_tensor *other = arg_list_tensor(k->args, a, j);
                bool handle = other && tensor_is_fake(other);
                met += handle && (other == h || may_share(t, h, other));
            }
        if (met > 1)
            return true;
    }
    return false;
}

/* -- any call ------------------------------------------------------------------------------------------------------ */

static bool writes_arguments(const op_call *k)
{
    if (k->op->flags & OP_MOVES_STATS)
        return arg_bool(k->args, 5) && !(arg_is_none(k->args, 3) && arg_is_none(k->args, 4));
    for (uint32_t i = 0; i < k->nargs; i++)
        if (k->op->schema->args[i].ty.writes && !arg_is_none(k->args, i))
            return true;
    return false;
}

static bp_status ask(trace *t, op_call *k)
{
    bp_tensor *h = arg_tensor(k->args, 0);
    if (!h)
        return op_fail(t->c, k->op, BP_INVALID_ARGUMENT, "the tensor is NULL");
    enum ask_kind kind = h->dtype == BP_BOOL ? ASK_BOOL : dtype_is_float(h->dtype) ? ASK_FLOAT : ASK_INT;
    outcome o;
    if (!trace_ask(t, kind, h, &o))
        return ctx_ok(t->c) ? BP_ABORTED : t->c->diag.code;
    k->item = kind == ASK_FLOAT ? value_float(outcome_float(o)) : kind == ASK_INT ? value_int(outcome_int(o))
                                                                                  : value_bool(outcome_bool(o));
    return BP_OK;
}

/* Why an operator cannot be recorded, by its row alone. NULL: it can. */
static const char *refusal(const trace *t, const op_call *k)
{
    uint32_t flags = k->op->flags;
    if (flags & OP_EFFECT)
        return "has an effect";
    if (flags & OP_DYNAMIC_OUT && !t->r->dynamic_outputs)
        return "gives a result whose size depends on data";
    if (!k->op->functional && !k->op->own && writes_arguments(k))
        return "writes an argument besides its results";
    return NULL;
}

/* The same for a custom operator, which is seen only by its fake. */
static const char *refusal_of_custom(const trace *t, const op_call *k)
{
    if (!custom_has_fake(k->op))
        return "has no fake: register one with bp_register_fake";
    return writes_shared(t, k) ? "writes an argument that shares memory with another one" : NULL;
}

/* The operator is an opaque step of its own (C4.4). */
static bp_status refuse(trace *t, op_call *k, const char *why)
{
    char reason[256];
    snprintf(reason, sizeof reason, "%s %s", k->op->target, why);
    step_spec spec = {.op = k->op, .args = k->args, .nargs = k->nargs, .reason = reason};
    bp_tensor **results;
    uint32_t n;
    TRY(trace_step(t, &spec, &results, &n));
    k->out = results;
    k->nout = n;
    k->returns_list = k->op->schema->nreturns == 1 && k->op->schema->returns[0].list;
    for (uint32_t i = 0; i < n; i++)
        if (results[i])
            tensor_ref(results[i]);
    return BP_OK;
}

/* Every tensor of a call must be a handle of this capture (C5.1). */
static bool check_tensors(trace *t, const bp_value *v)
{
    for (uint32_t i = 0; v->kind == BP_VALUE_LIST && i < v->count; i++)
        if (!check_tensors(t, &v->v.items[i]))
            return false;
    if (v->kind == BP_VALUE_GENERATOR && v->v.tensor)
        return trace_stop(t, TRACE_DECLINED, "a generator of its own is used"), false;
    const bp_tensor *h = v->kind == BP_VALUE_TENSOR ? v->v.tensor : NULL;
    if (!h || trace_handle_of(t, h) || (h->flags & TENSOR_WRAPPED_NUMBER && !tensor_is_fake(h)))
        return true;
    trace_read(t, h); /* says what is wrong with it */
    return false;
}

static bp_status check_history(trace *t, const bp_value *v)
{
    for (uint32_t i = 0; v->kind == BP_VALUE_LIST && i < v->count; i++)
        TRY(check_history(t, &v->v.items[i]));
    return v->kind == BP_VALUE_TENSOR && v->v.tensor ? trace_check_history(t, v->v.tensor) : BP_OK;
}

static bp_status check_histories(trace *t, const op_call *k)
{
    for (uint32_t i = 0; trace_grad_on(t) && !(k->op->flags & OP_NO_GRAD_OUT) && i < k->nargs; i++)
        TRY(check_history(t, &k->args[i]));
    return BP_OK;
}

/* Whether a call that gave no fakes has results whose sizes only data tell. */
static bool sizes_unknown(bp_ctx *c, const op_call *k)
{
    diag failure = c->diag;
    shape_call s;
    bool unknown = false;
    diag_clear(&c->diag);
    if (op_infer(c, k->op, k->args, &s) == BP_OK)
        for (uint32_t i = 0; i < s.nout; i++)
            unknown |= s.out[i].unknown;
    else
        unknown = c->diag.code == BP_FAILED_PRECONDITION; /* not even how many results there are */
    c->diag = failure;
    return unknown;
}

static bool is_alias(const op_call *k, uint32_t i)
{
    const bp_tensor *self = k->nargs ? arg_tensor(k->args, 0) : NULL;
    return self && k->out[i] && k->out[i] != self && k->out[i]->store == self->store;
}

/* Numbers that only a run tells stand for others here: what depends on them is not captured. */
static bp_status make_numbered_fakes(trace *t, op_call *k, const bp_value *hints)
{
    const bp_value *given = k->args, *others = trace_hints(t, given, k->nargs, true);
    if (!others)
        return t->c->diag.code;
    bool same = k->op->functional || op_same_results(t->c, k->op, hints, others);
    k->args = hints;
    bp_status st = same ? op_run_fake(t->c, k) : BP_ABORTED;
    k->args = given;
    if (st == BP_OK && k->nout && !k->op->functional && is_alias(k, 0)) {
        for (uint32_t i = 0; i < k->nout; i++)
            tensor_unref(k->out[i]);
        st = BP_ABORTED;
    }
    if (st == BP_OK)
        return BP_OK;
    k->nout = 0;
    diag_clear(&t->c->diag);
    return trace_stop(t, TRACE_DECLINED, "the shape that %s gives depends on a number that only a run tells",
                      k->op->target);
}

static bp_status make_fakes(trace *t, op_call *k, bool *unknown)
{
    *unknown = false;
    const bp_value *hints = trace_hints(t, k->args, k->nargs, false);
    if (!hints)
        return t->c->diag.code;
    if (hints != k->args)
        return make_numbered_fakes(t, k, hints);
    bp_status st = op_run_fake(t->c, k);
    if (st != BP_FAILED_PRECONDITION || !sizes_unknown(t->c, k))
        return st;
    diag_clear(&t->c->diag);
    *unknown = true;
    return BP_OK;
}

/* A write that fails may fail because of what overlaps: calls that overlap otherwise are no such calls (C6.2). */
static bp_status guard_failed_write(trace *t, const op_call *k, bp_status failure)
{
    for (uint32_t i = 0; i < k->nargs; i++) {
        const bp_tensor *h = k->op->schema->args[i].ty.writes ? arg_tensor(k->args, i) : NULL;
        const fake_storage *fs = h ? t->handles.at[h->fake_id].fs : NULL;
        if (fs && fs->source >= 0 && !vec_push(&vec_last(&t->segments).written, (uint32_t)fs->source))
            return trace_nomem(t);
    }
    return failure;
}

static bp_status record(trace *t, op_call *k)
{
    if (k->op->functional)
        return record_inplace(t, k);
    if (k->op->own && custom_count_written(k->op->schema, k->args))
        return record_written(t, k);
    if (k->nout && is_alias(k, 0))
        return record_view(t, k);
    if (k->nout && trace_handle_of(t, k->out[0]))
        return BP_OK; /* contiguous() of a contiguous tensor and kin: the very argument */
    return record_functional(t, k);
}

/* A question on what only data tell makes the operator a step of its own (C4.4). */
static bp_status refuse_question(trace *t, op_call *k)
{
    char why[200];
    snprintf(why, sizeof why, "asks what only data tell: %.150s", t->c->diag.message);
    diag_clear(&t->c->diag);
    return refuse(t, k, why);
}

static bp_status call(trace *t, op_call *k)
{
    bp_ctx *c = t->c;
    for (uint32_t i = 0; i < k->nargs; i++)
        if (!check_tensors(t, &k->args[i]))
            return c->diag.code;
    if (k->op->flags & OP_ITEM)
        return ask(t, k);
    if (k->op->own && k->op->schema->nreturns && k->op->schema->returns[0].type != TYPE_TENSOR)
        return trace_stop(t, TRACE_DECLINED, "%s gives a number, which is no part of a graph", k->op->target);
    TRY(check_histories(t, k));
    bool unknown = false;
    const char *why = refusal(t, k);
    if (!why && k->op->own)
        why = refusal_of_custom(t, k);
    bp_status made = why ? BP_OK : make_fakes(t, k, &unknown);
    if (made != BP_OK && trace_asks_data(c))
        return refuse_question(t, k);
    if (made != BP_OK)
        return made == BP_RESOURCE_EXHAUSTED ? made : guard_failed_write(t, k, made);
    if (why || unknown)
        return refuse(t, k, why ? why : "gives a result whose size depends on data");
    bool idle = !k->nout && !k->op->own; /* without results it reads metadata alone */
    bp_status st = idle ? BP_OK : record(t, k);
    if (st == BP_OK)
        return BP_OK;
    for (uint32_t i = 0; i < k->nout; i++)
        tensor_unref(k->out[i]);
    k->nout = 0;
    return ctx_ok(c) ? st : c->diag.code;
}

bp_status trace_call(bp_ctx *c, dispatch_mode *self, void *op_call_)
{
    trace *t = (trace *)self;
    op_call *k = op_call_;
    const bp_value *given = k->args;
    k->nargs = k->op->schema->nargs;
    if (t->why != TRACE_RUNNING)
        return ctx_fail(c, BP_ABORTED, "the capture of \"%s\" has ended", t->r->name);
    k->args = trace_take_args(t, given, k->nargs);
    bp_status st = k->args ? call(t, k) : c->diag.code;
    k->args = given;
    return st;
}
