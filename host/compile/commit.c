/* The epilogue of a call: outputs are made, written inputs get their values, the generator moves.
 *
 * Everything that can fail comes first: outputs in memory of their own, sources that a write would change under us
 * copied aside. Then the writes, in order of inputs; nothing behind them can fail (C1.1). */
#include "host/capture/tree.h"
#include "host/compile/aot.h"
#include "host/compile/callable.h"
#include "host/grad/share.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    bp_tensor *value, *to;
    tape_write history;    /* of a write that autograd sees */
} write_job;
typedef struct {
    call *k;
    const item *end;
    bp_tensor **outs;      /* a reference each, but for equal ones, and for what is borrowed */
    bp_tensor **bases;     /* by output: the storage's whole, at the first output of that storage; a reference, unless
                              it is that output itself */
    write_job *jobs;
    bool is_last;          /* the call ends here: values may become outputs, since nothing reads them behind it */
} commit;

/* -- sources and targets of writes --------------------------------------------------------------------------------- */

static bool share_memory(const bp_tensor *a, const bp_tensor *b)
{
    const char *x = tensor_ptr(a), *y = tensor_ptr(b);
    return x && y && x < y + tensor_span_bytes(b) && y < x + tensor_span_bytes(a);
}

static bp_tensor *copy_of(bp_ctx *c, const bp_tensor *t, const tensor_meta *like)
{
    tensor_meta m;
    tensor_get_meta(t, &m);
    bp_dim strides[TENSOR_MAX_RANK];
    if (like) {
        m = *like;
    } else {
        layout_contiguous(c, m.rank, m.sizes, strides);
        m.strides = strides;
    }
    m.offset = dim_const(0);
    bp_tensor *to = tensor_new(c, &m);
    if (to && tensor_copy(c, to, t) != BP_OK) {
        tensor_unref(to);
        return NULL;
    }
    return to;
}

/* The history of an input that is written: of the value, which no write has touched. */
static bp_status prepare_history(commit *m, uint32_t i)
{
    const write_spec *w = &m->end->end.writes[i];
    write_job *j = &m->jobs[i];
    if (!w->requires_grad || !(j->value->flags & TENSOR_REQUIRES_GRAD))
        return BP_OK;
    return tape_write_begin(m->k->c, bind_input(&m->k->vals, w->source), j->value, &j->history);
}

static bp_status find_values(commit *m)
{
    call *k = m->k;
    for (uint32_t i = 0; i < m->end->end.nwrites; i++) {
        const write_spec *w = &m->end->end.writes[i];
        m->jobs[i].to = bind_get(&k->vals, (w->whole ? REF_BASE : REF_INPUT) | w->source);
        bp_tensor *v = m->jobs[i].to ? call_value(k, w->value) : NULL;
        if (!v)
            return ctx_ok(k->c) ? ctx_fail(k->c, BP_INTERNAL, "a value to be written is missing") : k->c->diag.code;
        m->jobs[i].value = tensor_ref(v);
        TRY(prepare_history(m, i));
    }
    return BP_OK;
}

/* A compiled segment is one node: its backward reads all that it saved, also of what eager execution would not come to.
 * So what was saved before the writes is as it was. */
static bp_status keep_saved(commit *m)
{
    const bindings *b = &m->k->vals;
    for (uint32_t i = 0; i < b->nvalues; i++)
        for (uint32_t j = 0; b->values[i].t && b->values[i].t->grad && j < m->end->end.nwrites; j++)
            TRY(aot_keep_saved(m->k->c, b->values[i].t, bind_input(b, m->end->end.writes[j].source)));
    return BP_OK;
}

/* Every source is read before the first write: one that lies in memory to be written is copied aside. */
static bp_status prepare_writes(commit *m)
{
    call *k = m->k;
    TRY(find_values(m));
    TRY(keep_saved(m));
    for (uint32_t i = 0; i < m->end->end.nwrites; i++)
        for (uint32_t j = 0; j < m->end->end.nwrites; j++)
            if (share_memory(m->jobs[i].value, m->jobs[j].to)) {
                bp_tensor *v = m->jobs[i].value;
                m->jobs[i].value = copy_of(k->c, v, NULL);
                tensor_unref(v);
                if (!m->jobs[i].value)
                    return k->c->diag.code;
                break;
            }
    return BP_OK;
}

/* Whether an input is written that this call's caller gave as a view which eager must write. */
static bool writes_view(const call *k, const item *end)
{
    for (uint32_t i = 0; i < end->end.nwrites; i++)
        if (end->end.writes[i].requires_grad && !bind_may_write(&k->vals, end->end.writes[i].source))
            return true;
    return false;
}

/* -- outputs ------------------------------------------------------------------------------------------------------- */

/* Whether a value can be an output as it is: it was made in this call, nobody else holds its memory, and it is laid out
 * as eager lays it out, by constants. Inputs are borrowed: their counts say nothing. */
static inline bool fits(ref r, const bp_tensor *v, const tensor_meta *base)
{
    return ref_is_node(r) && atomic_load(&v->refs) == 1 && atomic_load(&v->store->refs) == 1 &&
           tensor_has_meta(v, base);
}

static bool is_constant(const call *k, const storage *s)
{
    for (const tree_node *n = k->node; n; n = n->parent) {
        const segment_use *u = atomic_load(&n->use);
        const bp_graph_module *gm = u && u->seg && u->seg->program ? program_graph(u->seg->program) : NULL;
        str key;
        map_value *v;
        for (uint32_t i = 0; gm && map_next(&gm->constants, &i, &key, &v);)
            if (((const bp_tensor *)v->p)->store == s)
                return true;
    }
    return false;
}

/* Whether a value can be an output as it is although somebody else holds its memory: under grad mode that is the tape,
 * which knows when it is written. No input, constant or output of another storage may. */
static bool fits_beside_tape(const commit *m, const out_spec *o, const bp_tensor *v)
{
    call *k = m->k;
    if (!k->c->ambient.grad_enabled || !ref_is_node(o->value) || !tensor_has_meta(v, &o->base))
        return false;
    for (uint32_t i = 0; i < k->vals.ninputs; i++) {
        const bp_tensor *in = bind_input(&k->vals, i);
        if (in && in->store == v->store)
            return false;
    }
    for (uint32_t i = 0; i < m->end->end.nouts; i++) {
        const out_spec *p = &m->end->end.outs[i];
        bool apart = p->handle && p->source < 0 && p->storage != o->storage;
        const bind_value *other = apart ? bind_find(&k->vals, p->value) : NULL;
        if (other && other->t->store == v->store)
            return false;
    }
    return !is_constant(k, v->store);
}

static bp_tensor *copy_with_history(commit *m, const tensor_meta *at, bp_tensor *v)
{
    bp_tensor *t = copy_of(m->k->c, v, at);
    if (!t || !(v->flags & TENSOR_REQUIRES_GRAD) || tape_share_copy(m->k->c, t, v) == BP_OK)
        return t;
    tensor_unref(t);
    return NULL;
}

/* A value that fits and that no output has yet; else a copy. */
static bp_tensor *take_or_copy(commit *m, const out_spec *o, bp_tensor *v)
{
    bp_tensor *t = NULL;
    bool whole = meta_is_constant(&o->base) && (fits(o->value, v, &o->base) || fits_beside_tape(m, o, v));
    if (whole)
        t = m->is_last ? bind_take(&m->k->vals, o->value) : tensor_ref(v);
    return t ? t : copy_with_history(m, &o->base, v);
}

/* The whole of output i's storage: shared with an earlier output only if their fakes share it (C1.3). */
static bp_tensor *base_of(commit *m, uint32_t i)
{
    const out_spec *o = &m->end->end.outs[i];
    for (uint32_t j = 0; j < i; j++) {
        const out_spec *p = &m->end->end.outs[j];
        if (p->handle && p->source < 0 && p->storage == o->storage)
            return m->bases[j];
    }
    bp_tensor *v = call_value(m->k, o->value);
    if (!v)
        return NULL;
    return m->bases[i] = take_or_copy(m, o, v);
}

static bool is_whole(const out_spec *o)
{
    return meta_eq(&o->meta, &o->base) && dim_same(o->meta.offset, o->base.offset);
}

/* A view of an input, or of an output's storage. Where a write of this commit gives its history, that is found when the
 * view is next used. */
static bp_tensor *view_with_history(commit *m, const out_spec *o, bp_tensor *of, const tensor_meta *at)
{
    bp_tensor *t = tensor_view(m->k->c, of, at);
    bool now = o->requires_grad && of->flags & TENSOR_REQUIRES_GRAD;
    if (!t || tape_share_view(m->k->c, t, of, o->view, now) == BP_OK)
        return t;
    tensor_unref(t);
    return NULL;
}

static bp_tensor *make_view(commit *m, const out_spec *o)
{
    tensor_meta at = o->meta;
    bp_tensor *in = bind_input(&m->k->vals, (uint32_t)o->source);
    at.offset = dim_add(m->k->c, in->offset, o->meta.offset);
    return view_with_history(m, o, in, &at);
}

static void mark(bp_tensor *t, bool requires_grad)
{
    t->flags = (uint8_t)((t->flags & ~(TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF)) |
                         (requires_grad ? TENSOR_REQUIRES_GRAD : TENSOR_IS_LEAF));
}

/* An input is the caller's own tensor; behind an opaque step it may be the call's. */
static bool is_borrowed(const commit *m, uint32_t i)
{
    return m->end->end.outs[i].is_source && !m->k->steps.len;
}

/* What a handle was when it was given to an opaque step: it is that object from then on. */
static bp_tensor *known_object(const call *k, uint32_t handle)
{
    for (uint32_t i = 0; i < k->steps.len; i++)
        for (uint32_t j = 0; j < k->steps.at[i]->nobjects; j++)
            if (k->steps.at[i]->objects[j].handle == handle)
                return k->steps.at[i]->objects[j].t;
    return NULL;
}

/* Whether output i is the whole of its storage: not one that has a history which the output has not. */
static bool is_itself(const commit *m, const out_spec *o, uint32_t i, const bp_tensor *base)
{
    bool apart = base->flags & TENSOR_REQUIRES_GRAD && !o->requires_grad;
    return is_whole(o) && base == m->bases[i] && !apart;
}

/* A new tensor for output i, or the very one that it is. */
static bp_tensor *make_output(commit *m, uint32_t i)
{
    const out_spec *o = &m->end->end.outs[i];
    bp_tensor *same = o->is_source ? bind_input(&m->k->vals, (uint32_t)o->source) : known_object(m->k, o->handle);
    if (same)
        return is_borrowed(m, i) ? same : tensor_ref(same);
    bp_tensor *t = NULL, *base = NULL;
    if (o->source >= 0)
        t = make_view(m, o);
    else if ((base = base_of(m, i)))
        t = is_itself(m, o, i, base) ? base : view_with_history(m, o, base, &o->meta);
    if (t && ((t->flags & TENSOR_REQUIRES_GRAD) != 0) != o->requires_grad)
        mark(t, o->requires_grad);
    return t;
}

static bp_status make_outputs(commit *m)
{
    for (uint32_t i = 0; i < m->end->end.nouts; i++) {
        const out_spec *o = &m->end->end.outs[i];
        for (uint32_t j = 0; j < i && !m->outs[i]; j++)
            if (o->handle && m->end->end.outs[j].handle == o->handle)
                m->outs[i] = m->outs[j];
        if (o->handle && !m->outs[i])
            m->outs[i] = make_output(m, i);
        if (o->handle && !m->outs[i])
            return ctx_ok(m->k->c) ? ctx_nomem(m->k->c) : m->k->c->diag.code;
    }
    return BP_OK;
}

/* -- the commit ---------------------------------------------------------------------------------------------------- */

static bool is_first(const commit *m, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++)
        if (m->end->end.outs[j].handle == m->end->end.outs[i].handle)
            return false;
    return m->end->end.outs[i].handle && !is_borrowed(m, i);
}

/* Cannot fail: sizes are equal, and every tensor is there. */
static void write_inputs(commit *m)
{
    call *k = m->k;
    for (uint32_t i = 0; i < m->end->end.nwrites; i++) {
        const write_spec *w = &m->end->end.writes[i];
        bp_tensor *in = bind_input(&k->vals, w->source);
        tensor_copy(k->c, m->jobs[i].to, m->jobs[i].value);
        tensor_wrote(in);
        if (m->jobs[i].history.node)
            tape_write_end(k->c, in, &m->jobs[i].history);
    }
    k->c->rng_offset = k->rng_base + (uint64_t)m->end->end.rng_total.value;
}

/* Outputs go to the scope; a caller's own tensors stay the caller's. */
static void hand_over(commit *m)
{
    for (uint32_t i = 0; i < m->end->end.nouts; i++)
        m->k->outs->at[i] = is_first(m, i) ? scope_own(m->k->c, m->outs[i]) : m->outs[i];
}

/* Everything but the outputs; with failed, them too. */
static void drop(commit *m, bool failed)
{
    for (uint32_t i = 0; i < m->end->end.nouts; i++) {
        if (m->bases[i] != m->outs[i])
            tensor_unref(m->bases[i]);
        if (failed && m->outs[i] && is_first(m, i))
            tensor_unref(m->outs[i]);
    }
    for (uint32_t i = 0; i < m->end->end.nwrites; i++) {
        tensor_unref(m->jobs[i].value);
        tape_write_drop(&m->jobs[i].history);
    }
}

static step finish(commit *m)
{
    call *k = m->k;
    step s = STEP_OK;
    if (outputs_reserve(k->c, k->outs, m->end->end.nouts) != BP_OK || make_outputs(m) != BP_OK ||
        prepare_writes(m) != BP_OK)
        s = STEP_FAILED;
    if (s == STEP_OK)
        write_inputs(m);
    drop(m, s != STEP_OK);
    if (s != STEP_OK) /* nothing is written; behind a commit eager can still answer */
        return k->steps.len ? call_eager_on_error(k) : s;
    bind_reset(&k->vals); /* so that the outputs are the scope's alone */
    hand_over(m);
    return STEP_DONE;
}

bp_status call_commit_state(call *k, const item *state, bp_tensor **made)
{
    uint32_t nouts = state->end.nouts, nwrites = state->end.nwrites;
    bp_tensor **at = calloc(2 * (size_t)nouts + 1, sizeof *at);
    write_job *jobs = calloc((size_t)nwrites + 1, sizeof *jobs);
    commit m = {k, state, at, at ? at + nouts : NULL, jobs, false};
    bp_status st = at && jobs ? BP_OK : ctx_nomem(k->c);
    if (st == BP_OK && writes_view(k, state))
        st = ctx_fail(k->c, BP_UNIMPLEMENTED, BIND_NOT_WRITTEN);
    if (st == BP_OK)
        st = make_outputs(&m);
    if (st == BP_OK)
        st = prepare_writes(&m);
    if (st == BP_OK)
        write_inputs(&m);
    if (at && jobs)
        drop(&m, st != BP_OK);
    for (uint32_t i = 0; st == BP_OK && i < nouts; i++)
        made[i] = is_first(&m, i) ? at[i] : tensor_ref(at[i]);
    free(at);
    free(jobs);
    return st;
}

/* The first n outputs are not given out after all. */
RARE static step give_back(call *k, const out_spec *outs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        bind_find(&k->vals, outs[i].value)->is_lent = false;
    return STEP_OK;
}

/* The usual end: every value becomes an output as it is. STEP_OK: one of them does not, and nothing is done. */
static step commit_plain(call *k, const item *end)
{
    const uint32_t n = end->end.nouts;
    const out_spec *outs = end->end.outs;
    if (outputs_reserve(k->c, k->outs, n) != BP_OK)
        return STEP_FAILED;
    bp_tensor **at = k->outs->at;
    for (uint32_t i = 0; i < n; i++) {
        bind_value *v = bind_find(&k->vals, outs[i].value);
        if (!v || !fits(outs[i].value, v->t, &outs[i].base))
            return give_back(k, outs, i);
        v->is_lent = true;
        at[i] = v->t;
    }
    for (uint32_t i = 0; i < n; i++) {
        mark(at[i], outs[i].requires_grad);
        at[i] = scope_own(k->c, at[i]);
    }
    k->c->rng_offset = k->rng_base + (uint64_t)end->end.rng_total.value;
    return STEP_DONE;
}

static step commit_any(call *k, const item *end)
{
    step s;
    if (end->end.tree && tree_give(k->c, k->outs, end->end.tree) != BP_OK)
        return STEP_FAILED;
    enum { FEW_OUTS = 32, FEW_WRITES = 16 };
    bp_tensor *few[2 * FEW_OUTS], **at = few;
    write_job few_jobs[FEW_WRITES], *jobs = few_jobs;
    uint32_t nouts = end->end.nouts, nwrites = end->end.nwrites;
    if (nouts > FEW_OUTS)
        at = malloc(2 * (size_t)nouts * sizeof *at);
    if (nwrites > FEW_WRITES)
        jobs = malloc(nwrites * sizeof *jobs);
    if (at && jobs) {
        commit m = {k, end, at, at + nouts, jobs, !k->steps.len}; /* behind a commit a failure may resume */
        for (uint32_t i = 0; i < 2 * nouts; i++)
            at[i] = NULL;
        for (uint32_t i = 0; i < nwrites; i++)
            jobs[i] = (write_job){0};
        s = finish(&m);
    } else {
        ctx_nomem(k->c);
        s = STEP_FAILED;
    }
    if (at != few)
        free(at);
    if (jobs != few_jobs)
        free(jobs);
    return s;
}

static HOT step commit_end(call *k, const tree_node *n, const item *end)
{
    step s = STEP_OK;
    if (s == STEP_OK && end->end.nwrites && writes_view(k, end))
        s = call_eager(k, BIND_NOT_WRITTEN);
    if (s == STEP_OK && n->parent && call_check_outputs(k, n) != BP_OK)
        s = STEP_FAILED;
    if (s == STEP_OK && end->end.is_plain && !k->steps.len)
        s = commit_plain(k, end);
    return s == STEP_OK ? commit_any(k, end) : s;
}

/* With this call's numbers in place of symbols. */
RARE static step commit_symbolic(call *k, const tree_node *n)
{
    arena own = {0};
    item settled;
    const item *end = call_settle(k, n, &own, &settled);
    step s = end ? commit_end(k, n, end) : call_eager_on_error(k);
    arena_fini(&own);
    return s;
}

step call_commit(call *k, const tree_node *n)
{
    step s = call_may_recheck(k) ? call_recheck(k, n) : STEP_OK;
    if (s != STEP_OK)
        return s;
    return n->term->end.symbolic ? commit_symbolic(k, n) : commit_end(k, n, n->term);
}
