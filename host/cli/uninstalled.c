/* A command that runs from its build folder uses that folder's config, so that an uninstalled tree works as it is. */
#include "host/cli/cli.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cli_use_build_folder(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    static const char conf[] = "conf/uninstalled";
    if (n <= 0 || (size_t)n + sizeof conf >= sizeof path)
        return;
    path[n] = 0;
    char *slash = strrchr(path, '/');
    memcpy(slash + 1, conf, sizeof conf);
    if (access(path, R_OK) == 0)
        (void)setenv("BACKPLANE_SYSCONFDIR", path, 0);
}
