/* How operators that join tensors see each of them: cat as it is, the others with dimensions of size 1 put in. Internal
 * to host/op; the rule and the kernel of a join share it. */
#ifndef HOST_OP_JOIN_PIECE_H
#define HOST_OP_JOIN_PIECE_H
#include "host/op/op.h"

enum join_form { JOIN_CAT, JOIN_STACK, JOIN_H, JOIN_V, JOIN_D, JOIN_COLUMN };
typedef struct { enum join_form form; uint32_t dim; } join; /* dim: along which the pieces lie */

/* The join that a call of this operator makes; list argument 0 holds the tensors. */
bp_status join_of(bp_ctx *c, const op_row *op, const bp_value *args, join *out);
/* t as a piece: sizes and strides are written, m's arrays must hold t's rank and 2 more. */
void join_piece(const join *j, const bp_tensor *t, tensor_meta *m);
/* cat passes over 1-d tensors without elements, whatever the others' ranks. */
bool join_skips(const join *j, const bp_tensor *t);
#endif
