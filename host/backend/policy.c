/* The rules of sudo and of ssh for files that decide what runs. They cover the library itself; what it links to, and
 * LD_LIBRARY_PATH, are beyond them. */
#include "host/backend/policy.h"
#include "host/base/env.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool owner_is_trusted(uid_t owner)
{
    uid_t me = geteuid();
    if (owner == 0 || owner == me)
        return true;
    const char *sudo = me == 0 ? env_get(ENV_SUDO_UID) : NULL;
    char *end;
    unsigned long uid = sudo ? strtoul(sudo, &end, 10) : 0;
    return sudo && *end == '\0' && uid == owner;
}

static bool judge(const char *path, const char *kind, const struct stat *st, char *why, size_t cap)
{
    if (!owner_is_trusted(st->st_uid)) {
        snprintf(why, cap, "the %s %s belongs to user %u; root or user %u must own it", kind, path,
                 (unsigned)st->st_uid,
                 (unsigned)geteuid());
        return false;
    }
    if ((st->st_mode & (S_IWGRP | S_IWOTH)) && !(S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX))) {
        snprintf(why, cap, "the %s %s is writable by %s (mode %04o); try chmod go-w", kind, path,
                 st->st_mode & S_IWOTH ? "others" : "its group", (unsigned)(st->st_mode & 07777));
        return false;
    }
    return true;
}

bool policy_allows(const char *path, const struct stat *st, char *why, size_t cap)
{
    if (!S_ISREG(st->st_mode)) {
        snprintf(why, cap, "%s is not a regular file", path);
        return false;
    }
    if (!judge(path, "file", st, why, cap))
        return false;
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash; (slash = strrchr(folder, '/'));) {
        slash[slash == folder] = '\0';
        struct stat above;
        if (lstat(folder, &above) != 0) {
            snprintf(why, cap, "%s: %s", folder, strerror(errno));
            return false;
        }
        if (!judge(folder, "folder", &above, why, cap))
            return false;
        if (slash == folder)
            break;
    }
    return true;
}
