/* What the printer and the parser of canonical text must agree on. */
#ifndef HOST_GRAPH_TEXT_H
#define HOST_GRAPH_TEXT_H
#include "host/graph/graph.h"

const char *text_role(int32_t role);        /* "user", "parameter" ... */
bool text_is_plain_name(const char *name);  /* may stand without quotes as the name of a graph */
void text_quote(buf *out, const char *s);   /* in double quotes, with C escapes */
/* The strides that need not be written: products of the sizes behind, where a constant 0 counts as 1. They are of the
 * current environment, as are the sizes. False: a product overflows. */
bool text_strides(bp_ctx *c, uint32_t rank, const bp_dim *sizes, bp_dim *strides);
extern const char *const text_origins[3]; /* of a fact, by enum sym_origin */
#endif
