/* Binding: positional and named values -> one value a schema argument, defaults filled in. */
#include "host/op/op.h"
#include <stdio.h>
#include <string.h>

bp_status op_fail(bp_ctx *c, const op_row *op, bp_status code, const char *fmt, ...)
{
    char text[900];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return ctx_fail(c, code, "%s: %s", op->label, text);
}

static void say_schema(bp_ctx *c, const op_row *op)
{
    diag_detail(&c->diag, "the schema is %s", op->schema_text);
}

static bp_status bind_named(bp_ctx *c, const op_row *op, const char *name, const bp_value *v, uint32_t npos,
                            bp_value *out, bool *given)
{
    int32_t i = schema_find(op->schema, name);
    if (i < 0) {
        op_fail(c, op, BP_INVALID_ARGUMENT, "there is no argument \"%s\"", name);
        say_schema(c, op);
        return c->diag.code;
    }
    if (given[i]) {
        op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"%s\" is given twice%s", name,
                (uint32_t)i < npos ? ", by position and by name" : "");
        return c->diag.code;
    }
    out[i] = *v;
    given[i] = true;
    return BP_OK;
}

static bp_status bind_rest(bp_ctx *c, const op_row *op, bp_value *out, const bool *given)
{
    for (uint32_t i = 0; i < op->schema->nargs; i++) {
        const schema_arg *g = &op->schema->args[i];
        if (given[i])
            continue;
        if (g->has_default) {
            out[i] = g->default_value;
        } else if (g->ty.type == TYPE_GENERATOR || (g->ty.optional && g->kwarg_only)) {
            out[i] = value_none();
        } else {
            op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"%s\" is missing", g->name);
            say_schema(c, op);
            return c->diag.code;
        }
    }
    return BP_OK;
}

bp_status op_bind_ordered(bp_ctx *c, const op_row *op, uint32_t n, const bp_value *pos, bp_value **args)
{
    const schema *s = op->schema;
    if (n > s->nargs)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "%u arguments, at most %u expected", n, s->nargs);
    bp_value *out = arena_array(&c->scratch, s->nargs, sizeof *out);
    bool *given = arena_array(&c->scratch, s->nargs, sizeof *given);
    if (!out || !given)
        return ctx_nomem(c);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = pos[i];
        given[i] = true;
    }
    TRY(bind_rest(c, op, out, given));
    *args = out;
    return BP_OK;
}

bp_status op_bind(bp_ctx *c, const op_row *op, const bp_value *pos, uint32_t npos, const char *const *names,
                  const bp_value *named, uint32_t nnamed, bp_value **args)
{
    const schema *s = op->schema;
    if (npos > s->nargs - s->nkwarg_only) {
        op_fail(c, op, BP_INVALID_ARGUMENT, "%u positional arguments, at most %u expected", npos,
                s->nargs - s->nkwarg_only);
        say_schema(c, op);
        return c->diag.code;
    }
    bp_value *out = arena_array(&c->scratch, s->nargs, sizeof *out);
    bool *given = arena_array(&c->scratch, s->nargs, sizeof *given);
    if (!out || !given)
        return ctx_nomem(c);
    for (uint32_t i = 0; i < npos; i++) {
        out[i] = pos[i];
        given[i] = true;
    }
    for (uint32_t k = 0; k < nnamed; k++)
        TRY(bind_named(c, op, names[k], &named[k], npos, out, given));
    TRY(bind_rest(c, op, out, given));
    *args = out;
    return BP_OK;
}
