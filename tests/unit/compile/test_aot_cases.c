/* Mutation, aliasing and duplicates of contract.md 12 and 17 (55 to 58), with gradients. */
#include "tests/unit/compile/aot_cases.h"

#define ARG(i) bp_arg(f, (i), #i)

static void product(bp_ctx *c, bp_frame *f) { bp_return(f, bp_mul(c, bp_exp(c, ARG(0)), ARG(1))); }
static void two_results(bp_ctx *c, bp_frame *f)
{
    bp_tensor *e = bp_exp(c, ARG(0));
    bp_return(f, e);
    bp_return(f, bp_mul(c, e, ARG(1)));
    bp_return(f, bp_gt(c, e, 1));
}
static void write_data(bp_ctx *c, bp_frame *f) { bp_return(f, bp_add(c, bp_mul_inplace(c, ARG(0), ARG(1)), 1)); }
static void write_only(bp_ctx *c, bp_frame *f) { bp_mul_inplace(c, ARG(0), ARG(1)); }
static void write_twice(bp_ctx *c, bp_frame *f)
{
    bp_mul_inplace(c, ARG(0), ARG(1));
    bp_add_inplace(c, ARG(0), 2);
    bp_return(f, bp_exp(c, ARG(0)));
}
static void write_view(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = ARG(0);
    bp_mul_inplace(c, bp_select(c, x, 0, 1), bp_select(c, ARG(1), 0, 0));
    bp_return(f, bp_mul(c, x, 2));
}
static void write_without_grad(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = ARG(0), *y = bp_mul(c, ARG(1), 2);
    int on = bp_set_grad_enabled(c, 0);
    bp_add_inplace(c, x, 1);
    bp_set_grad_enabled(c, on);
    bp_return(f, y);
}
static void step_of_an_optimizer(bp_ctx *c, bp_frame *f)
{
    bp_tensor *w = ARG(0), *g = ARG(1);
    int on = bp_set_grad_enabled(c, 0);
    bp_sub_inplace(c, w, bp_mul(c, g, 0.1));
    bp_set_grad_enabled(c, on);
}
static void write_through_detach(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = ARG(0);
    bp_mul_inplace(c, bp_detach(c, x), 2);
    bp_return(f, bp_mul(c, x, ARG(1)));
}
static void hidden_then_used(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_mul(c, ARG(0), 2);
    int on = bp_set_grad_enabled(c, 0);
    bp_add_inplace(c, y, 1);
    bp_set_grad_enabled(c, on);
    bp_return(f, bp_mul(c, y, ARG(1)));
}
static void copy_over(bp_ctx *c, bp_frame *f)
{
    bp_copy_inplace(c, ARG(0), bp_exp(c, ARG(1)));
    bp_return(f, bp_add(c, ARG(0), 1));
}
static void gives_input(bp_ctx *c, bp_frame *f)
{
    bp_return(f, ARG(0));
    bp_return(f, bp_mul(c, ARG(0), ARG(1)));
}
static void gives_written_input(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_mul_inplace(c, ARG(0), ARG(1)));
    bp_return(f, ARG(0));
}
static void gives_view(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_t(c, ARG(0)));
    bp_return(f, bp_mul(c, ARG(0), ARG(1)));
}
static void gives_view_of_written(bp_ctx *c, bp_frame *f)
{
    bp_tensor *v = bp_select(c, ARG(0), 0, 0);
    bp_mul_inplace(c, ARG(0), ARG(1));
    bp_return(f, v);
    bp_return(f, bp_reshape(c, ARG(0), BP_DIMS(6)));
}
static void two_views(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_mul(c, ARG(0), ARG(1));
    bp_return(f, bp_select(c, y, 0, 0));
    bp_return(f, bp_t(c, y));
}
static void view_and_base(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_mul(c, ARG(0), ARG(1));
    bp_return(f, bp_t(c, y));
    bp_return(f, y);
}
static void detached_beside(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_mul(c, ARG(0), ARG(1));
    bp_return(f, bp_detach(c, y));
    bp_return(f, y);
    bp_return(f, bp_detach(c, bp_mul(c, y, 2)));
}
static void detached_input(bp_ctx *c, bp_frame *f)
{
    bp_return(f, bp_detach(c, ARG(0)));
    bp_return(f, bp_mul(c, bp_detach(c, ARG(0)), ARG(1)));
}
static void same_twice(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_mul(c, ARG(0), ARG(1));
    bp_return(f, y);
    bp_return(f, y);
    bp_return(f, bp_mul(c, ARG(0), ARG(1)));
}
static void partly_without_grad(bp_ctx *c, bp_frame *f)
{
    bp_tensor *a = bp_add(c, ARG(0), 1);
    int on = bp_set_grad_enabled(c, 0);
    bp_tensor *b = bp_add(c, ARG(0), 1), *v = bp_t(c, ARG(0));
    bp_set_grad_enabled(c, on);
    bp_return(f, a);
    bp_return(f, b);
    bp_return(f, bp_mul(c, bp_t(c, v), bp_mul(c, b, ARG(1))));
    bp_return(f, v);
}
static void with_break(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_mul(c, ARG(0), ARG(1));
    if (bp_is_true(c, bp_gt(c, bp_sum(c, y), -1000)))
        y = bp_exp(c, y);
    bp_return(f, bp_mul(c, y, ARG(0)));
}
static void with_breaks_and_writes(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = ARG(0), *y = bp_add(c, x, ARG(1));
    bp_mul_inplace(c, y, 0.5);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, y), -1000)))
        bp_add_inplace(c, x, y);
    if (bp_is_true(c, bp_gt(c, bp_sum(c, x), -1000)))
        bp_add_inplace(c, bp_select(c, y, 0, 1), bp_select(c, x, 0, 0));
    bp_return(f, y);
    bp_return(f, x);
}
static void with_step(bp_ctx *c, bp_frame *f)
{
    bp_tensor *y = bp_mul(c, ARG(0), ARG(1));
    bp_tensor *kept = bp_nonzero(c, bp_gt(c, y, -1000));
    (void)kept;
    bp_return(f, bp_exp(c, y));
    bp_return(f, bp_t(c, y));
}
static void write_and_step(bp_ctx *c, bp_frame *f)
{
    bp_tensor *x = ARG(0);
    bp_mul_inplace(c, x, ARG(1));
    bp_tensor *v = bp_select(c, x, 0, 1);
    (void)bp_nonzero(c, bp_gt(c, x, -1000));
    bp_return(f, bp_mul(c, v, 3));
    bp_return(f, bp_exp(c, x));
}
static void with_linear_layers(bp_ctx *c, bp_frame *f)
{
    bp_tensor *h = bp_relu(c, bp_mm(c, ARG(0), bp_t(c, ARG(1))));
    bp_return(f, bp_mm(c, h, bp_mm(c, ARG(2), bp_t(c, ARG(0)))));
}

static const aot_case CASES[] = {
    {"product", product, "LL"}, {"product of a plain one", product, "PL"}, {"product of no leaf", product, "NL"},
    {"product of plain ones", product, "PP"}, {"product of one object", product, "LS"},
    {"product of a view", product, "VL"}, {"two results", two_results, "LP"}, {"write data", write_data, "NL"},
    {"write plain data", write_data, "PL"}, {"write data, nothing requires", write_data, "PP"},
    {"write a leaf", write_data, "!LL"}, {"write of no leaf by a plain one", write_data, "NP"},
    {"write only", write_only, "NL"}, {"write twice", write_twice, "NL"}, {"write what overlaps", write_data, "!PA"},
    {"write a view", write_data, "VL"}, {"write through a view", write_view, "NL"},
    {"write through a view of a plain one", write_view, "PL"}, {"write through a view of a leaf", write_view, "!LL"},
    {"write without grad", write_without_grad, "PL"}, {"write a leaf without grad", write_without_grad, "LL"},
    {"write no leaf without grad", write_without_grad, "!NL"}, {"step of an optimizer", step_of_an_optimizer, "LP"},
    {"step of an optimizer, gradient requires", step_of_an_optimizer, "LL"},
    {"write through detach", write_through_detach, "PL"},
    {"write a leaf through detach", write_through_detach, "!LL"},
    {"write no leaf through detach", write_through_detach, "!NL"},
    {"hidden write, then used", hidden_then_used, "!LL"}, {"hidden write of a plain one", hidden_then_used, "PL"},
    {"copy over", copy_over, "NL"}, {"copy over a plain one", copy_over, "PL"},
    {"copy of a plain one", copy_over, "!NP"}, {"gives input", gives_input, "LL"},
    {"gives no leaf", gives_input, "NL"}, {"gives plain input", gives_input, "PL"},
    {"gives written input", gives_written_input, "NL"}, {"gives written plain input", gives_written_input, "PL"},
    {"gives view", gives_view, "LL"}, {"gives view of no leaf", gives_view, "NL"},
    {"gives view of a plain one", gives_view, "PL"}, {"gives view of a view", gives_view, "VL"},
    {"gives view of written", gives_view_of_written, "NL"},
    {"gives view of a written plain one", gives_view_of_written, "PL"}, {"two views", two_views, "LL"},
    {"view and base", view_and_base, "LL"}, {"view and base, nothing requires", view_and_base, "PP"},
    {"detached beside", detached_beside, "LL"}, {"detached input", detached_input, "LL"},
    {"same twice", same_twice, "LL"}, {"partly without grad", partly_without_grad, "LL"},
    {"partly without grad, no leaf", partly_without_grad, "NL"}, {"with a break", with_break, "LL"},
    {"with a break, no leaf", with_break, "NP"}, {"with breaks and writes", with_breaks_and_writes, "NL"},
    {"with breaks and writes of a plain one", with_breaks_and_writes, "PL"}, {"with a step", with_step, "LL"},
    {"write and step", write_and_step, "NL"}, {"write of a plain one and step", write_and_step, "PL"},
    {"linear layers", with_linear_layers, "LLL"}, {"linear layers of data", with_linear_layers, "PLL"},
};

static void check_case(void **state)
{
    fixture *f = fixture_new();
    case_check_all(f, *state);
    fixture_free(f);
}

static void F039_mutations_aliases_and_duplicates_are_as_in_eager(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        fixture *f = fixture_new();
        case_check(f, &CASES[i], "aot_eager");
        fixture_free(f);
    }
}

int main(void)
{
    enum { N = sizeof CASES / sizeof *CASES };
    struct CMUnitTest tests[N + 1];
    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){CASES[i].name, check_case, NULL, NULL, (void *)(uintptr_t)&CASES[i]};
    tests[N] = (struct CMUnitTest)cmocka_unit_test(F039_mutations_aliases_and_duplicates_are_as_in_eager);
    return _cmocka_run_group_tests("aot cases", tests, N + 1, NULL, NULL);
}
