/* Figures from a kernel's counts on a device: occupancy, and the time that its units would need. */
#ifndef MR_OPS_KERNEL_PROFILE_H
#define MR_OPS_KERNEL_PROFILE_H

#include "ops/kernel.h"
#include "ptx/run/profile.h"

#define SECTOR_BYTES 32 /* the smallest transfer of memory */

typedef struct {
    int blocks_per_sm;      /* that are resident at once */
    double occupancy;       /* of the warps that an SM can hold: 0 to 1 */
    const char *limited_by; /* "threads", "blocks", "registers", "shared memory" */
} mr_kernel_occupancy;

/* For blocks of that many threads with that much dynamic shared memory. */
mr_kernel_occupancy mr_kernel_occupancy_of(const mr_device *device, const mr_ptx_kernel *kernel,
                                           uint32_t threads, uint32_t dynamic_shared);

/* Seconds that a launch needs, by each limiting resource. The largest decides; a kernel that comes near to several
 * takes longer. */
// clang-format off
#define MR_KERNEL_BOUNDS(X)                                                                        \
    X(issue,   "instructions")      /* warps' instructions: each of four schedulers issues one a clock */ \
    X(f64,     "f64")               /* likewise, where the units are fewer */                      \
    X(special, "special functions")                                                                \
    X(shared,  "shared memory")     /* a pass over the banks a clock */                            \
    X(l1,      "l1 cache")          /* lines of global and local memory, and those passes: one a clock */ \
    X(memory,  "memory")            /* bytes that the launch may touch, at the device's bandwidth */ \
    X(atomics, "atomics")           /* passes over the part of the L2 cache that has most of them */ \
    X(blocks,  "starting blocks")   /* an SM starts them one after the other */                    \
    X(latency, "latency")           /* the serial work of each warp, times the rounds of blocks */
// clang-format on

typedef struct {
#define X(name, text) double name;
    MR_KERNEL_BOUNDS(X)
#undef X
    double total;
    const char *bound_by; /* a text of the list */
    mr_kernel_occupancy occupancy;
} mr_kernel_times;

/* For the mean of the launches that were counted; by blocks of so many threads with so much dynamic shared
 * memory. False: memory is out. */
bool mr_kernel_times_of(const mr_device *device, const mr_ptx_kernel *kernel,
                        const mr_kernel_count *count, uint32_t threads, uint32_t dynamic_shared,
                        mr_kernel_times *out);

/* Nanoseconds that the launch needs at least, however fast memory and arithmetic are: for starting its blocks, and for
 * the waits of their warps. Computed before it has run, so loops are estimated. */
double mr_kernel_least_ns(const mr_device *device, const mr_kernel_arguments *a);

#endif
