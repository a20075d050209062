/* LAPACK, opened at its first use: nothing is linked, and a process without linear algebra never loads it. */
#ifndef HOST_OP_REFERENCE_LAPACK_H
#define HOST_OP_REFERENCE_LAPACK_H
#include "host/op/op.h"

typedef struct {
#define LAPACK_PAIR(name, real, complex, ...) void (*name[2])(__VA_ARGS__);
#define LAPACK_ONE(name, symbol, ...) void (*name)(__VA_ARGS__);
#include "host/op/reference/lapack.def"
#undef LAPACK_PAIR
#undef LAPACK_ONE
} lapack;

/* The process's LAPACK: the library that BACKPLANE_LAPACK names, else liblapack.so.3. NULL: it cannot be opened or
 * lacks a routine; the context has UNIMPLEMENTED with the loader's words and the Debian package. Any thread. */
const lapack *lapack_get(bp_ctx *c, const op_row *op);
#endif
