/* The fake driver's memory and copies. Device memory is memory of this process; a block that is freed
 * while something is pending goes when the stream comes to it. */
#include <stdlib.h>
#include <string.h>

#include "fake.h"

/* ---- pools */

CUresult fake_MemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
    ENTER();
    WAIT_AS_ALLOWED();
    *pool = (CUmemoryPool)&fake_devices[properties->location.id];
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_MemPoolDestroy(CUmemoryPool pool) {
    (void)pool;
    return fake_state();
}

CUresult fake_MemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    (void)pool, (void)attribute, (void)value;
    return fake_state();
}

CUresult fake_MemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    const fake_device *device = (const fake_device *)pool;
    ENTER();
    *(cuuint64_t *)value =
        attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? device->reserved : device->used;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_MemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count) {
    if (fake_cuda.no_peers) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    ENTER();
    WAIT_AS_ALLOWED();
    for (size_t i = 0; i < count; i++)
        ((fake_device *)pool)->open_to |= 1u << access[i].location.id;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_MemPoolTrimTo(CUmemoryPool pool, size_t bytes_to_keep) {
    fake_device *device = (fake_device *)pool;
    ENTER();
    WAIT_AS_ALLOWED();
    device->reserved = device->used > bytes_to_keep ? device->used : bytes_to_keep;
    return fake_leave(CUDA_SUCCESS);
}

/* ---- blocks */

/* Where the built-in kernels do not run, counts that they would have written are 0. */
void *fake_alloc(size_t bytes) {
    enum { MOST_CLEARED = 1 << 20 };
    void *memory;
    if (posix_memalign(&memory, ALIGNMENT, bytes) != 0) return NULL;
    if (bytes <= MOST_CLEARED && !fake_number_of("FAKE_CUDA_KERNELS", 0)) memset(memory, 0, bytes);
    return memory;
}

CUresult fake_MemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                    CUstream stream) {
    fake_device *device = (fake_device *)pool;
    ENTER_OR_FAIL();
    /* It would be a node, with memory of its own: nothing here wants that. */
    if (fake_stream_of(stream)->capture) return fake_leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    fake_move();
    bool fails = fake_cuda.fail_alloc_at ? --fake_cuda.fail_alloc_at == 0
                                         : fake_cuda.fail_allocs && fake_cuda.fail_allocs--;
    if (fails) return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    if (bytes > fake_total_memory() - device->used) return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    block *b = malloc(sizeof *b);
    char *memory = fake_alloc(bytes);
    if (!b || !memory) abort();
    *b = (block){.next = device->blocks, .address = memory, .bytes = bytes};
    device->blocks = b;
    device->used += bytes;
    if (device->reserved < device->used) device->reserved = device->used;
    fake_cuda.blocks++;
    *address = (CUdeviceptr)(uintptr_t)memory;
    return fake_leave(CUDA_SUCCESS);
}

void fake_free_block(int device, void *address) {
    for (block **link = &fake_devices[device].blocks; *link; link = &(*link)->next) {
        block *b = *link;
        if (b->address != address) continue;
        *link = b->next;
        fake_devices[device].used -= b->is_opened ? 0 : b->bytes;
        fake_cuda.blocks--;
        if (*b->path) fake_unmap(b);
        else free(b->address);
        free(b);
        return;
    }
    abort(); /* freed twice, or never allocated */
}

CUresult fake_MemFreeAsync(CUdeviceptr address, CUstream stream) {
    ENTER();
    if (fake_stream_of(stream)->capture) abort(); /* likewise */
    fake_add(fake_stream_of(stream), TASK_FREE)->to = (void *)(uintptr_t)address;
    fake_move();
    return fake_leave(CUDA_SUCCESS);
}

/* Memory of a pool: at once, whatever is pending. */
CUresult fake_MemFree(CUdeviceptr address) {
    int device = fake_current;
    ENTER();
    fake_find_block(address, &device);
    fake_free_block(device, (void *)(uintptr_t)address);
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_MemGetInfo(size_t *free_bytes, size_t *total) {
    ENTER();
    *total = fake_total_memory();
    *free_bytes = fake_total_memory() - fake_devices[fake_current].reserved;
    return fake_leave(CUDA_SUCCESS);
}

/* ---- pinned memory: ranges that were registered */

enum { MOST_RANGES = 1024 };
static struct {
    const char *host;
    size_t bytes;
    int device; /* whose context registered it, and takes the registration with it */
} ranges[MOST_RANGES];

static int find_range(const void *host) {
    for (int i = 0; i < MOST_RANGES; i++)
        if (ranges[i].host && (const char *)host >= ranges[i].host &&
            (const char *)host < ranges[i].host + ranges[i].bytes)
            return i;
    return -1;
}

bool fake_find_pinned(const void *host, char **out_first, uint64_t *out_end) {
    int i = find_range(host);
    if (i < 0) return false;
    *out_first = (char *)(uintptr_t)ranges[i].host;
    *out_end = (uintptr_t)ranges[i].host + ranges[i].bytes;
    return true;
}

void fake_free_all(int device) {
    while (fake_devices[device].blocks)
        fake_free_block(device, fake_devices[device].blocks->address);
    fake_devices[device].reserved = 0;
    for (int i = 0; i < MOST_RANGES; i++) {
        if (!ranges[i].host || ranges[i].device != device) continue;
        ranges[i].host = NULL;
        fake_cuda.registered--;
    }
}

CUresult fake_MemHostRegister(void *host, size_t bytes, unsigned flags) {
    ENTER();
    WAIT_AS_ALLOWED();
    (void)flags;
    if (fake_cuda.fail_register_at && --fake_cuda.fail_register_at == 0)
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    if (find_range(host) >= 0) return fake_leave(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    for (int i = 0; i < MOST_RANGES; i++) {
        if (ranges[i].host) continue;
        ranges[i].host = host;
        ranges[i].bytes = bytes;
        ranges[i].device = fake_current;
        fake_cuda.registered++;
        return fake_leave(CUDA_SUCCESS);
    }
    return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult fake_MemHostUnregister(void *host) {
    ENTER();
    CUresult result = fake_finish(NULL);
    if (!result) result = fake_wait_as_allowed();
    int i = find_range(host);
    if (i < 0) return fake_leave(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    ranges[i].host = NULL;
    fake_cuda.registered--;
    return fake_leave(result);
}

CUresult fake_MemHostGetDevicePointer(CUdeviceptr *address, void *host, unsigned flags) {
    ENTER();
    (void)flags;
    *address = (CUdeviceptr)(uintptr_t)host;
    return fake_leave(find_range(host) < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

/* ---- copies: R20-R24 */

static task *add_copy(CUstream stream, uint32_t call, void *to, const void *from, size_t bytes) {
    task *t = fake_add(fake_stream_of(stream), TASK_COPY);
    t->correlation = call;
    t->to = to;
    t->from = from;
    t->bytes = bytes;
    return t;
}

static void stage(task *t) {
    t->staged = malloc(t->bytes);
    if (!t->staged) abort();
    memcpy(t->staged, t->from, t->bytes);
}

CUresult fake_MemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    ENTER_OR_FAIL();
    uint32_t call = FAKE_CALL(cuMemcpyHtoDAsync_v2);
    task *t = add_copy(stream, call, (void *)(uintptr_t)to, from, bytes);
    if (find_range(from) < 0 && !fake_stream_of(stream)->capture) stage(t);
    fake_move();
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_MemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    ENTER_OR_FAIL();
    CUresult result = CUDA_SUCCESS;
    add_copy(stream, FAKE_CALL(cuMemcpyDtoHAsync_v2), to, (const void *)(uintptr_t)from, bytes);
    fake_move();
    if (find_range(to) < 0 && !fake_stream_of(stream)->capture)
        result = fake_finish(fake_stream_of(stream));
    return fake_leave(result);
}

static CUresult copy_between(uint32_t call, CUdeviceptr to, CUdeviceptr from, size_t bytes,
                             CUstream stream) {
    add_copy(stream, call, (void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    fake_move();
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_MemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    ENTER_OR_FAIL();
    return copy_between(FAKE_CALL(cuMemcpyDtoDAsync_v2), to, from, bytes, stream);
}

CUresult fake_MemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                              CUcontext from_context, size_t bytes, CUstream stream) {
    if (!to_context || !from_context) return CUDA_ERROR_INVALID_CONTEXT;
    ENTER();
    return copy_between(FAKE_CALL(cuMemcpyPeerAsync), to, from, bytes, stream);
}

CUresult fake_MemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) {
    ENTER();
    add_copy(CU_STREAM_LEGACY, FAKE_CALL(cuMemcpyHtoD_v2), (void *)(uintptr_t)to, from, bytes);
    fake_write_prints();
    return fake_leave(fake_finish(fake_stream_of(CU_STREAM_LEGACY)));
}

CUresult fake_MemsetD8Async(CUdeviceptr to, unsigned char byte, size_t count, CUstream stream) {
    ENTER_OR_FAIL();
    task *t = fake_add(fake_stream_of(stream), TASK_SET);
    t->correlation = FAKE_CALL(cuMemsetD8Async);
    t->to = (void *)(uintptr_t)to;
    t->byte = byte;
    t->bytes = count;
    fake_move();
    return fake_leave(CUDA_SUCCESS);
}
