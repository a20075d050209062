/* Slices. The walk has its own stack, because chains are as long as programs. A slice that is estimated to be heavy is
 * offered to the callable's own chain first (C2.2). */
#include "host/capture/slice.h"
#include <math.h>
#include <stdlib.h>
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

bp_tensor *slice_have(slicer *s, ref r)
{
    return have(s, r);
}

typedef VEC(ref) ref_stack;
typedef struct { slicer *s; ref_stack pending; uint32_t missing; bool failed; } needs;

static void push_missing(void *arg, ref r)
{
    needs *n = arg;
    if (have(n->s, r))
        return;
    n->missing++;
    if (!ref_is_node(r) || !vec_push(&n->pending, r))
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

/* -- symbols ------------------------------------------------------------------------------------------------------- */

typedef struct { slicer *s; bool ok; } loading;

/* Symbols that data tell are read where the path has them. */
static void load(void *arg, uint32_t k)
{
    loading *l = arg;
    slicer *s = l->s;
    const path_symbol *p = s->symbol_of(s->arg, k);
    const bp_tensor *t = p ? have(s, p->value) : NULL;
    l->ok &= bind_reserve_symbols(s->vals, k + 1) && (!p || t);
    if (l->ok && p)
        s->vals->syms[k] = p->kind == SYM_VALUE ? number_value(t).v.dim.value : t->sizes[p->dim].value;
}

bool slice_dim(slicer *s, bp_dim d, int64_t *out)
{
    loading l = {s, true};
    *out = d.value;
    if (!d.sym)
        return true;
    sym_each_symbol(s->env, d, load, &l);
    return l.ok && sym_eval(s->env, d, s->vals->syms, out);
}

/* Numbers for dims, in a copy of arguments that is the slicer's own. */
static bool settle_args(slicer *s, bp_value *args, uint32_t n)
{
    int64_t v;
    bool ok = true;
    for (uint32_t i = 0; ok && i < n; i++) {
        if (args[i].kind == BP_VALUE_LIST)
            ok = settle_args(s, (bp_value *)(uintptr_t)args[i].v.items, args[i].count);
        else if (args[i].kind == BP_VALUE_INT && args[i].v.dim.sym && (ok = slice_dim(s, args[i].v.dim, &v)))
            args[i].v.dim = dim_const(v);
    }
    return ok;
}

static bp_value *args_of(slicer *s, const item *it)
{
    bp_value *args = args_with_tensors(&s->c->scratch, it->node.args, it->node.nargs, have, s);
    if (!args)
        ctx_nomem(s->c);
    else if (it->node.symbolic && !settle_args(s, args, it->node.nargs))
        return ctx_fail(s->c, BP_INVALID_ARGUMENT, "%s: a size overflows", it->node.op->target), NULL;
    return args;
}

static bp_status evaluate(slicer *s, const item *it)
{
    if (it->node.op->flags & OP_ITEM)
        return evaluate_item(s, it);
    bp_ctx *c = s->c;
    arena_mark mark = arena_get_mark(&c->scratch);
    int64_t at = 0;
    op_call k = {.op = it->node.op, .nargs = it->node.nargs};
    k.args = slice_dim(s, it->node.rng_offset, &at) ? args_of(s, it) : NULL;
    k.rng_offset = s->rng_base + (uint64_t)at;
    uint8_t grad = c->ambient.grad_enabled;
    uint64_t rng = c->rng_offset;
    dispatch_mode *modes = c->modes;
    bool tapes = s->tapes && it->node.requires;
    c->ambient.grad_enabled = tapes;
    c->rng_offset = k.rng_offset;
    c->modes = tapes ? NULL : modes;
    bp_status st = BP_OK;
    if (!k.args)
        st = ctx_ok(c) ? ctx_nomem(c) : c->diag.code;
    else
        st = tapes ? op_dispatch(c, &k) : op_run_reference(c, &k);
    c->modes = modes;
    c->rng_offset = rng;
    c->ambient.grad_enabled = grad;
    if (st == BP_OK)
        st = keep(s, it, &k);
    arena_reset(&c->scratch, mark);
    s->evaluated++;
    return st;
}

/* -- heavy slices -------------------------------------------------------------------------------------------------- */

typedef struct { VEC(const item *) items; VEC(ref) outs; double cost; } plan;

static double count(const tensor_meta *m)
{
    double n = 1;
    for (uint32_t d = 0; d < m->rank; d++)
        n *= (double)m->sizes[d].value;
    return n;
}

typedef struct { slicer *s; double numel[2]; uint32_t n; } operands;

static void take_operand(void *arg, ref r)
{
    operands *o = arg;
    if (o->n == 2)
        return;
    bp_tensor *t = slice_have(o->s, r);
    const item *it = t ? NULL : o->s->item_of(o->s->arg, r);
    o->numel[o->n++] = t ? (double)tensor_nelem(t) : it ? count(&it->node.metas[r - it->node.first]) : 0;
}

/* Operations, roughly. A product of two takes, for each element of its result, twice the length of what is summed:
 * that is sqrt(a b / result) for matrices, and a little more than this says for convolutions. */
static double cost_of(slicer *s, const item *it)
{
    double out = it->node.nresults ? count(&it->node.metas[0]) : 0;
    operands o = {.s = s};
    if (!(it->node.op->flags & OP_MATMUL) || out < 1)
        return out;
    item_each_ref(it, take_operand, &o);
    return 2 * out * sqrt(o.numel[0] * o.numel[1] / out);
}

static int by_first(const void *a, const void *b)
{
    ref x = (*(const item *const *)a)->node.first, y = (*(const item *const *)b)->node.first;
    return x < y ? -1 : x > y;
}

/* What r needs. False: it holds what only reference kernels compute here, or memory is used up. */
static bool make_plan(slicer *s, ref r, plan *p)
{
    uint32_t never = OP_RANDOM | OP_ITEM | OP_EFFECT | OP_DYNAMIC_OUT;
    map seen = {0};
    needs n = {.s = s};
    push_missing(&n, r);
    while (n.pending.len && !n.failed) {
        const item *it = s->item_of(s->arg, vec_pop(&n.pending));
        map_value *v = it ? map_put_u64(&seen, it->node.first, NULL) : NULL;
        n.failed |= !v || it->node.op->flags & never || it->node.symbolic;
        if (n.failed || v->u)
            continue;
        v->u = 1;
        p->cost += cost_of(s, it);
        n.failed |= !vec_push(&p->items, it);
        item_each_ref(it, push_missing, &n);
    }
    map_fini(&seen);
    vec_fini(&n.pending);
    if (!n.failed && p->items.len)
        qsort(p->items.at, p->items.len, sizeof *p->items.at, by_first);
    return !n.failed;
}

/* Results of heavy items are kept with r, so that a later slice does not compute them again. */
static bool choose_outs(plan *p, ref r)
{
    bool ok = vec_push(&p->outs, r);
    for (uint32_t i = 0; i < p->items.len; i++) {
        const item *it = p->items.at[i];
        if (it->node.op->flags & OP_MATMUL && it->node.first != r)
            ok = ok && vec_push(&p->outs, it->node.first);
    }
    return ok;
}

static bp_status keep_values(slicer *s, const plan *p, bp_tensor **values)
{
    bp_status st = BP_OK;
    for (uint32_t i = 0; i < p->outs.len; i++) {
        map_value *v = st == BP_OK ? map_put_u64(&s->memo, p->outs.at[i], NULL) : NULL;
        if (v && !v->p)
            v->p = values[i];
        else
            tensor_unref(values[i]);
        if (!v && st == BP_OK)
            st = ctx_nomem(s->c);
    }
    return st;
}

static void compute_if_heavy(slicer *s, ref r)
{
    plan p = {.cost = 0};
    if (make_plan(s, r, &p) && p.cost >= SLICE_HEAVY && choose_outs(&p, r)) {
        slice_plan given = {p.items.at, p.items.len, p.outs.at, p.outs.len};
        bp_tensor **values = calloc(p.outs.len, sizeof *values);
        if (values && s->compute(s->compute_arg, s, &given, values))
            keep_values(s, &p, values);
        free(values);
    }
    vec_fini(&p.items);
    vec_fini(&p.outs);
}

/* -- values -------------------------------------------------------------------------------------------------------- */

bp_tensor *slice_value(slicer *s, ref r)
{
    needs n = {.s = s};
    if (s->compute && !have(s, r) && ctx_ok(s->c))
        compute_if_heavy(s, r);
    if (!ctx_ok(s->c))
        return NULL;
    push_missing(&n, r);
    while (n.pending.len && !n.failed) {
        ref top = vec_last(&n.pending);
        const item *it = s->item_of(s->arg, top);
        n.missing = 0;
        if (!it)
            n.failed = true;
        else if (!have(s, top))
            item_each_ref(it, push_missing, &n);
        if (n.missing || n.failed)
            continue;
        n.pending.len--;
        n.failed = !have(s, top) && evaluate(s, it) != BP_OK;
    }
    vec_fini(&n.pending);
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
