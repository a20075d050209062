/* See loops.h. Loops go over the host's thread pool, which oneDNN shares. */
#include "plugins/onednn/loops.h"
#include <math.h>
#include <string.h>

typedef struct { const step *s; const float *src; float *dst; } job;

static void clamp_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    float lo = j->s->bound[0], hi = j->s->bound[1];
    for (int64_t i = begin; i < end; i++) {
        float x = j->src[i];
        x = x < lo ? lo : x; /* a NaN compares false and stays */
        j->dst[i] = x > hi ? hi : x;
    }
}

void loop_clamp(const bp_host *host, const step *s, const float *src, float *dst)
{
    job j = {s, src, dst};
    bp_parallel_for(host, s->shape[0], 1 << 15, clamp_range, &j);
}

enum { PLANES, HEIGHT, WIDTH, OUT_HEIGHT, OUT_WIDTH, KERNEL, STRIDE = KERNEL + 2, PADDING = STRIDE + 2,
       DILATION = PADDING + 2 };

void loop_max_pool_shape(step *s, const pool_node *n)
{
    s->shape[PLANES] = n->src.sizes[0] * n->src.sizes[1];
    s->shape[HEIGHT] = n->src.sizes[2];
    s->shape[WIDTH] = n->src.sizes[3];
    s->shape[OUT_HEIGHT] = n->dst.sizes[2];
    s->shape[OUT_WIDTH] = n->dst.sizes[3];
    memcpy(&s->shape[KERNEL], n->kernel, 2 * sizeof(int64_t));
    memcpy(&s->shape[STRIDE], n->stride, 2 * sizeof(int64_t));
    memcpy(&s->shape[PADDING], n->padding, 2 * sizeof(int64_t));
    memcpy(&s->shape[DILATION], n->dilation, 2 * sizeof(int64_t));
}

/* The largest of one window of a plane; positions outside the plane do not count. */
static float window(const int64_t *n, const float *plane, int64_t row, int64_t col)
{
    float best = -INFINITY;
    for (int64_t i = 0; i < n[KERNEL]; i++) {
        int64_t y = row * n[STRIDE] - n[PADDING] + i * n[DILATION];
        if (y < 0 || y >= n[HEIGHT])
            continue;
        for (int64_t k = 0; k < n[KERNEL + 1]; k++) {
            int64_t x = col * n[STRIDE + 1] - n[PADDING + 1] + k * n[DILATION + 1];
            if (x < 0 || x >= n[WIDTH])
                continue;
            float v = plane[y * n[WIDTH] + x];
            if (v > best || v != v)
                best = v;
        }
    }
    return best;
}

static void pool_range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const int64_t *n = j->s->shape;
    for (int64_t p = begin; p < end; p++) {
        const float *plane = j->src + p * n[HEIGHT] * n[WIDTH];
        float *out = j->dst + p * n[OUT_HEIGHT] * n[OUT_WIDTH];
        for (int64_t y = 0; y < n[OUT_HEIGHT]; y++)
            for (int64_t x = 0; x < n[OUT_WIDTH]; x++)
                out[y * n[OUT_WIDTH] + x] = window(n, plane, y, x);
    }
}

void loop_max_pool(const bp_host *host, const step *s, const float *src, float *dst)
{
    job j = {s, src, dst};
    bp_parallel_for(host, s->shape[PLANES], 1, pool_range, &j);
}
