/* The check of a call against a guard set: the hot path of every call. No allocation, no lock, no write. */
#include "host/guard/set.h"
#include "host/tensor/marks.h"
#include <string.h>

_Static_assert(sizeof(ambient) == 24, "ambient has no padding: it is compared as bytes");

/* Sizes and strides lie next to each other in a tensor as in the guard; differences are gathered, and branched on once.
 * n is even. */
static inline bool dims_hold(const bp_dim *dims, const uint64_t *expected, uint32_t n)
{
    uint64_t differ = 0;
    for (const uint64_t *end = expected + n; expected < end; expected += 2, dims += 2)
        differ |= ((uint64_t)dims[0].value ^ expected[0]) | ((uint64_t)dims[1].value ^ expected[1]);
    return differ == 0;
}

static inline bool tensor_holds(const guard_set *g, const guard_rec *r, const guard_inputs *in)
{
    const bp_tensor *t = guard_tensor(in, r->source);
    return t && guard_meta_word(t) == r->word && dims_hold(t->sizes, g->words + r->at, 2u * t->rank);
}

/* Marks: a tensor may have fewer than the one that was captured. */
static bool dynamic_holds(const guard_set *g, const guard_rec *r, const guard_inputs *in)
{
    const bp_tensor *t = guard_tensor(in, r->source);
    if (!t || guard_unmarked(guard_meta_word(t)) != r->word)
        return false;
    const uint32_t n = 2u * t->rank;
    const uint64_t *expected = g->words + r->at, *mask = expected + n;
    uint64_t differ = t->is_marked ? marks_guarded(t) & ~mask[n] : 0;
    for (uint32_t k = 0; k < n; k++)
        differ |= ((uint64_t)t->sizes[k].value ^ expected[k]) & mask[k];
    return differ == 0;
}

static bool integer_holds(const guard_rec *r, const guard_inputs *in)
{
    const bp_value *v = guard_value(in, r->source);
    return v && v->kind == BP_VALUE_INT;
}

static bool value_holds(const guard_set *g, const guard_rec *r, const guard_inputs *in)
{
    const bp_value *v = guard_value(in, r->source);
    if (!v)
        return false;
    switch (r->kind) {
    case GUARD_NONE: return v->kind == BP_VALUE_NONE;
    case GUARD_BOOL: return v->kind == BP_VALUE_BOOL && (uint64_t)(v->v.i != 0) == r->word;
    case GUARD_INT: return v->kind == BP_VALUE_INT && v->v.dim.sym == 0 && (uint64_t)v->v.dim.value == r->word;
    case GUARD_FLOAT: return v->kind == BP_VALUE_FLOAT && guard_float_bits(v->v.f[0]) == r->word;
    default: break;
    }
    if (v->kind != BP_VALUE_STRING || !v->v.str || !r->word)
        return v->kind == BP_VALUE_STRING && !v->v.str && !r->word;
    return strcmp(v->v.str, (const char *)(g->words + r->at)) == 0;
}

/* -- identity ------------------------------------------------------------------------------------------------------ */

/* Up to FEW sources, all guarded here, the common case: every pair, without a table and with one branch. */
enum { FEW = 8 };
static bool few_distinct(const guard_inputs *in, const uint8_t *marks, uint32_t n)
{
    const void *p[FEW];
    unsigned equal = 0;
    for (uint32_t i = 0; i < n; i++) {
        const bp_tensor *t = marks[i] ? guard_tensor(in, i) : NULL;
        p[i] = t ? (const void *)t : (const void *)&p[i]; /* what is no tensor is equal to nothing */
        for (uint32_t j = 0; j < i; j++)
            equal |= p[i] == p[j];
    }
    return !equal;
}

/* A set of pointers on the stack, as large as the number of inputs needs. More of them than PORTION go through it in
 * portions. */
enum { PORTION = 1024, TABLE = 2 * PORTION };
typedef struct { const void *at[TABLE]; unsigned shift; size_t mask; } pointer_set;

static void set_clear(pointer_set *s, uint32_t n)
{
    unsigned bits = 4;
    while ((1u << bits) < 2 * (n < PORTION ? n : PORTION))
        bits++;
    s->shift = 64 - bits;
    s->mask = ((size_t)1 << bits) - 1;
    memset(s->at, 0, sizeof *s->at << bits);
}

/* Where p is, or belongs. The high bits of the product hold all of p; tensors lie at multiples of 16. */
static inline const void **set_find(pointer_set *s, const void *p)
{
    size_t i = (size_t)(((uint64_t)(uintptr_t)p * UINT64_C(0x9e3779b97f4a7c15)) >> s->shift);
    while (s->at[i] && s->at[i] != p)
        i = (i + 1) & s->mask;
    return &s->at[i];
}

/* Of PORTION sources from `begin` on, those marked 1, against each other, all later ones marked 1, and all marked 2.
 * *next: where the following portion begins. */
static bool portion_distinct(pointer_set *s, const guard_inputs *in, const guard_rec *r, const uint8_t *marks,
                             uint32_t begin, uint32_t *next)
{
    const uint32_t n = in->n < r->word ? in->n : (uint32_t)r->word, left = n - begin;
    const uint32_t i = left > PORTION ? begin + PORTION : n;
    const bp_value *values = in->at;
    set_clear(s, left);
    for (uint32_t k = begin; k < i; k++) {
        if (marks[k] != 1 || values[k].kind != BP_VALUE_TENSOR || !values[k].v.tensor)
            continue;
        const void **at = set_find(s, values[k].v.tensor);
        if (*at)
            return false;
        *at = values[k].v.tensor;
    }
    *next = i;
    for (uint32_t k = r->others ? 0 : i; k < n; k++) {
        const bp_tensor *t = marks[k] == 2 || (marks[k] == 1 && k >= i) ? guard_tensor(in, k) : NULL;
        if (t && *set_find(s, t))
            return false;
    }
    return true;
}

static bool distinct_holds(const guard_set *g, const guard_rec *r, const guard_inputs *in)
{
    const uint8_t *marks = guard_marks(g, r);
    if (r->word <= FEW && !r->others)
        return few_distinct(in, marks, (uint32_t)r->word);
    pointer_set s;
    for (uint32_t begin = 0; begin < r->word && begin < in->n;)
        if (!portion_distinct(&s, in, r, marks, begin, &begin))
            return false;
    return true;
}

/* -- layout -------------------------------------------------------------------------------------------------------- */

static bool overlap_holds(const guard_set *g, const guard_rec *r, const guard_inputs *in)
{
    const bp_tensor *a = guard_tensor(in, r->source), *b = guard_tensor(in, (uint32_t)g->words[r->at]);
    return a && b && tensor_may_overlap(a, b) && guard_distance(a, b) == (int64_t)g->words[r->at + 1];
}

/* No source without the mark meets one that has it. */
static bool disjoint_holds(const guard_set *g, const guard_rec *r, const guard_inputs *in)
{
    const uint8_t *marks = guard_marks(g, r);
    for (uint32_t i = 0; i < g->nsources; i++) {
        const bp_tensor *member = marks[i] ? guard_tensor(in, i) : NULL;
        for (uint32_t j = 0; member && j < in->n; j++) {
            const bp_tensor *other = j < g->nsources && marks[j] ? NULL : guard_tensor(in, j);
            if (other && tensor_may_overlap(member, other))
                return false;
        }
    }
    return true;
}

/* -- all ----------------------------------------------------------------------------------------------------------- */

static bool version_holds(const guard_rec *r, const guard_inputs *in)
{
    const bp_tensor *t = guard_tensor(in, r->source);
    return t && atomic_load_explicit(&t->store->version, memory_order_relaxed) == r->word;
}

static bool alias_holds(const guard_rec *r, const guard_inputs *in)
{
    const bp_tensor *t = guard_tensor(in, r->source);
    return t && t == guard_tensor(in, (uint32_t)r->word);
}

static inline uint64_t word_of(const ambient *a, size_t i)
{
    uint64_t w;
    memcpy(&w, (const char *)a + i * sizeof w, sizeof w);
    return w;
}

static inline bool ambient_holds(const uint64_t *expected, const ambient *a)
{
    return ((word_of(a, 0) ^ expected[0]) | (word_of(a, 1) ^ expected[1]) | (word_of(a, 2) ^ expected[2])) == 0;
}

/* Two inputs, both guarded here. Payloads that differ are two objects, of whatever kind. */
static inline bool pair_distinct(const guard_inputs *in)
{
    if (__builtin_expect(in->n >= 2 && in->at[0].v.tensor != in->at[1].v.tensor, 1))
        return true;
    const bp_tensor *t = guard_tensor(in, 0);
    return !t || t != guard_tensor(in, 1);
}

static bool holds(const guard_set *g, const guard_rec *r, const bp_ctx *c, const guard_inputs *in)
{
    switch (r->kind) {
    case GUARD_AMBIENT: return ambient_holds(g->words + r->at, &c->ambient);
    case GUARD_COUNT: return in->nargs == r->word;
    case GUARD_TENSOR: return tensor_holds(g, r, in);
    case GUARD_DYNAMIC: return dynamic_holds(g, r, in);
    case GUARD_INTEGER: return integer_holds(r, in);
    case GUARD_SHAPE: return guard_shape_holds(g->shape, in);
    case GUARD_VERSION: return version_holds(r, in);
    case GUARD_ALIAS: return alias_holds(r, in);
    case GUARD_DISTINCT: return distinct_holds(g, r, in);
    case GUARD_OVERLAP: return overlap_holds(g, r, in);
    case GUARD_DISJOINT: return disjoint_holds(g, r, in);
    default: return value_holds(g, r, in);
    }
}

static const guard_rec *first_failure(const guard_set *g, const guard_rec *r, const bp_ctx *c, const guard_inputs *in)
{
    for (const guard_rec *end = g->recs + g->nrecs; r < end; r++)
        if (!holds(g, r, c, in))
            return r;
    return NULL;
}

const guard_rec *guard_first_failure(const guard_set *g, const bp_ctx *c, const guard_inputs *in)
{
    return first_failure(g, g->recs, c, in);
}

bool guard_check(const guard_set *g, const bp_ctx *c, const guard_inputs *in)
{
    if (g->ambient && (!ambient_holds(g->ambient, &c->ambient) || in->nargs != g->nargs))
        return false;
    for (const guard_rec *r = g->tensors; r < g->behind; r++)
        if (__builtin_expect(!tensor_holds(g, r, in), 0))
            return false;
    if (g->is_pair && !pair_distinct(in))
        return false;
    return !g->rest || !first_failure(g, g->rest, c, in);
}
