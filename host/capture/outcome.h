/* Outcomes: what a captured function learns when it asks a tensor for its value.
 *
 * Typed bits (C2.3): a bool, a 64-bit integer, or a double by its bits, so that -0 is not +0; every NaN is one. Equal
 * outcomes take the same way through the function's C code. */
#ifndef HOST_CAPTURE_OUTCOME_H
#define HOST_CAPTURE_OUTCOME_H
#include "host/tensor/tensor.h"
#include "sdk/base/str.h"

enum ask_kind { ASK_BOOL = 1, ASK_INT, ASK_FLOAT, ASK_NOTHING /* an opaque step: which results are what */ };
typedef struct { uint64_t bits; uint32_t kind, zero; } outcome;

/* Reads the one element of a real CPU tensor as a value of that kind. errors: INVALID_ARGUMENT unless t has exactly one
 * element, or for a complex number asked as a real one; OUT_OF_RANGE for a float that is no 64-bit integer. */
bp_status outcome_read(bp_ctx *c, enum ask_kind kind, const bp_tensor *t, outcome *out);
/* The checks of outcome_read that metadata decide. */
bp_status outcome_check(bp_ctx *c, enum ask_kind kind, const bp_tensor *t);
/* bp_item_sym wants a tensor of one element: says so, INVALID_ARGUMENT. */
bp_status item_sym_size(bp_ctx *c, const bp_tensor *t);
static inline bool outcome_eq(outcome a, outcome b) { return a.bits == b.bits && a.kind == b.kind; }
static inline int outcome_bool(outcome o) { return o.bits != 0; }
static inline int64_t outcome_int(outcome o) { return (int64_t)o.bits; }
double outcome_float(outcome o);
/* "true", "3", "0.5". */
void outcome_print(outcome o, buf *out);
/* The public function that asks so: "bp_is_true". */
const char *ask_name(enum ask_kind kind);
#endif
