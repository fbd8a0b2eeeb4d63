/* Objects that code outside of millrace can share with the device: handles of streams, memory of others, and memory and
 * events between processes (model/outside.h).
 *
 * Between processes the driver shares only what cuMemAlloc gave, and no memory of a pool. So memory that is to be
 * shared is allocated on its own (option `ipc`). cuMemFree and cuIpcCloseMemHandle may wait for the device, and the end
 * of a tensor must not wait. So released memory is kept: own memory for the next request, memory of others until the
 * devices are idle.
 *
 * Easiest to break: a handle is a number of the script's. The driver dereferences it, so it is checked before. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda/objects/objects.h"
#include "cuda/wait/wait.h"

/* ---- streams */

static uint64_t stream_handle(mr_stream *stream) {
    const cuda_stream *s = stream->impl;
    /* Others write 0 for it, and take 0x1 as the same. */
    return stream->kind == MR_STREAM_LEGACY ? 0 : (uint64_t)(uintptr_t)s->handle;
}

static mr_status no_stream(uint64_t handle, const char *why) {
    return mr_fail(MR_CODE_INVALID_HANDLE, "stream: 0x%" PRIx64 " is no stream of CUDA: %s", handle,
                   why);
}

/* Whether this process has memory at that address. */
static bool is_mapped(uint64_t address) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned char resident;
    return mincore((void *)(uintptr_t)(address / page * page), page, &resident) == 0 ||
           errno != ENOMEM;
}

static mr_stream *find_own(const mr_machine *machine, uint64_t handle) {
    const cuda_machine *cuda = mr_cuda_of(machine);
    const mr_device *current = machine->current_device;
    if (handle <= 1) return current->legacy;
    if (handle == 2) return current->per_thread;
    for (int i = 0; i < cuda->device_count; i++)
        for (const cuda_stream *s = cuda->devices[i].first; s; s = s->next)
            if ((uint64_t)(uintptr_t)s->handle == handle) return s->stream;
    return NULL;
}

/* The device of the context. It must be the primary context, which all of this program uses. */
static mr_status device_of(cuda_machine *cuda, CUcontext context, cuda_device **out_device) {
    for (int i = 0; i < cuda->device_count; i++) {
        *out_device = &cuda->devices[i];
        if ((*out_device)->context == context) return MR_OK;
    }
    CUdevice handle = -1;
    mr_cuda_make_current(context);
    CUresult result = mr_cu.CtxGetDevice(&handle);
    mr_cuda_make_current(cuda->home->context);
    for (int i = 0; i < cuda->device_count && result == CUDA_SUCCESS; i++) {
        *out_device = &cuda->devices[i];
        if ((*out_device)->handle != handle) continue;
        MR_TRY(mr_cuda_use(*out_device));
        if ((*out_device)->context == context) return MR_OK;
        return mr_fail(
            MR_CODE_INVALID_HANDLE,
            "stream: the stream belongs to another context of device %d: expected one of "
            "the primary context, which CUDA's runtime and PyTorch use",
            i);
    }
    return mr_fail(MR_CODE_INVALID_HANDLE, "stream: the stream is on no device of this machine");
}

static mr_status stream_look(mr_machine *machine, uint64_t handle, mr_stream_look *out_look) {
    cuda_machine *cuda = mr_cuda_of(machine);
    CUstream stream = (CUstream)(uintptr_t)handle;
    CUcontext context = NULL;
    CUstreamCaptureStatus captures = CU_STREAM_CAPTURE_STATUS_NONE;
    cuda_device *device = cuda->home;
    unsigned flags = 0;
    *out_look = (mr_stream_look){.known = find_own(machine, handle)};
    if (out_look->known) return MR_OK;
    if (handle % sizeof(void *) || !is_mapped(handle))
        return no_stream(handle, "there is nothing at that address; expected a CUstream, such as "
                                 "stream.cuda_stream of PyTorch in this process");
    MR_TRY(mr_cuda_use(cuda->home));
    if (mr_cu.StreamGetCtx(stream, &context) != CUDA_SUCCESS)
        return no_stream(handle, "the driver does not know it");
    MR_TRY(device_of(cuda, context, &device));
    MR_TRY(mr_cuda_use(device));
    MR_CUDA_TRY(device, mr_cu.StreamIsCapturing(stream, &captures), "stream");
    if (captures != CU_STREAM_CAPTURE_STATUS_NONE)
        return mr_fail(MR_CODE_NOT_PERMITTED,
                       "stream: the stream captures a graph: end that first");
    MR_CUDA_TRY(device, mr_cu.StreamGetFlags(stream, &flags), "stream");
    MR_CUDA_TRY(device, mr_cu.StreamGetPriority(stream, &out_look->priority), "stream");
    out_look->blocking = !(flags & CU_STREAM_NON_BLOCKING);
    out_look->device = device->device;
    return MR_OK;
}

/* ---- memory of others in this process */

static mr_status memory_check(mr_machine *machine, mr_device *device, uint64_t address,
                              uint64_t *out_address) {
    cuda_machine *cuda = mr_cuda_of(machine);
    unsigned type = 0, managed = 0;
    int ordinal = -1;
    CUdeviceptr reached = address;
    MR_TRY(mr_cuda_use(device ? device->impl : cuda->home));
    CUresult result = mr_cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    bool is_known = result == CUDA_SUCCESS;
    if (is_known) mr_cu.PointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
    *out_address = address;
    if (!device) {
        if (!is_known || type != CU_MEMORYTYPE_HOST)
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "from_dlpack: the capsule says that its memory is pinned, and CUDA does "
                           "not know it as such");
        mr_cu.PointerGetAttribute(&reached, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address);
        *out_address = reached;
        return MR_OK;
    }
    if (is_known) mr_cu.PointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    if (is_known && managed) return MR_OK;
    if (!is_known || type != CU_MEMORYTYPE_DEVICE)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "from_dlpack: the capsule says that its memory is on device %d, and CUDA "
                       "knows no memory of a device at that address",
                       device->index);
    if (ordinal != device->index)
        return mr_fail(
            MR_CODE_INVALID_ARGUMENT,
            "from_dlpack: the capsule says that its memory is on device %d, and it is on "
            "device %d",
            device->index, ordinal);
    return MR_OK;
}

/* ---- memory between processes */

typedef struct {
    cuda_device *device;
    CUdeviceptr address;
    uint64_t bytes;
    bool is_used;
    bool is_opened; /* of another process: it is closed, and never used again */
    bool is_told;   /* its handle was asked for */
    CUipcMemHandle handle;
} shared_block;

struct cuda_outside {
    MR_VEC(shared_block) blocks;
};

static void give_up(const shared_block *b) {
    if (b->is_opened) mr_cu.IpcCloseMemHandle(b->address);
    else mr_cu.MemFree(b->address);
}

/* Drops the unused ones of one device, or of all (NULL). The device is idle, or its context is about to be
 * destroyed. */
static void drop_unused(cuda_machine *cuda, const cuda_device *device, bool only_opened) {
    if (!cuda->outside) return;
    for (size_t i = cuda->outside->blocks.count; i-- > 0;) {
        shared_block *b = &cuda->outside->blocks.items[i];
        if (b->is_used || (device && b->device != device) || (only_opened && !b->is_opened))
            continue;
        mr_status status = mr_cuda_use(b->device);
        if (!status) give_up(b);
        mr_error_destroy(status);
        *b = cuda->outside->blocks.items[--cuda->outside->blocks.count];
    }
}

void mr_cuda_outside_trim(cuda_device *device) {
    drop_unused(device->machine, device, false);
}

void mr_cuda_outside_leave(cuda_machine *cuda) {
    if (!cuda->outside) return;
    for (size_t i = 0; i < cuda->outside->blocks.count; i++)
        cuda->outside->blocks.items[i].is_used = false;
    drop_unused(cuda, NULL, false);
    mr_vec_free(&cuda->outside->blocks);
    free(cuda->outside);
    cuda->outside = NULL;
}

static mr_status add_block(cuda_machine *cuda, shared_block block) {
    if (!cuda->outside) cuda->outside = calloc(1, sizeof *cuda->outside);
    if (cuda->outside && mr_vec_push(&cuda->outside->blocks, block)) return MR_OK;
    give_up(&block);
    return mr_no_memory("for memory that processes share");
}

static shared_block *find_block(const cuda_machine *cuda, uint64_t address) {
    for (size_t i = 0; cuda->outside && i < cuda->outside->blocks.count; i++) {
        shared_block *b = &cuda->outside->blocks.items[i];
        if (address >= b->address && address - b->address < b->bytes) return b;
    }
    return NULL;
}

/* Its memory was used before, and takes no more than twice what is asked for. */
static shared_block *find_unused(const cuda_device *device, uint64_t bytes) {
    const cuda_outside *outside = device->machine->outside;
    for (size_t i = 0; outside && i < outside->blocks.count; i++) {
        shared_block *b = &outside->blocks.items[i];
        if (b->device == device && !b->is_used && !b->is_opened && b->bytes >= bytes &&
            b->bytes / 2 <= bytes)
            return b;
    }
    return NULL;
}

static mr_status memory_share(mr_device *device, uint64_t bytes, uint64_t *out_address) {
    cuda_device *d = device->impl;
    shared_block *unused = find_unused(d, bytes);
    if (unused) {
        unused->is_used = true;
        *out_address = unused->address;
        return MR_OK;
    }
    shared_block block = {.device = d, .bytes = bytes ? bytes : 1, .is_used = true};
    MR_TRY(mr_cuda_may_wait(d, "memory that processes share"));
    MR_TRY(mr_cuda_use(d));
    CUresult result = mr_cu.MemAlloc(&block.address, block.bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        MR_TRY(mr_cuda_waits(d, "memory that processes share"));
        drop_unused(d->machine, d, false);
        MR_TRY(mr_cuda_use(d));
        MR_CUDA_TRY(d, mr_cu.MemPoolTrimTo(d->pool, 0), "alloc");
        result = mr_cu.MemAlloc(&block.address, block.bytes);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return mr_fail(MR_CODE_OUT_OF_MEMORY,
                       "out of memory on device %d: %" PRIu64
                       " bytes wanted that processes share, which no pool has",
                       device->index, bytes);
    MR_CUDA_TRY(d, result, "alloc of %" PRIu64 " bytes that processes share", bytes);
    MR_TRY(add_block(d->machine, block));
    *out_address = block.address;
    return MR_OK;
}

static void memory_unshare(mr_device *device, uint64_t address) {
    const cuda_device *d = device->impl;
    shared_block *b = find_block(d->machine, address);
    if (b) b->is_used = false;
}

static mr_status memory_handle(const mr_storage *storage, char out_handle[MR_IPC_HANDLE_BYTES],
                               uint64_t *out_offset) {
    cuda_device *device = storage->device->impl;
    shared_block *b = find_block(device->machine, storage->address);
    CUdeviceptr first = b ? b->address : 0;
    CUipcMemHandle handle;
    size_t bytes;
    if (b && b->is_opened)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "ipc_handle: the memory belongs to another process: pass on the handle that "
                       "this one got");
    MR_TRY(mr_cuda_use(device));
    CUresult result = b ? CUDA_SUCCESS : mr_cu.MemGetAddressRange(&first, &bytes, storage->address);
    if (result == CUDA_SUCCESS) result = mr_cu.IpcGetMemHandle(&handle, first);
    if (result == CUDA_ERROR_NOT_SUPPORTED)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "ipc_handle: device %d cannot share memory between "
                       "processes",
                       storage->device->index);
    if (result != CUDA_SUCCESS)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "ipc_handle: the memory is of a pool, which CUDA does not share by such "
                       "handles: make it with ipc=true, as mr.empty(n, {ipc=true})");
    if (b) {
        b->is_told = true;
        b->handle = handle;
    }
    memcpy(out_handle, &handle, MR_IPC_HANDLE_BYTES);
    *out_offset = storage->address - first;
    return MR_OK;
}

static bool is_own(const cuda_machine *cuda, const CUipcMemHandle *handle) {
    for (size_t i = 0; cuda->outside && i < cuda->outside->blocks.count; i++) {
        const shared_block *b = &cuda->outside->blocks.items[i];
        if (b->is_told && memcmp(&b->handle, handle, sizeof *handle) == 0) return true;
    }
    return false;
}

static mr_status memory_open(mr_device *device, const char handle[MR_IPC_HANDLE_BYTES],
                             uint64_t *out_address, uint64_t *out_bytes) {
    cuda_device *d = device->impl;
    CUipcMemHandle bits;
    shared_block block = {.device = d, .is_used = true, .is_opened = true};
    CUdeviceptr first = 0;
    size_t bytes = 0;
    memcpy(&bits, handle, sizeof bits);
    if (is_own(d->machine, &bits))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "from_ipc_handle: this process made the handle, and CUDA opens one in other "
                       "processes only: use the tensor itself");
    MR_TRY(mr_cuda_may_wait(d, "from_ipc_handle"));
    MR_TRY(mr_cuda_use(d));
    CUresult result =
        mr_cu.IpcOpenMemHandle(&block.address, bits, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (result == CUDA_SUCCESS) {
        result = mr_cu.MemGetAddressRange(&first, &bytes, block.address);
        if (result != CUDA_SUCCESS) mr_cu.IpcCloseMemHandle(block.address);
    }
    if (result != CUDA_SUCCESS)
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "from_ipc_handle: the driver does not open it (error %d). The memory must "
                       "live in another process, on the same GPU or one that device %d can access. "
                       "The handle must be of cuIpcGetMemHandle",
                       (int)result, device->index);
    block.bytes = bytes;
    MR_TRY(add_block(d->machine, block));
    *out_address = block.address;
    *out_bytes = bytes;
    return MR_OK;
}

static void memory_close(mr_device *device, uint64_t address) {
    const cuda_device *d = device->impl;
    shared_block *b = NULL;
    /* Memory that was opened twice is there twice, under one address. */
    for (size_t i = 0; d->machine->outside && i < d->machine->outside->blocks.count; i++) {
        shared_block *at = &d->machine->outside->blocks.items[i];
        if (at->is_opened && at->is_used && at->address == address) b = at;
    }
    if (!b) return;
    b->is_used = false;
    if (!d->machine->machine->lost && mr_cuda_is_idle(d->machine)) drop_unused(d->machine, d, true);
}

/* ---- events between processes */

static mr_status event_handle(mr_event *event, mr_device *device,
                              char out_handle[MR_IPC_HANDLE_BYTES]) {
    cuda_device *d = event->device ? event->device->impl : device->impl;
    cuda_event *e = event->impl;
    CUipcEventHandle handle;
    MR_TRY(mr_cuda_use(d));
    MR_TRY(mr_cuda_event_prepare(event, d));
    CUresult result = mr_cu.IpcGetEventHandle(&handle, e->handle);
    if (result == CUDA_ERROR_NOT_SUPPORTED)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "ipc_handle: device %d cannot share events between processes",
                       d->device->index);
    MR_CUDA_TRY(d, result, "ipc_handle");
    event->device = d->device;
    memcpy(out_handle, &handle, MR_IPC_HANDLE_BYTES);
    return MR_OK;
}

static mr_status event_import(mr_event *event, mr_device *device,
                              const char handle[MR_IPC_HANDLE_BYTES]) {
    cuda_device *d = device->impl;
    cuda_event *e = event->impl;
    CUipcEventHandle bits;
    memcpy(&bits, handle, sizeof bits);
    MR_TRY(mr_cuda_may_wait(d, "an event of another process"));
    MR_TRY(mr_cuda_use(d));
    CUresult result = mr_cu.IpcOpenEventHandle(&e->handle, bits);
    if (result != CUDA_SUCCESS) {
        e->handle = NULL;
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "event: the driver does not open the handle (error %d). The event must live "
                       "in another process, on the same GPU. The handle must be of e:ipc_handle() "
                       "or Event.ipc_handle() of PyTorch",
                       (int)result);
    }
    e->device = d;
    e->generation = d->generation;
    e->plain = false;
    event->device = device;
    return MR_OK;
}

const mr_outside_slots mr_cuda_outside = {
    .stream_handle = stream_handle,
    .stream_look = stream_look,
    .memory_check = memory_check,
    .memory_share = memory_share,
    .memory_unshare = memory_unshare,
    .memory_handle = memory_handle,
    .memory_open = memory_open,
    .memory_close = memory_close,
    .event_handle = event_handle,
    .event_import = event_import,
};
