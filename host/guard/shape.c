/* Guards on shapes: a call's symbols are read into its list, then conditions over them are one flat program.
 *
 * A symbol is read where its node comes first; another place that has it too is compared. So sizes that were equal when
 * they were captured as one symbol must be equal. */
#include "host/guard/set.h"
#include "sdk/base/checked.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -- life ---------------------------------------------------------------------------------------------------------- */

guard_shape *guard_shape_new(bp_ctx *c, const guard_shapes *from)
{
    guard_shape *s = calloc(1, sizeof *s);
    guard_read *reads = calloc((size_t)from->nreads + 1, sizeof *reads);
    bp_dim *conditions = calloc((size_t)from->nconditions + 1, sizeof *conditions);
    sym_program *p = sym_compile(from->env, from->conditions, from->nconditions);
    if (!s || !reads || !conditions || !p) {
        free(s);
        free(reads);
        free(conditions);
        sym_program_free(p);
        return ctx_nomem(c), NULL;
    }
    if (from->nreads)
        memcpy(reads, from->reads, from->nreads * sizeof *reads);
    if (from->nconditions)
        memcpy(conditions, from->conditions, from->nconditions * sizeof *conditions);
    *s = (guard_shape){sym_env_ref(from->env), p, reads, conditions, from->nreads, from->nconditions};
    return s;
}

void guard_shape_destroy(guard_shape *s)
{
    if (!s)
        return;
    sym_env_unref(s->env);
    sym_program_free(s->program);
    free(s->reads);
    free(s->conditions);
    free(s);
}

/* -- checking ------------------------------------------------------------------------------------------------------ */

static inline bool read_symbol(const guard_read *r, const guard_inputs *in, int64_t *out)
{
    if (r->kind == SYM_VALUE) {
        const bp_value *v = guard_value(in, r->source);
        *out = v ? v->v.dim.value : 0;
        return v && v->kind == BP_VALUE_INT;
    }
    const bp_tensor *t = guard_tensor(in, r->source);
    if (!t || r->dim >= t->rank)
        return false;
    *out = r->kind == SYM_SIZE ? t->sizes[r->dim].value : t->strides[r->dim].value;
    return true;
}

/* Of a product's tensor: what the stride must be. */
static bool product_of(const guard_read *r, const guard_inputs *in, int64_t *out)
{
    const bp_tensor *t = guard_tensor(in, r->source);
    return t && r->symbol < t->rank && checked_mul(t->sizes[r->symbol].value, t->strides[r->symbol].value, out);
}

static inline bool read_holds(const guard_read *r, const guard_inputs *in)
{
    int64_t v, of;
    if (!read_symbol(r, in, &v))
        return false;
    if (r->product)
        return product_of(r, in, &of) && v == of;
    if (!r->brings)
        return in->syms[r->symbol] == v;
    in->syms[r->symbol] = v;
    return v >= r->min && v <= r->max;
}

bool guard_shape_holds(const guard_shape *s, const guard_inputs *in)
{
    if (!in->syms)
        return false;
    for (const guard_read *r = s->reads, *end = r + s->nreads; r < end; r++)
        if (!read_holds(r, in))
            return false;
    return !s->nconditions || sym_first_false(s->program, in->syms) == s->nconditions;
}

/* -- words --------------------------------------------------------------------------------------------------------- */

static void put_read(const guard_set *g, const guard_read *r, buf *out)
{
    guard_source s = {r->source < g->nsources ? g->text + g->names[r->source] : "?",
                      r->source < g->nsources ? g->roles[r->source] : BP_ROLE_USER};
    guard_print_source(&s, r->kind, r->dim, out);
}

/* "2 <= L['x'].size()[0] <= 8". */
static void put_bounds(const guard_set *g, const guard_read *r, buf *out)
{
    if (r->min != INT64_MIN)
        buf_printf(out, "%" PRId64 " <= ", r->min);
    put_read(g, r, out);
    if (r->max != INT64_MAX)
        buf_printf(out, " <= %" PRId64, r->max);
}

static void put_symbol(const guard_shape *s, uint32_t k, buf *out)
{
    sym_print(s->env, sym_dim_of(s->env, k), true, out);
}

static void put_equal(const guard_set *g, const guard_read *r, buf *out)
{
    put_read(g, r, out);
    buf_puts(out, " == ");
    if (!r->product) {
        put_symbol(g->shape, r->symbol, out);
        return;
    }
    guard_read size = {.source = r->source, .kind = SYM_SIZE, .dim = (uint8_t)r->symbol};
    guard_read stride = {.source = r->source, .kind = SYM_STRIDE, .dim = (uint8_t)r->symbol};
    put_read(g, &size, out);
    buf_puts(out, "*");
    put_read(g, &stride, out);
}

typedef struct { const guard_set *g; const guard_inputs *in; buf *out; const char *sep; } naming;

static void put_value(void *arg, uint32_t k)
{
    naming *n = arg;
    buf_puts(n->out, n->sep);
    put_symbol(n->g->shape, k, n->out);
    buf_printf(n->out, " = %" PRId64, n->in->syms[k]);
    n->sep = ", ";
}

static void explain_read(const guard_set *g, const guard_inputs *in, const guard_read *r, buf *why)
{
    int64_t v;
    if (!read_symbol(r, in, &v)) {
        put_read(g, r, why);
        buf_puts(why, " is not there");
        return;
    }
    (r->brings ? put_bounds : put_equal)(g, r, why);
    buf_puts(why, " failed: ");
    put_read(g, r, why);
    buf_printf(why, " = %" PRId64, v);
    if (r->brings || r->product)
        return;
    naming n = {g, in, why, ", "};
    put_value(&n, r->symbol);
}

void guard_shape_explain(const guard_set *g, const guard_inputs *in, buf *why)
{
    const guard_shape *s = g->shape;
    if (!in->syms) {
        buf_puts(why, "no symbols are read");
        return;
    }
    for (uint32_t i = 0; i < s->nreads; i++)
        if (!read_holds(&s->reads[i], in)) {
            explain_read(g, in, &s->reads[i], why);
            return;
        }
    uint32_t first = sym_first_false(s->program, in->syms);
    if (first == s->nconditions)
        return;
    sym_print(s->env, s->conditions[first], true, why);
    buf_puts(why, " failed: ");
    naming n = {g, in, why, ""};
    sym_each_symbol(s->env, s->conditions[first], put_value, &n);
}

/* Equal sources, then conditions in the order in which they were asked, then bounds. */
void guard_shape_print(const guard_set *g, buf *out)
{
    const guard_shape *s = g->shape;
    for (uint32_t i = 0; i < s->nreads; i++)
        if (!s->reads[i].brings) {
            put_equal(g, &s->reads[i], out);
            buf_putc(out, '\n');
        }
    for (uint32_t i = 0; i < s->nconditions; i++) {
        sym_print(s->env, s->conditions[i], true, out);
        buf_putc(out, '\n');
    }
    for (uint32_t i = 0; i < s->nreads; i++)
        if (s->reads[i].brings && (s->reads[i].min != INT64_MIN || s->reads[i].max != INT64_MAX)) {
            put_bounds(g, &s->reads[i], out);
            buf_putc(out, '\n');
        }
}
