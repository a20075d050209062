/* oneDNN, opened at run time: the plugin builds with its headers alone and loads without its library, which is then a
 * failed init that names what was tried. */
#ifndef ONEDNN_API_H
#define ONEDNN_API_H
#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>

typedef struct {
#define DNNL_ROW(name) __typeof__(&dnnl_##name) name;
#include "plugins/onednn/api.def"
#undef DNNL_ROW
    dnnl_engine_t engine; /* the CPU; lives as long as the process */
} dnnl_api;

/* The table; filled by api_open. */
extern dnnl_api dnnl;

/* Opens the library at `path` (or, when NULL, where the build found it, then by its soname) and makes the engine.
 * Idempotent; not for several threads at once. False: `why` of cap bytes says what was tried. */
bool api_open(const char *path, char *why, size_t cap);
#endif
