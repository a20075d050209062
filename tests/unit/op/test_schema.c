/* The schema parser: PyTorch's own texts go through it and come back, and mistakes are told with their place. */
#include "host/op/schema.h"
#include "tests/lib/check.h"
#include <stdlib.h>

static schema *parse(arena *a, const char *text)
{
    char error[256];
    schema *s = schema_parse(a, text, error, sizeof error);
    if (!s)
        print_error("%s\n  %s\n", text, error);
    assert_non_null(s);
    return s;
}

static void each_core_schema_prints_as_it_was_written(void **state)
{
    (void)state;
    char path[1024], line[4096];
    snprintf(path, sizeof path, "%s/tests/unit/op/core_schemas.txt", getenv("top_srcdir"));
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    int n = 0;
    for (; fgets(line, sizeof line, f); n++) {
        line[strcspn(line, "\n")] = '\0';
        arena a = {0};
        buf out = {0};
        schema_print(parse(&a, line), &out);
        assert_string_equal(buf_text(&out), line);
        buf_fini(&out);
        arena_fini(&a);
    }
    fclose(f);
    assert_int_equal(n, 193);
}

static void types_carry_lists_optionals_and_aliases(void **state)
{
    (void)state;
    arena a = {0};
    schema *s = parse(&a, "f.o(Tensor(a! -> *) x, Tensor?[] y, int[2]? z, Tensor(a|b) w, *, Tensor(c!) out) -> "
                          "Tensor(c!)[]");
    const schema_ty *x = &s->args[0].ty, *y = &s->args[1].ty, *z = &s->args[2].ty;
    assert_true(x->writes && !x->list && !x->optional);
    assert_string_equal(x->alias, "a");
    assert_string_equal(x->alias_to, "*");
    assert_true(y->list && y->optional_items && !y->optional_list && y->list_size == -1);
    assert_true(z->list && z->optional_list && !z->optional_items && z->list_size == 2 && z->type == TYPE_INT);
    assert_string_equal(s->args[3].ty.alias, "a|b");
    assert_true(s->args[4].kwarg_only && s->out_variant && !s->inplace);
    assert_int_equal(s->nkwarg_only, 1);
    assert_true(s->returns[0].list && s->returns[0].writes);
    arena_fini(&a);
}

static void defaults_become_values_of_their_type(void **state)
{
    (void)state;
    arena a = {0};
    schema *s = parse(&a,
                      "f(Scalar a=1, Scalar b=1., float c=2, float d=1e-05, int[] e=[0,1], int[2] g=3, str h=\"none\", "
                          "bool i=True, ScalarType? j=4, MemoryFormat k=contiguous_format, int l=Mean, Tensor? m=None, "
                          "MemoryFormat? n=2, int o=-1, ScalarType p=float64, float q=inf) -> (Tensor v, int)");
    const bp_value *v[16];
    for (int i = 0; i < 16; i++)
        v[i] = &s->args[i].default_value;
    assert_true(v[0]->kind == BP_VALUE_INT && v[0]->v.dim.value == 1);
    assert_true(v[1]->kind == BP_VALUE_FLOAT && v[1]->v.f[0] == 1.0);
    assert_true(v[2]->kind == BP_VALUE_FLOAT && v[2]->v.f[0] == 2.0);
    assert_true(v[3]->kind == BP_VALUE_FLOAT && v[3]->v.f[0] == 1e-5);
    assert_true(v[4]->kind == BP_VALUE_LIST && v[4]->count == 2 && v[4]->v.items[1].v.dim.value == 1);
    assert_true(v[5]->kind == BP_VALUE_INT && v[5]->v.dim.value == 3);
    assert_string_equal(v[6]->v.str, "none");
    assert_true(v[7]->kind == BP_VALUE_BOOL && v[7]->v.i == 1);
    assert_true(v[8]->kind == BP_VALUE_DTYPE && v[8]->v.i == BP_I64);
    assert_true(v[9]->kind == BP_VALUE_MEMORY_FORMAT && v[9]->v.i == BP_CONTIGUOUS);
    assert_true(v[10]->kind == BP_VALUE_INT && v[10]->v.dim.value == 1);
    assert_true(v[11]->kind == BP_VALUE_NONE && s->args[11].has_default);
    assert_true(v[12]->kind == BP_VALUE_MEMORY_FORMAT && v[12]->v.i == BP_CHANNELS_LAST);
    assert_true(v[13]->v.dim.value == -1);
    assert_true(v[14]->v.i == BP_F64);
    assert_true(v[15]->v.f[0] > 1e308);
    assert_string_equal(s->return_names[0], "v");
    assert_null(s->return_names[1]);
    arena_fini(&a);
}

static void mistakes_are_told_with_their_offset(void **state)
{
    (void)state;
    static const struct { const char *text, *error; } cases[] = {
        {"", "offset 0: expected an operator's name"},
        {"add", "offset 3: expected \"(\""},
        {"add(Tensr self) -> Tensor", "offset 4: \"Tensr\" is no type"},
        {"add(Tensor) -> Tensor", "offset 10: expected an argument's name"},
        {"add(Tensor a, Tensor a) -> Tensor", "a second argument \"a\""},
        {"add(Tensor a Tensor b) -> Tensor", "expected \",\""},
        {"add(Tensor(a self) -> Tensor", "expected \")\""},
        {"add(int[x] self) -> Tensor", "expected an integer"},
        {"add(int a=one) -> Tensor", "\"one\" is no value of type int"},
        {"add(int a=1.5) -> Tensor", "is no value of type int"},
        {"add(int a=\"1\") -> Tensor", "the default of \"a\" does not fit its type"},
        {"add(str a=\"x) -> Tensor", "without its closing quote"},
        {"add(int a=99999999999999999999) -> Tensor", "expected an integer"},
        {"add(ScalarType a=99) -> Tensor", "99 is no ScalarType"},
        {"add(Tensor[][] a) -> Tensor", "lists of lists"},
        {"add(Tensor a)", "expected \"->\""},
        {"add(Tensor a) -> ", "is no type"},
        {"add(Tensor a) -> (Tensor", "expected \",\""},
        {"add(Tensor a) -> Tensor x y", "expected the end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena a = {0};
        char error[256];
        assert_null(schema_parse(&a, cases[i].text, error, sizeof error));
        assert_contains(error, cases[i].error);
        arena_fini(&a);
    }
}

static void identifiers_are_lower_case_and_bear_no_underscore_at_their_ends(void **state)
{
    (void)state;
    static const struct { const char *text, *id, *op; } cases[] = {
        {"add.Tensor(Tensor s) -> Tensor", "add_tensor", "add"},
        {"relu_(Tensor(a!) s) -> Tensor(a!)", "relu_inplace_default", "relu_inplace"},
        {"_softmax(Tensor s) -> Tensor", "private_softmax_default", "private_softmax"},
        {"__and__.Tensor(Tensor s) -> Tensor", "dunder_and_tensor", "dunder_and"},
        {"sum.dim_IntList(Tensor s) -> Tensor", "sum_dim_intlist", "sum"},
        {"mH(Tensor(a) s) -> Tensor(a)", "mh_default", "mh"},
        {"prims::convert_element_type(Tensor a) -> Tensor", "prims_convert_element_type_default",
         "prims_convert_element_type"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena a = {0};
        char id[64];
        schema *s = parse(&a, cases[i].text);
        assert_true(schema_id(s, id, sizeof id));
        assert_string_equal(id, cases[i].id);
        assert_false(schema_id(s, id, strlen(cases[i].id)));
        assert_true(schema_op_id(s, id, sizeof id));
        assert_string_equal(id, cases[i].op);
        arena_fini(&a);
    }
}

static void values_fit_their_types_and_no_others(void **state)
{
    (void)state;
    arena a = {0};
    schema *s = parse(&a, "f(Tensor a, Tensor? b, Tensor?[] c, int[2] d, int[] e, float g, bool h, Scalar? i) -> ()");
    bp_value none = {BP_VALUE_NONE, 0, {0}}, one = {BP_VALUE_INT, 0, {0}}, yes = {BP_VALUE_BOOL, 0, {0}};
    bp_value items[2] = {none, {BP_VALUE_TENSOR, 0, {0}}}, list = {BP_VALUE_LIST, 2, {0}};
    list.v.items = items;
    assert_true(schema_fits(&s->args[0].ty, &one));
    assert_false(schema_fits(&s->args[0].ty, &none));
    assert_true(schema_fits(&s->args[1].ty, &none));
    assert_true(schema_fits(&s->args[2].ty, &list));
    assert_false(schema_fits(&s->args[4].ty, &list));
    assert_true(schema_fits(&s->args[3].ty, &one));
    assert_false(schema_fits(&s->args[4].ty, &one));
    assert_true(schema_fits(&s->args[5].ty, &one));
    assert_false(schema_fits(&s->args[6].ty, &one));
    assert_true(schema_fits(&s->args[6].ty, &yes));
    assert_true(schema_fits(&s->args[7].ty, &yes) && schema_fits(&s->args[7].ty, &none));
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_core_schema_prints_as_it_was_written),
        cmocka_unit_test(types_carry_lists_optionals_and_aliases),
        cmocka_unit_test(defaults_become_values_of_their_type),
        cmocka_unit_test(mistakes_are_told_with_their_offset),
        cmocka_unit_test(identifiers_are_lower_case_and_bear_no_underscore_at_their_ends),
        cmocka_unit_test(values_fit_their_types_and_no_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
