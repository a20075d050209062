/* Fourier transforms of tensors: everything in complex double, a dimension at a time, scaled and rounded once. */
#include "host/op/fft_args.h"
#include "host/op/reference/fft.h"
#include "host/op/reference/work.h"
#include "host/op/rows.h"

/* The part of t from its first elements on that has at most these sizes. */
static bp_tensor *corner(work *w, const bp_tensor *t, const bp_tensor *other)
{
    bp_dim sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < t->rank; d++)
        sizes[d] = tensor_dim(t, d) < tensor_dim(other, d) ? t->sizes[d] : other->sizes[d];
    tensor_meta m = {(bp_dtype)t->dtype, tensor_device(t), t->rank, sizes, t->strides, t->offset};
    return work_view(w, t, &m);
}

/* What both have of the sizes is copied. */
static void copy_corner(work *w, bp_tensor *to, const bp_tensor *from)
{
    bp_tensor *a = corner(w, to, from), *b = corner(w, from, to);
    if (work_ok(w))
        tensor_copy(w->c, a, b);
}

/* A tensor of t's sizes in complex double, but for the transformed dimensions; `half` as the input of a C2R has them.
 * */
static bp_tensor *room_for(work *w, const bp_tensor *t, const fft_args *f, bool half)
{
    int64_t sizes[TENSOR_MAX_RANK];
    for (uint32_t d = 0; d < t->rank; d++)
        sizes[d] = tensor_dim(t, d);
    for (uint32_t i = 0; i < f->n; i++)
        sizes[f->dims[i]] = (half ? fft_size_in(w->c, f, i) : f->sizes[i]).value;
    bp_tensor *room = work_new(w, BP_C128, t->rank, sizes);
    if (room)
        work_clear(room);
    return room;
}

/* -- one dimension ------------------------------------------------------------------------------------------------- */

static void transform(work *w, bp_tensor *t, uint32_t dim, bool forward)
{
    work_split s = work_around(t, dim);
    if (s.outer * s.inner == 0 || s.n <= 1)
        return;
    fft_plan *plan = fft_plan_new(s.n);
    cx *line = work_alloc(w, s.n, sizeof *line), *data = tensor_ptr(t);
    if (!plan)
        diag_nomem(&w->c->diag);
    for (int64_t o = 0; work_ok(w) && o < s.outer; o++)
        for (int64_t i = 0; i < s.inner; i++) {
            cx *at = data + o * s.n * s.inner + i;
            fft_line(plan, forward, at, s.inner, line);
            for (int64_t k = 0; k < s.n; k++)
                at[k * s.inner] = line[k];
        }
    fft_plan_free(plan);
}

/* The other half of a real signal's transform: conjugates in reverse order. What is its own mirror is real, whatever
 * its imaginary part says. */
static void complete(bp_tensor *t, uint32_t dim)
{
    work_split s = work_around(t, dim);
    cx *data = tensor_ptr(t);
    for (int64_t o = 0; o < s.outer; o++)
        for (int64_t i = 0; i < s.inner; i++) {
            cx *line = data + o * s.n * s.inner + i;
            line[0] = creal(line[0]);
            if (s.n % 2 == 0)
                line[s.n / 2 * s.inner] = creal(line[s.n / 2 * s.inner]);
            for (int64_t k = s.n / 2 + 1; k < s.n; k++)
                line[k * s.inner] = conj(line[(s.n - k) * s.inner]);
        }
}

static void scale(bp_tensor *t, double by)
{
    cx *data = tensor_ptr(t);
    for (int64_t i = 0, n = by == 1 ? 0 : tensor_nelem(t); i < n; i++)
        data[i] *= by;
}

/* -- whole calls --------------------------------------------------------------------------------------------------- */

/* Real input is complex input whose transform is cut; a half is transformed along the other dimensions, completed, and
 * gives a result whose real part is wanted. */
static bp_status run(bp_ctx *c, op_call *k, const fft_args *f)
{
    work w = {.c = c};
    bp_tensor *t = arg_tensor(k->args, 0), *x = room_for(&w, t, f, true);
    uint32_t n = f->form == FFT_C2R ? f->n - 1 : f->n;
    if (x)
        copy_corner(&w, x, t);
    for (uint32_t i = 0; work_ok(&w) && i < n; i++)
        transform(&w, x, f->dims[i], f->forward);
    if (f->form == FFT_C2R && work_ok(&w)) {
        bp_tensor *whole = room_for(&w, t, f, false);
        if (whole) {
            copy_corner(&w, whole, x);
            complete(whole, f->dims[n]);
            transform(&w, whole, f->dims[n], f->forward);
        }
        x = whole;
    }
    if (work_ok(&w)) {
        scale(x, f->scale);
        copy_corner(&w, k->out[0], x);
    }
    return work_end(&w);
}

bp_status kernel_fft(bp_ctx *c, op_call *k)
{
    fft_args f;
    TRY(fft_args_read(c, k->op, k->args, &f));
    return run(c, k, &f);
}

bp_status kernel_fft_inner(bp_ctx *c, op_call *k)
{
    fft_args f;
    TRY(fft_args_read_inner(c, k->op, k->args, &f));
    return run(c, k, &f);
}
