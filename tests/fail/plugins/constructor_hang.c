/* Never finishes loading. */
#include <backplane/plugin.h>
#include <unistd.h>

__attribute__((constructor)) static void hang(void)
{
    for (;;)
        pause();
}

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_forward(gm);
}
