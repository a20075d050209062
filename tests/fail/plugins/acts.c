/* Breaks a rule of plugins that its option "act" names, a way each. */
#include <backplane/plugin.h>
#include <stdlib.h>
#include <string.h>

typedef struct { const char *act; bp_compiled *forward; int runs; } state_of;

static int acts(const void *s, const char *act)
{
    return strcmp(((const state_of *)s)->act, act) == 0;
}

static bp_status run(void *state, bp_run *r)
{
    state_of *s = state;
    bp_view v;
    int is_later = acts(s, "fail later") && ++s->runs == 2;
    if (acts(s, "spoil") || acts(s, "spoil and fail") || is_later) {
        bp_run_borrow(r, 0, &v);
        for (int i = 0; i < 3; i++)
            ((float *)v.data)[i] = 1000;
    }
    if (acts(s, "spoil and fail") || is_later)
        return bp_run_fail(r, BP_UNAVAILABLE, "told to fail");
    if (acts(s, "run itself"))
        return bp_run_compiled(r, s->forward);
    bp_status st = bp_run_compiled(r, s->forward);
    if (acts(s, "release twice"))
        bp_compiled_unref(s->forward);
    return st;
}

static void destroy(void *state)
{
    state_of *s = state;
    if (!acts(s, "run itself"))
        bp_compiled_unref(s->forward);
    free(s);
}

static int32_t supports(const bp_graph_module *gm, uint32_t node, char *why, size_t cap)
{
    const char *answer = bp_option(gm, "supports");
    (void)node;
    snprintf(why, cap, "so be it");
    return answer ? atoi(answer) : 1;
}

static bp_compiled *make(bp_graph_module *gm, const char *act)
{
    state_of *s = calloc(1, sizeof *s);
    s->act = act;
    s->forward = strcmp(act, "run itself") ? bp_forward(gm) : NULL;
    bp_compiled *k = bp_compiled_new(gm, run, destroy, s);
    if (!s->forward)
        s->forward = k;
    return k;
}

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    static const char *const known[] = {"spoil", "spoil and fail", "fail later", "run itself", "release twice"};
    static char LONG[70000];
    const bp_host *host = *(const bp_host *const *)gm;
    const char *act = bp_option(gm, "act");
    bp_view v;
    (void)inputs;
    act = act ? act : "";
    if (strcmp(act, "escape") == 0) {
        bp_log_message(host, BP_LOG_WARN, "first\nbackplane: error: \033[2J\xff\xc2\x9b caf\xc3\xa9");
        return bp_fail(gm, BP_INTERNAL, "clears \033[2J the\ttab\nand the line");
    }
    if (strcmp(act, "long") == 0) {
        memset(LONG, 'x', sizeof LONG);
        bp_log_text(host, BP_LOG_WARN, LONG, sizeof LONG);
        bp_fail_text(gm, BP_INTERNAL, LONG, 3000);
        return NULL;
    }
    if (strcmp(act, "constant") == 0)
        for (uint32_t i = 0; i < bp_node_count(gm); i++)
            if (bp_node_op(gm, bp_node_at(gm, i)) == BP_NODE_GET_ATTR &&
                bp_constant_value(gm, bp_node_at(gm, i), &v) == BP_OK)
                ((float *)v.data)[1] = 7;
    if (strcmp(act, "constant") == 0)
        return bp_decline(gm, 0, "not today");
    if (strcmp(act, "released") == 0) {
        bp_compiled *k = bp_forward(gm);
        bp_compiled_unref(k);
        return k;
    }
    if (strcmp(act, "graph") == 0) {
        bp_gm_unref(gm);
        return bp_forward(gm);
    }
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(act, known[i]) == 0)
            return make(gm, known[i]);
    return bp_forward(gm);
}

BP_EXPORT const bp_backend_info backend_info = {
    .size = sizeof(bp_backend_info), .version = "1\033[0m", .supports = supports};
