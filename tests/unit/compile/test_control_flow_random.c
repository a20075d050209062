/* Random programs of cond, while_loop, map and scan: what a callable gives is what eager gives, bit for bit.
 *
 * A program is a tree of statements over a few vectors, made from a seed; the C function interprets it, eagerly and
 * under capture. FLOW_PROGRAMS=n runs that many (`make check-flow`), FLOW_SEED=n begins there. */
#include "tests/unit/compile/fixture.h"

enum { LENGTH = 4, VALUES = 5, DEEPEST = 3, SIZES = 3 };

static uint32_t next(uint64_t *r)
{
    *r = *r * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*r >> 33);
}

typedef struct { bp_tensor *v[VALUES]; } values; /* each of LENGTH numbers */
typedef struct { uint64_t seed; int depth; const values *outer; } part;

static bp_tensor *pick(uint64_t *r, const values *s)
{
    return s->v[next(r) % VALUES];
}

/* A new value of the same size, bounded so that loops of it stay finite. */
static bp_tensor *compute(bp_ctx *c, uint64_t *r, const values *s)
{
    bp_tensor *a = pick(r, s), *b = pick(r, s), *t;
    switch (next(r) % 8) {
    case 0: return bp_sin(c, bp_add(c, a, b));
    case 1: return bp_tanh(c, bp_mul(c, a, b));
    case 2: return bp_cos(c, bp_sub(c, a, bp_mul(c, b, 0.5)));
    case 3: return bp_where(c, bp_gt(c, a, b), a, bp_neg(c, b));
    case 4: return bp_aten_flip_default(c, bp_sigmoid(c, a), BP_DIMS(0));
    case 5: return bp_tanh(c, bp_cumsum(c, a, 0));
    case 6:
        t = bp_clone(c, a);
        bp_mul_inplace(c, bp_narrow(c, t, 0, bp_dim_of(1), bp_dim_of(2)), 0.5);
        bp_add_inplace(c, t, bp_sin(c, b));
        return bp_tanh(c, t);
    default: return bp_sin(c, bp_add(c, bp_sum(c, a), b));
    }
}

static void statements(bp_ctx *c, uint64_t *r, int depth, values *s);

/* What a function starts from: what it is given, in place of some of the values around it, which it reads as well. */
static uint64_t begin(const part *p, bp_tensor *const *in, uint32_t n, values *s)
{
    *s = *p->outer;
    for (uint32_t i = 0; i < n; i++)
        s->v[i] = in[i];
    return p->seed;
}

#define BRANCH(name) \
    static void name(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout)

static void give(bp_ctx *c, uint64_t *r, const values *s, bp_tensor **out, uint32_t nout)
{
    for (uint32_t i = 0; i < nout; i++)
        out[i] = compute(c, r, s);
}

BRANCH(one)
{
    values s;
    uint64_t r = begin(user, in, n, &s);
    statements(c, &r, ((part *)user)->depth, &s);
    give(c, &r, &s, out, nout);
}

BRANCH(other)
{
    values s;
    uint64_t r = begin(user, in, n, &s) + 77;
    statements(c, &r, ((part *)user)->depth, &s);
    give(c, &r, &s, out, nout);
}

/* in[0] counts rounds. */
BRANCH(goes_on)
{
    (void)user, (void)n, (void)nout;
    out[0] = bp_logical_and(c, bp_lt(c, bp_sum(c, in[0]), 4 * LENGTH), bp_lt(c, bp_sum(c, in[1]), 2));
}

BRANCH(round_of)
{
    values s;
    uint64_t r = begin(user, in, n, &s);
    statements(c, &r, ((part *)user)->depth, &s);
    out[0] = bp_add(c, in[0], 1);
    give(c, &r, &s, out + 1, nout - 1);
}

static bp_tensor *table(bp_ctx *c, uint64_t *r, const values *s)
{
    return bp_stack(c, BP_TENSORS(pick(r, s), pick(r, s), pick(r, s)), 0);
}

static void control(bp_ctx *c, uint64_t *r, int depth, values *s)
{
    part p = {next(r), depth - 1, s};
    bp_tensor *out[2] = {NULL, NULL}, *in[2] = {pick(r, s), pick(r, s)}, *xs = table(c, r, s);
    bp_scan_options how = {sizeof how, (int32_t)(next(r) % 2), 0};
    uint32_t to = next(r) % VALUES;
    switch (next(r) % 4) {
    case 0:
        bp_cond(c, bp_gt(c, bp_sum(c, pick(r, s)), 0.1), one, other, &p, in, 2, out, 2);
        break;
    case 1:
        in[0] = bp_mul(c, in[0], 0);
        bp_while_loop(c, goes_on, round_of, &p, in, 2, NULL, 0, out);
        break;
    case 2:
        bp_map(c, one, &p, &xs, 1, in, 1, out, 1);
        out[0] = out[0] ? bp_aten_sum_dim_intlist(c, out[0], BP_DIMS(0), 0, 0) : NULL;
        break;
    default:
        bp_scan(c, one, &p, in, 1, &xs, 1, &out[0], &out[1], 1, &how);
        out[1] = out[1] ? bp_select(c, out[1], 0, 1) : NULL;
        break;
    }
    if (out[0])
        s->v[to] = out[0];
    if (out[1])
        s->v[(to + 1) % VALUES] = out[1];
}

static void statements(bp_ctx *c, uint64_t *r, int depth, values *s)
{
    for (uint32_t i = 0, n = 1 + next(r) % 3; i < n; i++) {
        bp_tensor *t;
        if (depth && next(r) % 3 == 0)
            control(c, r, depth, s);
        else if ((t = compute(c, r, s)))
            s->v[next(r) % VALUES] = t;
    }
}

static void program(bp_ctx *c, bp_frame *f)
{
    uint64_t r = *(const uint64_t *)bp_user(f);
    bp_tensor *a = bp_arg(f, 0, "a"), *b = bp_arg(f, 1, "b");
    values s = {{a, b, bp_sin(c, a), bp_tanh(c, b), bp_add(c, a, b)}};
    control(c, &r, DEEPEST, &s);
    statements(c, &r, DEEPEST, &s);
    for (int i = 0; i < VALUES; i++)
        bp_return(f, s.v[i]);
}

static void expect_equal(fixture *f, uint64_t seed, const bp_outputs *got, const bp_outputs *want)
{
    assert_int_equal(got->n, want->n);
    for (uint32_t i = 0; i < got->n; i++)
        for (int64_t k = 0; k < bp_tensor_numel(want->at[i]); k++) {
            float x = at(f, got->at[i], k), y = at(f, want->at[i], k);
            if (memcmp(&x, &y, sizeof x) != 0)
                fail_msg("program %u: result %u, element %d is %.9g, eager gives %.9g", (unsigned)seed, i, (int)k,
                         (double)x, (double)y);
        }
}

static void run_program(uint64_t seed, uint32_t *compiled)
{
    fixture *f = fixture_new();
    bp_compile_options o = {.backend = "eager", .user = &seed};
    bp_callable *g = bp_compile(f->c, program, &o);
    uint64_t r = seed;
    for (int call = 0; call < SIZES; call++) {
        float v[2][LENGTH];
        for (int i = 0; i < 2 * LENGTH; i++)
            v[i / LENGTH][i % LENGTH] = (float)(next(&r) % 2000) / 1000 - 1;
        int64_t n = LENGTH;
        bp_tensor *in[2] = {bp_tensor_from(f->c, BP_F32, 1, &n, v[0]), bp_tensor_from(f->c, BP_F32, 1, &n, v[1])};
        bp_value args[2] = {bp_arg_of_tensor(in[0]), bp_arg_of_tensor(in[1])};
        bp_outputs want = {0};
        if (bp_run_eager(f->c, program, &seed, &(bp_args){args, 2}, &want) != BP_OK)
            fail_msg("program %u: %s", (unsigned)seed, bp_error_text(f->c));
        bp_outputs got = call_n(f, g, 2, in);
        expect_equal(f, seed, &got, &want);
    }
    *compiled += stats(f, g).eager_calls == 0 && stats(f, g).captures == 1;
    if (stats(f, g).eager_calls)
        fail_msg("program %u ran eagerly: %s", (unsigned)seed, buf_text(&f->log));
    bp_callable_unref(g);
    fixture_free(f);
}

static void random_programs_of_control_flow_give_what_eager_gives(void **state)
{
    (void)state;
    const char *count = getenv("FLOW_PROGRAMS"), *from = getenv("FLOW_SEED");
    uint64_t n = count ? strtoull(count, NULL, 10) : 300, first = from ? strtoull(from, NULL, 10) : 1;
    uint32_t compiled = 0;
    for (uint64_t seed = first; seed < first + n; seed++)
        run_program(seed, &compiled);
    assert_int_equal(compiled, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_of_control_flow_give_what_eager_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
