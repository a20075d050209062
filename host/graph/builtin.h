/* Python's functions on numbers, by the names that graphs use: "<built-in function add>" is add. */
#ifndef HOST_GRAPH_BUILTIN_H
#define HOST_GRAPH_BUILTIN_H
#include "host/op/op.h"

bool builtin_is_number(str name);
/* Calls one of two numbers; an error says what is wrong with them. */
bp_status builtin_call(bp_ctx *c, str name, const bp_value *args, uint32_t n, bp_value *out);
/* The type of its result, where an argument is a float or none is. */
bp_dtype builtin_type(str name, bool floats);
#endif
