/* Numbers the storages of a recorded program by what the program asks for.
 *
 * While it is recorded, an object is numbered when it is met. A host function may meet memory first, and when it runs
 * depends on the schedule. So at the end the storages are numbered again. This is in the order in which the script's
 * own items name them, then those that only host functions use, in the order in which these were submitted. Two runs
 * that ask for the same, up to some item, then have the same numbers up to there. Streams and events are met by the
 * script's own items only: a host function may use neither. */
#include <stdlib.h>
#include <string.h>

#include "program/recorder.h"

typedef struct {
    mr_program *program;
    uint32_t *number_of; /* by slot so far */
    uint32_t next;
} numbering;

static bool names_storage(const item *it) {
    return it->object_is == OBJECT_STORAGE && it->object != NO_SLOT;
}

static void meet(numbering *n, uint32_t slot) {
    if (n->number_of[slot] == NO_SLOT) n->number_of[slot] = n->next++;
}

static void meet_all(numbering *n, const item *it) {
    const mr_program *p = n->program;
    for (uint32_t i = 0; i < it->operand_count; i++)
        meet(n, p->views.items[p->operands.items[it->first_operand + i].view].storage);
    if (names_storage(it)) meet(n, it->object);
}

static void number(numbering *n) {
    const mr_program *p = n->program;
    for (size_t i = 0; i < p->items.count; i++) meet_all(n, &p->items.items[i]);
    for (size_t i = 0; i < p->items.count; i++) {
        const item *function = &p->items.items[i];
        for (uint32_t k = 0; k < function->inner_count; k++)
            meet_all(n, &p->inner.items[function->inner + k]);
    }
    for (uint32_t slot = 0; slot < p->storages.count; slot++) meet(n, slot);
}

static void rename_in(const numbering *n, item_list *items) {
    for (size_t i = 0; i < items->count; i++)
        if (names_storage(&items->items[i]))
            items->items[i].object = n->number_of[items->items[i].object];
}

static void move_slots(mr_recorder *r, const numbering *n, storage_slot *slots,
                       mr_storage **alive) {
    mr_program *p = r->program;
    size_t count = p->storages.count;
    for (size_t i = 0; i < count; i++) {
        slots[n->number_of[i]] = p->storages.items[i];
        alive[n->number_of[i]] = r->alive.items[i];
    }
    memcpy(p->storages.items, slots, count * sizeof *slots);
    memcpy(r->alive.items, alive, count * sizeof *alive);
    for (size_t i = 0; i < p->views.count; i++)
        p->views.items[i].storage = n->number_of[p->views.items[i].storage];
    rename_in(n, &p->items);
    rename_in(n, &p->inner);
    for (size_t i = 0; i < p->drops.count; i++)
        if (p->drops.items[i].kind == MR_COMMAND_HOST_FREE)
            p->drops.items[i].slot = n->number_of[p->drops.items[i].slot];
}

void mr_record_number(mr_recorder *r) {
    size_t count = r->program->storages.count;
    if (!count) return;
    numbering n = {.program = r->program, .number_of = malloc(count * sizeof *n.number_of)};
    storage_slot *slots = malloc(count * sizeof *slots);
    mr_storage **alive = malloc(count * sizeof *alive);
    if (n.number_of && slots && alive) {
        for (size_t i = 0; i < count; i++) n.number_of[i] = NO_SLOT;
        number(&n);
        move_slots(r, &n, slots, alive);
    } else {
        r->failed = true;
    }
    free(n.number_of);
    free(slots);
    free(alive);
}
