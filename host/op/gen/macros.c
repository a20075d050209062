/* The macro (C) and function (C++) of an operator, over those of its overloads that can be told apart.
 *
 * Overloads join the first one's group when they give the same, start with the same required arguments, and agree on
 * what carries each argument; a required place where a tensor stands in one and a number in another takes either. The
 * arguments become the members of a struct, required ones first, then positional, then named ones, so that C's own
 * initializers give the macro its named arguments. An inline function picks the overload: the first, in table order,
 * that has all that is given and wants nothing that is not. An overload outside the group has a macro of its own
 * name. */
#include "host/op/gen/gen.h"
#include <stdio.h>
#include <string.h>

enum { FIELDS_MAX = 40, GROUP_MAX = 16 };

typedef struct {
    const char *name;
    enum carrier k;
    bool required, kwarg_only;
} field;

typedef struct {
    char name[120]; /* of the macro: bp_<...> without the prefix */
    const gen_row *rows[GROUP_MAX];
    uint32_t nrows, nfields, nrequired;
    field fields[FIELDS_MAX];
} group;

static bool is_number(enum carrier k)
{
    return k == CARRY_SCALAR || k == CARRY_INT || k == CARRY_DIM || k == CARRY_FLOAT || k == CARRY_BOOL;
}

static bool must_give(const schema_arg *g)
{
    return !g->has_default && !(g->kwarg_only && (g->ty.optional || g->ty.optional_list)) &&
           carrier_of(&g->ty) != CARRY_NONE;
}

/* A default that is all zeros in C: the member may be of the plain type. */
static bool default_is_zero(const schema_arg *g)
{
    const bp_value *v = &g->default_value;
    return g->has_default && ((v->kind == BP_VALUE_INT && v->v.dim.value == 0) ||
                              (v->kind == BP_VALUE_BOOL && !v->v.i) || (v->kind == BP_VALUE_FLOAT && v->v.f[0] == 0));
}

/* What carries an argument that need not be given. */
static enum carrier optional_carrier(const schema_arg *g)
{
    enum carrier k = carrier_of(&g->ty);
    bool plain = k == CARRY_INT || k == CARRY_FLOAT || k == CARRY_BOOL;
    if (plain)
        return default_is_zero(g) ? k : CARRY_SCALAR;
    return k == CARRY_DIM ? CARRY_SCALAR : k;
}

static field *find_field(group *g, const char *name)
{
    for (uint32_t i = 0; i < g->nfields; i++)
        if (strcmp(g->fields[i].name, name) == 0)
            return &g->fields[i];
    return NULL;
}

/* One carrier for both, or BAD. */
static enum carrier merge(enum carrier a, enum carrier b, bool required)
{
    bool list_and_number = (a == CARRY_DIMS && is_number(b)) || (b == CARRY_DIMS && is_number(a));
    bool either = (a == CARRY_TENSOR && is_number(b)) || (b == CARRY_TENSOR && is_number(a)) ||
                  (a == CARRY_ANY && (is_number(b) || b == CARRY_TENSOR));
    if (a == b)
        return a;
    if (is_number(a) && is_number(b))
        return CARRY_SCALAR;
    if (either)
        return required ? CARRY_ANY : CARRY_BAD;
    return list_and_number && !required ? CARRY_DIMS : CARRY_BAD;
}

static bool add_field(group *g, const schema_arg *a, bool required)
{
    field *f = find_field(g, a->name);
    enum carrier k = required ? carrier_of(&a->ty) : optional_carrier(a);
    if (carrier_of(&a->ty) == CARRY_NONE)
        return true;
    if (f) {
        f->k = merge(f->k, k, f->required);
        f->kwarg_only &= a->kwarg_only;
        return f->k != CARRY_BAD;
    }
    if (g->nfields == FIELDS_MAX)
        return false;
    g->fields[g->nfields++] = (field){a->name, k, required, a->kwarg_only};
    return true;
}

static bool starts_alike(const group *g, const schema *s)
{
    for (uint32_t i = 0; i < g->nrequired; i++)
        if (i >= s->nargs || !must_give(&s->args[i]) || strcmp(s->args[i].name, g->fields[i].name) != 0)
            return false;
    return true;
}

/* Adds a row, or leaves the group as it was. */
static bool join(group *g, const gen_row *r)
{
    if (g->nrows == GROUP_MAX || g->rows[0]->result != r->result || g->rows[0]->s->nreturns != r->s->nreturns ||
        !starts_alike(g, r->s))
        return false;
    group grown = *g;
    for (uint32_t i = 0; i < r->s->nargs; i++)
        if (!add_field(&grown, &r->s->args[i], i < g->nrequired))
            return false;
    grown.rows[grown.nrows++] = r;
    *g = grown;
    return true;
}

static void start(group *g, const gen_row *r)
{
    const schema *s = r->s;
    g->rows[g->nrows++] = r;
    while (g->nrequired < s->nargs && must_give(&s->args[g->nrequired]) && !s->args[g->nrequired].kwarg_only)
        add_field(g, &s->args[g->nrequired++], true);
    for (uint32_t i = g->nrequired; i < s->nargs; i++)
        add_field(g, &s->args[i], false);
}

/* Positional arguments before those that can only be named. */
static void order_fields(group *g)
{
    field sorted[FIELDS_MAX];
    uint32_t n = 0;
    for (int named = 0; named < 2; named++)
        for (uint32_t i = 0; i < g->nfields; i++)
            if (g->fields[i].kwarg_only == (named == 1))
                sorted[n++] = g->fields[i];
    memcpy(g->fields, sorted, n * sizeof *sorted);
}

/* -- picking the overload ------------------------------------------------------------------------------------------ */

static void put_given(buf *out, const field *f, bool given)
{
    static const char *const member[] = {[CARRY_SCALAR] = ".kind", [CARRY_DIMS] = ".given", [CARRY_FLOATS] = ".given",
                                         [CARRY_SCALARS] = ".given", [CARRY_TENSORS] = ".at", [CARRY_DEVICE] = ".kind",
                                         [CARRY_BAD] = NULL};
    buf_printf(out, "%s%sa.%s%s", out->n ? " && " : "", given ? "" : "!", f->name, member[f->k] ? member[f->k] : "");
}

static void put_condition(buf *out, const field *f, const schema_arg *a)
{
    if (!a) {
        put_given(out, f, false);
        return;
    }
    enum carrier k = carrier_of(&a->ty);
    if (f->k == CARRY_ANY)
        buf_printf(out, "%s%sbp_is_number_(a.%s)", out->n ? " && " : "", k == CARRY_TENSOR ? "!" : "", f->name);
    else if (!f->required && must_give(a))
        put_given(out, f, true);
    else if (!f->required && !a->has_default && a->kwarg_only)
        put_given(out, f, true); /* what makes this overload another one: rounding_mode */
    if (f->k == CARRY_DIMS && is_number(k))
        buf_printf(out, "%sa.%s.n == 1", out->n ? " && " : "", f->name);
}

static void put_default(buf *out, const schema_arg *a)
{
    const bp_value *v = &a->default_value;
    if (v->kind == BP_VALUE_FLOAT)
        buf_double(out, v->v.f[0]);
    else
        buf_printf(out, "%lld", (long long)(v->kind == BP_VALUE_INT ? v->v.dim.value : v->v.i));
}

/* The member as the C type that the overload's function wants. */
static void put_value(buf *out, const field *f, const schema_arg *a)
{
    static const char *const convert[] = {[CARRY_INT] = "bp_int_in_(a.c, ", [CARRY_BOOL] = "bp_int_in_(a.c, ",
                                          [CARRY_DIM] = "bp_dim_of_scalar_(", [CARRY_FLOAT] = "bp_float_in_(a.c, "};
    enum carrier k = carrier_of(&a->ty);
    const char *member = f->k == CARRY_ANY ? k == CARRY_TENSOR ? ".tensor" : ".number" : "";
    if (f->k == k || (f->k == CARRY_ANY && (k == CARRY_TENSOR || k == CARRY_SCALAR))) {
        buf_printf(out, "a.%s%s", f->name, member);
        return;
    }
    if (f->k == CARRY_DIMS) {
        buf_printf(out, k == CARRY_SCALAR ? "bp_scalar_dim(a.%s.at[0])" : k == CARRY_DIM ? "a.%s.at[0]" :
                   "a.%s.at[0].value", f->name);
        return;
    }
    if (k == CARRY_SCALAR) { /* the member is a plain number whose zero is the default */
        buf_printf(out, "bp_scalar_%s(a.%s)", f->k == CARRY_FLOAT ? "float" : "int", f->name);
        return;
    }
    const char *lift = k == CARRY_DIM ? "bp_dim_of(" : "", *end = k == CARRY_DIM ? ")" : "";
    const char *cast = k == CARRY_BOOL ? "0 != " : "";
    if (f->k == CARRY_SCALAR && a->has_default) {
        buf_printf(out, "a.%s.kind ? %s%sa.%s) : %s", f->name, cast, convert[k], f->name, lift);
        put_default(out, a);
        buf_puts(out, end);
    } else {
        buf_printf(out, "%s%sa.%s%s)", cast, convert[k], f->name, member);
    }
}

static const schema_arg *argument(const gen_row *r, const char *name)
{
    int32_t i = schema_find(r->s, name);
    return i < 0 ? NULL : &r->s->args[i];
}

/* Returns whether the overload is taken unconditionally. */
static bool put_overload(buf *out, group *g, const gen_row *r)
{
    buf when = {0};
    for (uint32_t i = 0; i < g->nfields; i++) {
        const schema_arg *a = argument(r, g->fields[i].name);
        if (!a || g->nrows > 1)
            put_condition(&when, &g->fields[i], a);
    }
    bool always = !when.n;
    if (!always)
        buf_printf(out, "    if (%s)\n    ", buf_text(&when));
    buf_printf(out, "    return bp_aten_%s(a.c", r->id);
    for (uint32_t i = 0; i < r->s->nargs; i++) {
        field *f = find_field(g, r->s->args[i].name);
        if (!f)
            continue;
        buf_puts(out, ", ");
        put_value(out, f, &r->s->args[i]);
    }
    buf_puts(out, ");\n");
    buf_fini(&when);
    return always;
}

static void put_pick(buf *out, group *g, const char *type)
{
    bool pointer = strchr(type, '*') != NULL;
    buf_printf(out, "static inline %s%sbp_%s_call_(bp_%s_args_ a)\n{\n", type, pointer ? "" : " ", g->name, g->name);
    buf_puts(out, "    bp_site_(a.c, a.file_, a.line_);\n");
    bool always = false;
    for (uint32_t i = 0; i < g->nrows && !always; i++)
        always = put_overload(out, g, g->rows[i]);
    if (!always) {
        buf_printf(out, "    bp_raise_(a.c, BP_INVALID_ARGUMENT, \"%s: no overload takes these arguments\");\n",
                   g->name);
        enum result r = g->rows[0]->result;
        bool number = r == RESULT_TENSOR || r == RESULT_BOOL || r == RESULT_FLOAT || r == RESULT_STATUS;
        if (number)
            buf_printf(out, "    return %s;\n", r == RESULT_STATUS ? "BP_INVALID_ARGUMENT" : "0");
        else
            buf_printf(out, "    { static %s none_; return none_; }\n", type);
    }
    buf_puts(out, "}\n");
}

/* -- the C macro and the C++ function ------------------------------------------------------------------------------ */

static void put_struct(buf *out, const group *g)
{
    buf_puts(out, "typedef struct {\n    bp_ctx *c;\n");
    for (uint32_t i = 0; i < g->nfields; i++) {
        buf_puts(out, "    ");
        carrier_declare(out, carrier_type(g->fields[i].k), g->fields[i].name);
        buf_puts(out, ";\n");
    }
    buf_printf(out, "    const char *file_;\n    int32_t line_;\n} bp_%s_args_;\n", g->name);
}

static void put_macro(buf *out, const group *g)
{
    buf_printf(out, "#define bp_%s(...) bp_%s_take_(__VA_ARGS__, .file_ = __FILE__, .line_ = __LINE__)\n", g->name,
               g->name);
    buf_printf(out, "#define bp_%s_take_(c_, ", g->name);
    for (uint32_t i = 0; i < g->nrequired; i++)
        buf_printf(out, "%s_, ", g->fields[i].name);
    buf_printf(out, "...) \\\n    bp_%s_call_((bp_%s_args_){.c = (c_)", g->name, g->name);
    for (uint32_t i = 0; i < g->nrequired; i++) {
        const field *f = &g->fields[i];
        static const char *const lift[] = {
            [CARRY_ANY] = "BP_ANY_", [CARRY_SCALAR] = "BP_SCALAR", [CARRY_DIM] = "BP_DIM", [CARRY_BAD] = ""};
        buf_printf(out, ", .%s = %s(%s_)", f->name, lift[f->k] ? lift[f->k] : "", f->name);
    }
    buf_puts(out, ", __VA_ARGS__})\n");
}

static void put_cxx(buf *out, const group *g, const char *type)
{
    buf_printf(out, "inline %s%sbp_%s(bp_ctx *c", type, strchr(type, '*') ? "" : " ", g->name);
    for (uint32_t i = 0; i < g->nfields; i++) {
        const field *f = &g->fields[i];
        buf_puts(out, ", ");
        carrier_declare(out, carrier_cxx(f->k), f->name);
        buf_puts(out, f->required ? "" : " = {}");
    }
    buf_printf(out, ",\n    const char *file_ = __builtin_FILE(), int32_t line_ = __builtin_LINE())\n{\n"
                    "    bp_%s_args_ a_ = {};\n    a_.c = c;\n", g->name);
    for (uint32_t i = 0; i < g->nfields; i++)
        buf_printf(out, "    a_.%s = %s%s;\n", g->fields[i].name, g->fields[i].name, carrier_member(g->fields[i].k));
    buf_printf(out, "    a_.file_ = file_;\n    a_.line_ = line_;\n    return bp_%s_call_(a_);\n}\n", g->name);
}

static void put_group(buf *out, gen_names *names, group *g)
{
    char type[32];
    order_fields(g);
    result_type(g->rows[0]->s, g->rows[0]->result, type, sizeof type);
    char full[140];
    snprintf(full, sizeof full, "bp_%s", g->name);
    names->failed |= !gen_take(names, full);
    buf_printf(out, "/* %s\n *", g->rows[0]->doc);
    for (uint32_t i = 0; i < g->nrows; i++)
        buf_printf(out, "%s bp_aten_%s", i ? "," : " Calls", g->rows[i]->id);
    buf_puts(out, ". */\n");
    put_struct(out, g);
    put_pick(out, g, type);
    buf_puts(out, "#ifdef __cplusplus\nextern \"C++\" {\n");
    put_cxx(out, g, type);
    buf_puts(out, "}\n#else\n");
    put_macro(out, g);
    buf_puts(out, "#endif\n\n");
}

void gen_macros(buf *out, gen_names *names, const gen_row *rows, uint32_t n)
{
    group main = {0};
    bool alone[256] = {false};
    char full[140];
    for (uint32_t i = 0; i < n && i < 256; i++) {
        if (rows[i].s->out_variant || !rows[i].expressible)
            continue;
        if (!main.nrows)
            start(&main, &rows[i]);
        else
            alone[i] = !join(&main, &rows[i]);
    }
    if (!main.nrows)
        return;
    snprintf(full, sizeof full, "bp_%s", rows[0].op);
    snprintf(main.name, sizeof main.name, "%s", gen_is_taken(names, full) ? main.rows[0]->id : rows[0].op);
    put_group(out, names, &main);
    for (uint32_t i = 0; i < n && i < 256; i++) {
        group own = {0};
        if (!alone[i])
            continue;
        start(&own, &rows[i]);
        snprintf(own.name, sizeof own.name, "%s", rows[i].id);
        put_group(out, names, &own);
    }
}
