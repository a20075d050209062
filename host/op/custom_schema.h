/* Schemas of custom operators: what of the grammar they may use, and the rows that are made of them. */
#ifndef HOST_OP_CUSTOM_SCHEMA_H
#define HOST_OP_CUSTOM_SCHEMA_H
#include "host/op/library.h"

/* Parses and checks; memory from a. text may lack the namespace. NULL: the context says why. */
const schema *custom_parse(bp_ctx *c, arena *a, const char *ns, const char *text);
/* Fills names, the row and, where arguments are written, the twin; copies to a. False: out of memory. */
bool custom_fill(custom *k, arena *a, const schema *s, const char *text, bool conservative);
/* errors: a name that is no identifier; defines: a reserved one too. */
bp_status custom_check_namespace(bp_ctx *c, const char *ns, bool defines);
/* The newest autocast for a device. */
bool custom_find_autocast(const custom *k, int32_t device, custom_reg *out);
/* Switches all kernels of a device; the former state, -1: there is none. */
int custom_switch(custom *k, enum custom_what what, bool on);
#endif
