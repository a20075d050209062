/* Environment variables by row; never getenv elsewhere in the host. */
#ifndef HOST_BASE_ENV_H
#define HOST_BASE_ENV_H

enum env_var {
#define ENV_ROW(name, help) ENV_##name,
#include "host/base/env.def"
#undef ENV_ROW
    ENV_COUNT
};
/* The value, or NULL when unset, empty or when the process runs with raised privileges. */
const char *env_get(enum env_var v);
const char *env_name(enum env_var v);
const char *env_help(enum env_var v);
#endif
