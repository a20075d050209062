/* Walks broadcast operands in memory order and feeds inner loops.
 *
 * Dimensions are ordered by the first output's strides (largest outermost), those of size 1 dropped, and neighbours
 * merged where every operand allows it; the innermost one is the run. A position is (row, column): the row indexes the
 * outer dimensions, so that any range of positions can be worked on alone and threads need no shared state. */
#include "host/op/reference/loop_vector.h"
#include "host/base/parallel.h"
#include "host/op/shape_pointwise.h"
#include <math.h>

enum { ELEMENT_MAX = 16, GRAIN = 32768 };

typedef struct {
    uint32_t rank, noperands, nout; /* rank: of the outer dimensions */
    int64_t sizes[TENSOR_MAX_RANK], inner;
    int64_t steps[LOOP_OPERANDS][TENSOR_MAX_RANK], inner_step[LOOP_OPERANDS];
    char *base[LOOP_OPERANDS];
    bool direct[LOOP_OPERANDS], all_direct; /* direct: the loop may touch the operand's own memory */
    _Alignas(16) char number[LOOP_OPERANDS][ELEMENT_MAX];
    const loop_operand *o;
    loop_fn f;
    void *params;
} walk;

bp_dtype loop_type(bp_dtype d)
{
    return d == BP_F16 || d == BP_BF16 ? BP_F32 : d == BP_BOOL ? BP_U8 : d;
}

loop_fn loop_pick(const loop_table *t, bp_dtype d)
{
    if ((d == BP_F16 && t->f16) || (d == BP_BF16 && t->bf16))
        return d == BP_F16 ? t->f16 : t->bf16;
    LOOP_BY_TYPE(t, d)
}

void loop_convert(bp_dtype loop, void *room, bp_dtype as, bp_dtype from, const void *data, int64_t step, int64_t n)
{
    if (as == from || as == loop) {
        dtype_convert(loop, room, 1, from, data, step, n);
        return;
    }
    _Alignas(16) char rounded[LOOP_CHUNK * ELEMENT_MAX];
    dtype_convert(as, rounded, 1, from, data, step, n);
    dtype_convert(loop, room, 1, as, rounded, 1, n);
}

/* Steps of an operand over the dimensions of the result; a missing or size-1 dimension repeats. */
static void set_steps(walk *w, uint32_t k, const bp_tensor *t, const bp_tensor *out)
{
    for (uint32_t d = 0; d < out->rank; d++) {
        uint32_t lead = out->rank - t->rank;
        bool repeats = d < lead || (tensor_dim(t, d - lead) == 1 && tensor_dim(out, d) != 1);
        w->steps[k][d] = repeats ? 0 : tensor_step(t, d - lead);
    }
}

static void swap_dims(walk *w, uint32_t i, uint32_t j)
{
    int64_t size = w->sizes[i];
    w->sizes[i] = w->sizes[j];
    w->sizes[j] = size;
    for (uint32_t k = 0; k < w->noperands; k++) {
        int64_t step = w->steps[k][i];
        w->steps[k][i] = w->steps[k][j];
        w->steps[k][j] = step;
    }
}

static bool can_merge(const walk *w, uint32_t outer, uint32_t inner)
{
    for (uint32_t k = 0; k < w->noperands; k++)
        if (w->steps[k][outer] != w->steps[k][inner] * w->sizes[inner])
            return false;
    return true;
}

static void copy_dim(walk *w, uint32_t to, uint32_t from)
{
    w->sizes[to] = w->sizes[from];
    for (uint32_t k = 0; k < w->noperands; k++)
        w->steps[k][to] = w->steps[k][from];
}

/* Sorts, drops and merges the dimensions; what is innermost then becomes the run. */
static void arrange(walk *w)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < w->rank; d++)
        if (w->sizes[d] != 1)
            copy_dim(w, n++, d);
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t j = i; j > 0 && w->steps[0][j - 1] < w->steps[0][j]; j--)
            swap_dims(w, j - 1, j);
    uint32_t kept = n ? 1 : 0;
    for (uint32_t d = 1; d < n; d++) {
        if (can_merge(w, kept - 1, d)) {
            int64_t product = w->sizes[kept - 1] * w->sizes[d];
            copy_dim(w, kept - 1, d);
            w->sizes[kept - 1] = product;
        } else {
            copy_dim(w, kept++, d);
        }
    }
    w->inner = kept ? w->sizes[kept - 1] : 1;
    for (uint32_t k = 0; k < w->noperands; k++)
        w->inner_step[k] = kept ? w->steps[k][kept - 1] : 0;
    w->rank = kept ? kept - 1 : 0;
}

static void locate(const walk *w, int64_t row, int64_t column, int64_t *at)
{
    for (uint32_t k = 0; k < w->noperands; k++)
        at[k] = column * w->inner_step[k];
    for (uint32_t d = w->rank; d-- > 0; row /= w->sizes[d])
        for (uint32_t k = 0; k < w->noperands; k++)
            at[k] += row % w->sizes[d] * w->steps[k][d];
}

/* Where the loop finds n elements of input k: in place, or converted into `room`. */
static char *load(walk *w, uint32_t k, int64_t at, int64_t n, char *room, int64_t *step)
{
    const loop_operand *o = &w->o[k];
    *step = 0;
    if (!o->t)
        return w->number[k];
    char *from = w->base[k] + at * (int64_t)dtype_size(o->t->dtype);
    *step = w->inner_step[k];
    if (w->direct[k])
        return from;
    int64_t count = *step == 0 ? 1 : n;
    loop_convert(o->loop, room, o->as, o->t->dtype, from, *step, count);
    *step = *step == 0 ? 0 : 1;
    return room;
}

static void piece(walk *w, const int64_t *at, int64_t n)
{
    _Alignas(16) char room[LOOP_OPERANDS][LOOP_CHUNK * ELEMENT_MAX];
    char *data[LOOP_OPERANDS] = {0};
    int64_t step[LOOP_OPERANDS] = {0};
    for (uint32_t k = 0; k < w->noperands; k++) {
        if (k >= w->nout) {
            data[k] = load(w, k, at[k], n, room[k], &step[k]);
        } else {
            bool direct = w->direct[k];
            data[k] = direct ? w->base[k] + at[k] * (int64_t)dtype_size(w->o[k].loop) : room[k];
            step[k] = direct ? w->inner_step[k] : 1;
        }
    }
    w->f(n, data, step, w->params);
    for (uint32_t k = 0; k < w->nout; k++) {
        bp_dtype to = w->o[k].t->dtype;
        if (!w->direct[k])
            dtype_convert(to, w->base[k] + at[k] * (int64_t)dtype_size(to), w->inner_step[k], w->o[k].loop, room[k], 1,
                          n);
    }
}

static void run_range(void *arg, int64_t begin, int64_t end)
{
    walk *w = arg;
    int64_t chunk = w->all_direct ? INT64_MAX : LOOP_CHUNK;
    while (begin < end) {
        int64_t at[LOOP_OPERANDS];
        int64_t column = begin % w->inner, n = w->inner - column;
        n = n < end - begin ? n : end - begin;
        n = n < chunk ? n : chunk;
        locate(w, begin / w->inner, column, at);
        piece(w, at, n);
        begin += n;
    }
}

/* A number in the loop's type, rounded to the operator's type on the way. */
static void set_number(walk *w, uint32_t k)
{
    const loop_operand *o = &w->o[k];
    num v = {NUM_INT, o->number.v.i, 0, 0};
    if (o->number.kind == BP_SCALAR_FLOAT || o->number.kind == BP_SCALAR_COMPLEX) {
        bool is_complex = o->number.kind == BP_SCALAR_COMPLEX;
        v = (num){is_complex ? NUM_COMPLEX : NUM_FLOAT, 0, o->number.v.f[0], is_complex ? o->number.v.f[1] : 0};
    }
    _Alignas(16) char rounded[ELEMENT_MAX];
    dtype_store(o->as, rounded, v);
    dtype_convert(o->loop, w->number[k], 1, o->as, rounded, 1, 1);
}

bp_status loop_run(bp_ctx *c, uint32_t nout, uint32_t nin, const loop_operand *o, loop_fn f, void *params)
{
    walk w = {.rank = o[0].t->rank, .noperands = nout + nin, .nout = nout, .o = o, .f = f, .params = params};
    int64_t total = tensor_nelem(o[0].t);
    if (!ctx_ok(c) || total == 0)
        return c->diag.code;
    for (uint32_t d = 0; d < w.rank; d++)
        w.sizes[d] = tensor_dim(o[0].t, d);
    w.all_direct = true;
    for (uint32_t k = 0; k < w.noperands; k++) {
        if (!o[k].t) {
            set_number(&w, k);
            continue;
        }
        set_steps(&w, k, o[k].t, o[0].t);
        w.base[k] = tensor_ptr(o[k].t);
        bool is_plain = o[k].t->dtype == o[k].loop || (o[k].t->dtype == BP_BOOL && o[k].loop == BP_U8 && k >= nout);
        w.direct[k] = is_plain && (k < nout || o[k].as == o[k].t->dtype || o[k].as == o[k].loop);
        w.all_direct = w.all_direct && w.direct[k];
    }
    arrange(&w);
    parallel_for(total, GRAIN, run_range, &w);
    return BP_OK;
}

LOOPS_F(LOOPV_1, copy, a)
LOOPS_I(LOOPV_1, copy, a)
LOOPS_C(LOOP_1, copy, a)
bp_status loop_fill(bp_ctx *c, bp_tensor *t, bp_scalar number)
{
    static const loop_table copies = {LOOP_SET_F(copy), LOOP_SET_I(copy), LOOP_SET_C(copy)};
    bp_dtype d = loop_type(t->dtype);
    loop_operand o[] = {{t, {0, 0, {0}}, d, d}, {NULL, number, t->dtype, d}};
    return loop_run(c, 1, 1, o, loop_pick(&copies, d), NULL);
}

loop_operand loop_arg(const op_call *k, uint32_t i, bp_dtype as)
{
    loop_operand o = {NULL, {BP_SCALAR_UNSET, 0, {0}}, as, loop_type(as)};
    if (k->args[i].kind == BP_VALUE_TENSOR)
        o.t = k->args[i].v.tensor;
    else
        o.number = arg_scalar(k->args, i);
    return o;
}

loop_operand loop_out(const op_call *k, uint32_t i, bp_dtype loop)
{
    return (loop_operand){k->out[i], {BP_SCALAR_UNSET, 0, {0}}, loop, loop};
}

bp_dtype loop_common(bp_ctx *c, const op_call *k, uint32_t n, uint32_t flags)
{
    bp_dtype d = pointwise_promote(c, k->args, n);
    return flags & LOOP_TO_FLOAT && dtype_is_integral(d) ? c->ambient.default_dtype : d;
}

bp_status loop_no_type(bp_ctx *c, const op_row *op, bp_dtype d)
{
    bp_status code = dtype_is_complex(d) ? BP_UNIMPLEMENTED : BP_INVALID_ARGUMENT;
    return op_fail(c, op, code, "not there for %s", dtype_get(d)->torch);
}

bp_status loop_kernel_run_as(bp_ctx *c, op_call *k, const loop_kernel *p, bp_dtype common, void *params)
{
    loop_operand o[LOOP_OPERANDS];
    loop_fn f = loop_pick(&p->loops, common);
    bool is_half = common == BP_F16 || common == BP_BF16;
    if (!f || (p->flags & LOOP_NO_BOOL && common == BP_BOOL) || (p->flags & LOOP_NO_HALF && is_half))
        return loop_no_type(c, k->op, common);
    bp_dtype written = loop_type(common);
    if (p->flags & LOOP_BOOL_OUT)
        written = BP_BOOL;
    else if (p->flags & LOOP_REAL_OUT)
        written = dtype_real_of(written);
    o[0] = loop_out(k, 0, written);
    for (uint32_t i = 0; i < p->operands; i++)
        o[1 + i] = loop_arg(k, i, common);
    loop_operand *last = &o[p->operands];
    if (p->flags & LOOP_WIDE_LAST && (!last->t || tensor_nelem(last->t) == 1))
        last->as = last->loop;
    return loop_run(c, 1, p->operands, o, f, params);
}

bp_status loop_kernel_run(bp_ctx *c, op_call *k, const loop_kernel *p, void *params)
{
    return loop_kernel_run_as(c, k, p, loop_common(c, k, p->operands, p->flags), params);
}

loop_number loop_number_of(bp_scalar s)
{
    return (loop_number){scalar_float(s), s.kind == BP_SCALAR_COMPLEX ? s.v.f[1] : 0, scalar_int(s)};
}

double loop_round(bp_dtype d, double f)
{
    _Alignas(16) char room[ELEMENT_MAX];
    dtype_store(d, room, (num){NUM_FLOAT, 0, f, 0});
    return dtype_load(d, room).f;
}

/* Largest finite number of a type, as a double. */
static double largest(bp_dtype d)
{
    static const double max_of[BP_DTYPE_END] = {[BP_U8] = UINT8_MAX, [BP_I8] = INT8_MAX, [BP_I16] = INT16_MAX,
        [BP_I32] = INT32_MAX, [BP_I64] = 0x1p63, [BP_F16] = 65504, [BP_BF16] = 0x1.FEp127, [BP_F32] = 0x1.FFFFFEp127};
    return max_of[d] > 0 ? max_of[d] : INFINITY;
}

bp_status loop_check_number(bp_ctx *c, const op_row *op, const char *name, bp_scalar s, bp_dtype d)
{
    double v = scalar_float(s), max = largest(d), min = dtype_is_int(d) && d != BP_U8 ? -max - 1 : -max;
    bool is_special = !isfinite(v) && !dtype_is_int(d);
    if (s.kind == BP_SCALAR_UNSET || is_special || (v >= min && v <= max))
        return BP_OK;
    return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"%s\": %g is out of the range of %s", name, v,
                   dtype_get(d)->torch);
}

bp_status loop_kernel_run_numbers(bp_ctx *c, op_call *k, const loop_kernel *p)
{
    loop_number numbers[LOOP_OPERANDS] = {{0, 0, 0}};
    bp_dtype common = loop_common(c, k, p->operands, p->flags);
    for (uint32_t i = 0; i < p->numbers; i++) {
        uint32_t at = p->operands + i;
        bp_scalar s = arg_scalar(k->args, at);
        TRY(loop_check_number(c, k->op, k->op->schema->args[at].name, s,
                              p->flags & LOOP_ROUND_NUMBERS ? common : loop_type(common)));
        numbers[i] = loop_number_of(s);
        if (p->flags & LOOP_ROUND_NUMBERS && dtype_is_float(common))
            numbers[i].f = loop_round(common, numbers[i].f);
    }
    return loop_kernel_run_as(c, k, p, common, numbers);
}
