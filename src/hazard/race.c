/* Races between threads of one launch of a user's kernel: src/ptx finds them while the virtual GPU runs it, and here they
 * become reports. Both sides are the same command; their places are lines of the kernel's source. */
#include "hazard/explain.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

static void fill_side(const checker *c, const mr_command *command, const actor *a, uint8_t access,
                      mr_site where, mr_hazard_side *side) {
    mr_text_copy(side->op, sizeof side->op, command->name);
    side->access = access;
    side->where = where;
    side->seq = command->seq;
    mr_hazard_stream_text(c, a, side->stream, sizeof side->stream);
}

static void tell_watcher(const checker *c, const mr_command *command, const mr_kernel_race *race) {
    if (!c->watcher.found) return;
    mr_hazard_found found = {.kind = race->is_unset_read ? MR_HAZARD_UNINITIALISED_READ
                                                         : MR_HAZARD_RACE_IN_KERNEL,
                             .first_seq = command->seq,
                             .second_seq = command->seq,
                             .first_where = race->first_where,
                             .second_where = race->second_where,
                             .bytes_first = race->first_byte,
                             .bytes_last = race->last_byte};
    c->watcher.found(c->watcher.context, &found);
}

void mr_hazard_raced(mr_observer *observer, const mr_command *command, const mr_kernel_race *race) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    mr_hazard_report draft;
    bool is_new;
    if (c->mode == MR_HAZARD_OFF) return;
    const actor *a = mr_hazard_actor_of(c, command->stream);
    if (!a) return;
    tell_watcher(c, command, race);
    memset(&draft, 0, sizeof draft);
    draft.kind = MR_HAZARD_RACE_IN_KERNEL;
    draft.reason = MR_HAZARD_BECAUSE_THREADS_NOT_ORDERED;
    fill_side(c, command, a, race->first_access, race->first_where, &draft.first);
    fill_side(c, command, a, race->second_access, race->second_where, &draft.second);
    if (race->storage) mr_hazard_storage_text(c, race->storage, draft.tensor, sizeof draft.tensor);
    else
        snprintf(draft.tensor, sizeof draft.tensor,
                 race->is_unset_read ? "memory of the kernel" : "shared memory");
    if (race->is_unset_read) { /* of shared or local memory, which the launch allocates */
        draft.kind = MR_HAZARD_UNINITIALISED_READ;
        draft.reason = MR_HAZARD_BECAUSE_NEVER_WRITTEN;
        draft.first.access = 0;
        mr_text_copy(draft.first.op, sizeof draft.first.op, "alloc");
    }
    draft.bytes_first = race->first_byte;
    draft.bytes_last = race->last_byte;
    mr_text_copy(draft.why, sizeof draft.why, race->why);
    mr_text_copy(draft.advice, sizeof draft.advice, race->advice);
    const mr_hazard_report *report = mr_hazard_report_add(c, &draft, &is_new);
    if (!report || !is_new) return;
    /* The launch was taken long ago: there is nothing to refuse, so the mode error writes it like warn. */
    bool writes = c->mode == MR_HAZARD_WARN || c->mode == MR_HAZARD_ERROR;
    if (writes && c->hooks.write) c->hooks.write(c->hooks.context, report, MR_HAZARD_NEWS_REPORT);
}
