/* Small captured functions beside eager: one call after the other, everything that a caller sees compared, and at the
 * end the counts. */
#ifndef TESTS_MODEL_HOLE_H
#define TESTS_MODEL_HOLE_H
#include "tests/model/links.h"
#include "tests/model/run.h"

/* One argument: 'f' or 'i', its numbers. */
typedef struct { char kind; uint32_t n; double v[10]; } value;
typedef struct { value at[2]; uint32_t n; } inputs;
/* eager: answered eagerly, by resuming or from the start. */
typedef struct { uint32_t segments, captures, disagreements, eager, opened, growths, restarts; } numbers;

#define F(...) {'f', sizeof((double[]){__VA_ARGS__}) / sizeof(double), {__VA_ARGS__}}
#define I(...) {'i', sizeof((double[]){__VA_ARGS__}) / sizeof(double), {__VA_ARGS__}}

typedef struct {
    bp_runtime *rt;
    bp_fn fn;
    bp_callable *g;
    side compiled, eager; /* what bp_user gives the function: for disabled functions */
    program p;            /* its mode alone: for links.c */
    links links;
    buf log;
} hole;

/* mode: of links.h; "modes": exact, and equal graphs may be compiled under several modes. */
void hole_open(hole *h, const char *mode, bp_fn fn);
/* One call on both sides: status, results, what became of arguments, what disabled functions did, what was drawn. */
void hole_call(hole *h, const inputs *in);
/* The counts of its callable. */
void hole_expect(hole *h, numbers want);
void hole_close(hole *h);
/* Calls fn n times with what `next` gives, and compares the counts. limit: of segments; 0: the default. */
void hole_try(const char *mode, bp_fn fn, uint32_t n, inputs (*next)(uint32_t i), uint32_t limit, numbers want);

#define HOLE(name, mode, fn, n, next, limit, ...)                   \
    static void name(void **state)                                  \
    {                                                               \
        (void)state;                                                \
        hole_try(mode, fn, n, next, limit, (numbers){__VA_ARGS__}); \
    }
#endif
