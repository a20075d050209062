/* Which files the host runs code of: owner, modes and place, checked before the file is mapped. */
#ifndef HOST_BACKEND_POLICY_H
#define HOST_BACKEND_POLICY_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Checks an open file (st, by fstat) and every folder above `path` (real and absolute): each is owned by root, by the
 * effective user or by the user behind sudo, and nobody else may write it; a sticky folder may be open to all.
 * false: why names the file or folder and what is wrong. */
bool policy_allows(const char *path, const struct stat *st, char *why, size_t cap);
#endif
