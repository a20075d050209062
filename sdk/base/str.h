/* Strings: borrowed spans, and a builder that grows.
 *
 * The builder is sticky: after the first failed allocation it keeps what it has and `failed` stays 1, so a chain of
 * appends needs one check at its end. */
#ifndef BASE_STR_H
#define BASE_STR_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct { const char *s; size_t n; } str; /* borrowed; not NUL-terminated */

#define STR(literal) ((str){literal, sizeof(literal) - 1})
str str_of(const char *s);                    /* NULL: empty */
bool str_eq(str a, str b);
bool str_is(str a, const char *b);
bool str_starts(str a, const char *prefix);
str str_trim(str a);                          /* without blanks at both ends */
bool str_is_utf8(str a);                      /* well-formed, without surrogates and overlong forms */
char *str_dup(str a);                         /* for the caller to free; NULL: out of memory */
/* Cuts *rest at the first `sep` and returns what is before it; *rest becomes empty (s NULL) at the end. */
str str_split(str *rest, char sep);

typedef struct { char *s; size_t n, cap; bool failed; } buf; /* s is NUL-terminated once anything was added */

void buf_fini(buf *b);                        /* frees, zeroes */
void buf_clear(buf *b);                       /* keeps the memory */
void buf_add(buf *b, const char *s, size_t n);
void buf_puts(buf *b, const char *s);
void buf_putc(buf *b, char ch);
__attribute__((format(printf, 2, 3))) void buf_printf(buf *b, const char *fmt, ...);
void buf_vprintf(buf *b, const char *fmt, va_list ap);
void buf_pad(buf *b, size_t n, char ch);
const char *buf_text(const buf *b);           /* "" when nothing was added */
/* A double so that it reads back equal and looks as Python prints it: 1.0, 1e-05, nan, inf, -0.0. */
void buf_double(buf *b, double v);
/* A C string quoted with '...' and escapes, as Python's repr does. */
void buf_quote(buf *b, const char *s);
#endif
