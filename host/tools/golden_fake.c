/* The shape rules against reality: a graph runs on real tensors and then on fakes of the same metadata, node by node.
 * Types, sizes, strides and which inputs a result shares memory with must be equal. Where a size depends on data the
 * run on fakes ends, and what came before is compared. */
#include "host/tools/golden_case.h"
#include <stdlib.h>
#include <string.h>

/* What one result was like when its node had run; absent: there was none. */
typedef struct { bp_tensor *like; uint64_t shares; bool absent; } seen;

typedef struct {
    bp_ctx *c;
    const graph *g;
    bp_tensor *const *inputs;
    uint32_t ninputs;
    VEC(seen) all;       /* of the real run */
    uint32_t next;       /* of the fake run */
    bool fake, equal;
    buf *why;
} watch;

static uint64_t shares(const watch *w, const bp_tensor *t)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < w->ninputs && i < 64; i++)
        bits |= (uint64_t)(w->inputs[i]->store == t->store) << i;
    return bits;
}

static bool remember(watch *w, const bp_tensor *t)
{
    tensor_meta m;
    seen s = {.absent = true};
    if (t) {
        tensor_get_meta(t, &m);
        s = (seen){.like = tensor_new_fake(w->c, &m), .shares = shares(w, t)};
    }
    if ((t && !s.like) || !vec_push(&w->all, s)) {
        tensor_unref(s.like);
        return false;
    }
    return true;
}

static void compare(watch *w, const char *name, uint32_t i, const bp_tensor *t)
{
    const golden_bounds strict = {.strides = true};
    golden_diff d = {.equal = true};
    const seen *s = w->next < w->all.len ? &w->all.at[w->next++] : NULL;
    if (!s || s->absent != !t)
        w->equal = false;
    else if (t)
        golden_compare_type(t, s->like, &strict, &d);
    if (!w->equal)
        buf_printf(w->why, "the shape rule: result %u of \"%s\" is %s", i, name, t ? "a tensor" : "None");
    else if (!d.equal)
        buf_printf(w->why, "the shape rule: \"%s\": %s", name, d.text);
    else if (t && s->shares != shares(w, t))
        buf_printf(w->why, "the shape rule: result %u of \"%s\" shares memory with other inputs", i, name);
    else
        return;
    w->equal = false;
}

static bp_status on_node(void *arg, node_id n, bp_tensor *const *results, uint32_t nresults)
{
    watch *w = arg;
    if (graph_get(w->g, n)->op != BP_NODE_CALL_FUNCTION)
        return BP_OK;
    for (uint32_t i = 0; i < nresults && w->equal; i++) {
        if (w->fake)
            compare(w, graph_get(w->g, n)->name, i, results[i]);
        else if (!remember(w, results[i]))
            return ctx_nomem(w->c);
    }
    return BP_OK;
}

static bp_status run(watch *w, const bp_graph_module *gm)
{
    uint32_t n = graph_output_count(&gm->g);
    bp_tensor **outputs = calloc(n + 1, sizeof *outputs);
    bp_status s = outputs ? graph_run(w->c, gm, w->inputs, w->ninputs, outputs, n, on_node, w) : ctx_nomem(w->c);
    for (uint32_t i = 0; outputs && i < n; i++)
        tensor_unref(outputs[i]);
    free(outputs);
    return s;
}

static bp_tensor **fakes_of(bp_ctx *c, bp_tensor *const *t, uint32_t n)
{
    bp_tensor **out = calloc(n + 1, sizeof *out);
    tensor_meta m;
    for (uint32_t i = 0; out && i < n; i++) {
        tensor_get_meta(t[i], &m);
        out[i] = tensor_new_fake(c, &m);
    }
    if (!out)
        ctx_nomem(c);
    return out;
}

static bool on_fakes(watch *w, const bp_graph_module *gm, bool *by_data)
{
    dispatch_mode mode;
    mode_init_fake(&mode);
    mode_push(w->c, &mode);
    w->fake = true;
    bp_status s = run(w, gm);
    mode_pop(w->c, &mode);
    if (s == BP_FAILED_PRECONDITION) {
        *by_data = true;
        diag_clear(&w->c->diag);
        return w->equal;
    }
    if (s == BP_OK && w->equal && w->next != w->all.len) {
        buf_puts(w->why, "the shape rule: fewer results than there are");
        w->equal = false;
    }
    return s == BP_OK && w->equal;
}

bool golden_check_fake(golden_case *k, const bp_graph_module *gm, bp_tensor *const *inputs, uint32_t n, buf *why)
{
    bp_ctx *c = k->c;
    uint64_t offset = c->rng_offset;
    watch w = {.c = c, .g = &gm->g, .inputs = inputs, .ninputs = n, .equal = true, .why = why};
    bp_tensor **fakes = fakes_of(c, inputs, n);
    bool ok = fakes && ctx_ok(c) && run(&w, gm) == BP_OK;
    if (ok) {
        w.inputs = fakes;
        ok = on_fakes(&w, gm, &k->by_data);
    }
    if (!ctx_ok(c)) {
        buf_puts(why, "the shape rule: ");
        golden_judge_error(k, why);
    }
    c->rng_offset = offset;
    for (uint32_t i = 0; i < w.all.len; i++)
        tensor_unref(w.all.at[i].like);
    vec_fini(&w.all);
    for (uint32_t i = 0; fakes && i < n; i++)
        tensor_unref(fakes[i]);
    free(fakes);
    return ok;
}
