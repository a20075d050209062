/* Runs PyTorch's recorded answers (tests/golden/FORMAT.md) through the host and compares. */
#ifndef HOST_TOOLS_GOLDEN_H
#define HOST_TOOLS_GOLDEN_H
#include "host/graph/graph.h"

typedef struct {
    const char *backend;   /* NULL or "eager": reference kernels, call by call; else each case is compiled through it */
    const char *op;        /* only cases whose operator (graphs: name or a target) contains this; NULL: all */
    bool check_fake;       /* also what the shape rules say of each call, strides and sharing too; gradients on fakes */
    bool functionalize;    /* each case runs as a captured function on the eager backend; inputs written are compared */
    bool round_trip;       /* graphs: printed to canonical text, read back and printed again, nothing changes */
    bool symbolic;         /* graphs: with symbols for the sizes of inputs, beside the static ones */
    bool passes;           /* graphs: all passes run on each first */
    int32_t decompose;     /* 1: operator cases by their decompositions; 2: these decomposed too, down to core ATen */
    bool check_strides;    /* also strides against those that PyTorch recorded */
    bool grad;             /* graphs: only those with recorded gradients, and these gradients alone */
    const char *aot;       /* with grad: NULL, or the backend that a captured function is compiled through */
    bool check_derivatives; /* operator cases: their derivatives against differences, instead of their results */
    bool once;             /* of derivatives: no case of an operator behind the first that was checked */
    bool check_symbolic;   /* operator cases: their shape rules with symbols for sizes, instead of their results */
    bool verbose;          /* also a line for each case that passed by the wider-type rule or by nodes */
    bool list_unsupported; /* at the end, a line for each reason */
    bp_write_fn_ write;    /* lines of the report, whole */
    bp_write_fn_ text;     /* NULL, or told the canonical text of each graph case that round trips, with symbols too */
    bp_write_fn_ progress; /* NULL, or told now and then how far it is; text without a line end */
    void *arg;
} golden_options;

typedef struct golden_derivatives golden_derivatives;
typedef struct golden_symbols golden_symbols;
typedef struct {
    uint64_t passed, failed, unsupported;
    uint64_t by_wider;     /* of the passed: only by the wider-type rule */
    uint64_t by_nodes;     /* of the passed: graphs whose recorded outputs PyTorch does not give node by node either */
    uint64_t unvalued;     /* of the passed: shape and dtype alone, where values are not comparable */
    uint64_t decomposed;   /* of the passed: by their decompositions */
    uint64_t eagerly;      /* of the passed: declined to be captured, and ran as they are */
    uint64_t defined;      /* of the passed: by what defines them, where values are not comparable */
    uint64_t turned;       /* of the passed: gradients by factors of another sign than the recorded ones */
    uint64_t by_differences; /* of the passed: the recorded gradient is none, as differences of the graph show */
    uint64_t symbolic;     /* of the passed: some result has a size that is a symbol */
    uint64_t by_data;      /* of the passed: a size depends on data, and the run on fakes ended there */
    uint64_t gradients;    /* of the passed: recorded gradients that were not looked at */
    golden_derivatives *derivatives; /* which rows were checked; NULL unless that was asked for */
    golden_symbols *symbols; /* how the checks with symbols went; NULL unless that was asked for */
    map reasons;           /* of the unsupported: reason -> how often */
} golden_counts;

/* Adds a file's cases to the counts. A file that cannot be read is an error; a case that cannot is a failed case. */
bp_status golden_run_file(bp_ctx *c, const char *path, const golden_options *o, golden_counts *n);
/* Behind the last file of derivatives: each row whose derivative no case proved is one more failed case, by name. */
void golden_finish(golden_counts *n, const golden_options *o);
/* What they sum up to; its last line is "N passed, N failed, N unsupported". */
void golden_summary(const golden_counts *n, const golden_options *o);
void golden_counts_fini(golden_counts *n);
#endif
