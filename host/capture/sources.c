/* Inputs of a trace: arguments and attributes of modules, as fakes.
 *
 * A source is guarded in the segment that first asks for it (C6.1). Inputs that are one object are one handle. Fakes of
 * inputs that share a storage share a fake one, so that checks on overlap see what they would see in eager. */
#include "host/capture/trace.h"
#include "host/tensor/module.h"

static const char *kind_name(uint32_t kind)
{
    switch (kind) {
    case BP_VALUE_NONE: return "NULL";
    case BP_VALUE_TENSOR: return "a tensor";
    case BP_VALUE_BOOL: return "a bool";
    case BP_VALUE_INT: return "an int";
    case BP_VALUE_FLOAT: return "a float";
    case BP_VALUE_STRING: return "a string";
    default: return "a value of another kind";
    }
}

bp_status trace_begin_sources(trace *t)
{
    for (uint32_t i = 0; i < t->r->vals->nargs; i++)
        if (!vec_push(&t->sources, (trace_source){.role = BP_ROLE_USER}))
            return trace_nomem(t);
    return BP_OK;
}

/* -- fakes --------------------------------------------------------------------------------------------------------- */

static bp_tensor *known_flat(const trace *t, const bp_tensor *real)
{
    const map_value *at = real ? map_get_u64(&t->flat_at, (uintptr_t)real->store) : NULL;
    return at && at->u ? t->flats.at[at->u - 1].fake : NULL;
}

static bool add_flat(trace *t, const bp_tensor *real, bp_tensor *fake)
{
    map_value *at = map_put_u64(&t->flat_at, (uintptr_t)real->store, NULL);
    if (!at || !vec_push(&t->flats, (trace_flat){real->store, fake}))
        return false;
    at->u = at->u ? at->u : t->flats.len; /* the first one stays */
    return true;
}

/* A fake of the whole storage of t, made once a storage. Borrowed. */
static bp_tensor *flat_of(trace *t, const bp_tensor *real)
{
    bp_tensor *known = known_flat(t, real);
    if (known)
        return known;
    bp_dim size = dim_const((int64_t)real->store->nbytes), stride = dim_const(1);
    tensor_meta m = {BP_U8, tensor_device(real), 1, &size, &stride, dim_const(0)};
    bp_tensor *fake = tensor_new_fake(t->c, &m);
    if (fake)
        atomic_store(&fake->store->fake_role, FAKE_OF_INPUT);
    if (fake && add_flat(t, real, fake))
        return fake;
    tensor_unref(fake);
    return NULL;
}

bp_status trace_know_storage(trace *t, const bp_tensor *real, bp_tensor *fake)
{
    if (!add_flat(t, real, fake))
        return trace_nomem(t);
    tensor_ref(fake);
    return BP_OK;
}

/* What source i looks like to the function: symbols where its plan has them. */
static bp_status meta_of(trace *t, uint32_t i, tensor_meta *m)
{
    bool ok = true;
    bp_dim dims[2 * TENSOR_MAX_RANK];
    tensor_get_meta(trace_layout_of(t, bind_input(t->r->vals, i)), m);
    TRY(trace_plan_source(t, i, dims));
    if (!t->sources.at[i].plan->ndims)
        return BP_OK;
    m->sizes = dims;
    m->strides = dims + m->rank;
    tensor_meta *own = arena_alloc(&t->arena, sizeof *own);
    if (own)
        *own = *m = meta_copy(&t->arena, m, &ok);
    t->sources.at[i].meta = own;
    return own && ok && vec_push(&vec_last(&t->segments).shown, i) ? BP_OK : trace_nomem(t);
}

static bp_tensor *fake_of(trace *t, uint32_t i)
{
    tensor_meta m;
    bp_tensor *real = bind_input(t->r->vals, i);
    if (meta_of(t, i, &m) != BP_OK)
        return NULL;
    bp_tensor *flat = flat_of(t, real), *fake = flat ? tensor_view(t->c, flat, &m) : NULL;
    if (fake)
        fake->flags = tensor_grad_flags(trace_layout_of(t, real));
    return fake;
}

/* Another source that is the same object and has a handle already. */
static const trace_source *same_object(const trace *t, uint32_t i)
{
    bool known = known_flat(t, bind_input(t->r->vals, i)) != NULL;
    for (uint32_t j = 0; known && j < t->sources.len; j++)
        if (j != i && t->sources.at[j].handle && bind_input(t->r->vals, j) == bind_input(t->r->vals, i))
            return &t->sources.at[j];
    return NULL;
}

static bp_status touch(trace *t, uint32_t i)
{
    trace_source *s = &t->sources.at[i];
    if (s->touched)
        return BP_OK;
    s->touched = true;
    return vec_push(&vec_last(&t->segments).touched, i) ? BP_OK : trace_nomem(t);
}

bp_tensor *trace_source_handle(trace *t, uint32_t i)
{
    if (touch(t, i) != BP_OK)
        return NULL;
    trace_source *s = &t->sources.at[i];
    if (s->handle)
        return t->handles.at[s->handle].t;
    const trace_source *same = same_object(t, i);
    if (same) {
        s->handle = same->handle;
        s->fs = same->fs;
        s->plan = same->plan;
        s->meta = same->meta;
        return t->handles.at[s->handle].t;
    }
    fake_storage *fs = s->fs ? s->fs : trace_add_storage(t, (int32_t)i, REF_INPUT | i);
    bp_tensor *fake = fs ? fake_of(t, i) : NULL;
    uint32_t n = fake ? trace_add_handle(t, fake, fs, 0) : 0;
    if (!n)
        return (ctx_ok(t->c) ? (void)trace_nomem(t) : (void)0), NULL;
    t->sources.at[i].handle = n;
    t->sources.at[i].fs = fs;
    return !fs->group || trace_specialize(t, fake) == BP_OK ? fake : NULL; /* it lies under others that are known */
}

/* -- arguments ----------------------------------------------------------------------------------------------------- */

/* The i-th argument's value, named. NULL: there is none. */
static const bp_value *argument(trace *t, uint32_t i, const char *name)
{
    if (t->why != TRACE_RUNNING || !ctx_ok(t->c))
        return NULL;
    if (i >= t->r->vals->nargs) {
        ctx_fail(t->c, BP_INVALID_ARGUMENT, "argument %u \"%s\": the call passed %u arguments", i, name ? name : "?",
                 t->r->vals->nargs);
        return NULL;
    }
    trace_source *s = &t->sources.at[i];
    if (!s->name && name && !(s->name = arena_strdup(&t->arena, name)))
        trace_nomem(t);
    return touch(t, i) == BP_OK ? &t->r->vals->inputs[i] : NULL;
}

static void wrong_kind(bp_ctx *c, uint32_t i, const char *name, const char *expected, uint32_t kind)
{
    ctx_fail(c, BP_INVALID_ARGUMENT, "argument %u \"%s\": expected %s, got %s", i, name ? name : "?", expected,
             kind_name(kind));
}

bool arg_fits(bp_ctx *c, uint32_t i, const char *name, const bp_value *v, uint32_t kind)
{
    if (v->kind == kind || (kind == BP_VALUE_FLOAT && v->kind == BP_VALUE_INT))
        return true;
    wrong_kind(c, i, name, kind_name(kind), v->kind);
    return false;
}

bp_tensor *trace_arg(trace *t, uint32_t i, const char *name, bool optional)
{
    const bp_value *v = argument(t, i, name);
    if (!v)
        return NULL;
    if (v->kind == BP_VALUE_TENSOR)
        return trace_source_handle(t, i);
    if (v->kind != BP_VALUE_NONE || !optional)
        wrong_kind(t->c, i, name, optional ? "a tensor or NULL" : "a tensor", v->kind);
    return NULL;
}

const bp_value *trace_plain_arg(trace *t, uint32_t i, const char *name, uint32_t kind)
{
    const bp_value *v = argument(t, i, name);
    if (!v || !arg_fits(t->c, i, name, v, kind))
        return NULL;
    trace_source *s = &t->sources.at[i];
    if (s->asked == SOURCE_DIM)
        dim_int(t->c, s->number); /* it is that number from here on */
    else
        s->asked = SOURCE_PLAIN;
    return ctx_ok(t->c) ? v : NULL;
}

/* One that was asked for as a plain number is a constant. */
bp_dim trace_dim_arg(trace *t, uint32_t i, const char *name)
{
    const bp_value *v = argument(t, i, name);
    if (!v || !arg_fits(t->c, i, name, v, BP_VALUE_INT))
        return dim_const(0);
    trace_source *s = &t->sources.at[i];
    if (s->asked == SOURCE_PLAIN)
        return v->v.dim;
    if (s->asked != SOURCE_DIM) {
        bp_dim d;
        s->asked = SOURCE_DIM;
        if (trace_plan_source(t, i, &d) != BP_OK)
            return dim_const(0);
        t->sources.at[i].number = d;
    }
    return trace_give_dim(t, t->sources.at[i].number);
}

/* -- attributes ---------------------------------------------------------------------------------------------------- */

static bp_tensor *add_attr(trace *t, bp_module *m, uint32_t entry)
{
    const module_entry *e = &m->entries.at[entry];
    uint32_t i = t->sources.len;
    trace_source s = {.role = e->role, .module = m, .entry = entry, .name = arena_strdup(&t->arena, e->name)};
    bp_value v = value_tensor(e->t);
    if (!s.name || !vec_push(&t->sources, s))
        return trace_nomem(t), NULL;
    if (bind_push_input(t->r->vals, &v) != BP_OK || trace_source_added(t, i) != BP_OK)
        return NULL;
    return trace_source_handle(t, i);
}

bp_tensor *trace_attr(trace *t, bp_module *m, const char *name)
{
    if (t->why != TRACE_RUNNING || !ctx_ok(t->c))
        return NULL;
    int32_t entry = module_find(m, name);
    if (entry < 0)
        return bp_module_get(t->c, m, name); /* says which name is near */
    for (uint32_t i = t->r->vals->nargs; i < t->sources.len; i++)
        if (t->sources.at[i].module == m && t->sources.at[i].entry == (uint32_t)entry)
            return trace_source_handle(t, i);
    return add_attr(t, m, (uint32_t)entry);
}

/* -- constants ----------------------------------------------------------------------------------------------------- */

/* Names are _tensor_constant0 and on, as torch.fx names them. */
static bp_tensor *add_constant(trace *t, bp_tensor *real)
{
    uint32_t i = t->sources.len, n = 0;
    for (uint32_t j = 0; j < i; j++)
        n += t->sources.at[j].constant != NULL;
    trace_source s = {.role = BP_ROLE_CONSTANT, .constant = real};
    bp_value v = value_tensor(real);
    s.name = arena_printf(&t->arena, "_tensor_constant%u", n);
    if (!s.name || !vec_push(&t->sources, s))
        return trace_nomem(t), NULL;
    if (bind_push_input(t->r->vals, &v) != BP_OK || trace_source_added(t, i) != BP_OK)
        return NULL;
    return trace_source_handle(t, i);
}

bp_tensor *trace_constant(trace *t, bp_tensor *real)
{
    if (t->why != TRACE_RUNNING || !ctx_ok(t->c))
        return NULL;
    if (trace_handle_of(t, real))
        return real; /* it is known already */
    if (real->flags & TENSOR_POISONED || tensor_is_fake(real))
        return trace_read(t, real), NULL; /* says what is wrong with it */
    for (uint32_t i = t->r->vals->nargs; i < t->sources.len; i++)
        if (t->sources.at[i].constant == real)
            return trace_source_handle(t, i);
    return add_constant(t, real);
}
