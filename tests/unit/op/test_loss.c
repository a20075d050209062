/* Losses: ignored targets, bad targets, cut logarithms, what each reduction gives. */
#include "tests/lib/op_world.h"

static void each_reduction_gives_its_shape(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"mse_loss(f32[1 2], f32[3 2], 0)", "f32[4 0]"},
        {"mse_loss(f32[1 2], f32[3 2])", "f32(2)"},
        {"mse_loss(f32[1 2], f32[3 2], 2)", "f32(4)"},
        {"mse_loss(f32[1 2], f32[3 2], 3)", "INVALID_ARGUMENT: mse_loss: argument \"reduction\": 3 is none of..."},
        {"mse_loss(i64[1], i64[2])", "INVALID_ARGUMENT: mse_loss: not there for int64..."},
        {"l1_loss(f32[1 2], f32[3 -2], 2)", "f32(6)"},
        {"smooth_l1_loss(f32[0 0], f32[0.5 2], 0, 1.0)", "f32[0.125 1.5]"},
        {"smooth_l1_loss(f32[0], f32[2], 0, 0.0)", "f32[2]"},
        {"huber_loss(f32[0 0], f32[0.5 3], 0, 2.0)", "f32[0.125 4]"},
        {"mse_loss(f32[], f32[])", "f32(nan)"},
        {"mse_loss_backward(f32(1), f32[1 2], f32[3 2], 1)", "f32[-2 0]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void logarithms_are_cut_and_probabilities_checked(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"binary_cross_entropy(f32[0 1], f32[1 0], None, 0)", "f32[100 100]"},
        {"binary_cross_entropy(f32[0.5], f32[0.5])", "f32(0.693147)"},
        {"binary_cross_entropy(f32[1.5], f32[0])", "OUT_OF_RANGE: binary_cross_entropy: argument \"self\"..."},
        {"binary_cross_entropy(f32[nan], f32[0])", "OUT_OF_RANGE: binary_cross_entropy: argument \"self\"..."},
        {"binary_cross_entropy_with_logits(f32[1000 -1000], f32[1 0], None, None, 0)", "f32[0 0]"},
        {"kl_div(f32[0], f32[0], 2)", "f32(0)"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void targets_may_be_ignored_but_not_out_of_range(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"cross_entropy_loss(f32[1x2: 0 0], i64[0])", "f32(0.693147)"},
        {"cross_entropy_loss(f32[2x2: 0 0 1 1], i64[-100 -100])", "f32(nan)"},
        {"cross_entropy_loss(f32[2x2: 0 0 1 1], i64[-100 -100], None, 2)", "f32(0)"},
        {"cross_entropy_loss(f32[2x2: 0 0 9 9], i64[1 -100])", "f32(0.693147)"},
        {"cross_entropy_loss(f32[1x2: 0 0], i64[2])", "OUT_OF_RANGE: ..."},
        {"nll_loss_forward(f32[2x2: -1 -2 -3 -4], i64[0 1], f32[1 3], 1, -100)", "f32(3.25) | f32(4)"},
        {"nll_loss_forward(f32[2x2: -1 -2 -3 -4], i64[0 1], None, 0, -100)", "f32[1 4] | f32(0)"},
        {"nll_loss_nd(f32[1x2x2: -1 -2 -3 -4], i64[1x2: 1 0], None, 0)", "f32[1x2: 3 2]"},
        {"nll_loss_forward(f32[-1 -2], i64(1), None, 1, -100)", "f32(2) | f32(1)"},
        {"nll_loss_forward(f32[2x2: 1 2 3 4], i64[0], None, 1, -100)", "INVALID_ARGUMENT: nll_loss_forward:..."},
        {"nll_loss_backward(f32(1), f32[2x2: 1 2 3 4], i64[0 1], None, 1, -100, f32(2))", "f32[2x2: -0.5 0 0 -0.5]"},
        {"cross_entropy_loss(f32[1x2: 0 0], f32[1x2: 0.25 0.75])", "f32(0.693147)"},
        {"cross_entropy_loss(f32[1x2: 0 0], i64[0], None, 1, -100, 0.5)", "f32(0.693147)"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void distances_and_angles(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"cosine_similarity(f32[1x2: 1 0], f32[1x2: 1 1])", "f32[0.707107]"},
        {"cosine_similarity(f32[1x2: 0 0], f32[1x2: 1 1])", "f32[0]"},
        {"pairwise_distance(f32[1x2: 0 0], f32[1x2: 3 4], 2.0, 0.0)", "f32[5]"},
        {"dist(f32[1 2], f32[4 6])", "f32(5)"},
        {"triplet_margin_loss(f32[1x1: 0], f32[1x1: 1], f32[1x1: 3], 1.0, 2.0, 0.0)", "f32(0)"},
        {"hinge_embedding_loss(f32[0.25 0.25], f32[1 -1], 1.0, 0)", "f32[0.25 0.75]"},
        {"cosine_similarity(i64[1x2: 1 0], i64[1x2: 1 1])", "INVALID_ARGUMENT: cosine_similarity: expected a float..."},
    };
    OP_TEXT_CHECK(c, cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reduction_gives_its_shape),
        cmocka_unit_test(logarithms_are_cut_and_probabilities_checked),
        cmocka_unit_test(targets_may_be_ignored_but_not_out_of_range),
        cmocka_unit_test(distances_and_angles),
    };
    return cmocka_run_group_tests_name("loss", tests, op_world_begin, op_world_end);
}
