/* backplane operators: what operators there are, and each one's page, from the rows. */
#include "host/cli/cli.h"
#include "host/op/op.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    {"--core", NULL, "only those of core ATen"},
    {"--pages", NULL, "whole pages, not a line each"},
    {NULL, NULL, NULL},
};

/* Whether a name is the row's: "aten.add.Tensor", "add.Tensor", or "add", which all its overloads have. */
static bool is_named(const op_row *op, const char *name)
{
    const schema *s = op->schema;
    char full[192];
    if (!strncmp(name, "aten.", 5) || !strncmp(name, "aten::", 6))
        name += name[4] == ':' ? 6 : 5;
    snprintf(full, sizeof full, "%s.%s", s->name, s->overload);
    return !strcmp(name, s->name) || !strcmp(name, full);
}

static bool is_wanted(const cli *k, const op_row *op)
{
    if (cli_has(k, "--core") && !(op->flags & OP_CORE))
        return false;
    for (uint32_t i = 0; i < k->args.len; i++)
        if (is_named(op, k->args.at[i]))
            return true;
    return !k->args.len;
}

static int by_target(const void *a, const void *b)
{
    return strcmp((*(const op_row *const *)a)->target, (*(const op_row *const *)b)->target);
}

/* The rows that are wanted, by name; to be freed. */
static const op_row **wanted(const cli *k, uint32_t *n)
{
    const op_row **rows = calloc(op_count() + 1, sizeof *rows);
    *n = 0;
    for (uint32_t i = 0; rows && i < op_count(); i++)
        if (is_wanted(k, op_at(i)))
            rows[(*n)++] = op_at(i);
    if (rows)
        qsort(rows, *n, sizeof *rows, by_target);
    return rows;
}

static int unknown_name(const char *name)
{
    char target[128];
    snprintf(target, sizeof target, "%s%s", strncmp(name, "aten.", 5) ? "aten." : "", name);
    const char *near = op_nearest(target);
    if (near)
        cli_complain("no operator \"%s\", did you mean \"%s\"?", name, near);
    else
        cli_complain("no operator \"%s\"; \"backplane operators\" lists them", name);
    return CLI_FAILED;
}

/* Every name must be somebody's. */
static int check_names(const cli *k)
{
    for (uint32_t i = 0; i < k->args.len; i++) {
        bool known = false;
        for (uint32_t j = 0; j < op_count() && !known; j++)
            known = is_named(op_at(j), k->args.at[i]);
        if (!known)
            return unknown_name(k->args.at[i]);
    }
    return CLI_OK;
}

static bool print_rows(const op_row *const *rows, uint32_t n, bool pages)
{
    buf out = {0};
    int width = 0;
    for (uint32_t i = 0; i < n; i++)
        width = (int)strlen(rows[i]->target) > width ? (int)strlen(rows[i]->target) : width;
    for (uint32_t i = 0; i < n; i++) {
        if (pages)
            op_print_page(rows[i], &out);
        else
            buf_printf(&out, "%-*s  %s", width > 48 ? 48 : width, rows[i]->target, rows[i]->doc);
        buf_puts(&out, "\n");
    }
    bool ok = !out.failed;
    if (ok)
        cli_write(NULL, buf_text(&out), out.n);
    buf_fini(&out);
    return ok;
}

int verb_operators(cli *k, int argc, char **argv)
{
    int code = cli_parse(k, options, argc, argv);
    if (code >= 0)
        return code;
    uint32_t n;
    const op_row **rows = op_table_ready() ? wanted(k, &n) : NULL;
    if (!rows) {
        cli_complain("out of memory");
        return CLI_FAILED;
    }
    code = check_names(k);
    if (code == CLI_OK && !print_rows(rows, n, k->args.len || cli_has(k, "--pages"))) {
        cli_complain("out of memory");
        code = CLI_FAILED;
    }
    free(rows);
    return code;
}
