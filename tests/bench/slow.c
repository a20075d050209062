/* A fault for the limits of a call to find: each call goes round a loop a hundred times, and takes a lock. */
#include "host/capture/frame.h"
#include <pthread.h>

bp_status __real_args_check(bp_ctx *c, const bp_args *args);
bp_status __wrap_args_check(bp_ctx *c, const bp_args *args);

bp_status __wrap_args_check(bp_ctx *c, const bp_args *args)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    for (volatile int i = 0; i < 100; i++)
        ;
    pthread_mutex_unlock(&lock);
    return __real_args_check(c, args);
}
