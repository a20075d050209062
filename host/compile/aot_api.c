/* The public face of AOT: a backend made of functions, and the graphs of a function that trains. */
#include "host/capture/frame.h"
#include "host/compile/aot_parts.h"
#include <stdlib.h>
#include <string.h>

enum { AOT_REGION_MAX = 64 };

/* -- a backend of functions ---------------------------------------------------------------------------------------- */

/* 1 + PARTITION_*; 0: as the config says; -1: no such partition. */
static int partition_of(const char *name)
{
    if (!name)
        return 0;
    return !strcmp(name, "default") ? 1 + PARTITION_DEFAULT : !strcmp(name, "min-cut") ? 1 + PARTITION_MIN_CUT : -1;
}

static bp_status check_partition(bp_ctx *c, const char *name)
{
    return partition_of(name) >= 0 ? BP_OK
                                   : ctx_fail(c, BP_INVALID_ARGUMENT,
                                              "unknown partition \"%s\", expected \"default\" or \"min-cut\"", name);
}

/* It becomes a part of graphs' names. */
static bp_status check_region(bp_ctx *c, const char *name)
{
    const size_t n = name ? strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") : 0;
    if (!name || (n && n <= AOT_REGION_MAX && !name[n]))
        return BP_OK;
    return ctx_fail(c, BP_INVALID_ARGUMENT,
                    "compile_region_name \"%.64s\": 1 to %d letters, digits, \"_\" or \"-\" are expected", name,
                    AOT_REGION_MAX);
}

static bp_status check_options(bp_ctx *c, const bp_aot_options *o)
{
    TRY(check_partition(c, o->partition));
    TRY(check_region(c, o->compile_region_name));
    if (o->disable_functionalization)
        return ctx_fail(c, BP_INVALID_ARGUMENT,
                        "disable_functionalization is 1: what a capture gives is functional always");
    str rest = str_of(o->pre_grad_passes ? o->pre_grad_passes : "");
    while (rest.n) {
        str name = str_split(&rest, ',');
        if (!aot_pass(name))
            return ctx_fail(c, BP_INVALID_ARGUMENT, "unknown pass \"%.*s\", expected dce, cse or fold_constants",
                            (int)name.n, name.s);
    }
    return BP_OK;
}

bp_status bp_aot_autograd_at(bp_ctx *c, bp_compile_fn fw, bp_compile_fn bw, bp_compile_fn inference,
                             const bp_aot_options *options, size_t options_size, const char *file, int32_t line)
{
    bp_aot_options o = {0};
    if (!ctx_ok(c))
        return c->diag.code;
    if (options)
        memcpy(&o, options, options_size < sizeof o ? options_size : sizeof o);
    TRY(check_options(c, &o));
    backend_training how = {.partition = (uint8_t)partition_of(o.partition), .decomposes = o.decompose != 0,
                            .wraps = true, .passes = o.pre_grad_passes, .region = o.compile_region_name,
                            .whole = o.whole_ops};
    TRY(bp_register_backend_at(c, o.name, fw, o.init, o.tags, file, line));
    return backend_set_training(c, o.name, &how, bw, inference);
}

/* -- graphs without a run ------------------------------------------------------------------------------------------ */

typedef struct {
    bp_fn fn;
    void *user;
    const bp_args *inputs;
    uint32_t nout;           /* found by a first run */
} calling;

/* Runs the function on fakes in the tensors' places. */
static bp_status call(bp_ctx *c, void *arg, bp_tensor *const *in, bp_tensor **out, uint32_t nout)
{
    calling *k = arg;
    bp_frame f;
    bp_value *at = calloc((size_t)k->inputs->n + 1, sizeof *at);
    if (!at)
        return ctx_nomem(c);
    for (uint32_t i = 0, t = 0; i < k->inputs->n; i++)
        at[i] = k->inputs->at[i].kind == BP_VALUE_TENSOR ? value_tensor(in[t++]) : k->inputs->at[i];
    frame_init(&f, c, at, k->inputs->n, k->user);
    bp_status st = frame_run(&f, k->fn);
    k->nout = f.returns.len;
    for (uint32_t i = 0; st == BP_OK && i < nout && i < f.returns.len; i++)
        out[i] = f.returns.at[i] ? tensor_ref(f.returns.at[i]) : NULL;
    frame_fini(&f);
    free(at);
    return st;
}

static bp_status add_inputs(bp_ctx *c, bp_graph_module *gm, const bp_args *inputs, uint8_t *needs)
{
    char name[32];
    for (uint32_t i = 0, t = 0; i < inputs->n; i++) {
        const bp_tensor *x = inputs->at[i].kind == BP_VALUE_TENSOR ? inputs->at[i].v.tensor : NULL;
        if (!x)
            continue;
        tensor_meta m;
        tensor_get_meta(x, &m);
        snprintf(name, sizeof name, "arg%u", i);
        graph_placeholder(&gm->g, name, name, BP_ROLE_USER, &m);
        needs[t++] = (x->flags & TENSOR_REQUIRES_GRAD) != 0;
    }
    return graph_status(c, &gm->g);
}

static void write_graph(const bp_graph_module *gm, bp_write_fn write, void *arg)
{
    buf text = {0};
    graph_print_text(gm, &text);
    write(arg, buf_text(&text), text.n);
    buf_fini(&text);
}

static bp_status show(bp_ctx *c, const joint *j, const char *name, bp_write_fn write, void *arg)
{
    partition_options o = aot_config(c->rt);
    partition p;
    if (!j->ntangents)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "no result of the function requires grad");
    if (name)
        o.kind = partition_of(name) - 1;
    const pass passes[] = {{"dce", pass_dce, NULL}, {"cse", pass_cse, NULL}};
    TRY(passes_run(c, j->gm, passes, 2));
    TRY(joint_partition(c, j, &o, &p));
    write_graph(j->gm, write, arg);
    write_graph(p.forward, write, arg);
    write_graph(p.backward, write, arg);
    partition_fini(&p);
    return BP_OK;
}

static bp_status trace_call_of(bp_ctx *c, calling *k, const bp_graph_module *gm, const uint8_t *needs, joint *j)
{
    TRY(joint_trace_call(c, gm, needs, call, k, 0, j)); /* to know how many results there are */
    joint_fini(j);
    return joint_trace_call(c, gm, needs, call, k, k->nout, j);
}

bp_status bp_aot_graphs(bp_ctx *c, bp_fn fn, void *user, const bp_args *inputs, const char *split,
                        bp_write_fn write, void *arg)
{
    static const bp_args NONE = {NULL, 0};
    calling k = {.fn = fn, .user = user, .inputs = inputs ? inputs : &NONE};
    joint j = {0};
    if (!ctx_ok(c))
        return c->diag.code;
    if (!fn || !write)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "bp_aot_graphs: the %s is NULL", fn ? "writer" : "function");
    TRY(check_partition(c, split));
    TRY(args_check(c, inputs));
    bp_graph_module *gm = gm_new(c, "function");
    uint8_t *needs = calloc((size_t)k.inputs->n + 1, 1);
    bp_status st = gm && needs ? add_inputs(c, gm, k.inputs, needs) : ctx_nomem(c);
    if (st == BP_OK)
        st = trace_call_of(c, &k, gm, needs, &j);
    if (st == BP_OK)
        st = show(c, &j, split, write, arg);
    joint_fini(&j);
    gm_unref(gm);
    free(needs);
    return st;
}
