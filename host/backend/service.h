/* The functions behind the rows of host_api.def. Each is called by plugins: arguments are checked, nothing crashes, and
 * a failure is a code, never an error left in the context. */
#ifndef HOST_BACKEND_SERVICE_H
#define HOST_BACKEND_SERVICE_H
#include "host/backend/compiled.h"

#define BP_API_ROW(since, result, name, params, args, handle, fallback) result service_##name params;
#define BP_API_VOID(since, name, params, args, handle) void service_##name params;
#include <backplane/host_api.def>
#undef BP_API_ROW
#undef BP_API_VOID

/* Whose table it is. */
backend *service_backend(const bp_host *host);
#endif
