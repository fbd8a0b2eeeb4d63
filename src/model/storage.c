/* Storages: see storage.h.
 *
 * Easiest to break: memory is accounted as live from create until it is freed, once each way. For
 * device memory that is the FREE action (or a reset, which clears the account as a whole); for host
 * memory the last reference. */
#include "model/storage.h"

#include <inttypes.h>

#include "model/internal.h"

/* The sandbox's bound on what may be live at once, host and device together. */
static mr_status check_limit(mr_machine *machine, uint64_t bytes) {
    uint64_t live = machine->host_live_bytes;
    if (!machine->memory_limit) return MR_OK;
    for (int i = 0; i < machine->device_count; i++) live += machine->devices[i]->memory.live;
    if (bytes <= machine->memory_limit && live <= machine->memory_limit - bytes) return MR_OK;
    return mr_fail(MR_CODE_OUT_OF_MEMORY,
                   "out of memory: %" PRIu64 " bytes wanted, %" PRIu64 " live, the limit of this "
                   "sandbox is %" PRIu64,
                   bytes, live, machine->memory_limit);
}

/* What the records of a tensor and its storage take of the host's memory, roughly: garbage that the
 * script language's collector cannot see either. */
#define RECORD_BYTES 512

static void account(mr_storage *storage) {
    mr_machine *machine = storage->machine;
    machine->bytes_since_collect += storage->bytes + RECORD_BYTES;
    if (storage->kind == MR_MEMORY_DEVICE) {
        mr_memory_stats *memory = &storage->device->memory;
        memory->live += storage->bytes;
        memory->allocations++;
        memory->total_allocations++;
        if (memory->live > memory->peak) memory->peak = memory->live;
    } else {
        machine->host_live_bytes += storage->bytes;
        machine->host_allocations++;
        if (machine->host_live_bytes > machine->host_peak_bytes)
            machine->host_peak_bytes = machine->host_live_bytes;
    }
}

/* Once with what is free, and once more after the collector has dropped what is garbage. */
static mr_status find_memory(mr_storage *storage, mr_action *alloc) {
    mr_machine *machine = storage->machine;
    for (int tries = 0;; tries++) {
        mr_status status = check_limit(machine, storage->bytes);
        if (!status) status = machine->backend->memory_alloc(storage, alloc);
        if (!status || status->code != MR_CODE_OUT_OF_MEMORY || tries || !machine->collect)
            return status;
        mr_error_destroy(status);
        machine->collecting = true;
        machine->collect(machine->hook_context);
        machine->collecting = false;
        /* A finalizer may have closed the stream. */
        if (storage->stream) MR_TRY(mr_stream_usable(storage->stream));
    }
}

static void discard(mr_storage *storage) {
    mr_stream_release(storage->stream);
    mr_slab_free(&storage->machine->storages, storage);
}

static mr_status create_on_device(mr_storage *storage) {
    mr_machine *machine = storage->machine;
    mr_action *alloc;
    MR_TRY(mr_action_create(machine, MR_ACTION_ALLOC, storage->stream, "alloc", 0, &alloc));
    alloc->u.storage = storage;
    storage->refs++; /* the action's */
    storage->made_seq = alloc->seq;
    mr_status status = find_memory(storage, alloc);
    if (status) {
        mr_action_destroy(alloc);
        return mr_machine_waited(machine, status);
    }
    account(storage);
    status = mr_action_submit(alloc);
    if (status) mr_storage_free_dropped(storage);
    return status;
}

mr_status mr_storage_create(mr_machine *machine, mr_memory_kind kind, uint64_t bytes,
                            mr_stream *stream, mr_storage **out_storage) {
    *out_storage = NULL;
    if (kind == MR_MEMORY_DEVICE) {
        MR_TRY(mr_machine_ready(machine));
        MR_TRY(mr_stream_usable(stream));
    }
    mr_storage *storage = mr_slab_alloc(&machine->storages);
    if (!storage) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for a tensor's record");
    *storage = (mr_storage){.refs = 1,
                            .handles = 1,
                            .epoch = machine->epoch,
                            .kind = kind,
                            .id = ++machine->next_storage,
                            .bytes = bytes,
                            .machine = machine,
                            .made = machine->where};
    mr_status status;
    if (kind == MR_MEMORY_DEVICE) {
        storage->device = stream->device;
        storage->stream = stream;
        mr_stream_retain(stream);
        status = create_on_device(storage);
    } else {
        status = find_memory(storage, NULL);
        if (!status) account(storage);
    }
    if (status) {
        /* Actions may hold it: an allocation that was refused late is freed again in stream order. */
        if (kind == MR_MEMORY_DEVICE) mr_storage_release(storage);
        else discard(storage);
        return status;
    }
    *out_storage = storage;
    return MR_OK;
}

void mr_storage_retain(mr_storage *storage) {
    storage->refs++;
}

void mr_storage_release(mr_storage *storage) {
    if (!storage || --storage->refs) return;
    mr_machine *machine = storage->machine;
    if (storage->kind != MR_MEMORY_DEVICE) {
        machine->host_live_bytes -= storage->bytes;
        machine->host_allocations--;
        machine->backend->memory_release(storage);
    }
    if (storage->observed) {
        for (size_t i = 0; i < machine->observers.count; i++) {
            mr_observer *observer = machine->observers.items[i];
            if (observer->storage_gone) observer->storage_gone(observer, storage);
        }
    }
    for (size_t i = 0; i < storage->used_by.count; i++)
        mr_stream_release(storage->used_by.items[i]);
    mr_vec_free(&storage->used_by);
    discard(storage);
}

void mr_storage_add_handle(mr_storage *storage) {
    storage->handles++;
}

/* Drops it; false: nothing is to be freed, or not now. */
static bool drop_last_handle(mr_storage *storage) {
    mr_machine *machine = storage->machine;
    if (--storage->handles || storage->kind != MR_MEMORY_DEVICE || storage->freed) return false;
    if (storage->epoch != machine->epoch || machine->lost) return false; /* a reset takes it all */
    if (!machine->in_host_function) return true;
    if (mr_vec_push(&machine->deferred_frees, storage)) storage->refs++;
    return false; /* out of memory here leaks the block until the reset or the end: never more */
}

void mr_storage_drop_handle(mr_storage *storage) {
    if (drop_last_handle(storage)) mr_storage_free_dropped(storage);
}

/* Submits the FREE. The order is that of `stream`: where it was made, or the script's choice. */
static mr_status submit_free(mr_storage *storage, mr_stream *stream) {
    mr_machine *machine = storage->machine;
    mr_action *action;
    MR_TRY(mr_action_create(machine, MR_ACTION_FREE, stream, "free", 0, &action));
    action->u.storage = storage;
    storage->refs++;
    MR_TRY(mr_action_submit(action));
    storage->freed = true;
    storage->freed_where = machine->where;
    storage->device->memory.live -= storage->bytes;
    storage->device->memory.allocations--;
    return MR_OK;
}

/* Its stream may be closed (R9): the default stream's order is then the safe one to free in, after what the
 * closed stream still has to do. */
static mr_stream *stream_to_free_in(const mr_storage *storage) {
    return storage->stream->closed ? storage->device->legacy : storage->stream;
}

void mr_storage_free_dropped(mr_storage *storage) {
    mr_machine *machine = storage->machine;
    mr_site where = machine->where;
    machine->where = (mr_site){0};
    /* nobody to tell; a refusal leaves it live */
    mr_error_destroy(submit_free(storage, stream_to_free_in(storage)));
    machine->where = where;
}

mr_status mr_storage_close_handle(mr_storage *storage) {
    if (!drop_last_handle(storage)) return MR_OK;
    mr_status status = submit_free(storage, stream_to_free_in(storage));
    if (status) storage->handles++;
    return status;
}

mr_status mr_storage_free(mr_storage *storage, mr_free_mode mode, mr_stream *stream) {
    mr_machine *machine = storage->machine;
    MR_TRY(mr_machine_ready(machine));
    mr_status status = mr_storage_usable(storage, "free: the tensor");
    if (status) {
        if (storage->freed) status->code = MR_CODE_INVALID_ARGUMENT; /* R27: cudaFree's own word */
        return status;
    }
    if (storage->kind != MR_MEMORY_DEVICE) {
        /* Host memory stays while pending copies name it; only the script's view of it ends. */
        storage->freed = storage->recorded_free = true;
        storage->freed_where = machine->where;
        return MR_OK;
    }
    if (mode == MR_FREE_ON_STREAM) {
        MR_TRY(mr_stream_usable(stream));
        if (stream->device != storage->device)
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "free: the tensor is on device %d and the stream on device %d",
                           storage->device->index, stream->device->index);
    } else {
        stream = stream_to_free_in(storage);
    }
    if (mode == MR_FREE_SYNC)
        MR_TRY(mr_machine_waited(machine, machine->backend->memory_free_wait(storage)));
    MR_TRY(submit_free(storage, stream));
    storage->recorded_free = true;
    return MR_OK;
}

mr_status mr_storage_record_stream(mr_storage *storage, mr_stream *stream) {
    MR_TRY(mr_machine_ready(storage->machine));
    MR_TRY(mr_storage_usable(storage, "record_stream: the tensor"));
    MR_TRY(mr_stream_usable(stream));
    if (storage->kind != MR_MEMORY_DEVICE || stream == storage->stream) return MR_OK;
    for (size_t i = 0; i < storage->used_by.count; i++)
        if (storage->used_by.items[i] == stream) return MR_OK;
    if (!mr_vec_push(&storage->used_by, stream))
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "record_stream: no memory");
    mr_stream_retain(stream);
    return MR_OK;
}

mr_status mr_storage_usable(const mr_storage *storage, const char *what) {
    if (storage->freed) {
        if (storage->freed_where.file)
            return mr_fail(MR_CODE_INVALID_HANDLE, "%s was freed at %s:%d", what,
                           storage->freed_where.file, storage->freed_where.line);
        return mr_fail(MR_CODE_INVALID_HANDLE, "%s was freed", what);
    }
    if (storage->kind == MR_MEMORY_DEVICE && storage->epoch != storage->machine->epoch)
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "%s was on the device before mr.reset(), which took its memory", what);
    return MR_OK;
}

mr_status mr_host_access(mr_machine *machine, const char *name, mr_tensor *tensor, uint8_t access) {
    if (machine->observers.count) {
        mr_action *action;
        MR_TRY(mr_action_create(machine, MR_ACTION_HOST_ACCESS, NULL, name, 1, &action));
        mr_action_set_operand(action, 0, tensor, access);
        MR_TRY(mr_action_announce(action));
    }
    if (access & MR_WRITE) {
        mr_storage *storage = mr_tensor_storage(tensor);
        storage->writer = name;
        storage->writer_where = machine->where;
    }
    if (machine->in_host_function || machine->lost) return MR_OK;
    return mr_machine_waited(machine, machine->backend->host_access(machine));
}
