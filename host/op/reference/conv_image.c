/* Convolutions of contiguous images (conv.h).
 *
 * Windows of x are laid out as columns, a block of lines of y at a time so that memory stays bounded, and gemm does the
 * rest. A row of the columns is one element of the window, (channel, kz, ky, kx). One task an image and group,
 * or a part of its lines. */
#include "host/base/parallel.h"
#include "host/op/reference/conv.h"
#include "host/op/reference/gemm.h"
#include "host/op/reference/number.h"
#include <complex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN_BYTES = 512 << 10 }; /* they stay in a core's cache until they are multiplied */

static int64_t volume(const int64_t *n) { return n[0] * n[1] * n[2]; }
static int64_t lines_of(const conv_geometry *g) { return g->y[0] * g->y[1]; }
static int64_t window(const conv_geometry *g) { return g->cx * volume(g->k); }

/* In a line of y, the elements [lo, hi) meet x through this row of the window: element o at `at + o * stride` of the
 * group's image. */
typedef struct { int64_t lo, hi, at; } span;

static int64_t clamp(int64_t v, int64_t high) { return v < 0 ? 0 : v > high ? high : v; }
/* Rounded up; b is positive. */
static int64_t divide_up(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

/* What the spans of a row have in common: its element of the window, the elements that it meets in a line, and where
 * its channel and the first of them lie. */
typedef struct { int64_t z, y, lo, hi, at; } row_of_window;

static row_of_window row_at(const conv_geometry *g, int64_t row)
{
    int64_t kx = row % g->k[2], ky = row / g->k[2] % g->k[1], kz = row / (g->k[2] * g->k[1]) % g->k[0];
    int64_t first = kx * g->dilation[2] - g->pad[2];
    row_of_window r = {kz * g->dilation[0] - g->pad[0], ky * g->dilation[1] - g->pad[1],
                       clamp(divide_up(-first, g->stride[2]), g->y[2]),
                       clamp(divide_up(g->x[2] - first, g->stride[2]), g->y[2]),
                       row / volume(g->k) * volume(g->x) + first};
    if (r.hi < r.lo)
        r.hi = r.lo;
    return r;
}

static span span_of(const conv_geometry *g, const row_of_window *r, int64_t line)
{
    int64_t z = line / g->y[1] * g->stride[0] + r->z, y = line % g->y[1] * g->stride[1] + r->y;
    if (z < 0 || z >= g->x[0] || y < 0 || y >= g->x[1])
        return (span){0, 0, 0};
    return (span){r->lo, r->hi, r->at + (z * g->x[1] + y) * g->x[2]};
}

/* -- windows to columns and back -- */

static void copy_strided(char *to, const char *from, int64_t step, int64_t n, size_t size)
{
    if (step == 1) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    switch (size) {
#define COPY(bytes)                                                                     \
    case bytes:                                                                         \
        for (int64_t i = 0; i < n; i++)                                                 \
            memcpy(to + i * (bytes), from + i * step * (bytes), bytes);                 \
        break;
        COPY(1)
        COPY(2)
        COPY(4)
        COPY(8)
        COPY(16)
#undef COPY
    }
}

/* Columns of the lines [line, line + lines) of y. */
static void gather(const conv_geometry *g, size_t size, const char *x, int64_t line, int64_t lines, char *columns)
{
    int64_t width = g->y[2], rows = window(g);
    for (int64_t row = 0; row < rows; row++) {
        const row_of_window r = row_at(g, row);
        for (int64_t l = 0; l < lines; l++, columns += (size_t)width * size) {
            span s = span_of(g, &r, line + l);
            memset(columns, 0, (size_t)s.lo * size);
            memset(columns + (size_t)s.hi * size, 0, (size_t)(width - s.hi) * size);
            if (s.hi > s.lo)
                copy_strided(columns + (size_t)s.lo * size, x + (s.at + s.lo * g->stride[2]) * (int64_t)size,
                             g->stride[2], s.hi - s.lo, size);
        }
    }
}

#define SCATTER(T, name)                                                                                         \
    static void name(const conv_geometry *g, const void *columns, int64_t line, int64_t lines, void *image)      \
    {                                                                                                            \
        const T *from = columns;                                                                                 \
        T *x = image;                                                                                            \
        int64_t rows = window(g);                                                                                \
        for (int64_t row = 0; row < rows; row++) {                                                               \
            const row_of_window r = row_at(g, row);                                                              \
            for (int64_t l = 0; l < lines; l++, from += g->y[2]) {                                               \
                span s = span_of(g, &r, line + l);                                                               \
                for (int64_t o = s.lo; o < s.hi; o++)                                                            \
                    x[s.at + o * g->stride[2]] += from[o];                                                       \
            }                                                                                                    \
        }                                                                                                        \
    }
SCATTER(float, scatter_f32)
SCATTER(double, scatter_f64)
SCATTER(uint64_t, scatter_i64)
SCATTER(float complex, scatter_c64)
SCATTER(double complex, scatter_c128)

static void scatter_half(const conv_geometry *g, bp_dtype dtype, const void *columns, int64_t line, int64_t lines,
                         void *image)
{
    const bp_half *from = columns; /* as large as the other half type */
    bp_half *x = image;
    int64_t rows = window(g);
    for (int64_t row = 0; row < rows; row++) {
        const row_of_window r = row_at(g, row);
        for (int64_t l = 0; l < lines; l++, from += g->y[2]) {
            span s = span_of(g, &r, line + l);
            for (int64_t o = s.lo; o < s.hi; o++) {
                bp_half *to = &x[s.at + o * g->stride[2]];
                dtype_store(dtype, to, num_add(dtype_load(dtype, to), dtype_load(dtype, &from[o])));
            }
        }
    }
}

static void scatter(const conv_geometry *g, bp_dtype dtype, const void *columns, int64_t line, int64_t lines, void *x)
{
    switch (dtype) {
    case BP_F32: scatter_f32(g, columns, line, lines, x); break;
    case BP_F16:
    case BP_BF16: scatter_half(g, dtype, columns, line, lines, x); break;
    case BP_F64: scatter_f64(g, columns, line, lines, x); break;
    case BP_C64: scatter_c64(g, columns, line, lines, x); break;
    case BP_C128: scatter_c128(g, columns, line, lines, x); break;
    default: scatter_i64(g, columns, line, lines, x); break;
    }
}

void conv_to_columns(const conv_geometry *g, bp_dtype dtype, const void *x, void *columns)
{
    int64_t size = (int64_t)dtype_size(dtype), n = g->cx * volume(g->x) * size, out = window(g) * volume(g->y) * size;
    for (int64_t i = 0; i < g->batch * g->groups; i++)
        gather(g, (size_t)size, (const char *)x + i * n, 0, lines_of(g), (char *)columns + i * out);
}

void conv_from_columns(const conv_geometry *g, bp_dtype dtype, const void *columns, void *x)
{
    int64_t size = (int64_t)dtype_size(dtype), n = g->cx * volume(g->x) * size, in = window(g) * volume(g->y) * size;
    for (int64_t i = 0; i < g->batch * g->groups; i++)
        scatter(g, dtype, (const char *)columns + i * in, 0, lines_of(g), (char *)x + i * n);
}

/* -- one task an image, group and part of its lines -- */

typedef struct task task;
/* Does lines [line, line + n) of one image and group; columns has room for them. */
typedef bool (*lines_fn)(const task *t, int64_t image, int64_t group, int64_t line, int64_t n, char *columns);
struct task {
    const conv_geometry *g;
    bp_dtype dtype;
    lines_fn run;
    const char *x, *y, *w, *bias;
    char *out;
    int64_t parts; /* of the lines of each image and group: tasks that write apart */
    atomic_int failed;
};

/* Where the channels of a group of an image begin, in bytes. */
static int64_t image_at(const task *t, int64_t image, int64_t group, bool is_x)
{
    const conv_geometry *g = t->g;
    int64_t channels = is_x ? g->cx : g->cy, n = is_x ? volume(g->x) : volume(g->y);
    return (image * g->groups + group) * channels * n * (int64_t)dtype_size(t->dtype);
}

static const char *weight_of(const conv_geometry *g, bp_dtype d, const char *w, int64_t group)
{
    return w + group * g->cy * window(g) * (int64_t)dtype_size(d);
}

/* Lines [begin, end) of one image and group. */
static bool run_one(const task *t, int64_t image, int64_t group, int64_t begin, int64_t end)
{
    const conv_geometry *g = t->g;
    int64_t lines = end - begin, bytes = window(g) * g->y[2] * (int64_t)dtype_size(t->dtype);
    int64_t step = bytes && bytes < COLUMN_BYTES ? COLUMN_BYTES / bytes : 1;
    step = step < lines ? step : lines;
    char *columns = malloc((size_t)(step * bytes) + 1);
    bool ok = columns != NULL;
    for (int64_t line = begin; ok && line < end; line += step)
        ok = t->run(t, image, group, line, end - line < step ? end - line : step, columns);
    free(columns);
    return ok;
}

static void run_range(void *arg, int64_t begin, int64_t end)
{
    task *t = arg;
    int64_t lines = lines_of(t->g), groups = t->g->groups;
    for (int64_t i = begin; i < end; i++) {
        int64_t part = i % t->parts, one = i / t->parts;
        if (!run_one(t, one / groups, one % groups, lines * part / t->parts, lines * (part + 1) / t->parts))
            atomic_store(&t->failed, 1);
    }
}

/* -- the three products -- */

static bool forward_lines(const task *t, int64_t image, int64_t group, int64_t line, int64_t n, char *columns)
{
    const conv_geometry *g = t->g;
    size_t size = dtype_size(t->dtype);
    int64_t wide = n * g->y[2], all = volume(g->y);
    gather(g, size, t->x + image_at(t, image, group, true), line, n, columns);
    gemm_job j = {.dtype = t->dtype, .batch = 1, .m = g->cy, .n = wide, .k = window(g),
                  .a = {weight_of(g, t->dtype, t->w, group), window(g), 1, 0}, .b = {columns, wide, 1, 0},
                  .out = t->out + image_at(t, image, group, false) + (size_t)(line * g->y[2]) * size,
                  .out_row = all, .out_col = 1};
    if (t->bias)
        j.add = (gemm_in){t->bias + (size_t)(group * g->cy) * size, 1, 0, 0};
    return gemm_try(&j);
}

/* Fewer images than threads: their lines are shared too. A line is the same whatever it is computed with. */
static int64_t parts_of(const conv_geometry *g)
{
    int64_t tasks = g->batch * g->groups, threads = parallel_threads(), lines = lines_of(g);
    int64_t parts = tasks && tasks < threads ? (threads + tasks - 1) / tasks : 1;
    return parts < lines ? parts : lines > 1 ? lines : 1;
}

bool conv_forward(const conv_geometry *g, bp_dtype dtype, const void *x, const void *w, const void *bias, void *y)
{
    task t = {.g = g, .dtype = dtype, .run = forward_lines, .x = x, .w = w, .bias = bias, .out = y};
    t.parts = parts_of(g);
    parallel_for(g->batch * g->groups * t.parts, 1, run_range, &t);
    return !atomic_load(&t.failed);
}

static bool adjoint_lines(const task *t, int64_t image, int64_t group, int64_t line, int64_t n, char *columns)
{
    const conv_geometry *g = t->g;
    size_t size = dtype_size(t->dtype);
    int64_t wide = n * g->y[2];
    const char *y = t->y + image_at(t, image, group, false) + (size_t)(line * g->y[2]) * size;
    gemm_job j = {.dtype = t->dtype, .batch = 1, .m = window(g), .n = wide, .k = g->cy,
                  .a = {weight_of(g, t->dtype, t->w, group), 1, window(g), 0}, .b = {y, volume(g->y), 1, 0},
                  .out = columns, .out_row = wide, .out_col = 1};
    if (!gemm_try(&j))
        return false;
    scatter(g, t->dtype, columns, line, n, t->out + image_at(t, image, group, true));
    return true;
}

bool conv_adjoint(const conv_geometry *g, bp_dtype dtype, const void *y, const void *w, void *x)
{
    task t = {.g = g, .dtype = dtype, .run = adjoint_lines, .y = y, .w = w, .out = x, .parts = 1};
    parallel_for(g->batch * g->groups, 1, run_range, &t);
    return !atomic_load(&t.failed);
}

static bool weight_lines(const task *t, int64_t image, int64_t group, int64_t line, int64_t n, char *columns)
{
    const conv_geometry *g = t->g;
    size_t size = dtype_size(t->dtype);
    int64_t wide = n * g->y[2];
    const char *y = t->y + image_at(t, image, group, false) + (size_t)(line * g->y[2]) * size;
    char *w = t->out + (size_t)(group * g->cy * window(g)) * size;
    gather(g, size, t->x + image_at(t, image, group, true), line, n, columns);
    gemm_job j = {.dtype = t->dtype, .batch = 1, .m = g->cy, .n = window(g), .k = wide,
                  .a = {y, volume(g->y), 1, 0}, .b = {columns, 1, wide, 0}, .add = {w, window(g), 1, 0},
                  .out = w, .out_row = window(g), .out_col = 1};
    return gemm_try(&j);
}

/* Images add to one weight: they take turns. */
bool conv_weight(const conv_geometry *g, bp_dtype dtype, const void *x, const void *y, void *w)
{
    task t = {.g = g, .dtype = dtype, .run = weight_lines, .x = x, .y = y, .out = w};
    memset(w, 0, (size_t)(g->groups * g->cy * window(g)) * dtype_size(dtype));
    for (int64_t i = 0; i < g->batch * g->groups; i++)
        if (!run_one(&t, i / g->groups, i % g->groups, 0, lines_of(g)))
            return false;
    return true;
}
