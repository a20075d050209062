/* Pieces that the printers of this room share. */
#ifndef HOST_GRAPH_PRINT_H
#define HOST_GRAPH_PRINT_H
#include "host/graph/graph.h"

enum print_how {
    PRINT_REPR,  /* as Python's repr shows it: in tables */
    PRINT_SOURCE /* as torch.fx writes source: complex numbers spelled out where repr does not read back */
};
/* A value as Python writes it: None, True, 1, 1e-05, 'text', [1, 2], torch.float32, device(type='cpu'), node names. */
void print_value(buf *out, const graph *g, const bp_value *v, enum print_how how);
/* n values as a tuple: (), (a,), (a, b). */
void print_tuple(buf *out, const graph *g, const bp_value *v, uint32_t n, enum print_how how);
/* A dim of the current environment. */
void print_dim(buf *out, bp_dim d);
/* Makes the environment of g the current one while it is printed; errors (of strides that overflow) are lost. */
typedef struct { bp_ctx c; sym_scope scope; } print_scope;
void print_begin(print_scope *s, const graph *g);
void print_end(print_scope *s);
const char *print_opcode(int32_t op); /* "call_function"; "?" for none */
/* Name of a device kind: "cpu", "cuda", "fake"; "?" for none. */
const char *print_device_kind(int32_t kind);
/* Names of memory formats, torch's ("contiguous_format") and the short one ("contiguous"); "?" for none. */
const char *print_memory_format(int32_t format, bool brief);
#endif
