/* What the tests of reports share: right answers on eager operators and compiled for each of `backends`, and texts of
 * vectors whose lengths lie around the widths of vectors. */
#ifndef BP_TESTS_UNIT_OP_PAINS_H
#define BP_TESTS_UNIT_OP_PAINS_H
#include "tests/lib/check.h"
#include "tests/lib/op_text.h"
#include "tests/lib/world.h"
#include <stdlib.h>

static world *w;
static const char *const backends[] = {"eager", "chain", NULL};

static int begin(void **state)
{
    (void)state;
    w = world_open("[backend onednn-cpu]\nlibrary = @plugins@/backplane-onednn.so\n"
                   "[backend chain]\nlibrary = @plugins@/backplane-compose.so\nopt.chain = ?onednn-cpu, eager\n");
    return 0;
}

static int end(void **state)
{
    (void)state;
    world_close(w);
    return 0;
}

#define RIGHT(...)                                                                          \
    do {                                                                                    \
        static const op_case cases[] = {__VA_ARGS__};                                       \
        op_text_check_on(w->c, backends, cases, (uint32_t)(sizeof(cases) / sizeof *cases)); \
    } while (0)

enum { LONGEST = 67, TEXT = 4096 };
#define COUNT(a) (sizeof(a) / sizeof *(a))
static const char *const integers[] = {"u8", "i8", "i16", "i32", "i64"};
static const char *const floats[] = {"f16", "bf16", "f32", "f64"};

/* "u8[1 1 0]": n times `common`, `odd` at one place (-1: nowhere). */
static inline const char *vector(char dst[TEXT], const char *dtype, int n, const char *common, int place,
                                 const char *odd)
{
    size_t at = (size_t)snprintf(dst, TEXT, "%s[", dtype);
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(dst + at, TEXT - at, "%s%s", i ? " " : "", i == place ? odd : common);
    snprintf(dst + at, TEXT - at, "]");
    return dst;
}

__attribute__((format(printf, 2, 3))) static inline void right(const char *result, const char *fmt, ...)
{
    static char call[3 * TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(call, sizeof call, fmt, ap);
    va_end(ap);
    op_case e = {call, result};
    op_text_check_on(w->c, backends, &e, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
#endif
