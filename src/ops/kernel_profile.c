/* Occupancy and times: see kernel_profile.h. Rates of a multiprocessor are those of the CUDA programming guide, table
 * "Throughput of native arithmetic instructions". */
#include "ops/kernel_profile.h"

#define SCHEDULERS    4   /* of an SM, each of which issues one instruction of a warp a clock */
#define SPECIAL_RATE  16  /* results a clock and SM */
#define REGISTER_UNIT 256 /* registers are given to warps in pieces */
#define SHARED_UNIT   128 /* bytes, likewise to blocks */
#define RESERVED_SHARED                                                                            \
    1024 /* bytes of each block that the system takes (compute capability 8.0 and up) */
#define SECTOR_BYTES 32

static int smaller(int limit, int candidate, const char *name, mr_kernel_occupancy *o) {
    if (candidate >= limit) return limit;
    o->limited_by = name;
    return candidate;
}

mr_kernel_occupancy mr_kernel_occupancy_of(const mr_device *device, const mr_ptx_kernel *kernel,
                                           uint32_t threads, uint32_t dynamic_shared) {
    const mr_device_properties *p = &device->properties;
    int warps = (int)(threads + 31) / 32;
    mr_kernel_occupancy o = {.limited_by = "blocks"};
    if (!warps || p->max_threads_per_sm <= 0) return o;
    int blocks = smaller(p->max_blocks_per_sm, p->max_threads_per_sm / (32 * warps), "threads", &o);
    int registers =
        (int)(kernel->registers * 32 + REGISTER_UNIT - 1) / REGISTER_UNIT * REGISTER_UNIT;
    if (registers > 0 && p->registers_per_sm > 0)
        blocks = smaller(blocks, p->registers_per_sm / (registers * warps), "registers", &o);
    int shared = (int)(kernel->shared_bytes + dynamic_shared);
    if (p->compute_major >= 8) shared += RESERVED_SHARED;
    shared = (shared + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT;
    if (shared > 0 && p->shared_per_sm > 0)
        blocks = smaller(blocks, p->shared_per_sm / shared, "shared memory", &o);
    o.blocks_per_sm = blocks;
    o.occupancy = (double)blocks * warps * 32 / p->max_threads_per_sm;
    return o;
}

/* Results of double precision a clock and SM. */
static double f64_rate(const mr_device_properties *p) {
    if (p->compute_major == 8) return p->compute_minor == 0 ? 32 : 2;
    return p->compute_major == 9 || p->compute_major == 10 ? 64 : 2;
}

static uint64_t warps_of(const mr_ptx_profile *profile, ptx_class which) {
    mr_ptx_counts counts;
    mr_ptx_profile_class(profile, which, &counts);
    return counts.warps;
}

static void consider(mr_kernel_times *t, double seconds, const char *name) {
    if (seconds <= t->total) return;
    t->total = seconds;
    t->bound_by = name;
}

mr_kernel_times mr_kernel_times_of(const mr_device *device, const mr_ptx_profile *profile) {
    const mr_device_properties *p = &device->properties;
    double clocks = (double)p->sm_count * (double)p->clock_hz; /* of all SMs, a second */
    uint64_t warps = 0, passes = 0, sectors = 0;
    mr_kernel_times t = {.bound_by = "instructions"};
    for (int c = 0; c < PTX_CLASS_COUNT; c++) {
        mr_ptx_counts counts;
        mr_ptx_profile_class(profile, (ptx_class)c, &counts);
        warps += counts.warps;
        passes += counts.wavefronts;
        sectors += counts.sectors;
    }
    if (clocks > 0) {
        t.issue = (double)warps / (SCHEDULERS * clocks);
        t.f64 = 32 * (double)warps_of(profile, PTX_CLASS_F64) / (f64_rate(p) * clocks);
        t.special = 32 * (double)warps_of(profile, PTX_CLASS_SPECIAL) / (SPECIAL_RATE * clocks);
        t.shared = (double)passes / clocks;
    }
    if (p->memory_bandwidth > 0) t.memory = SECTOR_BYTES * (double)sectors / p->memory_bandwidth;
    consider(&t, t.issue, "instructions");
    consider(&t, t.f64, "f64");
    consider(&t, t.special, "special functions");
    consider(&t, t.shared, "shared memory");
    consider(&t, t.memory, "memory");
    return t;
}
