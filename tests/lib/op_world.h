/* What tests of operators begin with: a context `c`, new for each function, and what was made in it gone afterwards. */
#ifndef BP_TESTS_LIB_OP_WORLD_H
#define BP_TESTS_LIB_OP_WORLD_H
#include "tests/lib/check.h"
#include "tests/lib/op_text.h"
#include <backplane/backplane.h>

static bp_ctx *c;

static int op_world_begin(void **state)
{
    (void)state;
    c = bp_ctx_new(NULL);
    return c ? 0 : -1;
}

static int op_world_end(void **state)
{
    (void)state;
    bp_ctx_destroy(c);
    return 0;
}

/* f32[2, 3] of 1 to 6. */
static inline bp_tensor *op_world_six(void)
{
    static const float six[] = {1, 2, 3, 4, 5, 6};
    return bp_tensor_from(c, BP_F32, 2, (const int64_t[]){2, 3}, six);
}

/* A row of the tests array. */
#define OP_WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, op_world_begin, op_world_end)
#endif
