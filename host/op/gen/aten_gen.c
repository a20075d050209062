/* Writes <backplane/aten.h> and host/op/aten_calls.c from the rows of ops.def.
 *
 *     aten_gen header PUBLIC-HEADER...     the header, to standard output
 *     aten_gen calls                       the definitions
 *
 * The public headers are read for names that no macro may take. A schema that does not parse, an id that is not its
 * schema's, an argument named as the context, two equal names: each fails the build with a line that says which. */
#include "host/op/gen/gen.h"
#include "host/op/op.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const gen_text gen_texts[] = {
#define OP(id, schema, flags, shape, kernel, doc) {#id, schema, doc, flags},
#define VIEW(id, schema, flags, shape, doc) {#id, schema, doc, (flags) | OP_VIEW},
#define INPLACE(id, schema, flags, functional, doc) {#id, schema, doc, flags},
#include "host/op/ops.def"
#undef OP
#undef VIEW
#undef INPLACE
};
const uint32_t gen_ntexts = sizeof gen_texts / sizeof *gen_texts;

typedef struct {
    arena memory;
    VEC(gen_row) rows;    /* grouped by operator, in order of first appearance */
    gen_names names;
} gen;

static bool complain(const char *who, const char *what)
{
    fputs("aten_gen: ", stderr);
    fputs(who, stderr);
    fputs(": ", stderr);
    fputs(what, stderr);
    fputs("\n", stderr);
    return false;
}

bool gen_is_taken(const gen_names *n, const char *name)
{
    return map_get(&n->names, str_of(name)) != NULL;
}

bool gen_take(gen_names *n, const char *name)
{
    bool is_new = false;
    if (!map_put(&n->names, str_of(name), &is_new))
        return complain(name, "out of memory");
    return is_new || complain(name, "two public names are equal");
}

/* -- rows ---------------------------------------------------------------------------------------------------------- */

static bool expressible(const gen_row *r)
{
    bool ok = r->result != RESULT_BAD;
    for (uint32_t i = 0; i < r->s->nargs; i++)
        ok &= carrier_of(&r->s->args[i].ty) != CARRY_BAD;
    return ok;
}

static bool check_row(const gen_row *r)
{
    char id[96];
    if (!schema_id(r->s, id, sizeof id) || strcmp(id, r->id) != 0)
        return complain(r->id, id);
    for (uint32_t i = 0; i < r->s->nargs; i++)
        if (strcmp(r->s->args[i].name, "c") == 0)
            return complain(r->id, "an argument named as the context");
    if (!r->doc[0] || strstr(r->doc, "*/"))
        return complain(r->id, "the doc line is empty or ends a comment");
    return true;
}

static bool parse_rows(gen *g)
{
    char error[256];
    for (uint32_t i = 0; i < gen_ntexts; i++) {
        gen_row r = {.id = gen_texts[i].id, .doc = gen_texts[i].doc, .flags = gen_texts[i].flags};
        r.s = schema_parse(&g->memory, gen_texts[i].text, error, sizeof error);
        if (!r.s)
            return complain(r.id, error);
        if (!check_row(&r) || !schema_op_id(r.s, r.op, sizeof r.op))
            return false;
        r.result = result_of(r.s);
        r.expressible = expressible(&r);
        if (!vec_push(&g->rows, r))
            return complain(r.id, "out of memory");
    }
    return true;
}

/* Stable: rows of one operator come together, where its first row stood. */
static bool group_rows(gen *g)
{
    VEC(gen_row) sorted = {0};
    bool *done = arena_array(&g->memory, g->rows.len, sizeof *done);
    for (uint32_t i = 0; done && i < g->rows.len; i++)
        for (uint32_t j = i; j < g->rows.len; j++) {
            if (done[j] || strcmp(g->rows.at[i].op, g->rows.at[j].op) != 0)
                continue;
            done[j] = true;
            if (!vec_push(&sorted, g->rows.at[j]))
                return complain("rows", "out of memory");
        }
    for (uint32_t i = 0; i < sorted.len; i++)
        g->rows.at[i] = sorted.at[i];
    vec_fini(&sorted);
    return done != NULL;
}

/* -- names of the public headers ----------------------------------------------------------------------------------- */

/* The whole file without its comments, NUL-terminated, in memory of the caller's (free). */
static char *read_code(const char *path)
{
    FILE *f = fopen(path, "r");
    buf text = {0};
    bool inside = false;
    for (int ch, last = 0; f && (ch = fgetc(f)) != EOF; last = ch) {
        if (!inside && last == '/' && ch == '*') {
            inside = true;
            ch = 0;
        } else if (inside && last == '*' && ch == '/') {
            inside = false;
        } else if (!inside) {
            buf_putc(&text, (char)ch);
        }
    }
    if (f)
        fclose(f);
    if (!f || text.failed || !text.n)
        complain(path, "cannot be read");
    return text.s;
}

static bool take_names_of(gen *g, const char *path)
{
    char *code = read_code(path);
    bool ok = code != NULL;
    for (const char *p = code; ok && *p;) {
        size_t n = 0;
        while (isalnum((unsigned char)p[n]) || p[n] == '_')
            n++;
        if (n > 3 && strncmp(p, "bp_", 3) == 0)
            ok = map_put(&g->names.names, (str){p, n}, NULL) != NULL;
        p += n ? n : 1;
    }
    free(code);
    return ok;
}

/* plugin.h makes bp_<row> of each row of host_api.def. */
static bool take_service_names(gen *g)
{
    static const char *const services[] = {
#define BP_API_ROW(since, result, name, params, args, handle, fallback) "bp_" #name,
#define BP_API_VOID(since, name, params, args, handle) "bp_" #name,
#include <backplane/host_api.def>
#undef BP_API_ROW
#undef BP_API_VOID
    };
    for (size_t i = 0; i < sizeof services / sizeof *services; i++)
        if (!map_put(&g->names.names, str_of(services[i]), NULL))
            return complain(services[i], "out of memory");
    return true;
}

/* -- the two files ------------------------------------------------------------------------------------------------- */

static uint32_t rows_of_op(const gen *g, uint32_t i)
{
    uint32_t n = 1;
    while (i + n < g->rows.len && strcmp(g->rows.at[i].op, g->rows.at[i + n].op) == 0)
        n++;
    return n;
}

static void put_functions(gen *g, buf *out, uint32_t i, uint32_t n)
{
    for (uint32_t k = i; k < i + n; k++) {
        const gen_row *r = &g->rows.at[k];
        if (!r->expressible)
            continue;
        char full[120];
        snprintf(full, sizeof full, "bp_aten_%s", r->id);
        g->names.failed |= !gen_take(&g->names, full);
        buf_printf(out, "/* %s\n * ", r->doc);
        schema_print(r->s, out);
        buf_puts(out, " */\n");
        gen_prototype(out, r, true);
        buf_puts(out, ";\n");
    }
}

static bool header(gen *g, buf *out, char **paths, int npaths)
{
    for (int i = 0; i < npaths; i++)
        if (!take_names_of(g, paths[i]))
            return false;
    if (!take_service_names(g))
        return false;
    buf_puts(out, "/* The operators: a function an overload, a macro an operator. Generated from the operator table;\n"
                  " * <backplane/args.h> says how arguments are given. */\n#ifndef BP_ATEN_H\n#define BP_ATEN_H\n\n"
                  "#include <backplane/args.h>\n\nBP_EXTERN_C_BEGIN\n\n");
    for (uint32_t i = 0, n; i < g->rows.len; i += n) {
        n = rows_of_op(g, i);
        put_functions(g, out, i, n);
        gen_macros(out, &g->names, &g->rows.at[i], n);
    }
    buf_puts(out, "BP_EXTERN_C_END\n#endif\n");
    return !g->names.failed;
}

static bool calls(const gen *g, buf *out)
{
    buf_puts(out, "/* The functions of <backplane/aten.h>: each packs its arguments and dispatches. Generated. */\n"
                  "#include \"host/op/aten.h\"\n#include \"host/op/rows.h\"\n#include <backplane/aten.h>\n\n");
    for (uint32_t i = 0; i < g->rows.len; i++)
        if (g->rows.at[i].expressible)
            gen_definition(out, &g->rows.at[i]);
    return true;
}

int main(int argc, char **argv)
{
    gen g = {0};
    buf out = {0};
    bool ok = argc > 1 && parse_rows(&g) && group_rows(&g);
    if (ok && strcmp(argv[1], "header") == 0)
        ok = header(&g, &out, argv + 2, argc - 2);
    else if (ok)
        ok = calls(&g, &out);
    ok = ok && !out.failed && fwrite(buf_text(&out), 1, out.n, stdout) == out.n && fflush(stdout) == 0;
    buf_fini(&out);
    vec_fini(&g.rows);
    map_fini(&g.names.names);
    arena_fini(&g.memory);
    return ok ? 0 : 1;
}
