/* The proof of derivatives by differences: a right one agrees; wrong ones, planted by a mode that computes something
 * else where no gradients are recorded, are found; rows of which no case showed anything are named. */
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include "host/op/rows.h"
#include "host/tools/golden.h"
#include "sdk/base/base64.h"
#include <backplane/backplane.h>
#include <unistd.h>

typedef struct {
    dispatch_mode mode; /* first */
    bp_ctx *c;
    golden_counts n;
    golden_options o;
    buf said;
    char path[4096];
} bench;

static void hear(void *arg, const char *text, size_t n)
{
    buf_add(&((bench *)arg)->said, text, n);
}

static int begin(void **state)
{
    bench *b = calloc(1, sizeof *b);
    b->c = bp_ctx_new(NULL);
    b->o = (golden_options){.write = hear, .arg = b, .check_derivatives = true};
    const char *folder = getenv("TMPDIR");
    snprintf(b->path, sizeof b->path, "%s/derivative-XXXXXX.jsonl", folder ? folder : "/tmp");
    close(mkstemps(b->path, 6));
    *state = b;
    return 0;
}

static int end(void **state)
{
    bench *b = *state;
    unlink(b->path);
    golden_counts_fini(&b->n);
    buf_fini(&b->said);
    bp_ctx_destroy(b->c);
    free(b);
    return 0;
}

/* Checks op of one dimension of n doubles, of that dtype, and finishes for rows whose target contains `rows`. */
static const char *check(bench *b, const char *op, const char *dtype, uint32_t n, const double *values,
                         const char *rows)
{
    buf line = {0};
    buf_printf(&line, "{\"op\": \"%s\", \"args\": [{\"tensor\": {\"dtype\": \"%s\", \"shape\": [%u], ", op, dtype, n);
    buf_puts(&line, "\"stride\": [1], \"data\": \"");
    base64_encode(&line, values, n * sizeof *values);
    buf_puts(&line, "\"}}], \"kwargs\": {}}\n");
    FILE *f = fopen(b->path, "wb");
    fwrite(buf_text(&line), 1, line.n, f);
    fclose(f);
    buf_fini(&line);
    assert_int_equal(golden_run_file(b->c, b->path, &b->o, &b->n), BP_OK);
    b->o.op = rows;
    golden_finish(&b->n, &b->o);
    return buf_text(&b->said);
}

static const double numbers[] = {0.3, 1.7, 2.5, 0.9};

static void a_right_derivative_is_proven(void **state)
{
    bench *b = *state;
    const char *said = check(b, "aten.sin.default", "float64", 4, numbers, ".sin.");
    assert_int_equal(b->n.passed, 1);
    assert_int_equal(b->n.failed, 0);
    assert_contains(said, "1 derivatives are proven, 1 of them with the second");
}

/* -- planted: where no gradients are recorded, an operator computes another one ------------------------------------ */

static bp_status instead(bp_ctx *c, dispatch_mode *self, op_call *k, uint32_t when, uint32_t then)
{
    if (k->op->number == when && !bp_grad_enabled(c))
        k->op = op_at(then);
    return op_dispatch_below(c, self, k);
}

static bp_status sin_is_cos(bp_ctx *c, dispatch_mode *self, void *k)
{
    return instead(c, self, k, ROW_sin_default, ROW_cos_default);
}

static void a_wrong_derivative_fails_with_both_slopes(void **state)
{
    bench *b = *state;
    b->mode = (dispatch_mode){.call = sin_is_cos, .name = "sin is cos"};
    mode_push(b->c, &b->mode);
    const char *said = check(b, "aten.sin.default", "float64", 4, numbers, ".sin.");
    mode_pop(b->c, &b->mode);
    assert_int_equal(b->n.passed, 0);
    assert_int_equal(b->n.failed, 2);
    assert_contains(said, ":1: aten.sin.default float64: the derivative is ");
    assert_contains(said, " by the tape, and ");
    assert_contains(said, "aten.sin.default: no case of it could be checked");
}

/* The derivative of log divides; only the second one multiplies. */
static bp_status mul_is_add(bp_ctx *c, dispatch_mode *self, void *call)
{
    op_call *k = call;
    bp_value args[] = {k->args[0], k->nargs > 1 ? k->args[1] : value_none(), value_int(1)};
    if (k->op->number != ROW_mul_tensor || bp_grad_enabled(c))
        return op_dispatch_below(c, self, k);
    const bp_value *given = k->args;
    k->op = op_at(ROW_add_tensor);
    k->args = args;
    k->nargs = 3;
    bp_status s = op_dispatch_below(c, self, k);
    k->args = given;
    return s;
}

static void a_wrong_second_derivative_fails(void **state)
{
    bench *b = *state;
    b->mode = (dispatch_mode){.call = mul_is_add, .name = "mul is add"};
    mode_push(b->c, &b->mode);
    const char *said = check(b, "aten.log.default", "float64", 4, numbers, ".log.");
    mode_pop(b->c, &b->mode);
    assert_int_equal(b->n.passed, 0);
    assert_contains(said, "aten.log.default float64: the second derivative is ");
}

/* -- rows --------------------------------------------------------------------------------------------------------- */

static void a_row_of_which_no_case_can_be_checked_is_named(void **state)
{
    bench *b = *state;
    const char *said = check(b, "aten.sin.default", "int64", 4, numbers, ".sin.");
    assert_int_equal(b->n.unsupported, 1);
    assert_int_equal(b->n.failed, 1);
    assert_contains(said, "aten.sin.default: no case of it could be checked\n");
}

static void cases_where_nothing_flows_prove_nothing(void **state)
{
    bench *b = *state;
    const char *said = check(b, "aten.relu.default", "float64", 2, (double[]){-3, -8}, ".relu.");
    assert_int_equal(b->n.passed, 1);
    assert_int_equal(b->n.failed, 1);
    assert_contains(said, "aten.relu.default: its gradient was zero in every case\n");
}

static void a_gradient_that_is_zero_by_its_row_is_proven(void **state)
{
    bench *b = *state;
    const char *said = check(b, "aten.floor.default", "float64", 4, numbers, ".floor.");
    assert_int_equal(b->n.failed, 0);
    assert_contains(said, "1 derivatives are proven");
}

static void noise_leaves_a_kink(void **state)
{
    bench *b = *state;
    check(b, "aten.abs.default", "float64", 3, (double[]){0, 0, 2}, ".abs.");
    assert_int_equal(b->n.passed, 1);
    assert_int_equal(b->n.failed, 0);
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        cmocka_unit_test_setup_teardown(a_right_derivative_is_proven, begin, end),
        cmocka_unit_test_setup_teardown(a_wrong_derivative_fails_with_both_slopes, begin, end),
        cmocka_unit_test_setup_teardown(a_wrong_second_derivative_fails, begin, end),
        cmocka_unit_test_setup_teardown(a_row_of_which_no_case_can_be_checked_is_named, begin, end),
        cmocka_unit_test_setup_teardown(cases_where_nothing_flows_prove_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_gradient_that_is_zero_by_its_row_is_proven, begin, end),
        cmocka_unit_test_setup_teardown(noise_leaves_a_kink, begin, end),
    };
    return cmocka_run_group_tests(claims, NULL, NULL);
}
