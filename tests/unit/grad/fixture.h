/* What the tests of the tape share: a context, small float tensors, and comparison. */
#ifndef BP_TESTS_GRAD_FIXTURE_H
#define BP_TESTS_GRAD_FIXTURE_H
#include "tests/lib/op_world.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define T(f) OP_WORLD_TEST(f)
#define OK() assert_string_equal(bp_error_text(c), "")
/* The pending error is of this code and says this; it is cleared. */
#define FAILS(code, part)                           \
    do {                                            \
        assert_int_equal(bp_error(c), (code));      \
        assert_contains(bp_error_text(c), (part));  \
        bp_error_clear(c);                          \
    } while (0)

static inline bp_tensor *floats(uint32_t rank, const int64_t *sizes, const float *at)
{
    return bp_tensor_from(c, BP_F32, rank, sizes, at);
}
#define F(...) \
    floats(1, (const int64_t[]){sizeof((const float[]){__VA_ARGS__}) / sizeof(float)}, (const float[]){__VA_ARGS__})
/* rows x columns */
#define M(rows, ...)                                                                                       \
    floats(2, (const int64_t[]){(rows), sizeof((const float[]){__VA_ARGS__}) / sizeof(float) / (rows)}, \
           (const float[]){__VA_ARGS__})

static inline bp_tensor *leaf(bp_tensor *t)
{
    bp_tensor_set_requires_grad(c, t, 1);
    return t;
}

static inline void check_values(bp_tensor *t, uint32_t n, const float *want, const char *file, int line)
{
    float got[64];
    if (!t || bp_tensor_numel(t) != n || bp_tensor_read(c, t, got, n * sizeof *got) != BP_OK) {
        print_error("%s\n", t ? bp_error_text(c) : "no tensor");
        print_error("%s", bp_error_text(c));
        _fail(file, line);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i])))) {
            print_error("element %u is %g, expected %g\n", i, (double)got[i], (double)want[i]);
            _fail(file, line);
        }
}
#define IS(t, ...)                                                                       \
    check_values((t), sizeof((const float[]){__VA_ARGS__}) / sizeof(float),              \
                 (const float[]){__VA_ARGS__}, __FILE__, __LINE__)
#define GRAD(t) bp_tensor_grad(c, (t))
#define BACKWARD(t) bp_backward(c, (t), NULL, 0)
#endif
