/* Compiled objects and their runs.
 *
 * A plugin's outputs are checked where it makes them, against the metadata that the graph promises, so that a wrong
 * shape is an error of the plugin by name and never a wrong number downstream. Runs of one object are serial unless its
 * backend says otherwise. */
#include "host/backend/compiled.h"
#include "host/backend/program.h"
#include "host/base/log.h"
#include <stdio.h>
#include <string.h>

static bp_compiled *make(bp_ctx *c, backend *b)
{
    bp_compiled *k = calloc(1, sizeof *k);
    if (!k) {
        diag_nomem(&c->diag);
        return NULL;
    }
    k->host = &b->host.api;
    k->b = b;
    atomic_init(&k->refs, 1);
    pthread_mutexattr_t attr; /* an object that runs itself must meet the limit of depth, not itself */
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&k->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    return k;
}

bp_compiled *compiled_ref(bp_compiled *k)
{
    if (k)
        atomic_fetch_add_explicit(&k->refs, 1, memory_order_relaxed);
    return k;
}

void compiled_unref(bp_compiled *k)
{
    if (!k || atomic_fetch_sub_explicit(&k->refs, 1, memory_order_acq_rel) != 1)
        return;
    k->is_dead = true;
    if (k->destroy) {
        fp_word word = protect_begin();
        k->destroy(k->state);
        protect_end(word);
    }
    if (k->gm)
        gm_unref(k->gm);
    sym_env_unref(k->env);
    if (k->program)
        program_unref(k->program);
    pthread_mutex_destroy(&k->lock);
    backend_bury(k->b->room, k);
}

bool compiled_take_back(atomic_uint *lent)
{
    unsigned n = atomic_load_explicit(lent, memory_order_relaxed);
    while (n && !atomic_compare_exchange_weak_explicit(lent, &n, n - 1, memory_order_relaxed, memory_order_relaxed))
        continue;
    return n != 0;
}

/* -- outputs ------------------------------------------------------------------------------------------------------- */

static void describe(bp_dtype dtype, uint32_t rank, const bp_dim *sizes, char *out, size_t cap)
{
    int n = snprintf(out, cap, "%s[", dtype_get(dtype)->brief);
    for (uint32_t i = 0; i < rank && n > 0 && (size_t)n < cap; i++)
        n += snprintf(out + n, cap - (size_t)n, "%s%lld", i ? ", " : "", (long long)sizes[i].value);
    if (n > 0 && (size_t)n < cap)
        snprintf(out + n, cap - (size_t)n, "]");
}

bp_status run_say(bp_run *r, bp_status code, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!atomic_flag_test_and_set(&r->said))
        ctx_fail(r->c, code, "%s", text);
    return code;
}

/* Whether an output's sizes are what is promised; of data, they are what they are. */
static bool fits(uint32_t rank, const bp_dim *promised, const bp_dim *is)
{
    for (uint32_t i = 0; i < rank; i++)
        if (is[i].value < 0 || (dim_is_const(promised[i]) && promised[i].value != is[i].value))
            return false;
    return true;
}

/* "f32[2*s0]", as the graph has it, of a type with symbols. */
static void describe_promise(const bp_run *r, uint32_t i, char *out, size_t cap)
{
    const tensor_meta *m = r->sizes ? r->sizes->promised[i] : NULL;
    buf text = {0};
    *out = '\0';
    if (!m || meta_is_constant(m))
        return;
    buf_printf(&text, "%s[", dtype_get(m->dtype)->brief);
    for (uint32_t d = 0; d < m->rank; d++) {
        buf_puts(&text, d ? ", " : "");
        sym_print(r->sizes->env, m->sizes[d], false, &text);
    }
    snprintf(out, cap, "%s], which is ", buf_text(&text));
    buf_fini(&text);
}

/* Whether an output has the dtype and sizes that the graph promises. */
static bp_status check_output(bp_run *r, uint32_t i, bp_dtype dtype, uint32_t rank, const bp_dim *sizes)
{
    const tensor_meta *m = r->expected[i];
    if (m && m->dtype == dtype && m->rank == rank && fits(rank, m->sizes, sizes))
        return BP_OK;
    char want[200] = "None", got[200], promise[300];
    if (m)
        describe(m->dtype, m->rank, m->sizes, want, sizeof want);
    describe_promise(r, i, promise, sizeof promise);
    describe(dtype, rank, sizes, got, sizeof got);
    return run_say(r, BP_INTERNAL, "output %u is %s, expected %s%s", (unsigned)i, got, promise, want);
}

static bp_status check_index(bp_run *r, uint32_t i)
{
    return i < r->noutputs ? BP_OK
                           : run_say(r, BP_INTERNAL, "it set output %u, but the graph has %u (numbers begin at 0)",
                                 (unsigned)i, (unsigned)r->noutputs);
}

/* Turns the context's story of a failed host function into the run's. */
static bp_status told(bp_run *r)
{
    atomic_flag_test_and_set(&r->said);
    return r->c->diag.code;
}

bp_status run_make_output(bp_run *r, uint32_t i, bp_view *out)
{
    TRY(check_index(r, i));
    if (!r->expected[i])
        return run_say(r, BP_INTERNAL, "it asked for output %u, which is None", (unsigned)i);
    if (!r->outputs[i] && r->sizes && !meta_is_constant(r->expected[i]))
        return run_say(r, BP_INTERNAL, "it asked for output %u, whose size only the run tells: such an output is given "
                       "by bp_run_output", (unsigned)i);
    if (!r->outputs[i] && !(r->outputs[i] = tensor_new(r->c, r->expected[i])))
        return told(r);
    tensor_get_view(r->outputs[i], out);
    return BP_OK;
}

/* A view of foreign memory as a tensor. */
static bp_tensor *wrap_view(bp_run *r, const bp_view *v)
{
    tensor_meta m = {.dtype = v->dtype, .device = {v->device_kind, v->device_index}, .rank = v->rank};
    union { const bp_dim *in; bp_dim *out; } sizes = {v->sizes}, strides = {v->strides};
    m.sizes = sizes.out; /* only read */
    m.strides = strides.out;
    int64_t span = 1;
    for (uint32_t i = 0; i < v->rank; i++)
        span += v->sizes[i].value ? (v->sizes[i].value - 1) * v->strides[i].value : 0;
    return tensor_wrap(r->c, &m, v->data, (size_t)span * dtype_size(v->dtype), tensor_release_nothing, NULL);
}

/* Memory for an output of the sizes that the run has found. */
static bp_status make_sized(bp_run *r, uint32_t i, const bp_view *v)
{
    int64_t sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < v->rank; d++)
        sizes[d] = v->sizes[d].value;
    r->outputs[i] = tensor_contiguous_new(r->c, v->dtype, v->rank, sizes);
    return r->outputs[i] ? BP_OK : told(r);
}

bp_status run_set_output(bp_run *r, uint32_t i, const bp_view *v)
{
    TRY(check_index(r, i));
    if (!v || v->size < sizeof *v || v->rank > TENSOR_MAX_RANK || (v->rank && (!v->sizes || !v->strides)))
        return run_say(r, BP_INTERNAL, "output %u: the view is NULL, too short, or lacks sizes or strides",
                       (unsigned)i);
    TRY(check_output(r, i, v->dtype, v->rank, v->sizes));
    if (v->flags & BP_VIEW_FAKE || (v->device_kind != BP_DEVICE_UNSET && v->device_kind != BP_CPU))
        return run_say(r, BP_INTERNAL, "output %u is %s, expected host memory", (unsigned)i,
                       v->flags & BP_VIEW_FAKE ? "a fake" : "on another device");
    bool is_empty = false;
    for (uint32_t d = 0; d < v->rank; d++) {
        is_empty |= v->sizes[d].value == 0;
        if (v->strides[d].value < 0)
            return run_say(r, BP_INTERNAL, "output %u: stride %u is negative", (unsigned)i, (unsigned)d);
    }
    if (!v->data && !is_empty)
        return run_say(r, BP_INTERNAL, "output %u has no data", (unsigned)i);
    bp_view made;
    if (!r->outputs[i] && r->sizes && !meta_is_constant(r->expected[i]))
        TRY(make_sized(r, i, v));
    TRY(run_make_output(r, i, &made));
    if (is_empty || made.data == v->data)
        return BP_OK;
    bp_tensor *from = wrap_view(r, v);
    bp_status st = from ? tensor_copy(r->c, r->outputs[i], from) : r->c->diag.code;
    tensor_unref(from);
    return st ? told(r) : BP_OK;
}

/* -- inputs -------------------------------------------------------------------------------------------------------- */

/* The same bytes from the first to the last element, at a better address. */
static bp_status align_input(bp_run *r, uint32_t i, size_t align, bp_view *out)
{
    const bp_tensor *t = r->inputs[i];
    if (!r->aligned && !(r->aligned = calloc(r->ninputs, sizeof *r->aligned)))
        return BP_RESOURCE_EXHAUSTED;
    if (!r->aligned[i]) {
        size_t n = tensor_span_bytes(t);
        r->aligned[i] = aligned_alloc(align, (n + align) & ~(align - 1));
        if (!r->aligned[i])
            return BP_RESOURCE_EXHAUSTED;
        memcpy(r->aligned[i], tensor_ptr(t), n);
    }
    out->data = r->aligned[i];
    return BP_OK;
}

bp_status run_view_input(bp_run *r, uint32_t i, bp_view *out)
{
    tensor_get_view(r->inputs[i], out);
    size_t align = r->k->b->info.min_alignment;
    if (align < 2 * sizeof(void *) || !out->data || (uintptr_t)out->data % align == 0)
        return BP_OK;
    return align_input(r, i, align, out);
}

RARE static void free_aligned(bp_run *r)
{
    for (uint32_t i = 0; r->aligned && i < r->ninputs; i++)
        free(r->aligned[i]);
    free(r->aligned);
    r->aligned = NULL;
}

/* -- running ------------------------------------------------------------------------------------------------------- */

RARE static void drop_outputs(bp_run *r)
{
    for (uint32_t i = 0; i < r->noutputs; i++) {
        tensor_unref(r->outputs[i]);
        r->outputs[i] = NULL;
    }
}

RARE static bp_status miss_output(bp_run *r, uint32_t missing)
{
    uint32_t made = 0, wanted = 0;
    for (uint32_t i = 0; i < r->noutputs; i++) {
        made += r->outputs[i] != NULL;
        wanted += r->expected[i] != NULL;
    }
    return run_say(r, BP_INTERNAL, "it made %u of %u outputs: output %u is missing", (unsigned)made, (unsigned)wanted,
                   (unsigned)missing);
}

static bp_status check_all_made(bp_run *r)
{
    for (uint32_t i = 0; i < r->noutputs; i++)
        if (!r->outputs[i] && r->expected[i])
            return miss_output(r, i);
    return BP_OK;
}

/* Puts the backend's name before what went wrong. */
static bp_status name_backend(bp_ctx *c, const bp_compiled *k)
{
    char text[sizeof c->diag.message];
    snprintf(text, sizeof text, "a run of backend \"%s\" failed: %.900s", k->b->name, c->diag.message);
    memcpy(c->diag.message, text, sizeof text);
    return c->diag.code;
}

static bp_status call_run(bp_compiled *k, bp_run *r)
{
    const bp_compiled *outer = r->k;
    void **aligned = r->aligned;
    r->k = k;
    r->aligned = NULL;
    if (k->is_serial)
        pthread_mutex_lock(&k->lock);
    fp_word word = protect_begin();
    bp_status st = k->run(k->state, r);
    bool changed = protect_end(word);
    if (k->is_serial)
        pthread_mutex_unlock(&k->lock);
    if (r->aligned)
        free_aligned(r);
    r->k = outer;
    r->aligned = aligned;
    if (changed)
        log_line(r->c->rt, LOG_backend, "a run of \"%s\" changed the floating-point control word; it was put back",
                 k->b->name);
    return st;
}

/* A run that returned st and did not do what it should. */
RARE static bp_status tell_failure(bp_ctx *c, const bp_compiled *k, bp_run *r, bp_status st, bool has_reason)
{
    if (st != BP_OK && !has_reason && r->inner[0]) /* it hands on how an object failed that it ran */
        return run_say(r, st, "%s", r->inner);
    if (st != BP_OK && !has_reason)
        run_say(r, st, "returned %s and gave no reason", status_name(st));
    return name_backend(c, k);
}

static bp_status invoke_plugin(bp_ctx *c, bp_compiled *k, bp_run *r)
{
    bp_status st = call_run(k, r);
    bool has_reason = c->diag.code != BP_OK;
    if (st == BP_OK && !has_reason && check_all_made(r) == BP_OK)
        return BP_OK;
    return tell_failure(c, k, r, st, has_reason);
}

static bp_status invoke_graph(bp_ctx *c, bp_compiled *k, bp_run *r)
{
    return graph_run(c, k->gm, r->inputs, r->ninputs, r->outputs, r->noutputs, NULL, NULL);
}

static bp_status invoke_program(bp_ctx *c, bp_compiled *k, bp_run *r)
{
    program_io io = {.inputs = r->inputs, .owned = r->owned, .ninputs = r->ninputs, .noutputs = r->noutputs,
                     .outputs = r->outputs, .rng_base = c->rng_offset};
    return program_run(c, k->program, &io);
}

bp_status compiled_run(bp_compiled *k, bp_run *r)
{
    if (r->depth >= RUN_MAX_DEPTH)
        return run_say(r, BP_INTERNAL,
                       "runs of backend \"%s\" are nested %d deep: does a compiled object run itself?", k->b->name,
                       RUN_MAX_DEPTH);
    bool may_fork = (k->b->info.flags & BP_FORK_SAFE) || k->invoke != invoke_plugin;
    if (!may_fork && k->b->forks != protect_forks())
        return run_say(r, BP_FAILED_PRECONDITION,
                       "the process forked since the backend was loaded, and it is not fork-safe");
    r->host = k->host;
    r->depth++;
    bp_status st = k->invoke(r->c, k, r);
    r->depth--;
    if (st != BP_OK)
        drop_outputs(r);
    return st;
}

bp_compiled *compiled_of_run(bp_ctx *c, backend *b, bp_run_fn run, bp_destroy_fn destroy, void *state)
{
    bp_compiled *k = make(c, b);
    if (!k)
        return NULL;
    k->invoke = invoke_plugin;
    k->run = run;
    k->destroy = destroy;
    k->state = state;
    k->is_serial = !(b->info.flags & BP_CONCURRENT_RUN);
    return k;
}

bp_compiled *compiled_of_graph(bp_ctx *c, backend *b, bp_graph_module *gm)
{
    bp_compiled *k = make(c, b);
    if (!k)
        return NULL;
    k->invoke = invoke_graph;
    k->gm = gm_ref(gm);
    return k;
}

bp_compiled *compiled_of_program(bp_ctx *c, backend *b, program *p)
{
    bp_compiled *k = make(c, b);
    if (!k) {
        program_unref(p);
        return NULL;
    }
    k->invoke = invoke_program;
    k->program = p;
    return k;
}
