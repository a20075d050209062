/* Reading and writing whole files. */
#include "host/import/file.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bp_status file_fail(bp_ctx *c, const char *path, bp_status code, const char *field, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return ctx_fail(c, code, "file \"%s\", field \"%s\": %s", path, field, text);
}

static bp_status fail_errno(bp_ctx *c, const char *what, const char *path)
{
    bp_status code = errno == ENOENT || errno == ENOTDIR        ? BP_NOT_FOUND
                     : errno == EACCES || errno == EPERM        ? BP_PERMISSION_DENIED
                     : errno == ENOMEM || errno == ENOSPC || errno == EDQUOT || errno == EMFILE ? BP_RESOURCE_EXHAUSTED
                                                                : BP_FAILED_PRECONDITION;
    return ctx_fail(c, code, "cannot %s \"%s\": %s", what, path, strerror(errno));
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

/* The size of an open regular file; 0 after an error. */
static size_t regular_size(bp_ctx *c, int fd, const char *path)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        fail_errno(c, "read", path);
    else if (!S_ISREG(st.st_mode))
        ctx_fail(c, BP_INVALID_ARGUMENT, "\"%s\" is not a regular file", path);
    else if (st.st_size == 0)
        ctx_fail(c, BP_DATA_LOSS, "file \"%s\" is empty", path);
    else
        return (size_t)st.st_size;
    return 0;
}

static file_map *map_fd(bp_ctx *c, int fd, const char *path)
{
    size_t n = regular_size(c, fd, path), len = strlen(path) + 1;
    if (!n)
        return NULL;
    file_map *f = calloc(1, sizeof *f + len);
    if (!f) {
        ctx_nomem(c);
        return NULL;
    }
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
        fail_errno(c, "map", path);
        free(f);
        return NULL;
    }
    atomic_init(&f->refs, 1);
    f->data = p;
    f->n = n;
    f->path = memcpy(f + 1, path, len);
    return f;
}

file_map *file_open(bp_ctx *c, const char *path)
{
    if (!path) {
        ctx_fail(c, BP_INVALID_ARGUMENT, "the path is NULL");
        return NULL;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make us wait */
    if (fd < 0) {
        fail_errno(c, "open", path);
        return NULL;
    }
    file_map *f = map_fd(c, fd, path);
    close(fd);
    return f;
}

file_map *file_ref(file_map *f)
{
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

void file_unref(file_map *f)
{
    if (!f || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1)
        return;
    munmap(f->data, f->n);
    free(f);
}

void file_release(void *map, void *data)
{
    (void)data;
    file_unref(map);
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

static bool write_all(int fd, const file_part *p)
{
    const char *at = p->at;
    for (size_t left = p->n; left;) {
        ssize_t n = write(fd, at, left < SSIZE_MAX ? left : SSIZE_MAX);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        left -= (size_t)n;
    }
    return true;
}

static bool write_parts(int fd, const file_part *parts, uint32_t nparts)
{
    for (uint32_t i = 0; i < nparts; i++)
        if (!write_all(fd, &parts[i]))
            return false;
    return true;
}

/* Into a device, a pipe: nothing to rename. */
static bp_status write_into(bp_ctx *c, const char *path, const file_part *parts, uint32_t nparts)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(c, "open", path);
    bp_status s = write_parts(fd, parts, nparts) ? BP_OK : fail_errno(c, "write", path);
    close(fd);
    return s;
}

/* A new file next to path; *name is its name, to be freed. -1: errno says why. */
static int open_beside(const char *path, char **name)
{
    static atomic_uint counter;
    int fd = -1;
    *name = malloc(strlen(path) + 48);
    for (int tries = 0; *name && fd < 0 && tries < 100; tries++) {
        sprintf(*name, "%s.%ld-%u.part", path, (long)getpid(), atomic_fetch_add(&counter, 1));
        fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

static bp_status write_beside(bp_ctx *c, const char *path, mode_t mode, const file_part *parts, uint32_t nparts)
{
    char *name;
    int fd = open_beside(path, &name);
    if (fd < 0) {
        bp_status s = name ? fail_errno(c, "create", path) : ctx_nomem(c);
        free(name);
        return s;
    }
    bool done = write_parts(fd, parts, nparts) && (!mode || fchmod(fd, mode) == 0);
    int why = errno;
    done = (close(fd) == 0 || (why = errno, false)) && done;
    if (done && rename(name, path) != 0) {
        why = errno;
        done = false;
    }
    if (!done)
        unlink(name);
    free(name);
    errno = why;
    return done ? BP_OK : fail_errno(c, "write", path);
}

bp_status file_write(bp_ctx *c, const char *path, const file_part *parts, uint32_t nparts)
{
    struct stat st;
    if (!path)
        return ctx_fail(c, BP_INVALID_ARGUMENT, "the path is NULL");
    bool exists = stat(path, &st) == 0;
    if (exists && !S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? ctx_fail(c, BP_INVALID_ARGUMENT, "\"%s\" is a folder", path)
                                   : write_into(c, path, parts, nparts);
    char *real = exists ? realpath(path, NULL) : NULL; /* a link goes on pointing to the file that is replaced */
    bp_status s = write_beside(c, real ? real : path, exists ? st.st_mode & 07777 : 0, parts, nparts);
    free(real);
    return s;
}
