/* What stands between the host and a plugin's code: the floating-point word, serial sections, forks. */
#ifndef HOST_BACKEND_PROTECT_H
#define HOST_BACKEND_PROTECT_H
#include "host/base/ctx.h"

/* The floating-point control word before a call. A library linked with -ffast-math switches denormals off when it is
 * loaded; the host's numbers must not change by that. */
typedef struct { uint32_t word; } fp_word;
fp_word protect_begin(void);
/* Puts the word back; true when the plugin had changed it. */
bool protect_end(fp_word before);

/* A lock that its owner may take again. Threads that wait for each other's locks in a circle get an error, since two
 * composers whose chains hold each other would otherwise hang. Zero-initialized is ready. */
typedef struct serial_owner serial_owner;
typedef struct { serial_owner *owner; uint32_t depth; } serial;
/* what: a name for the error. */
bp_status serial_enter(bp_ctx *c, serial *s, const char *what);
void serial_leave(serial *s);
/* The process's lock for a key, the same for each call; NULL: out of memory. Two names, or two runtimes, that lead to
 * one plugin must not be in it at once. */
serial *serial_of(const void *key);

/* How often this process is a fork's child: differs from an earlier value in a child of the process that read it. */
uint32_t protect_forks(void);
#endif
