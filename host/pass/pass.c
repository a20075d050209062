/* Pipelines of passes. */
#include "host/pass/pass.h"
#include "host/base/env.h"
#include "host/base/log.h"
#include <string.h>

static bool verifies(void)
{
    const char *what = env_get(ENV_BACKPLANE_VERIFY);
    return what && strcmp(what, "passes") == 0;
}

typedef struct { bp_ctx *c; bp_graph_module *gm; pass_fn fn; void *arg; } inside;

static bp_status run_inside(void *arg, const char *name, bp_graph_module *sub)
{
    inside *i = arg;
    sub = gm_own_sub(i->c, i->gm, name);
    return sub ? i->fn(i->c, sub, i->arg) : i->c->diag.code;
}

bp_status pass_in_subs(bp_ctx *c, bp_graph_module *gm, pass_fn fn, void *arg)
{
    inside i = {c, gm, fn, arg};
    return gm_each_sub(gm, run_inside, &i);
}

bp_status passes_run(bp_ctx *c, bp_graph_module *gm, const pass *passes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t before = gm->g.live;
        sym_scope outer = sym_push(gm->g.syms, c);
        bp_status s = passes[i].fn(c, gm, passes[i].arg);
        sym_pop(outer);
        if (!s && verifies())
            s = graph_verify(c, gm);
        if (s) {
            diag_while(&c->diag, "pass \"%s\" on graph \"%s\"", passes[i].name, gm->name);
            return s;
        }
        log_line(c->rt, LOG_aot, "pass \"%s\" on graph \"%s\": %u nodes, %u before", passes[i].name, gm->name,
                 gm->g.live,
                 before);
    }
    return BP_OK;
}
