/* The same in C++, where an exception stays inside. */
#include <backplane/plugin.h>
#include <stdexcept>
#include <string>

static bp_compiled *hello(bp_graph_module *gm, const bp_inputs *inputs)
{
    std::string first = bp_input_name(inputs, 0);
    if (first == "refused")
        throw std::runtime_error("no input may be called " + first);
    bp_print_tabular(gm, bp_sink(gm));
    return bp_forward(gm);
}
BP_COMPILE_CXX(hello)
