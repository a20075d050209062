/* Short ways to write what is made of other operators, for files of bodies (compose.h): with a `work *w` at hand,
 *
 *     CALL(add_tensor, T(x), T(y))
 *
 * is the result of row add_tensor on these positional arguments, NULL after an error. */
#ifndef HOST_OP_REFERENCE_STEPS_H
#define HOST_OP_REFERENCE_STEPS_H
#include "host/op/reference/compose.h"

#define STEP_COUNT(...) ((uint32_t)(sizeof((bp_value[]){__VA_ARGS__}) / sizeof(bp_value)))
#define CALL(row, ...) work_call(w, ROW_##row, STEP_COUNT(__VA_ARGS__), (bp_value[]){__VA_ARGS__})
#define T(t) value_tensor(t)
#define F(number) value_float(number)
#define I(number) value_int(number)
/* composed_<name>, for whoever wants the steps: body_<name>(w, op, args). */
#define COMPOSED_BODY(name)                                                     \
    bp_tensor *composed_##name(work *w, const op_row *op, const bp_value *args); \
    bp_tensor *composed_##name(work *w, const op_row *op, const bp_value *args) { return body_##name(w, op, args); }
/* shape_<name> and kernel_<name> as well. */
#define COMPOSED(name)                                                                                   \
    bp_status shape_##name(bp_ctx *c, shape_call *s) { return compose_shape(c, s, body_##name); }       \
    bp_status kernel_##name(bp_ctx *c, op_call *k) { return compose_run(c, k, body_##name); }           \
    COMPOSED_BODY(name)
#endif
