/* Schemas of custom operators (custom_schema.h).
 *
 * The twin of an operator that writes: the same arguments, none of them marked, and one list of results: those of the
 * operator that are new, then the values that the written tensors would have. */
#include "host/op/custom_schema.h"
#include <stdio.h>
#include <string.h>

/* -- checks -------------------------------------------------------------------------------------------------------- */

static bool is_number(const schema_ty *ty)
{
    return !ty->list && !ty->optional &&
           (ty->type == TYPE_INT || ty->type == TYPE_SYMINT || ty->type == TYPE_FLOAT || ty->type == TYPE_BOOL ||
            ty->type == TYPE_SCALAR);
}

static bool takes_type(enum schema_type t)
{
    return (t >= TYPE_TENSOR && t <= TYPE_DEVICE) || t == TYPE_MEMORY_FORMAT;
}

static bp_status check_results(bp_ctx *c, const schema *s)
{
    bool fits = true;
    for (uint32_t i = 0; i < s->nreturns; i++) {
        const schema_ty *ty = &s->returns[i];
        bool alone = s->nreturns == 1;
        fits &= !ty->optional && !ty->optional_list && !ty->optional_items &&
                ((ty->type == TYPE_TENSOR && (!ty->list || alone)) || (alone && is_number(ty)));
    }
    if (fits)
        return BP_OK;
    ctx_fail(c, BP_UNIMPLEMENTED, "the results of \"%s::%s\" are of several kinds", s->ns, s->name);
    diag_hint(&c->diag, "return nothing, tensors, one Tensor[], or one number");
    return c->diag.code;
}

static int32_t aliased(const schema *s, const schema_ty *result)
{
    for (uint32_t i = 0; i < s->nargs; i++)
        if (s->args[i].ty.alias[0] && !strcmp(s->args[i].ty.alias, result->alias))
            return (int32_t)i;
    return -1;
}

/* A result is a written argument, or a view of the first argument. */
static bp_status check_aliases(bp_ctx *c, const schema *s)
{
    for (uint32_t i = 0; i < s->nreturns; i++) {
        const schema_ty *ty = &s->returns[i];
        int32_t of = ty->alias[0] ? aliased(s, ty) : -1;
        if (!ty->alias[0])
            continue;
        if (of < 0 || s->args[of].ty.writes != ty->writes || s->args[of].ty.list || ty->list)
            return ctx_fail(c, BP_INVALID_ARGUMENT,
                            "result %u of \"%s::%s\" aliases (%s%s), which is no single argument", i, s->ns, s->name,
                            ty->alias, ty->writes ? "!" : "");
        if (!ty->writes && of != 0)
            return ctx_fail(c, BP_UNIMPLEMENTED, "result %u of \"%s::%s\" is a view of \"%s\", expected one of the "
                            "first argument", i, s->ns, s->name, s->args[of].name);
    }
    return BP_OK;
}

static bp_status check_arguments(bp_ctx *c, const schema *s)
{
    for (uint32_t i = 0; i < s->nargs; i++) {
        const schema_arg *g = &s->args[i];
        if (!takes_type(g->ty.type))
            return ctx_fail(c, BP_UNIMPLEMENTED, "argument \"%s\" of \"%s::%s\" is of type %s, which custom operators "
                            "do not take", g->name, s->ns, s->name, schema_type_name(g->ty.type));
        if (g->ty.alias[0] && g->ty.type != TYPE_TENSOR)
            return ctx_fail(c, BP_INVALID_ARGUMENT, "argument \"%s\" of \"%s::%s\" is no tensor, and is marked (%s)",
                            g->name, s->ns, s->name, g->ty.alias);
    }
    return BP_OK;
}

static bp_status check_names(bp_ctx *c, const schema *s, const char *ns)
{
    custom k;
    if (strcmp(s->ns, ns))
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the schema is of namespace \"%s\", and the library of \"%s\"", s->ns,
                        ns);
    if (strlen(s->ns) + strlen(s->name) + strlen(s->overload) + 32 > sizeof k.name)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the name \"%s::%s.%s\" is too long", s->ns, s->name, s->overload);
    return BP_OK;
}

const schema *custom_parse(bp_ctx *c, arena *a, const char *ns, const char *text)
{
    char error[300];
    const char *paren = strchr(text, '(');
    size_t head = paren ? (size_t)(paren - text) : strlen(text);
    const char *colons = strstr(text, "::");
    bool named = colons && (size_t)(colons - text) < head;
    const char *whole = named ? text : arena_printf(a, "%s::%s", ns, text);
    const schema *s = whole ? schema_parse(a, whole, error, sizeof error) : NULL;
    if (!whole) {
        ctx_nomem(c);
        return NULL;
    }
    if (!s) {
        ctx_fail(c, BP_INVALID_ARGUMENT, "the schema \"%s\" is wrong: %s", whole, error);
        return NULL;
    }
    bool ok = check_names(c, s, ns) == BP_OK && check_arguments(c, s) == BP_OK && check_results(c, s) == BP_OK &&
              check_aliases(c, s) == BP_OK;
    return ok ? s : NULL;
}

/* -- rows ---------------------------------------------------------------------------------------------------------- */

static bool writes(const schema *s)
{
    for (uint32_t i = 0; i < s->nargs; i++)
        if (s->args[i].ty.writes)
            return true;
    return false;
}

static schema *twin_schema(arena *a, const schema *s)
{
    schema *t = arena_memdup(a, s, sizeof *s);
    schema_arg *args = arena_memdup(a, s->args, s->nargs * sizeof *args);
    schema_ty *result = arena_alloc(a, sizeof *result);
    const char **label = arena_alloc(a, sizeof *label);
    if (!t || !args || !result || !label)
        return NULL;
    for (uint32_t i = 0; i < s->nargs; i++) {
        args[i].ty.writes = false;
        args[i].ty.alias = args[i].ty.alias_to = "";
    }
    *result = (schema_ty){.type = TYPE_TENSOR, .list = true, .list_size = -1, .alias = "", .alias_to = ""};
    *label = NULL;
    bool plain = !strcmp(s->overload, "default");
    t->overload = plain ? "auto_functionalized" : arena_printf(a, "%s_auto_functionalized", s->overload);
    t->args = args;
    t->returns = result;
    t->return_names = label;
    t->nreturns = 1;
    t->inplace = t->out_variant = false;
    return t->overload ? t : NULL;
}

static void fill_row(op_row *r, const char *id, const schema *s, const char *text, uint32_t flags, const char *label)
{
    *r = (op_row){.id = id, .schema_text = text, .flags = flags | OP_CUSTOM, .shape = shape_custom, .schema = s,
                  .doc = "A custom operator."};
    snprintf(r->target, sizeof r->target, "%s.%s.%s", s->ns, s->name, s->overload);
    snprintf(r->label, sizeof r->label, "%.79s", label);
}

/* One that gives and writes nothing is there for what it does besides. */
static uint32_t flags_of(const schema *s, bool conservative)
{
    bool idle = !s->nreturns && !writes(s);
    return (conservative ? OP_MAY_FAIL_ON_DATA : 0) | (idle ? OP_EFFECT : 0);
}

static bool fill_twin(custom *k, arena *a, const schema *s, uint32_t flags)
{
    buf text = {0};
    const schema *t = twin_schema(a, s);
    if (t)
        schema_print(t, &text);
    const char *copy = t && !text.failed ? arena_strdup(a, buf_text(&text)) : NULL;
    buf_fini(&text);
    if (copy)
        fill_row(&k->twin, k->twin_id, t, copy, flags, k->name);
    return copy != NULL;
}

bool custom_fill(custom *k, arena *a, const schema *s, const char *text, bool conservative)
{
    bool plain = !strcmp(s->overload, "default");
    const char *copy = arena_strdup(a, text);
    snprintf(k->name, sizeof k->name, "%s::%s%s%s", s->ns, s->name, plain ? "" : ".", plain ? "" : s->overload);
    snprintf(k->id, sizeof k->id, "%s_%s_%s", s->ns, s->name, s->overload);
    snprintf(k->twin_id, sizeof k->twin_id, "%.90s_functionalized", k->id);
    k->short_name = k->name + strlen(s->ns) + 2;
    if (!copy)
        return false;
    uint32_t flags = flags_of(s, conservative);
    fill_row(&k->row, k->id, s, copy, flags, k->name);
    return !writes(s) || fill_twin(k, a, s, flags);
}

bool custom_writes(const custom *k)
{
    return k->twin.schema != NULL;
}

bool custom_has_tensor(const schema *s)
{
    for (uint32_t i = 0; i < s->nargs; i++)
        if (s->args[i].ty.type == TYPE_TENSOR)
            return true;
    return false;
}

bool custom_has_keyword_tensor(const schema *s)
{
    for (uint32_t i = 0; i < s->nargs; i++)
        if (s->args[i].ty.type == TYPE_TENSOR && s->args[i].kwarg_only)
            return true;
    return false;
}
