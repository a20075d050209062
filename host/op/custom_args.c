/* What a kernel, fake or setup function sees of its call: arguments by their place, results to be given. */
#include "host/op/library.h"
#include <stdio.h>
#include <string.h>

static const bp_value none = {.kind = BP_VALUE_NONE};

static const bp_value *arg(const bp_op_call *k, uint32_t i)
{
    return k && i < k->nargs ? &k->args[i] : &none;
}

uint32_t bp_op_arg_count(const bp_op_call *k)
{
    return k ? k->nargs : 0;
}

const bp_value *bp_op_arg(const bp_op_call *k, uint32_t i)
{
    return k && i < k->nargs ? &k->args[i] : NULL;
}

bp_tensor *bp_op_tensor(const bp_op_call *k, uint32_t i)
{
    return arg_tensor(arg(k, i), 0);
}

bp_dim bp_op_dim(const bp_op_call *k, uint32_t i)
{
    return arg_dim(arg(k, i), 0);
}

int64_t bp_op_int(const bp_op_call *k, uint32_t i)
{
    return dim_number(bp_op_dim(k, i));
}

double bp_op_float(const bp_op_call *k, uint32_t i)
{
    return arg_float(arg(k, i), 0);
}

int bp_op_bool(const bp_op_call *k, uint32_t i)
{
    return arg_bool(arg(k, i), 0);
}

bp_scalar bp_op_scalar(const bp_op_call *k, uint32_t i)
{
    return arg_scalar(arg(k, i), 0);
}

const char *bp_op_str(const bp_op_call *k, uint32_t i)
{
    return arg_str(arg(k, i), 0);
}

bp_dtype bp_op_dtype(const bp_op_call *k, uint32_t i)
{
    return arg_dtype(arg(k, i), 0);
}

bp_device bp_op_device(const bp_op_call *k, uint32_t i)
{
    return arg_device(arg(k, i), 0);
}

int bp_op_is_none(const bp_op_call *k, uint32_t i)
{
    return arg(k, i)->kind == BP_VALUE_NONE;
}

uint32_t bp_op_list_count(const bp_op_call *k, uint32_t i)
{
    return arg_list_len(arg(k, i), 0);
}

static const bp_value *item(const bp_op_call *k, uint32_t i, uint32_t j)
{
    const bp_value *v = arg(k, i);
    if (v->kind == BP_VALUE_LIST)
        return j < v->count ? &v->v.items[j] : &none;
    return j == 0 ? v : &none;
}

bp_tensor *bp_op_list_tensor(const bp_op_call *k, uint32_t i, uint32_t j)
{
    return arg_tensor(item(k, i, j), 0);
}

bp_dim bp_op_list_dim(const bp_op_call *k, uint32_t i, uint32_t j)
{
    return arg_dim(item(k, i, j), 0);
}

double bp_op_list_float(const bp_op_call *k, uint32_t i, uint32_t j)
{
    return arg_float(item(k, i, j), 0);
}

uint32_t bp_op_find_arg(const bp_op_call *k, const char *name)
{
    int32_t i = k && name ? schema_find(k->schema, name) : -1;
    return i < 0 ? UINT32_MAX : (uint32_t)i;
}

const char *bp_op_name(const bp_op_call *k)
{
    return k ? k->of->name : "";
}

void *bp_op_user(const bp_op_call *k)
{
    return k ? k->user : NULL;
}

void bp_op_return(bp_ctx *c, bp_op_call *k, bp_tensor *t)
{
    if (ctx_ok(c) && !vec_push(&k->out, t))
        ctx_nomem(c);
}

void bp_op_return_number(bp_ctx *c, bp_op_call *k, bp_scalar number)
{
    const schema *s = k->schema;
    bp_value v = value_scalar(number);
    if (!ctx_ok(c))
        return;
    bool wanted = s->nreturns == 1 && s->returns[0].type != TYPE_TENSOR;
    if (!wanted || v.kind == BP_VALUE_NONE || !schema_fits(&s->returns[0], &v))
        bp_op_fail(c, k, BP_INVALID_ARGUMENT, "it gives a number that does not fit its schema, %s",
                   k->of->row.schema_text);
    else
        k->number = v;
}

bp_tensor *bp_op_result(const bp_op_call *k, uint32_t i)
{
    return k && i < k->nresults ? k->results[i] : NULL;
}

void bp_op_fail(bp_ctx *c, const bp_op_call *k, bp_status code, const char *fmt, ...)
{
    char text[900];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ctx_fail(c, code, "%s: %s", k ? k->of->name : "an operator", text);
}
