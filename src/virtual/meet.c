/* Meetings (model/meeting.h) on the virtual GPU: their members' works begin apart and end together (R61).
 *
 * Under the timed chooser a member begins when its kernel has its multiprocessors. It holds them until the meeting is
 * over, like a kernel that waits for its peers (R64a). Observers are told of the part that moves data. Under the other
 * choosers, which run one piece of work at a time, a member begins as soon as it may run, which is no choice. The work
 * of the member that was submitted last carries the meeting out in one step, once all have begun. */
#include "virtual/state.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buffer.h"

bool mr_virtual_meet_join(vgpu *gpu, work *w) {
    const mr_meeting *meeting = w->command->meeting;
    meet *m = gpu->meets; /* its members are submitted one after the other */
    if (!m || m->meeting != meeting) {
        m = mr_slab_alloc(&gpu->meet_slab);
        if (!m) return false;
        *m = (meet){.meeting = meeting, .missing = meeting->size, .next = gpu->meets};
        if (m->next) m->next->previous = m;
        gpu->meets = m;
    }
    w->u.member.meet = m;
    w->u.member.begun = false;
    w->u.member.next = m->first;
    m->first = w;
    if (!mr_command_waits_for_others(w->command)) m->last = w;
    return true;
}

static void remove_meet(vgpu *gpu, meet *gone) {
    if (gone->previous) gone->previous->next = gone->next;
    else gpu->meets = gone->next;
    if (gone->next) gone->next->previous = gone->previous;
    mr_slab_free(&gpu->meet_slab, gone);
}

void mr_virtual_meets_drop(vgpu *gpu) {
    while (gpu->meets) remove_meet(gpu, gpu->meets);
}

/* The meeting begins with its last member: until then the others have waited for that one. */
static void begin_all(const meet *m) {
    for (work *w = m->first; w; w = w->u.member.next) {
        for (chunk *c = w->body ? w->body->chunks : NULL; c; c = c->next) c->start = m->newest;
        if (w->command->seq == m->newest_seq) continue;
        w->time = m->newest;
        w->held_by = MR_CAUSE_COLLECTIVE;
        w->holder = m->newest_seq;
    }
}

work *mr_virtual_meet_begin(work *w, uint64_t now) {
    meet *m = w->u.member.meet;
    w->state = WORK_STARTED;
    w->u.member.begun = true;
    if (m->newest <= now) {
        m->newest = now;
        m->newest_seq = w->command->seq;
    }
    if (--m->missing) return NULL;
    begin_all(m);
    return m->last;
}

work *mr_virtual_meet_end(vgpu *gpu, work *last) {
    meet *m = last->u.member.meet;
    work *first = m->first;
    remove_meet(gpu, m);
    return first;
}

work *mr_virtual_meet_waits_for(const work *w) {
    const meet *m = w->u.member.meet;
    if (mr_command_waits_for_others(w->command)) return m->last;
    for (work *other = m->first; other; other = other->u.member.next)
        if (other != w && !other->u.member.begun) return other;
    return NULL;
}

bool mr_virtual_meet_interrupt(work *w) {
    meet *m = w->u.member.meet;
    if (!m->missing) return false;
    if (w->u.member.begun) m->missing++;
    w->u.member.begun = false;
    w->state = WORK_READY;
    return true;
}

/* ---- what members wait for, when nothing can go on */

static uint64_t begun_members(const meet *m) {
    uint64_t begun = 0;
    for (const work *w = m->first; w; w = w->u.member.next)
        if (w->u.member.begun) begun |= (uint64_t)1 << w->command->member;
    return begun;
}

static void tell_members(const mr_meeting *meeting, uint64_t members, mr_buffer *out) {
    mr_buffer_puts(out, members & (members - 1) ? "ranks" : "rank");
    for (const char *between = " "; members; members &= members - 1, between = ", ") {
        const mr_meeting_member *member = &meeting->members[__builtin_ctzll(members)];
        mr_buffer_printf(out, "%s%u", between, member->rank);
        const mr_command *command = member->command;
        if (!command || !command->where.file) continue;
        mr_buffer_printf(out, " (%.100s:%d", command->where.file, command->where.line);
        if (command->launched.file)
            mr_buffer_printf(out, ", launched at %.100s:%d", command->launched.file,
                             command->launched.line);
        mr_buffer_puts(out, ")");
    }
}

static void tell_meet(const meet *m, uint64_t begun, mr_buffer *out) {
    const mr_meeting *meeting = m->meeting;
    bool several = begun & (begun - 1);
    mr_buffer_printf(out, "%s%s #%" PRIu64 " of %s: ", out->size ? "; " : "",
                     mr_collective_text(meeting->what), meeting->number, meeting->title);
    tell_members(meeting, begun, out);
    mr_buffer_puts(out, several ? " hold their multiprocessors and wait for "
                                : " holds its multiprocessors and waits for ");
    tell_members(meeting, mr_meeting_all(meeting) & ~begun, out);
}

#define MOST_TOLD 4

/* The oldest of those that hold multiprocessors. The list has the newest first. */
mr_status mr_virtual_meet_deadlock(const vgpu *gpu) {
    mr_buffer text = {0};
    uint32_t holding = 0, at = 0;
    for (const meet *m = gpu->meets; m; m = m->next) holding += begun_members(m) != 0;
    for (uint32_t told = 0; told < MOST_TOLD && told < holding; told++) {
        at = holding;
        for (const meet *m = gpu->meets; m; m = m->next) {
            uint64_t begun = begun_members(m);
            if (begun && --at == told) tell_meet(m, begun, &text);
        }
    }
    if (holding > MOST_TOLD)
        mr_buffer_printf(&text, "; and %u more in the same way", holding - MOST_TOLD);
    mr_status status = mr_fail(MR_CODE_DEADLOCK,
                               "deadlock: collectives wait for each other's multiprocessors "
                               "(R64a): %s. Submit the collectives of all communicators in one "
                               "order on every device, and let each wait for the one before. "
                               "mr.reset() ends the deadlock",
                               text.data ? text.data : "");
    mr_buffer_free(&text);
    return status;
}
