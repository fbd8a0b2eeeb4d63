/* What a stream has of its own for its launches, and memory for the length of a command. */
#include "cuda/launch/kernels.h"

#include <stdlib.h>

/* Destroying a handle waits for the device, so a handle is kept until that closes. */
static void spare_blas(cuda_kernels *kernels, cuda_lane *lane) {
    if (lane->blas) kernels->spare_blas.items[kernels->spare_blas.count++] = lane->blas;
    lane->blas = NULL;
    lane->attached = false;
}

/* A free lane's memory may still be in use by the stream that left it. */
static mr_status take_over(const mr_command *command, cuda_lane *lane, CUstream stream) {
    cuda_device *device = mr_cuda_device_of(command);
    MR_CUDA_TRY(device, mr_cu.StreamWaitEvent(stream, lane->left, 0), "%s", command->name);
    mr_cuda_event_give(device, lane->left);
    lane->left = NULL;
    lane->attached = false;
    return MR_OK;
}

mr_status mr_cuda_lane(const mr_command *command, CUstream stream, cuda_lane **out_lane) {
    cuda_kernels *kernels = mr_cuda_kernels_of(command);
    cuda_lane *first = kernels->lanes;
    if (first && first->stream == stream) {
        *out_lane = first;
        return MR_OK;
    }
    cuda_lane **at = &kernels->lanes;
    while (*at && (*at)->stream != stream) at = &(*at)->next;
    cuda_lane *lane = *at;
    if (lane) {
        *at = lane->next;
    } else if (kernels->free_lanes && !kernels->captured) {
        lane = kernels->free_lanes;
        MR_TRY(take_over(command, lane, stream));
        kernels->free_lanes = lane->next;
    } else {
        lane = calloc(1, sizeof *lane);
        if (!lane) return mr_fail(MR_CODE_OUT_OF_MEMORY, "%s: host memory is out", command->name);
    }
    lane->stream = stream;
    lane->next = kernels->lanes; /* in front: the stream in use is found at once */
    kernels->lanes = lane;
    *out_lane = lane;
    return MR_OK;
}

/* The stream for work that is done once, and not in each launch of a graph that is being captured. */
static CUstream preparing(const mr_command *command, CUstream stream) {
    const cuda_graph_memory *captured = mr_cuda_kernels_of(command)->captured;
    return captured ? captured->stream : stream;
}

mr_status mr_cuda_lane_scratch(const mr_command *command, cuda_lane *lane) {
    if (lane->scratch) return MR_OK;
    MR_TRY(mr_cuda_borrow(command, lane->stream, LANE_CELLS + LANE_COUNTERS, &lane->scratch));
    MR_CUDA_TRY(mr_cuda_device_of(command),
                mr_cu.MemsetD8Async(lane->scratch + LANE_CELLS, 0, LANE_COUNTERS,
                                    preparing(command, lane->stream)),
                "%s", command->name);
    return MR_OK;
}

void mr_cuda_lane_drop_captured(cuda_device *device, CUstream stream) {
    cuda_kernels *kernels = device->kernels;
    cuda_lane **at = &kernels->lanes;
    while (*at && (*at)->stream != stream) at = &(*at)->next;
    cuda_lane *lane = *at;
    if (!lane) return;
    *at = lane->next;
    spare_blas(kernels, lane);
    free(lane);
}

void mr_cuda_kernels_forget_stream(cuda_device *device, CUstream stream) {
    cuda_kernels *kernels = device->kernels;
    cuda_lane **at = kernels ? &kernels->lanes : NULL;
    while (at && *at && (*at)->stream != stream) at = &(*at)->next;
    if (!at || !*at) return;
    cuda_lane *lane = *at;
    *at = lane->next;
    lane->left = mr_cuda_event_take(device);
    if (lane->left && mr_cu.EventRecord(lane->left, stream) == CUDA_SUCCESS) {
        lane->next = kernels->free_lanes;
        kernels->free_lanes = lane;
        return;
    }
    /* The driver is out of events, or lost: give the memory back after the stream's own work. */
    if (lane->left) mr_cuda_event_give(device, lane->left);
    spare_blas(kernels, lane);
    if (lane->workspace) mr_cu.MemFreeAsync(lane->workspace, stream);
    if (lane->scratch) mr_cu.MemFreeAsync(lane->scratch, stream);
    free(lane);
}

mr_status mr_cuda_borrow(const mr_command *command, CUstream stream, uint64_t bytes,
                         CUdeviceptr *out_address) {
    cuda_device *device = mr_cuda_device_of(command);
    cuda_graph_memory *captured = mr_cuda_kernels_of(command)->captured;
    *out_address = 0;
    if (captured) return captured->borrow(captured, stream, bytes, out_address);
    MR_CUDA_TRY(device,
                mr_cu.MemAllocFromPoolAsync(out_address, bytes ? bytes : 1, device->pool, stream),
                "%s: %llu bytes of working memory", command->name, (unsigned long long)bytes);
    return MR_OK;
}

void mr_cuda_return(const mr_command *command, CUstream stream, CUdeviceptr address) {
    cuda_graph_memory *captured = mr_cuda_kernels_of(command)->captured;
    if (!address) return;
    if (captured) captured->give_back(captured, address);
    else mr_cu.MemFreeAsync(address, stream);
}

/* In a capture, no other command may write to the memory, so it is never free for another command. */
mr_status mr_cuda_upload(const mr_command *command, CUstream stream, const void *values,
                         uint64_t bytes, CUdeviceptr *out_address) {
    CUstream lane = mr_cuda_kernels_of(command)->captured ? NULL : stream;
    MR_TRY(mr_cuda_borrow(command, lane, bytes, out_address));
    MR_CUDA_TRY(mr_cuda_device_of(command),
                mr_cu.MemcpyHtoDAsync(*out_address, values, bytes, preparing(command, stream)),
                "%s", command->name);
    return MR_OK;
}

/* ------------------------------------------------------------------------- closing */

static void close_blas(cuda_lane *lane) {
    if (lane->blas) mr_cublas.Destroy(lane->blas);
    lane->blas = NULL;
}

static void close_lanes(cuda_lane *lane) {
    while (lane) {
        cuda_lane *next = lane->next;
        close_blas(lane);
        if (lane->left) mr_cu.EventDestroy(lane->left);
        if (lane->workspace) mr_cu.MemFreeAsync(lane->workspace, NULL);
        if (lane->scratch) mr_cu.MemFreeAsync(lane->scratch, NULL);
        free(lane);
        lane = next;
    }
}

static void close_spare_blas(cuda_kernels *kernels) {
    while (kernels->spare_blas.count) mr_cublas.Destroy(mr_vec_pop(&kernels->spare_blas));
    mr_vec_free(&kernels->spare_blas);
}

void mr_cuda_lanes_close(cuda_kernels *kernels) {
    close_lanes(kernels->lanes);
    close_lanes(kernels->free_lanes);
    close_spare_blas(kernels);
}
