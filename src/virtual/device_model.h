/* A device model: the resources of a GPU, and the duration of its operations. Data, read from a text file of lines
 * `key = value  # where the figure comes from`; the keys are the names in the list below.
 *
 * Times are data. A device model (`src/virtual/models/`, its keys in `device_model.h`) contains the durations: one
 * line for each figure, with its source: `[m]` measured, `[p]` told by the driver, `[d]` published, `[a]` assumed.
 * `millrace doctor` counts them for each model. `scripts/calibrate.lua` measures these figures on a GPU. When it runs
 * on the virtual GPU, it finds the figures of the model in use within a few per cent (`wakeup_ns`, a small remainder,
 * within a microsecond). This shows that it measures what the model means.
 *
 * Most figures are the host's cost of a call or the duration of work on the device. Three are about latency:
 *
 *   - `launch_latency_ns`: from a call to the start on an idle device.
 *   - `handover_ns`: from the end of a kernel to a copy after it, and from a copy to a kernel.
 *   - `wait_latency_ns`: from an event to work in another stream.
 *
 * The last two are added only if the work that is waited for was not done at the time of the call, and only under
 * `timed`. They delay starts and create no order. A launch of a user's kernel is estimated from its bytes and its
 * instructions. Loops that come back to the same bytes, and atomics on the same address, show only when it runs. So
 * its first blocks are counted (`ops/kernel/time.c`), once for each shape and each set of arguments, and what the
 * estimate lacks is added when its blocks have run (`mr_virtual_stretch`). The time depends on nothing else, so a
 * launch takes as long each time, also in a replay.
 *
 * The clock does not move while Lua runs between two calls. `scripts/makespan.lua` lets it. It counts instructions of
 * Lua, calls of functions of C that submit nothing, the memory that Lua allocates, and full collections; `lua_ns`,
 * `lua_call_ns`, `lua_kib_ns` and `lua_collect_ns` are their prices. Autograd and the modules of networks are Lua, so
 * they are charged like the script.
 *
 * To use your own model, take the output of `calibrate.lua` or change a copy of a shipped file: `--model
 * ./my.model`. */
#ifndef MR_VIRTUAL_DEVICE_MODEL_H
#define MR_VIRTUAL_DEVICE_MODEL_H

#include "base/status.h"

// clang-format off
/* key (its unit is its last word), and the smallest value that makes sense */
#define MR_DEVICE_MODEL_LIST(X)                                                                    \
    X(compute_major, 1) X(compute_minor, 0)                                                        \
    X(sm_count, 1) X(warp_size, 1)                                                                 \
    X(max_threads_per_block, 1) X(max_threads_per_sm, 1) X(max_blocks_per_sm, 1)                   \
    X(max_resident_grids, 1) /* R53 */                                                             \
    X(registers_per_sm, 0) X(shared_per_sm_bytes, 0) X(shared_per_block_bytes, 0)                  \
    X(async_engine_count, 1) /* R25 */                                                             \
    X(priority_greatest, -1000) /* R8; the least is 0 */                                           \
    X(sm_clock_hz, 1) /* of the multiprocessors, at its highest */                                 \
    X(total_memory_bytes, 1) X(l2_bytes, 0)                                                        \
    /* what the device does at its best */                                                         \
    X(memory_gbs, 0)        /* on the data sheet */                                                \
    X(kernel_memory_gbs, 0) /* read + write, reached by a kernel */                                \
    X(fp32_tflops, 0) X(fp64_tflops, 0)                                                            \
    X(kernel_floor_ns, 0)   /* start to start of dependent small kernels */                        \
    X(graph_floor_ns, 0)    /* the same of kernels in a graph */                                   \
    X(handover_ns, 0)       /* end of a kernel to start of a copy that waited for it; and back */  \
    X(wait_latency_ns, 0)   /* end of an event to start of a waiting stream's work */              \
    X(h2d_gbs, 0) X(d2h_gbs, 0) X(copy_latency_ns, 0)                                              \
    X(peer_access, 0) X(peer_gbs, 0) X(peer_latency_ns, 0)                                         \
    /* what calls cost the host */                                                                 \
    X(launch_ns, 0) X(launch_latency_ns, 0) /* call to start on an idle device */                  \
    X(product_ns, 0)        /* launch of a matrix product of floats by a library */                \
    X(copy_call_ns, 0) X(record_ns, 0) X(record_timed_ns, 0) X(wait_event_ns, 0)                   \
    X(alloc_ns, 0) X(free_ns, 0)                                                                   \
    X(synchronize_ns, 0) X(device_synchronize_ns, 0) X(wakeup_ns, 0) X(query_ns, 1)                \
    X(stream_create_ns, 0) X(event_create_ns, 0)                                                   \
    X(staging_gbs, 0)       /* pageable memory into the driver's buffer */                         \
    X(unstaging_gbs, 0)     /* out of the driver's buffer into pageable memory */                  \
    X(host_memory_gbs, 0)   /* one core copies */                                                  \
    X(host_work_gbs, 0)     /* operations on host memory, read + write, by all cores */            \
    /* Lua between calls that submit something; for scripts/makespan.lua */                        \
    X(lua_ns, 0)            /* a hundred instructions */                                           \
    X(lua_call_ns, 0)       /* a C function: a field, a view, the library's own calls */           \
    X(lua_kib_ns, 0)        /* a KiB allocated, the collector's work for it included */            \
    X(lua_collect_ns, 0)    /* collectgarbage(), for each KiB in use */
// clang-format on

/* Where a figure comes from: the letter in brackets that its comment begins with. */
#define MR_MODEL_SOURCES(X)                                                                        \
    X(measured, 'm') X(property, 'p') X(published, 'd') X(assumed, 'a') X(untold, ' ')

typedef struct {
    char name[64];  /* "NVIDIA H200" */
    char known[64]; /* what it was asked for by: "h200", or the path */
#define X(key, least) double key;
    MR_DEVICE_MODEL_LIST(X)
#undef X
    struct {
#define X(source, letter) int source;
        MR_MODEL_SOURCES(X)
#undef X
    } figures; /* how many of each */
} device_model;

/* A name ("h200") or a path (with a slash or ".model"). `out` is unchanged after a failure. */
mr_status mr_device_model_load(const char *name, device_model *out);

#endif
