/* Random programs of operators, views and writes in place: gradients by the tape are those of central differences of
 * the same program. Every written value goes through sin, so that nothing grows. A program that eager refuses (a saved
 * tensor is written, a view of a leaf) proves nothing and is counted: most must not be. */
#include "tests/unit/grad/fixture.h"

enum { POOL = 24, STEPS = 12, ELEMENTS = 12, PROGRAMS = 600 };

typedef struct { uint64_t seed; bp_tensor *pool[POOL]; uint32_t n; } program;

static uint32_t pick(program *p, uint32_t n)
{
    p->seed = p->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(p->seed >> 33) % n;
}

static bool same_sizes(const bp_tensor *a, const bp_tensor *b)
{
    bool same = bp_tensor_rank(a) == bp_tensor_rank(b);
    for (uint32_t d = 0; same && d < bp_tensor_rank(a); d++)
        same = bp_tensor_size(a, d) == bp_tensor_size(b, d);
    return same;
}

static bp_tensor *view_of(program *p, bp_tensor *a)
{
    uint32_t rank = bp_tensor_rank(a), kind = pick(p, 4);
    int64_t dim = rank ? pick(p, rank) : 0;
    if (kind == 0 && rank && bp_tensor_size(a, (uint32_t)dim) > 1)
        return bp_select(c, a, dim, 1);
    if (kind == 1 && rank && bp_tensor_size(a, (uint32_t)dim) > 1)
        return bp_slice(c, a, .dim = dim, .start = BP_SCALAR(1));
    if (kind == 2 && rank == 2)
        return bp_t(c, a);
    return rank < 3 ? bp_unsqueeze(c, a, 0) : a;
}

static bp_tensor *value_of(program *p, bp_tensor *a, bp_tensor *b)
{
    if (!same_sizes(a, b))
        return bp_sin(c, a);
    return bp_sin(c, pick(p, 2) ? bp_mul(c, a, b) : bp_add(c, a, b, .alpha = BP_SCALAR(0.5)));
}

/* The first two of the pool are leaves, and stay as they are; nor are there views of them. */
static void write_to(program *p, bp_tensor *a, bp_tensor *b)
{
    if (a == p->pool[0] || a == p->pool[1])
        return;
    switch (pick(p, 5)) {
    case 0: bp_sin_inplace(c, a); return;
    case 1: bp_mul_inplace(c, a, bp_sin(c, bp_sum(c, b))); return;
    case 2: bp_copy_inplace(c, a, same_sizes(a, b) ? b : bp_sin(c, bp_sum(c, b))); return;
    case 3: bp_zero_inplace(c, a); return;
    default: if (same_sizes(a, b)) bp_mul_inplace(c, a, bp_sin(c, b));
    }
}

static bp_tensor *run(uint64_t seed, bp_tensor *x, bp_tensor *y)
{
    program p = {.seed = seed * 977 + 1, .pool = {x, y, bp_ones(c, BP_DIMS(3, 4), .dtype = BP_F64), bp_mul(c, x, y)},
                 .n = 4};
    for (int i = 0; i < STEPS && bp_error(c) == BP_OK; i++) {
        bp_tensor *a = p.pool[pick(&p, p.n)], *b = p.pool[pick(&p, p.n)];
        switch (pick(&p, 3)) {
        case 0: p.pool[p.n++] = view_of(&p, a == x || a == y ? p.pool[3] : a); break;
        case 1: p.pool[p.n++] = value_of(&p, a, b); break;
        default: write_to(&p, a, b);
        }
    }
    bp_tensor *loss = bp_zeros(c, BP_NO_DIMS, .dtype = BP_F64);
    for (uint32_t i = 0; i < p.n && bp_error(c) == BP_OK; i++)
        loss = bp_add(c, loss, bp_sum(c, bp_cos(c, p.pool[i])));
    return loss;
}

/* Input k with one element moved. */
static bp_tensor *input(uint64_t seed, int k, int element, double by)
{
    double at[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        at[i] = 0.3 + 0.1 * (double)((uint64_t)(i * 7 + k * 5) + seed % 11) / 2 + (i == element ? by : 0);
    return bp_tensor_from(c, BP_F64, 2, (const int64_t[]){3, 4}, at);
}

static double loss_at(uint64_t seed, int k, int element, double by)
{
    double loss = NAN;
    bp_set_grad_enabled(c, 0);
    bp_scope_begin(c);
    bp_tensor *t = run(seed, input(seed, 0, k == 0 ? element : -1, by), input(seed, 1, k == 1 ? element : -1, by));
    bp_tensor_read(c, t, &loss, sizeof loss);
    bp_scope_end(c);
    bp_set_grad_enabled(c, 1);
    return loss;
}

static void compare(uint64_t seed, int k, const double *grad)
{
    for (int i = (int)(seed % 3); i < ELEMENTS; i += 3) {
        double slope = (loss_at(seed, k, i, 1e-6) - loss_at(seed, k, i, -1e-6)) / 2e-6;
        if (!(fabs(slope - grad[i]) <= 1e-5 * (1 + fabs(slope))))
            fail_msg("program %llu, input %d[%d]: the tape gives %.9g, differences %.9g", (unsigned long long)seed, k,
                     i, grad[i], slope);
    }
}

/* Whether the program could be differentiated. */
static bool prove(uint64_t seed)
{
    double grads[2][ELEMENTS] = {{0}};
    bp_scope_begin(c);
    bp_tensor *in[2] = {leaf(input(seed, 0, -1, 0)), leaf(input(seed, 1, -1, 0))};
    bp_tensor *loss = run(seed, in[0], in[1]);
    bool proven = bp_error(c) == BP_OK && BACKWARD(loss) == BP_OK;
    for (int k = 0; k < 2 && proven; k++)
        if (GRAD(in[k]))
            bp_tensor_read(c, GRAD(in[k]), grads[k], sizeof grads[k]);
    bp_scope_end(c);
    bp_status why = bp_error(c);
    assert_true(why == BP_OK || why == BP_INVALID_ARGUMENT || why == BP_FAILED_PRECONDITION);
    bp_error_clear(c);
    for (int k = 0; k < 2 && proven; k++)
        compare(seed, k, grads[k]);
    return proven;
}

static void random_programs_have_the_gradients_of_differences(void **state)
{
    (void)state;
    int proven = 0;
    for (uint64_t seed = 0; seed < PROGRAMS; seed++)
        proven += prove(seed);
    print_message("%d of %d programs proven, the others refused\n", proven, PROGRAMS);
    assert_true(proven > PROGRAMS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {T(random_programs_have_the_gradients_of_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
