/* Takes pinned memory from the pool (pinned.c), and pins more where nothing of the size is free. The driver may wait
 * for the device then, so we wait before. */
#include <inttypes.h>

#include "cuda/wait/wait.h"

static mr_status out_of_memory(const cuda_machine *cuda, uint64_t bytes) {
    return mr_fail(MR_CODE_OUT_OF_MEMORY,
                   "out of pinned host memory: %" PRIu64 " bytes wanted, %" PRIu64
                   " live in host tensors",
                   bytes, cuda->machine->host_memory.live_bytes);
}

mr_status mr_cuda_pinned_take(cuda_machine *cuda, uint64_t wanted, cuda_pinned_block *out_block) {
    if (!mr_cuda_pinned_is_possible(wanted)) return out_of_memory(cuda, wanted);
    if (mr_cuda_pinned_find(cuda, wanted, out_block)) return MR_OK;
    mr_cuda_hold_collect(cuda);
    if (mr_cuda_pinned_find(cuda, wanted, out_block)) return MR_OK;
    MR_TRY(mr_cuda_may_wait(cuda->home, "pinning more memory"));
    MR_TRY(mr_cuda_use(cuda->home));
    CUresult result = mr_cuda_pinned_refill(cuda, wanted);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        MR_TRY(mr_cuda_pinned_trim(cuda));
        result = mr_cuda_pinned_refill(cuda, wanted);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return out_of_memory(cuda, wanted);
    MR_CUDA_TRY(cuda->home, result, "pinned host memory of %" PRIu64 " bytes", wanted);
    mr_cuda_pinned_find(cuda, wanted, out_block);
    return MR_OK;
}

mr_status mr_cuda_pinned_alloc(mr_storage *storage) {
    cuda_pinned_block taken;
    MR_TRY(mr_cuda_pinned_take(mr_cuda_of(storage->machine), storage->bytes, &taken));
    storage->impl = taken.block;
    storage->host = taken.host;
    storage->address = taken.device;
    return MR_OK;
}

mr_status mr_cuda_pinned_trim(cuda_machine *cuda) {
    if (cuda->machine->lost || !mr_cuda_pinned_has_unused(cuda)) return MR_OK;
    MR_TRY(mr_cuda_waits_for_all(cuda, "giving back pinned memory"));
    mr_cuda_pinned_drop_unused(cuda);
    return MR_OK;
}
