/* Shape rules of operators that join tensors or spread them against each other. */
#include "host/op/checks.h"
#include "host/op/join_piece.h"
#include "host/op/rows.h"
#include "host/op/view_rule.h"
#include <string.h>

/* -- pieces -------------------------------------------------------------------------------------------------------- */

static enum join_form form_of(const char *name)
{
    static const struct { const char *name; enum join_form form; } forms[] = {
        {"stack", JOIN_STACK}, {"hstack", JOIN_H}, {"vstack", JOIN_V},
        {"row_stack", JOIN_V}, {"dstack", JOIN_D}, {"column_stack", JOIN_COLUMN},
    };
    for (uint32_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].name, name) == 0)
            return forms[i].form;
    return JOIN_CAT;
}

bool join_skips(const join *j, const bp_tensor *t)
{
    return j->form == JOIN_CAT && t->rank == 1 && dim_eq_or_false(t->sizes[0], dim_const(0));
}

/* Rank of the first tensor that counts. */
static uint32_t first_rank(const join *j, const bp_value *args)
{
    uint32_t n = arg_list_len(args, 0);
    for (uint32_t i = 0; i < n; i++)
        if (!join_skips(j, arg_list_tensor(args, 0, i)))
            return arg_list_tensor(args, 0, i)->rank;
    return n ? 1 : 0;
}

bp_status join_of(bp_ctx *c, const op_row *op, const bp_value *args, join *out)
{
    *out = (join){form_of(op->schema->name), 0};
    if (!arg_list_len(args, 0))
        return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"tensors\" is an empty list");
    uint32_t rank = first_rank(out, args);
    switch (out->form) {
    case JOIN_CAT: return op_wrap_dim(c, op, "dim", arg_int(c, args, 1), rank, &out->dim);
    case JOIN_STACK: return op_wrap_dim(c, op, "dim", arg_int(c, args, 1), rank + 1, &out->dim);
    case JOIN_H: out->dim = rank > 1; return BP_OK;
    case JOIN_V: return BP_OK;
    case JOIN_D: out->dim = 2; return BP_OK;
    case JOIN_COLUMN: out->dim = 1; return BP_OK;
    }
    return BP_OK;
}

static void put_one(tensor_meta *m, uint32_t at)
{
    for (uint32_t d = m->rank; d > at; d--) {
        m->sizes[d] = m->sizes[d - 1];
        m->strides[d] = m->strides[d - 1];
    }
    m->sizes[at] = m->strides[at] = dim_const(1);
    m->rank++;
}

void join_piece(const join *j, const bp_tensor *t, tensor_meta *m)
{
    static const uint32_t least_of[] = {[JOIN_H] = 1, [JOIN_V] = 2, [JOIN_COLUMN] = 2, [JOIN_D] = 3};
    uint32_t least = least_of[j->form];
    m->rank = t->rank;
    m->dtype = t->dtype;
    m->device = tensor_device(t);
    m->offset = t->offset;
    for (uint32_t d = 0; d < t->rank; d++) {
        m->sizes[d] = t->sizes[d];
        m->strides[d] = t->strides[d];
    }
    if (j->form == JOIN_STACK)
        put_one(m, j->dim);
    else if (j->form == JOIN_COLUMN)
        while (m->rank < least)
            put_one(m, m->rank);
    else
        while (m->rank < least)
            put_one(m, m->rank == 2 ? 2 : 0);
}

/* -- joins --------------------------------------------------------------------------------------------------------- */

static bp_dtype joined_dtype(bp_ctx *c, const bp_value *args)
{
    promote_state p = {0};
    for (uint32_t i = 0; i < arg_list_len(args, 0); i++)
        promote_tensor(c, &p, arg_list_tensor(args, 0, i));
    return promote_result(&p);
}

static bp_status check_piece(bp_ctx *c, const shape_call *s, const join *j, const tensor_meta *first,
                             const tensor_meta *m,
                             uint32_t i)
{
    if (m->rank != first->rank)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "tensor %u has %u dimensions, the first has %u", i, m->rank,
                       first->rank);
    for (uint32_t d = 0; d < m->rank; d++) {
        bool along = d == j->dim && j->form != JOIN_STACK;
        if (!along && !dim_require(DIM_EQ, m->sizes[d], first->sizes[d]))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "tensor %u has size %s in dimension %u, the first has %s", i,
                           op_dim_text(c, m->sizes[d]), d, op_dim_text(c, first->sizes[d]));
    }
    return BP_OK;
}

/* The format that all tensors suggest; contiguous when they differ. */
static int32_t joined_format(const shape_call *s, const join *j)
{
    int32_t format = BP_MEMORY_FORMAT_UNSET;
    for (uint32_t i = 0; i < arg_list_len(s->args, 0); i++) {
        const bp_tensor *t = arg_list_tensor(s->args, 0, i);
        if (join_skips(j, t))
            continue;
        int32_t own = tensor_suggest_format(t);
        if (format && own != format)
            return BP_CONTIGUOUS;
        format = own;
    }
    return j->form == JOIN_STACK ? BP_CONTIGUOUS : format;
}

static bp_status add_joined(bp_ctx *c, shape_call *s, const join *j, tensor_meta *whole, bp_dim length)
{
    int32_t format = joined_format(s, j);
    whole->sizes[j->dim] = length;
    shape_out *o = shape_add_out(c, s, joined_dtype(c, s->args), whole->rank, whole->sizes);
    if (!o)
        return c->diag.code;
    if (format == BP_CHANNELS_LAST || format == BP_CHANNELS_LAST_3D)
        TRY(layout_memory_format(c, whole->rank, whole->sizes, format, o->meta.strides));
    return c->diag.code;
}

bp_status shape_join(bp_ctx *c, shape_call *s)
{
    join j;
    TRY(join_of(c, s->op, s->args, &j));
    bp_dim room[4][TENSOR_MAX_RANK + 2], length = dim_const(0);
    tensor_meta first = {.sizes = room[0], .strides = room[1]}, m = {.sizes = room[2], .strides = room[3]};
    bool any = false;
    for (uint32_t i = 0; i < arg_list_len(s->args, 0); i++) {
        const bp_tensor *t = arg_list_tensor(s->args, 0, i);
        if (j.form == JOIN_CAT && t->rank == 0)
            return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                           "tensor %u has no dimensions, and nothing along which to join", i);
        if (join_skips(&j, t))
            continue;
        if (!any)
            join_piece(&j, t, &first);
        any = true;
        join_piece(&j, t, &m);
        TRY(check_piece(c, s, &j, &first, &m, i));
        length = dim_add(c, length, m.sizes[j.dim]);
    }
    if (!any)
        join_piece(&j, arg_list_tensor(s->args, 0, 0), &first);
    return add_joined(c, s, &j, &first, length);
}

/* Matrices on the diagonal; vectors are rows, numbers are 1 by 1. */
bp_status shape_block_diag(bp_ctx *c, shape_call *s)
{
    bp_dim rows = dim_const(0), columns = dim_const(0);
    uint32_t n = arg_list_len(s->args, 0);
    for (uint32_t i = 0; i < n; i++) {
        const bp_tensor *t = arg_list_tensor(s->args, 0, i);
        if (t->rank > 2)
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "tensor %u has %u dimensions, expected 2 at most", i,
                           t->rank);
        rows = dim_add(c, rows, t->rank == 2 ? t->sizes[0] : dim_const(1));
        columns = dim_add(c, columns, t->rank ? t->sizes[t->rank - 1] : dim_const(1));
    }
    bp_dtype d = n ? joined_dtype(c, s->args) : c->ambient.default_dtype;
    return out_new(c, s, d, 2, (bp_dim[]){n ? rows : dim_const(1), columns});
}

/* Each tensor is padded along dim to a multiple of the number of chunks, cut into chunks, and the i-th chunks are laid
 * flat side by side. */
bp_status shape_chunk_cat(bp_ctx *c, shape_call *s)
{
    int64_t chunks = arg_int(c, s->args, 2);
    bp_dim total = dim_const(0);
    uint32_t n = arg_list_len(s->args, 0), d;
    if (!n || chunks < 1)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%u tensors in %lld chunks", n, (long long)chunks);
    const bp_tensor *first = arg_list_tensor(s->args, 0, 0);
    TRY(op_wrap_dim(c, s->op, "dim", arg_int(c, s->args, 1), first->rank, &d));
    for (uint32_t i = 0; i < n; i++) {
        const bp_tensor *t = arg_list_tensor(s->args, 0, i);
        if (t->rank <= d || t->dtype != first->dtype)
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "tensor %u has another rank or type than the first", i);
        bp_dim size = dim_floordiv(c, dim_add(c, t->sizes[d], dim_const(chunks - 1)), dim_const(chunks));
        total = dim_add(c, total, dim_mul(c, size, dim_product(c, t->sizes + d + 1, t->rank - d - 1)));
    }
    bp_dim sizes[TENSOR_MAX_RANK];
    if (d)
        memcpy(sizes, first->sizes, d * sizeof *sizes);
    sizes[d] = dim_const(chunks);
    sizes[d + 1] = total;
    return out_new(c, s, first->dtype, d + 2, sizes);
}

/* -- grids --------------------------------------------------------------------------------------------------------- */

static bool indexing_xy(bp_ctx *c, const shape_call *s, bool *xy)
{
    int32_t i = schema_find(s->op->schema, "indexing");
    const char *text = i < 0 ? "ij" : arg_str(s->args, (uint32_t)i);
    *xy = text && strcmp(text, "xy") == 0;
    if (*xy || (text && strcmp(text, "ij") == 0))
        return true;
    op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"indexing\" is \"%s\", expected \"ij\" or \"xy\"",
            text ? text : "");
    return false;
}

bp_status shape_meshgrid(bp_ctx *c, shape_call *s)
{
    uint32_t n = arg_list_len(s->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK];
    bool xy;
    if (!indexing_xy(c, s, &xy))
        return c->diag.code;
    if (n == 0 || n > TENSOR_MAX_RANK)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "%u tensors, expected 1 to %d", n, TENSOR_MAX_RANK);
    for (uint32_t i = 0; i < n; i++) {
        const bp_tensor *t = arg_list_tensor(s->args, 0, i);
        uint32_t d = xy && n > 1 && i < 2 ? 1 - i : i;
        if (t->rank > 1 || t->dtype != arg_list_tensor(s->args, 0, 0)->dtype)
            return op_fail(c, s->op, BP_INVALID_ARGUMENT,
                           "tensor %u must be a vector or a number, of the first's type", i);
        sizes[d] = t->rank ? t->sizes[0] : dim_const(1);
    }
    for (uint32_t i = 0; i < n; i++) {
        const bp_tensor *t = arg_list_tensor(s->args, 0, i);
        shape_out *o = shape_add_out(c, s, t->dtype, n, sizes);
        if (!o)
            return c->diag.code;
        for (uint32_t d = 0; d < n; d++)
            o->meta.strides[d] = dim_const(0);
        uint32_t own = xy && n > 1 && i < 2 ? 1 - i : i;
        o->meta.strides[own] = t->rank ? t->strides[0] : dim_const(1);
        o->meta.offset = t->offset;
        o->alias_of = 0;
        o->alias_item = i;
    }
    return c->diag.code;
}

bp_status shape_cartesian_prod(bp_ctx *c, shape_call *s)
{
    uint32_t n = arg_list_len(s->args, 0);
    bp_dim rows = dim_const(1);
    for (uint32_t i = 0; i < n; i++) {
        const bp_tensor *t = arg_list_tensor(s->args, 0, i);
        if (t->rank != 1)
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "tensor %u has %u dimensions, expected 1", i, t->rank);
        rows = dim_mul(c, rows, t->sizes[0]);
    }
    if (n == 0)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"tensors\" is an empty list");
    bp_dtype d = arg_list_tensor(s->args, 0, 0)->dtype;
    return out_new(c, s, d, n == 1 ? 1 : 2, (bp_dim[]){rows, dim_const(n)});
}

/* How many they are is no polynomial of the size: a number. */
bp_status shape_combinations(bp_ctx *c, shape_call *s)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    int64_t r = arg_int(c, s->args, 1);
    TRY(check_rank(c, s, 0, 1, 1));
    if (r < 0 || r > 16)
        return op_fail(c, s->op, BP_INVALID_ARGUMENT, "argument \"r\" is %lld, expected 0 to 16", (long long)r);
    int64_t n = dim_int(c, t->sizes[0]) + (arg_bool(s->args, 2) && r ? r - 1 : 0), rows = r && n >= r;
    for (int64_t i = 0; i < r && n >= r; i++)
        if (__builtin_mul_overflow(rows, n - i, &rows) || (rows /= i + 1, false))
            return op_fail(c, s->op, BP_INVALID_ARGUMENT, "more combinations than 64 bits count");
    return out_new(c, s, t->dtype, r ? 2 : 1, (bp_dim[]){dim_const(rows), dim_const(r)});
}
