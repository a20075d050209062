/* A vendor's plugin of the first day, kept as it was compiled then (golden_plugin.so): every later host loads that very
 * file and runs it. It uses every row of API 1, and every field of bp_backend_info.
 *
 * It computes aten.neg, aten.add.Tensor and aten.mul.Tensor on contiguous float32 of one shape, as a list of steps over
 * registers. Option "act" says what else it does: decline, fail, refuse, delegate (to a list of backends), forward.
 * What it has read of the graph is a line of the host's log, which the test compares. */
#include <backplane/plugin.h>
#include <string.h>

enum { NEG, ADD, MUL, MAX_STEPS = 64, MAX_REGISTERS = 80 };
typedef struct { int32_t op; uint32_t a, b, to; float alpha; } step;
typedef struct {
    const bp_host *host;
    bp_graph_module *gm;   /* held beyond compile */
    bp_compiled *forward;  /* the graph's own meaning: runs what is not contiguous */
    uint32_t nin, nout, nsteps, nregisters;
    uint32_t out[8];
    step steps[MAX_STEPS];
} program;

static int once_key;

static bp_status count_devices(void *arg)
{
    *(int32_t *)arg = 1;
    return BP_OK;
}

BP_EXPORT bp_status init(const bp_host *host)
{
    int32_t devices = 0;
    void *p = bp_alloc(host, 100, 64);
    if (!p || ((size_t)p & 63))
        return bp_init_fail(host, BP_RESOURCE_EXHAUSTED, "no aligned memory of %d bytes", 100);
    bp_free(host, p);
    bp_status st = bp_once(host, &once_key, count_devices, &devices);
    if (st == BP_OK)
        bp_log_message(host, BP_LOG_DEBUG, "golden init: API %u, devices %d", (unsigned)host->api, (int)devices);
    return st;
}

/* -- what it takes ------------------------------------------------------------------------------------------------- */

static int op_of(const char *target)
{
    return strcmp(target, "aten.neg.default") == 0  ? NEG
           : strcmp(target, "aten.add.Tensor") == 0 ? ADD
           : strcmp(target, "aten.mul.Tensor") == 0 ? MUL
                                                    : -1;
}

static int same_sizes(const bp_view *a, const bp_view *b)
{
    if (a->rank != b->rank)
        return 0;
    for (uint32_t d = 0; d < a->rank; d++)
        if (a->sizes[d].value != b->sizes[d].value || a->sizes[d].sym != b->sizes[d].sym)
            return 0;
    return 1;
}

static int32_t supports(const bp_graph_module *gm, uint32_t node, char *why, size_t cap)
{
    bp_view v, of;
    bp_value a;
    static const char *const names[2] = {"self", "other"};
    int op = op_of(bp_node_target(gm, node));
    if (op < 0)
        return snprintf(why, cap, "only neg, add and mul are there"), 0;
    if (bp_node_meta(gm, node, 0, &v) != BP_OK || v.size < sizeof v || v.dtype != BP_F32 || v.device_kind != BP_CPU)
        return snprintf(why, cap, "only float32 on the CPU is there"), 0;
    for (int i = 0; i < (op == NEG ? 1 : 2); i++)
        if (bp_node_arg(gm, node, names[i], &a) != BP_OK || a.kind != BP_VALUE_NODE ||
            bp_node_meta(gm, a.v.node, 0, &of) != BP_OK || !same_sizes(&v, &of))
            return snprintf(why, cap, "argument \"%s\" is no tensor of the result's sizes", names[i]), 0;
    return 1;
}

/* -- running ------------------------------------------------------------------------------------------------------- */

typedef struct { const step *s; float *const *at; } work;

static void do_step(void *arg, int64_t begin, int64_t end)
{
    const work *w = arg;
    const float *a = w->at[w->s->a], *b = w->at[w->s->b];
    float *to = w->at[w->s->to];
    for (int64_t i = begin; i < end; i++)
        to[i] = w->s->op == NEG ? -a[i] : w->s->op == ADD ? a[i] + w->s->alpha * b[i] : a[i] * b[i];
}

static int is_contiguous(const bp_view *v, int64_t *n)
{
    *n = 1;
    for (uint32_t d = v->rank; d-- > 0; *n *= v->sizes[d].value)
        if (v->sizes[d].value != 1 && v->strides[d].value != *n)
            return 0;
    return 1;
}

static bp_status run_steps(const program *p, bp_run *r, float **at, float *scratch, int64_t n)
{
    for (uint32_t i = 0; i < p->nsteps; i++) {
        const step *s = &p->steps[i];
        at[s->to] = scratch + (size_t)n * i;
        work w = {s, at};
        bp_status st = bp_parallel_for(p->host, n, 1024, do_step, &w);
        if (st != BP_OK || (st = bp_run_poll(r)) != BP_OK)
            return bp_run_fail(r, st, "stopped at step %u", (unsigned)i);
    }
    return BP_OK;
}

/* The first output is made by the host, the others are handed over as views. */
static bp_status give(const program *p, bp_run *r, const bp_view *like, float **at, int64_t n)
{
    bp_view v;
    bp_status st = BP_OK;
    for (uint32_t i = 0; st == BP_OK && i < p->nout; i++) {
        if (i == 0) {
            st = bp_run_empty(r, 0, &v);
            if (st == BP_OK)
                memcpy(v.data, at[p->out[0]], (size_t)n * sizeof(float));
        } else {
            v = *like;
            v.flags = 0;
            v.data = at[p->out[i]];
            st = bp_run_output(r, i, &v);
        }
    }
    return st == BP_OK ? st : bp_run_fail(r, st, "an output was refused");
}

static bp_status run(void *state, bp_run *r)
{
    const program *p = state;
    bp_view v, like = {0};
    float *at[MAX_REGISTERS] = {0};
    int64_t n = 0, m;
    int32_t owned = 7;
    for (uint32_t i = 0; i < p->nin; i++) {
        bp_status st = i ? bp_run_borrow(r, i, &v) : bp_run_take(r, 0, &v, &owned);
        if (st != BP_OK || (owned != 0 && owned != 1))
            return bp_run_fail(r, BP_INTERNAL, "input %u: %d, owned %d", (unsigned)i, (int)st, (int)owned);
        if (!is_contiguous(&v, i ? &m : &n))
            return bp_run_compiled(r, p->forward);
        like = v;
        at[i] = v.data;
    }
    float *scratch = bp_alloc(p->host, (size_t)n * p->nsteps * sizeof(float), 64);
    if (!scratch)
        return bp_run_fail(r, BP_RESOURCE_EXHAUSTED, "no memory");
    bp_status st = run_steps(p, r, at, scratch, n);
    if (st == BP_OK)
        st = give(p, r, &like, at, n);
    bp_free(p->host, scratch);
    return st;
}

static void destroy(void *state)
{
    program *p = state;
    const bp_host *host = p->host;
    bp_compiled_unref(p->forward);
    bp_gm_unref(p->gm);
    bp_log_message(host, BP_LOG_DEBUG, "golden destroy");
    bp_free(host, p);
}

static size_t describe(void *state, char *text, size_t cap)
{
    const program *p = state;
    int n = snprintf(text, cap, "%u steps", (unsigned)p->nsteps);
    return n < 0 ? 0 : (size_t)n;
}

/* -- compiling ----------------------------------------------------------------------------------------------------- */

/* Writes down what the graph is, in the words of the host. */
static void look(bp_graph_module *gm, const bp_inputs *inputs)
{
    char text[900];
    size_t at = 0;
    uint32_t users[4];
    for (uint32_t i = 0; i < bp_node_count(gm) && at < sizeof text - 100; i++) {
        uint32_t n = bp_node_at(gm, i);
        at += (size_t)snprintf(text + at, 100, " %d:%.30s:%u", (int)bp_node_op(gm, n), bp_node_name(gm, n),
                               (unsigned)bp_node_users(gm, n, users, 4));
    }
    for (uint32_t i = 0; i < bp_input_count(inputs) && at < sizeof text - 100; i++) {
        bp_view v;
        if (bp_input_view(inputs, i, &v) == BP_OK)
            at += (size_t)snprintf(text + at, 100, " in %.30s role %d rank %u%s", bp_input_name(inputs, i),
                                   (int)bp_input_role(inputs, i), (unsigned)v.rank, v.data ? " with data" : "");
    }
    bp_log_message(*(const bp_host *const *)gm, BP_LOG_INFO, "golden compile:%s%s", text,
                   bp_gm_code_id(gm) ? " of a callable" : "");
}

static program *new_program(bp_graph_module *gm)
{
    const bp_host *host = *(const bp_host *const *)gm;
    program *p = bp_alloc(host, sizeof *p, 64);
    if (p) {
        memset(p, 0, sizeof *p);
        p->host = host;
    }
    return p;
}

static uint32_t register_of(const uint32_t *nodes, uint32_t n, uint32_t node)
{
    uint32_t i = 0;
    while (i < n && nodes[i] != node)
        i++;
    return i;
}

/* NULL: all is lowered; else why not. */
static const char *lower(program *p, bp_graph_module *gm, uint32_t *nodes, uint32_t *at_node)
{
    bp_value a;
    for (uint32_t i = 0; i < bp_node_count(gm); i++) {
        uint32_t n = *at_node = bp_node_at(gm, i);
        step *s = &p->steps[p->nsteps];
        bp_view v;
        switch (bp_node_op(gm, n)) {
        case BP_NODE_PLACEHOLDER: nodes[p->nregisters++] = n; p->nin++; break;
        case BP_NODE_GET_ATTR:
            if (bp_constant_value(gm, n, &v) != BP_OK || !v.data)
                return "a constant without data";
            return "no constants";
        case BP_NODE_CALL_FUNCTION:
            if (p->nsteps == MAX_STEPS || p->nregisters >= MAX_REGISTERS)
                return "too many steps";
            s->op = op_of(bp_node_target(gm, n));
            s->alpha = 1;
            if (bp_node_arg(gm, n, "self", &a) != BP_OK || a.kind != BP_VALUE_NODE)
                return "no tensor";
            s->a = s->b = register_of(nodes, p->nregisters, a.v.node);
            if (s->op != NEG && bp_node_arg(gm, n, "other", &a) == BP_OK && a.kind == BP_VALUE_NODE)
                s->b = register_of(nodes, p->nregisters, a.v.node);
            if (s->op == ADD && bp_node_arg(gm, n, "alpha", &a) == BP_OK && a.kind == BP_VALUE_INT)
                s->alpha = (float)a.v.dim.value;
            s->to = p->nregisters;
            nodes[p->nregisters++] = n;
            p->nsteps++;
            break;
        case BP_NODE_OUTPUT:
            if (bp_node_arg(gm, n, "0", &a) != BP_OK || a.kind != BP_VALUE_LIST || a.count > 8 || !a.count)
                return "its outputs";
            for (p->nout = 0; p->nout < a.count; p->nout++) {
                if (a.v.items[p->nout].kind != BP_VALUE_NODE)
                    return "an output that is no tensor";
                p->out[p->nout] = register_of(nodes, p->nregisters, a.v.items[p->nout].v.node);
            }
            break;
        default: return "a kind of node that is not known";
        }
    }
    return p->nin ? NULL : "no inputs";
}

static bp_compiled *delegate(bp_graph_module *gm, const bp_inputs *inputs)
{
    static const char *const names[1] = {"eager"};
    if (bp_lookup_backend(gm, "golden-absent") == BP_OK || bp_lookup_backend(gm, names[0]) != BP_OK)
        return bp_fail(gm, BP_INTERNAL, "look-up is wrong");
    return bp_compile_with(gm, inputs, names, 1);
}

static bp_compiled *build(bp_graph_module *gm)
{
    uint32_t nodes[MAX_REGISTERS], node = 0;
    program *p = new_program(gm);
    if (!p)
        return bp_fail(gm, BP_RESOURCE_EXHAUSTED, "no memory");
    const char *why = lower(p, gm, nodes, &node);
    if (why) {
        bp_free(p->host, p);
        return bp_decline(gm, node, "%s", why);
    }
    p->gm = bp_gm_ref(gm);
    p->forward = bp_forward(gm);
    bp_compiled *k = bp_compiled_new(gm, run, destroy, p);
    bp_compiled_unref(bp_compiled_ref(k));
    return k;
}

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    const char *act = bp_option(gm, "act");
    look(gm, inputs);
    if (!act)
        act = "";
    if (strcmp(act, "decline") == 0)
        return bp_decline(gm, bp_node_at(gm, 0), "told to decline");
    if (strcmp(act, "fail") == 0)
        return bp_fail(gm, BP_UNAVAILABLE, "told to fail, %d", 42);
    if (strcmp(act, "refuse") == 0)
        return bp_refuse(gm, "told to refuse");
    if (strcmp(act, "delegate") == 0)
        return delegate(gm, inputs);
    if (strcmp(act, "forward") == 0)
        return bp_forward(gm);
    if (strcmp(act, "print") == 0 && (bp_print_tabular(gm, bp_sink(gm)) || bp_print_readable(gm, bp_sink(gm))))
        return bp_fail(gm, BP_INTERNAL, "printing failed");
    if (bp_propagate(gm, inputs) != BP_OK)
        return NULL;
    return build(gm);
}

static const char *const whole[] = {"aten.softmax.int", NULL};
static const bp_option_row options[] = {{"act", "string", "", "decline, fail, refuse, delegate, forward or print"},
                                        {"level", "int", "1", "how hard it tries"},
                                        {NULL, NULL, NULL, NULL}};
BP_EXPORT const bp_backend_info backend_info = {.size = sizeof(bp_backend_info),
                                                .flags = BP_CONCURRENT_COMPILE | BP_CONCURRENT_RUN,
                                                .version = "1.0",
                                                .build_id = "golden-1",
                                                .vendor = "Backplane",
                                                .graph = BP_GRAPH_FUNCTIONAL,
                                                .min_alignment = 64,
                                                .supports = supports,
                                                .whole_ops = whole,
                                                .options = options,
                                                .describe = describe};
