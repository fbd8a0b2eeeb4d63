/* Lets go of held host memory (hold.c) once the device is done with it. A wait does so, and nothing here waits. */
#include "cuda/wait/wait.h"

static void let_go(cuda_machine *cuda, cuda_hold *hold) {
    CUcontext before = mr_cuda_current;
    for (uint32_t i = 0; i < hold->count; i++) mr_storage_release(hold->storages[i]);
    /* A deleter of other code may leave another one current. */
    if (cuda->machine->outside.used && before) mr_cuda_make_current(before);
    mr_slab_free(&cuda->holds, hold);
}

/* With `all`, nothing is under way any more. */
static void take_back(cuda_device *device, bool all) {
    for (size_t i = device->left.count; i-- > 0;) {
        cuda_left *left = &device->left.items[i];
        if (!all && (!left->fence || mr_cu.EventQuery(left->fence) != CUDA_SUCCESS)) continue;
        if (left->fence) mr_cuda_event_give(device, left->fence);
        mr_cuda_pinned_give(device->machine, left->block);
        *left = device->left.items[--device->left.count];
    }
}

void mr_cuda_hold_release(cuda_stream *stream) {
    cuda_hold *hold = stream->holds;
    stream->holds = NULL;
    if (hold) let_go(stream->device->machine, hold);
}

void mr_cuda_hold_poll(cuda_device *device) {
    if (!device->machine->machine->lost) take_back(device, false);
    for (cuda_hold **link = &device->fenced; *link;) {
        cuda_hold *hold = *link;
        if (device->machine->machine->lost || mr_cu.EventQuery(hold->fence) != CUDA_SUCCESS) {
            link = &hold->next;
            continue;
        }
        *link = hold->next;
        if (!hold->next) device->fenced_end = link;
        mr_cuda_event_give(device, hold->fence);
        let_go(device->machine, hold);
    }
}

void mr_cuda_hold_drop(cuda_device *device) {
    for (cuda_stream *s = device->first; s; s = s->next) mr_cuda_hold_release(s);
    while (device->fenced) {
        cuda_hold *hold = device->fenced;
        device->fenced = hold->next;
        mr_cuda_event_give(device, hold->fence);
        let_go(device->machine, hold);
    }
    device->fenced_end = &device->fenced;
    take_back(device, true);
    mr_vec_free(&device->left);
}
