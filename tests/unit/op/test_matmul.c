/* Matrix products: values, types, what is added, what does not fit. */
#include "host/op/reference/number.h"
#include "tests/lib/op_world.h"

static void integers_wrap_and_halves_round_once(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"mm(i8[1x2: 100 100], i8[2x1: 1 1])", "i8[1x1: -56]"},
        {"mm(u8[1x2: 16 16], u8[2x1: 16 1])", "u8[1x1: 16]"},
        {"mm(i64[1x1: 4611686018427387904], i64[1x1: 4])", "i64[1x1: 0]"},
        {"mm(f16[1x3: 2048 1 1], f16[3x1: 1 1 1])", "f16[1x1: 2050]"},
        {"mm(bf16[1x3: 256 1 1], bf16[3x1: 1 1 1])", "bf16[1x1: 258]"},
        {"dot(i32[1 2 3], i32[4 5 6])", "i32(32)"},
        {"dot(f32[1 inf], f32[0 0])", "f32(nan)"},
        {"vdot(f64[1 2], f64[3 4])", "f64(11)"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void a_beta_of_0_hides_nan(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"addmm(f32[nan], f32[1x2: 1 1], f32[2x1: 1 1], beta=0)", "f32[1x1: 2]"},
        {"baddbmm(f32(nan), f32[1x1x1: 1], f32[1x1x1: 1], beta=0)", "f32[1x1x1: 1]"},
        {"addmv(f32(nan), f32[1x2: 1 1], f32[1 1], beta=0)", "f32[2]"},
        {"addbmm(f32(nan), f32[2x1x1: 1 2], f32[2x1x1: 1 2], beta=0)", "f32[1x1: 5]"},
        {"addr(f32(nan), f32[1 2], f32[3], beta=0)", "f32[2x1: 3 6]"},
        {"addmm(f32[nan], f32[1x1: 1], f32[1x1: 1])", "f32[1x1: nan]"},
        {"addmm(i64[1], i64[1x1: 3], i64[1x1: 5], beta=2, alpha=3)", "i64[1x1: 47]"},
        {"addmm(f32[1 2], f32[2x0:], f32[0x2:])", "f32[2x2: 1 2 1 2]"},
        {"addbmm(f32[1], f32[0x1x1:], f32[0x1x1:], beta=3)", "f32[1x1: 3]"},
        {"addr(b8[2x2: 1 0 0 0], b8[0 1], b8[0 1])", "b8[2x2: 1 0 0 1]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void nothing_sums_up_to_zeros(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"mm(f32[2x0:], f32[0x3:])", "f32[2x3: 0 0 0 0 0 0]"},
        {"mm(f32[0x2:], f32[2x3: 1 2 3 4 5 6])", "f32[0x3:]"},
        {"bmm(f32[0x2x3:], f32[0x3x1:])", "f32[0x2x1:]"},
        {"mv(f32[2x0:], f32[])", "f32[0 0]"},
        {"matmul(f32[2x1x0:], f32[0x2:])", "f32[2x1x2: 0 0 0 0]"},
        {"linear(f32[0x2:], f32[1x2: 1 1], f32[1])", "f32[0x1:]"},
        {"dot(f32[], f32[])", "f32(0)"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void matmul_folds_and_broadcasts(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"matmul(f32[1 2], f32[3 4])", "f32(11)"},
        {"matmul(f32[2x2: 1 2 3 4], f32[1 1])", "f32[3 7]"},
        {"matmul(f32[1 1], f32[2x2: 1 2 3 4])", "f32[4 6]"},
        {"matmul(f32[2x1x2: 1 2 3 4], f32[2x1: 1 1])", "f32[2x1x1: 3 7]"},
        {"matmul(f32[1 1], f32[2x2x1: 1 2 3 4])", "f32[2x1: 3 7]"},
        {"matmul(f32[2x1x1x2: 1 2 3 4], f32[2x2x1: 1 0 0 1])", "f32[2x2x1x1: 1 2 3 4]"},
        {"matmul(f32[2x1x2: 1 2 3 4], f32[2])",
         "INVALID_ARGUMENT: matmul: sizes [2, 1, 2] and [1] cannot be multiplied"},
        {"linear(f32[2x1x2: 1 2 3 4], f32[2x2: 1 0 0 1], f32[10 20])", "f32[2x1x2: 11 22 13 24]"},
        {"linear(f32[1 2], f32[3 4])", "f32(11)"},
        {"inner(f32[2x2: 1 2 3 4], f32[1 1])", "f32[3 7]"},
        {"inner(f32(2), f32[1 2])", "f32[2 4]"},
        {"outer(i64[1 2], f32[3 4])", "f32[2x2: 3 4 6 8]"},
        {"kron(f32[1 2], f32[2x1: 1 10])", "f32[2x2: 1 2 10 20]"},
        {"linalg_cross(f32[1 0 0], f32[0 1 0])", "f32[0 0 1]"},
        {"cross(f32[2x3: 1 2 3 4 5 6], f32[2x3: 1 0 0 0 1 0])", "f32[2x3: 0 3 -2 -6 0 4]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void sizes_and_types_that_do_not_fit_are_named(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"mm(f32[2x3: 1 2 3 4 5 6], f32[2x2: 1 2 3 4])",
         "INVALID_ARGUMENT: mm: sizes [2, 3] and [2, 2] cannot be multiplied"},
        {"mm(f32[1], f32[1x1: 1])", "INVALID_ARGUMENT: mm: argument \"self\" must have 2 dimensions, and has 1"},
        {"mm(f32[1x1: 1], f64[1x1: 1])",
         "INVALID_ARGUMENT: mm: arguments \"self\" and \"mat2\" must have one dtype, and have float32 and float64"},
        {"mm(b8[1x1: 1], b8[1x1: 1])", "INVALID_ARGUMENT: mm: there are no products of bool matrices"},
        {"bmm(f32[1x1x2: 1 2], f32[1x1x1: 1])",
         "INVALID_ARGUMENT: bmm: sizes [1, 1, 2] and [1, 1, 1] cannot be multiplied"},
        {"bmm(f32[2x1x1: 1 2], f32[1x1x1: 1])",
         "INVALID_ARGUMENT: bmm: sizes [2, 1, 1] and [1, 1, 1] cannot be multiplied"},
        {"addmm(f32[1 2 3], f32[1x1: 1], f32[1x2: 1 2])",
         "INVALID_ARGUMENT: addmm: argument \"self\" of sizes [3] cannot be expanded to [1, 2]"},
        {"addmm(f64[1], f32[1x1: 1], f32[1x1: 1])",
         "INVALID_ARGUMENT: addmm: arguments \"self\" and \"mat1\" must have one dtype, and have float64 and float32"},
        {"matmul(f32(1), f32[1])", "INVALID_ARGUMENT: matmul: both arguments must have a dimension, and have 0 and 1"},
        {"matmul(f32[2x1x1: 1 2], f32[3x1x1: 1 2 3])",
         "INVALID_ARGUMENT: the size of tensor a (2) must match the size of tensor b (3) at non-sing..."},
        {"dot(f32[1 2], f32[1])", "INVALID_ARGUMENT: dot: sizes [2] and [1] cannot be multiplied"},
        {"linear(f32[1x2: 1 2], f32[1x3: 1 2 3])",
         "INVALID_ARGUMENT: linear: sizes [1, 2] and [1, 3] cannot be multiplied"},
        {"linear(f32[1x2: 1 2], f32[1x2: 1 2], f32[1 2])",
         "INVALID_ARGUMENT: linear: argument \"bias\" of sizes [2] cannot be expanded to [1, 1]"},
        {"linalg_cross(f32[1 2], f32[1 2])",
         "INVALID_ARGUMENT: linalg_cross: no dimension of size 3 in [2] and [2]"},
        {"mv(f32[1x2: 1 2], f32[1])", "INVALID_ARGUMENT: mv: sizes [1, 2] and [1] cannot be multiplied"},
        {"inner(f32[1 2], f32[1])", "INVALID_ARGUMENT: inner: sizes [2] and [1] cannot be multiplied"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void einsum_reads_its_equation(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"einsum('ij,jk->ik', [f32[1x2: 1 2], f32[2x1: 3 4]])", "f32[1x1: 11]"},
        {"einsum('ij,jk->ki', [f32[1x2: 1 2], f32[2x2: 1 0 0 1]])", "f32[2x1: 1 2]"},
        {"einsum('ii->i', [f32[2x2: 1 2 3 4]])", "f32[1 4]"},
        {"einsum('ii', [f32[2x2: 1 2 3 4]])", "f32(5)"},
        {"einsum('i,j', [i64[1 2], i64[3 4]])", "i64[2x2: 3 4 6 8]"},
        {"einsum('...ij,...jk', [f32[2x1x2: 1 2 3 4], f32[2x1: 1 1]])", "f32[2x1x1: 3 7]"},
        {"einsum('ij->', [f32[2x2: 1 2 3 4]])", "f32(10)"},
        {"einsum('bi , bi -> b', [f32[2x2: 1 2 3 4], f32[2x2: 1 1 1 1]])", "f32[3 7]"},
        {"einsum('a,b,c->cba', [f32[1 2], f32[3], f32[1 10]])", "f32[2x1x2: 3 6 30 60]"},
        {"einsum('ij,jk->ik', [f32[1x2: 1 2], f32[3x1: 1 2 3]])",
         "INVALID_ARGUMENT: einsum: equation \"ij,jk->ik\": a label has sizes 2 and 3"},
        {"einsum('ij->k', [f32[1x1: 1]])",
         "INVALID_ARGUMENT: einsum: equation \"ij->k\": a label of the result is in no operand"},
        {"einsum('ij', [f32[1]])",
         "INVALID_ARGUMENT: einsum: equation \"ij\": the labels of an operand are not as many as its dimensions"},
        {"einsum('i->ii', [f32[1]])",
         "INVALID_ARGUMENT: einsum: equation \"i->ii\": a label occurs twice in the result"},
        {"einsum('i,j->ij', [f32[1]])",
         "INVALID_ARGUMENT: einsum: equation \"i,j->ij\": more operands than were given"},
        {"einsum('i', [f32[1], f32[1]])", "INVALID_ARGUMENT: einsum: equation \"i\": fewer operands than were given"},
        {"einsum('i+j', [f32[1]])",
         "INVALID_ARGUMENT: einsum: equation \"i+j\": only letters, blanks, \",\", \"...\" and \"->\" are allowed"},
        {"tensordot(f32[2x2: 1 2 3 4], f32[2x2: 1 0 0 1], [1], [0])", "f32[2x2: 1 2 3 4]"},
        {"tensordot(f32[2x2: 1 2 3 4], f32[2x2: 1 2 3 4], [0, 1], [0, 1])", "f32(30)"},
        {"tensordot(f32[1 2], f32[3 4], [], [])", "f32[2x2: 3 4 6 8]"},
        {"tensordot(f32[1 2], f32[1 2 3], [0], [0])",
         "INVALID_ARGUMENT: tensordot: dimensions of sizes 2 and 3 cannot be summed together"},
        {"linalg_multi_dot([f32[1 2], f32[2x2: 1 2 3 4], f32[1 1]])", "f32(17)"},
        {"linalg_matrix_power(f32[2x2: 1 1 0 1], 5)", "f32[2x2: 1 5 0 1]"},
        {"bilinear(f32[1 2], f32[3 4], f32[1x2x2: 1 0 0 1], f32[10])", "f32[21]"},
        {"linalg_vecdot(f32[2x2: 1 2 3 4], f32[1 1])", "f32[3 7]"},
    };
    OP_TEXT_CHECK(c, cases);
}

static void attention_masks_and_keeps_nan(void **state)
{
    (void)state;
    static const op_case cases[] = {
        {"scaled_dot_product_attention(f32[1x1: 1], f32[2x1: 0 0], f32[2x1: 1 3])", "f32[1x1: 2]"},
        {"scaled_dot_product_attention(f32[2x1: 1 1], f32[2x1: 0 0], f32[2x1: 1 3], None, 0.0, True)",
         "f32[2x1: 1 2]"},
        {"scaled_dot_product_attention(f32[2x1: 1 1], f32[2x1: 0 0], f32[2x1: 1 3], b8[2x2: 1 0 0 0])",
         "f32[2x1: 1 0]"},
        {"scaled_dot_product_attention(f32[1x1: nan], f32[2x1: 0 0], f32[2x1: 1 3], b8[1x2: 1 0])", "f32[1x1: nan]"},
        {"scaled_dot_product_attention(f32[1x1: 1], f32[2x1: 0 1], f32[2x1: 1 3], scale=0.0)", "f32[1x1: 2]"},
        {"scaled_dot_product_attention(f32[2x1x1: 1 1], f32[1x2x1: 0 0], f32[1x2x1: 1 3], enable_gqa=True)",
         "f32[2x1x1: 2 2]"},
        {"scaled_dot_product_attention(f32[1x1: 1], f32[2x1: 0 0], f32[2x1: 1 3], b8[1x2: 1 1], 0.0, True)",
         "INVALID_ARGUMENT: scaled_dot_product_attention: a mask is given, and is_causal is true"},
        {"scaled_dot_product_attention(f32[1x1: 1], f32[2x2: 0 0 0 0], f32[2x1: 1 3])",
         "INVALID_ARGUMENT: scaled_dot_product_attention: sizes [1, 1], [2, 2] and [2, 1] of query, ..."},
        {"scaled_dot_product_attention(f32[1], f32[1], f32[1])",
         "INVALID_ARGUMENT: scaled_dot_product_attention: argument \"query\" must have 2 to 64 dimensions, and has 1"},
    };
    OP_TEXT_CHECK(c, cases);
}

/* Small integers, so that every sum is exact in float. */
static int64_t element(int64_t i) { return i * 7 % 11 - 5; }

static bp_tensor *numbers(bp_dtype d, uint32_t rank, const int64_t *sizes)
{
    bp_tensor *t = scope_own(c, tensor_contiguous_new(c, d, rank, sizes));
    assert_non_null(t);
    for (int64_t i = 0; i < tensor_nelem(t); i++)
        dtype_store(d, (char *)tensor_ptr(t) + (size_t)i * dtype_size(d), num_of_int(d, element(i)));
    return t;
}

static bp_tensor *run2(const char *target, bp_tensor *a, bp_tensor *b)
{
    bp_value args[] = {value_tensor(a), value_tensor(b)};
    bp_tensor *out = NULL;
    op_call k = {.op = op_by_target(target), .args = args, .out = &out, .nout = 1};
    assert_int_equal(op_dispatch(c, &k), BP_OK);
    return scope_own(c, out);
}

static bp_tensor *transposed(bp_tensor *t)
{
    bp_dim sizes[] = {t->sizes[1], t->sizes[0]}, strides[] = {t->strides[1], t->strides[0]};
    tensor_meta m = {t->dtype, tensor_device(t), 2, sizes, strides, t->offset};
    return scope_own(c, tensor_view(c, t, &m));
}

/* Every size has blocks and a rest; the second factor is read along its columns. */
static void products_larger_than_a_block_are_whole(void **state)
{
    (void)state;
    static const bp_dtype types[] = {BP_F32, BP_F64, BP_I64, BP_C64};
    enum { M = 103, N = 270, K = 300 };
    for (uint32_t i = 0; i < 4; i++) {
        bp_scope_begin(c);
        bp_tensor *a = numbers(types[i], 2, (int64_t[]){M, K}), *b = numbers(types[i], 2, (int64_t[]){N, K});
        bp_tensor *out = run2("aten.mm.default", a, transposed(b));
        for (int64_t m = 0; m < M; m++) {
            for (int64_t n = 0; n < N; n++) {
                int64_t sum = 0;
                for (int64_t k = 0; k < K; k++)
                    sum += element(m * K + k) * element(n * K + k);
                num v = dtype_load(types[i], (char *)tensor_ptr(out) + (size_t)(m * N + n) * dtype_size(types[i]));
                assert_int_equal(v.kind == NUM_INT ? v.i : (int64_t)v.f, sum);
            }
        }
        bp_scope_end(c);
    }
}

/* One block of columns holds a few of the lines only. */
static void images_of_many_blocks_are_whole(void **state)
{
    (void)state;
    enum { C = 64, H = 37, W = 130, O = 3 };
    bp_scope_begin(c);
    bp_tensor *x = numbers(BP_F32, 4, (int64_t[]){2, C, H, W}), *w = numbers(BP_F32, 4, (int64_t[]){O, C, 3, 3});
    bp_value args[] = {value_tensor(x),
                       value_tensor(w),
                       value_none(),
                       value_ints(c, (int64_t[]){1, 1}, 2),
                       value_ints(c, (int64_t[]){1, 1}, 2),
                       value_ints(c, (int64_t[]){1, 1}, 2),
                       value_int(1)};
    bp_tensor *out = NULL;
    op_call k = {.op = op_by_target("aten.conv2d.default"), .args = args, .out = &out, .nout = 1};
    assert_int_equal(op_dispatch(c, &k), BP_OK);
    for (int64_t i = 0; i < tensor_nelem(out); i += 97) {
        int64_t n = i / (O * H * W), o = i / (H * W) % O, y = i / W % H, at = i % W, sum = 0;
        for (int64_t e = 0; e < C * 9; e++) {
            int64_t ch = e / 9, r = y + e / 3 % 3 - 1, q = at + e % 3 - 1;
            if (r >= 0 && r < H && q >= 0 && q < W)
                sum += element(((n * C + ch) * H + r) * W + q) * element(o * C * 9 + e);
        }
        assert_int_equal((int64_t)((const float *)tensor_ptr(out))[i], sum);
    }
    tensor_unref(out);
    bp_scope_end(c);
}

static void groups_of_rows_have_matrices_of_their_own(void **state)
{
    /* transformers.grouped_mm_fallback.default, as its library defines it: rows up to each end of offs, from the last
     * one on, times a matrix of their own, and zeros behind. */
    (void)state;
#define WEIGHT "f64[3x2x2: 1 0 0 1 9 9 9 9 2 0 0 3]"
    static const op_case cases[] = {
        {"transformers::grouped_mm_fallback(f64[4x2: 1 2 3 4 5 6 7 8], " WEIGHT ", i32[1 1 3])",
         "f64[4x2: 1 2 6 12 10 18 0 0]"},
        {"transformers::grouped_mm_fallback(f64[4x2: 1 2 3 4 5 6 7 8], " WEIGHT ", i64[4 4 4])",
         "f64[4x2: 1 2 3 4 5 6 7 8]"},
        {"transformers::grouped_mm_fallback(f64[0x2:], " WEIGHT ", i64[0 0 0])", "f64[0x2:]"},
        {"transformers::grouped_mm_fallback(f64[1x2: 1 2], " WEIGHT ", i64[0 2 2])",
         "OUT_OF_RANGE: grouped_mm_fallback: argument \"offs\" ends group 1 at 2, and it begins at 0 of 1 rows"},
        {"transformers::grouped_mm_fallback(f64[1x2: 1 2], " WEIGHT ", i64[0 1])",
         "INVALID_ARGUMENT: grouped_mm_fallback: argument \"offs\" ends 2 groups, and \"weight\" has 3"},
        {"transformers::grouped_mm_fallback(f64[1x1: 1], " WEIGHT ", i64[0 1 1])",
         "INVALID_ARGUMENT: grouped_mm_fallback: sizes [1, 1] and [3, 2, 2] cannot be multiplied"},
    };
#undef WEIGHT
    OP_TEXT_CHECK(c, cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_wrap_and_halves_round_once),
        cmocka_unit_test(a_beta_of_0_hides_nan),
        cmocka_unit_test(nothing_sums_up_to_zeros),
        cmocka_unit_test(matmul_folds_and_broadcasts),
        cmocka_unit_test(sizes_and_types_that_do_not_fit_are_named),
        cmocka_unit_test(einsum_reads_its_equation),
        cmocka_unit_test(attention_masks_and_keeps_nan),
        cmocka_unit_test(products_larger_than_a_block_are_whole),
        cmocka_unit_test(images_of_many_blocks_are_whole),
        cmocka_unit_test(groups_of_rows_have_matrices_of_their_own),
    };
    return cmocka_run_group_tests(tests, op_world_begin, op_world_end);
}
