/* Schemas as text again, and the C identifiers that are made of them. */
#include "host/op/schema.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *const type_names[TYPE_COUNT] = {
#define TYPE_ROW(NAME, text) [TYPE_##NAME] = text,
#include "host/op/types.def"
#undef TYPE_ROW
};

const char *schema_type_name(enum schema_type type)
{
    return type_names[type];
}

void schema_print_type(const schema_ty *ty, buf *out)
{
    buf_puts(out, type_names[ty->type]);
    if (ty->alias[0])
        buf_printf(out, "(%s%s%s%s)", ty->alias, ty->writes ? "!" : "", ty->alias_to[0] ? " -> " : "", ty->alias_to);
    if (ty->optional || ty->optional_items)
        buf_putc(out, '?');
    if (ty->list && ty->list_size >= 0)
        buf_printf(out, "[%d]", ty->list_size);
    else if (ty->list)
        buf_puts(out, "[]");
    if (ty->optional_list)
        buf_putc(out, '?');
}

static void print_argument(const schema_arg *g, buf *out)
{
    schema_print_type(&g->ty, out);
    buf_printf(out, " %s", g->name);
    if (g->has_default)
        buf_printf(out, "=%s", g->default_text);
}

static void print_returns(const schema *s, buf *out)
{
    bool many = s->nreturns != 1;
    buf_puts(out, many ? "(" : "");
    for (uint32_t i = 0; i < s->nreturns; i++) {
        buf_puts(out, i ? ", " : "");
        schema_print_type(&s->returns[i], out);
        if (s->return_names[i])
            buf_printf(out, " %s", s->return_names[i]);
    }
    buf_puts(out, many ? ")" : "");
}

void schema_print(const schema *s, buf *out)
{
    bool plain = strcmp(s->overload, "default") == 0;
    buf_printf(out, "%s::%s%s%s(", s->ns, s->name, plain ? "" : ".", plain ? "" : s->overload);
    bool star = false;
    for (uint32_t i = 0; i < s->nargs; i++) {
        buf_puts(out, i ? ", " : "");
        if (s->args[i].kwarg_only && !star) {
            buf_puts(out, "*, ");
            star = true;
        }
        print_argument(&s->args[i], out);
    }
    buf_puts(out, ") -> ");
    print_returns(s, out);
}

/* The operator's name without the underscores that C would not bear, and the words that stand for them. */
static const char *affixes(const char *name, size_t *n, const char **before)
{
    size_t len = strlen(name);
    *before = "";
    if (len > 4 && strncmp(name, "__", 2) == 0 && strcmp(name + len - 2, "__") == 0) {
        *before = "dunder_";
        *n = len - 4;
        return name + 2;
    }
    while (*name == '_' && name[1]) {
        *before = "private_";
        name++;
    }
    len = strlen(name);
    *n = len;
    return name;
}

bool schema_op_id(const schema *s, char *dst, size_t cap)
{
    size_t n;
    const char *before, *core = affixes(s->name, &n, &before), *after = "";
    if (n > 1 && core[n - 1] == '_') {
        after = "_inplace";
        n--;
    }
    bool aten = strcmp(s->ns, "aten") == 0;
    int len = snprintf(dst, cap, "%s%s%s%.*s%s", aten ? "" : s->ns, aten ? "" : "_", before, (int)n, core, after);
    if (len < 0 || (size_t)len >= cap)
        return false;
    for (char *p = dst; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return true;
}

bool schema_id(const schema *s, char *dst, size_t cap)
{
    if (!schema_op_id(s, dst, cap))
        return false;
    size_t n = strlen(dst);
    int len = snprintf(dst + n, cap - n, "_%s", s->overload);
    if (len < 0 || (size_t)len >= cap - n)
        return false;
    for (char *p = dst + n; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return true;
}
