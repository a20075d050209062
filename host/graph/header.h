/* Symbols in canonical text: the lines that declare them, and expressions over them. */
#ifndef HOST_GRAPH_HEADER_H
#define HOST_GRAPH_HEADER_H
#include "host/graph/lex.h"
#include "host/graph/text.h"

/* "symbol s0 in [2, inf] hint 5", "fact Mod(s0, 4) == 0" ... as many as there are; g has an environment then. */
bp_status header_read(lexer *x, arena *tmp, graph *g);
/* A size, stride or number up to a ',', ';', ')' or ']': an integer of at least `least`, or an expression. */
bp_status header_dim(lexer *x, graph *g, const char *what, int64_t least, bp_dim *out);
bool header_is_expression(lexer *x, const graph *g); /* what is ahead names a symbol outside of quotes */
#endif
