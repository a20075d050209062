/* Results that are not comparable by value, checked by what defines them: factorizations and random numbers. */
#ifndef HOST_TOOLS_GOLDEN_DEFINED_H
#define HOST_TOOLS_GOLDEN_DEFINED_H
#include "host/op/op.h"
#include "sdk/base/str.h"

/* A call that was made: its arguments before it and its results. */
typedef struct {
    const op_row *op;
    const bp_value *args;
    uint32_t nargs;
    bp_tensor *const *out;
    uint32_t nout;
    buf *why;                 /* what is wrong */
} golden_seen;

/* A mode that checks each call of such an operator; push it around a run of real tensors. */
typedef struct {
    dispatch_mode mode;
    uint32_t checked;         /* calls that were */
    bool wrong;               /* one is not what it must be: why says which and how */
    buf *why;
} golden_definer;
void golden_define_begin(bp_ctx *c, golden_definer *d, buf *why);
void golden_define_end(bp_ctx *c, golden_definer *d);

/* -- golden_factors.c: false, and why, unless the results fit the matrix -- */
/* adjoint: the third result is V^H, not V; vectors: U and V are there. */
bool golden_define_svd(const golden_seen *s, bool adjoint, bool vectors);
bool golden_define_eig(const golden_seen *s, bool hermitian, bool vectors);
bool golden_define_qr(const golden_seen *s, bool has_q);
bool golden_define_geqrf(const golden_seen *s);
#endif
