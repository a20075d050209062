/* Modules: an array of named tensors and a map to its indices. */
#define BP_WITHOUT_OPERATORS
#include "host/tensor/module.h"
#include "sdk/base/match.h"
#include <backplane/backplane.h>
#include <stdlib.h>
#include <string.h>

bp_module *bp_module_new(bp_ctx *c)
{
    bp_module *m = ctx_ok(c) ? calloc(1, sizeof *m) : NULL;
    if (!m) {
        ctx_nomem(c);
        return NULL;
    }
    atomic_init(&m->refs, 1);
    return m;
}

bp_module *module_ref(bp_module *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void bp_module_unref(bp_module *m)
{
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    module_truncate(m, 0);
    vec_fini(&m->entries);
    map_fini(&m->names);
    free(m);
}

void module_truncate(bp_module *m, uint32_t n)
{
    while (m->entries.len > n) {
        module_entry e = vec_pop(&m->entries);
        map_del(&m->names, str_of(e.name));
        free(e.name);
        tensor_unref(e.t);
    }
}

int32_t module_find(const bp_module *m, const char *name)
{
    map_value *v = map_get(&m->names, str_of(name));
    return v ? (int32_t)v->u : -1;
}

bool module_is_name(const char *name)
{
    str rest = str_of(name);
    if (!rest.n)
        return false;
    while (rest.s)
        if (!str_split(&rest, '.').n)
            return false;
    return name[strlen(name) - 1] != '.';
}

static bp_status append(bp_ctx *c, bp_module *m, const char *name, bp_tensor *t, int32_t role)
{
    char *copy = m->entries.len < INT32_MAX ? strdup(name) : NULL;
    if (!copy || !vec_reserve(&m->entries, (uint64_t)m->entries.len + 1)) {
        free(copy);
        return ctx_nomem(c);
    }
    map_value *v = map_put(&m->names, str_of(name), NULL);
    if (!v) {
        free(copy);
        return ctx_nomem(c);
    }
    v->u = m->entries.len;
    m->entries.at[m->entries.len++] = (module_entry){copy, tensor_ref(t), role};
    return BP_OK;
}

static const char *role_name(int32_t role)
{
    return role == BP_ROLE_PARAMETER ? "parameter" : "buffer";
}

static bp_status add(bp_ctx *c, bp_module *m, const char *name, bp_tensor *t, int32_t role)
{
    if (!ctx_ok(c))
        return c->diag.code;
    if (!m || !name || !t)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "a %s needs a module, a name and a tensor, and %s is NULL",
                        role_name(role), !m ? "the module" : !name ? "the name" : "the tensor");
    if (!module_is_name(name))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "\"%s\" is no name of a %s: parts joined by dots are expected", name,
                        role_name(role));
    if (tensor_is_fake(t))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "%s \"%s\" is a fake tensor, which dies with its capture",
                        role_name(role), name);
    int32_t i = module_find(m, name);
    if (i < 0)
        return append(c, m, name, t, role);
    module_entry *e = &m->entries.at[i];
    if (e->role != role)
        return ctx_fail(c, BP_ALREADY_EXISTS, "the module has a %s \"%s\" already: it cannot become a %s",
                        role_name(e->role), name, role_name(role));
    bp_tensor *old = e->t;
    e->t = tensor_ref(t);
    tensor_unref(old);
    return BP_OK;
}

bp_status bp_module_add_parameter(bp_ctx *c, bp_module *m, const char *name, bp_tensor *t)
{
    return add(c, m, name, t, BP_ROLE_PARAMETER);
}

bp_status bp_module_add_buffer(bp_ctx *c, bp_module *m, const char *name, bp_tensor *t)
{
    return add(c, m, name, t, BP_ROLE_BUFFER);
}

const char *module_nearest(const bp_module *m, const char *name)
{
    const char *best = NULL;
    double ratio = 0.6;
    for (uint32_t i = 0; i < m->entries.len; i++) {
        double r = match_ratio(str_of(m->entries.at[i].name), str_of(name));
        if (r >= ratio) {
            ratio = r;
            best = m->entries.at[i].name;
        }
    }
    return best;
}

bp_tensor *bp_module_get(bp_ctx *c, const bp_module *m, const char *name)
{
    if (!ctx_ok(c))
        return NULL;
    if (!m || !name) {
        ctx_fail(c, BP_INVALID_ARGUMENT, "a module and a name are needed, and %s is NULL",
                 m ? "the name" : "the module");
        return NULL;
    }
    int32_t i = module_find(m, name);
    if (i >= 0)
        return m->entries.at[i].t;
    ctx_fail(c, BP_NOT_FOUND, "the module has no parameter or buffer \"%s\"", name);
    const char *near = module_nearest(m, name);
    if (near)
        diag_hint(&c->diag, "did you mean \"%s\"?", near);
    return NULL;
}

bp_status bp_module_set_requires_grad(bp_ctx *c, bp_module *m, int on)
{
    if (ctx_ok(c) && !m)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "a module is needed, and it is NULL");
    for (uint32_t i = 0; ctx_ok(c) && i < m->entries.len; i++) {
        const module_entry *e = &m->entries.at[i];
        if (e->role == BP_ROLE_PARAMETER && (dtype_is_float(e->t->dtype) || dtype_is_complex(e->t->dtype)))
            bp_tensor_set_requires_grad(c, e->t, on);
    }
    return c->diag.code;
}
