/* Opening LAPACK (lapack.h). Once a process, whatever comes of it; the library stays. */
#include "host/op/reference/lapack.h"
#include "host/base/env.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char DEFAULT_NAME[] = "liblapack.so.3";

static struct {
    pthread_once_t once;
    lapack table;
    bool ready;
    char name[200], why[400];
} the = {.once = PTHREAD_ONCE_INIT};

/* Writes a symbol's address to a function pointer; a cast between object and function is not C. */
static bool resolve(void *library, const char *symbol, void *to)
{
    void *at = dlsym(library, symbol);
    if (at)
        memcpy(to, &at, sizeof at);
    else
        snprintf(the.why, sizeof the.why, "it has no routine %.60s", symbol);
    return at != NULL;
}

static bool resolve_all(void *library)
{
    bool ok = true;
#define LAPACK_PAIR(name, real, complex, ...) \
    ok = ok && resolve(library, real, &the.table.name[0]) && resolve(library, complex, &the.table.name[1]);
#define LAPACK_ONE(name, symbol, ...) ok = ok && resolve(library, symbol, &the.table.name);
#include "host/op/reference/lapack.def"
#undef LAPACK_PAIR
#undef LAPACK_ONE
    return ok;
}

static void open_it(void)
{
    const char *asked = env_get(ENV_BACKPLANE_LAPACK);
    snprintf(the.name, sizeof the.name, "%s", asked ? asked : DEFAULT_NAME);
    void *library = dlopen(the.name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library) {
        the.ready = resolve_all(library);
        return;
    }
    const char *text = dlerror();
    snprintf(the.why, sizeof the.why, "%s", text ? text : "the loader gave no reason");
}

const lapack *lapack_get(bp_ctx *c, const op_row *op)
{
    pthread_once(&the.once, open_it);
    if (the.ready)
        return &the.table;
    op_fail(c, op, BP_UNIMPLEMENTED, "linear algebra needs LAPACK, and \"%s\" cannot be used: %s", the.name, the.why);
    diag_hint(&c->diag, "install the Debian package liblapack3, or name a LAPACK in %s",
              env_name(ENV_BACKPLANE_LAPACK));
    return NULL;
}
