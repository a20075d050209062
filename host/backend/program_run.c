/* Running programs, and who answers when a run fails.
 *
 * A group's inputs are read only, so the same inputs can be given to the next link. OUT_OF_RANGE is explained by the
 * data and goes up to the caller, who answers eagerly; a cancelled call ends; any other failure moves the group to its
 * next link, compiled at that moment, and only if that one succeeds is the failed backend to blame. A failed run that
 * wrote to what it was lent (watch.c) leaves nothing to answer from: its failure is the answer. */
#include "host/backend/plan.h"
#include "host/backend/verify.h"
#include "host/backend/watch.h"
#include "host/base/log.h"
#include <stdio.h>
#include <string.h>

static bp_status run_program(bp_ctx *c, program *p, const program_io *io);

/* -- who answers --------------------------------------------------------------------------------------------------- */

/* Blame has moved since the last look: of this callable or of the process, by this program's runs or others'. */
RARE static void look_again(program *p, uint32_t generation)
{
    for (uint32_t i = 0; i < p->ngroups; i++) {
        const backend *b = p->chain->links[p->groups[i].link].b;
        atomic_store_explicit(&p->groups[i].is_retired, backend_is_retired(b, p->code), memory_order_relaxed);
    }
    atomic_store_explicit(&p->seen, generation, memory_order_release);
}

/* The program over the links behind the group's own. */
static bp_status make_rest(bp_ctx *c, program *p, group *g, program **out)
{
    pthread_mutex_lock(&g->lock);
    program *rest = atomic_load_explicit(&g->rest, memory_order_acquire);
    bp_status st = BP_OK;
    if (!rest) {
        trail t = {0};
        st = program_compile_from(c, p->chain, g->link + 1, g->gm, p->asked, p->code, &t, &rest);
        if (st)
            st = program_tell(c, &t, p->chain, g->gm);
        trail_fini(&t);
        if (!st)
            atomic_store_explicit(&g->rest, rest, memory_order_release);
    }
    pthread_mutex_unlock(&g->lock);
    *out = rest;
    return st;
}

/* -- one group ----------------------------------------------------------------------------------------------------- */

/* Outputs that are an input, or another output, are that very tensor, whatever the backend made. */
static void share_outputs(const group *g, const program_io *io)
{
    for (uint32_t i = 0; i < io->noutputs; i++) {
        uint32_t same = g->same_as[i], at = same & SAME_INDEX;
        bp_tensor *t = same & SAME_INPUT ? io->inputs[at] : same & SAME_OUTPUT ? io->outputs[at] : NULL;
        if (!t || t == io->outputs[i])
            continue;
        tensor_unref(io->outputs[i]);
        io->outputs[i] = tensor_ref(t);
    }
}

static void drop(const program_io *io)
{
    for (uint32_t i = 0; i < io->noutputs; i++) {
        tensor_unref(io->outputs[i]);
        io->outputs[i] = NULL;
    }
}

/* Inputs that this run may overwrite: where nothing can answer after it. */
static inline const uint8_t *owned_of(const program *p, const program_io *io)
{
    return io->owned && chain_is_strict(p->chain) ? io->owned : NULL;
}

static HOT bp_status run_own(bp_ctx *c, const group *g, const program_io *io, const uint8_t *owned)
{
    bp_run r;
    r.host = g->compiled->host;
    r.c = c;
    r.inputs = io->inputs;
    r.owned = owned;
    r.outputs = io->outputs;
    r.expected = g->expected;
    r.sizes = NULL;
    r.ninputs = io->ninputs;
    r.noutputs = io->noutputs;
    r.depth = 0;
    r.k = NULL;
    r.aligned = NULL;
    atomic_flag_clear(&r.said);
    r.inner[0] = '\0';
    bp_status st = g->sizes ? group_run_sized(c, g, io->symbols, &r) : compiled_run(g->compiled, &r);
    if (st == BP_OK && g->same_as)
        share_outputs(g, io);
    return st;
}

static bool is_final(bp_status st)
{
    return st == BP_OK || st == BP_OUT_OF_RANGE || st == BP_CANCELLED || st == BP_DEADLINE_EXCEEDED;
}

/* A backend is to blame when another one did what it did not. The host's own are not: they are the measure. */
static void blame(const program *p, group *g, const diag *failure, program *rest)
{
    backend *b = p->chain->links[g->link].b;
    buf who = {0};
    if (b->kind == ORIGIN_BUILTIN)
        return;
    program_print_backends(rest, &who);
    chain_warn(p->chain, "%s; %s answers, and \"%s\" is not used again for graph \"%s\"", failure->message,
               buf_text(&who), b->name, g->gm->name);
    buf_fini(&who);
    pthread_mutex_lock(&g->lock);
    if (!g->why)
        g->why = strdup(failure->message);
    pthread_mutex_unlock(&g->lock);
    atomic_store_explicit(&g->is_retired, true, memory_order_relaxed);
    backend_retire(b, p->code, failure->message, !g->compiled->program);
}

/* The next link answers from the same inputs. When it cannot either, its error is the answer; when there is none, the
 * first one stays. */
static bp_status fall_back(bp_ctx *c, program *p, group *g, const program_io *io, bp_status first)
{
    program *rest;
    diag failure = c->diag;
    diag_clear(&c->diag);
    if (make_rest(c, p, g, &rest) != BP_OK) {
        c->diag = failure;
        return first;
    }
    TRY(run_program(c, rest, io));
    blame(p, g, &failure, rest);
    return BP_OK;
}

static bp_status check_first_run(bp_ctx *c, const program *p, group *g, const program_io *io)
{
    if (!p->verifies || atomic_exchange(&g->is_verified, true))
        return BP_OK;
    bp_status st = verify_outputs(c, g->gm, p->chain->links[g->link].name, io->inputs, io->ninputs, io->outputs,
                                  io->noutputs);
    if (st)
        drop(io);
    return st;
}

RARE static bp_status run_rest(bp_ctx *c, program *p, group *g, const program_io *io)
{
    program *rest;
    TRY(make_rest(c, p, g, &rest));
    return run_program(c, rest, io);
}

/* What becomes of a run that failed, or that is to be compared. */
RARE static bp_status judge(bp_ctx *c, program *p, group *g, const program_io *io, bp_status st, uint64_t rng)
{
    bool differs = false;
    if (st == BP_OK && p->verifies)
        differs = (st = check_first_run(c, p, g, io)) != BP_OK;
    if (is_final(st) || chain_is_strict(p->chain) || g->link + 1 >= p->chain->n || (differs && p->chain->is_direct))
        return st;
    c->rng_offset = rng;
    return fall_back(c, p, g, io, st);
}

/* -- what a run may only read -------------------------------------------------------------------------------------- */

/* A failed run that wrote to input i: nobody may compute from it, and the backend is not asked again. One that
 * succeeded has spoiled the caller's data all the same. */
RARE static bp_status tell_spoiled(bp_ctx *c, program *p, group *g, const program_io *io, uint32_t i, bp_status st)
{
    backend *b = p->chain->links[g->link].b;
    if (st == BP_OK && !p->verifies) {
        chain_warn(p->chain, "a run of backend \"%s\" wrote to input %u of graph \"%s\", which is only lent to it",
                   b->name, (unsigned)i, g->gm->name);
        return BP_OK;
    }
    if (st == BP_DATA_LOSS && g->compiled->program) /* a link of its own is to blame, and named */
        return st;
    diag failure = c->diag;
    diag_clear(&c->diag);
    drop(io);
    ctx_fail(c, BP_DATA_LOSS, "a run of backend \"%s\" wrote to input %u of graph \"%s\", which is only lent to it: "
             "nothing else can answer from it", b->name, (unsigned)i, g->gm->name);
    c->diag.ends = true;
    if (failure.code)
        diag_detail(&c->diag, "It failed, too: %.400s", failure.message);
    backend_retire(b, p->code, c->diag.message, !g->compiled->program);
    return BP_DATA_LOSS;
}

/* Runs an object that is not the host's own: the first run is watched in full. */
static HOT bp_status run_watched(bp_ctx *c, program *p, group *g, const program_io *io)
{
    watch w;
    uint64_t rng = c->rng_offset;
    const uint8_t *owned = owned_of(p, io);
    bool is_first = !atomic_load_explicit(&g->is_watched, memory_order_relaxed) &&
                    !atomic_exchange_explicit(&g->is_watched, true, memory_order_relaxed);
    if (is_first)
        watch_all(&w, io->inputs, owned, io->ninputs);
    else
        watch_samples(&w, io->inputs, owned, io->ninputs);
    bp_status st = run_own(c, g, io, owned);
    uint32_t changed = st || is_first ? watch_changed(&w, io->inputs, owned, io->ninputs) : UINT32_MAX;
    if (changed != UINT32_MAX)
        return tell_spoiled(c, p, g, io, changed, st);
    return st == BP_OK && !p->verifies ? st : judge(c, p, g, io, st, rng);
}

static HOT bp_status run_group(bp_ctx *c, program *p, group *g, const program_io *io)
{
    if (!group_answers(g))
        return run_rest(c, p, g, io);
    if (p->chain->links[g->link].b->kind != ORIGIN_BUILTIN)
        return run_watched(c, p, g, io);
    uint64_t rng = c->rng_offset;
    bp_status st = run_own(c, g, io, owned_of(p, io));
    return st == BP_OK && !p->verifies ? st : judge(c, p, g, io, st, rng);
}

static bp_status run_one(bp_ctx *c, program *p, group *g, const program_io *io)
{
    return run_group(c, p, g, io);
}

/* -- several groups ------------------------------------------------------------------------------------------------ */

typedef struct { bp_tensor **value; bp_tensor **in, **out; void *block; } workspace; /* value: by node id, counted */
enum { STACK_TENSORS = 160 };

static bool make_workspace(const program *p, bp_tensor **stack, workspace *w)
{
    uint32_t nin = 0, nout = 0, n = p->gm->g.nodes.len;
    for (uint32_t i = 0; i < p->ngroups; i++) {
        const group *g = &p->groups[i];
        uint32_t ins = g->in.len + (g->sizes ? g->sizes->symints.len : 0);
        nin = ins > nin ? ins : nin;
        nout = p->groups[i].out.len > nout ? p->groups[i].out.len : nout;
    }
    uint64_t total = (uint64_t)n + nin + nout;
    w->block = total > STACK_TENSORS ? calloc(total, sizeof(bp_tensor *)) : NULL;
    w->value = w->block ? w->block : stack;
    if (total > STACK_TENSORS && !w->block)
        return false;
    if (!w->block)
        memset(stack, 0, total * sizeof(bp_tensor *));
    w->in = w->value + n;
    w->out = w->in + nin;
    return true;
}

static void fill_inputs(const program *p, const program_io *io, workspace *w)
{
    uint32_t next = 0;
    for (node_id n = p->gm->g.first; n; n = graph_get(&p->gm->g, n)->next) {
        const graph_node *node = graph_get(&p->gm->g, n);
        bp_tensor *t = node->op == BP_NODE_PLACEHOLDER && next < io->ninputs ? io->inputs[next++]
                       : node->op == BP_NODE_GET_ATTR                        ? gm_constant(p->gm, node->name)
                                                                             : NULL;
        w->value[n] = t ? tensor_ref(t) : NULL;
    }
}

/* A group of a graph with symbols: some of its inputs may be symbols, and its outputs may tell others. */
RARE static bp_status run_sized(bp_ctx *c, program *p, group *g, program_io *io, workspace *w, int64_t *symbols)
{
    uint32_t n = g->sizes->symints.len;
    bp_status st = group_fill_symints(c, g, symbols, w->in + io->ninputs);
    io->ninputs += n;
    io->symbols = symbols;
    st = st ? st : run_one(c, p, g, io);
    for (uint32_t i = 0; i < n; i++)
        tensor_unref(io->inputs[io->ninputs - n + i]);
    if (st == BP_OK)
        group_read_sizes(g, io->outputs, symbols);
    return st;
}

static bp_status step(bp_ctx *c, program *p, group *g, workspace *w, int64_t *symbols)
{
    for (uint32_t i = 0; i < g->in.len; i++)
        w->in[i] = w->value[g->in.at[i]];
    memset(w->out, 0, g->out.len * sizeof *w->out);
    program_io io = {.inputs = w->in, .outputs = w->out, .ninputs = g->in.len, .noutputs = g->out.len};
    TRY(g->sizes ? run_sized(c, p, g, &io, w, symbols) : run_one(c, p, g, &io));
    for (uint32_t i = 0; i < g->out.len; i++)
        w->value[g->out.at[i]] = w->out[i];
    for (uint32_t i = 0; i < g->dies.len; i++) {
        tensor_unref(w->value[g->dies.at[i]]);
        w->value[g->dies.at[i]] = NULL;
    }
    return BP_OK;
}

/* A result that is a size: an i64 tensor of no dimensions. */
static bp_status give_number(bp_ctx *c, const program *p, bp_dim d, const int64_t *symbols, bp_tensor **out)
{
    int64_t v = d.value;
    if (d.sym && (!symbols || !sym_eval(p->gm->g.syms, d, symbols, &v)))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "a result of graph \"%s\" is a size that cannot be computed",
                        p->gm->name);
    if (!(*out = tensor_contiguous_new(c, BP_I64, 0, NULL)))
        return c->diag.code;
    *(int64_t *)tensor_ptr(*out) = v;
    return BP_OK;
}

static bp_status give_outputs(bp_ctx *c, const program *p, const program_io *io, const workspace *w,
                              const int64_t *symbols)
{
    const graph *g = &p->gm->g;
    const bp_value *list = io->noutputs ? &graph_get(g, graph_output_node(g))->args[0] : NULL;
    for (uint32_t i = 0; i < io->noutputs; i++) {
        const bp_value *v = &list->v.items[i];
        bp_tensor *t = v->kind == BP_VALUE_NODE ? w->value[v->v.node] : NULL;
        io->outputs[i] = t ? tensor_ref(t) : NULL;
        if (v->kind == BP_VALUE_INT)
            TRY(give_number(c, p, v->v.dim, symbols, &io->outputs[i]));
    }
    return BP_OK;
}

RARE static bp_status run_groups(bp_ctx *c, program *p, const program_io *io)
{
    bp_tensor *stack[STACK_TENSORS];
    workspace w;
    uint32_t nsymbols = io->symbols ? sym_symbol_count(p->gm->g.syms) : 0;
    variant_values symbols;
    if (!make_workspace(p, stack, &w))
        return ctx_nomem(c);
    if (!variant_values_init(&symbols, nsymbols)) {
        free(w.block);
        return ctx_nomem(c);
    }
    if (nsymbols)
        memcpy(symbols.at, io->symbols, nsymbols * sizeof *symbols.at);
    fill_inputs(p, io, &w);
    bp_status st = BP_OK;
    for (uint32_t i = 0; !st && i < p->ngroups; i++)
        st = step(c, p, &p->groups[i], &w, symbols.at);
    if (!st)
        st = give_outputs(c, p, io, &w, nsymbols ? symbols.at : NULL);
    if (st)
        drop(io);
    for (uint32_t i = 0; i < p->gm->g.nodes.len; i++)
        tensor_unref(w.value[i]);
    variant_values_fini(&symbols);
    free(w.block);
    return st;
}

/* -- programs ------------------------------------------------------------------------------------------------------ */

/* What is not one group alone. */
static bp_status run_parts(bp_ctx *c, program *p, const program_io *io)
{
    return p->variants ? program_run_dynamic(c, p, io) : run_groups(c, p, io);
}

static HOT bp_status run_program_hot(bp_ctx *c, program *p, const program_io *io)
{
    uint32_t generation = atomic_load_explicit(&p->chain->room->generation, memory_order_acquire);
    if (generation != atomic_load_explicit(&p->seen, memory_order_acquire))
        look_again(p, generation);
    return p->is_whole ? run_group(c, p, &p->groups[0], io) : run_parts(c, p, io);
}

static bp_status run_program(bp_ctx *c, program *p, const program_io *io)
{
    return run_program_hot(c, p, io);
}

bp_status program_run_inner(bp_ctx *c, program *p, const program_io *io)
{
    return run_program(c, p, io);
}

bp_status program_run(bp_ctx *c, program *p, program_io *io)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (io->ninputs != p->ninputs || io->noutputs != p->noutputs)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "graph \"%s\" takes %u inputs and gives %u outputs, got %u and %u",
                        p->gm->name, p->ninputs, p->noutputs, io->ninputs, io->noutputs);
    for (uint32_t i = 0; i < io->noutputs; i++)
        io->outputs[i] = NULL;
    /* Compiled code is not to be seen by the modes of whoever runs it, nor by the tape, and moves no generator: its
     * caller does. */
    dispatch_mode *modes = c->modes;
    uint64_t rng = c->rng_offset;
    uint8_t grad = c->ambient.grad_enabled;
    c->modes = NULL;
    c->ambient.grad_enabled = 0;
    c->rng_offset = io->rng_base;
    bp_status st = run_program_hot(c, p, io);
    c->rng_offset = rng;
    c->modes = modes;
    c->ambient.grad_enabled = grad;
    return st;
}
