/* What tests of sizes share: tensors of given sizes, calls compared with eager, small programs. */
#ifndef TESTS_COMPILE_DYNAMIC_H
#define TESTS_COMPILE_DYNAMIC_H
#include "tests/unit/compile/fixture.h"

/* A tensor of those sizes, 0, 1, 2 ... */
static inline bp_tensor *ramp(fixture *f, uint32_t rank, const int64_t *sizes)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < rank; d++)
        n *= sizes[d];
    float *v = calloc((size_t)n + 1, sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)i;
    bp_tensor *t = bp_tensor_from(f->c, BP_F32, rank, sizes, v);
    free(v);
    assert_non_null(t);
    return t;
}
#define RAMP(f, ...) ramp((f), (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static inline const char *guards(fixture *f, const bp_callable *g)
{
    static buf text;
    buf_clear(&text);
    assert_int_equal(bp_print_guards(f->c, g, fixture_append, &text), BP_OK);
    return buf_text(&text);
}

static inline void expect_same(fixture *f, bp_callable *g, bp_fn fn, uint32_t n, bp_tensor *const *in)
{
    bp_value v[8];
    for (uint32_t i = 0; i < n; i++)
        v[i] = bp_arg_of_tensor(in[i]);
    bp_args args = {v, n};
    bp_outputs got = call_n(f, g, n, in), want = {0};
    if (bp_run_eager(f->c, fn, NULL, &args, &want) != BP_OK)
        fail_msg("%s", bp_error_text(f->c));
    assert_int_equal(got.n, want.n);
    for (uint32_t i = 0; i < got.n; i++) {
        tensor_meta a, b;
        tensor_get_meta(got.at[i], &a);
        tensor_get_meta(want.at[i], &b);
        assert_int_equal(a.rank, b.rank);
        for (uint32_t d = 0; d < a.rank; d++) {
            assert_int_equal(a.sizes[d].sym | a.strides[d].sym, 0);
            assert_int_equal(a.sizes[d].value, b.sizes[d].value);
            assert_int_equal(a.strides[d].value, b.strides[d].value);
        }
        size_t bytes = (size_t)tensor_nelem(got.at[i]) * sizeof(float);
        float *x = malloc(bytes + 1), *y = malloc(bytes + 1);
        assert_int_equal(bp_tensor_read(f->c, got.at[i], x, bytes), BP_OK);
        assert_int_equal(bp_tensor_read(f->c, want.at[i], y, bytes), BP_OK);
        assert_memory_equal(x, y, bytes);
        free(x);
        free(y);
    }
}
#define SAME(f, g, fn, ...)                                                                                            \
    expect_same((f), (g), (fn), (uint32_t)(sizeof((bp_tensor *[]){__VA_ARGS__}) / sizeof(bp_tensor *)),                \
                (bp_tensor *[]){__VA_ARGS__})

/* -- programs and marks -------------------------------------------------------------------------------------------- */

static inline void twice(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_mul(c, bp_arg(f, 0, "x"), 2), 1));
}

static inline void sum_of_two(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_add(c, bp_arg(f, 0, "x"), bp_arg(f, 1, "y")));
}

static inline void long_or_short(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_dim_gt(c, bp_size(c, x, 0), 6) ? bp_mul(c, x, 2) : bp_add(c, x, 1));
}

static inline bp_tensor *marked(fixture *f, bp_tensor *t, int64_t dim)
{
    assert_int_equal(bp_mark_dynamic(f->c, t, dim, NULL), BP_OK);
    return t;
}

static inline bp_tensor *fixed(fixture *f, bp_tensor *t)
{
    assert_int_equal(bp_mark_static(f->c, t, -1), BP_OK);
    return t;
}

static inline void needs_number(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_return(f, bp_mul(c, x, (double)bp_size_int(c, bp_size(c, x, 0))));
}

static inline void writing(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = bp_arg(f, 0, "x");
    bp_add_inplace(c, bp_slice(c, x, .start = BP_SCALAR(1), .dim = 0), 5);
    bp_return(f, bp_mul(c, x, 2));
    bp_return(f, x);
}
#endif
