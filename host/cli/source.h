/* What run, why and explain work on: the text of a graph, or a registered example. */
#ifndef HOST_CLI_SOURCE_H
#define HOST_CLI_SOURCE_H
#include "host/cli/cli.h"
#include "host/graph/graph.h"
#include "sdk/examples/examples.h"

typedef struct {
    const example *example;    /* NULL: a text */
    bp_graph_module *gm;       /* of a text: checked, all types known; of an example: its inputs alone */
    bp_module *weights;        /* --weights, or NULL */
    VEC(bp_tensor *) inputs;   /* owned; one a placeholder of gm */
} source;

/* Options that all who take a source share; a verb's own table begins with them. */
#define SOURCE_OPTIONS                                                                              \
    {"--input", "X.npy", "an input, in order, once each (default: random numbers)"},                \
    {"--seed", "N", "of the random inputs (default: 0)"},                                           \
    {"--size", "NAME=N", "a symbol's value for random inputs of a text (default: its hint)"},       \
    {"--weights", "FILE", "safetensors: the module of an example that has one"},                        \
    {"--backend", "NAME", "compile through this backend (default: the config's)"}

/* A file that exists or a name that ends with ".bpg" is a text; else it must be an example. 0, or an exit code after a
 * complaint. */
int source_open(cli *k, const char *name, source *s);
/* Makes the inputs of one more call: the files again, or other random numbers. 0, or an exit code. */
int source_make_inputs(cli *k, source *s, uint64_t call);
void source_fini(source *s);
/* What bp_compile wants: an example's callable. NULL: the context says why. */
bp_callable *source_compile(cli *k, const source *s);
bp_status source_call(cli *k, const source *s, bp_callable *g, bp_outputs *out);
#endif
