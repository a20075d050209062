/* Maximum flow against all cuts, one by one, on small graphs. */
#include "tests/lib/check.h"
#include "host/grad/maxflow.h"

typedef struct { uint32_t from, to; int64_t capacity; } edge;

static int64_t run(uint32_t n, const edge *e, uint32_t nedges, uint32_t *reached)
{
    flow f;
    flow_init(&f, n);
    for (uint32_t i = 0; i < nedges; i++)
        flow_add(&f, e[i].from, e[i].to, e[i].capacity);
    int64_t got = flow_run(&f, 0, 1);
    *reached = 0;
    for (uint32_t i = 0; i < n; i++)
        *reached |= (uint32_t)flow_reached(&f, i) << i;
    flow_fini(&f);
    return got;
}

static int64_t cut_of(const edge *e, uint32_t nedges, uint32_t side)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < nedges; i++)
        if (side >> e[i].from & 1 && !(side >> e[i].to & 1))
            sum = e[i].capacity >= FLOW_INFINITE || sum >= FLOW_INFINITE ? FLOW_INFINITE : sum + e[i].capacity;
    return sum;
}

static void the_flow_is_the_least_of_all_cuts(void **state)
{
    (void)state;
    uint32_t seed = 12345;
    for (uint32_t round = 0; round < 400; round++) {
        enum { NODES = 7 };
        edge e[24];
        uint32_t nedges = 4 + round % 20, reached;
        for (uint32_t i = 0; i < nedges; i++) {
            seed = seed * 1664525u + 1013904223u;
            e[i] = (edge){seed >> 8 & 0xff, seed >> 16 & 0xff, seed >> 24};
            e[i].from %= NODES;
            e[i].to %= NODES;
            if (e[i].capacity % 8 == 0)
                e[i].capacity = FLOW_INFINITE;
        }
        int64_t least = FLOW_INFINITE;
        for (uint32_t side = 0; side < 1u << NODES; side++)
            if (side & 1 && !(side & 2) && cut_of(e, nedges, side) < least)
                least = cut_of(e, nedges, side);
        assert_int_equal(run(NODES, e, nedges, &reached), least);
        if (least < FLOW_INFINITE)
            assert_int_equal(cut_of(e, nedges, reached), least);
    }
}

static void the_cut_nearest_to_the_source_is_found(void **state)
{
    (void)state;
    const edge chain[] = {{0, 2, 5}, {2, 3, 5}, {3, 1, 5}};
    uint32_t reached;
    assert_int_equal(run(4, chain, 3, &reached), 5);
    assert_int_equal(reached, 1);
}

static void large_capacities_do_not_wrap(void **state)
{
    (void)state;
    edge e[64];
    uint32_t reached;
    for (uint32_t i = 0; i < 64; i++)
        e[i] = (edge){0, 1, FLOW_MAX_CAPACITY * 8};
    assert_true(run(2, e, 64, &reached) == 64 * FLOW_MAX_CAPACITY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_flow_is_the_least_of_all_cuts),
        cmocka_unit_test(the_cut_nearest_to_the_source_is_found),
        cmocka_unit_test(large_capacities_do_not_wrap),
    };
    return cmocka_run_group_tests_name("maxflow", tests, NULL, NULL);
}
