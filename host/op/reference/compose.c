/* Operators made of other operators (compose.h). */
#include "host/op/reference/compose.h"
#include "host/op/rows.h"
#include <string.h>

enum { STEP_RESULTS = 8 };

static bp_tensor *faked(work *w, const bp_tensor *t)
{
    tensor_meta m;
    if (!work_ok(w))
        return NULL;
    tensor_get_meta(t, &m);
    return work_own(w, tensor_new_fake(w->c, &m));
}

/* The arguments with a fake for every tensor; NULL after an error. */
static bp_value *fake_args(work *w, const bp_value *args, uint32_t n)
{
    bp_value *out = arena_memdup(&w->c->scratch, args, n * sizeof *args);
    for (uint32_t i = 0; out && i < n; i++) {
        if (out[i].kind == BP_VALUE_TENSOR) {
            out[i] = value_tensor(faked(w, args[i].v.tensor));
        } else if (out[i].kind == BP_VALUE_LIST) {
            bp_value *items = fake_args(w, args[i].v.items, args[i].count);
            if (!items)
                return NULL;
            out[i].v.items = items;
        }
    }
    if (!out)
        diag_nomem(&w->c->diag);
    return work_ok(w) ? out : NULL;
}

bp_status compose_shape(bp_ctx *c, shape_call *s, compose_fn body)
{
    work w = {.c = c};
    bp_value *args = fake_args(&w, s->args, s->nargs);
    bp_tensor *t = args ? body(&w, s->op, args) : NULL;
    shape_out *o = t && work_ok(&w) ? shape_add_out(c, s, t->dtype, t->rank, t->sizes) : NULL;
    if (o && t->rank && !tensor_overlaps_itself(t))
        layout_preserve(c, t, o->meta.strides);
    return work_end(&w);
}

bp_status compose_run(bp_ctx *c, op_call *k, compose_fn body)
{
    work w = {.c = c};
    bp_tensor *t = body(&w, k->op, k->args);
    if (t && work_ok(&w))
        tensor_copy(c, k->out[0], t);
    return work_end(&w);
}

/* Runs the row, its arguments in the order of the schema; its results belong to the work. */
static bp_status step(work *w, uint32_t row, uint32_t npos, const bp_value *pos, op_call *k)
{
    bp_value *args;
    k->op = op_at(row);
    if (!work_ok(w) || !k->op)
        return work_ok(w) ? ctx_nomem(w->c) : w->c->diag.code;
    TRY(op_bind_ordered(w->c, k->op, npos, pos, &args));
    k->args = args;
    k->nargs = k->op->schema->nargs;
    TRY(w->parts ? op_dispatch(w->c, k) : op_run_reference(w->c, k));
    for (uint32_t i = 0; i < k->nout; i++)
        k->out[i] = k->out[i] ? work_own(w, k->out[i]) : NULL;
    return w->c->diag.code;
}

bp_tensor *work_call(work *w, uint32_t row, uint32_t npos, const bp_value *pos)
{
    bp_tensor *out[STEP_RESULTS] = {NULL};
    op_call k = {.out = out, .nout = STEP_RESULTS};
    return step(w, row, npos, pos, &k) == BP_OK && k.nout ? k.out[0] : NULL;
}

bp_status work_calls(work *w, uint32_t row, uint32_t npos, const bp_value *pos, bp_tensor **out, uint32_t n)
{
    bp_tensor *room[STEP_RESULTS] = {NULL};
    op_call k = {.out = room, .nout = STEP_RESULTS};
    TRY(step(w, row, npos, pos, &k));
    for (uint32_t i = 0; i < n; i++)
        out[i] = i < k.nout ? k.out[i] : NULL;
    return BP_OK;
}

bp_tensor **work_list(work *w, uint32_t row, uint32_t npos, const bp_value *pos, uint32_t *n)
{
    op_call k = {.out = NULL};
    *n = 0;
    if (step(w, row, npos, pos, &k) != BP_OK)
        return NULL;
    *n = k.nout;
    return k.out;
}

/* Whether the kernel, which gives a tensor of its own, lays it out as t lies. */
static bool stands_alone(bp_ctx *c, const bp_tensor *t, const bp_value *args, uint32_t n)
{
    bp_dim strides[TENSOR_MAX_RANK];
    for (uint32_t i = 0; i < n; i++) {
        const bp_value *items = args[i].kind == BP_VALUE_LIST ? args[i].v.items : &args[i];
        for (uint32_t k = 0; k < (args[i].kind == BP_VALUE_LIST ? args[i].count : 1); k++)
            if (items[k].kind == BP_VALUE_TENSOR && ((const bp_tensor *)items[k].v.tensor)->store == t->store)
                return false;
    }
    if (!t->rank)
        return true;
    layout_preserve(c, t, strides);
    return !tensor_overlaps_itself(t) && memcmp(strides, t->strides, t->rank * sizeof *strides) == 0;
}

bp_tensor *compose_parts(bp_ctx *c, const op_row *op, const bp_value *args, compose_fn body)
{
    work w = {.c = c, .parts = true};
    bp_tensor *t = body(&w, op, args);
    if (t && work_ok(&w) && !stands_alone(c, t, args, op->schema->nargs)) {
        bp_value copied = value_tensor(t);
        t = work_call(&w, ROW_clone_default, 1, &copied);
    }
    bool good = t && work_ok(&w);
    if (good)
        tensor_ref(t);
    if (work_end(&w) == BP_OK && good)
        return t;
    if (good)
        tensor_unref(t);
    return NULL;
}

/* -- shared steps -- */

bp_tensor *compose_permute(work *w, bp_tensor *t, const int64_t *order)
{
    if (!t || !work_ok(w))
        return NULL;
    bp_value args[] = {value_tensor(t), value_ints(w->c, order, t->rank)};
    return work_call(w, ROW_permute_default, 2, args);
}

bp_tensor *compose_reshape(work *w, bp_tensor *t, uint32_t rank, const bp_dim *sizes)
{
    if (!t || !work_ok(w))
        return NULL;
    bp_value args[] = {value_tensor(t), value_dims(w->c, sizes, rank)};
    return work_call(w, ROW_reshape_default, 2, args);
}

bp_tensor *compose_unsqueeze(work *w, bp_tensor *t, int64_t dim)
{
    bp_value args[] = {value_tensor(t), value_int(dim)};
    return t ? work_call(w, ROW_unsqueeze_default, 2, args) : NULL;
}

bp_tensor *compose_sum(work *w, bp_tensor *t, uint32_t n, const int64_t *dims, bool keep)
{
    if (!t || !work_ok(w))
        return NULL;
    bp_value args[] = {value_tensor(t), value_ints(w->c, dims, n), value_bool(keep)};
    return n ? work_call(w, ROW_sum_dim_intlist, 3, args) : t;
}

bp_tensor *compose_two(work *w, uint32_t row, bp_tensor *a, bp_tensor *b)
{
    bp_value args[] = {value_tensor(a), value_tensor(b)};
    return a && b ? work_call(w, row, 2, args) : NULL;
}

/* The dimensions of a sum of products by what they are: of both factors, of one, or summed. */
typedef struct {
    uint32_t n[4];
    int64_t dims[4][TENSOR_MAX_RANK];
    bp_dim size[4];
} sorted_dims;
enum { DIM_BOTH, DIM_LEFT, DIM_SUM, DIM_RIGHT };

static bool is_one(const bp_tensor *t, uint32_t d)
{
    return dim_is(t->sizes[d], 1);
}

static sorted_dims sort_dims(bp_ctx *c, const bp_tensor *a, const bp_tensor *b, uint64_t sum)
{
    sorted_dims s = {.size = {dim_const(1), dim_const(1), dim_const(1), dim_const(1)}};
    for (uint32_t d = 0; d < a->rank; d++) {
        bool in_a = !is_one(a, d), in_b = !is_one(b, d);
        uint32_t kind = sum >> d & 1 ? DIM_SUM : in_a && in_b ? DIM_BOTH : in_a ? DIM_LEFT : DIM_RIGHT;
        s.dims[kind][s.n[kind]++] = d;
        s.size[kind] = dim_mul(c, s.size[kind], kind == DIM_RIGHT ? b->sizes[d] : a->sizes[d]);
    }
    return s;
}

/* Dimensions in the order of four kinds. */
static void order_dims(const sorted_dims *s, const uint32_t kinds[4], int64_t *out)
{
    for (uint32_t k = 0; k < 4; k++)
        for (uint32_t i = 0; i < s->n[kinds[k]]; i++)
            *out++ = s->dims[kinds[k]][i];
}

/* A dimension that is summed, but which one factor alone has, is summed in that factor first. */
static bp_tensor *sum_alone(work *w, bp_tensor *t, const bp_tensor *other, uint64_t sum)
{
    for (uint32_t d = 0; t && d < t->rank; d++) {
        int64_t dim = d;
        if ((sum >> d & 1) && !is_one(t, d) && is_one(other, d))
            t = compose_sum(w, t, 1, &dim, true);
    }
    return t;
}

/* PyTorch swaps the factors when all of the left one's own dimensions stand behind those of the right one. */
static bool right_comes_first(const sorted_dims *s)
{
    uint32_t l = s->n[DIM_LEFT], r = s->n[DIM_RIGHT];
    return l && r && s->dims[DIM_LEFT][0] > s->dims[DIM_RIGHT][0] &&
           s->dims[DIM_LEFT][l - 1] > s->dims[DIM_RIGHT][r - 1];
}

bp_tensor *compose_sumproduct(work *w, bp_tensor *a, bp_tensor *b, uint64_t sum)
{
    static const uint32_t OF_A[] = {DIM_BOTH, DIM_LEFT, DIM_SUM, DIM_RIGHT};
    static const uint32_t OF_B[] = {DIM_BOTH, DIM_SUM, DIM_RIGHT, DIM_LEFT};
    int64_t order[TENSOR_MAX_RANK], back[TENSOR_MAX_RANK];
    bp_dim sizes[TENSOR_MAX_RANK];
    if (!a || !b || sum == 0)
        return compose_two(w, ROW_mul_tensor, a, b);
    bp_tensor *left = sum_alone(w, a, b, sum), *right = sum_alone(w, b, a, sum);
    if (!left || !right)
        return NULL;
    sorted_dims s = sort_dims(w->c, left, right, sum);
    if (right_comes_first(&s)) {
        bp_tensor *swap = left;
        left = right, right = swap, b = a;
        s = sort_dims(w->c, left, right, sum);
    }
    uint32_t rank = left->rank;
    order_dims(&s, OF_B, order);
    right = compose_reshape(w, compose_permute(w, right, order), 3,
                            (bp_dim[]){s.size[DIM_BOTH], s.size[DIM_SUM], s.size[DIM_RIGHT]});
    order_dims(&s, OF_A, order);
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t d = (uint32_t)order[i];
        sizes[i] = sum >> d & 1 ? dim_const(1) : is_one(left, d) ? b->sizes[d] : left->sizes[d];
        back[d] = i;
    }
    left = compose_reshape(w, compose_permute(w, left, order), 3,
                           (bp_dim[]){s.size[DIM_BOTH], s.size[DIM_LEFT], s.size[DIM_SUM]});
    bp_tensor *product = compose_two(w, ROW_bmm_default, left, right);
    return compose_permute(w, compose_reshape(w, product, rank, sizes), back);
}
