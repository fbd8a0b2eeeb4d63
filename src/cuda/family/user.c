/* The user's kernels: the driver compiles their PTX when a module is loaded, and a launch hands it the parameters of
 * the command.
 *
 * A code is loaded once for each device that uses it, and found by its id. It is unloaded when there is no other
 * reference to the code, and no kernel of it is pending. Kernels in streams hold no reference, as commands are not
 * kept. So unloading happens when another code is loaded: the device is idle then, since loading and unloading wait for
 * it. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "cuda/family/family.h"
#include "cuda/wait/wait.h"

/* ---- the codes of a device, in the order of their ids */

static size_t place_of(const cuda_kernels *kernels, uint64_t id) {
    size_t low = 0, high = kernels->codes.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (kernels->codes.items[middle].code->id < id) low = middle + 1;
        else high = middle;
    }
    return low;
}

static cuda_code *find_code(const cuda_kernels *kernels, const mr_kernel_code *code) {
    size_t at = place_of(kernels, code->id);
    bool found = at < kernels->codes.count && kernels->codes.items[at].code == code;
    return found ? &kernels->codes.items[at] : NULL;
}

/* ---- unloading */

static void unload(cuda_code *c) {
    mr_cu.ModuleUnload(c->module);
    free(c->kernels);
}

static void close_codes(void *of) {
    cuda_kernels *kernels = of;
    for (size_t i = 0; i < kernels->codes.count; i++) {
        unload(&kernels->codes.items[i]);
        mr_kernel_code_release(kernels->codes.items[i].code);
    }
    mr_vec_free(&kernels->codes);
}

static mr_status add_code(cuda_kernels *kernels, cuda_code added) {
    size_t at = place_of(kernels, added.code->id);
    kernels->close_codes = close_codes;
    if (!mr_vec_push(&kernels->codes, added)) return mr_no_memory("for a module of kernels");
    cuda_code *items = kernels->codes.items;
    memmove(&items[at + 1], &items[at], (kernels->codes.count - 1 - at) * sizeof *items);
    items[at] = added;
    mr_kernel_code_retain(added.code);
    return MR_OK;
}

/* For a device that is idle. */
static void unload_unused(cuda_device *device) {
    cuda_kernels *kernels = device->kernels;
    size_t kept = 0;
    for (size_t i = 0; i < kernels->codes.count; i++) {
        cuda_code *c = &kernels->codes.items[i];
        if (mr_kernel_code_is_shared(c->code)) {
            kernels->codes.items[kept++] = *c;
            continue;
        }
        unload(c);
        mr_kernel_code_release(c->code);
    }
    kernels->codes.count = kept;
}

/* ---- loading */

#define LOG_BYTES (8 << 10)

/* The driver's compiler says more than a code: its words stand after the sentence. */
static mr_status with_log(mr_status error, const char *log) {
    size_t length = strnlen(log, LOG_BYTES - 1);
    while (length && strchr(" \n", log[length - 1])) length--;
    if (!length) return error;
    mr_status longer =
        mr_fail(error->code, "%s; the driver says:\n%.*s", error->message, (int)length, log);
    mr_error_destroy(error);
    return longer;
}

/* PTX is text, and the driver looks for its end: code->text has a NUL there. */
static mr_status load_module(cuda_device *device, const mr_kernel_code *code,
                             CUmodule *out_module) {
    char log[LOG_BYTES] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    CUresult result = mr_cu.ModuleLoadDataEx(out_module, code->text, 2, options, values);
    if (result == CUDA_SUCCESS) return MR_OK;
    return with_log(mr_cuda_fail(device, result, "loading a module of kernels on device %d",
                                 device->device->index),
                    log);
}

/* The handles are asked for now, so that a launch asks for nothing. One that is missing is asked for again at a launch,
 * which then says so. Where the driver loads each kernel only at its first use, that launch first waits. */
static void find_functions(cuda_code *c) {
    if (!mr_cuda_loads_eagerly()) return;
    for (uint32_t i = 0; i < mr_ptx_kernel_count(c->code->ptx); i++)
        if (mr_cu.ModuleGetFunction(&c->kernels[i].function, c->module,
                                    mr_ptx_kernel_at(c->code->ptx, i)->name) != CUDA_SUCCESS)
            c->kernels[i].function = NULL;
}

static mr_status load(cuda_device *device, mr_kernel_code *code) {
    cuda_code c = {.code = code, .prints = code->prints};
    c.kernels = calloc(mr_ptx_kernel_count(code->ptx) + (size_t)1, sizeof *c.kernels);
    if (!c.kernels) return mr_no_memory("for a module of kernels");
    mr_status status = load_module(device, code, &c.module);
    if (status) {
        free(c.kernels);
        return status;
    }
    find_functions(&c);
    status = add_code(device->kernels, c);
    if (status) unload(&c);
    return status;
}

mr_status mr_cuda_kernels_load(mr_device *of, mr_kernel_code *code) {
    cuda_device *device = of->impl;
    if (device->kernels && find_code(device->kernels, code)) return mr_cuda_use(device);
    MR_TRY(mr_cuda_waits(device, "loading a kernel"));
    MR_TRY(mr_cuda_use(device)); /* at the first use it makes device->kernels */
    MR_TRY(load(device, code));
    unload_unused(device);
    return MR_OK;
}

/* ---- variables */

/* The driver may take out a variable that no kernel uses; the one of CUDA 13.0 does not, whatever its linkage. */
mr_status mr_cuda_kernels_variable(mr_device *of, mr_kernel_code *code, const char *name,
                                   uint64_t *out_address) {
    cuda_device *device = of->impl;
    CUdeviceptr address = 0;
    size_t bytes;
    *out_address = 0;
    MR_TRY(mr_cuda_kernels_load(of, code));
    CUmodule module = find_code(device->kernels, code)->module;
    CUresult result = mr_cu.ModuleGetGlobal(&address, &bytes, module, name);
    if (result == CUDA_ERROR_NOT_FOUND) return MR_OK;
    MR_CUDA_TRY(device, result, "global: %s", name);
    *out_address = address;
    return MR_OK;
}

mr_status mr_cuda_kernels_registers(mr_device *of, mr_kernel_code *code, const char *symbol,
                                    int *out_registers) {
    cuda_device *device = of->impl;
    CUfunction function;
    MR_TRY(mr_cuda_kernels_load(of, code));
    MR_CUDA_TRY(
        device,
        mr_cu.ModuleGetFunction(&function, find_code(device->kernels, code)->module, symbol),
        "the kernel `%s`", symbol);
    MR_CUDA_TRY(device, mr_cu.FuncGetAttribute(out_registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function),
                "the registers of the kernel `%s`", symbol);
    return MR_OK;
}

/* ---- launching */

/* Static and dynamic shared memory together; more is to be asked for, which is done once for each larger size. */
#define SHARED_FOR_ALL (48u << 10)

static mr_status allow_shared(const mr_command *command, cuda_user_kernel *kernel) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    if (a->shared <= kernel->shared_limit || a->shared + a->kernel->shared_bytes <= SHARED_FOR_ALL)
        return MR_OK;
    MR_TRY(mr_cuda_may_wait(mr_cuda_device_of(command), command->name));
    MR_CUDA_TRY(mr_cuda_device_of(command),
                mr_cu.FuncSetAttribute(kernel->function,
                                       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                       (int)a->shared),
                "%s: %u bytes of dynamic shared memory", command->name, a->shared);
    kernel->shared_limit = a->shared;
    return MR_OK;
}

static mr_status find_kernel(const mr_command *command, cuda_code **out_code,
                             cuda_user_kernel **out_kernel) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    cuda_code *c = find_code(mr_cuda_kernels_of(command), a->code);
    if (__builtin_expect(!c, 0)) {
        MR_TRY(mr_cuda_kernels_load(command->stream->device, a->code));
        c = find_code(mr_cuda_kernels_of(command), a->code);
    }
    cuda_user_kernel *kernel = &c->kernels[a->kernel - mr_ptx_kernel_at(a->code->ptx, 0)];
    if (__builtin_expect(!kernel->function, 0)) {
        MR_TRY(mr_cuda_may_wait(mr_cuda_device_of(command), command->name));
        MR_CUDA_TRY(mr_cuda_device_of(command),
                    mr_cu.ModuleGetFunction(&kernel->function, c->module, a->kernel->name),
                    "%s: the driver does not find the kernel `%s` in its module", command->name,
                    a->kernel->name);
    }
    *out_code = c;
    *out_kernel = kernel;
    return MR_OK;
}

/* This call takes a list of pointers to the parameters and no buffer. */
static CUresult launch_cooperative(const mr_kernel_arguments *a, CUstream stream,
                                   CUfunction function, char *params) {
    void **list = calloc(a->kernel->param_count + (size_t)1, sizeof *list);
    if (!list) return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < a->kernel->param_count; i++)
        list[i] = params + a->kernel->params[i].offset;
    CUresult result =
        mr_cu.LaunchCooperativeKernel(function, a->grid[0], a->grid[1], a->grid[2], a->block[0],
                                      a->block[1], a->block[2], a->shared, stream, list);
    free(list);
    return result;
}

/* cuLaunchKernel and not cuLaunchKernelEx. The latter adds attributes (clusters, priorities, the overlap of
 * dependent kernels) that no launch of ours has, and the attributes of a kernel's own text hold for both. The
 * parameters are passed as one buffer, the block that PTX describes, so no list of pointers to them is needed. */
static mr_status launch_with(const mr_command *command, CUstream stream, CUfunction function,
                             void *params) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    size_t bytes = a->kernel->param_bytes;
    mr_kernel_fill_params(command, params);
    void *buffer[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                      CU_LAUNCH_PARAM_END};
    CUresult result = a->cooperative
                          ? launch_cooperative(a, stream, function, params)
                          : mr_cu.LaunchKernel(function, a->grid[0], a->grid[1], a->grid[2],
                                               a->block[0], a->block[1], a->block[2], a->shared,
                                               stream, NULL, bytes ? buffer : NULL);
    if (__builtin_expect(result == CUDA_SUCCESS, 1)) return MR_OK;
    if (result == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
        return mr_fail(MR_CODE_INVALID_CONFIGURATION,
                       "%s: a cooperative launch of %u x %u x %u blocks is too large: the device "
                       "does not run so many at once",
                       command->name, a->grid[0], a->grid[1], a->grid[2]);
    if (result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
        return mr_cuda_fail(mr_cuda_device_of(command), result,
                            "%s: blocks of %u x %u x %u: use fewer threads, or say "
                            "__launch_bounds__ in the kernel",
                            command->name, a->block[0], a->block[1], a->block[2]);
    return mr_cuda_fail(mr_cuda_device_of(command), result, "%s", command->name);
}

#define INLINE_BYTES 512
#define MOST_BYTES   32764 /* of parameters, since CUDA 12.1 */

static mr_status launch_function(const mr_command *command, CUstream stream, CUfunction function) {
    const uint32_t bytes = mr_kernel_arguments_of(command)->kernel->param_bytes;
    uint64_t few[INLINE_BYTES / sizeof(uint64_t)];
    if (bytes <= sizeof few) return launch_with(command, stream, function, few);
    if (bytes > MOST_BYTES)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: %u bytes of parameters, at most %d are possible", command->name, bytes,
                       MOST_BYTES);
    void *many = malloc(bytes);
    if (!many) return mr_no_memory("for %s", command->name);
    mr_status status = launch_with(command, stream, function, many);
    free(many);
    return status;
}

mr_status mr_cuda_launch_user(const mr_command *command, CUstream stream) {
    cuda_code *c = NULL;
    cuda_user_kernel *kernel = NULL;
    MR_TRY(find_kernel(command, &c, &kernel));
    MR_TRY(allow_shared(command, kernel));
    MR_TRY(launch_function(command, stream, kernel->function));
    mr_cuda_of(command->machine)->launched_kernels = true;
    if (c->prints) mr_cuda_device_of(command)->prints = true;
    return MR_OK;
}

void mr_cuda_user_kernel_launched(cuda_device *device, const mr_command *command) {
    const cuda_code *c = find_code(device->kernels, mr_kernel_arguments_of(command)->code);
    mr_cuda_of(command->machine)->launched_kernels = true;
    if (c && c->prints) device->prints = true;
}

bool mr_cuda_kernel_may_fail(const mr_machine *machine) {
    const cuda_machine *m = mr_cuda_of(machine);
    return m->launched_kernels && !m->calls && !m->links;
}
