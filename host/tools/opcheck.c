/* Checks of custom operators: each runs the operator on copies of the sample arguments, and says what is wrong.
 *
 * A failing check is an error of the context while it runs; it becomes the check's result, and the next one starts
 * afresh. */
#include "host/grad/derivative.h"
#include "host/op/library.h"
#include "host/pass/decomp.h"
#include "host/sym/env.h"
#include "host/tools/golden_case.h"
#include <backplane/library.h>
#include <string.h>

typedef struct {
    bp_ctx *c;
    const op_row *op;
    const bp_args *sample;
    golden_bounds bounds;
} check;

/* Arguments of one run: tensors are copies, counted in order; items lie in the scratch arena. */
typedef struct { bp_value *at; uint32_t n; bp_tensor **tensors; const schema_arg **of; uint32_t ntensors; } arguments;

/* -- arguments ----------------------------------------------------------------------------------------------------- */

static uint32_t count_tensors(const bp_value *v)
{
    uint32_t n = v->kind == BP_VALUE_TENSOR;
    for (uint32_t i = 0; v->kind == BP_VALUE_LIST && i < v->count; i++)
        n += count_tensors(&v->v.items[i]);
    return n;
}

/* A copy that is laid out alike; a leaf that requires grad if t does. */
static bp_tensor *copy_of(bp_ctx *c, bp_tensor *t)
{
    bp_tensor *copy = bp_clone(c, bp_detach(c, t));
    if (copy && bp_tensor_requires_grad(t))
        bp_tensor_set_requires_grad(c, copy, 1);
    return copy;
}

static void take_tensor(const check *k, arguments *a, bp_value *v, uint32_t arg)
{
    a->tensors[a->ntensors] = copy_of(k->c, v->v.tensor);
    a->of[a->ntensors] = &k->op->schema->args[arg];
    v->v.tensor = a->tensors[a->ntensors++];
}

static bp_status copy_arguments(const check *k, arguments *a)
{
    bp_ctx *c = k->c;
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->sample->n; i++)
        n += count_tensors(&k->sample->at[i]);
    *a = (arguments){.n = k->sample->n, .at = arena_array(&c->scratch, k->sample->n, sizeof *a->at),
                     .tensors = arena_array(&c->scratch, n, sizeof *a->tensors),
                     .of = arena_array(&c->scratch, n, sizeof *a->of)};
    if (!a->at || !a->tensors || !a->of)
        return ctx_nomem(c);
    for (uint32_t i = 0; i < a->n; i++) {
        bp_value *v = &a->at[i];
        *v = k->sample->at[i];
        if (v->kind == BP_VALUE_TENSOR)
            take_tensor(k, a, v, i);
        if (v->kind != BP_VALUE_LIST)
            continue;
        bp_value *items = arena_array(&c->scratch, v->count, sizeof *items);
        if (!items)
            return ctx_nomem(c);
        for (uint32_t j = 0; j < v->count; j++) {
            items[j] = v->v.items[j];
            if (items[j].kind == BP_VALUE_TENSOR)
                take_tensor(k, a, &items[j], i);
        }
        v->v.items = items;
    }
    return c->diag.code;
}

/* Runs the operator eagerly. */
static bp_status run(const check *k, const arguments *a, bp_outputs *out)
{
    *out = (bp_outputs){0};
    return bp_call_op_at(k->c, (const bp_op *)k->op, &(bp_args){a->at, a->n}, out, NULL, 0);
}

/* -- what it writes and aliases ------------------------------------------------------------------------------------ */

/* A tensor's bytes before the call. */
typedef struct { bp_tensor *copy; uint64_t version; } before;

static bool same_values(const bp_tensor *a, const bp_tensor *b)
{
    golden_diff d;
    golden_compare(a, b, &(golden_bounds){.given = true}, &d);
    return d.equal;
}

static bp_status look_after(const check *k, const arguments *a, const before *was, const bp_outputs *out)
{
    bp_ctx *c = k->c;
    for (uint32_t i = 0; i < a->ntensors; i++) {
        const bp_tensor *t = a->tensors[i];
        bool moved = atomic_load(&t->store->version) != was[i].version || !same_values(t, was[i].copy);
        if (moved && !a->of[i]->ty.writes)
            return ctx_fail(c, BP_INVALID_ARGUMENT, "argument \"%s\" is not marked as written, and the kernel wrote it",
                            a->of[i]->name);
        for (uint32_t j = 0; j < out->n; j++)
            if (out->at[j] && out->at[j]->store == t->store && !a->of[i]->ty.alias[0])
                return ctx_fail(c, BP_INVALID_ARGUMENT,
                                "argument \"%s\" is not marked as an alias, and result %u shares its memory",
                                a->of[i]->name, j);
    }
    return BP_OK;
}

static bp_status check_schema(const check *k)
{
    bp_ctx *c = k->c;
    arguments a;
    bp_outputs out;
    TRY(copy_arguments(k, &a));
    before *was = arena_array(&c->scratch, a.ntensors, sizeof *was);
    if (!was)
        return ctx_nomem(c);
    for (uint32_t i = 0; i < a.ntensors; i++)
        was[i] = (before){bp_clone(c, bp_detach(c, a.tensors[i])), atomic_load(&a.tensors[i]->store->version)};
    TRY(c->diag.code);
    bp_status st = run(k, &a, &out);
    diag failure = c->diag;
    diag_clear(&c->diag);
    TRY(look_after(k, &a, was, &out)); /* a failed call may have written too, and that is said first */
    c->diag = failure;
    return st;
}

/* -- gradients ----------------------------------------------------------------------------------------------------- */

static bool any_requires(const arguments *a)
{
    for (uint32_t i = 0; i < a->ntensors; i++)
        if (bp_tensor_requires_grad(a->tensors[i]))
            return true;
    return false;
}

static bool has_derivative(const op_row *op)
{
    const decomp_row *parts = decomp_of(op);
    return grad_row_of(op) || custom_is_composite(op) || (parts && parts->composite);
}

static bp_status check_autograd(const check *k)
{
    arguments a;
    bp_outputs out;
    TRY(copy_arguments(k, &a));
    if (!any_requires(&a))
        return BP_OK;
    TRY(run(k, &a, &out));
    for (uint32_t i = 0; i < out.n; i++) {
        if (!out.at[i] || !bp_tensor_requires_grad(out.at[i]) || has_derivative(k->op))
            continue;
        ctx_fail(k->c, BP_FAILED_PRECONDITION, "result %u requires grad, and the operator has no derivative", i);
        diag_hint(&k->c->diag, "register one with bp_register_autograd, or make it of other operators, by a kernel for "
                               "\"\"");
        return k->c->diag.code;
    }
    return BP_OK;
}

/* -- the fake ------------------------------------------------------------------------------------------------------ */

/* A size that the fake leaves open must fit; it is then what the kernel gave. */
static bp_status settle(const check *k, tensor_meta *m, const bp_tensor *real, uint32_t result)
{
    int64_t min, max;
    for (uint32_t d = 0; d < m->rank && d < real->rank; d++) {
        if (dim_is_const(m->sizes[d]))
            continue;
        sym_bounds(sym_current(), m->sizes[d], &min, &max);
        if (real->sizes[d].value < min || real->sizes[d].value > max)
            return ctx_fail(k->c, BP_INVALID_ARGUMENT, "size %u of result %u is %lld, and the fake says %lld to %lld",
                            d, result, (long long)real->sizes[d].value, (long long)min, (long long)max);
        m->sizes[d] = real->sizes[d];
        for (uint32_t e = 0; e < m->rank; e++) /* strides are made of it */
            if (!dim_is_const(m->strides[e]))
                m->strides[e] = real->strides[e];
    }
    return BP_OK;
}

static bp_status compare_fake(const check *k, shape_out *o, const bp_tensor *real, uint32_t i)
{
    bp_ctx *c = k->c;
    golden_diff d;
    TRY(settle(k, &o->meta, real, i));
    bp_tensor *fake = tensor_new_fake(c, &o->meta);
    if (!fake)
        return c->diag.code;
    golden_compare_type(fake, real, &(golden_bounds){.strides = true}, &d);
    bool device = fake->device_kind == real->device_kind && fake->device_index == real->device_index;
    tensor_unref(fake);
    if (!d.equal)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "result %u of the fake is not as the kernel's: %s", i, d.text);
    return device ? BP_OK
                  : ctx_fail(c, BP_INVALID_ARGUMENT, "result %u of the fake is on another device than the kernel's", i);
}

static bp_status compare_fakes(const check *k, const arguments *a)
{
    bp_ctx *c = k->c;
    bp_outputs out;
    shape_call s = {0};
    bp_value *args = NULL;
    const schema *of = k->op->schema;
    TRY(op_bind_ordered(c, k->op, a->n, a->at, &args));
    if (of->nreturns && of->returns[0].type != TYPE_TENSOR)
        return BP_OK; /* a number has no fake */
    TRY(op_infer(c, k->op, args, &s));
    TRY(run(k, a, &out));
    if (s.nout != out.n)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the fake gives %u results, and the kernel %u", s.nout, out.n);
    for (uint32_t i = 0; i < out.n; i++)
        if (!s.out[i].is_argument)
            TRY(compare_fake(k, &s.out[i], out.at[i], i));
    return BP_OK;
}

static bp_status check_fake(const check *k)
{
    arguments a;
    TRY(copy_arguments(k, &a));
    sym_env *e = sym_env_new();
    if (!e)
        return ctx_nomem(k->c);
    sym_capture_data(e, true);
    sym_scope former = sym_push(e, k->c);
    bp_status st = compare_fakes(k, &a);
    sym_pop(former);
    sym_env_unref(e);
    return st;
}

/* -- compiled against eager ---------------------------------------------------------------------------------------- */

/* The sample with the frame's tensors in the place of its own. */
static bool bind_frame(bp_ctx *c, bp_frame *f, const bp_value *from, uint32_t n, bp_value *to, uint32_t *next)
{
    static const char *const names[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
                                        "x13", "x14", "x15"};
    for (uint32_t i = 0; i < n; i++) {
        to[i] = from[i];
        if (from[i].kind == BP_VALUE_TENSOR) {
            to[i].v.tensor = bp_arg(f, *next, names[*next < 16 ? *next : 15]);
            ++*next;
        }
        if (from[i].kind != BP_VALUE_LIST)
            continue;
        bp_value *items = arena_array(&c->scratch, from[i].count, sizeof *items);
        if (!items || !bind_frame(c, f, from[i].v.items, from[i].count, items, next))
            return ctx_nomem(c), false;
        to[i].v.items = items;
    }
    return true;
}

static void call_operator(bp_ctx *c, bp_frame *f)
{
    const check *k = bp_user(f);
    bp_outputs out = {0};
    uint32_t next = 0;
    bp_value *args = calloc(k->sample->n + 1, sizeof *args);
    arena_mark mark = arena_get_mark(&c->scratch);
    if (!args)
        ctx_nomem(c);
    else if (bind_frame(c, f, k->sample->at, k->sample->n, args, &next))
        bp_call_op_at(c, (const bp_op *)k->op, &(bp_args){args, k->sample->n}, &out, NULL, 0);
    arena_reset(&c->scratch, mark);
    free(args);
    for (uint32_t i = 0; i < out.n; i++)
        bp_return(f, out.at[i]);
}

typedef struct { bp_outputs out; arguments a; bp_tensor **grads; } outcome;

/* Gradients of the sum of all results that take part, by the inputs that require them. */
static bp_status differentiate(const check *k, outcome *o)
{
    bp_ctx *c = k->c;
    bp_tensor *sum = NULL;
    o->grads = arena_array(&c->scratch, o->a.ntensors, sizeof *o->grads);
    if (!o->grads)
        return ctx_nomem(c);
    for (uint32_t i = 0; i < o->out.n; i++) {
        bp_tensor *t = o->out.at[i];
        if (!bp_tensor_requires_grad(t) || !dtype_is_float(t->dtype))
            continue;
        t = bp_sum(c, t);
        sum = sum ? bp_add(c, sum, t) : t;
    }
    for (uint32_t i = 0; sum && i < o->a.ntensors; i++)
        if (bp_tensor_requires_grad(o->a.tensors[i]))
            TRY(bp_grad(c, &sum, NULL, 1, &o->a.tensors[i], 1, &o->grads[i], BP_RETAIN_GRAPH | BP_ALLOW_UNUSED));
    return c->diag.code;
}

static bp_status run_with(const check *k, bool compiled, bool dynamic, outcome *o)
{
    bp_ctx *c = k->c;
    TRY(copy_arguments(k, &o->a));
    bp_compile_options options = {.backend = compiled ? "aot_eager" : NULL, .disable = !compiled, .fullgraph = 1,
                                  .dynamic = dynamic ? 1 : -1, .user = (void *)(uintptr_t)k};
    bp_callable *g = bp_compile(c, call_operator, &options);
    bp_value *in = arena_array(&c->scratch, o->a.ntensors, sizeof *in);
    if (!g || !in) {
        bp_callable_unref(g);
        return ctx_ok(c) ? ctx_nomem(c) : c->diag.code;
    }
    for (uint32_t i = 0; i < o->a.ntensors; i++)
        in[i] = bp_arg_of_tensor(o->a.tensors[i]);
    o->out = (bp_outputs){0};
    bp_call(c, g, &(bp_args){in, o->a.ntensors}, &o->out);
    bp_callable_unref(g);
    return ctx_ok(c) ? differentiate(k, o) : c->diag.code;
}

static bp_status compare_one(const check *k, const bp_tensor *got, const bp_tensor *want, const char *what, uint32_t i)
{
    golden_diff d = {.equal = !got && !want};
    if (!got != !want)
        return ctx_fail(k->c, BP_INVALID_ARGUMENT, "%s %u is there %s alone", what, i, got ? "compiled" : "eagerly");
    if (got)
        golden_compare(got, want, &k->bounds, &d);
    return d.equal ? BP_OK : ctx_fail(k->c, BP_INVALID_ARGUMENT, "compiled, %s %u is not as it is eagerly: %s", what, i,
                                      d.text);
}

static bp_status compare_runs(const check *k, bool dynamic)
{
    outcome eager = {0}, compiled = {0};
    const schema *of = k->op->schema;
    if (of->nreturns && of->returns[0].type != TYPE_TENSOR)
        return BP_OK; /* a number is no part of a graph */
    TRY(run_with(k, false, dynamic, &eager));
    TRY(run_with(k, true, dynamic, &compiled));
    if (eager.out.n != compiled.out.n)
        return ctx_fail(k->c, BP_INVALID_ARGUMENT, "compiled, it gives %u results, and %u eagerly", compiled.out.n,
                        eager.out.n);
    for (uint32_t i = 0; i < eager.out.n; i++)
        TRY(compare_one(k, compiled.out.at[i], eager.out.at[i], "result", i));
    for (uint32_t i = 0; i < eager.a.ntensors; i++) {
        TRY(compare_one(k, compiled.a.tensors[i], eager.a.tensors[i], "argument", i));
        TRY(compare_one(k, compiled.grads[i], eager.grads[i], "gradient", i));
    }
    return BP_OK;
}

static bp_status check_static(const check *k)
{
    return compare_runs(k, false);
}

static bp_status check_dynamic(const check *k)
{
    return compare_runs(k, true);
}

/* -- all ----------------------------------------------------------------------------------------------------------- */

static const struct { const char *name; bp_status (*run)(const check *k); bool usual; } checks[] = {
#define CHECK(name, function, usual) {#name, function, usual},
#include "host/tools/opcheck.def"
#undef CHECK
};
enum { CHECKS = sizeof checks / sizeof *checks };

static bp_status pick_checks(bp_ctx *c, const char *names, bool *on)
{
    str rest = str_of(names);
    for (uint32_t i = 0; i < CHECKS; i++)
        on[i] = !names && checks[i].usual;
    while (rest.s && rest.n) {
        str name = str_trim(str_split(&rest, ','));
        uint32_t i = 0;
        while (i < CHECKS && !str_is(name, checks[i].name))
            i++;
        if (i == CHECKS) {
            ctx_fail(c, BP_INVALID_ARGUMENT, "there is no check \"%.*s\"", (int)name.n, name.s);
            diag_hint(&c->diag, "the checks are test_schema, test_autograd_registration, test_faketensor, "
                                "test_aot_dispatch_static and test_aot_dispatch_dynamic");
            return c->diag.code;
        }
        on[i] = true;
    }
    return BP_OK;
}

/* Runs one in a scope of its own; its failure is left in the context. */
static bp_status run_check(const check *k, uint32_t i)
{
    bp_ctx *c = k->c;
    uint8_t grad = c->ambient.grad_enabled;
    arena_mark mark = arena_get_mark(&c->scratch);
    c->ambient.grad_enabled = 1;
    scope_push(c);
    bp_status st = checks[i].run(k);
    scope_pop(c);
    c->ambient.grad_enabled = grad;
    arena_reset(&c->scratch, mark);
    if (st != BP_OK)
        diag_while(&c->diag, "checking \"%s\": %s", k->op->label, checks[i].name);
    return st;
}

bp_status bp_opcheck_at(bp_ctx *c, const char *op, const bp_args *args, const bp_opcheck_options *options,
                        size_t options_size)
{
    bp_opcheck_options o = {0};
    bool on[CHECKS];
    const bp_op *row = bp_op_get(c, op);
    if (options)
        memcpy(&o, options, options_size < sizeof o ? options_size : sizeof o);
    if (!row)
        return c->diag.code;
    if ((o.atol != 0) != (o.rtol != 0))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "one of atol and rtol is given alone: they go together");
    TRY(pick_checks(c, o.tests, on));
    check k = {.c = c, .op = (const op_row *)row, .sample = args,
               .bounds = {.given = o.atol != 0, .atol = o.atol, .rtol = o.rtol}};
    for (uint32_t i = 0; i < CHECKS; i++) {
        bp_status st = on[i] ? run_check(&k, i) : BP_OK;
        if (on[i] && o.each)
            o.each(o.arg, checks[i].name, st == BP_OK ? "SUCCESS" : diag_text(&c->diag));
        if (st != BP_OK && o.raise_exception)
            return st;
        diag_clear(&c->diag);
    }
    return BP_OK;
}
