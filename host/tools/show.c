/* Laying out arrays as numpy's array2string does: every shown element is formatted once to find the widths, then the
 * nested brackets are filled row by row. */
#include "host/tools/show.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 75, THRESHOLD = 1000, EDGE = 3, DIGITS = 8, LONGEST = 80 };

typedef struct {
    const bp_tensor *t;
    buf *out;
    bool summary;
    bool exponent;             /* floats as 1.5e+08 */
    int left, right;           /* columns before and after the point */
    int width;                 /* of whole elements that have no point */
    int64_t index[TENSOR_MAX_RANK];
} printer;

/* -- elements ------------------------------------------------------------------------------------------------------ */

static num element(const printer *p)
{
    int64_t offset = 0;
    for (uint32_t d = 0; d < p->t->rank; d++)
        offset += p->index[d] * tensor_step(p->t, d);
    return dtype_load(p->t->dtype, (const char *)tensor_ptr(p->t) + offset * (int64_t)dtype_size(p->t->dtype));
}

/* Whether a decimal text reads back as v in the tensor's own precision. */
static bool reads_back(bp_dtype d, const char *text, double v)
{
    uint64_t raw = 0;
    dtype_store(d, &raw, (num){NUM_FLOAT, 0, strtod(text, NULL), 0});
    return dtype_load(d, &raw).f == v;
}

/* The shortest "d.ddde+05" that reads back, with at most `most` digits behind the point. */
static int shortest(bp_dtype d, double v, int most, char *text, size_t cap)
{
    int digits = 0;
    for (; digits <= most; digits++) {
        snprintf(text, cap, "%.*e", digits, v);
        if (reads_back(d, text, v))
            return digits;
    }
    return most;
}

/* "12.5", "3.": at most 8 digits behind the point, no more than tell it apart, no trailing zeros. */
static void format_plain(bp_dtype d, double v, char *text, size_t cap)
{
    char sci[LONGEST];
    int digits = shortest(d, v, 17, sci, sizeof sci), exp10 = atoi(strchr(sci, 'e') + 1);
    int behind = digits - exp10;
    snprintf(text, cap, "%.*f", behind < 1 ? 1 : behind > DIGITS ? DIGITS : behind, v);
    size_t n = strlen(text);
    while (text[n - 1] == '0')
        text[--n] = 0;
}

static void format_float(const printer *p, double v, char *text, size_t cap)
{
    char raw[LONGEST];
    if (!isfinite(v)) {
        snprintf(text, cap, "%*s", p->left + p->right + 1, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    if (p->exponent) {
        snprintf(raw, sizeof raw, "%#.*e", p->right, v);
        char *e = strchr(raw, 'e');
        snprintf(text, cap, "%*.*s%s", p->left + 1 + p->right, (int)(e - raw), raw, e);
        return;
    }
    format_plain(p->t->dtype, v, raw, sizeof raw);
    int before = (int)(strchr(raw, '.') - raw);
    int after = p->right - (int)strlen(raw) + before + 1;
    int n = snprintf(text, cap, "%*s%s%*s", p->left - before, "", raw, after, "");
    if (n < 0 || (size_t)n >= cap)
        snprintf(text, cap, "%.*s", (int)cap - 1, raw); /* too wide for a column: the number alone */
}

static void format_complex(num v, char *text, size_t cap)
{
    snprintf(text, cap, "%.8g%+.8gj", v.f, v.im);
}

static void format(const printer *p, num v, char *text, size_t cap)
{
    if (v.kind == NUM_FLOAT)
        format_float(p, v.f, text, cap);
    else if (v.kind == NUM_COMPLEX)
        format_complex(v, text, cap);
    else if (p->t->dtype == BP_BOOL)
        snprintf(text, cap, "%*s", p->width, v.i ? "True" : "False");
    else
        snprintf(text, cap, "%*lld", p->width, (long long)v.i);
}

/* -- widths -------------------------------------------------------------------------------------------------------- */

/* Calls each for every element that will be shown, with p->index at it. */
static void each_shown(printer *p, uint32_t axis, void (*each)(printer *p, void *arg), void *arg)
{
    if (axis == p->t->rank) {
        each(p, arg);
        return;
    }
    int64_t n = tensor_dim(p->t, axis);
    for (int64_t i = 0; i < n; i++) {
        if (p->summary && n > 2 * EDGE && i == EDGE)
            i = n - EDGE;
        p->index[axis] = i;
        each_shown(p, axis + 1, each, arg);
    }
}

typedef struct { double least, most; bool finite, infinite, negative; } range;

static void note_range(printer *p, void *arg)
{
    range *r = arg;
    double v = element(p).f;
    if (!isfinite(v)) {
        r->infinite = true;
        r->negative |= isinf(v) && v < 0;
        return;
    }
    r->finite = true;
    if (v == 0)
        return;
    v = fabs(v);
    r->least = r->least == 0 || v < r->least ? v : r->least;
    r->most = v > r->most ? v : r->most;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static void note_parts(printer *p, void *arg)
{
    (void)arg;
    char text[LONGEST];
    double v = element(p).f;
    if (!isfinite(v))
        return;
    if (p->exponent) {
        p->left = larger(p->left, 1 + signbit(v));
        p->right = larger(p->right, shortest(p->t->dtype, v, DIGITS, text, sizeof text));
        return;
    }
    format_plain(p->t->dtype, v, text, sizeof text);
    int before = (int)(strchr(text, '.') - text);
    p->left = larger(p->left, before);
    p->right = larger(p->right, (int)strlen(text) - before - 1);
}

static void note_width(printer *p, void *arg)
{
    (void)arg;
    char text[LONGEST];
    format(p, element(p), text, sizeof text);
    p->width = larger(p->width, (int)strlen(text));
}

static void find_widths(printer *p)
{
    range r = {0};
    if (!dtype_is_float(p->t->dtype)) {
        p->width = p->t->dtype == BP_BOOL && p->t->rank ? 5 : 0;
        if (p->t->dtype != BP_BOOL)
            each_shown(p, 0, note_width, NULL);
        return;
    }
    each_shown(p, 0, note_range, &r);
    p->exponent = r.most >= 1e8 || (r.most > 0 && (r.least < 1e-4 || r.most / r.least > 1000));
    each_shown(p, 0, note_parts, NULL);
    int behind = p->right + 1 + (p->exponent ? 4 : 0);
    if (r.infinite) /* room for nan, inf, -inf */
        p->left = larger(p->left, 3 + r.negative - behind);
}

/* -- layout -------------------------------------------------------------------------------------------------------- */

typedef struct { buf line; size_t indent; } row;

/* Appends a word to the row, on a new line when it would not fit and that helps. */
static void add_word(printer *p, row *r, const char *word, size_t width)
{
    size_t n = strlen(word);
    if (r->line.n + n > width && r->line.n > r->indent) {
        while (r->line.n && r->line.s[r->line.n - 1] == ' ')
            r->line.n--;
        buf_add(p->out, buf_text(&r->line), r->line.n);
        buf_putc(p->out, '\n');
        buf_clear(&r->line);
        buf_pad(&r->line, r->indent, ' ');
    }
    buf_add(&r->line, word, n);
}

/* The last axis. What is printed starts behind the indent, since the caller printed the bracket. */
static void print_row(printer *p, uint32_t axis)
{
    char text[LONGEST];
    int64_t n = tensor_dim(p->t, axis);
    row r = {.indent = axis + 1};
    size_t start = p->out->n, width = LINE - axis - 1;
    buf_pad(&r.line, r.indent, ' ');
    for (int64_t i = 0; i < n; i++) {
        if (i)
            buf_putc(&r.line, ' ');
        if (p->summary && n > 2 * EDGE && i == EDGE) {
            add_word(p, &r, "...", width);
            buf_putc(&r.line, ' ');
            i = n - EDGE;
        }
        p->index[axis] = i;
        format(p, element(p), text, sizeof text);
        add_word(p, &r, text, width);
    }
    buf_add(p->out, buf_text(&r.line), r.line.n);
    if (p->out->n >= start + r.indent && !p->out->failed) { /* the first line's indent is the brackets' */
        memmove(p->out->s + start, p->out->s + start + r.indent, p->out->n - start - r.indent);
        p->out->n -= r.indent;
        p->out->s[p->out->n] = 0;
    }
    buf_fini(&r.line);
}

static void print_axis(printer *p, uint32_t axis)
{
    int64_t n = tensor_dim(p->t, axis);
    buf_putc(p->out, '[');
    if (axis + 1 == p->t->rank) {
        print_row(p, axis);
    } else {
        for (int64_t i = 0; i < n; i++) {
            if (i) {
                buf_pad(p->out, p->t->rank - axis - 1, '\n');
                buf_pad(p->out, axis + 1, ' ');
            }
            if (p->summary && n > 2 * EDGE && i == EDGE) {
                buf_puts(p->out, "...");
                i = n - EDGE - 1;
                continue;
            }
            p->index[axis] = i;
            print_axis(p, axis + 1);
        }
    }
    buf_putc(p->out, ']');
}

/* A number alone looks as Python's own. */
static void print_scalar(printer *p)
{
    char text[LONGEST];
    num v = element(p);
    if (v.kind == NUM_FLOAT && isfinite(v.f)) {
        shortest(p->t->dtype, v.f, 17, text, sizeof text);
        buf_double(p->out, strtod(text, NULL)); /* the nearest float64 to the shortest text prints as that text */
        return;
    }
    p->left = p->right = p->width = 0;
    format(p, v, text, sizeof text);
    buf_puts(p->out, text + strspn(text, " "));
}

void show_values(const bp_tensor *t, buf *out)
{
    printer p = {.t = t, .out = out, .summary = tensor_nelem(t) > THRESHOLD};
    if (tensor_nelem(t) == 0) {
        buf_puts(out, "[]");
    } else if (t->rank == 0) {
        print_scalar(&p);
    } else {
        find_widths(&p);
        print_axis(&p, 0);
    }
}
