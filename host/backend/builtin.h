/* The host's own backends. Internal to host/backend. */
#ifndef HOST_BACKEND_BUILTIN_H
#define HOST_BACKEND_BUILTIN_H
#include "host/backend/backend.h"

typedef struct { const char *name, *tags; bp_compile_fn compile; backend_training training; } builtin_row;
extern const builtin_row BUILTINS[];
extern const uint32_t NBUILTINS;
extern const bp_option_row BUILTIN_OPTIONS[]; /* none: each option is an unknown one */

/* The check of eager_debug, a dispatch mode's call: an operator that writes or shares what its schema does not
 * declare is an INTERNAL error. */
bp_status builtin_check_call(bp_ctx *c, dispatch_mode *self, void *op);
#endif
