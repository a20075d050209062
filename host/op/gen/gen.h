/* The generator of aten.h: what its parts share. */
#ifndef HOST_OP_GEN_GEN_H
#define HOST_OP_GEN_GEN_H
#include "host/op/schema.h"
#include "sdk/base/map.h"
#include "sdk/base/vec.h"

/* How an argument travels in C. One row a carrier:
 * CARRIER_ROW(NAME, C type, pack function of host/op/aten.h, C++ parameter type, C++ member that is the C value) */
#define CARRIERS(ROW)                                                                   \
    ROW(NONE, "", "", "", "")                                                           \
    ROW(TENSOR, "bp_tensor *", "pack_tensor", "bp_tensor *", "")                        \
    ROW(TENSORS, "bp_tensors", "pack_tensors", "bp_::tensors", ".list")                 \
    ROW(SCALAR, "bp_scalar", "pack_scalar", "bp_::number", ".s")                        \
    ROW(SCALARS, "bp_scalars", "pack_scalars", "bp_::scalars", ".list")                 \
    ROW(INT, "int64_t", "pack_int", "int64_t", "")                                      \
    ROW(DIM, "bp_dim", "pack_dim", "bp_::size", ".d")                                   \
    ROW(FLOAT, "double", "pack_float", "double", "")                                    \
    ROW(BOOL, "int", "pack_bool", "int", "")                                            \
    ROW(DIMS, "bp_dims", "pack_dims", "bp_::sizes", ".list")                            \
    ROW(FLOATS, "bp_floats", "pack_floats", "bp_::floats", ".list")                     \
    ROW(STR, "const char *", "pack_str", "const char *", "")                            \
    ROW(DTYPE, "bp_dtype", "pack_dtype", "bp_dtype", "")                                \
    ROW(LAYOUT, "int32_t", "pack_layout", "int32_t", "")                                \
    ROW(DEVICE, "bp_device", "pack_device", "bp_device", "")                            \
    ROW(FORMAT, "int32_t", "pack_format", "int32_t", "")                                \
    ROW(ANY, "bp_operand", "", "bp_::any", ".a")                                            \
    ROW(BAD, "", "", "", "")

enum carrier {
#define CARRIER_ROW(NAME, c, pack, cxx, member) CARRY_##NAME,
    CARRIERS(CARRIER_ROW)
#undef CARRIER_ROW
};

/* What a function gives. */
enum result { RESULT_TENSOR, RESULT_TENSORS, RESULT_LIST, RESULT_SCALAR, RESULT_DIM, RESULT_FLOAT, RESULT_BOOL,
              RESULT_STATUS, RESULT_BAD };

typedef struct { const char *id, *text, *doc; uint32_t flags; } gen_text; /* a row of ops.def */
typedef struct {
    const char *id, *doc;
    uint32_t flags;       /* enum op_flag */
    schema *s;
    char op[80];          /* schema_op_id */
    enum result result;
    bool expressible;     /* every argument and result has a C form */
} gen_row;

extern const gen_text gen_texts[];
extern const uint32_t gen_ntexts;

const char *carrier_type(enum carrier k);
const char *carrier_pack(enum carrier k);
const char *carrier_cxx(enum carrier k);
const char *carrier_member(enum carrier k);
/* "TYPE name", with the star next to the name. */
void carrier_declare(buf *out, const char *type, const char *name);
enum carrier carrier_of(const schema_ty *ty);
enum result result_of(const schema *s);
/* The C type of a result; n: how many tensors. */
const char *result_type(const schema *s, enum result r, char *dst, size_t cap);

/* Prototypes and definitions of the functions bp_aten_<id>. */
void gen_prototype(buf *out, const gen_row *r, bool exported);
void gen_definition(buf *out, const gen_row *r);

/* Names that are taken: of the public headers, and of what was made before. */
typedef struct { map names; bool failed; } gen_names;
/* Adds; false and a line on stderr when it is taken. */
bool gen_take(gen_names *n, const char *name);
bool gen_is_taken(const gen_names *n, const char *name);

/* The macro (C) and function (C++) of one operator: rows[0 .. n) have the same operator id, in table order. */
void gen_macros(buf *out, gen_names *names, const gen_row *rows, uint32_t n);
#endif
