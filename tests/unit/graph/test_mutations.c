/* Texts of PyTorch's graphs, spoiled in a known way: each is refused with its line and column, or is a graph after all,
 * and then round trips; nothing crashes. The same mutations on every machine. */
#define BP_WITHOUT_OPERATORS
#include "host/graph/graph.h"
#include "host/tools/golden.h"
#include "sdk/base/vec.h"
#include "tests/lib/check.h"
#include <backplane/backplane.h>
#include <ctype.h>
#include <stdlib.h>

enum { MUTATIONS = 2000, LINES = 400 };

/* -- texts --------------------------------------------------------------------------------------------------------- */

typedef struct { bp_ctx *c; VEC(char *) texts; } world;

/* Each is told with symbols and without. Every other pair gets the types of its nodes, as far as they do not depend on
 * data. */
static void keep_text(void *arg, const char *text, size_t n)
{
    world *w = arg;
    buf typed = {0};
    bp_graph_module *gm = graph_parse_text(w->c, "text", text, n);
    assert_non_null(gm);
    if (w->texts.len / 2 % 2 && graph_propagate(w->c, gm) == BP_OK)
        graph_print_text(gm, &typed);
    else
        buf_add(&typed, text, n);
    bp_error_clear(w->c);
    char *copy = strdup(buf_text(&typed));
    assert_true(copy && vec_push(&w->texts, copy));
    buf_fini(&typed);
    gm_unref(gm);
}

static void no_lines(void *arg, const char *text, size_t n) { (void)arg, (void)text, (void)n; }

static int begin(void **state)
{
    static world w;
    char path[4096];
    golden_counts n = {0};
    golden_options o = {.round_trip = true, .symbolic = true, .write = no_lines, .text = keep_text, .arg = &w};
    w.c = bp_ctx_new(NULL);
    snprintf(path, sizeof path, "%s/tests/golden/small.jsonl.gz", getenv("top_srcdir"));
    *state = &w;
    bp_status s = golden_run_file(w.c, path, &o, &n);
    golden_counts_fini(&n);
    return s == BP_OK && n.failed == 0 && w.texts.len > 1000 ? 0 : -1;
}

static int end(void **state)
{
    world *w = *state;
    for (uint32_t i = 0; i < w->texts.len; i++)
        free(w->texts.at[i]);
    vec_fini(&w->texts);
    bp_ctx_destroy(w->c);
    return 0;
}

static uint32_t next(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    return *seed ^= *seed << 5;
}

/* A text as lines, to be spoiled. */
typedef struct { char *line[LINES]; uint32_t n; } lines;

static bool split(const char *text, lines *l)
{
    l->n = 0;
    for (const char *p = text; *p && l->n < LINES; l->n++) {
        const char *stop = strchr(p, '\n');
        size_t n = stop ? (size_t)(stop + 1 - p) : strlen(p);
        l->line[l->n] = strndup(p, n);
        p += n;
    }
    return l->n > 3 && l->n < LINES;
}

static void join(lines *l, buf *out)
{
    for (uint32_t i = 0; i < l->n; i++) {
        buf_puts(out, l->line[i]);
        free(l->line[i]);
    }
}

static void replace(lines *l, uint32_t i, const char *at, size_t gone, const char *with)
{
    buf b = {0};
    buf_add(&b, l->line[i], (size_t)(at - l->line[i]));
    buf_puts(&b, with);
    buf_puts(&b, at + gone);
    free(l->line[i]);
    l->line[i] = strdup(buf_text(&b));
    buf_fini(&b);
}

/* -- mutations: each gives false where the text has no place for it ------------------------------------------------ */

/* A line of a node, never the graph's own lines or the output's. */
static uint32_t some_node(const lines *l, uint32_t *seed) { return 1 + next(seed) % (l->n - 3); }
static bool is_call(const lines *l, uint32_t i) { return strstr(l->line[i], "= aten.") != NULL; }
static size_t name_length(const char *at)
{
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_')
        n++;
    return n;
}

static bool drop_node(lines *l, uint32_t *seed)
{
    uint32_t i = some_node(l, seed);
    free(l->line[i]);
    memmove(&l->line[i], &l->line[i + 1], (l->n - i - 1) * sizeof *l->line);
    l->n--;
    return true;
}

static bool add_argument(lines *l, uint32_t *seed)
{
    uint32_t i = some_node(l, seed);
    char *close = strrchr(l->line[i], ')');
    if (!is_call(l, i) || !close)
        return false;
    replace(l, i, close, 0, ", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16");
    return true;
}

static bool drop_arguments(lines *l, uint32_t *seed)
{
    uint32_t i = some_node(l, seed);
    char *open = is_call(l, i) ? strchr(strstr(l->line[i], "= aten."), '(') : NULL, *close = strrchr(l->line[i], ')');
    if (!open || !close || close < open)
        return false;
    replace(l, i, open + 1, (size_t)(close - open - 1), "");
    return true;
}

static bool unknown_name(lines *l, uint32_t *seed)
{
    uint32_t i = some_node(l, seed);
    char *use = is_call(l, i) ? strchr(strstr(l->line[i], "= aten."), '%') : NULL;
    if (!use)
        return false;
    replace(l, i, use + 1, name_length(use + 1), "nobody_of_this_name");
    return true;
}

static bool unknown_operator(lines *l, uint32_t *seed)
{
    uint32_t i = some_node(l, seed);
    if (!is_call(l, i))
        return false;
    replace(l, i, strstr(l->line[i], "= aten.") + 7, 1, "zz");
    return true;
}

static bool cyclic_use(lines *l, uint32_t *seed)
{
    char own[256];
    uint32_t i = some_node(l, seed);
    char *use = is_call(l, i) ? strchr(strstr(l->line[i], "= aten."), '%') : NULL, *name = strchr(l->line[i], '%');
    size_t n = name ? name_length(name + 1) : 0;
    if (!use || !n || n >= sizeof own)
        return false;
    snprintf(own, sizeof own, "%.*s", (int)n, name + 1);
    replace(l, i, use + 1, name_length(use + 1), own);
    return true;
}

static bool swap_nodes(lines *l, uint32_t *seed)
{
    uint32_t i = some_node(l, seed), j = some_node(l, seed);
    char *line = l->line[i];
    l->line[i] = l->line[j];
    l->line[j] = line;
    return i != j;
}

static bool cut_text(lines *l, uint32_t *seed)
{
    uint32_t i = some_node(l, seed);
    l->line[i][next(seed) % strlen(l->line[i])] = 0;
    for (uint32_t k = i + 1; k < l->n; k++)
        free(l->line[k]);
    l->n = i + 1;
    return true;
}

static bool duplicate_name(lines *l, uint32_t *seed)
{
    uint32_t i = some_node(l, seed);
    if (l->n + 1 >= LINES || !strchr(l->line[i], '%')) /* the line of a symbol or fact */
        return false;
    memmove(&l->line[i + 1], &l->line[i], (l->n - i) * sizeof *l->line);
    l->line[i] = strdup(l->line[i + 1]);
    l->n++;
    return true;
}

static bool change_dtype(lines *l, uint32_t *seed)
{
    static const char *const types[] = {"b8", "u8", "i64", "f16", "f32", "f64", "c128"};
    uint32_t i = some_node(l, seed);
    char *colon = strstr(l->line[i], ": ");
    size_t n = colon ? name_length(colon + 2) : 0;
    const char *with = types[next(seed) % (sizeof types / sizeof *types)];
    if (!is_call(l, i) || !n || (strlen(with) == n && !strncmp(with, colon + 2, n)))
        return false;
    replace(l, i, colon + 2, n, with);
    return true;
}

static char *find_symbol(const lines *l, uint32_t i)
{
    for (char *at = l->line[i]; (at = strchr(at, 's')); at++)
        if (isdigit((unsigned char)at[1]) && !isalnum((unsigned char)at[-1]) && at[-1] != '_' && at[-1] != '%')
            return at;
    return NULL;
}

static bool unknown_symbol(lines *l, uint32_t *seed)
{
    uint32_t i = some_node(l, seed);
    char *at = is_call(l, i) || strstr(l->line[i], "  fact ") ? find_symbol(l, i) : NULL;
    if (!at)
        return false;
    replace(l, i, at, name_length(at), "s99999");
    return true;
}

static bool undeclared_symbol(lines *l, uint32_t *seed)
{
    uint32_t i = some_node(l, seed);
    if (strncmp(l->line[i], "  symbol ", 9))
        return false;
    free(l->line[i]);
    memmove(&l->line[i], &l->line[i + 1], (l->n - i - 1) * sizeof *l->line);
    l->n--;
    return true;
}

static bool false_fact(lines *l, uint32_t *seed)
{
    uint32_t i = some_node(l, seed);
    char fact[64];
    if (strncmp(l->line[i], "  symbol ", 9) || l->n + 1 >= LINES)
        return false;
    snprintf(fact, sizeof fact, "  fact %.*s <= 1\n", (int)name_length(l->line[i] + 9), l->line[i] + 9);
    memmove(&l->line[i + 2], &l->line[i + 1], (l->n - i - 1) * sizeof *l->line);
    l->line[i + 1] = strdup(fact);
    l->n++;
    return true;
}

static bool change_size(lines *l, uint32_t *seed)
{
    uint32_t i = some_node(l, seed);
    char *type = is_call(l, i) ? strstr(l->line[i], ": ") : NULL, *at = type ? strchr(type, '[') : NULL;
    if (!at || !isalnum((unsigned char)at[1]) || at > strstr(l->line[i], "= aten."))
        return false;
    replace(l, i, at + 1, 0, "7*");
    return true;
}

static bool change_byte(lines *l, uint32_t *seed)
{
    static const char instead[] = "%[](){}<>\"\\,;:=#@-.09eaNT \n\x01";
    uint32_t i = next(seed) % l->n;
    l->line[i][next(seed) % strlen(l->line[i])] = instead[next(seed) % (sizeof instead - 1)];
    return true;
}

/* must: no text that was spoiled so is a graph. types: it may read, and the check of types refuses it. */
static const struct {
    const char *name;
    bool (*spoil)(lines *l, uint32_t *seed);
    bool must, types;
} kinds[] = {
    {"a dropped node", drop_node, false, false},          {"too many arguments", add_argument, true, false},
    {"no arguments", drop_arguments, false, false},       {"an unknown name", unknown_name, true, false},
    {"an unknown operator", unknown_operator, true, false}, {"a cyclic use", cyclic_use, true, false},
    {"swapped nodes", swap_nodes, false, false},          {"a cut text", cut_text, true, false},
    {"a duplicated name", duplicate_name, true, false},   {"a changed type", change_dtype, false, true},
    {"an unknown symbol", unknown_symbol, true, false},   {"an undeclared symbol", undeclared_symbol, true, false},
    {"a false fact", false_fact, true, false},            {"a changed size", change_size, false, true},
    {"a changed byte", change_byte, false, false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* -- judging ------------------------------------------------------------------------------------------------------- */

/* The error in c begins "text:LINE:COLUMN: ". */
static void check_place(bp_ctx *c, uint32_t kind, const char *text)
{
    unsigned line, column;
    int n = 0;
    const char *said = c->diag.message;
    if (sscanf(said, "text:%u:%u: %n", &line, &column, &n) < 2 || !n || !line || !column)
        fail_msg("%s is refused without line and column: %s\n%s", kinds[kind].name, said, text);
}

static void check_round_trip(bp_ctx *c, const bp_graph_module *gm)
{
    buf first = {0}, second = {0};
    graph_print_text(gm, &first);
    bp_graph_module *again = graph_parse_text(c, "text", buf_text(&first), first.n);
    assert_non_null(again);
    graph_print_text(again, &second);
    assert_string_equal(buf_text(&first), buf_text(&second));
    gm_unref(again);
    buf_fini(&first);
    buf_fini(&second);
}

/* Returns whether the text was refused. */
static bool judge(bp_ctx *c, uint32_t kind, const buf *text)
{
    char *exact = malloc(text->n ? text->n : 1); /* so that a sanitizer sees a byte too many */
    memcpy(exact, text->s, text->n);
    bp_graph_module *gm = graph_parse_text(c, "text", exact, text->n);
    free(exact);
    bool refused = gm == NULL;
    if (gm) {
        check_round_trip(c, gm);
        if (kinds[kind].must)
            fail_msg("%s is not refused:\n%s", kinds[kind].name, buf_text((buf *)(uintptr_t)text));
    }
    if (gm && kinds[kind].types && graph_check_types(c, gm) != BP_OK && c->diag.code == BP_INVALID_ARGUMENT)
        refused = true;
    if (refused)
        check_place(c, kind, buf_text((buf *)(uintptr_t)text));
    bp_error_clear(c);
    gm_unref(gm);
    return refused;
}

static void spoiled_graphs_are_refused_with_line_and_column(void **state)
{
    world *w = *state;
    uint32_t seed = 2463534242u, made[KINDS] = {0}, refused[KINDS] = {0};
    for (uint32_t i = 0; i < MUTATIONS;) {
        uint32_t kind = next(&seed) % KINDS;
        lines l;
        buf text = {0};
        bool whole = split(w->texts.at[next(&seed) % w->texts.len], &l);
        bool spoiled = whole && kinds[kind].spoil(&l, &seed);
        join(&l, &text);
        if (spoiled) {
            i++;
            made[kind]++;
            refused[kind] += judge(w->c, kind, &text);
        }
        buf_fini(&text);
    }
    for (uint32_t k = 0; k < KINDS; k++) {
        print_message("%s: %u made, %u refused\n", kinds[k].name, made[k], refused[k]);
        assert_true(made[k] > 40 && refused[k] > 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(spoiled_graphs_are_refused_with_line_and_column)};
    return cmocka_run_group_tests(tests, begin, end);
}
