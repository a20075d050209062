/* The prototypes of derivatives that are written in C. */
#ifndef HOST_GRAD_ROWS_H
#define HOST_GRAD_ROWS_H
#include "host/grad/derivative.h"

#define GRAD(id, text)
#define GRAD_FN(id, function, reads) bp_status function(bp_ctx *c, grad_call *g);
#define GRAD_ZERO(id)
#define GRAD_NONE(id, reason)
#include "host/grad/rows.def"
#undef GRAD
#undef GRAD_FN
#undef GRAD_ZERO
#undef GRAD_NONE
#endif
