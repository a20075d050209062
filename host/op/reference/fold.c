/* The engine of reductions. Outputs are shared among threads; one output is folded by one thread, in row-major order of
 * what it is folded from, so that a result never depends on the number of threads. */
#include "host/op/reference/fold.h"
#include "host/base/parallel.h"
#include "host/op/reference/vector.h"
#include <string.h>

enum { ELEMENT_MAX = 16, RESULTS_MAX = 2, GRAIN = 16384, LINE = 256, NARROW = 8 };

/* Dimensions of one kind (kept, or folded): sizes and steps in elements. */
typedef struct { uint32_t n; int64_t sizes[TENSOR_MAX_RANK], steps[TENSOR_MAX_RANK]; } dims;

typedef struct {
    const fold *f;
    fold_fn add;
    const bp_tensor *t;
    bp_dtype as, loop;
    bool direct;
    dims kept, folded; /* the innermost of `folded` is the run */
    const void *params;
    const char *data;
    int64_t size; /* of an element of t */
    uint32_t nout;
    bp_tensor *const *out;
} folding;

static fold_fn pick(const fold_table *t, bp_dtype d)
{
    LOOP_BY_TYPE(t, d)
}

/* Adds a dimension inside the ones before it; merged when it continues the last. */
static void add_dim(dims *d, int64_t size, int64_t step)
{
    if (size == 1)
        return;
    if (d->n && d->steps[d->n - 1] == step * size) {
        d->sizes[d->n - 1] *= size;
        d->steps[d->n - 1] = step;
        return;
    }
    d->sizes[d->n] = size;
    d->steps[d->n++] = step;
}

static int64_t count_of(const dims *d, uint32_t n)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < n; i++)
        count *= d->sizes[i];
    return count;
}

/* Offset of element i of the first n dimensions. */
static int64_t offset_of(const dims *d, uint32_t n, int64_t i)
{
    int64_t at = 0;
    for (uint32_t k = n; k-- > 1; i /= d->sizes[k])
        at += i % d->sizes[k] * d->steps[k];
    return n ? at + i * d->steps[0] : 0; /* i is inside: what is left is the index of the first */
}

static void take(const folding *w, fold_state *s, int64_t at, int64_t n, int64_t step)
{
    const char *from = w->data + at * w->size;
    if (w->direct) {
        w->add(s, n, from, step, w->params);
        s->seen += n;
        return;
    }
    _Alignas(16) char room[LOOP_CHUNK * ELEMENT_MAX];
    for (int64_t done = 0; done < n; done += LOOP_CHUNK) {
        int64_t some = n - done < LOOP_CHUNK ? n - done : LOOP_CHUNK;
        loop_convert(w->loop, room, w->as, w->t->dtype, from + done * step * w->size, step, some);
        w->add(s, some, room, 1, w->params);
        s->seen += some;
    }
}

static void store(const folding *w, int64_t i, const fold_state *s)
{
    num results[RESULTS_MAX] = {{NUM_INT, 0, 0, 0}};
    w->f->end(s, w->loop, results, w->params);
    for (uint32_t r = 0; r < w->nout; r++) {
        bp_tensor *out = w->out[r];
        if (out->dtype == BP_F32 && results[r].kind == NUM_FLOAT)
            ((float *)tensor_ptr(out))[i] = (float)results[r].f;
        else
            dtype_store(out->dtype, (char *)tensor_ptr(out) + i * (int64_t)dtype_size(out->dtype), results[r]);
    }
}

/* Outputs whose elements lie side by side with one another's are taken together, line by line. */
static bool goes_across(const folding *w)
{
    return w->kept.n && w->kept.steps[w->kept.n - 1] == 1 && w->kept.sizes[w->kept.n - 1] >= NARROW;
}

/* So are those whose own elements lie side by side. */
static bool has_sums(const folding *w)
{
    return w->f->sums && w->direct && w->loop == BP_F32 && w->out[0]->dtype == BP_F32 && w->folded.n &&
           (goes_across(w) || w->folded.steps[w->folded.n - 1] == 1);
}

/* Folds outputs [i, i + n), n at most LINE, which differ in the innermost kept dimension alone. */
static void fold_line(const folding *w, int64_t i, int64_t n)
{
    double sums[LINE];
    uint32_t outer = w->folded.n - 1;
    int64_t rows = count_of(&w->folded, outer), run = w->folded.sizes[outer], step = w->folded.steps[outer];
    const float *p = (const float *)tensor_ptr(w->t) + offset_of(&w->kept, w->kept.n, i);
    bool across = goes_across(w);
    memset(sums, 0, (size_t)n * sizeof *sums);
    for (int64_t row = 0; row < rows && run > 0; row++) {
        const float *at = p + offset_of(&w->folded, outer, row);
        for (int64_t k = 0; across && k < run; k++)
            w->f->sums->across(n, at + k * step, sums);
        if (!across)
            w->f->sums->along(n, w->kept.n ? w->kept.steps[w->kept.n - 1] : 0, run, at, sums);
    }
    w->f->sums->end(n, sums, rows * run, (float *)tensor_ptr(w->out[0]) + i);
}

static void fold_lines(const folding *w, int64_t begin, int64_t end)
{
    int64_t width = w->kept.n ? w->kept.sizes[w->kept.n - 1] : 1;
    for (int64_t i = begin, n; i < end; i += n) {
        n = width - i % width;
        n = n < LINE ? n : LINE;
        n = n < end - i ? n : end - i;
        fold_line(w, i, n);
    }
}

static void fold_range(void *arg, int64_t begin, int64_t end)
{
    const folding *w = arg;
    if (has_sums(w)) {
        fold_lines(w, begin, end);
        return;
    }
    uint32_t outer = w->folded.n ? w->folded.n - 1 : 0;
    int64_t rows = count_of(&w->folded, outer);
    int64_t run = w->folded.n ? w->folded.sizes[outer] : 1, step = w->folded.n ? w->folded.steps[outer] : 0;
    for (int64_t i = begin; i < end; i++) {
        fold_state s = w->f->start;
        int64_t base = offset_of(&w->kept, w->kept.n, i);
        for (int64_t row = 0; row < rows && run > 0; row++)
            take(w, &s, base + offset_of(&w->folded, outer, row), run, step);
        store(w, i, &s);
    }
}

bp_status fold_into(bp_ctx *c, const op_row *op, const fold *f, const bp_tensor *t, uint64_t mask, bp_dtype as,
                    uint32_t nout, bp_tensor *const *out, const void *params)
{
    folding w = {.f = f, .add = pick(&f->add, as), .t = t, .as = as, .loop = loop_type(as), .params = params,
                 .nout = nout, .out = out};
    if (!ctx_ok(c))
        return c->diag.code;
    if (!w.add)
        return loop_no_type(c, op, as);
    w.data = tensor_ptr(t);
    w.size = (int64_t)dtype_size(t->dtype);
    for (uint32_t d = 0; d < t->rank; d++)
        add_dim(mask >> d & 1 ? &w.folded : &w.kept, tensor_dim(t, d), tensor_step(t, d));
    bool is_exact = as == t->dtype || as == w.loop;
    w.direct = is_exact && (t->dtype == w.loop || (t->dtype == BP_BOOL && w.loop == BP_U8));
    int64_t each = count_of(&w.folded, w.folded.n);
    parallel_for(tensor_nelem(out[0]), each < GRAIN ? GRAIN / (each + 1) + 1 : 1, fold_range, &w);
    return BP_OK;
}

bp_status fold_run(bp_ctx *c, op_call *k, const fold *f, const bp_tensor *t, uint64_t mask, bp_dtype as,
                   const void *params)
{
    return fold_into(c, k->op, f, t, mask, as, k->nout, k->out, params);
}

/* A run of n elements with that mean and sum of squares joins those before it. */
static void join(fold_state *s, int64_t n, double mean, double squares)
{
    double have = (double)s->i, more = (double)n, away = mean - s->a;
    s->i += n;
    s->a = have > 0 ? s->a + away * (more / (have + more)) : mean;
    s->b += have > 0 ? squares + away * away * (have * more / (have + more)) : squares;
}

#define SPREAD(fn, TI)                                                                                  \
    static void fn(fold_state *s, int64_t n, const char *data, int64_t step, const void *params)       \
    {                                                                                                   \
        const TI *p = (const void *)data;                                                               \
        double first = (double)p[0], sum = 0, squares = 0;                                              \
        (void)params;                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                                 \
            sum += (double)p[i * step] - first;                                                         \
        double mean = sum / (double)n;                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                               \
            double away = ((double)p[i * step] - first) - mean;                                         \
            squares += away * away;                                                                     \
        }                                                                                               \
        join(s, n, first + mean, squares);                                                              \
    }
SPREAD(spread_strided_f32, float)
static void spread_f32(fold_state *s, int64_t n, const char *data, int64_t step, const void *params)
{
    double mean, squares;
    if (step != 1) {
        spread_strided_f32(s, n, data, step, params);
        return;
    }
    vector_spread(n, (const void *)data, &mean, &squares);
    join(s, n, mean, squares);
}
SPREAD(spread_f64, double)
const fold_table fold_spread = {.f32 = spread_f32, .f64 = spread_f64};
