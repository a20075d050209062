/* Short forms for building graphs in tests. */
#ifndef BP_TESTS_UNIT_GRAPH_BUILD_H
#define BP_TESTS_UNIT_GRAPH_BUILD_H
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include <stdlib.h>
#include "host/graph/graph.h"
#include <backplane/backplane.h>

enum { END = -1 };
#define V_NODE(n) graph_ref(n)
#define V_INT(n) ((bp_value){BP_VALUE_INT, 0, {.dim = {(n), 0, 0}}})
#define V_BOOL(b) ((bp_value){BP_VALUE_BOOL, 0, {.i = (b)}})
#define V_FLOAT(x) ((bp_value){BP_VALUE_FLOAT, 0, {.f = {(x), 0}}})
#define V_COMPLEX(re, im) ((bp_value){BP_VALUE_COMPLEX, 0, {.f = {(re), (im)}}})
#define V_STR(s) ((bp_value){BP_VALUE_STRING, 0, {.str = (s)}})
#define V_DTYPE(d) ((bp_value){BP_VALUE_DTYPE, 0, {.i = (d)}})
#define V_LAYOUT ((bp_value){BP_VALUE_LAYOUT, 0, {.i = BP_STRIDED}})
#define V_DEVICE(kind, index) ((bp_value){BP_VALUE_DEVICE, 0, {.device = {(kind), (index)}}})
#define V_FORMAT(f) ((bp_value){BP_VALUE_MEMORY_FORMAT, 0, {.i = (f)}})
#define V_NONE ((bp_value){0})
#define V_LIST(g, ...) \
    graph_list((g), (bp_value[]){__VA_ARGS__}, sizeof((bp_value[]){__VA_ARGS__}) / sizeof(bp_value))
/* A call with positional arguments. */
#define CALL(g, target, ...)                                                                               \
    graph_call((g), NULL, (target), (bp_value[]){__VA_ARGS__}, sizeof((bp_value[]){__VA_ARGS__}) / sizeof(bp_value), \
               NULL, 0)
#define OUTPUT(g, ...) \
    graph_output((g), (bp_value[]){__VA_ARGS__}, sizeof((bp_value[]){__VA_ARGS__}) / sizeof(bp_value))

/* A contiguous CPU type; valid in the enclosing block. */
#define TYPE(type, r, ...)                                                                                 \
    (&(tensor_meta){.dtype = (type), .device = {BP_CPU, 0}, .rank = (r), .sizes = (bp_dim[]){__VA_ARGS__}, \
                    .strides = build_strides((bp_dim[8]){{0, 0, 0}}, (bp_dim[]){__VA_ARGS__}, (r))})
#define DIM(n) {(n), 0, 0}
static inline bp_dim *build_strides(bp_dim *out, const bp_dim *sizes, uint32_t rank)
{
    int64_t step = 1;
    for (uint32_t d = rank; d-- > 0; step *= sizes[d].value > 1 ? sizes[d].value : 1)
        out[d].value = step;
    return out;
}

static inline node_id build_placeholder(graph *g, const char *name, const tensor_meta *meta)
{
    return graph_placeholder(g, name, name, BP_ROLE_USER, meta);
}

/* The text of a file below tests/unit/graph/, to be freed. */
static inline char *build_read(const char *name)
{
    char path[512];
    const char *top = getenv("top_srcdir");
    snprintf(path, sizeof path, "%s/tests/unit/graph/%s", top ? top : ".", name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("%s cannot be read", path);
    char *text = calloc(1, 1 << 20);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    text[n] = 0;
    fclose(f);
    return text;
}
#endif
