/* Options and complaints that all verbs share. */
#include "host/cli/cli.h"
#include "sdk/base/match.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cli_complain(const char *fmt, ...)
{
    va_list ap;
    fflush(stdout); /* what was said before stays before */
    va_start(ap, fmt);
    fputs("backplane: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

int cli_fail(cli *k)
{
    cli_complain("%s", bp_error_text(k->c));
    return CLI_FAILED;
}

int cli_misuse(const cli *k, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    cli_complain("%s: %s\n  hint: \"backplane %s --help\" shows how it is used", k->name, text, k->name);
    return CLI_USAGE;
}

void cli_write(void *arg, const char *text, size_t n)
{
    (void)arg;
    fwrite(text, 1, n, stdout);
}

static int print_help(const cli *k)
{
    char head[64];
    printf("usage: backplane %s %s\n\n%s\n", k->name, k->usage, k->help);
    for (const cli_option *o = k->options; o->name; o++) {
        snprintf(head, sizeof head, "%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        printf("%s  %-24s %s\n", o == k->options ? "\n" : "", head, o->help);
    }
    return CLI_OK;
}

static const cli_option *find_option(const cli *k, str name)
{
    for (const cli_option *o = k->options; o->name; o++)
        if (str_is(name, o->name))
            return o;
    return NULL;
}

static int unknown_option(const cli *k, str name)
{
    const char *names[32], *near;
    uint32_t n = 0;
    for (const cli_option *o = k->options; o->name && n < 32; o++)
        names[n++] = o->name;
    if (match_close(name, names, n, 0.6, 1, &near))
        return cli_misuse(k, "unknown option \"%.*s\", did you mean \"%s\"?", (int)name.n, name.s, near);
    return cli_misuse(k, "unknown option \"%.*s\"", (int)name.n, name.s);
}

/* One option, "--name value" or "--name=value"; *i moves over what it takes. */
static int take_option(cli *k, int argc, char **argv, int *i)
{
    str rest = str_of(argv[*i]), name = str_split(&rest, '=');
    const cli_option *o = find_option(k, name);
    const char *value = rest.s;
    if (!o)
        return unknown_option(k, name);
    if (o->value && !value && ++*i >= argc)
        return cli_misuse(k, "option \"%s\" needs %s", o->name, o->value);
    if (!o->value && value)
        return cli_misuse(k, "option \"%s\" takes no value", o->name);
    if (o->value && !value)
        value = argv[*i];
    if (!vec_reserve(&k->given, k->given.len + 1)) {
        cli_complain("out of memory");
        return CLI_FAILED;
    }
    k->given.at[k->given.len].option = o;
    k->given.at[k->given.len++].value = value ? value : "";
    return -1;
}

int cli_parse(cli *k, const cli_option *options, int argc, char **argv)
{
    bool only_args = false;
    k->options = options;
    for (int i = 0; i < argc; i++) {
        int code = -1;
        if (!only_args && (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")))
            return print_help(k);
        if (!only_args && !strcmp(argv[i], "--"))
            only_args = true;
        else if (!only_args && argv[i][0] == '-' && argv[i][1])
            code = take_option(k, argc, argv, &i);
        else if (!vec_push(&k->args, argv[i]))
            code = CLI_FAILED;
        if (code >= 0)
            return code;
    }
    return -1;
}

const char *cli_value(const cli *k, const char *option)
{
    for (uint32_t i = k->given.len; i-- > 0;)
        if (!strcmp(k->given.at[i].option->name, option))
            return k->given.at[i].value;
    return NULL;
}

bool cli_has(const cli *k, const char *option)
{
    return cli_value(k, option) != NULL;
}

int cli_number(const cli *k, const char *option, uint64_t *out)
{
    const char *text = cli_value(k, option);
    char *end = NULL;
    if (!text)
        return CLI_OK;
    errno = 0;
    uint64_t v = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno)
        return cli_misuse(k, "\"%s\" wants a whole number, got \"%s\"", option, text);
    *out = v;
    return CLI_OK;
}
