/* Transforms of overlapping frames, their inverse, and the frequencies of a transform: made of other operators. */
#include "host/op/reference/steps.h"
#include "host/op/rows.h"

static bp_tensor *refuse(work *w, const op_row *op, const char *why)
{
    if (work_ok(w))
        op_fail(w->c, op, BP_INVALID_ARGUMENT, "%s", why);
    return NULL;
}

/* An argument by its name; rows of one operator have it at different places, or not at all. */
static bp_value named(const op_row *op, const bp_value *args, const char *name)
{
    int32_t at = schema_find(op->schema, name);
    return at < 0 ? value_none() : args[at];
}

static int64_t int_or(work *w, const bp_value *v, int64_t otherwise)
{
    return v->kind == BP_VALUE_NONE ? otherwise : arg_int(w->c, v, 0);
}

static bool bool_or(const bp_value *v, bool otherwise)
{
    return v->kind == BP_VALUE_NONE ? otherwise : arg_bool(v, 0);
}

/* -- what both directions share ------------------------------------------------------------------------------------ */

typedef struct {
    int64_t points, hop, length; /* of a transform; from frame to frame; of the window */
    bp_tensor *window;           /* `length` of them, or NULL: ones */
} frames;

static bool read_frames(work *w, const op_row *op, const bp_value *args, frames *f)
{
    bp_value n = named(op, args, "n_fft"), hop = named(op, args, "hop_length"), win = named(op, args, "win_length");
    bp_value window = named(op, args, "window");
    f->points = arg_int(w->c, &n, 0);
    f->hop = int_or(w, &hop, f->points / 4);
    f->length = int_or(w, &win, f->points);
    f->window = arg_tensor(&window, 0);
    if (f->points <= 0 || f->hop <= 0)
        return refuse(w, op, "\"n_fft\" and \"hop_length\" must be positive") != NULL;
    if (f->length <= 0 || f->length > f->points)
        return refuse(w, op, "\"win_length\" must be positive, and at most \"n_fft\"") != NULL;
    if (f->window && (f->window->rank != 1 || tensor_dim(f->window, 0) != f->length))
        return refuse(w, op, "the window must be a vector of \"win_length\" elements") != NULL;
    return work_ok(w);
}

/* The window with zeros on both sides, as long as a transform; without one, ones of type d. */
static bp_tensor *full_window(work *w, const frames *f, bp_dtype d)
{
    int64_t left = (f->points - f->length) / 2, right = f->points - f->length - left;
    bp_tensor *t = f->window ? f->window
                             : CALL(ones_default, value_ints(w->c, &f->length, 1), value_dtype(d));
    if (!t || f->length == f->points)
        return t;
    return CALL(constant_pad_nd_default, T(t), value_ints(w->c, (const int64_t[]){left, right}, 2), I(0));
}

/* -- stft ---------------------------------------------------------------------------------------------------------- */

/* The signal with a margin of half a transform on both sides. */
static bp_tensor *centered(work *w, bp_tensor *t, int64_t margin, const char *mode)
{
    bp_dim batch = t->sizes[0];
    bp_tensor *image = compose_reshape(w, t, 3, (const bp_dim[]){dim_const(1), t->sizes[0], t->sizes[1]});
    if (!image)
        return NULL;
    bp_value margins = value_ints(w->c, (const int64_t[]){margin, margin}, 2);
    bp_tensor *wide = CALL(pad_default, T(image), margins, value_str(mode));
    return wide ? compose_reshape(w, wide, 2, (const bp_dim[]){batch, wide->sizes[2]}) : NULL;
}

/* The signal as batch x frames x points. */
static bp_tensor *framed(work *w, const op_row *op, bp_tensor *t, const frames *f, bool align)
{
    int64_t left = (f->points - f->length) / 2, both[] = {left, f->points - f->length - left};
    if (f->points > tensor_dim(t, 1))
        return refuse(w, op, "the signal is shorter than \"n_fft\"");
    if (align)
        t = CALL(constant_pad_nd_default, T(t), value_ints(w->c, both, 2), I(0));
    return t ? CALL(unfold_default, T(t), I(1), I(f->points), I(f->hop)) : NULL;
}

static bp_tensor *spectrum(work *w, const op_row *op, const bp_value *args, bp_tensor *t)
{
    bp_value sided = named(op, args, "onesided"), norm = named(op, args, "normalized");
    bool complex = dtype_is_complex((bp_dtype)t->dtype), half = bool_or(&sided, !complex);
    bp_value last = value_ints(w->c, (const int64_t[]){2}, 1);
    if (complex && half)
        return refuse(w, op, "a complex signal or window has no onesided transform");
    if (complex)
        return CALL(private_fft_c2c_default, T(t), last, I(arg_bool(&norm, 0)), value_bool(true));
    return CALL(private_fft_r2c_default, T(t), last, I(arg_bool(&norm, 0)), value_bool(half));
}

/* The signal as a batch of lines, with the margin that the call asks for. */
static bp_tensor *signal_of(work *w, const op_row *op, const bp_value *args, const frames *f, bool align)
{
    bp_tensor *t = arg_tensor(args, 0);
    bp_value center = named(op, args, "center"), mode = named(op, args, "pad_mode");
    bool has_margin = bool_or(&center, false);
    if (t->rank < 1 || t->rank > 2)
        return refuse(w, op, "expected a signal of one dimension, or of two with a batch");
    if (dtype_is_integral((bp_dtype)t->dtype))
        return refuse(w, op, "expected a signal of floats or complex numbers");
    if (has_margin && align)
        return refuse(w, op, "\"align_to_window\" is for signals that are not centered");
    if (t->rank == 1)
        t = compose_unsqueeze(w, t, 0);
    return t && has_margin ? centered(w, t, f->points / 2, arg_str(&mode, 0)) : t;
}

static bp_tensor *body_stft(work *w, const op_row *op, const bp_value *args)
{
    const bp_tensor *self = arg_tensor(args, 0);
    bp_value align = named(op, args, "align_to_window"), complex = named(op, args, "return_complex");
    frames f;
    if (!read_frames(w, op, args, &f))
        return NULL;
    bool as_complex = bool_or(&complex, dtype_is_complex((bp_dtype)self->dtype) ||
                                            (f.window && dtype_is_complex((bp_dtype)f.window->dtype)));
    if (!as_complex && complex.kind == BP_VALUE_NONE)
        return refuse(w, op, "\"return_complex\" must be given for a real signal");
    bp_tensor *t = signal_of(w, op, args, &f, bool_or(&align, false));
    t = t ? framed(w, op, t, &f, bool_or(&align, false)) : NULL;
    if (t && (f.window || f.length < f.points))
        t = compose_two(w, ROW_mul_tensor, t, full_window(w, &f, (bp_dtype)self->dtype));
    t = t ? spectrum(w, op, args, t) : NULL;
    t = t ? CALL(transpose_int, T(t), I(1), I(2)) : NULL;
    if (t && self->rank == 1)
        t = CALL(squeeze_dim, T(t), I(0));
    return t && !as_complex ? CALL(view_as_real_default, T(t)) : t;
}
COMPOSED(stft)

/* -- istft --------------------------------------------------------------------------------------------------------- */

/* Frames of t (batch x frames x points) added where they overlap. */
static bp_tensor *overlapped(work *w, bp_tensor *t, const frames *f, int64_t length)
{
    bp_value sizes = value_ints(w->c, (const int64_t[]){tensor_dim(t, 0), length}, 2);
    return CALL(unfold_backward_default, T(t), sizes, I(1), I(f->points), I(f->hop));
}

/* Frames x points of the signals whose transforms are batch x frames x bins. */
static bp_tensor *waves(work *w, const op_row *op, const bp_value *args, bp_tensor *t, const frames *f)
{
    bp_value sided = named(op, args, "onesided"), norm = named(op, args, "normalized");
    bp_value complex = named(op, args, "return_complex");
    int64_t bins = tensor_dim(t, 2), scale = arg_bool(&norm, 0) ? 1 : 2;
    bool half = bool_or(&sided, bins != f->points), as_complex = bool_or(&complex, false);
    bp_value last = value_ints(w->c, (const int64_t[]){2}, 1);
    if (bins != (half ? f->points / 2 + 1 : f->points))
        return refuse(w, op, "the transform has not as many frequencies as \"n_fft\" and \"onesided\" say");
    if (as_complex && half)
        return refuse(w, op, "a complex signal has no onesided transform");
    if (as_complex)
        return CALL(private_fft_c2c_default, T(t), last, I(scale), value_bool(false));
    if (f->window && dtype_is_complex((bp_dtype)f->window->dtype))
        return refuse(w, op, "a complex window needs \"return_complex\"");
    if (!half)
        t = CALL(slice_tensor, T(t), I(2), I(0), I(f->points / 2 + 1));
    return t ? CALL(private_fft_c2r_default, T(t), last, I(scale), I(f->points)) : NULL;
}

/* The sum of the squared windows over each sample. */
static bp_tensor *envelope(work *w, bp_tensor *window, const frames *f, int64_t count, int64_t length)
{
    bp_tensor *square = window ? CALL(pow_tensor_scalar, T(window), I(2)) : NULL;
    bp_value sizes = value_ints(w->c, (const int64_t[]){1, count, f->points}, 3);
    bp_tensor *all = square ? CALL(expand_default, T(square), sizes) : NULL;
    return all ? overlapped(w, all, f, length) : NULL;
}

static bool has_gaps(work *w, bp_tensor *t)
{
    bp_tensor *size = CALL(abs_default, T(t)), *least = size ? CALL(min_default, T(size)) : NULL;
    return least && !tensor_is_fake(least) && dtype_load((bp_dtype)least->dtype, tensor_ptr(least)).f < 1e-11;
}

/* Samples [start, end) of sums of frames, over the windows'; what lies behind the last frame is 0. */
static bp_tensor *trimmed(work *w, const op_row *op, bp_tensor *y, bp_tensor *over, int64_t start, int64_t end)
{
    int64_t length = y ? tensor_dim(y, 1) : 0;
    y = y && over ? CALL(slice_tensor, T(y), I(1), I(start), I(end)) : NULL;
    over = y ? CALL(slice_tensor, T(over), I(1), I(start), I(end)) : NULL;
    if (over && tensor_nelem(over) && has_gaps(w, over))
        return refuse(w, op, "the windows leave samples that no frame has");
    y = compose_two(w, ROW_div_tensor, y, over);
    if (!y || end <= length)
        return y;
    return CALL(constant_pad_nd_default, T(y), value_ints(w->c, (const int64_t[]){0, end - length}, 2), I(0));
}

static bp_tensor *body_istft(work *w, const op_row *op, const bp_value *args)
{
    bp_tensor *self = arg_tensor(args, 0), *t = self;
    bp_value center = named(op, args, "center"), asked = named(op, args, "length");
    frames f;
    if (!dtype_is_complex((bp_dtype)self->dtype) || self->rank < 2 || self->rank > 3 || tensor_nelem(self) == 0)
        return refuse(w, op, "expected a complex transform of frequencies x frames, or a batch of them");
    if (!read_frames(w, op, args, &f))
        return NULL;
    if (f.hop > f.length)
        return refuse(w, op, "\"hop_length\" must be at most \"win_length\"");
    if (t->rank == 2)
        t = compose_unsqueeze(w, t, 0);
    t = t ? CALL(transpose_int, T(t), I(1), I(2)) : NULL;
    if (!t)
        return NULL;
    int64_t count = tensor_dim(t, 1), length = f.points + f.hop * (count - 1);
    int64_t start = bool_or(&center, true) ? f.points / 2 : 0;
    int64_t end = asked.kind == BP_VALUE_NONE ? length - start : start + arg_int(w->c, &asked, 0);
    bp_tensor *window = full_window(w, &f, dtype_real_of((bp_dtype)self->dtype)), *y = waves(w, op, args, t, &f);
    y = compose_two(w, ROW_mul_tensor, y, window);
    y = y ? overlapped(w, y, &f, length) : NULL;
    y = trimmed(w, op, y, envelope(w, window, &f, count, length), start, end);
    return y && self->rank == 2 ? CALL(squeeze_dim, T(y), I(0)) : y;
}
COMPOSED(istft)

/* -- frequencies --------------------------------------------------------------------------------------------------- */

/* start, start + 1 ... below end, in the type that argument 2 names. */
static bp_tensor *count_up(work *w, const bp_value *args, int64_t start, int64_t end)
{
    bp_dtype d = arg_dtype(args, 2);
    return CALL(arange_start, I(start), I(end), value_dtype(d ? d : (bp_dtype)w->c->ambient.default_dtype));
}

static bool check_frequencies(work *w, const op_row *op, const bp_value *args)
{
    bp_dtype d = arg_dtype(args, 2);
    if (d && !dtype_is_float(d))
        return refuse(w, op, "argument \"dtype\" must be a float type") != NULL;
    return true;
}

static bp_tensor *scaled(work *w, const bp_value *args, bp_tensor *t)
{
    double step = 1 / ((double)arg_int(w->c, args, 0) * arg_float(args, 1));
    return t ? CALL(mul_scalar, T(t), F(step)) : NULL;
}

static bp_tensor *body_fftfreq(work *w, const op_row *op, const bp_value *args)
{
    int64_t n = arg_int(w->c, args, 0);
    if (n < 0)
        return refuse(w, op, "argument \"n\" must not be negative");
    if (!check_frequencies(w, op, args))
        return NULL;
    bp_tensor *up = count_up(w, args, 0, (n + 1) / 2), *down = up ? count_up(w, args, -(n / 2), 0) : NULL;
    bp_value both[] = {T(up), T(down)};
    return scaled(w, args, down ? CALL(cat_default, value_list(both, 2)) : NULL);
}
COMPOSED(fftfreq)

static bp_tensor *body_rfftfreq(work *w, const op_row *op, const bp_value *args)
{
    int64_t n = arg_int(w->c, args, 0);
    if (n < -1)
        return refuse(w, op, "argument \"n\" must not be negative");
    return check_frequencies(w, op, args) ? scaled(w, args, count_up(w, args, 0, n / 2 + 1)) : NULL;
}
COMPOSED(rfftfreq)
