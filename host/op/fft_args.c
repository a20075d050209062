/* Arguments of the fft family (fft_args.h). */
#include "host/op/fft_args.h"
#include <math.h>
#include <string.h>

bp_dim fft_half(bp_ctx *c, bp_dim n)
{
    return dim_add(c, dim_floordiv(c, n, dim_const(2)), dim_const(1));
}

bp_dim fft_size_in(bp_ctx *c, const fft_args *f, uint32_t i)
{
    return f->form == FFT_C2R && i + 1 == f->n ? fft_half(c, f->sizes[i]) : f->sizes[i];
}

bp_dim fft_size_out(bp_ctx *c, const fft_args *f, uint32_t i)
{
    return f->form == FFT_R2C && !f->whole && i + 1 == f->n ? fft_half(c, f->sizes[i]) : f->sizes[i];
}

/* -- types --------------------------------------------------------------------------------------------------------- */

static bp_status read_types(bp_ctx *c, const op_row *op, bp_dtype d, bool exact, fft_args *f)
{
    bp_dtype t = dtype_is_integral(d) && !exact ? (bp_dtype)c->ambient.default_dtype : d;
    bool fits = f->form == FFT_R2C ? !dtype_is_complex(t) : !exact || dtype_is_complex(t);
    if (!fits)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "expected a %s tensor, got %s",
                       f->form == FFT_R2C ? "real" : "complex", dtype_get(d)->torch);
    if (t != BP_F32 && t != BP_F64 && !dtype_is_complex(t))
        return op_fail(c, op, BP_INVALID_ARGUMENT, "there are no Fourier transforms of %s", dtype_get(d)->torch);
    f->in = f->form == FFT_R2C ? t : dtype_complex_of(t);
    f->out = f->form == FFT_C2R ? dtype_real_of(t) : dtype_complex_of(t);
    return BP_OK;
}

/* -- dimensions and sizes ------------------------------------------------------------------------------------------ */

static bp_status add_dim(bp_ctx *c, const op_row *op, const bp_tensor *t, int64_t dim, fft_args *f)
{
    uint32_t d;
    if (t->rank == 0)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "a tensor of no dimensions has none to transform");
    TRY(op_wrap_dim(c, op, "dim", dim, t->rank, &d));
    for (uint32_t i = 0; i < f->n; i++)
        if (f->dims[i] == d)
            return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"dim\" names dimension %u twice", d);
    f->dims[f->n++] = d;
    return BP_OK;
}

/* The dimensions that argument i lists; where it is None, the last ones, as many as sizes are given, or all. */
static bp_status read_dims(bp_ctx *c, const op_row *op, const bp_value *args, uint32_t i, uint32_t given, fft_args *f)
{
    const bp_tensor *t = arg_tensor(args, 0);
    uint32_t n = arg_is_none(args, i) ? 0 : arg_list_len(args, i);
    for (uint32_t k = 0; k < n; k++)
        TRY(add_dim(c, op, t, dim_int(c, arg_list_dim(args, i, k)), f));
    if (!arg_is_none(args, i))
        return BP_OK;
    if (given > t->rank)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"s\" has %u sizes, and the tensor %u dimensions", given,
                       t->rank);
    for (uint32_t d = given ? t->rank - given : 0; d < t->rank; d++)
        TRY(add_dim(c, op, t, d, f));
    return BP_OK;
}

/* Points of each dimension: those that are given, else the tensor's size, and where only a half is stored, what it came
 * from if that was even. */
static bp_status read_sizes(bp_ctx *c, const op_row *op, const bp_value *args, uint32_t given, fft_args *f)
{
    const bp_tensor *t = arg_tensor(args, 0);
    if (given && given != f->n)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "%u sizes are given for %u dimensions", given, f->n);
    if (f->form != FFT_C2C && f->n == 0)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "at least one dimension must be transformed");
    for (uint32_t i = 0; i < f->n; i++) {
        bp_dim have = t->sizes[f->dims[i]], one = dim_const(1);
        bp_dim asked = given ? arg_list_dim(args, 1, i) : dim_const(-1);
        bool halved = f->form == FFT_C2R && i + 1 == f->n;
        f->sizes[i] = !dim_eq_or_false(asked, dim_const(-1)) ? asked
                      : halved                               ? dim_mul(c, dim_const(2), dim_sub(c, have, one))
                                                             : have;
        if (!dim_require(DIM_LE, one, f->sizes[i]))
            return op_fail(c, op, BP_INVALID_ARGUMENT, "a transform of %s points along dimension %u",
                           op_dim_text(c, f->sizes[i]), f->dims[i]);
    }
    return c->diag.code;
}

/* -- scale --------------------------------------------------------------------------------------------------------- */

static double points(const fft_args *f)
{
    double n = 1;
    for (uint32_t i = 0; i < f->n; i++)
        n *= (double)dim_hint(f->sizes[i]);
    return n;
}

static bp_status read_norm(bp_ctx *c, const op_row *op, const char *norm, fft_args *f)
{
    bool backward = !norm || strcmp(norm, "backward") == 0, ortho = norm && strcmp(norm, "ortho") == 0;
    if (!backward && !ortho && strcmp(norm, "forward") != 0)
        return op_fail(c, op, BP_INVALID_ARGUMENT,
                       "argument \"norm\" must be \"forward\", \"backward\" or \"ortho\", and is \"%s\"", norm);
    f->scale = ortho ? 1 / sqrt(points(f)) : backward == f->forward ? 1 : 1 / points(f);
    return BP_OK;
}

/* -- whole calls --------------------------------------------------------------------------------------------------- */

/* fft_<prefix>fft, then nothing, 2 or n: what the prefix says. */
static const struct { const char *prefix; enum fft_form form; bool forward; } kinds[] = {
    {"fft_fft", FFT_C2C, true}, {"fft_ifft", FFT_C2C, false}, {"fft_rfft", FFT_R2C, true},
    {"fft_irfft", FFT_C2R, false}, {"fft_hfft", FFT_C2R, true}, {"fft_ihfft", FFT_R2C, false},
};

bp_status fft_args_read(bp_ctx *c, const op_row *op, const bp_value *args, fft_args *f)
{
    size_t k = 0;
    while (strncmp(op->schema->name, kinds[k].prefix, strlen(kinds[k].prefix)) != 0)
        k++;
    *f = (fft_args){.form = kinds[k].form, .forward = kinds[k].forward};
    uint32_t given = arg_is_none(args, 1) ? 0 : arg_list_len(args, 1);
    bp_dtype d = (bp_dtype)arg_tensor(args, 0)->dtype;
    TRY(read_types(c, op, d, false, f));
    bool one = op->schema->name[strlen(op->schema->name) - 1] == 't'; /* no 2 or n behind it */
    f->converts = dtype_is_integral(d) || (d != f->in && !(one && f->form == FFT_C2C));
    TRY(read_dims(c, op, args, 2, given, f));
    TRY(read_sizes(c, op, args, given, f));
    return read_norm(c, op, arg_str(args, 3), f);
}

/* Argument 3 of _fft_c2r is how many points its half came from. */
static bp_status read_half(bp_ctx *c, const op_row *op, const bp_value *args, fft_args *f)
{
    bp_dim n = arg_dim(args, 3), have = f->sizes[f->n - 1];
    if (!dim_require(DIM_LT, dim_const(0), n) || !dim_require(DIM_LE, fft_half(c, n), have))
        return op_fail(c, op, BP_INVALID_ARGUMENT, "%s points do not determine a signal of %s", op_dim_text(c, have),
                       op_dim_text(c, n));
    f->sizes[f->n - 1] = n;
    return BP_OK;
}

bp_status fft_args_read_inner(bp_ctx *c, const op_row *op, const bp_value *args, fft_args *f)
{
    const char *name = op->schema->name;
    enum fft_form form = strcmp(name, "_fft_c2c") == 0 ? FFT_C2C : strcmp(name, "_fft_r2c") == 0 ? FFT_R2C : FFT_C2R;
    const bp_tensor *t = arg_tensor(args, 0);
    int64_t norm = arg_int(c, args, 2);
    *f = (fft_args){.form = form, .forward = form == FFT_R2C || (form == FFT_C2C && arg_bool(args, 3)),
                    .whole = form == FFT_R2C && !arg_bool(args, 3)};
    TRY(read_types(c, op, (bp_dtype)t->dtype, true, f));
    TRY(read_dims(c, op, args, 1, 0, f));
    if (form != FFT_C2C && f->n == 0)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "at least one dimension must be transformed");
    for (uint32_t i = 0; i < f->n; i++)
        f->sizes[i] = t->sizes[f->dims[i]];
    if (form == FFT_C2R)
        TRY(read_half(c, op, args, f));
    if (norm < 0 || norm > 2)
        return op_fail(c, op, BP_INVALID_ARGUMENT, "argument \"normalization\" must be 0 to 2, and is %lld",
                       (long long)norm);
    f->scale = norm == 0 ? 1 : norm == 1 ? 1 / sqrt(points(f)) : 1 / points(f);
    return c->diag.code;
}
