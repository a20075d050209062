/* Tensors, storages, scopes, copies, the generator, modules. */
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include "host/tensor/alloc.h"
#include "host/tensor/module.h"
#include "host/tensor/tensor.h"
#include <backplane/backplane.h>
#include <stdlib.h>

static bp_ctx *c;

static int start(void **state)
{
    (void)state;
    c = bp_ctx_new(NULL);
    return c ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    bp_ctx_destroy(c);
    return 0;
}

/* A new tensor with strides of its own; one reference. */
static bp_tensor *strided(bp_dtype dtype, uint32_t rank, const int64_t *sizes, const int64_t *strides)
{
    bp_dim s[TENSOR_MAX_RANK], t[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) {
        s[d] = dim_const(sizes[d]);
        t[d] = dim_const(strides[d]);
    }
    return tensor_new(c, &(tensor_meta){dtype, {BP_CPU, 0}, rank, s, t, {0}});
}

#define I(...) ((const int64_t[]){__VA_ARGS__})

static void a_tensor_holds_what_it_was_made_from(void **state)
{
    (void)state;
    const float data[] = {1, 2, 3, 4, 5, 6};
    float back[6] = {0};
    bp_tensor *t = bp_tensor_from(c, BP_F32, 2, I(2, 3), data);
    assert_int_equal(bp_tensor_rank(t), 2);
    assert_int_equal(bp_tensor_size(t, 1), 3);
    assert_int_equal(bp_tensor_stride(t, 0), 3);
    assert_int_equal(bp_tensor_numel(t), 6);
    assert_int_equal((uintptr_t)bp_tensor_data(c, t) % 64, 0);
    assert_int_equal(bp_tensor_read(c, t, back, sizeof back), BP_OK);
    assert_memory_equal(back, data, sizeof data);
    assert_int_equal(bp_tensor_read(c, t, back, 5), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_message(c), "5 bytes of memory for f32[2, 3], which has 24");
}

static void sizes_that_cannot_be_are_refused_with_their_value(void **state)
{
    (void)state;
    static const struct { uint32_t rank; int64_t sizes[3]; bp_dtype dtype; const char *words; } ROWS[] = {
        {1, {-1}, BP_F32, "size -1 at index 0 is negative"},
        {2, {INT64_MAX, INT64_MAX}, BP_F32, "do not fit 64 bits"},
        {1, {INT64_MAX / 2}, BP_F64, "too large"},
        {1, {2}, 99, "99 is no dtype"},
        {1, {INT64_C(1) << 58}, BP_U8, "out of memory: a tensor needs 288230376151711744 bytes"},
        {65, {0}, BP_F32, "rank 65: at most 64"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        assert_null(bp_tensor_from(c, ROWS[i].dtype, ROWS[i].rank, ROWS[i].sizes, NULL));
        assert_contains(bp_error_message(c), ROWS[i].words);
        bp_error_clear(c);
    }
    assert_null(bp_tensor_from(c, BP_F32, 2, NULL, NULL));
    assert_contains(bp_error_message(c), "rank 2 without sizes");
}

static void an_expanded_tensor_may_not_have_more_elements_than_64_bits_count(void **state)
{
    (void)state;
    assert_null(strided(BP_F32, 2, I(INT64_MAX, 3), I(0, 0)));
    assert_int_equal(bp_error(c), BP_INVALID_ARGUMENT);
}

static void views_share_their_storage_and_stay_inside_it(void **state)
{
    (void)state;
    bp_tensor *base = bp_tensor_from(c, BP_F32, 1, I(6), (float[]){0, 1, 2, 3, 4, 5});
    bp_dim size = dim_const(3), stride = dim_const(2);
    tensor_meta m = {BP_F32, {BP_CPU, 0}, 1, &size, &stride, dim_const(1)};
    bp_tensor *v = tensor_view(c, base, &m);
    assert_true(bp_tensor_same_storage(v, base));
    assert_true(*(float *)tensor_ptr(v) == 1);
    assert_int_equal(tensor_span_bytes(v), 20);
    assert_true(tensor_may_overlap(base, v));
    m.offset = dim_const(2);
    assert_null(tensor_view(c, base, &m));
    assert_contains(bp_error_message(c), "storage offset 2 needs 28 bytes of a storage of 24");
    tensor_unref(v);
}

static void byte_ranges_that_only_touch_do_not_overlap(void **state)
{
    (void)state;
    bp_tensor *base = bp_tensor_from(c, BP_F32, 1, I(6), NULL);
    bp_dim size = dim_const(3), stride = dim_const(1);
    tensor_meta m = {BP_F32, {BP_CPU, 0}, 1, &size, &stride, dim_const(0)};
    bp_tensor *a = tensor_view(c, base, &m);
    m.offset = dim_const(3);
    bp_tensor *b = tensor_view(c, base, &m);
    m.offset = dim_const(2);
    bp_tensor *mid = tensor_view(c, base, &m);
    assert_false(tensor_may_overlap(a, b));
    assert_false(tensor_may_overlap(b, a));
    assert_true(tensor_may_overlap(a, mid));
    assert_true(tensor_may_overlap(mid, b));
    size = dim_const(0);
    bp_tensor *none = tensor_view(c, base, &m);
    assert_false(tensor_may_overlap(none, mid));
    tensor_unref(a), tensor_unref(b), tensor_unref(mid), tensor_unref(none);
}

static void an_expanded_tensor_overlaps_itself(void **state)
{
    (void)state;
    bp_tensor *a = strided(BP_F32, 2, I(3, 4), I(0, 1)), *b = strided(BP_F32, 2, I(1, 4), I(0, 1));
    bp_tensor *none = strided(BP_F32, 2, I(3, 0), I(0, 1));
    assert_true(tensor_overlaps_itself(a));
    assert_false(tensor_overlaps_itself(b));
    assert_false(tensor_overlaps_itself(none));
    tensor_unref(a), tensor_unref(b), tensor_unref(none);
}

static void a_copy_casts_and_follows_both_strides(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank <= 6; rank++) {
        int64_t sizes[6], strides[6], n = 1;
        for (uint32_t d = 0; d < rank; d++) { /* the first dimension runs fastest: a transposed source */
            sizes[d] = 1 + d % 3;
            strides[d] = n;
            n *= sizes[d];
        }
        bp_tensor *src = strided(BP_I32, rank, sizes, strides), *dst = tensor_contiguous_new(c, BP_F64, rank, sizes);
        for (int64_t i = 0; i < n; i++)
            ((int32_t *)tensor_ptr(src))[i] = (int32_t)(i * 7);
        assert_int_equal(tensor_copy(c, dst, src), BP_OK);
        for (int64_t i = 0; i < n; i++) {
            int64_t rest = i, at = 0;
            for (uint32_t d = rank; d-- > 0;) {
                at += rest % sizes[d] * strides[d];
                rest /= sizes[d];
            }
            assert_true(((double *)tensor_ptr(dst))[i] == (double)(at * 7));
        }
        tensor_unref(src), tensor_unref(dst);
    }
}

static void a_large_copy_is_whole_though_threads_share_it(void **state)
{
    (void)state;
    const int64_t n = 700;
    bp_tensor *src = strided(BP_I32, 2, I(n, n), I(1, n)), *dst = tensor_contiguous_new(c, BP_I64, 2, I(n, n));
    for (int32_t i = 0; i < n * n; i++)
        ((int32_t *)tensor_ptr(src))[i] = i;
    assert_int_equal(tensor_copy(c, dst, src), BP_OK);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            assert_int_equal(((int64_t *)tensor_ptr(dst))[i * n + j], i + j * n);
    bp_tensor *flat = tensor_contiguous_new(c, BP_F32, 2, I(n, n));
    assert_int_equal(tensor_copy(c, flat, dst), BP_OK);
    for (int64_t i = 0; i < n * n; i++)
        assert_true(((float *)tensor_ptr(flat))[i] == (float)((int64_t *)tensor_ptr(dst))[i]);
    tensor_unref(src), tensor_unref(dst), tensor_unref(flat);
}

static void a_copy_between_overlapping_views_reads_before_it_writes(void **state)
{
    (void)state;
    bp_tensor *base = bp_tensor_from(c, BP_F32, 1, I(6), (float[]){0, 1, 2, 3, 4, 5});
    bp_dim size = dim_const(5), stride = dim_const(1);
    tensor_meta m = {BP_F32, {BP_CPU, 0}, 1, &size, &stride, dim_const(0)};
    bp_tensor *head = tensor_view(c, base, &m);
    m.offset = dim_const(1);
    bp_tensor *tail = tensor_view(c, base, &m);
    assert_int_equal(tensor_copy(c, tail, head), BP_OK);
    const float want[] = {0, 0, 1, 2, 3, 4};
    assert_memory_equal(tensor_ptr(base), want, sizeof want);
    assert_int_equal(tensor_copy(c, head, base), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_message(c), "f32[6] cannot be copied into f32[5]");
    tensor_unref(head), tensor_unref(tail);
}

static void a_fakes_data_cannot_be_read(void **state)
{
    (void)state;
    bp_dim size = dim_const(3), stride = dim_const(1);
    tensor_meta m = {BP_F32, {BP_CUDA, 1}, 1, &size, &stride, dim_const(0)};
    bp_tensor *t = scope_own(c, tensor_new_fake(c, &m));
    assert_null(tensor_ptr(t));
    assert_null(bp_tensor_data(c, t));
    assert_int_equal(bp_error(c), BP_FAILED_PRECONDITION);
    assert_contains(bp_error_message(c), "reading the data of a fake tensor");
    bp_error_clear(c);
    assert_int_equal(bp_tensor_read(c, t, NULL, 12), BP_FAILED_PRECONDITION);
    bp_error_clear(c);
    bp_view v;
    tensor_get_view(t, &v);
    assert_int_equal(v.flags, BP_VIEW_FAKE);
    assert_int_equal(v.device_kind, BP_CUDA);
    assert_null(tensor_new(c, &m)); /* and real memory of another device is not there */
    assert_int_equal(bp_error(c), BP_UNIMPLEMENTED);
}

static void under_capture_host_memory_is_out_of_reach(void **state)
{
    (void)state;
    bp_tensor *t = bp_tensor_from(c, BP_F32, 0, NULL, NULL);
    c->capturing = 1;
    assert_null(bp_tensor_data(c, t));
    assert_contains(bp_error_text(c), "raw access to a tensor's data while a function is captured");
    assert_contains(bp_error_text(c), "bp_attr");
    bp_error_clear(c);
    assert_null(bp_tensor_from(c, BP_F32, 0, NULL, NULL));
    assert_contains(bp_error_text(c), "making a tensor from host memory while a function is captured");
}

static void errors_are_sticky(void **state)
{
    (void)state;
    ctx_fail(c, BP_ABORTED, "first");
    assert_null(bp_tensor_from(c, BP_F32, 0, NULL, NULL));
    assert_int_equal(bp_size(c, NULL, 0).value, 0);
    assert_null(bp_module_new(c));
    assert_string_equal(bp_error_message(c), "first");
}

static void a_scope_ends_its_tensors_but_not_those_that_were_kept(void **state)
{
    (void)state;
    size_t before = alloc_get_stats().in_use;
    bp_scope_begin(c);
    bp_tensor *a = bp_tensor_from(c, BP_F32, 1, I(100), NULL);
    bp_tensor *b = bp_tensor_from(c, BP_F32, 1, I(100), NULL);
    assert_non_null(a);
    assert_ptr_equal(bp_keep(c, b), b);
    assert_null(bp_keep(c, NULL));
    assert_int_equal(scope_depth(c), 1);
    bp_scope_end(c);
    assert_int_equal(scope_depth(c), 0);
    assert_true(alloc_get_stats().in_use > before);
    bp_tensor_unref(b);
    assert_int_equal(alloc_get_stats().in_use, before);
    bp_scope_end(c);
    assert_int_equal(bp_error(c), BP_FAILED_PRECONDITION);
}

static void a_shared_tensor_is_owned_without_being_written(void **state)
{
    (void)state;
    bp_tensor *w = bp_keep(c, bp_tensor_from(c, BP_F32, 1, I(4), NULL));
    bp_scope_begin(c);
    assert_ptr_equal(scope_own(c, tensor_ref(w)), w); /* an operator that gave its argument back */
    assert_null(w->scope);
    bp_tensor *mine = bp_tensor_from(c, BP_F32, 1, I(4), NULL);
    assert_ptr_equal(scope_own(c, tensor_ref(mine)), mine);
    assert_int_equal(atomic_load(&mine->refs), 1);
    bp_keep(c, w);
    bp_scope_end(c);
    assert_int_equal(atomic_load(&w->refs), 2);
    bp_tensor_unref(w);
    bp_tensor_unref(w);
}

static void a_tensor_given_up_too_often_leaves_its_scope(void **state)
{
    (void)state;
    bp_scope_begin(c);
    bp_tensor *a = bp_tensor_from(c, BP_F32, 1, I(4), NULL);
    bp_tensor_unref(a); /* the scope's own reference: a mistake that must not be met twice */
    bp_scope_end(c);
    assert_int_equal(bp_error(c), BP_OK);
}

static void requires_grad_needs_a_floating_type(void **state)
{
    (void)state;
    bp_tensor *f = bp_tensor_from(c, BP_F16, 0, NULL, NULL), *i = bp_tensor_from(c, BP_I64, 0, NULL, NULL);
    assert_int_equal(bp_tensor_set_requires_grad(c, f, 1), BP_OK);
    assert_int_equal(bp_tensor_requires_grad(f), 1);
    assert_int_equal(bp_tensor_set_requires_grad(c, f, 0), BP_OK);
    assert_int_equal(bp_tensor_requires_grad(f), 0);
    assert_int_equal(bp_tensor_set_requires_grad(c, i, 1), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_message(c), "int64");
}

static void *freed;
static void note_freed(void *arg, void *data)
{
    (void)arg;
    freed = data;
}

static void foreign_memory_is_released_once_and_not_after_a_failure(void **state)
{
    (void)state;
    float memory[4] = {1, 2, 3, 4};
    bp_dim size = dim_const(4), stride = dim_const(1);
    tensor_meta m = {BP_F32, {BP_CPU, 0}, 1, &size, &stride, dim_const(0)};
    assert_null(tensor_wrap(c, &m, memory, 15, note_freed, NULL));
    assert_null(freed);
    bp_error_clear(c);
    bp_tensor *t = tensor_wrap(c, &m, memory, sizeof memory, note_freed, NULL);
    assert_ptr_equal(tensor_ptr(t), memory);
    tensor_unref(t);
    assert_ptr_equal(freed, memory);
}

static void high_ranks_have_their_dims_behind_the_tensor(void **state)
{
    (void)state;
    int64_t sizes[TENSOR_MAX_RANK];
    for (int d = 0; d < TENSOR_MAX_RANK; d++)
        sizes[d] = d % 32 == 0 ? 2 : 1;
    bp_tensor *t = bp_tensor_from(c, BP_U8, TENSOR_MAX_RANK, sizes, NULL);
    assert_int_equal(bp_tensor_numel(t), 4);
    assert_ptr_equal(t->strides, t->sizes + TENSOR_MAX_RANK);
    char text[16];
    assert_int_equal(strlen(tensor_describe(t, text, sizeof text)), 15);
    assert_true(tensor_is_contiguous(t));
}

static void freed_blocks_are_used_again_until_trimmed(void **state)
{
    (void)state;
    alloc_set_limits(1 << 20, SIZE_MAX);
    alloc_trim();
    alloc_stats s = alloc_get_stats();
    void *p = alloc_get(1000);
    assert_int_equal((uintptr_t)p % 64, 0);
    alloc_put(p, 1000);
    assert_int_equal(alloc_get_stats().cached, 1024);
    assert_ptr_equal(alloc_get(1020), p); /* the same class */
    assert_int_equal(alloc_get_stats().hits, s.hits + 1);
    alloc_put(p, 1020);
    alloc_trim();
    assert_int_equal(alloc_get_stats().cached, 0);
    void *large = alloc_get(3 << 20);
    assert_int_equal((uintptr_t)large % (2 << 20), 0);
    alloc_put(large, 3 << 20);
    assert_int_equal(alloc_get_stats().cached, 0); /* larger than what may be cached */
    assert_int_equal(alloc_get_stats().in_use, s.in_use);
    assert_null(alloc_get(SIZE_MAX - 5));
}

static void a_block_wastes_at_most_a_fifth(void **state)
{
    (void)state;
    alloc_set_limits(0, SIZE_MAX);
    for (size_t n = 1; n < 100000; n += n < 5000 ? 1 : 997) {
        size_t before = alloc_get_stats().in_use;
        void *p = alloc_get(n);
        size_t size = alloc_get_stats().in_use - before;
        memset(p, 0, size);
        assert_true(size >= n && (size == 64 || size * 4 <= n * 5 + 4));
        alloc_put(p, n);
    }
}

static void memory_over_the_limit_is_an_error_that_passes(void **state)
{
    (void)state;
    alloc_set_limits(1 << 20, alloc_get_stats().in_use + 100000);
    assert_null(bp_tensor_from(c, BP_F32, 1, I(100000), NULL));
    assert_int_equal(bp_error(c), BP_RESOURCE_EXHAUSTED);
    bp_error_clear(c);
    assert_non_null(bp_tensor_from(c, BP_F32, 1, I(1000), NULL));
    alloc_set_limits(0, SIZE_MAX);
}

/* The known answers of Philox4x32-10. */
static void philox_gives_its_known_answers(void **state)
{
    (void)state;
    uint32_t out[4];
    philox_uint32(0, 0, out);
    assert_memory_equal(out, ((uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}), 16);
    philox_block((uint32_t[]){0xffffffff, 0xffffffff},
                 (uint32_t[]){0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, out);
    assert_memory_equal(out, ((uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}), 16);
    philox_block((uint32_t[]){0xa4093822, 0x299f31d0},
                 (uint32_t[]){0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, out);
    assert_memory_equal(out, ((uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}), 16);
}

static void a_module_keeps_indices_and_suggests_names(void **state)
{
    (void)state;
    bp_module *m = bp_module_new(c);
    bp_tensor *w = bp_tensor_from(c, BP_F32, 1, I(4), NULL), *v = bp_tensor_from(c, BP_F32, 1, I(5), NULL);
    assert_int_equal(bp_module_add_parameter(c, m, "fc.weight", w), BP_OK);
    assert_int_equal(bp_module_add_buffer(c, m, "bn.running_mean", w), BP_OK);
    assert_int_equal(bp_module_add_parameter(c, m, "fc.weight", v), BP_OK);
    assert_int_equal(module_find(m, "fc.weight"), 0);
    assert_int_equal(module_find(m, "bn.running_mean"), 1);
    assert_int_equal(module_find(m, "bn"), -1);
    assert_ptr_equal(bp_module_get(c, m, "fc.weight"), v);
    assert_null(bp_module_get(c, m, "fc.wieght"));
    assert_int_equal(bp_error(c), BP_NOT_FOUND);
    assert_contains(bp_error_text(c), "did you mean \"fc.weight\"?");
    bp_error_clear(c);
    assert_int_equal(bp_module_add_buffer(c, m, "fc.weight", w), BP_ALREADY_EXISTS);
    bp_error_clear(c);
    static const char *const BAD[] = {"", ".", "a.", ".a", "a..b"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        assert_int_equal(bp_module_add_buffer(c, m, BAD[i], w), BP_INVALID_ARGUMENT);
        bp_error_clear(c);
    }
    assert_int_equal(bp_module_add_buffer(c, m, "x", NULL), BP_INVALID_ARGUMENT);
    bp_module_unref(module_ref(m));
    bp_module_unref(m);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_tensor_holds_what_it_was_made_from),
        TEST(sizes_that_cannot_be_are_refused_with_their_value),
        TEST(an_expanded_tensor_may_not_have_more_elements_than_64_bits_count),
        TEST(views_share_their_storage_and_stay_inside_it),
        TEST(byte_ranges_that_only_touch_do_not_overlap),
        TEST(an_expanded_tensor_overlaps_itself),
        TEST(a_copy_casts_and_follows_both_strides),
        TEST(a_large_copy_is_whole_though_threads_share_it),
        TEST(a_copy_between_overlapping_views_reads_before_it_writes),
        TEST(a_fakes_data_cannot_be_read),
        TEST(under_capture_host_memory_is_out_of_reach),
        TEST(errors_are_sticky),
        TEST(a_scope_ends_its_tensors_but_not_those_that_were_kept),
        TEST(a_shared_tensor_is_owned_without_being_written),
        TEST(a_tensor_given_up_too_often_leaves_its_scope),
        TEST(requires_grad_needs_a_floating_type),
        TEST(foreign_memory_is_released_once_and_not_after_a_failure),
        TEST(high_ranks_have_their_dims_behind_the_tensor),
        TEST(freed_blocks_are_used_again_until_trimmed),
        TEST(a_block_wastes_at_most_a_fifth),
        TEST(memory_over_the_limit_is_an_error_that_passes),
        TEST(philox_gives_its_known_answers),
        TEST(a_module_keeps_indices_and_suggests_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
