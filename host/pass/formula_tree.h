/* The tree that formula.c parses and formula_eval.c evaluates. */
#ifndef HOST_PASS_FORMULA_TREE_H
#define HOST_PASS_FORMULA_TREE_H
#include "host/pass/formula.h"
#include "sdk/base/arena.h"

enum expr_kind {
    EXPR_VALUE,                         /* value */
    EXPR_ARG, EXPR_RESULT, EXPR_GRAD,   /* number `index` */
    EXPR_CALL,                          /* row, args, parts */
    EXPR_CONJ,                          /* the same, and of a real tensor that tensor itself */
    EXPR_ITEM,                          /* result `index` of the call parts[0] */
    EXPR_LIST,                          /* args, parts */
    EXPR_SIZES, EXPR_DTYPE, EXPR_RANK, EXPR_NUMEL, /* of parts[0] */
    EXPR_ARITH                          /* parts[0] `index` parts[1]; index: '+', '-', '*', '/' */
};
enum { FORMULA_ARGS = 32, FORMULA_RESULTS = 16, FORMULA_PARTS = 16 };

typedef struct expr expr;
struct expr {
    enum expr_kind kind;
    uint32_t index, nargs, nparts;
    uint32_t column;       /* while parsing */
    const op_row *row;
    bp_value value;
    const bp_value *args;  /* of a call or list: what is constant, defaults filled in */
    const expr **parts;    /* the rest: parts[i] is argument at[i] */
    const uint32_t *at;
};

struct formula {
    arena mem;
    const op_row *op;
    formula_reads reads;
    bool tuple;            /* "(a, b)" */
    uint32_t nroots;
    const expr **roots;
};

/* Whether it gives a tensor. */
bool expr_is_tensor(const op_row *op, const expr *e);
#endif
