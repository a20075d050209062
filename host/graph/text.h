/* What the printer and the parser of canonical text must agree on. */
#ifndef HOST_GRAPH_TEXT_H
#define HOST_GRAPH_TEXT_H
#include "host/graph/graph.h"

const char *text_role(int32_t role);        /* "user", "parameter" ... */
bool text_is_plain_name(const char *name);  /* may stand without quotes as the name of a graph */
void text_quote(buf *out, const char *s);   /* in double quotes, with C escapes */
bool text_is_contiguous(uint32_t rank, const bp_dim *sizes, const bp_dim *strides); /* strides need not be written */
#endif
