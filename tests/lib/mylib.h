/* The custom operators that tests define: mylib::my_op(x, alpha) = x * alpha, right in every way, and its parts, to be
 * put together wrongly. */
#ifndef TESTS_LIB_MYLIB_H
#define TESTS_LIB_MYLIB_H
#include <backplane/library.h>

#define MY_OP_SCHEMA "(Tensor x, float alpha) -> Tensor"

static inline void my_op(bp_ctx *c, bp_op_call *k)
{
    int *calls = bp_op_user(k);
    if (calls)
        ++*calls;
    bp_op_return(c, k, bp_mul(c, bp_op_tensor(k, 0), bp_op_float(k, 1)));
}

static inline void my_op_fake(bp_ctx *c, bp_op_call *k)
{
    bp_op_return(c, k, bp_empty_like(c, bp_op_tensor(k, 0)));
}

static inline void my_op_backward(bp_ctx *c, bp_op_grad *g)
{
    const bp_value *alpha = bp_op_grad_arg(g, 1);
    bp_op_grad_return(c, g, bp_mul(c, bp_op_grad_of(c, g, 0), alpha->v.f[0]));
    bp_op_grad_return(c, g, NULL);
}

/* Defines it whole; calls, or NULL: counts what its kernel ran. */
static inline const bp_op *mylib_define(bp_ctx *c, int *calls)
{
    const bp_op *op = bp_custom_op(c, "mylib::my_op", &(bp_custom_op_options){
        .schema = MY_OP_SCHEMA, .mutates_args = "", .kernel = my_op, .arg = calls});
    bp_register_fake(c, NULL, "mylib::my_op", my_op_fake, NULL, 0);
    bp_register_autograd(c, NULL, "mylib::my_op", my_op_backward, NULL, NULL);
    return op;
}

/* Adds 1 to x in place, and gives nothing. */
static inline void bump(bp_ctx *c, bp_op_call *k)
{
    bp_add_inplace(c, bp_op_tensor(k, 0), 1);
}
#endif
