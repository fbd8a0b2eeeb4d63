/* Variables of modules of kernels: see kernel_variables.h. */
#include "ops/call/kernel_variables.h"

#include <stdlib.h>
#include <string.h>

#include "model/backend.h"
#include "ops/call.h"

static void drop_tensor(mr_tensor *t) {
    if (!t) return;
    mr_storage_drop_handle(t->storage);
    mr_tensor_release(t);
}

void mr_kernel_drop_variables(mr_kernel_module *module, int device) {
    uint32_t count = mr_ptx_module_tree(module->code->ptx)->variable_count;
    mr_tensor **list = module->variables[device];
    for (uint32_t i = 0; list && i < count; i++) drop_tensor(list[i]);
    free(list);
    module->variables[device] = NULL;
}

static bool has_memory(const ptx_variable *v) {
    return (v->space == PTX_GLOBAL || v->space == PTX_CONST) && v->bytes > 0;
}

static void release_code(void *code) {
    mr_kernel_code_release(code);
}

/* The backend owns the variable's memory, with the code. So the code stays as long as a tensor of the variable. NULL:
 * it is not there. */
static mr_status variable_of_backend(const mr_caller *caller, mr_kernel_module *module,
                                     mr_device *device, const ptx_variable *v,
                                     mr_tensor **out_tensor) {
    uint64_t address;
    *out_tensor = NULL;
    MR_TRY(module->machine->backend->kernels_variable(device, module->code, v->name, &address));
    if (!address) return MR_OK;
    MR_TRY(mr_tensor_create_at(caller, device->legacy, address, (int64_t)v->bytes, out_tensor));
    mr_kernel_code_retain(module->code);
    mr_storage_keep((*out_tensor)->storage, module->code, release_code);
    return MR_OK;
}

/* Memory for variable `i` with its initial value: a copy that the host waits for, as cuModuleLoad does. */
static mr_status make_variable(const mr_caller *caller, mr_kernel_module *module, mr_device *device,
                               uint32_t i) {
    const ptx_variable *v = &mr_ptx_module_tree(module->code->ptx)->variables[i];
    int64_t size = (int64_t)v->bytes;
    mr_tensor *t;
    if (module->machine->backend->kernels_variable)
        MR_TRY(variable_of_backend(caller, module, device, v, &t));
    else MR_TRY(mr_tensor_create(caller, MR_MEMORY_DEVICE, device->legacy, MR_U8, 1, &size, &t));
    module->variables[device->index][i] = t;
    if (!t) return MR_OK;
    t->storage->of_module = true;
    return mr_tensor_set_name(t, v->name);
}

/* From pinned memory, since a copy of pageable memory may return before it has arrived (R20), and the first kernel may
 * run in a non-blocking stream. */
static mr_status write_variable(const mr_caller *caller, mr_kernel_module *module,
                                mr_device *device, uint32_t i, const uint64_t *addresses) {
    mr_tensor *t = module->variables[device->index][i], *host;
    MR_TRY(mr_tensor_create(caller, MR_MEMORY_PINNED, NULL, MR_U8, 1, t->shape, &host));
    host->storage->of_module = true;
    mr_ptx_variable_init(module->code->ptx, i, addresses, host->storage->host);
    mr_status status = mr_memcpy(caller, t, host, device->legacy, true);
    drop_tensor(host);
    return status;
}

/* The variables in `wanted` that are not there yet get memory and their values. */
static mr_status make_wanted(const mr_caller *caller, mr_kernel_module *module, mr_device *device,
                             const uint8_t *wanted) {
    const ptx_tree *tree = mr_ptx_module_tree(module->code->ptx);
    uint32_t count = tree->variable_count;
    mr_tensor **list = module->variables[device->index];
    uint64_t *addresses = calloc(count + 1, sizeof *addresses);
    bool *is_new = calloc(count + 1, sizeof *is_new);
    mr_status status = addresses && is_new ? MR_OK : mr_no_memory("for the variables of a module");
    for (uint32_t i = 0; i < count && !status; i++) {
        is_new[i] = wanted[i] && has_memory(&tree->variables[i]) && !list[i];
        if (is_new[i]) status = make_variable(caller, module, device, i);
        if (!status && list[i]) addresses[i] = list[i]->storage->address;
    }
    bool are_set = module->machine->backend->kernels_variable; /* by the load */
    for (uint32_t i = 0; i < count && !status && !are_set; i++)
        if (is_new[i] && list[i]) status = write_variable(caller, module, device, i, addresses);
    free(addresses);
    free(is_new);
    return status;
}

static void add_what_it_points_to(const ptx_tree *tree, uint8_t *wanted) {
    bool more = true;
    while (more) {
        more = false;
        for (uint32_t i = 0; i < tree->variable_count; i++) {
            const ptx_variable *v = &tree->variables[i];
            for (uint32_t k = 0; wanted[i] && k < v->relocation_count; k++) {
                int32_t to = v->relocations[k].variable;
                if (to < 0 || wanted[to]) continue;
                wanted[to] = more = true;
            }
        }
    }
}

/* Those that a kernel uses, and those that the source declares for others to see. A header may have a thousand unused
 * constants; the script can still ask for one by name, which then makes it (mr_kernel_variable). */
static mr_status find_wanted(const mr_kernel_module *module, uint8_t *wanted, uint8_t *uses) {
    const mr_ptx_module *ptx = module->code->ptx;
    const ptx_tree *tree = mr_ptx_module_tree(ptx);
    for (uint32_t i = 0; i < tree->variable_count; i++) wanted[i] = tree->variables[i].is_visible;
    for (uint32_t k = 0; k < mr_ptx_kernel_count(ptx); k++) {
        if (!mr_ptx_kernel_uses(mr_ptx_kernel_at(ptx, k), uses))
            return mr_no_memory("for the variables of a module");
        for (uint32_t i = 0; i < tree->variable_count; i++) wanted[i] |= uses[i] != 0;
    }
    add_what_it_points_to(tree, wanted);
    return MR_OK;
}

static mr_status make_variables(const mr_caller *caller, mr_kernel_module *module,
                                mr_device *device) {
    uint32_t count = mr_ptx_module_tree(module->code->ptx)->variable_count;
    mr_tensor **list = module->variables[device->index] = calloc(count + 1, sizeof *list);
    uint8_t *wanted = calloc(2 * (size_t)count + 1, 1);
    mr_status status = list && wanted ? find_wanted(module, wanted, wanted + count)
                                      : mr_no_memory("for the variables of a module");
    if (!status && module->machine->backend->kernels_load)
        status = module->machine->backend->kernels_load(device, module->code);
    if (!status) status = make_wanted(caller, module, device, wanted);
    free(wanted);
    if (status) mr_kernel_drop_variables(module, device->index);
    return status;
}

/* One that no kernel uses. */
static mr_status make_named(const mr_caller *caller, mr_kernel_module *module, mr_device *device,
                            uint32_t variable) {
    const ptx_tree *tree = mr_ptx_module_tree(module->code->ptx);
    uint8_t *wanted = calloc(tree->variable_count + 1u, 1);
    if (!wanted) return mr_no_memory("for the variables of a module");
    wanted[variable] = true;
    add_what_it_points_to(tree, wanted);
    mr_status status = make_wanted(caller, module, device, wanted);
    free(wanted);
    return status;
}

mr_status mr_kernel_find_variables(const mr_caller *caller, mr_kernel_module *module,
                                   mr_device *device, mr_tensor ***out_list) {
    *out_list = NULL;
    if (module->epoch != module->machine->epoch)
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "the module was loaded before mr.reset(): load it again");
    if (!module->variables[device->index]) MR_TRY(make_variables(caller, module, device));
    *out_list = module->variables[device->index];
    return MR_OK;
}

mr_status mr_kernel_variable(const mr_caller *caller, mr_kernel_module *module, mr_device *device,
                             const char *name, mr_tensor **out_tensor,
                             const ptx_variable **out_what) {
    const ptx_tree *tree = mr_ptx_module_tree(module->code->ptx);
    MR_TRY(mr_machine_ready(caller->machine));
    for (uint32_t i = 0; i < tree->variable_count; i++) {
        const ptx_variable *v = &tree->variables[i];
        if (!has_memory(v) || strcmp(v->name, name) != 0) continue;
        mr_tensor **list;
        MR_TRY(mr_kernel_find_variables(caller, module, device, &list));
        if (!list[i]) MR_TRY(make_named(caller, module, device, i));
        if (!list[i])
            return mr_fail(MR_CODE_NOT_SUPPORTED,
                           "global: `%s` is not in the loaded module, as no kernel of it uses it",
                           name);
        *out_tensor = list[i];
        *out_what = v;
        return MR_OK;
    }
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "global: the module has no __device__ or __constant__ variable `%s`", name);
}
