/* Backends of the harness, by the mode of a program:
 *   exact, impure  the graph itself
 *   another        own code, whose float sums round otherwise than the reference's
 *   elide          own code, whose clone gives its input's buffer
 *   fail           a chain of two links that fail at a compile and at a run, then eager
 *   alone          the first of these, and nobody answers for it: its run says that the data are at fault
 * Each counts its compiles and keeps their graphs as texts, to see that none is compiled twice. */
#ifndef TESTS_MODEL_LINKS_H
#define TESTS_MODEL_LINKS_H
#include "sdk/base/map.h"
#include "tests/model/text.h"
#include <backplane/plugin.h>
#include <stdatomic.h>

typedef struct {
    const program *p;
    buf shown;                    /* what bp_sink writes to */
    atomic_uint compiles[MAX_LINKS], runs[MAX_LINKS], failed_compiles, failed_runs;
    atomic_uint backwards;        /* compiles of graphs that are a backward */
    bool threads;                 /* several use it at once: graphs are counted, and not kept */
    bool dynamic;                 /* sizes are not read, so that they stay symbols */
    uint32_t symbolic, flows;     /* then: graphs with symbols, graphs with control flow in them */
    char foreign_op[96];
    uint32_t foreign;             /* graphs with an operator that own code lacks: handed to bp_forward */
    map texts[MAX_LINKS];         /* graph -> how often it was compiled */
    char twice[4096];             /* a graph that was compiled a second time, or "" */
} links;

/* Makes l the one that the backends below work for, and registers them in c's runtime. */
bp_status links_begin(links *l, const program *p, bp_ctx *c);
void links_end(links *l);
bp_compile_fn links_backend(const program *p);

/* own.c. The graph as a list of steps; NULL with *why: an operator that it lacks. plain: sums as they come. */
typedef struct own own;
own *own_new(bp_graph_module *gm, bool plain, bool elide, const char **why);
void own_destroy(void *o);
bp_status own_run(void *o, bp_run *r);
#endif
