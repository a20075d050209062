/* A shared object that defines no compile function. */
#include <backplane/plugin.h>

BP_EXPORT int compiler(void)
{
    return 1;
}
