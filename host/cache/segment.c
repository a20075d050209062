/* The store of compiled segments, and the lists of what canonical graphs hand on. */
#include "host/cache/segment.h"
#include <stdlib.h>
#include <string.h>

static void drop_segment(segment *s)
{
    if (s->program)
        s->destroy(s->program);
    if (s->training)
        s->destroy_training(s->training);
    free(s->name);
    free(s->failure);
    free(s->order);
    free(s);
}

void segment_store_fini(segment_store *s)
{
    for (uint32_t i = 0; i < s->all.len; i++)
        drop_segment(s->all.at[i]);
    for (uint32_t i = 0; i < s->all_lists.len; i++) {
        vec_fini(&s->all_lists.at[i]->at);
        free(s->all_lists.at[i]);
    }
    vec_fini(&s->all);
    vec_fini(&s->all_lists);
    map_fini(&s->by_key);
    map_fini(&s->lists);
}

static str key_bytes(const hash128 *key)
{
    return (str){(const char *)key, sizeof *key};
}

segment *segment_find(const segment_store *s, hash128 key)
{
    map_value *v = map_get(&s->by_key, key_bytes(&key));
    return v ? v->p : NULL;
}

segment *segment_add(segment_store *s, hash128 key, const char *name)
{
    segment *seg = calloc(1, sizeof *seg);
    map_value *v = seg ? map_put(&s->by_key, key_bytes(&key), NULL) : NULL;
    if (!v || !(seg->name = strdup(name)) || !vec_push(&s->all, seg)) {
        if (v)
            map_del(&s->by_key, key_bytes(&key));
        if (seg)
            drop_segment(seg);
        return NULL;
    }
    seg->key = key;
    seg->number = s->all.len - 1;
    v->p = seg;
    return seg;
}

segment_list *segment_list_of(segment_store *s, hash128 graph)
{
    map_value *v = map_put(&s->lists, key_bytes(&graph), NULL);
    if (!v || v->p)
        return v ? v->p : NULL;
    segment_list *l = calloc(1, sizeof *l);
    if (!l || !vec_push(&s->all_lists, l)) {
        free(l);
        map_del(&s->lists, key_bytes(&graph));
        return NULL;
    }
    l->graph = graph;
    v->p = l;
    return l;
}

bool segment_list_has(const segment_list *l, uint32_t at)
{
    for (uint32_t i = 0; i < l->at.len; i++)
        if (l->at.at[i] == at)
            return true;
    return false;
}

bool segment_list_add(segment_list *l, uint32_t at)
{
    if (segment_list_has(l, at))
        return true;
    if (!vec_push(&l->at, at))
        return false;
    atomic_store(&l->len, l->at.len);
    return true;
}

segment_use *segment_use_new(uint32_t nin, uint32_t nout)
{
    segment_use *u = calloc(1, sizeof *u + (size_t)nout * sizeof *u->names + ((size_t)nin + nout) * sizeof *u->in);
    if (!u)
        return NULL;
    u->nin = nin;
    u->nout = nout;
    u->names = (char **)(u + 1);
    u->in = (ref *)(u->names + nout);
    u->out = u->in + nin;
    return u;
}

void segment_use_destroy(segment_use *u)
{
    if (!u)
        return;
    for (uint32_t i = 0; i < u->nout; i++)
        free(u->names[i]);
    free(u);
}
