/* What rows of ops.def and higher.def give C: their numbers, and the prototypes of their shape rules and kernels. */
#ifndef HOST_OP_ROWS_H
#define HOST_OP_ROWS_H
#include "host/op/op.h"

enum op_number {
#define OP(id, schema, flags, shape, kernel, doc) ROW_##id,
#define VIEW(id, schema, flags, shape, doc) ROW_##id,
#define INPLACE(id, schema, flags, functional, doc) ROW_##id,
#include "host/op/ops.def"
#include "host/op/higher.def"
#undef OP
#undef VIEW
#undef INPLACE
    ROW_COUNT
};

#define OP(id, schema, flags, rule, body, doc)             \
    bp_status shape_##rule(bp_ctx *c, shape_call *s);      \
    bp_status kernel_##body(bp_ctx *c, op_call *k);
#define VIEW(id, schema, flags, rule, doc) bp_status shape_##rule(bp_ctx *c, shape_call *s);
#define INPLACE(id, schema, flags, functional, doc)
#include "host/op/ops.def"
#include "host/op/higher.def"
#undef OP
#undef VIEW
#undef INPLACE
#endif
