/* Two blocks of networks, to train: a transformer's encoder layer, and a stack of convolution, batch norm and relu. */
#ifndef BP_TESTS_LIB_BLOCKS_H
#define BP_TESTS_LIB_BLOCKS_H
#include "host/grad/joint.h"
#include <backplane/nn.h>

typedef struct { const char *name; bp_module *m; bp_tensor *x; } block;
extern const char *const BLOCK_NAMES[2]; /* "transformer", "conv-bn-relu" */

/* One of the two, of a test's size or of a benchmark's (that of BERT-base; 8 images of 64 channels); its parameters
 * require grad, x does not. owner: the caller (block_fini); x is the scope's. */
bp_status block_make(bp_ctx *c, const char *name, bool large, block *out);
void block_fini(block *b);
/* (x) -> what the block gives, in training; bp_user: the block. */
void block_run(bp_ctx *c, bp_frame *f);
/* The joint graph of that function in core ATen, as a core link gets it. */
bp_status block_joint(bp_ctx *c, block *b, joint *out);
#endif
