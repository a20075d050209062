/* Tensors: counted, strided views with an offset into a counted storage.
 *
 * A fake tensor has a storage without data; sizes, strides, dtype and device are real, and reading data is an error.
 * Sizes and strides lie inline up to rank 5. Threads: reference counts are atomic, the rest is the owner's. */
#ifndef HOST_TENSOR_TENSOR_H
#define HOST_TENSOR_TENSOR_H
#include "host/base/ctx.h"
#include "host/sym/dim.h"
#include "host/tensor/dtype.h"
#include <stdatomic.h>

typedef struct bp_tensor bp_tensor;

/* A storage. data NULL with nbytes > 0: fake. nbytes of a fake with symbols in `bytes` is an estimate. */
typedef struct storage {
    atomic_uint refs;
    bp_device device;
    void *data;
    size_t nbytes;
    bp_dim bytes;               /* of a fake: its size; 0 of others */
    atomic_ullong version;      /* bumped by each in-place write */
    uint32_t is_fake;
    atomic_uint fake_role;      /* FAKE_*: what a capture knows of a fake storage */
    void (*release)(void *arg, void *data); /* NULL: the caching allocator's */
    void *release_arg;
} storage;

/* The memory of a capture's inputs: where they lie in it and which of them share it is not guarded, so a capture must
 * know that it was asked. */
enum { FAKE_OWN, FAKE_OF_INPUT, FAKE_OF_INPUT_ASKED };
enum {
    TENSOR_REQUIRES_GRAD = 1,
    TENSOR_WRAPPED_NUMBER = 2,
    TENSOR_IS_LEAF = 4,
    TENSOR_POISONED = 8,
    TENSOR_VIEW_OF_LEAF = 16, /* recorded as a view of a leaf that requires grad: not to be written in place either */
    TENSOR_VIEW_NO_GRAD = 32, /* a view that was made without grad mode */
    TENSOR_VIEW_OF_MANY = 64  /* one of several views that an operator gave together */
};
enum { TENSOR_INLINE_RANK = 5, TENSOR_MAX_RANK = 64 };

struct bp_tensor {
    atomic_uint refs;
    uint8_t dtype, device_kind, rank, flags; /* one word, so that a guard compares it at once */
    uint8_t device_index, is_marked, reserved[2]; /* is_marked: some size is marked dynamic (marks.h) */
    storage *store;
    bp_dim *sizes, *strides;    /* rank each, strides (in elements) right behind sizes */
    bp_dim offset;              /* in elements */
    bp_dim inline_dims[2 * TENSOR_INLINE_RANK];
    uint32_t fake_id;           /* the tracer's handle number; 0: not a fake of a live capture */
    uint32_t trace_epoch;       /* which capture it belongs to */
    struct bp_tensor *base;     /* of a view: the root of all views of that memory; counted, or NULL */
    void *grad;                 /* the tape's, opaque here */
    void (*grad_destroy)(void *grad);
    struct tensor_marks *marks; /* what was said of its sizes, or NULL; its own (marks.h) */
    const char *file;           /* where it was made, or NULL */
    int32_t line;
    struct scope *scope;        /* owning scope, or NULL when kept */
    bp_tensor *scope_prev, *scope_next;
};

/* Gives up one of the references that are counted; true: it was the last. The owner of the only one is alone, and needs
 * no atomic subtraction, which costs more than everything else here. */
static inline bool refs_drop(atomic_uint *refs)
{
    return atomic_load_explicit(refs, memory_order_acquire) == 1 ||
           atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

/* -- metadata: what a shape rule computes, without a storage -- */
typedef struct { bp_dtype dtype; bp_device device; uint32_t rank; bp_dim *sizes, *strides; bp_dim offset; } tensor_meta;

/* -- making; each gives one reference to the caller; NULL: the context says why -- */
bp_tensor *tensor_new(bp_ctx *c, const tensor_meta *m);               /* uninitialized data, a new storage */
bp_tensor *tensor_new_fake(bp_ctx *c, const tensor_meta *m);
bp_tensor *tensor_view(bp_ctx *c, bp_tensor *base, const tensor_meta *m); /* shares base's storage; dtype may differ */
bp_tensor *tensor_contiguous_new(bp_ctx *c, bp_dtype dtype, uint32_t rank, const int64_t *sizes);
/* Over foreign memory of nbytes; release is called once, on any thread, but not when this fails. */
bp_tensor *tensor_wrap(bp_ctx *c, const tensor_meta *m, void *data, size_t nbytes,
                       void (*release)(void *arg, void *data), void *arg);
void tensor_release_nothing(void *arg, void *data); /* for memory that outlives the tensor */
bp_tensor *tensor_ref(bp_tensor *t);
void tensor_unref(bp_tensor *t);                                      /* NULL: nothing */
storage *storage_ref(storage *s);
void storage_unref(storage *s);
storage *storage_new(bp_ctx *c, bp_device device, size_t nbytes, bool fake);

/* Gives t other sizes, strides and offset in place, as in-place operators on metadata do (squeeze_, resize_); dtype and
 * device stay. A storage that is too small grows and keeps its bytes; one over foreign memory refuses. */
bp_status tensor_set_layout(bp_ctx *c, bp_tensor *t, const tensor_meta *m);
/* Makes the storage at least nbytes large. */
bp_status storage_grow(bp_ctx *c, storage *s, size_t nbytes);

/* -- scopes: what an operator makes belongs to the innermost one -- */
/* Gives the caller's reference to the scope and returns t. NULL: NULL, also when memory is used up (an error). */
bp_tensor *scope_own(bp_ctx *c, bp_tensor *t);
void scope_push(bp_ctx *c);
void scope_pop(bp_ctx *c);
uint32_t scope_depth(const bp_ctx *c);
bp_tensor *scope_keep(bp_ctx *c, bp_tensor *t); /* bp_keep: the caller gets a reference, the scope's if it has one */
void scope_forget(bp_tensor *t);                /* takes a dying tensor off its scope's list */

/* -- facts -- */
static inline bool tensor_is_fake(const bp_tensor *t) { return t->store->is_fake; }
/* Whether gradients flow to t: also where it is a view whose base got a history since. */
static inline bool tensor_requires_grad(const bp_tensor *t)
{
    const uint8_t both = TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF;
    if ((t->flags & TENSOR_REQUIRES_GRAD) || !t->base)
        return (t->flags & TENSOR_REQUIRES_GRAD) != 0;
    bool takes_part = !(t->flags & TENSOR_VIEW_NO_GRAD) && (dtype_is_float(t->dtype) || dtype_is_complex(t->dtype));
    return takes_part && (t->base->flags & both) == TENSOR_REQUIRES_GRAD;
}
/* Its TENSOR_REQUIRES_GRAD and TENSOR_IS_LEAF; those that such a view gets at its next use. */
static inline uint8_t tensor_grad_flags(const bp_tensor *t)
{
    const uint8_t both = TENSOR_REQUIRES_GRAD | TENSOR_IS_LEAF;
    bool late = !(t->flags & TENSOR_REQUIRES_GRAD) && tensor_requires_grad(t);
    return late ? TENSOR_REQUIRES_GRAD : (uint8_t)(t->flags & both);
}
static inline bp_device tensor_device(const bp_tensor *t) { return (bp_device){t->device_kind, t->device_index}; }
bp_dim tensor_numel(bp_ctx *c, const bp_tensor *t);
int64_t tensor_nelem(const bp_tensor *t);             /* specializes symbols, as tensor_dim does */
/* Sizes and strides as numbers: a symbol is specialized, as by dim_int. */
static inline int64_t tensor_dim(const bp_tensor *t, uint32_t d)
{
    return dim_is_const(t->sizes[d]) ? t->sizes[d].value : dim_number(t->sizes[d]);
}
static inline int64_t tensor_step(const bp_tensor *t, uint32_t d)
{
    return dim_is_const(t->strides[d]) ? t->strides[d].value : dim_number(t->strides[d]);
}
/* First element; NULL for fakes and empty storages. */
static inline void *tensor_ptr(const bp_tensor *t)
{
    return t->store->data ? (char *)t->store->data + (size_t)t->offset.value * dtype_size(t->dtype) : NULL;
}
void tensor_get_meta(const bp_tensor *t, tensor_meta *out); /* borrows the arrays */
/* Whether sizes, strides and the offset are all constants. */
static inline bool meta_is_constant(const tensor_meta *m)
{
    int64_t sym = m->offset.sym;
    for (uint32_t d = 0; d < m->rank; d++)
        sym |= m->sizes[d].sym | m->strides[d].sym;
    return sym == 0;
}
/* Whether t, which is no fake, has this very metadata, of constants, the offset too. */
static inline bool tensor_has_meta(const bp_tensor *t, const tensor_meta *m)
{
    if (t->dtype != m->dtype || t->rank != m->rank || t->device_kind != m->device.kind ||
        t->device_index != m->device.index)
        return false;
    int64_t differ = t->offset.value ^ m->offset.value;
    for (uint32_t d = 0; d < m->rank; d++)
        differ |= (t->sizes[d].value ^ m->sizes[d].value) | (t->strides[d].value ^ m->strides[d].value);
    return differ == 0;
}
void tensor_get_view(const bp_tensor *t, bp_view *out);
bool tensor_is_contiguous(const bp_tensor *t);        /* row major; strides of sizes 0 and 1 do not matter */
bool tensor_is_channels_last(const bp_tensor *t);     /* of rank 4 or 5; is_contiguous(memory_format=...) of PyTorch */
bool tensor_is_dense(const bp_tensor *t);             /* a permutation of a contiguous tensor: no holes, no overlap */
/* BP_CONTIGUOUS, or a channels-last format when the strides say so: PyTorch's suggest_memory_format. */
int32_t tensor_suggest_format(const bp_tensor *t);
/* The ranges from the first to the last byte meet, in one storage or in two over the same memory. Symbols are asked. */
bool tensor_may_overlap(const bp_tensor *a, const bp_tensor *b);
/* Some element is reached twice by an expanded size (stride 0). Others (as_strided) go unseen, as in PyTorch. */
bool tensor_overlaps_itself(const bp_tensor *t);
size_t tensor_span_bytes(const bp_tensor *t);         /* from its first to its last element; 0 if empty */
void tensor_note_asked(const bp_tensor *t);           /* somebody read where t lies in its storage, or who shares it */
void tensor_wrote(bp_tensor *t);                      /* bumps the version */
/* Copies elements, casting; sizes must be equal. The one copy loop of the host. */
bp_status tensor_copy(bp_ctx *c, bp_tensor *dst, const bp_tensor *src);
/* A new contiguous tensor of the same elements, or a reference to t when it is contiguous already. NULL: an error. */
bp_tensor *tensor_to_contiguous(bp_ctx *c, bp_tensor *t);
/* A reference to t itself when it is contiguous (its data are to be read only), else a copy. NULL: an error. */
bp_tensor *tensor_dense_copy(bp_ctx *c, const bp_tensor *t);
/* Whether host memory may be touched now (not while capturing, not that of a fake); t NULL: a tensor is to be made from
 * it. False: the context says why, or has an error pending. */
bool tensor_may_touch_memory(bp_ctx *c, const bp_tensor *t);
/* "f32[2, 3]" for messages and readable prints; dst of cap bytes. */
const char *tensor_describe(const bp_tensor *t, char *dst, size_t cap);

/* -- layout rules, over bp_dim; strides have room for rank -- */
void layout_contiguous(bp_ctx *c, uint32_t rank, const bp_dim *sizes, bp_dim *strides);
bp_status layout_memory_format(bp_ctx *c, uint32_t rank, const bp_dim *sizes, int32_t format, bp_dim *strides);
/* Broadcast of a and b; an error names both shapes and the index. out has room for the larger rank. */
bp_status layout_broadcast(bp_ctx *c, uint32_t ra, const bp_dim *a, uint32_t rb, const bp_dim *b, bp_dim *out);
/* The size that two sizes broadcast to; false: none. */
bool layout_meet(bp_dim a, bp_dim b, bp_dim *out);
/* Whether a dimension of size `from` can be expanded to `to`, and whether it then repeats its only element. */
bool layout_expands(bp_dim from, bp_dim to);
bool layout_repeats(bp_dim from, bp_dim to);
/* Strides of a pointwise result over operands, as PyTorch's iterator chooses them (dense, in the operands' order). An
 * operand that is a number (the 1 of add.Scalar) counts, as a tensor of no dimensions: pass NULL for it. */
void layout_pointwise(bp_ctx *c, uint32_t n, const bp_tensor *const *operands, uint32_t rank, const bp_dim *sizes,
                      bp_dim *strides);
/* Strides that PRESERVE gives for one tensor: its own if dense and not overlapping, else contiguous or permuted. */
void layout_preserve(bp_ctx *c, const bp_tensor *t, bp_dim *strides);
/* Strides of a view to new sizes; false: no view is possible. */
bool layout_view(bp_ctx *c, const bp_tensor *t, uint32_t rank, const bp_dim *sizes, bp_dim *strides);
/* Negative d counts from the end; rank 0 counts as 1. Out of range: an error, and 0. */
int64_t layout_wrap_dim(bp_ctx *c, int64_t d, uint32_t rank);

/* -- generator: Philox4x32-10, counter-based -- */
/* The block of 4 numbers at a position of the stream of a seed (counter: position, 0). */
void philox_uint32(uint64_t seed, uint64_t offset, uint32_t out[4]);
void philox_block(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);
#endif
