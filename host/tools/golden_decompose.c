/* Operator cases by their decompositions: a mode that answers each call by its row's parts instead of its kernel.
 *
 * Deep, parts are decomposed as well, down to core ATen and what is KEPT; another operator is an error. What comes out
 * must also be laid out as the shape rule says, since whoever recorded the call has promised that. */
#include "host/tools/golden_case.h"
#include <string.h>

static bp_status check_end(bp_ctx *c, const op_row *op)
{
    const decomp_row *row = decomp_of(op);
    if ((op->flags & OP_CORE) || op->functional || (row && row->kept))
        return BP_OK;
    return op_fail(c, op, BP_INTERNAL, "it is neither core ATen nor KEPT, and has no decomposition");
}

static bool laid_out_as(const bp_tensor *t, const tensor_meta *m)
{
    bool same = t->dtype == m->dtype && t->rank == m->rank, empty = false;
    for (uint32_t d = 0; same && d < m->rank; d++) {
        same = dim_eq(t->sizes[d], m->sizes[d]);
        empty |= dim_is(m->sizes[d], 0);
    }
    for (uint32_t d = 0; same && !empty && d < m->rank; d++)
        same = dim_is(m->sizes[d], 1) || dim_eq(t->strides[d], m->strides[d]);
    return same;
}

/* Results against the shape rule. */
static bp_status check_layout(bp_ctx *c, const op_call *k)
{
    shape_call s;
    TRY(op_infer(c, k->op, k->args, &s));
    if (s.nout != k->nout)
        return op_fail(c, k->op, BP_INTERNAL, "its decomposition gives %u results, not %u", k->nout, s.nout);
    for (uint32_t i = 0; i < s.nout; i++) {
        const shape_out *o = &s.out[i];
        if (o->unknown || o->absent || !k->out[i] || (k->op->flags & OP_DYNAMIC_OUT))
            continue;
        if (!laid_out_as(k->out[i], &o->meta)) {
            bp_tensor want = {.dtype = (uint8_t)o->meta.dtype, .rank = (uint8_t)o->meta.rank, .sizes = o->meta.sizes,
                              .strides = o->meta.strides};
            char a[160], b[160];
            return op_fail(c, k->op, BP_INTERNAL,
                           "result %u of its decomposition is %s, strided %lld, not %s, strided %lld", i,
                               tensor_describe(k->out[i], a, sizeof a),
                           (long long)(k->out[i]->rank ? k->out[i]->strides[0].value : 0),
                           tensor_describe(&want, b, sizeof b),
                           (long long)(o->meta.rank ? o->meta.strides[0].value : 0));
        }
    }
    return BP_OK;
}

static bp_status answer(bp_ctx *c, dispatch_mode *mode, void *call)
{
    golden_decomposer *d = (golden_decomposer *)mode;
    op_call *k = call;
    const decomp_row *row = k->op->functional || (k->op->flags & OP_CORE) ? NULL : decomp_of(k->op);
    if (!row || row->kept) {
        if (d->deep)
            TRY(check_end(c, k->op));
        return op_dispatch_below(c, mode, k);
    }
    d->decomposed++;
    dispatch_mode *below = c->modes;
    c->modes = d->deep ? mode : below;
    bp_status st = decomp_call(c, row, k);
    c->modes = below;
    if (st == BP_OK)
        st = check_layout(c, k);
    return st;
}

void golden_decompose_begin(bp_ctx *c, golden_decomposer *d, bool deep)
{
    *d = (golden_decomposer){.mode = {.call = answer, .name = "decompose"}, .deep = deep};
    mode_push(c, &d->mode);
}

void golden_decompose_end(bp_ctx *c, golden_decomposer *d)
{
    mode_pop(c, &d->mode);
}
