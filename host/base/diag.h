/* Errors: one story a context.
 *
 * A failing function calls diag_fail, which records the first failure and returns its code; callers annotate while
 * returning (diag_while). After the first failure everything else is ignored until diag_clear. Storage is fixed, so
 * that being out of memory can be told. Text: the primary message has no capital, stop or function name, and holds
 * values; names stand in double quotes; detail is a sentence; hint says what to do. */
#ifndef HOST_BASE_DIAG_H
#define HOST_BASE_DIAG_H
#include <backplane/types.h>
#include <stdbool.h>

enum { DIAG_FRAMES = 8 };
typedef struct {
    bp_status code; /* 0: no failure */
    char message[1024], detail[1536], hint[512];
    char frames[DIAG_FRAMES][200]; /* innermost first: "capturing toy_example (demo.c:12)" */
    uint32_t nframes, suppressed;  /* suppressed: failures reported after the first */
    bool ends;                     /* nothing else may answer: what others would compute from is spoiled */
    bool muted;                    /* the last diag_fail was suppressed: its detail and hint are too */
    char text[4096];               /* rendered by diag_text */
} diag;

/* Records the first failure. Returns code, or BP_UNKNOWN when code is 0. */
BP_PRINTF(3, 4) bp_status diag_fail(diag *d, bp_status code, const char *fmt, ...);
BP_PRINTF(2, 3) void diag_detail(diag *d, const char *fmt, ...); /* of the failure just recorded */
BP_PRINTF(2, 3) void diag_hint(diag *d, const char *fmt, ...);
BP_PRINTF(2, 3) void diag_while(diag *d, const char *fmt, ...);  /* adds a "while ..." line if there is a failure */
bp_status diag_nomem(diag *d);                                   /* "out of memory" */
void diag_clear(diag *d);
/* The whole story; "" when there is none. */
const char *diag_text(diag *d);
const char *status_name(bp_status code);
bool status_by_name(const char *name, bp_status *out);
/* What a chain does on a code: 'S'top, 'Q'uiet, 'D'ata, 'L'oud (a code outside the table is loud). */
char status_chain(bp_status code);

/* A function off the path of every call: kept apart, so that the path itself stays short. */
#define RARE __attribute__((noinline, cold))
/* A part of that path: entering and leaving a function costs as much as most of them do. */
#define HOT inline __attribute__((always_inline))

/* Returns from the calling function when expr is a failure. */
#define TRY(expr)                    \
    do {                             \
        bp_status try_ = (expr);     \
        if (try_ != BP_OK)           \
            return try_;             \
    } while (0)
#endif
