/* Running a segment that trains, and its backward.
 *
 * What the backward reads is kept as views without history: no node holds itself. Each saved value knows the version of
 * its memory; one that was written since is an error, as it is in eager execution. Symbols are kept as numbers. */
#include "host/compile/aot_parts.h"
#include "host/base/log.h"
#include "host/grad/share.h"
#include "host/tensor/tensor.h"
#include <stdlib.h>
#include <string.h>

/* -- what the tape holds ------------------------------------------------------------------------------------------- */

typedef struct { bp_tensor *t; uint64_t version; } kept;
typedef struct {
    aot *a;          /* counted */
    aot_made *m;     /* a's */
    int64_t *values; /* of the graph's symbols; those that nobody asks for are 0 */
    bp_tensor **inputs; /* one each, for their history alone: leaves, and fakes that have it; NULL: it needs none */
    uint32_t nsaved;
    kept saved[];
} tape_state;

/* A run of the forward. */
typedef struct {
    aot *a;
    aot_made *m;
    program_io *io;
    const uint8_t *written;
    const int64_t *symbols;  /* values of the graph's symbols */
} forward_run;

static void release(void *state)
{
    tape_state *s = state;
    for (uint32_t i = 0; i < s->nsaved; i++) {
        tensor_unref(s->saved[i].t);
        s->saved[i].t = NULL;
    }
    for (uint32_t i = 0; s->inputs && i < s->a->ninputs; i++)
        tensor_unref(s->inputs[i]);
    free(s->inputs);
    s->inputs = NULL;
}

static void destroy(void *state)
{
    tape_state *s = state;
    release(s);
    aot_unref(s->a);
    free(s->values);
    free(s);
}

static bp_tensor *without_history(bp_ctx *c, bp_tensor *t)
{
    tensor_meta m;
    tensor_get_meta(t, &m);
    return tensor_view(c, t, &m);
}

static bp_tensor *copy_of(bp_ctx *c, bp_tensor *t)
{
    tensor_meta m;
    tensor_get_meta(t, &m);
    m.offset = dim_const(0);
    bp_tensor *to = tensor_new(c, &m);
    if (to && tensor_copy(c, to, t) == BP_OK)
        return to;
    tensor_unref(to);
    return NULL;
}

/* The history of an input, without its memory. */
static bp_tensor *history_of(bp_ctx *c, bp_tensor *t)
{
    tensor_meta m;
    if (t->flags & TENSOR_IS_LEAF)
        return tensor_ref(t);
    tensor_get_meta(t, &m);
    m.offset = dim_const(0);
    bp_tensor *fake = tensor_new_fake(c, &m);
    if (fake && tape_share_history(c, fake, t) == BP_OK)
        return fake;
    tensor_unref(fake);
    return NULL;
}

static bp_status keep_inputs(bp_ctx *c, tape_state *s, const program_io *io)
{
    if (!(s->inputs = calloc((size_t)io->ninputs + 1, sizeof *s->inputs)))
        return ctx_nomem(c);
    for (uint32_t i = 0; i < io->ninputs; i++)
        if (s->a->needs[i] && !(s->inputs[i] = history_of(c, io->inputs[i])))
            return c->diag.code;
    return BP_OK;
}

/* Whether the call will write this memory. */
static bool is_written(const program_io *io, const uint8_t *written, const bp_tensor *t)
{
    for (uint32_t i = 0; written && i < io->ninputs; i++)
        if (written[i] && io->inputs[i]->store == t->store)
            return true;
    return false;
}

static bp_status keep_saved(bp_ctx *c, tape_state *s, const program_io *io, const uint8_t *written,
                            bp_tensor *const *values)
{
    for (uint32_t i = 0; i < s->nsaved; i++) {
        bool copied = is_written(io, written, values[i]);
        if (!(s->saved[i].t = copied ? copy_of(c, values[i]) : without_history(c, values[i])))
            return c->diag.code;
        s->saved[i].version = atomic_load(&s->saved[i].t->store->version);
    }
    return BP_OK;
}

/* The symbols: those of the inputs, and those that the forward told. */
static bp_status keep_symbols(bp_ctx *c, tape_state *s, const int64_t *symbols, bp_tensor *const *numbers)
{
    uint32_t n = variants_nsymbols(s->a->made);
    if (!n)
        return BP_OK;
    if (!(s->values = malloc(n * sizeof *s->values)))
        return ctx_nomem(c);
    memcpy(s->values, symbols, n * sizeof *s->values);
    for (uint32_t i = 0; i < s->m->nnumbers; i++)
        s->values[s->m->numbers[i]] = dtype_load((bp_dtype)numbers[i]->dtype, tensor_ptr(numbers[i])).i;
    return BP_OK;
}

static tape_state *keep(bp_ctx *c, const forward_run *f, bp_tensor *const *values)
{
    tape_state *s = calloc(1, sizeof *s + f->m->nsaved * sizeof *s->saved);
    if (!s)
        return ctx_nomem(c), NULL;
    s->a = aot_ref(f->a);
    s->m = f->m;
    s->nsaved = f->m->nsaved;
    if (keep_saved(c, s, f->io, f->written, values) == BP_OK &&
        keep_symbols(c, s, f->symbols, values + s->nsaved) == BP_OK && keep_inputs(c, s, f->io) == BP_OK)
        return s;
    destroy(s);
    return NULL;
}

/* -- backward ------------------------------------------------------------------------------------------------------ */

static bp_status backward_program(bp_ctx *c, const aot *a, aot_made *m, program **out)
{
    *out = atomic_load_explicit(&m->backward, memory_order_acquire);
    if (*out)
        return BP_OK;
    pthread_mutex_lock(&m->lock);
    *out = atomic_load_explicit(&m->backward, memory_order_acquire);
    bp_status st = *out ? BP_OK : program_compile(c, m->backward_gm, a->backend, out);
    if (st == BP_OK)
        atomic_store_explicit(&m->backward, *out, memory_order_release);
    pthread_mutex_unlock(&m->lock);
    return st;
}

/* What the function calls a saved value: an input by its name, another one by its node's. */
static const char *name_of(const aot_made *m, uint32_t i)
{
    const graph *g = &m->backward_gm->g;
    node_id n = g->first;
    for (; n && i; n = graph_get(g, n)->next)
        i -= graph_get(g, n)->op == BP_NODE_PLACEHOLDER;
    return n ? graph_get(g, n)->target : "?";
}

static bp_status check_saved(bp_ctx *c, const tape_state *s)
{
    for (uint32_t i = 0; i < s->nsaved; i++) {
        const kept *k = &s->saved[i];
        char text[160];
        if (!k->t)
            return ctx_fail(c, BP_FAILED_PRECONDITION, "backward goes through graph \"%s\" a second time, and what it "
                            "had saved was freed by the first", s->m->backward_gm->name);
        uint64_t version = atomic_load(&k->t->store->version);
        if (version == k->version)
            continue;
        ctx_fail(c, BP_FAILED_PRECONDITION,
                 "a tensor that \"%s\" saved for backward was written in place: \"%s\", %s, is at version %llu, "
                 "expected version %llu", program_graph(s->m->forward)->name, name_of(s->m, i),
                 tensor_describe(k->t, text, sizeof text), (unsigned long long)version,
                 (unsigned long long)k->version);
        diag_hint(&c->diag, "clone() it before it is written");
        return c->diag.code;
    }
    return BP_OK;
}

static bp_status zeros(bp_ctx *c, const tensor_meta *m, bp_tensor **out)
{
    *out = tensor_new(c, m);
    if (!*out)
        return c->diag.code;
    size_t nbytes = tensor_span_bytes(*out);
    if (nbytes)
        memset(tensor_ptr(*out), 0, nbytes);
    return BP_OK;
}

/* A tangent's type for the sizes of this call. dims: room for its sizes and strides. */
static bp_status tangent_meta(bp_ctx *c, const tape_state *s, const aot_tangent *t, bp_dim *dims, tensor_meta *out)
{
    int64_t at[2 * TENSOR_MAX_RANK];
    *out = t->meta;
    if (!t->dims)
        return BP_OK;
    if (!sym_run(t->dims, s->values, at))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the sizes of result %u of \"%s\" do not fit 64 bits", t->of,
                        program_graph(s->m->forward)->name);
    for (uint32_t d = 0; d < 2 * out->rank; d++)
        dims[d] = dim_const(at[d]);
    out->sizes = dims;
    out->strides = dims + out->rank;
    return BP_OK;
}

/* A symbol as a tensor of no dimensions. */
static bp_tensor *number(bp_ctx *c, int64_t v)
{
    bp_tensor *t = tensor_contiguous_new(c, BP_I64, 0, NULL);
    if (t)
        dtype_store(BP_I64, tensor_ptr(t), (num){NUM_INT, v, 0, 0});
    return t;
}

/* A tangent as the backward was traced: of its type and shape, and laid out so. */
static bp_status fit_tangent(bp_ctx *c, const tape_state *s, uint32_t i, bp_tensor *t, bp_tensor **out)
{
    bp_dim dims[2 * TENSOR_MAX_RANK];
    tensor_meta meta, *m = &meta;
    char have[160];
    *out = NULL;
    TRY(tangent_meta(c, s, &s->m->tangents[i], dims, m));
    if (!t)
        return zeros(c, m, out);
    bool same = t->dtype == m->dtype && t->rank == m->rank, laid_out = true;
    for (uint32_t d = 0; same && d < t->rank; d++) {
        same = dim_eq(t->sizes[d], m->sizes[d]);
        laid_out &= dim_is(t->sizes[d], 1) || dim_eq(t->strides[d], m->strides[d]);
    }
    if (!same) {
        buf want = {0};
        graph_print_type(m, &want);
        ctx_fail(c, BP_INVALID_ARGUMENT, "the gradient of result %u of \"%s\" is %s, expected %s", s->m->tangents[i].of,
                 program_graph(s->m->forward)->name, tensor_describe(t, have, sizeof have), buf_text(&want));
        buf_fini(&want);
        return c->diag.code;
    }
    if (laid_out) {
        *out = tensor_ref(t);
        return BP_OK;
    }
    if (!(*out = tensor_new(c, m)))
        return c->diag.code;
    return tensor_copy(c, *out, t);
}

static uint32_t backward_inputs(const aot_made *m)
{
    return m->nsaved + m->ntangents + m->nsymbols;
}

static bp_status run_backward(bp_ctx *c, tape_state *s, bp_tensor *const *grads, bp_tensor **in, bp_tensor **found)
{
    aot_made *m = s->m;
    program *p = NULL;
    TRY(check_saved(c, s));
    for (uint32_t i = 0; i < m->nsaved; i++)
        in[i] = tensor_ref(s->saved[i].t);
    for (uint32_t i = 0; i < m->ntangents; i++)
        TRY(fit_tangent(c, s, i, grads[i], &in[m->nsaved + i]));
    for (uint32_t i = 0; i < m->nsymbols; i++)
        if (!(in[m->nsaved + m->ntangents + i] = number(c, s->values[m->symbols[i]])))
            return c->diag.code;
    TRY(backward_program(c, s->a, m, &p));
    program_io io = {.inputs = in, .ninputs = backward_inputs(m), .outputs = found, .noutputs = m->ngrads,
                     .rng_base = c->rng_offset};
    return program_run(c, p, &io);
}

static bp_status refuse_twice(bp_ctx *c, void *state, bp_tensor *const *grads, bp_tensor **out, bool create)
{
    (void)state;
    (void)grads;
    (void)out;
    (void)create;
    ctx_fail(c, BP_UNIMPLEMENTED, "a compiled function cannot be differentiated twice: its backward graph has no "
                                  "derivative");
    diag_hint(&c->diag, "call the function eagerly where second derivatives are needed (the stance \"force_eager\")");
    return c->diag.code;
}
static const tape_fn TWICE = {.name = "the backward of a compiled function", .backward = refuse_twice};

/* Under create_graph what comes out requires grad; its own backward says that there is none. */
static bp_status forbid_twice(bp_ctx *c, const tape_state *s, bp_tensor *const *grads, bp_tensor **out)
{
    const aot *a = s->a;
    uint32_t ntangents = s->m->ntangents, n = a->ninputs + ntangents;
    for (uint32_t i = 0; i < a->ninputs; i++)
        if (out[i]) {
            bp_tensor *own = without_history(c, out[i]);
            if (!own)
                return c->diag.code;
            tensor_unref(out[i]);
            out[i] = own;
        }
    bp_tensor **in = malloc((size_t)n * sizeof *in);
    if (!in)
        return ctx_nomem(c);
    memcpy(in, s->inputs, a->ninputs * sizeof *in);
    memcpy(in + a->ninputs, grads, ntangents * sizeof *in);
    bp_status st = tape_record(c, &TWICE, NULL, in, n, out, a->ninputs);
    free(in);
    return st;
}

static bp_status backward(bp_ctx *c, void *state, bp_tensor *const *grads, bp_tensor **out, bool create)
{
    tape_state *s = state;
    aot *a = s->a;
    uint32_t n = backward_inputs(s->m);
    bp_tensor **in = calloc((size_t)n + s->m->ngrads + 1, sizeof *in);
    bp_status st = in ? run_backward(c, s, grads, in, in + n) : ctx_nomem(c);
    for (uint32_t i = 0, g = 0; st == BP_OK && i < a->ninputs; i++)
        if (a->needs[i])
            out[i] = in[n + g++];
    for (uint32_t i = 0; in && i < n; i++)
        tensor_unref(in[i]);
    free(in);
    return st == BP_OK && create ? forbid_twice(c, s, grads, out) : st;
}

static const tape_fn COMPILED = {
    .name = "a compiled function", .backward = backward, .release = release, .destroy = destroy,
};

bp_status aot_keep_saved(bp_ctx *c, const bp_tensor *t, const bp_tensor *written)
{
    tape_state *s = tape_state_of(t, &COMPILED);
    for (uint32_t i = 0; s && i < s->nsaved; i++) {
        kept *k = &s->saved[i];
        if (!k->t || k->t->store != written->store || atomic_load(&k->t->store->version) != k->version)
            continue;
        bp_tensor *copy = copy_of(c, k->t);
        if (!copy)
            return c->diag.code;
        tensor_unref(k->t);
        *k = (kept){copy, atomic_load(&copy->store->version)};
    }
    return BP_OK;
}

/* -- forward ------------------------------------------------------------------------------------------------------- */

static bp_status check_needs(bp_ctx *c, const aot *a, const program_io *io)
{
    for (uint32_t i = 0; i < io->ninputs; i++)
        if (a->needs[i] != ((io->inputs[i]->flags & TENSOR_REQUIRES_GRAD) != 0))
            return ctx_fail(c, BP_FAILED_PRECONDITION, "input %u of graph \"%s\" %s grad, and was compiled otherwise",
                            i, a->gm->name, a->needs[i] ? "does not require" : "requires");
    return BP_OK;
}

static uint32_t values_of(const forward_run *f)
{
    return f->a->noutputs + f->m->nsaved + f->m->nnumbers;
}

/* A result that is an input itself keeps that one's history. */
static bool is_input(const program_io *io, const bp_tensor *t)
{
    for (uint32_t i = 0; i < io->ninputs; i++)
        if (io->inputs[i] == t)
            return true;
    return false;
}

static bp_status record(bp_ctx *c, const forward_run *f, bp_tensor *const *values)
{
    const aot_made *m = f->m;
    bp_tensor *few[32], **results = m->ntangents > 32 ? malloc(m->ntangents * sizeof *results) : few;
    tape_state *s = results ? keep(c, f, values + f->a->noutputs) : NULL;
    bp_status st = results ? c->diag.code : ctx_nomem(c);
    for (uint32_t i = 0; s && i < m->ntangents; i++) {
        bp_tensor *t = values[m->tangents[i].of];
        results[i] = is_input(f->io, t) ? NULL : t;
    }
    if (s)
        st = tape_record(c, &COMPILED, s, f->io->inputs, f->io->ninputs, results, m->ntangents);
    if (results != few)
        free(results);
    return st;
}

static bp_status run_compiled(bp_ctx *c, const forward_run *f, bp_tensor **values)
{
    program_io *io = f->io, own = {.inputs = io->inputs, .ninputs = io->ninputs, .outputs = values,
                                   .noutputs = values_of(f), .rng_base = io->rng_base};
    uint32_t n = f->a->noutputs;
    TRY(program_run(c, f->m->forward, &own));
    bp_status st = record(c, f, values);
    for (uint32_t i = n; i < own.noutputs; i++)
        tensor_unref(values[i]);
    for (uint32_t i = 0; i < n; i++) {
        io->outputs[i] = st == BP_OK ? values[i] : NULL;
        if (st != BP_OK)
            tensor_unref(values[i]);
    }
    return st;
}

/* The operators of gm, one by one, under the tape at the bottom. */
static bp_status run_operators(bp_ctx *c, const bp_graph_module *gm, program_io *io)
{
    dispatch_mode *modes = c->modes;
    ambient before = c->ambient;
    uint64_t rng = c->rng_offset;
    c->modes = NULL;
    c->rng_offset = io->rng_base;
    c->ambient.grad_enabled = 1;
    bp_status st = graph_run(c, gm, io->inputs, io->ninputs, io->outputs, io->noutputs, NULL, NULL);
    c->ambient = before;
    c->rng_offset = rng;
    c->modes = modes;
    return st;
}

/* The tape holds inputs themselves: one that the call will write is given as a copy. */
static bp_status run_beside(bp_ctx *c, const aot *a, const bp_graph_module *gm, program_io *io,
                            const uint8_t *written)
{
    if (!written)
        return run_operators(c, gm, io);
    bp_tensor **in = calloc((size_t)io->ninputs + 1, sizeof *in);
    program_io own = *io;
    bp_status st = in ? BP_OK : ctx_nomem(c);
    for (uint32_t i = 0; st == BP_OK && i < io->ninputs; i++) {
        in[i] = written[i] ? copy_of(c, io->inputs[i]) : tensor_ref(io->inputs[i]);
        if (!in[i])
            st = c->diag.code;
        else if (written[i] && a->needs[i])
            st = tape_share_copy(c, in[i], io->inputs[i]);
    }
    own.inputs = in;
    if (st == BP_OK)
        st = run_operators(c, gm, &own);
    for (uint32_t i = 0; in && i < io->ninputs; i++)
        tensor_unref(in[i]);
    free(in);
    return st;
}

static bp_status run_forward(bp_ctx *c, const forward_run *f)
{
    bp_tensor *few[128];
    size_t n = values_of(f);
    bp_tensor **values = n > 128 ? malloc(n * sizeof *values) : few;
    bp_status st = values ? run_compiled(c, f, values) : ctx_nomem(c);
    if (values != few)
        free(values);
    return st;
}

/* Where as many ways were made as may be, its operators run one by one. */
static bp_status run_for(bp_ctx *c, aot *a, program_io *io, const uint8_t *written, const int64_t *symbols)
{
    bool limit = false;
    aot_made *m = aot_made_for(c, a, symbols, &limit);
    if (!m && !limit)
        return c->diag.code;
    if (!m || m->taped)
        return run_beside(c, a, m ? m->taped : a->gm, io, written);
    return run_forward(c, &(forward_run){a, m, io, written, symbols});
}

bp_status aot_run(bp_ctx *c, aot *a, program_io *io, const uint8_t *written)
{
    variant_values symbols;
    for (uint32_t i = 0; i < io->noutputs; i++)
        io->outputs[i] = NULL;
    TRY(check_needs(c, a, io));
    if (!variant_values_init(&symbols, variants_nsymbols(a->made)))
        return ctx_nomem(c);
    variants_bind(a->made, io->inputs, symbols.at);
    bp_status st = run_for(c, a, io, written, symbols.at);
    variant_values_fini(&symbols);
    return st;
}
