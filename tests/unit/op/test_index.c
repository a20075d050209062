/* Indexing, gather, scatter, masks, looking up: right answers, and what is out of range. */
#include "tests/lib/op_world.h"

static void indices_wrap_broadcast_and_stand_where_they_belong(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"index.Tensor(f32[3x2: 1 2 3 4 5 6], [i64[-1 -3]])", "f32[2x2: 5 6 1 2]"},
        {"index.Tensor(f32[3x2: 1 2 3 4 5 6], [None, i64[1 0 1]])", "f32[3x3: 2 1 2 4 3 4 6 5 6]"},
        {"index.Tensor(f32[2x3: 1 2 3 4 5 6], [i64[2x1: 0 1], i64[2 0]])", "f32[2x2: 3 1 6 4]"},
        {"index.Tensor(i32[2x2x2: 1 2 3 4 5 6 7 8], [i64[1 0], None, i64[0 1]])", "i32[2x2: 5 7 2 4]"},
        {"index.Tensor(i32[2x2x2: 1 2 3 4 5 6 7 8], [None, i64[1], i64[0 1]])", "i32[2x2: 3 4 7 8]"},
        {"index.Tensor(f32[3 4 5], [b8[1 0 1]])", "f32[3 5]"},
        {"index.Tensor(f32[2x2: 1 2 3 4], [b8[2x2: 1 0 0 1]])", "f32[1 4]"},
        {"index.Tensor(f32[2x3: 1 2 3 4 5 6], [b8[0 1], i64[2]])", "f32[6]"},
        {"index.Tensor(f32[3 4], [i64[]])", "f32[]"},
        {"index.Tensor(f32[2x0:], [i64[1]])", "f32[1x0:]"},
        {"index.Tensor(f32[3 4 5], [i32[2 0]])", "f32[5 3]"},
        {"index.Tensor(f32[3 4], [i64(1)])", "f32(4)"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void an_index_out_of_range_is_named(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"index.Tensor(f32[1 2 3], [i64[3]])",
         "OUT_OF_RANGE: index.Tensor: index 3 is out of bounds for dimension 0 with size 3"},
        {"index.Tensor(f32[1 2 3], [i64[-4]])",
         "OUT_OF_RANGE: index.Tensor: index -4 is out of bounds for dimension 0 with size 3"},
        {"index.Tensor(f32[0x2:], [i64[0]])",
         "OUT_OF_RANGE: index.Tensor: index 0 is out of bounds for dimension 0 with size 0"},
        {"embedding(f32[3x1: 1 2 3], i64[2 -2 1])",
         "OUT_OF_RANGE: embedding: index -2 is out of range for a size of 3"},
        {"embedding(f32[3x1: 1 2 3], i64[3])", "OUT_OF_RANGE: embedding: index 3 is out of range for a size of 3"},
        {"index_select(f32[1 2 3], 0, i64[-1])",
         "OUT_OF_RANGE: index_select: index -1 is out of range for a size of 3"},
        {"gather(f32[1 2 3], 0, i64[-1])",
         "OUT_OF_RANGE: gather: index -1 is out of bounds for dimension 0 with size 3"},
        {"scatter_add(f32[1 2], 0, i64[2], f32[1])",
         "OUT_OF_RANGE: scatter_add: index 2 is out of bounds for dimension 0 with size 2"},
        {"scatter_reduce.two(f32[1 2 3 4], 0, i64[0 1 0 1 2 -1], f32[1 2 3 4 5 6], 'sum')",
         "OUT_OF_RANGE: scatter_reduce.two: index -1 is out of bounds for dimension 0 with size 4"},
        {"index_add(f32[1 2], 0, i64[-1], f32[1])",
         "OUT_OF_RANGE: index_add: index -1 is out of bounds for dimension 0 with size 2"},
        {"index_copy(f32[1 2], 0, i64[5], f32[1])",
         "OUT_OF_RANGE: index_copy: index 5 is out of bounds for dimension 0 with size 2"},
        {"take(f32[1 2], i64[-3])", "OUT_OF_RANGE: take: index -3 is out of range for a tensor of 2 elements"},
        {"put(f32[1 2], i64[2], f32[1])", "OUT_OF_RANGE: put: index 2 is out of range for a tensor of 2 elements"},
        {"index_fill.int_Scalar(f32[1 2], 0, i64[2], 1)",
         "OUT_OF_RANGE: index_fill.int_Scalar: index 2 is out of bounds for dimension 0 with size 2"},
        {"one_hot(i64[3], 3)", "OUT_OF_RANGE: one_hot: class 3 is out of range for 3 classes"},
        {"one_hot(i64[-1], 3)", "OUT_OF_RANGE: one_hot: class -1 is out of range for 3 classes"},
        {"index_put(f32[1 2], [i64[5]], f32[1])",
         "OUT_OF_RANGE: index_put: index 5 is out of bounds for dimension 0 with size 2"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void indices_of_wrong_kinds_are_refused(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"index.Tensor(f32[1 2 3], [f32[0]])",
         "INVALID_ARGUMENT: index.Tensor: an index must be int64, int32 or bool, and is float32"},
        {"index.Tensor(f32[1 2 3], [i64[0], i64[0]])",
         "INVALID_ARGUMENT: index.Tensor: too many indices for a tensor of 1 dimensions"},
        {"index.Tensor(f32[3x3: 1 2 3 4 5 6 7 8 9], [i64[0 1], i64[0 1 2]])",
         "INVALID_ARGUMENT: the size of tensor a (2) must match the size of tensor b (3) at non-sing..."},
        {"index.Tensor(f32[1 2 3], [b8[1 0]])",
         "INVALID_ARGUMENT: index.Tensor: a mask of sizes [2] does not match a tensor of sizes [3] at dimension 0"},
        {"gather(f32[2x2: 1 2 3 4], 0, i64[0])",
         "INVALID_ARGUMENT: gather: an index of sizes [1] must be no larger than [2, 2] but along dimension 0"},
        {"gather(f32[2x2: 1 2 3 4], 1, i64[3x1: 0 0 0])",
         "INVALID_ARGUMENT: gather: an index of sizes [3, 1] must be no larger than [2, 2] but along dimension 1"},
        {"scatter.src(f32[1 2], 0, i64[0], i32[1])",
         "INVALID_ARGUMENT: scatter.src: arguments \"self\" and \"src\" must have one dtype, and hav..."},
        {"scatter_reduce.two(f32[1], 0, i64[0], f32[1], 'median')",
         "INVALID_ARGUMENT: scatter_reduce.two: argument \"reduce\" must be one of sum, prod, mean, ..."},
        {"index_select(f32[1 2], 0, i64[1x1: 0])",
         "INVALID_ARGUMENT: index_select: argument \"index\" must have 0 to 1 dimensions, and has 2"},
        {"index_select(f32[1 2], 0, f32[0])",
         "INVALID_ARGUMENT: index_select: argument \"index\" must be int64 or int32, and is float32"},
        {"index_put(f32[1 2 3], [i64[0]], i64[1])",
         "INVALID_ARGUMENT: index_put: arguments \"self\" and \"values\" must have one dtype, and ha..."},
        {"index_put(f32[1 2 3], [i64[0 1]], f32[1 2 3])",
         "INVALID_ARGUMENT: index_put: argument \"values\" of sizes [3] cannot be expanded to [2]"},
        {"take(f32[1], i32[0])", "INVALID_ARGUMENT: take: argument \"index\" must be int64, and is int32"},
        {"masked_fill.Scalar(f32[1], u8[1], 1)",
         "INVALID_ARGUMENT: masked_fill.Scalar: argument \"mask\" must be bool, and is uint8"},
        {"embedding(f32[3], i64[0])",
         "INVALID_ARGUMENT: embedding: argument \"weight\" must have 2 dimensions, and has 1"},
        {"index_fill.int_Scalar(f16[1 2], 0, i64[0], 1e9)",
         "INVALID_ARGUMENT: index_fill.int_Scalar: the value 1e+09 does not fit float16"},
        {"masked_fill.Scalar(f32[1 2], b8[1], 1e300)",
         "INVALID_ARGUMENT: masked_fill.Scalar: the value 1e+300 does not fit float32"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void writes_go_where_the_index_says(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"index_put(f32[1 2 3], [i64[2 0]], f32[10 20])", "f32[20 2 10]"},
        {"index_put(f32[1 2 3], [i64[1 1 1]], f32(1), True)", "f32[1 5 3]"},
        {"index_put(f32[2x2: 1 2 3 4], [b8[2x2: 1 0 0 1]], f32[7 8])", "f32[2x2: 7 2 3 8]"},
        {"index_put(b8[0 0], [i64[0 0]], b8[1 1], True)", "b8[1 0]"},
        {"index_add(f64[0], 0, i64[0], f64[3], alpha=2)", "f64[6]"},
        {"index_add(i8[100 0], 0, i64[0 0 1], i8[20 20 1])", "i8[-116 1]"},
        {"index_copy(f32[2x2: 1 2 3 4], 1, i64[1], f32[2x1: 9 8])", "f32[2x2: 1 9 3 8]"},
        {"index_fill.int_Scalar(f32[2x2: 1 2 3 4], 0, i64[-1], 5)", "f32[2x2: 1 2 5 5]"},
        {"index_reduce(f32[1 2], 0, i64[0 0 1], f32[2 3 4], 'mean')", "f32[2 3]"},
        {"scatter.src(f32[2x3: 0 0 0 0 0 0], 1, i64[2x1: 2 0], f32[2x1: 5 6])", "f32[2x3: 0 0 5 6 0 0]"},
        {"scatter.value(i64[1 2 3], 0, i64[1], 2.5)", "i64[1 2 3]"},
        {"scatter.reduce(f32[1 2], 0, i64[0 0], f32[3 4], reduce='multiply')", "f32[12 2]"},
        {"scatter_add(i64[0 0], 0, i64[1 1 0], i64[1 2 3])", "i64[3 3]"},
        {"scatter_reduce.two(f32[10 10 10], 0, i64[0 0 2], f32[1 2 4], 'mean')", "f32[4.33333 10 7]"},
        {"scatter_reduce.two(f32[10 10 10], 0, i64[0 0 2], f32[1 2 4], 'mean', include_self=False)", "f32[1.5 10 4]"},
        {"scatter_reduce.two(i64[10 10], 0, i64[0 0], i64[-3 4], 'mean')", "i64[3 10]"},
        {"scatter_reduce.two(f32[1 5], 0, i64[0 1], f32[nan 3], 'amax')", "f32[nan 5]"},
        {"scatter_reduce.two(i8[0 0], 0, i64[0 0], i8[-5 -7], 'amax', include_self=False)", "i8[-5 0]"},
        {"put(f32[2x2: 1 2 3 4], i64[-1 0], f32[8 9])", "f32[2x2: 9 2 3 8]"},
        {"put(f32[1 2], i64[0 0], f32[1 1], True)", "f32[3 2]"},
        {"masked_scatter(f32[1 2 3], b8[1 0 1], f32[7 8 9])", "f32[7 2 8]"},
        {"masked_scatter(f32[1 2 3], b8[1 1 1], f32[7 8])",
         "OUT_OF_RANGE: masked_scatter: the mask picks 3 elements, and the source has 2"},
        {"masked_fill.Tensor(i64[1 2 3], b8[1 0 1], f32(2.5))", "i64[2 2 2]"},
        {"masked_fill.Scalar(u8[1 2], b8[1 0], -1)", "u8[255 2]"},
        {"embedding_dense_backward(f32[3x1: 1 2 4], i64[1 0 1], 3, -1, False)", "f32[3x1: 2 5 0]"},
        {"embedding_dense_backward(f32[3x1: 1 2 4], i64[1 0 1], 3, 0, True)", "f32[3x1: 0 2.5 0]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void picks_come_in_order(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"gather(f32[2x2: 1 2 3 4], 1, i64[2x1: 1 0])", "f32[2x1: 2 3]"},
        {"gather(f32(5), 0, i64[0])", "f32[5]"},
        {"index_select(i64[2x3: 1 2 3 4 5 6], 1, i64[2 2 0])", "i64[2x3: 3 3 1 6 6 4]"},
        {"take(f32[2x2: 1 2 3 4], i64[2x1: -1 0])", "f32[2x1: 4 1]"},
        {"take_along_dim(f32[2x3: 1 2 3 4 5 6], i64[1x1: -1], 1)", "f32[2x1: 3 6]"},
        {"take_along_dim(f32[2x2: 1 2 3 4], i64[3 0])", "f32[4 1]"},
        {"masked_select(f32[1 2 3], b8[1 0 1])", "f32[1 3]"},
        {"masked_select(f32[1 2], b8[2x1: 0 1])", "f32[1 2]"},
        {"nonzero(f32[2x2: 0 nan 0 -1])", "i64[2x2: 0 1 1 1]"},
        {"nonzero(f32(0))", "i64[0x0:]"},
        {"nonzero(f32(2))", "i64[1x0:]"},
        {"nonzero_static(f32[0 1 2], size=3)", "i64[3x1: 1 2 -1]"},
        {"nonzero_static(f32[5 1 2], size=1)", "i64[1x1: 0]"},
        {"nonzero_numpy(i64[2x2: 1 0 0 1])", "i64[0 1] | i64[0 1]"},
        {"where(b8(1))", "i64[0]"},
        {"argwhere(i64[0 3])", "i64[1x1: 1]"},
        {"one_hot(i64[2 0])", "i64[2x3: 0 0 1 1 0 0]"},
        {"one_hot(i64[1 0], 3)", "i64[2x3: 0 1 0 1 0 0]"},
        {"repeat_interleave.self_int(f32[1 2], 2)", "f32[1 1 2 2]"},
        {"repeat_interleave.self_int(f32[2x1: 1 2], 2, 1)", "f32[2x2: 1 1 2 2]"},
        {"repeat_interleave.self_Tensor(f32[1 2 3], i64[2 0 1])", "f32[1 1 3]"},
        {"repeat_interleave.Tensor(i64[1 0 2])", "i64[0 2 2]"},
        {"repeat_interleave.self_Tensor(f32[1 2], i64[1 -1])",
         "OUT_OF_RANGE: repeat_interleave.self_Tensor: repeats must not be negative, and one is -1"},
        {"repeat_interleave.self_Tensor(f32[1 2], i64[1 1], output_size=5)",
         "OUT_OF_RANGE: repeat_interleave.self_Tensor: argument \"output_size\" is 5, and repeats sum up to 2"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void what_is_looked_up_is_found(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"bucketize.Tensor(f32[0 1 1.5 3 nan], f32[1 2])", "i64[0 0 1 2 2]"},
        {"bucketize.Tensor(f32[0 1 1.5 3], f32[1 2], right=True, out_int32=True)", "i32[0 1 1 2]"},
        {"bucketize.Scalar(1.5, f32[1 2])", "i64(1)"},
        {"searchsorted.Tensor(i64[2x3: 1 3 5 2 4 6], f32[2x1: 3 4.5])", "i64[2x1: 1 2]"},
        {"searchsorted.Tensor(f32[3 1 2], f32[2.5], sorter=i64[1 2 0])", "i64[2]"},
        {"searchsorted.Tensor(f32[1 2], f32[1], side='up')",
         "INVALID_ARGUMENT: searchsorted.Tensor: argument \"side\" must be \"left\" or \"right\", and is \"up\""},
        {"searchsorted.Tensor(f32[1 2], f32[1], side='left', right=True)",
         "INVALID_ARGUMENT: searchsorted.Tensor: \"side\" is \"left\", and \"right\" is true"},
        {"isin.Tensor_Tensor(i64[1 2 3], i64[3 1])", "b8[1 0 1]"},
        {"bincount(i64[1 3 1])", "i64[0 2 0 1]"},
        {"bincount(i64[1 0], f32[0.5 2])", "f32[2 0.5]"},
        {"bincount(i64[], None, 2)", "i64[0 0]"},
        {"bincount(i64[-1])", "OUT_OF_RANGE: bincount: the value -1 cannot be counted: values must not be negative"},
        {"bincount(f32[1])", "INVALID_ARGUMENT: bincount: only integers can be counted, and self is float32"},
        {"histc(f32[1 2 nan 4], 2, 0, 4)", "f32[1 2]"},
        {"histc(f32[3 3 3], 4)", "f32[0 0 3 0]"},
        {"histc(f32[1 inf], 4)", "OUT_OF_RANGE: histc: a range of [1, inf] is not finite"},
        {"histc(i64[1], 4)", "INVALID_ARGUMENT: histc: there is no histc for int64"},
        {"_unique2(i64[3 1 3], True, True, True)", "i64[1 3] | i64[1 0 1] | i64[1 2]"},
        {"_unique2(f32[nan 1 nan 1], True, True, True)", "f32[1 nan nan] | i64[1 0 2 0] | i64[2 1 1]"},
        {"unique_dim(i64[3x2: 1 2 0 5 1 2], 0, True, True, True)", "i64[2x2: 0 5 1 2] | i64[1 0 1] | i64[1 2]"},
        {"unique_consecutive(i64[1 1 2 1], True, True)", "i64[1 2 1] | i64[0 0 1 2] | i64[2 1 1]"},
        {"unique_dim(f32[3x0:], 0)",
         "INVALID_ARGUMENT: unique_dim: dimension 1 has size 0, and dimension 0 is asked for"},
    };
    OP_TEXT_CHECK(c, cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices_wrap_broadcast_and_stand_where_they_belong),
        cmocka_unit_test(an_index_out_of_range_is_named),
        cmocka_unit_test(indices_of_wrong_kinds_are_refused),
        cmocka_unit_test(writes_go_where_the_index_says),
        cmocka_unit_test(picks_come_in_order),
        cmocka_unit_test(what_is_looked_up_is_found),
    };
    return cmocka_run_group_tests(tests, op_world_begin, op_world_end);
}
