/* Control flow that stays in the graph: cond, while_loop, map and scan over C functions of tensors. Part of
 * <backplane/backplane.h>.
 *
 * Eagerly they run the functions as ordinary code: gradients flow through what ran. In a captured function each of
 * these calls is one node of its graph, without a break: every function is run once on fakes, a branch that is not
 * taken too, and becomes a graph of its own, which backends get as a graph module (docs/capture.md).
 *
 * A function gets its inputs in `in` and puts nout results into `out`; `user` is the caller's. It may read tensors of
 * the function around it and attributes of modules; under capture they become further inputs of its graph. It must not,
 * and the call is an error that names the place where it does:
 *   - write its inputs, or anything else that it did not make, in place;
 *   - give back what it got, a view of it, a tensor from outside, or one tensor twice: return a clone;
 *   - under capture: ask for a value (bp_is_true and kin), print, call a disabled callable, keep a tensor beyond
 *     itself.
 * A captured function that draws random numbers in one of them runs eagerly, and bp_print_explain says why.
 *
 * Results belong to the context's innermost scope. On failure they are NULL, and the context says why:
 * INVALID_ARGUMENT for arguments and results that do not fit, FAILED_PRECONDITION for what is forbidden above.
 * Use the macros, which name the place. */
#ifndef BP_FLOW_H
#define BP_FLOW_H

#include <backplane/backplane.h>

BP_EXTERN_C_BEGIN

typedef void (*bp_branch_fn)(bp_ctx *c, void *user, bp_tensor *const *in, uint32_t n, bp_tensor **out, uint32_t nout);

/* Runs true_fn or false_fn on the operands, as pred says: a bool tensor of one element. A choice that a plain C value
 * decides needs no cond. Under capture both must give results of equal type, sizes and device. If gradients are asked
 * for, those of a compiled cond flow to every operand, zeros where the branch taken does not use it. */
BP_EXPORT bp_status bp_cond_at(bp_ctx *c, bp_tensor *pred, bp_branch_fn true_fn, bp_branch_fn false_fn, void *user,
                               bp_tensor *const *operands, uint32_t n, bp_tensor **out, uint32_t nout,
                               const char *file, int32_t line);
#define bp_cond(c, ...) bp_cond_at((c), __VA_ARGS__, __FILE__, __LINE__)

/* While cond_fn gives true (one result, a bool tensor of one element), body_fn's n results become the n carried values;
 * out[0 .. n) are the last ones. Both functions get the carried values, then m additional ones, which stay. A carried
 * value keeps its type, sizes and device. It has no derivative ahead of time: a compiled function whose gradients are
 * asked for runs it under the tape, operator by operator, as eager does. */
BP_EXPORT bp_status bp_while_loop_at(bp_ctx *c, bp_branch_fn cond_fn, bp_branch_fn body_fn, void *user,
                                     bp_tensor *const *carried, uint32_t n, bp_tensor *const *additional, uint32_t m,
                                     bp_tensor **out, const char *file, int32_t line);
#define bp_while_loop(c, ...) bp_while_loop_at((c), __VA_ARGS__, __FILE__, __LINE__)

/* fn of each item of the n tensors xs along dimension 0, whose sizes must agree and not be 0; out[j] are its results j,
 * stacked along dimension 0. fn gets the n items, then the m args whole. */
BP_EXPORT bp_status bp_map_at(bp_ctx *c, bp_branch_fn fn, void *user, bp_tensor *const *xs, uint32_t n,
                              bp_tensor *const *args, uint32_t m, bp_tensor **out, uint32_t nout, const char *file,
                              int32_t line);
#define bp_map(c, ...) bp_map_at((c), __VA_ARGS__, __FILE__, __LINE__)

typedef struct {
    uint32_t size;   /* sizeof, by the caller */
    int32_t reverse; /* 1: from the last item to the first; results stand where their items stand */
    int64_t dim;     /* along which; negative counts from the end of xs[0] */
} bp_scan_options;

/* combine gets ninit carried values, then an item of each of the nxs tensors along a dimension; it gives ninit new
 * carried values, then nys results. out_carry[0 .. ninit): the last carried values; out_ys[0 .. nys): the results,
 * stacked along that dimension (along 0, where they have not so many). ninit and nxs are at least 1; sizes along the
 * dimension must agree and not be 0; a carried value keeps its type, sizes and device. options NULL: dimension 0,
 * forward. */
BP_EXPORT bp_status bp_scan_at(bp_ctx *c, bp_branch_fn combine, void *user, bp_tensor *const *init, uint32_t ninit,
                               bp_tensor *const *xs, uint32_t nxs, bp_tensor **out_carry, bp_tensor **out_ys,
                               uint32_t nys, const bp_scan_options *options, const char *file, int32_t line);
#define bp_scan(c, ...) bp_scan_at((c), __VA_ARGS__, __FILE__, __LINE__)

BP_EXTERN_C_END
#endif
