/* Plain events of the driver, which are used again and again: by the script's events, fences and lanes. */
#include "cuda/state.h"

CUevent mr_cuda_event_take(cuda_device *device) {
    CUevent event;
    if (device->events.count) return mr_vec_pop(&device->events);
    if (mr_cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return NULL;
    return event;
}

void mr_cuda_event_give(cuda_device *device, CUevent event) {
    if (!mr_vec_push(&device->events, event)) mr_cu.EventDestroy(event);
}
