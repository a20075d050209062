/* The cache's parts: epochs, trees, segments and their lists, codes. */
#include "host/cache/code.h"
#include "tests/unit/compile/fixture.h"

/* -- epochs -------------------------------------------------------------------------------------------------------- */

typedef struct { epoch_link link; int *destroyed; } retired;

static void count_destroyed(epoch_link *self)
{
    ++*((retired *)self)->destroyed;
}

static void what_a_reader_may_see_is_not_destroyed(void **state)
{
    (void)state;
    epochs e;
    int n = 0;
    retired early = {.destroyed = &n}, late = {.destroyed = &n};
    assert_int_equal(epochs_init(&e), BP_OK);
    struct epoch_cell *a = epoch_join(&e), *b = epoch_join(&e);
    epoch_enter(&e, a);
    epoch_retire(&e, &early.link, count_destroyed);
    epoch_enter(&e, b); /* entered after `early` went out of sight */
    epoch_retire(&e, &late.link, count_destroyed);
    epoch_reclaim(&e);
    assert_int_equal(n, 0);
    epoch_enter(&e, a); /* nested: the outer visit counts */
    epoch_leave(&e, a);
    assert_int_equal(n, 0);
    epoch_leave(&e, a);
    assert_int_equal(n, 1);
    epoch_leave(&e, b);
    assert_int_equal(n, 2);
    epoch_part(&e, a);
    assert_ptr_equal(epoch_join(&e), a); /* cells are used again */
    epochs_fini(&e);
}

/* -- trees --------------------------------------------------------------------------------------------------------- */

static void places_hold_nodes_newest_first(void **state)
{
    (void)state;
    epochs e;
    place root = {0};
    epochs_init(&e);
    tree_node *a = node_new(), *b = node_new(), *c = node_new(), *child = node_new();
    assert_true(place_add(&e, &root, a) && place_add(&e, &root, b) && place_add(&e, &root, c));
    assert_ptr_equal(place_nodes(&root)->at[0], c);
    assert_ptr_equal(place_nodes(&root)->at[1], b);
    assert_ptr_equal(place_nodes(&root)->at[2], a);
    assert_ptr_equal(place_last(&root), c);
    place_note_hit(&root, a);
    assert_ptr_equal(place_last(&root), a);
    outcome yes = {1, ASK_BOOL, 0}, one = {1, ASK_INT, 0};
    assert_null(node_place(a, yes));
    place *p = node_add_place(&e, a, yes);
    assert_ptr_equal(node_add_place(&e, a, yes), p);
    assert_null(node_place(a, one));
    child->parent = a;
    assert_true(place_add(&e, p, child));
    assert_ptr_equal(place_nodes(node_place(a, yes))->at[0], child);
    assert_int_equal(node_place_count(a), 1);
    place_destroy_nodes(&root);
    assert_null(place_nodes(&root));
    epochs_fini(&e);
}

/* -- segments ------------------------------------------------------------------------------------------------------ */

static int programs_dropped;

static void drop_program(void *p)
{
    (void)p;
    programs_dropped++;
}

static void c3_4_segments_are_found_by_content_and_lists_only_grow(void **state)
{
    (void)state;
    segment_store s = {0};
    hash128 x = hash128_bytes("x", 1), y = hash128_bytes("y", 1);
    assert_null(segment_find(&s, x));
    segment *a = segment_add(&s, x, "__compiled_fn_0"), *b = segment_add(&s, y, "__compiled_fn_1");
    assert_ptr_equal(segment_find(&s, x), a);
    assert_ptr_equal(segment_find(&s, y), b);
    assert_int_equal(b->number, 1);
    a->program = &s;
    a->destroy = drop_program;
    segment_list *l = segment_list_of(&s, x);
    assert_ptr_equal(segment_list_of(&s, x), l);
    assert_true(segment_list_add(l, 4) && segment_list_add(l, 2) && segment_list_add(l, 4));
    assert_int_equal(l->at.len, 2);
    assert_int_equal(l->at.at[0], 4);
    assert_true(segment_list_has(l, 2));
    assert_false(segment_list_has(l, 3));
    programs_dropped = 0;
    segment_store_fini(&s);
    assert_int_equal(programs_dropped, 1);
}

/* -- codes --------------------------------------------------------------------------------------------------------- */

static void a_function(void)
{
}

static void equal_identities_share_a_code_while_it_is_used(void **state)
{
    fixture *f = *state;
    const char *const level2[] = {"level", "2", NULL}, *const level3[] = {"level", "3", NULL};
    code_identity is = {.fn = a_function, .backend_identity = 7, .options = level2, .name = "a_function"};
    fn_code *a = code_get(f->c, &is), *b = code_get(f->c, &is);
    assert_ptr_equal(a, b);
    is.options = level3;
    assert_null(code_find(f->c, &is));
    is.options = level2;
    is.user = &is;
    assert_null(code_find(f->c, &is));
    is.user = NULL;
    is.region = code_new_region();
    assert_null(code_find(f->c, &is));
    is.region = 0;
    code_unref(b);
    b = code_find(f->c, &is);
    assert_ptr_equal(a, b);
    code_unref(a);
    code_unref(b);
    assert_null(code_find(f->c, &is)); /* a freed user pointer finds no old entries */
}

static void one_claims_and_a_reset_gives_a_fresh_state(void **state)
{
    fixture *f = *state;
    code_identity is = {.fn = a_function, .name = "a_function"};
    fn_code *a = code_get(f->c, &is);
    epochs *e = code_enter(f->c);
    code_state *s = code_state_of(a);
    assert_true(code_claim(s));
    assert_false(code_claim(s));
    code_note_reason(s, "size mismatch");
    assert_int_equal(code_reset_all(f->c), BP_OK);
    assert_ptr_not_equal(code_state_of(a), s);
    assert_true(code_claim(code_state_of(a)));
    code_release(code_state_of(a));
    char text[32];
    code_last_reason(s, text, sizeof text); /* the old state lives while this reader is inside */
    assert_string_equal(text, "size mismatch");
    assert_true(code_warn_once(s, LIMIT_CAPTURE));
    assert_false(code_warn_once(s, LIMIT_CAPTURE));
    code_leave(f->c, e);
    code_unref(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_reader_may_see_is_not_destroyed),
        cmocka_unit_test(places_hold_nodes_newest_first),
        cmocka_unit_test(c3_4_segments_are_found_by_content_and_lists_only_grow),
        cmocka_unit_test_setup_teardown(equal_identities_share_a_code_while_it_is_used, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(one_claims_and_a_reset_gives_a_fresh_state, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
