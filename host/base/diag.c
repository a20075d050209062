/* Errors: recording, annotating, rendering. All storage is in the diag itself. */
#include "host/base/diag.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct { const char *name; bp_status code; char chain; } ROWS[] = {
    {"OK", BP_OK, 'L'},
#define BP_STATUS_ROW(name, number, chain, meaning) {#name, number, #chain[0]},
#include <backplane/status.def>
#undef BP_STATUS_ROW
};
enum { NROWS = sizeof ROWS / sizeof ROWS[0] };

bp_status diag_fail(diag *d, bp_status code, const char *fmt, ...)
{
    code = code == BP_OK ? BP_UNKNOWN : code;
    d->muted = d->code != BP_OK;
    if (d->muted) {
        d->suppressed++;
        return code;
    }
    d->code = code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(d->message, sizeof d->message, fmt, ap);
    va_end(ap);
    return code;
}

void diag_detail(diag *d, const char *fmt, ...)
{
    if (d->code == BP_OK || d->muted)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(d->detail, sizeof d->detail, fmt, ap);
    va_end(ap);
}

void diag_hint(diag *d, const char *fmt, ...)
{
    if (d->code == BP_OK || d->muted)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(d->hint, sizeof d->hint, fmt, ap);
    va_end(ap);
}

/* Past the last frame the outermost one is replaced: what the user called says more than the steps between. */
void diag_while(diag *d, const char *fmt, ...)
{
    if (d->code == BP_OK)
        return;
    uint32_t at = d->nframes < DIAG_FRAMES ? d->nframes++ : DIAG_FRAMES - 1;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(d->frames[at], sizeof d->frames[at], fmt, ap);
    va_end(ap);
}

bp_status diag_nomem(diag *d)
{
    return diag_fail(d, BP_RESOURCE_EXHAUSTED, "out of memory");
}

void diag_clear(diag *d)
{
    d->code = BP_OK;
    d->message[0] = d->detail[0] = d->hint[0] = d->text[0] = '\0';
    d->nframes = d->suppressed = 0;
    d->muted = d->ends = false;
}

BP_PRINTF(3, 4) static size_t append(diag *d, size_t at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(d->text + at, sizeof d->text - at, fmt, ap);
    va_end(ap);
    size_t room = sizeof d->text - 1 - at;
    return at + (n < 0 ? 0 : (size_t)n < room ? (size_t)n : room);
}

const char *diag_text(diag *d)
{
    d->text[0] = '\0';
    if (d->code == BP_OK)
        return d->text;
    size_t n = append(d, 0, "%s", d->message);
    if (d->detail[0])
        n = append(d, n, "\n  %s", d->detail);
    if (d->hint[0])
        n = append(d, n, "\n  hint: %s", d->hint);
    for (uint32_t i = 0; i < d->nframes; i++)
        n = append(d, n, "\n  while %s", d->frames[i]);
    if (d->suppressed)
        append(d, n, "\n  (and %u more after it)", d->suppressed);
    return d->text;
}

const char *status_name(bp_status code)
{
    for (size_t i = 0; i < NROWS; i++)
        if (ROWS[i].code == code)
            return ROWS[i].name;
    return "UNKNOWN";
}

bool status_by_name(const char *name, bp_status *out)
{
    for (size_t i = 0; i < NROWS; i++) {
        if (strcmp(ROWS[i].name, name) == 0) {
            *out = ROWS[i].code;
            return true;
        }
    }
    return false;
}

char status_chain(bp_status code)
{
    for (size_t i = 0; i < NROWS; i++)
        if (ROWS[i].code == code)
            return ROWS[i].chain;
    return 'L';
}
