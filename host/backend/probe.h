/* Loading a plugin for the first time in a child process, so that a crash or a hang is the child's, and the memory of
 * how that went. */
#ifndef HOST_BACKEND_PROBE_H
#define HOST_BACKEND_PROBE_H
#include "host/backend/room.h"
#include <sys/stat.h>

enum { PROBE_WHY = 600 };
typedef struct {
    enum backend_state state; /* OK: it loads; else how it failed */
    bool usable;              /* false: no verdict could be had, and why says so; go on as without a probe */
    char why[PROBE_WHY];
} probe_verdict;

/* What was probed: a verdict holds for exactly this file, host and way of probing. */
typedef struct {
    const char *path, *init;  /* init: the hook's symbol, "" when it is not to be run */
    const struct stat *st;
    int64_t deadline_ms;
    const char *helper;
} probe_request;

/* The remembered verdict, or a probe whose verdict is remembered. Verdicts of failures are forgotten after 24 hours. */
void probe_ask(bp_runtime *rt, const probe_request *q, probe_verdict *out);
/* Which state a dlerror text of `path` means. needed: the library that it names as missing, when it does. */
enum backend_state probe_classify(const char *path, const char *error, char *needed, size_t cap);

/* -- parts, apart for tests -- */
void probe_run(const probe_request *q, probe_verdict *out);
bool probe_recall(bp_runtime *rt, const probe_request *q, probe_verdict *out);
void probe_remember(bp_runtime *rt, const probe_request *q, const probe_verdict *v);
#endif
