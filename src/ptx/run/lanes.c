/* The handlers of lanes.h for any machine. */
#define PTX_LANES_TABLE ptx_lanes_plain
#include "ptx/run/lanes_body.h"

bool ptx_has_v3(void) {
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("fma");
#else
    return false;
#endif
}
