/* Programs of graphs with symbols: sizes that are data, limits, failures, predicates, threads. */
#include "tests/unit/backend/acting.h"

/* -- sizes that are data ------------------------------------------------------------------------------------------- */

static const char DATA[] = "graph g {\n"
                           "  symbol u0 in [0, inf] unbacked\n"
                           "  %x: f32[6] = placeholder \"x\" user\n"
                           "  %nz: i64[u0, 1] = aten.nonzero.default(%x)\n"
                           "  %view: i64[u0] = aten.view.default(%nz, [u0])\n"
                           "  %neg: i64[u0] = aten.neg.default(%view)\n"
                           "  %view_1: i64[1, u0] = aten.view.default(%neg, [1, u0])\n"
                           "  output(%view_1, %view)\n"
                           "}\n";

static void run_data(stage *s, uint32_t zeros)
{
    bp_tensor *x = floats(s->w->c, 6), *out[2];
    for (uint32_t i = 0; i < zeros; i++)
        ((float *)tensor_ptr(x))[i] = 0;
    program_io io = {.inputs = &x, .ninputs = 1, .outputs = out, .noutputs = 2};
    world_ok(s->w, program_run(s->w->c, s->p, &io));
    assert_int_equal(tensor_dim(out[0], 1), 6 - zeros);
    assert_int_equal(tensor_dim(out[1], 0), 6 - zeros);
    for (uint32_t i = zeros; i < 6; i++) {
        assert_int_equal(((int64_t *)tensor_ptr(out[0]))[i - zeros], -(int64_t)i);
        assert_int_equal(((int64_t *)tensor_ptr(out[1]))[i - zeros], i);
    }
    tensor_unref(x);
    tensor_unref(out[0]);
    tensor_unref(out[1]);
}

static void a_size_that_one_group_tells_is_known_in_the_others(void **state)
{
    (void)state;
    stage s = open_stage("", DATA, BP_DYNAMIC_SHAPES);
    s.b->info.supports = only_views;
    compile(&s);
    for (uint32_t zeros = 0; zeros <= 6; zeros++)
        run_data(&s, zeros);
    assert_int_equal(program_variants(s.p), 1);
    assert_int_equal(program_fallbacks(s.p), 0);
    close_stage(&s);
}

static bp_compiled *read_data(bp_graph_module *gm, const bp_inputs *inputs)
{
    bp_view v;
    (void)inputs;
    return bp_node_meta(gm, by_name(gm, "nz"), 0, &v) ? NULL : bp_forward(gm);
}

static void a_size_of_data_cannot_be_read_as_a_number(void **state)
{
    (void)state;
    stage s = open_stage("", DATA, 0);
    answer_with = read_data;
    compile(&s);
    assert_contains(buf_text(&s.w->log), "backend \"acting\" did not compile graph \"g\"");
    assert_contains(buf_text(&s.w->log), "u0");
    run_data(&s, 2);
    assert_int_equal(program_fallbacks(s.p), 1);
    close_stage(&s);
}

static bp_status run_count(void *state, bp_run *r)
{
    int64_t at[6], n = 0;
    bp_view x, out;
    bp_dim size[2] = {{0}}, stride[2] = {{1, 0, 0}, {1, 0, 0}};
    bool asks = state != NULL;
    if (bp_run_borrow(r, 0, &x))
        return bp_run_fail(r, BP_INTERNAL, "no input");
    if (asks && bp_run_empty(r, 0, &out))
        return BP_INTERNAL;
    for (int64_t i = 0; i < 6; i++)
        if (((float *)x.data)[i] != 0)
            at[n++] = i;
    size[0].value = n;
    bp_view v = {.size = sizeof v, .dtype = BP_I64, .device_kind = BP_CPU, .rank = 1, .sizes = size, .strides = stride,
                 .data = at};
    bp_status st = bp_run_output(r, 1, &v);
    for (int64_t i = 0; i < n; i++)
        at[i] = -at[i];
    size[1].value = n;
    size[0].value = 1;
    v.rank = 2;
    return st ? st : bp_run_output(r, 0, &v);
}

static bp_compiled *count_zeros(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_compiled_new(gm, run_count, NULL, NULL);
}

static bp_compiled *count_and_ask(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_compiled_new(gm, run_count, NULL, gm);
}

static void an_output_of_a_size_of_data_is_given_by_its_backend(void **state)
{
    (void)state;
    stage s = open_stage("", DATA, BP_DYNAMIC_SHAPES);
    answer_with = count_zeros;
    compile(&s);
    for (uint32_t zeros = 0; zeros <= 6; zeros++)
        run_data(&s, zeros);
    assert_int_equal(program_fallbacks(s.p), 0);
    program_unref(s.p);
    answer_with = count_and_ask;
    compile(&s);
    run_data(&s, 1);
    assert_contains(buf_text(&s.w->log), "it asked for output 0, whose size only the run tells");
    close_stage(&s);
}

/* -- limits and failures ------------------------------------------------------------------------------------------- */

static uint32_t count(const char *text, const char *what)
{
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

static void beyond_the_limit_eager_answers_with_one_warning(void **state)
{
    (void)state;
    stage s = open_stage("[host]\nrecompile_limit = 3\n", GRAPH, 0);
    look = look_at_x;
    compile(&s);
    for (int64_t n = 2; n < 12; n++)
        run(&s, n, 3);
    expect_variants(&s, 3);
    const char *log = buf_text(&s.w->log);
    assert_int_equal(count(log, "recompile_limit is 3"), 1);
    assert_contains(log, "graph \"g\" was compiled by backend \"acting\" for 3 sizes");
    assert_contains(log, "BP_DYNAMIC_SHAPES");
    assert_contains(log, "bp_mark_static");
    close_stage(&s);
}

static void beyond_the_limit_a_strict_policy_is_an_error(void **state)
{
    (void)state;
    stage s = open_stage("[host]\nrecompile_limit = 1\nfallback = error\n", GRAPH, 0);
    look = look_at_x;
    compile(&s);
    assert_int_equal(run_on(s.w->c, s.p, 9, 3), BP_FAILED_PRECONDITION);
    assert_contains(s.w->c->diag.message, "for 1 sizes (the last one: s0 == 4), and recompile_limit is 1");
    bp_error_clear(s.w->c);
    run(&s, 4, 8);
    close_stage(&s);
}

static bp_compiled *only_four(bp_graph_module *gm, const bp_inputs *inputs)
{
    bp_view v;
    bp_input_view(inputs, 0, &v);
    return v.sizes[0].value == 4 ? bp_forward(gm) : bp_fail(gm, BP_INTERNAL, "no kernel for %d", (int)v.sizes[0].value);
}

static void a_size_that_a_backend_cannot_compile_is_the_next_one_s(void **state)
{
    (void)state;
    stage s = open_stage("", GRAPH, 0);
    answer_with = only_four;
    compile(&s);
    run(&s, 5, 3);
    expect_shown(&s, "g: s0 == 5\n");
    expect_shown(&s, "-> eager -> acting: no kernel for 5");
    run(&s, 4, 3);
    expect_variants(&s, 2);
    close_stage(&s);
}

static void a_strict_policy_tells_of_the_size_that_does_not_compile(void **state)
{
    (void)state;
    stage s = open_stage("[host]\nfallback = error\n", GRAPH, 0);
    answer_with = only_four;
    compile(&s);
    assert_int_equal(run_on(s.w->c, s.p, 5, 3), BP_INTERNAL);
    assert_contains(s.w->c->diag.message, "no kernel for 5");
    bp_error_clear(s.w->c);
    run(&s, 4, 3);
    assert_int_equal(program_variants(s.p), 1);
    close_stage(&s);
}

/* -- predicates ---------------------------------------------------------------------------------------------------- */

static void a_predicate_gets_a_variant_when_it_is_first_met(void **state)
{
    (void)state;
    stage s = open_stage("", GRAPH, BP_DYNAMIC_SHAPES);
    compile(&s);
    sym_scope former = sym_push(s.gm->g.syms, s.w->c);
    bp_dim is_eight = dim_compare(s.w->c, DIM_EQ, sym_dim_of(s.gm->g.syms, 0), dim_const(8));
    sym_pop(former);
    world_ok(s.w, program_specialize_on(s.w->c, s.p, &is_eight, 1));
    run(&s, 9, 3);
    expect_variants(&s, 1);
    run(&s, 8, 3);
    run(&s, 8, 5);
    run(&s, 9, 5);
    expect_variants(&s, 2);
    expect_shown(&s, "g: s0 == 8\n");
    expect_shown(&s, "g: any size\n");
    close_stage(&s);
}

/* -- threads ------------------------------------------------------------------------------------------------------- */

typedef struct { stage *s; uint32_t id; bp_status st; } worker;

static void *work(void *arg)
{
    worker *k = arg;
    bp_ctx *c = bp_ctx_new(k->s->w->rt);
    for (uint32_t i = 0; i < 60 && !k->st; i++)
        k->st = run_on(c, k->s->p, 2 + (i * 7 + k->id) % 11, 2 + i % 5);
    bp_ctx_destroy(c);
    return NULL;
}

static void threads_of_changing_sizes_share_variants(void **state)
{
    (void)state;
    for (uint32_t reads = 0; reads < 2; reads++) {
        stage s = open_stage("[host]\nrecompile_limit = 5\nfallback = silent\n", GRAPH, BP_CONCURRENT_RUN);
        look = reads ? look_at_x : NULL;
        compile(&s);
        worker all[8];
        pthread_t threads[8];
        for (uint32_t i = 0; i < 8; i++) {
            all[i] = (worker){&s, i, BP_OK};
            assert_int_equal(pthread_create(&threads[i], NULL, work, &all[i]), 0);
        }
        for (uint32_t i = 0; i < 8; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(all[i].st, BP_OK);
        }
        expect_variants(&s, reads ? 5 : 1);
        close_stage(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_size_that_one_group_tells_is_known_in_the_others),
        cmocka_unit_test(a_size_of_data_cannot_be_read_as_a_number),
        cmocka_unit_test(an_output_of_a_size_of_data_is_given_by_its_backend),
        cmocka_unit_test(beyond_the_limit_eager_answers_with_one_warning),
        cmocka_unit_test(beyond_the_limit_a_strict_policy_is_an_error),
        cmocka_unit_test(a_size_that_a_backend_cannot_compile_is_the_next_one_s),
        cmocka_unit_test(a_strict_policy_tells_of_the_size_that_does_not_compile),
        cmocka_unit_test(a_predicate_gets_a_variant_when_it_is_first_met),
        cmocka_unit_test(threads_of_changing_sizes_share_variants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
