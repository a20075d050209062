/* Optimizers: a step is one captured function over all parameters that have a gradient.
 *
 * Arguments are the learning rate, a 0-d tensor so that another one compiles nothing, and the gradients; parameters
 * and state are attributes, written in place under no_grad. The order of operations is PyTorch's, of one tensor at a
 * time. */
#include "host/nn/nn.h"
#include "host/tensor/module.h"
#include <stdio.h>
#include <stdlib.h>

struct bp_nn_optimizer {
    bp_nn_optimizer_kind kind;
    bp_nn_optimizer_options o;
    char *backend;
    bp_module *params, *state;
    uint32_t nparams;          /* entries of params that there were at first; those of another role are skipped */
    bp_callable *step;
};

/* One parameter in a step. */
typedef struct { bp_ctx *c; bp_frame *f; const bp_nn_optimizer *o; const char *name; bp_tensor *p, *g, *lr; } update;

static bp_tensor *state_of(const update *u, const char *leaf)
{
    return nn_attr(u->c, u->f, u->o->state, u->name, leaf);
}

/* -- the updates --------------------------------------------------------------------------------------------------- */

static bp_tensor *decayed(const update *u)
{
    double decay = u->o->o.weight_decay;
    return decay != 0 ? bp_aten_add_tensor(u->c, u->g, u->p, bp_scalar_float(decay)) : u->g;
}

static void update_sgd(const update *u)
{
    bp_ctx *c = u->c;
    const bp_nn_optimizer_options *o = &u->o->o;
    bp_tensor *g = decayed(u);
    if (o->momentum != 0) {
        bp_tensor *kept = state_of(u, "momentum_buffer"), *t = state_of(u, "step");
        bp_tensor *moved = bp_aten_mul_scalar(c, kept, bp_scalar_float(o->momentum));
        bp_tensor *next = bp_aten_add_tensor(c, moved, g, bp_scalar_float(1 - o->dampening));
        if (o->dampening != 0) /* the first gradient is taken whole */
            next = bp_aten_where_self(c, bp_aten_eq_scalar(c, t, bp_scalar_int(0)), g, next);
        bp_aten_copy_inplace_default(c, kept, next, 0);
        bp_aten_add_inplace_scalar(c, t, bp_scalar_int(1), bp_scalar_int(1));
        g = o->nesterov ? bp_aten_add_tensor(c, g, kept, bp_scalar_float(o->momentum)) : kept;
    }
    bp_aten_sub_inplace_tensor(c, u->p, bp_aten_mul_tensor(c, g, u->lr), bp_scalar_int(1));
}

/* 1 - beta ** step, in double as PyTorch's. */
static bp_tensor *correction(bp_ctx *c, double beta, bp_tensor *t)
{
    return bp_aten_rsub_scalar(c, bp_aten_pow_scalar(c, bp_scalar_float(beta), t), bp_scalar_int(1), bp_scalar_int(1));
}

static void update_adam(const update *u)
{
    bp_ctx *c = u->c;
    const bp_nn_optimizer_options *o = &u->o->o;
    bp_tensor *g = u->o->kind == BP_NN_ADAM ? decayed(u) : u->g;
    bp_tensor *m = state_of(u, "exp_avg"), *v = state_of(u, "exp_avg_sq"), *t = state_of(u, "step");
    if (u->o->kind == BP_NN_ADAMW && o->weight_decay != 0) {
        bp_tensor *shrink = bp_aten_mul_scalar(c, u->lr, bp_scalar_float(o->weight_decay));
        bp_aten_mul_inplace_tensor(c, u->p, bp_aten_rsub_scalar(c, shrink, bp_scalar_int(1), bp_scalar_int(1)));
    }
    t = bp_aten_add_inplace_scalar(c, t, bp_scalar_int(1), bp_scalar_int(1));
    bp_aten_lerp_inplace_scalar(c, m, g, bp_scalar_float(1 - o->beta1));
    bp_aten_mul_inplace_scalar(c, v, bp_scalar_float(o->beta2));
    bp_aten_addcmul_inplace_default(c, v, g, g, bp_scalar_float(1 - o->beta2));
    bp_tensor *most = v;
    if (o->amsgrad) {
        most = state_of(u, "max_exp_avg_sq");
        bp_aten_copy_inplace_default(c, most, bp_aten_maximum_default(c, most, v), 0);
    }
    bp_tensor *deviation = bp_aten_sqrt_default(c, correction(c, o->beta2, t));
    bp_tensor *denom = bp_aten_div_tensor(c, bp_aten_sqrt_default(c, most), deviation);
    denom = bp_aten_add_scalar(c, denom, bp_scalar_float(o->eps), bp_scalar_int(1));
    bp_tensor *size = bp_aten_div_tensor(c, u->lr, correction(c, o->beta1, t));
    bp_tensor *move = bp_aten_div_tensor(c, bp_aten_mul_tensor(c, m, size), denom);
    bp_aten_sub_inplace_tensor(c, u->p, move, bp_scalar_int(1));
}

/* A row a kind: what it is called, how it updates, and what it keeps of each parameter, of its shape. */
typedef struct { const char *name; void (*update)(const update *u); double decay; } optimizer_row;
static const optimizer_row ROWS[] = {
    [BP_NN_SGD] = {"sgd", update_sgd, 0},
    [BP_NN_ADAM] = {"adam", update_adam, 0},
    [BP_NN_ADAMW] = {"adamw", update_adam, 1e-2},
};

static void run_step(bp_ctx *c, bp_frame *f)
{
    const bp_nn_optimizer *o = bp_user(f);
    int grad = bp_set_grad_enabled(c, 0);
    bp_tensor *lr = bp_arg(f, 0, "lr");
    for (uint32_t i = 0, at = 1; i < o->nparams && ctx_ok(c); i++) {
        const module_entry *e = &o->params->entries.at[i];
        char name[256];
        if (e->role != BP_ROLE_PARAMETER || !nn_join(c, "grad", e->name, name))
            continue;
        bp_tensor *g = bp_arg_optional(f, at++, name);
        if (!g)
            continue;
        update u = {c, f, o, e->name, bp_attr(f, o->params, e->name), g, lr};
        if (o->o.maximize)
            u.g = bp_aten_neg_default(c, g);
        ROWS[o->kind].update(&u);
    }
    bp_set_grad_enabled(c, grad);
}

/* -- state --------------------------------------------------------------------------------------------------------- */

/* Adds a tensor of zeros unless it is there. */
static bp_status need(bp_ctx *c, bp_nn_optimizer *o, const module_entry *e, const char *leaf, bool is_count)
{
    char name[256];
    if (!nn_join(c, e->name, leaf, name))
        return c->diag.code;
    if (module_find(o->state, name) >= 0)
        return BP_OK;
    bp_dims scalar = {NULL, 0, 1}, shape = {e->t->sizes, e->t->rank, 1};
    bp_tensor *zeros = nn_full(c, is_count ? scalar : shape, is_count ? BP_F64 : (bp_dtype)e->t->dtype, 0);
    return zeros ? bp_module_add_buffer(c, o->state, name, zeros) : c->diag.code;
}

static bp_status need_state(bp_ctx *c, bp_nn_optimizer *o, const module_entry *e)
{
    if (o->kind == BP_NN_SGD) {
        if (o->o.momentum == 0)
            return BP_OK;
        TRY(need(c, o, e, "step", true));
        return need(c, o, e, "momentum_buffer", false);
    }
    TRY(need(c, o, e, "step", true));
    TRY(need(c, o, e, "exp_avg", false));
    TRY(need(c, o, e, "exp_avg_sq", false));
    return o->o.amsgrad ? need(c, o, e, "max_exp_avg_sq", false) : BP_OK;
}

/* -- the object ---------------------------------------------------------------------------------------------------- */

static bp_status out_of_range(bp_ctx *c, const bp_nn_optimizer *o, const char *what, double value, const char *range)
{
    return ctx_fail(c, BP_INVALID_ARGUMENT, "%s: %s is %g, and %s is expected", ROWS[o->kind].name, what, value, range);
}

static bp_status check_options(bp_ctx *c, bp_nn_optimizer *o)
{
    bp_nn_optimizer_options *p = &o->o;
    p->lr = p->lr != 0 ? p->lr : 1e-3;
    p->weight_decay = p->weight_decay != 0 ? p->weight_decay : ROWS[o->kind].decay;
    p->beta1 = p->beta1 != 0 ? p->beta1 : 0.9;
    p->beta2 = p->beta2 != 0 ? p->beta2 : 0.999;
    p->eps = p->eps != 0 ? p->eps : 1e-8;
    const struct { const char *what; double value; bool below_one; } checks[] = {
        {"lr", p->lr, false}, {"weight_decay", p->weight_decay, false}, {"momentum", p->momentum, false},
        {"beta1", p->beta1, true}, {"beta2", p->beta2, true}, {"eps", p->eps, false},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (!(checks[i].value >= 0 && (!checks[i].below_one || checks[i].value < 1)))
            return out_of_range(c, o, checks[i].what, checks[i].value,
                                checks[i].below_one ? "0 <= it < 1" : "0 or more");
    if (p->nesterov && (p->momentum == 0 || p->dampening != 0))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "sgd: nesterov needs a momentum, and no dampening (momentum is %g, "
                        "dampening %g)", p->momentum, p->dampening);
    return BP_OK;
}

static bp_status fill(bp_ctx *c, bp_nn_optimizer *o, bp_module *m)
{
    TRY(check_options(c, o));
    o->params = module_ref(m);
    o->nparams = m->entries.len;
    o->state = bp_module_new(c);
    o->backend = o->o.backend ? strdup(o->o.backend) : NULL;
    if (!o->state || (o->o.backend && !o->backend))
        return ctx_nomem(c);
    o->state->load_role = BP_ROLE_BUFFER;
    o->o.backend = o->backend;
    bp_compile_options how = {.backend = o->backend, .user = o, .disable = o->o.disable};
    o->step = bp_compile_at(c, run_step, &how, sizeof how, ROWS[o->kind].name, __FILE__, __LINE__);
    return o->step ? BP_OK : c->diag.code;
}

bp_nn_optimizer *bp_nn_optimizer_new_at(bp_ctx *c, bp_nn_optimizer_kind kind, bp_module *m,
                                        const bp_nn_optimizer_options *given, size_t size)
{
    NN_OPTIONS(bp_nn_optimizer_options, options, given, size);
    if (!ctx_ok(c))
        return NULL;
    if (!m || (uint32_t)kind >= sizeof ROWS / sizeof *ROWS) {
        ctx_fail(c, BP_INVALID_ARGUMENT, m ? "an optimizer of kind %d is unknown" : "an optimizer without a module",
                 (int)kind);
        return NULL;
    }
    bp_nn_optimizer *o = calloc(1, sizeof *o);
    if (!o)
        return ctx_nomem(c), NULL;
    o->kind = kind;
    o->o = options;
    if (fill(c, o, m) == BP_OK)
        return o;
    bp_nn_optimizer_unref(o);
    return NULL;
}

void bp_nn_optimizer_unref(bp_nn_optimizer *o)
{
    if (!o)
        return;
    bp_callable_unref(o->step);
    bp_module_unref(o->params);
    bp_module_unref(o->state);
    free(o->backend);
    free(o);
}

/* The arguments of a step, in `at`; gradients are borrowed. */
static bp_status gather(bp_ctx *c, bp_nn_optimizer *o, bp_value *at, uint32_t *n)
{
    double lr = o->o.lr;
    at[0] = bp_arg_of_tensor(bp_tensor_from_at(c, BP_F64, 0, NULL, &lr, __FILE__, __LINE__));
    *n = 1;
    for (uint32_t i = 0; i < o->nparams; i++) {
        const module_entry *e = &o->params->entries.at[i];
        if (e->role != BP_ROLE_PARAMETER)
            continue;
        bp_tensor *g = bp_tensor_grad(c, e->t);
        if (g)
            TRY(need_state(c, o, e));
        at[(*n)++] = bp_arg_of_tensor(g);
    }
    return ctx_ok(c) ? BP_OK : c->diag.code;
}

bp_status bp_nn_optimizer_step(bp_ctx *c, bp_nn_optimizer *o)
{
    if (!ctx_ok(c))
        return c->diag.code;
    bp_value *at = malloc(((size_t)o->nparams + 1) * sizeof *at);
    if (!at)
        return ctx_nomem(c);
    bp_scope_begin(c);
    bp_args args = {at, 0};
    bp_outputs outs = {0};
    bp_status st = gather(c, o, at, &args.n);
    if (st == BP_OK)
        st = bp_call(c, o->step, &args, &outs);
    bp_scope_end(c);
    free(at);
    return st;
}

void bp_nn_optimizer_zero_grad(bp_ctx *c, bp_nn_optimizer *o)
{
    for (uint32_t i = 0; i < o->nparams; i++)
        if (o->params->entries.at[i].role == BP_ROLE_PARAMETER)
            bp_tensor_set_grad(c, o->params->entries.at[i].t, NULL);
}

void bp_nn_optimizer_set_lr(bp_nn_optimizer *o, double lr) { o->o.lr = lr; }
bp_module *bp_nn_optimizer_state(bp_nn_optimizer *o) { return o->state; }
bp_callable *bp_nn_optimizer_callable(bp_nn_optimizer *o) { return o->step; }
