/* Type promotion: PyTorch's result_type.
 *
 * Tensors with dimensions decide among themselves; a 0-d tensor, and behind it a plain number, widen the result only
 * when they are of a higher class (bool < integers < floats < complex). */
#include "host/op/op.h"

static bp_dtype default_complex(bp_ctx *c)
{
    return dtype_complex_of(c->ambient.default_dtype);
}

/* A number's type: as wide as its class asks, floats being of the default type. */
static bp_dtype number_dtype(bp_ctx *c, bp_dtype d)
{
    return dtype_is_complex(d) ? default_complex(c) : dtype_is_float(d) ? c->ambient.default_dtype : d;
}

void promote_tensor(bp_ctx *c, promote_state *p, const bp_tensor *t)
{
    if (t->flags & TENSOR_WRAPPED_NUMBER)
        p->wrapped = dtype_promote(p->wrapped, number_dtype(c, t->dtype));
    else if (t->rank)
        p->dim = dtype_promote(p->dim, t->dtype);
    else
        p->zero = dtype_promote(p->zero, t->dtype);
}

void promote_scalar(bp_ctx *c, promote_state *p, bp_scalar s)
{
    static const bp_dtype of_kind[] = {
        [BP_SCALAR_UNSET] = BP_DTYPE_UNSET, [BP_SCALAR_BOOL] = BP_BOOL, [BP_SCALAR_INT] = BP_I64,
        [BP_SCALAR_FLOAT] = BP_F64, [BP_SCALAR_COMPLEX] = BP_C128,
    };
    if (s.kind < sizeof of_kind / sizeof *of_kind)
        p->wrapped = dtype_promote(p->wrapped, number_dtype(c, of_kind[s.kind]));
}

static bp_dtype combine(bp_dtype higher, bp_dtype lower)
{
    if (dtype_is_complex(higher))
        return higher;
    if (dtype_is_float(higher))
        return dtype_is_complex(lower) ? dtype_complex_of(higher) : higher;
    if (higher == BP_BOOL || dtype_is_float(lower) || dtype_is_complex(lower))
        return dtype_promote(higher, lower);
    return higher ? higher : lower;
}

bp_dtype promote_result(const promote_state *p)
{
    return combine(p->dim, combine(p->zero, p->wrapped));
}

bp_dtype promote_args(bp_ctx *c, const bp_value *args, uint32_t i, uint32_t j)
{
    promote_state p = {0};
    const uint32_t both[] = {i, j};
    for (int k = 0; k < 2; k++) {
        bp_tensor *t = arg_tensor(args, both[k]);
        if (t)
            promote_tensor(c, &p, t);
        else
            promote_scalar(c, &p, arg_scalar(args, both[k]));
    }
    return promote_result(&p);
}
