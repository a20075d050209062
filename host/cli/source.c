/* Opening texts and examples, and making their inputs. */
#include "host/cli/source.h"
#include "host/import/file.h"
#include "sdk/base/match.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_text(cli *k, const char *path, source *s)
{
    file_map *f = file_open(k->c, path);
    if (f)
        s->gm = graph_parse_text(k->c, path, (const char *)f->data, f->n);
    file_unref(f);
    return s->gm && graph_check_types(k->c, s->gm) == BP_OK ? CLI_OK : cli_fail(k);
}

/* An example's "f32[10] f32[10]" as the placeholders of a graph. */
static int read_types(cli *k, const example *e, source *s)
{
    buf text = {0};
    uint32_t n = 0;
    buf_printf(&text, "graph %s {\n", e->name);
    for (str rest = str_of(e->inputs); rest.n; n++) {
        str type = str_split(&rest, ']');
        buf_printf(&text, "%%input_%u: %.*s] = placeholder \"input_%u\" user\n", n, (int)type.n, type.s, n);
    }
    buf_puts(&text, "output() }");
    s->example = e;
    s->gm = graph_parse_text(k->c, e->name, buf_text(&text), text.n);
    buf_fini(&text);
    return s->gm ? CLI_OK : cli_fail(k);
}

static int unknown(cli *k, const char *name)
{
    const char *names[32], *near;
    uint32_t n = 0;
    for (const example *e = examples; e->name && n < 32; e++)
        names[n++] = e->name;
    if (match_close(str_of(name), names, n, 0.6, 1, &near))
        return cli_misuse(k, "there is no file and no example \"%s\"; did you mean \"%s\"?", name, near);
    return cli_misuse(k, "there is no file and no example \"%s\"", name);
}

/* -- inputs -------------------------------------------------------------------------------------------------------- */

/* A number for an element: floats in [-1, 1), integers in [0, 10). */
static num random_number(uint64_t seed, uint64_t i, bp_dtype d)
{
    uint32_t bits[4];
    philox_uint32(seed, i, bits);
    double unit = (double)(bits[0] >> 8) * 0x1p-24;
    if (dtype_is_integral(d))
        return (num){NUM_INT, (int64_t)(unit * (d == BP_BOOL ? 2 : 10)), 0, 0};
    if (dtype_is_complex(d))
        return (num){NUM_COMPLEX, 0, 2 * unit - 1, (double)(bits[1] >> 8) * 0x1p-23 - 1};
    return (num){NUM_FLOAT, 0, 2 * unit - 1, 0};
}

static bp_tensor *make_random(cli *k, const tensor_meta *m, uint64_t seed, uint64_t *next)
{
    bp_tensor *t = tensor_new(k->c, m);
    size_t step = dtype_size(m->dtype), n = t ? tensor_span_bytes(t) / step : 0;
    for (size_t i = 0; i < n; i++)
        dtype_store(m->dtype, (char *)tensor_ptr(t) + i * step, random_number(seed, (*next)++, m->dtype));
    return t;
}

static int push_input(cli *k, source *s, bp_tensor *t)
{
    if (t && vec_push(&s->inputs, t))
        return CLI_OK;
    tensor_unref(t);
    if (t)
        ctx_nomem(k->c);
    return cli_fail(k);
}

static bool same_sizes(const bp_tensor *t, const tensor_meta *m)
{
    if (t->dtype != m->dtype || t->rank != m->rank)
        return false;
    for (uint32_t d = 0; d < t->rank; d++)
        if (!dim_eq(t->sizes[d], m->sizes[d]))
            return false;
    return true;
}

/* The file that input i was read from. */
static const char *input_file(const cli *k, uint32_t i)
{
    for (uint32_t g = 0; g < k->given.len; g++)
        if (!strcmp(k->given.at[g].option->name, "--input") && !i--)
            return k->given.at[g].value;
    return "?";
}

/* What symbols are for the inputs that are given, which must be as the text says. NULL: a complaint. */
static int64_t *values_given(cli *k, const source *s)
{
    uint32_t n = s->gm->g.syms ? sym_symbol_count(s->gm->g.syms) : 0;
    int64_t *values = calloc(n + 1, sizeof *values);
    if (!values)
        ctx_nomem(k->c);
    if (values && graph_check_sizes(k->c, s->gm, s->inputs.at, s->inputs.len, values) == BP_OK)
        return values;
    free(values);
    return NULL;
}

/* What a text declares of an input holds, strides included: the graph was compiled for them. */
static int fit_inputs(cli *k, source *s, const int64_t *values)
{
    uint32_t i = 0;
    for (node_id n = s->gm->g.first; n; n = graph_get(&s->gm->g, n)->next) {
        const graph_node *node = graph_get(&s->gm->g, n);
        if (node->op != BP_NODE_PLACEHOLDER)
            continue;
        bp_tensor *given = s->inputs.at[i];
        buf type = {0};
        bp_dim dims[2 * TENSOR_MAX_RANK];
        tensor_meta m;
        if (graph_meta_at(k->c, &s->gm->g, node->metas, values, dims, &m) != BP_OK)
            return cli_fail(k);
        if (!same_sizes(given, &m)) {
            char have[200];
            graph_print_type(&m, &type);
            int code = cli_misuse(k, "input %u is %s, and \"%s\" is %s (file \"%s\")", i,
                                  tensor_describe(given, have, sizeof have), node->target, buf_text(&type),
                                  input_file(k, i));
            buf_fini(&type);
            return code;
        }
        s->inputs.at[i] = tensor_new(k->c, &m);
        bool ok = s->inputs.at[i] && tensor_copy(k->c, s->inputs.at[i], given) == BP_OK;
        tensor_unref(given);
        if (!ok)
            return cli_fail(k);
        i++;
    }
    return CLI_OK;
}

static int read_inputs(cli *k, source *s, uint32_t wanted)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->given.len; i++) {
        if (strcmp(k->given.at[i].option->name, "--input"))
            continue;
        bp_tensor *t = bp_keep(k->c, bp_load_npy(k->c, k->given.at[i].value));
        if (push_input(k, s, t))
            return CLI_FAILED;
        n++;
    }
    if (n != wanted)
        return cli_misuse(k, "it has %u inputs, and --input was given %u times", wanted, n);
    if (s->example)
        return CLI_OK;
    int64_t *values = values_given(k, s);
    int code = values ? fit_inputs(k, s, values) : cli_fail(k);
    free(values);
    return code;
}

static void drop_inputs(source *s)
{
    for (uint32_t i = 0; i < s->inputs.len; i++)
        tensor_unref(s->inputs.at[i]);
    vec_clear(&s->inputs);
}

/* "--size s0=7", or the hint. */
static int choose_sizes(cli *k, const graph *g, int64_t *values)
{
    graph_hints(g, values);
    for (uint32_t i = 0; i < k->given.len; i++) {
        if (strcmp(k->given.at[i].option->name, "--size"))
            continue;
        str value = str_of(k->given.at[i].value), name = str_split(&value, '=');
        char *end = NULL;
        uint32_t at = 0;
        while (g->syms && at < sym_symbol_count(g->syms) && !str_is(name, sym_symbol_at(g->syms, at)->name))
            at++;
        if (!g->syms || at == sym_symbol_count(g->syms))
            return cli_misuse(k, "\"--size %s\": the text has no symbol of that name", k->given.at[i].value);
        values[at] = value.n ? strtoll(value.s, &end, 10) : 0;
        if (!value.n || *end)
            return cli_misuse(k, "\"--size %s\" is not NAME=NUMBER", k->given.at[i].value);
    }
    return CLI_OK;
}

static int push_random(cli *k, source *s, const graph_node *n, const int64_t *values, uint64_t seed, uint64_t *next)
{
    bp_dim dims[2 * TENSOR_MAX_RANK];
    tensor_meta m;
    if (graph_meta_at(k->c, &s->gm->g, n->metas, values, dims, &m) != BP_OK)
        return cli_fail(k);
    bp_tensor *t = make_random(k, &m, seed, next);
    if (t && n->role == BP_ROLE_SYMINT)
        *(int64_t *)tensor_ptr(t) = values[sym_symbol_of(s->gm->g.syms, n->number)];
    return push_input(k, s, t);
}

static int push_all_random(cli *k, source *s, const int64_t *values, uint64_t seed)
{
    uint64_t next = 0;
    for (node_id n = s->gm->g.first; n; n = graph_get(&s->gm->g, n)->next)
        if (graph_get(&s->gm->g, n)->op == BP_NODE_PLACEHOLDER &&
            push_random(k, s, graph_get(&s->gm->g, n), values, seed, &next))
            return CLI_FAILED;
    return CLI_OK;
}

/* Random ones, of the sizes that are asked for. */
static int make_inputs(cli *k, source *s, uint64_t seed)
{
    const graph *g = &s->gm->g;
    int64_t *values = calloc((g->syms ? sym_symbol_count(g->syms) : 0) + 1, sizeof *values), *again = NULL;
    if (!values)
        ctx_nomem(k->c);
    int code = values ? choose_sizes(k, g, values) : cli_fail(k);
    if (!code)
        code = push_all_random(k, s, values, seed);
    if (!code && g->syms && !(again = values_given(k, s)))
        code = cli_fail(k);
    free(again);
    free(values);
    return code;
}

int source_make_inputs(cli *k, source *s, uint64_t call)
{
    uint64_t seed = 0;
    int code = cli_number(k, "--seed", &seed);
    if (code)
        return code;
    seed += call;
    drop_inputs(s);
    if (cli_has(k, "--input"))
        return read_inputs(k, s, graph_placeholders(&s->gm->g, NULL, 0));
    return make_inputs(k, s, seed);
}

/* -- opening ------------------------------------------------------------------------------------------------------- */

static int read_weights(cli *k, source *s)
{
    const char *path = cli_value(k, "--weights");
    if (!path)
        return CLI_OK;
    if (!s->example)
        return cli_misuse(k, "--weights is for examples; the parameters of a text are inputs: give each by --input");
    s->weights = bp_module_new(k->c);
    return s->weights && bp_module_load(k->c, s->weights, path) == BP_OK ? CLI_OK : cli_fail(k);
}

int source_open(cli *k, const char *name, source *s)
{
    size_t n = strlen(name);
    const example *e = example_by_name(name);
    bool text = (n > 4 && !strcmp(name + n - 4, ".bpg")) || (!e && access(name, F_OK) == 0);
    if (!text && !e)
        return unknown(k, name);
    int code = text ? read_text(k, name, s) : read_types(k, e, s);
    if (!code)
        code = read_weights(k, s);
    return code ? code : source_make_inputs(k, s, 0);
}

void source_fini(source *s)
{
    drop_inputs(s);
    vec_fini(&s->inputs);
    bp_module_unref(s->weights);
    gm_unref(s->gm);
}
