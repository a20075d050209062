/* Stances: what calls of a runtime may do, set by bp_set_stance.
 *
 * A stance is one word in the runtime, so that a call reads it by one load: the kind in its lowest bits, and a number
 * of the setting, so that a forced backend is resolved again each time it is set. */
#ifndef HOST_COMPILE_STANCE_H
#define HOST_COMPILE_STANCE_H
#include "host/compile/callable.h"

enum stance {
#define STANCE(ID, name, meaning) STANCE_##ID,
#include "host/compile/stances.def"
#undef STANCE
    STANCE_COUNT
};

static inline uint32_t stance_word(const bp_runtime *rt)
{
    return atomic_load_explicit(&((bp_runtime *)(uintptr_t)rt)->stance, memory_order_relaxed);
}
static inline enum stance stance_kind(uint32_t word) { return (enum stance)(word & 7); }
const char *stance_name(enum stance kind);
/* The callable that serves calls of g under a stance: g, or its like with the forced backend, made and resolved at its
 * first call under this setting. Borrowed. NULL: the context says why. */
bp_callable *stance_callable(bp_ctx *c, bp_callable *g, uint32_t word);
/* The same for reports: g when there is none yet. */
const bp_callable *stance_shown(const bp_callable *g);
#endif
