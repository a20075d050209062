/* The same in C++, where an exception stays inside. */
#include <backplane/plugin.h>
#include <stdexcept>
#include <string>

/* A run that throws is a failed run. */
static bp_status throws(void *, bp_run *r)
{
    throw std::runtime_error(bp_host_of(r) ? "thrown by a run" : "no host");
}
BP_RUN_CXX(run_throws, throws)

static bp_compiled *hello(bp_graph_module *gm, const bp_inputs *inputs)
{
    std::string first = bp_input_name(inputs, 0);
    if (first == "refused")
        throw std::runtime_error("no input may be called " + first);
    if (first == "thrown")
        return bp_compiled_new(gm, run_throws, nullptr, nullptr);
    bp_print_tabular(gm, bp_sink(gm));
    return bp_forward(gm);
}
BP_COMPILE_CXX(hello)
