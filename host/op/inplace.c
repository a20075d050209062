/* In-place and out= rows: the functional row is run on the arguments, and its results are written where they belong.
 *
 * Checked before anything is written, as eager PyTorch does: the result's type can be cast, its shape is the written
 * tensor's, no element is written twice, no input overlaps what is written half way, no leaf that requires grad is
 * written. A functional row that is a view changes metadata, not data (squeeze_). */
#include "host/op/checks.h"
#include "host/op/run.h"
#include <string.h>

enum { WRITES_MAX = 8 };

/* Indexes of the written arguments, in order; at most WRITES_MAX. */
static uint32_t written(const op_row *op, uint32_t *at)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < op->schema->nargs && n < WRITES_MAX; i++)
        if (op->schema->args[i].ty.writes && (!op->schema->out_variant || op->schema->args[i].kwarg_only))
            at[n++] = i;
    return n;
}

/* Where the functional row's argument i stands in the written row: by name, the first one by place too (dropout's input
 * is dropout_'s self); -1: nowhere. */
static int32_t source_of(const schema *from, const schema *to, uint32_t i)
{
    int32_t j = schema_find(from, to->args[i].name);
    return j < 0 && i == 0 ? 0 : j;
}

static bp_status functional_args(bp_ctx *c, const op_row *op, const prepared *p, prepared *out)
{
    const schema *from = op->schema, *to = op->functional->schema;
    bp_value *args = arena_array(&c->scratch, to->nargs, sizeof *args);
    if (!args)
        return ctx_nomem(c);
    for (uint32_t i = 0; i < to->nargs; i++) {
        int32_t j = source_of(from, to, i);
        args[i] = j >= 0 ? p->args[j] : to->args[i].has_default ? to->args[i].default_value : value_none();
    }
    *out = *p;
    out->args = args;
    out->made = NULL;
    return BP_OK;
}

/* -- checks -------------------------------------------------------------------------------------------------------- */

/* By how they are written: what is not so is asked whether it overlaps. */
static bool same_elements(const bp_tensor *a, const bp_tensor *b)
{
    if (a->rank != b->rank || a->dtype != b->dtype || !dim_same(a->offset, b->offset))
        return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (!dim_same(a->sizes[d], b->sizes[d]) || !dim_same(a->strides[d], b->strides[d]))
            return false;
    return true;
}

static bp_status check_overlap(bp_ctx *c, const op_row *op, const prepared *p, uint32_t w)
{
    const bp_tensor *out = arg_tensor(p->args, w);
    const char *name = op->schema->args[w].name;
    if (!(op->flags & OP_OVERLAP_OK) && tensor_overlaps_itself(out)) {
        op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"%s\" is written, and several of its elements lie at one place",
                name);
        diag_hint(&c->diag, "clone() it before this operator");
        return c->diag.code;
    }
    if (!(op->functional->flags & OP_POINTWISE))
        return BP_OK;
    for (uint32_t i = 0; i < op->schema->nargs; i++) {
        const bp_tensor *in = arg_tensor(p->args, i);
        if (!in || i == w || in->store != out->store || same_elements(in, out) || !tensor_is_dense(in) ||
            !tensor_is_dense(out))
            continue;
        if (tensor_may_overlap(in, out)) {
            op_fail(c, op, BP_INVALID_ARGUMENT,
                    "argument \"%s\" shares some of its memory with \"%s\", which is written",
                    op->schema->args[i].name, name);
            diag_hint(&c->diag, "clone() one of them before this operator");
            return c->diag.code;
        }
    }
    return BP_OK;
}

static bp_status check_grad(bp_ctx *c, const op_row *op, const prepared *p, uint32_t w)
{
    const bp_tensor *out = arg_tensor(p->args, w);
    if (!grad_on(c))
        return BP_OK;
    if (op->schema->out_variant && p->any_grad)
        return op_fail(c, op, BP_INVALID_ARGUMENT,
                       "an out= operator cannot be differentiated, and one of its arguments "
                                                   "requires grad");
    bool leaf = (out->flags & TENSOR_REQUIRES_GRAD) && (out->flags & TENSOR_IS_LEAF);
    bool view = (out->flags & TENSOR_REQUIRES_GRAD) && (out->flags & TENSOR_VIEW_OF_LEAF);
    if ((leaf || view) && !(op->flags & OP_NO_GRAD_OUT)) {
        op_fail(c, op, BP_INVALID_ARGUMENT, "a %sleaf that requires grad is written in place (argument \"%s\")",
                view ? "view of a " : "", op->schema->args[w].name);
        diag_hint(&c->diag, "switch grad mode off around it: bp_set_grad_enabled(c, 0)");
        return c->diag.code;
    }
    return BP_OK;
}

static bool same_sizes(const bp_tensor *t, const tensor_meta *m)
{
    if (t->rank != m->rank)
        return false;
    for (uint32_t d = 0; d < m->rank; d++)
        if (!dim_eq(t->sizes[d], m->sizes[d]))
            return false;
    return true;
}

static bp_status check_result(bp_ctx *c, const op_row *op, const bp_tensor *out, const tensor_meta *m)
{
    if (!dtype_can_cast(m->dtype, out->dtype))
        return op_fail(c, op, BP_INVALID_ARGUMENT, "result type %s can't be cast to the desired output type %s",
                       dtype_get(m->dtype)->torch, dtype_get(out->dtype)->torch);
    if ((op->flags & OP_EXACT_OUT) && m->dtype != out->dtype)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"out\" must be %s, as the result is, and is %s",
                       dtype_get(m->dtype)->torch, dtype_get(out->dtype)->torch);
    char have[256], want[256];
    if (op->schema->out_variant || (out->rank == m->rank && sizes_must_match(m->rank, out->sizes, m->sizes)))
        return BP_OK;
    return op_fail(c, op, BP_INVALID_ARGUMENT, "output with shape %s doesn't match the broadcast shape %s",
                   sizes_text(have, sizeof have, out->rank, out->sizes),
                   sizes_text(want, sizeof want, m->rank, m->sizes));
}

/* -- the rule ------------------------------------------------------------------------------------------------------ */

static bp_status check_writes(bp_ctx *c, const op_row *op, const prepared *p, uint32_t n, const uint32_t *at)
{
    for (uint32_t i = 0; i < n; i++) {
        TRY(check_grad(c, op, p, at[i]));
        if (!(op->functional->flags & OP_VIEW))
            TRY(check_overlap(c, op, p, at[i]));
    }
    return BP_OK;
}

/* What row and functional row say of a call: `f` holds the functional results. */
typedef struct { prepared args; shape_call f; uint32_t nwrites, at[WRITES_MAX]; } plan;

static bp_status make_plan(bp_ctx *c, const op_row *op, const prepared *p, plan *q)
{
    q->nwrites = written(op, q->at);
    TRY(check_writes(c, op, p, q->nwrites, q->at));
    TRY(functional_args(c, op, p, &q->args));
    TRY(infer_prepared(c, op->functional, &q->args, &q->f));
    if (q->f.nout != q->nwrites)
        return ctx_fail(c, BP_INTERNAL, "%s: %u results of \"%s\" for %u written arguments", op->label, q->f.nout,
                        op->functional->target, q->nwrites);
    for (uint32_t i = 0; i < q->nwrites && !(op->functional->flags & OP_VIEW); i++)
        TRY(check_result(c, op, arg_tensor(p->args, q->at[i]), &q->f.out[i].meta));
    return BP_OK;
}

bp_status inplace_infer(bp_ctx *c, const op_row *op, const prepared *p, shape_call *s)
{
    plan q;
    TRY(make_plan(c, op, p, &q));
    for (uint32_t i = 0; i < q.nwrites; i++) {
        const bp_tensor *t = arg_tensor(p->args, q.at[i]);
        const tensor_meta *m = &q.f.out[i].meta;
        bool changes = (op->functional->flags & OP_VIEW) || !same_sizes(t, m);
        shape_out *o = changes ? shape_add_out(c, s, t->dtype, m->rank, m->sizes) : shape_add_same(c, s, q.at[i]);
        if (!o)
            return c->diag.code;
        if (changes) {
            memcpy(o->meta.strides, m->strides, m->rank * sizeof *m->strides);
            o->meta.offset = m->offset;
        }
        o->meta.device = tensor_device(t);
        o->alias_of = (int32_t)q.at[i];
        o->is_argument = true;
    }
    return BP_OK;
}

/* -- the run ------------------------------------------------------------------------------------------------------- */

static bp_status write_result(bp_ctx *c, const op_row *op, bp_tensor *out, const tensor_meta *m, const bp_tensor *value)
{
    if (op->functional->flags & OP_VIEW) {
        TRY(tensor_set_layout(c, out, m));
    } else {
        if (!same_sizes(out, m))
            TRY(tensor_set_layout(c, out, m));
        if (value && value != out)
            TRY(tensor_copy(c, out, value));
    }
    tensor_wrote(out);
    return BP_OK;
}

static void mark_written(const bp_ctx *c, const op_row *op, const prepared *p, bp_tensor *out)
{
    if ((op->flags & OP_NO_GRAD_OUT) && (op->functional->flags & OP_VIEW)) { /* detach_ */
        out->flags &= (uint8_t)~TENSOR_REQUIRES_GRAD;
        out->flags |= TENSOR_IS_LEAF;
        return;
    }
    bool differentiable = dtype_is_float(out->dtype) || dtype_is_complex(out->dtype);
    if (grad_on(c) && p->any_grad && differentiable && !(op->flags & OP_NO_GRAD_OUT)) {
        out->flags |= TENSOR_REQUIRES_GRAD;
        out->flags &= (uint8_t)~TENSOR_IS_LEAF;
    }
}

static bp_status run_functional(bp_ctx *c, op_call *k, const plan *q, op_call *f)
{
    uint8_t grad = c->ambient.grad_enabled;
    *f = (op_call){.op = k->op->functional, .args = q->args.args, .rng_offset = k->rng_offset};
    c->ambient.grad_enabled = 0; /* what is written gets its marks from this row */
    bp_status st = op_run_reference(c, f);
    c->ambient.grad_enabled = grad;
    return st;
}

bp_status inplace_run(bp_ctx *c, op_call *k, const prepared *p, bool fake)
{
    const op_row *op = k->op;
    plan q;
    TRY(make_plan(c, op, p, &q));
    TRY(results_reserve(c, k, q.nwrites));
    op_call f = {0};
    if (!fake && !(op->functional->flags & OP_VIEW))
        TRY(run_functional(c, k, &q, &f));
    bp_status st = BP_OK;
    for (uint32_t i = 0; i < q.nwrites && st == BP_OK; i++) {
        bp_tensor *out = arg_tensor(p->args, q.at[i]);
        if (fake && !tensor_is_fake(out))
            st = op_fail(c, op, BP_FAILED_PRECONDITION,
                         "argument \"%s\" is real, and a fake result would be written to it",
                         op->schema->args[q.at[i]].name);
        if (st == BP_OK)
            st = write_result(c, op, out, &q.f.out[i].meta, f.nout ? f.out[i] : NULL);
        if (st != BP_OK)
            break;
        mark_written(c, op, p, out);
        k->out[i] = tensor_ref(out);
    }
    for (uint32_t i = 0; i < f.nout; i++)
        tensor_unref(f.out[i]);
    return st;
}
