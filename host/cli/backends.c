/* backplane backends and doctor: which backends there are, in what state, and where the config comes from. */
#include "host/backend/backend.h"
#include "host/backend/config.h"
#include "host/cli/cli.h"
#include <stdio.h>

static const cli_option backends_options[] = {
    {"--all", NULL, "also those tagged debug or experimental"},
    {"--probe", NULL, "load each one, to see whether it is usable"},
    {"--states", NULL, "list the states that a backend may be in, and the error that each one is"},
    {NULL, NULL, NULL},
};
static const cli_option doctor_options[] = {
    {"--forget", NULL, "forget how probes of plugins went, so that the next look-up probes again"},
    {"--keys", NULL, "list what a config may hold, and the environment variables"},
    {NULL, NULL, NULL},
};

typedef VEC(const char *) names;

static void take_name(void *arg, const char *name)
{
    (void)vec_push((names *)arg, name);
}

static int list_names(cli *k, bool all, names *out)
{
    return bp_list_backends(k->c, all ? "" : NULL, take_name, out) == BP_OK ? CLI_OK : cli_fail(k);
}

static int print_backend(cli *k, const char *name, bool probe, int width)
{
    const char *state, *why;
    if (bp_backend_state(k->c, name, probe, &state, &why) != BP_OK)
        return cli_fail(k);
    if (why && *why)
        printf("%-*s  %-10s  %s\n", width, name, state, why);
    else
        printf("%-*s  %s\n", width, name, state);
    return CLI_OK;
}

static int width_of(const names *n)
{
    size_t width = 4;
    for (uint32_t i = 0; i < n->len; i++)
        width = str_of(n->at[i]).n > width ? str_of(n->at[i]).n : width;
    return (int)width;
}

/* A table of the host, whole. */
static int print_table(void (*print)(buf *out))
{
    buf text = {0};
    print(&text);
    cli_write(NULL, buf_text(&text), text.n);
    buf_fini(&text);
    return CLI_OK;
}

int verb_backends(cli *k, int argc, char **argv)
{
    names n = {0};
    int code = cli_parse(k, backends_options, argc, argv);
    if (code >= 0)
        return code;
    if (k->args.len)
        return cli_misuse(k, "it takes no argument; \"backplane doctor %s\" tells more of one", k->args.at[0]);
    if (cli_has(k, "--states"))
        return print_table(backend_print_states);
    code = list_names(k, cli_has(k, "--all"), &n);
    for (uint32_t i = 0; i < n.len && code == CLI_OK; i++)
        code = print_backend(k, n.at[i], cli_has(k, "--probe"), width_of(&n));
    vec_fini(&n);
    return code;
}

/* -- doctor -------------------------------------------------------------------------------------------------------- */

static void print_fact(const char *what, const char *value)
{
    if (value && *value)
        printf("  %-8s %s\n", what, value);
}

/* Loads one and tells all that is known of it; CLI_FAILED when it cannot be used. */
static int examine(cli *k, const char *name)
{
    const char *state, *why;
    if (bp_backend_state(k->c, name, 1, &state, &why) != BP_OK)
        return cli_fail(k);
    backend *b = backend_lookup(k->c, name);
    diag_clear(&k->c->diag); /* its story is the state */
    printf("%s: %s\n", name, state);
    print_fact("why", why);
    if (b) {
        print_fact("from", backend_origin_text(b));
        print_fact("library", backend_library(b));
        print_fact("version", backend_version(b));
        buf info = {0};
        backend_print_info(b, &info);
        cli_write(NULL, buf_text(&info), info.n);
        buf_fini(&info);
    }
    return b ? CLI_OK : CLI_FAILED;
}

static int print_config(cli *k)
{
    buf text = {0};
    int code = config_check(k->c) == BP_OK ? CLI_OK : cli_fail(k);
    config_print(k->c->rt, &text);
    cli_write(NULL, buf_text(&text), text.n);
    buf_fini(&text);
    return code;
}

static int examine_all(cli *k)
{
    names n = {0};
    int code = list_names(k, true, &n);
    printf("\n");
    for (uint32_t i = 0; i < n.len && code == CLI_OK; i++)
        (void)examine(k, n.at[i]); /* one that is missing is no fault of the host */
    vec_fini(&n);
    return code;
}

int verb_doctor(cli *k, int argc, char **argv)
{
    int code = cli_parse(k, doctor_options, argc, argv);
    if (code >= 0)
        return code;
    if (k->args.len > 1)
        return cli_misuse(k, "expected one backend, got %u", k->args.len);
    if (cli_has(k, "--keys"))
        return print_table(config_print_keys);
    if (cli_has(k, "--forget"))
        printf("forgotten: %u verdicts of probes\n", backend_forget_probes());
    if (k->args.len)
        return examine(k, k->args.at[0]);
    code = print_config(k);
    return code == CLI_OK ? examine_all(k) : code;
}
