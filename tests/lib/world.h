/* A runtime with a config and a folder of its own, whose log and prints are kept. For tests of backends.
 *
 * In the texts of files: @plugins@ is where this build's plugins lie, @bad@ those of tests/fail, @feature@ those of
 * tests/features, @vendor@ those of tests/vendor, @dir@ the folder, @helper@ the probe helper. */
#ifndef BP_TESTS_LIB_WORLD_H
#define BP_TESTS_LIB_WORLD_H

#include "host/backend/program.h"
#include "tests/lib/check.h"
#include <backplane/backplane.h>

typedef struct {
    char dir[256];
    bp_runtime *rt;
    bp_ctx *c;
    buf log, shown; /* shown: what printing backends wrote */
} world;

/* The host's own, in order; all are tagged debug. */
#define OWN_DEBUG_BACKENDS \
    "aot_eager aot_eager_decomp_partition aot_eager_default_partitioner eager eager_debug eager_noexcept"

/* ini: the text of the system's backplane.ini. */
world *world_open(const char *ini);
void world_close(world *w);
/* Another runtime on the same folder, with `file` as the runtime's own ini file, or NULL. */
void world_again(world *w, const char *file);
/* Writes DIR/name with the variables replaced; returns its path (static, until the next call). */
const char *world_file(world *w, const char *name, const char *text);
/* The text with the variables replaced; for the caller to free. */
char *world_text(const world *w, const char *text);
/* Parses canonical text; the test fails if that fails. */
bp_graph_module *world_graph(world *w, const char *text);
/* Fails the test with the context's story. */
#define world_ok(w, expr) check_ok((w), (expr), #expr, __FILE__, __LINE__)
void check_ok(world *w, bp_status st, const char *what, const char *file, int line);
/* Clears the context, the log and what was shown. */
void world_clear(world *w);
#endif
