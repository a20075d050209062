/* A call's way from arguments to results: checks, modes, fakes, in-place writing, requires_grad, sticky errors. */
#define BP_WITHOUT_OPERATORS
#include "host/op/rows.h"
#include "tests/lib/op_world.h"

static bp_tensor *floats(uint32_t rank, const int64_t *sizes, const float *data)
{
    bp_tensor *t = bp_tensor_from(c, BP_F32, rank, sizes, data);
    assert_non_null(t);
    return t;
}

static bp_tensor *pair(float x, float y)
{
    return floats(1, (int64_t[]){2}, (float[]){x, y});
}

static float item(bp_tensor *t, int i)
{
    return ((float *)tensor_ptr(t))[i];
}

/* Dispatches with all arguments given; owns the only result. */
static bp_tensor *call(uint32_t row, const bp_value *args)
{
    bp_tensor *out = NULL;
    op_call k = {.op = op_at(row), .args = args, .out = &out, .nout = 1};
    if (op_dispatch(c, &k) != BP_OK)
        return NULL;
    assert_int_equal(k.nout, 1);
    return scope_own(c, out);
}

static bp_tensor *copy_to(bp_tensor *self, bp_value src)
{
    return call(ROW_copy_inplace_default, (bp_value[]){value_tensor(self), src, value_bool(false)});
}

static void rows_are_found_by_target_and_by_id(void **state)
{
    (void)state;
    const op_row *r = op_by_target("aten.clone.default");
    assert_non_null(r);
    assert_ptr_equal(r, op_by_id("clone_default"));
    assert_ptr_equal(r, op_at(ROW_clone_default));
    assert_string_equal(r->label, "clone");
    assert_null(op_by_target("aten.no_such"));
    assert_null(op_at(op_count()));
    assert_string_equal(op_nearest("aten.clones.default"), "aten.clone.default");
}

static void a_kernel_makes_a_result_and_a_view_shares_memory(void **state)
{
    (void)state;
    bp_tensor *t = pair(1, 2);
    bp_tensor *copy = call(ROW_clone_default, (bp_value[]){value_tensor(t), value_none()});
    bp_tensor *view = call(ROW_alias_default, (bp_value[]){value_tensor(t)});
    assert_true(item(copy, 1) == 2);
    assert_false(bp_tensor_same_storage(copy, t));
    assert_true(bp_tensor_same_storage(view, t));
}

static void in_place_writes_its_argument_and_bumps_the_version(void **state)
{
    (void)state;
    bp_tensor *t = pair(1, 2);
    unsigned long long version = atomic_load(&t->store->version);
    assert_ptr_equal(copy_to(t, value_int(7)), t);
    assert_true(item(t, 0) == 7 && item(t, 1) == 7);
    assert_true(atomic_load(&t->store->version) > version);
}

static void errors_name_operator_argument_and_site_and_are_sticky(void **state)
{
    (void)state;
    bp_tensor *t = pair(1, 2);
    c->site_file = "demo.c";
    c->site_line = 12;
    assert_null(call(ROW_clone_default, (bp_value[]){value_none(), value_none()}));
    assert_int_equal(bp_error(c), BP_INVALID_ARGUMENT);
    assert_string_equal(bp_error_message(c), "clone: argument \"self\" is None, expected Tensor");
    assert_contains(bp_error_text(c), "calling aten.clone.default (demo.c:12)");
    assert_null(call(ROW_clone_default, (bp_value[]){value_tensor(t), value_none()}));
    bp_error_clear(c);
    assert_non_null(call(ROW_clone_default, (bp_value[]){value_tensor(t), value_none()}));
    bp_value null = {.kind = BP_VALUE_TENSOR};
    assert_null(call(ROW_clone_default, (bp_value[]){null, value_none()}));
    assert_string_equal(bp_error_message(c), "clone: argument \"self\" is NULL, expected a tensor");
}

static void a_shape_that_does_not_fit_leaves_the_argument_alone(void **state)
{
    (void)state;
    bp_tensor *t = pair(1, 2), *three = floats(1, (int64_t[]){3}, (float[]){7, 8, 9});
    assert_null(copy_to(t, value_tensor(three)));
    assert_contains(bp_error_message(c), "argument \"src\" of sizes [3] cannot be expanded to [2]");
    assert_true(item(t, 0) == 1);
}

static void writing_an_expanded_tensor_is_refused(void **state)
{
    (void)state;
    bp_tensor *one = floats(1, (int64_t[]){1}, (float[]){5});
    tensor_meta m = {BP_F32, {BP_CPU, 0}, 1, (bp_dim[]){{3, 0, 0}}, (bp_dim[]){{0, 0, 0}}, {0}};
    bp_tensor *wide = scope_own(c, tensor_view(c, one, &m));
    assert_null(copy_to(wide, value_int(1)));
    assert_contains(bp_error_message(c), "several of its elements lie at one place");
    assert_contains(bp_error_text(c), "clone()");
}

static void half_an_overlap_is_refused_and_a_whole_one_is_not(void **state)
{
    (void)state;
    bp_tensor *t = floats(1, (int64_t[]){3}, (float[]){1, 2, 3});
    tensor_meta m = {BP_F32, {BP_CPU, 0}, 1, (bp_dim[]){{2, 0, 0}}, (bp_dim[]){{1, 0, 0}}, {0}};
    bp_tensor *low = scope_own(c, tensor_view(c, t, &m));
    m.offset = dim_const(1);
    bp_tensor *high = scope_own(c, tensor_view(c, t, &m));
    assert_non_null(copy_to(low, value_tensor(low)));
    assert_null(copy_to(low, value_tensor(high)));
    assert_contains(bp_error_message(c), "shares some of its memory");
}

static void requires_grad_follows_eager(void **state)
{
    (void)state;
    bp_tensor *w = pair(1, 2), *t = pair(3, 4);
    bp_tensor_set_requires_grad(c, w, 1);
    bp_tensor *copy = call(ROW_clone_default, (bp_value[]){value_tensor(w), value_none()});
    assert_true(copy->flags & TENSOR_REQUIRES_GRAD);
    assert_false(copy->flags & TENSOR_IS_LEAF);
    bp_tensor *cut = call(ROW_detach_default, (bp_value[]){value_tensor(w)});
    assert_false(cut->flags & TENSOR_REQUIRES_GRAD);
    assert_true(cut->flags & TENSOR_IS_LEAF);
    copy_to(t, value_tensor(w));
    assert_true((t->flags & TENSOR_REQUIRES_GRAD) && !(t->flags & TENSOR_IS_LEAF));
    bp_set_grad_enabled(c, 0);
    assert_non_null(copy_to(w, value_int(1)));
    assert_false(call(ROW_alias_default, (bp_value[]){value_tensor(w)})->flags & TENSOR_REQUIRES_GRAD);
    bp_set_grad_enabled(c, 1);
    assert_null(copy_to(w, value_int(1)));
    assert_contains(bp_error_message(c), "a leaf that requires grad is written in place");
    bp_error_clear(c);
    bp_tensor *view = call(ROW_alias_default, (bp_value[]){value_tensor(w)});
    view = call(ROW_alias_default, (bp_value[]){value_tensor(view)});
    assert_null(copy_to(view, value_int(1)));
    assert_contains(bp_error_message(c), "a view of a leaf that requires grad is written in place");
}

static bp_tensor *fake_pair(void)
{
    tensor_meta m = {BP_F32, {BP_CPU, 0}, 1, (bp_dim[]){{2, 0, 0}}, (bp_dim[]){{1, 0, 0}}, {0}};
    return scope_own(c, tensor_new_fake(c, &m));
}

static void fakes_give_fakes_and_views_of_fakes_share_their_storage(void **state)
{
    (void)state;
    bp_tensor *f = fake_pair(), *real = pair(1, 2);
    bp_tensor *copy = call(ROW_clone_default, (bp_value[]){value_tensor(f), value_none()});
    assert_true(tensor_is_fake(copy) && copy->store != f->store);
    assert_ptr_equal(call(ROW_alias_default, (bp_value[]){value_tensor(f)})->store, f->store);
    assert_ptr_equal(copy_to(f, value_tensor(real)), f);
    assert_null(copy_to(real, value_tensor(f)));
    assert_contains(bp_error_message(c), "argument \"self\" is real");
}

static void a_fake_mode_answers_calls_on_real_tensors_too(void **state)
{
    (void)state;
    dispatch_mode m;
    mode_init_fake(&m);
    mode_push(c, &m);
    bp_tensor *t = pair(1, 2);
    assert_true(tensor_is_fake(call(ROW_clone_default, (bp_value[]){value_tensor(t), value_none()})));
    mode_pop(c, &m);
    assert_false(tensor_is_fake(call(ROW_clone_default, (bp_value[]){value_tensor(t), value_none()})));
}

static int order[4], norder;

/* Writes down its number, calls an operator itself, and passes the call on. */
static bp_status note(bp_ctx *ctx, dispatch_mode *self, void *k)
{
    order[norder++] = self->name[0] - '0';
    return op_dispatch_below(ctx, self, k);
}

static void modes_see_a_call_from_the_top_down(void **state)
{
    (void)state;
    dispatch_mode one = {.call = note, .name = "1"}, two = {.call = note, .name = "2"};
    bp_tensor *t = pair(1, 2);
    norder = 0;
    mode_push(c, &one);
    mode_push(c, &two);
    assert_non_null(call(ROW_alias_default, (bp_value[]){value_tensor(t)}));
    mode_pop(c, &two);
    mode_pop(c, &one);
    assert_int_equal(norder, 2);
    assert_true(order[0] == 2 && order[1] == 1);
}

static void binding_fills_defaults_and_names_what_is_wrong(void **state)
{
    (void)state;
    bp_value self = value_tensor(pair(1, 2)), *args;
    const op_row *op = op_at(ROW_clone_default);
    assert_int_equal(op_bind(c, op, &self, 1, NULL, NULL, 0, &args), BP_OK);
    assert_int_equal(args[1].kind, BP_VALUE_NONE);
    const char *self_name = "self", *none_such = "formt";
    op_bind(c, op, NULL, 0, NULL, NULL, 0, &args);
    assert_contains(bp_error_message(c), "clone: argument \"self\" is missing");
    bp_error_clear(c);
    op_bind(c, op, &self, 1, &self_name, &self, 1, &args);
    assert_contains(bp_error_message(c), "by position and by name");
    bp_error_clear(c);
    op_bind(c, op, &self, 1, &none_such, &self, 1, &args);
    assert_contains(bp_error_message(c), "no argument \"formt\"");
    bp_error_clear(c);
    op_bind(c, op, (bp_value[]){self, self}, 2, NULL, NULL, 0, &args);
    assert_contains(bp_error_message(c), "2 positional arguments, at most 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OP_WORLD_TEST(rows_are_found_by_target_and_by_id),
        OP_WORLD_TEST(a_kernel_makes_a_result_and_a_view_shares_memory),
        OP_WORLD_TEST(in_place_writes_its_argument_and_bumps_the_version),
        OP_WORLD_TEST(errors_name_operator_argument_and_site_and_are_sticky),
        OP_WORLD_TEST(a_shape_that_does_not_fit_leaves_the_argument_alone),
        OP_WORLD_TEST(writing_an_expanded_tensor_is_refused),
        OP_WORLD_TEST(half_an_overlap_is_refused_and_a_whole_one_is_not),
        OP_WORLD_TEST(requires_grad_follows_eager),
        OP_WORLD_TEST(fakes_give_fakes_and_views_of_fakes_share_their_storage),
        OP_WORLD_TEST(a_fake_mode_answers_calls_on_real_tensors_too),
        OP_WORLD_TEST(modes_see_a_call_from_the_top_down),
        OP_WORLD_TEST(binding_fills_defaults_and_names_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
