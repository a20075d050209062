/* The `backplane` command: verbs, options, exit codes. A program, so it prints and exits; errors go to stderr as
 * "backplane: ...". */
#ifndef HOST_CLI_CLI_H
#define HOST_CLI_CLI_H
#define BP_WITHOUT_OPERATORS
#include "host/base/ctx.h"
#include "sdk/base/str.h"
#include "sdk/base/vec.h"
#include <backplane/backplane.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* An option of a verb; value NULL: a switch. A table ends with a NULL name. */
typedef struct { const char *name, *value, *help; } cli_option;

typedef struct {
    const char *name, *usage, *help;
    const cli_option *options;
    bp_ctx *c;
    VEC(struct { const cli_option *option; const char *value; }) given;
    VEC(const char *) args; /* what is no option */
} cli;

typedef struct {
    const char *name;
    int (*run)(cli *k, int argc, char **argv); /* an exit code */
    const char *usage, *help;
} cli_verb;

/* Reads options and arguments. A number below 0: go on; else the verb is done and this is its exit code (--help, or a
 * mistake, which was printed). */
int cli_parse(cli *k, const cli_option *options, int argc, char **argv);
const char *cli_value(const cli *k, const char *option);  /* the last one given; NULL: none */
bool cli_has(const cli *k, const char *option);
/* An option's whole number into *out, which stays when it is not given. 0, or CLI_USAGE after a complaint. */
int cli_number(const cli *k, const char *option, uint64_t *out);
/* "backplane: ..." on stderr. */
__attribute__((format(printf, 1, 2))) void cli_complain(const char *fmt, ...);
int cli_fail(cli *k);                                     /* prints the context's error; CLI_FAILED */
__attribute__((format(printf, 2, 3))) int cli_misuse(const cli *k, const char *fmt, ...); /* CLI_USAGE */
void cli_write(void *arg, const char *text, size_t n);    /* a bp_write_fn: stdout */

#define VERB(name, run, usage, help) int run(cli *k, int argc, char **argv);
#include "host/cli/verbs.def"
#undef VERB
/* Makes conf/uninstalled beside the program its config folder, where there is one and the user names no other. */
void cli_use_build_folder(void);
#endif
