/* Symbols of a graph while it runs, and pieces that its readers and writers share. */
#ifndef HOST_GRAPH_SYMBOLS_H
#define HOST_GRAPH_SYMBOLS_H
#include "host/graph/graph.h"

/* Makes what node n shows the source of symbols that have none. */
void symbols_claim(const graph *g, node_id n);
tensor_meta symint_meta(void); /* of a placeholder that carries a symbol: i64, no dimensions, on the CPU */

/* What the symbols of a graph are in one run: numbers, or dims of the current environment. */
typedef struct {
    bp_ctx *c;
    const bp_graph_module *gm;
    sym_env *syms;    /* the graph's; NULL: nothing below is used */
    uint32_t n, nfacts;
    bp_dim *is;       /* of each symbol; GRAPH_UNMAPPED: not known yet */
    int64_t *values;  /* the same, where they are numbers */
    bool *makes;      /* by node id: an unbacked symbol comes from it */
    bool *checked;    /* of each fact */
    bool itself;      /* each symbol is itself: the graph's environment is the current one */
    bool symbolic;    /* some symbol is no number */
} binding;

/* Binds what the placeholders show, and checks asserted facts over that. On failure nothing needs to be released. */
bp_status binding_init(binding *b, bp_ctx *c, const bp_graph_module *gm, bp_tensor *const *inputs, uint32_t ninputs);
void binding_fini(binding *b);
/* What d, a dim of the graph, is in this run. {0} and an error: a symbol of it is not known. */
bp_dim binding_eval(const binding *b, bp_dim d);
/* Whether t fits the type of a placeholder that holds symbols; an error names both, the dimension and the sizes. */
bp_status binding_check_input(const binding *b, node_id n, const bp_tensor *t);
/* Behind node n, which makes symbols: binds them, and checks what is asserted of them.
 * number: NULL, or what it gave. */
bp_status binding_learn(binding *b, node_id n, bp_tensor *const *results, uint32_t nresults, const bp_dim *number);
#endif
