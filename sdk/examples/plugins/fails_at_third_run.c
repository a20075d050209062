/* A backend whose third run fails: the second link of the demo's chain. It interprets the graph until then. */
#include <backplane/plugin.h>
#include <stdlib.h>

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs);

typedef struct { bp_compiled *inner; int runs; } counted;

static bp_status run(void *state, bp_run *r)
{
    counted *k = state;
    if (++k->runs == 3)
        return bp_run_fail(r, BP_UNAVAILABLE, "the device was lost in run %d (this plugin always loses it)", k->runs);
    return bp_run_compiled(r, k->inner);
}

static void destroy(void *state)
{
    counted *k = state;
    bp_compiled_unref(k->inner);
    free(k);
}

bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    counted *k = calloc(1, sizeof *k);
    (void)inputs;
    if (!k)
        return bp_fail(gm, BP_RESOURCE_EXHAUSTED, "out of memory");
    k->inner = bp_forward(gm);
    bp_compiled *made = k->inner ? bp_compiled_new(gm, run, destroy, k) : NULL;
    if (!made) {
        if (k->inner)
            bp_compiled_unref(k->inner);
        free(k);
    }
    return made;
}
