/* The fake driver's start, devices and contexts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

fake_cuda_control fake_cuda;
pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
fake_device fake_devices[MOST_DEVICES];
int fake_device_count = -1; /* before cuInit */
_Thread_local int fake_current = -1;

/* A row of the list without a function would leave the table of a test half filled. */
#define X(name, symbol, parameters) (void *)fake_##name,
__attribute__((used)) static void *const all_are_there[] = {MR_CUDA_DRIVER_LIST(X)};
#undef X

int fake_number_of(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    return text && *text ? atoi(text) : otherwise;
}

size_t fake_total_memory(void) {
    return (size_t)fake_number_of("FAKE_CUDA_GIB", 1) << 30;
}

/* ---- the state that every call looks at */

CUresult fake_state(void) {
    if (fake_device_count < 0) return CUDA_ERROR_NOT_INITIALIZED;
    if (fake_current < 0) return CUDA_ERROR_INVALID_CONTEXT;
    return fake_devices[fake_current].lost;
}

CUresult fake_enter(void) {
    pthread_mutex_lock(&fake_lock);
    CUresult state = fake_state();
    if (state) pthread_mutex_unlock(&fake_lock);
    return state;
}

CUresult fake_leave(CUresult result) {
    pthread_mutex_unlock(&fake_lock);
    return result;
}

/* ---- start */

CUresult fake_Init(unsigned flags) {
    int result = fake_number_of("FAKE_CUDA_INIT", 0);
    const char *lose = getenv("FAKE_CUDA_LOSE");
    (void)flags;
    if (result) return (CUresult)result;
    int count = fake_number_of("FAKE_CUDA_DEVICES", 1);
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible && atoi(visible) >= count) count = 0;
    if (visible && !*visible) count = 0;
    if (!count) return CUDA_ERROR_NO_DEVICE;
    if (fake_device_count < 0 && lose) {
        int code = 0;
        sscanf(lose, "%d:%d", &fake_cuda.lose_at, &code);
        fake_cuda.lose_with = (CUresult)code;
    }
    if (fake_device_count < 0) fake_cuda.waits = fake_number_of("FAKE_CUDA_WAITS", 0);
    fake_device_count = count;
    return CUDA_SUCCESS;
}

CUresult fake_DriverGetVersion(int *version) {
    *version = fake_number_of("FAKE_CUDA_VERSION", CUDA_VERSION);
    return CUDA_SUCCESS;
}

CUresult fake_GetErrorName(CUresult result, const char **name) {
    static _Thread_local char text[32];
    snprintf(text, sizeof text, "FAKE_ERROR_%d", (int)result);
    *name = text;
    return CUDA_SUCCESS;
}

CUresult fake_GetErrorString(CUresult result, const char **text) {
    (void)result;
    *text = "the fake driver says so";
    return CUDA_SUCCESS;
}

/* ---- devices */

CUresult fake_DeviceGetCount(int *count) {
    *count = fake_device_count;
    return fake_device_count < 0 ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

CUresult fake_DeviceGet(CUdevice *device, int ordinal) {
    *device = ordinal;
    return ordinal < fake_device_count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult fake_DeviceGetName(char *name, int size, CUdevice device) {
    snprintf(name, (size_t)size, "Fake GPU %d", device);
    return CUDA_SUCCESS;
}

CUresult fake_DeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    int capability = fake_number_of("FAKE_CUDA_CAPABILITY", 90);
    (void)device;
    switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = capability / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = capability % 10; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = SM_COUNT; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = MOST_THREADS; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = MOST_SHARED; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        *value = MOST_SHARED + 1024; /* what the system takes of each block's */
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
        *value = fake_number_of("FAKE_CUDA_MEMORY_OPERATIONS", 1);
        break;
    default: *value = 1; break;
    }
    return CUDA_SUCCESS;
}

CUresult fake_DeviceTotalMem(size_t *bytes, CUdevice device) {
    (void)device;
    *bytes = fake_total_memory();
    return CUDA_SUCCESS;
}

CUresult fake_DeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    *can = device != peer && !fake_cuda.no_peers;
    return CUDA_SUCCESS;
}

/* ---- contexts */

CUresult fake_DevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    int refused = fake_number_of("FAKE_CUDA_RETAIN", 0);
    fake_device *d = &fake_devices[device];
    if (refused && device < fake_number_of("FAKE_CUDA_UNUSABLE", MOST_DEVICES))
        return (CUresult)refused;
    pthread_mutex_lock(&fake_lock);
    if (d->lost && !d->retained && fake_cuda.lost_for_good) return fake_leave(d->lost);
    if (!d->retained) fake_wait_as_allowed();
    if (!d->retained++) {
        d->lost = CUDA_SUCCESS;
        d->context.device = device;
        fake_stream_init(&d->legacy, device, true);
        fake_stream_init(&d->per_thread, device, true);
        d->legacy.legacy = true;
        fake_cuda.contexts++;
    }
    *context = &d->context;
    return fake_leave(CUDA_SUCCESS);
}

static void destroy_context(int device) {
    fake_drop(device);
    fake_write_prints();
    fake_free_all(device);
    fake_free_executables(device);
    fake_free_modules(device);
    fake_devices[device].open_to = 0;
    fake_devices[device].streams = NULL;
    fake_devices[device].stream_count = 0;
    fake_cuda.contexts--;
}

CUresult fake_DevicePrimaryCtxRelease(CUdevice device) {
    pthread_mutex_lock(&fake_lock);
    if (!fake_devices[device].retained) return fake_leave(CUDA_ERROR_INVALID_CONTEXT);
    if (fake_devices[device].retained == 1) fake_wait_as_allowed();
    if (!--fake_devices[device].retained) destroy_context(device);
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_DevicePrimaryCtxReset(CUdevice device) {
    pthread_mutex_lock(&fake_lock);
    fake_wait_as_allowed();
    if (fake_devices[device].retained) destroy_context(device);
    fake_devices[device].retained = 0;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_CtxSetCurrent(CUcontext context) {
    fake_current = context ? context->device : -1;
    fake_cuda.current_changes++;
    return CUDA_SUCCESS;
}

CUresult fake_CtxSynchronize(void) {
    ENTER();
    CUresult result = fake_finish(NULL);
    fake_write_prints();
    return fake_leave(result);
}

CUresult fake_CtxGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0;
    *greatest = -5;
    return fake_state();
}

CUresult fake_CtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    (void)peer, (void)flags;
    ENTER();
    return fake_leave(fake_wait_as_allowed());
}
