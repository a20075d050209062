/* How sizes, strides and integers of a capture's inputs become symbols (contract section 11).
 *
 * A function's frame state remembers, by source name, what sizes its inputs had at former captures; what has differed
 * is dynamic from then on. Marks of tensors and options decide first. What was decided of an input is its plan: a
 * replay of a path follows the path's plans, whatever its own inputs would have been decided to be, so that equal paths
 * have equal symbols. A frame state is changed with the code's claim. */
#ifndef HOST_CAPTURE_DYNAMIC_H
#define HOST_CAPTURE_DYNAMIC_H
#include "host/guard/guard.h"
#include "sdk/base/map.h"
#include "sdk/base/vec.h"

/* -- what former captures have seen -- */
enum { SEEN_VARIES = 1, SEEN_NEW = 2 /* it varies since the capture that runs */ };
typedef struct {
    char *name;
    bool is_number, rank_varies;
    uint32_t rank;
    int64_t *dims;                /* of a tensor: sizes, strides; of a number: itself */
    uint8_t *varies;              /* SEEN_*, one each */
    int8_t *products;             /* strides: the dimension that one is the product of, or -1 */
} seen_source;
typedef struct frame_state { VEC(seen_source *) all; map by_name; } frame_state;
void frame_state_fini(frame_state *s);

/* -- how it is decided: options and config, as they are when a capture begins -- */
enum { MARK_AS_DYNAMIC, MARK_AS_UNBACKED };
typedef struct {
    frame_state *state;           /* NULL: nothing is remembered */
    bool automatic, static_by_default, ignores_marks, static_parameters;
    uint8_t mark_as;              /* MARK_AS_*: what an automatic dynamic size is */
    const char *dynamic_sources, *unbacked_sources, *static_sources; /* names by commas; may be NULL */
} size_policy;

/* -- plans -- */
enum plan_kind { PLAN_CONSTANT, PLAN_SYMBOL, PLAN_SAME, PLAN_PRODUCT };
enum plan_constraint { CONSTRAINT_NONE, CONSTRAINT_WARN, CONSTRAINT_RELAXED, CONSTRAINT_STRICT };
typedef struct {
    int64_t min, max;             /* of a new symbol */
    int64_t hint;                 /* for backends, INT64_MIN: the value */
    uint32_t symbol;              /* SYMBOL: its number; SAME: which it is */
    uint8_t kind, of;             /* PRODUCT: a stride that is size[of] * stride[of] */
    uint8_t constraint;           /* of a size: enum plan_constraint */
    bool unbacked;
} dim_plan;
/* Of a tensor: sizes, then strides; of a number: one. ndims 0: all are constants. */
typedef struct {
    uint32_t source, ndims;
    uint64_t marked;              /* sizes that were marked dynamic */
    const dim_plan *dims;
} source_plan;
bool plan_copy(arena *a, const source_plan *from, source_plan *to);

/* A size that one of an automatic capture's sources had when its code was still compiled for that size alone. */
typedef struct { uint32_t symbol; int64_t value; } size_excluded;

/* The names and values of a source, for a decision. */
typedef struct {
    const char *name;
    int32_t role;
    const bp_tensor *t;           /* NULL: the number */
    int64_t number;
} plan_subject;
/* What number the next symbol has, and which symbol has a value already (duck shaping). */
typedef struct {
    uint32_t next;
    map by_value;                 /* size -> symbol + 1 */
    VEC(size_excluded) excluded;
} plan_numbering;
void plan_numbering_fini(plan_numbering *n);
/* Notes what is seen and decides; dims lie in a. errors: INVALID_ARGUMENT: a size outside its mark's bounds. */
bp_status plan_decide(bp_ctx *c, arena *a, const size_policy *p, const plan_subject *s, plan_numbering *n,
                      source_plan *out);
#endif
