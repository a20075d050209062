/* Finding the shapes of one graph with fixed sizes and with symbols: what symbols cost.
 *
 *     propagate [NODES]
 *
 * Prints the least ns of CPU time of a node for both, over RUNS runs that take turns, and their ratio. Fails above 1.5.
 * The graph is a chain of blocks as in an encoder: products, views by sizes, transpositions, joins and slices. */
#define BP_WITHOUT_OPERATORS
#include <backplane/backplane.h>
#include "host/graph/graph.h"
#include "sdk/base/str.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 9, BLOCK = 12 };
static const double MOST = 1.5;

/* b, t: how the batch and the length are written; tokens: their product. */
static void add_block(buf *out, uint32_t i, const char *b, const char *t, const char *tokens)
{
    buf_printf(out, "  %%flat_%u = aten.view.default(%%x_%u, [%s, 64])\n", i, i, tokens);
    buf_printf(out, "  %%mm_%u = aten.mm.default(%%flat_%u, %%w)\n", i, i);
    buf_printf(out, "  %%heads_%u = aten.view.default(%%mm_%u, [%s, %s, 4, 16])\n", i, i, b, t);
    buf_printf(out, "  %%turn_%u = aten.transpose.int(%%heads_%u, 1, 2)\n", i, i);
    buf_printf(out, "  %%whole_%u = aten.clone.default(%%turn_%u, memory_format=format(contiguous))\n", i, i);
    buf_printf(out, "  %%soft_%u = aten._softmax.default(%%whole_%u, -1, False)\n", i, i);
    buf_printf(out, "  %%back_%u = aten.transpose.int(%%soft_%u, 1, 2)\n", i, i);
    buf_printf(out, "  %%again_%u = aten.clone.default(%%back_%u, memory_format=format(contiguous))\n", i, i);
    buf_printf(out, "  %%join_%u = aten.view.default(%%again_%u, [%s, %s, 64])\n", i, i, b, t);
    buf_printf(out, "  %%both_%u = aten.cat.default([%%join_%u, %%x_%u], 1)\n", i, i, i);
    buf_printf(out, "  %%part_%u = aten.slice.Tensor(%%both_%u, 1, 0, %s)\n", i, i, t);
    buf_printf(out, "  %%x_%u = aten.add.Tensor(%%part_%u, %%bias)\n", i + 1, i);
}

static bp_graph_module *make(bp_ctx *c, uint32_t nodes, bool symbols)
{
    buf text = {0};
    const char *b = symbols ? "s0" : "8", *t = symbols ? "s1" : "128";
    buf_printf(&text, "graph g {\n%s  %%x_0: f32[%s, %s, 64] = placeholder \"x\" user\n"
                      "  %%w: f32[64, 64] = placeholder \"w\" parameter\n"
                      "  %%bias: f32[64] = placeholder \"bias\" parameter\n",
               symbols ? "  symbol s0 in [2, inf] hint 8\n  symbol s1 in [2, inf] hint 128\n" : "", b, t);
    uint32_t blocks = (nodes + BLOCK - 1) / BLOCK;
    for (uint32_t i = 0; i < blocks; i++)
        add_block(&text, i, b, t, symbols ? "s0*s1" : "1024");
    buf_printf(&text, "  output(%%x_%u)\n}\n", blocks);
    bp_graph_module *gm = graph_parse_text(c, "text", buf_text(&text), text.n);
    buf_fini(&text);
    return gm;
}

/* Of this process alone: others do not count. */
static uint64_t cpu_ns(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bp_status measure(bp_ctx *c, bp_graph_module *gm, uint64_t *least)
{
    uint64_t begin = cpu_ns();
    TRY(graph_propagate(c, gm));
    uint64_t ns = cpu_ns() - begin;
    *least = ns < *least ? ns : *least;
    return BP_OK;
}

int main(int argc, char **argv)
{
    uint32_t nodes = argc > 1 ? (uint32_t)atoi(argv[1]) : 5000;
    bp_ctx *c = bp_ctx_new(NULL);
    uint64_t least[2] = {UINT64_MAX, UINT64_MAX};
    bp_graph_module *gm[2] = {NULL, NULL};
    bp_status s = c ? BP_OK : BP_RESOURCE_EXHAUSTED;
    for (int k = 0; k < 2 && !s; k++)
        s = (gm[k] = make(c, nodes, k)) ? BP_OK : c->diag.code;
    for (int run = 0; run < 2 * RUNS && !s; run++)
        s = measure(c, gm[run % 2], &least[run % 2]);
    if (s) {
        fprintf(stderr, "propagate: %s\n", c ? diag_text(&c->diag) : "out of memory");
        return 2;
    }
    double ratio = (double)least[1] / (double)least[0];
    printf("%u nodes: %.0f ns a node with fixed sizes, %.0f ns with symbols, ratio %.2f, %u facts\n", gm[0]->g.live,
           (double)least[0] / gm[0]->g.live, (double)least[1] / gm[1]->g.live, ratio, sym_fact_count(gm[1]->g.syms));
    for (int k = 0; k < 2; k++)
        gm_unref(gm[k]);
    bp_ctx_destroy(c);
    return ratio <= MOST ? 0 : 1;
}
