/* Layout rules against PyTorch 2.15. */
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include "host/tensor/tensor.h"
#include <backplane/backplane.h>
#include <stdlib.h>

/* rule|sizes of a|strides of a|sizes of b, or of the view|strides of b|what PyTorch gave ("none": refused). "-": rank
 * 0. suggest gives 1 contiguous, 3 channels_last, 4 channels_last_3d. */
static const char *const ROWS[] = {
    "view|2 1 3|3 99 1|6||1",
    "view|2 1 3|3 99 1|2 3||3 1",
    "suggest|2 1 1 1|4 4 4 4|||1",
    "suggest|3 1 1 1|1 1 1 1|||1",
    "preserve|1 1 3 2|3 3 1 1|||6 6 2 1",
    "preserve|5 1 1 1|7 7 7 7|||1 1 1 1",
    "preserve|4 3 3 4|1 1 12 3|||3 1 48 12",
    "preserve|3 4 2 4 2|24 72 216 6 1|||8 24 96 2 1",
    "preserve|3 4 1 2|28 7 7 1|||8 2 2 1",
    "preserve|4 4 3 2 2|24 6 2 2 1|||48 12 4 2 1",
    "preserve|4 2 1 5|4 2 4 16|||2 1 2 8",
    "preserve|2 1 2|99 99 198|||1 1 2",
    "preserve|2 4 4 1 0|16 1 4 1 4|||16 1 4 1 4",
    "preserve|5 2 2 4|4 2 1 0|||16 8 4 1",
    "unary|4 1 2|2 1 1|||2 2 1",
    "unary|5 5 4 1 4|4 20 1 1 1|||16 80 4 1 1",
    "unary|4 4 2 1|1 4 1 1|||2 8 1 1",
    "unary|4 0 2 3|1 24 12 4|||6 6 3 1",
    "unary|2 4 2 1|4 1 1 1|||8 2 1 1",
    "unary|4 3 2 3|36 1 18 6|||18 1 9 3",
    "unary|3 3 1 1|21 7 7 7|||3 1 1 1",
    "unary|2 2 1|1 1 1|||2 1 1",
    "scalar|1 4 5 3|99 3 3 1|||60 3 12 1",
    "scalar|3 4 4|32 8 2|||16 4 1",
    "scalar|4 2 2 3 4|24 12 12 4 1|||48 24 12 4 1",
    "scalar|4 2 4|0 4 1|||8 4 1",
    "scalar|4 1 1 0|7 7 1 1|||1 1 1 1",
    "scalar|2 3 3 2|6 2 0 1|||18 6 2 1",
    "scalar|-|-|||-",
    "scalar|1 4 3 1|12 3 1 1|||12 3 1 1",
    "binary|1 1 2 1 1|2 2 1 1 99|1 1 2 1 1|2 2 1 1 99|2 2 1 1 1",
    "binary|3 1 2 4 1|4 0 12 1 12|3 1 2 4 1|4 1 12 1 12|4 1 12 1 12",
    "binary|3 4 4 3|16 4 1 16|3 1 4 3|16 4 1 16|48 4 1 16",
    "binary|2 0 3|0 1 1|0 1|2 2|0 1 0",
    "binary|3 2 4|12 4 1|1 1 4|1 4 1|8 4 1",
    "binary|3 2 0 4|8 4 8 1|3 1 0 1|1 1 1 1|0 4 8 1",
    "binary|2 3 2 4|8 1 1 2|2 1|1 1|24 2 1 6",
    "binary|4 2 4 3|2 1 0 2|4 2 4 3|6 24 24 2|6 1 24 2",
    "binary|1 1 2 3|18 18 9 1|1 1 2 3|6 0 3 1|6 6 3 1",
    "binary|2 1 1 3|7 7 7 1|2 1 1 3|3 3 0 1|3 3 3 1",
    "binary|3 1 3 4|1 0 3 9|1 3 4|1 1 1|1 1 3 9",
    "binary|2 4 1 2 2|396 99 99 2 1|2 4 1 1 1|28 7 7 7 1|16 4 4 2 1",
    "binary|4 3 1|99 1 99|1|1|3 1 3",
    "binary|4 1 4 0 4|32 16 4 4 1|4 1 4 0 4|4 16 1 16 16|16 16 4 4 1",
    "binary|2 1 0 4|14 7 112 28|2 1 0 1|14 7 112 28|1 1 8 2",
    "binary|3 2 4 1 3|0 4 1 1 1|1 2 4 1 3|1 4 1 8 1|24 12 1 12 4",
    "binary|3 3 4|2 6 18|3 1 1|2 6 18|1 3 9",
    "binary|1 2 5 1 4|99 20 4 1 1|1 2 5 1 4|10 1 2 30 1|40 20 4 1 1",
    "binary|2 2 4 1|0 4 1 1|2 4 1|0 1 1|8 4 1 1",
    "binary|3 1 2 3 1|594 594 297 99 99|3 1 2 1 1|7 7 1 1 1|6 6 3 1 1",
    "binary|4 3 1 4|24 4 4 1|4 3 1 4|108 12 99 3|12 4 12 1",
    "binary|-|-|-|-|-",
    "view|3 3 3 3|1 3 9 27|1 27 3||none",
    "view|4 3 3 3|9 3 36 1|1 54 1 2||none",
    "view|2 5 3 4|1 2 2 6|1 1 2 12 5||none",
    "view|2 3 2 3|6 6 3 1|3 12||none",
    "view|1 2 1 5 3|1 7 7 42 14|1 2 3 5||14 7 70 14",
    "view|1 2 1 1|2 1 0 1|2||1",
    "view|1 2 3|6 3 1|2 3||3 1",
    "view|5 2 2 1|4 2 1 1|10 2||2 1",
    "view|4 3 1|3 1 3|12||1",
    "view|2 4 0 3 1|3 6 0 1 3|2 4 0 3 1||3 6 0 1 3",
    "view|4 3 1 2|6 2 2 1|2 6 2 1||12 2 1 1",
    "view|2 1 1|1 0 1|2||1",
    "view|5 1 1 1 2|198 198 99 198 99|1 5 2||990 198 99",
    "view|2 1 3 4|12 12 4 1|24||1",
    "view|-|-|1 1||1 1",
    "view|0 3|3 1|0 3||3 1",
    "suggest|4 1 1 1|7 7 1 1|||1",
    "suggest|3 3 3 4 3|108 36 12 3 1|||1",
    "suggest|2 3 4 1 2|24 8 2 2 1|||1",
    "suggest|4 1 3 2|6 2 2 1|||1",
    "suggest|2 3 4 1 2|12 1 3 72 24|||1",
    "suggest|2 2 1 1|2 1 2 2|||3",
    "suggest|-|-|||1",
    "suggest|-|-|||1",};

static bp_ctx *c;
typedef struct { uint32_t n; bp_dim at[TENSOR_MAX_RANK]; } list;

static list read_list(const char *s, size_t n)
{
    list l = {0};
    for (const char *end = s + n; s < end && *s != '-';) {
        char *next;
        l.at[l.n++] = dim_const(strtoll(s, &next, 10));
        s = next + (*next == ' ');
    }
    return l;
}

static bp_tensor *make_fake(list *sizes, list *strides)
{
    bp_tensor *t =
        tensor_new_fake(c, &(tensor_meta){BP_F32, {BP_CPU, 0}, sizes->n, sizes->at, strides->at, dim_const(0)});
    assert_non_null(t);
    return t;
}

/* What the rule of a row gives, in the row's own form. */
static void apply_rule(const char *rule, bp_tensor *a, bp_tensor *b, list *bs, char *got)
{
    bp_dim out[TENSOR_MAX_RANK], sizes[TENSOR_MAX_RANK];
    uint32_t rank = a->rank;
    const bp_tensor *operands[] = {a, b};
    if (strncmp(rule, "suggest", 7) == 0) {
        sprintf(got, "%d", tensor_suggest_format(a));
        return;
    }
    if (*rule == 'v') {
        rank = bs->n;
        if (!layout_view(c, a, rank, bs->at, out)) {
            strcpy(got, "none");
            return;
        }
    } else if (*rule == 'p') {
        layout_preserve(c, a, out);
    } else if (*rule == 'b') {
        rank = a->rank > b->rank ? a->rank : b->rank;
        assert_int_equal(layout_broadcast(c, a->rank, a->sizes, b->rank, b->sizes, sizes), BP_OK);
        layout_pointwise(c, 2, operands, rank, sizes, out);
    } else {
        operands[1] = NULL;
        layout_pointwise(c, *rule == 's' ? 2 : 1, operands, rank, a->sizes, out);
    }
    strcpy(got, rank ? "" : "-");
    for (uint32_t d = 0; d < rank; d++)
        sprintf(got + strlen(got), "%s%lld", d ? " " : "", (long long)out[d].value);
}

static void strides_of_results_and_views_are_pytorchs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        list l[4];
        const char *p = strchr(ROWS[i], '|') + 1;
        for (int k = 0; k < 4; k++) {
            const char *bar = strchr(p, '|');
            l[k] = read_list(p, (size_t)(bar - p));
            p = bar + 1;
        }
        bool is_view = *ROWS[i] == 'v';
        bp_tensor *a = make_fake(&l[0], &l[1]), *b = is_view ? NULL : make_fake(&l[2], &l[3]);
        char got[512] = "";
        apply_rule(ROWS[i], a, b, &l[2], got);
        if (strcmp(got, p))
            fail_msg("%s: got %s", ROWS[i], got);
        tensor_unref(a);
        tensor_unref(b);
    }
}

static void shapes_that_do_not_broadcast_are_named_with_their_index(void **state)
{
    (void)state;
    bp_dim a[] = {dim_const(4), dim_const(3)}, b[] = {dim_const(2)}, out[2];
    assert_int_equal(layout_broadcast(c, 2, a, 1, b, out), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_message(c), "tensor a (3) must match the size of tensor b (2) at non-singleton "
                                         "dimension 1");
    assert_contains(bp_error_text(c), "[4, 3] and [2]");
    bp_error_clear(c);
}

static void zero_sizes_broadcast_against_ones_only(void **state)
{
    (void)state;
    bp_dim a[] = {dim_const(0)}, one[] = {dim_const(1)}, two[] = {dim_const(2)}, out[1];
    assert_int_equal(layout_broadcast(c, 1, a, 1, one, out), BP_OK);
    assert_int_equal(out[0].value, 0);
    assert_int_equal(layout_broadcast(c, 1, a, 1, two, out), BP_INVALID_ARGUMENT);
    bp_error_clear(c);
}

static void a_dimension_counts_from_both_ends(void **state)
{
    (void)state;
    assert_int_equal(layout_wrap_dim(c, -1, 3), 2);
    assert_int_equal(layout_wrap_dim(c, 2, 3), 2);
    assert_int_equal(layout_wrap_dim(c, -1, 0), 0);
    assert_int_equal(bp_error(c), BP_OK);
    assert_int_equal(layout_wrap_dim(c, 3, 3), 0);
    assert_contains(bp_error_message(c), "dimension 3 is out of range: expected -3 to 2");
    bp_error_clear(c);
}

static void formats_give_their_strides_or_name_the_rank_they_need(void **state)
{
    (void)state;
    bp_dim s[] = {dim_const(2), dim_const(3), dim_const(4), dim_const(5), dim_const(6)}, out[5];
    assert_int_equal(layout_memory_format(c, 4, s, BP_CHANNELS_LAST, out), BP_OK);
    const int64_t last[] = {60, 1, 15, 3};
    for (int d = 0; d < 4; d++)
        assert_int_equal(out[d].value, last[d]);
    assert_int_equal(layout_memory_format(c, 5, s, BP_CHANNELS_LAST_3D, out), BP_OK);
    assert_int_equal(out[0].value, 360);
    assert_int_equal(out[1].value, 1);
    assert_int_equal(layout_memory_format(c, 3, s, BP_CHANNELS_LAST, out), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_message(c), "needs rank 4");
    bp_error_clear(c);
    assert_int_equal(layout_memory_format(c, 3, s, 77, out), BP_INVALID_ARGUMENT);
    bp_error_clear(c);
}

static void contiguous_strides_count_an_empty_size_as_one(void **state)
{
    (void)state;
    bp_dim s[] = {dim_const(2), dim_const(0), dim_const(3)}, out[3];
    layout_contiguous(c, 3, s, out);
    assert_int_equal(out[0].value, 3);
    assert_int_equal(out[1].value, 3);
    assert_int_equal(out[2].value, 1);
}

static int start(void **state)
{
    (void)state;
    c = bp_ctx_new(NULL);
    return c ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    bp_ctx_destroy(c);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strides_of_results_and_views_are_pytorchs),
        cmocka_unit_test(shapes_that_do_not_broadcast_are_named_with_their_index),
        cmocka_unit_test(zero_sizes_broadcast_against_ones_only),
        cmocka_unit_test(a_dimension_counts_from_both_ends),
        cmocka_unit_test(formats_give_their_strides_or_name_the_rank_they_need),
        cmocka_unit_test(contiguous_strides_count_an_empty_size_as_one),
    };
    return cmocka_run_group_tests(tests, start, end);
}
