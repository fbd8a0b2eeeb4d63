/* What a kernel's counts mean on a device: occupancy, and the time that its units would need. */
#ifndef MR_OPS_KERNEL_PROFILE_H
#define MR_OPS_KERNEL_PROFILE_H

#include "ops/kernel.h"
#include "ptx/profile.h"

typedef struct {
    int blocks_per_sm;      /* that are resident at once */
    double occupancy;       /* of the warps that an SM can hold: 0 to 1 */
    const char *limited_by; /* "threads", "blocks", "registers", "shared memory" */
} mr_kernel_occupancy;

/* Of blocks of that many threads with that much dynamic shared memory. */
mr_kernel_occupancy mr_kernel_occupancy_of(const mr_device *device, const mr_ptx_kernel *kernel,
                                           uint32_t threads, uint32_t dynamic_shared);

/* Seconds that each kind of unit needs for the counts, if all SMs are busy; the slowest decides. */
typedef struct {
    double issue; /* warps' instructions: each of four schedulers issues one a clock */
    double f64;   /* likewise, where the units are fewer */
    double special;
    double shared; /* a pass over the banks a clock */
    double memory; /* sectors of global and local memory, at the device's bandwidth */
    double total;
    const char
        *bound_by; /* "instructions", "f64", "special functions", "shared memory", "memory" */
} mr_kernel_times;

mr_kernel_times mr_kernel_times_of(const mr_device *device, const mr_ptx_profile *profile);

#endif
