/* Guards: every kind holds for the inputs it came from, fails for others, and says why. */
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include "host/guard/guard.h"
#include <backplane/backplane.h>
#include <math.h>
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

#define I(...) ((const int64_t[]){__VA_ARGS__})
enum { MAX = 8 };
static const guard_source SOURCES[MAX] = {
    {"a", BP_ROLE_USER}, {"b", BP_ROLE_USER}, {"n", BP_ROLE_USER}, {"fc.weight", BP_ROLE_PARAMETER},
    {"e", BP_ROLE_USER}, {"f", BP_ROLE_USER}, {"g", BP_ROLE_USER}, {"h", BP_ROLE_USER},
};

typedef struct { bp_value at[MAX]; guard_inputs in; } call;

/* A call with n values; every one is an argument. */
static call call_of(uint32_t n, const bp_value *values)
{
    call k = {.in = {NULL, n, n, NULL}};
    memcpy(k.at, values, n * sizeof *values);
    return k;
}
#define CALL(...) call_of(sizeof((bp_value[]){__VA_ARGS__}) / sizeof(bp_value), (bp_value[]){__VA_ARGS__})
#define T(t) bp_arg_of_tensor(t)

static const guard_inputs *in(call *k)
{
    k->in.at = k->at;
    return &k->in;
}

/* All guards of a call, as the root of an entry has them. */
static guard_set *guards_of(call *k)
{
    guard_builder *b = guard_begin(c, SOURCES, k->in.n, in(k));
    guard_add_ambient(b);
    for (uint32_t i = 0; i < k->in.n; i++)
        guard_add_input(b, i);
    guard_add_identity(b);
    guard_set *g = guard_finish(b);
    assert_non_null(g);
    return g;
}

static void assert_holds(const guard_set *g, call *k)
{
    buf why = {0};
    if (guard_explain(g, c, in(k), &why))
        fail_msg("does not hold: %s", buf_text(&why));
    assert_true(guard_check(g, c, in(k)));
}

static void assert_fails(const guard_set *g, call *k, const char *reason)
{
    buf why = {0};
    assert_false(guard_check(g, c, in(k)));
    assert_true(guard_explain(g, c, in(k), &why));
    assert_string_equal(buf_text(&why), reason);
    buf_fini(&why);
}

/* A fake of any dtype and device: guards read metadata only. */
static bp_tensor *meta(bp_dtype dtype, bp_device device, uint32_t rank, const int64_t *sizes, const int64_t *strides)
{
    bp_dim s[TENSOR_MAX_RANK], t[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) {
        s[d] = dim_const(sizes[d]);
        t[d] = dim_const(strides[d]);
    }
    return scope_own(c, tensor_new_fake(c, &(tensor_meta){dtype, device, rank, s, t, {0}}));
}

static bp_tensor *floats(int64_t n)
{
    return bp_tensor_from(c, BP_F32, 1, &n, NULL);
}

/* n floats of base from an offset on. */
static bp_tensor *part(bp_tensor *base, int64_t offset, int64_t n)
{
    bp_dim size = dim_const(n), stride = dim_const(1);
    return scope_own(c, tensor_view(c, base, &(tensor_meta){BP_F32, {BP_CPU, 0}, 1, &size, &stride,
                                                            dim_const(offset)}));
}

static void a_tensor_that_differs_in_one_fact_is_told_by_that_fact(void **state)
{
    (void)state;
    const bp_device cpu = {BP_CPU, 0}, other = {BP_CPU, 1}, cuda = {BP_CUDA, 0};
    const int64_t *size = I(3, 4), *stride = I(4, 1);
    call k = CALL(T(meta(BP_F32, cpu, 2, size, stride)));
    guard_set *g = guards_of(&k);
    bp_tensor *grad = meta(BP_F32, cpu, 2, size, stride);
    bp_tensor_set_requires_grad(c, grad, 1);
    const struct { bp_tensor *t; const char *reason; } ROWS[] = {
        {meta(BP_F64, cpu, 2, size, stride), "tensor 'a' dtype mismatch. expected Float, actual Double"},
        {meta(BP_F32, cuda, 2, size, stride), "tensor 'a' dispatch key set mismatch. expected cpu, actual cuda"},
        {meta(BP_F32, other, 2, size, stride),
         "tensor 'a' Tensor device index mismatch. Expected device index to be 0, actual 1"},
        {grad, "tensor 'a' requires_grad mismatch. expected requires_grad=0, actual requires_grad=1"},
        {meta(BP_F32, cpu, 1, I(12), I(1)), "tensor 'a' rank mismatch. expected 2, actual 1"},
        {meta(BP_F32, cpu, 2, I(2, 4), stride), "tensor 'a' size mismatch at index 0. expected 3, actual 2"},
        {meta(BP_F32, cpu, 2, I(3, 5), I(5, 1)), "tensor 'a' size mismatch at index 1. expected 4, actual 5"},
        {meta(BP_F32, cpu, 2, size, I(1, 3)), "tensor 'a' stride mismatch at index 0. expected 4, actual 1"},
        {meta(BP_F32, cpu, 2, size, I(4, 2)), "tensor 'a' stride mismatch at index 1. expected 1, actual 2"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        call other_call = CALL(T(ROWS[i].t));
        assert_fails(g, &other_call, ROWS[i].reason);
    }
    call same = CALL(T(meta(BP_F32, cpu, 2, size, stride)));
    assert_holds(g, &same);
    guard_destroy(g);
}

static void offset_data_and_version_are_not_guarded(void **state)
{
    (void)state;
    bp_tensor *base = floats(10), *at2 = part(base, 2, 4), *at5 = part(base, 5, 4);
    call k = CALL(T(at2)), other = CALL(T(at5));
    guard_set *g = guards_of(&k);
    tensor_wrote(at5);
    assert_holds(g, &other);
    guard_destroy(g);
}

static void tensors_of_high_rank_are_compared_in_every_dimension(void **state)
{
    (void)state;
    int64_t sizes[] = {1, 2, 1, 2, 1, 2, 3}, strides[] = {24, 12, 12, 6, 6, 3, 1};
    call k = CALL(T(meta(BP_F32, (bp_device){BP_CPU, 0}, 7, sizes, strides)));
    guard_set *g = guards_of(&k);
    for (int d = 0; d < 7; d++) {
        sizes[d]++;
        call other = CALL(T(meta(BP_F32, (bp_device){BP_CPU, 0}, 7, sizes, strides)));
        assert_false(guard_check(g, c, in(&other)));
        sizes[d]--;
        strides[d]++;
        call third = CALL(T(meta(BP_F32, (bp_device){BP_CPU, 0}, 7, sizes, strides)));
        assert_false(guard_check(g, c, in(&third)));
        strides[d]--;
    }
    guard_destroy(g);
}

static void a_changed_mode_is_named_with_both_values(void **state)
{
    (void)state;
    call k = CALL(T(floats(2)));
    guard_set *g = guards_of(&k);
    bp_set_grad_enabled(c, 0);
    assert_fails(g, &k, "GLOBAL_STATE changed: grad_mode (expected 1, actual 0)");
    bp_set_grad_enabled(c, 1);
    assert_holds(g, &k);
    bp_set_inference_mode(c, 1);
    assert_fails(g, &k, "GLOBAL_STATE changed: inference_mode (expected 0, actual 1)");
    bp_set_inference_mode(c, 0);
    bp_set_autocast(c, BP_BF16);
    bp_set_deterministic(c, 1);
    bp_set_allow_tf32(c, 1);
    c->ambient.num_threads += 3;
    bp_set_default_dtype(c, BP_F64);
    bp_set_default_device(c, (bp_device){BP_CUDA, 1});
    char reason[512];
    snprintf(reason, sizeof reason,
             "GLOBAL_STATE changed: autocast (expected off, actual bfloat16), deterministic_algorithms (expected 0, "
             "actual 1), allow_tf32 (expected 0, actual 1), num_threads (expected %u, actual %u), default_dtype "
             "(expected float32, actual float64), default_device (expected cpu, actual cuda:1)",
             c->ambient.num_threads - 3, c->ambient.num_threads);
    assert_fails(g, &k, reason);
    guard_destroy(g);
}

static void every_field_of_the_modes_has_a_word(void **state)
{
    (void)state;
    call k = CALL(T(floats(2)));
    guard_set *g = guards_of(&k);
    for (size_t i = 0; i < sizeof(ambient); i++) { /* flip each byte: a field without a row would give no word */
        ((unsigned char *)&c->ambient)[i] ^= 64;
        buf why = {0};
        assert_true(guard_explain(g, c, in(&k), &why));
        assert_contains(buf_text(&why), "GLOBAL_STATE changed: ");
        assert_contains(buf_text(&why), "(expected ");
        buf_fini(&why);
        ((unsigned char *)&c->ambient)[i] ^= 64;
    }
    guard_destroy(g);
}

static void the_number_of_arguments_is_guarded_before_their_kinds(void **state)
{
    (void)state;
    call two = CALL(T(floats(2)), T(floats(3))), one = CALL(bp_arg_of_int(1)), none = {.in = {NULL, 0, 0, NULL}};
    guard_set *g = guards_of(&two);
    assert_fails(g, &one, "number of arguments mismatch. expected 2, actual 1");
    assert_fails(g, &none, "number of arguments mismatch. expected 2, actual 0");
    none.in.nargs = 2; /* a call that lies about itself is still not read beyond its end */
    assert_fails(g, &none, "expected type of 'a' to be a tensor type, but found NoneType");
    guard_destroy(g);
}

static void plain_values_are_guarded_by_kind_and_value(void **state)
{
    (void)state;
    bp_tensor *t = floats(2);
    const struct { bp_value of, other; const char *reason; } ROWS[] = {
        {T(t), bp_arg_of_int(3), "expected type of 'a' to be a tensor type, but found int"},
        {T(t), T(NULL), "expected type of 'a' to be a tensor type, but found NoneType"},
        {T(t), bp_arg_of_float(3), "expected type of 'a' to be a tensor type, but found float"},
        {bp_arg_of_int(3), T(t), "expected type of 'a' to be int, but found Tensor"},
        {bp_arg_of_int(3), bp_arg_of_int(-4), "'a' value mismatch. expected 3, actual -4"},
        {bp_arg_of_int(1), bp_arg_of_bool(1), "expected type of 'a' to be int, but found bool"},
        {bp_arg_of_int(1), bp_arg_of_float(1), "expected type of 'a' to be int, but found float"},
        {bp_arg_of_bool(1), bp_arg_of_bool(0), "'a' value mismatch. expected True, actual False"},
        {bp_arg_of_float(0.5), bp_arg_of_float(1e-5), "'a' value mismatch. expected 0.5, actual 1e-05"},
        {bp_arg_of_float(0.0), bp_arg_of_float(-0.0), "'a' value mismatch. expected 0.0, actual -0.0"},
        {bp_arg_of_float(NAN), bp_arg_of_float(1), "'a' value mismatch. expected nan, actual 1.0"},
        {bp_arg_of_str("sum"), bp_arg_of_str("mean"), "'a' value mismatch. expected 'sum', actual 'mean'"},
        {bp_arg_of_str("sum"), bp_arg_of_str(NULL), "'a' value mismatch. expected 'sum', actual NULL"},
        {bp_arg_of_str(NULL), bp_arg_of_str(""), "'a' value mismatch. expected NULL, actual ''"},
        {bp_arg_of_str("x"), bp_arg_of_int(1), "expected type of 'a' to be str, but found int"},
        {T(NULL), T(t), "expected type of 'a' to be NoneType, but found Tensor"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        call k = CALL(ROWS[i].of), other = CALL(ROWS[i].other);
        guard_set *g = guards_of(&k);
        assert_holds(g, &k);
        assert_fails(g, &other, ROWS[i].reason);
        guard_destroy(g);
    }
}

static void one_nan_is_as_good_as_another_and_strings_are_compared_by_text(void **state)
{
    (void)state;
    char text[] = "a longer text than one word";
    call nan1 = CALL(bp_arg_of_float(NAN)), nan2 = CALL(bp_arg_of_float(-NAN));
    call s1 = CALL(bp_arg_of_str("a longer text than one word")), s2 = CALL(bp_arg_of_str(text));
    guard_set *g = guards_of(&nan1), *s = guards_of(&s1);
    assert_holds(g, &nan2);
    assert_holds(s, &s2);
    text[26] = 'k';
    assert_false(guard_check(s, c, in(&s2)));
    guard_destroy(g);
    guard_destroy(s);
}

static void distinct_inputs_may_not_become_one_object(void **state)
{
    (void)state;
    bp_tensor *x = floats(3), *y = floats(3);
    call apart = CALL(T(x), T(y)), one = CALL(T(x), T(x)), swapped = CALL(T(y), T(x));
    guard_set *g = guards_of(&apart);
    assert_holds(g, &swapped);
    assert_fails(g, &one,
                 "Duplicate tensor found where not expected! 'a' and 'b' are one tensor, and should not alias");
    guard_destroy(g);
}

static void one_object_given_twice_must_be_given_twice_again(void **state)
{
    (void)state;
    bp_tensor *x = floats(3), *y = floats(3), *z = floats(3);
    call one = CALL(T(x), T(x), T(z)), apart = CALL(T(x), T(y), T(z)), other = CALL(T(y), T(y), T(x));
    call all = CALL(T(x), T(x), T(x));
    guard_set *g = guards_of(&one);
    assert_holds(g, &other);
    assert_fails(g, &apart, "alias mismatch. expected 'b' to be the very tensor 'a', actual another object");
    assert_fails(g, &all,
                 "Duplicate tensor found where not expected! 'a' and 'n' are one tensor, and should not alias");
    guard_destroy(g);
}

static void identity_holds_among_very_many_inputs(void **state)
{
    (void)state;
    enum { N = 1300 };
    guard_source *sources = calloc(N, sizeof *sources);
    bp_value *at = calloc(N, sizeof *at);
    for (uint32_t i = 0; i < N; i++) {
        sources[i] = (guard_source){"p", BP_ROLE_PARAMETER};
        at[i] = T(floats(1));
    }
    guard_inputs all = {at, N, 0, NULL};
    guard_builder *b = guard_begin(c, sources, N, &all);
    for (uint32_t i = 0; i < N; i++)
        guard_add_input(b, i);
    guard_add_identity(b);
    guard_set *g = guard_finish(b);
    assert_true(guard_check(g, c, &all));
    static const uint32_t PAIRS[][2] = {{0, 1}, {0, 1299}, {255, 256}, {256, 511}, {300, 1000}, {1298, 1299}};
    for (size_t i = 0; i < sizeof PAIRS / sizeof PAIRS[0]; i++) {
        bp_value was = at[PAIRS[i][1]];
        at[PAIRS[i][1]] = at[PAIRS[i][0]];
        assert_false(guard_check(g, c, &all));
        at[PAIRS[i][1]] = was;
    }
    guard_destroy(g);
    free(sources);
    free(at);
}

static void a_branch_guards_identity_with_what_its_ancestors_read(void **state)
{
    (void)state;
    bp_tensor *x = floats(3), *y = floats(3), *z = floats(3);
    call k = CALL(T(x), T(y), T(z)), dup = CALL(T(x), T(x), T(z)), others = CALL(T(x), T(y), T(x));
    guard_builder *b = guard_begin(c, SOURCES, 3, in(&k));
    guard_add_input(b, 1);
    guard_add_identity(b);
    guard_set *g = guard_finish(b);
    assert_holds(g, &k);
    assert_false(guard_check(g, c, in(&dup)));
    assert_holds(g, &others); /* neither is guarded here */
    guard_destroy(g);
}

static guard_set *layout_of(call *k, uint32_t written)
{
    guard_builder *b = guard_begin(c, SOURCES, k->in.n, in(k));
    guard_add_layout(b, written);
    guard_set *g = guard_finish(b);
    assert_non_null(g);
    return g;
}

static void a_written_input_may_not_come_to_overlap_another(void **state)
{
    (void)state;
    bp_tensor *base = floats(12), *x = floats(4);
    call apart = CALL(T(x), T(part(base, 0, 4)), T(part(base, 2, 4)));
    guard_set *g = layout_of(&apart, 0);
    assert_holds(g, &apart);
    call touching = CALL(T(part(base, 0, 4)), T(part(base, 4, 4)), T(part(base, 8, 4)));
    assert_holds(g, &touching);
    call meets = CALL(T(part(base, 0, 4)), T(part(base, 4, 4)), T(part(base, 3, 4)));
    assert_fails(g, &meets, "overlap mismatch. expected tensor 'n' to share no bytes with tensor 'a' (tensor 'a' is "
                            "written), actual overlap at byte offset 12");
    guard_destroy(g);
}

static void inputs_that_overlap_a_written_one_keep_their_distance(void **state)
{
    (void)state;
    bp_tensor *base = floats(32);
    call k = CALL(T(part(base, 0, 4)), T(part(base, 2, 4)), T(part(base, 20, 4)));
    guard_set *g = layout_of(&k, 0);
    call moved = CALL(T(part(base, 10, 4)), T(part(base, 12, 4)), T(part(base, 24, 4)));
    assert_holds(g, &moved); /* absolute offsets do not matter */
    call closer = CALL(T(part(base, 0, 4)), T(part(base, 1, 4)), T(part(base, 20, 4)));
    assert_fails(g, &closer, "overlap mismatch. expected tensor 'b' to overlap tensor 'a' at byte offset 8, actual 4");
    call apart = CALL(T(part(base, 0, 4)), T(part(base, 8, 4)), T(part(base, 20, 4)));
    assert_fails(g, &apart,
                 "overlap mismatch. expected tensor 'b' to overlap tensor 'a' at byte offset 8, actual no overlap");
    call third = CALL(T(part(base, 0, 4)), T(part(base, 2, 4)), T(part(base, 5, 4)));
    assert_fails(g, &third, "overlap mismatch. expected tensor 'n' to share no bytes with tensor 'b' (tensor 'a' is "
                            "written), actual overlap at byte offset 12");
    guard_destroy(g);
}

static void a_chain_of_overlaps_is_one_component(void **state)
{
    (void)state;
    bp_tensor *base = floats(32);
    call k = CALL(T(part(base, 0, 4)), T(part(base, 3, 4)), T(part(base, 6, 4)));
    guard_builder *b = guard_begin(c, SOURCES, 3, in(&k));
    guard_add_layout(b, 0);
    guard_add_layout(b, 2); /* the same component */
    guard_set *g = guard_finish(b);
    assert_int_equal(guard_count(g), 3); /* two distances, one frontier */
    call shifted = CALL(T(part(base, 0, 4)), T(part(base, 3, 4)), T(part(base, 5, 4)));
    assert_false(guard_check(g, c, in(&shifted)));
    guard_destroy(g);
}

static void foreign_memory_under_two_storages_is_seen(void **state)
{
    (void)state;
    float memory[8] = {0};
    bp_dim size = dim_const(4), stride = dim_const(1);
    tensor_meta m = {BP_F32, {BP_CPU, 0}, 1, &size, &stride, dim_const(0)};
    bp_tensor *a = tensor_wrap(c, &m, memory, 16, tensor_release_nothing, NULL);
    bp_tensor *b = tensor_wrap(c, &m, memory + 4, 16, tensor_release_nothing, NULL);
    bp_tensor *mid = tensor_wrap(c, &m, memory + 2, 16, tensor_release_nothing, NULL);
    call apart = CALL(T(a), T(b)), meets = CALL(T(a), T(mid));
    guard_set *g = layout_of(&apart, 0);
    assert_holds(g, &apart);
    assert_false(guard_check(g, c, in(&meets)));
    guard_destroy(g);
    tensor_unref(a), tensor_unref(b), tensor_unref(mid);
}

static void code_parts_print_one_condition_a_line(void **state)
{
    (void)state;
    bp_tensor *x = bp_tensor_from(c, BP_F32, 2, I(2, 3), NULL);
    c->ambient.num_threads = 2;
    call k = CALL(T(x), T(NULL), bp_arg_of_float(0.5), T(floats(4)), bp_arg_of_bool(1), bp_arg_of_str("it's"), T(x),
                  bp_arg_of_int(-3));
    k.in.nargs = 7;
    guard_set *g = guards_of(&k);
    buf out = {0};
    guard_print(g, &out);
    assert_string_equal(buf_text(&out),
        "___check_global_state()  # grad_mode=1, inference_mode=0, autocast=off, deterministic_algorithms=0, "
        "allow_tf32=0, num_threads=2, default_dtype=float32, default_device=cpu\n"
        "len(args) == 7\n"
        "L['a'].dtype == torch.float32\n"
        "L['a'].device == cpu\n"
        "L['a'].requires_grad == False\n"
        "L['a'].ndimension() == 2\n"
        "L['a'].size() == (2, 3)\n"
        "L['a'].stride() == (3, 1)\n"
        "not hasattr(L['a'], '_dynamo_dynamic_indices')\n"
        "L['b'] is None\n"
        "L['n'] == 0.5\n"
        "L['m'].fc.weight.dtype == torch.float32\n"
        "L['m'].fc.weight.device == cpu\n"
        "L['m'].fc.weight.requires_grad == False\n"
        "L['m'].fc.weight.ndimension() == 1\n"
        "L['m'].fc.weight.size() == (4,)\n"
        "L['m'].fc.weight.stride() == (1,)\n"
        "not hasattr(L['m'].fc.weight, '_dynamo_dynamic_indices')\n"
        "L['e'] is True\n"
        "L['f'] == \"it's\"\n"
        "L['g'].dtype == torch.float32\n"
        "L['g'].device == cpu\n"
        "L['g'].requires_grad == False\n"
        "L['g'].ndimension() == 2\n"
        "L['g'].size() == (2, 3)\n"
        "L['g'].stride() == (3, 1)\n"
        "not hasattr(L['g'], '_dynamo_dynamic_indices')\n"
        "L['h'] == -3\n"
        "L['g'] is L['a']\n"
        "___check_tensors(L['a'], L['m'].fc.weight, no_aliasing=True)\n");
    assert_int_equal(guard_count(g), 12);
    assert_true(guard_nbytes(g) < 1500);
    buf_fini(&out);
    guard_destroy(g);
}

static void layout_guards_print_what_they_check(void **state)
{
    (void)state;
    bp_tensor *base = floats(12);
    call k = CALL(T(part(base, 0, 4)), T(part(base, 2, 4)), T(part(base, 8, 4)));
    guard_set *g = layout_of(&k, 1);
    buf out = {0};
    guard_print(g, &out);
    assert_string_equal(buf_text(&out), "___check_overlap(L['a'], L['b'], offset=8)\n"
                                        "___check_no_overlap(L['a'], L['b'])\n");
    buf_fini(&out);
    guard_destroy(g);
}

static void A142_a_set_that_does_not_hold_for_its_own_inputs_is_refused(void **state)
{
    (void)state;
    call k = CALL(T(floats(2)));
    guard_builder *b = guard_begin(c, SOURCES, 1, in(&k));
    guard_add_ambient(b);
    bp_set_deterministic(c, 1); /* a mode left changed behind the guard */
    assert_null(guard_finish(b));
    assert_int_equal(bp_error(c), BP_INTERNAL);
    assert_contains(bp_error_message(c), "guard check failed: GLOBAL_STATE changed: deterministic_algorithms");
}

static void what_cannot_be_guarded_is_an_error(void **state)
{
    (void)state;
    call k = CALL(bp_arg_of_int(1));
    k.at[0].kind = BP_VALUE_LIST;
    guard_builder *b = guard_begin(c, SOURCES, 1, in(&k));
    guard_add_input(b, 0);
    guard_add_input(b, 0);
    assert_null(guard_finish(b));
    assert_contains(bp_error_message(c), "argument \"a\" has kind 12");
    bp_error_clear(c);
    b = guard_begin(c, SOURCES, 1, in(&k));
    guard_add_input(b, 5);
    assert_null(guard_finish(b));
    assert_int_equal(bp_error(c), BP_INTERNAL);
    guard_add_input(NULL, 0);
    assert_null(guard_finish(NULL));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_tensor_that_differs_in_one_fact_is_told_by_that_fact),
        TEST(offset_data_and_version_are_not_guarded),
        TEST(tensors_of_high_rank_are_compared_in_every_dimension),
        TEST(a_changed_mode_is_named_with_both_values),
        TEST(every_field_of_the_modes_has_a_word),
        TEST(the_number_of_arguments_is_guarded_before_their_kinds),
        TEST(plain_values_are_guarded_by_kind_and_value),
        TEST(one_nan_is_as_good_as_another_and_strings_are_compared_by_text),
        TEST(distinct_inputs_may_not_become_one_object),
        TEST(one_object_given_twice_must_be_given_twice_again),
        TEST(identity_holds_among_very_many_inputs),
        TEST(a_branch_guards_identity_with_what_its_ancestors_read),
        TEST(a_written_input_may_not_come_to_overlap_another),
        TEST(inputs_that_overlap_a_written_one_keep_their_distance),
        TEST(a_chain_of_overlaps_is_one_component),
        TEST(foreign_memory_under_two_storages_is_seen),
        TEST(code_parts_print_one_condition_a_line),
        TEST(layout_guards_print_what_they_check),
        TEST(A142_a_set_that_does_not_hold_for_its_own_inputs_is_refused),
        TEST(what_cannot_be_guarded_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
