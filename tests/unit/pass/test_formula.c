/* Formulas: what they compute, what they read, and how bad ones are refused. */
#define BP_WITHOUT_OPERATORS
#include "host/pass/formula.h"
#include "tests/lib/op_world.h"

static const op_row *row(const char *label)
{
    char target[96];
    snprintf(target, sizeof target, "aten.%s", label);
    const op_row *r = op_by_target(target);
    assert_non_null(r);
    return r;
}

static formula *parse(const char *op, const char *text)
{
    formula *f = formula_parse(c, row(op), text);
    assert_string_equal(bp_error_text(c), "");
    assert_non_null(f);
    return f;
}

static bp_tensor *pair(float x, float y)
{
    return bp_tensor_from(c, BP_F32, 1, (int64_t[]){2}, (float[]){x, y});
}

static void gives(bp_tensor *t, float x, float y)
{
    assert_string_equal(bp_error_text(c), "");
    assert_non_null(t);
    const float *v = tensor_ptr(t);
    if (v[0] != x || v[1] != y)
        fail_msg("got %g, %g, expected %g, %g", (double)v[0], (double)v[1], (double)x, (double)y);
}

/* Evaluates a formula of mul.Tensor or add.Tensor on (1, 2), (10, 20), alpha, and a gradient of (3, 5). */
static bp_tensor *eval(const char *op, const char *text, bp_value alpha)
{
    bp_value args[] = {value_tensor(pair(1, 2)), value_tensor(pair(10, 20)), alpha};
    bp_tensor *result[] = {pair(7, 9)}, *grad[] = {pair(3, 5)};
    formula *f = parse(op, text);
    bp_tensor *t = formula_eval(c, f, &(formula_env){args, result, grad, 1});
    formula_free(f);
    return t;
}

static void a_call_computes_over_arguments_results_and_gradients(void **state)
{
    (void)state;
    gives(eval("mul.Tensor", "mul.Tensor(grad, other)", value_none()), 30, 100);
    gives(eval("mul.Tensor", "add.Tensor(result, mul.Tensor(grad0, self), alpha=2)", value_none()), 13, 29);
    gives(eval("mul.Tensor", "neg(mul.Tensor(neg(self), neg(other)))", value_none()), -10, -40);
    gives(eval("mul.Tensor", "grad", value_none()), 3, 5);
    gives(eval("mul.Tensor", "cat([self, add.Scalar(other, 1), grad], 0)", value_none()), 1, 2);
}

static void conj_of_a_real_tensor_is_that_tensor(void **state)
{
    (void)state;
    formula *f = parse("mul.Tensor", "conj(self)"), *again = parse("mul.Tensor", "conj(mul.Tensor(self, other))");
    bp_tensor *real = pair(1, 2), *z = bp_tensor_from(c, BP_C64, 1, (int64_t[]){1}, (float[]){3, 4});
    bp_value args[] = {value_tensor(real), value_tensor(real)};
    formula_env env = {args, NULL, NULL, 1};
    assert_ptr_equal(formula_eval(c, f, &env), real);
    gives(formula_eval(c, again, &env), 1, 4);
    args[0] = args[1] = value_tensor(z);
    gives(formula_eval(c, f, &env), 3, -4);
    gives(formula_eval(c, again, &env), -7, -24);
    formula_free(f);
    formula_free(again);
}

static void numbers_compute_as_in_python(void **state)
{
    (void)state;
    gives(eval("add.Tensor", "mul.Scalar(grad, alpha - 1)", value_int(3)), 6, 10);
    gives(eval("add.Tensor", "mul.Scalar(grad, -alpha)", value_float(0.5)), -1.5, -2.5);
    gives(eval("add.Tensor", "mul.Scalar(grad, 1 - 2 * -alpha / 4)", value_int(2)), 6, 10);
    gives(eval("add.Tensor", "mul.Scalar(grad, (1 - 2) * 3)", value_int(2)), -9, -15);
    gives(eval("add.Tensor", "mul.Scalar(grad, 1/2)", value_int(2)), 1.5, 2.5);
    gives(eval("add.Tensor", "mul.Scalar(grad, numel(self) + rank(self))", value_int(2)), 9, 15);
    assert_null(eval("add.Tensor", "mul.Scalar(grad, 1 / alpha)", value_int(0)));
    assert_contains(bp_error_text(c), "add.Tensor: its formula divides by zero");
}

static void metadata_stand_for_values(void **state)
{
    (void)state;
    gives(eval("mul.Tensor", "zeros(sizes(self), dtype=dtype(other))", value_none()), 0, 0);
    gives(eval("mul.Tensor", "_to_copy(self, dtype=dtype(f32))", value_none()), 1, 2);
    gives(eval("mul.Tensor",
               "clone(expand(sum.dim_IntList(self, [0], keepdim=True), sizes(grad)), memory_format=format(contiguous))",
               value_none()), 3, 3);
}

static void a_result_of_several_is_picked_by_number(void **state)
{
    (void)state;
    gives(eval("mul.Tensor", "sort(neg(self), 0)", value_none()), -2, -1);
    bp_tensor *t = eval("mul.Tensor", "sort(neg(self), 0)[1]", value_none());
    assert_string_equal(bp_error_text(c), "");
    assert_int_equal(t->dtype, BP_I64);
    gives(eval("mul.Tensor", "cat(split.Tensor(self, 1))", value_none()), 1, 2);
    gives(eval("mul.Tensor", "repeat(split.Tensor(self, 1)[1], [2])", value_none()), 2, 2);
}

static void several_results_are_a_tuple_or_one_call(void **state)
{
    (void)state;
    bp_value args[] = {value_tensor(pair(4, 3)), value_int(0), value_bool(false)};
    bp_tensor *out[2], **list;
    uint32_t n = 0;
    formula *f = parse("sort.default", "(neg(self), sort(self, dim)[0])");
    formula *g = parse("sort.default", "sort(self, dim)"), *h = parse("sort.default", "split.Tensor(self, 1)");
    assert_int_equal(formula_count(f), 2);
    assert_int_equal(formula_eval_all(c, f, &(formula_env){.args = args}, out, 2), BP_OK);
    gives(out[0], -4, -3);
    gives(out[1], 3, 4);
    assert_int_equal(formula_eval_all(c, g, &(formula_env){.args = args}, out, 2), BP_OK);
    gives(out[0], 3, 4);
    assert_int_equal(out[1]->dtype, BP_I64);
    assert_int_equal(formula_eval_list(c, h, &(formula_env){.args = args}, &list, &n), BP_OK);
    assert_int_equal(n, 2);
    assert_int_not_equal(formula_eval_all(c, f, &(formula_env){.args = args}, (bp_tensor *[3]){0}, 3), BP_OK);
    formula_free(f);
    formula_free(g);
    formula_free(h);
}

static void what_is_read_as_data_is_told_from_metadata(void **state)
{
    (void)state;
    static const struct { const char *text; uint64_t args, results, grads; } cases[] = {
        {"mul.Tensor(grad, other)", 2, 0, 1}, {"mul.Tensor(self, result)", 1, 1, 0},
        {"expand(grad, sizes(self))", 0, 0, 1}, {"zeros(sizes(grad), dtype=dtype(self))", 0, 0, 0},
        {"cat([self, neg(grad)])", 1, 0, 1}, {"other", 2, 0, 0}, {"expand(self, sizes(neg(other)))", 3, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        formula *f = parse("mul.Tensor", cases[i].text);
        formula_reads r = formula_read_set(f);
        assert_true(r.args == cases[i].args && r.results == cases[i].results && r.grads == cases[i].grads);
        formula_free(f);
    }
}

static void a_gradient_that_is_not_there_is_zero(void **state)
{
    (void)state;
    bp_value args[] = {value_tensor(pair(1, 2)), value_tensor(pair(10, 20))};
    bp_tensor *result[] = {pair(7, 9)};
    formula *f = parse("mul.Tensor", "add.Tensor(grad, other)"), *g = parse("mul.Tensor", "grad");
    gives(formula_eval(c, f, &(formula_env){args, result, NULL, 1}), 10, 20);
    gives(formula_eval(c, g, &(formula_env){args, result, (bp_tensor *[]){NULL}, 1}), 0, 0);
    assert_null(formula_eval(c, g, &(formula_env){args, NULL, NULL, 1}));
    assert_contains(bp_error_text(c), "needs a gradient that is zero");
    formula_free(f);
    formula_free(g);
}

static void none_is_no_tensor_and_no_error(void **state)
{
    (void)state;
    formula *f = parse("mul.Tensor", "None");
    assert_null(formula_eval(c, f, &(formula_env){0}));
    assert_string_equal(bp_error_text(c), "");
    formula_free(f);
}

static void fakes_give_fakes(void **state)
{
    (void)state;
    bp_dim size = {2, 0, 0}, step = {1, 0, 0};
    tensor_meta m = {.dtype = BP_F32, .device = {BP_CPU, 0}, .rank = 1, .sizes = &size, .strides = &step};
    bp_tensor *fake = scope_own(c, tensor_new_fake(c, &m));
    bp_value args[] = {value_tensor(fake), value_tensor(fake)};
    formula *f = parse("mul.Tensor", "exp(mul.Tensor(self, other))");
    bp_tensor *t = formula_eval(c, f, &(formula_env){.args = args});
    assert_string_equal(bp_error_text(c), "");
    assert_true(tensor_is_fake(t));
    formula_free(f);
}

static void parts_of_a_row_are_parsed_one_by_one(void **state)
{
    (void)state;
    const char *text = "self: neg(grad) ; other: mul.Tensor(grad, oter)", *at = text + 5;
    formula *f = formula_parse_part(c, row("mul.Tensor"), text, &at);
    assert_non_null(f);
    assert_int_equal(*at, ';');
    formula_free(f);
    at += 8;
    assert_null(formula_parse_part(c, row("mul.Tensor"), text, &at));
    assert_contains(bp_error_text(c), "formula of mul.Tensor:1:43: expected an argument");
    assert_contains(bp_error_text(c), "did you mean \"other\"?");
}

static void bad_formulas_are_refused_where_they_are_wrong(void **state)
{
    (void)state;
    static const struct { const char *text, *error; } cases[] = {
        {"", ":1:1: expected a name, a call or a value, got the end of the text"},
        {"mul.Tensor(grad", ":1:16: expected ',' or ')', got the end of the text"},
        {"mul.Tensor(grad, )", ":1:18: expected a name, a call or a value, got ')'"},
        {"mul.Tensor(grad, slf)", ":1:18: expected an argument, a result, a gradient or a call, got \"slf\""},
        {"mul.Tensr(grad, self)", ":1:1: unknown operator \"mul.Tensr\""},
        {"mul.(grad)", ":1:5: expected the name of an overload, got '('"},
        {"mul.Tensor(grad)", "argument \"other\" is missing"},
        {"mul.Tensor(grad, other, other)", "3 positional arguments, at most 2 expected"},
        {"add.Tensor(grad, other, beta=1)", "there is no argument \"beta\""},
        {"add.Tensor(self=grad, other)", ":1:23: expected a named argument after \"self=\""},
        {"sum.dim_IntList(grad, [self])", ":1:23: this does not fit argument \"dim\" of sum.dim_IntList"},
        {"sum.dim_IntList(grad, sizes(self), None)", ":1:36: this does not fit argument \"keepdim\""},
        {"mul.Tensor(grad, dtype(self))", ":1:18: this does not fit argument \"other\" of mul.Tensor, which is Tensor"},
        {"cat(self)", ":1:5: this does not fit argument \"tensors\" of cat"},
        {"grad1", ":1:1: expected an argument, a result, a gradient or a call, got \"grad1\""},
        {"sizes(self)", ":1:1: expected a formula that gives a tensor, or None"},
        {"sizes(rank(self))", ":1:7: expected a tensor"},
        {"3", ":1:1: expected a formula that gives a tensor, or None"},
        {"grad + 1", ":1:1: expected a number beside '+'; tensors are for operators"},
        {"mul.Scalar(grad, 2 * self)", ":1:22: expected a number beside '*'"},
        {"sort(self)[2]", ":1:1: \"sort\" has 2 results, and none is number 2"},
        {"sort(self)[-1]", ":1:12: expected the number of a result of at least 0, got -1"},
        {"_local_scalar_dense(self)", ":1:1: \"_local_scalar_dense\" gives no tensor"},
        {"grad grad", ":1:6: expected the end of the formula, got \"grad\""},
        {"grad; grad", ":1:5: expected the end of the formula, got ';'"},
        {"(grad, self", ":1:12: expected ',' or ')', got the end of the text"},
        {"_to_copy(grad, dtype=dtype(f33))", ":1:28: expected a data type, got \"f33\""},
        {"mul.Scalar(grad, 1e)", ":1:18: expected a number"},
        {"neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg("
         "neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(neg(",
         "a formula nests deeper than 40"},
        {"\xff", ":1:1: expected a name, a call or a value, got the byte 0xff"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(formula_parse(c, row("mul.Tensor"), cases[i].text));
        assert_contains(bp_error_text(c), cases[i].error);
        assert_contains(bp_error_text(c), "ormula of mul.Tensor");
        bp_error_clear(c);
    }
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        OP_WORLD_TEST(a_call_computes_over_arguments_results_and_gradients),
        OP_WORLD_TEST(conj_of_a_real_tensor_is_that_tensor),
        OP_WORLD_TEST(numbers_compute_as_in_python),
        OP_WORLD_TEST(metadata_stand_for_values),
        OP_WORLD_TEST(a_result_of_several_is_picked_by_number),
        OP_WORLD_TEST(several_results_are_a_tuple_or_one_call),
        OP_WORLD_TEST(what_is_read_as_data_is_told_from_metadata),
        OP_WORLD_TEST(a_gradient_that_is_not_there_is_zero),
        OP_WORLD_TEST(none_is_no_tensor_and_no_error),
        OP_WORLD_TEST(fakes_give_fakes),
        OP_WORLD_TEST(parts_of_a_row_are_parsed_one_by_one),
        OP_WORLD_TEST(bad_formulas_are_refused_where_they_are_wrong),
    };
    return cmocka_run_group_tests(claims, NULL, NULL);
}
