/* Numbers the storages of a recorded program by its requests.
 *
 * During the recording, an object is numbered at its first use. The first use of memory may be in a host function,
 * whose time depends on the schedule. So at the end the storages are numbered again, in the order in which the script's
 * own items use them. Those that only host functions use follow, in the order in which these were submitted. Two runs
 * with the same requests up to some item then have the same numbers up to there. Streams and events are used by the
 * script's own items only: a host function may use neither. */
#include <stdlib.h>
#include <string.h>

#include "program/recorder.h"

static bool names_storage(const item *it) {
    return it->object_is == OBJECT_STORAGE && it->object != NO_SLOT;
}

static void meet(mr_recorder *r, uint32_t slot) {
    if (slot < r->numbers.count && r->numbers.items[slot] == NO_SLOT)
        r->numbers.items[slot] = r->next_number++;
}

void mr_record_meet(mr_recorder *r, const item *it) {
    const mr_program *p = r->program;
    for (uint32_t i = 0; i < it->operand_count && !r->failed; i++)
        meet(r, p->views.items[p->operands.items[it->first_operand + i].view].storage);
    if (names_storage(it)) meet(r, it->object);
}

/* Numbers storages that only host functions use, or no item uses. */
static void meet_rest(mr_recorder *r) {
    const mr_program *p = r->program;
    for (size_t i = 0; i < p->items.count && p->inner.count; i++) {
        const item *function = &p->items.items[i];
        for (uint32_t k = 0; k < function->inner_count; k++)
            mr_record_meet(r, &p->inner.items[function->inner + k]);
    }
    for (uint32_t slot = 0; slot < p->storages.count; slot++) meet(r, slot);
}

static bool is_numbered(const mr_recorder *r) {
    for (uint32_t slot = 0; slot < r->numbers.count; slot++)
        if (r->numbers.items[slot] != slot) return false;
    return true;
}

static void rename_in(const mr_recorder *r, item_list *items) {
    for (size_t i = 0; i < items->count; i++)
        if (names_storage(&items->items[i]))
            items->items[i].object = r->numbers.items[items->items[i].object];
}

static void move_slots(mr_recorder *r, storage_slot *slots, mr_storage **alive) {
    mr_program *p = r->program;
    const uint32_t *number_of = r->numbers.items;
    size_t count = p->storages.count;
    for (size_t i = 0; i < count; i++) {
        slots[number_of[i]] = p->storages.items[i];
        alive[number_of[i]] = r->alive.items[i];
    }
    memcpy(p->storages.items, slots, count * sizeof *slots);
    memcpy(r->alive.items, alive, count * sizeof *alive);
    for (size_t i = 0; i < p->views.count; i++)
        p->views.items[i].storage = number_of[p->views.items[i].storage];
    rename_in(r, &p->items);
    rename_in(r, &p->inner);
    for (size_t i = 0; i < p->drops.count; i++)
        if (p->drops.items[i].kind == MR_COMMAND_HOST_FREE)
            p->drops.items[i].slot = number_of[p->drops.items[i].slot];
}

void mr_record_number(mr_recorder *r) {
    size_t count = r->program->storages.count;
    meet_rest(r);
    if (is_numbered(r)) return;
    storage_slot *slots = malloc(count * sizeof *slots);
    mr_storage **alive = malloc(count * sizeof *alive);
    if (slots && alive) move_slots(r, slots, alive);
    else r->failed = true;
    free(slots);
    free(alive);
}
