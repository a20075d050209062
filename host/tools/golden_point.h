/* A call as a function of its float tensors, in float64: evaluated at a point, beside it along a direction, and on the
 * tape. What golden_derivative.c proves derivatives with. */
#ifndef HOST_TOOLS_GOLDEN_POINT_H
#define HOST_TOOLS_GOLDEN_POINT_H
#include "host/tools/golden_case.h"

typedef VEC(bp_tensor *) tensor_list;
void tensor_list_clear(tensor_list *l); /* gives all up */

/* A float or complex tensor among the arguments, and how it may be moved (golden_derivative.def). */
enum point_kind { POINT_FREE, POINT_HELD, POINT_SYMMETRIC, POINT_TRIANGLE };
typedef struct {
    const char *name;   /* of its argument */
    enum point_kind kind;
    bp_tensor *given;   /* float64 or complex128, contiguous; owned */
    bp_tensor *at;      /* the same with noise; owned */
    bp_tensor *along;   /* the direction; owned */
} point_float;
static inline bool point_is_held(const point_float *f) { return f->kind == POINT_HELD; }

typedef struct {
    golden_case *k;
    const op_row *row;
    const bp_value *args; /* one a schema argument; types are float64 and complex128 */
    VEC(point_float) floats;
    bool fakes;           /* floats are fakes: metadata alone are computed */
    uint64_t seed, rng_offset, random; /* the generator's state for each run; ours */
} point;

/* Reads an operator case; false: golden_bad, or the context has an error. */
bool point_read(point *p, golden_case *k, const op_row *row, const json_t *j);
void point_fini(point *p);
/* Moves the point by noise of that relative size, and draws new directions. */
bp_status point_draw(point *p, double noise);
/* Runs the call at `at + t along`. leaves (or NULL): the tape records, and these are the tensors that require grad, one
 * a float, NULL where it is held. Results are new references; both lists are to be cleared. */
bp_status point_run(point *p, double t, tensor_list *leaves, tensor_list *results);

/* -- numbers of contiguous float64 and complex128 tensors: complex ones are two each -- */
int64_t numbers_of(const bp_tensor *t);
static inline double *numbers(const bp_tensor *t) { return tensor_ptr(t); }
/* t as such a tensor without history, a new reference. */
bp_tensor *point_plain(bp_ctx *c, bp_tensor *t);
/* A random tensor of t's form, 0 where t is not finite. A new reference. */
bp_tensor *point_weights(point *p, const bp_tensor *t);
/* A fake of t's metadata, a new reference. */
bp_tensor *point_fake(bp_ctx *c, const bp_tensor *t);
/* at + t along, a new reference. */
bp_tensor *point_shift(bp_ctx *c, const bp_tensor *at, const bp_tensor *along, double t);
/* The sum of a b, and of |a b|; not finite ones of b are left out if `finite`. */
double point_dot(const bp_tensor *a, const bp_tensor *b, bool finite, double *size);
bool point_is_finite(const bp_tensor *t);
#endif
