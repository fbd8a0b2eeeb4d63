/* The bytes that a launch may touch: see kernel_operands.h.
 *
 * Easiest to break: a pointer whose bytes are not touched is an operand, too (of no bytes), since the operand keeps its
 * storage alive and gives the address. */
#include "ops/call/kernel_operands.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "ops/call.h"

/* ---- the list */

static bool grow(mr_kernel_operands *list) {
    if (!mr_few_grow(list->items, list->few, list->count, 2 * (size_t)list->capacity)) return false;
    list->capacity *= 2;
    return true;
}

/* Accesses that differ in certainty or in being atomic stay apart. */
static bool merges(uint8_t a, uint8_t b) {
    return ((a ^ b) & ~MR_ACCESSES) == 0 && !(a & MR_ATOMIC);
}

static mr_status push_operand(mr_kernel_operands *list, mr_tensor *view, uint8_t access) {
    if (list->count == list->capacity && !grow(list)) {
        mr_tensor_release(view);
        return mr_no_memory("for the operands of a launch");
    }
    list->items[list->count++] = (mr_operand){view, access};
    return MR_OK;
}

/* Bytes [first, end) of base's storage, as a view; of none: a place to point to. */
static mr_status add_operand(mr_kernel_operands *list, mr_tensor *base, uint64_t first,
                             uint64_t end, uint8_t access) {
    for (uint32_t i = 0; i < list->count; i++) {
        mr_operand *o = &list->items[i];
        if (o->tensor->storage != base->storage || (uint64_t)o->tensor->offset != first ||
            o->tensor->ndim != 1 || (uint64_t)o->tensor->numel != end - first ||
            !(merges(o->access, access) || o->access == access))
            continue;
        o->access |= access;
        return MR_OK;
    }
    int64_t size = (int64_t)(end - first), stride = 1;
    mr_tensor *view;
    MR_TRY(mr_tensor_alias(list->caller, base, MR_U8, 1, &size, &stride, (int64_t)first, &view));
    return push_operand(list, view, access);
}

/* The bytes of an extent from where the pointer points, inside of the storage. */
static void place_extent(const mr_tensor *t, const mr_ptx_extent *extent, uint64_t *out_first,
                         uint64_t *out_end) {
    const int64_t at = (int64_t)mr_kernel_pointer_offset(t), size = (int64_t)t->storage->bytes;
    uint64_t first = 0, end = (uint64_t)size;
    if (extent->first > -at) first = (uint64_t)(extent->first + at);
    if (extent->end < size - at) end = extent->end + at < 0 ? 0 : (uint64_t)(extent->end + at);
    if (first > end) first = end;
    *out_first = first;
    *out_end = end;
}

static uint8_t access_of(const mr_kernel_call *call, const mr_kernel_pointer *pointer) {
    if (pointer->access) return pointer->access;
    const mr_ptx_param_access *inferred = &mr_ptx_kernel_access(call->kernel)[pointer->param];
    _Static_assert((int)MR_PTX_READS == (int)MR_READ && (int)MR_PTX_WRITES == (int)MR_WRITE, "");
    return inferred->known ? inferred->access : MR_ACCESSES | MR_GUESSED;
}

static mr_assumed assumed_because(mr_ptx_reason reason) {
    static const mr_assumed of[] = {
        [MR_PTX_CERTAIN] = MR_CERTAIN,       [MR_PTX_GAPS] = MR_ASSUMED_GAPS,
        [MR_PTX_INDEX] = MR_ASSUMED_INDEX,   [MR_PTX_CONDITION] = MR_ASSUMED_CONDITION,
        [MR_PTX_LOOP] = MR_ASSUMED_LOOP,     [MR_PTX_ARITHMETIC] = MR_ASSUMED_ARITHMETIC,
        [MR_PTX_CHOSEN] = MR_ASSUMED_CHOSEN, [MR_PTX_KEPT] = MR_ASSUMED_KEPT,
        [MR_PTX_SIZE] = MR_ASSUMED_SIZE,
    };
    return of[reason];
}

/* The access of the code to an extent, in the flags of command.h, without accesses that the script excludes. */
static uint8_t access_to(const mr_kernel_operands *list, const mr_kernel_pointer *pointer,
                         const mr_ptx_extent *extent, uint8_t wanted) {
    uint8_t access = extent->access & wanted & MR_ACCESSES;
    if (!access) return 0;
    bool is_update =
        extent->is_atomic &&
        (extent->is_system || !mr_storage_is_shared(pointer->tensor->storage, list->device));
    if (is_update && access == MR_ACCESSES) access |= MR_ATOMIC;
    mr_assumed why = assumed_because(extent->reason);
    if (pointer->in_data && !why) why = MR_ASSUMED_IN_DATA;
    return mr_access_assume(access | (wanted & MR_GUESSED), why);
}

/* With gaps, a view with strides. */
static mr_status add_grid(mr_kernel_operands *list, mr_tensor *t, const mr_ptx_extent *extent,
                          uint8_t access) {
    int64_t sizes[MR_PTX_EXTENT_DIMS + 1], strides[MR_PTX_EXTENT_DIMS + 1];
    uint32_t n = extent->dim_count;
    for (uint32_t k = 0; k < n; k++) {
        sizes[k] = extent->dims[n - 1 - k].count;
        strides[k] = extent->dims[n - 1 - k].stride;
    }
    sizes[n] = extent->run;
    strides[n] = 1;
    mr_tensor *view;
    MR_TRY(mr_tensor_alias(list->caller, t, MR_U8, (int)n + 1, sizes, strides,
                           (int64_t)mr_kernel_pointer_offset(t) + extent->first, &view));
    return push_operand(list, view, access);
}

/* An access outside of the storage is an error when the launch runs. */
static mr_status add_extent(mr_kernel_operands *list, mr_tensor *t, const mr_ptx_extent *extent,
                            uint8_t access) {
    uint64_t first, end;
    place_extent(t, extent, &first, &end);
    if (first >= end) return MR_OK;
    bool is_grid = !extent->reason && extent->dim_count;
    bool is_inside = (int64_t)(end - first) == extent->end - extent->first;
    if (is_grid && is_inside) return add_grid(list, t, extent, access);
    if (is_grid) access = mr_access_assume(access, MR_ASSUMED_GAPS);
    return add_operand(list, t, first, end, access);
}

static mr_status add_pointer(mr_kernel_operands *list, const mr_kernel_call *call,
                             const mr_kernel_pointer *pointer, const mr_ptx_extent *extents,
                             uint32_t extent_count) {
    uint8_t wanted = access_of(call, pointer), found = 0;
    uint64_t first, end;
    for (uint32_t i = 0; i < extent_count; i++) {
        uint32_t at = call->kernel->params[extents[i].param].offset + extents[i].offset;
        uint8_t access = at == pointer->at ? access_to(list, pointer, &extents[i], wanted) : 0;
        if (!access) continue;
        found |= access;
        MR_TRY(add_extent(list, pointer->tensor, &extents[i], access));
    }
    mr_tensor_extent(pointer->tensor, &first, &end);
    /* accesses that only the script declares */
    uint8_t rest = pointer->access & (uint8_t)~found & MR_ACCESSES;
    if (rest && first < end)
        MR_TRY(add_operand(list, pointer->tensor, first, end,
                           mr_access_assume(rest, MR_ASSUMED_DECLARED)));
    return MR_OK;
}

mr_status mr_kernel_operand_of(mr_kernel_operands *list, mr_tensor *t, uint32_t *out_operand) {
    for (uint32_t i = 0; i < list->count; i++) {
        *out_operand = i;
        if (list->items[i].tensor->storage == t->storage) return MR_OK;
    }
    *out_operand = list->count;
    uint64_t at = mr_kernel_pointer_offset(t);
    return add_operand(list, t, at, at, MR_READ);
}

/* ---- the extents of a launch */

#define FEW_EXTENTS  32
#define FEW_POINTERS 16

typedef struct {
    mr_ptx_extent few[FEW_EXTENTS], *items; /* `few`, or owned */
    uint32_t count;
} extent_list;

static void free_extents(extent_list *extents) {
    mr_few_free(extents->items, extents->few);
    extents->items = extents->few;
    extents->count = 0;
}

static mr_status no_memory(const mr_kernel_call *call) {
    return mr_no_memory("for %s", call->name->text);
}

static mr_status find_extents(const mr_kernel_call *call, const mr_ptx_plan *plan,
                              extent_list *out) {
    out->count = mr_ptx_launch_extents(call->kernel, plan, out->few, FEW_EXTENTS);
    if (out->count <= FEW_EXTENTS) return MR_OK;
    out->items = calloc(out->count, sizeof *out->items);
    if (!out->items) return out->items = out->few, no_memory(call);
    out->count = mr_ptx_launch_extents(call->kernel, plan, out->items, out->count);
    return MR_OK;
}

static mr_status plan_launch(const mr_kernel_call *call, extent_list *out) {
    uint32_t few[FEW_POINTERS], *pointers = few;
    if (call->pointer_count > FEW_POINTERS)
        pointers = calloc(call->pointer_count, sizeof *pointers);
    if (!pointers) return no_memory(call);
    for (uint32_t i = 0; i < call->pointer_count; i++) pointers[i] = call->pointers[i].at;
    mr_ptx_plan plan = {
        .params = call->params, .pointers = pointers, .pointer_count = call->pointer_count};
    for (int d = 0; d < 3; d++) {
        plan.grid[d] = (uint32_t)call->grid[d];
        plan.block[d] = (uint32_t)call->block[d];
    }
    mr_status status = find_extents(call, &plan, out);
    if (pointers != few) free(pointers);
    return status;
}

/* ---- pointers in data */

static uint32_t place_of(const mr_kernel_call *call, const mr_ptx_extent *extent) {
    return call->kernel->params[extent->param].offset + extent->offset;
}

/* No backend has memory below this, so an access there fails. */
#define LOWEST_ADDRESS ((int64_t)1 << 32)

/* The pointer of an extent has no memory of its own: it is a number, NULL, or that of a tensor without bytes. So what
 * the extent reaches can be any memory. */
static bool has_no_memory(const mr_kernel_call *call, const mr_ptx_extent *extent,
                          uint64_t *out_address) {
    uint32_t at = place_of(call, extent);
    for (uint32_t i = 0; i < call->pointer_count; i++) {
        const mr_storage *storage = call->pointers[i].tensor->storage;
        if (call->pointers[i].at != at) continue;
        *out_address = storage->address;
        return !storage->bytes;
    }
    memcpy(out_address, (const char *)call->params + at, sizeof *out_address);
    return true;
}

static bool reaches_memory(const mr_kernel_call *call, const mr_ptx_extent *extent) {
    uint64_t address;
    int64_t end;
    return has_no_memory(call, extent, &address) &&
           (__builtin_add_overflow(extent->end, (int64_t)address, &end) || end > LOWEST_ADDRESS);
}

static mr_storage *reachable_at(const mr_device *device, uint64_t address) {
    mr_storage *s = mr_storage_at(device->machine, address);
    if (!s || s->kind == MR_MEMORY_PAGEABLE) return NULL;
    bool is_far = s->device && s->device != device && !(device->peers >> s->device->index & 1);
    return is_far ? NULL : s;
}

static mr_status push_pointer(mr_kernel_operands *list, const mr_ptx_extent *extent,
                              mr_storage *storage, uint64_t address) {
    mr_kernel_call *call = &list->call;
    mr_kernel_pointer *grown =
        realloc(list->pointers, (call->pointer_count + 1) * sizeof *list->pointers);
    if (!grown) return no_memory(call);
    if (!list->pointers && call->pointer_count)
        memcpy(grown, call->pointers, call->pointer_count * sizeof *grown);
    call->pointers = list->pointers = grown;
    mr_tensor *t = mr_tensor_new(list->caller, storage);
    if (!t) return no_memory(call);
    t->dtype = MR_U8;
    t->ndim = 1;
    t->contiguous = true;
    t->offset = (int64_t)(address - storage->address);
    t->numel = t->shape[0] = (int64_t)storage->bytes - t->offset;
    t->stride[0] = 1;
    grown[call->pointer_count++] = (mr_kernel_pointer){
        .param = extent->param, .at = place_of(call, extent), .tensor = t, .in_data = true};
    return MR_OK;
}

/* Numbers that the launch uses as pointers, and that are addresses of memory, become pointers of the call. */
static mr_status find_data_pointers(mr_kernel_operands *list, const mr_device *device,
                                    extent_list *extents) {
    uint32_t before = list->call.pointer_count;
    for (uint32_t i = 0; i < extents->count; i++) {
        uint64_t number;
        mr_storage *storage = has_no_memory(&list->call, &extents->items[i], &number)
                                  ? reachable_at(device, number)
                                  : NULL;
        if (storage) MR_TRY(push_pointer(list, &extents->items[i], storage, number));
    }
    if (list->call.pointer_count == before) return MR_OK;
    free_extents(extents);
    return plan_launch(&list->call, extents);
}

/* ---- all operands */

static mr_kernel_escapes escapes_of(const mr_kernel_call *call, const extent_list *extents) {
    const mr_ptx_param_access *params = mr_ptx_kernel_access(call->kernel);
    mr_kernel_escapes e = {.follows_data = mr_ptx_kernel_follows_memory(call->kernel),
                           .uses_addresses =
                               mr_ptx_kernel_uses_addresses_of_variables(call->kernel),
                           .depends_on_order = mr_ptx_kernel_depends_on_order(call->kernel),
                           .may_depend_on_order = mr_ptx_kernel_may_depend_on_order(call->kernel),
                           .updates = mr_ptx_kernel_updates(call->kernel)};
    for (uint32_t i = 0; i < call->pointer_count; i++) {
        const mr_kernel_pointer *pointer = &call->pointers[i];
        const mr_ptx_param_access *inferred = &params[pointer->param];
        uint8_t all = inferred->known ? inferred->access : MR_ACCESSES;
        e.is_declared |= pointer->access && (all & ~pointer->access);
        e.follows_data |= pointer->in_data;
        e.uses_addresses |= mr_ptx_kernel_uses_address(call->kernel, pointer->at);
    }
    for (uint32_t i = 0; i < extents->count; i++)
        e.follows_data |= reaches_memory(call, &extents->items[i]);
    return e;
}

static mr_status add_all(mr_kernel_operands *list, const extent_list *extents) {
    const mr_kernel_call *call = &list->call;
    for (uint32_t i = 0; i < call->pointer_count; i++)
        MR_TRY(add_pointer(list, call, &call->pointers[i], extents->items, extents->count));
    list->escapes = escapes_of(call, extents);
    return MR_OK;
}

mr_status mr_kernel_operands_find(mr_kernel_operands *list, const mr_caller *caller,
                                  const mr_kernel_call *call, const mr_device *device,
                                  mr_tensor **variables, uint32_t variable_count) {
    extent_list extents = {.items = extents.few};
    list->caller = caller;
    list->device = device;
    list->call = *call;
    mr_status status = plan_launch(call, &extents);
    if (!status) status = find_data_pointers(list, device, &extents);
    if (!status) status = add_all(list, &extents);
    free_extents(&extents);
    MR_TRY(status);
    const uint8_t *uses = mr_kernel_code_uses(call->module->code, call->kernel);
    for (uint32_t i = 0; i < variable_count; i++) {
        if (!variables[i] || !uses[i]) continue;
        MR_TRY(add_operand(list, variables[i], 0, variables[i]->storage->bytes,
                           mr_access_assume(uses[i], MR_ASSUMED_VARIABLE)));
    }
    return MR_OK;
}

void mr_kernel_operands_open(mr_kernel_operands *list) {
    list->items = list->few;
    list->count = 0;
    list->capacity = sizeof list->few / sizeof *list->few;
    list->pointers = NULL;
    list->escapes = (mr_kernel_escapes){0};
    list->call.pointer_count = 0;
}

void mr_kernel_operands_close(mr_kernel_operands *list) {
    for (uint32_t i = 0; i < list->count; i++) mr_tensor_release(list->items[i].tensor);
    mr_few_free(list->items, list->few);
    for (uint32_t i = 0; i < list->call.pointer_count && list->pointers; i++)
        if (list->pointers[i].in_data) mr_tensor_release(list->pointers[i].tensor);
    free(list->pointers);
}
