/* Random programs of shapes: views, joins, products, windows over tensors whose sizes are symbols. A program says what
 * is called, and how each number follows from sizes; so it can be run again at other sizes. */
#ifndef BP_TESTS_UNIT_OP_PROGRAMS_H
#define BP_TESTS_UNIT_OP_PROGRAMS_H
#include "host/tools/symbolic.h"

enum { PROGRAM_STEPS = 10, PROGRAM_INPUTS = 3, PROGRAM_SYMBOLS = 12, PROGRAM_ARGS = 7, PROGRAM_LIST = 6,
       PROGRAM_TENSORS = PROGRAM_INPUTS + PROGRAM_STEPS };

/* (size of dimension `dim` of tensor `of` * mul + add) / div, floored; of -1: the number `add`. */
typedef struct { int32_t of; uint32_t dim; int64_t mul, add, div; } number;

enum word_kind { WORD_NONE, WORD_TENSOR, WORD_TENSORS, WORD_NUMBER, WORD_NUMBERS, WORD_BOOL };
typedef struct { enum word_kind kind; uint32_t n; number at[PROGRAM_LIST]; } word; /* tensors: by `of` */

typedef struct { const op_row *row; uint32_t n, take; word args[PROGRAM_ARGS]; } step; /* take: which result goes on */

/* Contiguous; a dimension is a symbol, or (-1) a size. */
typedef struct { uint32_t rank; int32_t symbol[4]; int64_t size[4]; } input;

typedef struct {
    input in[PROGRAM_INPUTS];
    step at[PROGRAM_STEPS];
    uint32_t nin, n, nsymbols;
    int64_t hints[PROGRAM_SYMBOLS];
} program;

/* What one run gave: inputs, then a tensor a step. */
typedef struct { bp_tensor *t[PROGRAM_TENSORS]; uint32_t n; } run;

/* A program that runs at its hints. */
void program_make(bp_ctx *c, uint64_t seed, program *p);
/* Runs p on fakes: in the environment with its symbols, or (s->e NULL) on numbers, which are `values`. `bend`: slices
 * end one element early, a fault to be found. The error stays in the context. */
bp_status program_run(symbolic *s, const program *p, const int64_t *values, bool bend, run *out);
void run_fini(run *r);
/* Fresh symbols with these hints. */
bool program_symbols(bp_ctx *c, const program *p, const int64_t *hints, symbolic *s);
/* "t2 = aten.slice.Tensor(t0, 0, 1, size(t0, 0) - 1)", a line a step. */
void program_print(const program *p, buf *out);
#endif
