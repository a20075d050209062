/* History of tensors that other rooms make: views, copies and writes that no operator has made.
 *
 * A compiled call commits what it computed: outputs that are views of inputs, copies where values must not share
 * memory, writes to inputs. Each gets the history that eager execution would have given it. */
#ifndef HOST_GRAD_SHARE_H
#define HOST_GRAD_SHARE_H
#include "host/grad/tape.h"

enum tape_view_kind { TAPE_VIEW_PLAIN, TAPE_VIEW_WITHOUT_GRAD, TAPE_VIEW_DETACHED, TAPE_VIEW_OF_MANY };
/* t, which was just made over the memory of `of`, becomes a view of it, as an operator makes one under grad mode,
 * without it, as detach, or one of several. requires: it requires grad, and `of` does. */
bp_status tape_share_view(bp_ctx *c, bp_tensor *t, bp_tensor *of, enum tape_view_kind kind, bool requires);
/* A view whose base was written since it was last used has another history: t gets it, and its marks. */
bp_status tape_share_refresh(bp_ctx *c, bp_tensor *t);
/* t, a new object over the same memory, takes the place of `from` in its history. */
bp_status tape_share_history(bp_ctx *c, bp_tensor *t, bp_tensor *from);
/* t, which was just made, is a copy of `from`, which requires grad. */
bp_status tape_share_copy(bp_ctx *c, bp_tensor *t, bp_tensor *from);

/* Whether eager execution writes t under grad mode: no view of a leaf that requires grad, none that was made without
 * grad mode, none of several that an operator gave together. */
bool tape_may_write(const bp_tensor *t);
/* A write of `value`, which requires grad, to the whole of `to`; of a view it is its base's write. begin may fail, and
 * changes nothing; end, once the data and the version have changed, cannot. Writes end in the order in which they
 * began; one that does not come to its end is dropped. */
typedef struct { tape_node *node; uint32_t index; } tape_write;
bp_status tape_write_begin(bp_ctx *c, bp_tensor *to, bp_tensor *value, tape_write *w);
void tape_write_end(bp_ctx *c, bp_tensor *to, tape_write *w);
void tape_write_drop(tape_write *w);
#endif
