/* Hash map: linear probing over a power of two of slots, at most three quarters used, tombstones for deleted keys. */
#include "sdk/base/map.h"
#include "sdk/base/hash.h"
#include <stdlib.h>
#include <string.h>

enum { SLOT_EMPTY, SLOT_GONE, SLOT_TEXT, SLOT_NUMBER };

struct map_slot {
    uint64_t hash;
    char *text;      /* a copy with a NUL behind it (SLOT_TEXT) */
    uint64_t number; /* the key (SLOT_NUMBER) or the text's length */
    map_value value;
    int state;
};

typedef struct { uint64_t hash, number; const char *text; int state; } key_of;

static key_of text_key(str key)
{
    return (key_of){hash_bytes(key.s, key.n, 0), key.n, key.s, SLOT_TEXT};
}

static key_of number_key(uint64_t key)
{
    return (key_of){hash_u64(key + 1), key, NULL, SLOT_NUMBER};
}

static bool slot_is(const map_slot *s, const key_of *k)
{
    return s->state == k->state && s->hash == k->hash && s->number == k->number &&
           (k->state == SLOT_NUMBER || k->number == 0 || memcmp(s->text, k->text, k->number) == 0);
}

static map_slot *find(const map *m, const key_of *k)
{
    if (!m->cap)
        return NULL;
    for (uint32_t i = (uint32_t)k->hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        map_slot *s = &m->slots[i];
        if (s->state == SLOT_EMPTY)
            return NULL;
        if (slot_is(s, k))
            return s;
    }
}

static map_slot *free_slot(map_slot *slots, uint32_t cap, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & (cap - 1);
    while (slots[i].state >= SLOT_TEXT)
        i = (i + 1) & (cap - 1);
    return &slots[i];
}

/* Room for one more key; drops the tombstones on the way. */
static bool make_room(map *m)
{
    if ((uint64_t)(m->used + 1) * 4 <= (uint64_t)m->cap * 3)
        return true;
    uint32_t cap = m->cap ? m->cap : 16;
    while ((uint64_t)(m->len + 1) * 2 > cap) {
        if (cap > UINT32_MAX / 2)
            return false;
        cap *= 2;
    }
    map_slot *slots = calloc(cap, sizeof *slots);
    if (!slots)
        return false;
    for (uint32_t i = 0; i < m->cap; i++)
        if (m->slots[i].state >= SLOT_TEXT)
            *free_slot(slots, cap, m->slots[i].hash) = m->slots[i];
    free(m->slots);
    m->slots = slots;
    m->cap = cap;
    m->used = m->len;
    return true;
}

static map_value *put(map *m, const key_of *k, bool *is_new)
{
    map_slot *s = find(m, k);
    if (is_new)
        *is_new = !s;
    if (s)
        return &s->value;
    if (!make_room(m))
        return NULL;
    char *text = NULL;
    if (k->state == SLOT_TEXT) {
        text = k->number < SIZE_MAX ? malloc(k->number + 1) : NULL;
        if (!text)
            return NULL;
        if (k->number)
            memcpy(text, k->text, k->number);
        text[k->number] = '\0';
    }
    s = free_slot(m->slots, m->cap, k->hash);
    m->used += s->state == SLOT_EMPTY;
    m->len++;
    *s = (map_slot){k->hash, text, k->number, {.u = 0}, k->state};
    return &s->value;
}

static bool del(map *m, const key_of *k)
{
    map_slot *s = find(m, k);
    if (!s)
        return false;
    free(s->text);
    *s = (map_slot){.state = SLOT_GONE};
    m->len--;
    return true;
}

void map_fini(map *m)
{
    for (uint32_t i = 0; i < m->cap; i++)
        free(m->slots[i].text);
    free(m->slots);
    *m = (map){0};
}

map_value *map_get(const map *m, str key)
{
    key_of k = text_key(key);
    map_slot *s = find(m, &k);
    return s ? &s->value : NULL;
}

map_value *map_put(map *m, str key, bool *is_new)
{
    key_of k = text_key(key);
    return put(m, &k, is_new);
}

bool map_del(map *m, str key)
{
    key_of k = text_key(key);
    return del(m, &k);
}

map_value *map_get_u64(const map *m, uint64_t key)
{
    key_of k = number_key(key);
    map_slot *s = find(m, &k);
    return s ? &s->value : NULL;
}

map_value *map_put_u64(map *m, uint64_t key, bool *is_new)
{
    key_of k = number_key(key);
    return put(m, &k, is_new);
}

bool map_del_u64(map *m, uint64_t key)
{
    key_of k = number_key(key);
    return del(m, &k);
}

bool map_next(const map *m, uint32_t *i, str *key, map_value **value)
{
    while (*i < m->cap) {
        map_slot *s = &m->slots[(*i)++];
        if (s->state < SLOT_TEXT)
            continue;
        if (key)
            *key = s->state == SLOT_TEXT ? (str){s->text, s->number} : (str){(const char *)&s->number, 8};
        if (value)
            *value = &s->value;
        return true;
    }
    return false;
}
