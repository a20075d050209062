/* The table of levels: names, and what the processor must have. BACKPLANE_ISA names the highest that may be used; a
 * name that is not known, or that the processor lacks, leaves the choice to the processor. */
#include "host/base/isa.h"
#include "host/base/env.h"
#include <string.h>

atomic_int isa_chosen;

static bool has_scalar(void) { return true; }
#ifdef ISA_X86
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#else
static bool has_avx2(void) { return false; }
static bool has_avx512(void) { return false; }
#endif

static const struct { const char *name; bool (*is_there)(void); } levels[ISA_LEVELS] = {
    [ISA_SCALAR] = {"scalar", has_scalar}, [ISA_AVX2] = {"avx2", has_avx2}, [ISA_AVX512] = {"avx512", has_avx512}};

bool isa_set(isa_level level)
{
    if (level <= ISA_UNKNOWN || level >= ISA_LEVELS || !levels[level].is_there())
        return false;
    atomic_store_explicit(&isa_chosen, level, memory_order_relaxed);
    return true;
}

isa_level isa_choose(void)
{
    const char *asked = env_get(ENV_BACKPLANE_ISA);
    isa_level level = ISA_LEVELS - 1;
    for (isa_level i = ISA_SCALAR; asked && i < ISA_LEVELS; i++)
        if (!strcmp(asked, levels[i].name))
            level = i;
    while (!isa_set(level))
        level--;
    return level;
}

const char *isa_name(isa_level level)
{
    return level > ISA_UNKNOWN && level < ISA_LEVELS ? levels[level].name : "?";
}
