/* Time. */
#ifndef HOST_BASE_CLOCK_H
#define HOST_BASE_CLOCK_H
#include <stdint.h>

uint64_t clock_ns(void); /* monotonic */
#endif
