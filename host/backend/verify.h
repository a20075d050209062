/* Comparing what a backend computed with eager execution (verify_correctness). */
#ifndef HOST_BACKEND_VERIFY_H
#define HOST_BACKEND_VERIFY_H
#include "host/graph/graph.h"

/* Runs gm node by node on the same inputs; a difference beyond rounding is an INTERNAL error that names backend,
 * output, index and both values. Outputs are only read. */
bp_status verify_outputs(bp_ctx *c, const bp_graph_module *gm, const char *name, bp_tensor *const *inputs,
                         uint32_t ninputs, bp_tensor *const *outputs, uint32_t noutputs);
#endif
