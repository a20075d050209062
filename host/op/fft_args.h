/* What a call of the fft family asks for: read once by its shape rule and once by its kernel. */
#ifndef HOST_OP_FFT_ARGS_H
#define HOST_OP_FFT_ARGS_H
#include "host/op/op.h"

/* What the input and the result are: complex both; real to the half that determines the rest; that half to real. */
enum fft_form { FFT_C2C, FFT_R2C, FFT_C2R };

typedef struct {
    enum fft_form form;
    bool forward;
    bool converts;                  /* PyTorch makes a copy in another type first */
    bool whole;                     /* FFT_R2C: the whole of the last dimension, not its half */
    uint32_t n;                     /* dimensions that are transformed; the last one is halved by the real forms */
    uint32_t dims[TENSOR_MAX_RANK];
    bp_dim sizes[TENSOR_MAX_RANK]; /* points of each: the input is cut or filled up with zeros */
    double scale;                  /* of sizes that are numbers */
    bp_dtype in, out;               /* what it is computed from and gives */
} fft_args;

/* Of fft_fft and its kin, by the operator's name. */
bp_status fft_args_read(bp_ctx *c, const op_row *op, const bp_value *args, fft_args *f);
/* Of _fft_c2c, _fft_r2c and _fft_c2r. */
bp_status fft_args_read_inner(bp_ctx *c, const op_row *op, const bp_value *args, fft_args *f);
/* How many of n points determine the rest when the signal is real. */
bp_dim fft_half(bp_ctx *c, bp_dim n);
/* The size of transformed dimension i in the input, and in the result. */
bp_dim fft_size_in(bp_ctx *c, const fft_args *f, uint32_t i);
bp_dim fft_size_out(bp_ctx *c, const fft_args *f, uint32_t i);
#endif
