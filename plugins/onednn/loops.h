/* Steps that are plain loops, where oneDNN's own primitive loses NaN. */
#ifndef ONEDNN_LOOPS_H
#define ONEDNN_LOOPS_H
#include "plugins/onednn/node.h"
#include "plugins/onednn/program.h"

/* dst = min(max(src, bound[0]), bound[1]), NaN kept; shape[0]: elements, padding of a blocked layout included. */
void loop_clamp(const bp_host *host, const step *s, const float *src, float *dst);
/* Max pooling of contiguous [N, C, H, W]; a NaN in a window is its result, as in eager. */
void loop_max_pool(const bp_host *host, const step *s, const float *src, float *dst);
void loop_max_pool_shape(step *s, const pool_node *n);
#endif
