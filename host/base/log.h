/* Logs: artifacts that BACKPLANE_LOGS names switch singly (logs.def); warnings and errors are always written.
 * A line reads "backplane: warning: TEXT" or "backplane[guards]: TEXT". Safe from any thread. */
#ifndef HOST_BASE_LOG_H
#define HOST_BASE_LOG_H
#include "host/base/runtime.h"

enum log_artifact {
#define LOG_ROW(name, help) LOG_##name,
#include "host/base/logs.def"
#undef LOG_ROW
    LOG_ARTIFACTS
};

static inline bool log_on(const bp_runtime *rt, enum log_artifact a) { return rt->log_mask >> a & 1; }
BP_PRINTF(3, 4) void log_line(bp_runtime *rt, enum log_artifact a, const char *fmt, ...); /* if switched on */
BP_PRINTF(2, 3) void log_warn(bp_runtime *rt, const char *fmt, ...);
BP_PRINTF(2, 3) void log_error(bp_runtime *rt, const char *fmt, ...);
/* Parses "capture,guards"; an unknown name is reported with the nearest one, and skipped. */
void log_parse(bp_runtime *rt, const char *names);
#endif
