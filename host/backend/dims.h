/* What plugins see of symbolic dims. One that takes them sees them as they are. For every other one, reading is
 * specializing, as int(s0) is in Python: it sees numbers, the hints, and that each symbol in what it read is its hint
 * becomes a condition of what it compiles. */
#ifndef HOST_BACKEND_DIMS_H
#define HOST_BACKEND_DIMS_H
#include "host/backend/compiled.h"

/* m as the graph's backend sees it: m itself, or a copy in numbers that lives as long as the graph. NULL: it holds data
 * (an unbacked symbol), or memory is used up; the compile's record says so. */
const tensor_meta *dims_see_meta(const bp_graph_module *gm, const tensor_meta *m);
/* The same of an argument, in place. */
bp_status dims_see_value(const bp_graph_module *gm, bp_value *v);
/* A plugin keeps the graph, and may read it at any time: for one that takes no symbols it is in numbers from now on. */
bp_status dims_settle(bp_graph_module *gm);
#endif
