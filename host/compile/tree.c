/* Calls with nested arguments and results: flattened before the call, built again from its outputs (capture/tree.h). */
#include "host/capture/tree.h"
#include "host/capture/trace.h"
#include "host/compile/callable.h"

static bp_status leaf_of_outputs(void *arg, uint32_t i, uint32_t kind, const char *name, bp_value *out)
{
    (void)kind;
    (void)name;
    *out = bp_arg_of_tensor(((const bp_outputs *)arg)->at[i]);
    return BP_OK;
}

typedef struct { bp_value root; arena memory; } kept_tree;

static void free_kept(void *p, void *data)
{
    (void)data;
    arena_fini(&((kept_tree *)p)->memory);
    free(p);
}

static bp_status build_plain(bp_ctx *c, kept_tree *k, const bp_outputs *outs)
{
    bp_value *items = arena_array(&k->memory, outs->n, sizeof *items);
    for (uint32_t i = 0; items && i < outs->n; i++)
        items[i] = bp_arg_of_tensor(outs->at[i]);
    k->root = (bp_value){BP_VALUE_LIST, outs->n, {.items = items}};
    return items ? BP_OK : ctx_nomem(c);
}

/* The tree of what a call gave. The scope owns it. */
static bp_status unflatten(bp_ctx *c, bp_outputs *outs, const char *spec, bp_value *out)
{
    kept_tree *k = calloc(1, sizeof *k);
    if (!k)
        return ctx_nomem(c);
    bp_status st = spec ? tree_build(c, &k->memory, spec, outs->n, leaf_of_outputs, outs, &k->root)
                        : build_plain(c, k, outs);
    if (st != BP_OK) {
        free_kept(k, k);
        return st;
    }
    bp_value root = k->root;
    if (!frame_keep(c, k, sizeof *k, free_kept))
        return c->diag.code;
    *out = root;
    return BP_OK;
}

/* Which outputs an opaque step gives is known only when it has run; their structure is no part of what it records. */
static bp_status check_inlined(bp_ctx *c, const bp_callable *g)
{
    trace *t = capture_current(c);
    return t && g && g->disabled
        ? trace_stop(t, TRACE_DECLINED, "the disabled function %s is called with nested values", g->name) : BP_OK;
}

/* g NULL: fn, eagerly. */
static bp_status call_flat(bp_ctx *c, bp_callable *g, bp_fn fn, void *user, const bp_args *args, bp_value *out)
{
    capture_slot *slot = capture_slot_get(c);
    if (!slot)
        return c->diag.code;
    bp_outputs outs = {0};
    tree_wish w = {.outs = &outs, .outer = slot->wish};
    slot->wish = &w;
    bp_status st = g ? bp_call_at(c, g, args, &outs, NULL, 0) : bp_run_eager(c, fn, user, args, &outs);
    slot->wish = w.outer;
    if (st == BP_OK)
        st = unflatten(c, &outs, w.spec, out);
    free(w.spec);
    return st;
}

static bp_status call_tree(bp_ctx *c, bp_callable *g, bp_fn fn, void *user, const bp_value *in, bp_value *out)
{
    flat_tree flat = {0};
    bp_status st = check_inlined(c, g);
    if (st == BP_OK && in->kind != BP_VALUE_LIST && in->kind != BP_VALUE_MAP)
        st = ctx_fail(c, BP_INVALID_ARGUMENT, "bp_call_tree: the arguments are neither a list nor a map");
    if (st == BP_OK && !vec_push(&flat.leaves, (bp_value){0})) /* the spec's place */
        st = ctx_nomem(c);
    if (st == BP_OK)
        st = tree_flatten(c, "in", in, false, &flat);
    if (st == BP_OK) {
        flat.leaves.at[0] = bp_arg_of_str(buf_text(&flat.spec));
        st = call_flat(c, g, fn, user, &(bp_args){flat.leaves.at, flat.leaves.len}, out);
    }
    flat_tree_fini(&flat);
    return st;
}

bp_status bp_call_tree(bp_ctx *c, bp_callable *g, const bp_value *in, bp_value *out)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (!g || !in || !out)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "bp_call_tree: the %s is NULL",
                        !g ? "callable" : in ? "place of the results" : "list of arguments");
    return call_tree(c, g, NULL, NULL, in, out);
}

bp_status bp_run_eager_tree(bp_ctx *c, bp_fn fn, void *user, const bp_value *in, bp_value *out)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (!fn || !in || !out)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "bp_run_eager_tree: the %s is NULL",
                        !fn ? "function" : in ? "place of the results" : "list of arguments");
    return call_tree(c, NULL, fn, user, in, out);
}
