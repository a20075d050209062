/* Verdicts of probes on disk, one small text file each under the cache folder. A file begins with everything that the
 * verdict depends on, so a stale or colliding one is seen by comparing bytes. Nothing here ever fails a load: what
 * cannot be read or written is probed again. */
#include <config.h>
#include "host/backend/probe.h"
#include "host/base/env.h"
#include "host/base/log.h"
#include "sdk/base/hash.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { KEEP_FAILURES_S = 24 * 3600, MAX_VERDICT = 8192 };

/* Where verdicts lie; false: nowhere (no home, or raised privileges, which hide the environment). */
static bool find_folder(buf *out)
{
    const char *own = env_get(ENV_BACKPLANE_CACHE_DIR), *xdg = env_get(ENV_XDG_CACHE_HOME), *home = env_get(ENV_HOME);
    if (own)
        buf_printf(out, "%s/probe", own);
    else if (xdg)
        buf_printf(out, "%s/backplane/probe", xdg);
    else if (home)
        buf_printf(out, "%s/.cache/backplane/probe", home);
    return out->n && !out->failed;
}

static void make_folders(const char *path)
{
    char part[4096];
    snprintf(part, sizeof part, "%s", path);
    for (char *at = part + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        mkdir(part, 0700);
    }
    mkdir(part, 0700);
}

/* A verdict decides whether code is run unprobed: nobody else may be able to plant one. */
static bool is_ours(const char *folder)
{
    struct stat st;
    return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           !(st.st_mode & (S_IWGRP | S_IWOTH));
}

static void print_key(const probe_request *q, buf *out)
{
    buf_printf(out, "backplane-probe 1\nhost %s\nfile %s\n", PACKAGE_VERSION, q->path);
    buf_printf(out, "id %llu %llu %lld %lld.%09ld\n", (unsigned long long)q->st->st_dev,
               (unsigned long long)q->st->st_ino, (long long)q->st->st_size, (long long)q->st->st_mtim.tv_sec,
               (long)q->st->st_mtim.tv_nsec);
    buf_printf(out, "init %s\ndeadline %lld\n", q->init, (long long)q->deadline_ms);
}

static bool find_file(const buf *key, const buf *folder, buf *out)
{
    hash128 h = hash128_bytes(key->s, key->n);
    buf_printf(out, "%s/%016llx%016llx", folder->s, (unsigned long long)h.hi, (unsigned long long)h.lo);
    return !out->failed;
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

static bool read_file(const char *path, char *text, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    struct stat st;
    bool ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
    ssize_t n = ok ? read(fd, text, cap - 1) : -1;
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static bool state_by_name(str name, enum backend_state *out)
{
    for (unsigned i = 0; i < STATE_COUNT; i++) {
        if (str_is(name, backend_state_name((enum backend_state)i))) {
            *out = (enum backend_state)i;
            return true;
        }
    }
    return false;
}

/* "time SECONDS\nstate NAME\nwhy=TEXT\nend\n" */
static bool parse_verdict(const char *text, probe_verdict *out)
{
    long long then;
    char state[64], why[PROBE_WHY] = "";
    int at = 0;
    if (sscanf(text, "time %lld\nstate %63[a-z-]\nwhy=%n", &then, state, &at) != 2 || !at)
        return false;
    const char *end = strstr(text + at, "\nend\n");
    if (!end || !state_by_name(str_of(state), &out->state))
        return false;
    snprintf(why, sizeof why, "%.*s", (int)(end - text - at), text + at);
    long long age = (long long)time(NULL) - then;
    if (out->state != STATE_OK && (age < 0 || age > KEEP_FAILURES_S))
        return false;
    memcpy(out->why, why, sizeof why);
    return true;
}

bool probe_recall(bp_runtime *rt, const probe_request *q, probe_verdict *out)
{
    buf folder = {0}, key = {0}, path = {0};
    char text[MAX_VERDICT];
    print_key(q, &key);
    bool ok = find_folder(&folder) && !key.failed && is_ours(folder.s) && find_file(&key, &folder, &path) &&
              read_file(path.s, text, sizeof text) && strncmp(text, key.s, key.n) == 0 &&
              parse_verdict(text + key.n, out);
    if (ok)
        log_line(rt, LOG_backend, "probe of %s: %s, remembered in %s", q->path, backend_state_name(out->state), path.s);
    out->usable = true;
    if (!ok)
        out->state = STATE_OK;
    buf_fini(&folder);
    buf_fini(&key);
    buf_fini(&path);
    return ok;
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

/* A new file beside the target, then a rename: readers see all or nothing. */
static bool write_file(const char *path, const buf *text)
{
    buf scratch = {0};
    buf_printf(&scratch, "%s.XXXXXX", path);
    int fd = scratch.failed ? -1 : mkostemp(scratch.s, O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text->s, text->n) == (ssize_t)text->n && fsync(fd) == 0;
    if (fd >= 0) {
        ok = close(fd) == 0 && ok && rename(scratch.s, path) == 0;
        if (!ok)
            unlink(scratch.s);
    }
    buf_fini(&scratch);
    return ok;
}

void probe_remember(bp_runtime *rt, const probe_request *q, const probe_verdict *v)
{
    buf folder = {0}, text = {0}, path = {0};
    print_key(q, &text);
    if (find_folder(&folder) && !text.failed && find_file(&text, &folder, &path)) {
        make_folders(folder.s);
        buf_printf(&text, "time %lld\nstate %s\nwhy=%s\nend\n", (long long)time(NULL), backend_state_name(v->state),
                   v->why);
        if (text.failed || !is_ours(folder.s) || !write_file(path.s, &text))
            log_line(rt, LOG_backend, "the verdict on %s is not remembered: %s: %s", q->path, folder.s,
                     strerror(errno));
    }
    buf_fini(&folder);
    buf_fini(&text);
    buf_fini(&path);
}

uint32_t backend_forget_probes(void)
{
    buf folder = {0}, path = {0};
    uint32_t n = 0;
    DIR *d = find_folder(&folder) && is_ours(folder.s) ? opendir(folder.s) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strspn(e->d_name, "0123456789abcdef") < 32)
            continue;
        buf_clear(&path);
        buf_printf(&path, "%s/%s", folder.s, e->d_name);
        n += !path.failed && unlink(path.s) == 0;
    }
    if (d)
        closedir(d);
    buf_fini(&folder);
    buf_fini(&path);
    return n;
}
