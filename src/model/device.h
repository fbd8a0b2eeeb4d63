/* A device: its properties, its default streams and its account of memory. Devices live as long as
 * their machine and are not counted. */
#ifndef MR_MODEL_DEVICE_H
#define MR_MODEL_DEVICE_H

#include "model/machine.h"

/* Filled in by the backend's `open`. Bytes, nanoseconds, hertz where a unit is needed. */
typedef struct {
    char name[64]; /* "NVIDIA H200 (virtual)" */
    int sm_count;
    int compute_major, compute_minor;
    int max_threads_per_block, max_threads_per_sm, max_blocks_per_sm, warp_size;
    int max_resident_grids; /* R53 */
    int registers_per_sm;
    uint64_t clock_hz;                     /* of the multiprocessors, at its highest */
    int shared_per_sm, shared_per_block;   /* bytes */
    int async_engine_count;                /* R25 */
    int priority_least, priority_greatest; /* R8: least is the larger number */
    uint64_t total_memory;                 /* bytes */
    uint64_t memory_limit;                 /* what tensors can take of it; 0: all */
    /* the source of that limit, in words; set if there is a limit */
    const char *memory_limit_source;
    uint64_t l2_bytes;
    double memory_bandwidth; /* bytes per second, read + write */
} mr_device_properties;

typedef struct {
    uint64_t live;              /* bytes of storages that the script still holds */
    uint64_t peak;              /* highest `live` so far */
    uint64_t reserved;          /* bytes that the backend's pool holds from the device */
    uint64_t allocations;       /* storages live */
    uint64_t total_allocations; /* ever made */
} mr_memory_stats;

struct mr_device {
    mr_machine *machine;
    int index; /* CUDA's ordinal: counts from 0 */
    mr_device_properties properties;
    mr_stream *legacy;      /* R3; owned */
    mr_stream *per_thread;  /* R6; owned */
    mr_stream *current;     /* where operations go when no stream is named; owned */
    uint64_t peers;         /* bit i: access to device i has been enabled (R59) */
    mr_memory_stats memory; /* `reserved` is the backend's, read through mr_device_memory */
    void *impl;             /* the backend's */
};

mr_memory_stats mr_device_memory(mr_device *device);

/* Lower number = higher priority; values outside are clamped at stream creation (R8). */
int mr_device_clamp_priority(const mr_device *device, int priority);

/* R59. `peer` may not be `device`. */
bool mr_device_can_access_peer(mr_device *device, mr_device *peer);
mr_status mr_device_enable_peer_access(mr_device *device, mr_device *peer);
/* Disables all other peers, as if they had never been enabled. The devices are idle. */
void mr_device_keep_peers(mr_device *device, uint64_t peers);

/* Gives memory that no storage uses back to the system (mr.memory.empty_cache). */
mr_status mr_device_trim(mr_device *device);

#endif
