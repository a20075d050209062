/* The host's own backends, after torch.compile's debug ones:
 *   eager           the graph's own forward, interpreted
 *   eager_noexcept  the same; any failure of a run is an unexpected one
 *   eager_debug     the same, each operator checked against what its schema says on aliases and writes
 *   aot_eager       eager; graphs that train are split ahead of time, by a minimal cut
 *   aot_eager_default_partitioner  the same, by the default partition
 *   aot_eager_decomp_partition     aot_eager on core graphs */
#include "host/backend/builtin.h"
#include "host/backend/compiled.h"
#include "host/grad/joint.h"
#include "sdk/base/hash.h"
#include <stdio.h>
#include <string.h>

static bp_compiled *eager(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_forward(gm);
}

/* -- runs of an interpreted graph ---------------------------------------------------------------------------------- */

static bp_status interpret(bp_graph_module *gm, bp_run *r)
{
    return graph_run(r->c, gm, r->inputs, r->ninputs, r->outputs, r->noutputs, NULL, NULL);
}

static void drop_graph(void *state)
{
    gm_unref(state);
}

static bp_compiled *interpreted(bp_graph_module *gm, bp_run_fn run)
{
    bp_compiled *k = bp_compiled_new(gm, run, drop_graph, gm_ref(gm));
    if (!k)
        gm_unref(gm);
    return k;
}

/* -- eager_noexcept ------------------------------------------------------------------------------------------------ */

static bp_status run_noexcept(void *state, bp_run *r)
{
    if (interpret(state, r) == BP_OK)
        return BP_OK;
    diag *d = &r->c->diag;
    char text[sizeof d->message];
    snprintf(text, sizeof text, "unexpected failure while running the graph: %.900s", d->message);
    memcpy(d->message, text, sizeof text);
    return d->code = BP_INTERNAL;
}

static bp_compiled *eager_noexcept(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return interpreted(gm, run_noexcept);
}

/* -- eager_debug --------------------------------------------------------------------------------------------------- */

/* A tensor argument before the call. */
typedef struct { bp_tensor *t; const schema_arg *arg; uint64_t version, hash; } seen;
typedef VEC(seen) seen_list;

static uint64_t hash_of(const bp_tensor *t)
{
    const void *data = tensor_device(t).kind == BP_CPU ? tensor_ptr(t) : NULL;
    return data ? hash_bytes(data, tensor_span_bytes(t), 0) : 0;
}

static bool note(seen_list *list, const schema_arg *arg, const bp_value *v)
{
    if (v->kind == BP_VALUE_TENSOR) {
        bp_tensor *t = v->v.tensor;
        return vec_push(list, (seen){t, arg, atomic_load(&t->store->version), hash_of(t)});
    }
    for (uint32_t i = 0; v->kind == BP_VALUE_LIST && i < v->count; i++)
        if (!note(list, arg, &v->v.items[i]))
            return false;
    return true;
}

static bp_status check_writes(bp_ctx *c, const op_call *k, const seen_list *list)
{
    for (uint32_t i = 0; i < list->len; i++) {
        const seen *s = &list->at[i];
        if (s->arg->ty.writes)
            continue;
        if (atomic_load(&s->t->store->version) != s->version || hash_of(s->t) != s->hash)
            return op_fail(c, k->op, BP_INTERNAL, "argument \"%s\" was written, and the schema %s does not say so",
                           s->arg->name, k->op->schema_text);
    }
    return BP_OK;
}

static bool declares_alias(const op_call *k, uint32_t out, const schema_arg *arg)
{
    const schema *s = k->op->schema;
    if ((k->op->flags & OP_MAYBE_VIEW) || !s->nreturns)
        return true;
    const schema_ty *ty = &s->returns[out < s->nreturns ? out : s->nreturns - 1];
    return ty->alias[0] && (ty->alias[0] == '*' || strcmp(ty->alias, arg->ty.alias) == 0);
}

static bp_status check_aliases(bp_ctx *c, const op_call *k, const seen_list *list)
{
    for (uint32_t o = 0; o < k->nout; o++) {
        for (uint32_t i = 0; k->out[o] && i < list->len; i++) {
            const seen *s = &list->at[i];
            if (s->t->store == k->out[o]->store && !declares_alias(k, o, s->arg))
                return op_fail(c, k->op, BP_INTERNAL,
                               "result %u shares memory with argument \"%s\", and the schema %s does "
                               "not say so", (unsigned)o, s->arg->name, k->op->schema_text);
        }
    }
    return BP_OK;
}

bp_status builtin_check_call(bp_ctx *c, dispatch_mode *self, void *op)
{
    op_call *k = op;
    seen_list before = {0};
    bp_status st = BP_OK;
    for (uint32_t i = 0; !st && i < k->nargs && i < k->op->schema->nargs; i++)
        if (!note(&before, &k->op->schema->args[i], &k->args[i]))
            st = ctx_nomem(c);
    if (!st)
        st = op_dispatch_below(c, self, k);
    if (!st && (st = check_writes(c, k, &before)) == BP_OK)
        st = check_aliases(c, k, &before);
    vec_fini(&before);
    return st;
}

static bp_status run_debug(void *state, bp_run *r)
{
    dispatch_mode mode = {.call = builtin_check_call, .name = "eager_debug"};
    mode_push(r->c, &mode);
    bp_status st = interpret(state, r);
    mode_pop(r->c, &mode);
    return st;
}

static bp_compiled *eager_debug(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return interpreted(gm, run_debug);
}

/* The first one ends every chain. */
const builtin_row BUILTINS[] = {
    {"eager", "debug", eager, {.tape = true}},
    {"eager_noexcept", "debug", eager_noexcept, {0}},
    {"eager_debug", "debug", eager_debug, {0}},
    {"aot_eager", "debug", eager, {.partition = 1 + PARTITION_MIN_CUT}},
    {"aot_eager_default_partitioner", "debug", eager, {.partition = 1 + PARTITION_DEFAULT}},
    {"aot_eager_decomp_partition", "debug", eager, {.partition = 1 + PARTITION_MIN_CUT, .decomposes = true}},
};
const uint32_t NBUILTINS = sizeof BUILTINS / sizeof BUILTINS[0];
const bp_option_row BUILTIN_OPTIONS[] = {{0}};
