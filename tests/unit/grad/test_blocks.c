/* Partitions of whole blocks' joint graphs: the minimal cut saves less than the default set, and gives the same. */
#include "tests/lib/check.h"
#include "tests/lib/blocks.h"
#include "host/base/ctx.h"
#include "host/tensor/tensor.h"
#include <stdlib.h>

static bp_ctx *c;

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

static void good(bp_status st)
{
    if (st != BP_OK)
        fail_msg("%s", bp_error_text(c));
}

static partition split(const joint *j, int32_t kind)
{
    partition p;
    partition_options o = PARTITION_DEFAULTS;
    o.kind = kind;
    good(joint_partition(c, j, &o, &p));
    return p;
}

static bp_tensor *make_input(const tensor_meta *m, uint32_t seed)
{
    bp_tensor *t = tensor_new(c, m);
    assert_int_equal(m->dtype == BP_F32 || m->dtype == BP_I64, 1);
    for (int64_t i = 0; m->dtype == BP_F32 && i < tensor_nelem(t); i++)
        ((float *)tensor_ptr(t))[i] = (float)((seed * 37 + (uint32_t)i * 11) % 19) / 19;
    for (int64_t i = 0; m->dtype == BP_I64 && i < tensor_nelem(t); i++)
        ((int64_t *)tensor_ptr(t))[i] = i;
    return t;
}

/* What both graphs give: outputs, then gradients; for inputs that count up. */
enum { MOST = 256 };
typedef struct { bp_tensor *at[MOST]; uint32_t n; } answers;

static void run(const joint *j, const partition *p, answers *a)
{
    bp_tensor *in[MOST] = {0}, *given[MOST] = {0}, *back[MOST] = {0};
    node_id ph[MOST];
    uint32_t nin = graph_placeholders(&j->gm->g, ph, MOST), nfw = j->noutputs + p->nsaved;
    uint32_t ngrads = graph_output_count(&p->backward->g);
    assert_true(nin < MOST && nfw < MOST && p->nsaved + j->ntangents < MOST && j->noutputs + ngrads < MOST);
    for (uint32_t i = 0; i < nin; i++)
        in[i] = make_input(graph_get(&j->gm->g, ph[i])->metas, i + 1);
    good(graph_run(c, p->forward, in, j->nprimals, given, nfw, NULL, NULL));
    memcpy(back, given + j->noutputs, p->nsaved * sizeof *back);
    memcpy(back + p->nsaved, in + j->nprimals, j->ntangents * sizeof *back);
    memcpy(a->at, given, j->noutputs * sizeof *given);
    good(graph_run(c, p->backward, back, p->nsaved + j->ntangents, a->at + j->noutputs, ngrads, NULL, NULL));
    a->n = j->noutputs + ngrads;
    for (uint32_t i = 0; i < p->nsaved; i++)
        tensor_unref(given[j->noutputs + i]);
    for (uint32_t i = 0; i < nin; i++)
        tensor_unref(in[i]);
}

static void assert_same(const answers *a, const answers *b)
{
    uint32_t gradients = 0;
    assert_int_equal(a->n, b->n);
    for (uint32_t i = 0; i < a->n; i++) {
        assert_int_equal(a->at[i] == NULL, b->at[i] == NULL);
        if (!a->at[i])
            continue;
        gradients++;
        assert_int_equal(tensor_span_bytes(a->at[i]), tensor_span_bytes(b->at[i]));
        assert_memory_equal(tensor_ptr(a->at[i]), tensor_ptr(b->at[i]), tensor_span_bytes(a->at[i]));
    }
    assert_true(gradients > 4);
}

static void drop(answers *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        tensor_unref(a->at[i]);
}

static void check_block(const char *name)
{
    block b;
    joint j;
    answers whole = {0}, cut = {0};
    bp_scope_begin(c);
    good(block_make(c, name, false, &b));
    good(block_joint(c, &b, &j));
    partition p = split(&j, PARTITION_DEFAULT), q = split(&j, PARTITION_MIN_CUT);
    print_message("%s: default saves %llu bytes, min-cut %llu\n", name, (unsigned long long)p.saved_bytes,
                  (unsigned long long)q.saved_bytes);
    assert_true(q.saved_bytes > 0 && q.saved_bytes < p.saved_bytes);
    run(&j, &p, &whole);
    run(&j, &q, &cut);
    assert_same(&whole, &cut);
    drop(&whole);
    drop(&cut);
    partition_fini(&p);
    partition_fini(&q);
    joint_fini(&j);
    block_fini(&b);
    bp_scope_end(c);
}

static void F034_min_cut_saves_less_of_a_transformer_block(void **state)
{
    (void)state;
    check_block(BLOCK_NAMES[0]);
}

static void F034_min_cut_saves_less_of_a_stack_of_convolutions(void **state)
{
    (void)state;
    check_block(BLOCK_NAMES[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(F034_min_cut_saves_less_of_a_transformer_block, start, end),
        cmocka_unit_test_setup_teardown(F034_min_cut_saves_less_of_a_stack_of_convolutions, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
