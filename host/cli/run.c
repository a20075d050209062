/* backplane run, why and explain: a graph's text or an example, on a backend. */
#include "host/backend/program.h"
#include "host/base/log.h"
#include "host/cli/source.h"
#include "host/tools/show.h"
#include <stdio.h>
#include <stdlib.h>

static const cli_option run_options[] = {
    SOURCE_OPTIONS,
    {"--save", "PREFIX", "write each output to PREFIX0.npy, PREFIX1.npy ..."},
    {"--print", NULL, "also print each graph that is handed to the backend"},
    {NULL, NULL, NULL},
};

/* -- outputs ------------------------------------------------------------------------------------------------------- */

static void print_output(const char *name, const bp_tensor *t)
{
    buf text = {0};
    tensor_meta m;
    buf_printf(&text, "%s: ", name);
    if (t) {
        tensor_get_meta(t, &m);
        graph_print_type(&m, &text);
        buf_putc(&text, '\n');
        show_values(t, &text);
    } else {
        buf_puts(&text, "None");
    }
    buf_putc(&text, '\n');
    cli_write(NULL, buf_text(&text), text.n);
    buf_fini(&text);
}

static int show_outputs(cli *k, const source *s, bp_tensor *const *out, uint32_t n)
{
    char name[64], path[4096];
    const char *prefix = cli_value(k, "--save");
    for (uint32_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "output %u", i);
        if (!s->example && graph_get(&s->gm->g, s->gm->g.last)->args[0].v.items[i].kind == BP_VALUE_NODE)
            snprintf(name, sizeof name, "%s",
                     graph_get(&s->gm->g, graph_get(&s->gm->g, s->gm->g.last)->args[0].v.items[i].v.node)->name);
        print_output(name, out[i]);
        if (!prefix || !out[i])
            continue;
        snprintf(path, sizeof path, "%s%u.npy", prefix, i);
        if (bp_save_npy(k->c, out[i], path) != BP_OK)
            return cli_fail(k);
    }
    return CLI_OK;
}

/* -- texts --------------------------------------------------------------------------------------------------------- */

static program *compile_text(cli *k, const source *s)
{
    backend *b = NULL;
    program *p = NULL;
    if (backend_resolve(k->c, cli_value(k, "--backend"), NULL, NULL, &b) == BP_OK)
        program_compile(k->c, s->gm, b, &p);
    return p;
}

/* A failure that the data explain, in a backend: eager decides, as it does behind a call. */
static bp_status run_or_decide(cli *k, const source *s, program *p, program_io *io)
{
    bp_status st = program_run(k->c, p, io);
    if (st != BP_OUT_OF_RANGE)
        return st;
    log_warn(k->c->rt, "%s; eager decides", k->c->diag.message);
    diag_clear(&k->c->diag);
    return graph_run(k->c, s->gm, io->inputs, io->ninputs, io->outputs, io->noutputs, NULL, NULL);
}

static int run_program(cli *k, const source *s, program *p)
{
    uint32_t n = graph_output_count(&s->gm->g);
    bp_tensor **out = calloc(n + 1, sizeof(bp_tensor *));
    program_io io = {.inputs = s->inputs.at, .ninputs = s->inputs.len, .outputs = out, .noutputs = n};
    if (!out)
        ctx_nomem(k->c);
    int code = out && run_or_decide(k, s, p, &io) == BP_OK ? show_outputs(k, s, out, n) : cli_fail(k);
    for (uint32_t i = 0; i < n && out; i++)
        tensor_unref(out[i]);
    free(out);
    return code;
}

static void print_graph(const source *s)
{
    buf text = {0};
    gm_print_tabular(s->gm, &text);
    buf_putc(&text, '\n');
    gm_print_readable(s->gm, "GraphModule", &text);
    buf_putc(&text, '\n');
    cli_write(NULL, buf_text(&text), text.n);
    buf_fini(&text);
}

static int run_text(cli *k, source *s)
{
    if (cli_has(k, "--print"))
        print_graph(s);
    program *p = compile_text(k, s);
    int code = p ? run_program(k, s, p) : cli_fail(k);
    program_unref(p);
    return code;
}

static int why_text(cli *k, source *s)
{
    program *p = compile_text(k, s);
    if (!p)
        return cli_fail(k);
    buf text = {0};
    program_print_assignment(p, &text);
    cli_write(NULL, buf_text(&text), text.n);
    buf_fini(&text);
    program_unref(p);
    return CLI_OK;
}

/* -- examples ------------------------------------------------------------------------------------------------------ */

bp_callable *source_compile(cli *k, const source *s)
{
    bp_compile_options o = {.backend = cli_value(k, "--backend"), .user = s->weights};
    return bp_compile_at(k->c, s->example->fn, &o, sizeof o, s->example->name, __FILE__, __LINE__);
}

bp_status source_call(cli *k, const source *s, bp_callable *g, bp_outputs *out)
{
    bp_value *at = calloc(s->inputs.len + 1, sizeof *at);
    if (!at)
        return ctx_nomem(k->c);
    for (uint32_t i = 0; i < s->inputs.len; i++)
        at[i] = bp_arg_of_tensor(s->inputs.at[i]);
    bp_status code = bp_call(k->c, g, &(bp_args){at, s->inputs.len}, out);
    free(at);
    return code;
}

static int run_example(cli *k, source *s)
{
    bp_outputs out = {0};
    if (cli_has(k, "--print")) { /* what the log shows of a graph, on the standard output */
        bp_set_log(k->c->rt, cli_write, NULL);
        log_parse(k->c->rt, "graph");
    }
    bp_scope_begin(k->c);
    bp_callable *g = source_compile(k, s);
    int code = g && source_call(k, s, g, &out) == BP_OK ? show_outputs(k, s, out.at, out.n) : cli_fail(k);
    bp_scope_end(k->c);
    bp_callable_unref(g);
    return code;
}

typedef bp_status (*print_callable)(bp_ctx *c, const bp_callable *g, bp_write_fn write, void *arg);

static int call_often(cli *k, source *s, bp_callable *g, uint64_t calls)
{
    for (uint64_t i = 0; i < calls; i++) {
        bp_outputs out = {0};
        int code = i ? source_make_inputs(k, s, i) : CLI_OK;
        if (code)
            return code;
        bp_scope_begin(k->c);
        bp_status status = source_call(k, s, g, &out);
        bp_scope_end(k->c);
        if (status)
            return cli_fail(k);
    }
    return CLI_OK;
}

/* Compiles the example by calling it, then prints. */
static int call_and_print(cli *k, source *s, print_callable print)
{
    uint64_t calls = 1;
    int code = cli_number(k, "--calls", &calls);
    if (code)
        return code;
    if (!calls)
        return cli_misuse(k, "\"--calls\" is 0: without a call nothing is compiled, and there is nothing to tell");
    bp_callable *g = source_compile(k, s);
    code = g ? call_often(k, s, g, calls) : cli_fail(k);
    if (!code && print(k->c, g, cli_write, NULL) != BP_OK)
        code = cli_fail(k);
    bp_callable_unref(g);
    return code;
}

/* -- verbs --------------------------------------------------------------------------------------------------------- */

static const cli_option source_options[] = {
    SOURCE_OPTIONS,
    {"--calls", "N", "of an example, each with other random inputs (default: 1)"},
    {NULL, NULL, NULL},
};

typedef int (*on_source)(cli *k, source *s);

static int with_source(cli *k, const cli_option *options, int argc, char **argv, on_source text, on_source named)
{
    source s = {0};
    int code = cli_parse(k, options, argc, argv);
    if (code >= 0)
        return code;
    if (k->args.len != 1)
        return cli_misuse(k, "expected one text or example, got %u", k->args.len);
    code = source_open(k, k->args.at[0], &s);
    if (!code)
        code = s.example ? named(k, &s) : text(k, &s);
    source_fini(&s);
    return code;
}

static int why_example(cli *k, source *s)
{
    return call_and_print(k, s, bp_print_assignment);
}

static int explain_example(cli *k, source *s)
{
    return call_and_print(k, s, bp_print_explain);
}

static int explain_text(cli *k, source *s)
{
    (void)s;
    return cli_misuse(k, "a text has no calls to explain; \"backplane why\" tells who runs its nodes");
}

int verb_run(cli *k, int argc, char **argv)
{
    return with_source(k, run_options, argc, argv, run_text, run_example);
}

int verb_why(cli *k, int argc, char **argv)
{
    return with_source(k, source_options, argc, argv, why_text, why_example);
}

int verb_explain(cli *k, int argc, char **argv)
{
    return with_source(k, source_options, argc, argv, explain_text, explain_example);
}
