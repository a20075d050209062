/* Segments: compiled pieces of paths, addressed by content (C3.4), and what they hand on.
 *
 * A segment is one compiled graph. Its key covers the canonical graph with the values it gives, metadata and relative
 * alias pattern of its inputs, which it names by their first use, and the ambient modes; backend and options are the
 * code's. Equal pieces anywhere under a
 * code share it. Which values a canonical graph gives is a list of its own, shared by all nodes with that graph, which
 * only grows (C3.2). Changed only with the code's claim; a segment that a node uses is never changed. */
#ifndef HOST_CACHE_SEGMENT_H
#define HOST_CACHE_SEGMENT_H
#include "host/cache/epoch.h"
#include "host/capture/path.h"
#include "sdk/base/hash.h"
#include "sdk/base/map.h"
#include "sdk/base/vec.h"

typedef struct {
    hash128 key;
    uint32_t number;              /* N of its name */
    char *name;
    void *program;                /* host/compile's; NULL: it did not compile */
    void (*destroy)(void *program);
    void *training;               /* host/compile's, of a segment whose gradients are asked for; NULL: none are */
    void (*destroy_training)(void *training);
    uint32_t *order;              /* of the compiled graph: which placeholder is used first, second, ... */
    char *failure;                /* why it did not */
} segment;

/* What nodes with one canonical graph hand on: positions in that graph, in the order in which they came. */
typedef struct {
    hash128 graph;
    VEC(uint32_t) at;
    uint32_t growths;
    bool built;                   /* a segment gives it: its order is fixed, it only grows at its end */
    atomic_uint len;              /* at.len, for readers without the claim */
} segment_list;

/* How a node calls a segment: which of its path's values go in and come out. */
typedef struct {
    epoch_link link;
    segment *seg;                 /* NULL: nothing to compute */
    atomic_uint list_len;         /* length of the list that it serves, or that did not compile: not tried again */
    uint32_t nin, nout;
    ref *in, *out;
    char **names;                 /* of out, in the graph: the next segment's placeholders carry them on */
} segment_use;

typedef struct {
    map by_key;                   /* key -> segment * */
    map lists;                    /* canonical graph -> segment_list * */
    VEC(segment *) all;           /* in order of numbers */
    VEC(segment_list *) all_lists;
} segment_store;

void segment_store_fini(segment_store *s);
segment *segment_find(const segment_store *s, hash128 key);
/* A new segment without a program, or NULL: out of memory. */
segment *segment_add(segment_store *s, hash128 key, const char *name);
/* The list of a canonical graph, made if need be. NULL: out of memory. */
segment_list *segment_list_of(segment_store *s, hash128 graph);
bool segment_list_has(const segment_list *l, uint32_t at);
/* Adds a position unless it is there. False: out of memory. */
bool segment_list_add(segment_list *l, uint32_t at);
/* One block for a use with its arrays; NULL: out of memory. */
segment_use *segment_use_new(uint32_t nin, uint32_t nout);
void segment_use_destroy(segment_use *u);
#endif
