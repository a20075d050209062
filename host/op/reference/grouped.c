/* Products of groups of rows, each with a matrix of its own: what mixtures of experts are made of. */
#include "host/op/checks.h"
#include "host/op/reference/part.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"

/* input [rows, k], weight [groups, k, n], offs: where each group of rows ends. */
bp_status shape_grouped_mm(bp_ctx *c, shape_call *s)
{
    const bp_tensor *x = arg_tensor(s->args, 0), *w = arg_tensor(s->args, 1), *ends = arg_tensor(s->args, 2);
    char a[256], b[256];
    TRY(check_rank(c, s, 0, 2, 2));
    TRY(check_rank(c, s, 1, 3, 3));
    TRY(check_rank(c, s, 2, 1, 1));
    TRY(check_same_dtype(c, s, 0, 1));
    TRY(check_index_dtype(c, s, 2));
    if (!dim_eq(x->sizes[1], w->sizes[1]))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "sizes %s and %s cannot be multiplied",
                       sizes_text(a, sizeof a, 2, x->sizes), sizes_text(b, sizeof b, 3, w->sizes));
    if (!dim_eq(ends->sizes[0], w->sizes[0]))
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"offs\" ends %lld groups, and \"weight\" has %lld",
                       (long long)ends->sizes[0].value, (long long)w->sizes[0].value);
    return out_new(c, s, x->dtype, 2, (const bp_dim[]){x->sizes[0], w->sizes[2]});
}

static bp_status multiply(bp_ctx *c, op_call *k, int64_t group, int64_t start, int64_t end)
{
    bp_tensor *rows = part_narrow(c, arg_tensor(k->args, 0), 0, start, end - start);
    bp_value pick[] = {k->args[1], value_int(0), value_int(group)};
    bp_tensor *matrix = rows ? op_call1(c, ROW_select_int, 3, pick) : NULL;
    bp_value both[] = {value_tensor(rows), value_tensor(matrix)};
    bp_tensor *product = matrix ? op_call1(c, ROW_mm_default, 2, both) : NULL;
    bp_tensor *to = product ? part_narrow(c, k->out[0], 0, start, end - start) : NULL;
    if (to)
        tensor_copy(c, to, product);
    tensor_unref(rows);
    tensor_unref(matrix);
    tensor_unref(product);
    tensor_unref(to);
    return c->diag.code;
}

/* Rows behind the last group are zero. */
bp_status kernel_grouped_mm(bp_ctx *c, op_call *k)
{
    const bp_tensor *ends = arg_tensor(k->args, 2);
    int64_t rows = tensor_dim(k->out[0], 0), start = 0;
    work_clear(k->out[0]);
    for (int64_t i = 0; i < tensor_nelem(ends); i++) {
        const char *at = (const char *)tensor_ptr(ends) + i * tensor_step(ends, 0) * (int64_t)dtype_size(ends->dtype);
        int64_t end = dtype_load(ends->dtype, at).i;
        if (end < start || end > rows)
            return op_fail(c, k->op, BP_OUT_OF_RANGE,
                           "argument \"offs\" ends group %lld at %lld, and it begins at %lld of %lld rows",
                           (long long)i, (long long)end, (long long)start, (long long)rows);
        if (end > start)
            TRY(multiply(c, k, i, start, end));
        start = end;
    }
    return c->diag.code;
}
