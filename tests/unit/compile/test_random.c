/* Random programs: what a callable gives is what eager gives, bit for bit: results, written inputs, who shares memory
 * with whom, layouts, requires_grad, the generator. RANDOM_SEED=n runs one program and prints it. */
#include "sdk/base/vec.h"
#include "tests/unit/compile/program.h"
#include <math.h>

enum { CALLS = 20, PASSES = 2, SIZES = 2, BUFFER = 16 };

/* -- inputs -------------------------------------------------------------------------------------------------------- */

typedef struct { uint32_t buffer; int64_t offset, n, step; uint32_t same_as; } arg_spec;
typedef struct {
    uint32_t nargs, seed;
    bool shared; /* arguments are views of buffers; else each owns its memory */
    bp_dtype dtype[3];
    double values[3][BUFFER];
    arg_spec args[3];
} call_spec;

static call_spec make_call(rng *r, uint32_t nargs, const bp_dtype *dtypes, bool wild)
{
    static const double floats[] = {.1, .2, .3, -.1, -.3, .6, 1.1};
    call_spec s = {.nargs = nargs, .seed = rng_next(r)};
    uint32_t pattern = wild ? rng_below(r, 7) : 0; /* 0..2 own buffers, 3 same, 4 overlapping, 5 neighbours, 6 steps */
    s.shared = pattern >= 2;
    int64_t size = wild && !rng_below(r, 4) ? 4 : 3 + (int64_t)(pattern == 2);
    for (uint32_t i = 0; i < nargs; i++) {
        s.dtype[i] = wild && !rng_below(r, 7) ? (rng_below(r, 2) ? BP_F32 : BP_I64) : dtypes[i];
        bool shared = i && pattern >= 4;
        s.args[i] = (arg_spec){shared ? 0 : i, 0, size, 1, i};
        if (pattern >= 4) {
            s.dtype[i] = s.dtype[0];
            s.args[i].offset = pattern == 5 ? i * size : i;
            s.args[i].step = pattern == 6 ? 2 : 1;
        }
        if (pattern == 3 && i && rng_below(r, 10) < 7) {
            s.dtype[i] = s.dtype[0];
            s.args[i].buffer = 0;
            s.args[i].same_as = rng_below(r, 2) ? 0 : i;
        }
        for (int j = 0; j < BUFFER; j++)
            s.values[i][j] = s.dtype[i] == BP_F32 ? floats[rng_below(r, 7)] : (double)(int)rng_below(r, 6) - 2;
    }
    return s;
}

static bp_tensor *make_buffer(bp_ctx *c, bp_dtype d, int64_t n, const double *v)
{
    int64_t ints[BUFFER];
    float f[BUFFER];
    for (int i = 0; i < BUFFER; i++) {
        ints[i] = (int64_t)v[i];
        f[i] = (float)v[i];
    }
    return bp_tensor_from(c, d, 1, &n, d == BP_F32 ? (void *)f : (void *)ints);
}

static void make_args(bp_ctx *c, const call_spec *s, bp_value *args)
{
    bp_tensor *buffers[3] = {0}, *made[3];
    for (uint32_t i = 0; i < s->nargs; i++) {
        const arg_spec *a = &s->args[i];
        if (!s->shared) {
            made[i] = make_buffer(c, s->dtype[i], a->n, s->values[i]);
            args[i] = bp_arg_of_tensor(made[i]);
            continue;
        }
        if (!buffers[a->buffer])
            buffers[a->buffer] = make_buffer(c, s->dtype[a->buffer], BUFFER, s->values[a->buffer]);
        made[i] = a->same_as != i ? made[a->same_as]
                                  : bp_as_strided(c, buffers[a->buffer], BP_DIMS(a->n), BP_DIMS(a->step),
                                                  .storage_offset = BP_SCALAR(a->offset));
        args[i] = bp_arg_of_tensor(made[i]);
    }
}

/* -- what a caller can see ----------------------------------------------------------------------------------------- */

static void print_data(bp_tensor *t, buf *out)
{
    const unsigned char *p = t->store->data;
    for (size_t i = 0; i < t->store->nbytes; i++)
        buf_printf(out, "%02x", p[i]);
}

/* Results that only the allocator tells apart count as equal: memory outside a result's elements is not shown. */
static void print_elements(bp_ctx *c, bp_tensor *t, buf *out)
{
    bp_tensor *flat = tensor_to_contiguous(c, t);
    const unsigned char *p = tensor_ptr(flat);
    for (size_t i = 0; p && i < (size_t)tensor_nelem(flat) * dtype_size(flat->dtype); i++)
        buf_printf(out, "%02x", p[i]);
    tensor_unref(flat);
}

typedef VEC(double) numbers;

static void take_numbers(bp_ctx *c, bp_tensor *t, numbers *out)
{
    bp_tensor *flat = tensor_to_contiguous(c, t);
    const char *p = tensor_ptr(flat);
    for (int64_t i = 0; p && i < tensor_nelem(flat); i++) {
        num n = dtype_load(flat->dtype, p + (size_t)i * dtype_size(flat->dtype));
        (void)vec_push(out, n.kind == NUM_INT ? (double)n.i : n.f);
    }
    tensor_unref(flat);
}

/* What was seen: structure and bits as text, or (numbers given) structure as text and the numbers apart. */
static void observe(bp_ctx *c, bp_status st, const bp_value *args, uint32_t nargs, const bp_outputs *outs, buf *out,
                    numbers *apart)
{
    bp_tensor *all[8];
    uint32_t n = 0;
    for (uint32_t i = 0; i < nargs; i++)
        all[n++] = args[i].v.tensor;
    for (uint32_t i = 0; st == BP_OK && i < outs->n; i++)
        all[n++] = outs->at[i];
    buf_printf(out, "%s, generator at %llu\n", bp_status_name(st), (unsigned long long)bp_generator_offset(c));
    for (uint32_t i = 0; i < n; i++) {
        bp_tensor *t = all[i];
        uint32_t same = 0, shares = 0;
        while (all[same] != t)
            same++;
        while (!bp_tensor_same_storage(all[shares], t))
            shares++;
        buf_printf(out, "%s %u: object %u, memory of %u, type %d, grad %d, offset %lld, sizes",
                   i < nargs ? "input" : "result", i, same, shares, bp_tensor_dtype(t), bp_tensor_requires_grad(t),
                   (long long)bp_tensor_offset(t));
        for (uint32_t d = 0; d < bp_tensor_rank(t); d++)
            buf_printf(out, " %lld/%lld", (long long)bp_tensor_size(t, d), (long long)bp_tensor_stride(t, d));
        buf_puts(out, ", data ");
        if (apart)
            take_numbers(c, t, apart);
        else if (i < nargs)
            print_data(t, out);
        else
            print_elements(c, t, out);
        buf_putc(out, '\n');
    }
}

static void call_observed(bp_ctx *c, bp_callable *g, const program *p, const call_spec *s, buf *out, numbers *apart)
{
    bp_value args[3];
    bp_outputs outs = {0};
    bp_scope_begin(c);
    bp_manual_seed(c, s->seed);
    make_args(c, s, args);
    bp_args in = {args, s->nargs};
    union { const program *seen; void *own; } user = {p};
    bp_status st = g ? bp_call(c, g, &in, &outs) : bp_run_eager(c, program_run_it, user.own, &in, &outs);
    bp_error_clear(c);
    observe(c, st, args, s->nargs, &outs, out, apart);
    bp_scope_end(c);
}

/* -- backends ------------------------------------------------------------------------------------------------------ */

static bp_compiled *plain_backend(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    return bp_forward(gm);
}

static uint32_t compiles, runs;

static bp_status failing_run(void *state, bp_run *r)
{
    return ++runs % 5 ? bp_run_compiled(r, state) : bp_run_fail(r, BP_UNAVAILABLE, "run %u fails", runs);
}

static void drop_forward(void *state)
{
    bp_compiled_unref(state);
}

/* Every third compile and every fifth run fail. */
static bp_compiled *failing_backend(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    if (++compiles % 3 == 0)
        return bp_fail(gm, BP_UNAVAILABLE, "compile %u fails", compiles);
    return bp_compiled_new(gm, failing_run, drop_forward, bp_forward(gm));
}

/* Gives what the graph gives, each other float one unit in the last place higher. */
typedef struct { bp_compiled *forward; uint32_t nouts; } rounding;

static bp_status rounding_run(void *state, bp_run *r)
{
    const rounding *me = state;
    bp_status st = bp_run_compiled(r, me->forward);
    for (uint32_t i = 0; st == BP_OK && i < me->nouts; i++) {
        bp_view v;
        st = bp_run_empty(r, i, &v);
        int64_t n = 1;
        for (uint32_t d = 0; st == BP_OK && d < v.rank; d++)
            n *= v.sizes[d].value;
        float *p = v.data;
        for (int64_t k = 0; st == BP_OK && v.dtype == BP_F32 && k < n; k++) /* results are dense */
            p[k] = (i + k) % 2 || p[k] == 0 ? p[k] : nextafterf(p[k], INFINITY);
    }
    return st;
}

static void drop_rounding(void *state)
{
    rounding *me = state;
    bp_compiled_unref(me->forward);
    free(me);
}

static bp_compiled *rounding_backend(bp_graph_module *gm, const bp_inputs *in)
{
    (void)in;
    bp_value outs;
    rounding *me = calloc(1, sizeof *me);
    uint32_t last = bp_node_at(gm, bp_node_count(gm) - 1);
    if (!me || bp_node_arg(gm, last, "0", &outs) != BP_OK)
        return bp_fail(gm, BP_INTERNAL, "a graph without an output");
    *me = (rounding){bp_forward(gm), outs.count};
    return bp_compiled_new(gm, rounding_run, drop_rounding, me);
}

/* -- the comparison ------------------------------------------------------------------------------------------------ */

typedef struct { uint64_t calls, captures, graphs, eager, disagreements; } totals;

static void add_totals(fixture *f, bp_callable *g, totals *t)
{
    bp_callable_stats s = stats(f, g);
    t->calls += CALLS * PASSES;
    t->captures += s.captures;
    t->graphs += s.graphs;
    t->eager += s.eager_calls;
    t->disagreements += s.disagreements;
}

static bool near(const numbers *a, const numbers *b)
{
    double peak = 1;
    for (uint32_t i = 0; i < b->len; i++)
        peak = isfinite(b->at[i]) && fabs(b->at[i]) > peak ? fabs(b->at[i]) : peak;
    if (a->len != b->len || peak > 1e9) /* numbers that explode say nothing */
        return a->len == b->len;
    for (uint32_t i = 0; i < a->len; i++)
        if (a->at[i] != b->at[i] && !(fabs(a->at[i] - b->at[i]) <= 1e-3 * peak) &&
            !(isnan(a->at[i]) && isnan(b->at[i])))
            return false;
    return true;
}

static void compare(uint64_t seed, const program *p, uint32_t pass, uint32_t call, const buf *got, const buf *want,
                    const numbers *x, const numbers *y)
{
    if (!strcmp(buf_text(got), buf_text(want)) && near(x, y))
        return;
    buf text = {0};
    program_print(p, &text);
    print_error("%s", buf_text(&text));
    fail_msg("RANDOM_SEED=%llu, call %u of pass %u:\ngot\n%swant\n%s", (unsigned long long)seed, call, pass,
             buf_text(got), buf_text(want));
}

static void run_program(uint64_t seed, bp_compile_fn backend_fn, totals *t)
{
    bool rounds = backend_fn == rounding_backend;
    fixture *f = fixture_new();
    rng r = {seed};
    program *p = program_make(&r, rounds);
    bool wild = rng_below(&r, 10) < 4 && !rounds;
    bp_dtype dtypes[3];
    for (int i = 0; i < 3; i++)
        dtypes[i] = rng_below(&r, 3) ? BP_F32 : BP_I64;
    if (getenv("RANDOM_SEED")) {
        buf text = {0};
        program_print(p, &text);
        print_message("%s", buf_text(&text));
        buf_fini(&text);
    }
    bp_compile_options o = {.backend_fn = backend_fn, .user = p};
    bp_callable *g = bp_compile(f->c, program_run_it, &o);
    call_spec specs[CALLS];
    for (int i = 0; i < CALLS; i++)
        specs[i] = make_call(&r, p->nargs, dtypes, wild);
    uint32_t captures = 0;
    for (uint32_t pass = 0; pass < PASSES; pass++)
        for (uint32_t i = 0; i < CALLS; i++) {
            buf got = {0}, want = {0};
            numbers x = {0}, y = {0};
            call_observed(f->c, NULL, p, &specs[i], &want, rounds ? &y : NULL);
            call_observed(f->c, g, p, &specs[i], &got, rounds ? &x : NULL);
            compare(seed, p, pass, i, &got, &want, &x, &y);
            vec_fini(&x);
            vec_fini(&y);
            buf_fini(&got);
            buf_fini(&want);
            captures = pass ? captures : stats(f, g).captures;
        }
    add_totals(f, g, t);
    if (backend_fn == plain_backend && stats(f, g).disagreements)
        fail_msg("RANDOM_SEED=%llu: a slice disagrees with an exact backend", (unsigned long long)seed);
    bp_callable_unref(g);
    program_free(p);
    fixture_free(f);
}

static void run_many(uint64_t first, uint64_t n, bp_compile_fn backend_fn)
{
    totals t = {0};
    const char *one = getenv("RANDOM_SEED"), *count = getenv("RANDOM_COUNT");
    if (one) {
        run_program(strtoull(one, NULL, 10), backend_fn, &t);
        return;
    }
    n = count ? strtoull(count, NULL, 10) : n;
    for (uint64_t s = first; s < first + n; s++)
        run_program(s, backend_fn, &t);
    print_message("%llu programs, %llu calls, %llu captures, %llu graphs, %llu eager calls, %llu disagreements\n",
                  (unsigned long long)n, (unsigned long long)t.calls, (unsigned long long)t.captures,
                  (unsigned long long)t.graphs, (unsigned long long)t.eager, (unsigned long long)t.disagreements);
    assert_true(t.eager * 2 < t.calls); /* most calls are compiled */
}

static void random_programs_give_what_eager_gives(void **state)
{
    (void)state;
    run_many(1000, 200, plain_backend);
}

static void failing_backends_change_no_result(void **state)
{
    (void)state;
    run_many(50000, 60, failing_backend);
}

static void another_rounding_takes_the_way_that_was_computed(void **state)
{
    (void)state;
    run_many(90000, 60, rounding_backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_give_what_eager_gives),
        cmocka_unit_test(failing_backends_change_no_result),
        cmocka_unit_test(another_rounding_takes_the_way_that_was_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
