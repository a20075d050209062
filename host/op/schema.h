/* ATen schema strings, parsed: "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor".
 * The grammar is the whole of native_functions' (alias sets, lists with sizes, optionals, defaults, named returns). */
#ifndef HOST_OP_SCHEMA_H
#define HOST_OP_SCHEMA_H
#include "sdk/base/arena.h"
#include <backplane/types.h>

enum schema_type {
    TYPE_TENSOR = 1, TYPE_SCALAR, TYPE_INT, TYPE_SYMINT, TYPE_FLOAT, TYPE_BOOL, TYPE_STR, TYPE_DTYPE, TYPE_LAYOUT,
    TYPE_DEVICE, TYPE_MEMORY_FORMAT, TYPE_GENERATOR, TYPE_DIMNAME, TYPE_STORAGE, TYPE_STREAM, TYPE_SYMBOOL,
    TYPE_SYMFLOAT, TYPE_ANY
};

typedef struct {
    enum schema_type type;
    bool optional;        /* T? */
    bool list;            /* T[] */
    bool optional_items;  /* T?[] */
    bool optional_list;   /* T[]? */
    int32_t list_size;    /* T[2]: 2; else -1. A bare value may stand for such a list */
    char alias[8];        /* alias set of "(a!)": "a"; "" when none; "*" for a wildcard */
    bool writes;          /* the "!" */
} schema_ty;

typedef struct {
    schema_ty ty;
    const char *name;
    bool kwarg_only, has_default;
    bp_value default_value;
} schema_arg;

typedef struct {
    const char *ns, *name, *overload; /* "aten", "add", "Tensor"; overload "default" when none is written */
    schema_arg *args;
    uint32_t nargs, nkwarg_only;
    schema_ty *returns;
    const char **return_names; /* entries may be NULL */
    uint32_t nreturns;
    bool inplace;     /* argument 0 is written and returned: name ends with "_" */
    bool out_variant; /* has kwarg-only written arguments */
} schema;

/* Parses; memory from a. NULL: what and where (offset in text) are in `error` of cap bytes. */
schema *schema_parse(arena *a, const char *text, char *error, size_t cap);
/* Index of an argument by name, or -1. */
int32_t schema_find(const schema *s, const char *name);
/* Whether a value fits a type (TENSOR and NODE both fit Tensor; a number fits Tensor as a wrapped number). */
bool schema_fits(const schema_ty *ty, const bp_value *v);
/* "Tensor(a!)?", as written. */
void schema_print_type(const schema_ty *ty, buf *out);
void schema_print(const schema *s, buf *out);
bool value_eq(const bp_value *a, const bp_value *b); /* the same kind and value, floats by bits; lists by items */
#endif
