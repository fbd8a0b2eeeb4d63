/* The current context of a thread, and its state after a fork. device.c makes the contexts, with the objects in
 * them. */
#include <pthread.h>
#include <time.h>

#include "cuda/state.h"

_Thread_local CUcontext mr_cuda_current;

static atomic_bool forked;

uint64_t mr_cuda_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- forks */

/* Runs in the child of a fork. Its only thread has no context. */
static void forget_driver(void) {
    mr_cuda_current = NULL;
    atomic_store(&forked, true);
}

void mr_cuda_watch_forks(void) {
    pthread_atfork(NULL, NULL, forget_driver);
}

bool mr_cuda_is_forked(void) {
    return atomic_load_explicit(&forked, memory_order_relaxed);
}

mr_status mr_cuda_forked(void) {
    return mr_fail(MR_CODE_NOT_SUPPORTED,
                   "this process was forked from one that uses the GPU, and CUDA does not work in "
                   "such a child. Use the GPU in the parent, or start a new program for the child");
}

/* ---- the current context */

void mr_cuda_make_current(CUcontext context) {
    mr_cuda_current = mr_cu.CtxSetCurrent(context) == CUDA_SUCCESS ? context : NULL;
}

mr_status mr_cuda_use_slowly(cuda_device *device) {
    if (mr_cuda_is_forked()) return mr_cuda_forked();
    if (!device->context) MR_TRY(device->machine->make_context(device));
    CUcontext now = NULL;
    if (device->machine->machine->outside.used && mr_cuda_current == device->context &&
        mr_cu.CtxGetCurrent(&now) == CUDA_SUCCESS && now == device->context)
        return MR_OK;
    mr_cuda_make_current(device->context);
    if (mr_cuda_current) return MR_OK;
    return mr_fail(MR_CODE_INVALID_DEVICE, "device %d cannot be made current",
                   device->device->index);
}
