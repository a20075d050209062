/* The probe: runs `backplane-probe PATH INIT` and reads what it says. The helper writes a line before each dangerous
 * step and one at the end, so that how far it came tells crash from crash. The deadline is counted from before the
 * spawn; at its end the child's whole process group is killed. Nothing here trusts SIGCHLD: a program may ignore it or
 * reap our child, and then the helper's last line decides. */
#include "host/backend/probe.h"
#include "host/base/clock.h"
#include "host/base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
enum { OUTPUT = 2048 };

typedef struct { pid_t pid; int from; uint64_t end_ns; char text[OUTPUT]; size_t n; } child;

BP_PRINTF(3, 4) static void decide(probe_verdict *v, enum backend_state state, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(v->why, sizeof v->why, fmt, ap);
    va_end(ap);
    v->state = state;
    v->usable = true;
}

/* Not a verdict about the plugin: the probe itself did not work. */
BP_PRINTF(2, 3) static void give_up(probe_verdict *v, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(v->why, sizeof v->why, fmt, ap);
    va_end(ap);
    v->usable = false;
}

/* -- the child ----------------------------------------------------------------------------------------------------- */

static int set_up(posix_spawn_file_actions_t *files, posix_spawnattr_t *attr, int to)
{
    int e = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
    e = e ? e : posix_spawn_file_actions_adddup2(files, to, 1);
    e = e ? e : posix_spawn_file_actions_addopen(files, 2, "/dev/null", O_WRONLY, 0);
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
    e = e ? e : posix_spawn_file_actions_addclosefrom_np(files, 3);
#endif
    sigset_t none, usual;
    sigemptyset(&none);
    sigfillset(&usual);
    e = e ? e : posix_spawnattr_setsigmask(attr, &none);
    e = e ? e : posix_spawnattr_setsigdefault(attr, &usual);
    e = e ? e : posix_spawnattr_setpgroup(attr, 0);
    return e ? e : posix_spawnattr_setflags(attr,
                                            POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

/* posix_spawn takes its arguments as char *, and does not write them. */
static char *argument(const char *text)
{
    union { const char *in; char *out; } u = {text};
    return u.out;
}

static int spawn(const probe_request *q, int to, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    int e = posix_spawn_file_actions_init(&files);
    if (e)
        return e;
    e = posix_spawnattr_init(&attr);
    if (!e) {
        char *argv[] = {argument(q->helper), argument(q->path), argument(q->init), NULL};
        e = set_up(&files, &attr, to);
        e = e ? e : posix_spawn(pid, q->helper, &files, &attr, argv, environ);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&files);
    return e;
}

static int time_left(const child *k)
{
    uint64_t now = clock_ns();
    return now >= k->end_ns ? 0 : (int)((k->end_ns - now) / 1000000 + 1);
}

/* Reads until the child closes its end; false: the deadline passed. */
static bool listen_to(child *k)
{
    for (;;) {
        struct pollfd p = {.fd = k->from, .events = POLLIN};
        int ready = poll(&p, 1, time_left(k));
        if (ready == 0)
            return false;
        if (ready < 0 && errno == EINTR)
            continue;
        char spill[256];
        bool full = k->n == OUTPUT - 1;
        ssize_t got = read(k->from, full ? spill : k->text + k->n, full ? sizeof spill : OUTPUT - 1 - k->n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return true;
        k->n += full ? 0 : (size_t)got;
    }
}

/* Waits for its end within the deadline. Returns 1 and the status, 0 past the deadline, -1 when somebody else got
 * it. */
static int collect(child *k, int *status)
{
    for (;;) {
        pid_t got = waitpid(k->pid, status, WNOHANG);
        if (got == k->pid)
            return 1;
        if (got < 0 && errno != EINTR)
            return -1;
        if (time_left(k) == 0)
            return 0;
        nanosleep(&(struct timespec){0, 200000}, NULL);
    }
}

static void end_child(child *k)
{
    kill(-k->pid, SIGKILL);
    kill(k->pid, SIGKILL);
    while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* -- the verdict --------------------------------------------------------------------------------------------------- */

static const char *phase(const child *k)
{
    return strstr(k->text, "\ninit\n") ? "init hook" : "constructors";
}

/* Crashes are told as "crashed in its constructors: SIGSEGV". */
static void judge_end(const child *k, int status, bool known, probe_verdict *v)
{
    if (strstr(k->text, "\nend\n"))
        decide(v, STATE_OK, "%s", "");
    else if (known && WIFSIGNALED(status))
        decide(v, STATE_CRASHED, "its %s crashed in a probe: signal %d, SIG%s", phase(k), WTERMSIG(status),
               sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "?");
    else if (known && WEXITSTATUS(status) == 126)
        give_up(v, "the probe helper could not do its work");
    else
        decide(v, STATE_CRASHED, "its %s ended the process in a probe, exit status %d", phase(k),
               known ? WEXITSTATUS(status) : -1);
}

static void judge(const probe_request *q, const child *k, int status, bool known, probe_verdict *v)
{
    const char *error = strstr(k->text, "\nerror ");
    if (!k->n || strncmp(k->text, "\nload\n", 6) != 0) {
        give_up(v, "the probe helper %s said nothing", q->helper);
        return;
    }
    if (!error) {
        judge_end(k, status, known, v);
        return;
    }
    char needed[256];
    int n = (int)strcspn(error + 7, "\n");
    decide(v, STATE_OK, "%.*s", n, error + 7);
    v->state = probe_classify(q->path, v->why, needed, sizeof needed);
}

void probe_run(const probe_request *q, probe_verdict *out)
{
    child k = {.end_ns = clock_ns() + (uint64_t)q->deadline_ms * 1000000};
    int pipes[2], status = 0;
    if (pipe2(pipes, O_CLOEXEC) != 0) {
        give_up(out, "no pipe for a probe: %s", strerror(errno));
        return;
    }
    k.from = pipes[0];
    int e = spawn(q, pipes[1], &k.pid);
    close(pipes[1]);
    if (e) {
        close(pipes[0]);
        give_up(out, "the probe helper %s does not start: %s", q->helper, strerror(e));
        return;
    }
    int ended = listen_to(&k) ? collect(&k, &status) : 0;
    k.text[k.n] = '\0';
    if (ended == 0) {
        end_child(&k);
        decide(out, STATE_HUNG, "its %s did not finish within %lld ms in a probe", phase(&k),
               (long long)q->deadline_ms);
    } else {
        judge(q, &k, status, ended == 1, out);
    }
    close(pipes[0]);
}

/* -- reading dlerror ----------------------------------------------------------------------------------------------- */

/* The word before `mark`, as in "libx.so.1: cannot open ...". */
static void word_before(const char *text, const char *mark, char *out, size_t cap)
{
    const char *end = strstr(text, mark);
    size_t n = (size_t)(end - text);
    const char *from = end;
    while (from > text && from[-1] != ' ')
        from--;
    n = (size_t)(end - from);
    snprintf(out, cap, "%.*s", (int)n, from);
}

enum backend_state probe_classify(const char *path, const char *error, char *needed, size_t cap)
{
    static const char *const OPEN = ": cannot open shared object file", *const SYMBOL = "undefined symbol: ";
    *needed = '\0';
    if (strstr(error, SYMBOL) || strstr(error, "symbol lookup error"))
        return STATE_UNDEFINED;
    if (strstr(error, OPEN)) {
        word_before(error, OPEN, needed, cap);
        if (strcmp(needed, path) != 0)
            return STATE_MISSING_DEP;
        return STATE_MISSING;
    }
    /* "libc.so.6: version `GLIBC_2.99' not found (required by x.so)" */
    if (strstr(error, "version `") && strstr(error, "' not found")) {
        word_before(error, ": version `", needed, cap);
        return STATE_MISSING_DEP;
    }
    return STATE_BAD_FILE;
}

void probe_ask(bp_runtime *rt, const probe_request *q, probe_verdict *out)
{
    *out = (probe_verdict){.usable = true};
    if (probe_recall(rt, q, out))
        return;
    probe_run(q, out);
    log_line(rt, LOG_backend, "probe of %s: %s%s%s", q->path, out->usable ? backend_state_name(out->state) : "none",
             *out->why ? ": " : "", out->why);
    if (out->usable)
        probe_remember(rt, q, out);
}
