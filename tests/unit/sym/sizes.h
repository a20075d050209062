/* An environment of named symbols, and what a text simplifies to in it. */
#ifndef BP_TESTS_UNIT_SYM_SIZES_H
#define BP_TESTS_UNIT_SYM_SIZES_H
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include "host/sym/env.h"
#include <backplane/backplane.h>
#include <inttypes.h>

static bp_ctx *c;
static sym_env *env;
static sym_scope former;

static inline bp_dim add_symbol(const char *name, int64_t hint, int64_t min, int64_t max)
{
    return sym_add_symbol(env, c, &(sym_symbol){.name = name, .hint = hint, .min = min, .max = max});
}

/* s0 .. s3 as sizes that are read from inputs, u0 and u1 as data, z as any number. */
static inline int start(void **state)
{
    (void)state;
    c = bp_ctx_new(NULL);
    env = sym_env_new();
    if (!c || !env)
        return -1;
    former = sym_push(env, c);
    add_symbol("s0", 8, 2, INT64_MAX);
    add_symbol("s1", 12, 2, INT64_MAX);
    add_symbol("s2", 12, 2, INT64_MAX);
    add_symbol("s3", 5, 2, 100);
    sym_add_symbol(env, c, &(sym_symbol){.name = "u0", .unbacked = true, .min = 0, .max = INT64_MAX});
    sym_add_symbol(env, c, &(sym_symbol){.name = "u1", .unbacked = true, .min = 0, .max = INT64_MAX});
    add_symbol("z", -3, INT64_MIN, INT64_MAX);
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    sym_pop(former);
    sym_env_unref(env);
    bp_ctx_destroy(c);
    return 0;
}

static inline bp_dim read_dim(const char *text)
{
    bp_dim d;
    size_t offset;
    if (sym_parse(env, c, text, strlen(text), &d, &offset) != BP_OK)
        fail_msg("\"%s\" is wrong at %zu", text, offset);
    return d;
}

#define assert_prints(d, text) check_prints((d), (text), __FILE__, __LINE__)
static inline void check_prints(bp_dim d, const char *text, const char *file, int line)
{
    buf b = {0};
    sym_print(env, d, false, &b);
    bool same = strcmp(buf_text(&b), text) == 0;
    if (!same)
        print_error("\"%s\" is not \"%s\"\n", buf_text(&b), text);
    buf_fini(&b);
    if (!same)
        _fail(file, line);
}

/* What `text` says is simplified to `simple`. */
#define assert_simplifies(text, simple) check_prints(sym_simplify(env, c, read_dim(text)), (simple), __FILE__, __LINE__)
/* The condition is proven to hold, proven not to, or neither. */
#define assert_proven(text) assert_simplifies(text, "1")
#define assert_refuted(text) assert_simplifies(text, "0")
#define assert_unknown(text) check_unknown((text), __FILE__, __LINE__)
static inline void check_unknown(const char *text, const char *file, int line)
{
    bp_dim d = sym_simplify(env, c, read_dim(text));
    if (d.sym)
        return;
    print_error("\"%s\" is said to be %" PRId64 "\n", text, d.value);
    _fail(file, line);
}
static inline void assume(const char *text)
{
    if (!sym_assume(env, c, read_dim(text), SYM_GIVEN))
        fail_msg("\"%s\" contradicts", text);
}
#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)
#endif
