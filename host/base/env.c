/* Environment variables: the only place that reads them. */
#include "host/base/env.h"
#include <stdlib.h>

static const struct { const char *name, *help; } ROWS[ENV_COUNT] = {
#define ENV_ROW(name, help) {#name, help},
#include "host/base/env.def"
#undef ENV_ROW
};

const char *env_name(enum env_var v)
{
    return ROWS[v].name;
}

const char *env_help(enum env_var v)
{
    return ROWS[v].help;
}

const char *env_get(enum env_var v)
{
    const char *value = secure_getenv(ROWS[v].name);
    return value && *value ? value : NULL;
}
