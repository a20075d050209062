/* torch.fx's naming.
 *
 * Each base has a counter. A candidate "add" is itself when it is free; taken, it becomes add_N with N counted on from
 * the base's last; reserved (reserved.def), it never goes bare. A candidate that ends in a number ("arg0_1") starts
 * from that number. Names of erased nodes stay taken. */
#include "host/graph/namer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const reserved[] = {
#define RESERVED(name) name,
#include "host/graph/reserved.def"
#undef RESERVED
};

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool namer_is_reserved(const char *name)
{
    return bsearch(&name, reserved, sizeof reserved / sizeof *reserved, sizeof *reserved, compare) != NULL;
}

static bool is_letter(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}

static bool is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

bool namer_is_word(char ch)
{
    return is_letter(ch) || is_digit(ch);
}

bool namer_is_identifier(const char *name)
{
    if (!is_letter(*name))
        return false;
    while (namer_is_word(*name))
        name++;
    return *name == 0;
}

/* Runs of other characters become one "_"; what starts with a digit gets a "_" in front. */
static void add_legal(buf *out, const char *wish)
{
    if (!*wish)
        buf_puts(out, "_unnamed");
    if (is_digit(*wish))
        buf_putc(out, '_');
    for (const char *s = wish; *s; s++)
        if (namer_is_word(*s))
            buf_putc(out, *s);
        else if (s == wish || namer_is_word(s[-1]))
            buf_putc(out, '_');
}

/* Length of the base of "base_12"; *number is -1 when there is no number. */
static size_t split_number(const char *name, size_t n, int64_t *number)
{
    size_t digits = n;
    while (digits > 0 && is_digit(name[digits - 1]))
        digits--;
    *number = -1;
    if (digits == n || n - digits > 9 || digits < 2 || name[digits - 1] != '_')
        return n;
    *number = strtol(name + digits, NULL, 10);
    return digits - 1;
}

static bool is_taken(const graph *g, str name)
{
    return map_get(&g->names, name) != NULL;
}

/* The last number given to a base. */
static map_value *counter_of(graph *g, str base)
{
    bool is_new;
    map_value *v = map_put(&g->name_next, base, &is_new);
    if (v && is_new)
        v->u = 0;
    return v;
}

/* Marks a name as taken; the node's id comes later. */
static const char *take(graph *g, const char *name)
{
    const char *copy = arena_strdup(&g->arena, name);
    bool is_new;
    map_value *v = copy ? map_put(&g->names, str_of(copy), &is_new) : NULL;
    return v ? copy : NULL;
}

bool namer_is_free(const graph *g, const char *name)
{
    return namer_is_identifier(name) && !is_taken(g, str_of(name));
}

const char *namer_claim(graph *g, const char *name)
{
    if (!namer_is_free(g, name))
        return NULL;
    int64_t number;
    size_t base = split_number(name, strlen(name), &number);
    map_value *counter = counter_of(g, (str){name, base});
    if (!counter)
        return NULL;
    if (number > (int64_t)counter->u)
        counter->u = (uint64_t)number;
    return take(g, name);
}

/* `name` holds a legal candidate; leaves the free name in it. */
static bool make_free(graph *g, buf *name)
{
    int64_t number;
    size_t base = split_number(name->s, name->n, &number);
    map_value *counter = counter_of(g, (str){name->s, base});
    char digits[24];
    if (!counter)
        return false;
    if (number < 0 || is_taken(g, (str){name->s, name->n})) {
        bool bad = namer_is_reserved(name->s);
        number = (int64_t)counter->u + bad;
        if (bad) {
            snprintf(digits, sizeof digits, "_%lld", (long long)number);
            name->n = base;
            buf_puts(name, digits);
        }
    }
    while (is_taken(g, (str){name->s, name->n})) {
        snprintf(digits, sizeof digits, "_%lld", (long long)++number);
        name->n = base;
        buf_puts(name, digits);
        if (name->failed)
            return false;
    }
    counter->u = (uint64_t)number;
    return !name->failed;
}

static const char *pick(graph *g, buf *candidate)
{
    const char *name = !candidate->failed && make_free(g, candidate) ? take(g, candidate->s) : NULL;
    buf_fini(candidate);
    return name;
}

const char *namer_pick(graph *g, const char *wish)
{
    buf b = {0};
    add_legal(&b, wish);
    return pick(g, &b);
}

/* "numpyT" -> "numpy_t"; "__and__" -> "and". */
static void add_snake(buf *out, str s)
{
    if (s.n > 4 && s.s[0] == '_' && s.s[1] == '_' && s.s[s.n - 1] == '_' && s.s[s.n - 2] == '_')
        s = (str){s.s + 2, s.n - 4};
    for (size_t i = 0; i < s.n; i++) {
        bool upper = s.s[i] >= 'A' && s.s[i] <= 'Z';
        if (upper && i && s.s[i - 1] >= 'a' && s.s[i - 1] <= 'z')
            buf_putc(out, '_');
        buf_putc(out, (char)(upper ? s.s[i] - 'A' + 'a' : s.s[i]));
    }
}

const char *namer_pick_target(graph *g, const char *target)
{
    str rest = str_of(target), name;
    if (!graph_is_builtin(target, &name)) {
        str ns = str_split(&rest, '.');
        name = rest.s ? str_split(&rest, '.') : ns;
    }
    buf snake = {0};
    add_snake(&snake, name);
    const char *picked = snake.failed ? NULL : namer_pick(g, buf_text(&snake));
    buf_fini(&snake);
    return picked;
}
