/* Running a node's segment on a call's values. */
#include "host/base/log.h"
#include "host/compile/aot.h"
#include "host/compile/stance.h"
#include <stdlib.h>

enum { FEW = 128 };

/* The node's use, built first if there is none or its list has grown. A longer list that cannot be had leaves the old
 * code serving; what it lacks comes from slices (C3.2). */
RARE static step renew_use(call *k, tree_node *n, segment_use **use)
{
    segment_use *old = *use, *longer;
    uint32_t len = atomic_load(&n->list->len);
    bool fixed = k->borrowed || k->stance == STANCE_EAGER_ON_RECOMPILE || k->stance == STANCE_FAIL_ON_RECOMPILE;
    if (old && fixed)
        return STEP_OK;
    if (k->borrowed && k->steps.len)
        return call_eager_here(k, "the default region has not compiled what is behind a commit");
    if (k->borrowed)
        return STEP_MISS;
    if (!call_claim(k))
        return old ? STEP_OK
                   : call_eager_here(k, "another thread is capturing or compiling \"%s\"", k->g->code->is.name);
    if (old && code_counter(k->st, graphs) >= config_int(k->c->rt, KEY_ACCUMULATED_RECOMPILE_LIMIT))
        return STEP_OK;
    step s = call_build(k, n, &longer);
    if (s != STEP_OK && old) {
        log_line(k->c->rt, LOG_recompiles, "a longer handed-on list of \"%s\" did not compile: %s", k->g->code->is.name,
                 s == STEP_EAGER ? k->reason : k->c->diag.message);
        diag_clear(&k->c->diag);
        atomic_store(&old->list_len, len);
        return STEP_OK;
    }
    *use = s == STEP_OK ? longer : old;
    return s;
}

static HOT step find_use(call *k, tree_node *n, segment_use **use)
{
    *use = atomic_load(&n->use);
    bool serves = *use && atomic_load(&(*use)->list_len) >= atomic_load(&n->list->len);
    return serves ? STEP_OK : renew_use(k, n, use);
}

RARE static bp_status miss_value(call *k, const segment_use *u)
{
    return ctx_ok(k->c) ? ctx_fail(k->c, BP_INTERNAL, "a value that %s needs is missing", u->seg->name)
                        : k->c->diag.code;
}

RARE static bp_tensor *other_input(call *k, const tree_node *n, ref r)
{
    return ref_kind(r) == REF_SYMBOL ? call_symbol(k, n, r) : call_value(k, r);
}

/* Most are inputs of the call. */
static HOT bp_status take_inputs(call *k, const segment_use *u, bp_tensor **in, const tree_node *n)
{
    const bp_value *inputs = k->vals.inputs;
    const ref *from = u->in;
    for (uint32_t i = 0, nin = u->nin, ninputs = k->vals.ninputs; i < nin; i++) {
        uint32_t at = from[i] ^ REF_INPUT; /* beyond every number of inputs when it is a ref of another kind */
        bool is_input = at < ninputs && inputs[at].kind == BP_VALUE_TENSOR;
        bp_tensor *t = is_input ? inputs[at].v.tensor : other_input(k, n, from[i]);
        if (!t)
            return miss_value(k, u);
        in[i] = t;
    }
    return BP_OK;
}

static HOT bp_status keep_outputs(call *k, const segment_use *u, bp_tensor **out)
{
    bp_status st = BP_OK;
    for (uint32_t i = 0; i < u->nout; i++) {
        if (st == BP_OK && out[i])
            st = bind_give(&k->vals, u->out[i], out[i]);
        else
            tensor_unref(out[i]);
    }
    return st;
}

/* A run that failed. Data in the wrong range blame nobody; everything else has been through the whole chain. Nothing
 * has been written yet, so eager may answer either, unless the config wants an error. A broken invariant always is one:
 * a debugging backend, or the comparison with eager execution, has found what it was asked to find. So is what the
 * caller wished to end. */
RARE static step not_run(call *k, const segment_use *u)
{
    bp_status st = k->c->diag.code;
    if (st == BP_INTERNAL || st == BP_CANCELLED || st == BP_DEADLINE_EXCEEDED ||
        (st != BP_OUT_OF_RANGE && config_int(k->c->rt, KEY_FALLBACK) == FALLBACK_ERROR)) {
        diag_while(&k->c->diag, "running %s of \"%s\"", u->seg->name, k->g->code->is.name);
        return STEP_FAILED;
    }
    code_count(k->st, restarts, 1);
    return call_eager_on_error(k);
}

/* Inputs that are written up to here on the path change when the call commits: what the backward reads of them, be it
 * to compute again what an earlier segment has written, must not. */
static bool is_written(const call *k, const tree_node *n, const bp_tensor *t)
{
    for (; n; n = n->parent)
        for (uint32_t i = 0; i < n->nwritten; i++)
            if (bind_input(&k->vals, n->written[i])->store == t->store)
                return true;
    return false;
}

RARE static bp_status run_training(call *k, const segment_use *u, program_io *io, const tree_node *n)
{
    bool writes = n->nwritten != 0;
    for (const tree_node *p = n->parent; p && !writes; p = p->parent)
        writes = p->nwritten != 0;
    uint8_t few[128], *written = !writes ? NULL : u->nin > 128 ? malloc(u->nin) : few;
    if (writes && !written)
        return ctx_nomem(k->c);
    for (uint32_t i = 0; written && i < u->nin; i++)
        written[i] = is_written(k, n, io->inputs[i]);
    bp_status st = aot_run(k->c, u->seg->training, io, written);
    if (written != few)
        free(written);
    return st;
}

/* Where the node's random numbers start: the place of those before it was checked when they were captured. */
static inline int64_t start_of(const call *k, const tree_node *n)
{
    int64_t at = n->rng_start.value;
    if (n->rng_start.sym)
        sym_eval(n->env, n->rng_start, k->vals.syms, &at);
    return at;
}

static HOT step run(call *k, const segment_use *u, bp_tensor **in, bp_tensor **out, const tree_node *n)
{
    if (take_inputs(k, u, in, n) != BP_OK)
        return call_eager_on_error(k);
    program_io io = {.inputs = in, .ninputs = u->nin, .outputs = out, .noutputs = u->nout,
                     .rng_base = k->rng_base + (uint64_t)start_of(k, n)};
    bp_status st = u->seg->training ? run_training(k, u, &io, n) : program_run(k->c, u->seg->program, &io);
    if (st != BP_OK)
        return not_run(k, u);
    return keep_outputs(k, u, out) == BP_OK ? STEP_OK : STEP_FAILED;
}

RARE static step run_many(call *k, const segment_use *u, const tree_node *n)
{
    bp_tensor **at = malloc(((size_t)u->nin + u->nout) * sizeof *at);
    if (!at)
        return ctx_nomem(k->c), STEP_FAILED;
    step s = run(k, u, at, at + u->nin, n);
    free(at);
    return s;
}

step call_run_segment(call *k, tree_node *n)
{
    segment_use *u;
    step s = find_use(k, n, &u);
    if (s != STEP_OK || !u->seg)
        return s;
    bp_tensor *few[FEW];
    if (u->nin + u->nout > FEW)
        return run_many(k, u, n);
    return run(k, u, few, few + u->nin, n);
}
