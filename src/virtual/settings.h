/* Choices that CUDA leaves open (the [M] rules), and the other settings of the machine: `mr.machine.settings`. */
#ifndef MR_VIRTUAL_SETTINGS_H
#define MR_VIRTUAL_SETTINGS_H

#include "model/simulator.h"

// clang-format off
/* name, type, default, least, greatest, help */
#define MR_SETTING_LIST(X)                                                                         \
    X(launch_queue_depth, "integer", 1022, 1, INT64_MAX,                                           \
      "launches that may be pending on one stream before the next one blocks the host (R56)")      \
    X(connections, "integer", 0, 0, 32,                                                            \
      "hardware queues that the streams of a device share, as CUDA_DEVICE_MAX_CONNECTIONS says: "    \
      "a kernel begins behind those that other streams of its queue submitted before it; "           \
      "0: each stream has a queue of its own (R55)")                                               \
    X(slices, "integer", 16, 1, 4096,                                                              \
      "pieces in which the work of one long operation is done over its duration")                  \
    X(pageable_h2d_async, "boolean", 1, 0, 1,                                                      \
      "an async copy from pageable memory returns once its source is staged (R23)")                \
    X(pageable_d2h_async, "boolean", 0, 0, 1,                                                      \
      "an async copy to pageable memory returns before it is done (R23)")                          \
    X(staging_bytes, "bytes", 4 << 20, 0, INT64_MAX,                                               \
      "largest copy from pageable memory that is staged; larger ones wait until done (R20, R23)")  \
    X(free_waits, "boolean", 0, 0, 1,                                                              \
      "t:free{sync=true} waits for everything on the device, as cudaFree of cudaMalloc's memory "  \
      "does; all memory here is cudaMallocAsync's, for which it does not (R27, R28)")              \
    X(reuse_event, "boolean", 1, 0, 1,                                                             \
      "memory freed in another stream is reused when events order the free before (R30, policy 1)")\
    X(reuse_opportunistic, "boolean", 1, 0, 1,                                                     \
      "memory freed in another stream is reused once the free is complete (R30, policy 2)")        \
    X(reuse_internal, "boolean", 1, 0, 1,                                                          \
      "when memory is short, an allocation waits for a free of another stream (R30, policy 3)")    \
    X(release_threshold, "bytes", INT64_MAX, 0, INT64_MAX,                                         \
      "unused bytes beyond this many reserved ones go back to the system at a synchronisation "    \
      "(R31); CUDA's own default is 0")                                                            \
    X(kernel_checks, "integer", 2, 0, 2,                                                           \
      "what is checked in the user's kernels: 1 each access (bounds, alignment, uninitialised "    \
      "bytes), 2 also races inside a launch while the hazard checker is on; 0 nothing")            \
    X(kernel_profile, "boolean", 1, 0, 1,                                                          \
      "what the user's kernels execute is counted, for k:profile()")                               \
    X(kernel_profile_every, "integer", 64, 1, 1 << 20,                                             \
      "blocks of which one is counted, after the first 2048 threads of a kernel; 1: each")         \
    X(kernel_instructions, "integer", (int64_t)1 << 30, 0, INT64_MAX,                              \
      "instructions after which a warp of a user's kernel counts as endless; 0: no limit")         \
    X(packed_memory, "boolean", 0, 0, 1,                                                           \
      "tensors are neighbours, as in CUDA's pool: a kernel that leaves one may hit the next one; "   \
      "else a gap lies between them, and such an access is an error")                              \
    X(memory_bytes, "bytes", 0, 0, INT64_MAX,                                                      \
      "memory of each device; 0: that of the model, or less if this computer cannot provide it")
// clang-format on

typedef struct {
#define X(name, type, initial, least, greatest, help) int64_t name;
    MR_SETTING_LIST(X)
#undef X
} settings;

void mr_settings_init(settings *set);
const mr_setting_info *mr_settings_list(size_t *out_count);
mr_status mr_settings_get(const settings *set, const char *name, int64_t *out_value);
mr_status mr_settings_set(settings *set, const char *name, int64_t value);

#endif
