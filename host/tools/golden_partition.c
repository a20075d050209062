/* Of a graph case that is differentiated ahead of time: the minimal cut saves no more than the default set. */
#include "host/grad/joint.h"
#include "host/tools/golden_case.h"
#include <stdlib.h>

static bool saved_by(bp_ctx *c, const joint *j, int32_t kind, uint64_t *bytes)
{
    partition p;
    partition_options o = PARTITION_DEFAULTS;
    o.kind = kind;
    if (joint_partition(c, j, &o, &p) != BP_OK)
        return false;
    *bytes = p.saved_bytes;
    partition_fini(&p);
    return true;
}

static bool compare(bp_ctx *c, const joint *j, buf *why)
{
    uint64_t whole = 0, cut = 0;
    if (!saved_by(c, j, PARTITION_DEFAULT, &whole) || !saved_by(c, j, PARTITION_MIN_CUT, &cut)) {
        buf_printf(why, "its partitions: %s", c->diag.message);
        return false;
    }
    if (cut > whole)
        buf_printf(why, "the minimal cut saves %llu bytes, and the default set %llu", (unsigned long long)cut,
                   (unsigned long long)whole);
    return cut <= whole;
}

bool golden_cut_saves_less(golden_case *k, const golden_call *call, buf *why)
{
    joint j;
    bp_ctx *c = k->c;
    uint8_t *needs = calloc((size_t)call->ninputs + 1, 1);
    if (!needs)
        return golden_bad(k, "out of memory");
    for (uint32_t i = 0; i < call->ninputs; i++)
        needs[i] = (call->inputs[i]->flags & TENSOR_REQUIRES_GRAD) != 0;
    bool traced = joint_trace(c, call->gm, needs, &j) == BP_OK;
    bool ok = traced ? compare(c, &j, why) : true; /* what is not split has no cut */
    if (traced)
        joint_fini(&j);
    diag_clear(&c->diag);
    free(needs);
    return ok;
}
