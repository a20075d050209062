/* Golden files: case by case, counted and reported. */
#include "host/tools/golden.h"
#include "host/backend/backend.h"
#include "host/base/clock.h"
#include "host/tools/golden_case.h"
#include "host/tools/golden_derivative.h"
#include "host/tools/golden_symbols.h"
#include <string.h>
#include <sys/resource.h>

/* -- kinds of operators -------------------------------------------------------------------------------------------- */

static const struct { const char *name; uint32_t kind; } kinds[] = {
#define GOLDEN_OP(name, kind) {name, KIND_##kind},
#include "host/tools/golden.def"
#undef GOLDEN_OP
};

/* Whether a row's name, whose last "*" stands for anything, is that of an operator ("add_" counts as "add"). */
static bool row_matches(const char *row, str op)
{
    size_t n = strlen(row);
    if (row[n - 1] == '*')
        return op.n >= n - 1 && !memcmp(op.s, row, n - 1);
    return op.n == n ? !memcmp(op.s, row, n) : op.n == n + 1 && op.s[n] == '_' && !memcmp(op.s, row, n);
}

uint32_t golden_kind(const char *target)
{
    uint32_t kind = 0;
    str rest = str_of(target);
    (void)str_split(&rest, '.');
    str op = str_split(&rest, '.');
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (row_matches(kinds[i].name, op))
            kind |= kinds[i].kind;
    return kind;
}

/* -- reporting ----------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void say(const golden_options *o, const char *fmt, ...)
{
    buf line = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&line, fmt, ap);
    va_end(ap);
    buf_putc(&line, '\n');
    o->write(o->arg, buf_text(&line), line.n);
    buf_fini(&line);
}

/* Where the case is from: the file's own name, without its folders. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *first_dtype(const json_t *j)
{
    const char *name = json_string_value(json_object_get(j, "dtype"));
    const json_t *args = json_object_get(j, "args");
    for (size_t i = 0; !name && i < json_array_size(args); i++)
        name = json_string_value(json_object_get(json_object_get(json_array_get(args, i), "tensor"), "dtype"));
    return name ? name : "no dtype";
}

static const char *case_name(const json_t *j)
{
    const char *op = json_string_value(json_object_get(j, "op"));
    const char *name = op ? op : json_string_value(json_object_get(j, "name"));
    return name ? name : "?";
}

static void say_case(const golden_case *k, const json_t *j, const char *what, const char *why)
{
    say(k->o, "%s:%u: %s%s %s: %s", base_name(k->file), k->line, what, case_name(j), first_dtype(j), why);
}

/* -- one case ------------------------------------------------------------------------------------------------------ */

static bool is_wanted(const golden_options *o, const json_t *j)
{
    const json_t *nodes = json_object_get(j, "nodes");
    if (o->grad && !json_object_get(j, "grad_inputs"))
        return false;
    if (!o->op || strstr(case_name(j), o->op))
        return true;
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const char *target = json_string_value(json_object_get(json_array_get(nodes, i), "target"));
        if (target && strstr(target, o->op))
            return true;
    }
    return false;
}

static void count_reason(golden_counts *n, const char *why)
{
    map_value *v = map_put(&n->reasons, str_of(why), NULL);
    if (v)
        v->u++;
}

static void count_case(golden_case *k, golden_counts *n, const json_t *j, golden_verdict v, const char *why)
{
    if (k->error[0]) {
        v = CASE_FAILED;
        why = k->error;
    }
    if (v == CASE_FAILED) {
        n->failed++;
        say_case(k, j, "", why);
        return;
    }
    if (v == CASE_SKIPPED)
        return;
    if (v == CASE_UNSUPPORTED) {
        n->unsupported++;
        count_reason(n, why);
        if (k->o->verbose && k->o->grad)
            say_case(k, j, "unsupported: ", why);
        return;
    }
    n->passed++;
    n->eagerly += k->eagerly;
    n->decomposed += k->decomposed;
    n->by_data += k->by_data;
    n->symbolic += k->symbolic;
    n->by_wider += v == CASE_BY_WIDER;
    n->by_nodes += v == CASE_BY_NODES;
    n->defined += v == CASE_DEFINED;
    n->unvalued += v == CASE_UNVALUED;
    n->turned += v == CASE_TURNED;
    n->by_differences += v == CASE_BY_DIFFERENCES;
    if (v == CASE_BY_DIFFERENCES && k->o->verbose)
        say_case(k, j, "by differences: ", why);
    n->gradients += !k->o->grad && json_object_get(j, "grad_inputs") != NULL;
    if (k->by_data && k->o->verbose)
        say_case(k, j, "by data: ", "a size depends on data, and the run on fakes ends there");
    if (k->eagerly && k->o->verbose)
        say_case(k, j, "eagerly: ", "it declined to be captured");
    if (v == CASE_BY_WIDER && k->o->verbose)
        say_case(k, j, "by wider type: ", why);
    if (v == CASE_BY_NODES && k->o->verbose)
        say_case(k, j, "by nodes: ", why);
}

static golden_verdict judge_somehow(golden_case *k, const golden_counts *n, const json_t *j, buf *why)
{
    if (n->derivatives)
        return golden_check_derivative(k, j, n->derivatives, why);
    if (n->symbols)
        return golden_check_rule(k, j, n->symbols, why);
    return json_object_get(j, "nodes") ? golden_run_graph(k, j, why) : golden_run_op(k, j, why);
}

static void run_case(golden_case *k, golden_counts *n, const char *text, size_t size)
{
    json_error_t e;
    buf why = {0};
    json_t *j = json_loadb(text, size, 0, &e);
    if (!j)
        golden_bad(k, "no JSON: %s at column %d", e.text, e.column);
    else if (!json_is_string(json_object_get(j, "op")) && !json_is_array(json_object_get(j, "nodes")))
        golden_bad(k, "neither an operator case nor a graph case");
    golden_verdict v = CASE_FAILED;
    if (k->error[0] || is_wanted(k->o, j)) {
        if (!k->error[0])
            v = judge_somehow(k, n, j, &why);
        count_case(k, n, j, v, buf_text(&why));
    }
    json_decref(j);
    buf_fini(&why);
}

/* -- a file -------------------------------------------------------------------------------------------------------- */

static void say_progress(const golden_options *o, golden_lines *in, const char *path, uint32_t line, uint64_t *shown)
{
    uint64_t at = clock_ns();
    buf text = {0};
    if (!o->progress || at - *shown < 200000000)
        return;
    *shown = at;
    buf_printf(&text, "%s: case %u, %.0f %%", base_name(path), line, 100 * golden_share(in));
    o->progress(o->arg, buf_text(&text), text.n);
    buf_fini(&text);
}

static bp_status run_lines(bp_ctx *c, golden_lines *in, const char *path, const golden_options *o, golden_counts *n)
{
    const char *text;
    size_t size;
    uint32_t line;
    uint64_t begun = clock_ns(), shown = 0, before = n->passed + n->failed + n->unsupported;
    while ((text = golden_next_line(c, in, &size, &line)) != NULL) {
        golden_case k = {.c = c, .o = o, .file = path, .line = line, .nodewise = golden_nodewise(text, size)};
        run_case(&k, n, text, size);
        golden_case_fini(&k);
        diag_clear(&c->diag);
        say_progress(o, in, path, line, &shown);
    }
    TRY(c->diag.code);
    say(o, "%s: %llu cases in %.1f s", base_name(path),
        (unsigned long long)(n->passed + n->failed + n->unsupported - before), (double)(clock_ns() - begun) * 1e-9);
    return BP_OK;
}

bp_status golden_run_file(bp_ctx *c, const char *path, const golden_options *o, golden_counts *n)
{
    backend *b;
    if (o->backend && strcmp(o->backend, "eager") != 0) /* else each case would fail of it */
        TRY(backend_resolve(c, o->backend, NULL, NULL, &b));
    if (o->check_derivatives && !n->derivatives && !(n->derivatives = golden_derivatives_new(o->once)))
        return ctx_nomem(c);
    if (o->check_symbolic && !n->symbols && !(n->symbols = golden_symbols_new()))
        return ctx_nomem(c);
    golden_lines *in = golden_open(c, path);
    if (!in)
        return c->diag.code;
    bp_status s = run_lines(c, in, path, o, n);
    golden_close(in);
    return s;
}

/* -- rows whose derivatives are not proven ------------------------------------------------------------------------- */

void golden_finish(golden_counts *n, const golden_options *o)
{
    uint32_t proven = 0, second = 0;
    for (uint32_t i = 0; n->derivatives && i < op_count(); i++) {
        const op_row *row = op_at(i);
        if (o->op && !strstr(row->target, o->op))
            continue;
        const char *why = golden_unproven(n->derivatives, row);
        proven += golden_proven(n->derivatives, row);
        second += n->derivatives->rows[i].second > 0;
        n->failed += why != NULL;
        if (why)
            say(o, "%s: %s", row->target, why);
    }
    if (n->derivatives)
        say(o, "%u derivatives are proven, %u of them with the second", proven, second);
}

/* -- the sum ------------------------------------------------------------------------------------------------------- */

typedef struct { str text; uint64_t count; } reason;

static int by_count(const void *a, const void *b)
{
    const reason *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return strcmp(x->text.s, y->text.s);
}

static void list_reasons(const golden_counts *n, const golden_options *o)
{
    VEC(reason) all = {0};
    str key;
    map_value *v;
    for (uint32_t i = 0; map_next(&n->reasons, &i, &key, &v);)
        if (!vec_push(&all, (reason){key, v->u}))
            break;
    if (all.len)
        qsort(all.at, all.len, sizeof *all.at, by_count);
    for (uint32_t i = 0; i < all.len; i++)
        say(o, "unsupported: %llu: %s", (unsigned long long)all.at[i].count, all.at[i].text.s);
    vec_fini(&all);
}

/* Behind the sum, with -v: rows of which sizes become numbers. */
static void say_symbols(const golden_symbols *g, const golden_options *o)
{
    for (uint32_t i = 0; o->verbose && i < op_count(); i++)
        if (g->rows[i].pinned)
            say(o, "%s: %u of %u symbols become numbers", op_at(i)->target, g->rows[i].pinned, g->rows[i].symbols);
    static const char *const modes[] = {"numbers as arguments", "SymInts as symbols", "each size apart"};
    for (uint32_t i = 0; i < 3; i++)
        say(o, "%s: sizes stay symbols in %llu cases, some do in %llu, none in %llu; %llu have none to begin with",
            modes[i], (unsigned long long)g->runs[i].stayed, (unsigned long long)g->runs[i].in_part,
            (unsigned long long)g->runs[i].pinned,
            (unsigned long long)g->runs[i].none);
    say(o, "compared at %llu other sizes for which the facts hold", (unsigned long long)g->others);
}

void golden_summary(const golden_counts *n, const golden_options *o)
{
    struct rusage use;
    if (n->symbols)
        say_symbols(n->symbols, o);
    if (o->list_unsupported)
        list_reasons(n, o);
    if (o->functionalize || o->aot)
        say(o, "%llu captured and functionalized, %llu declined and ran eagerly",
            (unsigned long long)(n->passed - n->eagerly), (unsigned long long)n->eagerly);
    if (o->decompose)
        say(o, "%llu of the passed by their decompositions", (unsigned long long)n->decomposed);
    if (o->check_fake)
        say(o, "%llu compared with a run on fakes to the end, %llu until a size depended on data",
            (unsigned long long)(n->passed - n->by_data), (unsigned long long)n->by_data);
    if (o->symbolic)
        say(o, "%llu kept symbols in the sizes of results, %llu have a size that depends on data",
            (unsigned long long)n->symbolic, (unsigned long long)n->by_data);
    if (n->by_wider)
        say(o, "%llu of the passed by wider type", (unsigned long long)n->by_wider);
    if (n->by_nodes)
        say(o, "%llu of the passed by nodes: PyTorch itself, node by node, gives this and not what was recorded",
            (unsigned long long)n->by_nodes);
    if (n->defined)
        say(o, "%llu of the passed by what defines them: factors multiply back, random numbers have their law",
            (unsigned long long)n->defined);
    if (n->unvalued)
        say(o, "%llu of the passed by shape and dtype alone: their values are not comparable",
            (unsigned long long)n->unvalued);
    if (n->turned)
        say(o, "%llu of the passed with factors of other signs than the recorded ones, and gradients turned likewise",
            (unsigned long long)n->turned);
    if (n->by_differences)
        say(o, "%llu of the passed by differences: they refute the recorded gradient, and prove this one",
            (unsigned long long)n->by_differences);
    if (n->gradients)
        say(o, "%llu of the passed have recorded gradients, which were not compared", (unsigned long long)n->gradients);
    if (getrusage(RUSAGE_SELF, &use) == 0)
        say(o, "peak memory %.1f MB", (double)use.ru_maxrss / 1024);
    say(o, "%llu passed, %llu failed, %llu unsupported", (unsigned long long)n->passed, (unsigned long long)n->failed,
        (unsigned long long)n->unsupported);
}

void golden_counts_fini(golden_counts *n)
{
    golden_derivatives_free(n->derivatives);
    n->derivatives = NULL;
    golden_symbols_free(n->symbols);
    n->symbols = NULL;
    map_fini(&n->reasons);
}
