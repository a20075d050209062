/* Calls of one side, and what a caller sees of each as lines of text. */
#include "tests/model/seen.h"
#include "tests/model/claim.h"
#include "tests/model/train.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- arguments ----------------------------------------------------------------------------------------------------- */

typedef struct { bp_tensor *buffers[MAX_ARGS]; bp_value values[MAX_ARGS]; } args;

static bp_tensor *make_buffer(bp_ctx *c, const text_buffer *b)
{
    int64_t n = b->n;
    if (b->dtype == BP_F64)
        return bp_tensor_from(c, b->dtype, 1, &n, b->values);
    int64_t *ints = malloc((size_t)b->n * sizeof *ints);
    for (uint32_t i = 0; ints && i < b->n; i++)
        ints[i] = (int64_t)b->values[i];
    bp_tensor *t = bp_tensor_from(c, b->dtype, 1, &n, ints);
    free(ints);
    return t;
}

/* Buffers, the last of a's views, go into the module. */
static bool make_args(side *s, uint32_t set, const text_args *a, args *out)
{
    bp_ctx *c = s->c;
    bp_tensor *made[MAX_ARGS];
    for (uint32_t i = 0; i < a->nbuffers; i++)
        out->buffers[i] = make_buffer(c, &a->buffers[i]);
    for (uint32_t i = 0; s->trains && i < a->nbuffers; i++)
        out->buffers[i] = train_buffer(s, set, i, out->buffers[i]);
    for (uint32_t i = 0; i < a->nviews; i++) {
        const text_view *v = &a->views[i];
        int on = bp_set_grad_enabled(c, !s->trains || !train_view_without_grad(s, set, i));
        bool whole = s->trains && train_is_whole(s, set, a, i);
        made[i] = v->same >= 0 ? made[v->same]
                  : whole      ? out->buffers[v->buffer]
                               : bp_as_strided(c, out->buffers[v->buffer], BP_DIMS(v->n), BP_DIMS(v->stride),
                                               .storage_offset = BP_SCALAR(v->off));
        bp_set_grad_enabled(c, on);
        out->values[i] = bp_arg_of_tensor(s->inputs[i] = made[i]);
        if (i >= a->nviews - s->p->nbuffers)
            bp_module_add_buffer(c, s->module, arg_names[i], made[i]);
    }
    return bp_error(c) == BP_OK;
}

/* -- what a caller sees -------------------------------------------------------------------------------------------- */

static const char *letter(const bp_tensor *t)
{
    return bp_tensor_dtype(t) == BP_F64 ? "f" : bp_tensor_dtype(t) == BP_I64 ? "i" : "b";
}

/* A result, or what a disabled function kept: which earlier tensor it is, whose memory it has, or its numbers. */
static void print_out(bp_ctx *c, const char *word, bp_tensor *const *all, uint32_t i, buf *out)
{
    uint32_t same = 0, shares = 0;
    bp_tensor *t = all[i];
    while (all[same] != t)
        same++;
    while (!bp_tensor_same_storage(all[shares], t))
        shares++;
    long long off = bp_tensor_offset(t), n = bp_tensor_size(t, 0), stride = bp_tensor_stride(t, 0);
    if (bp_tensor_rank(t) != 1)
        buf_printf(out, "%s of %u dimensions", word, bp_tensor_rank(t));
    else if (same < i)
        buf_printf(out, "%s is %u", word, same);
    else if (shares < i)
        buf_printf(out, "%s in %u %lld*%lld/%lld", word, shares, off, n, stride);
    else
        buf_printf(out, "%s %s %lld*%lld/%lld", word, letter(t), off, n, stride);
    if (bp_tensor_rank(t) != 1 || (same == i && shares == i))
        show_numbers(c, t, out);
    buf_putc(out, '\n');
}

static bool changed(const text_buffer *b, const buf *now)
{
    buf was = {0};
    for (uint32_t i = 0; i < b->n; i++) {
        buf_putc(&was, ' ');
        buf_double(&was, b->values[i]);
    }
    bool is = strcmp(buf_text(&was), buf_text(now)) != 0;
    buf_fini(&was);
    return is;
}

static void print_buffers(bp_ctx *c, const text_args *a, const args *made, buf *out)
{
    for (uint32_t i = 0; i < a->nbuffers; i++) {
        buf now = {0};
        show_numbers(c, made->buffers[i], &now);
        if (changed(&a->buffers[i], &now))
            buf_printf(out, "buf %u%s\n", i, buf_text(&now));
        buf_fini(&now);
    }
}

/* Lines as in texts, but for two that a text does not have: requires_grad of results, and the modes. */
static void print_seen(const side *s, bp_status st, const text_args *a, const args *made, const bp_outputs *outs,
                       uint64_t before, buf *out, buf *modes)
{
    bp_ctx *c = s->c;
    bp_tensor *all[2 * MAX_ARGS + STASHED];
    uint32_t n = a->nviews, old = s->stash.len > STASHED ? s->stash.len - STASHED : 0;
    for (uint32_t i = 0; i < n; i++)
        all[i] = made->values[i].v.tensor;
    if (st != BP_OK)
        buf_puts(out, "error\n");
    for (uint32_t i = 0; st == BP_OK && i < outs->n && n < 2 * MAX_ARGS; i++) {
        all[n] = outs->at[i];
        print_out(c, "out", all, n, out);
        buf_printf(modes, "%d", bp_tensor_requires_grad(all[n++]));
    }
    census_results(s->census, all, a->nviews, n);
    for (uint32_t i = old; i < s->stash.len; i++) {
        all[n] = s->stash.at[i];
        print_out(c, "kept", all, n++, out);
    }
    print_buffers(c, a, made, out);
    buf_puts(out, buf_text(&s->effects));
    if (bp_generator_offset(c) != before)
        buf_printf(out, "drew %llu\n", (unsigned long long)(bp_generator_offset(c) - before));
    buf_printf(modes, " grad mode %d", bp_grad_enabled(c));
}

/* -- a call -------------------------------------------------------------------------------------------------------- */

static void claim(side *s, bool hold)
{
    for (uint32_t i = 0; i < s->p->nfns && s->callables[i]; i++)
        claim_callable(s->callables[i], hold);
}

/* Results and arguments, written or not, and backward from them. */
static void print_trained(side *s, const text_call *k, bp_status st, const text_args *a, const args *made,
                          const bp_outputs *outs, buf *out)
{
    bp_tensor *all[2 * MAX_ARGS];
    uint32_t n = 0;
    bp_set_grad_enabled(s->c, 1);
    for (; n < a->nviews; n++)
        all[n] = made->values[n].v.tensor;
    for (uint32_t i = 0; st == BP_OK && i < outs->n && n < 2 * MAX_ARGS; i++)
        all[n++] = outs->at[i];
    train_backward(s, k->args, all, n, out);
}

void seen_call(side *s, const text_call *k, const text_args *a, buf *seen, buf *modes)
{
    args made;
    bp_outputs outs = {0};
    bp_ctx *c = s->c;
    uint64_t before = bp_generator_offset(c);
    bp_args in = {made.values, a->nviews - s->p->nbuffers};
    side_here = s;
    s->flag = k->flag;
    buf_clear(&s->effects);
    int old = bp_set_grad_enabled(c, 1);
    bp_scope_begin(c);
    bp_status st = BP_INTERNAL;
    if (make_args(s, k->args, a, &made)) {
        bp_set_grad_enabled(c, !k->nograd);
        if (k->busy)
            claim(s, true);
        st = s->callables[0] ? bp_call(c, s->callables[0], &in, &outs)
                             : bp_run_eager(c, run_captured, &s->users[0], &in, &outs);
        if (k->busy)
            claim(s, false);
    }
    if (st != BP_OK)
        census_is(s->census, CENSUS_FAILS);
    if (st != BP_OK)
        buf_printf(modes, "%s: ", bp_error_message(c));
    bp_error_clear(c);
    print_seen(s, st, a, &made, &outs, before, seen, modes);
    if (s->trains)
        print_trained(s, k, st, a, &made, &outs, seen);
    bp_scope_end(c);
    opaque_keep(s, STASHED);
    bp_set_grad_enabled(c, old);
}

void seen_start(side *s)
{
    bp_manual_seed(s->c, s->p->number % 1000);
    opaque_keep(s, 0);
}

/* -- comparing ----------------------------------------------------------------------------------------------------- */

static bool near(double a, double b)
{
    double most = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-9 * (1 + most);
}

/* Equal words; 1 and 1.0 are equal, 0 and -0 are not. tolerant: numbers near each other are. */
static bool alike(str a, str b, bool tolerant)
{
    for (;;) {
        str x = text_word(&a), y = text_word(&b);
        if (!x.n && !y.n)
            return true;
        char *xe, *ye;
        double xv = strtod(x.s, &xe), yv = strtod(y.s, &ye);
        bool numbers = x.n && y.n && xe == x.s + x.n && ye == y.s + y.n;
        bool equal = numbers && ((xv == yv && signbit(xv) == signbit(yv)) || (tolerant && near(xv, yv)));
        if (!equal && !str_eq(x, y))
            return false;
    }
}

bool seen_equal(const buf *got, const char *name, const char *want, bool tolerant, buf *why)
{
    str g = {buf_text(got), got->n}, w = str_of(want);
    while (g.n || w.n) {
        str a = str_split(&g, '\n'), b = str_split(&w, '\n');
        if (alike(a, b, tolerant))
            continue;
        buf_printf(why, "compiled: \"%.*s\", %s: \"%.*s\"", (int)a.n, a.n ? a.s : "", name, (int)b.n, b.n ? b.s : "");
        return false;
    }
    return true;
}
