/* Sampling at given places in one type; grid.c includes it once a type, and nobody else does. Before: T, NAME(x), and
 * FN(name), the math function of T. Dimensions are in the image's order; a grid names the last one first. */

/* From [-1, 1] to elements; with align_corners -1 and 1 are the middles of the outermost elements, else their edges. */
static T NAME(place)(const grid_image *g, uint32_t d, T v)
{
    T n = (T)g->in[d];
    return g->align ? (v + 1) / 2 * (n - 1) : ((v + 1) * n - 1) / 2;
}

/* Back and forth between the ends, which are given twice as large. */
static T NAME(reflect)(T v, int64_t low, int64_t high)
{
    if (low == high)
        return 0;
    T least = (T)low / 2, range = (T)(high - low) / 2;
    v = FN(fabs)(v - least);
    T extra = FN(fmod)(v, range);
    bool odd = FN(fmod)(FN(floor)(v / range), 2) != 0;
    return odd ? range - extra + least : extra + least;
}

/* A place outside the image, as the padding mode moves it. */
static T NAME(pad)(const grid_image *g, uint32_t d, T v)
{
    int64_t n = g->in[d];
    if (g->padding == GRID_ZEROS)
        return v;
    if (g->padding == GRID_REFLECTION)
        v = g->align ? NAME(reflect)(v, 0, 2 * (n - 1)) : NAME(reflect)(v, -1, 2 * n - 1);
    return v > 0 ? (v < (T)(n - 1) ? v : (T)(n - 1)) : 0;
}

/* The elements around a place along one dimension and their weights; an index outside the image counts nothing. */
typedef struct { int64_t n, index[4]; T weight[4]; } NAME(around);

static int64_t NAME(inside)(const grid_image *g, uint32_t d, T v)
{
    return v >= 0 && v < (T)g->in[d] ? (int64_t)v : -1;
}

static void NAME(find)(const grid_image *g, uint32_t d, T v, NAME(around) *out)
{
    T place = NAME(place)(g, d, v);
    if (g->mode != GRID_CUBIC)
        place = NAME(pad)(g, d, place);
    T below = g->mode == GRID_NEAREST ? FN(nearbyint)(place) : FN(floor)(place), t = place - below;
    if (g->mode == GRID_NEAREST) {
        *out = (NAME(around)){.n = 1, .index = {NAME(inside)(g, d, below)}, .weight = {1}};
    } else if (g->mode == GRID_LINEAR) {
        *out = (NAME(around)){.n = 2, .index = {NAME(inside)(g, d, below), NAME(inside)(g, d, below + 1)},
                              .weight = {below + 1 - place, t}};
    } else {
        const T a = (T)-0.75;
        T x = t + 1, y = 1 - t, z = 2 - t;
        out->n = 4;
        for (int k = 0; k < 4; k++)
            out->index[k] = NAME(inside)(g, d, NAME(pad)(g, d, below + (T)(k - 1)));
        out->weight[0] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
        out->weight[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
        out->weight[2] = ((a + 2) * y - (a + 3)) * y * y + 1;
        out->weight[3] = ((a * z - 5 * a) * z + 8 * a) * z - 4 * a;
    }
}

static T NAME(sample)(const grid_image *g, const T *plane, const NAME(around) *at)
{
    T z = 0;
    for (int64_t a = 0; a < at[0].n; a++) {
        T y = 0;
        for (int64_t b = 0; b < at[1].n; b++) {
            T x = 0;
            for (int64_t c = 0; c < at[2].n; c++) {
                bool in = at[0].index[a] >= 0 && at[1].index[b] >= 0 && at[2].index[c] >= 0;
                if (in)
                    x += plane[(at[0].index[a] * g->in[1] + at[1].index[b]) * g->in[2] + at[2].index[c]] *
                         at[2].weight[c];
            }
            y += x * at[1].weight[b];
        }
        z += y * at[0].weight[a];
    }
    return z;
}

static void NAME(grid)(const grid_image *g, const T *image, const T *places, T *out)
{
    int64_t size = g->in[0] * g->in[1] * g->in[2];
    for (int64_t b = 0; b < g->batch; b++) {
        for (int64_t i = 0; i < g->nout; i++, places += g->nd) {
            NAME(around) at[3] = {{.n = 1, .weight = {1}}, {.n = 1, .weight = {1}}, {.n = 1, .weight = {1}}};
            for (uint32_t d = 3 - g->nd; d < 3; d++)
                NAME(find)(g, d, places[2 - d], &at[d]);
            for (int64_t ch = 0; ch < g->channels; ch++)
                out[(b * g->channels + ch) * g->nout + i] =
                    NAME(sample)(g, image + (b * g->channels + ch) * size, at);
        }
    }
}
#undef T
#undef NAME
#undef FN
