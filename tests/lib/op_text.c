/* Parses calls, runs them, prints what came out. Input is the tests' own, so that a fault in it fails the test. */
#include "tests/lib/op_text.h"
#include "tests/lib/check.h"
#include <backplane/backplane.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

enum { ARGS = 16, ITEMS = 256, SIZES = 8, TENSORS = 16 };

/* frame: of a compiled function, whose arguments are the tensors of the text. collects: only they are read. */
typedef struct {
    bp_ctx *c;
    const char *at;
    bp_frame *frame;
    bool collects;
    uint32_t nliterals, nresults;
    bp_tensor *literals[TENSORS], *results[TENSORS];
} reader;

static void skip_blanks(reader *r)
{
    while (*r->at == ' ')
        r->at++;
}

static bool take(reader *r, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(r);
    if (strncmp(r->at, word, n) != 0 || (isalnum((unsigned char)word[n - 1]) && isalnum((unsigned char)r->at[n])))
        return false;
    r->at += n;
    return true;
}

static num read_number(reader *r, bool *is_float)
{
    skip_blanks(r);
    char *end, *int_end;
    double f = strtod(r->at, &end);
    long long i = strtoll(r->at, &int_end, 10);
    if (end == r->at)
        fail_msg("a number is expected at \"%s\"", r->at);
    *is_float = end != int_end;
    r->at = end;
    return (num){*is_float ? NUM_FLOAT : NUM_INT, i, *is_float ? f : (double)i, 0};
}

/* "2x3:" before the elements; without it the count of elements is the only size. */
static uint32_t read_sizes(reader *r, int64_t *sizes)
{
    const char *colon = strpbrk(r->at, ":]");
    if (!colon || *colon != ':')
        return 0;
    uint32_t rank = 0;
    while (r->at < colon) {
        sizes[rank++] = strtol(r->at, (char **)(uintptr_t)&r->at, 10);
        r->at += *r->at == 'x';
    }
    r->at = colon + 1;
    return rank;
}

static bp_tensor *read_tensor(reader *r, bp_dtype d)
{
    bool is_scalar = *r->at++ == '(', is_float;
    int64_t sizes[SIZES] = {0}, n = 0;
    uint32_t rank = is_scalar ? 0 : read_sizes(r, sizes);
    _Alignas(16) char data[ITEMS * 16];
    for (skip_blanks(r); *r->at != ']' && *r->at != ')'; skip_blanks(r), n++)
        dtype_store(d, data + (size_t)n * dtype_size(d), read_number(r, &is_float));
    r->at++;
    if (!is_scalar && rank == 0)
        sizes[rank++] = n;
    assert_true(n <= ITEMS && r->nliterals < TENSORS);
    bp_tensor *t = r->frame ? bp_arg(r->frame, r->nliterals, "t") : bp_tensor_from(r->c, d, rank, sizes,
              n ? data : NULL);
    assert_true(t || r->frame);
    return r->literals[r->nliterals++] = t;
}

/* "%2": a tensor that an earlier call gave. */
static bp_value read_result(reader *r)
{
    uint32_t i = (uint32_t)strtoul(r->at, (char **)(uintptr_t)&r->at, 10);
    if (r->collects)
        return value_none();
    if (!i || i > r->nresults)
        fail_msg("%%%u is no result yet", i);
    return value_tensor(r->results[i - 1]);
}

static bool read_dtype(reader *r, bp_dtype *d)
{
    skip_blanks(r);
    char name[8] = {0};
    size_t n = 0;
    while (n < sizeof name - 1 && isalnum((unsigned char)r->at[n]))
        n++;
    memcpy(name, r->at, n);
    if (!dtype_by_name(name, d))
        return false;
    r->at += n;
    return true;
}

static bp_value read_value(reader *r);

static bp_value read_list(reader *r)
{
    bp_value items[ITEMS];
    uint32_t n = 0;
    while (!take(r, "]")) {
        items[n++] = read_value(r);
        take(r, ",");
    }
    return value_list(arena_memdup(&r->c->scratch, items, n * sizeof *items), n);
}

static bp_value read_value(reader *r)
{
    bp_dtype d;
    bool is_float;
    if (take(r, "["))
        return read_list(r);
    if (take(r, "%"))
        return read_result(r);
    if (take(r, "None"))
        return value_none();
    if (take(r, "True") || take(r, "False"))
        return value_bool(r->at[-1] == 'e' && r->at[-2] == 'u');
    if (take(r, "'")) {
        const char *end = strchr(r->at, '\'');
        const char *text = arena_strndup(&r->c->scratch, r->at, (size_t)(end - r->at));
        r->at = end + 1;
        return value_str(text);
    }
    if (take(r, "dtype:")) {
        assert_true(read_dtype(r, &d));
        return value_dtype(d);
    }
    if (read_dtype(r, &d))
        return value_tensor(read_tensor(r, d));
    num v = read_number(r, &is_float);
    return is_float ? value_float(v.f) : value_int(v.i);
}

/* "name=" before a value, or NULL. */
static const char *read_name(reader *r)
{
    skip_blanks(r);
    size_t n = 0;
    while (isalnum((unsigned char)r->at[n]) || r->at[n] == '_')
        n++;
    if (!n || r->at[n] != '=')
        return NULL;
    const char *name = arena_strndup(&r->c->scratch, r->at, n);
    r->at += n + 1;
    return name;
}

/* -- printing -- */
static void print_element(buf *out, bp_dtype d, const char *p)
{
    num v = dtype_load(d, p);
    if (v.kind == NUM_INT)
        buf_printf(out, "%lld", (long long)v.i);
    else if (isnan(v.f))
        buf_puts(out, "nan");
    else
        buf_printf(out, "%.6g", v.f);
}

static void print_elements(buf *out, const bp_tensor *t, uint32_t d, const char *p, const char **gap)
{
    if (d == t->rank) {
        buf_puts(out, *gap);
        print_element(out, (bp_dtype)t->dtype, p);
        *gap = " ";
        return;
    }
    for (int64_t i = 0; i < tensor_dim(t, d); i++)
        print_elements(out, t, d + 1, p + i * tensor_step(t, d) * (int64_t)dtype_size(t->dtype), gap);
}

static void print_tensor(buf *out, const bp_tensor *t)
{
    const char *gap = t->rank > 1 ? " " : "";
    buf_printf(out, "%s%s", dtype_get(t->dtype)->brief, t->rank ? "[" : "(");
    for (uint32_t d = 0; t->rank > 1 && d < t->rank; d++)
        buf_printf(out, "%s%lld", d ? "x" : "", (long long)tensor_dim(t, d));
    buf_puts(out, t->rank > 1 ? ":" : "");
    if (tensor_nelem(t))
        print_elements(out, t, 0, tensor_ptr(t), &gap);
    buf_puts(out, t->rank ? "]" : ")");
}

static void print_results(buf *out, bp_ctx *c, bp_tensor *const *results, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        buf_puts(out, i ? " | " : "");
        print_tensor(out, results[i]);
    }
    if (bp_error(c))
        buf_printf(out, "%s: %s", bp_status_name(bp_error(c)), bp_error_message(c));
}

/* -- running -- */
typedef struct { bp_value pos[ARGS], named[ARGS]; const char *names[ARGS]; uint32_t npos, nnamed; } arguments;

static const op_row *read_call(reader *r, arguments *a)
{
    skip_blanks(r);
    const char *call = r->at, *open = strchr(call, '(');
    if (!open)
        fail_msg("a call is expected at \"%s\"", call);
    const char *space = memchr(call, ':', (size_t)(open - call)), *name = space ? space + 2 : call;
    const char *target = arena_printf(&r->c->scratch, "%.*s.%.*s%s", space ? (int)(space - call) : 4,
                                      space ? call : "aten", (int)(open - name), name,
                                      memchr(call, '.', (size_t)(open - call)) ? "" : ".default");
    for (r->at = open + 1; !take(r, ")"); take(r, ",")) {
        a->names[a->nnamed] = read_name(r);
        if (a->names[a->nnamed])
            a->named[a->nnamed++] = read_value(r);
        else
            a->pos[a->npos++] = read_value(r);
    }
    const op_row *op = op_table_ready() ? op_by_target(target) : NULL;
    if (!op)
        fail_msg("no row for %s", target);
    return op;
}

/* The last call's results, which the scope owns; their number. */
static uint32_t run(reader *r)
{
    uint32_t n = 0;
    do {
        arguments a = {.npos = 0};
        op_call k = {.op = read_call(r, &a)};
        bp_value *args;
        if (!r->collects && op_bind(r->c, k.op, a.pos, a.npos, a.names, a.named, a.nnamed, &args) == BP_OK) {
            k.args = args;
            op_dispatch(r->c, &k);
        }
        n = bp_error(r->c) ? 0 : k.nout;
        assert_true(r->nresults + n <= TENSORS);
        for (uint32_t i = 0; i < k.nout; i++) {
            bp_tensor *t = scope_own(r->c, k.out[i]);
            if (n)
                r->results[r->nresults++] = t;
        }
    } while (take(r, ";") && !bp_error(r->c));
    return n;
}

/* Ends a run: its scope, its error. */
static const char *finish(bp_ctx *c, arena_mark mark, buf *out)
{
    static char text[4096];
    bp_scope_end(c);
    arena_reset(&c->scratch, mark);
    snprintf(text, sizeof text, "%s", buf_text(out));
    buf_fini(out);
    bp_error_clear(c);
    return text;
}

const char *op_text_run(bp_ctx *c, const char *call)
{
    buf out = {0};
    reader r = {.c = c, .at = call};
    arena_mark mark = arena_get_mark(&c->scratch);
    bp_scope_begin(c);
    uint32_t n = run(&r);
    print_results(&out, c, r.results + r.nresults - n, n);
    return finish(c, mark, &out);
}

static void compiled(bp_ctx *c, bp_frame *f)
{
    reader r = {.c = c, .at = bp_user(f), .frame = f};
    uint32_t n = run(&r);
    for (uint32_t i = 0; i < n; i++)
        bp_return(f, r.results[r.nresults - n + i]);
}

const char *op_text_run_compiled(bp_ctx *c, const char *backend, const char *call)
{
    buf out = {0};
    reader r = {.c = c, .at = call, .collects = true};
    bp_value values[TENSORS];
    arena_mark mark = arena_get_mark(&c->scratch);
    bp_scope_begin(c);
    run(&r);
    for (uint32_t i = 0; i < r.nliterals; i++)
        values[i] = value_tensor(r.literals[i]);
    bp_args in = {values, r.nliterals};
    bp_outputs outs = {0};
    bp_compile_options options = {.backend = backend, .user = (void *)(uintptr_t)call};
    bp_callable *g = bp_compile(c, compiled, &options);
    if (g)
        bp_call(c, g, &in, &outs);
    print_results(&out, c, outs.at, bp_error(c) ? 0 : outs.n);
    bp_callable_unref(g);
    return finish(c, mark, &out);
}

static void expect(const op_case *e, const char *how, const char *have)
{
    size_t begin = strlen(e->result);
    bool is_beginning = begin > 3 && strcmp(e->result + begin - 3, "...") == 0;
    if (is_beginning ? strncmp(have, e->result, begin - 3) != 0 : strcmp(have, e->result) != 0)
        fail_msg("%s\n  %s gives %s\n  expected %s", e->call, how, have, e->result);
}

void op_text_check(bp_ctx *c, const op_case *cases, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        expect(&cases[i], "eager", op_text_run(c, cases[i].call));
}

void op_text_check_on(bp_ctx *c, const char *const *backends, const op_case *cases, uint32_t n)
{
    op_text_check(c, cases, n);
    for (; *backends; backends++)
        for (uint32_t i = 0; i < n; i++)
            expect(&cases[i], *backends, op_text_run_compiled(c, *backends, cases[i].call));
}
