/* What the fake driver shares with other code: facts about streams and addresses, and memory and events between
 * processes. Shared memory lies in a file of /dev/shm, whose name is the handle: the number of the process and one of
 * its own. An event that they share is a page with two counts, of records submitted and done. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake.h"

/* ---- facts */

CUresult fake_CtxGetCurrent(CUcontext *context) {
    *context = fake_current < 0 ? NULL : &fake_devices[fake_current].context;
    return CUDA_SUCCESS;
}

CUresult fake_CtxGetDevice(CUdevice *device) {
    *device = fake_current;
    return fake_current < 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

static CUstream find_stream(CUstream handle) {
    for (int i = 0; i < fake_device_count; i++)
        for (CUstream s = fake_devices[i].streams; s; s = s->next)
            if (s == handle && !s->closed) return s;
    return NULL;
}

CUresult fake_StreamGetCtx(CUstream handle, CUcontext *context) {
    ENTER();
    CUstream s = find_stream(handle);
    if (s) *context = &fake_devices[s->device].context;
    return fake_leave(s ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE);
}

CUresult fake_StreamGetFlags(CUstream handle, unsigned *flags) {
    ENTER();
    *flags = handle->blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_StreamGetPriority(CUstream handle, int *priority) {
    (void)handle;
    *priority = -1;
    return fake_state();
}

CUresult fake_StreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
    *status = handle->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return fake_state();
}

block *fake_find_block(uint64_t address, int *out_device) {
    for (int i = 0; i < fake_device_count; i++)
        for (block *b = fake_devices[i].blocks; b; b = b->next)
            if (address >= (uintptr_t)b->address && address - (uintptr_t)b->address < b->bytes) {
                *out_device = i;
                return b;
            }
    return NULL;
}

CUresult fake_PointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address) {
    int device;
    char *first;
    uint64_t end;
    ENTER();
    const block *b = fake_find_block(address, &device);
    bool is_pinned = !b && fake_find_pinned((void *)(uintptr_t)address, &first, &end);
    if (!b && !is_pinned) return fake_leave(CUDA_ERROR_INVALID_VALUE);
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = b ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = b ? device : fake_current; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)value = address; break;
    default: *(unsigned *)value = 0; break;
    }
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_MemGetAddressRange(CUdeviceptr *first, size_t *bytes, CUdeviceptr address) {
    int device;
    ENTER();
    const block *b = fake_find_block(address, &device);
    if (!b) return fake_leave(CUDA_ERROR_NOT_FOUND);
    *first = (CUdeviceptr)(uintptr_t)b->address;
    *bytes = b->bytes;
    return fake_leave(CUDA_SUCCESS);
}

/* ---- files that processes share */

static int files_made;

static void *map_file(const char *path, size_t bytes, bool is_new) {
    int file = open(path, is_new ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
    if (file < 0) return NULL;
    void *memory = NULL;
    if (!is_new || ftruncate(file, (off_t)bytes) == 0)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

static void name_file(char *out, size_t size) {
    snprintf(out, size, "/dev/shm/fake_cuda.%ld.%d", (long)getpid(), ++files_made);
}

/* In the handle: what a process of this library made, and so is not of another one. */
static bool is_own(const char *handle) {
    char own[64];
    int length = snprintf(own, sizeof own, "/dev/shm/fake_cuda.%ld.", (long)getpid());
    return strncmp(handle, own, (size_t)length) == 0;
}

/* ---- memory */

static void add_block(int device, void *memory, size_t bytes, const char *path, bool is_opened) {
    block *b = calloc(1, sizeof *b);
    if (!b) abort();
    *b = (block){.next = fake_devices[device].blocks,
                 .address = memory,
                 .bytes = bytes,
                 .is_opened = is_opened,
                 .times_opened = is_opened};
    snprintf(b->path, sizeof b->path, "%s", path);
    fake_devices[device].blocks = b;
    fake_devices[device].used += is_opened ? 0 : bytes;
    fake_cuda.blocks++;
}

CUresult fake_MemAlloc(CUdeviceptr *address, size_t bytes) {
    char path[64];
    ENTER_OR_FAIL();
    WAIT_AS_ALLOWED();
    if (bytes > fake_total_memory() - fake_devices[fake_current].used)
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    name_file(path, sizeof path);
    void *memory = map_file(path, bytes, true);
    if (!memory) return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    add_block(fake_current, memory, bytes, path, false);
    *address = (CUdeviceptr)(uintptr_t)memory;
    return fake_leave(CUDA_SUCCESS);
}

/* Memory of a pool has no file: it is not shared in this way. */
CUresult fake_IpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address) {
    int device;
    ENTER();
    const block *b = fake_find_block(address, &device);
    if (!b || !*b->path || b->is_opened) return fake_leave(CUDA_ERROR_INVALID_VALUE);
    memset(handle, 0, sizeof *handle);
    snprintf(handle->reserved, sizeof handle->reserved, "%.40s %zu", b->path, b->bytes);
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_IpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags) {
    char path[64];
    size_t bytes;
    ENTER();
    handle.reserved[sizeof handle.reserved - 1] = '\0';
    if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
        sscanf(handle.reserved, "%63s %zu", path, &bytes) != 2)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    if (is_own(path)) return fake_leave(CUDA_ERROR_INVALID_CONTEXT);
    for (block *b = fake_devices[fake_current].blocks; b; b = b->next) {
        if (!b->is_opened || strcmp(b->path, path) != 0) continue;
        b->times_opened++;
        *address = (CUdeviceptr)(uintptr_t)b->address;
        return fake_leave(CUDA_SUCCESS);
    }
    void *memory = map_file(path, bytes, false);
    if (!memory) return fake_leave(CUDA_ERROR_MAP_FAILED);
    add_block(fake_current, memory, bytes, path, true);
    *address = (CUdeviceptr)(uintptr_t)memory;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_IpcCloseMemHandle(CUdeviceptr address) {
    int device;
    ENTER();
    WAIT_AS_ALLOWED();
    block *b = fake_find_block(address, &device);
    if (!b || !b->is_opened) return fake_leave(CUDA_ERROR_INVALID_VALUE);
    if (!--b->times_opened) fake_free_block(device, b->address);
    return fake_leave(CUDA_SUCCESS);
}

void fake_unmap(const block *b) {
    munmap(b->address, b->bytes);
    if (!b->is_opened) unlink(b->path);
}

/* ---- events */

fake_counts *fake_share_event(char path[64]) {
    name_file(path, 64);
    return map_file(path, sizeof(fake_counts), true);
}

void fake_forget_event(const struct CUevent_st *event) {
    if (!event->counts) return;
    munmap(event->counts, sizeof *event->counts);
    if (!event->is_opened) unlink(event->path);
}

CUresult fake_IpcGetEventHandle(CUipcEventHandle *handle, CUevent event) {
    ENTER();
    if (!event->counts || event->is_opened) return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    memset(handle, 0, sizeof *handle);
    snprintf(handle->reserved, sizeof handle->reserved, "%s", event->path);
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_IpcOpenEventHandle(CUevent *event, CUipcEventHandle handle) {
    ENTER();
    handle.reserved[sizeof handle.reserved - 1] = '\0';
    if (is_own(handle.reserved)) return fake_leave(CUDA_ERROR_INVALID_CONTEXT);
    bool is_known = strncmp(handle.reserved, "/dev/shm/fake_cuda.", 19) == 0;
    fake_counts *counts = is_known ? map_file(handle.reserved, sizeof *counts, false) : NULL;
    if (!counts) return fake_leave(CUDA_ERROR_MAP_FAILED);
    *event = fake_new_event();
    (*event)->counts = counts;
    (*event)->is_opened = true;
    return fake_leave(CUDA_SUCCESS);
}
