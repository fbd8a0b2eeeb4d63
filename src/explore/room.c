/* Whether memory is short. The search repeats the calls of a run: there a failed allocation always fails, and a
 * successful one always succeeds. But if an allocation needs the memory of a free, the order may decide whether it
 * fails. Then the result is not complete.
 *
 * The order decides nothing where nothing was freed before, or where one stream alone allocates and frees, always the
 * same number of bytes. It has its own memory back at once (R28), unless record_stream keeps it. With other sizes, free
 * memory that is too small may grow or be given back, but only once its free is complete. Memory of the host is not
 * looked at. */
#include "explore/state.h"
#include "model/device.h"

#define NONE UINT32_MAX

/* How one device is used. */
typedef struct {
    uint64_t asked; /* bytes of all allocations so far, as if nothing were ever freed */
    uint64_t bytes; /* of the last allocation, on this stream */
    uint32_t stream;
    bool has_free, is_mixed; /* mixed: allocations of several streams or sizes, or record_stream */
} device_use;

static void note(const mr_program_item *it, uint64_t bytes, device_use *use) {
    if (it->kind == MR_COMMAND_FREE && !it->failed) use->has_free = true;
    if (it->kind == MR_COMMAND_RECORD_STREAM) use->is_mixed = true;
    if (it->kind != MR_COMMAND_ALLOC) return;
    use->is_mixed |= use->stream != NONE && (use->stream != it->stream || use->bytes != bytes);
    use->stream = it->stream;
    use->bytes = bytes;
}

/* Whether the order may decide if the allocation fails. */
static bool is_open(const branch *b, const mr_device *device, const mr_program_item *it,
                    uint64_t bytes, device_use *use) {
    uint64_t limit = device->properties.memory_limit;
    if (bytes > limit) return false; /* it always fails */
    use->asked += bytes;
    bool is_short = it->failed || b->in_use[device->index] + use->asked > limit;
    return is_short && use->has_free && use->is_mixed;
}

void room_begin(const mr_machine *machine, branch *b) {
    for (int i = 0; i < machine->device_count; i++) b->in_use[i] = machine->devices[i]->memory.live;
}

void room_judge(explorer *e, const branch *b) {
    const mr_machine *machine = e->subject->machine;
    device_use uses[MOST_DEVICES];
    if (!e->result->complete) return;
    for (int i = 0; i < MOST_DEVICES; i++) uses[i] = (device_use){.stream = NONE};
    for (uint32_t i = 0; i < b->count; i++) {
        mr_command_id kind = mr_program_kind_at(b->program, i);
        bool is_life = mr_command_kinds[kind].part == MR_PART_MEMORY;
        if (!is_life && kind != MR_COMMAND_RECORD_STREAM) continue;
        mr_program_item it = mr_program_item_at(b->program, i);
        if (it.device >= MOST_DEVICES || it.storage == MR_PROGRAM_NONE) continue;
        uint64_t bytes = mr_program_storage_at(b->program, it.storage).bytes;
        note(&it, bytes, &uses[it.device]);
        if (it.kind != MR_COMMAND_ALLOC) continue;
        if (!is_open(b, machine->devices[it.device], &it, bytes, &uses[it.device])) continue;
        mr_site shown = explore_shown(e, it.where);
        explore_incomplete(e,
                           "memory is short, so the order may decide whether the allocation at "
                           "%s:%d fails; only what it did was followed",
                           shown.file ? shown.file : "?", shown.line);
        return;
    }
}
