/* Putting elements in order: a stable sort, and the unstable selections whose choice among equal elements shows in
 * PyTorch's indices. They make the moves that the C++ library and PyTorch's own selection make, so equal elements end
 * up where they do there. */
#ifndef HOST_OP_REFERENCE_ORDER_H
#define HOST_OP_REFERENCE_ORDER_H
#include <stdbool.h>
#include <stdint.h>

/* An element widened to double or int64, and its place before. */
typedef struct { union { double f; int64_t i; } v; int64_t index; } order_entry;
/* Whether a goes before b. */
typedef bool (*order_fn)(const order_entry *a, const order_entry *b);

/* Ascending with NaN last, descending with NaN first, and the comparisons that ignore NaN's place. */
bool order_up_float(const order_entry *a, const order_entry *b);
bool order_down_float(const order_entry *a, const order_entry *b);
bool order_plain_float(const order_entry *a, const order_entry *b);
bool order_up_int(const order_entry *a, const order_entry *b);
bool order_down_int(const order_entry *a, const order_entry *b);

/* Stable; room holds n entries. */
void order_stable(order_entry *at, int64_t n, order_entry *room, order_fn before);
/* As std::sort, std::partial_sort and std::nth_element do. */
void order_sort(order_entry *at, int64_t n, order_fn before);
void order_partial_sort(order_entry *at, int64_t k, int64_t n, order_fn before);
void order_nth(order_entry *at, int64_t nth, int64_t n, order_fn before);
/* Quick select with the median of three as pivot (kthvalue). */
void order_select(order_entry *at, int64_t k, int64_t n, order_fn before);
#endif
