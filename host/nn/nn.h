/* What the files of nn share: options as the caller's header knew them, and parameters by the layer's name. */
#ifndef HOST_NN_NN_H
#define HOST_NN_NN_H
#include "host/base/ctx.h"
#include <backplane/nn.h>
#include <string.h>

/* A copy of a caller's options; what its header did not have, or all of it for NULL, is zero. */
#define NN_OPTIONS(type, o, given, size) \
    type o = {0}; \
    if (given) \
        memcpy(&o, (given), (size) < sizeof o ? (size) : sizeof o)

/* The parameter or buffer "NAME.leaf", for a function. NULL: the context says why. */
bp_tensor *nn_attr(bp_ctx *c, bp_frame *f, bp_module *m, const char *name, const char *leaf);
/* The same, or NULL without an error when the layer has none. */
bp_tensor *nn_attr_unless(bp_ctx *c, int32_t absent, bp_frame *f, bp_module *m, const char *name, const char *leaf);
/* "NAME.leaf" in dst; false: too long, or a NULL (the context says so). */
bool nn_join(bp_ctx *c, const char *name, const char *leaf, char dst[256]);
/* Adds a tensor; NULL: the error that made it so is the answer. */
bp_status nn_add(bp_ctx *c, bp_module *m, const char *name, const char *leaf, bp_tensor *t);
bp_status nn_add_buffer(bp_ctx *c, bp_module *m, const char *name, const char *leaf, bp_tensor *t);
/* New tensors for parameters; bound: uniform between -bound and bound. */
bp_tensor *nn_uniform(bp_ctx *c, bp_dims sizes, bp_dtype dtype, double bound);
bp_tensor *nn_normal(bp_ctx *c, bp_dims sizes, bp_dtype dtype); /* mean 0, deviation 1 */
bp_tensor *nn_full(bp_ctx *c, bp_dims sizes, bp_dtype dtype, double value);
/* Sizes of new layers must be at least 1. */
bool nn_positive(bp_ctx *c, const char *layer, const char *name, const char *what, int64_t value);
#endif
