/* Occupancy and times: see kernel_profile.h. Rates of a multiprocessor are those of the CUDA programming guide, table
 * "Throughput of native arithmetic instructions". */
#include "ops/kernel_profile.h"

#include <math.h>

#define SCHEDULERS    4   /* of an SM; each issues one instruction of a warp a clock */
#define SPECIAL_RATE  16  /* results a clock and SM */
#define REGISTER_UNIT 256 /* registers are given to warps in pieces */
#define SHARED_UNIT   128 /* bytes, likewise to blocks */
#define RESERVED_SHARED                                                                            \
    1024            /* bytes of each block that the system takes (compute capability 8.0 and up) */
#define REACHED 0.9 /* of the bandwidth on the data sheet: a copy on an H200 */

/* Latencies, as seen on an H200 (docs/performance.md, "Kernels of your own"). */
#define L2_CLOCKS      280    /* a load that the L2 cache answers */
#define MEMORY_SECONDS 440e-9 /* one access to memory, while many others run */
#define SHARED_CLOCKS  30
#define WARP_CLOCKS    25 /* a shuffle */
#define BARRIER_CLOCKS 35
/* Not measured: with it a barrier of the grid takes about 1.2 us, which is what CUDA programs see on an H100. How long
 * blocks wait for the last one does not count (ptx/run/spin.h). */
#define ARRIVAL_SECONDS    850e-9
#define INSTRUCTION_CLOCKS 4   /* from an instruction to one that uses its result */
#define BLOCK_CLOCKS       160 /* from the start of a block on an SM to that of the next one */
#define BLOCK_SECONDS                                                                              \
    350e-9 /* from the end of a block to the first instruction of the one in its place */

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

/* ---- counts of a launch */

typedef struct {
    double blocks, warps; /* of the launch */
    double scale;         /* from what was counted to a launch */
    double sectors, lines, passes;
    double bytes; /* that it may touch */
} work;

static work work_of(const mr_kernel_count *count, uint32_t threads) {
    work w = {0};
    double launches = count->launches ? (double)count->launches : 1;
    double counted = (double)mr_ptx_profile_blocks(count->profile);
    w.blocks = (double)count->launched / launches;
    w.warps = w.blocks * ((threads + 31) / 32);
    w.scale = counted > 0 ? w.blocks / counted : 0;
    w.bytes = count->bytes / launches;
    for (int c = 0; c < PTX_CLASS_COUNT; c++) {
        mr_ptx_counts counts;
        mr_ptx_profile_class(count->profile, (ptx_class)c, &counts);
        w.sectors += w.scale * (double)counts.sectors;
        w.lines += w.scale * (double)counts.lines;
        w.passes += w.scale * (double)counts.wavefronts;
    }
    return w;
}

static double warps_of(const mr_kernel_count *count, const work *w, ptx_class which) {
    mr_ptx_counts counts;
    mr_ptx_profile_class(count->profile, which, &counts);
    return w->scale * (double)counts.executed;
}

/* ---- latency */

/* How long a group of loads takes. A launch whose bytes the L2 cache holds finds them there, if
 * something used them before. A larger launch sends as many groups to memory as there are sectors
 * to be fetched. */
static double load_seconds(const mr_device_properties *p, const work *w, double groups) {
    double hit = L2_CLOCKS / (double)p->clock_hz;
    if (w->bytes <= (double)p->l2_bytes || groups <= 0) return hit;
    double sectors = w->bytes / SECTOR_BYTES;
    double missing = sectors < groups ? sectors / groups : 1;
    return missing * MEMORY_SECONDS + (1 - missing) * hit;
}

/* Blocks run in rounds: as many at once as the SMs hold. */
static double rounds_of(const mr_device_properties *p, const work *w,
                        const mr_kernel_occupancy *o) {
    double at_once = (double)p->sm_count * (o->blocks_per_sm > 0 ? o->blocks_per_sm : 1);
    return w->blocks > at_once ? ceil(w->blocks / at_once) : 1;
}

/* For all warps, one after the other. */
static double seconds_of(const mr_device_properties *p, const mr_ptx_course *c, double scale,
                         double load) {
    double clocks = INSTRUCTION_CLOCKS * (double)c->instructions +
                    SHARED_CLOCKS * (double)c->shared_waits +
                    WARP_CLOCKS * (double)c->warp_operations + BARRIER_CLOCKS * (double)c->barriers;
    return scale *
           (clocks / (double)p->clock_hz + c->sleep_ns * 1e-9 + load * (double)c->memory_waits);
}

static double latency_of(const mr_device_properties *p, const work *w, const mr_kernel_occupancy *o,
                         double seconds, double arrivals) {
    if (w->warps <= 0) return 0;
    double block = BLOCK_SECONDS + seconds / w->warps + ARRIVAL_SECONDS * arrivals / w->blocks;
    return rounds_of(p, w, o) * block;
}

/* ---- together */

static void decide(mr_kernel_times *t) {
    t->bound_by = "instructions";
#define X(name, text)                                                                              \
    if (t->name > t->total) t->total = t->name, t->bound_by = text;
    MR_KERNEL_BOUNDS(X)
#undef X
}

bool mr_kernel_times_of(const mr_device *device, const mr_ptx_kernel *kernel,
                        const mr_kernel_count *count, uint32_t threads, uint32_t dynamic_shared,
                        mr_kernel_times *out) {
    const mr_device_properties *p = &device->properties;
    double clocks = (double)p->sm_count * (double)p->clock_hz; /* of all SMs, a second */
    work w = work_of(count, threads);
    mr_ptx_course course;
    mr_kernel_times t = {.occupancy =
                             mr_kernel_occupancy_of(device, kernel, threads, dynamic_shared)};
    if (!mr_ptx_profile_course(count->profile, &course)) return false;
    if (clocks > 0) {
        t.issue = w.scale * (double)course.instructions / (SCHEDULERS * clocks);
        t.f64 = 32 * warps_of(count, &w, PTX_CLASS_F64) / (f64_rate(p) * clocks);
        t.special = 32 * warps_of(count, &w, PTX_CLASS_SPECIAL) / (SPECIAL_RATE * clocks);
        t.shared = w.passes / clocks;
        t.l1 = (w.lines + w.passes) / clocks;
        t.blocks = w.blocks * BLOCK_CLOCKS / clocks;
        t.atomics = w.scale * (double)course.hottest_cells / (double)p->clock_hz;
        double load = load_seconds(p, &w, w.scale * (double)course.memory_waits);
        t.latency = latency_of(p, &w, &t.occupancy, seconds_of(p, &course, w.scale, load),
                               w.scale * (double)course.arrivals);
    }
    double moved = SECTOR_BYTES * w.sectors < w.bytes ? SECTOR_BYTES * w.sectors : w.bytes;
    if (p->memory_bandwidth > 0) t.memory = moved / (REACHED * p->memory_bandwidth);
    decide(&t);
    *out = t;
    return true;
}

/* ---- before a launch has run */

double mr_kernel_least_ns(const mr_device *device, const mr_kernel_arguments *a) {
    const mr_device_properties *p = &device->properties;
    const mr_kernel_once *once = mr_kernel_code_once(a->code, a->kernel);
    const mr_ptx_course *straight = &once->course[PTX_STRAIGHT], *loops = &once->course[PTX_LOOPS];
    uint32_t threads = a->block[0] * a->block[1] * a->block[2];
    double blocks = (double)mr_kernel_blocks(a), warps = blocks * ((threads + 31) / 32);
    work w = {.blocks = blocks, .warps = warps, .bytes = a->bytes};
    if (p->clock_hz == 0 || p->sm_count <= 0) return 0;
    mr_kernel_occupancy occupancy = mr_kernel_occupancy_of(device, a->kernel, threads, a->shared);
    double waits = (double)straight->memory_waits + a->passes * (double)loops->memory_waits;
    double load = load_seconds(p, &w, warps * waits);
    double latency = latency_of(
        p, &w, &occupancy,
        seconds_of(p, straight, warps, load) + seconds_of(p, loops, warps * a->passes, load), 0);
    double starts = blocks * BLOCK_CLOCKS / ((double)p->sm_count * (double)p->clock_hz);
    return 1e9 * (latency > starts ? latency : starts);
}
