/* The life of callables: bp_compile and its checks, unref, reset, counters. */
#include "host/compile/callable.h"
#include "host/base/env.h"
#include <stdlib.h>
#include <string.h>

/* -- checking the options ------------------------------------------------------------------------------------------ */

/* Modes by row: name. */
static const char *const modes[] = {"default", "reduce-overhead", "max-autotune", NULL};

static bp_status check_mode(bp_ctx *c, const bp_compile_options *o)
{
    if (!o->mode)
        return BP_OK;
    bool known = false;
    for (const char *const *m = modes; *m; m++)
        known |= !strcmp(*m, o->mode);
    if (!known)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "unknown mode \"%s\": expected \"default\", \"reduce-overhead\" or "
                                                "\"max-autotune\"", o->mode);
    if (o->options && o->options[0])
        return ctx_fail(c, BP_INVALID_ARGUMENT, "mode \"%s\" and options are both given: a mode is a set of options, "
                                                "give one of the two", o->mode);
    return BP_OK;
}

static bp_status check_options(bp_ctx *c, const bp_compile_options *o)
{
    uint32_t n = 0;
    while (o->options && o->options[n])
        n++;
    if (n % 2)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "option \"%s\" has no value: options are \"key\", \"value\", ..., NULL",
                        o->options[n - 1]);
    if (o->recompile_limit < 0)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "recompile_limit is %d: expected 0, for the config's, or more",
                        o->recompile_limit);
    if (o->dynamic < -1 || o->dynamic > 1)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "dynamic is %d: expected 0 automatic, 1 on or -1 off", o->dynamic);
    return check_mode(c, o);
}

/* -- making -------------------------------------------------------------------------------------------------------- */

/* The cache compares the function and calls it never, so it knows it by another type. */
static code_identity identity(const bp_callable *g, const bp_compile_options *o, const char *name, const char *file,
                              int32_t line)
{
    return (code_identity){.fn = (void (*)(void))g->fn, .user = g->user, .backend = g->backend,
                           .backend_identity = backend_identity(g->backend), .options = o->options, .mode = o->mode,
                           .fullgraph = g->fullgraph, .dynamic = g->dynamic, .name = name, .file = file, .line = line};
}

bp_status callable_attach(bp_ctx *c, bp_callable *g, const bp_compile_options *o, const char *name, const char *file,
                          int32_t line)
{
    TRY(backend_resolve(c, o->backend, o->backend_fn, o->backend_init, &g->backend));
    TRY(backend_check_options(c, g->backend, o->options, o->mode));
    code_identity is = identity(g, o, name, file, line);
    is.region = g->isolated ? code_new_region() : 0;
    g->code = code_get(c, &is);
    if (!g->code)
        return c->diag.code;
    g->shared = g->code->is; /* strings are the code's */
    g->shared.region = 0;
    g->check_capture = config_watch(c->rt, KEY_CHECK_CAPTURE);
    return g->check_capture ? BP_OK : ctx_nomem(c);
}

static char *describe(const char *name, const char *file, int32_t line)
{
    buf text = {0};
    buf_printf(&text, "%s (%s:%d)", name ? name : "?", file ? file : "?", line);
    char *own = text.failed ? NULL : strdup(text.s);
    buf_fini(&text);
    return own;
}

bp_callable *bp_compile_at(bp_ctx *c, bp_fn fn, const bp_compile_options *options, size_t options_size,
                           const char *fn_name, const char *file, int32_t line)
{
    if (!ctx_ok(c))
        return NULL;
    bp_compile_options o = {0};
    if (options)
        memcpy(&o, options, options_size < sizeof o ? options_size : sizeof o);
    if (!fn) {
        ctx_fail(c, BP_INVALID_ARGUMENT, "bp_compile: the function is NULL");
        return NULL;
    }
    bp_callable *g = check_options(c, &o) == BP_OK ? calloc(1, sizeof *g) : NULL;
    if (!g)
        return ctx_ok(c) ? (ctx_nomem(c), NULL) : NULL;
    const char *off = env_get(ENV_BACKPLANE_DISABLE), *verify = env_get(ENV_BACKPLANE_VERIFY);
    const char *by = o.disable ? "disable = 1 in its options" : off && !strcmp(off, "1") ? "BACKPLANE_DISABLE=1" : NULL;
    *g = (bp_callable){.refs = 1, .rt = runtime_ref(c->rt), .fn = fn, .user = o.user,
                       .recompile_limit = o.recompile_limit, .disabled = by != NULL, .disabled_by = by,
                       .isolated = o.isolate != 0, .dynamic = o.dynamic,
                       .fullgraph = o.fullgraph != 0, .rechecks = verify && !strcmp(verify, "capture")};
    if (g->disabled && !(g->name = describe(fn_name, file, line))) {
        bp_callable_unref(g);
        return ctx_nomem(c), NULL;
    }
    if (!g->disabled && callable_attach(c, g, &o, fn_name, file, line) != BP_OK) {
        diag_while(&c->diag, "compiling \"%s\" (%s:%d)", fn_name ? fn_name : "?", file ? file : "?", line);
        bp_callable_unref(g);
        return NULL;
    }
    return g;
}

void bp_callable_unref(bp_callable *g)
{
    if (!g || atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (bp_callable *f = atomic_load(&g->forced), *next; f; f = next) {
        next = f->next_forced;
        bp_callable_unref(f);
    }
    code_unref(g->code);
    free(g->name);
    bp_runtime_unref(g->rt);
    free(g);
}

bp_fn bp_callable_function(const bp_callable *g)
{
    return g ? g->fn : NULL;
}

void bp_reset(bp_ctx *c)
{
    code_reset_all(c);
    backend_reset(c->rt);
}
