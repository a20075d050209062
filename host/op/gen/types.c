/* Which C type carries which schema type. */
#include "host/op/gen/gen.h"
#include <stdio.h>
#include <string.h>

static const struct { const char *c, *pack, *cxx, *member; } carriers[] = {
#define CARRIER_ROW(NAME, c, pack, cxx, member) [CARRY_##NAME] = {c, pack, cxx, member},
    CARRIERS(CARRIER_ROW)
#undef CARRIER_ROW
};

const char *carrier_type(enum carrier k)
{
    return carriers[k].c;
}

const char *carrier_pack(enum carrier k)
{
    return carriers[k].pack;
}

const char *carrier_cxx(enum carrier k)
{
    return carriers[k].cxx;
}

const char *carrier_member(enum carrier k)
{
    return carriers[k].member;
}

void carrier_declare(buf *out, const char *type, const char *name)
{
    size_t n = strlen(type);
    buf_printf(out, "%s%s%s", type, n && type[n - 1] == '*' ? "" : " ", name);
}

static enum carrier list_carrier(const schema_ty *ty)
{
    switch (ty->type) {
    case TYPE_TENSOR: return CARRY_TENSORS;
    case TYPE_INT:
    case TYPE_SYMINT:
    case TYPE_BOOL: return ty->optional_items ? CARRY_BAD : CARRY_DIMS;
    case TYPE_FLOAT: return CARRY_FLOATS;
    case TYPE_SCALAR: return CARRY_SCALARS;
    default: return CARRY_BAD;
    }
}

enum carrier carrier_of(const schema_ty *ty)
{
    if (ty->list)
        return list_carrier(ty);
    switch (ty->type) {
    case TYPE_TENSOR: return CARRY_TENSOR;
    case TYPE_SCALAR:
    case TYPE_COMPLEX: return CARRY_SCALAR;
    case TYPE_INT:
    case TYPE_DEVICE_INDEX: return ty->optional ? CARRY_SCALAR : CARRY_INT;
    case TYPE_SYMINT: return ty->optional ? CARRY_SCALAR : CARRY_DIM;
    case TYPE_FLOAT: return ty->optional ? CARRY_SCALAR : CARRY_FLOAT;
    case TYPE_BOOL: return ty->optional ? CARRY_SCALAR : CARRY_BOOL;
    case TYPE_STR: return CARRY_STR;
    case TYPE_DTYPE: return CARRY_DTYPE;
    case TYPE_LAYOUT: return CARRY_LAYOUT;
    case TYPE_DEVICE: return CARRY_DEVICE;
    case TYPE_MEMORY_FORMAT: return CARRY_FORMAT;
    case TYPE_GENERATOR: return CARRY_NONE;
    default: return CARRY_BAD;
    }
}

static enum result single(const schema_ty *ty)
{
    if (ty->list)
        return ty->type == TYPE_TENSOR ? RESULT_LIST : RESULT_BAD;
    switch (ty->type) {
    case TYPE_TENSOR: return RESULT_TENSOR;
    case TYPE_SCALAR: return RESULT_SCALAR;
    case TYPE_INT:
    case TYPE_SYMINT: return RESULT_DIM;
    case TYPE_FLOAT: return RESULT_FLOAT;
    case TYPE_BOOL:
    case TYPE_SYMBOOL: return RESULT_BOOL;
    default: return RESULT_BAD;
    }
}

enum result result_of(const schema *s)
{
    if (s->nreturns == 0)
        return RESULT_STATUS;
    if (s->nreturns == 1)
        return single(&s->returns[0]);
    for (uint32_t i = 0; i < s->nreturns; i++)
        if (s->returns[i].type != TYPE_TENSOR || s->returns[i].list)
            return RESULT_BAD;
    return s->nreturns <= 8 ? RESULT_TENSORS : RESULT_BAD;
}

const char *result_type(const schema *s, enum result r, char *dst, size_t cap)
{
    static const char *const fixed[] = {
        [RESULT_TENSOR] = "bp_tensor *", [RESULT_LIST] = "bp_tensors", [RESULT_SCALAR] = "bp_scalar",
        [RESULT_DIM] = "bp_dim",         [RESULT_FLOAT] = "double",    [RESULT_BOOL] = "int",
        [RESULT_STATUS] = "bp_status",   [RESULT_BAD] = "void",
    };
    if (r == RESULT_TENSORS)
        snprintf(dst, cap, "bp_tensor%u", s->nreturns);
    else
        snprintf(dst, cap, "%s", fixed[r]);
    return dst;
}
