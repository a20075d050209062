/* ATen schema strings, parsed: "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor".
 * The grammar is the whole of native_functions' (alias sets, lists with sizes, optionals, defaults, named returns). */
#ifndef HOST_OP_SCHEMA_H
#define HOST_OP_SCHEMA_H
#include "sdk/base/arena.h"
#include <backplane/types.h>

enum schema_type {
#define TYPE_ROW(NAME, text) TYPE_##NAME,
#include "host/op/types.def"
#undef TYPE_ROW
    TYPE_COUNT
};

typedef struct {
    enum schema_type type;
    bool optional;        /* T? */
    bool list;            /* T[] */
    bool optional_items;  /* T?[] */
    bool optional_list;   /* T[]? */
    int32_t list_size;    /* T[2]: 2; else -1. A bare value may stand for such a list */
    bool writes;          /* the "!" */
    const char *alias;    /* alias set of "(a!)" or "(a -> *)": "a"; "" when none; "*" for a wildcard */
    const char *alias_to; /* the set behind "->": "*"; "" when none */
} schema_ty;

typedef struct {
    schema_ty ty;
    const char *name;
    bool kwarg_only, has_default;
    bp_value default_value;
    const char *default_text; /* as written; NULL when there is none */
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

/* Parses; memory from a. NULL: what and where (offset in text) are in `error` of cap bytes. A namespace may stand in
 * front ("aten::add"); aten is the default. */
schema *schema_parse(arena *a, const char *text, char *error, size_t cap);
/* Index of an argument by name, or -1. */
int32_t schema_find(const schema *s, const char *name);
/* Whether a value fits a type (TENSOR and NODE both fit Tensor; a number fits Tensor as a wrapped number; a NODE also
 * fits a number, since sizes and items are nodes). */
bool schema_fits(const schema_ty *ty, const bp_value *v);
const char *schema_type_name(enum schema_type type); /* "SymInt" */
/* "Tensor(a!)?", as written. */
void schema_print_type(const schema_ty *ty, buf *out);
/* "aten::add.Tensor(Tensor self, ...) -> Tensor". */
void schema_print(const schema *s, buf *out);
bool value_eq(const bp_value *a, const bp_value *b); /* the same kind and value, floats by bits; lists by items */
/* PyTorch's number of a ScalarType (4 is int64) as a data type; UNSET for one that is not supported. */
bp_dtype dtype_of_scalar_type(int64_t number);
/* The C identifier of an overload: "add_tensor", "relu_inplace_default", "private_softmax_default"; a namespace other
 * than aten stands in front, "__and__" becomes "dunder_and". False: cap is too small. */
bool schema_id(const schema *s, char *dst, size_t cap);
/* The same without the overload: "add", "relu_inplace". */
bool schema_op_id(const schema *s, char *dst, size_t cap);
#endif
