/* A stage for tests of graphs with symbols: a backend that does what a test wants, and runs on inputs of any size. */
#ifndef TESTS_BACKEND_ACTING_H
#define TESTS_BACKEND_ACTING_H
#include "host/backend/chain.h"
#include "host/backend/room.h"
#include "tests/lib/world.h"
#include <stdlib.h>

static const char GRAPH[] = "graph g {\n"
                            "  symbol s0 in [2, inf] hint 4\n"
                            "  symbol s1 in [2, inf] hint 3\n"
                            "  %x: f32[s0] = placeholder \"x\" user\n"
                            "  %y: f32[s1] = placeholder \"y\" user\n"
                            "  %abs_1: f32[s0] = aten.abs.default(%x)\n"
                            "  %cat: f32[s0 + s1] = aten.cat.default([%abs_1, %y])\n"
                            "  %neg: f32[s0 + s1] = aten.neg.default(%cat)\n"
                            "  output(%neg)\n"
                            "}\n";

/* -- a backend that does what a test wants ------------------------------------------------------------------------- */

static void (*look)(bp_graph_module *gm, const bp_inputs *inputs);
static bp_compiled *(*answer_with)(bp_graph_module *gm, const bp_inputs *inputs);
static atomic_uint compiles;

static inline bp_compiled *acting(bp_graph_module *gm, const bp_inputs *inputs)
{
    compiles++;
    if (look)
        look(gm, inputs);
    return answer_with ? answer_with(gm, inputs) : bp_forward(gm);
}

typedef struct { world *w; backend *b; bp_graph_module *gm; program *p; } stage;

static inline stage open_stage(const char *ini, const char *text, uint32_t flags)
{
    stage s = {.w = world_open(ini)};
    look = NULL;
    answer_with = NULL;
    compiles = 0;
    world_ok(s.w, bp_register_backend_at(s.w->c, "acting", acting, NULL, NULL, __FILE__, __LINE__));
    s.b = backend_find(s.w->rt, "acting");
    s.b->info = (bp_backend_info){.size = sizeof s.b->info, .flags = flags};
    s.gm = world_graph(s.w, text);
    return s;
}

static inline void compile(stage *s)
{
    world_ok(s->w, program_compile(s->w->c, s->gm, s->b, &s->p));
}

static inline void close_stage(stage *s)
{
    program_unref(s->p);
    gm_unref(s->gm);
    world_close(s->w);
}

static inline bp_tensor *floats(bp_ctx *c, int64_t n)
{
    bp_tensor *t = tensor_contiguous_new(c, BP_F32, 1, &n);
    assert_non_null(t);
    for (int64_t i = 0; i < n; i++)
        ((float *)tensor_ptr(t))[i] = (float)(i % 7) - 2.5f;
    return t;
}

/* Runs on inputs of these sizes; the code. out: the result, of right values and size when there is one. */
static inline bp_status run_on(bp_ctx *c, program *p, int64_t n, int64_t m)
{
    bp_tensor *in[2] = {floats(c, n), floats(c, m)}, *out = NULL;
    program_io io = {.inputs = in, .ninputs = 2, .outputs = &out, .noutputs = 1};
    bp_status st = program_run(c, p, &io);
    if (st == BP_OK) {
        assert_int_equal(tensor_nelem(out), n + m);
        for (int64_t i = 0; i < n + m; i++) {
            float v = (float)((i < n ? i : i - n) % 7) - 2.5f;
            assert_float_equal(((float *)tensor_ptr(out))[i], -(i < n && v < 0 ? -v : v), 0);
        }
    } else {
        assert_null(out);
    }
    tensor_unref(out);
    tensor_unref(in[0]);
    tensor_unref(in[1]);
    return st;
}

static inline void run(stage *s, int64_t n, int64_t m)
{
    world_ok(s->w, run_on(s->w->c, s->p, n, m));
}

static inline void expect_variants(const stage *s, uint32_t n)
{
    assert_int_equal(program_variants(s->p), n);
    assert_int_equal(compiles, n);
}

static inline void expect_shown(const stage *s, const char *line)
{
    buf text = {0};
    program_print_assignment(s->p, &text);
    assert_contains(buf_text(&text), line);
    buf_fini(&text);
}

static inline uint32_t by_name(const bp_graph_module *gm, const char *name)
{
    for (uint32_t i = 0; i < bp_node_count(gm); i++)
        if (strcmp(bp_node_name(gm, bp_node_at(gm, i)), name) == 0)
            return bp_node_at(gm, i);
    fail_msg("no node %s", name);
    return 0;
}

static inline void look_at_x(bp_graph_module *gm, const bp_inputs *inputs)
{
    bp_view v = {0}, again = {0};
    (void)gm;
    assert_int_equal(bp_input_view(inputs, 0, &v), BP_OK);
    assert_int_equal(bp_input_view(inputs, 0, &again), BP_OK);
    assert_int_equal(v.sizes[0].sym, 0);
    assert_int_equal(v.strides[0].value, 1);
    assert_ptr_equal(v.sizes, again.sizes);
}

static inline int32_t only_views(const bp_graph_module *gm, uint32_t node, char *why, size_t cap)
{
    (void)why;
    (void)cap;
    const char *target = bp_node_target(gm, node);
    return strstr(target, "view") || strstr(target, "expand") || strstr(target, "select");
}
#endif
