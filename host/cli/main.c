/* backplane VERB ...: finds the verb's row and runs it. */
#include <config.h>
#include "host/cli/cli.h"
#include "sdk/base/match.h"
#include <stdio.h>
#include <string.h>

static const cli_verb verbs[] = {
#define VERB(name, run, usage, help) {name, run, usage, help},
#include "host/cli/verbs.def"
#undef VERB
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static void print_usage(FILE *to)
{
    fputs("usage: backplane VERB [argument...]\n\n", to);
    for (uint32_t i = 0; i < VERBS; i++)
        fprintf(to, "  %-10s %s\n", verbs[i].name, verbs[i].help);
    fputs("\n  backplane VERB --help    its options\n  backplane --version\n", to);
}

static const cli_verb *find_verb(const char *name)
{
    for (uint32_t i = 0; i < VERBS; i++)
        if (!strcmp(verbs[i].name, name))
            return &verbs[i];
    return NULL;
}

static int unknown_verb(const char *name)
{
    const char *names[VERBS], *near;
    for (uint32_t i = 0; i < VERBS; i++)
        names[i] = verbs[i].name;
    if (match_close(str_of(name), names, VERBS, 0.6, 1, &near))
        cli_complain("unknown verb \"%s\"; did you mean \"%s\"?", name, near);
    else
        cli_complain("unknown verb \"%s\"; \"backplane --help\" lists them", name);
    return CLI_USAGE;
}

static int run_verb(const cli_verb *v, int argc, char **argv)
{
    cli k = {.name = v->name, .usage = v->usage, .help = v->help, .c = bp_ctx_new(NULL)};
    if (!k.c) {
        cli_complain("out of memory");
        return CLI_FAILED;
    }
    int code = v->run(&k, argc, argv);
    vec_fini(&k.given);
    vec_fini(&k.args);
    bp_ctx_destroy(k.c);
    if (fflush(stdout) != 0 && code == CLI_OK) {
        cli_complain("writing to the standard output failed");
        code = CLI_FAILED;
    }
    return code;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        print_usage(stderr);
        return CLI_USAGE;
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        print_usage(stdout);
        return CLI_OK;
    }
    if (!strcmp(name, "--version")) {
        puts("backplane " PACKAGE_VERSION);
        return CLI_OK;
    }
    const cli_verb *v = find_verb(name);
    cli_use_build_folder();
    return v ? run_verb(v, argc - 2, argv + 2) : unknown_verb(name);
}
