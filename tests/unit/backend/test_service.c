/* The service table as a plugin sees it: one backend that looks at everything, through plugin.h alone. */
#include "host/backend/chain.h"
#include "host/backend/room.h"
#include "tests/lib/world.h"
#include <stdlib.h>

static const char GRAPH[] = "graph g {\n"
                            "  %x: f32[2, 3; 1, 2] = placeholder \"x\" user\n"
                            "  %w: f32[3] = placeholder \"fc.w\" parameter\n"
                            "  %c: i64[2] = get_attr \"c\" data \"AQAAAAAAAAACAAAAAAAAAA==\"\n"
                            "  %add: f32[2, 3] = aten.add.Tensor(%x, %w)\n"
                            "  %split: (f32[1, 3], f32[1, 3]) = aten.split_with_sizes.default(%add, [1, 1])\n"
                            "  %a: f32[1, 3] = <built-in function getitem>(%split, 0)\n"
                            "  %neg: f32[1, 3] = aten.neg.default(%a)\n"
                            "  output(%neg, %c)\n"
                            "}\n";

static void (*look)(bp_graph_module *gm, const bp_inputs *inputs);
static bp_compiled *(*answer_with)(bp_graph_module *gm, const bp_inputs *inputs);

static bp_compiled *looking(bp_graph_module *gm, const bp_inputs *inputs)
{
    if (look)
        look(gm, inputs);
    return answer_with ? answer_with(gm, inputs) : bp_forward(gm);
}

typedef struct { world *w; backend *b; bp_graph_module *gm; } stage;

static stage open_stage(const char *ini, const char *text)
{
    stage s = {.w = world_open(ini)};
    look = NULL;
    answer_with = NULL;
    world_ok(s.w, bp_register_backend_at(s.w->c, "looking", looking, NULL, NULL, __FILE__, __LINE__));
    s.b = backend_lookup(s.w->c, "looking");
    s.gm = world_graph(s.w, text);
    return s;
}

static void close_stage(stage *s)
{
    gm_unref(s->gm);
    world_close(s->w);
}

static program *compile(stage *s)
{
    program *p = NULL;
    world_ok(s->w, program_compile(s->w->c, s->gm, s->b, &p));
    return p;
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

static uint32_t by_name(const bp_graph_module *gm, const char *name)
{
    for (uint32_t i = 0; i < bp_node_count(gm); i++)
        if (strcmp(bp_node_name(gm, bp_node_at(gm, i)), name) == 0)
            return bp_node_at(gm, i);
    fail_msg("no node %s", name);
    return 0;
}

static void look_at_the_graph(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    assert_int_equal(bp_node_count(gm), 8);
    assert_int_equal(bp_node_at(gm, 8), 0);
    assert_int_equal(bp_node_op(gm, bp_node_at(gm, 0)), BP_NODE_PLACEHOLDER);
    assert_int_equal(bp_node_op(gm, bp_node_at(gm, 2)), BP_NODE_GET_ATTR);
    assert_int_equal(bp_node_op(gm, bp_node_at(gm, 7)), BP_NODE_OUTPUT);
    assert_string_equal(bp_node_target(gm, by_name(gm, "add")), "aten.add.Tensor");
    assert_int_equal(bp_node_op(gm, 99), 0);
    assert_string_equal(bp_node_name(gm, 99), "");
    assert_int_equal(bp_gm_code_id(gm), 42);
    uint32_t users[2] = {0, 0};
    assert_int_equal(bp_node_users(gm, by_name(gm, "add"), users, 2), 1);
    assert_int_equal(users[0], by_name(gm, "split"));
    assert_int_equal(bp_node_users(gm, by_name(gm, "add"), NULL, 0), 1);
}

static void look_at_arguments(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    bp_value v;
    uint32_t add = by_name(gm, "add");
    assert_int_equal(bp_node_arg(gm, add, "other", &v), BP_OK);
    assert_int_equal(v.kind, BP_VALUE_NODE);
    assert_int_equal(v.v.node, by_name(gm, "w"));
    assert_int_equal(bp_node_arg(gm, add, "alpha", &v), BP_OK);
    assert_int_equal(v.kind, BP_VALUE_INT);
    assert_int_equal(v.v.dim.value, 1);
    assert_int_equal(bp_node_arg(gm, add, "beta", &v), BP_NOT_FOUND);
    assert_int_equal(bp_node_arg(gm, by_name(gm, "split"), "split_sizes", &v), BP_OK);
    assert_int_equal(v.count, 2);
    assert_int_equal(bp_node_arg(gm, by_name(gm, "a"), "1", &v), BP_OK);
    assert_int_equal(v.v.dim.value, 0);
    assert_int_equal(bp_node_arg(gm, by_name(gm, "a"), "2", &v), BP_NOT_FOUND);
    assert_int_equal(bp_node_arg(gm, by_name(gm, "output"), "0", &v), BP_OK);
    assert_int_equal(v.kind, BP_VALUE_LIST);
    assert_int_equal(bp_node_arg(gm, 99, "x", &v), BP_INVALID_ARGUMENT);
}

static void look_at_metadata(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    bp_view v;
    assert_int_equal(bp_node_meta(gm, by_name(gm, "split"), 1, &v), BP_OK);
    assert_int_equal(v.size, sizeof v);
    assert_int_equal(v.dtype, BP_F32);
    assert_int_equal(v.rank, 2);
    assert_int_equal(v.sizes[0].value, 1);
    assert_int_equal(v.strides[0].value, 3);
    assert_int_equal(v.flags, BP_VIEW_FAKE);
    assert_null(v.data);
    assert_int_equal(bp_node_meta(gm, by_name(gm, "split"), 2, &v), BP_NOT_FOUND);
    assert_int_equal(bp_constant_value(gm, by_name(gm, "c"), &v), BP_OK);
    assert_int_equal(v.dtype, BP_I64);
    assert_int_equal(((const int64_t *)v.data)[1], 2);
    assert_int_equal(bp_constant_value(gm, by_name(gm, "x"), &v), BP_FAILED_PRECONDITION);
}

static void look_at_inputs(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)gm;
    bp_view v;
    assert_int_equal(bp_input_count(inputs), 2);
    assert_int_equal(bp_input_role(inputs, 0), BP_ROLE_USER);
    assert_int_equal(bp_input_role(inputs, 1), BP_ROLE_PARAMETER);
    assert_int_equal(bp_input_role(inputs, 2), BP_ROLE_UNSET);
    assert_string_equal(bp_input_name(inputs, 1), "w");
    assert_int_equal(bp_input_view(inputs, 0, &v), BP_OK);
    assert_int_equal(v.strides[0].value, 1);
    assert_int_equal(v.strides[1].value, 2);
    assert_null(v.data);
    assert_int_equal(bp_input_view(inputs, 2, &v), BP_INVALID_ARGUMENT);
    assert_int_equal(bp_propagate(gm, inputs), BP_OK);
}

static void a_backend_sees_graph_arguments_metadata_and_inputs(void **state)
{
    (void)state;
    void (*const LOOKS[])(bp_graph_module *, const bp_inputs *) = {look_at_the_graph, look_at_arguments,
                                                                   look_at_metadata, look_at_inputs};
    for (size_t i = 0; i < sizeof LOOKS / sizeof *LOOKS; i++) {
        stage s = open_stage("", GRAPH);
        s.gm->code_id = 42;
        look = LOOKS[i];
        program_unref(compile(&s));
        close_stage(&s);
    }
}

/* -- keeping a graph ----------------------------------------------------------------------------------------------- */

static bp_graph_module *kept;
static void keep_graph(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    kept = bp_gm_ref(gm);
}

static void a_kept_graph_can_be_read_and_no_more_compiled_with(void **state)
{
    (void)state;
    stage s = open_stage("", GRAPH);
    look = keep_graph;
    program_unref(compile(&s));
    assert_int_equal(bp_node_count(kept), 8);
    assert_string_equal(bp_node_name(kept, bp_node_at(kept, 3)), "add");
    assert_int_equal(bp_node_at(kept, 8), 0);
    assert_null(bp_forward(kept));
    assert_null(bp_sink(kept));
    assert_int_equal(bp_lookup_backend(kept, "eager"), BP_FAILED_PRECONDITION);
    bp_view v;
    assert_int_equal(bp_constant_value(kept, by_name(kept, "c"), &v), BP_OK);
    bp_gm_unref(kept);
    close_stage(&s);
}

/* -- memory, threads, once ----------------------------------------------------------------------------------------- */

static const bp_host *host_of(const bp_graph_module *gm)
{
    return BP_HOST_OF_(gm);
}

static void add_up(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        atomic_fetch_add((_Atomic int64_t *)arg, i);
}

static int once_calls;
static bp_status fail_first(void *arg)
{
    (void)arg;
    return ++once_calls == 1 ? BP_UNAVAILABLE : BP_OK;
}

static const bp_host *once_host;
static bp_status nested(void *arg)
{
    return bp_once(once_host, arg, fail_first, NULL);
}

static void use_the_host(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    const bp_host *host = host_of(gm);
    char *p = bp_alloc(host, 100, 256);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 256, 0);
    memset(p, 1, 100);
    bp_free(host, p);
    bp_free(host, NULL);
    assert_null(bp_alloc(host, 100, 48));
    _Atomic int64_t sum = 0;
    assert_int_equal(bp_parallel_for(host, 1000, 10, add_up, &sum), BP_OK);
    assert_int_equal(sum, 499500);
    assert_int_equal(bp_parallel_for(host, -1, 1, add_up, &sum), BP_INVALID_ARGUMENT);
    assert_int_equal(bp_parallel_for(host, 0, 1, add_up, &sum), BP_OK);
    static char key, inner;
    assert_int_equal(bp_once(host, &key, fail_first, NULL), BP_UNAVAILABLE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(bp_once(host, &key, fail_first, NULL), BP_OK);
    assert_int_equal(once_calls, 2);
    once_host = host;
    assert_int_equal(bp_once(host, &inner, nested, &inner), BP_FAILED_PRECONDITION);
    bp_log_message(host, BP_LOG_WARN, "%d things to say", 3);
}

static void a_backend_gets_memory_threads_once_and_a_log(void **state)
{
    (void)state;
    stage s = open_stage("", GRAPH);
    look = use_the_host;
    program_unref(compile(&s));
    assert_contains(buf_text(&s.w->log), "backplane: warning: backend \"looking\": 3 things to say\n");
    close_stage(&s);
}

/* -- options ------------------------------------------------------------------------------------------------------- */

static char options[200];
static void read_options(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    const char *a = bp_option(gm, "a"), *b = bp_option(gm, "b");
    snprintf(options, sizeof options, "a=%s b=%s", a ? a : "-", b ? b : "-");
    assert_null(bp_option(gm, "absent"));
}

static void options_of_the_call_win_over_the_configs(void **state)
{
    (void)state;
    stage s = open_stage("[host]\nprobe_helper = @helper@\n", GRAPH);
    look = read_options;
    assert_true(vec_reserve(&s.gm->options, 1));
    s.gm->options.at[0].key = strdup("a");
    s.gm->options.at[0].value = strdup("1");
    s.gm->options.len = 1;
    program_unref(compile(&s));
    assert_string_equal(options, "a=1 b=-");
    close_stage(&s);
}

/* -- saying no ----------------------------------------------------------------------------------------------------- */

static bp_compiled *say_twice(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    bp_fail(gm, BP_DATA_LOSS, "the first word");
    return bp_decline(gm, 0, "the second");
}
static bp_compiled *say_nothing_with_a_code(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_fail(gm, BP_DATA_LOSS, "%s", "");
}
static bp_compiled *say_a_lot(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    return bp_fail(gm, BP_DATA_LOSS, "%s", text);
}
static bp_compiled *say_and_compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    bp_decline(gm, 0, "but it does");
    return bp_forward(gm);
}
static bp_compiled *look_up_nothing(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_lookup_backend(gm, "eagle") == BP_OK ? bp_forward(gm) : NULL;
}

static bp_compiled *first_object;
static bp_compiled *give_the_first_again(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    first_object = first_object ? first_object : bp_forward(gm);
    return bp_compiled_ref(first_object);
}

static void an_object_of_another_compile_is_not_taken(void **state)
{
    (void)state;
    stage s = open_stage("[host]\nfallback = error\n", GRAPH);
    program *p = NULL;
    answer_with = give_the_first_again;
    assert_int_equal(program_compile(s.w->c, s.gm, s.b, &p), BP_OK);
    program_unref(p);
    assert_int_equal(program_compile(s.w->c, s.gm, s.b, &p), BP_INTERNAL);
    assert_contains(bp_error_text(s.w->c), "compiled for another graph");
    bp_compiled_unref(first_object);
    bp_compiled_unref(NULL);
    assert_null(bp_compiled_ref(NULL));
    close_stage(&s);
}

static void the_first_word_counts_and_its_text_is_kept(void **state)
{
    (void)state;
    static const struct { bp_compile_fn fn; bp_status code; const char *text; } ROWS[] = {
        {say_twice, BP_DATA_LOSS, "the first word"},
        {say_nothing_with_a_code, BP_DATA_LOSS, "failed with DATA_LOSS and gave no reason"},
        {say_a_lot, BP_DATA_LOSS, "xxxxxxxxxxxxxxxxxxxxxxxxxx"},
        {look_up_nothing, BP_NOT_FOUND, "invalid backend \"eagle\""},
        {say_and_compile, BP_UNIMPLEMENTED, "but it does"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        stage s = open_stage("[host]\nfallback = error\n", GRAPH);
        answer_with = ROWS[i].fn;
        program *p = NULL;
        assert_int_equal(program_compile(s.w->c, s.gm, s.b, &p), ROWS[i].code);
        assert_contains(bp_error_text(s.w->c), ROWS[i].text);
        program_unref(p);
        close_stage(&s);
    }
}

/* -- runs ---------------------------------------------------------------------------------------------------------- */

static const char TWO[] = "graph g {\n"
                          "  %x: f32[2, 3] = placeholder \"x\" user\n"
                          "  %t: f32[3, 2; 1, 3] = aten.t.default(%x)\n"
                          "  %neg: f32[2, 3] = aten.neg.default(%x)\n"
                          "  output(%neg, %t)\n"
                          "}\n";

static bp_status (*run_body)(bp_run *r);
static bp_status run(void *state, bp_run *r)
{
    (void)state;
    return run_body(r);
}
static bp_compiled *make_run(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_compiled_new(gm, run, NULL, NULL);
}

static bp_status good_run(bp_run *r)
{
    bp_view x, neg, again;
    int32_t owned = 7;
    assert_int_equal(bp_run_borrow(r, 0, &x), BP_OK);
    assert_int_equal(bp_run_take(r, 0, &x, &owned), BP_OK);
    assert_int_equal(owned, 0);
    assert_int_equal(bp_run_borrow(r, 1, &x), BP_INVALID_ARGUMENT);
    assert_int_equal(bp_run_poll(r), BP_OK);
    bp_run_borrow(r, 0, &x);
    assert_int_equal(bp_run_empty(r, 0, &neg), BP_OK);
    assert_int_equal(bp_run_empty(r, 0, &again), BP_OK);
    assert_ptr_equal(neg.data, again.data);
    for (int i = 0; i < 6; i++)
        ((float *)neg.data)[i] = -((const float *)x.data)[i];
    /* The transposed input, set from the input's own memory: copied. */
    bp_dim sizes[2] = {{3, 0, 0}, {2, 0, 0}}, strides[2] = {{1, 0, 0}, {3, 0, 0}};
    bp_view t = {sizeof t, BP_F32, BP_CPU, 0, 2, 0, sizes, strides, x.data};
    return bp_run_output(r, 1, &t);
}

static bp_status null_view(bp_run *r) { return bp_run_output(r, 0, NULL); }
static bp_status no_data(bp_run *r)
{
    bp_view v;
    bp_run_empty(r, 0, &v);
    v.data = NULL;
    return bp_run_output(r, 0, &v);
}
static bp_status negative_stride(bp_run *r)
{
    bp_dim strides[2] = {{-3, 0, 0}, {1, 0, 0}};
    bp_view v;
    bp_run_empty(r, 0, &v);
    v.strides = strides;
    return bp_run_output(r, 0, &v);
}
static bp_status unset_code(bp_run *r) { return bp_run_fail(r, BP_OK, "with no code"); }
static bp_status unknown_code(bp_run *r)
{
    (void)r;
    return 1234;
}

static bp_status run_once(stage *s, bp_tensor **out)
{
    bp_tensor *x = bp_tensor_from(s->w->c, BP_F32, 2, (int64_t[]){2, 3}, (float[]){1, 2, 3, 4, 5, 6});
    program *p = compile(s);
    bp_status st = program_run(s->w->c, p, &(program_io){.inputs = &x, .ninputs = 1, .outputs = out, .noutputs = 2});
    program_unref(p);
    return st;
}

static void outputs_are_made_or_copied(void **state)
{
    (void)state;
    stage s = open_stage("", TWO);
    answer_with = make_run;
    run_body = good_run;
    bp_tensor *out[2];
    world_ok(s.w, run_once(&s, out));
    float t[6];
    world_ok(s.w, bp_tensor_read(s.w->c, out[1], t, sizeof t));
    assert_true(t[0] == 1 && t[1] == 4 && t[2] == 2 && t[5] == 6);
    assert_int_equal(bp_tensor_stride(out[1], 1), 3);
    assert_false(bp_tensor_same_storage(out[0], out[1]));
    bp_tensor_unref(out[0]);
    bp_tensor_unref(out[1]);
    close_stage(&s);
}

static void what_a_run_does_wrong_is_told(void **state)
{
    (void)state;
    static const struct { bp_status (*fn)(bp_run *); bp_status code; const char *text; } ROWS[] = {
        {null_view, BP_INTERNAL, "output 0: the view is NULL"},
        {no_data, BP_INTERNAL, "output 0 has no data"},
        {negative_stride, BP_INTERNAL, "output 0: stride 0 is negative"},
        {unset_code, BP_UNKNOWN, "with no code"},
        {unknown_code, 1234, "returned UNKNOWN and gave no reason"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        stage s = open_stage("[host]\nfallback = error\n", TWO);
        answer_with = make_run;
        run_body = ROWS[i].fn;
        bp_tensor *out[2];
        assert_int_equal(run_once(&s, out), ROWS[i].code);
        assert_contains(bp_error_text(s.w->c), "\"looking\"");
        assert_contains(bp_error_text(s.w->c), ROWS[i].text);
        assert_null(out[0]);
        close_stage(&s);
    }
}

/* -- what backend_info says ---------------------------------------------------------------------------------------- */

static size_t describe(void *state, char *text, size_t cap)
{
    (void)state;
    static const char CODE[] = "mov eax, 42";
    if (text)
        memcpy(text, CODE, cap < sizeof CODE - 1 ? cap : sizeof CODE - 1);
    return sizeof CODE - 1;
}

static void the_code_of_an_object_goes_to_the_log(void **state)
{
    (void)state;
    stage s = open_stage("", TWO);
    answer_with = make_run;
    s.b->info = (bp_backend_info){.size = sizeof s.b->info, .describe = describe};
    program_unref(compile(&s));
    assert_string_equal(buf_text(&s.w->log), "");
    s.w->rt->log_mask = ~UINT64_C(0);
    program_unref(compile(&s));
    assert_contains(buf_text(&s.w->log), "backplane[output_code]: \"looking\", graph \"g\":\nmov eax, 42\n");
    close_stage(&s);
}

static uintptr_t address;
static bp_status note_address(bp_run *r)
{
    bp_view x, y;
    bp_run_borrow(r, 0, &x);
    bp_run_borrow(r, 0, &y);
    assert_ptr_equal(x.data, y.data);
    address = (uintptr_t)x.data;
    assert_true(((const float *)x.data)[x.strides[1].value] == 3);
    return bp_run_fail(r, BP_CANCELLED, "seen enough");
}

static void inputs_lie_as_the_backend_wants(void **state)
{
    (void)state;
    for (uint32_t align = 0; align <= 4096; align = align ? align * 8 : 64) {
        stage s = open_stage("", TWO);
        answer_with = make_run;
        run_body = note_address;
        s.b->info = (bp_backend_info){.size = sizeof s.b->info, .min_alignment = align};
        program *p = compile(&s);
        bp_scope_begin(s.w->c);
        bp_tensor *whole = bp_tensor_from(s.w->c, BP_F32, 1, (int64_t[]){7}, (float[]){1, 2, 3, 4, 5, 6, 7});
        bp_dim sizes[2] = {{2, 0, 0}, {3, 0, 0}}, strides[2] = {{3, 0, 0}, {1, 0, 0}};
        const tensor_meta m = {.dtype = BP_F32, .device = {BP_CPU, 0}, .rank = 2, .sizes = sizes, .strides = strides,
                               .offset = {1, 0, 0}};
        bp_tensor *x = tensor_view(s.w->c, whole, &m);
        assert_non_null(x);
        bp_tensor *out[2];
        assert_int_equal(program_run(s.w->c, p, &(program_io){.inputs = &x, .ninputs = 1, .outputs = out,
                                                              .noutputs = 2}), BP_CANCELLED);
        if (align)
            assert_int_equal(address % align, 0);
        else
            assert_int_equal(address, (uintptr_t)tensor_ptr(x));
        tensor_unref(x);
        bp_scope_end(s.w->c);
        program_unref(p);
        close_stage(&s);
    }
}

static bp_compiled *myself;
static bp_status run_myself(bp_run *r)
{
    return bp_run_compiled(r, myself);
}
static bp_compiled *make_myself(bp_graph_module *gm, const bp_inputs *inputs)
{
    return myself = make_run(gm, inputs);
}

static void an_object_that_runs_itself_ends(void **state)
{
    (void)state;
    stage s = open_stage("[host]\nfallback = error\n", TWO);
    answer_with = make_myself;
    run_body = run_myself;
    bp_tensor *out[2];
    assert_int_equal(run_once(&s, out), BP_INTERNAL);
    assert_contains(bp_error_text(s.w->c), "nested 32 deep");
    close_stage(&s);
}

/* -- hosts that lack rows ------------------------------------------------------------------------------------------ */

static void a_row_that_the_host_lacks_answers_with_its_fallback(void **state)
{
    (void)state;
    const bp_host old = {.size = offsetof(bp_host, forward), .api = 1};
    const struct { const bp_host *host; } handle = {&old};
    bp_graph_module *gm = (bp_graph_module *)(uintptr_t)&handle;
    assert_null(bp_forward(gm));
    assert_int_equal(bp_print_tabular(gm, NULL), BP_UNIMPLEMENTED);
    assert_int_equal(bp_node_count(gm), 0);
    assert_string_equal(bp_node_name(gm, 1), "");
    assert_int_equal(bp_init_fail(&old, BP_DATA_LOSS, "unheard"), BP_UNKNOWN);
    bp_log_message(&old, BP_LOG_WARN, "unheard");
}

static void every_row_of_the_table_is_there(void **state)
{
    (void)state;
    world *w = world_open("");
    const bp_host *host = &backend_find(w->rt, "eager")->host.api;
    assert_int_equal(host->size, sizeof(bp_host));
    assert_int_equal(host->api, BP_API_NEWEST);
#define BP_API_ROW(since, result, name, params, args, handle, fallback) assert_non_null(host->name);
#define BP_API_VOID(since, name, params, args, handle) assert_non_null(host->name);
#include <backplane/host_api.def>
#undef BP_API_ROW
#undef BP_API_VOID
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_backend_sees_graph_arguments_metadata_and_inputs),
        cmocka_unit_test(a_kept_graph_can_be_read_and_no_more_compiled_with),
        cmocka_unit_test(a_backend_gets_memory_threads_once_and_a_log),
        cmocka_unit_test(options_of_the_call_win_over_the_configs),
        cmocka_unit_test(an_object_of_another_compile_is_not_taken),
        cmocka_unit_test(the_first_word_counts_and_its_text_is_kept),
        cmocka_unit_test(outputs_are_made_or_copied),
        cmocka_unit_test(what_a_run_does_wrong_is_told),
        cmocka_unit_test(the_code_of_an_object_goes_to_the_log),
        cmocka_unit_test(inputs_lie_as_the_backend_wants),
        cmocka_unit_test(an_object_that_runs_itself_ends),
        cmocka_unit_test(a_row_that_the_host_lacks_answers_with_its_fallback),
        cmocka_unit_test(every_row_of_the_table_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
