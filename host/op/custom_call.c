/* Calling operators by name or handle, and what is registered for them one by one: fakes, autocast, switches, and the
 * short form that defines an operator with its kernel. */
#include "host/base/log.h"
#include "host/op/aten.h"
#include "host/op/custom_schema.h"
#include "host/op/rows.h"
#include <stdio.h>
#include <string.h>

static const op_row *row_of(const bp_op *op) { return (const op_row *)op; }

/* -- names --------------------------------------------------------------------------------------------------------- */

/* "ns::op.overload" -> "ns.op.overload" */
static bool target_of(const char *name, char *target, size_t cap)
{
    const char *colons = name ? strstr(name, "::") : NULL;
    if (!colons)
        return false;
    bool overload = strchr(colons + 2, '.') != NULL;
    int n = snprintf(target, cap, "%.*s.%s%s", (int)(colons - name), name, colons + 2, overload ? "" : ".default");
    return n > 0 && (size_t)n < cap;
}

const bp_op *bp_op_get(bp_ctx *c, const char *name)
{
    char target[200];
    if (!ctx_ok(c))
        return NULL;
    const op_row *row = target_of(name, target, sizeof target) ? op_by_target(target) : NULL;
    if (row)
        return (const bp_op *)row;
    ctx_fail(c, BP_NOT_FOUND, "there is no operator \"%s\"", name ? name : "NULL");
    diag_hint(&c->diag, "names are \"namespace::name\" or \"namespace::name.overload\"; define it with bp_custom_op or "
                        "bp_library_define");
    return NULL;
}

/* -- autocast ------------------------------------------------------------------------------------------------------ */

static bp_tensor *cast(bp_ctx *c, bp_tensor *t, const custom_reg *r)
{
    bool casts = dtype_is_float(t->dtype) && t->dtype != BP_F64 && t->device_kind == r->device && t->dtype != r->dtype;
    bp_value *args, pos[] = {value_tensor(t), value_dtype(r->dtype)};
    bp_tensor *out = NULL;
    op_call k = {.op = op_at(ROW_private_to_copy_default), .out = &out, .nout = 1};
    if (!casts)
        return t;
    if (!k.op || op_bind_ordered(c, k.op, 2, pos, &args) != BP_OK)
        return NULL;
    k.args = args;
    k.nargs = k.op->schema->nargs;
    return op_dispatch(c, &k) == BP_OK ? scope_own(c, k.out[0]) : NULL;
}

static bp_status cast_value(bp_ctx *c, bp_value *v, const custom_reg *r)
{
    if (v->kind == BP_VALUE_TENSOR)
        v->v.tensor = cast(c, v->v.tensor, r);
    if (v->kind != BP_VALUE_LIST)
        return c->diag.code;
    bp_value *items = arena_memdup(&c->scratch, v->v.items, v->count * sizeof *items);
    if (!items)
        return ctx_nomem(c);
    for (uint32_t i = 0; i < v->count; i++)
        TRY(cast_value(c, &items[i], r));
    v->v.items = items;
    return BP_OK;
}

static int32_t first_device(const schema *s, const bp_value *args)
{
    for (uint32_t i = 0; i < s->nargs; i++)
        for (uint32_t j = 0; j < arg_list_len(args, i); j++)
            if (arg_list_tensor(args, i, j))
                return arg_list_tensor(args, i, j)->device_kind;
    return BP_DEVICE_UNSET;
}

/* Whether a rule holds for the call; its arguments are then cast. */
static bp_status autocast(bp_ctx *c, const op_row *op, bp_value *args, bool *casts)
{
    custom_reg r;
    *casts = c->ambient.autocast_dtype && op->own &&
             custom_find_autocast(op->own, first_device(op->schema, args), &r);
    for (uint32_t i = 0; *casts && i < op->schema->nargs; i++)
        if (!op->schema->args[i].kwarg_only)
            TRY(cast_value(c, &args[i], &r));
    return c->diag.code;
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

/* Numbers that a capture keeps symbolic come as ints with a symbol. */
static bp_status name_symbols(bp_ctx *c, bp_value *v)
{
    if (v->kind == BP_VALUE_INT && v->v.dim.sym)
        *v = pack_dim(NULL, 0, v->v.dim);
    if (v->kind != BP_VALUE_LIST)
        return BP_OK;
    bp_value *items = arena_memdup(&c->scratch, v->v.items, v->count * sizeof *items);
    for (uint32_t i = 0; items && i < v->count; i++)
        TRY(name_symbols(c, &items[i]));
    v->v.items = items;
    return items ? BP_OK : ctx_nomem(c);
}

static bp_status call(bp_ctx *c, const op_row *op, const bp_args *args, op_call *k)
{
    bp_value *bound = NULL;
    bool casts = false;
    scope_push(c); /* what is cast on the way */
    bp_status st = op_bind_ordered(c, op, args ? args->n : 0, args ? args->at : NULL, &bound);
    for (uint32_t i = 0; st == BP_OK && i < op->schema->nargs; i++)
        st = name_symbols(c, &bound[i]);
    if (st == BP_OK)
        st = autocast(c, op, bound, &casts);
    ambient before = c->ambient;
    *k = (op_call){.op = op, .args = bound, .nargs = op->schema->nargs};
    if (casts)
        c->ambient.autocast_dtype = BP_DTYPE_UNSET;
    if (st == BP_OK)
        st = op_dispatch(c, k);
    if (casts)
        c->ambient.autocast_dtype = before.autocast_dtype;
    scope_pop(c);
    return st;
}

static void set_site(bp_ctx *c, const char *file, int32_t line)
{
    if (file)
        bp_site_(c, file, line);
}

/* Gives results to the scope and to outputs. */
static bp_status give(bp_ctx *c, op_call *k, bp_outputs *o)
{
    if (o && !o->at && k->nout) {
        bp_dim size = dim_const((int64_t)(k->nout * sizeof(bp_tensor *))), one = dim_const(1);
        tensor_meta m = {.dtype = BP_U8, .device = {BP_CPU, 0}, .rank = 1, .sizes = &size, .strides = &one};
        bp_tensor *hidden = scope_own(c, tensor_new(c, &m));
        o->at = hidden ? tensor_ptr(hidden) : NULL;
        o->cap = hidden ? k->nout : 0;
    }
    for (uint32_t i = 0; i < k->nout; i++) {
        bp_tensor *t = scope_own(c, k->out[i]);
        if (o && i < o->cap)
            o->at[i] = t;
    }
    if (o)
        o->n = k->nout < o->cap ? k->nout : o->cap;
    if (o && k->nout > o->cap)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "%s gives %u results, and there is room for %u", k->op->label, k->nout,
                        o->cap);
    return c->diag.code;
}

bp_status bp_call_op_at(bp_ctx *c, const bp_op *op, const bp_args *args, bp_outputs *outputs, const char *file,
                        int32_t line)
{
    op_call k;
    if (outputs)
        outputs->n = 0;
    if (!ctx_ok(c))
        return c->diag.code;
    if (!op)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the operator to be called is NULL");
    arena_mark mark = arena_get_mark(&c->scratch);
    set_site(c, file, line);
    bp_status st = call(c, row_of(op), args, &k);
    if (st == BP_OK)
        st = give(c, &k, outputs);
    arena_reset(&c->scratch, mark);
    return st;
}

bp_status bp_call_op_named(bp_ctx *c, const char *name, const bp_args *args, bp_outputs *outputs, const char *file,
                           int32_t line)
{
    const bp_op *op = bp_op_get(c, name);
    return op ? bp_call_op_at(c, op, args, outputs, file, line) : c->diag.code;
}

bp_tensor *bp_call_op1_at(bp_ctx *c, const bp_op *op, const bp_args *args, const char *file, int32_t line)
{
    bp_tensor *few[32];
    bp_outputs out = {few, 0, 32};
    return bp_call_op_at(c, op, args, &out, file, line) == BP_OK && out.n ? few[0] : NULL;
}

bp_tensor *bp_call_op1_named(bp_ctx *c, const char *name, const bp_args *args, const char *file, int32_t line)
{
    const bp_op *op = bp_op_get(c, name);
    return op ? bp_call_op1_at(c, op, args, file, line) : NULL;
}

bp_scalar bp_call_op_number_named(bp_ctx *c, const char *name, const bp_args *args, const char *file, int32_t line)
{
    op_call k;
    bp_scalar number = {0};
    const bp_op *op = bp_op_get(c, name);
    if (!op)
        return number;
    arena_mark mark = arena_get_mark(&c->scratch);
    set_site(c, file, line);
    if (call(c, row_of(op), args, &k) == BP_OK) {
        number = arg_scalar(&k.item, 0);
        give(c, &k, NULL);
        if (number.kind == BP_SCALAR_UNSET && ctx_ok(c))
            ctx_fail(c, BP_INVALID_ARGUMENT, "%s gives no number: its schema is %s", row_of(op)->label,
                     row_of(op)->schema_text);
    }
    arena_reset(&c->scratch, mark);
    return number;
}

/* -- fakes and autocast -------------------------------------------------------------------------------------------- */

bp_status bp_register_fake(bp_ctx *c, bp_library *lib, const char *op, bp_op_fn fake, void *arg, int32_t allow_override)
{
    custom *k = ctx_ok(c) ? custom_named(c, lib, op) : NULL;
    if (!k)
        return c->diag.code;
    if (!fake)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the fake of \"%s\" is NULL", k->name);
    custom_reg r = {.what = CUSTOM_FAKE, .lib = lib ? lib : k->lib, .fn = fake, .arg = arg, .file = c->site_file,
                    .line = c->site_line};
    return custom_register(c, k, &r, allow_override != 0);
}

bp_status bp_register_autocast(bp_ctx *c, bp_library *lib, const char *op, const char *device, bp_dtype dtype)
{
    custom *k = ctx_ok(c) ? custom_named(c, lib, op) : NULL;
    if (!k)
        return c->diag.code;
    bool cpu = device && !strcmp(device, "cpu"), cuda = device && !strcmp(device, "cuda");
    if (!cpu && !cuda)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "autocast is for \"cpu\" or \"cuda\", got \"%s\"",
                        device ? device : "NULL");
    if (!dtype_is_float(dtype))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "autocast of \"%s\" casts to a floating type", k->name);
    custom_reg r = {.what = CUSTOM_AUTOCAST, .lib = lib ? lib : k->lib, .dtype = dtype,
                    .device = cuda ? BP_CUDA : BP_CPU};
    return custom_register(c, k, &r, true);
}

/* -- the short form ------------------------------------------------------------------------------------------------ */

static bool in_list(const char *list, str name)
{
    str rest = str_of(list);
    while (rest.s && rest.n)
        if (str_eq(str_trim(str_split(&rest, ',')), name))
            return true;
    return false;
}

static bp_status check_mutated(bp_ctx *c, const schema *s, const char *mutates)
{
    str rest = str_of(mutates);
    while (rest.s && rest.n) {
        str name = str_trim(str_split(&rest, ','));
        uint32_t i = 0;
        while (i < s->nargs && !str_is(name, s->args[i].name))
            i++;
        if (name.n && i == s->nargs)
            return ctx_fail(c, BP_INVALID_ARGUMENT, "\"%.*s\" of mutates_args is no argument of \"%s::%s\"",
                            (int)name.n, name.s, s->ns, s->name);
        if (name.n && s->args[i].ty.type != TYPE_TENSOR)
            return ctx_fail(c, BP_INVALID_ARGUMENT, "\"%.*s\" of mutates_args is no tensor of \"%s::%s\"", (int)name.n,
                            name.s, s->ns, s->name);
    }
    return BP_OK;
}

static bp_status check_marks(bp_ctx *c, const schema *s, const char *mutates)
{
    buf marked = {0};
    bool same = true;
    for (uint32_t i = 0; i < s->nargs; i++) {
        if (s->args[i].ty.writes)
            buf_printf(&marked, "%s%s", marked.n ? ", " : "", s->args[i].name);
        same &= s->args[i].ty.writes == in_list(mutates, str_of(s->args[i].name));
    }
    if (!same)
        ctx_fail(c, BP_INVALID_ARGUMENT, "mutates_args of \"%s::%s\" is \"%s\", and its schema writes \"%s\"", s->ns,
                 s->name, mutates, buf_text(&marked));
    buf_fini(&marked);
    return c->diag.code;
}

/* "unknown": every tensor is marked, by (aI!) with its place. */
static void mark_all(arena *a, schema *s)
{
    for (uint32_t i = 0; i < s->nargs; i++) {
        char *set = s->args[i].ty.type == TYPE_TENSOR ? arena_printf(a, "a%u", i) : NULL;
        if (!set)
            continue;
        s->args[i].ty.alias = set;
        s->args[i].ty.writes = true;
    }
}

static bp_status check_short(bp_ctx *c, const schema *s, const bp_custom_op_options *o)
{
    if (custom_has_keyword_tensor(s)) {
        ctx_fail(c, BP_UNIMPLEMENTED, "\"%s::%s\" has a tensor by keyword alone", s->ns, s->name);
        diag_hint(&c->diag, "make it a positional argument");
        return c->diag.code;
    }
    int32_t device = schema_find(s, "device");
    if (o->device_types && !custom_has_tensor(s) && (device < 0 || s->args[device].ty.type != TYPE_DEVICE))
        return ctx_fail(c, BP_INVALID_ARGUMENT,
                        "\"%s::%s\" has a kernel for one device and no tensor, so it must have an argument \"Device "
                        "device\"", s->ns, s->name);
    return BP_OK;
}

static bp_status register_devices(bp_ctx *c, custom *k, const char *devices, custom_reg r)
{
    str rest = str_of(devices);
    r.what = CUSTOM_ALL;
    if (!devices)
        return custom_register(c, k, &r, true);
    while (rest.s && rest.n) {
        char name[32];
        str one = str_trim(str_split(&rest, ','));
        snprintf(name, sizeof name, "%.*s", (int)(one.n < 31 ? one.n : 31), one.s);
        if (!custom_device(c, name, &r.what))
            return c->diag.code;
        TRY(custom_register(c, k, &r, true));
    }
    return BP_OK;
}

/* The whole schema as text, checked. */
static bp_status make_schema(bp_ctx *c, arena *a, const char *name, const bp_custom_op_options *o, char *ns,
                             size_t cap, buf *text)
{
    const char *colons = name ? strstr(name, "::") : NULL;
    size_t n = colons ? (size_t)(colons - name) : 0;
    if (!n || n >= cap || !colons[2] || strstr(colons + 2, "::"))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "\"%s\" is no name of an operator, expected \"namespace::name\"",
                        name ? name : "NULL");
    memcpy(ns, name, n);
    ns[n] = 0;
    TRY(custom_check_namespace(c, ns, true));
    if (!o->schema || !o->kernel || !o->mutates_args) {
        ctx_fail(c, BP_INVALID_ARGUMENT, "\"%s\" is defined without %s", name,
                 !o->schema ? "a schema" : !o->kernel ? "a kernel" : "mutates_args");
        diag_hint(&c->diag, "mutates_args names the arguments that it writes: \"\" for none");
        return c->diag.code;
    }
    char *whole = arena_printf(a, "%s%s", name, o->schema + strspn(o->schema, " "));
    const schema *s = whole ? custom_parse(c, a, ns, whole) : NULL;
    if (!s)
        return ctx_ok(c) ? ctx_nomem(c) : c->diag.code;
    bool unknown = !strcmp(o->mutates_args, "unknown") && schema_find(s, "unknown") < 0;
    if (unknown)
        mark_all(a, (schema *)(uintptr_t)s);
    else
        TRY(check_mutated(c, s, o->mutates_args));
    TRY(unknown ? BP_OK : check_marks(c, s, o->mutates_args));
    TRY(check_short(c, s, o));
    schema_print(s, text);
    return text->failed ? ctx_nomem(c) : BP_OK;
}

static const bp_op *define_short(bp_ctx *c, const char *ns, const char *text, const bp_custom_op_options *o,
                                 const char *file, int32_t line)
{
    custom *k = custom_define(c, NULL, ns, text, false, file, line);
    custom_reg r = {.definer = true, .fn = o->kernel, .arg = o->arg, .file = file, .line = line};
    if (!k)
        return NULL;
    if (register_devices(c, k, o->device_types, r) == BP_OK)
        return (const bp_op *)&k->row;
    custom_undefine(k, NULL);
    return NULL;
}

const bp_op *bp_custom_op_at(bp_ctx *c, const char *name, const bp_custom_op_options *options, size_t options_size,
                             const char *file, int32_t line)
{
    bp_custom_op_options o = {0};
    char ns[64];
    arena a = {0};
    buf text = {0};
    if (!ctx_ok(c))
        return NULL;
    if (options)
        memcpy(&o, options, options_size < sizeof o ? options_size : sizeof o);
    const bp_op *op = NULL;
    if (make_schema(c, &a, name, &o, ns, sizeof ns, &text) == BP_OK)
        op = define_short(c, ns, buf_text(&text), &o, file, line);
    buf_fini(&text);
    arena_fini(&a);
    return op;
}

static custom *short_form(bp_ctx *c, const char *name)
{
    custom *k = ctx_ok(c) ? custom_named(c, NULL, name) : NULL;
    if (!k || k->by_short_form)
        return k;
    ctx_fail(c, BP_NOT_FOUND, "\"%s\" is not defined by bp_custom_op", k->name);
    return NULL;
}

bp_status bp_custom_op_remove(bp_ctx *c, const char *name)
{
    custom *k = short_form(c, name);
    if (k)
        custom_undefine(k, NULL);
    return c->diag.code;
}

bp_status bp_register_kernel(bp_ctx *c, const char *op, const char *device_types, bp_op_fn kernel, void *arg)
{
    custom *k = short_form(c, op);
    if (!k)
        return c->diag.code;
    if (!kernel)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the kernel of \"%s\" is NULL", k->name);
    custom_reg r = {.fn = kernel, .arg = arg, .file = c->site_file, .line = c->site_line};
    return register_devices(c, k, device_types, r);
}

int bp_set_kernel_enabled(bp_ctx *c, const char *op, const char *device, int on)
{
    enum custom_what what;
    custom *k = short_form(c, op);
    if (!k || !custom_device(c, device ? device : "", &what))
        return 0;
    int former = custom_switch(k, what, on != 0);
    if (former < 0) {
        ctx_fail(c, BP_NOT_FOUND, "\"%s\" has no kernel for %s", k->name, device ? device : "NULL");
        return 0;
    }
    if (former == (on != 0))
        log_warn(c->rt, "the kernel of \"%s\" for %s is %s already", k->name, device, on ? "on" : "off");
    return former;
}
