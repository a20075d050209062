/* The bottom of a call: arguments made ready, the shape rule, outputs, the kernel.
 *
 * On failure no result is left behind. Results carry requires_grad as eager PyTorch gives it. */
#include "host/op/library.h"
#include <string.h>

bp_status results_reserve(bp_ctx *c, op_call *k, uint32_t n)
{
    if (!k->out || k->nout < n)
        k->out = arena_array(&c->scratch, n, sizeof *k->out);
    k->nout = 0;
    if (!k->out)
        return ctx_nomem(c);
    if (n)
        memset(k->out, 0, n * sizeof *k->out);
    k->nout = n;
    return BP_OK;
}

void results_drop(op_call *k)
{
    for (uint32_t i = 0; i < k->nout; i++) {
        tensor_unref(k->out[i]);
        k->out[i] = NULL;
    }
    k->nout = 0;
}

bp_status infer_prepared(bp_ctx *c, const op_row *op, const prepared *p, shape_call *s)
{
    *s = (shape_call){.op = op, .args = p->args, .nargs = op->schema->nargs, .device = p->device};
    TRY(op->functional ? inplace_infer(c, op, p, s) : op->shape(c, s));
    return c->diag.code;
}

bp_status op_infer(bp_ctx *c, const op_row *op, const bp_value *args, shape_call *out)
{
    prepared p;
    TRY(prepare(c, op, args, &p));
    bp_status st = infer_prepared(c, op, &p, out);
    out->args = args;
    prepared_release(&p);
    return st;
}

/* Written alike; nothing is asked. */
static bool meta_is(const bp_tensor *t, const tensor_meta *m)
{
    bool same = t->rank == m->rank && dim_same(t->offset, m->offset);
    for (uint32_t d = 0; same && d < t->rank; d++)
        same = dim_same(t->sizes[d], m->sizes[d]) && dim_same(t->strides[d], m->strides[d]);
    return same;
}

/* -- outputs ------------------------------------------------------------------------------------------------------- */

/* A result that is an argument and has another layout changes that argument (resize_). */
static bp_tensor *make_one(bp_ctx *c, const prepared *p, const shape_out *o, bool fake)
{
    if (o->alias_of < 0)
        return fake ? tensor_new_fake(c, &o->meta) : tensor_new(c, &o->meta);
    bp_tensor *base = arg_list_tensor(p->args, (uint32_t)o->alias_of, o->alias_item);
    if (!o->is_argument)
        return tensor_view(c, base, &o->meta);
    return meta_is(base, &o->meta) || tensor_set_layout(c, base, &o->meta) == BP_OK ? tensor_ref(base) : NULL;
}

static bp_status make_outputs(bp_ctx *c, op_call *k, const prepared *p, const shape_call *s, bool fake)
{
    TRY(results_reserve(c, k, s->nout));
    for (uint32_t i = 0; i < s->nout; i++) {
        const shape_out *o = &s->out[i];
        if (o->absent || o->unknown || (!fake && (k->op->flags & OP_DYNAMIC_OUT) && o->alias_of < 0))
            continue;
        k->out[i] = make_one(c, p, o, fake);
        if (!k->out[i])
            return ctx_ok(c) ? ctx_nomem(c) : c->diag.code;
    }
    return BP_OK;
}

/* Whether t is a leaf that requires grad, or a view of one. */
static bool shows_leaf(const bp_tensor *t)
{
    const uint8_t both = TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF;
    return (t->flags & both) == both || (t->flags & TENSOR_VIEW_OF_LEAF);
}

/* A result that is an argument keeps its own marks. */
static void mark_grad(const bp_ctx *c, op_call *k, const prepared *p, const shape_call *s)
{
    bool record = grad_on(c) && p->any_grad && !(k->op->flags & OP_NO_GRAD_OUT);
    for (uint32_t i = 0; i < k->nout; i++) {
        bp_tensor *t = k->out[i];
        if (!t || s->out[i].is_argument)
            continue;
        bool differentiable = (dtype_is_float(t->dtype) || dtype_is_complex(t->dtype)) &&
                              !(i && (k->op->flags & OP_GRAD_FIRST)) && !(i > 1 && (k->op->flags & OP_GRAD_PAIR));
        if (k->op->own)
            differentiable &= custom_takes_grad(k->op, p->args, i, k->nout);
        bool on = record && differentiable;
        t->flags &= (uint8_t)~(TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF);
        t->flags |= on ? TENSOR_REQUIRES_GRAD : TENSOR_IS_LEAF;
        int32_t base = s->out[i].alias_of;
        if (on && base >= 0 && shows_leaf(arg_list_tensor(p->args, (uint32_t)base, s->out[i].alias_item)))
            t->flags |= TENSOR_VIEW_OF_LEAF;
    }
}

/* Arguments that a row's own kernel writes: running statistics, which move in training alone. */
static void bump_written(const op_row *op, const bp_value *args)
{
    if ((op->flags & OP_MOVES_STATS) && !arg_bool(args, 5))
        return;
    for (uint32_t i = 0; i < op->schema->nargs; i++) {
        bp_tensor *t = arg_tensor(args, i);
        if (op->schema->args[i].ty.writes && t && !op->own)
            tensor_wrote(t);
    }
    if (op->own)
        custom_wrote(op, args);
}

static bool all_alias(const shape_call *s)
{
    for (uint32_t i = 0; i < s->nout; i++)
        if (s->out[i].alias_of < 0)
            return false;
    return s->nout > 0;
}

/* -- running ------------------------------------------------------------------------------------------------------- */

static bp_status refuse_abroad(bp_ctx *c, const op_row *op, const prepared *p)
{
    static const char *const kinds[] = {[BP_CPU] = "cpu", [BP_CUDA] = "cuda", [BP_FAKE_DEVICE] = "fake"};
    uint8_t kind = p->abroad->device_kind;
    return op_fail(c, op, BP_UNIMPLEMENTED, "argument \"%s\" is on %s:%u, and operators run on the CPU only",
                   op->schema->args[p->abroad_arg].name,
                   kind < sizeof kinds / sizeof *kinds && kinds[kind] ? kinds[kind] : "an unknown device",
                   p->abroad->device_index);
}

static bp_status run_kernel(bp_ctx *c, op_call *k, const prepared *p)
{
    const bp_value *args = k->args;
    k->args = p->args;
    bp_status st = k->op->kernel(c, k);
    k->args = args;
    return st == BP_OK ? c->diag.code : st;
}

static bp_status run_real(bp_ctx *c, op_call *k, const prepared *p)
{
    const op_row *op = k->op;
    if (op->own)
        return custom_run(c, k, p);
    if (p->abroad)
        return refuse_abroad(c, op, p);
    if (op->functional)
        return inplace_run(c, k, p, false);
    shape_call s;
    TRY(infer_prepared(c, op, p, &s));
    TRY(make_outputs(c, k, p, &s, false));
    if (op->kernel && !all_alias(&s)) {
        TRY(run_kernel(c, k, p));
        bump_written(op, p->args);
    }
    mark_grad(c, k, p, &s);
    return BP_OK;
}

static bp_status run_fake(bp_ctx *c, op_call *k, const prepared *p)
{
    const op_row *op = k->op;
    if (op->functional)
        return inplace_run(c, k, p, true);
    if (op->flags & OP_ITEM)
        return op_fail(c, op, BP_FAILED_PRECONDITION, "the value of a fake tensor, which has no data");
    shape_call s;
    TRY(infer_prepared(c, op, p, &s));
    for (uint32_t i = 0; i < s.nout; i++)
        if (s.out[i].unknown)
            return op_fail(c, op, BP_FAILED_PRECONDITION,
                           "the result's size depends on the data of a fake tensor, which has none");
    TRY(make_outputs(c, k, p, &s, true));
    if (s.nout == 0 && !(op->flags & (OP_EFFECT | OP_CUSTOM)))
        return run_kernel(c, k, p); /* it reads metadata alone */
    bump_written(op, p->args);
    mark_grad(c, k, p, &s);
    return BP_OK;
}

static bp_status run(bp_ctx *c, op_call *k, bool fake)
{
    if (!ctx_ok(c))
        return c->diag.code;
    k->returns_list = k->op->schema->nreturns == 1 && k->op->schema->returns[0].list;
    k->nargs = k->op->schema->nargs;
    prepared p;
    bp_status st = prepare(c, k->op, k->args, &p);
    if (st != BP_OK) {
        k->nout = 0;
        return st;
    }
    st = fake || p.any_fake ? run_fake(c, k, &p) : run_real(c, k, &p);
    prepared_release(&p);
    if (st != BP_OK)
        results_drop(k);
    return st;
}

bp_status op_run_reference(bp_ctx *c, op_call *k)
{
    return run(c, k, false);
}

bp_status op_run_fake(bp_ctx *c, op_call *k)
{
    return run(c, k, true);
}

/* -- results that two lists of arguments share --------------------------------------------------------------------- */

static bool same_out(const shape_out *a, const shape_out *b)
{
    if (a->absent != b->absent || a->unknown != b->unknown || a->alias_of != b->alias_of)
        return false;
    if (a->absent || a->unknown)
        return true;
    if (a->meta.dtype != b->meta.dtype || a->meta.rank != b->meta.rank || !dim_same(a->meta.offset, b->meta.offset))
        return false;
    for (uint32_t d = 0; d < a->meta.rank; d++)
        if (!dim_same(a->meta.sizes[d], b->meta.sizes[d]) || !dim_same(a->meta.strides[d], b->meta.strides[d]))
            return false;
    return true;
}

bool op_same_results(bp_ctx *c, const op_row *op, const bp_value *a, const bp_value *b)
{
    diag before = c->diag;
    shape_call x, y;
    diag_clear(&c->diag);
    bool same = op_infer(c, op, a, &x) == BP_OK && op_infer(c, op, b, &y) == BP_OK && x.nout == y.nout;
    for (uint32_t i = 0; same && i < x.nout; i++)
        same = same_out(&x.out[i], &y.out[i]);
    c->diag = before;
    return same;
}

/* -- kernels made of other operators ------------------------------------------------------------------------------- */

bp_tensor *op_call1(bp_ctx *c, uint32_t row, uint32_t npos, const bp_value *pos)
{
    const op_row *op = op_at(row);
    bp_tensor *out = NULL;
    bp_value *args;
    if (!op) {
        ctx_nomem(c);
        return NULL;
    }
    const uint32_t at_most = op->schema->nargs - op->schema->nkwarg_only;
    const uint32_t n = npos < at_most ? npos : at_most, more = npos - n;
    const char *names[8];
    for (uint32_t i = 0; i < more && i < 8; i++)
        names[i] = op->schema->args[n + i].name;
    if (more > 8 || op_bind(c, op, pos, n, names, pos + n, more, &args) != BP_OK)
        return NULL;
    op_call k = {.op = op, .args = args, .out = &out, .nout = 1};
    return op_run_reference(c, &k) == BP_OK && k.nout == 1 ? k.out[0] : NULL;
}

static bool laid_out_alike(const bp_tensor *a, const bp_tensor *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (!dim_eq(a->sizes[d], b->sizes[d]) || (!dim_is(a->sizes[d], 1) && !dim_eq(a->strides[d], b->strides[d])))
            return false;
    return true;
}

bp_status op_deliver(bp_ctx *c, op_call *k, uint32_t i, bp_tensor *t)
{
    if (!t)
        return ctx_ok(c) ? ctx_fail(c, BP_INTERNAL, "%s: its composition gave nothing", k->op->label) : c->diag.code;
    bp_tensor *out = k->out[i];
    bool fresh = atomic_load(&t->refs) == 1 && atomic_load(&t->store->refs) == 1 && dim_is(t->offset, 0);
    if (fresh && (!out || laid_out_alike(out, t))) {
        tensor_unref(out);
        k->out[i] = t;
        return BP_OK;
    }
    bp_status st = out ? tensor_copy(c, out, t) : ctx_fail(c, BP_INTERNAL, "%s: no output to copy to", k->op->label);
    tensor_unref(t);
    return st;
}
