/* Peers (R59): one device's kernels and copies in another's memory. A pool is opened to the device as a
 * whole, besides the context. */
#include "cuda/objects/objects.h"
#include "cuda/wait/wait.h"

bool mr_cuda_can_access_peer(mr_device *device, mr_device *peer) {
    const cuda_device *d = device->impl, *p = peer->impl;
    int can = 0;
    return mr_cu.DeviceCanAccessPeer(&can, d->handle, p->handle) == CUDA_SUCCESS && can;
}

static mr_status already(const mr_device *device, const mr_device *peer) {
    return mr_fail(MR_CODE_PEER_ACCESS_ENABLED,
                   "enable_peer_access: device %d already has access to device %d", device->index,
                   peer->index);
}

mr_status mr_cuda_enable_peer_access(mr_device *device, mr_device *peer) {
    cuda_device *d = device->impl, *p = peer->impl;
    uint64_t bit = (uint64_t)1 << peer->index;
    if (!mr_cuda_can_access_peer(device, peer))
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "enable_peer_access: device %d cannot reach the memory of device %d: copies "
                       "between them go through the host",
                       device->index, peer->index);
    if (d->peers & bit) return already(device, peer);
    MR_TRY(mr_cuda_may_wait(d, "enable_peer_access"));
    MR_TRY(mr_cuda_use(p)); /* makes its context */
    MR_TRY(mr_cuda_use(d));
    CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d->handle},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    MR_CUDA_TRY(d, mr_cu.MemPoolSetAccess(p->pool, &access, 1), "enable_peer_access");
    CUresult result = mr_cu.CtxEnablePeerAccess(p->context, 0);
    d->peers |= bit;
    /* Other code in this process may have enabled it, since the context is shared. */
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) return MR_OK;
    d->peers &= ~bit;
    return mr_cuda_fail(d, result, "enable_peer_access: device %d to device %d", device->index,
                        peer->index);
}

/* The access stays, because other code may share the context and use it. Enabling it again finds it enabled. */
void mr_cuda_forget_peer_access(mr_device *device, mr_device *peer) {
    cuda_device *d = device->impl;
    d->peers &= ~((uint64_t)1 << peer->index);
}
