/* Questions that may stay open, and whether sizes of data are captured. */
#include "host/sym/expr.h"

enum dim_truth dim_decide(enum dim_rel rel, bp_dim a, bp_dim b)
{
    const sym_env *e = sym_current();
    enum dim_truth t = dim_prove(rel, a, b);
    if (t != DIM_UNKNOWN || !e || sym_is_unbacked(e, a) || sym_is_unbacked(e, b))
        return t;
    return dim_ask(rel, a, b) ? DIM_TRUE : DIM_FALSE;
}

void sym_capture_data(sym_env *e, bool on)
{
    e->captures_data = on;
}

bool sym_captures_data(const sym_env *e)
{
    return e->captures_data;
}
