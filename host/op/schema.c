/* The parser of ATen schema strings.
 *
 * A cursor walks the text once, by recursive descent; each construct is a function that leaves the cursor behind what
 * it took. The first mistake is written down with its offset and makes every later step do nothing, so that only the
 * top asks. All memory comes from the caller's arena, and nothing points into the text. */
#include "host/op/schema.h"
#include "sdk/base/vec.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    arena *a;
    const char *text;
    size_t at;
    char *error;
    size_t cap;
    bool failed;
} cursor;

BP_PRINTF(2, 3) static void fail(cursor *u, const char *fmt, ...)
{
    if (u->failed)
        return;
    u->failed = true;
    if (!u->cap)
        return;
    int n = snprintf(u->error, u->cap, "offset %zu: ", u->at);
    if (n < 0 || (size_t)n >= u->cap)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(u->error + n, u->cap - (size_t)n, fmt, ap);
    va_end(ap);
}

static void *checked(cursor *u, void *p)
{
    if (!p)
        fail(u, "out of memory");
    return p;
}

static char peek(cursor *u)
{
    while (u->text[u->at] == ' ' || u->text[u->at] == '\t')
        u->at++;
    return u->failed ? '\0' : u->text[u->at];
}

static bool accept(cursor *u, const char *token)
{
    peek(u);
    size_t n = strlen(token);
    if (u->failed || strncmp(u->text + u->at, token, n) != 0)
        return false;
    u->at += n;
    return true;
}

static void expect(cursor *u, const char *token)
{
    if (!accept(u, token))
        fail(u, "expected \"%s\", got \"%.16s\"", token, u->text + u->at);
}

static bool is_word(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_';
}

/* The word at the cursor: letters, digits and underscores; empty when there is none. */
static str word(cursor *u)
{
    peek(u);
    size_t from = u->at;
    while (!u->failed && is_word(u->text[u->at]))
        u->at++;
    return (str){u->text + from, u->at - from};
}

static const char *name(cursor *u, const char *what)
{
    str w = word(u);
    if (!w.n || isdigit((unsigned char)w.s[0])) {
        fail(u, "expected %s, got \"%.16s\"", what, w.s);
        return "";
    }
    char *copy = checked(u, arena_strndup(u->a, w.s, w.n));
    return copy ? copy : "";
}

/* -- types --------------------------------------------------------------------------------------------------------- */

static enum schema_type base_type(cursor *u)
{
    size_t from = u->at;
    str w = word(u);
    for (uint32_t i = 0; i < TYPE_COUNT; i++)
        if (str_is(w, schema_type_name((enum schema_type)i)))
            return (enum schema_type)i;
    u->at = from;
    fail(u, "\"%.*s\" is no type of a schema", (int)w.n, w.s);
    return TYPE_ANY;
}

/* An alias set: "a", "a|b" or "*". */
static const char *alias_set(cursor *u)
{
    peek(u);
    size_t from = u->at;
    while (is_word(u->text[u->at]) || u->text[u->at] == '|' || u->text[u->at] == '*')
        u->at++;
    if (u->at == from)
        fail(u, "expected an alias set, got \"%.16s\"", u->text + from);
    char *copy = checked(u, arena_strndup(u->a, u->text + from, u->at - from));
    return copy ? copy : "";
}

static void alias(cursor *u, schema_ty *ty)
{
    ty->alias = ty->alias_to = "";
    if (u->failed || u->text[u->at] != '(')
        return;
    u->at++;
    ty->alias = alias_set(u);
    ty->writes = accept(u, "!");
    if (accept(u, "->"))
        ty->alias_to = alias_set(u);
    expect(u, ")");
}

static int64_t integer(cursor *u)
{
    peek(u);
    char *end;
    errno = 0;
    long long v = u->failed ? 0 : strtoll(u->text + u->at, &end, 10);
    if (u->failed)
        return 0;
    if (end == u->text + u->at || errno)
        fail(u, "expected an integer, got \"%.16s\"", u->text + u->at);
    u->at = (size_t)(end - u->text);
    return v;
}

static void list_suffix(cursor *u, schema_ty *ty)
{
    ty->list = true;
    ty->optional_items = ty->optional;
    ty->optional = false;
    if (accept(u, "]"))
        return;
    int64_t n = integer(u);
    if (n < 0 || n > 64)
        fail(u, "a list of %lld items", (long long)n);
    ty->list_size = (int32_t)n;
    expect(u, "]");
}

static schema_ty type(cursor *u)
{
    schema_ty ty = {.type = base_type(u), .list_size = -1};
    alias(u, &ty);
    ty.optional = accept(u, "?");
    if (accept(u, "[")) {
        list_suffix(u, &ty);
        ty.optional_list = accept(u, "?");
    }
    if (accept(u, "["))
        fail(u, "lists of lists are not supported");
    return ty;
}

/* -- defaults ------------------------------------------------------------------------------------------------------ */

bp_dtype dtype_of_scalar_type(int64_t number)
{
    static const bp_dtype table[] = {
        [0] = BP_U8,  [1] = BP_I8,  [2] = BP_I16, [3] = BP_I32,  [4] = BP_I64,   [5] = BP_F16,
        [6] = BP_F32, [7] = BP_F64, [9] = BP_C64, [10] = BP_C128, [11] = BP_BOOL, [15] = BP_BF16,
    };
    return number >= 0 && number < (int64_t)(sizeof table / sizeof *table) ? table[number] : BP_DTYPE_UNSET;
}

/* Words that stand for values in native_functions, by type. */
static const struct { enum schema_type type; const char *word; uint32_t kind; int64_t i; } words[] = {
    {TYPE_MEMORY_FORMAT, "contiguous_format", BP_VALUE_MEMORY_FORMAT, BP_CONTIGUOUS},
    {TYPE_MEMORY_FORMAT, "preserve_format", BP_VALUE_MEMORY_FORMAT, BP_PRESERVE},
    {TYPE_MEMORY_FORMAT, "channels_last", BP_VALUE_MEMORY_FORMAT, BP_CHANNELS_LAST},
    {TYPE_MEMORY_FORMAT, "channels_last_3d", BP_VALUE_MEMORY_FORMAT, BP_CHANNELS_LAST_3D},
    {TYPE_LAYOUT, "strided", BP_VALUE_LAYOUT, BP_STRIDED},
    {TYPE_INT, "Mean", BP_VALUE_INT, 1},
    {TYPE_INT, "Sum", BP_VALUE_INT, 2},
    {TYPE_DTYPE, "long", BP_VALUE_DTYPE, BP_I64},
    {TYPE_DTYPE, "int", BP_VALUE_DTYPE, BP_I32},
    {TYPE_DTYPE, "half", BP_VALUE_DTYPE, BP_F16},
    {TYPE_DTYPE, "float", BP_VALUE_DTYPE, BP_F32},
    {TYPE_DTYPE, "double", BP_VALUE_DTYPE, BP_F64},
#define BP_DTYPE_ROW(NAME, number, size, cls, torch, brief, ctype, st) {TYPE_DTYPE, torch, BP_VALUE_DTYPE, number},
#include <backplane/dtype.def>
#undef BP_DTYPE_ROW
};

static bp_value value_word(cursor *u, const schema_ty *ty, str w)
{
    bp_value v = {.kind = BP_VALUE_NONE};
    if (str_is(w, "None"))
        return v;
    if (str_is(w, "True") || str_is(w, "False")) {
        v.kind = BP_VALUE_BOOL;
        v.v.i = w.s[0] == 'T';
        return v;
    }
    for (uint32_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (words[i].type != ty->type || !str_is(w, words[i].word))
            continue;
        v.kind = words[i].kind;
        if (v.kind == BP_VALUE_INT)
            v.v.dim.value = words[i].i;
        else
            v.v.i = words[i].i;
        return v;
    }
    if (ty->type == TYPE_DEVICE && (str_is(w, "cpu") || str_is(w, "cuda"))) {
        v.kind = BP_VALUE_DEVICE;
        v.v.device.kind = str_is(w, "cpu") ? BP_CPU : BP_CUDA;
        return v;
    }
    fail(u, "\"%.*s\" is no value of type %s", (int)w.n, w.s, schema_type_name(ty->type));
    return v;
}

static bp_value value_text(cursor *u, char quote)
{
    bp_value v = {.kind = BP_VALUE_STRING};
    const char *from = u->text + ++u->at, *end = strchr(from, quote);
    if (!end) {
        fail(u, "a string without its closing quote");
        return v;
    }
    u->at = (size_t)(end + 1 - u->text);
    v.v.str = checked(u, arena_strndup(u->a, from, (size_t)(end - from)));
    return v;
}

/* PyTorch's printer writes enumerations as their numbers. */
static bp_value value_numbered(cursor *u, const schema_ty *ty, int64_t n)
{
    bp_value v = {.kind = BP_VALUE_NONE};
    bool known = false;
    if (ty->type == TYPE_DTYPE) {
        v.kind = BP_VALUE_DTYPE;
        known = (v.v.i = dtype_of_scalar_type(n)) != BP_DTYPE_UNSET;
    } else if (ty->type == TYPE_LAYOUT) {
        v.kind = BP_VALUE_LAYOUT;
        v.v.i = BP_STRIDED;
        known = n == 0;
    } else {
        v.kind = BP_VALUE_MEMORY_FORMAT;
        v.v.i = n + BP_CONTIGUOUS; /* theirs counts the same formats from 0 */
        known = n >= 0 && n <= 3;
    }
    if (!known)
        fail(u, "%lld is no %s that is supported", (long long)n, schema_type_name(ty->type));
    return v;
}

static bp_value value_number(cursor *u, const schema_ty *ty)
{
    const char *from = u->text + u->at;
    size_t n = strspn(from, "+-0123456789");
    bool whole = from[n] != '.' && from[n] != 'e' && from[n] != 'E';
    bool as_float = ty->type == TYPE_FLOAT || ty->type == TYPE_SYMFLOAT;
    if (whole) {
        int64_t i = integer(u);
        if (ty->type == TYPE_DTYPE || ty->type == TYPE_LAYOUT || ty->type == TYPE_MEMORY_FORMAT)
            return value_numbered(u, ty, i);
        if (!as_float)
            return (bp_value){.kind = BP_VALUE_INT, .v.dim.value = i};
        return (bp_value){.kind = BP_VALUE_FLOAT, .v.f = {(double)i, 0}};
    }
    char *end;
    double d = strtod(from, &end);
    u->at = (size_t)(end - u->text);
    if (end == from || !(as_float || ty->type == TYPE_SCALAR))
        fail(u, "\"%.16s\" is no value of type %s", from, schema_type_name(ty->type));
    return (bp_value){.kind = BP_VALUE_FLOAT, .v.f = {d, 0}};
}

static bp_value value(cursor *u, const schema_ty *ty);

static bp_value value_list(cursor *u, const schema_ty *ty)
{
    VEC(bp_value) items = {0};
    expect(u, "[");
    while (!u->failed && peek(u) != ']') {
        if (items.len)
            expect(u, ",");
        bp_value v = value(u, ty);
        if (!u->failed && !vec_push(&items, v))
            fail(u, "out of memory");
    }
    expect(u, "]");
    bp_value v = {.kind = BP_VALUE_LIST, .count = items.len};
    v.v.items = checked(u, arena_memdup(u->a, items.at, items.len * sizeof *items.at));
    vec_fini(&items);
    return v;
}

static bp_value value(cursor *u, const schema_ty *ty)
{
    char ch = peek(u);
    if (ch == '[')
        return value_list(u, ty);
    if (ch == '"' || ch == '\'')
        return value_text(u, ch);
    if (isdigit((unsigned char)ch) || ch == '-' || ch == '.')
        return value_number(u, ty);
    str w = word(u);
    if ((str_is(w, "inf") || str_is(w, "nan")) && (ty->type == TYPE_FLOAT || ty->type == TYPE_SCALAR))
        return (bp_value){.kind = BP_VALUE_FLOAT, .v.f = {w.s[0] == 'i' ? INFINITY : NAN, 0}};
    return value_word(u, ty, w);
}

/* -- arguments, returns, the whole --------------------------------------------------------------------------------- */

static schema_arg argument(cursor *u, bool kwarg_only)
{
    schema_arg g = {.ty = type(u), .kwarg_only = kwarg_only, .name = name(u, "an argument's name")};
    if (!accept(u, "="))
        return g;
    peek(u);
    size_t from = u->at;
    g.has_default = true;
    g.default_value = value(u, &g.ty);
    g.default_text = checked(u, arena_strndup(u->a, u->text + from, u->at - from));
    if (!u->failed && !schema_fits(&g.ty, &g.default_value)) {
        u->at = from;
        fail(u, "the default of \"%s\" does not fit its type", g.name);
    }
    return g;
}

static void arguments(cursor *u, schema *s)
{
    VEC(schema_arg) args = {0};
    bool kwarg_only = false;
    expect(u, "(");
    for (bool first = true; !u->failed && peek(u) != ')'; first = false) {
        if (!first)
            expect(u, ",");
        if (!kwarg_only && accept(u, "*")) {
            kwarg_only = true;
            continue;
        }
        schema_arg g = argument(u, kwarg_only);
        for (uint32_t i = 0; i < args.len && !u->failed; i++)
            if (strcmp(args.at[i].name, g.name) == 0)
                fail(u, "a second argument \"%s\"", g.name);
        if (!u->failed && !vec_push(&args, g))
            fail(u, "out of memory");
        s->nkwarg_only += kwarg_only;
        s->out_variant |= kwarg_only && g.ty.writes;
    }
    expect(u, ")");
    s->nargs = args.len;
    s->args = checked(u, arena_memdup(u->a, args.at, args.len * sizeof *args.at));
    vec_fini(&args);
}

static bool returns_one(cursor *u, schema_ty *ty, const char **label)
{
    *ty = type(u);
    *label = is_word(peek(u)) ? name(u, "a result's name") : NULL;
    return !u->failed;
}

static void returns(cursor *u, schema *s)
{
    VEC(schema_ty) types = {0};
    VEC(const char *) labels = {0};
    bool many = accept(u, "(");
    while (!u->failed && !(many && peek(u) == ')')) {
        schema_ty ty;
        const char *label;
        if (types.len)
            expect(u, ",");
        if (returns_one(u, &ty, &label) && !(vec_push(&types, ty) && vec_push(&labels, label)))
            fail(u, "out of memory");
        if (!many)
            break;
    }
    if (many)
        expect(u, ")");
    s->nreturns = types.len;
    s->returns = checked(u, arena_memdup(u->a, types.at, types.len * sizeof *types.at));
    s->return_names = checked(u, arena_memdup(u->a, labels.at, labels.len * sizeof *labels.at));
    vec_fini(&types);
    vec_fini(&labels);
}

static void head(cursor *u, schema *s)
{
    s->ns = "aten";
    s->overload = "default";
    s->name = name(u, "an operator's name");
    if (accept(u, "::")) {
        s->ns = s->name;
        s->name = name(u, "an operator's name");
    }
    if (accept(u, "."))
        s->overload = name(u, "an overload's name");
}

schema *schema_parse(arena *a, const char *text, char *error, size_t cap)
{
    cursor u = {.a = a, .text = text, .error = error, .cap = cap};
    if (cap)
        error[0] = '\0';
    schema *s = checked(&u, arena_alloc(a, sizeof *s));
    if (!s)
        return NULL;
    head(&u, s);
    arguments(&u, s);
    expect(&u, "->");
    returns(&u, s);
    if (peek(&u) != '\0')
        fail(&u, "expected the end, got \"%.16s\"", text + u.at);
    if (u.failed)
        return NULL;
    size_t n = strlen(s->name);
    bool dunder = n > 1 && strcmp(s->name + n - 2, "__") == 0;
    s->inplace = s->nargs && s->args[0].ty.writes && !s->args[0].kwarg_only && s->name[n - 1] == '_' && !dunder;
    return s;
}

int32_t schema_find(const schema *s, const char *wanted)
{
    for (uint32_t i = 0; i < s->nargs; i++)
        if (strcmp(s->args[i].name, wanted) == 0)
            return (int32_t)i;
    return -1;
}
