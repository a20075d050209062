/* Sorts and selections (order.h). */
#include "host/op/reference/order.h"
#include <math.h>
#include <string.h>

enum { SMALL = 16 }; /* ranges up to this length are left to the final insertion sort */

bool order_up_float(const order_entry *a, const order_entry *b)
{
    return (!isnan(a->v.f) && isnan(b->v.f)) || a->v.f < b->v.f;
}
bool order_down_float(const order_entry *a, const order_entry *b)
{
    return (isnan(a->v.f) && !isnan(b->v.f)) || a->v.f > b->v.f;
}
bool order_plain_float(const order_entry *a, const order_entry *b) { return a->v.f < b->v.f; }
bool order_up_int(const order_entry *a, const order_entry *b) { return a->v.i < b->v.i; }
bool order_down_int(const order_entry *a, const order_entry *b) { return a->v.i > b->v.i; }

static void swap(order_entry *a, order_entry *b)
{
    order_entry t = *a;
    *a = *b;
    *b = t;
}

void order_stable(order_entry *at, int64_t n, order_entry *room, order_fn before)
{
    if (n < 2)
        return;
    int64_t middle = n / 2, a = 0, b = middle;
    order_stable(at, middle, room, before);
    order_stable(at + middle, n - middle, room, before);
    for (int64_t i = 0; i < n; i++) {
        bool right = a == middle || (b < n && before(&at[b], &at[a]));
        room[i] = at[right ? b++ : a++];
    }
    memcpy(at, room, (size_t)n * sizeof *at);
}

/* -- heaps: the root is the element that comes last -- */

static void sift_up(order_entry *at, int64_t hole, int64_t top, order_entry value, order_fn before)
{
    for (int64_t parent = (hole - 1) / 2; hole > top && before(&at[parent], &value); parent = (hole - 1) / 2) {
        at[hole] = at[parent];
        hole = parent;
    }
    at[hole] = value;
}

/* Moves the hole down to a leaf along the later children, then the value up from there. */
static void adjust_heap(order_entry *at, int64_t hole, int64_t n, order_entry value, order_fn before)
{
    int64_t top = hole, child = hole;
    while (child < (n - 1) / 2) {
        child = 2 * (child + 1);
        if (before(&at[child], &at[child - 1]))
            child--;
        at[hole] = at[child];
        hole = child;
    }
    if ((n & 1) == 0 && child == (n - 2) / 2) {
        child = 2 * child + 1;
        at[hole] = at[child];
        hole = child;
    }
    sift_up(at, hole, top, value, before);
}

/* Puts *result's value into the heap at[0 .. n), whose root goes to *result. */
static void pop_heap(order_entry *at, int64_t n, order_entry *result, order_fn before)
{
    order_entry value = *result;
    *result = at[0];
    adjust_heap(at, 0, n, value, before);
}

static void heap_select(order_entry *at, int64_t k, int64_t n, order_fn before)
{
    for (int64_t parent = (k - 2) / 2; k >= 2 && parent >= 0; parent--)
        adjust_heap(at, parent, k, at[parent], before);
    for (int64_t i = k; i < n; i++)
        if (before(&at[i], &at[0]))
            pop_heap(at, k, &at[i], before);
}

void order_partial_sort(order_entry *at, int64_t k, int64_t n, order_fn before)
{
    if (k == 0)
        return;
    heap_select(at, k, n, before);
    for (int64_t last = k - 1; last >= 1; last--)
        pop_heap(at, last, &at[last], before);
}

/* -- partitions and insertion -- */

static void median_to_first(order_entry *first, order_entry *a, order_entry *b, order_entry *c, order_fn before)
{
    if (before(a, b))
        swap(first, before(b, c) ? b : before(a, c) ? c : a);
    else
        swap(first, before(a, c) ? a : before(b, c) ? c : b);
}

/* Partitions at[low .. high) around the median of three; returns where the second part begins. */
static int64_t partition(order_entry *at, int64_t low, int64_t high, order_fn before)
{
    order_entry *pivot = &at[low];
    median_to_first(pivot, &at[low + 1], &at[low + (high - low) / 2], &at[high - 1], before);
    for (int64_t i = low + 1, j = high;; i++) {
        while (before(&at[i], pivot))
            i++;
        do
            j--;
        while (before(pivot, &at[j]));
        if (i >= j)
            return i;
        swap(&at[i], &at[j]);
    }
}

/* Inserts at[i] into the sorted elements before it; one that does not go before the first stops at an equal one. */
static void insert(order_entry *at, int64_t low, int64_t i, order_fn before)
{
    order_entry value = at[i];
    int64_t to = i;
    if (before(&value, &at[low]))
        to = low;
    else
        while (before(&value, &at[to - 1]))
            to--;
    memmove(&at[to + 1], &at[to], (size_t)(i - to) * sizeof *at);
    at[to] = value;
}

static void insertion_sort(order_entry *at, int64_t low, int64_t high, order_fn before)
{
    for (int64_t i = low + 1; i < high; i++)
        insert(at, low, i, before);
}

/* Twice the logarithm: how many partitions are tried before a heap takes over. */
static int depth_limit(int64_t n)
{
    int log = 0;
    while (n > 1)
        n /= 2, log++;
    return 2 * log;
}

static void sort_loop(order_entry *at, int64_t low, int64_t high, int depth, order_fn before)
{
    while (high - low > SMALL) {
        if (depth-- == 0) {
            order_partial_sort(at + low, high - low, high - low, before);
            return;
        }
        int64_t cut = partition(at, low, high, before);
        sort_loop(at, cut, high, depth, before);
        high = cut;
    }
}

void order_sort(order_entry *at, int64_t n, order_fn before)
{
    sort_loop(at, 0, n, depth_limit(n), before);
    int64_t first = n < SMALL ? n : SMALL;
    insertion_sort(at, 0, first, before);
    for (int64_t i = first; i < n; i++) {
        order_entry value = at[i];
        int64_t to = i;
        for (; to > 0 && before(&value, &at[to - 1]); to--)
            at[to] = at[to - 1];
        at[to] = value;
    }
}

void order_nth(order_entry *at, int64_t nth, int64_t n, order_fn before)
{
    int64_t low = 0, high = n;
    for (int depth = depth_limit(n); high - low > 3; depth--) {
        if (depth == 0) {
            heap_select(at + low, nth + 1 - low, high - low, before);
            swap(&at[low], &at[nth]);
            return;
        }
        int64_t cut = partition(at, low, high, before);
        *(cut <= nth ? &low : &high) = cut;
    }
    insertion_sort(at, low, high, before);
}

void order_select(order_entry *at, int64_t k, int64_t n, order_fn before)
{
    int64_t low = 0, high = n - 1;
    while (high > low + 1) {
        swap(&at[low + (high - low) / 2], &at[low + 1]);
        if (before(&at[high], &at[low + 1]))
            swap(&at[low + 1], &at[high]);
        if (before(&at[high], &at[low]))
            swap(&at[low], &at[high]);
        if (before(&at[low], &at[low + 1]))
            swap(&at[low + 1], &at[low]);
        int64_t i = low + 1, j = high;
        order_entry pivot = at[low];
        for (;;) {
            do
                i++;
            while (before(&at[i], &pivot));
            do
                j--;
            while (before(&pivot, &at[j]));
            if (j < i)
                break;
            swap(&at[i], &at[j]);
        }
        swap(&at[low], &at[j]);
        if (j <= k)
            low = i;
        if (j >= k)
            high = j - 1;
    }
    if (high == low + 1 && before(&at[high], &at[low]))
        swap(&at[low], &at[high]);
}
