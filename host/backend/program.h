/* Programs: a graph compiled through an ordered list of backends.
 *
 * Each node goes to the first backend of the list that supports it; nodes form convex groups; a group that fails to
 * compile, or to run, moves to its next backend, compiled at that moment. A backend named directly is the list
 * (itself, eager). Groups read their inputs only, so a failed run is answered from intact inputs. What went where
 * and why is kept and printed. A program of a graph with symbols holds variants (variants.h): the run that none
 * of them serves compiles one more. A program is immutable but for that and for fallbacks, counted, and may be run from
 * several threads. */
#ifndef HOST_BACKEND_PROGRAM_H
#define HOST_BACKEND_PROGRAM_H
#include "host/backend/backend.h"

typedef struct program program;

/* Compiles gm, whose placeholders have metas, roles and names; gm's options are the callable's. Fails when no backend
 * takes it: the error lists each link with its own reason. Holds a reference to gm. */
bp_status program_compile(bp_ctx *c, bp_graph_module *gm, backend *b, program **out);
/* Predicates over gm's symbols, as marks give them: the program gets a variant for each when a run first meets it,
 * tried before the general one. Before the first run; once. FAILED_PRECONDITION: the graph has no symbols. */
bp_status program_specialize_on(bp_ctx *c, program *p, const bp_dim *conditions, uint32_t n);
program *program_ref(program *p);
void program_unref(program *p);

typedef struct {
    bp_tensor *const *inputs;  /* one a placeholder, borrowed */
    const uint8_t *owned;      /* 1: this run may overwrite or free the input's data; NULL: none */
    uint32_t ninputs, noutputs;
    bp_tensor **outputs;       /* new references */
    uint64_t rng_base;         /* generator offset at the graph's start */
    const int64_t *symbols;    /* the room's own: what the graph's symbols are; NULL */
} program_io;
/* Runs. OUT_OF_RANGE: the data are at fault and nobody is retired: the caller answers eagerly. Other failures mean that
 * no link could answer. Outputs are untouched on failure. */
bp_status program_run(bp_ctx *c, program *p, program_io *io);

/* node -> backend -> reason, a line a node. */
void program_print_assignment(const program *p, buf *out);
/* Which backends answer at the moment, by commas, in order of groups. */
void program_print_backends(const program *p, buf *out);
/* For which sizes it was compiled, a line a variant; nothing of a graph without symbols. */
void program_print_variants(const program *p, buf *out);
uint32_t program_fallbacks(const program *p); /* groups answered by a later link than their first */
uint32_t program_variants(const program *p);  /* how many were compiled; 1: of a graph without symbols */
bp_graph_module *program_graph(const program *p);
#endif
