/* Slices. The walk has its own stack, because chains are as long as programs. */
#include "host/capture/slice.h"
#include "sdk/base/vec.h"

bp_value number_value(const bp_tensor *t)
{
    if (tensor_is_fake(t))
        return value_unknown(t->dtype, false);
    num n = dtype_load(t->dtype, tensor_ptr(t));
    if (n.kind == NUM_COMPLEX)
        return (bp_value){.kind = BP_VALUE_COMPLEX, .v.f = {n.f, n.im}};
    return n.kind == NUM_FLOAT ? value_float(n.f) : t->dtype == BP_BOOL ? value_bool(n.i) : value_int(n.i);
}

static bool with_tensors(arena *a, const bp_value *v, bp_value *to, bp_tensor *(*get)(void *arg, ref r), void *arg)
{
    *to = *v;
    if (v->kind == BP_VALUE_NODE) {
        bp_tensor *t = get(arg, v->v.node);
        *to = t && t->flags & TENSOR_WRAPPED_NUMBER ? number_value(t) : value_tensor(t);
        return t != NULL;
    }
    if (v->kind != BP_VALUE_LIST)
        return true;
    bp_value *items = arena_array(a, v->count, sizeof *items);
    for (uint32_t i = 0; items && i < v->count; i++)
        if (!with_tensors(a, &v->v.items[i], &items[i], get, arg))
            return false;
    to->v.items = items;
    return items != NULL;
}

bp_value *args_with_tensors(arena *a, const bp_value *args, uint32_t n, bp_tensor *(*get)(void *arg, ref r), void *arg)
{
    bp_value *to = arena_array(a, n, sizeof *to);
    for (uint32_t i = 0; to && i < n; i++)
        if (!with_tensors(a, &args[i], &to[i], get, arg))
            return NULL;
    return to;
}

static bp_tensor *have(void *arg, ref r)
{
    slicer *s = arg;
    map_value *v = ref_is_node(r) ? map_get_u64(&s->memo, r) : NULL;
    return v && v->p ? v->p : bind_get(s->vals, r);
}

typedef VEC(ref) ref_stack;
typedef struct { slicer *s; ref_stack todo; uint32_t missing; bool failed; } needs;

static void push_missing(void *arg, ref r)
{
    needs *n = arg;
    if (have(n->s, r))
        return;
    n->missing++;
    if (!ref_is_node(r) || !vec_push(&n->todo, r))
        n->failed = true;
}

/* Keeps the results; takes over their references. */
static bp_status keep(slicer *s, const item *it, op_call *k)
{
    bp_status st = BP_OK;
    for (uint32_t i = 0; i < k->nout; i++) {
        map_value *v = st == BP_OK && k->out[i] ? map_put_u64(&s->memo, it->node.first + i, NULL) : NULL;
        if (v && !v->p)
            v->p = k->out[i];
        else
            tensor_unref(k->out[i]);
        if (!v && st == BP_OK)
            st = ctx_nomem(s->c);
    }
    return st;
}

/* What an item node gives: a 0-d tensor that stands for its number. */
static bp_status evaluate_item(slicer *s, const item *it)
{
    const bp_tensor *from = have(s, it->node.args[0].v.node);
    bp_tensor *t = tensor_contiguous_new(s->c, from->dtype, 0, NULL);
    op_call k = {.nout = 1, .out = &t};
    if (!t)
        return s->c->diag.code;
    dtype_store(t->dtype, tensor_ptr(t), dtype_load(from->dtype, tensor_ptr(from)));
    t->flags |= TENSOR_WRAPPED_NUMBER;
    return keep(s, it, &k);
}

static bp_status evaluate(slicer *s, const item *it)
{
    if (it->node.op->flags & OP_ITEM)
        return evaluate_item(s, it);
    bp_ctx *c = s->c;
    arena_mark mark = arena_get_mark(&c->scratch);
    op_call k = {.op = it->node.op, .nargs = it->node.nargs, .rng_offset = s->rng_base + it->node.rng_offset};
    k.args = args_with_tensors(&c->scratch, it->node.args, k.nargs, have, s);
    uint8_t grad = c->ambient.grad_enabled;
    uint64_t rng = c->rng_offset;
    c->ambient.grad_enabled = 0;
    c->rng_offset = k.rng_offset;
    bp_status st = k.args ? op_run_reference(c, &k) : ctx_nomem(c);
    c->rng_offset = rng;
    c->ambient.grad_enabled = grad;
    if (st == BP_OK)
        st = keep(s, it, &k);
    arena_reset(&c->scratch, mark);
    s->evaluated++;
    return st;
}

bp_tensor *slice_value(slicer *s, ref r)
{
    needs n = {.s = s};
    push_missing(&n, r);
    while (n.todo.len && !n.failed) {
        ref top = vec_last(&n.todo);
        const item *it = s->item_of(s->arg, top);
        n.missing = 0;
        if (!it)
            n.failed = true;
        else if (!have(s, top))
            item_each_ref(it, push_missing, &n);
        if (n.missing || n.failed)
            continue;
        n.todo.len--;
        n.failed = !have(s, top) && evaluate(s, it) != BP_OK;
    }
    vec_fini(&n.todo);
    if (n.failed && ctx_ok(s->c))
        ctx_fail(s->c, BP_INTERNAL, "the value %%%u of a captured function cannot be computed", r);
    return n.failed ? NULL : have(s, r);
}

void slice_fini(slicer *s)
{
    uint32_t i = 0;
    map_value *v;
    while (map_next(&s->memo, &i, NULL, &v))
        tensor_unref(v->p);
    map_fini(&s->memo);
}
