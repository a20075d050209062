/* Frames: arguments, attributes and results of one call of a C function. */
#include "host/capture/frame.h"
#include "host/capture/trace.h"
#include "host/capture/tree.h"
#include "host/grad/share.h"
#include "host/tensor/module.h"
#include <stdlib.h>

/* -- a context's part in captures ---------------------------------------------------------------------------------- */

static void drop_slot(bp_ctx *c, void *slot)
{
    (void)c;
    free(slot);
}

capture_slot *capture_slot_get(bp_ctx *c)
{
    if (!c->slot[CTX_CAPTURE]) {
        c->slot[CTX_CAPTURE] = calloc(1, sizeof(capture_slot));
        c->slot_destroy[CTX_CAPTURE] = drop_slot;
        if (!c->slot[CTX_CAPTURE])
            ctx_nomem(c);
    }
    return c->slot[CTX_CAPTURE];
}

/* -- life ---------------------------------------------------------------------------------------------------------- */

/* What is wrong with argument i: it is neither a usable tensor nor a plain value. */
static bp_status check_argument(bp_ctx *c, uint32_t i, const bp_value *v)
{
    bool known = v->kind == BP_VALUE_NONE || v->kind == BP_VALUE_TENSOR || v->kind == BP_VALUE_BOOL ||
                 v->kind == BP_VALUE_INT || v->kind == BP_VALUE_FLOAT || v->kind == BP_VALUE_STRING;
    if (!known)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "argument %u: a value of kind %u is none that a function takes%s", i,
                        v->kind,
                        v->kind == BP_VALUE_LIST || v->kind == BP_VALUE_MAP ? ": bp_call_tree takes nested ones" : "");
    const bp_tensor *t = v->kind == BP_VALUE_TENSOR ? v->v.tensor : NULL;
    if (v->kind == BP_VALUE_TENSOR && !t)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "argument %u is a tensor that is NULL: pass kind NONE for none", i);
    if (v->kind == BP_VALUE_STRING && !v->v.str)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "argument %u is a string that is NULL", i);
    if (t && t->flags & TENSOR_POISONED)
        return ctx_fail(c, BP_FAILED_PRECONDITION, "argument %u is a fake tensor of a finished capture, made at %s:%d",
                        i, t->file ? t->file : "?", t->line);
    return t ? tape_share_refresh(c, v->v.tensor) : BP_OK;
}

RARE static bp_status check_arguments(bp_ctx *c, const bp_args *args, uint32_t from)
{
    for (uint32_t i = from; i < args->n; i++)
        TRY(check_argument(c, i, &args->at[i]));
    return BP_OK;
}

/* The common case: all are tensors, and no views. */
static inline bool is_good_tensor(const bp_value *v)
{
    const bp_tensor *t = v->kind == BP_VALUE_TENSOR ? v->v.tensor : NULL;
    return t && !(t->flags & TENSOR_POISONED) && !t->base;
}

bp_status args_check(bp_ctx *c, const bp_args *args)
{
    const bp_value *v = args ? args->at : NULL, *end = args ? v + args->n : NULL;
    while (v < end && is_good_tensor(v))
        v++;
    return v == end ? BP_OK : check_arguments(c, args, (uint32_t)(v - args->at));
}

void frame_init(bp_frame *f, bp_ctx *c, const bp_value *args, uint32_t nargs, void *user)
{
    *f = (bp_frame){.c = c, .args = args, .nargs = nargs, .user = user};
}

void frame_fini(bp_frame *f)
{
    for (uint32_t i = 0; i < f->returns.len; i++)
        tensor_unref(f->returns.at[i]);
    vec_fini(&f->returns);
    arena_fini(&f->trees);
}

bp_status frame_run(bp_frame *f, bp_fn fn)
{
    bp_ctx *c = f->c;
    uint32_t depth = scope_depth(c);
    scope_push(c);
    fn(c, f);
    while (scope_depth(c) > depth)
        scope_pop(c);
    if (f->failed)
        ctx_nomem(c);
    return c->diag.code;
}

static void free_array(void *arg, void *data)
{
    (void)data;
    free(arg);
}

/* It is the memory of a tensor that the scope owns. */
bool frame_keep(bp_ctx *c, void *p, size_t nbytes, void (*release)(void *p, void *data))
{
    bp_dim size = dim_const((int64_t)nbytes), stride = dim_const(1);
    tensor_meta m = {BP_U8, {BP_CPU, 0}, 1, &size, &stride, dim_const(0)};
    bp_tensor *holder = p ? tensor_wrap(c, &m, p, nbytes, release, p) : NULL;
    if (holder)
        return scope_own(c, holder) != NULL;
    if (p)
        release(p, p);
    ctx_nomem(c);
    return false;
}

static bp_tensor **array_in_scope(bp_ctx *c, uint32_t n)
{
    bp_tensor **at = calloc(n ? n : 1, sizeof *at);
    return frame_keep(c, at, (n ? n : 1) * sizeof *at, free_array) ? at : NULL;
}

bp_status outputs_reserve_more(bp_ctx *c, bp_outputs *outs, uint32_t n)
{
    if (outs->at && outs->cap) {
        if (n > outs->cap)
            return ctx_fail(c, BP_INVALID_ARGUMENT, "the function gives %u results, and there is room for %u", n,
                            outs->cap);
    } else {
        outs->at = array_in_scope(c, n);
        if (!outs->at)
            return c->diag.code;
    }
    outs->n = n;
    return BP_OK;
}

bp_status frame_give(bp_frame *f, bp_outputs *outs)
{
    TRY(outputs_reserve(f->c, outs, f->returns.len));
    TRY(tree_give(f->c, outs, f->spec));
    for (uint32_t i = 0; i < f->returns.len; i++) {
        outs->at[i] = scope_own(f->c, f->returns.at[i]);
        f->returns.at[i] = NULL;
    }
    f->returns.len = 0;
    return f->c->diag.code;
}

/* -- what the function asks for ------------------------------------------------------------------------------------ */

/* An eager frame's argument. NULL: there is none. */
static const bp_value *argument(bp_frame *f, uint32_t i, const char *name)
{
    if (!ctx_ok(f->c))
        return NULL;
    if (i < f->nargs) /* a trace's inputs may have moved */
        return f->trace ? &f->trace->r->vals->inputs[i] : &f->args[i];
    ctx_fail(f->c, BP_INVALID_ARGUMENT, "argument %u \"%s\": the call passed %u arguments", i, name ? name : "?",
             f->nargs);
    return NULL;
}

static bp_tensor *tensor_argument(bp_frame *f, uint32_t i, const char *name, bool optional)
{
    if (f->trace && f->trace->why != TRACE_RESUMED)
        return trace_arg(f->trace, i, name, optional);
    const bp_value *v = argument(f, i, name);
    if (!v || (optional && v->kind == BP_VALUE_NONE))
        return NULL;
    return arg_fits(f->c, i, name, v, BP_VALUE_TENSOR) ? v->v.tensor : NULL;
}

static const bp_value *plain_argument(bp_frame *f, uint32_t i, const char *name, uint32_t kind)
{
    if (f->trace && f->trace->why != TRACE_RESUMED)
        return trace_plain_arg(f->trace, i, name, kind);
    const bp_value *v = argument(f, i, name);
    return v && arg_fits(f->c, i, name, v, kind) ? v : NULL;
}

bp_tensor *bp_arg(bp_frame *f, uint32_t i, const char *name)
{
    return tensor_argument(f, i, name, false);
}

bp_tensor *bp_arg_optional(bp_frame *f, uint32_t i, const char *name)
{
    return tensor_argument(f, i, name, true);
}

int64_t bp_arg_int(bp_frame *f, uint32_t i, const char *name)
{
    const bp_value *v = plain_argument(f, i, name, BP_VALUE_INT);
    return !v ? 0 : v->v.dim.sym ? bp_size_int(f->c, v->v.dim) : v->v.dim.value;
}

bp_dim bp_arg_dim(bp_frame *f, uint32_t i, const char *name)
{
    if (f->trace && f->trace->why != TRACE_RESUMED)
        return trace_dim_arg(f->trace, i, name);
    const bp_value *v = plain_argument(f, i, name, BP_VALUE_INT);
    return v ? v->v.dim : dim_const(0); /* of an inlined callable it may be a symbol */
}

double bp_arg_float(bp_frame *f, uint32_t i, const char *name)
{
    const bp_value *v = plain_argument(f, i, name, BP_VALUE_FLOAT);
    return !v ? 0 : v->kind == BP_VALUE_INT ? (double)v->v.dim.value : v->v.f[0];
}

int bp_arg_bool(bp_frame *f, uint32_t i, const char *name)
{
    const bp_value *v = plain_argument(f, i, name, BP_VALUE_BOOL);
    return v ? v->v.i != 0 : 0;
}

const char *bp_arg_str(bp_frame *f, uint32_t i, const char *name)
{
    const bp_value *v = plain_argument(f, i, name, BP_VALUE_STRING);
    return v ? v->v.str : "";
}

uint32_t bp_arg_count(bp_frame *f)
{
    return f->nargs;
}

bp_tensor *bp_constant_at(bp_ctx *c, bp_tensor *t, const char *file, int32_t line)
{
    if (!ctx_ok(c))
        return NULL;
    trace *at = capture_current(c);
    bp_tensor *own = t;
    c->site_file = file;
    c->site_line = line;
    if (!t)
        ctx_fail(c, BP_INVALID_ARGUMENT, "bp_constant: the tensor is NULL");
    else if (at)
        own = trace_constant(at, t);
    if (!ctx_ok(c) && file)
        diag_while(&c->diag, "taking a constant (%s:%d)", file, line);
    c->site_file = NULL;
    return ctx_ok(c) ? own : NULL;
}

bp_tensor *(bp_constant)(bp_ctx *c, bp_tensor *t)
{
    return bp_constant_at(c, t, NULL, 0);
}

bp_tensor *bp_attr(bp_frame *f, bp_module *m, const char *name)
{
    if (!ctx_ok(f->c))
        return NULL;
    if (!m || !name) {
        ctx_fail(f->c, BP_INVALID_ARGUMENT, "bp_attr: the %s is NULL", m ? "name" : "module");
        return NULL;
    }
    trace *t = capture_current(f->c);
    return t ? trace_attr(t, m, name) : bp_module_get(f->c, m, name);
}

void *bp_user(bp_frame *f)
{
    return f->user;
}

void bp_return(bp_frame *f, bp_tensor *t)
{
    if (!ctx_ok(f->c))
        return;
    if (f->spec) {
        ctx_fail(f->c, BP_FAILED_PRECONDITION, "bp_return follows bp_return_tree, which gives all results");
        return;
    }
    t = t ? capture_real(f->c, t) : NULL;
    if (vec_push(&f->returns, t))
        t ? (void)tensor_ref(t) : (void)0;
    else
        f->failed = true;
}
