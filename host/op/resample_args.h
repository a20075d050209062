/* The arguments of an upsampling operator or its gradient, whichever row it is: by name, and by what the name says. */
#ifndef HOST_OP_RESAMPLE_ARGS_H
#define HOST_OP_RESAMPLE_ARGS_H
#include "host/op/op.h"

enum resample_kind { RESAMPLE_NEAREST, RESAMPLE_NEAREST_EXACT, RESAMPLE_LINEAR, RESAMPLE_CUBIC };
/* scale 0: none is given. in and out: sizes of the image that is sampled, and of the other one. */
typedef struct {
    enum resample_kind kind;
    uint32_t nd;
    bool align_corners, backward;
    double scale[3];
    bp_dim batch, channels, in[3], out[3];
} resample_args;

bp_status resample_args_read(bp_ctx *c, const op_row *op, const bp_value *args, resample_args *out);
#endif
