/* Device memory that processes share: see ipc.h. */
#include "tensor/ipc.h"

#include <inttypes.h>
#include <stdlib.h>

#include "model/backend.h"

#define WHY "its memory is this process's own, and no other can see the simulation"

/* A storage's note: the address of its memory, and how to release it. */
typedef struct {
    mr_device *device;
    uint32_t epoch; /* a reset has taken what is older */
    uint64_t address;
    void (*give_back)(mr_device *device, uint64_t address);
} kept_memory;

static void release_kept(void *kept) {
    kept_memory *memory = kept;
    if (memory->epoch == memory->device->machine->epoch)
        memory->give_back(memory->device, memory->address);
    free(memory);
}

/* Takes over the memory at `kept->address`; the tensor begins `offset` bytes after. `kept` is NULL where memory was
 * out. */
static mr_status over(const mr_caller *caller, kept_memory kept, uint64_t offset, mr_stream *stream,
                      mr_dtype dtype, int ndim, const int64_t *shape, mr_tensor **out_tensor) {
    int64_t stride[MR_MAX_DIMS], numel, dense = 1;
    mr_storage *storage;
    kept_memory *memory = malloc(sizeof *memory);
    mr_status status = memory ? mr_shape_numel(ndim, shape, &numel)
                              : mr_no_memory("for memory that processes share");
    for (int i = ndim; i-- > 0 && !status;) {
        stride[i] = dense;
        if (numel) dense *= shape[i];
    }
    if (!status)
        status =
            mr_storage_create_at(caller, MR_MEMORY_DEVICE, (uint64_t)numel * mr_dtype_size(dtype),
                                 stream, kept.address + offset, &storage);
    if (status) {
        kept.give_back(kept.device, kept.address);
        free(memory);
        return status;
    }
    *memory = kept;
    mr_storage_keep(storage, memory, release_kept);
    status = mr_tensor_over(caller, storage, dtype, ndim, shape, stride, out_tensor);
    if (status) mr_storage_drop_handle(storage);
    else mr_share_memory(caller, storage, "ipc");
    mr_storage_release(storage);
    return status;
}

mr_status mr_tensor_create_shareable(const mr_caller *caller, mr_stream *stream, mr_dtype dtype,
                                     int ndim, const int64_t *shape, mr_tensor **out_tensor) {
    const mr_outside_slots *slots;
    mr_device *device = stream->device;
    int64_t numel;
    *out_tensor = NULL;
    MR_TRY(mr_machine_ready(caller->machine));
    MR_TRY(mr_stream_usable(stream));
    MR_TRY(mr_outside_of(caller->machine, "option `ipc`", WHY, &slots));
    MR_TRY(mr_shape_numel(ndim, shape, &numel));
    kept_memory kept = {device, caller->machine->epoch, 0, slots->memory_unshare};
    uint64_t bytes = (uint64_t)numel * mr_dtype_size(dtype);
    MR_TRY(slots->memory_share(device, bytes ? bytes : 1, &kept.address));
    return over(caller, kept, 0, stream, dtype, ndim, shape, out_tensor);
}

mr_status mr_tensor_ipc_handle(const mr_caller *caller, const mr_tensor *t,
                               char out_handle[MR_IPC_HANDLE_BYTES], int64_t *out_offset) {
    const mr_outside_slots *slots;
    uint64_t offset;
    MR_TRY(mr_machine_ready(caller->machine));
    MR_TRY(mr_tensor_usable(t));
    MR_TRY(mr_outside_of(caller->machine, "ipc_handle", WHY, &slots));
    if (mr_tensor_on_host(t))
        return mr_fail(
            MR_CODE_INVALID_ARGUMENT,
            "ipc_handle: the tensor is in host memory, which CUDA does not share between "
            "processes: expected a tensor of mr.empty(n, {ipc=true})");
    MR_TRY(slots->memory_handle(t->storage, out_handle, &offset));
    *out_offset = (int64_t)offset + t->offset * (int64_t)mr_dtype_size((mr_dtype)t->dtype);
    mr_share_memory(caller, t->storage, "ipc_handle");
    return MR_OK;
}

mr_status mr_tensor_from_ipc_handle(const mr_caller *caller, const char handle[MR_IPC_HANDLE_BYTES],
                                    int64_t offset, mr_stream *stream, mr_dtype dtype, int ndim,
                                    const int64_t *shape, mr_tensor **out_tensor) {
    const mr_outside_slots *slots;
    mr_device *device = stream->device;
    int64_t numel, size = (int64_t)mr_dtype_size(dtype);
    uint64_t bytes;
    *out_tensor = NULL;
    MR_TRY(mr_machine_ready(caller->machine));
    MR_TRY(mr_stream_usable(stream));
    MR_TRY(mr_outside_of(caller->machine, "from_ipc_handle", WHY, &slots));
    MR_TRY(mr_shape_numel(ndim, shape, &numel));
    if (offset < 0 || offset % size)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "from_ipc_handle: the offset is %" PRId64
                       " bytes: expected a multiple of the %" PRId64 " bytes of an element",
                       offset, size);
    kept_memory kept = {device, caller->machine->epoch, 0, slots->memory_close};
    MR_TRY(slots->memory_open(device, handle, &kept.address, &bytes));
    if ((uint64_t)offset > bytes || (uint64_t)(numel * size) > bytes - (uint64_t)offset) {
        slots->memory_close(device, kept.address);
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "from_ipc_handle: %" PRId64 " bytes from byte %" PRId64
                       " on are wanted, and the memory has %" PRIu64,
                       numel * size, offset, bytes);
    }
    return over(caller, kept, (uint64_t)offset, stream, dtype, ndim, shape, out_tensor);
}
