/* Flattening nested values, and building them again from their spec. */
#include "host/capture/tree.h"
#include "host/graph/lex.h"
#include "sdk/base/map.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a leaf is called in a spec. */
static const struct { const char *word; uint32_t kind; } leaf_kinds[] = {
    {"*", BP_VALUE_TENSOR}, {"int", BP_VALUE_INT}, {"float", BP_VALUE_FLOAT}, {"bool", BP_VALUE_BOOL},
    {"str", BP_VALUE_STRING},
};
enum { NLEAF_KINDS = sizeof leaf_kinds / sizeof *leaf_kinds };

/* -- flattening ---------------------------------------------------------------------------------------------------- */

typedef struct {
    bp_ctx *c;
    flat_tree *to;
    buf path;
    bool tensors_only;
    uint32_t depth;
} flattener;

static bp_status wrong(flattener *x, const char *what)
{
    return ctx_fail(x->c, BP_INVALID_ARGUMENT, "\"%s\" %s", buf_text(&x->path), what);
}

static void cut(buf *b, size_t n)
{
    b->n = n;
    if (b->s)
        b->s[n] = 0;
}

static void put_key(buf *out, const char *key)
{
    buf_putc(out, '"');
    for (; *key; key++) {
        if ((unsigned char)*key < ' ')
            buf_printf(out, "\\x%02x", (unsigned)*key);
        else
            buf_printf(out, *key == '"' || *key == '\\' ? "\\%c" : "%c", *key);
    }
    buf_puts(out, "\": ");
}

static bp_status add_leaf(flattener *x, const bp_value *v)
{
    if (v->kind == BP_VALUE_NONE) {
        buf_puts(&x->to->spec, "None");
        return BP_OK;
    }
    uint32_t k = 0;
    while (k < NLEAF_KINDS && leaf_kinds[k].kind != v->kind)
        k++;
    if (k == NLEAF_KINDS)
        return wrong(x, "is of a kind that no tree holds: expected a tensor, None, a number, a string, list or map");
    if (x->tensors_only && v->kind != BP_VALUE_TENSOR)
        return wrong(x, "is a number or a string, and a result is a tensor or None");
    if ((v->kind == BP_VALUE_TENSOR && !v->v.tensor) || (v->kind == BP_VALUE_STRING && !v->v.str))
        return wrong(x, "is NULL: pass kind NONE for none");
    buf_puts(&x->to->spec, leaf_kinds[k].word);
    return vec_push(&x->to->leaves, *v) ? BP_OK : ctx_nomem(x->c);
}

static bp_status add(flattener *x, const bp_value *v);

/* The keys of a map are different strings. */
static bp_status check_keys(flattener *x, const bp_value *v)
{
    map seen = {0};
    bp_status st = BP_OK;
    for (uint32_t i = 0; i < v->count && st == BP_OK; i += 2) {
        const bp_value *key = &v->v.items[i];
        bool fresh = false;
        if (key->kind != BP_VALUE_STRING || !key->v.str)
            st = wrong(x, "is a map with a key that is no string");
        else if (!map_put(&seen, str_of(key->v.str), &fresh))
            st = ctx_nomem(x->c);
        else if (!fresh)
            st = ctx_fail(x->c, BP_INVALID_ARGUMENT, "\"%s\" is a map with two values of the key \"%s\"",
                          buf_text(&x->path), key->v.str);
    }
    map_fini(&seen);
    return st;
}

static bp_status add_items(flattener *x, const bp_value *v)
{
    bool is_map = v->kind == BP_VALUE_MAP;
    uint32_t each = is_map ? 2 : 1;
    size_t here = x->path.n;
    if (v->count && !v->v.items)
        return wrong(x, "has items that are NULL");
    if (v->count % each)
        return wrong(x, "is a map with an odd number of items: expected a key and a value each");
    if (is_map)
        TRY(check_keys(x, v));
    for (uint32_t i = 0; i < v->count; i += each) {
        const bp_value *key = &v->v.items[i];
        buf_puts(&x->to->spec, i ? ", " : "");
        if (is_map) {
            put_key(&x->to->spec, key->v.str);
            buf_printf(&x->path, ".%s", key->v.str);
        } else {
            buf_printf(&x->path, "[%u]", i);
        }
        TRY(add(x, &v->v.items[i + each - 1]));
        cut(&x->path, here);
    }
    return BP_OK;
}

static bp_status add(flattener *x, const bp_value *v)
{
    if (v->kind != BP_VALUE_LIST && v->kind != BP_VALUE_MAP)
        return add_leaf(x, v);
    if (x->depth >= TREE_DEPTH)
        return ctx_fail(x->c, BP_INVALID_ARGUMENT, "lists and maps are nested more than %d deep", TREE_DEPTH);
    x->depth++;
    buf_putc(&x->to->spec, v->kind == BP_VALUE_MAP ? '{' : '[');
    TRY(add_items(x, v));
    buf_putc(&x->to->spec, v->kind == BP_VALUE_MAP ? '}' : ']');
    x->depth--;
    return BP_OK;
}

bp_status tree_flatten(bp_ctx *c, const char *name, const bp_value *t, bool tensors_only, flat_tree *to)
{
    flattener x = {.c = c, .to = to, .tensors_only = tensors_only};
    buf_puts(&x.path, name);
    bp_status st = add(&x, t);
    if (st == BP_OK && (to->spec.failed || x.path.failed))
        st = ctx_nomem(c);
    buf_fini(&x.path);
    return st;
}

void flat_tree_fini(flat_tree *t)
{
    buf_fini(&t->spec);
    vec_fini(&t->leaves);
}

/* -- building ------------------------------------------------------------------------------------------------------ */

typedef struct {
    lexer x;
    arena *a;
    buf path;
    tree_leaf_fn leaf;
    void *arg;
    uint32_t next, nleaves, depth;
} builder;

/* Names become those of placeholders: what is no part of a word is a line. */
static void add_to_path(builder *b, const char *key)
{
    buf_putc(&b->path, '.');
    for (; *key; key++) {
        bool word = (*key >= 'a' && *key <= 'z') || (*key >= 'A' && *key <= 'Z') || (*key >= '0' && *key <= '9');
        buf_putc(&b->path, word ? *key : '_');
    }
}

static bp_status build(builder *b, bp_value *out);

static bp_status build_item(builder *b, uint32_t i, bool is_map, bp_value *items)
{
    char index[16];
    const char *key = index;
    size_t here = b->path.n;
    snprintf(index, sizeof index, "%u", i);
    if (is_map) {
        TRY(lex_string(&b->x, b->a, "a key", &key));
        TRY(lex_expect(&b->x, ':', "a colon"));
        items[0] = (bp_value){BP_VALUE_STRING, 0, {.str = key}};
    }
    add_to_path(b, key);
    TRY(build(b, &items[is_map]));
    cut(&b->path, here);
    return BP_OK;
}

static bp_status build_items(builder *b, bool is_map, bp_value *out)
{
    VEC(bp_value) items = {0};
    bp_status st = BP_OK;
    char close = is_map ? '}' : ']';
    for (uint32_t i = 0; st == BP_OK && !lex_take(&b->x, close); i++) {
        bp_value pair[2];
        st = i ? lex_expect(&b->x, ',', "a comma") : BP_OK;
        if (st == BP_OK)
            st = build_item(b, i, is_map, pair);
        for (uint32_t k = 0; st == BP_OK && k <= is_map; k++)
            st = vec_push(&items, pair[k]) ? BP_OK : ctx_nomem(b->x.c);
    }
    *out = (bp_value){is_map ? BP_VALUE_MAP : BP_VALUE_LIST, items.len, {.items = NULL}};
    if (st == BP_OK && items.len && !(out->v.items = arena_memdup(b->a, items.at, items.len * sizeof *items.at)))
        st = ctx_nomem(b->x.c);
    vec_fini(&items);
    return st;
}

static bp_status build_leaf(builder *b, bp_value *out)
{
    str word = lex_take(&b->x, '*') ? STR("*") : lex_word(&b->x);
    *out = (bp_value){0};
    if (str_is(word, "None"))
        return BP_OK;
    uint32_t k = 0;
    while (k < NLEAF_KINDS && !str_is(word, leaf_kinds[k].word))
        k++;
    if (k == NLEAF_KINDS)
        return lex_unexpected(&b->x, "a leaf, a list or a map");
    uint32_t i = b->next++;
    if (i >= b->nleaves) /* they are counted when the spec has ended */
        return BP_OK;
    if (b->path.failed)
        return ctx_nomem(b->x.c);
    return b->leaf(b->arg, i, leaf_kinds[k].kind, buf_text(&b->path), out);
}

static bp_status build(builder *b, bp_value *out)
{
    bool is_map = lex_take(&b->x, '{');
    if (!is_map && !lex_take(&b->x, '['))
        return build_leaf(b, out);
    if (b->depth >= TREE_DEPTH)
        return ctx_fail(b->x.c, BP_INVALID_ARGUMENT, "lists and maps are nested more than %d deep", TREE_DEPTH);
    b->depth++;
    TRY(build_items(b, is_map, out));
    b->depth--;
    return BP_OK;
}

bp_status tree_build(bp_ctx *c, arena *a, const char *spec, uint32_t nleaves, tree_leaf_fn leaf, void *arg,
                     bp_value *out)
{
    builder b = {.x = {c, "a tree", spec, spec + strlen(spec), spec, 1}, .a = a, .leaf = leaf, .arg = arg};
    b.nleaves = nleaves;
    buf_puts(&b.path, "in");
    bp_status st = build(&b, out);
    if (st == BP_OK && !lex_at_end(&b.x))
        st = lex_unexpected(&b.x, "the end");
    if (st == BP_OK && b.next != nleaves)
        st = ctx_fail(c, BP_INVALID_ARGUMENT, "a tree of %u leaves comes with %u values: %s", b.next, nleaves, spec);
    buf_fini(&b.path);
    return st;
}

/* -- frames -------------------------------------------------------------------------------------------------------- */

static bp_status leaf_of_frame(void *arg, uint32_t i, uint32_t kind, const char *name, bp_value *out)
{
    bp_frame *f = arg;
    i++; /* behind the spec */
    switch (kind) {
    case BP_VALUE_INT: *out = bp_arg_of_int(bp_arg_int(f, i, name)); break;
    case BP_VALUE_FLOAT: *out = bp_arg_of_float(bp_arg_float(f, i, name)); break;
    case BP_VALUE_BOOL: *out = bp_arg_of_bool(bp_arg_bool(f, i, name)); break;
    case BP_VALUE_STRING: *out = bp_arg_of_str(bp_arg_str(f, i, name)); break;
    default: *out = bp_arg_of_tensor(bp_arg(f, i, name)); break;
    }
    return f->c->diag.code;
}

const bp_value *bp_arg_tree(bp_frame *f)
{
    const char *spec = bp_arg_str(f, 0, "tree");
    if (!ctx_ok(f->c))
        return NULL;
    bp_value *out = arena_alloc(&f->trees, sizeof *out);
    if (!out)
        return ctx_nomem(f->c), NULL;
    bp_status st = tree_build(f->c, &f->trees, spec, f->nargs - 1, leaf_of_frame, f, out);
    return st == BP_OK ? out : NULL;
}

void bp_return_tree(bp_frame *f, const bp_value *t)
{
    if (!ctx_ok(f->c))
        return;
    flat_tree flat = {0};
    if (!t)
        ctx_fail(f->c, BP_INVALID_ARGUMENT, "bp_return_tree: the tree is NULL");
    else if (f->spec || f->returns.len)
        ctx_fail(f->c, BP_FAILED_PRECONDITION, "bp_return_tree gives all results, and others were given before it");
    else if (tree_flatten(f->c, "out", t, true, &flat) == BP_OK) {
        for (uint32_t i = 0; i < flat.leaves.len; i++)
            bp_return(f, flat.leaves.at[i].v.tensor);
        f->spec = arena_strdup(&f->trees, buf_text(&flat.spec));
        f->failed |= !f->spec;
    }
    flat_tree_fini(&flat);
}

bp_status tree_give(bp_ctx *c, const bp_outputs *outs, const char *spec)
{
    const capture_slot *slot = c->slot[CTX_CAPTURE];
    tree_wish *w = slot ? slot->wish : NULL;
    if (!w || w->outs != outs)
        return BP_OK;
    free(w->spec);
    w->spec = spec ? str_dup(str_of(spec)) : NULL;
    return spec && !w->spec ? ctx_nomem(c) : BP_OK;
}

/* -- looking into trees -------------------------------------------------------------------------------------------- */

uint32_t bp_tree_count(const bp_value *t)
{
    return t && t->kind == BP_VALUE_LIST ? t->count : t && t->kind == BP_VALUE_MAP ? t->count / 2 : 0;
}

const bp_value *bp_tree_at(const bp_value *t, uint32_t i)
{
    if (i >= bp_tree_count(t))
        return NULL;
    return t->kind == BP_VALUE_MAP ? &t->v.items[2 * (size_t)i + 1] : &t->v.items[i];
}

const bp_value *bp_tree_get(const bp_value *t, const char *key)
{
    for (uint32_t i = 0; key && t && t->kind == BP_VALUE_MAP && i + 1 < t->count; i += 2)
        if (t->v.items[i].kind == BP_VALUE_STRING && t->v.items[i].v.str && !strcmp(t->v.items[i].v.str, key))
            return &t->v.items[i + 1];
    return NULL;
}

bp_tensor *bp_tree_tensor(const bp_value *t)
{
    return t && t->kind == BP_VALUE_TENSOR ? t->v.tensor : NULL;
}
