/* The first rooms without memory: every allocation fails once; nothing crashes, nothing leaks, the error says so. */
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include "host/guard/guard.h"
#include "host/tensor/alloc.h"
#include "host/tensor/module.h"
#include "sdk/base/arena.h"
#include "sdk/base/map.h"
#include "sdk/base/vec.h"
#include "tests/lib/oom.h"
#include <backplane/backplane.h>
#include <stdlib.h>
#include <unistd.h>

static bp_ctx *c;
static bp_tensor *x, *y;
static char path[512];

static int start(void **state)
{
    (void)state;
    alloc_set_limits(0, SIZE_MAX);
    c = bp_ctx_new(NULL);
    x = bp_tensor_from(c, BP_F32, 2, (int64_t[]){2, 3}, NULL);
    y = bp_tensor_from(c, BP_F32, 2, (int64_t[]){3, 2}, NULL);
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/test-oom-%ld", tmp ? tmp : "/tmp", (long)getpid());
    return x && y ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    bp_ctx_destroy(c);
    unlink(path);
    return 0;
}

/* Whether the context has no error; the one that it has must be that of memory. Clears it. */
static bool went_well(void)
{
    bp_status s = bp_error(c);
    if (s != BP_OK && s != BP_RESOURCE_EXHAUSTED)
        fail_msg("%s: %s", bp_status_name(s), bp_error_text(c));
    bp_error_clear(c);
    return s == BP_OK;
}

static bool use_tables(void *arg)
{
    (void)arg;
    arena a = {0};
    map m = {0};
    buf b = {0};
    VEC(int) v = {0};
    bool well = true;
    char key[16];
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "key %d", i);
        well &= map_put(&m, str_of(key), NULL) && vec_push(&v, i) && arena_printf(&a, "%2000d", i);
        buf_double(&b, i / 7.0);
    }
    well &= !b.failed;
    arena_fini(&a), map_fini(&m), buf_fini(&b), vec_fini(&v);
    return well;
}

static void tables(void **state)
{
    (void)state;
    assert_true(oom_sweep("tables", use_tables, NULL) > 100);
}

static bool use_contexts(void *arg)
{
    (void)arg;
    bp_runtime *rt = bp_runtime_new("some.ini");
    bp_ctx *k = rt ? bp_ctx_new(rt) : NULL;
    if (k) {
        bp_scope_begin(k);
        bp_scope_begin(k);
        bp_tensor_from(k, BP_F32, 1, (int64_t[]){10}, NULL);
        bp_scope_end(k);
        bp_scope_end(k);
    }
    bool well = k && bp_error(k) == BP_OK;
    if (k && !well)
        assert_int_equal(bp_error(k), BP_RESOURCE_EXHAUSTED);
    bp_ctx_destroy(k);
    bp_runtime_unref(rt);
    return well;
}

static void contexts_and_scopes(void **state)
{
    (void)state;
    assert_true(oom_sweep("contexts", use_contexts, NULL) >= 9);
}

static bool use_tensors(void *arg)
{
    (void)arg;
    bp_scope_begin(c);
    if (bp_error(c) == BP_OK) {
        bp_dim size[] = {dim_const(3), dim_const(2)}, stride[] = {dim_const(1), dim_const(3)};
        tensor_meta m = {BP_F32, {BP_CPU, 0}, 2, size, stride, dim_const(0)};
        float back[6];
        bp_tensor *turned = scope_own(c, tensor_view(c, x, &m));
        bp_tensor *dense = turned ? scope_own(c, tensor_to_contiguous(c, turned)) : NULL;
        if (dense && bp_tensor_read(c, turned, back, sizeof back) == BP_OK)
            tensor_copy(c, turned, dense);
        bp_tensor *kept = bp_keep(c, bp_tensor_from(c, BP_F64, 6, (int64_t[]){1, 2, 1, 2, 1, 2}, NULL));
        scope_own(c, kept ? tensor_ref(kept) : NULL);
        tensor_unref(kept);
    }
    bp_scope_end(c);
    return went_well();
}

static void tensors(void **state)
{
    (void)state;
    assert_true(oom_sweep("tensors", use_tensors, NULL) >= 8);
}

static bool use_modules(void *arg)
{
    (void)arg;
    bp_module *m = bp_module_new(c);
    char name[32];
    for (int i = 0; m && i < 20; i++) {
        snprintf(name, sizeof name, "layer.%d", i);
        bp_module_add_parameter(c, m, name, i & 1 ? x : y);
        if (bp_error(c) != BP_OK)
            assert_int_equal(module_find(m, name), -1);
    }
    bp_module_unref(m);
    return went_well();
}

static void modules(void **state)
{
    (void)state;
    assert_true(oom_sweep("modules", use_modules, NULL) > 40);
}

static bool use_guards(void *arg)
{
    (void)arg;
    static const guard_source SOURCES[] = {{"a", BP_ROLE_USER}, {"b", BP_ROLE_USER}, {"c", BP_ROLE_USER}};
    bp_value at[] = {bp_arg_of_tensor(x), bp_arg_of_str("text"), bp_arg_of_tensor(y)};
    guard_inputs in = {at, 3, 3, NULL};
    guard_builder *b = guard_begin(c, SOURCES, 3, &in);
    guard_add_ambient(b);
    for (uint32_t i = 0; i < 3; i++)
        guard_add_input(b, i);
    guard_add_layout(b, 0);
    guard_add_identity(b);
    guard_set *g = guard_finish(b);
    assert_true(g || bp_error(c) == BP_RESOURCE_EXHAUSTED);
    guard_destroy(g);
    return went_well();
}

static void guards(void **state)
{
    (void)state;
    assert_true(oom_sweep("guards", use_guards, NULL) >= 9);
}

static bool use_npy(void *arg)
{
    (void)arg;
    bp_scope_begin(c);
    bp_save_npy(c, x, path);
    bp_load_npy(c, path);
    bp_scope_end(c);
    return went_well();
}

static void npy_files(void **state)
{
    (void)state;
    assert_true(oom_sweep(".npy", use_npy, NULL) >= 6);
}

/* arg: a module of tensors. A module that they are loaded into has all of them afterwards, or what it had before. When
 * jansson is out of memory it may find the text wrong. */
static bool use_safetensors(void *arg)
{
    bp_module *m = arg, *fresh = NULL;
    bp_module_save(c, m, path);
    if (bp_error(c) == BP_OK && (fresh = bp_module_new(c))) {
        bp_module_add_parameter(c, fresh, "a", y);
        uint32_t before = fresh->entries.len;
        bp_status s = before ? bp_module_load(c, fresh, path) : BP_OK;
        for (uint32_t i = 0; s == BP_OK && before && i < m->entries.len; i++)
            assert_true(module_find(fresh, m->entries.at[i].name) >= 0);
        assert_int_equal(fresh->entries.len, s == BP_OK && before ? m->entries.len : before);
        assert_true(!before || s == BP_OK || fresh->entries.at[0].t == y);
    }
    bp_module_unref(fresh);
    if (oom_has_failed() && bp_error(c) == BP_DATA_LOSS)
        bp_error_clear(c);
    return went_well();
}

static void safetensors_files(void **state)
{
    (void)state;
    bp_module *m = bp_module_new(c);
    bp_module_add_parameter(c, m, "a", x);
    bp_module_add_parameter(c, m, "a.name.so.long.that.its.token.takes.more.than.one.allocation", y);
    bp_module_add_parameter(c, m, "b", y);
    assert_true(oom_sweep("safetensors", use_safetensors, m) > 50);
    bp_module_unref(m);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tables), TEST(contexts_and_scopes), TEST(tensors), TEST(modules), TEST(guards), TEST(npy_files),
        TEST(safetensors_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
