/* The modules of kernels, their functions, and launches of one argument. */
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

void mr_cuda_kernels_close(cuda_device *device) {
    cuda_kernels *kernels = device->kernels;
    if (!kernels) return;
    if (device->indices) device->indices->close(device);
    mr_cuda_lanes_close(kernels);
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
