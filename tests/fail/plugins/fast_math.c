/* Switches denormals off: while it is loaded, and again in its compile and its run. */
#include <backplane/plugin.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#define SPOIL() _mm_setcsr(_mm_getcsr() | 0x8040)
#else
#define SPOIL() (void)0
#endif

__attribute__((constructor)) static void load(void)
{
    SPOIL();
}

static void drop(void *state)
{
    bp_compiled_unref((bp_compiled *)state);
}

static bp_status run(void *state, bp_run *r)
{
    SPOIL();
    return bp_run_compiled(r, (bp_compiled *)state);
}

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    bp_compiled *inner = bp_forward(gm);
    (void)inputs;
    SPOIL();
    return inner ? bp_compiled_new(gm, run, drop, inner) : NULL;
}
