/* Runs program texts (README.md) through the host, through eager and against what the model says, as a TAP test: one
 * result a program, then how often each rule was at work.
 *
 *     harness [--only NUMBER] [--source] [--train] [--threads N] FILE...
 *
 * Files may be packed by gzip. --only: one program; --source: its text too. --threads: each program on N threads at
 * once, compared with eager alone. --train: arguments require grad, and each call is differentiated. */
#include "tests/model/session.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

typedef struct {
    uint64_t only;
    bool has_only, source, trains, dynamic;
    uint32_t passed, failed, threads;
    session_totals totals;
} harness;

static void print_comment(const char *text)
{
    str rest = str_of(text);
    while (rest.n) {
        str line = str_split(&rest, '\n');
        printf("# %.*s\n", (int)line.n, line.s);
    }
}

static void run_one(harness *h, const program *p)
{
    if (h->has_only && p->number != h->only)
        return;
    bool rounds = program_is(p, "another"); /* then rounding decides */
    if ((h->threads && (rounds || p->nbuffers)) || (h->dynamic && rounds)) /* buffers: one module for all */
        return;
    buf why = {0};
    if (h->source)
        print_comment(p->source);
    bool ok = h->threads  ? session_run_threads(p, h->threads, &why)
              : h->trains ? session_train(p, &why, &h->totals)
              : h->dynamic ? session_dynamic(p, &why, &h->totals)
                          : session_run(p, &why, &h->totals);
    h->passed += ok;
    h->failed += !ok;
    printf("%sok %u - program %llu, mode %s, %u calls%s\n", ok ? "" : "not ", h->passed + h->failed,
           (unsigned long long)p->number, p->mode, p->calls.len, h->threads ? " on each of several threads" : "");
    if (!ok)
        print_comment(buf_text(&why));
    buf_fini(&why);
}

static bool run_text(harness *h, const char *name, str text)
{
    char why[512];
    program p;
    int got;
    while ((got = program_read(&text, &p, why, sizeof why)) > 0) {
        run_one(h, &p);
        program_free(&p);
    }
    if (got < 0) {
        printf("not ok %u - %s can be read\n# program %llu: %s\n", ++h->failed + h->passed, name,
               (unsigned long long)p.number, why);
        program_free(&p);
    }
    return got == 0;
}

static bool run_file(harness *h, const char *name)
{
    buf text = {0};
    char piece[1 << 14];
    gzFile f = gzopen(name, "rb");
    int n = -1;
    while (f && (n = gzread(f, piece, sizeof piece)) > 0)
        buf_add(&text, piece, (size_t)n);
    if (f)
        gzclose(f);
    bool ok = f && n == 0 && !text.failed;
    if (!ok)
        printf("not ok %u - %s can be opened\n", ++h->failed + h->passed, name);
    ok = ok && run_text(h, name, (str){buf_text(&text), text.n});
    buf_fini(&text);
    return ok;
}

/* How often each rule was at work, then in how many programs and calls there is what, over all programs. */
static void print_table(const harness *h)
{
    const session_totals *t = &h->totals;
    printf("#: %-52s %18llu\n", "calls", (unsigned long long)t->calls);
    printf("#: %-52s %18llu\n", "compiled end to end", (unsigned long long)t->compiled);
#define COUNT(name, from) printf("#: %-52s %18u\n", #name, t->sums.name);
    SESSION_COUNTS(COUNT)
#undef COUNT
    census_print(&t->census);
}

/* At least 3 of 10 differentiated calls are compiled from end to end, and graphs refuse few that eager does not. */
static void check_training(harness *h)
{
    bool ok = h->has_only || (10 * h->totals.trained_compiled >= 3 * h->totals.trained &&
                              50 * h->totals.refused_alone <= h->totals.trained);
    h->passed += ok, h->failed += !ok;
    printf("%sok %u - enough of the differentiated calls are compiled\n", ok ? "" : "not ", h->passed + h->failed);
}

static void print_training(const session_totals *t)
{
    printf("#: %-52s %18llu\n", "training: calls", (unsigned long long)t->calls);
    printf("#: %-52s %18llu\n", "training: differentiated", (unsigned long long)t->trained);
    printf("#: %-52s %18llu\n", "training: compiled end to end and differentiated",
           (unsigned long long)t->trained_compiled);
    printf("#: %-52s %18llu\n", "training: eager's backward fails", (unsigned long long)t->failed_backwards);
    printf("#: %-52s %18llu\n", "training: only the compiled backward fails", (unsigned long long)t->refused_alone);
    printf("#: %-52s %18llu\n", "training: backward graphs compiled", (unsigned long long)t->backward_graphs);
}

/* Something was there to be right. */
static void check_dynamic(harness *h)
{
    const session_totals *t = &h->totals;
    bool ok = h->has_only || (5 * t->symbolic_graphs >= h->passed && t->flow_graphs);
    printf("# %-52s %18llu\n", "dynamic: graphs with symbols", (unsigned long long)t->symbolic_graphs);
    printf("# %-52s %18llu\n", "dynamic: graphs with control flow", (unsigned long long)t->flow_graphs);
    h->passed += ok, h->failed += !ok;
    printf("%sok %u - sizes are symbols and control flow is in graphs\n", ok ? "" : "not ", h->passed + h->failed);
}

int main(int argc, char **argv)
{
    harness h = {0};
    bool ok = true;
    setenv("BACKPLANE_SYSCONFDIR", "/nonexistent", 1);
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    unsetenv("BACKPLANE_CONFIG");
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--only") && i + 1 < argc) {
            h.only = strtoull(argv[++i], NULL, 10);
            h.has_only = true;
        } else if (!strcmp(argv[i], "--source")) {
            h.source = true;
        } else if (!strcmp(argv[i], "--train")) {
            h.trains = true;
        } else if (!strcmp(argv[i], "--dynamic")) {
            h.dynamic = true;
        } else if (!strcmp(argv[i], "--threads") && i + 1 < argc) {
            h.threads = (uint32_t)strtoul(argv[++i], NULL, 10);
        } else {
            ok &= run_file(&h, argv[i]);
        }
    }
    if (h.trains)
        print_training(&h.totals), check_training(&h);
    else if (h.dynamic)
        check_dynamic(&h);
    else if (!h.threads)
        print_table(&h);
    printf("1..%u\n", h.passed + h.failed);
    printf("%u passed, %u failed\n", h.passed, h.failed);
    return h.failed || !h.passed || !ok;
}
