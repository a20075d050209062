/* Spans and the builder; the numbers and quotes it prints are Python's repr. */
#include "sdk/base/str.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

str str_of(const char *s)
{
    return s ? (str){s, strlen(s)} : (str){NULL, 0};
}

bool str_eq(str a, str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.s, b.s, a.n) == 0);
}

bool str_is(str a, const char *b)
{
    return str_eq(a, str_of(b));
}

bool str_starts(str a, const char *prefix)
{
    size_t n = strlen(prefix);
    return a.n >= n && (n == 0 || memcmp(a.s, prefix, n) == 0);
}

static bool is_blank(char ch)
{
    return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

str str_trim(str a)
{
    while (a.n && is_blank(a.s[0]))
        a.s++, a.n--;
    while (a.n && is_blank(a.s[a.n - 1]))
        a.n--;
    return a;
}

bool str_is_utf8(str a)
{
    const unsigned char *p = (const unsigned char *)a.s;
    static const uint32_t LEAST[] = {0, 0x80, 0x800, 0x10000}; /* of a form of this many further bytes */
    for (size_t i = 0; i < a.n;) {
        unsigned lead = p[i++], more = lead < 0x80 ? 0 : lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
        if ((lead >= 0x80 && lead < 0xc0) || lead >= 0xf8 || more > a.n - i)
            return false;
        uint32_t code = more ? lead & (0x3fu >> more) : lead;
        for (unsigned k = 0; k < more; k++, i++) {
            if ((p[i] & 0xc0) != 0x80)
                return false;
            code = code << 6 | (p[i] & 0x3fu);
        }
        if (code < LEAST[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            return false;
    }
    return true;
}

char *str_dup(str a)
{
    char *s = a.n < SIZE_MAX ? malloc(a.n + 1) : NULL;
    if (!s)
        return NULL;
    if (a.n)
        memcpy(s, a.s, a.n);
    s[a.n] = '\0';
    return s;
}

str str_split(str *rest, char sep)
{
    const char *at = rest->n ? memchr(rest->s, sep, rest->n) : NULL;
    if (!at) {
        str all = *rest;
        *rest = (str){NULL, 0};
        return all;
    }
    str head = {rest->s, (size_t)(at - rest->s)};
    *rest = (str){at + 1, rest->n - head.n - 1};
    return head;
}

void buf_fini(buf *b)
{
    free(b->s);
    *b = (buf){0};
}

void buf_clear(buf *b)
{
    b->n = 0;
    b->failed = false;
    if (b->s)
        b->s[0] = '\0';
}

/* Room for n more bytes and the terminator. */
static bool make_room(buf *b, size_t n)
{
    if (b->failed || n > PTRDIFF_MAX - 1 - b->n) {
        b->failed = true;
        return false;
    }
    size_t want = b->n + n + 1;
    if (want <= b->cap)
        return true;
    size_t cap = b->cap < 64 ? 64 : b->cap;
    while (cap < want)
        cap = cap > PTRDIFF_MAX / 2 ? want : cap * 2;
    char *s = realloc(b->s, cap);
    if (!s) {
        b->failed = true;
        return false;
    }
    b->s = s;
    b->cap = cap;
    return true;
}

void buf_add(buf *b, const char *s, size_t n)
{
    if (!make_room(b, n))
        return;
    if (n)
        memcpy(b->s + b->n, s, n);
    b->n += n;
    b->s[b->n] = '\0';
}

void buf_puts(buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_putc(buf *b, char ch)
{
    buf_add(b, &ch, 1);
}

void buf_printf(buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void buf_vprintf(buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        b->failed = true;
    else if (make_room(b, (size_t)n)) {
        vsnprintf(b->s + b->n, (size_t)n + 1, fmt, ap);
        b->n += (size_t)n;
    }
}

void buf_pad(buf *b, size_t n, char ch)
{
    if (!make_room(b, n))
        return;
    memset(b->s + b->n, ch, n);
    b->n += n;
    b->s[b->n] = '\0';
}

const char *buf_text(const buf *b)
{
    return b->s ? b->s : "";
}

/* Adds one unit to the last of the digits in "d.ddde-05"; false when all are nines (a longer form is found then). */
static bool bump_digits(char *text)
{
    char *e = strchr(text, 'e');
    for (char *p = e - 1; p >= text; p--) {
        if (*p == '.' || *p == '-')
            continue;
        if (*p != '9') {
            ++*p;
            return true;
        }
        *p = '0';
    }
    return false;
}

/* The shortest "d.ddde-05" that reads back as v. The interval of numbers that read back as a power of two reaches
 * further up than down, so the neighbour above is tried as well. */
static void shortest(double v, char *text, size_t cap)
{
    for (int digits = 0; digits < 17; digits++) {
        snprintf(text, cap, "%.*e", digits, v);
        if (strtod(text, NULL) == v)
            return;
        if (bump_digits(text) && strtod(text, NULL) == v)
            return;
    }
}

void buf_double(buf *b, double v)
{
    if (isnan(v) || isinf(v)) {
        buf_puts(b, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    char text[40], digits[24];
    shortest(fabs(v), text, sizeof text);
    char *e = strchr(text, 'e');
    int exp10 = atoi(e + 1), n = 0;
    for (const char *p = text; p < e; p++)
        if (*p != '.')
            digits[n++] = *p;
    if (signbit(v))
        buf_putc(b, '-');
    if (exp10 < -4 || exp10 >= 16) {
        buf_add(b, digits, 1);
        if (n > 1)
            buf_putc(b, '.');
        buf_add(b, digits + 1, (size_t)n - 1);
        buf_printf(b, "e%c%02d", exp10 < 0 ? '-' : '+', abs(exp10));
    } else if (exp10 < 0) {
        buf_puts(b, "0.");
        buf_pad(b, (size_t)(-exp10 - 1), '0');
        buf_add(b, digits, (size_t)n);
    } else {
        int whole = n < exp10 + 1 ? n : exp10 + 1;
        buf_add(b, digits, (size_t)whole);
        buf_pad(b, (size_t)(exp10 + 1 - whole), '0');
        buf_putc(b, '.');
        if (n > whole)
            buf_add(b, digits + whole, (size_t)(n - whole));
        else
            buf_putc(b, '0');
    }
}

void buf_quote(buf *b, const char *s)
{
    char q = strchr(s, '\'') && !strchr(s, '"') ? '"' : '\'';
    buf_putc(b, q);
    for (; *s; s++) {
        unsigned char ch = (unsigned char)*s;
        if (ch == '\\' || *s == q)
            buf_printf(b, "\\%c", *s);
        else if (ch == '\n' || ch == '\t' || ch == '\r')
            buf_printf(b, "\\%c", ch == '\n' ? 'n' : ch == '\t' ? 't' : 'r');
        else if (ch < 0x20 || ch == 0x7f)
            buf_printf(b, "\\x%02x", ch);
        else
            buf_putc(b, *s);
    }
    buf_putc(b, q);
}
