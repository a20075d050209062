/* Building: records are gathered as they are asked for, put in the order of guards.def, and packed into one block with
 * what they point to. Identity is worked out at the end, since it depends on which inputs are guarded. */
#include "host/guard/set.h"
#include "sdk/base/vec.h"
#include <string.h>

typedef VEC(guard_rec) rec_vec;

struct guard_builder {
    bp_ctx *c;
    const guard_source *sources;
    const guard_inputs *in;
    uint32_t nsources;
    rec_vec recs[GUARD_KINDS];     /* by kind, but all of one input under TENSOR: inputs keep their order */
    VEC(uint64_t) words;
    uint8_t *added;                /* inputs with a guard of their own */
    guard_shape *shape;
    bool identity, failed;
};

static void destroy_builder(guard_builder *b)
{
    for (int k = 0; k < GUARD_KINDS; k++)
        vec_fini(&b->recs[k]);
    vec_fini(&b->words);
    guard_shape_destroy(b->shape);
    free(b->added);
    free(b);
}

static void out_of_memory(guard_builder *b)
{
    b->failed = true;
    ctx_nomem(b->c);
}

/* Zeroed room for n words; its index. 0 after a failure, which is then recorded. */
static uint32_t add_words(guard_builder *b, uint64_t n)
{
    uint32_t at = b->words.len;
    if (b->failed || !vec_reserve(&b->words, at + n)) {
        out_of_memory(b);
        return 0;
    }
    memset(b->words.at + at, 0, n * sizeof(uint64_t));
    b->words.len += (uint32_t)n;
    return at;
}

static void add_rec(guard_builder *b, guard_rec r)
{
    bool of_input = r.kind >= GUARD_TENSOR && r.kind <= GUARD_STRING;
    rec_vec *v = &b->recs[of_input ? GUARD_TENSOR : r.kind];
    if (!b->failed && !vec_push(v, r))
        out_of_memory(b);
}

/* A mark a source; NULL after a failure. */
static uint8_t *add_marks(guard_builder *b, uint32_t *at)
{
    *at = add_words(b, (uint64_t)b->nsources / 8 + 1);
    return b->failed ? NULL : (uint8_t *)(b->words.at + *at);
}

guard_builder *guard_begin(bp_ctx *c, const guard_source *sources, uint32_t nsources, const guard_inputs *in)
{
    guard_builder *b = calloc(1, sizeof *b);
    uint8_t *added = b ? calloc((size_t)nsources + 1, 1) : NULL;
    if (!added) {
        free(b);
        ctx_nomem(c);
        return NULL;
    }
    *b = (guard_builder){.c = c, .sources = sources, .in = in, .nsources = nsources, .added = added};
    return b;
}

void guard_add_ambient(guard_builder *b)
{
    if (!b || b->recs[GUARD_AMBIENT].len)
        return;
    uint32_t at = add_words(b, sizeof(ambient) / 8);
    if (b->failed)
        return;
    memcpy(b->words.at + at, &b->c->ambient, sizeof(ambient));
    add_rec(b, (guard_rec){.kind = GUARD_AMBIENT, .at = at});
    add_rec(b, (guard_rec){.kind = GUARD_COUNT, .word = b->in->nargs});
}

static void add_tensor(guard_builder *b, uint32_t i, const bp_tensor *t)
{
    uint32_t n = 2u * t->rank, at = add_words(b, n);
    for (uint32_t k = 0; k < n && !b->failed; k++)
        b->words.at[at + k] = (uint64_t)t->sizes[k].value;
    add_rec(b, (guard_rec){.kind = GUARD_TENSOR, .source = i, .at = at, .word = guard_meta_word(t)});
}

/* Expected values, then masks. */
static void add_dynamic(guard_builder *b, uint32_t i, const bp_tensor *t, const tensor_meta *like, uint64_t marked)
{
    uint32_t n = 2u * t->rank, at = add_words(b, 2u * n + 1u);
    for (uint32_t k = 0; k < n && !b->failed; k++) {
        bp_dim d = k < t->rank ? like->sizes[k] : like->strides[k - t->rank];
        b->words.at[at + k] = dim_is_const(d) ? (uint64_t)t->sizes[k].value : 0;
        b->words.at[at + n + k] = dim_is_const(d) ? UINT64_MAX : 0;
    }
    if (!b->failed)
        b->words.at[at + 2 * n] = marked;
    add_rec(b, (guard_rec){.kind = GUARD_DYNAMIC, .source = i, .at = at, .word = guard_unmarked(guard_meta_word(t))});
}

static void add_string(guard_builder *b, uint32_t i, const char *s)
{
    size_t n = s ? strlen(s) + 1 : 0;
    uint32_t at = add_words(b, n / 8 + 1);
    if (!b->failed && n)
        memcpy(b->words.at + at, s, n);
    add_rec(b, (guard_rec){.kind = GUARD_STRING, .source = i, .at = at, .word = s != NULL});
}

/* The value of an input that gets a guard now; NULL: it has one, or there is none. */
static const bp_value *begin_input(guard_builder *b, uint32_t i)
{
    if (!b || b->failed || (i < b->nsources && b->added[i]))
        return NULL;
    const bp_value *v = guard_value(b->in, i);
    if (i >= b->nsources || !v) {
        b->failed = true;
        ctx_fail(b->c, BP_INTERNAL, "input %u is guarded, and the call brought %u", i, b->in->n);
        return NULL;
    }
    b->added[i] = 1;
    return v;
}

void guard_add_dynamic(guard_builder *b, uint32_t i, const tensor_meta *like, uint64_t marked)
{
    const bp_value *v = begin_input(b, i);
    if (v && v->kind == BP_VALUE_TENSOR)
        add_dynamic(b, i, v->v.tensor, like, marked);
}

void guard_add_integer(guard_builder *b, uint32_t i)
{
    if (begin_input(b, i))
        add_rec(b, (guard_rec){.kind = GUARD_INTEGER, .source = i});
}

void guard_add_shapes(guard_builder *b, const guard_shapes *s)
{
    if (!b || b->failed || b->shape)
        return;
    b->shape = guard_shape_new(b->c, s);
    if (b->shape)
        add_rec(b, (guard_rec){.kind = GUARD_SHAPE});
    else
        b->failed = true;
}

void guard_add_input(guard_builder *b, uint32_t i)
{
    const bp_value *v = begin_input(b, i);
    if (!v)
        return;
    guard_rec r = {.source = i};
    switch (v->kind) {
    case BP_VALUE_TENSOR: add_tensor(b, i, v->v.tensor); return;
    case BP_VALUE_STRING: add_string(b, i, v->v.str); return;
    case BP_VALUE_NONE: r.kind = GUARD_NONE; break;
    case BP_VALUE_BOOL: r.kind = GUARD_BOOL, r.word = v->v.i != 0; break;
    case BP_VALUE_INT: r.kind = GUARD_INT, r.word = (uint64_t)v->v.dim.value; break;
    case BP_VALUE_FLOAT: r.kind = GUARD_FLOAT, r.word = guard_float_bits(v->v.f[0]); break;
    default:
        b->failed = true;
        ctx_fail(b->c, BP_INVALID_ARGUMENT, "argument \"%s\" has kind %u, which is no argument of a captured function",
                 b->sources[i].name, v->kind);
        return;
    }
    add_rec(b, r);
}

void guard_add_version(guard_builder *b, uint32_t i)
{
    const bp_tensor *t = b && !b->failed ? guard_tensor(b->in, i) : NULL;
    if (t)
        add_rec(b, (guard_rec){.kind = GUARD_VERSION, .source = i, .word = atomic_load(&t->store->version)});
}

void guard_add_identity(guard_builder *b)
{
    if (b)
        b->identity = true;
}

/* -- identity and layout ------------------------------------------------------------------------------------------- */

/* The first source that is the same tensor as source i. */
static uint32_t first_of(const guard_builder *b, uint32_t i)
{
    const bp_tensor *t = guard_tensor(b->in, i);
    for (uint32_t k = 0; k < i; k++)
        if (guard_tensor(b->in, k) == t)
            return k;
    return i;
}

/* Each tensor that is guarded here is told apart from all others, guarded here or elsewhere: an ancestor of this set
 * may hold the other one's guard. Of inputs that are one object, the first stands for all. */
static void work_out_identity(guard_builder *b)
{
    uint32_t at, ntensors = 0, others = 0;
    uint8_t *marks = add_marks(b, &at);
    for (uint32_t i = 0; marks && i < b->nsources; i++) {
        if (!guard_tensor(b->in, i))
            continue;
        uint32_t first = first_of(b, i);
        if (first == i)
            ntensors++;
        else if (b->added[i] || b->added[first])
            add_rec(b, (guard_rec){.kind = GUARD_ALIAS, .source = i, .word = first});
        if (marks[first] != 1)
            marks[first] = b->added[i] ? 1 : 2;
    }
    for (uint32_t i = 0; marks && i < b->nsources; i++)
        others |= marks[i] == 2;
    if (ntensors > 1)
        add_rec(b, (guard_rec){.kind = GUARD_DISTINCT, .at = at, .others = others, .word = b->nsources});
}

/* Marks what overlaps source i, directly or through others. */
static void mark_component(const guard_builder *b, uint32_t i, uint8_t *marks)
{
    marks[i] = 1;
    for (bool grew = true; grew;) {
        grew = false;
        for (uint32_t j = 0; j < b->nsources; j++) {
            const bp_tensor *t = marks[j] ? NULL : guard_tensor(b->in, j);
            for (uint32_t k = 0; t && !marks[j] && k < b->nsources; k++) {
                if (marks[k] && tensor_may_overlap(t, guard_tensor(b->in, k))) {
                    marks[j] = 1;
                    grew = true;
                }
            }
        }
    }
}

static void add_overlap(guard_builder *b, uint32_t i, uint32_t j)
{
    uint32_t at = add_words(b, 2);
    if (b->failed)
        return;
    b->words.at[at] = j;
    b->words.at[at + 1] = (uint64_t)guard_distance(guard_tensor(b->in, i), guard_tensor(b->in, j));
    add_rec(b, (guard_rec){.kind = GUARD_OVERLAP, .source = i, .at = at});
}

/* Each two members that overlap keep their distance; a chain of overlaps holds the others in place. */
static void add_component(guard_builder *b, uint32_t at)
{
    for (uint32_t j = 0; j < b->nsources && !b->failed; j++) {
        if (!((const uint8_t *)(b->words.at + at))[j])
            continue;
        for (uint32_t k = j + 1; k < b->nsources && !b->failed; k++)
            if (((const uint8_t *)(b->words.at + at))[k] &&
                tensor_may_overlap(guard_tensor(b->in, j), guard_tensor(b->in, k)))
                add_overlap(b, j, k);
    }
}

void guard_add_layout(guard_builder *b, uint32_t i)
{
    if (!b || b->failed || i >= b->nsources || !guard_tensor(b->in, i))
        return;
    for (uint32_t k = 0; k < b->recs[GUARD_DISJOINT].len; k++)
        if (((const uint8_t *)(b->words.at + b->recs[GUARD_DISJOINT].at[k].at))[i])
            return; /* a component that is guarded already */
    uint32_t at;
    uint8_t *marks = add_marks(b, &at);
    if (!marks)
        return;
    mark_component(b, i, marks);
    add_component(b, at);
    add_rec(b, (guard_rec){.kind = GUARD_DISJOINT, .source = i, .at = at});
}

/* -- packing ------------------------------------------------------------------------------------------------------- */

static size_t text_bytes(const guard_builder *b)
{
    size_t n = 0;
    for (uint32_t i = 0; i < b->nsources; i++)
        n += strlen(b->sources[i].name) + 1;
    return n;
}

static void find_usual(guard_set *g)
{
    const guard_rec *r = g->recs, *end = r + g->nrecs;
    if (end - r >= 2 && r[0].kind == GUARD_AMBIENT && r[1].kind == GUARD_COUNT) {
        g->ambient = g->words + r[0].at;
        g->nargs = (uint32_t)r[1].word;
        r += 2;
    }
    for (g->tensors = r; r < end && r->kind == GUARD_TENSOR;)
        r++;
    g->behind = r;
    g->is_pair = r < end && r->kind == GUARD_DISTINCT && r->word == 2 && !r->others;
    r += g->is_pair;
    g->rest = r < end ? r : NULL;
}

/* Fills a zeroed block: header, records, words, name offsets, roles, names. */
static void pack(const guard_builder *b, guard_set *g)
{
    guard_rec *recs = (guard_rec *)(g + 1);
    for (int k = 0; k < GUARD_KINDS; k++)
        for (uint32_t i = 0; i < b->recs[k].len; i++)
            recs[g->nrecs++] = b->recs[k].at[i];
    uint64_t *words = (uint64_t *)(recs + g->nrecs);
    g->nwords = b->words.len;
    if (g->nwords)
        memcpy(words, b->words.at, g->nwords * sizeof *words);
    uint32_t *names = (uint32_t *)(words + g->nwords);
    int32_t *roles = (int32_t *)(names + b->nsources);
    char *text = (char *)(roles + b->nsources), *end = text;
    for (uint32_t i = 0; i < b->nsources; i++) {
        size_t n = strlen(b->sources[i].name) + 1;
        names[i] = (uint32_t)(end - text);
        roles[i] = b->sources[i].role;
        memcpy(end, b->sources[i].name, n);
        end += n;
    }
    g->nsources = b->nsources;
    g->recs = recs;
    g->words = words;
    g->names = names;
    g->roles = roles;
    g->text = text;
    find_usual(g);
}

static guard_set *make_set(guard_builder *b)
{
    size_t nrecs = 0;
    for (int k = 0; k < GUARD_KINDS; k++)
        nrecs += b->recs[k].len;
    size_t nbytes = sizeof(guard_set) + nrecs * sizeof(guard_rec) + b->words.len * sizeof(uint64_t) +
                    (size_t)b->nsources * 8 + text_bytes(b);
    guard_set *g = nbytes <= UINT32_MAX ? calloc(1, nbytes) : NULL;
    if (!g) {
        out_of_memory(b);
        return NULL;
    }
    g->nbytes = (uint32_t)nbytes;
    pack(b, g);
    g->shape = b->shape;
    b->shape = NULL;
    return g;
}

/* A guard that does not hold for the very inputs it came from would compile anew at every call. */
static bool holds_for_its_own_inputs(guard_builder *b, const guard_set *g)
{
    buf why = {0};
    bool fails = guard_explain(g, b->c, b->in, &why);
    if (fails)
        ctx_fail(b->c, BP_INTERNAL, "guard check failed: %s", buf_text(&why));
    buf_fini(&why);
    return !fails;
}

guard_set *guard_finish(guard_builder *b)
{
    if (!b)
        return NULL;
    if (b->identity && !b->failed)
        work_out_identity(b);
    guard_set *g = b->failed ? NULL : make_set(b);
    if (g && !holds_for_its_own_inputs(b, g)) {
        guard_destroy(g);
        g = NULL;
    }
    destroy_builder(b);
    return g;
}

void guard_destroy(guard_set *g)
{
    if (g)
        guard_shape_destroy(g->shape);
    free(g);
}

uint32_t guard_count(const guard_set *g)
{
    return g->nrecs;
}

size_t guard_nbytes(const guard_set *g)
{
    return g->nbytes;
}
