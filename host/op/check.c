/* Arguments are made ready: checked against the schema, numbers in a tensor's place wrapped, devices looked at. */
#include "host/op/run.h"

struct wrapped {
    bp_tensor *t;
    wrapped *next;
};

static const char *kind_name(const bp_value *v)
{
    static const char *const names[] = {
        [BP_VALUE_NONE] = "None",
        [BP_VALUE_NODE] = "a node",
        [BP_VALUE_TENSOR] = "a tensor",
        [BP_VALUE_BOOL] = "a bool",
        [BP_VALUE_INT] = "an int",
        [BP_VALUE_FLOAT] = "a float",
        [BP_VALUE_COMPLEX] = "a complex number",
        [BP_VALUE_STRING] = "a string",
        [BP_VALUE_DTYPE] = "a dtype",
        [BP_VALUE_LAYOUT] = "a layout",
        [BP_VALUE_DEVICE] = "a device",
        [BP_VALUE_MEMORY_FORMAT] = "a memory format",
        [BP_VALUE_LIST] = "a list",
        [BP_VALUE_GENERATOR] = "a generator",
    };
    return v->kind < sizeof names / sizeof *names && names[v->kind] ? names[v->kind] : "a value of an unknown kind";
}

static bp_status does_not_fit(bp_ctx *c, const op_row *op, uint32_t i, const bp_value *v)
{
    const schema_arg *g = &op->schema->args[i];
    buf type = {0};
    schema_print_type(&g->ty, &type);
    const bp_value *bad = v;
    for (uint32_t k = 0; v->kind == BP_VALUE_LIST && k < v->count; k++) {
        bp_value one = {.kind = BP_VALUE_LIST, .count = 1, .v.items = &v->v.items[k]};
        if (!schema_fits(&g->ty, &one)) {
            bad = &v->v.items[k];
            break;
        }
    }
    bp_status st = op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"%s\" %s %s, expected %s", g->name,
                           bad == v ? "is" : "holds", kind_name(bad), buf_text(&type));
    buf_fini(&type);
    return st;
}

static bool holds_null(const bp_value *v)
{
    return v->kind == BP_VALUE_TENSOR && !v->v.tensor;
}

static bp_tensor *wrap_number(bp_ctx *c, const bp_value *v)
{
    static const bp_dtype of_kind[] = {
        [BP_VALUE_BOOL] = BP_BOOL, [BP_VALUE_INT] = BP_I64, [BP_VALUE_FLOAT] = BP_F64, [BP_VALUE_COMPLEX] = BP_C128,
    };
    bool symbol = v->kind == BP_VALUE_INT && !dim_is_const(v->v.dim);
    bp_tensor *t = symbol ? tensor_new_fake(c, &(tensor_meta){BP_I64, {BP_CPU, 0}, 0, NULL, NULL, {0}})
                          : tensor_contiguous_new(c, of_kind[v->kind], 0, NULL);
    if (!t)
        return NULL;
    t->flags |= TENSOR_WRAPPED_NUMBER;
    if (symbol) /* no rule reads the value of a number in a tensor's place */
        return t;
    num n = {.kind = NUM_INT};
    if (v->kind == BP_VALUE_FLOAT || v->kind == BP_VALUE_COMPLEX) {
        n.kind = v->kind == BP_VALUE_FLOAT ? NUM_FLOAT : NUM_COMPLEX;
        n.f = v->v.f[0];
        n.im = v->kind == BP_VALUE_COMPLEX ? v->v.f[1] : 0;
    } else {
        n.i = v->kind == BP_VALUE_INT ? dim_int(c, v->v.dim) : v->v.i;
    }
    dtype_store(t->dtype, tensor_ptr(t), n);
    return t;
}

static bp_status wrap_in_place(bp_ctx *c, prepared *p, bp_value *v)
{
    if (v->kind < BP_VALUE_BOOL || v->kind > BP_VALUE_COMPLEX)
        return BP_OK;
    wrapped *w = arena_alloc(&c->scratch, sizeof *w);
    if (!w)
        return ctx_nomem(c);
    w->t = wrap_number(c, v);
    if (!w->t)
        return c->diag.code;
    w->next = p->made;
    p->made = w;
    *v = value_tensor(w->t);
    return BP_OK;
}

static bool holds_number(const bp_value *v)
{
    for (uint32_t k = 0; v->kind == BP_VALUE_LIST && k < v->count; k++)
        if (holds_number(&v->v.items[k]))
            return true;
    return v->kind >= BP_VALUE_BOOL && v->kind <= BP_VALUE_COMPLEX;
}

/* Replaces args[i], or its items, by wrapped numbers; *args is copied before the first change. */
static bp_status wrap_argument(bp_ctx *c, const op_row *op, prepared *p, uint32_t i)
{
    if (!holds_number(&p->args[i]))
        return BP_OK;
    bp_value *copy = arena_memdup(&c->scratch, p->args, op->schema->nargs * sizeof *copy);
    if (!copy)
        return ctx_nomem(c);
    p->args = copy;
    if (copy[i].kind != BP_VALUE_LIST)
        return wrap_in_place(c, p, &copy[i]);
    bp_value *items = arena_memdup(&c->scratch, copy[i].v.items, copy[i].count * sizeof *items);
    if (!items)
        return ctx_nomem(c);
    copy[i].v.items = items;
    for (uint32_t k = 0; k < copy[i].count; k++)
        TRY(wrap_in_place(c, p, &items[k]));
    return BP_OK;
}

static bool same_device(bp_device a, bp_device b)
{
    return a.kind == b.kind && a.index == b.index;
}

/* Results go where the first tensor lies; 0-d CPU tensors follow the others. */
static bp_status look_at(bp_ctx *c, const op_row *op, prepared *p, uint32_t i, const bp_tensor *t, bool *decided)
{
    if (t->flags & TENSOR_POISONED) {
        op_fail(c, op, BP_FAILED_PRECONDITION, "argument \"%s\" is a tensor of a capture that has ended",
                op->schema->args[i].name);
        diag_hint(&c->diag, "a tensor made in a captured function lives for that call: return it, or copy_ it into an "
                            "argument");
        return c->diag.code;
    }
    bp_device d = tensor_device(t);
    p->any_fake |= tensor_is_fake(t);
    p->any_grad |= (t->flags & TENSOR_REQUIRES_GRAD) != 0;
    if (d.kind != BP_CPU && !p->abroad) {
        p->abroad = t;
        p->abroad_arg = i;
    }
    bool weak = t->rank == 0 && d.kind == BP_CPU;
    if (!*decided && !weak)
        p->device = d;
    else if (!weak && !same_device(p->device, d) && (op->flags & (OP_POINTWISE | OP_MATMUL)))
        return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"%s\" is on another device than the tensors before it",
                       op->schema->args[i].name);
    *decided |= !weak;
    return BP_OK;
}

static bp_status look_at_all(bp_ctx *c, const op_row *op, prepared *p)
{
    bool decided = false, any = false;
    for (uint32_t i = 0; i < op->schema->nargs; i++) {
        const bp_value *v = &p->args[i];
        uint32_t n = v->kind == BP_VALUE_LIST ? v->count : 1;
        for (uint32_t k = 0; k < n; k++) {
            const bp_tensor *t = arg_list_tensor(p->args, i, k);
            if (!t)
                continue;
            any = true;
            TRY(look_at(c, op, p, i, t, &decided));
        }
    }
    if (!decided)
        p->device = any ? (bp_device){BP_CPU, 0} : c->ambient.default_device;
    return BP_OK;
}

static bool holds_symbol(const bp_value *v)
{
    for (uint32_t k = 0; v->kind == BP_VALUE_LIST && k < v->count; k++)
        if (holds_symbol(&v->v.items[k]))
            return true;
    return v->kind == BP_VALUE_NODE;
}

static bp_status check_argument(bp_ctx *c, const op_row *op, prepared *p, uint32_t i)
{
    const bp_value *v = &p->args[i];
    const schema_arg *g = &op->schema->args[i];
    bool null = holds_null(v);
    for (uint32_t k = 0; v->kind == BP_VALUE_LIST && k < v->count; k++)
        null |= holds_null(&v->v.items[k]);
    if (null) {
        op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"%s\" is NULL, expected a tensor", g->name);
        return c->diag.code;
    }
    if (holds_symbol(v))
        return op_fail(c, op, BP_FAILED_PRECONDITION,
                       "argument \"%s\" is a symbolic number of a capture that has ended", g->name);
    if (!schema_fits(&g->ty, v))
        return does_not_fit(c, op, i, v);
    return g->ty.type == TYPE_TENSOR ? wrap_argument(c, op, p, i) : BP_OK;
}

bp_status prepare(bp_ctx *c, const op_row *op, const bp_value *args, prepared *p)
{
    *p = (prepared){.args = args};
    bp_status st = BP_OK;
    for (uint32_t i = 0; i < op->schema->nargs && st == BP_OK; i++)
        st = check_argument(c, op, p, i);
    if (st == BP_OK)
        st = look_at_all(c, op, p);
    if (st != BP_OK)
        prepared_release(p);
    return st;
}

void prepared_release(prepared *p)
{
    for (wrapped *w = p->made; w; w = w->next)
        tensor_unref(w->t);
    p->made = NULL;
}
