/* Sampling at given places in one type; grid.c includes it once a type, and nobody else does. Before: T, NAME(x),
 * FN(name), the math function of T, and R(x), which rounds a step to the type of the samples;
 * GRID_HALVES, whether it does. Dimensions are in the image's order; a grid names the last one first. */

/* From [-1, 1] to elements; with align_corners -1 and 1 are the middles of the outermost elements, else their edges. */
static T NAME(place)(const grid_image *g, uint32_t d, T v)
{
    T n = (T)g->in[d];
    if (GRID_HALVES && g->nd == 2) /* PyTorch has another order of steps for images */
        return g->align ? R(R(v + 1) * R((n - 1) / 2)) : R(R(R(v + 1) * R(n / 2)) - (T)0.5);
    return g->align ? R(R(R(v + 1) / 2) * (n - 1)) : R(R(R(R(v + 1) * n) - 1) / 2);
}

/* Back and forth between the ends, which are given twice as large; *slope is multiplied by the direction. */
static T NAME(reflect)(T v, int64_t low, int64_t high, T *slope)
{
    if (low == high) {
        *slope = 0;
        return 0;
    }
    T least = (T)low / 2, range = (T)(high - low) / 2, away = R(v - least);
    T far = FN(fabs)(away), extra = FN(fmod)(far, range);
    bool odd = FN(fmod)(FN(floor)(far / range), 2) != 0;
    *slope *= (away < 0) == odd ? 1 : -1;
    return odd ? R(R(range - extra) + least) : R(extra + least);
}

/* A place outside the image, as the padding mode moves it; *slope is multiplied by how fast that follows v. */
static T NAME(pad)(const grid_image *g, uint32_t d, T v, T *slope)
{
    int64_t n = g->in[d];
    if (g->padding == GRID_ZEROS)
        return v;
    if (g->padding == GRID_REFLECTION)
        v = g->align ? NAME(reflect)(v, 0, 2 * (n - 1), slope) : NAME(reflect)(v, -1, 2 * n - 1, slope);
    if (v > 0 && v < (T)(n - 1))
        return v;
    *slope = 0;
    return v > 0 ? (T)(n - 1) : 0;
}

/* The elements around a place along one dimension, their weights, and how these change with the coordinate; an index
 * outside the image counts nothing. */
typedef struct { int64_t n, index[4]; T weight[4], slope[4]; } NAME(around);

static int64_t NAME(inside)(const grid_image *g, uint32_t d, T v)
{
    return v >= 0 && v < (T)g->in[d] ? (int64_t)v : -1;
}

/* Weights of elements less than one, and from one to two away. */
static T NAME(cubic_near)(T x)
{
    const T a = (T)-0.75;
    return R(R(R(R(R((a + 2) * x) - (a + 3)) * x) * x) + 1);
}

static T NAME(cubic_far)(T x)
{
    const T a = (T)-0.75;
    return R(R(R(R(R(R(a * x) - 5 * a) * x) + 8 * a) * x) - 4 * a);
}

/* Four elements, of which the second is just below; t behind it. */
static void NAME(find_cubic)(const grid_image *g, uint32_t d, T below, T t, T slope, NAME(around) *out)
{
    const T a = (T)-0.75, x = t + 1, y = 1 - t, z = 2 - t;
    T none = 1;
    out->n = 4;
    for (int k = 0; k < 4; k++)
        out->index[k] = NAME(inside)(g, d, NAME(pad)(g, d, below + (T)(k - 1), &none));
    out->weight[0] = NAME(cubic_far)(R(t + 1));
    out->weight[1] = NAME(cubic_near)(t);
    out->weight[2] = NAME(cubic_near)(R(1 - t));
    out->weight[3] = NAME(cubic_far)(R(2 - t));
    out->slope[0] = slope * ((3 * a * x - 10 * a) * x + 8 * a);
    out->slope[1] = slope * (3 * (a + 2) * t - 2 * (a + 3)) * t;
    out->slope[2] = -slope * (3 * (a + 2) * y - 2 * (a + 3)) * y;
    out->slope[3] = -slope * ((3 * a * z - 10 * a) * z + 8 * a);
}

static void NAME(find)(const grid_image *g, uint32_t d, T v, NAME(around) *out)
{
    T place = NAME(place)(g, d, v), slope = (T)(g->align ? g->in[d] - 1 : g->in[d]) / 2;
    if (g->mode != GRID_CUBIC)
        place = NAME(pad)(g, d, place, &slope);
    T below = g->mode == GRID_NEAREST ? FN(nearbyint)(place) : FN(floor)(place), t = R(place - below);
    *out = (NAME(around)){.n = 1, .index = {NAME(inside)(g, d, below)}, .weight = {1}};
    if (g->mode == GRID_LINEAR)
        *out = (NAME(around)){.n = 2, .index = {out->index[0], NAME(inside)(g, d, below + 1)},
                              .weight = {R(below + 1 - place), t}, .slope = {-slope, slope}};
    else if (g->mode == GRID_CUBIC)
        NAME(find_cubic)(g, d, below, t, slope, out);
}

/* PyTorch weighs the elements around a place in an image of halves by rounded products of two weights. */
static T NAME(sample_four)(const grid_image *g, const T *plane, const NAME(around) *at)
{
    T sum = 0;
    for (int64_t b = 0; b < at[1].n; b++)
        for (int64_t c = 0; c < at[2].n; c++)
            if (at[1].index[b] >= 0 && at[2].index[c] >= 0)
                sum = R(sum + R(plane[at[1].index[b] * g->in[2] + at[2].index[c]] *
                                R(at[1].weight[b] * at[2].weight[c])));
    return sum;
}

static T NAME(sample)(const grid_image *g, const T *plane, const NAME(around) *at)
{
    T z = 0;
    if (GRID_HALVES && g->nd == 2 && g->mode == GRID_LINEAR)
        return NAME(sample_four)(g, plane, at);
    for (int64_t a = 0; a < at[0].n; a++) {
        T y = 0;
        for (int64_t b = 0; b < at[1].n; b++) {
            T x = 0;
            for (int64_t c = 0; c < at[2].n; c++) {
                bool in = at[0].index[a] >= 0 && at[1].index[b] >= 0 && at[2].index[c] >= 0;
                if (in)
                    x = R(x + R(plane[(at[0].index[a] * g->in[1] + at[1].index[b]) * g->in[2] + at[2].index[c]] *
                                at[2].weight[c]));
            }
            y = R(y + R(x * at[1].weight[b]));
        }
        z = R(z + R(y * at[0].weight[a]));
    }
    return z;
}

/* Where one coordinate tuple lies. */
static void NAME(find_all)(const grid_image *g, const T *place, NAME(around) at[3])
{
    for (uint32_t d = 0; d < 3; d++) {
        at[d] = (NAME(around)){.n = 1, .weight = {1}};
        if (d + g->nd >= 3)
            NAME(find)(g, d, place[2 - d], &at[d]);
    }
}

static void NAME(grid)(const grid_image *g, const T *image, const T *places, T *out)
{
    int64_t size = g->in[0] * g->in[1] * g->in[2];
    NAME(around) at[3];
    for (int64_t b = 0; b < g->batch; b++) {
        for (int64_t i = 0; i < g->nout; i++, places += g->nd) {
            NAME(find_all)(g, places, at);
            for (int64_t ch = 0; ch < g->channels; ch++)
                out[(b * g->channels + ch) * g->nout + i] =
                    NAME(sample)(g, image + (b * g->channels + ch) * size, at);
        }
    }
}

#ifndef GRID_FORWARD_ONLY
/* One sample's gradient: to the elements around, if `to` is given, and to the three coordinates. */
static void NAME(spread)(const grid_image *g, const T *plane, T *to, const NAME(around) *at, T grad, T slope[3])
{
    for (int64_t a = 0; a < at[0].n; a++)
        for (int64_t b = 0; b < at[1].n; b++)
            for (int64_t c = 0; c < at[2].n; c++) {
                if (at[0].index[a] < 0 || at[1].index[b] < 0 || at[2].index[c] < 0)
                    continue;
                int64_t cell = (at[0].index[a] * g->in[1] + at[1].index[b]) * g->in[2] + at[2].index[c];
                T z = at[0].weight[a], y = at[1].weight[b], x = at[2].weight[c], v = plane[cell] * grad;
                if (to)
                    to[cell] += grad * z * y * x;
                slope[0] += v * at[0].slope[a] * y * x;
                slope[1] += v * z * at[1].slope[b] * x;
                slope[2] += v * z * y * at[2].slope[c];
            }
}

/* Gradients of the image, if `to` is given, and of the places. */
static void NAME(grid_backward)(const grid_image *g, const T *grad, const T *image, const T *places, T *to, T *slopes)
{
    int64_t size = g->in[0] * g->in[1] * g->in[2];
    NAME(around) at[3];
    for (int64_t b = 0; b < g->batch; b++) {
        for (int64_t i = 0; i < g->nout; i++, places += g->nd, slopes += g->nd) {
            T slope[3] = {0, 0, 0};
            NAME(find_all)(g, places, at);
            for (int64_t ch = 0; ch < g->channels; ch++) {
                int64_t plane = b * g->channels + ch;
                NAME(spread)(g, image + plane * size, to ? to + plane * size : NULL, at, grad[plane * g->nout + i],
                             slope);
            }
            for (uint32_t d = 0; d < g->nd; d++)
                slopes[d] = slope[2 - d];
        }
    }
}
#endif
#undef T
#undef NAME
#undef FN
#undef R
#undef GRID_HALVES
