/* Names of nodes, as torch.fx gives them (its _Namespace). */
#ifndef HOST_GRAPH_NAMER_H
#define HOST_GRAPH_NAMER_H
#include "host/graph/graph.h"

/* A free name made from a wish ("fc.weight" gives "fc_weight"); a reserved or taken one gets "_1", "_2" ... The name
 * lies in g's arena and is taken from now on. NULL: out of memory. */
const char *namer_pick(graph *g, const char *wish);
/* The same from the target of a call: "aten.add.Scalar" gives "add", "<built-in function getitem>" "getitem". */
const char *namer_pick_target(graph *g, const char *target);
/* This very name; NULL when it is not free, or memory is used up. */
const char *namer_claim(graph *g, const char *name);
bool namer_is_free(const graph *g, const char *name); /* an identifier that is not taken */
bool namer_is_word(char ch);              /* may stand inside an identifier */
bool namer_is_reserved(const char *name);
bool namer_is_identifier(const char *name); /* [A-Za-z_][A-Za-z0-9_]* */
#endif
