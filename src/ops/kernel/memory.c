/* Addresses of a launch: see kernel_memory.h. Easiest to break: blocks run on several threads, so this file may change
 * no state. */
#include "ops/kernel_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/backend.h"
#include "ops/kernel/findings.h"

static uint64_t address_of(const mr_command *command, const mr_kernel_address *a) {
    return command->operands[a->operand].tensor->storage->address + a->offset;
}

void mr_kernel_fill_params(const mr_command *command, void *out) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    if (a->kernel->param_bytes) memcpy(out, mr_kernel_params_of(a), a->kernel->param_bytes);
    for (uint32_t i = 0; i < a->pointer_count; i++) {
        uint64_t address = address_of(command, &a->addresses[i]);
        memcpy((char *)out + a->addresses[i].at, &address, sizeof address);
    }
}

void mr_kernel_fill_variables(const mr_command *command, uint64_t *out) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    for (uint32_t i = 0; i < a->variable_count; i++) {
        const mr_kernel_address *v = &a->addresses[a->pointer_count + i];
        out[v->at] = address_of(command, v);
    }
}

/* ---- ranges */

static mr_ptx_range range_of(mr_storage *storage) {
    return (mr_ptx_range){.first = storage->address,
                          .end = storage->address + storage->bytes,
                          .host = storage->host,
                          .owner = storage};
}

/* The access of the operands to the storage. */
static uint8_t access_to(const mr_command *command, const mr_storage *storage) {
    uint8_t access = 0;
    for (uint32_t i = 0; i < command->operand_count; i++) {
        const mr_operand *o = &command->operands[i];
        if (o->tensor->storage == storage && o->tensor->numel > 0) access |= o->access;
    }
    return access & MR_ACCESSES;
}

/* An operand's storage, which is nearly always right; else whatever the device has there: a pointer that lay in
 * memory. */
static bool find_range(void *context, uint64_t address, mr_ptx_range *out_range) {
    const mr_command *command = context;
    mr_storage *storage = mr_kernel_storage_at(command, address);
    if (storage) {
        *out_range = range_of(storage);
        out_range->access = access_to(command, storage);
        out_range->unset = mr_kernel_findings_unset(command, storage);
        return true;
    }
    const mr_simulator *simulator = command->machine->backend->simulator;
    mr_memory_block block;
    if (!simulator || !simulator->memory_at(command->machine, address, &block)) return false;
    *out_range = (mr_ptx_range){.first = block.first, .end = block.end, .host = block.host};
    return true;
}

/* For checkpoints the backend has kept the bytes of the operands. A kernel may write elsewhere: an access that the code
 * does not show counts as one to the passed tensor. So all of each range is kept, by one thread. */
static void will_write(void *context, const mr_ptx_range *range) {
    const mr_command *command = context;
    const mr_simulator *simulator = command->machine->backend->simulator;
    if (simulator && command->machine->steps.watches_writes)
        simulator->will_write(command->machine,
                              &(mr_memory_block){range->first, range->end, range->host});
}

void mr_kernel_describe_storage(const mr_storage *storage, char *out, size_t size) {
    char made[120] = "";
    if (storage->made.file)
        snprintf(made, sizeof made, ", made at %s:%d", storage->made.file, storage->made.line);
    snprintf(out, size, "%s (%" PRIu64 " bytes%s)",
             storage->name ? mr_name_text(storage->name) : "a tensor", storage->bytes, made);
}

#define NEAR ((uint64_t)1 << 20) /* bytes: farther away, a tensor has nothing to do with it */

static uint64_t distance_of(const mr_storage *s, uint64_t address) {
    if (address < s->address) return s->address - address;
    uint64_t inside = address - s->address;
    return inside < s->bytes ? 0 : inside - s->bytes;
}

static bool is_of_compiler(const mr_storage *s) {
    return s->name && s->name->text[0] == '$'; /* a string */
}

/* Looks among the tensors that the launch can name. NULL: none is near. */
static const mr_storage *nearest_storage(const mr_command *command, uint64_t address) {
    const mr_storage *nearest = NULL;
    for (uint32_t i = 0; i < command->operand_count; i++) {
        const mr_storage *s = command->operands[i].tensor->storage;
        if (is_of_compiler(s) || distance_of(s, address) > NEAR) continue;
        if (!nearest || distance_of(s, address) < distance_of(nearest, address)) nearest = s;
    }
    return nearest;
}

static void describe_outside(const mr_storage *storage, uint64_t address, char *out, size_t size) {
    char text[200];
    uint64_t distance = distance_of(storage, address);
    mr_kernel_describe_storage(storage, text, sizeof text);
    if (address < storage->address)
        snprintf(out, size, "%" PRIu64 " bytes before %s", distance, text);
    else if (!distance) snprintf(out, size, "just past the end of %s", text);
    else snprintf(out, size, "%" PRIu64 " bytes past the end of %s", distance, text);
}

/* The tensor that was passed, in which the address lies. NULL: none, or several ones that are not alike. */
static const mr_kernel_address *passed_at(const mr_command *command, const mr_storage *there,
                                          uint64_t address) {
    const mr_kernel_arguments *a = mr_kernel_arguments_of(command);
    const mr_kernel_address *found = NULL;
    for (uint32_t i = 0; i < a->pointer_count; i++) {
        const mr_kernel_address *one = &a->addresses[i];
        if (command->operands[one->operand].tensor->storage != there || !one->ndim) continue;
        uint64_t count = mr_dtype_size((mr_dtype)one->dtype);
        for (int d = 0; d < one->ndim; d++) count *= one->shape[d];
        if (address - there->address - one->offset >= count) continue;
        bool is_same = !found || (found->dtype == one->dtype && found->offset == one->offset &&
                                  found->ndim == one->ndim &&
                                  !memcmp(found->shape, one->shape, sizeof one->shape));
        if (!is_same) return NULL;
        found = one;
    }
    return found;
}

/* "element [2, 6]", as the script counts. With `in_kernel` also as the kernel counts from the pointer that it got.
 * "byte 52" where the address begins no element of a tensor that was passed. */
static void describe_place(const mr_command *command, const mr_storage *there, uint64_t address,
                           bool in_kernel, char *out, size_t size) {
    const mr_kernel_address *passed = passed_at(command, there, address);
    uint64_t inside = address - there->address - (passed ? passed->offset : 0);
    uint64_t bytes = passed ? mr_dtype_size((mr_dtype)passed->dtype) : 1;
    if (!passed || inside % bytes) {
        snprintf(out, size, "byte %" PRIu64, address - there->address);
        return;
    }
    uint64_t number[4] = {0}, at = inside / bytes;
    for (int d = passed->ndim; d-- > 0; at /= passed->shape[d])
        number[d] = at % passed->shape[d] + 1;
    size_t used = (size_t)snprintf(out, size, "element [");
    for (int d = 0; d < passed->ndim; d++)
        used += (size_t)snprintf(out + used, size - used, "%s%" PRIu64, d ? ", " : "", number[d]);
    used += (size_t)snprintf(out + used, size - used, "]");
    if (in_kernel)
        snprintf(out + used, size - used, " (index %" PRIu64 " in the kernel)", inside / bytes);
}

static void describe(void *context, uint64_t address, uint64_t meant, char *out, size_t size) {
    const mr_command *command = context;
    const mr_storage *there = mr_kernel_storage_at(command, address),
                     *wanted = meant ? mr_kernel_storage_at(command, meant) : NULL;
    char text[200], outside[260], place[160] = "";
    bool is_inside = there && (!wanted || wanted == there);
    if (there) mr_kernel_describe_storage(there, text, sizeof text);
    if (there) describe_place(command, there, address, is_inside, place, sizeof place);
    if (!wanted && !there) wanted = nearest_storage(command, address);
    if (wanted && wanted != there) describe_outside(wanted, address, outside, sizeof outside);
    if (is_inside) snprintf(out, size, "%s of %s", place, text);
    else if (there) snprintf(out, size, "%s, where %s of %s is", outside, place, text);
    else if (wanted) snprintf(out, size, "%s", outside);
    else snprintf(out, size, "where no tensor is");
}

mr_ptx_memory mr_kernel_memory_of(const mr_command *command) {
    return (mr_ptx_memory){(void *)(uintptr_t)command, find_range, will_write, describe};
}
