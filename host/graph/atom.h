/* Values of canonical text that name no node and are no list: None, True, 1e-05, "text", dtype(f32), device(cpu) ... */
#ifndef HOST_GRAPH_ATOM_H
#define HOST_GRAPH_ATOM_H
#include "host/graph/lex.h"
#include "host/tensor/dtype.h"

/* Strings are a's. INVALID_ARGUMENT says where, what was expected and what is there. */
bp_status atom_read(lexer *x, arena *a, bp_value *out);
bp_status atom_dtype(lexer *x, bp_dtype *out);   /* "f32" */
bp_status atom_device(lexer *x, bp_device *out); /* "cpu", "cuda:1" */
#endif
