/* Upsampling in one type; resample.c includes it once a type, and nobody else does. Before: T, NAME(x), FLOOR(v).
 *
 * Each dimension has a table: for every element of the result up to four elements of the image and their weights. */
typedef struct { int64_t index[RESAMPLE_TAPS]; T weight[RESAMPLE_TAPS]; } NAME(tap);

static T NAME(scale)(const resample_line *l)
{
    if (l->align)
        return l->out > 1 ? (T)(l->in - 1) / (T)(l->out - 1) : 0;
    return l->scale > 0 ? (T)(1.0 / l->scale) : (T)l->in / (T)l->out;
}

/* Weights of the four elements around a place that is `t` behind the second of them. */
static void NAME(cubic)(T t, T *weight)
{
    const T a = (T)-0.75;
    T x = t + 1, y = 1 - t, z = 2 - t;
    weight[0] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    weight[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    weight[2] = ((a + 2) * y - (a + 3)) * y * y + 1;
    weight[3] = ((a * z - 5 * a) * z + 8 * a) * z - 4 * a;
}

static void NAME(fill_cubic)(const resample_line *l, int64_t i, T place, NAME(tap) *tap)
{
    int64_t at = (int64_t)FLOOR(place);
    at = at < l->in - 1 ? at : l->in - 1;
    T behind = place - (T)at;
    (void)i;
    NAME(cubic)(behind < 0 ? 0 : behind > 1 ? 1 : behind, tap->weight);
    for (int64_t k = 0; k < 4; k++) {
        int64_t x = at - 1 + k;
        tap->index[k] = x < 0 ? 0 : x >= l->in ? l->in - 1 : x;
    }
}

static void NAME(fill_linear)(const resample_line *l, int64_t i, T place, NAME(tap) *tap)
{
    int64_t at = (int64_t)place;
    at = at < l->in - 1 ? at : l->in - 1;
    T behind = place - (T)at;
    behind = behind < 0 ? 0 : behind > 1 ? 1 : behind;
    if (l->in == l->out)
        at = i, behind = 0;
    tap->index[0] = at, tap->index[1] = at + (at < l->in - 1);
    tap->weight[0] = 1 - behind, tap->weight[1] = behind;
}

static void NAME(fill)(const resample_line *l, NAME(tap) *taps)
{
    T scale = NAME(scale)(l);
    for (int64_t i = 0; i < l->out; i++) {
        NAME(tap) *tap = &taps[i];
        if (l->kind == RESAMPLE_NEAREST || l->kind == RESAMPLE_NEAREST_EXACT) {
            T place = l->kind == RESAMPLE_NEAREST ? (T)i * scale : ((T)i + (T)0.5) * scale;
            int64_t at = (int64_t)FLOOR(place);
            tap->index[0] = at < l->in - 1 ? at : l->in - 1;
            tap->weight[0] = 1;
            continue;
        }
        T place = l->align ? scale * (T)i : scale * ((T)i + (T)0.5) - (T)0.5;
        if (l->kind == RESAMPLE_CUBIC)
            NAME(fill_cubic)(l, i, place, tap);
        else
            NAME(fill_linear)(l, i, place < 0 ? 0 : place, tap);
    }
}

/* Weighted sums, the innermost dimension first. */
static T NAME(sum)(const resample_image *g, const T *plane, const NAME(tap) *const *tap)
{
    T z = 0;
    for (int64_t a = 0; a < g->taps[0]; a++) {
        T y = 0;
        for (int64_t b = 0; b < g->taps[1]; b++) {
            const T *line = plane + (tap[0]->index[a] * g->in[1] + tap[1]->index[b]) * g->in[2];
            T x = 0;
            for (int64_t c = 0; c < g->taps[2]; c++)
                x += line[tap[2]->index[c]] * tap[2]->weight[c];
            y += x * tap[1]->weight[b];
        }
        z += y * tap[0]->weight[a];
    }
    return z;
}

static void NAME(spread)(const resample_image *g, T *plane, const NAME(tap) *const *tap, T v)
{
    for (int64_t a = 0; a < g->taps[0]; a++)
        for (int64_t b = 0; b < g->taps[1]; b++)
            for (int64_t c = 0; c < g->taps[2]; c++)
                plane[(tap[0]->index[a] * g->in[1] + tap[1]->index[b]) * g->in[2] + tap[2]->index[c]] +=
                    v * tap[0]->weight[a] * tap[1]->weight[b] * tap[2]->weight[c];
}

/* image: `planes` of in; other: as many of out. backward: other is spread over the image, else sampled from it. */
static void NAME(resample)(const resample_image *g, T *image, T *other, bool backward, const void *const *tables)
{
    const NAME(tap) *const all[3] = {tables[0], tables[1], tables[2]};
    for (int64_t p = 0; p < g->planes; p++, image += g->in[0] * g->in[1] * g->in[2])
        for (int64_t a = 0; a < g->out[0]; a++)
            for (int64_t b = 0; b < g->out[1]; b++)
                for (int64_t c = 0; c < g->out[2]; c++, other++) {
                    const NAME(tap) *const tap[3] = {all[0] + a, all[1] + b, all[2] + c};
                    if (backward)
                        NAME(spread)(g, image, tap, *other);
                    else
                        *other = NAME(sum)(g, image, tap);
                }
}
#undef T
#undef NAME
#undef FLOOR
