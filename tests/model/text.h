/* Program texts: what tests/model/programs.py writes and the harness reads. README.md has the grammar. */
#ifndef TESTS_MODEL_TEXT_H
#define TESTS_MODEL_TEXT_H
#include "sdk/base/arena.h"
#include "sdk/base/str.h"
#include "sdk/base/vec.h"
#include <backplane/backplane.h>

enum { MAX_ARGS = 4, MAX_FNS = 4, MAX_LINKS = 3, REGISTERS = 8, NUMBERS = 2 };

enum stmt_kind {
#define KIND(name, word, form, blocks) STMT_##name,
#include "tests/model/kinds.def"
#undef KIND
    STMT_KINDS
};

/* A word behind a statement: r3, a copy c3 of it, k0, a number, or a name. */
typedef struct { char kind; uint32_t index; bp_scalar number; const char *name; } operand;
enum { OPERAND_REGISTER = 'r', OPERAND_COPY = 'c', OPERAND_K = 'k', OPERAND_NUMBER = 'n', OPERAND_NAME = 'w' };

typedef struct stmt stmt;
typedef VEC(stmt) block;
struct stmt {
    enum stmt_kind kind;
    uint32_t dst, nargs;
    operand args[5];
    block blocks[2];
    const char *line; /* for traces */
};
typedef struct { uint32_t nargs, ngiven, given[4]; block body; } text_fn;

/* One argument set. dtype: BP_F64 or BP_I64. */
typedef struct { bp_dtype dtype; uint32_t n; double *values; } text_buffer;
typedef struct { int32_t same; uint32_t buffer; int64_t off, n, stride; } text_view; /* same >= 0: that very argument */
typedef struct { text_buffer buffers[MAX_ARGS]; text_view views[MAX_ARGS]; uint32_t nbuffers, nviews; } text_args;

/* One call, and what the model says of it. want: lines as the harness would write them. */
typedef struct {
    uint32_t args, ntold;
    bool flag, seed, nograd, busy;
    double *told;     /* answers that eager must take */
    const char *want;
    const char *did;  /* "captures 1 hits 1 ...", or "" */
} text_call;

typedef struct {
    arena arena;      /* of everything below but the vectors */
    uint64_t number;
    const char *mode;
    const char *source; /* its lines up to the calls */
    text_fn fns[MAX_FNS];
    uint32_t nfns, nlinks, nwant_compiles;
    uint32_t nbuffers; /* how many of fn 0's arguments, the last ones, are buffers of a module */
    uint32_t links[MAX_LINKS][2]; /* which compile fails, which run fails; 0: none */
    uint32_t limit_outcomes, limit_variants, limit_captures, limit_segments;
    bool is_tame;     /* equal graphs must be one segment */
    VEC(text_args) args;
    VEC(text_call) calls;
    uint32_t want_compiles[MAX_LINKS];
} program;

/* The same arguments with `by` more elements each; those of one element grow only where by is 3. Arrays are a's. */
bool text_args_grow(arena *a, const text_args *from, uint32_t by, text_args *to);
/* Cuts the next program off *rest. Returns 1, 0 at the end of the text, -1 with *why for a text that is wrong. */
int program_read(str *rest, program *p, char *why, size_t cap);
void program_free(program *p);
bool program_is(const program *p, const char *mode);
/* Cuts the first word off s; empty at its end. */
str text_word(str *s);
const char *stmt_word(enum stmt_kind kind);
#endif
