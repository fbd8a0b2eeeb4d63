/* The state of the launcher: modules, function handles, lanes. */
#include "base/number.h"
#include "cuda/launch/kernels.h"
#include "cuda/wait/wait.h"

#include <stdio.h>
#include <stdlib.h>

/* Made by the Makefile from src/cuda/kernels/NAME.cu (build/gen/kernels.S). */
#define X(id, name)                                                                                \
    extern const unsigned char mr_cuda_image_##name[] __attribute__((visibility("hidden")));
MR_CUDA_MODULE_LIST(X)
#undef X

static const struct {
    const char *name;
    const void *image;
} modules[] = {
#define X(id, name) {#name, mr_cuda_image_##name},
    MR_CUDA_MODULE_LIST(X)
#undef X
};

const char *mr_cuda_tag(int dtype) {
    return dtype == MR_BOOL ? "b8" : mr_dtype_text((mr_dtype)dtype);
}

/* ------------------------------------------------------------------------- opening */

static mr_status load_module(cuda_device *device, int m) {
    cuda_kernels *kernels = device->kernels;
    MR_CUDA_TRY(device, mr_cu.ModuleLoadData(&kernels->modules[m], modules[m].image),
                "loading the %s kernels for this GPU", modules[m].name);
    return MR_OK;
}

mr_status mr_cuda_kernels_open(cuda_device *device) {
    device->kernels = calloc(1, sizeof(cuda_kernels));
    if (!device->kernels) return mr_fail(MR_CODE_OUT_OF_MEMORY, "host memory is out");
    /* All at once, while nothing runs: loading a module waits for a busy device (functions do not). */
    for (int m = 0; m < MODULE_COUNT; m++) MR_TRY(load_module(device, m));
    return MR_OK;
}

static void close_blas(cuda_lane *lane) {
    if (lane->blas) mr_cublas.Destroy(lane->blas);
    lane->blas = NULL;
}

/* Destroying a handle waits for the device, so a handle is kept until that closes. */
static void spare_blas(cuda_kernels *kernels, cuda_lane *lane) {
    if (lane->blas) kernels->spare_blas.items[kernels->spare_blas.count++] = lane->blas;
    lane->blas = NULL;
    lane->attached = false;
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

void mr_cuda_kernels_close(cuda_device *device) {
    cuda_kernels *kernels = device->kernels;
    if (!kernels) return;
    if (device->indices) device->indices->close(device);
    close_lanes(kernels->lanes);
    close_lanes(kernels->free_lanes);
    close_spare_blas(kernels);
    for (int m = 0; m < MODULE_COUNT; m++)
        if (kernels->modules[m]) mr_cu.ModuleUnload(kernels->modules[m]);
    if (kernels->close_codes) kernels->close_codes(kernels);
    free(kernels);
    device->kernels = NULL;
}

/* ------------------------------------------------------------------------- kernels */

mr_status mr_cuda_find(const mr_command *command, CUfunction *slot, cuda_module module,
                       const char *format, ...) {
    cuda_device *device = mr_cuda_device_of(command);
    cuda_kernels *kernels = device->kernels;
    char name[96] = "millrace_";
    va_list args;
    va_start(args, format);
    mr_number_formatv(name + 9, sizeof name - 9, format, args);
    va_end(args);
    MR_TRY(mr_cuda_may_wait(device, command->name)); /* a kernel may be loaded only now */
    MR_CUDA_TRY(device, mr_cu.ModuleGetFunction(slot, kernels->modules[module], name),
                "%s: kernel %s", command->name, name);
    return MR_OK;
}

mr_status mr_cuda_enqueue_blocks(const mr_command *command, CUstream stream, CUfunction function,
                                 uint64_t blocks, unsigned threads, void *args) {
    void *list[] = {args};
    if (__builtin_expect(blocks > INT32_MAX, 0))
        return mr_fail(MR_CODE_INVALID_CONFIGURATION, "%s: too large for one kernel",
                       command->name);
    MR_CUDA_TRY(
        mr_cuda_device_of(command),
        mr_cu.LaunchKernel(function, (unsigned)blocks, 1, 1, threads, 1, 1, 0, stream, list, NULL),
        "%s", command->name);
    return MR_OK;
}

/* ------------------------------------------------------------------------- lanes */

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
    /* The driver is out of events, or lost: give the memory back behind the stream's own work. */
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

/* In a capture, nobody else may write to the memory, so it is never free for another command. */
mr_status mr_cuda_upload(const mr_command *command, CUstream stream, const void *values,
                         uint64_t bytes, CUdeviceptr *out_address) {
    CUstream lane = mr_cuda_kernels_of(command)->captured ? NULL : stream;
    MR_TRY(mr_cuda_borrow(command, lane, bytes, out_address));
    MR_CUDA_TRY(mr_cuda_device_of(command),
                mr_cu.MemcpyHtoDAsync(*out_address, values, bytes, preparing(command, stream)),
                "%s", command->name);
    return MR_OK;
}

/* ------------------------------------------------------------------------- shapes */

void mr_cuda_layout_begin(cuda_layout *layout, int ndim, const int64_t *size) {
    layout->count = 0;
    layout->ndim = ndim;
    for (int d = 0; d < ndim; d++) layout->size[d] = size[d];
}

void mr_cuda_layout_add(cuda_layout *layout, int ndim, const int64_t *size, const int64_t *stride) {
    int64_t *to = layout->stride[layout->count++];
    for (int d = 0; d < layout->ndim; d++) {
        int own = d - (layout->ndim - ndim);
        to[d] = own < 0 || size[own] == 1 ? 0 : stride[own];
    }
}

static void swap_dims(cuda_layout *layout, int a, int b) {
    int64_t size = layout->size[a];
    layout->size[a] = layout->size[b];
    layout->size[b] = size;
    for (int k = 0; k < layout->count; k++) {
        int64_t stride = layout->stride[k][a];
        layout->stride[k][a] = layout->stride[k][b];
        layout->stride[k][b] = stride;
    }
}

/* By the output's strides, the largest first; where those are equal (0), by the first input's. */
static void sort_dims(cuda_layout *layout) {
    for (int i = 1; i < layout->ndim; i++) {
        for (int d = i; d > 0; d--) {
            int64_t before = layout->stride[0][d - 1], after = layout->stride[0][d];
            if (before > after ||
                (before == after &&
                 (layout->count < 2 || layout->stride[1][d - 1] >= layout->stride[1][d])))
                break;
            swap_dims(layout, d - 1, d);
        }
    }
}

static void drop_ones(cuda_layout *layout) {
    int n = 0;
    for (int d = 0; d < layout->ndim; d++) {
        if (layout->size[d] == 1) continue;
        layout->size[n] = layout->size[d];
        for (int k = 0; k < layout->count; k++) layout->stride[k][n] = layout->stride[k][d];
        n++;
    }
    layout->ndim = n;
}

static void merge_dims(cuda_layout *layout) {
    int n = 0; /* dims kept so far */
    for (int d = 0; d < layout->ndim; d++) {
        bool merge = n > 0;
        for (int k = 0; k < layout->count && merge; k++)
            merge = layout->stride[k][n - 1] == layout->stride[k][d] * layout->size[d];
        if (merge) {
            layout->size[n - 1] *= layout->size[d];
        } else {
            layout->size[n++] = layout->size[d];
        }
        for (int k = 0; k < layout->count; k++) layout->stride[k][n - 1] = layout->stride[k][d];
    }
    layout->ndim = n;
}

mr_cuda_divisor mr_cuda_divide_by(int64_t value) {
    uint32_t v = value < 1 ? 1 : (uint32_t)value, shift = 0;
    while (((uint64_t)1 << shift) < v) shift++;
    return (mr_cuda_divisor){v, (uint32_t)((((1ull << shift) - v) << 32) / v + 1), shift};
}

/* What the kernels take positions apart by. */
static void set_divisors(mr_cuda_shape *shape) {
    double positions = 1;
    for (uint32_t d = 0; d < shape->ndim; d++) positions *= (double)shape->size[d];
    shape->wide = positions >= (double)(1u << 31);
    if (shape->wide) return;
    for (uint32_t d = 0; d < shape->ndim; d++) {
        uint32_t size = (uint32_t)shape->size[d],
                 shift = size > 1 ? 32 - (uint32_t)__builtin_clz(size - 1) : 0;
        shape->shift[d] = (uint8_t)shift;
        shape->multiplier[d] = size ? (uint32_t)((((1ull << shift) - size) << 32) / size + 1) : 0;
    }
}

void mr_cuda_layout_end(cuda_layout *layout, bool sort, mr_cuda_shape *out_shape,
                        mr_cuda_strides *out_strides) {
    drop_ones(layout);
    if (sort) sort_dims(layout);
    merge_dims(layout);
    if (layout->ndim == 0) {
        layout->ndim = 1;
        layout->size[0] = 1;
        for (int k = 0; k < layout->count; k++) layout->stride[k][0] = 0;
    }
    out_shape->ndim = (uint32_t)layout->ndim;
    for (int d = 0; d < layout->ndim; d++) {
        int from = layout->ndim - 1 - d;
        out_shape->size[d] = layout->size[from];
        for (int k = 0; k < layout->count; k++) out_strides[k].stride[d] = layout->stride[k][from];
    }
    set_divisors(out_shape);
}

bool mr_cuda_in_vectors(mr_cuda_strided *args, int inputs, int64_t length) {
    mr_cuda_shape *shape = &args->shape;
    if (!args->own || shape->size[0] % length != 0 || args->d.count / (uint64_t)length >= 1u << 31)
        return false;
    for (int k = 0; k <= inputs; k++) {
        const int64_t *stride = args->stride[k].stride;
        if (k > 0 && stride[0] == 0) continue;
        if (stride[0] != 1 ||
            !mr_cuda_aligned((CUdeviceptr)(k == 0 ? args->d.out : args->d.in[k - 1])))
            return false;
        for (uint32_t d = 1; d < shape->ndim; d++)
            if (stride[d] % length != 0) return false;
    }
    args->d.count /= (uint64_t)length;
    shape->size[0] /= length;
    for (int k = 0; k <= inputs; k++) args->stride[k].stride[0] *= length;
    set_divisors(shape);
    return true;
}
