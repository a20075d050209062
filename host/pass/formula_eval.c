/* Evaluating formulas.
 *
 * The values of a call are the row's constants with its parts filled in, on the stack. What a part makes is pushed on a
 * list of temporary tensors, and dropped behind the call that takes it; the result of a root is what is left. */
#include "host/pass/formula_tree.h"
#include "host/op/rows.h"
#include "sdk/base/vec.h"
#include <string.h>

typedef struct {
    bp_ctx *c;
    const formula *f;
    const formula_env *env;
    VEC(bp_tensor *) temps;
} eval;

static bp_status value_of(eval *v, const expr *e, bp_value *out);

static bp_status keep_temp(eval *v, bp_tensor *t)
{
    if (!t || vec_push(&v->temps, t))
        return BP_OK;
    tensor_unref(t);
    return ctx_nomem(v->c);
}

/* Drops the temporary tensors behind the first n. */
static void drop_temps(eval *v, uint32_t n)
{
    while (v->temps.len > n)
        tensor_unref(vec_pop(&v->temps));
}

static bp_status fail(eval *v, const char *what)
{
    return op_fail(v->c, v->f->op, BP_INVALID_ARGUMENT, "its formula %s", what);
}

/* -- gradients that are zero --------------------------------------------------------------------------------------- */

static bp_status zeros_like_result(eval *v, uint32_t i, bp_value *out)
{
    const bp_tensor *like = i < v->env->nresults && v->env->results ? v->env->results[i] : NULL;
    if (!like)
        return fail(v, "needs a gradient that is zero, and the result that tells its sizes is not there");
    const op_row *op = op_at(ROW_zeros_default);
    if (!op)
        return ctx_nomem(v->c);
    bp_value args[] = {value_dims(v->c, like->sizes, like->rank), value_dtype(like->dtype), value_none(),
                       {.kind = BP_VALUE_DEVICE, .v.device = tensor_device(like)}, value_none()};
    bp_tensor *t = NULL;
    op_call k = {.op = op, .args = args, .nargs = op->schema->nargs, .out = &t, .nout = 1};
    TRY(op_dispatch(v->c, &k));
    *out = value_tensor(k.out[0]);
    return keep_temp(v, k.out[0]);
}

static bool is_zero_grad(const eval *v, const expr *e)
{
    return e->kind == EXPR_GRAD && (!v->env->grads || !v->env->grads[e->index]);
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

static bp_status fill(eval *v, const expr *e, bp_value *args)
{
    memcpy(args, e->args, e->nargs * sizeof *args);
    for (uint32_t i = 0; i < e->nparts; i++) {
        bp_value *arg = &args[e->at[i]];
        const schema_ty *ty = e->row ? &e->row->schema->args[e->at[i]].ty : NULL;
        if (is_zero_grad(v, e->parts[i]) && !(ty && ty->optional))
            TRY(zeros_like_result(v, e->parts[i]->index, arg));
        else
            TRY(value_of(v, e->parts[i], arg));
    }
    return BP_OK;
}

/* The results as new references, in `room` or, if they are a list, in the scratch arena. */
static bp_status call(eval *v, const expr *e, bp_tensor **room, op_call *k)
{
    bp_value args[FORMULA_ARGS];
    uint32_t temps = v->temps.len;
    const schema *s = e->row->schema;
    bp_status st = fill(v, e, args);
    if (!st) {
        *k = (op_call){.op = e->row, .args = args, .nargs = e->nargs, .out = room, .nout = FORMULA_RESULTS};
        if (s->nreturns == 1 && s->returns[0].list) {
            k->out = NULL;
            k->nout = 0;
        }
        st = op_dispatch(v->c, k);
    }
    drop_temps(v, temps);
    return st;
}

/* Result i of a call as a temporary tensor. */
static bp_status call_one(eval *v, const expr *e, uint32_t which, bp_value *out)
{
    bp_tensor *room[FORMULA_RESULTS] = {NULL}, *t = NULL;
    op_call k;
    TRY(call(v, e, room, &k));
    for (uint32_t i = 0; i < k.nout; i++)
        if (i == which)
            t = k.out[i];
        else
            tensor_unref(k.out[i]);
    *out = value_tensor(t);
    return keep_temp(v, t);
}

static bp_status conj_of(eval *v, const expr *e, bp_value *out)
{
    bp_value args[FORMULA_ARGS];
    TRY(fill(v, e, args));
    *out = args[0];
    if (out->kind != BP_VALUE_TENSOR || !dtype_is_complex(((const bp_tensor *)out->v.tensor)->dtype))
        return BP_OK;
    bp_tensor *t = NULL;
    op_call k = {.op = e->row, .args = args, .nargs = e->nargs, .out = &t, .nout = 1};
    TRY(op_dispatch(v->c, &k));
    *out = value_tensor(k.out[0]);
    return keep_temp(v, k.out[0]);
}

/* A list that an operator gives, as a list. */
static bp_status call_list(eval *v, const expr *e, bp_value *out)
{
    op_call k;
    bp_status st = call(v, e, NULL, &k);
    bp_value *items = st ? NULL : arena_array(&v->c->scratch, k.nout, sizeof *items);
    if (!st && !items)
        st = ctx_nomem(v->c);
    for (uint32_t i = 0; items && i < k.nout; i++) {
        items[i] = value_tensor(k.out[i]);
        bp_status kept = keep_temp(v, k.out[i]);
        st = st ? st : kept;
    }
    if (!st)
        *out = value_list(items, k.nout);
    return st;
}

/* -- numbers and metadata ------------------------------------------------------------------------------------------ */

static bp_status arith_int(bp_ctx *c, char how, bp_dim a, bp_dim b, bp_value *out)
{
    *out = value_dim(how == '+' ? dim_add(c, a, b) : how == '-' ? dim_sub(c, a, b) : dim_mul(c, a, b));
    return c->diag.code;
}

static bp_status arith_complex(eval *v, char how, const double a[2], const double b[2], bp_value *out)
{
    double re = a[0] * b[0] - a[1] * b[1], im = a[0] * b[1] + a[1] * b[0];
    if (how == '+' || how == '-') {
        double sign = how == '+' ? 1 : -1;
        re = a[0] + sign * b[0];
        im = a[1] + sign * b[1];
    } else if (how == '/') {
        double norm = b[0] * b[0] + b[1] * b[1];
        if (norm == 0)
            return fail(v, "divides by zero");
        re = (a[0] * b[0] + a[1] * b[1]) / norm;
        im = (a[1] * b[0] - a[0] * b[1]) / norm;
    }
    *out = (bp_value){.kind = BP_VALUE_COMPLEX, .v.f = {re, im}};
    return BP_OK;
}

static bp_status arith_float(eval *v, char how, double a, double b, bp_value *out)
{
    if (how == '/' && b == 0)
        return fail(v, "divides by zero");
    *out = value_float(how == '+' ? a + b : how == '-' ? a - b : how == '*' ? a * b : a / b);
    return BP_OK;
}

static bp_status arith(eval *v, const expr *e, bp_value *out)
{
    bp_value both[2];
    const char how = (char)e->index;
    uint32_t widest = 0;
    double parts[2][2];
    for (uint32_t i = 0; i < 2; i++) {
        TRY(value_of(v, e->parts[i], &both[i]));
        if (both[i].kind == BP_VALUE_NODE)
            return op_fail(v->c, v->f->op, BP_UNIMPLEMENTED,
                           "its formula computes with a number that only a run tells");
        if (both[i].kind < BP_VALUE_BOOL || both[i].kind > BP_VALUE_COMPLEX)
            return fail(v, "computes with an argument that is None");
        if (both[i].kind == BP_VALUE_BOOL)
            both[i] = value_int(both[i].v.i);
        widest = both[i].kind > widest ? both[i].kind : widest;
        parts[i][1] = both[i].kind == BP_VALUE_COMPLEX ? both[i].v.f[1] : 0;
    }
    if (widest == BP_VALUE_INT && how != '/')
        return arith_int(v->c, how, both[0].v.dim, both[1].v.dim, out);
    for (uint32_t i = 0; i < 2; i++)
        parts[i][0] = arg_float(both, i); /* among floats an integer is a number */
    if (widest == BP_VALUE_COMPLEX)
        return arith_complex(v, how, parts[0], parts[1], out);
    return arith_float(v, how, parts[0][0], parts[1][0], out);
}

static bp_status meta_of(eval *v, const expr *e, bp_value *out)
{
    bp_value of;
    uint32_t temps = v->temps.len;
    if (is_zero_grad(v, e->parts[0]))
        TRY(zeros_like_result(v, e->parts[0]->index, &of));
    else
        TRY(value_of(v, e->parts[0], &of));
    if (of.kind != BP_VALUE_TENSOR)
        return fail(v, "asks for the metadata of a tensor that is None");
    const bp_tensor *t = of.v.tensor;
    switch (e->kind) {
    case EXPR_SIZES: *out = value_dims(v->c, t->sizes, t->rank); break;
    case EXPR_DTYPE: *out = value_dtype(t->dtype); break;
    case EXPR_RANK: *out = value_int(t->rank); break;
    default: *out = value_dim(tensor_numel(v->c, t)); break;
    }
    drop_temps(v, temps);
    return v->c->diag.code;
}

/* -- all ----------------------------------------------------------------------------------------------------------- */

static bp_status list_of(eval *v, const expr *e, bp_value *out)
{
    bp_value *items = arena_array(&v->c->scratch, e->nargs, sizeof *items);
    if (!items)
        return ctx_nomem(v->c);
    *out = value_list(items, e->nargs);
    return fill(v, e, items);
}

/* Tensors in *out are borrowed: a name's, or temporary. */
static bp_status value_of(eval *v, const expr *e, bp_value *out)
{
    switch (e->kind) {
    case EXPR_VALUE: *out = e->value; return BP_OK;
    case EXPR_ARG: *out = v->env->args[e->index]; return BP_OK;
    case EXPR_RESULT:
        *out = value_tensor(v->env->results && e->index < v->env->nresults ? v->env->results[e->index] : NULL);
        return BP_OK;
    case EXPR_GRAD:
        *out = value_tensor(v->env->grads && e->index < v->env->nresults ? v->env->grads[e->index] : NULL);
        return BP_OK;
    case EXPR_CALL:
        return e->row->schema->nreturns == 1 && e->row->schema->returns[0].list ? call_list(v, e, out)
                                                                                : call_one(v, e, 0, out);
    case EXPR_CONJ: return conj_of(v, e, out);
    case EXPR_ITEM: return call_one(v, e->parts[0], e->index, out);
    case EXPR_LIST: return list_of(v, e, out);
    case EXPR_ARITH: return arith(v, e, out);
    default: return meta_of(v, e, out);
    }
}

/* The tensor of a root, owned by a scope; NULL: None, or an error. */
static bp_tensor *root(eval *v, const expr *e)
{
    bp_value out;
    bp_status st = is_zero_grad(v, e) ? zeros_like_result(v, e->index, &out) : value_of(v, e, &out);
    if (st || out.kind != BP_VALUE_TENSOR)
        return NULL;
    if (!v->temps.len)
        return scope_own(v->c, tensor_ref(out.v.tensor));
    bp_tensor *t = vec_pop(&v->temps);
    drop_temps(v, 0);
    return scope_own(v->c, t);
}

static void eval_end(eval *v, arena_mark mark)
{
    drop_temps(v, 0);
    vec_fini(&v->temps);
    arena_reset(&v->c->scratch, mark);
}

bp_tensor *formula_eval(bp_ctx *c, const formula *f, const formula_env *env)
{
    if (!ctx_ok(c))
        return NULL;
    eval v = {.c = c, .f = f, .env = env};
    arena_mark mark = arena_get_mark(&c->scratch);
    bp_tensor *t = root(&v, f->roots[0]);
    eval_end(&v, mark);
    return t;
}

/* A formula that is one call: all its results, owned by the scope. */
static bp_status whole_call(eval *v, bp_tensor **room, op_call *k)
{
    TRY(call(v, v->f->roots[0], room, k));
    for (uint32_t i = 0; i < k->nout; i++)
        if (k->out[i])
            k->out[i] = scope_own(v->c, k->out[i]);
    return v->c->diag.code;
}

static bp_status too_few(eval *v, uint32_t have, uint32_t n)
{
    return op_fail(v->c, v->f->op, BP_INTERNAL, "its formula gives %u results, and %u are expected", have, n);
}

static bool is_one_call(const formula *f)
{
    return !f->tuple && f->roots[0]->kind == EXPR_CALL;
}

bp_status formula_eval_all(bp_ctx *c, const formula *f, const formula_env *env, bp_tensor **out, uint32_t n)
{
    if (!ctx_ok(c))
        return c->diag.code;
    eval v = {.c = c, .f = f, .env = env};
    bp_tensor *room[FORMULA_RESULTS] = {NULL};
    op_call k = {0};
    arena_mark mark = arena_get_mark(&c->scratch);
    if (is_one_call(f) && whole_call(&v, room, &k) == BP_OK) {
        if (k.nout < n)
            too_few(&v, k.nout, n);
        for (uint32_t i = 0; i < n && i < k.nout; i++)
            out[i] = k.out[i];
    } else if (f->nroots < n) {
        too_few(&v, f->nroots, n);
    } else {
        for (uint32_t i = 0; i < n && ctx_ok(c); i++)
            out[i] = root(&v, f->roots[i]);
    }
    eval_end(&v, mark);
    return c->diag.code;
}

bp_status formula_eval_list(bp_ctx *c, const formula *f, const formula_env *env, bp_tensor ***out, uint32_t *n)
{
    if (!ctx_ok(c))
        return c->diag.code;
    eval v = {.c = c, .f = f, .env = env};
    op_call k = {0};
    if (!is_one_call(f))
        return op_fail(c, f->op, BP_INTERNAL, "its formula is not one call");
    bp_tensor **room = arena_array(&c->scratch, FORMULA_RESULTS, sizeof *room);
    if (!room)
        return ctx_nomem(c);
    TRY(whole_call(&v, room, &k));
    drop_temps(&v, 0);
    vec_fini(&v.temps);
    *out = k.out;
    *n = k.nout;
    return BP_OK;
}
