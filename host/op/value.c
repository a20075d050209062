/* Values: which fit a type, which are equal, and the short ways to make them. */
#include "host/op/schema.h"
#include "host/sym/dim.h"
#include <string.h>

static bool is_number(const bp_value *v)
{
    return v->kind >= BP_VALUE_BOOL && v->kind <= BP_VALUE_COMPLEX;
}

static bool fits_one(enum schema_type type, const bp_value *v)
{
    uint32_t k = v->kind;
    bool node = k == BP_VALUE_NODE;
    switch (type) {
    case TYPE_TENSOR: return node || k == BP_VALUE_TENSOR || is_number(v);
    case TYPE_SCALAR:
    case TYPE_COMPLEX: return node || is_number(v);
    case TYPE_INT:
    case TYPE_SYMINT:
    case TYPE_DEVICE_INDEX:
    case TYPE_QSCHEME: return node || k == BP_VALUE_INT;
    case TYPE_FLOAT:
    case TYPE_SYMFLOAT: return node || k == BP_VALUE_FLOAT || k == BP_VALUE_INT;
    case TYPE_BOOL:
    case TYPE_SYMBOOL: return node || k == BP_VALUE_BOOL;
    case TYPE_STR:
    case TYPE_DIMNAME: return k == BP_VALUE_STRING;
    case TYPE_DTYPE: return k == BP_VALUE_DTYPE;
    case TYPE_LAYOUT: return k == BP_VALUE_LAYOUT;
    case TYPE_DEVICE: return k == BP_VALUE_DEVICE;
    case TYPE_MEMORY_FORMAT: return k == BP_VALUE_MEMORY_FORMAT;
    case TYPE_GENERATOR: return k == BP_VALUE_GENERATOR || k == BP_VALUE_NONE;
    case TYPE_GRAPH: return node || k == BP_VALUE_GRAPH;
    case TYPE_ANY: return true;
    case TYPE_STORAGE:
    case TYPE_STREAM:
    case TYPE_COUNT: break;
    }
    return false;
}

bool schema_fits(const schema_ty *ty, const bp_value *v)
{
    if (v->kind == BP_VALUE_NONE && (ty->optional || ty->optional_list))
        return true;
    if (!ty->list)
        return fits_one(ty->type, v);
    if (v->kind == BP_VALUE_NODE)
        return true;
    if (v->kind != BP_VALUE_LIST)
        return ty->list_size >= 0 && fits_one(ty->type, v);
    for (uint32_t i = 0; i < v->count; i++) {
        const bp_value *item = &v->v.items[i];
        if (!fits_one(ty->type, item) && !(item->kind == BP_VALUE_NONE && ty->optional_items))
            return false;
    }
    return true;
}

static bool list_eq(const bp_value *a, const bp_value *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!value_eq(&a->v.items[i], &b->v.items[i]))
            return false;
    return true;
}

bool value_eq(const bp_value *a, const bp_value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case BP_VALUE_NONE: return true;
    case BP_VALUE_NODE: return a->v.node == b->v.node;
    case BP_VALUE_TENSOR:
    case BP_VALUE_GRAPH: /* its contents are the affair of whoever knows graphs */
    case BP_VALUE_GENERATOR: return a->v.tensor == b->v.tensor;
    case BP_VALUE_INT: return dim_same(a->v.dim, b->v.dim);
    case BP_VALUE_FLOAT: return memcmp(a->v.f, b->v.f, sizeof a->v.f[0]) == 0;
    case BP_VALUE_COMPLEX: return memcmp(a->v.f, b->v.f, sizeof a->v.f) == 0;
    case BP_VALUE_STRING: return strcmp(a->v.str, b->v.str) == 0;
    case BP_VALUE_DEVICE: return a->v.device.kind == b->v.device.kind && a->v.device.index == b->v.device.index;
    case BP_VALUE_LIST: return list_eq(a, b);
    default: return a->v.i == b->v.i;
    }
}
