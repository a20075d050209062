/* A vendor's own composer: the first of its links that compiles wins, by look-up and compile_with alone. */
#include <backplane/plugin.h>

BP_EXPORT bp_compiled *compile(bp_graph_module *gm, const bp_inputs *inputs)
{
    static const char *const links[] = {"hello-absent", "hello-cxx", "hello"};
    for (unsigned i = 0; i < sizeof links / sizeof *links; i++) {
        if (bp_lookup_backend(gm, links[i]) != BP_OK)
            continue;
        bp_compiled *made = bp_compile_with(gm, inputs, &links[i], 1);
        if (made)
            return made;
    }
    return bp_decline(gm, 0, "none of its links takes the graph");
}
