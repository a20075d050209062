/* The tape over a recorder: fakes in, fakes out, nothing computed; and nodes that other rooms make. */
#include "tests/unit/grad/fixture.h"
#include "host/grad/tape.h"
#include "host/op/rows.h"

/* -- a recorder ---------------------------------------------------------------------------------------------------- */

typedef struct { dispatch_mode mode; uint32_t n; const char *labels[64]; } recorder;

static bp_status record(bp_ctx *ctx, dispatch_mode *self, void *call)
{
    recorder *r = (recorder *)(void *)self;
    op_call *k = call;
    if (r->n < 64)
        r->labels[r->n++] = k->op->label;
    return op_run_fake(ctx, call);
}

static bp_tensor *fake(uint32_t rank, const int64_t *sizes)
{
    bp_dim dims[4], strides[4];
    for (uint32_t d = 0; d < rank; d++)
        dims[d] = dim_const(sizes[d]);
    layout_contiguous(c, rank, dims, strides);
    bp_tensor *t = scope_own(c, tensor_new_fake(c, &(tensor_meta){BP_F32, {BP_CPU, 0}, rank, dims, strides, {0}}));
    return leaf(t);
}

typedef bp_tensor *program(bp_tensor *x, bp_tensor *y);

static bp_tensor *small(bp_tensor *x, bp_tensor *y)
{
    return bp_sum(c, bp_exp(c, bp_mm(c, x, bp_mul(c, y, y))));
}

static void forward_and_backward_are_recorded_on_fakes(void **state)
{
    (void)state;
    recorder r = {.mode = {.call = record, .name = "recorder"}};
    dispatch_mode tape;
    tape_mode_init(&tape);
    bp_tensor *x = fake(2, (int64_t[]){2, 3}), *y = fake(2, (int64_t[]){3, 4});
    mode_push(c, &r.mode);
    mode_push(c, &tape);
    bp_tensor *loss = small(x, y), *in[] = {x, y}, *out[2];
    uint32_t forward = r.n;
    assert_int_equal(tape_backward(c, &loss, NULL, 1, in, out, 2, 0), BP_OK);
    mode_pop(c, &tape);
    mode_pop(c, &r.mode);
    OK();
    assert_int_equal(forward, 4);
    assert_true(r.n > forward);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(tensor_is_fake(out[i]));
        assert_int_equal(bp_tensor_size(out[i], 1), bp_tensor_size(in[i], 1));
        tensor_unref(out[i]);
    }
    for (uint32_t i = 0; i < r.n; i++) /* nothing is written in place */
        assert_true(!strstr(r.labels[i], "_.") && r.labels[i][strlen(r.labels[i]) - 1] != '_');
}

static void a_composite_over_a_recorder_is_recorded_by_its_parts(void **state)
{
    (void)state;
    recorder r = {.mode = {.call = record, .name = "recorder"}};
    dispatch_mode tape;
    tape_mode_init(&tape);
    bp_tensor *x = fake(2, (int64_t[]){2, 3}), *w = fake(2, (int64_t[]){4, 3});
    mode_push(c, &r.mode);
    mode_push(c, &tape);
    bp_tensor *y = bp_linear(c, x, w);
    OK();
    for (uint32_t i = 0; i < r.n; i++)
        assert_string_not_equal(r.labels[i], "linear");
    assert_true(r.n >= 2);
    assert_true(bp_tensor_requires_grad(y));
    mode_pop(c, &tape);
    mode_pop(c, &r.mode);
}

/* -- nodes of other rooms ------------------------------------------------------------------------------------------ */

typedef struct { int runs, released, destroyed; bool create; uint32_t none; } own;

static bp_status own_backward(bp_ctx *ctx, void *state, bp_tensor *const *grads, bp_tensor **out, bool create)
{
    own *o = state;
    o->runs++;
    o->create = create;
    o->none = !grads[1];
    out[0] = tensor_ref(grads[0]); /* broadcast and wider than the input: the tape fits it */
    bp_tensor *two = bp_mul(ctx, grads[0], 2);
    out[1] = tensor_ref(two);
    return bp_error(ctx);
}
static void own_release(void *state) { ((own *)state)->released++; }
static void own_destroy(void *state) { ((own *)state)->destroyed++; }
static const tape_fn OWN = {"CompiledFunction", own_backward, own_release, own_destroy};

static void another_rooms_node_takes_part(void **state)
{
    (void)state;
    own o = {0};
    bp_tensor *x = leaf(F(1)), *y = leaf(F(1, 2)), *z = F(3, 4);
    bp_scope_begin(c);
    bp_tensor *results[] = {F(5, 6), F(7, 8), NULL}, *inputs[] = {x, y, z};
    assert_int_equal(tape_record(c, &OWN, &o, inputs, 3, results, 3), BP_OK);
    assert_true(bp_tensor_requires_grad(results[0]));
    assert_false(bp_tensor_is_leaf(results[0]));
    assert_int_equal(bp_backward(c, results[0], F(10, 20), BP_RETAIN_GRAPH), BP_OK);
    IS(GRAD(x), 30);
    IS(GRAD(y), 20, 40);
    assert_true(o.runs == 1 && !o.released && o.none && !o.create);
    assert_int_equal(bp_backward(c, results[0], F(1, 1), BP_CREATE_GRAPH), BP_OK);
    assert_true(o.create && !o.released);
    assert_int_equal(bp_backward(c, results[0], F(1, 1), 0), BP_OK);
    assert_int_equal(o.released, 1);
    bp_backward(c, results[0], F(1, 1), 0);
    FAILS(BP_FAILED_PRECONDITION, "backward goes through \"CompiledFunction\" a second time");
    assert_int_equal(o.runs, 3);
    assert_int_equal(o.destroyed, 0);
    bp_scope_end(c);
    assert_int_equal(o.destroyed, 1);
    assert_int_equal(o.released, 1);
}

static void a_tensor_that_nobody_recorded_says_so(void **state)
{
    (void)state;
    bp_tensor *t = F(1, 2);
    t->flags = (uint8_t)((t->flags | TENSOR_REQUIRES_GRAD) & ~TENSOR_IS_LEAF);
    BACKWARD(bp_sum(c, bp_mul(c, t, t)));
    FAILS(BP_UNIMPLEMENTED, "there is no derivative of an operation that was not recorded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(forward_and_backward_are_recorded_on_fakes),
        T(a_composite_over_a_recorder_is_recorded_by_its_parts),
        T(another_rooms_node_takes_part),
        T(a_tensor_that_nobody_recorded_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
