/* Eager resumption, the trace's part (C3.6): a replay whose fakes become real.
 *
 * When the log is used up, the caller commits what the function has written and gives memory for what it made; then
 * every handle is turned real in place, since the C code holds its address: it takes the storage of the tensor that it
 * stood for, at the layout that it has. A handle of an input is not that input, so it is mapped back wherever it goes
 * on from here: to operators, to callables, and when it is returned. */
#include "host/capture/trace.h"
#include "host/grad/share.h"
#include <string.h>

/* -- handles ------------------------------------------------------------------------------------------------------- */

/* The tensor that the world knows a handle by: an input, or what was given to an opaque step. NULL: none. */
static bp_tensor *input_of(const trace *t, const trace_handle *h)
{
    if (!h->parent)
        return h->fs && h->fs->source >= 0 ? bind_input(t->r->vals, (uint32_t)h->fs->source) : NULL;
    for (uint32_t i = 0; i < t->nsteps; i++)
        for (uint32_t j = 0; j < t->r->steps[i]->nobjects; j++)
            if (t->handles.at[t->r->steps[i]->objects[j].handle].t == h->t)
                return t->r->steps[i]->objects[j].t;
    return NULL;
}

bp_tensor *capture_real(bp_ctx *c, bp_tensor *h)
{
    const capture_slot *slot = c->slot[CTX_CAPTURE];
    for (trace *t = slot && h->fake_id ? slot->resumed : NULL; t; t = t->outer) {
        const trace_handle *at = trace_handle_of(t, h);
        bp_tensor *in = at ? input_of(t, at) : NULL;
        if (in)
            return in;
    }
    return h;
}

bp_tensor *trace_handle_for(const trace *t, bp_tensor *real)
{
    for (uint32_t i = 1; real && i < t->handles.len; i++)
        if (input_of(t, &t->handles.at[i]) == real)
            return t->handles.at[i].t;
    return real;
}

bool capture_real_value(bp_ctx *c, arena *a, const bp_value *v, bp_value *to)
{
    *to = *v;
    if (v->kind == BP_VALUE_NODE)
        capture_real_number(c, v->v.node, to);
    if (v->kind == BP_VALUE_INT && v->v.dim.sym)
        return capture_real_dim(c, &to->v.dim);
    if (v->kind == BP_VALUE_TENSOR && v->v.tensor)
        to->v.tensor = capture_real(c, v->v.tensor);
    if (v->kind != BP_VALUE_LIST)
        return true;
    bp_value *items = arena_array(a, v->count, sizeof *items);
    for (uint32_t i = 0; items && i < v->count; i++)
        if (!capture_real_value(c, a, &v->v.items[i], &items[i]))
            return false;
    to->v.items = items;
    return items != NULL;
}

static void take_storage(bp_tensor *h, storage *s)
{
    storage *old = h->store;
    h->store = storage_ref(s);
    storage_unref(old);
}

/* A handle's history is that of what it stands for. An input is found in the handle's place. */
static bp_status take_history(trace *t, const trace_handle *h, bp_tensor *const *made)
{
    const fake_storage *fs = h->fs;
    bool requires = (h->t->flags & TENSOR_REQUIRES_GRAD) != 0;
    if (h->parent) {
        bp_tensor *of = fs->source >= 0 ? bind_input(t->r->vals, (uint32_t)fs->source) : t->handles.at[fs->base].t;
        return tape_share_view(t->c, h->t, of, h->kind, requires && of->flags & TENSOR_REQUIRES_GRAD);
    }
    return fs->source < 0 && fs->made ? tape_share_history(t->c, h->t, made[fs->made - 1]) : BP_OK;
}

static bp_status take_histories(trace *t, bp_tensor *const *made)
{
    for (uint32_t i = 1; i < t->handles.len; i++)
        if (!t->handles.at[i].parent)
            TRY(take_history(t, &t->handles.at[i], made));
    for (uint32_t i = 1; i < t->handles.len; i++)
        if (t->handles.at[i].parent)
            TRY(take_history(t, &t->handles.at[i], made));
    return BP_OK;
}

static void become_real(trace *t, bp_tensor *const *made)
{
    for (uint32_t i = 1; i < t->handles.len; i++) {
        trace_handle *h = &t->handles.at[i];
        const fake_storage *fs = h->fs;
        if (fs->source >= 0)
            take_storage(h->t, bind_input(t->r->vals, (uint32_t)fs->source)->store);
        else if (fs->made)
            take_storage(h->t, made[fs->made - 1]->store);
    }
}

/* -- operators behind the switch ----------------------------------------------------------------------------------- */

/* An operator may have changed an input's layout in place: its handle follows. */
static void follow(bp_ctx *c, const bp_value *v)
{
    for (uint32_t i = 0; v->kind == BP_VALUE_LIST && i < v->count; i++)
        follow(c, &v->v.items[i]);
    bp_tensor *h = v->kind == BP_VALUE_TENSOR ? v->v.tensor : NULL, *in = h ? capture_real(c, h) : h;
    if (in == h)
        return;
    tensor_meta was, is;
    const uint8_t grad = TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF;
    h->flags = (uint8_t)((h->flags & ~grad) | (in->flags & grad));
    tensor_get_meta(h, &was);
    tensor_get_meta(in, &is);
    if (!meta_eq(&was, &is) || !dim_same(was.offset, is.offset))
        tensor_set_layout(c, h, &is);
}

/* An operator in place gives back its argument: the function knows it by its handle. Takes and gives a reference. */
static bp_tensor *own_handle(bp_ctx *c, bp_tensor *t)
{
    const trace *at = capture_resumed(c);
    bp_tensor *h = at ? trace_handle_for(at, t) : t;
    if (h == t)
        return t;
    tensor_unref(t);
    return tensor_ref(h);
}

static bp_status call_real(bp_ctx *c, dispatch_mode *self, void *op_call_)
{
    op_call *k = op_call_;
    const bp_value *given = k->args;
    uint32_t n = k->op->schema->nargs;
    bp_value *args = arena_array(&c->scratch, n, sizeof *args);
    for (uint32_t i = 0; args && i < n; i++)
        if (!capture_real_value(c, &c->scratch, &given[i], &args[i]))
            return ctx_ok(c) ? ctx_nomem(c) : c->diag.code;
    if (!args)
        return ctx_nomem(c);
    k->args = args;
    bp_status st = op_dispatch_below(c, self, k);
    k->args = given;
    for (uint32_t i = 0; st == BP_OK && i < n; i++)
        follow(c, &given[i]);
    for (uint32_t i = 0; st == BP_OK && i < k->nout; i++)
        k->out[i] = own_handle(c, k->out[i]);
    return st;
}

/* -- the switch ---------------------------------------------------------------------------------------------------- */

bp_status trace_go_real(trace *t)
{
    bp_ctx *c = t->c;
    item state = {.kind = ITEM_END};
    TRY(trace_state(t, &state));
    TRY(trace_settle_dims(t, &state));
    trace_end_symbols(t);
    bp_tensor **made = arena_array(&t->arena, state.end.nouts, sizeof *made);
    if (!made)
        return trace_nomem(t);
    trace_settle_numbers(t);
    if (t->r->resume->commit(t->r->resume->arg, &state, made) != BP_OK)
        return trace_stop(t, TRACE_DECLINED, "%s", c->diag.message);
    become_real(t, made);
    bp_status st = take_histories(t, made);
    for (uint32_t i = 0; i < state.end.nouts; i++)
        tensor_unref(made[i]);
    capture_slot *slot = capture_slot_get(c);
    t->why = TRACE_RESUMED;
    t->mode.call = call_real;
    t->outer = slot->resumed;
    slot->resumed = t;
    slot->current = NULL;
    c->capturing--;
    return st;
}

/* What the function did to a handle of an input, it did to the input. */
static void give_back(trace *t, trace_handle *h)
{
    bp_tensor *in = input_of(t, h);
    uint8_t grad = TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF;
    if (in && (in->flags & grad) != (h->t->flags & grad))
        in->flags = (uint8_t)((in->flags & ~grad) | (h->t->flags & grad));
    h->t->fake_id = h->t->trace_epoch = 0;
    tensor_unref(h->t);
}

void trace_end_real(trace *t, bp_frame *f)
{
    bp_ctx *c = t->c;
    capture_slot_get(c)->resumed = t->outer;
    for (uint32_t i = 1; i < t->values.len; i++)
        tensor_unref(t->values.at[i].fake);
    for (uint32_t i = 1; i < t->handles.len; i++)
        give_back(t, &t->handles.at[i]);
    t->values.len = t->handles.len = 0;
    if (ctx_ok(c))
        frame_give(f, t->r->resume->outs);
}
