/* Services on custom operators: a plugin defines them, and its kernels and fakes see views of what they are called on.
 *
 * What a plugin has defined is kept by name for as long as the process lives, as the plugin is; its init hook may
 * define the same again at every resolution. */
#include "host/backend/service.h"
#include "host/backend/text.h"
#include "host/op/library.h"
#include "sdk/base/map.h"
#include <stdio.h>
#include <string.h>

typedef struct defined defined;
struct defined {
    bp_operator_fn kernel, fake;
    void *arg;
    char *schema;
    defined *former; /* what it took the place of: calls of that may be under way */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static map definitions;   /* name -> defined * */
static host_table table;  /* of calls: operators are the process's, so it is no backend's */

/* -- calls --------------------------------------------------------------------------------------------------------- */

static void call_plugin(bp_ctx *c, bp_op_call *k, const defined *d, bp_operator_fn fn)
{
    k->host = &table.api;
    k->c = c;
    bp_status st = fn(k, d->arg);
    if (st != BP_OK && ctx_ok(c))
        bp_op_fail(c, k, st, "its %s failed without a reason", k->fake ? "fake" : "kernel");
}

static void run_kernel(bp_ctx *c, bp_op_call *k)
{
    const defined *d = bp_op_user(k);
    call_plugin(c, k, d, d->kernel);
}

static void run_fake(bp_ctx *c, bp_op_call *k)
{
    const defined *d = bp_op_user(k);
    call_plugin(c, k, d, d->fake);
}

/* A plugin's fake can neither ask of a symbol nor compute with it: reading is specializing, as in its compile. */
static bp_status in_numbers(bp_ctx *c, const bp_dim **at, uint32_t n)
{
    bp_dim *to = arena_array(&c->scratch, n, sizeof *to);
    if (!to)
        return ctx_nomem(c);
    for (uint32_t i = 0; i < n; i++)
        to[i] = dim_const(dim_int(c, (*at)[i]));
    *at = to;
    return c->diag.code;
}

static bp_status view_in_numbers(bp_ctx *c, const bp_tensor *t, bp_view *out)
{
    tensor_get_view(t, out);
    TRY(in_numbers(c, &out->sizes, out->rank));
    return in_numbers(c, &out->strides, out->rank);
}

static bool leaf_in_numbers(void *arg, bp_value *leaf)
{
    bp_ctx *c = arg;
    if (leaf->kind == BP_VALUE_INT)
        leaf->v.dim = dim_const(dim_int(c, leaf->v.dim));
    return ctx_ok(c);
}

bp_status service_call_view(const bp_op_call *k, uint32_t arg, uint32_t index, bp_view *out)
{
    const bp_tensor *t = k && out ? bp_op_list_tensor(k, arg, index) : NULL;
    if (!t)
        return k && out && bp_op_arg(k, arg) ? BP_NOT_FOUND : BP_INVALID_ARGUMENT;
    if (k->fake)
        return view_in_numbers(k->c, t, out);
    tensor_get_view(t, out);
    return BP_OK;
}

bp_status service_call_value(const bp_op_call *k, uint32_t arg, bp_value *out)
{
    const bp_value *v = out ? bp_op_arg(k, arg) : NULL;
    if (!v || bp_op_list_tensor(k, arg, 0))
        return BP_INVALID_ARGUMENT;
    if (k->fake)
        return value_map(k->c, v, leaf_in_numbers, k->c, out) ? BP_OK : k->c->diag.code;
    *out = *v;
    return BP_OK;
}

static bp_tensor *make_result(bp_op_call *k, bp_dtype dtype, uint32_t rank, const bp_dim *sizes)
{
    bp_ctx *c = k->c;
    bp_dim strides[TENSOR_MAX_RANK];
    tensor_meta m = {.dtype = dtype, .device = {BP_CPU, 0}, .rank = rank, .sizes = (bp_dim *)(uintptr_t)sizes,
                     .strides = strides};
    layout_contiguous(c, rank, sizes, strides);
    if (!ctx_ok(c))
        return NULL;
    return scope_own(c, k->fake ? tensor_new_fake(c, &m) : tensor_new(c, &m));
}

static bool is_size(bp_dim d)
{
    return dim_is_const(d) ? d.value >= 0 : sym_current() && sym_is_dim(sym_current(), d);
}

bp_status service_call_result(bp_op_call *k, int32_t dtype, uint32_t rank, const bp_dim *sizes, bp_view *out)
{
    bool right = k && out && dtype > BP_DTYPE_UNSET && dtype < BP_DTYPE_END && rank <= TENSOR_MAX_RANK &&
                 (sizes || !rank);
    for (uint32_t d = 0; right && d < rank; d++)
        right = is_size(sizes[d]);
    if (!right)
        return BP_INVALID_ARGUMENT;
    bp_tensor *t = make_result(k, dtype, rank, sizes);
    bp_op_return(k->c, k, t);
    if (!ctx_ok(k->c))
        return k->c->diag.code;
    tensor_get_view(t, out);
    return BP_OK;
}

bp_status service_call_fail_text(bp_op_call *k, bp_status code, const char *text, size_t n)
{
    char said[600];
    if (!k)
        return BP_INVALID_ARGUMENT;
    bp_op_fail(k->c, k, code ? code : BP_UNKNOWN, "%s", plugin_text(said, sizeof said, text, n));
    return code ? code : BP_UNKNOWN;
}

/* -- definitions --------------------------------------------------------------------------------------------------- */

/* Whether the name stands for d's kernel now. */
static bool is_there(const char *name, const defined *d)
{
    char target[200];
    custom_reg r;
    const char *colons = strstr(name, "::");
    if (!colons)
        return false;
    snprintf(target, sizeof target, "%.*s.%s.default", (int)(colons - name), name, colons + 2);
    const op_row *row = custom_by_target(target);
    return row && row->own && custom_find(row->own, CUSTOM_CPU, &r) && r.arg == d;
}

static bool is_same(const defined *d, const bp_operator_def *def)
{
    return d->schema && !strcmp(d->schema, def->schema) && d->kernel == def->kernel && d->fake == def->fake &&
           d->arg == def->arg && is_there(def->name, d);
}

/* The record of a definition; *known: it is the one that holds. A record is written once: calls read it. */
static defined *keep(const bp_operator_def *def, bool *known)
{
    pthread_mutex_lock(&lock);
    if (!table.api.size)
        service_fill(&table, NULL);
    map_value *v = map_put(&definitions, str_of(def->name), NULL);
    *known = v && v->p && is_same(v->p, def);
    defined *d = *known ? v->p : v ? calloc(1, sizeof *d) : NULL;
    if (d && !*known) {
        *d = (defined){def->kernel, def->fake, def->arg, strdup(def->schema), v->p};
        v->p = d;
    }
    pthread_mutex_unlock(&lock);
    return d;
}

static bp_status define(bp_ctx *c, const bp_operator_def *def, defined *d)
{
    bp_custom_op_options o = {.schema = def->schema, .mutates_args = def->mutates_args ? def->mutates_args : "",
                              .device_types = "cpu", .kernel = run_kernel, .arg = d};
    if (bp_custom_op_at(c, def->name, &o, sizeof o, NULL, 0) && def->fake)
        bp_register_fake(c, NULL, def->name, run_fake, d, 1);
    return c->diag.code;
}

bp_status service_define_operator(const bp_host *host, const bp_operator_def *def)
{
    bool whole = def && def->size >= sizeof *def && def->name && def->schema && def->kernel;
    bool right = whole && host && host != &table.api;
    backend *b = right ? service_backend(host) : NULL;
    bool known = false;
    defined *d = b ? keep(def, &known) : NULL;
    if (known)
        return BP_OK;
    bp_ctx *c = d ? bp_ctx_new(b->room->rt) : NULL;
    if (!c)
        return right ? BP_RESOURCE_EXHAUSTED : BP_INVALID_ARGUMENT;
    bp_status st = define(c, def, d);
    if (st != BP_OK && !b->said[0])
        plugin_text(b->said, sizeof b->said, bp_error_message(c), strlen(bp_error_message(c)));
    bp_ctx_destroy(c);
    return st;
}
