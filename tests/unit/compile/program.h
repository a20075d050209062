/* Random programs: a small language over a pool of tensors, interpreted by one C function that is then captured. */
#ifndef TESTS_COMPILE_PROGRAM_H
#define TESTS_COMPILE_PROGRAM_H
#include "tests/unit/compile/fixture.h"

typedef struct { uint64_t state; } rng;
uint32_t rng_next(rng *r);
static inline uint32_t rng_below(rng *r, uint32_t n) { return rng_next(r) % n; }

enum stmt_kind {
#define STMT_ROW(name, weight, nested) STMT_##name,
#include "tests/unit/compile/program.def"
#undef STMT_ROW
    STMT_KINDS
};
typedef struct block block;
typedef struct { enum stmt_kind kind; uint32_t k[5]; block *subs[2]; } stmt;
struct block { uint32_t n; stmt at[8]; };

typedef struct { block *body; uint32_t nargs, nouts; bool smooth; } program;

program *program_make(rng *r, bool smooth);
void program_free(program *p);
void program_print(const program *p, buf *out);
/* The captured function; its user pointer is the program. */
void program_run_it(bp_ctx *c, bp_frame *f);
#endif
