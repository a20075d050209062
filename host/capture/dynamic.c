/* Decisions on sizes: what varies, what is marked, what a plan says of each dimension. */
#include "host/capture/dynamic.h"
#include "host/tensor/marks.h"
#include "sdk/base/str.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -- the frame state ----------------------------------------------------------------------------------------------- */

static void drop_seen(seen_source *s)
{
    free(s->name);
    free(s->dims);
    free(s->varies);
    free(s->products);
    free(s);
}

void frame_state_fini(frame_state *s)
{
    for (uint32_t i = 0; i < s->all.len; i++)
        drop_seen(s->all.at[i]);
    vec_fini(&s->all);
    map_fini(&s->by_name);
}

static uint32_t count_of(const plan_subject *s)
{
    return s->t ? 2u * s->t->rank : 1;
}

static int64_t value_at(const plan_subject *s, uint32_t k)
{
    return s->t ? s->t->sizes[k].value : s->number;
}

/* The dimension whose size and stride multiply to stride d, among those of smaller strides; -1: none. Of several, the
 * one with the largest stride: then the innermost one. */
static int8_t product_of(const bp_tensor *t, uint32_t d)
{
    int8_t best = -1;
    int64_t step = t->strides[d].value;
    for (uint32_t j = 0; step > 1 && j < t->rank; j++) {
        int64_t of = t->strides[j].value, size = t->sizes[j].value;
        if (j == d || size < 1 || of < 1 || step % of || step / of != size || of > step || (of == step && j < d))
            continue;
        if (best < 0 || of > t->strides[best].value)
            best = (int8_t)j;
    }
    return best;
}

static bool fill(seen_source *to, const plan_subject *s)
{
    uint32_t n = count_of(s);
    int64_t *dims = realloc(to->dims, (n + 1u) * sizeof *dims);
    to->dims = dims ? dims : to->dims;
    uint8_t *varies = realloc(to->varies, n + 1u);
    to->varies = varies ? varies : to->varies;
    int8_t *products = realloc(to->products, n + 1u);
    to->products = products ? products : to->products;
    if (!dims || !varies || !products)
        return false;
    to->is_number = !s->t;
    to->rank = s->t ? s->t->rank : 0;
    for (uint32_t k = 0; k < n; k++) {
        dims[k] = value_at(s, k);
        varies[k] = 0;
        products[k] = s->t && k >= s->t->rank ? product_of(s->t, k - s->t->rank) : -1;
    }
    return true;
}

static seen_source *find_seen(frame_state *st, const plan_subject *s, bool *is_new)
{
    map_value *v = map_put(&st->by_name, str_of(s->name), is_new);
    if (!v || v->p)
        return v ? v->p : NULL;
    *is_new = true;
    seen_source *to = calloc(1, sizeof *to);
    if (!to || !(to->name = strdup(s->name)) || !fill(to, s) || !vec_push(&st->all, to)) {
        if (to)
            drop_seen(to);
        map_del(&st->by_name, str_of(s->name));
        return NULL;
    }
    return v->p = to;
}

/* A stride that follows from other sizes as before has not varied by itself. */
static bool same(const seen_source *was, const plan_subject *s, uint32_t k)
{
    int8_t product = s->t && k >= s->t->rank ? product_of(s->t, k - s->t->rank) : -1;
    return was->dims[k] == value_at(s, k) || (product >= 0 && product == was->products[k]);
}

/* Compares a source with what was seen under its name, and remembers. *old: values before, in a; NULL: nothing was
 * seen. NULL: out of memory. */
static const seen_source *see(arena *a, frame_state *st, const plan_subject *s, int64_t **old)
{
    bool is_new = false;
    seen_source *was = find_seen(st, s, &is_new);
    uint32_t n = count_of(s);
    *old = NULL;
    if (!was || is_new)
        return was;
    if (was->is_number != !s->t || (s->t && was->rank != s->t->rank)) {
        was->rank_varies = !was->is_number && s->t;
        if (!fill(was, s))
            return NULL;
        memset(was->varies, was->rank_varies ? SEEN_VARIES : 0, s->t ? s->t->rank : 1);
        return was;
    }
    *old = arena_memdup(a, was->dims, n * sizeof **old);
    for (uint32_t k = 0; *old && k < n; k++) {
        was->varies[k] &= (uint8_t)~SEEN_NEW;
        if (!same(was, s, k) && !was->varies[k])
            was->varies[k] = SEEN_VARIES | SEEN_NEW;
        was->dims[k] = value_at(s, k);
        was->products[k] = s->t && k >= s->t->rank ? product_of(s->t, k - s->t->rank) : -1;
    }
    return *old ? was : NULL;
}

/* -- one dimension ------------------------------------------------------------------------------------------------- */

/* "x" and "L['x']" name a source. */
static bool is_listed(const char *list, const plan_subject *s)
{
    buf text = {0};
    bool found = false;
    guard_print_source(&(guard_source){s->name, s->role}, SYM_VALUE, 0, &text);
    for (const char *p = list; p && *p && !found;) {
        size_t n = strcspn(p, ",");
        str word = str_trim((str){p, n});
        found = str_is(word, s->name) || str_is(word, buf_text(&text));
        p += n + (p[n] == ',');
    }
    buf_fini(&text);
    return found;
}

enum dim_policy { DIM_STATIC, DIM_DUCK, DIM_DYNAMIC, DIM_UNBACKED };
typedef struct {
    bp_ctx *c;
    const size_policy *p;
    const plan_subject *s;
    const tensor_marks *marks;
    const seen_source *seen;
    const int64_t *old;
    plan_numbering *n;
    bool is_static, dynamic, unbacked, fixed; /* by its name or its role */
} deciding;

static bool has(uint64_t set, uint32_t d)
{
    return d < 64 && set >> d & 1;
}

/* Parameters and buffers keep their sizes. */
static bool is_parameter(const plan_subject *s)
{
    return s->role == BP_ROLE_PARAMETER || s->role == BP_ROLE_BUFFER || s->role == BP_ROLE_CONSTANT;
}

static bool is_automatic(const deciding *x, uint32_t k)
{
    bool marked = x->marks && k < x->s->t->rank && has(x->marks->fixed, k);
    return x->p->automatic && x->seen && x->seen->varies[k] && !marked;
}

/* The order of contract 11. */
static enum dim_policy decide_size(const deciding *x, uint32_t k, uint8_t *constraint)
{
    const tensor_marks *m = x->marks;
    bool marked = m && has(m->dynamic, k), automatic = is_automatic(x, k);
    *constraint = CONSTRAINT_NONE;
    if (x->is_static || x->fixed)
        return DIM_STATIC;
    if (marked && !x->p->ignores_marks)
        *constraint = m->ranges[k].min != INT64_MIN || m->ranges[k].max != INT64_MAX ? CONSTRAINT_STRICT
                                                                                     : CONSTRAINT_RELAXED;
    else if (m && has(m->strict, k))
        *constraint = CONSTRAINT_RELAXED;
    else if (automatic && !marked)
        *constraint = CONSTRAINT_WARN;
    if (x->unbacked || (m && has(m->unbacked, k)))
        return DIM_UNBACKED;
    if (marked || x->dynamic || (m && has(m->maybe, k)))
        return DIM_DYNAMIC;
    if (automatic)
        return x->p->mark_as == MARK_AS_UNBACKED ? DIM_UNBACKED : DIM_DYNAMIC;
    if (x->p->static_by_default || (m && has(m->fixed, k)))
        return DIM_STATIC;
    return DIM_DUCK;
}

static bool is_special(const mark_range *r, int64_t v)
{
    for (uint32_t i = 0; r && i < r->nspecial; i++)
        if (r->special[i] == v)
            return true;
    return false;
}

static bp_status new_symbol(deciding *x, uint32_t k, enum dim_policy how, dim_plan *to)
{
    int64_t v = value_at(x->s, k);
    map_value *known = how == DIM_DUCK ? map_put_u64(&x->n->by_value, (uint64_t)v, NULL) : NULL;
    if (how == DIM_DUCK && !known)
        return ctx_nomem(x->c);
    if (known && known->u) {
        to->kind = PLAN_SAME;
        to->symbol = (uint32_t)known->u - 1;
        return BP_OK;
    }
    to->kind = PLAN_SYMBOL;
    to->symbol = x->n->next++;
    if (known)
        known->u = to->symbol + 1u;
    if (x->old && x->seen->varies[k] & SEEN_NEW && !vec_push(&x->n->excluded, ((size_excluded){to->symbol, x->old[k]})))
        return ctx_nomem(x->c);
    return BP_OK;
}

static bp_status plan_size(deciding *x, uint32_t k, dim_plan *to)
{
    int64_t v = value_at(x->s, k);
    const mark_range *r = x->marks ? &x->marks->ranges[k] : NULL;
    enum dim_policy how = decide_size(x, k, &to->constraint);
    if (how == DIM_STATIC || (how != DIM_UNBACKED && (v == 0 || v == 1)) || is_special(r, v))
        return BP_OK;
    to->unbacked = how == DIM_UNBACKED;
    to->min = to->unbacked ? 0 : 2;
    to->min = r && r->min > to->min ? r->min : to->min;
    to->max = r ? r->max : INT64_MAX;
    to->hint = r ? r->hint : INT64_MIN;
    if (v < to->min || v > to->max)
        return ctx_fail(x->c, BP_INVALID_ARGUMENT, "tensor \"%s\" has size %" PRId64 " at index %u, and its mark says %"
                        PRId64 " <= size <= %" PRId64, x->s->name, v, k, to->min, to->max);
    return new_symbol(x, k, how, to);
}

static bool is_symbol(const dim_plan *p)
{
    return p->kind != PLAN_CONSTANT;
}

/* Whether a stride, followed through the products that it is made of, has a symbol in it. */
static bool moves(const dim_plan *dims, const bp_tensor *t, uint32_t d)
{
    for (uint32_t depth = 0; depth <= t->rank; depth++) {
        int8_t of = product_of(t, d);
        if (is_symbol(&dims[t->rank + d]))
            return true;
        if (of < 0)
            return false;
        if (is_symbol(&dims[of]))
            return true;
        d = (uint32_t)of;
    }
    return false;
}

static bp_status plan_strides(deciding *x, dim_plan *dims)
{
    const bp_tensor *t = x->s->t;
    for (uint32_t d = 0; d < t->rank; d++) { /* those that vary by themselves first: products may contain them */
        dim_plan *to = &dims[t->rank + d];
        int64_t v = t->strides[d].value;
        if (v < 2 || x->is_static || x->fixed || !is_automatic(x, t->rank + d))
            continue;
        to->min = 2;
        to->max = INT64_MAX;
        to->hint = INT64_MIN;
        TRY(new_symbol(x, t->rank + d, DIM_DYNAMIC, to));
    }
    for (uint32_t d = 0; d < t->rank; d++) {
        dim_plan *to = &dims[t->rank + d];
        if (is_symbol(to) || !moves(dims, t, d))
            continue;
        to->kind = PLAN_PRODUCT;
        to->of = (uint8_t)product_of(t, d);
    }
    return BP_OK;
}

/* -- a source ------------------------------------------------------------------------------------------------------ */

static bp_status plan_number(deciding *x, dim_plan *to)
{
    bool automatic = is_automatic(x, 0);
    int64_t v = x->s->number;
    bool dynamic = x->dynamic || x->unbacked || automatic || !x->p->static_by_default;
    if (x->fixed || !dynamic || v == 0 || v == 1)
        return BP_OK;
    to->min = INT64_MIN;
    to->max = INT64_MAX;
    to->hint = INT64_MIN;
    to->unbacked = x->unbacked;
    return new_symbol(x, 0, DIM_DYNAMIC, to);
}

bp_status plan_decide(bp_ctx *c, arena *a, const size_policy *p, const plan_subject *s, plan_numbering *n,
                      source_plan *out)
{
    int64_t *old = NULL;
    uint32_t count = count_of(s);
    dim_plan *dims = arena_array(a, count, sizeof *dims);
    deciding x = {.c = c, .p = p, .s = s, .n = n, .marks = s->t ? s->t->marks : NULL};
    x.is_static = is_parameter(s) && p->static_parameters;
    if (!dims || (p->state && !(x.seen = see(a, p->state, s, &old))))
        return ctx_nomem(c);
    x.old = old;
    x.fixed = is_listed(p->static_sources, s);
    x.dynamic = is_listed(p->dynamic_sources, s);
    x.unbacked = is_listed(p->unbacked_sources, s);
    out->marked = s->t && s->t->is_marked ? marks_guarded(s->t) : 0;
    if (!s->t)
        TRY(plan_number(&x, &dims[0]));
    for (uint32_t d = 0; s->t && d < s->t->rank; d++)
        TRY(plan_size(&x, d, &dims[d]));
    if (s->t)
        TRY(plan_strides(&x, dims));
    bool any = false;
    for (uint32_t k = 0; k < count; k++)
        any |= is_symbol(&dims[k]);
    out->ndims = any ? count : 0;
    out->dims = dims;
    return BP_OK;
}

bool plan_copy(arena *a, const source_plan *from, source_plan *to)
{
    *to = *from;
    to->dims = from->ndims ? arena_memdup(a, from->dims, from->ndims * sizeof *to->dims) : NULL;
    return !from->ndims || to->dims;
}

void plan_numbering_fini(plan_numbering *n)
{
    map_fini(&n->by_value);
    vec_fini(&n->excluded);
}
