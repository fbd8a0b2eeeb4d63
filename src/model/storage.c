/* Storages: see storage.h.
 *
 * Easiest to break: memory is accounted as live from create until it is freed, once each way. For
 * device memory that is the FREE command (or a reset, which clears the account as a whole); for host
 * memory the last reference. */
#include "model/storage.h"

#include <inttypes.h>
#include <string.h>

#include "model/capture.h"
#include "model/given.h"
#include "model/history.h"
#include "model/hosts.h"
#include "model/internal.h"

uint64_t mr_machine_live_bytes(const mr_machine *machine) {
    uint64_t live = machine->host_memory.live_bytes;
    for (int i = 0; i < machine->device_count; i++) live += machine->devices[i]->memory.live;
    return live;
}

/* The sandbox's bound on what may be live at once, host and device together. */
static mr_status check_limit(mr_machine *machine, uint64_t bytes) {
    if (!machine->memory.limit) return MR_OK;
    uint64_t live = mr_machine_live_bytes(machine);
    if (bytes <= machine->memory.limit && live <= machine->memory.limit - bytes) return MR_OK;
    return mr_fail(MR_CODE_OUT_OF_MEMORY,
                   "out of memory: %" PRIu64 " bytes wanted, %" PRIu64 " live, the limit of this "
                   "sandbox is %" PRIu64,
                   bytes, live, machine->memory.limit);
}

/* The host memory that the records of a tensor and its storage take, roughly: garbage that the script language's
 * collector cannot see either. */
#define RECORD_BYTES 512

static void account(mr_storage *storage) {
    mr_machine *machine = storage->machine;
    machine->host_memory.since_collect += storage->bytes + RECORD_BYTES;
    if (storage->kind == MR_MEMORY_DEVICE) {
        mr_memory_stats *memory = &storage->device->memory;
        memory->live += storage->bytes;
        memory->allocations++;
        memory->total_allocations++;
        if (memory->live > memory->peak) memory->peak = memory->live;
    } else {
        machine->host_memory.live_bytes += storage->bytes;
        machine->host_memory.allocations++;
        if (machine->host_memory.live_bytes > machine->host_memory.peak_bytes)
            machine->host_memory.peak_bytes = machine->host_memory.live_bytes;
    }
}

/* A failed try may have taken time, so observers of everything are told. `alloc`: for device memory. */
static mr_status ask_backend(mr_storage *storage, const mr_command *alloc) {
    mr_machine *machine = storage->machine;
    bool timed = !alloc && machine->observing.observers.count;
    uint64_t begin = timed ? machine->backend->host_time(machine) : 0;
    MR_ACCOUNT_BEFORE(machine);
    mr_status status = machine->backend->memory_alloc(storage);
    if (timed) {
        mr_host_times_add(&machine->host.makes, begin, machine->backend->host_time(machine));
        machine->host.made = storage;
    }
    if (status && alloc) mr_command_failed(alloc, status);
    else if (!alloc)
        MR_ACCOUNT(machine, status, .kind = MR_COMMAND_HOST_ALLOC, .u.account.storage = storage);
    return status;
}

void mr_machine_collect(mr_machine *machine) {
    if (!machine->hooks.collect || machine->memory.collecting) return;
    machine->memory.collect_before_wait = false;
    machine->memory.collecting = true;
    machine->hooks.collect(machine->hooks.context);
    machine->memory.collecting = false;
}

bool mr_command_crosses(const mr_command *command) {
    const mr_machine *machine = command->machine;
    if (machine->rank || !command->stream) return false;
    for (uint32_t i = 0; i < command->operand_count; i++) {
        const mr_storage *storage = command->operands[i].tensor->storage;
        if (storage->stream && storage->stream != command->stream &&
            storage->id > machine->memory.stay_until_end)
            return true;
    }
    return false;
}

#define COLLECTIONS 64

void mr_command_asks_collector(const mr_command *command) {
    mr_machine_memory *memory = &command->machine->memory;
    if (memory->collect_before_wait || !mr_command_crosses(command)) return;
    uint64_t n = ++memory->crossings;
    memory->collect_before_wait = n <= COLLECTIONS || (n & (n - 1)) == 0;
}

/* Tries once, and once more after a garbage collection. */
static mr_status find_memory(mr_storage *storage, const mr_command *alloc) {
    mr_machine *machine = storage->machine;
    for (int tries = 0;; tries++) {
        mr_status status = check_limit(machine, storage->bytes);
        if (!status) status = ask_backend(storage, alloc);
        if (!status || status->code != MR_CODE_OUT_OF_MEMORY || tries || !machine->hooks.collect)
            return status;
        mr_error_destroy(status);
        mr_machine_collect(machine);
        /* A finalizer may have closed the stream. */
        if (storage->stream) MR_TRY(mr_stream_usable(storage->stream));
    }
}

static void clear(mr_storage *storage) {
    if (storage->kind != MR_MEMORY_DEVICE && storage->host)
        memset(storage->host, 0, storage->bytes);
}

void mr_storage_begin_zero(mr_storage *storage) {
    if (!storage->machine->memory.host_begins_zero) clear(storage);
}

mr_status mr_storage_place(mr_storage *storage, const mr_command *alloc) {
    if (alloc) mr_history_end(storage->machine, alloc->name, alloc->where);
    MR_TRY(find_memory(storage, alloc));
    if (storage->machine->memory.host_begins_zero) clear(storage);
    account(storage);
    return MR_OK;
}

static void link_record(mr_storage *storage) {
    mr_machine *machine = storage->machine;
    storage->older = machine->objects.newest_storage;
    if (storage->older) storage->older->newer = storage;
    machine->objects.newest_storage = storage;
}

static void unlink_record(mr_storage *storage) {
    if (storage->older) storage->older->newer = storage->newer;
    if (storage->newer) storage->newer->older = storage->older;
    else storage->machine->objects.newest_storage = storage->older;
}

mr_storage *mr_storage_at(const mr_machine *machine, uint64_t address) {
    for (mr_storage *s = machine->objects.newest_storage; s; s = s->older)
        if (!s->freed && s->epoch == machine->epoch && s->address && address >= s->address &&
            address - s->address < s->bytes)
            return s;
    return NULL;
}

bool mr_storage_is_shared(const mr_storage *storage, const mr_device *device) {
    const mr_machine *machine = device->machine;
    if (storage->device != device) return machine->device_count > 1;
    for (int i = 0; i < machine->device_count; i++)
        if (machine->devices[i] != device && (machine->devices[i]->peers >> device->index & 1))
            return true;
    return false;
}

static void discard(mr_storage *storage) {
    unlink_record(storage);
    mr_stream_release(storage->stream);
    mr_name_release(storage->name);
    mr_name_release(storage->writer_name);
    if (storage->fixed_address &&
        storage->kind != MR_MEMORY_DEVICE) /* no checkpoint may restore it */
        mr_history_end(storage->machine, "free", (mr_site){0});
    if (storage->release_kept) storage->release_kept(storage->kept);
    mr_slab_free(&storage->machine->objects.storages, storage);
}

static mr_status create_on_device(const mr_caller *caller, mr_storage *storage) {
    mr_command *alloc;
    MR_TRY(mr_command_create(caller, MR_COMMAND_ALLOC, storage->stream, "alloc", 0, &alloc));
    alloc->u.storage = storage;
    storage->refs++; /* the command's */
    storage->made_seq = alloc->seq;
    mr_status status = mr_storage_place(storage, alloc);
    if (status) {
        mr_stream_blame(storage->stream, status);
        mr_command_release(alloc);
        status = mr_machine_waited(caller->machine, status);
        mr_machine_free_dropped(caller->machine);
        return status;
    }
    status = mr_command_submit(alloc);
    if (status) mr_storage_free_dropped(storage);
    return status;
}

/* A simulation shows an address of this process above all addresses that it makes up. */
#define BORROWED_ADDRESS ((uint64_t)1 << 60)

static mr_status create(const mr_caller *caller, mr_memory_kind kind, uint64_t bytes,
                        mr_stream *stream, uint64_t fixed_address, mr_storage **out_storage) {
    mr_machine *machine = caller->machine;
    *out_storage = NULL;
    if (kind == MR_MEMORY_DEVICE) {
        MR_TRY(mr_machine_ready(machine));
        MR_TRY(mr_stream_usable(stream));
    }
    mr_storage *storage = mr_slab_alloc(&machine->objects.storages);
    if (!storage) return mr_no_memory("for a tensor's record");
    *storage = (mr_storage){.refs = 1,
                            .handles = 1,
                            .epoch = machine->epoch,
                            .rank = machine->rank,
                            .kind = kind,
                            .id = ++machine->counts.next_storage,
                            .bytes = bytes,
                            .fixed_address = fixed_address,
                            .machine = machine,
                            .made = caller->where};
    link_record(storage);
    mr_status status;
    if (kind == MR_MEMORY_DEVICE) {
        storage->device = stream->device;
        storage->stream = stream;
        mr_stream_retain(stream);
        status = create_on_device(caller, storage);
    } else if (fixed_address) {
        storage->host = (void *)(uintptr_t)fixed_address;
        storage->address = fixed_address + (machine->backend->simulator ? BORROWED_ADDRESS : 0);
        status = MR_OK;
    } else {
        status = mr_storage_place(storage, NULL);
        /* An untrusted script must not read old data of this process in new memory. */
        if (!status && machine->memory.limit) memset(storage->host, 0, bytes);
    }
    if (status) {
        /* Commands may hold it: an allocation that was refused late is freed again in stream order. */
        if (kind == MR_MEMORY_DEVICE) mr_storage_release(storage);
        else discard(storage);
        return status;
    }
    *out_storage = storage;
    return MR_OK;
}

/* R44: the memory exists from now on, at a fixed address. The capture only records that the graph begins to use it. */
static mr_status create_captured(const mr_caller *caller, uint64_t bytes, mr_stream *stream,
                                 mr_storage **out_storage) {
    const mr_capture_rules *rules = mr_capture_rules_of(caller->machine);
    mr_stream *memory_stream;
    *out_storage = NULL;
    MR_TRY(mr_machine_ready(caller->machine));
    MR_TRY(mr_stream_usable(stream));
    if (rules->reuse) MR_TRY(rules->reuse(caller, bytes, stream, out_storage));
    if (*out_storage) return MR_OK;
    if (!stream->capture) return create(caller, MR_MEMORY_DEVICE, bytes, stream, 0, out_storage);
    MR_TRY(rules->alloc_stream(caller, stream, &memory_stream));
    MR_TRY(create(caller, MR_MEMORY_DEVICE, bytes, memory_stream, 0, out_storage));
    mr_status status = rules->allocated(caller, stream, *out_storage);
    if (!status) return MR_OK;
    mr_storage_drop_handle(*out_storage);
    mr_storage_release(*out_storage);
    *out_storage = NULL;
    return status;
}

mr_status mr_storage_create(const mr_caller *caller, mr_memory_kind kind, uint64_t bytes,
                            mr_stream *stream, mr_storage **out_storage) {
    if (kind == MR_MEMORY_DEVICE && stream->capture)
        return create_captured(caller, bytes, stream, out_storage);
    return create(caller, kind, bytes, stream, 0, out_storage);
}

mr_status mr_storage_create_at(const mr_caller *caller, mr_memory_kind kind, uint64_t bytes,
                               mr_stream *stream, uint64_t address, mr_storage **out_storage) {
    return create(caller, kind, bytes, stream, address, out_storage);
}

void mr_storage_keep(mr_storage *storage, void *kept, void (*release)(void *kept)) {
    storage->kept = kept;
    storage->release_kept = release;
}

void mr_storage_retain(mr_storage *storage) {
    storage->refs++;
}

void mr_storage_drop_given(mr_storage *storage) {
    mr_machine *machine = storage->machine;
    if (storage->kind != MR_MEMORY_DEVICE && !storage->fixed_address) {
        machine->host_memory.live_bytes -= storage->bytes;
        machine->host_memory.allocations--;
        MR_ACCOUNT(machine, MR_OK, .kind = MR_COMMAND_HOST_FREE, .u.account.storage = storage);
        machine->backend->memory_release(storage);
    }
    if (storage->observed) {
        for (size_t i = 0; i < machine->observing.observers.count; i++) {
            mr_observer *observer = machine->observing.observers.items[i];
            if (observer->storage_gone) observer->storage_gone(observer, storage);
        }
        storage->observed = NULL;
    }
}

void mr_storage_forget_users(mr_storage *storage) {
    while (storage->used_by.count) mr_stream_release(mr_vec_pop(&storage->used_by));
}

void mr_storage_release(mr_storage *storage) {
    if (!storage || --storage->refs) return;
    mr_storage_drop_given(storage);
    mr_storage_forget_users(storage);
    mr_vec_free(&storage->used_by);
    discard(storage);
}

void mr_storage_add_handle(mr_storage *storage) {
    storage->handles++;
}

/* Drops it; false: nothing is to be freed, or not now. `by_script`: it asks for it, and no collector does. */
static bool drop_last_handle(mr_storage *storage, bool by_script) {
    mr_machine *machine = storage->machine;
    if (--storage->handles || storage->freed) return false;
    bool stays = !by_script && storage->id <= machine->memory.stay_until_end;
    if (storage->kind != MR_MEMORY_DEVICE && !stays) return false;
    if (storage->epoch != machine->epoch) return false; /* a reset took it */
    /* The moment of a collection must not end a history of steps. A lost machine may be revived, and frees it then. */
    if (!machine->lost && !machine->host_function.running && !stays &&
        (by_script || !machine->steps.host_stays))
        return true;
    if (mr_vec_push(&machine->memory.deferred_frees, storage)) storage->refs++;
    return false; /* without memory here the block leaks until the reset or the end */
}

void mr_storage_drop_handle(mr_storage *storage) {
    if (drop_last_handle(storage, false)) mr_storage_free_dropped(storage);
}

/* Submits the FREE. The order is that of `stream`: where it was made, or the script's choice. `at_once`: no
 * order at all, and the stream only says whose memory it was. */
static mr_status submit_free(const mr_caller *caller, mr_storage *storage, mr_stream *stream,
                             bool at_once, bool by_scope) {
    mr_command *command;
    MR_TRY(mr_command_create(caller, MR_COMMAND_FREE, stream, "free", 0, &command));
    command->u.storage = storage;
    command->u.at_once = at_once;
    command->u.by_scope = by_scope;
    storage->refs++;
    return mr_storage_submit_free(command);
}

mr_status mr_storage_submit_free(mr_command *command) {
    mr_storage *storage = command->u.storage;
    mr_site where = command->where;
    mr_storage_retain(storage);
    mr_status status = mr_command_submit(command);
    if (!status) {
        storage->freed = true;
        storage->freed_where = where;
        storage->device->memory.live -= storage->bytes;
        storage->device->memory.allocations--;
    }
    mr_storage_release(storage);
    return status;
}

/* Its stream may be closed (R9): the default stream's order is then the safe one to free in, after what the
 * closed stream still has to do. */
static mr_stream *stream_to_free_in(const mr_storage *storage) {
    return storage->stream->closed ? storage->device->legacy : storage->stream;
}

void mr_storage_free_dropped(mr_storage *storage) {
    mr_machine *machine = storage->machine;
    mr_caller nobody = {.machine = machine};
    /* The collector may run while another rank does; in a process of its own, the rank would have freed its memory
     * itself. */
    uint16_t host = machine->rank;
    if (host && storage->rank) mr_observers_host_is(machine, storage->rank);
    machine->payer = host;
    /* the error has no receiver; after a refusal the memory stays live */
    mr_error_destroy(submit_free(&nobody, storage, stream_to_free_in(storage), false, false));
    machine->payer = 0;
    if (machine->rank != host) mr_observers_host_is(machine, host);
}

void mr_storage_free_lent(mr_storage *storage) {
    mr_caller caller = {.machine = storage->machine, .where = storage->freed_where};
    storage->free_waits = false;
    if (mr_storage_is_lost(storage) || storage->machine->lost) return;
    mr_error_destroy(submit_free(&caller, storage, stream_to_free_in(storage), false, false));
}

mr_status mr_storage_close_handle(const mr_caller *caller, mr_storage *storage) {
    if (!drop_last_handle(storage, true)) return MR_OK;
    mr_status status = submit_free(caller, storage, stream_to_free_in(storage), false, true);
    if (status) storage->handles++;
    return status;
}

mr_status mr_storage_free_wait(mr_storage *storage) {
    mr_machine *machine = storage->machine;
    mr_history_end(machine, "free", (mr_site){0});
    MR_ACCOUNT_BEFORE(machine);
    mr_status status = mr_machine_waited(machine, machine->backend->memory_free_wait(storage));
    MR_ACCOUNT(machine, status, .kind = MR_COMMAND_FREE_WAIT, .u.account.storage = storage);
    mr_machine_free_dropped(machine);
    return status;
}

mr_status mr_storage_free(const mr_caller *caller, mr_storage *storage, mr_free_mode mode,
                          mr_stream *stream) {
    mr_machine *machine = caller->machine;
    bool waits = mode == MR_FREE_SYNC && storage->kind == MR_MEMORY_DEVICE;
    MR_TRY(waits ? mr_host_comes(caller) : mr_machine_ready(machine));
    mr_status status = mr_storage_usable(storage, "free: the tensor");
    if (status) {
        mr_error *error = mr_error_details(status);
        if (storage->freed && error)
            error->code = MR_CODE_INVALID_ARGUMENT; /* R27: cudaFree's own */
        return status;
    }
    if (storage->of_module)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "free: `%s` is a variable of a module, which owns its memory",
                       storage->name ? mr_name_text(storage->name) : "it");
    if (storage->kind != MR_MEMORY_DEVICE) {
        /* Host memory stays while pending copies name it; only the script's view of it ends. */
        storage->freed = storage->recorded_free = true;
        storage->freed_where = caller->where;
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
    if (storage->graph || machine->captures.open) {
        bool taken = false;
        mr_stream *on = mode == MR_FREE_ON_STREAM ? stream : NULL;
        MR_TRY(
            mr_capture_rules_of(machine)->free(caller, storage, on, mode == MR_FREE_SYNC, &taken));
        if (taken) return MR_OK;
    }
    if (storage->loans) {
        storage->freed = storage->recorded_free = storage->free_waits = true;
        storage->freed_where = caller->where;
        return MR_OK;
    }
    if (mode == MR_FREE_SYNC) MR_TRY(mr_storage_free_wait(storage));
    MR_TRY(submit_free(caller, storage, stream, mode == MR_FREE_SYNC, false));
    storage->recorded_free = true;
    return MR_OK;
}

mr_status mr_storage_record_stream(mr_storage *storage, mr_stream *stream) {
    return mr_storage_record_stream_at(storage, stream, (mr_site){0});
}

static bool is_recorded(const mr_storage *storage, const mr_stream *stream) {
    for (size_t i = 0; i < storage->used_by.count; i++)
        if (storage->used_by.items[i] == stream) return true;
    return false;
}

mr_status mr_storage_record_stream_at(mr_storage *storage, mr_stream *stream, mr_site where) {
    MR_TRY(mr_machine_ready(storage->machine));
    MR_TRY(mr_storage_usable(storage, "record_stream: the tensor"));
    MR_TRY(mr_stream_usable(stream));
    if (storage->kind != MR_MEMORY_DEVICE || stream == storage->stream) return MR_OK;
    bool again = is_recorded(
        storage, stream); /* observers are still told, so that two runs of a function are alike */
    if (!again && !mr_vec_push(&storage->used_by, stream)) return mr_no_memory("for record_stream");
    if (!again) mr_stream_retain(stream);
    MR_ACCOUNT(storage->machine, MR_OK, .kind = MR_COMMAND_RECORD_STREAM, .stream = stream,
               .where = where, .u.account.storage = storage);
    return MR_OK;
}

bool mr_storage_is_lost(const mr_storage *storage) {
    return storage->kind == MR_MEMORY_DEVICE && storage->epoch != storage->machine->epoch;
}

mr_status mr_storage_usable(const mr_storage *storage, const char *what) {
    if (storage->freed) {
        if (storage->freed_where.file)
            return mr_fail(MR_CODE_INVALID_HANDLE, "%s was freed at %s:%d", what,
                           storage->freed_where.file, storage->freed_where.line);
        return mr_fail(MR_CODE_INVALID_HANDLE, "%s was freed", what);
    }
    if (mr_storage_is_foreign(storage))
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "%s belongs to rank %d, and rank %d uses it: ranks share no memory; send it",
                       what, storage->rank - 1, storage->machine->rank - 1);
    if (mr_storage_is_lost(storage))
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "%s was on the device before mr.reset(), which took its memory", what);
    return MR_OK;
}

/* For writes of the host that are told to no observer; mr_host_accesses does this itself. */
static void before_host_writes(mr_machine *machine, const mr_operand *operands, uint32_t count) {
    if (machine->steps.watches_writes) machine->backend->host_writes(machine, operands, count);
}

/* Whether the device may use the memory. For memory that only the host can reach, the host's operations need not look
 * at the device. */
static bool device_may_use(const mr_operand *operands, uint32_t count, const mr_op *row) {
    if (!row) return true;
    for (uint32_t i = 0; i < count; i++)
        if (operands[i].tensor->storage->kind != MR_MEMORY_PAGEABLE) return true;
    return false;
}

#define LOOKS_BEFORE_POLLING 1000

/* A loop may wait until memory has some value. On a GPU it ends, so it must end where time passes only in calls. */
static mr_status let_device_write(mr_machine *machine) {
    const mr_backend *backend = machine->backend;
    mr_host_looks *looks = &machine->host.looks;
    if (!backend->host_polls) return backend->host_access(machine);
    uint64_t now = backend->host_time(machine);
    if (looks->at != now) *looks = (mr_host_looks){.at = now};
    if (looks->count < LOOKS_BEFORE_POLLING) {
        looks->count++;
        return backend->host_access(machine);
    }
    mr_status status = backend->host_polls(machine);
    looks->at = backend->host_time(machine);
    return status;
}

mr_status mr_host_accesses(const mr_caller *caller, const char *name, const mr_operand *operands,
                           uint32_t count, const mr_op *row, const void *params) {
    mr_machine *machine = caller->machine;
    mr_command *command = NULL;
    mr_status status = MR_OK;
    bool look = device_may_use(operands, count, row);
    MR_TRY(mr_capture_ask_host(caller, MR_ASK_ACCESS, name, NULL, NULL, NULL));
    if (look) mr_host_gives_way(machine, caller->where);
    for (uint32_t i = 0; i < count; i++)
        if (operands[i].access & MR_WRITE)
            mr_history_host_writes(machine, name, caller->where, operands[i].tensor->storage);
    if (machine->observing.observers.count) {
        MR_TRY(mr_command_create(caller, MR_COMMAND_HOST_ACCESS, NULL, name, count, &command));
        for (uint32_t i = 0; i < count; i++)
            mr_command_set_operand(command, i, operands[i].tensor, operands[i].access);
        command->u.op.row = row;
        if (params) memcpy(command->u.op.params, params, MR_PARAMS_BYTES);
        status = mr_command_may(command);
    }
    bool allowed = !status;
    if (!status && look && !machine->host_function.running && !machine->lost)
        status = mr_machine_waited(machine, let_device_write(machine));
    for (uint32_t i = 0; i < count && !status; i++)
        if (operands[i].access & MR_WRITE)
            mr_storage_wrote(operands[i].tensor->storage, name, NULL, caller->where);
    if (!status) before_host_writes(machine, operands, count);
    if (command && !status) mr_command_did(command);
    else if (command && allowed) mr_command_failed(command, status);
    mr_command_release(command);
    if (command) machine->host.access_end = machine->backend->host_time(machine);
    if (!machine->host_function.running) mr_machine_free_dropped(machine);
    return status;
}

mr_status mr_host_access(const mr_caller *caller, const char *name, mr_tensor *tensor,
                         uint8_t access) {
    mr_operand operand = {tensor, access};
    return mr_host_accesses(caller, name, &operand, 1, NULL, NULL);
}

void mr_host_worked(mr_machine *machine, uint64_t bytes, mr_status status) {
    const mr_backend *backend = machine->backend;
    if (!status && backend && backend->host_work) backend->host_work(machine, bytes);
    if (!status && backend && machine->observing.observers.count)
        mr_machine_host_worked(machine, machine->host.access_end, backend->host_time(machine));
    MR_ACCOUNT(machine, status, .kind = MR_COMMAND_HOST_WORK, .u.account.value = bytes);
}

void mr_host_reads(mr_machine *machine, mr_tensor *tensor) {
    MR_ACCOUNT(machine, MR_OK, .kind = MR_COMMAND_HOST_READ, .operand_count = 1,
               .inline_operands = {{tensor, MR_READ}});
}
