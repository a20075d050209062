/* Allocation failures on demand: the n-th allocation of a piece of code fails, for each n, until none does.
 *
 * A program that uses this links tests/lib/oom.c with $(OOM_LINK), which put these functions in front of the C
 * library's for all code of the host (and of jansson, which is told so). Allocations are counted, so a leak on the way
 * out of a failure is seen without a sanitizer. One thread. */
#ifndef BP_TESTS_LIB_OOM_H
#define BP_TESTS_LIB_OOM_H
#include <stdbool.h>
#include <stdint.h>

/* Runs body(arg) with the first allocation failing, then the second, and so on, and once without a failure; the same
 * again with all allocations from the n-th on failing. The body returns whether all went well: it must when nothing
 * failed, and must have freed what it allocated in any case. `what` names it in failures. Returns how many allocations
 * the body makes. */
uint64_t oom_sweep(const char *what, bool (*body)(void *arg), void *arg);
/* Whether an allocation has failed in this run of the body. */
bool oom_has_failed(void);
#endif
