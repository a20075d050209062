/* Nodes of the graph that this backend is asked about: their arguments, checked and in plain C. */
#ifndef ONEDNN_NODE_H
#define ONEDNN_NODE_H
#include "plugins/onednn/api.h"
#include <backplane/plugin.h>

/* A reason to leave a node to others; sticky: the first one stays. */
typedef struct { char *text; size_t cap; bool said; } why;
BP_PRINTF(2, 3) bool no(why *w, const char *fmt, ...); /* writes the reason; returns false */

/* Who reads. run: whose sizes are meant; NULL: the hints. settled: every size is such a number; otherwise sizes may be
 * symbolic, and what is decided on them becomes a condition of what is compiled, unless it holds for all. */
typedef struct { const bp_graph_module *gm; const bp_run *run; bool settled; } reader;

enum { MAX_RANK = 5 };
/* A float32 CPU tensor argument, with sizes as numbers: of symbolic ones, the hints. node 0: the argument is None. */
typedef struct {
    uint32_t node;
    int rank;
    dnnl_dims_t sizes, strides;
    bp_dim size[MAX_RANK], step[MAX_RANK]; /* the same as the reader sees them; not those of a reshaped one */
    bool reshaped; /* seen with another shape than the node's own: a folded matrix, a transposed weight */
} operand;

/* Reads a tensor argument (or, name NULL, the node's result) that oneDNN can describe: float32, on the CPU, not
 * empty, no element reached twice, rank 1 to MAX_RANK. False: the reason is said. */
bool operand_get(const reader *g, uint32_t node, const char *name, operand *out, why *w);
bool operand_optional(const reader *g, uint32_t node, const char *name, operand *out, why *w);
bool operand_is_contiguous(const reader *g, const operand *o);
/* An int list argument of n items, where one item or a bare int stands for all; an empty list gives fallback's
 * items. */
bool ints_get(const reader *g, uint32_t node, const char *name, int n, const int64_t *fallback, int64_t *out,
              why *w);
bool int_get(const reader *g, uint32_t node, const char *name, int64_t *out, why *w);
bool number_get(const reader *g, uint32_t node, const char *name, double *out, why *w);

/* -- what each kind of node says -- */
typedef struct {
    operand src, weights, bias, dst;
    int spatial;
    dnnl_dims_t stride, padding, dilation; /* dilation as PyTorch counts it: 1 is dense */
    int64_t groups;
} conv_node;
bool conv_get(const reader *g, uint32_t node, conv_node *out, why *w);

typedef struct {
    operand src, dst;
    dnnl_dims_t kernel, stride, padding, dilation;
    bool include_padding;
} pool_node;
bool pool_get(const reader *g, uint32_t node, bool is_max, pool_node *out, why *w);

typedef struct { operand src, weights, bias, dst; } matmul_node; /* ready for oneDNN: equal ranks, weights [.., K, N] */
bool matmul_get(const reader *g, uint32_t node, matmul_node *out, why *w);
bool linear_get(const reader *g, uint32_t node, matmul_node *out, why *w);
bool addmm_get(const reader *g, uint32_t node, matmul_node *out, why *w);
#endif
