/* F112, F113: views and what is written through them; refusals. */
#include "tests/lib/world.h"

static world *w;

static int begin(void **state)
{
    (void)state;
    w = world_open("");
    return 0;
}

static int end(void **state)
{
    (void)state;
    world_close(w);
    return 0;
}

static bp_tensor *numbers(bp_ctx *c, int64_t rows, int64_t columns)
{
    return bp_reshape(c, bp_arange(c, (double)(rows * columns), .dtype = BP_F32), BP_DIMS(rows, columns));
}

/* -- F112 -------------------------------------------------------------------------------------------------------- */

typedef bp_tensor *view_of(bp_ctx *c, bp_tensor *t);
#define VIEW(name, expr) static bp_tensor *view_##name(bp_ctx *c, bp_tensor *t) { return expr; }
VIEW(select, bp_select(c, t, 0, 1))
VIEW(slice, bp_slice(c, t, .dim = 1, .start = BP_SCALAR(1), .end = BP_SCALAR(4), .step = BP_SCALAR(2)))
VIEW(transpose, bp_transpose(c, t, 0, 1))
VIEW(permute, bp_permute(c, t, BP_DIMS(1, 0)))
VIEW(unsqueeze, bp_unsqueeze(c, t, 1))
VIEW(squeeze, bp_squeeze(c, bp_unsqueeze(c, t, 0)))
VIEW(reshape, bp_reshape(c, t, BP_DIMS(-1)))
VIEW(flatten, bp_flatten(c, t))
VIEW(diagonal, bp_diagonal(c, t))
VIEW(narrow, bp_narrow(c, t, 0, 1, 2))
VIEW(unfold, bp_unfold(c, t, 1, 2, 2))
VIEW(as_strided, bp_as_strided(c, t, BP_DIMS(2, 2), BP_DIMS(2, 1)))
VIEW(chunk, bp_chunk(c, t, 2).at[1])
VIEW(unbind, bp_unbind(c, t).at[2])
VIEW(detach, bp_detach(c, t))
VIEW(view_as, bp_view_as(c, t, bp_reshape(c, t, BP_DIMS(-1))))
static const struct { const char *name; view_of *make; } views[] = {
#define ROW(name) {#name, view_##name}
    ROW(select), ROW(slice), ROW(transpose), ROW(permute), ROW(unsqueeze), ROW(squeeze), ROW(reshape), ROW(flatten),
    ROW(diagonal), ROW(narrow), ROW(unfold), ROW(as_strided), ROW(chunk), ROW(unbind), ROW(detach), ROW(view_as),
#undef ROW
};

static double sum_of(bp_tensor *t)
{
    return bp_item_float(w->c, bp_sum(w->c, t));
}

static void F112_a_view_shares_its_storage_and_writes_reach_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        bp_tensor *t = numbers(w->c, 4, 4), *v = views[i].make(w->c, t);
        if (!v || !bp_tensor_same_storage(t, v))
            fail_msg("%s: no view: %s", views[i].name, bp_error_text(w->c));
        double n = (double)bp_tensor_numel(v), before = sum_of(t);
        bp_add_inplace(w->c, v, 100);
        assert_true(sum_of(t) == before + 100 * n);
        bp_zero_inplace(w->c, t);
        assert_true(sum_of(v) == 0);
    }
    assert_int_equal(bp_error(w->c), BP_OK);
}

/* The same under capture: the views are rebuilt, and the argument gets what was written through them. */
static view_of *made;
static void writes_through(bp_ctx *c, bp_frame *f)
{
    bp_tensor *t = bp_arg(f, 0, "t"), *v = made(c, t);
    bp_add_inplace(c, v, 100);
    bp_return(f, bp_mul(c, t, 2));
    bp_return(f, v);
}

static void F112_captured_views_are_written_and_returned_as_views(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        bp_ctx *c = w->c;
        made = views[i].make;
        bp_tensor *t = numbers(c, 4, 4), *u = numbers(c, 4, 4);
        bp_args in = {(bp_value[]){bp_arg_of_tensor(t)}, 1}, eager = {(bp_value[]){bp_arg_of_tensor(u)}, 1};
        bp_outputs outs = {0}, want = {0};
        bp_callable *g = bp_compile(c, writes_through, &(bp_compile_options){.backend = "eager"});
        bp_call(c, g, &in, &outs);
        bp_run_eager(c, writes_through, NULL, &eager, &want);
        if (bp_error(c))
            fail_msg("%s: %s", views[i].name, bp_error_text(c));
        assert_true(bp_is_true(c, bp_all(c, bp_eq(c, t, u))));
        for (int j = 0; j < 2; j++)
            assert_true(bp_is_true(c, bp_all(c, bp_eq(c, outs.at[j], want.at[j]))));
        if (!bp_tensor_same_storage(outs.at[1], t))
            fail_msg("%s: the view that was returned has memory of its own", views[i].name);
        bp_callable_unref(g);
    }
}

static void refused(const char *a, const char *b)
{
    assert_int_not_equal(bp_error(w->c), BP_OK);
    assert_contains(bp_error_text(w->c), a);
    assert_contains(bp_error_text(w->c), b);
    bp_error_clear(w->c);
}

static void F112_overlaps_are_refused_where_pytorch_refuses(void **state)
{
    (void)state;
    bp_ctx *c = w->c;
    bp_tensor *t = bp_arange(c, 6, .dtype = BP_F32);
    bp_tensor *low = bp_narrow(c, t, 0, 0, 4), *high = bp_narrow(c, t, 0, 1, 4);
    bp_add_inplace(c, low, high);
    refused("add_", "share");
    bp_add_inplace(c, bp_expand(c, bp_narrow(c, t, 0, 0, 1), BP_DIMS(4)), 1);
    refused("add_", "several of its elements lie at one place");
    bp_add_inplace(c, low, low); /* the same elements: no conflict */
    assert_int_equal(bp_error(c), BP_OK);
    assert_true(sum_of(low) == 12);
}

/* -- F113 -------------------------------------------------------------------------------------------------------- */

static void F113_refusals_name_operator_argument_and_values(void **state)
{
    (void)state;
    bp_ctx *c = w->c;
    bp_tensor *a = bp_ones(c, BP_DIMS(2, 3)), *b = bp_ones(c, BP_DIMS(4, 5));
    bp_tensor *ids = bp_full(c, BP_DIMS(1), 7, .dtype = BP_I64);
    bp_matmul(c, a, b);
    refused("matmul", "[2, 3]");
    bp_add(c, a, b);
    refused("add", "[4, 5]");
    bp_reshape(c, a, BP_DIMS(4, 2));
    refused("reshape", "[4, 2]");
    bp_cat(c, BP_TENSORS(a, b));
    refused("cat", "5");
    bp_sum(c, a, .dim = BP_DIMS(5));
    refused("sum", "dim\" is 5");
    bp_index_select(c, a, 0, ids);
    refused("index_select", "7");
    bp_softmax(c, ids, 3);
    refused("softmax", "int64");
    bp_bitwise_and(c, a, a);
    refused("bitwise_and", "float32");
    bp_conv2d(c, a, b);
    refused("conv2d", "2");
    bp_embedding(c, b, ids);
    refused("embedding", "7");
    bp_dropout(c, a, 1.5, 1);
    refused("dropout", "1.5");
    bp_full(c, BP_DIMS(-1), 0);
    refused("full", "-1");
    bp_randint(c, 0, BP_DIMS(2));
    refused("randint", "0");
    bp_relu(c, NULL);
    refused("relu", "\"self\"");
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(F112_a_view_shares_its_storage_and_writes_reach_it),
        T(F112_captured_views_are_written_and_returned_as_views),
        T(F112_overlaps_are_refused_where_pytorch_refuses),
        T(F113_refusals_name_operator_argument_and_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
