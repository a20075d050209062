/* Pooling in one type; pool.c includes it once a type, and nobody else does. Before: T;
 * NAME(x), the suffixed name; LOWEST, IS_NAN(v) and ROUND(g, v) of the type.
 * Windows never leave the image, but may be empty. */

/* The greatest element of each window and where it is in its plane; NaN wins, the first of equals wins. */
static void NAME(max)(const pool_geometry *g, const T *x, T *y, int64_t *places)
{
    for (pool_place p = pool_first(g); pool_more(g, &p); pool_next(g, &p)) {
        const T *plane = x + p.plane * g->nin;
        int64_t best = pool_at(g, p.w[0].lo, p.w[1].lo, p.w[2].lo);
        T top = LOWEST;
        for (int64_t a = p.w[0].lo; a < p.w[0].hi; a += g->dilation[0])
            for (int64_t b = p.w[1].lo; b < p.w[1].hi; b += g->dilation[1])
                for (int64_t c = p.w[2].lo; c < p.w[2].hi; c += g->dilation[2]) {
                    T v = plane[pool_at(g, a, b, c)];
                    if (v > top || IS_NAN(v))
                        top = v, best = pool_at(g, a, b, c);
                }
        y[p.out] = top;
        if (places)
            places[p.out] = best;
    }
}

/* The mean of each window. */
static void NAME(avg)(const pool_geometry *g, const T *x, T *y)
{
    for (pool_place p = pool_first(g); pool_more(g, &p); pool_next(g, &p)) {
        const T *plane = x + p.plane * g->nin;
        T sum = 0;
        for (int64_t a = p.w[0].lo; a < p.w[0].hi; a++)
            for (int64_t b = p.w[1].lo; b < p.w[1].hi; b++)
                for (int64_t c = p.w[2].lo; c < p.w[2].hi; c++)
                    sum = (T)ROUND(g, sum + plane[pool_at(g, a, b, c)]);
        if (g->step != BP_DTYPE_UNSET)
            y[p.out] = (T)pool_shares(g, &p, (double)sum);
        else
            y[p.out] = pool_is_empty(g, &p) ? 0 : sum / (T)pool_divisor(g, &p);
    }
}

/* Each element of a window gets its share of the gradient. */
static void NAME(avg_backward)(const pool_geometry *g, const T *dy, T *dx)
{
    for (pool_place p = pool_first(g); pool_more(g, &p); pool_next(g, &p)) {
        T *plane = dx + p.plane * g->nin;
        T share = pool_is_empty(g, &p) ? 0 : dy[p.out] / (T)pool_divisor(g, &p);
        for (int64_t a = p.w[0].lo; a < p.w[0].hi; a++)
            for (int64_t b = p.w[1].lo; b < p.w[1].hi; b++)
                for (int64_t c = p.w[2].lo; c < p.w[2].hi; c++)
                    plane[pool_at(g, a, b, c)] += share;
    }
}
#undef T
#undef NAME
#undef LOWEST
#undef IS_NAN
#undef ROUND
