/* The user's kernels: the driver compiles their PTX when a module is loaded, and a launch hands it the parameters of the
 * command. A code is loaded once for each device, found by its id, and stays until the device closes: unloading a module
 * waits for the device. */
#include <stdlib.h>
#include <string.h>

#include "cuda/kernels.h"

#define DEFAULT_SHARED (48u << 10) /* what a kernel may have without asking */

static cuda_code *find_code(const cuda_kernels *kernels, const mr_kernel_code *code) {
    for (size_t i = kernels->codes.count; i-- > 0;)
        if (kernels->codes.items[i].code->id == code->id) return &kernels->codes.items[i];
    return NULL;
}

static mr_status load(cuda_device *device, mr_kernel_code *code, cuda_code *out) {
    size_t count = mr_ptx_kernel_count(code->ptx);
    *out = (cuda_code){.code = code};
    out->functions = calloc(count + 1, sizeof *out->functions);
    out->shared_limit = calloc(count + 1, sizeof *out->shared_limit);
    mr_status status = MR_OK;
    if (!out->functions || !out->shared_limit)
        status = mr_fail(MR_CODE_OUT_OF_MEMORY, "host memory is out");
    /* Loading waits for callbacks, which wait for us. */
    if (!status) status = mr_cuda_host_wait_all(device->machine);
    if (!status) status = mr_cuda_use(device);
    if (!status) {
        CUresult result = mr_cu.ModuleLoadData(&out->module, code->text);
        if (result != CUDA_SUCCESS)
            status = mr_cuda_fail(device, result, "loading a module of kernels for this GPU");
    }
    if (!status) return MR_OK;
    free(out->functions);
    free(out->shared_limit);
    return status;
}

mr_status mr_cuda_kernels_load(mr_device *of, mr_kernel_code *code) {
    cuda_device *device = of->impl;
    MR_TRY(mr_cuda_use(device)); /* makes the context, and with it the kernels' state */
    cuda_kernels *kernels = device->kernels;
    cuda_code loaded;
    if (find_code(kernels, code)) return MR_OK;
    MR_TRY(load(device, code, &loaded));
    if (!mr_vec_push(&kernels->codes, loaded)) {
        mr_cu.ModuleUnload(loaded.module);
        free(loaded.functions);
        free(loaded.shared_limit);
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "host memory is out");
    }
    mr_kernel_code_retain(code);
    return MR_OK;
}

void mr_cuda_codes_close(cuda_kernels *kernels) {
    for (size_t i = 0; i < kernels->codes.count; i++) {
        cuda_code *c = &kernels->codes.items[i];
        mr_cu.ModuleUnload(c->module);
        free(c->functions);
        free(c->shared_limit);
        mr_kernel_code_release(c->code);
    }
    mr_vec_free(&kernels->codes);
}

mr_status mr_cuda_kernels_variable(mr_device *of, mr_kernel_code *code, const char *name,
                                   uint64_t *out_address) {
    cuda_device *device = of->impl;
    MR_TRY(mr_cuda_kernels_load(of, code));
    CUdeviceptr address;
    size_t bytes;
    MR_CUDA_TRY(
        device,
        mr_cu.ModuleGetGlobal(&address, &bytes, find_code(device->kernels, code)->module, name),
        "global: %s", name);
    *out_address = address;
    return MR_OK;
}

/* ---- launching */

/* More than the default is to be asked for, once. */
static mr_status allow_shared(const mr_command *command, cuda_code *c, size_t index,
                              uint32_t bytes) {
    if (bytes <= DEFAULT_SHARED || bytes <= c->shared_limit[index]) return MR_OK;
    MR_CUDA_TRY(mr_cuda_device_of(command),
                mr_cu.FuncSetAttribute(c->functions[index],
                                       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes),
                "%s: %u bytes of dynamic shared memory", command->name, bytes);
    c->shared_limit[index] = bytes;
    return MR_OK;
}

static mr_status find_function(const mr_command *command, cuda_code *c, const mr_ptx_kernel *kernel,
                               size_t *out_index) {
    *out_index = (size_t)(kernel - mr_ptx_kernel_at(c->code->ptx, 0));
    if (c->functions[*out_index]) return MR_OK;
    MR_TRY(mr_cuda_host_wait_all(mr_cuda_device_of(command)->machine));
    MR_CUDA_TRY(mr_cuda_device_of(command),
                mr_cu.ModuleGetFunction(&c->functions[*out_index], c->module, kernel->name), "%s",
                command->name);
    return MR_OK;
}

#define INLINE_BYTES 512
#define MOST_BYTES   32764 /* of parameters, since CUDA 12.1 */

static mr_status launch_with(const mr_command *command, CUstream stream, CUfunction function,
                             void *params) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    size_t bytes = a->kernel->param_bytes;
    mr_kernel_fill_params(command, params);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    MR_CUDA_TRY(mr_cuda_device_of(command),
                mr_cu.LaunchKernel(function, a->grid[0], a->grid[1], a->grid[2], a->block[0],
                                   a->block[1], a->block[2], a->shared, stream, NULL, extra),
                "%s", command->name);
    return MR_OK;
}

mr_status mr_cuda_launch_user(const mr_command *command, CUstream stream) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    cuda_code *c = find_code(mr_cuda_kernels_of(command), a->code);
    if (!c) {
        MR_TRY(mr_cuda_kernels_load(command->stream->device, a->code));
        c = find_code(mr_cuda_kernels_of(command), a->code);
    }
    size_t index;
    MR_TRY(find_function(command, c, a->kernel, &index));
    MR_TRY(allow_shared(command, c, index, a->shared));
    uint64_t few[INLINE_BYTES / sizeof(uint64_t)];
    if (a->kernel->param_bytes <= INLINE_BYTES)
        return launch_with(command, stream, c->functions[index], few);
    if (a->kernel->param_bytes > MOST_BYTES)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: %u bytes of parameters, at most %d are possible", command->name,
                       a->kernel->param_bytes, MOST_BYTES);
    void *many = malloc(a->kernel->param_bytes);
    if (!many) return mr_fail(MR_CODE_OUT_OF_MEMORY, "%s: host memory is out", command->name);
    mr_status status = launch_with(command, stream, c->functions[index], many);
    free(many);
    return status;
}
