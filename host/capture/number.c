/* Numbers that stay symbolic (C2.5): bp_item_sym under capture.
 *
 * A symbol names its capture and its place there, so that one that was stored beyond it is told from those of another.
 * In the arguments of a call it is a NODE, and becomes the ref of an item node when the call is recorded. */
#include "host/capture/sub.h"

#define SYMBOL VALUE_SYMBOL
enum { EPOCH_BITS = 15, INDEX_BITS = 16 };

static uint32_t symbol_of(const trace *t, uint32_t index)
{
    return SYMBOL | (t->epoch & ((1u << EPOCH_BITS) - 1)) << INDEX_BITS | index;
}

/* The place of a symbol of this trace; NULL: it is none. */
static trace_number *number_at(trace *t, uint32_t sym)
{
    uint32_t index = sym & ((1u << INDEX_BITS) - 1);
    return index < t->numbers.len && symbol_of(t, index) == sym ? &t->numbers.at[index] : NULL;
}

/* -- asking -------------------------------------------------------------------------------------------------------- */

static bp_status find(trace *t, ref value, bp_dtype dtype, uint32_t *index)
{
    for (*index = 0; *index < t->numbers.len; ++*index)
        if (t->numbers.at[*index].value == value)
            return BP_OK;
    if (*index >> INDEX_BITS)
        return trace_stop(t, TRACE_DECLINED, "more than %u symbolic numbers", *index);
    trace_number n = {.value = value, .dtype = dtype};
    if (dtype != BP_BOOL && !dtype_is_float(dtype) && !dtype_is_complex(dtype)) { /* usable as a size */
        sym_symbol s = {.min = INT64_MIN, .max = INT64_MAX, .unbacked = true, .source = {SYM_NO_SOURCE, 0, 0, 0}};
        n.dim = trace_new_symbol(t, &s, (path_symbol){.value = value, .kind = SYM_VALUE});
        if (!n.dim.sym)
            return t->c->diag.code;
    }
    return vec_push(&t->numbers, n) ? BP_OK : trace_nomem(t);
}

static bp_scalar scalar_of(const bp_value *v, uint32_t sym)
{
    bp_scalar s = {.kind = BP_SCALAR_INT, .sym = sym};
    switch (v->kind) {
    case BP_VALUE_BOOL: s = bp_scalar_bool(v->v.i != 0); break;
    case BP_VALUE_INT: s = bp_scalar_int(v->v.dim.value); break;
    case BP_VALUE_FLOAT: s = bp_scalar_float(v->v.f[0]); break;
    default: s = bp_scalar_complex(v->v.f[0], v->v.f[1]); break;
    }
    s.sym = sym;
    if (sym)
        s.v.f[0] = s.v.f[1] = 0;
    return s;
}

bp_status trace_item(trace *t, bp_tensor *h, bp_scalar *out)
{
    if (t->why != TRACE_RUNNING || !ctx_ok(t->c))
        return BP_ABORTED;
    if (t->sub)
        return trace_stop(t, TRACE_DECLINED, "%s: bp_item_sym is called inside \"%s\"", t->sub->op, t->sub->name);
    ref r = trace_read(t, h);
    if (!r)
        return BP_ABORTED;
    for (uint32_t d = 0; d < h->rank; d++)
        if (!dim_is(h->sizes[d], 1))
            return ctx_ok(t->c) ? item_sym_size(t->c, h) : t->c->diag.code;
    if (ref_is_node(r) && t->values.at[r].folds) {
        const bp_tensor *v = slice_value(&t->slices, r);
        bp_value n = v ? number_value(v) : value_none();
        if (v)
            *out = scalar_of(&n, 0);
        return t->c->diag.code;
    }
    uint32_t index;
    bp_value n = value_unknown(h->dtype, false);
    TRY(find(t, r, h->dtype, &index));
    *out = scalar_of(&n, symbol_of(t, index));
    if (t->numbers.at[index].dim.sym)
        *out = bp_scalar_dim(trace_give_dim(t, t->numbers.at[index].dim));
    return trace_number_value(t, index) ? BP_OK : BP_ABORTED; /* recorded where it is asked for */
}

/* -- under capture ------------------------------------------------------------------------------------------------- */

/* A 0-d fake that stands for the number. */
static bp_tensor *fake_number(trace *t, bp_dtype dtype)
{
    tensor_meta m = {.dtype = dtype, .device = {BP_CPU, 0}};
    bp_tensor *fake = tensor_new_fake(t->c, &m);
    if (fake)
        fake->flags |= TENSOR_WRAPPED_NUMBER;
    return fake;
}

ref trace_number_ref(trace *t, uint32_t sym)
{
    const trace_number *n = number_at(t, sym);
    if (n)
        return trace_number_value(t, (uint32_t)(n - t->numbers.at));
    ctx_fail(t->c, BP_FAILED_PRECONDITION, "a symbolic number of a capture that has ended is used");
    diag_hint(&t->c->diag, "what bp_item_sym gives lives for the call: keep the tensor instead");
    return 0;
}

ref trace_number_value(trace *t, uint32_t index)
{
    const trace_number *n = &t->numbers.at[index];
    if (n->segment == t->segments.len)
        return n->node;
    const op_row *op = op_by_id("private_local_scalar_dense_default");
    bp_value *arg = arena_alloc(&t->arena, sizeof *arg);
    bp_tensor *fake = arg && op ? fake_number(t, n->dtype) : NULL;
    ref first = 0;
    if (!fake)
        return trace_nomem(t), 0;
    *arg = (bp_value){.kind = BP_VALUE_NODE, .v.node = n->value};
    bp_status st = trace_node(t, op, arg, &fake, 1, &first);
    tensor_unref(fake);
    if (st != BP_OK)
        return 0;
    vec_last(&t->items).node.number = t->numbers.at[index].dim;
    t->numbers.at[index].segment = t->segments.len;
    return t->numbers.at[index].node = first;
}

typedef struct { trace *t; bool other; } hinting;

static bool hint(void *arg, bp_value *leaf)
{
    const hinting *h = arg;
    const trace_number *n = leaf->kind == BP_VALUE_NODE ? number_at(h->t, leaf->v.node) : NULL;
    if (leaf->kind == BP_VALUE_NODE && !n)
        return trace_number_ref(h->t, leaf->v.node) != 0; /* says what is wrong with it */
    if (n)
        *leaf = value_unknown(n->dtype, h->other);
    return true;
}

const bp_value *trace_hints(trace *t, const bp_value *args, uint32_t nargs, bool other)
{
    bool any = false;
    for (uint32_t i = 0; i < nargs; i++)
        any |= value_any(&args[i], value_is_node);
    if (!any)
        return args;
    bp_value *to = arena_array(&t->c->scratch, nargs, sizeof *to);
    if (!to)
        return trace_nomem(t), NULL;
    for (uint32_t i = 0; i < nargs; i++)
        if (!value_map(t->c, &args[i], hint, &(hinting){t, other}, &to[i]))
            return NULL;
    return to;
}

/* -- over an opaque step ------------------------------------------------------------------------------------------- */

static bp_status hold(trace *t, trace_number *n)
{
    tensor_meta m;
    tensor_get_meta(trace_fake(t, n->value), &m);
    m.offset = dim_const(0);
    bp_tensor *fake = tensor_new_fake(t->c, &m);
    fake_storage *fs = fake ? trace_add_storage(t, -1, n->value) : NULL;
    if (!fs) {
        tensor_unref(fake);
        return trace_nomem(t);
    }
    n->held = trace_add_handle(t, fake, fs, 0);
    if (n->held)
        tensor_ref(fake); /* it counts as one that the function can still reach */
    return n->held ? BP_OK : BP_RESOURCE_EXHAUSTED;
}

bp_status trace_hold_numbers(trace *t)
{
    bp_status st = BP_OK;
    for (uint32_t i = 0; i < t->numbers.len; i++) {
        t->numbers.at[i].held = 0;
        if (st == BP_OK)
            st = hold(t, &t->numbers.at[i]);
    }
    return st;
}

void trace_release_numbers(trace *t)
{
    for (uint32_t i = 0; i < t->numbers.len; i++)
        if (t->numbers.at[i].held)
            tensor_unref(t->handles.at[t->numbers.at[i].held].t);
}

bp_status trace_renew_numbers(trace *t)
{
    for (uint32_t i = 0; i < t->numbers.len; i++) {
        trace_number *n = &t->numbers.at[i];
        n->value = trace_read(t, t->handles.at[n->held].t);
        n->segment = 0;
        if (!n->value)
            return BP_ABORTED;
        if (!n->dim.sym)
            continue;
        path_symbol at = {n->value, sym_symbol_of(t->env, n->dim), SYM_VALUE, 0};
        if (!vec_push(&t->symbols, at) || !vec_push(&vec_last(&t->segments).symbols, at))
            return trace_nomem(t);
    }
    return BP_OK;
}

/* -- behind a resumption ------------------------------------------------------------------------------------------- */

void trace_settle_numbers(trace *t)
{
    for (uint32_t i = 0; i < t->numbers.len; i++) {
        const bp_tensor *v = slice_value(&t->slices, t->numbers.at[i].value);
        t->numbers.at[i].real = v ? number_value(v) : value_none();
        diag_clear(&t->c->diag); /* a number that is used behind is missed there */
    }
}

bool capture_real_number(bp_ctx *c, uint32_t sym, bp_value *to)
{
    const capture_slot *slot = c->slot[CTX_CAPTURE];
    for (trace *t = slot ? slot->resumed : NULL; t; t = t->outer) {
        const trace_number *n = number_at(t, sym);
        if (n && n->real.kind != BP_VALUE_NONE) {
            *to = n->real;
            return true;
        }
    }
    return false;
}
