/* What the generated functions of aten_calls.c are made of: arguments packed into values, a dispatch, a result that
 * belongs to the scope. An unset number, list, string or enumeration becomes the schema's default. */
#ifndef HOST_OP_ATEN_H
#define HOST_OP_ATEN_H
#include "host/op/op.h"
#include <backplane/args.h>

typedef struct {
    bp_ctx *c;
    const op_row *op;
    arena_mark mark; /* the scratch arena goes back to it when the call ends */
} aten_call;

aten_call aten_begin(bp_ctx *c, uint32_t row);

/* i: the argument's index. A NULL tensor is None for an optional argument, and an error in dispatch for another. */
bp_value pack_tensor(aten_call *k, uint32_t i, bp_tensor *t);
bp_value pack_tensors(aten_call *k, uint32_t i, bp_tensors t);
bp_value pack_scalar(aten_call *k, uint32_t i, bp_scalar s);
bp_value pack_scalars(aten_call *k, uint32_t i, bp_scalars s);
bp_value pack_int(aten_call *k, uint32_t i, int64_t v);
bp_value pack_dim(aten_call *k, uint32_t i, bp_dim d);
bp_value pack_float(aten_call *k, uint32_t i, double v);
bp_value pack_bool(aten_call *k, uint32_t i, int v);
bp_value pack_dims(aten_call *k, uint32_t i, bp_dims d);
bp_value pack_floats(aten_call *k, uint32_t i, bp_floats f);
bp_value pack_str(aten_call *k, uint32_t i, const char *s);
bp_value pack_dtype(aten_call *k, uint32_t i, bp_dtype d);
bp_value pack_layout(aten_call *k, uint32_t i, int32_t layout);
bp_value pack_device(aten_call *k, uint32_t i, bp_device d);
bp_value pack_format(aten_call *k, uint32_t i, int32_t format);

/* Each dispatches, ends the call and gives the result; NULL, zeros or a code after an error. */
bp_tensor *aten_tensor(aten_call *k, const bp_value *args);
void aten_tensors(aten_call *k, const bp_value *args, uint32_t n, bp_tensor **out);
bp_tensors aten_list(aten_call *k, const bp_value *args);
bp_scalar aten_scalar(aten_call *k, const bp_value *args);
bp_dim aten_dim(aten_call *k, const bp_value *args);
double aten_float(aten_call *k, const bp_value *args);
int aten_bool(aten_call *k, const bp_value *args);
bp_status aten_status(aten_call *k, const bp_value *args);
#endif
