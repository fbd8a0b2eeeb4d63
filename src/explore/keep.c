/* Keeps the bytes of what a function of the script finds outside of itself: see keep.h. An observer, which is asked before
 * each command; bytes that nothing is going to touch are never copied. */
#include "explore/keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "model/observer.h"

typedef struct {
    mr_storage *storage; /* one reference */
    char *bytes;
} kept;

struct mr_explore_keeper {
    mr_observer observer;
    mr_machine *machine;
    uint64_t newest;        /* id of a storage */
    uint32_t newest_stream; /* id of a stream */
    char ended[200];        /* what of outside the function has freed or closed; "" */
    uint32_t epoch;
    bool failed;
    MR_VEC(kept) kept;
};

static bool is_kept(const mr_explore_keeper *k, const mr_storage *storage) {
    for (size_t i = 0; i < k->kept.count; i++)
        if (k->kept.items[i].storage == storage) return true;
    return false;
}

static void keep(mr_explore_keeper *k, mr_storage *storage) {
    if (storage->id > k->newest || !storage->host || storage->freed || is_kept(k, storage)) return;
    kept one = {storage, malloc(storage->bytes + 1)};
    if (!one.bytes || !mr_vec_push(&k->kept, one)) {
        free(one.bytes);
        k->failed = true;
        return;
    }
    memcpy(one.bytes, storage->host, storage->bytes);
    mr_storage_retain(storage);
}

static mr_status may(mr_observer *observer, const mr_command *command) {
    mr_explore_keeper *k =
        (mr_explore_keeper *)((char *)observer - offsetof(mr_explore_keeper, observer));
    for (uint32_t i = 0; i < command->operand_count; i++)
        keep(k, command->operands[i].tensor->storage);
    return MR_OK;
}

static void note_end(mr_explore_keeper *k, const char *what, mr_site where) {
    if (*k->ended) return;
    snprintf(k->ended, sizeof k->ended, "the function %s from outside (%s:%d)", what, where.file,
             where.line);
}

/* What is gone cannot be put back. Lua's collector frees at no line: that was out of the function's reach. */
static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    mr_explore_keeper *k =
        (mr_explore_keeper *)((char *)observer - offsetof(mr_explore_keeper, observer));
    (void)host_waited;
    if (!command->where.file) return;
    if (command->kind == MR_COMMAND_FREE && command->u.storage->id <= k->newest)
        note_end(k, "frees a tensor", command->where);
    if (command->kind == MR_COMMAND_STREAM_CLOSE && command->stream->id <= k->newest_stream)
        note_end(k, "closes a stream", command->where);
}

mr_status mr_explore_keep(mr_machine *machine, mr_explore_keeper **out_keeper) {
    mr_explore_keeper *k = *out_keeper = calloc(1, sizeof *k);
    if (!k) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory to keep what a function changes");
    k->observer = (mr_observer){.name = "keeper", .may = may, .did = did};
    k->machine = machine;
    k->newest = machine->next_storage;
    k->newest_stream = machine->next_stream;
    k->epoch = machine->epoch;
    mr_status status = mr_observer_add(machine, &k->observer);
    if (!status) return MR_OK;
    free(k);
    *out_keeper = NULL;
    return status;
}

static bool is_there(const mr_explore_keeper *k, const mr_storage *storage) {
    if (storage->freed || !storage->host) return false;
    return storage->kind != MR_MEMORY_DEVICE || k->epoch == k->machine->epoch;
}

mr_status mr_explore_put_back(mr_explore_keeper *k) {
    for (size_t i = 0; i < k->kept.count; i++) {
        const kept *one = &k->kept.items[i];
        if (is_there(k, one->storage)) memcpy(one->storage->host, one->bytes, one->storage->bytes);
    }
    if (k->failed)
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory to keep what a function changes");
    if (!*k->ended) return MR_OK;
    mr_status status = mr_fail(MR_CODE_NOT_PERMITTED,
                               "%s, so it cannot be called again: make what it frees or closes "
                               "inside of it",
                               k->ended);
    *k->ended = 0; /* it is raised once; the last putting back is not to hide the first error */
    return status;
}

void mr_explore_let_go(mr_explore_keeper *k) {
    if (!k) return;
    mr_observer_remove(k->machine, &k->observer);
    for (size_t i = 0; i < k->kept.count; i++) {
        mr_storage_release(k->kept.items[i].storage);
        free(k->kept.items[i].bytes);
    }
    mr_vec_free(&k->kept);
    free(k);
}
