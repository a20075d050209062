/* Metadata with symbols in place of sizes (symbolic.h). */
#include "host/tools/symbolic.h"
#include "sdk/base/checked.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool symbolic_begin(bp_ctx *c, uint64_t seed, symbolic *s)
{
    *s = (symbolic){.c = c, .e = sym_env_new(), .random = seed * 0x9e3779b97f4a7c15u | 1};
    return s->e != NULL;
}

void symbolic_end(symbolic *s)
{
    sym_env_unref(s->e);
    s->e = NULL;
}

uint64_t symbolic_random(symbolic *s, uint64_t below)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return (s->random * 0x2545f4914f6cdd1du >> 33) % below;
}

/* -- symbols ------------------------------------------------------------------------------------------------------- */

bp_dim symbolic_number(symbolic *s, int64_t v)
{
    if (v < 2)
        return dim_const(v);
    for (uint32_t k = 0; !s->apart && k < sym_symbol_count(s->e); k++)
        if (sym_symbol_at(s->e, k)->hint == v)
            return sym_dim_of(s->e, k);
    char name[32];
    snprintf(name, sizeof name, "s%u", sym_symbol_count(s->e));
    return sym_add_symbol(s->e, s->c, &(sym_symbol){.name = name, .hint = v, .min = 2, .max = INT64_MAX,
                                                    .source = {.at = SYM_NO_SOURCE}});
}

/* The dimensions of t by their strides, the smallest first; a later dimension before an earlier one of equal stride. */
static void by_stride(const tensor_meta *m, uint32_t *order)
{
    for (uint32_t i = 0; i < m->rank; i++) {
        uint32_t d = m->rank - 1 - i, at = i;
        for (; at && m->strides[order[at - 1]].value > m->strides[d].value; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
}

/* What a stride is as an expression: 0, 1, or how far a dimension below it goes; else a symbol. */
static bp_dim stride_of(symbolic *s, const tensor_meta *real, const tensor_meta *out, const uint32_t *order, uint32_t i)
{
    int64_t v = real->strides[order[i]].value;
    for (uint32_t j = i; j-- > 0;) {
        uint32_t d = order[j];
        int64_t most = real->sizes[d].value > 1 ? real->sizes[d].value : 1;
        if (real->strides[d].value && v == real->strides[d].value * most)
            return dim_mul(s->c, out->strides[d], real->sizes[d].value > 1 ? out->sizes[d] : dim_const(1));
    }
    return symbolic_number(s, v);
}

bp_tensor *symbolic_fake(symbolic *s, const tensor_meta *real)
{
    bp_dim sizes[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    uint32_t order[TENSOR_MAX_RANK];
    tensor_meta m = *real;
    m.sizes = sizes;
    m.strides = strides;
    sym_scope former = sym_push(s->e, s->c);
    for (uint32_t d = 0; d < m.rank; d++)
        sizes[d] = symbolic_number(s, real->sizes[d].value);
    by_stride(real, order);
    for (uint32_t i = 0; i < m.rank; i++)
        strides[order[i]] = stride_of(s, real, &m, order, i);
    bp_tensor *t = ctx_ok(s->c) ? tensor_new_fake(s->c, &m) : NULL;
    sym_pop(former);
    return t;
}

/* -- values -------------------------------------------------------------------------------------------------------- */

void symbolic_hints(const symbolic *s, int64_t *values)
{
    for (uint32_t k = 0; k < sym_symbol_count(s->e); k++)
        values[k] = sym_symbol_at(s->e, k)->hint;
}

bool symbolic_at(const symbolic *s, bp_dim d, const int64_t *values, int64_t *out)
{
    *out = dim_hint(d);
    return dim_is_const(d) || sym_eval(s->e, d, values, out);
}

bool symbolic_holds(const symbolic *s, const int64_t *values)
{
    for (uint32_t k = 0; k < sym_symbol_count(s->e); k++)
        if (values[k] < sym_symbol_at(s->e, k)->min || values[k] > sym_symbol_at(s->e, k)->max)
            return false;
    for (uint32_t i = 0; i < sym_fact_count(s->e); i++) {
        int64_t holds;
        if (!symbolic_at(s, sym_fact_at(s->e, i)->holds, values, &holds) || !holds)
            return false;
    }
    return true;
}

/* What is known of a symbol by equalities: another expression, or itself. */
static bp_dim known(const symbolic *s, uint32_t k)
{
    sym_scope former = sym_push(s->e, s->c);
    bp_dim d = sym_simplify(s->e, s->c, sym_dim_of(s->e, k));
    sym_pop(former);
    return d;
}

/* hint + plus, times by; the hint itself where that does not fit. */
static int64_t near_hint(int64_t hint, int64_t plus, int64_t by)
{
    int64_t v = hint;
    return checked_add(hint, plus, &v) && checked_mul(v, by, &v) ? v : hint;
}

/* Values near the hints, or any small ones; symbols that others determine are computed. */
static void draw(symbolic *s, int64_t *values)
{
    uint32_t n = sym_symbol_count(s->e);
    for (uint32_t k = 0; k < n; k++) {
        int64_t hint = sym_symbol_at(s->e, k)->hint;
        uint64_t how = symbolic_random(s, 4);
        values[k] = how == 0   ? hint
                    : how == 1 ? near_hint(hint, (int64_t)symbolic_random(s, 7) - 3, 1)
                    : how == 2 ? near_hint(hint, 0, 1 + (int64_t)symbolic_random(s, 3))
                               : 2 + (int64_t)symbolic_random(s, 11);
        if (values[k] < 2)
            values[k] = 2;
    }
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t k = 0; k < n; k++) {
            int64_t v;
            if (symbolic_at(s, known(s, k), values, &v))
                values[k] = v;
        }
}

bool symbolic_other(symbolic *s, int64_t *values)
{
    enum { TRIES = 60 };
    for (uint32_t i = 0; i < TRIES; i++) {
        bool other = false;
        draw(s, values);
        for (uint32_t k = 0; k < sym_symbol_count(s->e); k++)
            other |= values[k] != sym_symbol_at(s->e, k)->hint;
        if (other && symbolic_holds(s, values))
            return true;
    }
    return false;
}

uint32_t symbolic_pinned(const symbolic *s)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < sym_symbol_count(s->e); k++)
        n += dim_is_const(known(s, k));
    return n;
}

static bool dims_at(const symbolic *s, uint32_t n, const bp_dim *d, const int64_t *values, bp_dim *out)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t v;
        if (!symbolic_at(s, d[i], values, &v))
            return false;
        out[i] = dim_const(v);
    }
    return true;
}

bp_tensor *symbolic_tensor_at(const symbolic *s, const bp_tensor *t, const int64_t *values)
{
    bp_dim sizes[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
    tensor_meta m;
    tensor_get_meta(t, &m);
    if (!dims_at(s, m.rank, m.sizes, values, sizes) || !dims_at(s, m.rank, m.strides, values, strides) ||
        !dims_at(s, 1, &m.offset, values, &m.offset)) {
        ctx_fail(s->c, BP_INTERNAL, "a size does not evaluate");
        return NULL;
    }
    m.sizes = sizes;
    m.strides = strides;
    bp_tensor *out = tensor_new_fake(s->c, &m);
    if (out)
        out->flags = t->flags;
    return out;
}

void symbolic_print(const symbolic *s, const int64_t *values, buf *out)
{
    for (uint32_t k = 0; k < sym_symbol_count(s->e); k++)
        buf_printf(out, "%ss%u = %" PRId64, k ? ", " : "", k, values[k]);
}
