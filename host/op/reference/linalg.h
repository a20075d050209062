/* What kernels of linear algebra share: matrices as LAPACK wants them, LAPACK's routines on them, batches.
 *
 * Everything is computed in double or complex double and rounded once when it is stored. A la_matrix lies column by
 * column without gaps. A kernel takes room once, then visits its batch:
 *
 *     la a;
 *     la_begin(&a, c, k);
 *     la_matrix x = la_new(&a, n, n);
 *     for (la_batch b = la_over(&a, out, 2); la_more(&b); la_next(&b)) ...
 *     return la_end(&a); */
#ifndef HOST_OP_REFERENCE_LINALG_H
#define HOST_OP_REFERENCE_LINALG_H
#include "host/op/reference/cx.h"
#include "host/op/reference/lapack.h"
#include "host/op/reference/walk.h"
#include "host/op/reference/work.h"

typedef struct { int m, n; void *at; } la_matrix;

typedef struct {
    work w;
    bp_ctx *c;
    const op_row *op;
    const lapack *f;
    uint32_t cplx;            /* 1: complex double, as the operand that la_begin was told; the index of a LAPACK_PAIR */
    size_t size;              /* of an element in room */
    struct { void *at; int64_t bytes; } room[3]; /* LAPACK's workspaces, kept from call to call */
} la;

/* like: the operand whose type decides between real and complex. Without LAPACK the context has the error. */
void la_begin(la *a, bp_ctx *c, const op_call *k, const bp_tensor *like);
bp_status la_end(la *a);
static inline bool la_ok(const la *a) { return work_ok(&a->w); }

/* -- matrices; after a failure `at` is NULL and nothing is done with them -- */
la_matrix la_new(la *a, int64_t m, int64_t n);
double *la_reals(la *a, int64_t n);
int *la_ints(la *a, int64_t n);
cx la_get(const la *a, la_matrix x, int i, int j);
void la_set(const la *a, la_matrix x, int i, int j, cx v);
void la_copy(const la *a, la_matrix to, la_matrix from);   /* the part that both have */
void la_fill(const la *a, la_matrix x, cx all, cx diagonal);
void la_conjugate(const la *a, la_matrix x);
/* to = from transposed, and conjugated if `conjugate`. */
void la_transpose(const la *a, la_matrix to, la_matrix from, bool conjugate);
/* Zeros above (below: upper) the diagonal; `unit` sets the diagonal to 1. */
void la_triangle(const la *a, la_matrix x, bool upper, bool unit);
/* The other triangle (and with `hermitian` its conjugate) from the one that is named. */
void la_mirror(const la *a, la_matrix x, bool from_upper, bool hermitian);
bool la_finite(const la *a, la_matrix x);
/* The largest sum of sizes of a column. */
double la_norm1(const la *a, la_matrix x);

/* A view of a vector for each matrix as matrices of one column; it lives until la_end. */
bp_tensor *la_as_column(la *a, bp_tensor *t);

/* -- batches -- */
typedef struct { walk v; const bp_tensor *t[WALK_OPERANDS]; int64_t number; } la_batch;
/* Over the sizes of t before its last `inner` ones; t becomes operand 0. */
la_batch la_over(const la *a, const bp_tensor *t, uint32_t inner);
/* One more operand, broadcast over the batch; gives its number. */
uint32_t la_add(la_batch *b, const bp_tensor *t, uint32_t inner);
static inline bool la_more(const la_batch *b) { return b->v.left > 0; }
void la_next(la_batch *b);
/* The current matrix of an operand (its last two dimensions; vectors: one column) into x, or back. */
void la_load(const la *a, la_matrix x, const la_batch *b, uint32_t operand);
void la_load_vector(const la *a, la_matrix x, const la_batch *b, uint32_t operand);
void la_store(const la *a, la_matrix x, const la_batch *b, uint32_t operand);
void la_store_vector(const la *a, la_matrix x, const la_batch *b, uint32_t operand);
/* The current element of an operand of no inner dimensions. */
void *la_at(const la_batch *b, uint32_t operand);
/* Numbers of the current element of a contiguous result: n of them. NULL: nothing. */
void la_store_reals(const la_batch *b, bp_tensor *t, const double *x, int n);
void la_store_ints(const la_batch *b, bp_tensor *t, const int *x, int n);
/* Pivots of int32 or int64 as LAPACK's int; out of 1 .. limit is an error (negative ones allowed if `either_sign`). */
bool la_load_pivots(la *a, int *x, int n, const la_batch *b, uint32_t operand, int limit, bool either_sign);

/* -- LAPACK; `info` as LAPACK gives it -- */
enum { LA_N = 'N', LA_T = 'T', LA_C = 'C' };
int la_cholesky(la *a, la_matrix x, bool upper);
void la_cholesky_solve(la *a, la_matrix factor, la_matrix b, bool upper);
int la_cholesky_inverse(la *a, la_matrix factor, bool upper);
int la_lu(la *a, la_matrix x, int *pivots);
void la_lu_solve(la *a, la_matrix lu, const int *pivots, la_matrix b, char trans);
/* b = op(t)^-1 b, or b op(t)^-1 from the right. */
void la_triangular(la *a, la_matrix t, la_matrix b, bool left, bool upper, char trans, bool unit);
void la_multiply(la *a, la_matrix x, la_matrix y, la_matrix out);
int la_ldl(la *a, la_matrix x, int *pivots, bool hermitian);
void la_ldl_solve(la *a, la_matrix ld, const int *pivots, la_matrix b, bool hermitian);
void la_qr(la *a, la_matrix x, void *tau);
/* The first x.n columns of the product of k reflectors. */
void la_q(la *a, la_matrix x, int k, const void *tau);
void la_q_times(la *a, la_matrix reflectors, int k, const void *tau, la_matrix b, bool left, char trans);
/* job 'A', 'S' or 'N'. x is destroyed. */
int la_svd(la *a, char job, la_matrix x, double *s, la_matrix u, la_matrix vh);
int la_eigh(la *a, la_matrix x, bool vectors, bool upper, double *values);
/* The X of least norm among those that bring A X nearest to B; b has max(x.m, x.n) rows. driver: "gels", "gelsy",
 * "gelsd" or "gelss". s: singular values, of the last two. x is destroyed. */
int la_least_squares(la *a, const char *driver, la_matrix x, la_matrix b, double rcond, double *s, int *rank);
/* Complex values and vectors whatever the type: values n, vectors n x n of complex double, or NULL. x is destroyed. */
int la_eig(la *a, la_matrix x, cx *values, cx *vectors);

/* -- results and failures -- */
/* Result i, or NULL where the row has none or did not make it. */
static inline bp_tensor *la_result(const op_call *k, uint32_t i) { return i < k->nout ? k->out[i] : NULL; }
/* Whether a failure is an error: rows with an `info` result say so by an argument, those without always mean it. */
bool la_checks(const op_call *k);
/* An error when info is not 0, in the words that belong to `api` ("linalg.inv", "cholesky_solve"); element: number in a
 * batch, or -1 for a single matrix. */
bp_status la_check(bp_ctx *c, const op_row *op, const char *api, int64_t element, int info);
/* Whether these numbers are all finite, or an error. */
bool la_require_finite(la *a, la_matrix x, const la_batch *b);
/* The number of the current matrix for la_check: -1 when there is no batch. */
static inline int64_t la_element(const la_batch *b) { return b->v.rank ? b->number : -1; }
#endif
