/* The block of a guard set, as check, explain and print read it and build writes it. Private to the room. */
#ifndef HOST_GUARD_SET_H
#define HOST_GUARD_SET_H
#include "host/guard/guard.h"

enum guard_kind {
#define GUARD_ROW(NAME, form, cost, help) GUARD_##NAME,
#include "host/guard/guards.def"
#undef GUARD_ROW
    GUARD_KINDS
};

/* One guard. `word` and `at` mean, by kind:
 *   AMBIENT   at: words that hold an `ambient`
 *   COUNT     word: the number of arguments
 *   TENSOR    word: the packed metadata (guard_meta_word); at: rank sizes, then rank strides
 *   DYNAMIC   word: the same; at: rank sizes, rank strides, a mask of each (0: it may differ), then the sizes that were
 *             marked dynamic, as bits
 *   BOOL, INT word: the value             FLOAT   word: the bits (guard_float_bits)
 *   STRING    at: the text, NUL-terminated; word 0: a NULL pointer
 *   ALIAS     word: the other source
 *   DISTINCT  word: how many sources; at: a mark each (uint8_t): 1 to be kept apart from all, 2 from those marked 1;
 *             others: whether any is marked 2
 *   OVERLAP   source: the written input; at: the other source, its byte offset from the written one
 *   DISJOINT  source: the written input; at: a mark each source: 1 when it belongs to the written one's overlaps
 *   SHAPE     nothing: the set has the rest */
typedef struct {
    uint32_t kind, source;
    uint32_t at, others; /* at: index into words */
    uint64_t word;
} guard_rec;

/* A guard on shapes; conditions are compiled. */
typedef struct {
    sym_env *env;
    sym_program *program;
    guard_read *reads;
    bp_dim *conditions;
    uint32_t nreads, nconditions;
} guard_shape;
guard_shape *guard_shape_new(bp_ctx *c, const guard_shapes *s); /* NULL: out of memory, the context says so */
void guard_shape_destroy(guard_shape *s);
bool guard_shape_holds(const guard_shape *s, const guard_inputs *in);
void guard_shape_explain(const guard_set *g, const guard_inputs *in, buf *why);
void guard_shape_print(const guard_set *g, buf *out);

struct guard_set {
    uint32_t nbytes, nrecs, nsources, nwords;
    const guard_rec *recs;
    /* What nearly every set begins with, found once: the modes and the number of arguments (NULL: not guarded), then
     * tensors, then whether the first two inputs are one object. `rest`: the
     * other records, in their order, or NULL. */
    const uint64_t *ambient;
    uint32_t nargs;
    bool is_pair;
    const guard_rec *tensors, *behind, *rest;
    const uint64_t *words;
    const uint32_t *names;   /* offset into text, one a source */
    const int32_t *roles;
    const char *text;
    guard_shape *shape;      /* NULL: none */
};

/* dtype, device, rank, requires_grad, is_leaf and is_marked of a tensor, as they lie in memory; other flags are masked
 * out. */
static inline uint64_t guard_meta_word(const bp_tensor *t)
{
    uint64_t w;
    _Static_assert(offsetof(bp_tensor, device_index) == offsetof(bp_tensor, dtype) + 4, "metadata is one word");
    __builtin_memcpy(&w, &t->dtype, sizeof w);
    static const union {
        uint8_t bytes[8];
        uint64_t word;
    } MASK = {{255, 255, 255, TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF, 255, 255, 0, 0}};
    return w & MASK.word;
}

/* The same without is_marked: a dynamic guard compares the marks. */
static inline uint64_t guard_unmarked(uint64_t word)
{
    static const union { uint8_t bytes[8]; uint64_t word; } MARK = {{0, 0, 0, 0, 0, 255, 0, 0}};
    return word & ~MARK.word;
}

/* One NaN; +0 and -0 differ. */
static inline uint64_t guard_float_bits(double v)
{
    uint64_t w;
    __builtin_memcpy(&w, &v, sizeof w);
    return v == v ? w : UINT64_C(0x7ff8000000000000);
}

/* The value of a source, or NULL when the call brought fewer. */
static inline const bp_value *guard_value(const guard_inputs *in, uint32_t i)
{
    return i < in->n ? &in->at[i] : NULL;
}

/* The tensor of a source, or NULL when it is none. */
static inline bp_tensor *guard_tensor(const guard_inputs *in, uint32_t i)
{
    return i < in->n && in->at[i].kind == BP_VALUE_TENSOR ? in->at[i].v.tensor : NULL;
}

/* Byte distance of the first elements. */
static inline int64_t guard_distance(const bp_tensor *from, const bp_tensor *to)
{
    return (int64_t)((uintptr_t)tensor_ptr(to) - (uintptr_t)tensor_ptr(from));
}

static inline const uint8_t *guard_marks(const guard_set *g, const guard_rec *r)
{
    return (const uint8_t *)(g->words + r->at);
}

/* The first guard that fails, or NULL. */
const guard_rec *guard_first_failure(const guard_set *g, const bp_ctx *c, const guard_inputs *in);
#endif
