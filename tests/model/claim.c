/* The claim of a callable's code. */
#include "tests/model/claim.h"
#include "host/compile/callable.h"

void claim_callable(bp_callable *g, bool hold)
{
    code_state *s = code_state_of(g->code);
    if (hold)
        (void)code_claim(s);
    else
        code_release(s);
}
