/* Logs. A line is put together first and written at once, under the log's own lock, so lines of threads do not mix. */
#include "host/base/log.h"
#include "sdk/base/match.h"
#include "sdk/base/str.h"
#include <stdio.h>

static const char *const NAMES[LOG_ARTIFACTS] = {
#define LOG_ROW(name, help) #name,
#include "host/base/logs.def"
#undef LOG_ROW
};

static void write_line(bp_runtime *rt, const char *head, const char *fmt, va_list ap)
{
    buf line = {0};
    buf_puts(&line, head);
    buf_vprintf(&line, fmt, ap);
    buf_putc(&line, '\n');
    static const char LOST[] = "backplane: warning: a log line was lost: out of memory\n";
    str text = line.failed ? STR(LOST) : (str){line.s, line.n};
    pthread_mutex_lock(&rt->log_lock);
    if (rt->log_write)
        rt->log_write(rt->log_arg, text.s, text.n);
    else
        fwrite(text.s, 1, text.n, stderr);
    pthread_mutex_unlock(&rt->log_lock);
    buf_fini(&line);
}

void log_line(bp_runtime *rt, enum log_artifact a, const char *fmt, ...)
{
    if (!log_on(rt, a))
        return;
    char head[64];
    snprintf(head, sizeof head, "backplane[%s]: ", NAMES[a]);
    va_list ap;
    va_start(ap, fmt);
    write_line(rt, head, fmt, ap);
    va_end(ap);
}

void log_warn(bp_runtime *rt, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    write_line(rt, "backplane: warning: ", fmt, ap);
    va_end(ap);
}

void log_error(bp_runtime *rt, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    write_line(rt, "backplane: error: ", fmt, ap);
    va_end(ap);
}

static void switch_on(bp_runtime *rt, str name)
{
    for (unsigned i = 0; i < LOG_ARTIFACTS; i++) {
        if (str_is(name, NAMES[i])) {
            rt->log_mask |= UINT64_C(1) << i;
            return;
        }
    }
    const char *near;
    bool found = match_close(name, NAMES, LOG_ARTIFACTS, 0.6, 1, &near) == 1;
    log_warn(rt, "BACKPLANE_LOGS names \"%.*s\", which is no log artifact%s%s%s", (int)(name.n < 80 ? name.n : 80),
             name.s, found ? "; did you mean \"" : "", found ? near : "", found ? "\"?" : "");
}

void log_parse(bp_runtime *rt, const char *names)
{
    str rest = str_of(names);
    while (rest.s) {
        str name = str_trim(str_split(&rest, ','));
        if (name.n)
            switch_on(rt, name);
    }
}
