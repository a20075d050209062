/* backplane golden: PyTorch's recorded answers, on a backend. */
#include "host/tools/golden.h"
#include "host/cli/cli.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const cli_option options[] = {
    {"--backend", "NAME", "compile each case through this backend (default: eager)"},
    {"--op", "TEXT", "only cases whose operator, name or targets contain TEXT"},
    {"--check-fake", NULL, "also check shape rules, strides included; with --grad, derivatives on fakes"},
    {"--functionalize", NULL, "run each case as a captured function; also compare the inputs that it writes"},
    {"--round-trip", NULL, "print each graph, read it back and print it again: the texts must be equal"},
    {"--symbolic", NULL, "give inputs symbols for sizes; types must be the static ones, and the text must read back"},
    {"--grad", NULL, "only graphs with recorded gradients: these, by the eager tape"},
    {"--aot", "KIND", "with it: ahead of time, by the partition \"default\" or \"min-cut\""},
    {"--check-derivatives", NULL, "compare derivatives with differences in float64; rows without a case fail"},
    {"--check-symbolic", NULL, "run operators' shape rules with symbols for sizes: also right at other sizes"},
    {"--once", NULL, "with it: of each operator one case"},
    {"--strides", NULL, "also compare strides with PyTorch's"},
    {"--passes", NULL, "run all passes on each graph first, and verify that it is in core ATen then"},
    {"--decompose", NULL, "run each operator by its decomposition instead of its kernel"},
    {"--decompose-deep", NULL, "the same, with these decomposed too, down to core ATen"},
    {"--list-unsupported", NULL, "at the end, each reason and how often it was met"},
    {"-v", NULL, "also name the cases that passed by the wider-type rule or by nodes"},
    {NULL, NULL, NULL},
};

/* The line on the terminal is written over and over. */
static void show_progress(void *arg, const char *text, size_t n)
{
    (void)arg;
    fprintf(stderr, "\r%.*s\033[K", (int)n, text);
}

static void write_line(void *arg, const char *text, size_t n)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    cli_write(arg, text, n);
}

/* The backend that splits graphs so; NULL: none does. */
static const char *aot_backend(const char *kind)
{
    if (!kind)
        return NULL;
    return !strcmp(kind, "default") ? "aot_eager_default_partitioner" : !strcmp(kind, "min-cut") ? "aot_eager" : NULL;
}

int verb_golden(cli *k, int argc, char **argv)
{
    int code = cli_parse(k, options, argc, argv);
    if (code >= 0)
        return code;
    if (!k->args.len)
        return cli_misuse(k, "no file is given");
    golden_options o = {.backend = cli_value(k, "--backend"), .op = cli_value(k, "--op"), .write = write_line};
    o.check_fake = cli_has(k, "--check-fake");
    o.functionalize = cli_has(k, "--functionalize");
    o.round_trip = cli_has(k, "--round-trip");
    o.symbolic = cli_has(k, "--symbolic");
    o.grad = cli_has(k, "--grad");
    o.aot = aot_backend(cli_value(k, "--aot"));
    if (cli_value(k, "--aot") && (!o.aot || !o.grad))
        return cli_misuse(k, "--aot is default or min-cut, and goes with --grad");
    o.check_strides = cli_has(k, "--strides");
    o.passes = cli_has(k, "--passes");
    o.decompose = cli_has(k, "--decompose-deep") ? 2 : cli_has(k, "--decompose");
    o.list_unsupported = cli_has(k, "--list-unsupported");
    o.check_derivatives = cli_has(k, "--check-derivatives");
    o.check_symbolic = cli_has(k, "--check-symbolic");
    o.once = cli_has(k, "--once");
    o.verbose = cli_has(k, "-v");
    o.progress = isatty(STDERR_FILENO) ? show_progress : NULL;
    golden_counts n = {0};
    bp_status s = BP_OK;
    for (uint32_t i = 0; i < k->args.len && s == BP_OK; i++)
        s = golden_run_file(k->c, k->args.at[i], &o, &n);
    if (s == BP_OK)
        golden_finish(&n, &o);
    if (s == BP_OK)
        golden_summary(&n, &o);
    if (s == BP_OK && n.passed + n.failed + n.unsupported == 0)
        s = ctx_fail(k->c, BP_NOT_FOUND, o.op ? "no case has an operator with \"%s\" in its name"
                                              : "the golden files hold no case%s", o.op ? o.op : "");
    code = s != BP_OK ? cli_fail(k) : n.failed ? CLI_FAILED : CLI_OK;
    golden_counts_fini(&n);
    return code;
}
