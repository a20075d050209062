/* Sessions. Two contexts of one runtime, so that each side has its own generator and modes. */
#include "tests/model/session.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const program *p;
    bp_runtime *rt;
    side compiled, eager;
    links links;
    buf log, *why;
    session_totals *totals;
    counts before;
    uint32_t call;
} session;

/* -- what differs -------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool differs(session *x, const char *fmt, ...)
{
    va_list ap;
    buf_printf(x->why, "call %u: ", x->call);
    va_start(ap, fmt);
    buf_vprintf(x->why, fmt, ap);
    va_end(ap);
    buf_putc(x->why, '\n');
    return false;
}

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
static bool make_args(side *s, const text_args *a, args *out)
{
    bp_ctx *c = s->c;
    bp_tensor *made[MAX_ARGS];
    for (uint32_t i = 0; i < a->nbuffers; i++)
        out->buffers[i] = make_buffer(c, &a->buffers[i]);
    for (uint32_t i = 0; i < a->nviews; i++) {
        const text_view *v = &a->views[i];
        made[i] = v->same >= 0 ? made[v->same]
                               : bp_as_strided(c, out->buffers[v->buffer], BP_DIMS(v->n), BP_DIMS(v->stride),
                                               .storage_offset = BP_SCALAR(v->off));
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

/* -- comparing ----------------------------------------------------------------------------------------------------- */

static bool near(double a, double b)
{
    double most = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-9 * (1 + most);
}

static str word_of(str *s)
{
    str line = *s;
    size_t n = 0;
    while (n < line.n && line.s[n] != ' ')
        n++;
    *s = (str){line.s + n + (n < line.n), line.n - n - (n < line.n)};
    return (str){line.s, n};
}

/* Equal words; 1 and 1.0 are equal, 0 and -0 are not. tolerant: numbers near each other are. */
static bool alike(str a, str b, bool tolerant)
{
    while (a.n || b.n) {
        str x = word_of(&a), y = word_of(&b);
        char *xe, *ye;
        double xv = strtod(x.s, &xe), yv = strtod(y.s, &ye);
        bool numbers = x.n && y.n && xe == x.s + x.n && ye == y.s + y.n;
        bool equal = numbers && ((xv == yv && signbit(xv) == signbit(yv)) || (tolerant && near(xv, yv)));
        if (equal || str_eq(x, y))
            continue;
        return false;
    }
    return true;
}

/* The first line in which two texts differ. */
static bool same_lines(session *x, const char *what, const buf *got, const char *want, bool tolerant)
{
    str g = {buf_text(got), got->n}, w = str_of(want);
    while (g.n || w.n) {
        str a = str_split(&g, '\n'), b = str_split(&w, '\n');
        if (!alike(a, b, tolerant))
            return differs(x, "compiled: \"%.*s\", %s: \"%.*s\"", (int)a.n, a.n ? a.s : "", what, (int)b.n,
                           b.n ? b.s : "");
    }
    return true;
}

/* -- counts -------------------------------------------------------------------------------------------------------- */

static counts count_now(session *x)
{
    counts n = {0};
    for (uint32_t i = 0; i < x->p->nfns; i++) {
        bp_callable_stats s = {.size = sizeof s};
        bp_stats(x->compiled.c, x->compiled.callables[i], &s);
#define COUNT(name, from) n.name += from;
        SESSION_COUNTS(COUNT)
#undef COUNT
    }
    return n;
}

static uint32_t wanted(const char *did, const char *name)
{
    str rest = str_of(did);
    while (rest.n) {
        str w = word_of(&rest), n = word_of(&rest);
        if (str_is(w, name))
            return (uint32_t)strtoul(n.s, NULL, 10);
    }
    return 0;
}

/* Opaque steps are answered eagerly. */
static bool counts_compare(const program *p)
{
    return !(p->needs & NEEDS_OPAQUE);
}

/* What this call added, against the model's. The host counts what resumed as eager, too. */
static bool check_counts(session *x, const text_call *k)
{
    counts now = count_now(x), was = x->before;
    bool ok = true;
    x->before = now;
    if (!counts_compare(x->p))
        return true;
#define COUNT(name, from)                                                                                   \
    {                                                                                                       \
        uint32_t got = now.name - was.name, want = wanted(k->did, #name);                                   \
        if (!strcmp(#name, "eager"))                                                                        \
            want += wanted(k->did, "resumed");                                                              \
        if (ok && got != want)                                                                              \
            ok = differs(x, "%u " #name ", the model says %u (did %s)", got, want, k->did);                 \
    }
    SESSION_COUNTS(COUNT)
#undef COUNT
    return ok;
}

static bool check_compiles(session *x)
{
    if (x->p->is_tame && x->links.twice[0])
        return differs(x, "a graph is compiled twice:\n%s", x->links.twice);
    if (x->links.foreign)
        return differs(x, "own.c lacks \"%s\"", x->links.foreign_op);
    if (!counts_compare(x->p))
        return true;
    uint32_t n = x->p->nlinks ? x->p->nlinks : 1;
    for (uint32_t i = 0; i < n && i < x->p->nwant_compiles; i++)
        if (x->links.compiles[i] != x->p->want_compiles[i])
            return differs(x, "link %u compiled %u graphs, the model says %u", i, x->links.compiles[i],
                           x->p->want_compiles[i]);
    return true;
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

static void call_side(side *s, const text_call *k, const text_args *a, buf *seen, buf *modes)
{
    args made;
    bp_outputs outs = {0};
    bp_ctx *c = s->c;
    uint64_t before = bp_generator_offset(c);
    bp_args in = {made.values, a->nviews - s->p->nbuffers};
    s->flag = k->flag;
    buf_clear(&s->effects);
    int old = bp_set_grad_enabled(c, !k->nograd);
    bp_scope_begin(c);
    bp_status st = BP_INTERNAL;
    if (make_args(s, a, &made))
        st = s->callables[0] ? bp_call(c, s->callables[0], &in, &outs)
                             : bp_run_eager(c, run_captured, &s->users[0], &in, &outs);
    if (st != BP_OK)
        census_is(s->census, CENSUS_FAILS);
    if (st != BP_OK)
        buf_printf(modes, "%s: ", bp_error_message(c));
    bp_error_clear(c);
    print_seen(s, st, a, &made, &outs, before, seen, modes);
    bp_scope_end(c);
    opaque_keep(s, STASHED);
    bp_set_grad_enabled(c, old);
}

/* What this call holds besides what eager does in it. */
static void note_call(session *x, const text_call *k, const uint32_t failed[2])
{
    census *n = x->eager.census;
    census_args(n, x->p, k, x->call ? k - 1 : NULL);
    if (failed[0] != x->links.failed_compiles)
        census_is(n, CENSUS_LINK_COMPILE);
    if (failed[1] != x->links.failed_runs)
        census_is(n, CENSUS_LINK_RUN);
    if (program_is(x->p, "another"))
        census_is(n, CENSUS_ROUNDS);
    if (program_is(x->p, "elide"))
        census_is(n, CENSUS_ELIDES);
    census_end_call(n);
}

static bool compare_call(session *x, const text_call *k)
{
    const text_args *a = &x->p->args.at[k->args];
    buf got = {0}, want = {0}, got_modes = {0}, want_modes = {0};
    bool rounds = program_is(x->p, "another");
    uint32_t failed[2] = {x->links.failed_compiles, x->links.failed_runs};
    census_begin_call(x->eager.census);
    x->eager.told = k->told;
    x->eager.ntold = k->ntold;
    call_side(&x->compiled, k, a, &got, &got_modes);
    call_side(&x->eager, k, a, &want, &want_modes);
    note_call(x, k, failed);
    bool ok = same_lines(x, "eager", &got, buf_text(&want), rounds);
    if (!ok)
        buf_printf(x->why, "  compiled leaves %s, eager %s\n", buf_text(&got_modes), buf_text(&want_modes));
    if (ok && !rounds && strcmp(buf_text(&got_modes), buf_text(&want_modes)))
        ok = differs(x, "compiled leaves %s, eager %s", buf_text(&got_modes), buf_text(&want_modes));
    if (ok)
        ok = same_lines(x, "model", &got, k->want, rounds);
    if (ok)
        ok = check_counts(x, k);
    buf_fini(&got), buf_fini(&want), buf_fini(&got_modes), buf_fini(&want_modes);
    return ok;
}

/* The failing call once more, eagerly, with its statements as they run. */
static void trace_call(session *x)
{
    const text_call *k = &x->p->calls.at[x->call];
    buf trace = {0}, seen = {0}, modes = {0};
    x->eager.trace = &trace;
    x->eager.census = NULL;
    x->eager.told = k->told;
    x->eager.ntold = k->ntold;
    call_side(&x->eager, k, &x->p->args.at[k->args], &seen, &modes);
    buf_printf(x->why, "  its statements, run eagerly (mode %s):\n%s", x->p->mode, buf_text(&trace));
    buf_fini(&trace), buf_fini(&seen), buf_fini(&modes);
}

/* -- sessions ------------------------------------------------------------------------------------------------------ */

static void append(void *arg, const char *text, size_t n)
{
    buf_add(arg, text, n);
}

static void set_limit(bp_ctx *c, const char *key, uint32_t n)
{
    char text[16];
    snprintf(text, sizeof text, "%u", n);
    bp_set_config(c, key, text);
}

static bool configure(session *x, bp_ctx *c)
{
    const program *p = x->p;
    set_limit(c, "outcome_limit", p->limit_outcomes);
    set_limit(c, "capture_limit", p->limit_captures);
    set_limit(c, "accumulated_recompile_limit", p->limit_segments);
    set_limit(c, "recompile_limit", p->limit_variants);
    bp_set_config(c, "fallback", "silent");
    if (program_is(p, "impure"))
        bp_set_config(c, "check_capture", "always");
    links_begin(&x->links, p, c);
    for (uint32_t i = 0; i < p->nfns; i++) {
        bp_compile_options o = {.backend_fn = links_backend(p), .user = &x->compiled.users[i], .dynamic = -1};
        x->compiled.callables[i] = bp_compile(c, run_captured, &o);
    }
    return bp_error(c) == BP_OK || differs(x, "%s", bp_error_text(c));
}

static bool open_sides(session *x)
{
    x->rt = bp_runtime_new(NULL);
    bp_ctx *a = x->rt ? bp_ctx_new(x->rt) : NULL, *b = a ? bp_ctx_new(x->rt) : NULL;
    if (!b)
        return differs(x, "out of memory");
    bp_set_log(x->rt, append, &x->log);
    bp_set_default_dtype(a, BP_F64);
    bp_set_default_dtype(b, BP_F64);
    side_init(&x->compiled, x->p, a);
    side_init(&x->eager, x->p, b);
    x->eager.census = &x->totals->census;
    opaque_open(&x->compiled);
    opaque_open(&x->eager);
    return configure(x, a);
}

static void close_sides(session *x)
{
    for (uint32_t i = 0; i < x->p->nfns; i++)
        bp_callable_unref(x->compiled.callables[i]);
    opaque_close(&x->compiled);
    opaque_close(&x->eager);
    links_end(&x->links);
    bp_ctx_destroy(x->compiled.c);
    bp_ctx_destroy(x->eager.c);
    bp_runtime_unref(x->rt);
    buf_fini(&x->log);
}

static bool make_calls(session *x)
{
    for (x->call = 0; x->call < x->p->calls.len; x->call++) {
        const text_call *k = &x->p->calls.at[x->call];
        if (k->seed) {
            bp_manual_seed(x->compiled.c, x->p->number % 1000);
            bp_manual_seed(x->eager.c, x->p->number % 1000);
            opaque_keep(&x->compiled, 0);
            opaque_keep(&x->eager, 0);
        }
        counts was = x->before;
        bool ok = compare_call(x, k);
        x->totals->compiled += x->before.eager == was.eager;
        if (ok)
            continue;
        trace_call(x);
        return false;
    }
    return check_compiles(x);
}

bool session_run(const program *p, buf *why, session_totals *t)
{
    session x = {.p = p, .why = why, .totals = t};
    bool ok = open_sides(&x) && make_calls(&x);
    if (x.compiled.c) {
        counts n = count_now(&x);
#define COUNT(name, from) t->sums.name += n.name;
        SESSION_COUNTS(COUNT)
#undef COUNT
        t->calls += p->calls.len;
        census_end_program(&t->census);
    }
    if (!ok)
        buf_printf(why, "  the log:\n%s", buf_text(&x.log));
    close_sides(&x);
    return ok;
}
