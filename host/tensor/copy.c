/* The copy loop: dimensions that lie together are merged, the destination's innermost runs fastest, runs go through
 * dtype_convert, and large copies are spread over threads by their outer index. */
#include "host/base/parallel.h"
#include "host/tensor/tensor.h"

typedef struct { int64_t size, dst, src; } copy_dim; /* strides in elements */
typedef struct {
    bp_dtype to, from;
    char *dst;
    const char *src;
    uint32_t rank;                   /* of the outer dimensions; dims[0] is the inner run */
    copy_dim dims[TENSOR_MAX_RANK + 1];
    int64_t outer;                   /* product of the outer sizes */
} copy_plan;

enum { PARALLEL_ELEMENTS = 32768 };

/* Innermost first, by the destination's strides; sizes of 1 are left out. False: nothing to copy. */
static bool collect_dims(copy_plan *p, const bp_tensor *dst, const bp_tensor *src)
{
    uint32_t n = 0;
    for (uint32_t d = dst->rank; d-- > 0;) {
        copy_dim k = {tensor_dim(dst, d), tensor_step(dst, d), tensor_step(src, d)};
        if (k.size == 0)
            return false;
        if (k.size == 1)
            continue;
        uint32_t at = n++;
        for (; at && p->dims[at - 1].dst > k.dst; at--)
            p->dims[at] = p->dims[at - 1];
        p->dims[at] = k;
    }
    if (!n)
        p->dims[n++] = (copy_dim){1, 1, 1};
    p->rank = n;
    return true;
}

static void merge_dims(copy_plan *p)
{
    uint32_t n = 1;
    for (uint32_t i = 1; i < p->rank; i++) {
        copy_dim *last = &p->dims[n - 1], k = p->dims[i];
        if (k.dst == last->dst * last->size && k.src == last->src * last->size)
            last->size *= k.size;
        else
            p->dims[n++] = k;
    }
    p->rank = n;
    p->outer = 1;
    for (uint32_t i = 1; i < n; i++)
        p->outer *= p->dims[i].size;
}

static void copy_rows(void *arg, int64_t begin, int64_t end)
{
    const copy_plan *p = arg;
    int64_t to = (int64_t)dtype_size(p->to), from = (int64_t)dtype_size(p->from);
    for (int64_t row = begin; row < end; row++) {
        int64_t rest = row, at_dst = 0, at_src = 0;
        for (uint32_t i = 1; i < p->rank; i++) {
            int64_t index = rest % p->dims[i].size;
            rest /= p->dims[i].size;
            at_dst += index * p->dims[i].dst;
            at_src += index * p->dims[i].src;
        }
        dtype_convert(p->to, p->dst + at_dst * to, p->dims[0].dst, p->from, p->src + at_src * from, p->dims[0].src,
                      p->dims[0].size);
    }
}

static void copy_run(void *arg, int64_t begin, int64_t end)
{
    const copy_plan *p = arg;
    const copy_dim *k = &p->dims[0];
    dtype_convert(p->to, p->dst + begin * k->dst * (int64_t)dtype_size(p->to), k->dst, p->from,
                  p->src + begin * k->src * (int64_t)dtype_size(p->from), k->src, end - begin);
}

static void copy_elements(const bp_tensor *dst, const bp_tensor *src)
{
    copy_plan p = {.to = dst->dtype, .from = src->dtype, .dst = tensor_ptr(dst), .src = tensor_ptr(src)};
    if (!collect_dims(&p, dst, src))
        return;
    merge_dims(&p);
    if (p.outer == 1)
        parallel_for(p.dims[0].size, PARALLEL_ELEMENTS, copy_run, &p);
    else
        parallel_for(p.outer, PARALLEL_ELEMENTS / p.dims[0].size + 1, copy_rows, &p);
}

static bool is_same_place(const bp_tensor *a, const bp_tensor *b)
{
    bool same = a->dtype == b->dtype && a->offset.value == b->offset.value;
    for (uint32_t d = 0; d < a->rank; d++)
        same = same && dim_eq(a->strides[d], b->strides[d]);
    return same;
}

static bp_status check_copy(bp_ctx *c, const bp_tensor *dst, const bp_tensor *src)
{
    bool fits = dst->rank == src->rank;
    for (uint32_t d = 0; fits && d < dst->rank; d++)
        fits = dim_eq(dst->sizes[d], src->sizes[d]);
    if (!fits) {
        char a[256], b[256];
        return ctx_fail(c, BP_INVALID_ARGUMENT, "%s cannot be copied into %s: the sizes differ",
                        tensor_describe(src, a, sizeof a), tensor_describe(dst, b, sizeof b));
    }
    if (tensor_is_fake(dst) || tensor_is_fake(src))
        return ctx_fail(c, BP_FAILED_PRECONDITION, "reading the data of a fake tensor");
    return BP_OK;
}

static bp_tensor *copy_contiguous(bp_ctx *c, const bp_tensor *t);

bp_status tensor_copy(bp_ctx *c, bp_tensor *dst, const bp_tensor *src)
{
    TRY(check_copy(c, dst, src));
    bp_tensor *apart = NULL;
    if (tensor_may_overlap(dst, src)) {
        if (is_same_place(dst, src))
            return BP_OK;
        if (!(apart = copy_contiguous(c, src)))
            return c->diag.code;
        src = apart;
    }
    copy_elements(dst, src);
    tensor_unref(apart);
    return BP_OK;
}

static bp_tensor *copy_contiguous(bp_ctx *c, const bp_tensor *t)
{
    tensor_meta m;
    bp_dim strides[TENSOR_MAX_RANK];
    tensor_get_meta(t, &m);
    layout_contiguous(c, m.rank, m.sizes, strides);
    m.strides = strides;
    m.offset = dim_const(0);
    bp_tensor *dense = ctx_ok(c) ? tensor_new(c, &m) : NULL;
    if (dense && tensor_copy(c, dense, t) != BP_OK) {
        tensor_unref(dense);
        return NULL;
    }
    return dense;
}

bp_tensor *tensor_to_contiguous(bp_ctx *c, bp_tensor *t)
{
    return tensor_is_contiguous(t) ? tensor_ref(t) : copy_contiguous(c, t);
}

bp_tensor *tensor_dense_copy(bp_ctx *c, const bp_tensor *t)
{
    union { const bp_tensor *seen; bp_tensor *counted; } u = {t};
    return tensor_to_contiguous(c, u.counted);
}
