/* The operator table against itself and against PyTorch's core list. */
#define BP_WITHOUT_OPERATORS
#include "host/op/op.h"
#include "sdk/base/map.h"
#include "tests/lib/check.h"
#include <backplane/backplane.h>
#include <stdlib.h>

static void ids_are_what_the_schemas_say_and_targets_are_unique(void **state)
{
    (void)state;
    map seen = {0};
    assert_true(op_count() > 500);
    for (uint32_t n = 0; n < op_count(); n++) {
        const op_row *r = op_at(n);
        char id[96];
        assert_true(schema_id(r->schema, id, sizeof id));
        assert_string_equal(id, r->id);
        bool is_new = false;
        assert_non_null(map_put(&seen, str_of(r->target), &is_new));
        if (!is_new)
            print_error("%s has two rows\n", r->target);
        assert_true(is_new);
    }
    map_fini(&seen);
}

static void doc_lines_are_sentences(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < op_count(); n++) {
        const char *doc = op_at(n)->doc;
        size_t len = strlen(doc);
        if (!len || doc[len - 1] != '.' || strchr(doc, '\n'))
            print_error("%s: \"%s\"\n", op_at(n)->target, doc);
        assert_true(len && doc[len - 1] == '.' && !strchr(doc, '\n'));
    }
}

/* An argument that the functional row wants, and the written one does not have, needs a default. */
static void written_rows_have_what_their_functional_rows_want(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < op_count(); n++) {
        const op_row *r = op_at(n);
        if (!r->inplace_of)
            continue;
        assert_string_equal(r->functional->id, r->inplace_of);
        assert_true(r->schema->inplace || r->schema->out_variant);
        for (uint32_t i = 0; i < r->functional->schema->nargs; i++) {
            const schema_arg *g = &r->functional->schema->args[i];
            int32_t at = schema_find(r->schema, g->name);
            at = at < 0 && i == 0 ? 0 : at;
            const schema_ty *own = at < 0 ? NULL : &r->schema->args[at].ty;
            bool same = own && own->type == g->ty.type && own->list == g->ty.list;
            if (!same && !(at < 0 && g->has_default))
                print_error("%s does not have \"%s\" of %s\n", r->target, g->name, r->functional->target);
            assert_true(same || (at < 0 && g->has_default));
        }
    }
}

static void a_row_has_a_kernel_or_needs_none(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < op_count(); n++) {
        const op_row *r = op_at(n);
        bool needs_none = (r->flags & OP_VIEW) || r->functional;
        assert_true(needs_none == (r->kernel == NULL));
        assert_true((r->shape == NULL) == (r->functional != NULL));
    }
}

/* The flag is on exactly the rows of PyTorch's core list, and their schemas are that list's. */
static void core_rows_are_pytorchs(void **state)
{
    (void)state;
    char path[1024], line[4096];
    snprintf(path, sizeof path, "%s/tests/unit/op/core_schemas.txt", getenv("top_srcdir"));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    uint32_t listed = 0, flagged = 0;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        arena a = {0};
        char error[200], target[200];
        schema *s = schema_parse(&a, line, error, sizeof error);
        assert_non_null(s);
        snprintf(target, sizeof target, "%s.%s.%s", s->ns, s->name, s->overload);
        const op_row *r = op_by_target(target);
        arena_fini(&a);
        if (!r)
            continue;
        listed++;
        if (!(r->flags & OP_CORE))
            print_error("%s lacks OP_CORE\n", target);
        assert_true(r->flags & OP_CORE);
        buf out = {0};
        schema_print(r->schema, &out);
        assert_string_equal(buf_text(&out), line);
        buf_fini(&out);
    }
    fclose(f);
    for (uint32_t n = 0; n < op_count(); n++)
        flagged += (op_at(n)->flags & OP_CORE) != 0;
    assert_int_equal(flagged, listed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_what_the_schemas_say_and_targets_are_unique),
        cmocka_unit_test(doc_lines_are_sentences),
        cmocka_unit_test(written_rows_have_what_their_functional_rows_want),
        cmocka_unit_test(a_row_has_a_kernel_or_needs_none),
        cmocka_unit_test(core_rows_are_pytorchs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
