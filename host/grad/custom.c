/* Derivatives of custom operators (custom.h).
 *
 * A setup function names what it keeps: inputs and results become saved values of the node, with their versions, like
 * those of any operator; other tensors are held as they are. The backward runs as a row written in C does, so what it
 * calls is recorded wherever a derivative is. */
#include "host/grad/custom.h"
#include "host/grad/write.h"
#include <string.h>

enum kept { KEPT_NONE, KEPT_INPUT, KEPT_RESULT, KEPT_OTHER };
typedef struct { enum kept kind; uint32_t at; bp_tensor *t; } entry;

struct custom_saved {
    VEC(entry) entries;
    bp_backward_fn backward;
    void *user;
    void *data;
    void (*destroy)(void *data);
};

struct bp_op_grad {
    custom_saved *saved;
    tape_node *n;               /* in setup */
    const op_call *k;
    const bp_value *args;
    formula_reads *reads;
    grad_call *g;               /* in backward */
    uint32_t given;             /* arguments whose gradient was given */
};

/* -- registration -------------------------------------------------------------------------------------------------- */

bp_status bp_register_autograd(bp_ctx *c, bp_library *lib, const char *op, bp_backward_fn backward,
                               bp_setup_context_fn setup, void *arg)
{
    custom *k = ctx_ok(c) ? custom_named(c, lib, op) : NULL;
    if (!k)
        return c->diag.code;
    if (!backward)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the backward of \"%s\" is NULL", k->name);
    if (custom_writes(k)) {
        ctx_fail(c, BP_FAILED_PRECONDITION, "\"%s\" is not functional, and takes no derivative: %s", k->name,
                 k->row.schema_text);
        diag_hint(&c->diag, "define a functional operator, and register the derivative for that");
        return c->diag.code;
    }
    if (custom_has_keyword_tensor(k->row.schema))
        return ctx_fail(c, BP_UNIMPLEMENTED, "\"%s\" has a tensor by keyword alone, and takes no derivative", k->name);
    custom_reg r = {.what = CUSTOM_AUTOGRAD, .lib = lib ? lib : k->lib, .backward = backward, .setup = setup,
                    .arg = arg, .file = c->site_file, .line = c->site_line};
    return custom_register(c, k, &r, true);
}

static bp_status run_backward(bp_ctx *c, grad_call *g);

const grad_row *custom_grad_row(const op_row *op)
{
    static const grad_row row = {.fn = run_backward};
    custom_reg r;
    return op == &op->own->row && custom_find(op->own, CUSTOM_AUTOGRAD, &r) ? &row : NULL;
}

bp_status custom_run_parts(bp_ctx *c, dispatch_mode *self, op_call *k)
{
    dispatch_mode *below = c->modes;
    if (self)
        c->modes = self;
    bp_status st = custom_run_composite(c, k);
    c->modes = below;
    return st;
}

/* -- what is kept -------------------------------------------------------------------------------------------------- */

void custom_saved_drop(custom_saved *s)
{
    for (uint32_t i = 0; s && i < s->entries.len; i++) {
        tensor_unref(s->entries.at[i].t);
        s->entries.at[i].t = NULL;
    }
}

void custom_saved_free(custom_saved *s)
{
    custom_saved_drop(s);
    if (s && s->destroy)
        s->destroy(s->data);
    if (s)
        vec_fini(&s->entries);
    free(s);
}

static bool find_result(const op_call *k, const bp_tensor *t, uint32_t *at)
{
    for (*at = 0; *at < k->nout; ++*at)
        if (k->out[*at] == t)
            return true;
    return false;
}

static bool find_input(const bp_op_grad *g, const bp_tensor *t, uint32_t *at)
{
    uint32_t nargs = g->k->op->schema->nargs, n = grad_count_inputs(g->args, nargs);
    for (*at = 0; *at < n; ++*at)
        if (grad_input_at(g->args, nargs, *at, NULL) == t)
            return true;
    return false;
}

static bp_status keep(bp_ctx *c, bp_op_grad *g, bp_tensor *t, entry *e)
{
    *e = (entry){0};
    if (!t)
        return BP_OK;
    if (find_input(g, t, &e->at)) {
        e->kind = KEPT_INPUT;
        return save_input_data(c, g->n, e->at, t);
    }
    if (find_result(g->k, t, &e->at)) {
        e->kind = KEPT_RESULT;
        g->reads->results |= UINT64_C(1) << (e->at & 63);
        return BP_OK;
    }
    *e = (entry){KEPT_OTHER, 0, tensor_ref(t)};
    g->n->saves = 1;
    return BP_OK;
}

void bp_op_grad_save(bp_ctx *c, bp_op_grad *g, bp_tensor *t)
{
    entry e;
    if (!ctx_ok(c))
        return;
    if (!g->n) {
        ctx_fail(c, BP_FAILED_PRECONDITION, "a tensor is kept for the backward outside of a setup function");
        return;
    }
    if (keep(c, g, t, &e) == BP_OK && !vec_push(&g->saved->entries, e)) {
        tensor_unref(e.t);
        ctx_nomem(c);
    }
}

void bp_op_grad_set_data(bp_ctx *c, bp_op_grad *g, void *data, void (*destroy)(void *data))
{
    if (!ctx_ok(c) || !g->n) {
        if (ctx_ok(c))
            ctx_fail(c, BP_FAILED_PRECONDITION, "data are kept for the backward outside of a setup function");
        if (destroy)
            destroy(data);
        return;
    }
    if (g->saved->destroy)
        g->saved->destroy(g->saved->data);
    g->saved->data = data;
    g->saved->destroy = destroy;
}

bp_status custom_setup(bp_ctx *c, tape_node *n, const op_call *k, const bp_value *args, formula_reads *reads)
{
    custom_reg r;
    custom_saved *s = calloc(1, sizeof *s);
    if (!s)
        return ctx_nomem(c);
    n->u.call.own = s;
    if (!custom_find(k->op->own, CUSTOM_AUTOGRAD, &r))
        return ctx_fail(c, BP_NOT_FOUND, "the derivative of \"%s\" is gone", k->op->own->name);
    s->backward = r.backward;
    s->user = r.arg;
    if (!r.setup)
        return BP_OK;
    bp_op_grad g = {.saved = s, .n = n, .k = k, .args = args, .reads = reads};
    bp_op_call call = {.of = k->op->own, .schema = k->op->schema, .args = args, .nargs = k->op->schema->nargs,
                       .user = r.arg, .results = k->out, .nresults = k->nout};
    uint8_t grad = c->ambient.grad_enabled;
    const char *file = c->site_file;
    c->ambient.grad_enabled = 0;
    scope_push(c);
    r.setup(c, &g, &call);
    scope_pop(c);
    c->ambient.grad_enabled = grad;
    c->site_file = file;
    if (!ctx_ok(c))
        diag_while(&c->diag, "setting up the derivative of %s", k->op->own->name);
    return c->diag.code;
}

/* -- the backward -------------------------------------------------------------------------------------------------- */

void *bp_op_grad_data(const bp_op_grad *g)
{
    return g->saved->data;
}

void *bp_op_grad_user(const bp_op_grad *g)
{
    return g->saved->user;
}

bp_tensor *bp_op_grad_saved(bp_ctx *c, const bp_op_grad *g, uint32_t i)
{
    if (!ctx_ok(c))
        return NULL;
    if (!g->g || i >= g->saved->entries.len) {
        ctx_fail(c, BP_OUT_OF_RANGE, "saved tensor %u is asked for, and %u were kept", i, g->saved->entries.len);
        return NULL;
    }
    const entry *e = &g->saved->entries.at[i];
    switch (e->kind) {
    case KEPT_INPUT: return grad_input_at(g->g->args, g->g->op->schema->nargs, e->at, NULL);
    case KEPT_RESULT: return e->at < g->g->nresults ? g->g->results[e->at] : NULL;
    case KEPT_OTHER: return e->t;
    default: return NULL;
    }
}

const bp_value *bp_op_grad_arg(const bp_op_grad *g, uint32_t i)
{
    const bp_value *args = g->g ? g->g->args : g->args;
    uint32_t n = g->g ? g->g->op->schema->nargs : g->k->op->schema->nargs;
    return i < n ? &args[i] : NULL;
}

uint32_t bp_op_grad_count(const bp_op_grad *g)
{
    return g->g ? g->g->nresults : 0;
}

bp_tensor *bp_op_grad_of(bp_ctx *c, bp_op_grad *g, uint32_t i)
{
    return g->g ? grad_of(c, g->g, i) : NULL;
}

/* The range of inputs that argument i is. */
static uint32_t inputs_of(const bp_op_grad *g, uint32_t i, uint32_t *first)
{
    *first = grad_count_inputs(g->g->args, i);
    return grad_count_inputs(g->g->args, i + 1) - *first;
}

int bp_op_grad_needs(const bp_op_grad *g, uint32_t i)
{
    uint32_t first, n = g->g && i < g->g->op->schema->nargs ? inputs_of(g, i, &first) : 0;
    for (uint32_t k = 0; k < n; k++)
        if (g->g->needs[first + k])
            return 1;
    return 0;
}

static void give(bp_ctx *c, bp_op_grad *g, bp_tensor *const *t, uint32_t n, bool list)
{
    uint32_t first = 0, at = g->given++;
    if (!ctx_ok(c) || !g->g || at >= g->g->op->schema->nargs)
        return; /* how many there are is checked behind it */
    const schema_arg *a = &g->g->op->schema->args[at];
    uint32_t there = inputs_of(g, at, &first);
    bool any = false;
    for (uint32_t i = 0; i < n; i++)
        any |= t[i] != NULL;
    if (any && (!there || (list ? n != there : a->ty.list)))
        ctx_fail(c, BP_INVALID_ARGUMENT, "the backward of \"%s\" gives %u gradients for argument \"%s\", which takes "
                 "%s", g->g->op->own->name, n, a->name, !there ? "none" : a->ty.list ? "one an item" : "one");
    for (uint32_t i = 0; ctx_ok(c) && any && i < n; i++)
        g->g->out[first + i] = t[i];
}

void bp_op_grad_return(bp_ctx *c, bp_op_grad *g, bp_tensor *t)
{
    give(c, g, &t, 1, false);
}

void bp_op_grad_return_list(bp_ctx *c, bp_op_grad *g, bp_tensor *const *t, uint32_t n)
{
    give(c, g, t, n, true);
}

static bp_status run_backward(bp_ctx *c, grad_call *g)
{
    bp_op_grad call = {.saved = g->own, .g = g};
    if (!g->own)
        return ctx_fail(c, BP_INTERNAL, "the forward of \"%s\" kept nothing", g->op->own->name);
    g->own->backward(c, &call);
    if (ctx_ok(c) && call.given != g->op->schema->nargs) {
        ctx_fail(c, BP_INVALID_ARGUMENT,
                 "the backward of \"%s\" gave a wrong number of gradients: %u, expected %u, one an argument",
                 g->op->own->name, call.given, g->op->schema->nargs);
        diag_hint(&c->diag, "give NULL for arguments that have no gradient");
    }
    return c->diag.code;
}
