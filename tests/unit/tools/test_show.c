/* Arrays print as numpy prints them; shown/ was written by numpy itself (shown.py), from the same numbers. */
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include <stdlib.h>
#include "host/tools/show.h"
#include <backplane/backplane.h>
#include <math.h>

/* shown.py's numbers(n, scale, step). */
static double number(int64_t i, double scale, int64_t step)
{
    return (double)((i * step) % 64 - 20) * scale;
}

static const struct {
    const char *name;
    bp_dtype d;
    uint32_t rank;
    int64_t sizes[4];
    double scale;
    int64_t step;
} ROWS[] = {
    {"plain", BP_F32, 1, {10}, 0.125, 7},      {"rows", BP_F64, 2, {3, 4}, 0.3, 11},
    {"cube", BP_F32, 3, {2, 3, 4}, 1, 5},      {"long", BP_F32, 1, {60}, 1.0 / 3, 13},
    {"large", BP_F64, 1, {8}, 1e7, 9},         {"small", BP_F32, 1, {8}, 1e-6, 9},
    {"ints", BP_I64, 1, {30}, 100, 17},        {"many", BP_F64, 2, {30, 40}, 0.5, 3},
    {"half", BP_F16, 1, {9}, 0.1, 5},          {"wide", BP_F64, 2, {2, 20}, 12345.678, 19},
    {"deep", BP_I64, 4, {2, 2, 2, 2}, 1, 3},   {"one", BP_F32, 0, {0}, 0.1, 1},
    {"none", BP_F32, 2, {0, 3}, 1, 1},
};

static void check_shown(bp_tensor *t, const char *name)
{
    char path[512], expected[8192];
    snprintf(path, sizeof path, "%s/tests/unit/tools/shown/%s", getenv("top_srcdir"), name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    expected[fread(expected, 1, sizeof expected - 1, f)] = 0;
    fclose(f);
    buf out = {0};
    show_values(t, &out);
    assert_string_equal(buf_text(&out), expected);
    buf_fini(&out);
    tensor_unref(t);
}

static bp_tensor *make(bp_ctx *c, bp_dtype d, uint32_t rank, const int64_t *sizes)
{
    bp_tensor *t = tensor_contiguous_new(c, d, rank, sizes);
    assert_non_null(t);
    return t;
}

static void put(bp_tensor *t, int64_t i, double v)
{
    dtype_store(t->dtype, (char *)tensor_ptr(t) + i * (int64_t)dtype_size(t->dtype), (num){NUM_FLOAT, 0, v, 0});
}

static void arrays_print_as_numpy_prints_them(void **state)
{
    bp_ctx *c = *state;
    for (size_t k = 0; k < sizeof ROWS / sizeof *ROWS; k++) {
        bp_tensor *t = make(c, ROWS[k].d, ROWS[k].rank, ROWS[k].sizes);
        for (int64_t i = 0; i < tensor_nelem(t); i++)
            put(t, i, number(i, ROWS[k].scale, ROWS[k].step));
        check_shown(t, ROWS[k].name);
    }
}

static void special_values_print_as_numpy_prints_them(void **state)
{
    bp_ctx *c = *state;
    static const double SPECIAL[] = {1.5, NAN, -INFINITY, 0, -0.0, 2};
    bp_tensor *t = make(c, BP_F64, 1, (int64_t[]){6});
    for (int64_t i = 0; i < 6; i++)
        put(t, i, SPECIAL[i]);
    check_shown(t, "special");
    t = make(c, BP_F64, 1, (int64_t[]){2});
    put(t, 0, NAN);
    put(t, 1, INFINITY);
    check_shown(t, "all_special");
    t = make(c, BP_F32, 0, NULL);
    put(t, 0, 1e-7);
    check_shown(t, "tiny");
}

static void bools_and_bytes_print_as_numpy_prints_them(void **state)
{
    bp_ctx *c = *state;
    bp_tensor *t = make(c, BP_BOOL, 2, (int64_t[]){3, 3});
    for (int64_t i = 0; i < 9; i++)
        put(t, i, number(i, 1, 7) > 0);
    check_shown(t, "bools");
    t = make(c, BP_BOOL, 0, NULL);
    put(t, 0, 1);
    check_shown(t, "truth");
    t = make(c, BP_U8, 2, (int64_t[]){2, 3});
    for (int64_t i = 0; i < 6; i++)
        put(t, i, fabs(number(i, 1, 3)));
    check_shown(t, "bytes");
}

static void strides_are_followed(void **state)
{
    bp_ctx *c = *state;
    bp_dim sizes[] = {{2, 0, 0}, {3, 0, 0}}, strides[] = {{1, 0, 0}, {2, 0, 0}};
    bp_tensor *t = tensor_new(c, &(tensor_meta){BP_I32, {BP_CPU, 0}, 2, sizes, strides, {0}});
    for (int64_t i = 0; i < 6; i++)
        put(t, i, (double)i);
    buf out = {0};
    show_values(t, &out);
    assert_string_equal(buf_text(&out), "[[0 2 4]\n [1 3 5]]");
    buf_fini(&out);
    tensor_unref(t);
}

static int make_ctx(void **state)
{
    return (*state = bp_ctx_new(NULL)) ? 0 : -1;
}

static int drop_ctx(void **state)
{
    bp_ctx_destroy(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        cmocka_unit_test(arrays_print_as_numpy_prints_them),
        cmocka_unit_test(special_values_print_as_numpy_prints_them),
        cmocka_unit_test(bools_and_bytes_print_as_numpy_prints_them),
        cmocka_unit_test(strides_are_followed),
    };
    return cmocka_run_group_tests(claims, make_ctx, drop_ctx);
}
