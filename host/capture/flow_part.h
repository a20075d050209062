/* Control flow in its two ways: recorded as one call of an operator over graphs, and run as ordinary code. */
#ifndef HOST_CAPTURE_FLOW_PART_H
#define HOST_CAPTURE_FLOW_PART_H
#include "host/capture/sub.h"

/* One function of a call, with the name that messages give it. */
typedef struct { const char *name; bp_branch_fn fn; uint32_t nouts; } flow_fn;

/* A call: tensors are the caller's. in: those of all lists, one list behind the other. */
typedef struct {
    bp_ctx *c;
    const char *op;           /* "bp_cond" */
    void *user;
    bp_tensor *pred;          /* of cond */
    flow_fn fn[2];
    bp_tensor *const *in[2];
    uint32_t n[2], nlists;    /* tensors in each list */
    bp_tensor **out;          /* owned by the scope; NULL before */
    uint32_t nout;
} flow_call;

/* Records it in the trace that runs on its context. */
bp_status flow_record(trace *t, uint32_t row, const flow_call *f);
/* Runs it. */
bp_status flow_cond(const flow_call *f);
bp_status flow_while_loop(const flow_call *f);
bp_status flow_map(const flow_call *f);
bp_status flow_scan(const flow_call *f);
#endif
