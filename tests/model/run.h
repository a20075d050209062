/* Running programs: one C function interprets a text over registers that the host does not see. It is captured by
 * bp_call and runs as it is under bp_run_eager; programs.py has the same interpreter for the model. */
#ifndef TESTS_MODEL_RUN_H
#define TESTS_MODEL_RUN_H
#include "tests/model/text.h"

/* What statements reach besides their registers. One for the compiled side, one for eager. */
typedef struct side {
    const program *p;
    bp_ctx *c;
    bool flag;                      /* what impure functions read */
    const double *told;             /* answers to take instead of asking; NULL: ask */
    uint32_t ntold;
    buf *trace;                     /* NULL, or where each statement is noted */
    bp_callable *callables[MAX_FNS]; /* NULL: nested functions run as they are */
    struct fn_user { struct side *side; uint32_t which; } users[MAX_FNS];
} side;

void side_init(side *s, const program *p, bp_ctx *c);
/* The captured function; its user pointer is a fn_user. */
void run_captured(bp_ctx *c, bp_frame *f);
/* What this build of the host lacks of NEEDS_*. */
uint32_t run_lacks(void);
/* t as a text: "f64[3]/1 0.5 1.0 2.0", sizes alone for a fake. */
void show_tensor(bp_ctx *c, const bp_tensor *t, buf *out);
#endif
