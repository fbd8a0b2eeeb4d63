/* Modules and launches of the user's kernels: see kernel.h. */
#include "base/text.h"
#include "ops/ids.h"
#include "ops/kernel.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/backend.h"
#include "ops/call.h"
#include "ops/call/kernel_operands.h"
#include "ops/kernel_profile.h"
#include "ops/call/kernel_variables.h"

/* ---- modules */

void mr_kernel_module_release(mr_kernel_module *module) {
    if (!module || --module->refs) return;
    for (int i = 0; i < module->machine->device_count; i++) mr_kernel_drop_variables(module, i);
    free(module->variables);
    mr_kernel_code_release(module->code);
    free(module);
}

mr_status mr_kernel_module_create(const mr_caller *caller, mr_kernel_code *code,
                                  mr_kernel_module **out_module) {
    *out_module = NULL;
    mr_kernel_module *module = calloc(1, sizeof *module);
    size_t devices = (size_t)caller->machine->device_count;
    if (module) module->variables = calloc(devices, sizeof *module->variables);
    if (!module || !module->variables) {
        free(module);
        return mr_no_memory("for a module of kernels");
    }
    module->refs = 1;
    module->machine = caller->machine;
    module->epoch = caller->machine->epoch;
    module->code = code;
    mr_kernel_code_retain(code);
    /* On the current device now, so that the first launch there is like all others. */
    mr_status status = mr_machine_ready(caller->machine);
    mr_tensor **variables;
    if (!status)
        status =
            mr_kernel_find_variables(caller, module, caller->machine->current_device, &variables);
    if (status) mr_kernel_module_release(module);
    else *out_module = module;
    return status;
}

mr_status mr_kernel_registers(mr_machine *machine, mr_kernel_code *code,
                              const mr_ptx_kernel *kernel, int *out_registers) {
    *out_registers = (int)kernel->registers;
    if (!machine->backend->kernels_registers) return MR_OK;
    MR_TRY(mr_machine_ready(machine));
    return machine->backend->kernels_registers(machine->current_device, code, kernel->name,
                                               out_registers);
}

/* ---- the checks of a launch (R48) */

#define MOST_GRID_X  2147483647u
#define MOST_GRID_YZ 65535u
#define MOST_BLOCK_Z 64u

/* R69. A driver knows better than an estimate of registers how many blocks fit: it refuses by itself. */
static mr_status check_cooperative(const mr_kernel_call *call, const mr_device *device,
                                   uint32_t threads) {
    mr_kernel_occupancy o = mr_kernel_occupancy_of(device, call->kernel, threads, call->shared);
    uint64_t most = (uint64_t)o.blocks_per_sm * (uint64_t)device->properties.sm_count;
    uint64_t blocks = (uint64_t)call->grid[0] * (uint64_t)call->grid[1] * (uint64_t)call->grid[2];
    if (device->machine->backend->simulator && blocks > most)
        return mr_fail(MR_CODE_INVALID_CONFIGURATION,
                       "%s: a cooperative launch of %" PRIu64 " blocks is too large: the device "
                       "runs %" PRIu64 " such blocks at once (%u on each of %d multiprocessors)",
                       call->name->text, blocks, most, (unsigned)o.blocks_per_sm,
                       device->properties.sm_count);
    return MR_OK;
}

static mr_status check_sizes(const mr_kernel_call *call, const mr_device *device) {
    const mr_device_properties *p = &device->properties;
    const uint32_t most_threads = (uint32_t)p->max_threads_per_block;
    const int64_t most[2][3] = {{MOST_GRID_X, MOST_GRID_YZ, MOST_GRID_YZ},
                                {most_threads, most_threads, MOST_BLOCK_Z}};
    static const char *const what[] = {"grid", "block"};
    for (int i = 0; i < 2; i++) {
        const int64_t *size = i == 0 ? call->grid : call->block;
        for (int d = 0; d < 3; d++) {
            if (size[d] >= 1 && size[d] <= most[i][d]) continue;
            return mr_fail(MR_CODE_INVALID_CONFIGURATION,
                           "%s: the %s's %c is %" PRId64 ", expected 1 to %" PRId64,
                           call->name->text, what[i], "xyz"[d], size[d], most[i][d]);
        }
    }
    uint64_t threads = (uint64_t)call->block[0] * call->block[1] * call->block[2];
    uint32_t limit =
        call->kernel->max_threads < most_threads ? call->kernel->max_threads : most_threads;
    if (threads > limit)
        return mr_fail(MR_CODE_INVALID_CONFIGURATION,
                       "%s: a block of %" PRId64 " x %" PRId64 " x %" PRId64 " has %" PRIu64
                       " threads, at most %" PRIu32 " are possible%s",
                       call->name->text, call->block[0], call->block[1], call->block[2], threads,
                       limit, limit < most_threads ? " (__launch_bounds__)" : "");
    uint64_t shared = (uint64_t)call->kernel->shared_bytes + call->shared;
    if (p->shared_per_block > 0 && shared > (uint64_t)p->shared_per_block)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: %" PRIu64 " bytes of shared memory a block (%" PRIu32
                       " static, %" PRIu32 " dynamic), the device has at most %d",
                       call->name->text, shared, call->kernel->shared_bytes, call->shared,
                       p->shared_per_block);
    return call->cooperative ? check_cooperative(call, device, (uint32_t)threads) : MR_OK;
}

static const char *param_name(const mr_kernel_call *call, const mr_kernel_pointer *pointer) {
    return pointer->name ? pointer->name : call->kernel->params[pointer->param].name;
}

static mr_status unreachable(const mr_kernel_call *call, const mr_kernel_pointer *pointer,
                             const mr_device *device) {
    const mr_tensor *t = pointer->tensor;
    const char *param = param_name(call, pointer);
    char text[160];
    mr_tensor_describe(t, text, sizeof text);
    if (t->storage->kind == MR_MEMORY_PAGEABLE)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: %s for `%s` is in pageable host memory, which the device cannot reach; "
                       "use :to(device) or pin_memory()",
                       call->name->text, text, param);
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: %s for `%s` is on device %d, and the kernel runs on device %d, which has "
                   "no access to it: use :to(), or d:enable_peer_access()",
                   call->name->text, text, param, t->storage->device->index, device->index);
}

static mr_status check_tensor(const mr_kernel_call *call, const mr_kernel_pointer *pointer,
                              const mr_machine *machine, const mr_device *device) {
    const mr_tensor *t = pointer->tensor;
    const mr_device *home = t->storage->device;
    if (t->storage->machine != machine)
        return mr_fail(MR_CODE_INVALID_HANDLE, "%s: the tensor for `%s` belongs to another machine",
                       call->name->text, param_name(call, pointer));
    MR_TRY(mr_tensor_usable(t));
    bool is_far = home && home != device && !(device->peers >> home->index & 1);
    if (is_far || t->storage->kind == MR_MEMORY_PAGEABLE) return unreachable(call, pointer, device);
    return MR_OK;
}

/* ---- the command */

const mr_kernel_escapes *mr_kernel_escapes_of(const mr_command *command) {
    bool is_launch = command->kind == MR_COMMAND_OP && command->u.op.row &&
                     command->u.op.row->id == MR_OP_kernel;
    return is_launch ? &mr_kernel_arguments_of(command)->escapes : NULL;
}

bool mr_kernel_may_print(const mr_command *command) {
    bool is_launch = command->kind == MR_COMMAND_OP && command->u.op.row &&
                     command->u.op.row->id == MR_OP_kernel;
    return is_launch && mr_kernel_arguments_of(command)->code->prints;
}

/* MR_U8 where there is none, or several. */
static uint8_t dtype_of_view(const mr_command *command, const mr_tensor *view) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    uint8_t dtype = MR_U8;
    bool found = false;
    for (uint32_t i = 0; i < a->pointer_count; i++) {
        const mr_kernel_address *address = &a->addresses[i];
        if (command->operands[address->operand].tensor->storage != view->storage) continue;
        if (found && address->dtype != dtype) return MR_U8;
        dtype = address->dtype;
        found = true;
    }
    return dtype;
}

void mr_kernel_type_view(const mr_command *command, mr_tensor *io_view) {
    if (command->kind != MR_COMMAND_OP || !command->u.op.row ||
        command->u.op.row->id != MR_OP_kernel || io_view->dtype != MR_U8 || !io_view->ndim)
        return;
    mr_tensor typed = *io_view;
    typed.dtype = dtype_of_view(command, io_view);
    int64_t size = (int64_t)mr_dtype_size((mr_dtype)typed.dtype), last = typed.ndim - 1;
    if (typed.offset % size || typed.shape[last] % size || typed.stride[last] != 1) return;
    for (int64_t i = 0; i < last; i++) {
        if (typed.stride[i] % size) return;
        typed.stride[i] /= size;
    }
    typed.offset /= size;
    typed.shape[last] /= size;
    typed.numel /= size;
    *io_view = typed;
}

bool mr_kernel_has_block_atomics(const mr_command *launch) {
    return mr_ptx_kernel_has_block_atomics(mr_kernel_arguments_of(launch)->kernel);
}

static size_t arguments_size(const mr_kernel_call *call, uint32_t variables) {
    return sizeof(mr_kernel_arguments) +
           (call->pointer_count + variables) * sizeof(mr_kernel_address) +
           call->kernel->param_bytes;
}

static void note_shape(mr_kernel_address *address, const mr_tensor *t) {
    const uint32_t most = sizeof address->shape / sizeof *address->shape;
    if (t->ndim > most) return;
    for (int i = 0; i < t->ndim; i++) {
        if (t->shape[i] > UINT32_MAX) return;
        address->shape[i] = (uint32_t)t->shape[i];
    }
    address->ndim = t->ndim;
}

static mr_status fill_addresses(mr_kernel_arguments *a, mr_kernel_operands *list,
                                const mr_kernel_call *call, mr_tensor **variables,
                                uint32_t variable_count) {
    for (uint32_t i = 0; i < call->pointer_count; i++) {
        const mr_kernel_pointer *pointer = &call->pointers[i];
        mr_kernel_address *to = &a->addresses[a->pointer_count++];
        *to = (mr_kernel_address){.at = pointer->at,
                                  .offset = mr_kernel_pointer_offset(pointer->tensor),
                                  .dtype = pointer->tensor->dtype};
        note_shape(to, pointer->tensor);
        MR_TRY(mr_kernel_operand_of(list, pointer->tensor, &to->operand));
    }
    for (uint32_t i = 0; i < variable_count; i++) {
        if (!variables[i]) continue;
        mr_kernel_address *to = &a->addresses[a->pointer_count + a->variable_count++];
        *to = (mr_kernel_address){.at = i};
        MR_TRY(mr_kernel_operand_of(list, variables[i], &to->operand));
    }
    return MR_OK;
}

/* Estimates the passes of loops, which are not known before a launch. Bytes that the launch may touch, beyond those
 * that its threads access outside of loops, are taken to be the loops'. Loops over the same bytes are
 * underestimated. */
static double passes_of(const mr_kernel_once *once, double threads, double bytes) {
    double outside = threads * (double)once->bytes[PTX_STRAIGHT];
    double inside = threads * (double)once->bytes[PTX_LOOPS];
    return inside > 0 && bytes > outside + inside ? (bytes - outside) / inside : 1;
}

/* Memory moves in sectors. */
static double moved_bytes(const mr_tensor *view) {
    int64_t run = view->shape[view->ndim - 1];
    if (view->ndim < 2) return (double)view->numel;
    int64_t stride = view->stride[view->ndim - 2];
    int64_t sectors = (run + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES;
    return (double)view->numel / (double)run * (double)(sectors < stride ? sectors : stride);
}

static void estimate(mr_kernel_arguments *a, const mr_kernel_operands *list) {
    const mr_kernel_once *once = mr_kernel_code_once(a->code, a->kernel);
    double threads = (double)mr_kernel_blocks(a) * a->block[0] * a->block[1] * a->block[2];
    for (uint32_t i = 0; i < list->count; i++) {
        uint8_t access = list->items[i].access;
        int ways = (access & MR_READ ? 1 : 0) + (access & MR_WRITE ? 1 : 0);
        a->bytes += moved_bytes(list->items[i].tensor) * ways;
    }
    a->passes = passes_of(once, threads, a->bytes);
    a->instructions = threads * ((double)once->course[PTX_STRAIGHT].instructions +
                                 a->passes * (double)once->course[PTX_LOOPS].instructions);
}

static mr_status submit(const mr_caller *caller, const mr_kernel_call *call, mr_stream *stream,
                        mr_kernel_arguments **io_a, size_t size, const mr_kernel_operands *list) {
    mr_command *command;
    MR_TRY(mr_command_create(caller, MR_COMMAND_OP, stream, "kernel", list->count, &command));
    for (uint32_t i = 0; i < list->count; i++)
        mr_command_set_operand(command, i, list->items[i].tensor, list->items[i].access);
    command->u.op.row = &mr_ops[MR_OP_kernel];
    mr_kernel_arguments_retain(*io_a);
    command->u.op.drop_arguments = mr_kernel_arguments_release;
    command->u.op.arguments = *io_a;
    command->u.op.argument_bytes = size;
    *io_a = NULL; /* the command's */
    command->own_name = mr_name_retain(call->name);
    command->name = call->name->text;
    return mr_command_submit(command);
}

static mr_stream *stream_of(const mr_caller *caller, const mr_kernel_call *call) {
    if (call->stream) return call->stream;
    for (uint32_t i = 0; i < call->pointer_count; i++)
        if (call->pointers[i].tensor->storage->device)
            return call->pointers[i].tensor->storage->device->current;
    return caller->machine->current_device->current;
}

static mr_status build_and_submit(const mr_caller *caller, mr_stream *stream, mr_tensor **variables,
                                  uint32_t variable_count, mr_kernel_operands *list,
                                  mr_kernel_arguments **io_a) {
    const mr_kernel_call *call = &list->call;
    mr_kernel_arguments *a = *io_a;
    *a = (mr_kernel_arguments){
        .code = call->module->code,
        .kernel = call->kernel,
        .grid = {(uint32_t)call->grid[0], (uint32_t)call->grid[1], (uint32_t)call->grid[2]},
        .block = {(uint32_t)call->block[0], (uint32_t)call->block[1], (uint32_t)call->block[2]},
        .shared = call->shared,
        .cooperative = call->cooperative,
        .escapes = list->escapes};
    MR_TRY(fill_addresses(a, list, call, variables, variable_count));
    estimate(a, list);
    if (call->kernel->param_bytes)
        memcpy((void *)(uintptr_t)mr_kernel_params_of(a), call->params, call->kernel->param_bytes);
    size_t used = (size_t)((const char *)mr_kernel_params_of(a) - (const char *)a) +
                  call->kernel->param_bytes;
    return submit(caller, call, stream, io_a, used, list);
}

/* The module may be dropped while this launch is pending: its variables' memory is then freed after it. */
static mr_status keep_variables(mr_tensor **variables, uint32_t count, mr_stream *stream) {
    for (uint32_t i = 0; i < count; i++)
        if (variables[i]) MR_TRY(mr_storage_record_stream(variables[i]->storage, stream));
    return MR_OK;
}

/* The launch's line, not that of the call that made it: k[{...}](...) has no name. */
static mr_status refused_in(mr_status status, const mr_kernel_call *call, const mr_stream *stream) {
    mr_error *details = mr_error_details(status);
    if (details) mr_text_copy(details->op, sizeof details->op, call->name->text);
    mr_stream_blame(stream, status);
    return status;
}

static mr_status check_objects(const mr_caller *caller, const mr_kernel_call *call,
                               const mr_stream *stream) {
    MR_TRY(mr_machine_ready(caller->machine));
    MR_TRY(mr_stream_usable(stream));
    for (uint32_t i = 0; i < call->pointer_count; i++)
        MR_TRY(check_tensor(call, &call->pointers[i], caller->machine, stream->device));
    return MR_OK;
}

static mr_status launch_on(const mr_caller *caller, const mr_kernel_call *call, mr_stream *stream) {
    MR_TRY(mr_machine_ready(caller->machine));
    MR_TRY(mr_stream_usable(stream));
    mr_status sizes = check_sizes(call, stream->device);
    if (sizes) return refused_in(sizes, call, stream);
    MR_TRY(check_objects(caller, call, stream));
    mr_tensor **variables;
    MR_TRY(mr_kernel_find_variables(caller, call->module, stream->device, &variables));
    MR_TRY(check_objects(caller, call, stream)); /* memory for variables may run finalizers */
    uint32_t variable_count = mr_ptx_module_tree(call->kernel->module)->variable_count;
    MR_TRY(keep_variables(variables, variable_count, stream));

    mr_kernel_operands list;
    mr_kernel_arguments *a = NULL;
    mr_kernel_operands_open(&list);
    mr_status status =
        mr_kernel_operands_find(&list, caller, call, stream->device, variables, variable_count);
    if (!status) {
        a = calloc(1, arguments_size(&list.call, variable_count));
        status = a ? build_and_submit(caller, stream, variables, variable_count, &list, &a)
                   : mr_no_memory("for %s", call->name->text);
    }
    mr_kernel_operands_close(&list);
    free(a);
    return status;
}

/* The current stream stays until the end: a finalizer may make another one current. */
mr_status mr_kernel_launch(const mr_caller *caller, const mr_kernel_call *call) {
    mr_stream *stream = stream_of(caller, call);
    mr_stream_retain(stream);
    mr_status status = launch_on(caller, call, stream);
    mr_stream_release(stream);
    return status;
}
