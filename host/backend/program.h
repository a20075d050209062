/* Programs: a graph compiled through an ordered list of backends.
 *
 * Each node goes to the first backend of the list that supports it; nodes form convex groups; a group that fails to
 * compile, or to run, moves to its next backend, compiled at that moment. A backend named directly is the list
 * (itself, eager). Groups read their inputs only, so a failed run is answered from intact inputs. What went where
 * and why is kept and printed. A program is immutable but for that fallback, counted, and may be run from several
 * threads. */
#ifndef HOST_BACKEND_PROGRAM_H
#define HOST_BACKEND_PROGRAM_H
#include "host/backend/backend.h"

typedef struct program program;

/* Compiles gm, whose placeholders have metas, roles and names; gm's options are the callable's. Fails when no backend
 * takes it: the error lists each link with its own reason. Holds a reference to gm. */
bp_status program_compile(bp_ctx *c, bp_graph_module *gm, backend *b, program **out);
program *program_ref(program *p);
void program_unref(program *p);

typedef struct {
    bp_tensor *const *inputs;  /* one a placeholder, borrowed */
    const uint8_t *owned;      /* 1: this run may overwrite or free the input's data; NULL: none */
    uint32_t ninputs, noutputs;
    bp_tensor **outputs;       /* new references */
    uint64_t rng_base;         /* generator offset at the graph's start */
} program_io;
/* Runs. OUT_OF_RANGE: the data are at fault and nobody is retired: the caller answers eagerly. Other failures mean that
 * no link could answer. Outputs are untouched on failure. */
bp_status program_run(bp_ctx *c, program *p, program_io *io);

/* node -> backend -> reason, a line a node. */
void program_print_assignment(const program *p, buf *out);
/* Which backends answer at the moment, by commas, in order of groups. */
void program_print_backends(const program *p, buf *out);
uint32_t program_fallbacks(const program *p); /* groups answered by a later link than their first */
bp_graph_module *program_graph(const program *p);
#endif
