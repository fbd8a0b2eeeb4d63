/* Sorting positions by keys on the device: what launch_sort.c and launch_index.c share. Private to the launcher. */
#ifndef MR_CUDA_SORT_H
#define MR_CUDA_SORT_H

#include "cuda/kernels.h"

/* Working memory in the order of a stream. keys[0] and positions[0] are filled in by a kernel of the caller's; after
 * each call that sorts, the order so far is in keys[at] and positions[at]. */
typedef struct {
    void *keys[2];
    uint32_t *positions[2];
    int at;
    uint64_t count;
    bool wide; /* keys are u64, else u32 */
    uint32_t *counts, *totals;
    CUdeviceptr memory;
} cuda_sorting;

/* Fails (not-supported) where positions do not fit 32 bits. */
mr_status mr_cuda_sorting_begin(const mr_command *command, CUstream stream, uint64_t count,
                                bool wide, cuda_sorting *out);
void mr_cuda_sorting_end(CUstream stream, cuda_sorting *sorting);

/* Stable: by the lowest `bits` bits of the keys. */
mr_status mr_cuda_sort_by_keys(const mr_command *command, CUstream stream, cuda_sorting *sorting,
                               int bits);
/* Stable: by position / length, which is below `lines`. Keys are lost. */
mr_status mr_cuda_sort_by_lines(const mr_command *command, CUstream stream, cuda_sorting *sorting,
                                uint64_t length, uint64_t lines);

/* Bits of the largest of `count` different numbers from 0. */
static inline int mr_cuda_bits(uint64_t count) {
    return count > 1 ? 64 - __builtin_clzll(count - 1) : 1;
}

/* Blocks of a kernel whose threads go on until all of `items` is done. */
static inline uint64_t mr_cuda_spread(const mr_command *command, uint64_t items) {
    enum { BLOCKS_A_SM = 16 };
    uint64_t most = (uint64_t)command->stream->device->properties.sm_count * BLOCKS_A_SM;
    uint64_t blocks = mr_cuda_blocks(items, MR_CUDA_THREADS);
    return blocks < 1 ? 1 : blocks < most ? blocks : most;
}

#endif
