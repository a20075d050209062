/* The thread pool. One contiguous piece a thread, so that which thread computes what depends on n alone. */
#include "host/base/parallel.h"
#include "host/base/env.h"
#include <pthread.h>
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static uint32_t nthreads;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void count_threads(void)
{
    const char *text = env_get(ENV_BACKPLANE_THREADS);
    long n = text ? strtol(text, NULL, 10) : 0;
#ifdef _OPENMP
    n = n > 0 ? n : omp_get_max_threads();
#endif
    nthreads = n < 1 ? 1 : n > 1024 ? 1024 : (uint32_t)n;
}

uint32_t parallel_threads(void)
{
    pthread_once(&once, count_threads);
    return nthreads;
}

#ifdef _OPENMP
static void run_pieces(int64_t n, int64_t size, int npieces, parallel_body body, void *arg)
{
#pragma omp parallel for schedule(static, 1) num_threads(npieces)
    for (int i = 0; i < npieces; i++) {
        int64_t begin = i * size;
        if (begin < n)
            body(arg, begin, n - begin < size ? n : begin + size);
    }
}
#endif

void parallel_for(int64_t n, int64_t grain, parallel_body body, void *arg)
{
    if (n <= 0)
        return;
#ifdef _OPENMP
    grain = grain < 1 ? 1 : grain;
    int64_t threads = parallel_threads(), npieces = n / grain < threads ? n / grain : threads;
    if (npieces > 1 && !omp_in_parallel()) {
        run_pieces(n, n / npieces + (n % npieces != 0), (int)npieces, body, arg);
        return;
    }
#else
    (void)grain;
#endif
    body(arg, 0, n);
}
