/* What calls of random programs hold (census.def), counted: that the generator gives what it is meant to give. */
#ifndef TESTS_MODEL_CENSUS_H
#define TESTS_MODEL_CENSUS_H
#include "tests/model/text.h"

enum census_row {
#define CENSUS(name, words) CENSUS_##name,
#include "tests/model/census.def"
#undef CENSUS
    CENSUS_ROWS
};

typedef struct {
    uint64_t call, program;  /* bits of rows: of the call that runs, of the program's calls so far */
    uint64_t pending;        /* rows that hold as soon as a question follows */
    uint32_t asked, depth;   /* questions of this call so far; nested callables that run */
    uint32_t programs[CENSUS_ROWS], calls[CENSUS_ROWS];
} census;

/* Every function takes NULL and then does nothing. */
void census_begin_call(census *n);
void census_end_call(census *n);
void census_end_program(census *n);
void census_is(census *n, enum census_row row);
void census_ask(census *n, enum census_row row);
/* row: one that ends in BEFORE; the row behind it is the same after a break. */
void census_event(census *n, enum census_row row);
/* A nested callable begins (1) or ends (-1). */
void census_nest(census *n, int by);
/* a is written, while r holds the function's registers. inputs: the call's arguments, buffers last. */
void census_write(census *n, const bp_tensor *a, bp_tensor *const *r, bp_tensor *const *inputs, uint32_t ninputs,
                  uint32_t nbuffers);
/* all: nargs arguments, then results up to n_all. */
void census_results(census *n, bp_tensor *const *all, uint32_t nargs, uint32_t n_all);
/* The arguments of a call, and how they differ from those of the call before. before: NULL at the first. */
void census_args(census *n, const program *p, const text_call *now, const text_call *before);
void census_print(const census *n);
#endif
