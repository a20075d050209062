/* Environment variables: the only place that reads them. */
#include "host/base/env.h"
#include <stdlib.h>

static const char *const NAMES[ENV_COUNT] = {
#define ENV_ROW(name, help) #name,
#include "host/base/env.def"
#undef ENV_ROW
};

const char *env_get(enum env_var v)
{
    const char *value = secure_getenv(NAMES[v]);
    return value && *value ? value : NULL;
}
