/* The one thread pool of the process (OpenMP's): the host's loops and plugins' parallel_for share it. */
#ifndef HOST_BASE_PARALLEL_H
#define HOST_BASE_PARALLEL_H
#include <stdint.h>

typedef void (*parallel_body)(void *arg, int64_t begin, int64_t end);
/* Runs body over [0, n) in pieces of at least `grain`; returns when all are done. Nested calls run in the caller. */
void parallel_for(int64_t n, int64_t grain, parallel_body body, void *arg);
uint32_t parallel_threads(void);
#endif
