/* check_capture: before a commit the function is captured again along what the call has observed. What it records must
 * be what was recorded; a function that reads something no guard sees is found here (C5.2). */
#include "host/compile/callable.h"

static bool wants_recheck(call *k, const tree_node *n)
{
    int64_t mode = atomic_load_explicit(k->g->check_capture, memory_order_relaxed);
    if (k->g->rechecks)
        mode = CHECK_CAPTURE_ALWAYS;
    if (mode == CHECK_CAPTURE_OFF || k->captured)
        return false;
    return mode == CHECK_CAPTURE_ALWAYS || !atomic_exchange(&((tree_node *)(uintptr_t)n)->checked, true);
}

step call_recheck(call *k, const tree_node *n)
{
    if (!wants_recheck(k, n))
        return STEP_OK;
    trace *t = call_trace(k, n, NULL);
    if (!t)
        return STEP_FAILED;
    step s = STEP_OK;
    bool at_step = n->term->kind == ITEM_STEP; /* the replay ends at it, and there may be no room behind it */
    if (at_step ? t->why != TRACE_AT_STEP && t->why != TRACE_OPEN : t->why != TRACE_RETURNED) {
        diag_clear(&k->c->diag);
        s = call_impure(k, t->reason);
    }
    trace_destroy(t);
    return s;
}
