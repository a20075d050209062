/* Opening oneDNN. Symbols are resolved eagerly, so that a library that lacks one is refused here and not in a run. */
#include "plugins/onednn/api.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

dnnl_api dnnl;

/* Tries one name; appends the loader's words to why when it fails. */
static void *try_open(const char *name, char *why, size_t cap)
{
    void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!lib) {
        size_t n = strlen(why);
        const char *text = dlerror();
        snprintf(why + n, cap - n, "%s%s", n ? "; " : "", text ? text : name);
    }
    return lib;
}

static bool resolve(void *lib, char *why, size_t cap)
{
    void *symbol;
#define DNNL_ROW(name)                                                                              \
    symbol = dlsym(lib, "dnnl_" #name);                                                             \
    if (!symbol) {                                                                                  \
        snprintf(why, cap, "the library has no dnnl_" #name ": oneDNN 3.x is needed");              \
        return false;                                                                               \
    }                                                                                               \
    memcpy(&dnnl.name, &symbol, sizeof symbol); /* a cast between object and function is not C */
#include "plugins/onednn/api.def"
#undef DNNL_ROW
    return true;
}

bool api_open(const char *path, char *why, size_t cap)
{
    if (dnnl.engine)
        return true;
    why[0] = '\0';
    void *lib = try_open(path ? path : ONEDNN_LIBRARY, why, cap);
    if (!lib && !path)
        lib = try_open("libdnnl.so.3", why, cap);
    if (!lib || !resolve(lib, why, cap))
        return false;
    if (dnnl.version()->major != 3) {
        snprintf(why, cap, "oneDNN %d.%d was found, 3.x is needed", dnnl.version()->major, dnnl.version()->minor);
        return false;
    }
    if (dnnl.engine_create(&dnnl.engine, dnnl_cpu, 0) != dnnl_success) {
        snprintf(why, cap, "oneDNN could not make a CPU engine");
        dnnl.engine = NULL;
        return false;
    }
    return true;
}
