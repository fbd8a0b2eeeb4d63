/* Compares the final state of a replayed program with the recorded one. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/number.h"
#include "model/backend.h"
#include "program/player.h"

__attribute__((format(printf, 4, 5))) static void differs_at_end(const mr_player *p,
                                                                 mr_difference *d,
                                                                 mr_difference_kind kind,
                                                                 const char *format, ...) {
    if (d->kind != MR_DIFFERS_NOTHING) return;
    d->kind = kind;
    d->item = p->program->items.count;
    va_list args;
    va_start(args, format);
    mr_number_formatv(d->text, sizeof d->text, format, args);
    va_end(args);
}

static void compare_clocks(const mr_player *p, mr_difference *d) {
    const mr_program *program = p->program;
    uint64_t now = p->machine->backend->host_time(p->machine) - p->start_time;
    uint64_t then = program->end_time - program->start_time;
    if (now != then)
        differs_at_end(p, d, MR_DIFFERS_TIME,
                       "at the end the host's clock is at %" PRIu64 " ns, and was at %" PRIu64, now,
                       then);
    if (!program->from_the_start) return;
    uint64_t device = p->machine->backend->simulator->device_time(p->machine);
    if (device != program->end_device_time)
        differs_at_end(p, d, MR_DIFFERS_TIME,
                       "at the end the devices are at %" PRIu64 " ns, and were at %" PRIu64, device,
                       program->end_device_time);
}

void mr_player_compare_end(const mr_player *p, mr_difference *d) {
    const mr_program *program = p->program;
    mr_status lost = p->machine->lost;
    if ((lost != NULL) != program->lost || (lost && lost->code != program->lost_code))
        differs_at_end(p, d, MR_DIFFERS_ERROR, "at the end: %.200s, and recorded was %s",
                       lost ? lost->message : "no error",
                       program->lost ? mr_code_text(program->lost_code) : "no error");
    compare_clocks(p, d);
    for (size_t i = 0; i < program->storages.count; i++) {
        const storage_slot *slot = &program->storages.items[i];
        if (!slot->live) continue;
        const mr_storage *storage = mr_player_storage(p, (uint32_t)i);
        if (storage && mr_value_hash(0, storage->host, storage->bytes) == slot->last_hash) continue;
        differs_at_end(p, d, MR_DIFFERS_BYTES,
                       "at the end the %" PRIu64 " bytes of the tensor made at %s:%d %s",
                       slot->bytes, slot->made.file ? slot->made.file : "?", slot->made.line,
                       storage ? "differ" : "are gone");
    }
}
