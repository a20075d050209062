/* Arena, vector, map, hash, checked arithmetic. */
#include "tests/lib/check.h"
#include <stdlib.h>
#include "sdk/base/arena.h"
#include "sdk/base/checked.h"
#include "sdk/base/hash.h"
#include "sdk/base/map.h"
#include "sdk/base/vec.h"

static void arena_memory_is_zeroed_and_aligned_also_when_used_again(void **state)
{
    (void)state;
    arena a = {0};
    for (int round = 0; round < 3; round++) {
        arena_mark m = arena_get_mark(&a);
        for (size_t n = 0; n < 200; n++) {
            unsigned char *p = arena_alloc(&a, n);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % 16, 0);
            for (size_t i = 0; i < n; i++)
                assert_int_equal(p[i], 0);
            memset(p, 0xff, n);
        }
        arena_reset(&a, m);
    }
    arena_fini(&a);
    assert_int_equal(a.nbytes, 0);
}

static void a_reset_keeps_what_came_before_the_mark(void **state)
{
    (void)state;
    arena a = {0};
    char *kept = arena_printf(&a, "kept %d", 7);
    arena_mark m = arena_get_mark(&a);
    assert_non_null(arena_alloc(&a, 1000000)); /* a block of its own */
    assert_non_null(arena_alloc(&a, 100));
    size_t before = a.nbytes;
    arena_reset(&a, m);
    assert_true(a.nbytes < before - 1000000);
    assert_string_equal(kept, "kept 7");
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_array(&a, SIZE_MAX / 2, 3));
    arena_fini(&a);
}

static void an_emptied_arena_keeps_one_block(void **state)
{
    (void)state;
    arena a = {0};
    arena_mark start = arena_get_mark(&a);
    for (int i = 0; i < 100; i++)
        assert_non_null(arena_alloc(&a, 5000));
    arena_reset(&a, start);
    assert_int_equal(a.nbytes, 64 * 1024);
    arena_fini(&a);
}

static void a_vector_grows_and_refuses_absurd_sizes(void **state)
{
    (void)state;
    VEC(int) v = {0};
    for (int i = 0; i < 1000; i++)
        assert_true(vec_push(&v, i));
    assert_int_equal(v.len, 1000);
    assert_int_equal(v.at[999], 999);
    assert_int_equal(vec_pop(&v), 999);
    assert_false(vec_reserve(&v, UINT64_C(1) << 33));
    assert_int_equal(v.len, 999);
    vec_fini(&v);
}

static void a_map_finds_what_was_put_and_loses_what_was_deleted(void **state)
{
    (void)state;
    map m = {0};
    char key[16];
    for (unsigned i = 0; i < 2000; i++) {
        bool is_new = false;
        snprintf(key, sizeof key, "k%u", i);
        map_value *v = map_put(&m, str_of(key), &is_new);
        assert_true(v && is_new);
        v->u = i;
        map_put_u64(&m, i, NULL)->u = i + 1;
    }
    for (unsigned i = 0; i < 2000; i += 2) {
        snprintf(key, sizeof key, "k%u", i);
        assert_true(map_del(&m, str_of(key)));
        assert_false(map_del(&m, str_of(key)));
    }
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(key, sizeof key, "k%u", i);
        map_value *v = map_get(&m, str_of(key));
        assert_true(i % 2 ? v && v->u == i : !v);
        assert_int_equal(map_get_u64(&m, i)->u, i + 1);
    }
    assert_int_equal(m.len, 3000);
    map_fini(&m);
}

static void a_map_walk_meets_each_key_once(void **state)
{
    (void)state;
    map m = {0};
    map_put(&m, STR("a"), NULL)->u = 1;
    map_put(&m, STR(""), NULL)->u = 2;
    map_put(&m, STR("b"), NULL)->u = 4;
    uint32_t i = 0;
    uint64_t sum = 0;
    str key;
    map_value *v;
    while (map_next(&m, &i, &key, &v)) {
        assert_true(map_get(&m, key) == v);
        assert_int_equal(key.s[key.n], 0);
        sum += v->u;
    }
    assert_int_equal(sum, 7);
    map_fini(&m);
}

static void a_map_that_is_filled_and_emptied_does_not_grow(void **state)
{
    (void)state;
    map m = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        assert_non_null(map_put_u64(&m, i, NULL));
        assert_true(map_del_u64(&m, i));
    }
    assert_true(m.cap <= 64);
    assert_null(map_get_u64(&m, 5));
    map_fini(&m);
}

/* The numbers are pinned: stored artifacts are named by them. */
static void hashes_are_stable_and_see_every_byte(void **state)
{
    (void)state;
    char text[] = "the quick brown fox jumps over";
    hash128 h = hash128_bytes(text, sizeof text);
    uint64_t w = hash_bytes(text, sizeof text, 1);
    assert_int_equal(h.lo, UINT64_C(0xe186c01a64d3946));
    assert_int_equal(w, UINT64_C(0x1915034dc2b17020));
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] ^= 1;
        assert_false(hash128_eq(hash128_bytes(text, sizeof text), h));
        assert_true(hash_bytes(text, sizeof text, 1) != w);
        text[i] ^= 1;
    }
    assert_false(hash128_eq(hash128_bytes("\0", 1), hash128_bytes("\0\0", 2)));
    assert_true(hash_bytes(text, 5, 1) != hash_bytes(text, 5, 2));
}

static void checked_arithmetic_says_when_it_overflows(void **state)
{
    (void)state;
    int64_t r = 7;
    assert_false(checked_add(INT64_MAX, 1, &r));
    assert_false(checked_mul(INT64_MAX, 2, &r));
    assert_false(checked_sub(INT64_MIN, 1, &r));
    assert_false(checked_floordiv(INT64_MIN, -1, &r));
    assert_false(checked_floordiv(1, 0, &r));
    assert_int_equal(r, 7);
    assert_true(checked_floordiv(-7, 2, &r) && r == -4);
    assert_true(checked_floormod(-7, 2, &r) && r == 1);
    assert_true(checked_floordiv(7, -2, &r) && r == -4);
    assert_true(checked_floormod(7, -2, &r) && r == -1);
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        cmocka_unit_test(arena_memory_is_zeroed_and_aligned_also_when_used_again),
        cmocka_unit_test(a_reset_keeps_what_came_before_the_mark),
        cmocka_unit_test(an_emptied_arena_keeps_one_block),
        cmocka_unit_test(a_vector_grows_and_refuses_absurd_sizes),
        cmocka_unit_test(a_map_finds_what_was_put_and_loses_what_was_deleted),
        cmocka_unit_test(a_map_walk_meets_each_key_once),
        cmocka_unit_test(a_map_that_is_filled_and_emptied_does_not_grow),
        cmocka_unit_test(hashes_are_stable_and_see_every_byte),
        cmocka_unit_test(checked_arithmetic_says_when_it_overflows),
    };
    return cmocka_run_group_tests(claims, NULL, NULL);
}
