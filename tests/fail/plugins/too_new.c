/* Says in a second note that it needs an API that no host has yet. */
#include <backplane/plugin.h>

static const bp_elf_note note __attribute__((section(".note.backplane"), used, aligned(4))) = {
    10, 8, 1, "backplane", 1000, BP_SANITIZER_NONE};

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    (void)inputs;
    return bp_forward(gm);
}
