/* The judgement of what LAPACK called info, as an operator of its own. */
#include "host/op/reference/linalg.h"
#include "host/op/rows.h"

/* On fakes there is nothing to judge. */
bp_status kernel_linalg_check_errors(bp_ctx *c, op_call *k)
{
    const bp_tensor *info = arg_tensor(k->args, 0);
    const char *api = arg_str(k->args, 1);
    bool matrix = arg_bool(k->args, 2);
    if (info->dtype != BP_I32)
        return op_fail(c, k->op, BP_INVALID_ARGUMENT, "argument \"info\" must be int32, and is %s",
                       dtype_get(info->dtype)->torch);
    if (tensor_is_fake(info))
        return BP_OK;
    work w = {.c = c};
    bp_tensor *t = work_in(&w, arg_tensor(k->args, 0), BP_DTYPE_UNSET);
    const int32_t *at = t ? tensor_ptr(t) : NULL;
    for (int64_t i = 0; work_ok(&w) && i < tensor_nelem(t); i++)
        la_check(c, k->op, api ? api : "", matrix ? -1 : i, at[i]);
    return work_end(&w);
}
