/* The context's life, its modes and its error, as users see them. */
#define BP_WITHOUT_OPERATORS
#include "host/base/ctx.h"
#include "host/base/parallel.h"
#include <backplane/backplane.h>
#include <stdlib.h>

/* The seed that PyTorch's generators start with. */
static const uint64_t DEFAULT_SEED = UINT64_C(67280421310721);

bp_ctx *ctx_new(bp_runtime *rt)
{
    rt = rt ? rt : runtime_default();
    bp_ctx *c = rt ? calloc(1, sizeof *c) : NULL;
    if (!c)
        return NULL;
    c->rt = runtime_ref(rt);
    c->seed = DEFAULT_SEED;
    c->ambient.grad_enabled = 1;
    c->ambient.default_dtype = BP_F32;
    c->ambient.default_device = (bp_device){BP_CPU, 0};
    c->ambient.num_threads = parallel_threads();
    return c;
}

void bp_ctx_destroy(bp_ctx *c)
{
    if (!c)
        return;
    for (int i = CTX_ROOMS - 1; i >= 0; i--)
        if (c->slot[i] && c->slot_destroy[i])
            c->slot_destroy[i](c, c->slot[i]);
    arena_fini(&c->scratch);
    bp_runtime_unref(c->rt);
    free(c);
}

bp_runtime *bp_ctx_runtime(bp_ctx *c)
{
    return c->rt;
}

uint64_t ctx_thread_id(void)
{
    static atomic_ullong last;
    static _Thread_local uint64_t mine __attribute__((tls_model("initial-exec")));
    if (!mine)
        mine = atomic_fetch_add(&last, 1) + 1;
    return mine;
}

/* -- errors -------------------------------------------------------------------------------------------------------- */

bp_status bp_error(const bp_ctx *c)
{
    return c->diag.code;
}

/* Rendering writes into the context's own text, which is no part of what a reader of `const bp_ctx` relies on. */
const char *bp_error_text(const bp_ctx *c)
{
    union { const bp_ctx *seen; bp_ctx *own; } u = {c};
    return diag_text(&u.own->diag);
}

const char *bp_error_message(const bp_ctx *c)
{
    return c->diag.message;
}

void bp_error_clear(bp_ctx *c)
{
    diag_clear(&c->diag);
}

const char *bp_status_name(bp_status code)
{
    return status_name(code);
}

/* -- modes --------------------------------------------------------------------------------------------------------- */

static int swap_flag(uint8_t *flag, int on)
{
    int former = *flag;
    *flag = on != 0;
    return former;
}

int bp_set_grad_enabled(bp_ctx *c, int on)
{
    return swap_flag(&c->ambient.grad_enabled, on);
}

int bp_set_inference_mode(bp_ctx *c, int on)
{
    return swap_flag(&c->ambient.inference_mode, on);
}

int bp_set_deterministic(bp_ctx *c, int on)
{
    return swap_flag(&c->ambient.deterministic, on);
}

int bp_set_allow_tf32(bp_ctx *c, int on)
{
    return swap_flag(&c->ambient.allow_tf32, on);
}

int bp_grad_enabled(const bp_ctx *c)
{
    return c->ambient.grad_enabled && !c->ambient.inference_mode;
}

static bool is_float(bp_dtype d)
{
    return d >= BP_F16 && d <= BP_F64;
}

bp_dtype bp_set_default_dtype(bp_ctx *c, bp_dtype dtype)
{
    bp_dtype former = c->ambient.default_dtype;
    if (is_float(dtype))
        c->ambient.default_dtype = dtype;
    else
        ctx_fail(c, BP_INVALID_ARGUMENT, "default dtype %d is no floating-point type", (int)dtype);
    return former;
}

bp_dtype bp_set_autocast(bp_ctx *c, bp_dtype dtype)
{
    bp_dtype former = c->ambient.autocast_dtype;
    if (dtype == BP_DTYPE_UNSET || is_float(dtype))
        c->ambient.autocast_dtype = dtype;
    else
        ctx_fail(c, BP_INVALID_ARGUMENT, "autocast dtype %d is no floating-point type", (int)dtype);
    return former;
}

bp_device bp_set_default_device(bp_ctx *c, bp_device device)
{
    bp_device former = c->ambient.default_device;
    if (device.kind >= BP_CPU && device.kind <= BP_FAKE_DEVICE && device.index >= 0 && device.index <= UINT8_MAX)
        c->ambient.default_device = device;
    else
        ctx_fail(c, BP_INVALID_ARGUMENT, "there is no device of kind %d and index %d", (int)device.kind,
                 (int)device.index);
    return former;
}

void bp_manual_seed(bp_ctx *c, uint64_t seed)
{
    c->seed = seed;
    c->rng_offset = 0;
}

uint64_t bp_generator_offset(const bp_ctx *c)
{
    return c->rng_offset;
}

void bp_set_sink(bp_ctx *c, bp_write_fn write, void *arg)
{
    c->sink = write;
    c->sink_arg = arg;
}
