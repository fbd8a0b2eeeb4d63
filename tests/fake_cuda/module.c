/* The fake driver's modules, and kernels that really run: a module of PTX text is carried out by src/ptx. Fat binaries
 * are the built-in kernels; they have handles without anything behind them, or run from PTX, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "ptx/run/profile.h"

/* ---- finding things */

static fake_module *module_of(CUmodule handle) {
    for (fake_module *m = fake_devices[fake_current].modules; m; m = m->next)
        if ((CUmodule)m == handle) return m;
    return NULL;
}

/* What the kernels of `device` may reach: its own memory, that of devices which let it, and pinned memory. */
static bool find_memory(void *context, uint64_t address, mr_ptx_range *out_range) {
    const fake_function *function = context;
    char *host = (char *)(uintptr_t)address;
    for (int i = 0; i < fake_device_count; i++) {
        const fake_device *d = &fake_devices[i];
        if (i != function->module->device && !(d->open_to >> function->module->device & 1))
            continue;
        for (const block *b = d->blocks; b; b = b->next) {
            if ((uint64_t)(host - b->address) >= b->bytes) continue;
            *out_range = (mr_ptx_range){.first = (uintptr_t)b->address,
                                        .end = (uintptr_t)b->address + b->bytes,
                                        .host = b->address};
            return true;
        }
    }
    *out_range = (mr_ptx_range){.host = NULL};
    if (fake_find_pinned(host, &out_range->host, &out_range->end)) {
        out_range->first = (uintptr_t)out_range->host;
        return true;
    }
    return fake_find_variable(function->module->device, address, out_range);
}

bool fake_find_variable(int device, uint64_t address, mr_ptx_range *out_range) {
    for (const fake_module *m = fake_devices[device].modules; m; m = m->next) {
        const ptx_tree *tree = m->ptx ? mr_ptx_module_tree(m->ptx) : NULL;
        for (uint32_t i = 0; tree && i < tree->variable_count; i++) {
            const ptx_variable *v = &tree->variables[i];
            if (!m->variables[i] || address - m->variables[i] >= v->bytes) continue;
            *out_range = (mr_ptx_range){.first = m->variables[i],
                                        .end = m->variables[i] + v->bytes,
                                        .host = (char *)(uintptr_t)m->variables[i],
                                        .read_only = v->space == PTX_CONST};
            return true;
        }
    }
    return false;
}

/* ---- loading */

static bool is_text(const void *image) {
    static const unsigned char fat[] = {0x50, 0xed, 0x55, 0xba}, elf[] = {0x7f, 'E', 'L', 'F'};
    return memcmp(image, fat, sizeof fat) != 0 && memcmp(image, elf, sizeof elf) != 0;
}

static void free_module(fake_module *m) {
    uint32_t count = m->ptx ? mr_ptx_module_tree(m->ptx)->variable_count : 0;
    for (uint32_t i = 0; m->variables && i < count; i++) free((void *)(uintptr_t)m->variables[i]);
    free(m->variables);
    free(m->functions);
    free(m->built_in);
    mr_ptx_module_release(m->ptx);
    free(m);
    fake_cuda.modules--;
}

static void *or_abort(void *memory) {
    if (!memory) abort();
    return memory;
}

/* Each variable has memory of its own, so that an access past its end is noticed. */
static void make_variables(fake_module *m) {
    const ptx_tree *tree = mr_ptx_module_tree(m->ptx);
    m->variables = or_abort(calloc(tree->variable_count + (size_t)1, sizeof *m->variables));
    for (uint32_t i = 0; i < tree->variable_count; i++) {
        const ptx_variable *v = &tree->variables[i];
        if ((v->space != PTX_GLOBAL && v->space != PTX_CONST) || !v->bytes) continue;
        m->variables[i] = (uintptr_t)or_abort(fake_alloc(v->bytes));
    }
    for (uint32_t i = 0; i < tree->variable_count; i++)
        if (m->variables[i])
            mr_ptx_variable_init(m->ptx, i, m->variables, (void *)(uintptr_t)m->variables[i]);
}

static CUresult read_ptx(const char *text, mr_ptx_module **out_ptx, char *log, size_t log_size) {
    int newest = fake_number_of("FAKE_CUDA_PTX", 90);
    int capability = fake_number_of("FAKE_CUDA_CAPABILITY", 90);
    mr_status status = mr_ptx_module_load(text, strlen(text), "ptx input", out_ptx);
    if (status) {
        snprintf(log, log_size, "ptxas error   : %s\n", status->message);
        mr_error_destroy(status);
        return CUDA_ERROR_INVALID_PTX;
    }
    const ptx_tree *tree = mr_ptx_module_tree(*out_ptx);
    CUresult result = CUDA_SUCCESS;
    if (tree->version_major * 10 + tree->version_minor > newest) {
        snprintf(log, log_size, "ptxas fatal   : Unsupported .version %d.%d; newest is %d.%d\n",
                 tree->version_major, tree->version_minor, newest / 10, newest % 10);
        result = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    } else if (tree->target > capability) {
        result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    if (result) mr_ptx_module_release(*out_ptx);
    return result;
}

CUresult fake_load(CUmodule *module, const void *image, char *log, size_t log_size) {
    fake_write_prints();
    mr_ptx_module *ptx = NULL;
    CUresult result = is_text(image) ? read_ptx(image, &ptx, log, log_size) : CUDA_SUCCESS;
    if (result) return result;
    fake_device *device = &fake_devices[fake_current];
    fake_module *m = or_abort(calloc(1, sizeof *m));
    *m = (fake_module){.next = device->modules, .device = fake_current, .ptx = ptx};
    uint32_t count = ptx ? mr_ptx_kernel_count(ptx) : 1;
    m->functions = or_abort(calloc(count + (size_t)1, sizeof *m->functions));
    for (uint32_t i = 0; i < count; i++)
        m->functions[i] = (fake_function){.module = m,
                                          .kernel = ptx ? mr_ptx_kernel_at(ptx, i) : NULL,
                                          .shared_limit = SHARED_FOR_ALL};
    if (ptx) make_variables(m);
    device->modules = m;
    fake_cuda.modules++;
    *module = (CUmodule)m;
    return CUDA_SUCCESS;
}

CUresult fake_ModuleLoadData(CUmodule *module, const void *image) {
    ENTER();
    WAIT_AS_ALLOWED();
    return fake_leave(fake_load(module, image, NULL, 0));
}

CUresult fake_ModuleLoadDataEx(CUmodule *module, const void *image, unsigned option_count,
                               CUjit_option *options, void **values) {
    char *log = NULL;
    size_t log_size = 0;
    for (unsigned i = 0; i < option_count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) log_size = (uintptr_t)values[i];
    }
    ENTER();
    WAIT_AS_ALLOWED();
    return fake_leave(fake_load(module, image, log, log_size));
}

/* One that a kernel is still running from is not unloaded by a program that knows what it does. */
CUresult fake_ModuleUnload(CUmodule module) {
    ENTER();
    WAIT_AS_ALLOWED();
    fake_module *m = module_of(module);
    if (!m) return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    if (fake_uses(m)) abort();
    fake_write_prints();
    fake_module **link = &fake_devices[fake_current].modules;
    while (*link != m) link = &(*link)->next;
    *link = m->next;
    free_module(m);
    return fake_leave(CUDA_SUCCESS);
}

void fake_free_modules(int device) {
    while (fake_devices[device].modules) {
        fake_module *m = fake_devices[device].modules;
        fake_devices[device].modules = m->next;
        free_module(m);
    }
}

/* ---- functions by their names */

static bool is_left_out(const char *name) {
    return fake_cuda.left_out && strcmp(fake_cuda.left_out, name) == 0;
}

CUresult fake_ModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    ENTER();
    WAIT_AS_ALLOWED();
    fake_module *m = module_of(module);
    if (!m) return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    if (!m->ptx && fake_number_of("FAKE_CUDA_KERNELS", 0))
        return fake_leave(fake_find_built_in(function, name));
    if (!m->ptx) {
        *function = (CUfunction)&m->functions[0];
        return fake_leave(CUDA_SUCCESS);
    }
    const mr_ptx_kernel *kernel = mr_ptx_kernel_find(m->ptx, name);
    if (!kernel || is_left_out(name)) return fake_leave(CUDA_ERROR_NOT_FOUND);
    *function = (CUfunction)&m->functions[kernel - mr_ptx_kernel_at(m->ptx, 0)];
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_ModuleGetGlobal(CUdeviceptr *address, size_t *bytes, CUmodule module,
                              const char *name) {
    ENTER();
    const fake_module *m = module_of(module);
    if (!m) return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    const ptx_tree *tree = m->ptx ? mr_ptx_module_tree(m->ptx) : NULL;
    for (uint32_t i = 0; tree && i < tree->variable_count; i++) {
        const ptx_variable *v = &tree->variables[i];
        if (!m->variables[i] || is_left_out(name) || strcmp(v->name, name) != 0) continue;
        *address = m->variables[i];
        *bytes = v->bytes;
        return fake_leave(CUDA_SUCCESS);
    }
    return fake_leave(CUDA_ERROR_NOT_FOUND);
}

/* ---- functions */

static unsigned static_shared(const fake_function *function) {
    return function->kernel ? function->kernel->shared_bytes : 0;
}

CUresult fake_FuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    ENTER();
    const fake_function *f = (const fake_function *)function;
    if (attribute != CU_FUNC_ATTRIBUTE_NUM_REGS) return fake_leave(CUDA_ERROR_INVALID_VALUE);
    *value = f->kernel ? FAKE_REGISTERS : 0;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_FuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    ENTER();
    WAIT_AS_ALLOWED();
    fake_function *f = (fake_function *)function;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return fake_leave(CUDA_SUCCESS);
    if (value < 0 || (unsigned)value + static_shared(f) > MOST_SHARED)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    f->shared_limit = (unsigned)value + static_shared(f);
    fake_cuda.shared_limits_set++;
    return fake_leave(CUDA_SUCCESS);
}

CUresult fake_OccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                        int block_size, size_t shared_bytes) {
    (void)function, (void)block_size, (void)shared_bytes;
    *blocks = 2;
    return fake_state();
}

/* ---- launching */

/* The block of parameters, from a list of pointers to them or from one buffer. */
static CUresult take_parameters(const mr_ptx_kernel *kernel, void **list, void **extra, char *out) {
    const char *buffer = NULL;
    size_t bytes = 0;
    if (list && extra) return CUDA_ERROR_INVALID_VALUE;
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
        if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *(const size_t *)extra[1];
    }
    for (uint32_t i = 0; i < kernel->param_count; i++) {
        const mr_ptx_param *p = &kernel->params[i];
        if (!list && (!buffer || p->offset + p->bytes > bytes)) return CUDA_ERROR_INVALID_VALUE;
        memcpy(out + p->offset, list ? list[i] : buffer + p->offset, p->bytes);
    }
    return CUDA_SUCCESS;
}

static CUresult check_sizes(const fake_launch *l) {
    const fake_function *f = l->function;
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    if (!l->grid[0] || !l->grid[1] || !l->grid[2] || !threads) return CUDA_ERROR_INVALID_VALUE;
    if (l->grid[0] > INT32_MAX || l->grid[1] > UINT16_MAX || l->grid[2] > UINT16_MAX ||
        l->block[2] > 64)
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > MOST_THREADS || l->shared + static_shared(f) > f->shared_limit)
        return CUDA_ERROR_INVALID_VALUE;
    if (f->kernel && threads > f->kernel->max_threads) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    return fake_cuda.refuse_launch;
}

#define MOST_COOPERATIVE 64 /* blocks: of any size */

static CUresult launch(fake_launch launch, CUstream stream, void **parameters, void **extra);

CUresult fake_LaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                      unsigned grid_z, unsigned block_x, unsigned block_y,
                                      unsigned block_z, unsigned shared_bytes, CUstream stream,
                                      void **parameters) {
    return launch((fake_launch){.function = (const fake_function *)function,
                                .grid = {grid_x, grid_y, grid_z},
                                .block = {block_x, block_y, block_z},
                                .shared = shared_bytes,
                                .is_cooperative = true},
                  stream, parameters, NULL);
}

CUresult fake_LaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned shared_bytes, CUstream stream, void **parameters,
                           void **extra) {
    return launch((fake_launch){.function = (const fake_function *)function,
                                .grid = {grid_x, grid_y, grid_z},
                                .block = {block_x, block_y, block_z},
                                .shared = shared_bytes},
                  stream, parameters, extra);
}

static CUresult launch(fake_launch launch, CUstream stream, void **parameters, void **extra) {
    ENTER_OR_FAIL();
    const mr_ptx_kernel *kernel = launch.function->kernel;
    char *taken = or_abort(calloc(1, kernel ? kernel->param_bytes + (size_t)1 : 1));
    CUresult result = check_sizes(&launch);
    uint64_t blocks = (uint64_t)launch.grid[0] * launch.grid[1] * launch.grid[2];
    if (!result && launch.is_cooperative && blocks > MOST_COOPERATIVE)
        result = CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    if (!result && kernel) result = take_parameters(kernel, parameters, extra, taken);
    if (result) {
        free(taken);
        return fake_leave(result);
    }
    fake_write_prints();
    fake_cuda.launches++;
    task *t = fake_add(fake_stream_of(stream), TASK_KERNEL);
    t->correlation = FAKE_CALL(cuLaunchKernel);
    t->ticks = fake_cuda.kernel_ticks;
    t->launch = launch;
    t->staged = taken;
    fake_move();
    return fake_leave(CUDA_SUCCESS);
}

/* ---- what kernels print: it stays in a buffer until a call that CUDA names for that */

static char *printed;
static size_t printed_bytes;

static void print(void *context, const char *text, size_t size) {
    (void)context;
    printed = or_abort(realloc(printed, printed_bytes + size));
    memcpy(printed + printed_bytes, text, size);
    printed_bytes += size;
}

void fake_write_prints(void) {
    if (!printed) return;
    fwrite(printed, 1, printed_bytes, stdout);
    free(printed);
    printed = NULL;
    printed_bytes = 0;
}

/* ---- running */

static void describe(void *context, uint64_t address, uint64_t meant, char *out, size_t size) {
    (void)context, (void)meant;
    snprintf(out, size, "address 0x%llx", (unsigned long long)address);
}

/* As hardware: a code, which loses the device, and for an assertion its text. */
static CUresult result_of(mr_status status) {
    CUresult result = CUDA_ERROR_LAUNCH_FAILED;
    if (!status) return CUDA_SUCCESS;
    if (status->code == MR_CODE_ASSERT) fprintf(stderr, "%s\n", status->message);
    if (mr_code_sticky(status->code)) result = (CUresult)mr_code_number(status->code);
    mr_error_destroy(status);
    return result;
}

CUresult fake_run(const fake_launch *launch, const void *params) {
    const fake_function *f = launch->function;
    if (!f || !f->kernel) return CUDA_SUCCESS;
    mr_ptx_launch run = {
        .kernel = f->kernel,
        .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .block = {launch->block[0], launch->block[1], launch->block[2]},
        .dynamic_shared = launch->shared,
        .params = params,
        .variables = f->module->variables,
        .memory = {(void *)(uintptr_t)f, find_memory, NULL, describe},
        .device = {.sm_count = SM_COUNT,
                   .max_shared = MOST_SHARED,
                   .instruction_limit = fake_cuda.instruction_limit ? fake_cuda.instruction_limit
                                                                    : MOST_INSTRUCTIONS,
                   .clock_hz = 1000000000},
        .print = print,
    };
    uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    uint32_t workspace[MR_PTX_WORKSPACE_WORDS] = {0};
    if (launch->is_cooperative) {
        run.workspace = workspace;
        run.device.resident_blocks = blocks;
    }
    if (!fake_cuda.count_bytes) return result_of(mr_ptx_run(&run, 0, blocks));
    run.profile = or_abort(mr_ptx_profile_create(f->module->ptx));
    CUresult result = result_of(mr_ptx_run(&run, 0, blocks));
    static const ptx_class counted[] = {PTX_CLASS_GLOBAL, PTX_CLASS_ATOMIC};
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        mr_ptx_counts counts;
        mr_ptx_profile_class(run.profile, counted[i], &counts);
        /* Through a generic address, a warp may have accessed shared memory: that takes no sectors. */
        uint64_t moved = 32 * counts.sectors;
        fake_cuda.global_bytes += counts.bytes < moved ? counts.bytes : moved;
    }
    mr_ptx_profile_destroy(run.profile);
    return result;
}
