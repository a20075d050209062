/* Running custom operators: the kernel on real tensors, the fake on fakes.
 *
 * A kernel runs below autograd and every mode, in a scope of its own; what it returns is checked against its schema:
 * how many, and that a result is neither an argument nor shares memory. A fake runs under a mode that answers every
 * operator by fakes; what it returns is metadata for the shape rule. The twin of an operator that writes runs its
 * kernel on copies of what would be written. */
#include "host/op/checks.h"
#include "host/op/library.h"
#include <string.h>

static bool is_twin(const op_row *op)
{
    return op == &op->own->twin;
}

/* -- what a call writes -------------------------------------------------------------------------------------------- */

static uint32_t tensors_of(const bp_value *args, uint32_t i)
{
    uint32_t n = 0;
    for (uint32_t j = 0; j < arg_list_len(args, i); j++)
        n += arg_list_tensor(args, i, j) != NULL;
    return n;
}

uint32_t custom_count_written(const schema *s, const bp_value *args)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->nargs; i++)
        n += s->args[i].ty.writes ? tensors_of(args, i) : 0;
    return n;
}

bp_tensor *custom_written(const schema *s, const bp_value *args, uint32_t n)
{
    for (uint32_t i = 0; i < s->nargs; i++)
        for (uint32_t j = 0; s->args[i].ty.writes && j < arg_list_len(args, i); j++) {
            bp_tensor *t = arg_list_tensor(args, i, j);
            if (t && n-- == 0)
                return t;
        }
    return NULL;
}

void custom_wrote(const op_row *op, const bp_value *args)
{
    bp_tensor *t;
    for (uint32_t i = 0; (t = custom_written(op->schema, args, i)) != NULL; i++)
        tensor_wrote(t);
}

static int32_t alias_of(const schema *s, uint32_t result)
{
    const char *set = result < s->nreturns ? s->returns[result].alias : "";
    for (uint32_t i = 0; *set && i < s->nargs; i++)
        if (!strcmp(s->args[i].ty.alias, set))
            return (int32_t)i;
    return -1;
}

bp_tensor *custom_result_is(const schema *s, const bp_value *args, uint32_t i)
{
    int32_t of = i < s->nreturns && s->returns[i].writes ? alias_of(s, i) : -1;
    return of >= 0 ? arg_tensor(args, (uint32_t)of) : NULL;
}

bool custom_takes_grad(const op_row *op, const bp_value *args, uint32_t i, uint32_t nout)
{
    if (!is_twin(op))
        return true;
    return i + custom_count_written(op->own->row.schema, args) < nout;
}

bool custom_is_composite(const op_row *op)
{
    custom_reg r;
    return op->own && !is_twin(op) && custom_is_live(op->own) && custom_find(op->own, CUSTOM_COMPOSITE, &r) &&
           !r.off && !custom_find(op->own, CUSTOM_AUTOGRAD, &r);
}

/* -- calling a function of the user's ------------------------------------------------------------------------------ */

typedef struct { dispatch_mode *modes; ambient ambient; const char *file; int32_t line; uint32_t capturing; } held;

static held hold(bp_ctx *c)
{
    return (held){c->modes, c->ambient, c->site_file, c->site_line, c->capturing};
}

static void let_go(bp_ctx *c, const held *h)
{
    c->modes = h->modes;
    c->ambient = h->ambient;
    c->site_file = h->file;
    c->site_line = h->line;
    c->capturing = h->capturing;
}

static void call_fini(bp_op_call *k)
{
    vec_fini(&k->out);
}

static bp_status wrong_count(bp_ctx *c, const bp_op_call *k)
{
    const schema *s = k->schema;
    if (s->nreturns == 1 && s->returns[0].type != TYPE_TENSOR)
        return k->number.kind != BP_VALUE_NONE
                   ? BP_OK
                   : ctx_fail(c, BP_INVALID_ARGUMENT, "%s: its %s gave no number, and its schema says %s", k->of->name,
                              k->fake ? "fake" : "kernel", schema_type_name(s->returns[0].type));
    bool list = s->nreturns == 1 && s->returns[0].list;
    if (list || k->out.len == s->nreturns)
        return BP_OK;
    return ctx_fail(c, BP_INVALID_ARGUMENT, "%s: its %s gave %u results, and its schema says %u", k->of->name,
                    k->fake ? "fake" : "kernel", k->out.len, s->nreturns);
}

static bp_status call_user(bp_ctx *c, bp_op_call *k, bp_op_fn fn)
{
    fn(c, k);
    TRY(c->diag.code);
    TRY(wrong_count(c, k));
    for (uint32_t i = 0; i < k->out.len; i++)
        if (!k->out.at[i])
            return ctx_fail(c, BP_INVALID_ARGUMENT, "%s: result %u is NULL", k->of->name, i);
    return BP_OK;
}

/* -- results of a kernel ------------------------------------------------------------------------------------------- */

static bool is_among(const bp_op_call *k, const bp_tensor *t, const bp_tensor *except)
{
    for (uint32_t i = 0; i < k->nargs; i++)
        for (uint32_t j = 0; j < arg_list_len(k->args, i); j++) {
            const bp_tensor *a = arg_list_tensor(k->args, i, j);
            if (a && a != except && a->store == t->store)
                return true;
        }
    return false;
}

static bp_status aliases(bp_ctx *c, const bp_op_call *k, uint32_t i, const char *what)
{
    ctx_fail(c, BP_INVALID_ARGUMENT,
             "%s: result %u %s: a result (1) must not also be an input of the operator, and (2) may not alias any "
             "input or other result", k->of->name, i, what);
    diag_hint(&c->diag, "return a clone of it: bp_clone(c, x)");
    return c->diag.code;
}

static bp_status check_aliases(bp_ctx *c, const bp_op_call *k)
{
    for (uint32_t i = 0; i < k->out.len; i++) {
        const bp_tensor *t = k->out.at[i], *is = custom_result_is(k->schema, k->args, i);
        int32_t view = alias_of(k->schema, i);
        if (is && t != is)
            return ctx_fail(c, BP_INVALID_ARGUMENT, "%s: result %u must be argument \"%s\" itself", k->of->name, i,
                            k->schema->args[view].name);
        if (!is && view < 0 && is_among(k, t, NULL))
            return aliases(c, k, i, "shares memory with an input");
        for (uint32_t j = 0; j < i && view < 0; j++)
            if (k->out.at[j]->store == t->store)
                return aliases(c, k, i, "shares memory with another result");
    }
    return BP_OK;
}

static bp_status take_results(bp_ctx *c, op_call *to, const bp_op_call *k)
{
    TRY(results_reserve(c, to, k->out.len));
    for (uint32_t i = 0; i < k->out.len; i++)
        to->out[i] = tensor_ref(k->out.at[i]);
    to->item = k->number;
    return BP_OK;
}

/* Marks of eager: a result that is no argument requires grad where a derivative may be asked for. */
static void mark_results(const bp_ctx *c, op_call *k, const prepared *p)
{
    for (uint32_t i = 0; i < k->nout; i++) {
        bp_tensor *t = k->out[i];
        if (!is_twin(k->op) && custom_result_is(k->op->schema, p->args, i))
            continue;
        bool on = grad_on(c) && p->any_grad && (dtype_is_float(t->dtype) || dtype_is_complex(t->dtype)) &&
                  custom_takes_grad(k->op, p->args, i, k->nout);
        t->flags &= (uint8_t)~(TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF);
        t->flags |= on ? TENSOR_REQUIRES_GRAD : TENSOR_IS_LEAF;
    }
}

/* -- the kernel ---------------------------------------------------------------------------------------------------- */

/* Where a call without tensors runs: its argument `device`. */
static int32_t device_of(const schema *s, const bp_value *args, const prepared *p)
{
    int32_t i = custom_has_tensor(s) ? -1 : schema_find(s, "device");
    if (i >= 0 && args[i].kind == BP_VALUE_DEVICE)
        return args[i].v.device.kind;
    return p->device.kind ? p->device.kind : BP_CPU;
}

static bp_status run_kernel(bp_ctx *c, op_call *k, const custom_reg *r, const bp_value *args)
{
    const schema *s = k->op->own->row.schema;
    bp_op_call call = {.of = k->op->own, .schema = s, .args = args, .nargs = s->nargs, .user = r->arg};
    held h = hold(c);
    c->modes = NULL;
    c->capturing = 0;
    c->ambient.grad_enabled = 0;
    c->ambient.autocast_dtype = BP_DTYPE_UNSET;
    scope_push(c);
    bp_status st = call_user(c, &call, r->fn);
    if (st == BP_OK)
        st = check_aliases(c, &call);
    if (st == BP_OK)
        st = take_results(c, k, &call);
    scope_pop(c);
    let_go(c, &h);
    call_fini(&call);
    return st;
}

/* -- the twin ------------------------------------------------------------------------------------------------------ */

/* A copy that is laid out as t is, as far as that is dense. */
static bp_tensor *copy_of(bp_ctx *c, bp_tensor *t)
{
    tensor_meta m;
    tensor_get_meta(t, &m);
    bp_dim *strides = arena_array(&c->scratch, m.rank, sizeof *strides);
    if (!strides)
        return ctx_nomem(c), NULL;
    layout_preserve(c, t, strides);
    m.strides = strides;
    m.offset = dim_const(0);
    bp_tensor *copy = tensor_new(c, &m);
    if (copy && tensor_copy(c, copy, t) != BP_OK) {
        tensor_unref(copy);
        copy = NULL;
    }
    return scope_own(c, copy);
}

static bp_status copy_written(bp_ctx *c, const schema *s, const bp_value *from, bp_value *to)
{
    for (uint32_t i = 0; i < s->nargs; i++) {
        to[i] = from[i];
        if (!s->args[i].ty.writes || from[i].kind == BP_VALUE_NONE)
            continue;
        if (from[i].kind == BP_VALUE_TENSOR) {
            to[i] = value_tensor(copy_of(c, from[i].v.tensor));
            TRY(c->diag.code);
            continue;
        }
        bp_value *items = arena_memdup(&c->scratch, from[i].v.items, from[i].count * sizeof *items);
        for (uint32_t j = 0; items && j < from[i].count; j++)
            if (items[j].kind == BP_VALUE_TENSOR)
                items[j] = value_tensor(copy_of(c, items[j].v.tensor));
        TRY(items ? c->diag.code : ctx_nomem(c));
        to[i].v.items = items;
    }
    return BP_OK;
}

/* The new results, then the copies that were written. */
static bp_status twin_results(bp_ctx *c, op_call *k, const op_call *inner, const schema *s, const bp_value *copies)
{
    uint32_t n = 0, nwritten = custom_count_written(s, copies);
    TRY(results_reserve(c, k, inner->nout + nwritten));
    for (uint32_t i = 0; i < inner->nout; i++)
        if (!custom_result_is(s, copies, i))
            k->out[n++] = tensor_ref(inner->out[i]);
    for (uint32_t i = 0; i < nwritten; i++)
        k->out[n++] = tensor_ref(custom_written(s, copies, i));
    k->nout = n;
    return BP_OK;
}

static bp_status run_twin(bp_ctx *c, op_call *k, const custom_reg *r, const prepared *p)
{
    const schema *s = k->op->own->row.schema;
    bp_value *args = arena_array(&c->scratch, s->nargs, sizeof *args);
    op_call inner = {.op = &k->op->own->row};
    if (!args)
        return ctx_nomem(c);
    scope_push(c);
    bp_status st = copy_written(c, s, p->args, args);
    if (st == BP_OK)
        st = run_kernel(c, &inner, r, args);
    if (st == BP_OK)
        st = twin_results(c, k, &inner, s, args);
    for (uint32_t i = 0; i < inner.nout; i++)
        tensor_unref(inner.out[i]);
    scope_pop(c);
    return st;
}

bp_status custom_run(bp_ctx *c, op_call *k, const prepared *p)
{
    custom_reg r;
    const custom *own = k->op->own;
    if (!custom_kernel(c, own, device_of(own->row.schema, p->args, p), &r))
        return c->diag.code;
    if (is_twin(k->op)) {
        TRY(run_twin(c, k, &r, p));
    } else {
        custom_wrote(k->op, p->args);
        TRY(run_kernel(c, k, &r, p->args));
    }
    mark_results(c, k, p);
    return BP_OK;
}

bp_status custom_run_composite(bp_ctx *c, op_call *k)
{
    custom_reg r;
    if (!custom_find(k->op->own, CUSTOM_COMPOSITE, &r)) /* taken back since it was asked */
        return ctx_fail(c, BP_NOT_FOUND, "operator \"%s\" is gone: what defined it was destroyed", k->op->target);
    const schema *s = k->op->schema;
    bp_op_call call = {.of = k->op->own, .schema = s, .args = k->args, .nargs = s->nargs, .user = r.arg};
    scope_push(c);
    bp_status st = call_user(c, &call, r.fn);
    if (st == BP_OK)
        st = take_results(c, k, &call);
    scope_pop(c);
    call_fini(&call);
    k->returns_list = s->nreturns == 1 && s->returns[0].list;
    return st;
}

/* -- the fake ------------------------------------------------------------------------------------------------------ */

static bool needs_no_fake(const custom *k)
{
    return !k->row.schema->nreturns && custom_writes(k);
}

static bool find_fake(const custom *k, custom_reg *r)
{
    return custom_find(k, CUSTOM_FAKE, r) || custom_find(k, CUSTOM_META, r) || custom_find(k, CUSTOM_COMPOSITE, r);
}

bool custom_has_fake(const op_row *op)
{
    custom_reg r;
    return needs_no_fake(op->own) || find_fake(op->own, &r);
}

static bp_tensor *fake_of(bp_ctx *c, bp_tensor *t)
{
    tensor_meta m;
    if (!t || tensor_is_fake(t))
        return t;
    tensor_get_meta(t, &m);
    bp_tensor *f = tensor_new_fake(c, &m);
    if (f)
        f->flags |= t->flags & (TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF);
    return scope_own(c, f);
}

static bool fake_leaf(void *arg, bp_value *leaf)
{
    bp_ctx *c = arg;
    if (leaf->kind == BP_VALUE_TENSOR)
        *leaf = value_tensor(fake_of(c, leaf->v.tensor));
    return ctx_ok(c);
}

static bp_status add_meta(bp_ctx *c, shape_call *s, const bp_tensor *t, int32_t view)
{
    shape_out *o = shape_add_out(c, s, t->dtype, t->rank, t->sizes);
    if (!o)
        return c->diag.code;
    for (uint32_t d = 0; d < t->rank; d++)
        o->meta.strides[d] = t->strides[d];
    o->meta.device = tensor_device(t);
    if (view >= 0) {
        o->alias_of = view;
        o->meta.offset = t->offset;
    }
    return BP_OK;
}

/* A new value of what is written: of its sizes, laid out as the copy will be. */
static bp_status add_copies(bp_ctx *c, shape_call *s, const schema *of)
{
    bp_tensor *t;
    for (uint32_t i = 0; (t = custom_written(of, s->args, i)) != NULL; i++) {
        shape_out *o = shape_add_out(c, s, t->dtype, t->rank, t->sizes);
        if (!o)
            return c->diag.code;
        layout_preserve(c, t, o->meta.strides);
        o->meta.device = tensor_device(t);
    }
    return c->diag.code;
}

static bp_status add_results(bp_ctx *c, shape_call *s, const bp_op_call *k)
{
    bool twin = is_twin(s->op);
    for (uint32_t i = 0; i < k->out.len; i++) {
        const bp_tensor *is = custom_result_is(k->schema, s->args, i);
        if (!is)
            TRY(add_meta(c, s, k->out.at[i], alias_of(k->schema, i)));
        else if (!twin && !shape_add_same(c, s, (uint32_t)alias_of(k->schema, i)))
            return c->diag.code;
    }
    return twin ? add_copies(c, s, k->schema) : BP_OK;
}

static bp_status run_fake(bp_ctx *c, shape_call *s, const custom_reg *r, bp_value *args)
{
    const custom *own = s->op->own;
    bp_op_call call = {.of = own, .schema = own->row.schema, .args = args, .nargs = s->nargs, .user = r->arg,
                       .fake = true};
    dispatch_mode fake;
    held h = hold(c);
    mode_init_fake(&fake);
    c->modes = NULL;
    mode_push(c, &fake);
    c->ambient.grad_enabled = 0;
    scope_push(c);
    bp_status st = BP_OK;
    for (uint32_t i = 0; i < s->nargs && st == BP_OK; i++)
        st = value_map(c, &s->args[i], fake_leaf, c, &args[i]) ? BP_OK : c->diag.code;
    if (st == BP_OK)
        st = call_user(c, &call, r->fn);
    if (st == BP_OK)
        st = add_results(c, s, &call);
    scope_pop(c);
    let_go(c, &h);
    call_fini(&call);
    if (st != BP_OK)
        diag_while(&c->diag, "running the fake of %s", own->name);
    return st;
}

static bp_status no_fake(bp_ctx *c, const custom *k)
{
    ctx_fail(c, BP_UNIMPLEMENTED, "there is no fake of \"%s\", and it is called on fake tensors", k->name);
    diag_hint(&c->diag, "register one: bp_register_fake(c, NULL, \"%s\", fake, NULL, 0)", k->name);
    return c->diag.code;
}

bp_status shape_custom(bp_ctx *c, shape_call *s)
{
    const custom *own = s->op->own;
    custom_reg r;
    if (!custom_is_live(own))
        return custom_kernel(c, own, BP_CPU, &r) ? BP_OK : c->diag.code;
    bp_value *args = arena_array(&c->scratch, s->nargs, sizeof *args);
    if (!args)
        return ctx_nomem(c);
    if (find_fake(own, &r))
        return run_fake(c, s, &r, args);
    if (!needs_no_fake(own))
        return no_fake(c, own);
    return is_twin(s->op) ? add_copies(c, s, own->row.schema) : BP_OK;
}

bp_dim bp_new_dynamic_size(bp_ctx *c, bp_op_call *k, int64_t min, int64_t max)
{
    bp_dim size = dim_const(0);
    if (!ctx_ok(c))
        return size;
    if (min < 0 || (max >= 0 && max < min)) {
        bp_op_fail(c, k, BP_INVALID_ARGUMENT, "a new size from %lld to %lld, expected bounds from 0 up", (long long)min,
                   (long long)max);
    } else if (!k->fake) {
        bp_op_fail(c, k, BP_FAILED_PRECONDITION, "a new dynamic size is asked for outside of a fake");
    } else if (shape_data_size(c, min, dim_const(max), &size)) {
        return size;
    } else if (ctx_ok(c)) {
        bp_op_fail(c, k, BP_FAILED_PRECONDITION, "its sizes depend on data, which fake tensors do not have");
        diag_hint(&c->diag, "set capture_dynamic_output_shape_ops = yes to capture it");
    }
    return dim_const(0);
}
