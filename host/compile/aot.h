/* Compiled segments whose gradients are asked for.
 *
 *     joint      the segment's graph, forward and backward, traced on fakes (host/grad)
 *     partition  a forward graph, compiled at once, and a backward graph, compiled at its first use
 *     run        the forward program; its results get a node of the tape that holds what the backward reads
 *
 * Each of both programs goes down the callable's chain on its own. On the host's plain eager backend, and where a graph
 * cannot be differentiated ahead of time, the segment's operators run under the tape instead. A graph with symbols is
 * compiled for what its sizes were asked meanwhile; sizes that answer otherwise are compiled for once more. An aot is
 * immutable but for that and its backward programs, counted, and may be run from several threads. */
#ifndef HOST_COMPILE_AOT_H
#define HOST_COMPILE_AOT_H
#include "host/backend/program.h"
#include "host/grad/joint.h"

typedef struct aot aot;

/* Options of the config, for one compile. */
partition_options aot_config(bp_runtime *rt);
/* Compiles gm, whose placeholder i requires grad where needs[i], down b's chain. program: what runs the forward, one
 * reference; training: how, one reference. */
bp_status aot_compile(bp_ctx *c, bp_graph_module *gm, backend *b, const uint8_t *needs, program **out, aot **training);
void aot_unref(aot *a);
/* As program_run; results have the history that eager execution gives them. written: one an input: the call will write
 * its memory, so what the backward reads of it is copied; NULL: none. FAILED_PRECONDITION: an input requires grad
 * otherwise than was compiled for. */
bp_status aot_run(bp_ctx *c, aot *a, program_io *io, const uint8_t *written);

/* t was given by an aot_run, and `written` is about to be written: what t's backward reads of that memory is copied
 * now. */
bp_status aot_keep_saved(bp_ctx *c, const bp_tensor *t, const bp_tensor *written);

/* How often it was compiled, for other sizes; and of the i-th, 0 first: the two graphs, borrowed (NULL: its operators
 * run under the tape); the backward's program (NULL: not used yet); what its sizes must satisfy ("": nothing). */
uint32_t aot_count(const aot *a);
const bp_graph_module *aot_forward(const aot *a, uint32_t i);
const bp_graph_module *aot_backward(const aot *a, uint32_t i);
const program *aot_backward_program(const aot *a, uint32_t i);
void aot_print_conditions(const aot *a, uint32_t i, buf *out);
#endif
