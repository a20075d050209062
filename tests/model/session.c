/* Sessions. Two contexts of one runtime, so that each side has its own generator and modes. */
#include "tests/model/session.h"
#include "tests/model/seen.h"
#include "tests/model/train.h"
#include <pthread.h>
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
    bool trains, dynamic;
    arena sizes;          /* of the argument sets of a call with other sizes */
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
    for (str w; (w = text_word(&rest)).n;) {
        str n = text_word(&rest);
        if (str_is(w, name))
            return (uint32_t)strtoul(n.s, NULL, 10);
    }
    return 0;
}

/* What this call added, against the model's. The host counts what resumed as eager, too. */
static bool check_counts(session *x, const text_call *k)
{
    counts now = count_now(x), was = x->before;
    bool ok = true;
    x->before = now;
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
    uint32_t n = x->p->nlinks ? x->p->nlinks : 1;
    for (uint32_t i = 0; i < n && i < x->p->nwant_compiles; i++)
        if (x->links.compiles[i] != x->p->want_compiles[i])
            return differs(x, "link %u compiled %u graphs, the model says %u", i, x->links.compiles[i],
                           x->p->want_compiles[i]);
    return true;
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

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

static bool same(session *x, const char *what, const buf *got, const char *want)
{
    buf why = {0};
    bool ok = seen_equal(got, what, want, program_is(x->p, "another"), &why) || differs(x, "%s", buf_text(&why));
    buf_fini(&why);
    return ok;
}

/* Returns whether the call was compiled from end to end. */
static bool count_trained(session *x)
{
    counts now = count_now(x), was = x->before;
    x->before = now;
    x->totals->trained += x->eager.flowed;
    x->totals->trained_compiled += x->compiled.flowed && now.eager == was.eager;
    x->totals->failed_backwards += x->eager.said.n > 0;
    return now.eager == was.eager;
}

/* What eager refuses, since the function has written what an operator had saved, is right in a graph, which writes
 * nothing: then there is nothing to compare. A graph may refuse what eager does not, since its node is one; the harness
 * wants that to be rare. Nor where a backend rounds otherwise, and another answer was given than the model says: graphs
 * of AOT have operators that own.c lacks. */
static bool compare_gradients(session *x, const text_call *k, bool ok)
{
    bool refuses = strstr(buf_text(&x->compiled.said), "saved for backward was written") != NULL;
    bool whole = count_trained(x), decided = program_is(x->p, "another") && (!whole || !ok);
    x->totals->refused_alone += refuses && !x->eager.said.n;
    if (!x->eager.said.n && !decided && !refuses)
        return ok && (same(x, "eager", &x->compiled.grads, buf_text(&x->eager.grads)) ||
                      (buf_printf(x->why, "  %s\n", buf_text(&x->compiled.said)), false));
    train_forget(&x->compiled, k->args);
    train_forget(&x->eager, k->args);
    return decided || refuses || (ok && (strstr(buf_text(&x->eager.said), "saved for backward was written") ||
                              differs(x, "eager's backward fails: %s", buf_text(&x->eager.said))));
}

/* Sizes change in runs: what was captured is used again, too. */
static const text_args *args_of(session *x, const text_call *k)
{
    static const uint8_t more[] = {0, 0, 1, 1, 2, 2, 0, 1, 3, 3, 5, 4, 0, 8, 7, 7};
    const text_args *a = &x->p->args.at[k->args];
    uint32_t by = x->dynamic ? more[(x->call + x->p->number) % sizeof more] : 0;
    text_args *grown = by ? arena_alloc(&x->sizes, sizeof *grown) : NULL;
    return grown && text_args_grow(&x->sizes, a, by, grown) ? grown : a;
}

static bool compare_call(session *x, const text_call *k)
{
    const text_args *a = args_of(x, k);
    buf got = {0}, want = {0}, got_modes = {0}, want_modes = {0};
    bool rounds = program_is(x->p, "another");
    uint32_t failed[2] = {x->links.failed_compiles, x->links.failed_runs};
    census_begin_call(x->eager.census);
    x->eager.told = k->told;
    x->eager.ntold = k->ntold;
    seen_call(&x->compiled, k, a, &got, &got_modes);
    seen_call(&x->eager, k, a, &want, &want_modes);
    note_call(x, k, failed);
    bool ok = same(x, "eager", &got, buf_text(&want));
    if (!ok)
        buf_printf(x->why, "  compiled leaves %s %s, eager %s %s\n", buf_text(&got_modes), buf_text(&x->compiled.said),
                   buf_text(&want_modes), buf_text(&x->eager.said));
    if (ok && !rounds && strcmp(buf_text(&got_modes), buf_text(&want_modes)))
        ok = differs(x, "compiled leaves %s, eager %s", buf_text(&got_modes), buf_text(&want_modes));
    if (x->trains)
        ok = compare_gradients(x, k, ok);
    if (ok && x->dynamic)
        x->before = count_now(x);
    else if (ok && !x->trains)
        ok = same(x, "model", &got, k->want) && check_counts(x, k);
    if (ok && strstr(buf_text(&x->log), "stored beyond the call"))
        ok = differs(x, "no function here stores anything, and the host says so");
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
    seen_call(&x->eager, k, args_of(x, k), &seen, &modes);
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
    x->links.dynamic = x->dynamic;
    for (uint32_t i = 0; i < p->nfns; i++) {
        bp_compile_options o = {.backend_fn = links_backend(p), .user = &x->compiled.users[i],
                                .dynamic = x->dynamic ? 0 : -1};
        if ((x->trains || x->dynamic) && program_is(p, "exact") && p->number % 2) /* its operators run under the tape */
            o.backend_fn = NULL, o.backend = "eager";
        x->compiled.callables[i] = bp_compile(c, run_captured, &o);
    }
    return bp_error(c) == BP_OK || differs(x, "%s", bp_error_text(c));
}

static bool open_side(session *x, side *s)
{
    bp_ctx *c = bp_ctx_new(x->rt);
    if (!c)
        return differs(x, "out of memory");
    bp_set_default_dtype(c, BP_F64);
    side_init(s, x->p, c);
    return true;
}

static void close_side(side *s)
{
    if (!s->c)
        return;
    opaque_close(s);
    bp_ctx_destroy(s->c);
}

static bool open_sides(session *x)
{
    x->rt = bp_runtime_new(NULL);
    if (!x->rt)
        return differs(x, "out of memory");
    bp_set_log(x->rt, append, &x->log);
    if (!open_side(x, &x->compiled) || !open_side(x, &x->eager))
        return false;
    opaque_open(&x->compiled);
    opaque_open(&x->eager);
    return configure(x, x->compiled.c);
}

static void close_sides(session *x)
{
    for (uint32_t i = 0; i < x->p->nfns; i++)
        bp_callable_unref(x->compiled.callables[i]);
    close_side(&x->compiled);
    close_side(&x->eager);
    links_end(&x->links);
    bp_runtime_unref(x->rt);
    buf_fini(&x->log);
}

static bool make_calls(session *x)
{
    for (x->call = 0; x->call < x->p->calls.len; x->call++) {
        const text_call *k = &x->p->calls.at[x->call];
        if (k->seed) {
            seen_start(&x->compiled);
            seen_start(&x->eager);
        }
        counts was = x->before;
        bool ok = compare_call(x, k);
        x->totals->compiled += x->before.eager == was.eager;
        if (ok)
            continue;
        trace_call(x);
        return false;
    }
    return x->trains || x->dynamic || check_compiles(x);
}

static bool run_session(const program *p, bool trains, bool dynamic, buf *why, session_totals *t)
{
    session x = {.p = p, .why = why, .totals = t, .trains = trains, .dynamic = dynamic};
    bool ok = open_sides(&x);
    x.compiled.trains = x.eager.trains = trains;
    x.compiled.flows = x.eager.flows = x.eager.plain = dynamic;
    x.eager.census = &t->census;
    ok = ok && make_calls(&x);
    if (x.compiled.c) {
        counts n = count_now(&x);
#define COUNT(name, from) t->sums.name += n.name;
        SESSION_COUNTS(COUNT)
#undef COUNT
        t->calls += p->calls.len;
        t->backward_graphs += x.links.backwards;
        t->symbolic_graphs += x.links.symbolic;
        t->flow_graphs += x.links.flows;
        census_end_program(&t->census);
    }
    if (!ok)
        buf_printf(why, "  the log:\n%s", buf_text(&x.log));
    close_sides(&x);
    arena_fini(&x.sizes);
    return ok;
}

bool session_run(const program *p, buf *why, session_totals *t)
{
    return run_session(p, false, false, why, t);
}

bool session_train(const program *p, buf *why, session_totals *t)
{
    return run_session(p, true, false, why, t);
}

bool session_dynamic(const program *p, buf *why, session_totals *t)
{
    return run_session(p, false, true, why, t);
}

/* -- threads ------------------------------------------------------------------------------------------------------- */

enum { MOST_THREADS = 16 };
typedef struct { session x; uint32_t first; buf why; bool ok; pthread_t thread; } worker;

/* All calls of the program, from its own on, by the shared callables and eagerly. */
static void *work(void *arg)
{
    worker *w = arg;
    const program *p = w->x.p;
    seen_start(&w->x.compiled);
    seen_start(&w->x.eager);
    for (uint32_t i = 0; w->ok && i < p->calls.len; i++) {
        w->x.call = (i + w->first) % p->calls.len;
        text_call call = p->calls.at[w->x.call], *k = &call;
        call.busy = false; /* the others are */
        buf got = {0}, want = {0};
        seen_call(&w->x.compiled, k, &p->args.at[k->args], &got, &got);
        seen_call(&w->x.eager, k, &p->args.at[k->args], &want, &want);
        w->ok = same(&w->x, "eager", &got, buf_text(&want));
        buf_fini(&got), buf_fini(&want);
    }
    return NULL;
}

static bool open_worker(session *x, worker *w, uint32_t first)
{
    *w = (worker){.x = {.p = x->p, .rt = x->rt, .why = &w->why}, .first = first};
    w->ok = open_side(&w->x, &w->x.compiled) && open_side(&w->x, &w->x.eager);
    if (!w->ok)
        return false;
    memcpy(w->x.compiled.callables, x->compiled.callables, sizeof x->compiled.callables);
    memcpy(w->x.compiled.disabled, x->compiled.disabled, sizeof x->compiled.disabled);
    opaque_open(&w->x.eager);
    return true;
}

static bool close_worker(worker *w, bool ok, buf *why)
{
    if (ok && !w->ok)
        buf_puts(why, buf_text(&w->why));
    memset(w->x.compiled.disabled, 0, sizeof w->x.compiled.disabled); /* borrowed, as the callables are */
    close_side(&w->x.eager);
    buf_fini(&w->why);
    return ok && w->ok;
}

bool session_run_threads(const program *p, uint32_t nthreads, buf *why)
{
    worker at[MOST_THREADS];
    uint32_t n = 0, started = 0;
    session x = {.p = p, .why = why};
    bool ok = open_sides(&x);
    x.links.threads = true;
    for (; ok && n < nthreads && n < MOST_THREADS; n++)
        ok = open_worker(&x, &at[n], n * p->calls.len / nthreads);
    for (; ok && started < n; started++)
        ok = !pthread_create(&at[started].thread, NULL, work, &at[started]);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(at[i].thread, NULL);
    for (uint32_t i = 0; i < n; i++)
        ok = close_worker(&at[i], ok, why);
    close_sides(&x);
    return ok;
}
