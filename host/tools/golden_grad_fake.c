/* The same derivatives on fakes: forward and backward of a graph run with nothing computed, and must give gradients
 * where the real run gave some, of its sizes and types. So rows that look at data are found. */
#include "host/grad/tape.h"
#include "host/tools/golden_case.h"
#include <stdlib.h>

typedef struct {
    bp_ctx *c;
    const golden_grads *real;
    bp_tensor **inputs, **wanted, **outputs, **roots, **grads, **got;
    uint32_t noutputs;
    bool forward; /* it ran */
} fake_run;

static bp_tensor *fake_of(bp_ctx *c, const bp_tensor *t)
{
    tensor_meta m;
    tensor_get_meta(t, &m);
    bp_tensor *fake = tensor_new_fake(c, &m);
    if (fake)
        fake->flags = t->flags & (TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF | TENSOR_WRAPPED_NUMBER);
    return fake;
}

static bool make_room(fake_run *r, const golden_call *call)
{
    const golden_grads *g = r->real;
    r->noutputs = graph_output_count(&call->gm->g);
    r->inputs = calloc(call->ninputs + 1, sizeof *r->inputs);
    r->wanted = calloc(g->nwanted + 1, sizeof *r->wanted);
    r->outputs = calloc(r->noutputs + 1, sizeof *r->outputs);
    r->roots = calloc(g->nroots + 1, sizeof *r->roots);
    r->grads = calloc(g->nroots + 1, sizeof *r->grads);
    r->got = calloc(g->nwanted + 1, sizeof *r->got);
    return r->inputs && r->wanted && r->outputs && r->roots && r->grads && r->got;
}

static void drop(bp_tensor **list, uint32_t n)
{
    for (uint32_t i = 0; list && i < n; i++)
        tensor_unref(list[i]);
    free(list);
}

static void fake_run_fini(fake_run *r, const golden_call *call)
{
    drop(r->inputs, call->ninputs);
    drop(r->outputs, r->noutputs);
    drop(r->grads, r->real->nroots);
    drop(r->got, r->real->nwanted);
    free(r->wanted);
    free(r->roots);
}

static bp_status run_both_ways(fake_run *r, const golden_call *call)
{
    bp_ctx *c = r->c;
    const golden_grads *g = r->real;
    for (uint32_t i = 0; i < call->ninputs; i++) {
        if (!(r->inputs[i] = fake_of(c, call->inputs[i])))
            return c->diag.code;
        for (uint32_t k = 0; k < g->nwanted; k++)
            r->wanted[k] = g->wanted[k] == call->inputs[i] ? r->inputs[i] : r->wanted[k];
    }
    TRY(graph_run(c, call->gm, r->inputs, call->ninputs, r->outputs, r->noutputs, NULL, NULL));
    r->forward = true;
    for (uint32_t i = 0; i < g->nroots; i++) {
        r->roots[i] = r->outputs[g->root_at[i]];
        if (!(r->grads[i] = fake_of(c, g->grads[i])))
            return c->diag.code;
    }
    return tape_backward(c, r->roots, r->grads, g->nroots, r->wanted, r->got, g->nwanted, TAPE_ALLOW_UNUSED);
}

static bool same_shape(const bp_tensor *a, const bp_tensor *b)
{
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (uint32_t d = 0; same && d < a->rank; d++)
        same = dim_eq(a->sizes[d], b->sizes[d]);
    return same;
}

static bool judge(const fake_run *r, buf *why)
{
    for (uint32_t i = 0; i < r->real->nwanted; i++) {
        const bp_tensor *got = r->got[i], *want = r->real->got[i];
        char x[160], y[160];
        if (!got == !want && (!got || (tensor_is_fake(got) && same_shape(got, want))))
            continue;
        buf_printf(why, "gradient %u on fakes is %s, expected %s", i,
                   !got ? "None" : tensor_is_fake(got) ? tensor_describe(got, x, sizeof x) : "a tensor with data",
                   want ? tensor_describe(want, y, sizeof y) : "None");
        return false;
    }
    return true;
}

bool golden_grad_on_fakes(golden_case *k, const golden_call *call, const golden_grads *g, buf *why)
{
    bp_ctx *c = k->c;
    fake_run r = {.c = c, .real = g};
    dispatch_mode fakes, tape;
    bool ok = make_room(&r, call);
    mode_init_fake(&fakes);
    tape_mode_init(&tape);
    mode_push(c, &fakes);
    mode_push(c, &tape);
    bp_status st = ok ? run_both_ways(&r, call) : ctx_nomem(c);
    mode_pop(c, &tape);
    mode_pop(c, &fakes);
    /* A graph whose sizes depend on data does not run on fakes. */
    if (st == BP_OK)
        ok = judge(&r, why);
    else if (r.forward) {
        buf_printf(why, "on fakes: %s", c->diag.message);
        ok = false;
    }
    diag_clear(&c->diag);
    fake_run_fini(&r, call);
    return ok;
}
