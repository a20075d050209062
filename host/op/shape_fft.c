/* Shape rules of Fourier transforms. */
#include "host/op/checks.h"
#include "host/op/fft_args.h"
#include "host/op/rows.h"
#include <string.h>

/* -- strides ------------------------------------------------------------------------------------------------------- */

/* The result's strides are those that a library leaves which wants the batch first and in the order of its strides,
 * then
 * the transformed dimensions. `sizes` and `strides` are of the stage's input and become those of its result. */
typedef struct { uint32_t rank; bp_dim sizes[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK]; } layout;

static bool less(bp_dim a, bp_dim b) { return dim_decide(DIM_LT, a, b) == DIM_TRUE; }

/* Puts the larger strides first, equal ones as they were. */
static void sort_by_stride(const layout *l, uint32_t n, uint32_t *dims)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0 && less(l->strides[dims[k - 1]], l->strides[dims[k]]); k--) {
            uint32_t swap = dims[k];
            dims[k] = dims[k - 1];
            dims[k - 1] = swap;
        }
}

/* One stage: transforms n dimensions, of which the last may have to stay last. */
static void run_stage(bp_ctx *c, layout *l, const fft_args *f, uint32_t first, uint32_t n, bool keep_last)
{
    uint32_t order[TENSOR_MAX_RANK], batch = 0;
    bool taken[TENSOR_MAX_RANK] = {false};
    for (uint32_t i = 0; i < n; i++)
        taken[f->dims[first + i]] = true;
    for (uint32_t d = 0; d < l->rank; d++)
        if (!taken[d])
            order[batch++] = d;
    sort_by_stride(l, batch, order);
    for (uint32_t i = 0; i < n; i++)
        order[batch + i] = f->dims[first + i];
    sort_by_stride(l, keep_last ? n - 1 : n, order + batch);
    for (uint32_t i = 0; i < n; i++)
        l->sizes[f->dims[first + i]] = fft_size_out(c, f, first + i);
    bp_dim step = dim_const(1);
    for (uint32_t i = l->rank; i-- > 0;) {
        l->strides[order[i]] = step;
        step = dim_mul(c, step, l->sizes[order[i]]);
    }
}

/* Real forms of several dimensions take two stages where the last one must come first or last. */
static void run_stages(bp_ctx *c, layout *l, const fft_args *f)
{
    if (f->form == FFT_C2C || (f->form == FFT_R2C && (f->forward || f->n == 1))) {
        run_stage(c, l, f, 0, f->n, f->form == FFT_R2C);
        return;
    }
    if (f->form == FFT_R2C)
        run_stage(c, l, f, f->n - 1, 1, false);
    if (f->n > 1)
        run_stage(c, l, f, 0, f->n - 1, false);
    if (f->form == FFT_C2R)
        run_stage(c, l, f, f->n - 1, 1, false);
}

/* The input as it is transformed: converted, cut, filled up. */
static void prepare_input(bp_ctx *c, const bp_tensor *t, const fft_args *f, layout *l)
{
    bp_dim strides[TENSOR_MAX_RANK];
    bool fills = false;
    l->rank = t->rank;
    memcpy(strides, t->strides, t->rank * sizeof *strides);
    if (f->converts)
        layout_preserve(c, t, strides);
    for (uint32_t d = 0; d < t->rank; d++) {
        l->sizes[d] = t->sizes[d];
        l->strides[d] = strides[d];
    }
    for (uint32_t i = 0; i < f->n; i++) {
        fills |= less(l->sizes[f->dims[i]], fft_size_in(c, f, i));
        l->sizes[f->dims[i]] = fft_size_in(c, f, i);
    }
    bp_dim step = dim_const(1);
    for (uint32_t d = t->rank; fills && d-- > 0; step = dim_mul(c, step, l->sizes[d]))
        l->strides[d] = step;
}

/* -- rules --------------------------------------------------------------------------------------------------------- */

static bp_status transformed(bp_ctx *c, shape_call *s, const fft_args *f)
{
    const bp_tensor *t = arg_tensor(s->args, 0);
    bp_dim sizes[TENSOR_MAX_RANK];
    layout l;
    if (f->n == 0)
        return out_like(c, s, t, f->out);
    memcpy(sizes, t->sizes, t->rank * sizeof *sizes);
    for (uint32_t i = 0; i < f->n; i++)
        sizes[f->dims[i]] = fft_size_out(c, f, i);
    shape_out *o = shape_add_out(c, s, f->out, t->rank, sizes);
    if (!o || is_empty(&(bp_tensor){.rank = t->rank, .sizes = sizes}))
        return c->diag.code;
    prepare_input(c, t, f, &l);
    run_stages(c, &l, f);
    memcpy(o->meta.strides, l.strides, t->rank * sizeof *l.strides);
    return c->diag.code;
}

bp_status shape_fft(bp_ctx *c, shape_call *s)
{
    fft_args f;
    TRY(fft_args_read(c, s->op, s->args, &f));
    return transformed(c, s, &f);
}

bp_status shape_fft_inner(bp_ctx *c, shape_call *s)
{
    fft_args f;
    TRY(fft_args_read_inner(c, s->op, s->args, &f));
    return transformed(c, s, &f);
}
