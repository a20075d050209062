/* DLPack: a producer and a consumer written here after the ABI's own layout. */
#include "tests/lib/check.h"
#include <backplane/backplane.h>
#include <pthread.h>
#include <stdlib.h>

typedef struct managed {
    uint32_t major, minor;
    void *arg;
    void (*deleter)(struct managed *self);
    uint64_t flags;
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} managed;

static bp_ctx *c;
static int deleted;

static int start(void **state)
{
    (void)state;
    deleted = 0;
    c = bp_ctx_new(NULL);
    return c ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    bp_ctx_destroy(c);
    return 0;
}

static void count(managed *self)
{
    (void)self;
    deleted++;
}

static float numbers[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static int64_t sizes[2] = {3, 2}, strides[2] = {1, 3};

static managed produce(void)
{
    return (managed){1, 1, NULL, count, 0, numbers, 1, 0, 2, 2, 32, 1, sizes, strides, 8};
}

static void memory_comes_in_without_a_copy_and_is_let_go_of_once(void **state)
{
    (void)state;
    static managed m; /* the context lets go of it after the test */
    m = produce();
    bp_scope_begin(c);
    bp_tensor *t = bp_from_dlpack(c, &m);
    assert_non_null(t);
    assert_ptr_equal(bp_tensor_data(c, t), numbers + 2);
    assert_int_equal(bp_tensor_stride(t, 1), 3);
    float got[6], want[6] = {2, 5, 3, 6, 4, 7};
    assert_int_equal(bp_tensor_read(c, t, got, sizeof got), BP_OK);
    assert_memory_equal(got, want, sizeof got);
    bp_tensor *view = bp_keep(c, bp_select(c, t, 0, 1));
    bp_scope_end(c);
    assert_int_equal(deleted, 0);
    bp_tensor_unref(view);
    assert_int_equal(deleted, 1);
}

static void strides_that_are_null_are_contiguous(void **state)
{
    (void)state;
    static managed m;
    m = produce();
    m.strides = NULL;
    bp_tensor *t = bp_from_dlpack(c, &m);
    assert_int_equal(bp_tensor_stride(t, 0), 2);
    assert_int_equal(bp_tensor_stride(t, 1), 1);
}

static void read_only_and_misaligned_memory_is_copied(void **state)
{
    (void)state;
    static managed m;
    m = produce();
    m.flags = 1;
    bp_tensor *t = bp_from_dlpack(c, &m);
    assert_ptr_not_equal(bp_tensor_data(c, t), numbers + 2);
    assert_int_equal(deleted, 1);
    float got[6], want[6] = {2, 5, 3, 6, 4, 7};
    bp_tensor_read(c, t, got, sizeof got);
    assert_memory_equal(got, want, sizeof got);
    char odd[sizeof numbers + 1];
    memcpy(odd + 1, numbers, sizeof numbers);
    m = produce();
    m.data = odd;
    m.byte_offset = 9;
    t = bp_from_dlpack(c, &m);
    bp_tensor_read(c, t, got, sizeof got);
    assert_memory_equal(got, want, sizeof got);
    assert_int_equal(deleted, 2);
}

static void empty_tensors_and_single_numbers_come_in(void **state)
{
    (void)state;
    int64_t none[2] = {0, 4};
    static managed m;
    m = produce();
    m.shape = none;
    m.data = NULL;
    assert_int_equal(bp_tensor_numel(bp_from_dlpack(c, &m)), 0);
    static managed one;
    one = produce();
    one.ndim = 0;
    one.shape = one.strides = NULL;
    assert_true(bp_item_float(c, bp_from_dlpack(c, &one)) == 2);
}

/* Each a change of the good one, and what the error says. */
static void what_cannot_be_taken_is_refused_and_left_to_the_caller(void **state)
{
    (void)state;
    int64_t back[2] = {-1, 3}, huge[2] = {INT64_MAX / 2, INT64_MAX / 2}, minus[2] = {-3, 2};
    managed bad[10];
    const char *words[10] = {"version 2.1", "device of kind 2", "rank 65", "type code 2, 8 bits", "2 lanes",
                             "stride 0 is -1", "overflow", "size 0 is -3", "without data", "without sizes"};
    for (int i = 0; i < 10; i++)
        bad[i] = produce();
    bad[0].major = 2;
    bad[1].device_type = 2;
    bad[2].ndim = 65;
    bad[3].bits = 8;
    bad[4].lanes = 2;
    bad[5].strides = back;
    bad[6].shape = huge;
    bad[7].shape = minus;
    bad[8].data = NULL;
    bad[9].shape = NULL;
    for (int i = 0; i < 10; i++) {
        assert_null(bp_from_dlpack(c, &bad[i]));
        assert_contains(bp_error_text(c), words[i]);
        bp_error_clear(c);
    }
    assert_null(bp_from_dlpack(c, NULL));
    assert_contains(bp_error_text(c), "NULL");
    assert_int_equal(deleted, 0);
}

static void *let_go(void *arg)
{
    managed *m = arg;
    m->deleter(m);
    return NULL;
}

static void memory_goes_out_and_outlives_its_context(void **state)
{
    (void)state;
    bp_ctx *other = bp_ctx_new(NULL);
    bp_tensor *t = bp_transpose(other, bp_arange(other, 6, .dtype = BP_I64), 0, 0);
    t = bp_select(other, bp_reshape(other, t, BP_DIMS(2, 3)), 0, 1);
    int64_t *data = bp_tensor_data(other, t);
    managed *m = bp_to_dlpack(other, t);
    assert_non_null(m);
    bp_ctx_destroy(other);
    assert_int_equal(m->major, 1);
    assert_int_equal(m->device_type, 1);
    assert_int_equal(m->code * 1000 + m->bits, 64);
    assert_int_equal(m->ndim, 1);
    assert_int_equal(m->shape[0], 3);
    assert_int_equal(m->strides[0], 1);
    assert_ptr_equal((char *)m->data + m->byte_offset, data);
    assert_int_equal(data[0] * 100 + data[1] * 10 + data[2], 345);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, let_go, m), 0);
    pthread_join(thread, NULL);
}

static void every_type_comes_back_as_it_went(void **state)
{
    (void)state;
    for (bp_dtype d = BP_BOOL; d <= BP_C128; d++) {
        managed *m = bp_to_dlpack(c, bp_zeros(c, BP_DIMS(2), .dtype = d));
        assert_non_null(m);
        bp_tensor *t = bp_from_dlpack(c, m);
        assert_non_null(t);
        assert_int_equal(bp_tensor_dtype(t), d);
    }
}

static void what_dlpack_cannot_say_does_not_go_out(void **state)
{
    (void)state;
    bp_tensor *t = bp_zeros(c, BP_DIMS(2));
    bp_tensor_set_requires_grad(c, t, 1);
    assert_null(bp_to_dlpack(c, t));
    assert_contains(bp_error_text(c), "requires grad");
    bp_error_clear(c);
    assert_null(bp_to_dlpack(c, NULL));
    assert_contains(bp_error_text(c), "NULL");
}

static void within(bp_ctx *c_, bp_frame *f)
{
    managed *m = bp_user(f);
    bp_return(f, bp_from_dlpack(c_, m));
}

static void under_capture_memory_stays_outside(void **state)
{
    (void)state;
    static managed m;
    m = produce();
    bp_args none = {0};
    bp_outputs outs = {0};
    bp_callable *g = bp_compile(c, within, &(bp_compile_options){.backend = "eager", .user = &m});
    assert_int_not_equal(bp_call(c, g, &none, &outs), BP_OK);
    assert_contains(bp_error_text(c), "bp_constant");
    assert_int_equal(deleted, 0);
    bp_callable_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_comes_in_without_a_copy_and_is_let_go_of_once, start, end),
        cmocka_unit_test_setup_teardown(strides_that_are_null_are_contiguous, start, end),
        cmocka_unit_test_setup_teardown(read_only_and_misaligned_memory_is_copied, start, end),
        cmocka_unit_test_setup_teardown(empty_tensors_and_single_numbers_come_in, start, end),
        cmocka_unit_test_setup_teardown(what_cannot_be_taken_is_refused_and_left_to_the_caller, start, end),
        cmocka_unit_test_setup_teardown(memory_goes_out_and_outlives_its_context, start, end),
        cmocka_unit_test_setup_teardown(every_type_comes_back_as_it_went, start, end),
        cmocka_unit_test_setup_teardown(what_dlpack_cannot_say_does_not_go_out, start, end),
        cmocka_unit_test_setup_teardown(under_capture_memory_stays_outside, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
