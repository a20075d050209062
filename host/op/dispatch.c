/* The mode stack: each mode sees a call before the one below it; at the bottom the call runs.
 *
 * While a mode handles a call, c->modes is what lies below it, so that operators that the mode calls itself do not come
 * back to it. */
#include "host/op/op.h"
#include <stdlib.h>
#include <string.h>

void mode_push(bp_ctx *c, dispatch_mode *m)
{
    m->below = c->modes;
    c->modes = m;
}

void mode_pop(bp_ctx *c, dispatch_mode *m)
{
    if (c->modes == m)
        c->modes = m->below;
    else
        ctx_fail(c, BP_INTERNAL, "mode \"%s\" is popped, and is not the top of the stack", m->name);
}

static bp_status dispatch_to(bp_ctx *c, dispatch_mode *m, op_call *k)
{
    if (!m)
        return c->bottom ? c->bottom(c, k) : op_run_reference(c, k);
    dispatch_mode *top = c->modes;
    c->modes = m->below;
    bp_status st = m->call(c, m, k);
    c->modes = top;
    return st;
}

bp_status op_dispatch_below(bp_ctx *c, dispatch_mode *self, op_call *k)
{
    if (!ctx_ok(c))
        return c->diag.code;
    return dispatch_to(c, self->below, k);
}

/* Resets the arena, and moves the list of results, if the call left it there, below the mark. */
static bp_status give_back(bp_ctx *c, arena_mark mark, op_call *k)
{
    bp_tensor *few[16], **list = few;
    size_t nbytes = k->nout * sizeof *k->out;
    if (k->nout > sizeof few / sizeof *few && !(list = malloc(nbytes)))
        return ctx_nomem(c);
    if (nbytes)
        memcpy(list, k->out, nbytes);
    arena_reset(&c->scratch, mark);
    k->out = arena_memdup(&c->scratch, list, nbytes);
    if (!k->out) {
        for (uint32_t i = 0; i < k->nout; i++)
            tensor_unref(list[i]);
        k->nout = 0;
        ctx_nomem(c);
    }
    if (list != few)
        free(list);
    return c->diag.code;
}

static void annotate(bp_ctx *c, const op_row *op)
{
    if (c->site_file)
        diag_while(&c->diag, "calling %s (%s:%d)", op->target, c->site_file, c->site_line);
    else
        diag_while(&c->diag, "calling %s", op->target);
}

bp_status op_dispatch(bp_ctx *c, op_call *k)
{
    if (!ctx_ok(c))
        return c->diag.code;
    bp_tensor **given = k->out;
    arena_mark mark = arena_get_mark(&c->scratch);
    bp_status st = dispatch_to(c, c->modes, k);
    if (st != BP_OK) {
        annotate(c, k->op);
        arena_reset(&c->scratch, mark);
        k->out = given;
        k->nout = 0;
        return st;
    }
    if (k->out && k->out == given) {
        arena_reset(&c->scratch, mark);
        return BP_OK;
    }
    return give_back(c, mark, k);
}

static bp_status answer_fake(bp_ctx *c, dispatch_mode *self, void *call)
{
    (void)self;
    return op_run_fake(c, call);
}

void mode_init_fake(dispatch_mode *m)
{
    *m = (dispatch_mode){.call = answer_fake, .name = "fake"};
}
