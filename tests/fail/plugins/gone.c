/* A library that is linked to and then removed. */
#include <backplane/plugin.h>

BP_EXPORT int gone(void)
{
    return 1;
}
