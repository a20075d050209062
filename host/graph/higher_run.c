/* Running operators over graphs: cond takes one graph, the others run theirs in a loop.
 *
 * What a graph gives is used as it is, so that under the tape the history of a result leads through the graph's own
 * operators. The kernels run without grad, and copy what a graph passes through. */
#include "host/graph/higher.h"
#include "host/op/rows.h"
#include "host/op/run.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    bp_ctx *c;
    op_call *k;
    higher_call h;
    bp_tensor **in;      /* h.total: borrowed from the call, or from `carry` and `item` */
    bp_tensor **carry;   /* references: what goes from one round to the next */
    bp_tensor **item;    /* references: this round's items of xs */
    bp_tensor **out;     /* references: what the graph gave in this round */
    uint32_t ncarry, nitem, nout;
} runner;

/* -- references ---------------------------------------------------------------------------------------------------- */

static void drop(bp_tensor **at, uint32_t n)
{
    for (uint32_t i = 0; at && i < n; i++) {
        tensor_unref(at[i]);
        at[i] = NULL;
    }
}

static bp_tensor **array(bp_ctx *c, uint32_t n)
{
    bp_tensor **at = calloc(n + 1u, sizeof *at);
    if (!at)
        ctx_nomem(c);
    return at;
}

static bp_status begin(runner *r, bp_ctx *c, op_call *k)
{
    *r = (runner){.c = c, .k = k};
    char why[300];
    if (!higher_of_args(k->op, k->args, &r->h))
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "a graph is missing");
    if (!higher_fits(k->op, &r->h, why, sizeof why))
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "%s", why);
    if (!(r->in = array(c, r->h.total)))
        return c->diag.code;
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->op->schema->nargs; i++)
        for (uint32_t j = 0; k->args[i].kind == BP_VALUE_LIST && j < k->args[i].count; j++)
            r->in[n++] = arg_list_tensor(k->args, i, j);
    return BP_OK;
}

static void end(runner *r)
{
    drop(r->carry, r->ncarry);
    drop(r->item, r->nitem);
    drop(r->out, r->nout);
    free(r->in);
    free(r->carry);
    free(r->item);
    free(r->out);
}

/* -- pieces -------------------------------------------------------------------------------------------------------- */

/* An operator with one result, through the tape: a new reference; NULL: an error. */
static bp_tensor *call(bp_ctx *c, uint32_t row, const bp_value *pos, uint32_t n)
{
    bp_value *args;
    bp_tensor *out = NULL;
    arena_mark mark = arena_get_mark(&c->scratch);
    op_call k = {.op = op_at(row), .out = &out, .nout = 1};
    bool ok = k.op && op_bind_ordered(c, k.op, n, pos, &args) == BP_OK;
    if (ok) {
        k.args = args;
        ok = op_dispatch(c, &k) == BP_OK && k.nout == 1;
    }
    arena_reset(&c->scratch, mark);
    return ok ? out : NULL;
}

static bp_status read_choice(runner *r, const bp_tensor *t, const char *what, bool *yes)
{
    if (t && tensor_is_fake(t))
        return op_fail(r->c, r->k->op, BP_FAILED_PRECONDITION, "%s is a fake tensor, which has no data", what);
    if (!t || t->dtype != BP_BOOL || tensor_nelem(t) != 1)
        return op_fail(r->c, r->k->op, BP_INVALID_ARGUMENT, "%s must be a bool tensor of one element", what);
    *yes = dtype_load(t->dtype, tensor_ptr(t)).i != 0;
    return BP_OK;
}

/* Runs the graph on r->in; r->out is what it gives. */
static bp_status round_of(runner *r, const bp_graph_module *gm)
{
    drop(r->out, r->nout);
    return graph_run(r->c, gm, r->in, r->h.total, r->out, r->nout, NULL, NULL);
}

static bp_status room_for(runner *r, const bp_graph_module *gm)
{
    r->nout = graph_output_count(&gm->g);
    r->out = array(r->c, r->nout);
    return r->out ? BP_OK : r->c->diag.code;
}

/* The call's results, in the memory of the caller's, or in scratch; taken from `from`. */
static bp_status give(runner *r, bp_tensor **from, uint32_t n)
{
    TRY(results_reserve(r->c, r->k, n));
    for (uint32_t i = 0; i < n; i++) {
        r->k->out[i] = from[i];
        from[i] = NULL;
    }
    r->k->returns_list = true;
    return BP_OK;
}

/* -- cond and while_loop ------------------------------------------------------------------------------------------- */

static bp_status run_cond(runner *r)
{
    bool yes = false;
    TRY(read_choice(r, arg_tensor(r->k->args, 0), "pred", &yes));
    const bp_graph_module *gm = r->h.graph[yes ? 0 : 1];
    TRY(room_for(r, gm));
    TRY(round_of(r, gm));
    return give(r, r->out, r->nout);
}

/* The first `n` results of a round are what the next one takes in place `at` on. */
static void carry_on(runner *r, uint32_t at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        tensor_unref(r->carry[i]);
        r->in[at + i] = r->carry[i] = r->out[i];
        r->out[i] = NULL;
    }
}

static bp_status begin_carry(runner *r, uint32_t n)
{
    if (!(r->carry = array(r->c, n)))
        return r->c->diag.code;
    r->ncarry = n;
    for (uint32_t i = 0; i < n; i++)
        r->carry[i] = tensor_ref(r->in[i]);
    return BP_OK;
}

static bp_status goes_on(runner *r, bool *yes)
{
    bp_tensor *answer = NULL;
    bp_status st = graph_run(r->c, r->h.graph[0], r->in, r->h.total, &answer, 1, NULL, NULL);
    if (st == BP_OK)
        st = read_choice(r, answer, "what the condition gives", yes);
    tensor_unref(answer);
    return st;
}

static bp_status run_while_loop(runner *r)
{
    bool yes = true;
    TRY(room_for(r, r->h.graph[1]));
    TRY(begin_carry(r, r->h.n[0]));
    for (;;) {
        TRY(goes_on(r, &yes));
        if (!yes)
            return give(r, r->carry, r->ncarry);
        TRY(round_of(r, r->h.graph[1]));
        carry_on(r, 0, r->h.n[0]);
    }
}

/* -- map and scan -------------------------------------------------------------------------------------------------- */

typedef struct { bp_value *at; uint32_t rounds, each; } stacks; /* of result j, round i: at[j * rounds + i] */

static bp_status begin_stacks(runner *r, stacks *s, int64_t rounds, uint32_t each)
{
    uint64_t total = (uint64_t)rounds * each;
    *s = (stacks){.rounds = (uint32_t)rounds, .each = each};
    if (rounds < 1 || total > UINT32_MAX)
        return op_fail(r->c, r->k->op, BP_INVALID_ARGUMENT, "the leading size of \"xs\" is %lld", (long long)rounds);
    s->at = calloc((size_t)total + 1, sizeof *s->at);
    return s->at ? BP_OK : ctx_nomem(r->c);
}

static void end_stacks(stacks *s)
{
    for (uint64_t i = 0; s->at && i < (uint64_t)s->rounds * s->each; i++)
        if (s->at[i].kind == BP_VALUE_TENSOR)
            tensor_unref(s->at[i].v.tensor);
    free(s->at);
}

/* This round's results from `first` on go to the stacks. */
static void keep_round(runner *r, stacks *s, uint32_t round, uint32_t first)
{
    for (uint32_t j = 0; j < s->each; j++) {
        s->at[(size_t)j * s->rounds + round] = value_tensor(r->out[first + j]);
        r->out[first + j] = NULL;
    }
}

/* Items of list xs, which is in[first ..]; `whole` holds the tensors themselves. */
static bp_status take_items(runner *r, bp_tensor *const *whole, uint32_t first, uint32_t round)
{
    drop(r->item, r->nitem);
    for (uint32_t i = 0; i < r->nitem; i++) {
        bp_value args[3] = {value_tensor(whole[i]), value_int(0), value_int(round)};
        if (!(r->item[i] = call(r->c, ROW_select_int, args, 3)))
            return ctx_ok(r->c) ? ctx_nomem(r->c) : r->c->diag.code;
        r->in[first + i] = r->item[i];
    }
    return BP_OK;
}

static bp_status stack_all(runner *r, const stacks *s, bp_tensor **to)
{
    for (uint32_t j = 0; j < s->each; j++) {
        bp_value args[2] = {value_list(&s->at[(size_t)j * s->rounds], s->rounds), value_int(0)};
        if (!(to[j] = call(r->c, ROW_stack_default, args, 2)))
            return ctx_ok(r->c) ? ctx_nomem(r->c) : r->c->diag.code;
    }
    return BP_OK;
}

/* Rounds over xs, the list that begins at in[ncarry]; what is carried lies before it. */
static bp_status go_along(runner *r, bp_tensor *const *whole, stacks *s)
{
    for (uint32_t i = 0; i < s->rounds; i++) {
        TRY(take_items(r, whole, r->ncarry, i));
        TRY(round_of(r, r->h.graph[0]));
        carry_on(r, 0, r->ncarry);
        keep_round(r, s, i, r->ncarry);
    }
    return BP_OK;
}

static bp_status run_along(runner *r, uint32_t ncarry, uint32_t nxs)
{
    stacks s = {0};
    TRY(room_for(r, r->h.graph[0]));
    TRY(begin_carry(r, ncarry));
    if (!nxs || !r->in[ncarry]->rank)
        return op_fail(r->c, r->k->op, BP_INVALID_ARGUMENT, "\"xs\" has nothing to go along");
    bp_tensor **whole = array(r->c, nxs), **all = array(r->c, r->nout);
    r->item = array(r->c, nxs);
    r->nitem = nxs;
    bp_status st = whole && all && r->item ? BP_OK : ctx_nomem(r->c);
    if (st == BP_OK) {
        memcpy(whole, r->in + ncarry, nxs * sizeof *whole);
        st = begin_stacks(r, &s, tensor_dim(whole[0], 0), r->nout - ncarry);
    }
    if (st == BP_OK)
        st = go_along(r, whole, &s);
    if (st == BP_OK)
        st = stack_all(r, &s, all + ncarry);
    for (uint32_t i = 0; st == BP_OK && i < ncarry; i++) {
        all[i] = r->carry[i];
        r->carry[i] = NULL;
    }
    if (st == BP_OK)
        st = give(r, all, r->nout);
    drop(all, r->nout);
    end_stacks(&s);
    free(whole);
    free(all);
    return st;
}

/* -- any of them --------------------------------------------------------------------------------------------------- */

static bp_status run_any(runner *r)
{
    switch (r->k->op->number) {
    case ROW_higher_order_cond_default: return run_cond(r);
    case ROW_higher_order_while_loop_default: return run_while_loop(r);
    case ROW_higher_order_map_impl_default: return run_along(r, 0, r->h.n[0]);
    default: return run_along(r, r->h.n[0], r->h.n[1]);
    }
}

bp_status higher_run(bp_ctx *c, op_call *k)
{
    runner r;
    dispatch_mode *modes = c->modes;
    bp_status st = begin(&r, c, k);
    c->modes = NULL;
    if (st == BP_OK)
        st = run_any(&r);
    c->modes = modes;
    end(&r);
    return st;
}

/* -- the kernel ---------------------------------------------------------------------------------------------------- */

/* The outputs are made: what the graphs give takes their place, or is copied where it is laid out otherwise, or is not
 * the call's alone. */
bp_status kernel_higher(bp_ctx *c, op_call *k)
{
    op_call inner = {.op = k->op, .args = k->args, .nargs = k->nargs};
    uint8_t grad = c->ambient.grad_enabled;
    c->ambient.grad_enabled = 0;
    bp_status st = higher_run(c, &inner);
    c->ambient.grad_enabled = grad;
    if (st != BP_OK)
        return st;
    for (uint32_t i = 0; i < inner.nout; i++) {
        if (st == BP_OK && i < k->nout)
            st = op_deliver(c, k, i, inner.out[i]);
        else
            tensor_unref(inner.out[i]);
    }
    return st;
}
