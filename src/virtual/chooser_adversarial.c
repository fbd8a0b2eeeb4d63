/* The adversarial chooser: runs a consumer as early as the rules allow, so that a missing wait shows as a wrong value.
 *
 * It uses the graph of pending work, not only the offers. In this order:
 * 1. operations that touch the same bytes as an older one, without an order: newest first, each after exactly the work
 *    that it must wait for. The older one then comes too late;
 * 2. work that the host waits for;
 * 3. the other operations, newest first. Those that write host memory come last: their consumer is the host, which
 *    chooses its own time. Records, waits, allocations and frees have no effect that could be missed: they run only on
 *    the way to something else.
 *
 * A stream's next allocation gets freed memory that pending work of another stream uses: the pool asks for it
 * (`seeks_used_memory`). Otherwise it would depend on what Lua's collector has freed in between.
 *
 * A conflict is looked for once, when a work is first seen. The older one may be done when its turn comes: then only
 * the order of harmless steps changes.
 *
 * Invariant: `cursor` and the works of spans are pending; only this file's own steps and withdraw() end works. */
#include <stdlib.h>
#include <string.h>

#include "tensor/tensor.h"
#include "virtual/chooser.h"

#define WINDOW    1024 /* number of newest works that are searched for conflicts */
#define LOOK_BACK 256  /* accesses with which each is compared */

typedef struct {
    uintptr_t first, end;
    work *work; /* NULL once it is done */
    uint64_t seq;
    bool write;
} span;

typedef enum { CONFLICTING, GOAL, REST, LAZY } phase;

typedef struct {
    mr_chooser base;
    vgpu *gpu;
    struct search {
        uint64_t seen; /* seq of the newest work that has been looked at */
        work *cursor;  /* the next candidate; NULL: none is left in this phase */
        phase phase;
        size_t conflicts; /* works pending that are marked as conflicting */
    } now;
    /* the bytes that these works touch, oldest first; its memory never shrinks */
    MR_VEC(span) spans;
} adversarial_chooser;

/* ---- conflicts */

static bool overlaps(const span *a, const span *b) {
    return a->first < b->end && b->first < a->end && (a->write || b->write);
}

static bool ordered(work *earlier, work *later) {
    return mr_virtual_ordered_after(later, earlier->queue, earlier->index);
}

static bool conflicts_with_older(const adversarial_chooser *a, const span *mine, size_t own) {
    size_t oldest = own > LOOK_BACK ? own - LOOK_BACK : 0;
    for (size_t i = own; i-- > oldest;) {
        const span *other = &a->spans.items[i];
        if (other->work && overlaps(mine, other) && !ordered(other->work, mine->work)) return true;
    }
    return false;
}

static void add_spans(adversarial_chooser *a, work *w) {
    const mr_command *command = w->command;
    size_t own = a->spans.count;
    for (uint32_t i = 0; i < command->operand_count; i++) {
        const mr_tensor *t = command->operands[i].tensor;
        uint64_t first, end;
        if (w->staged && i == 1) continue; /* its source was read at the call */
        mr_tensor_extent(t, &first, &end);
        uintptr_t base = (uintptr_t)t->storage->host;
        bool write = (command->operands[i].access & MR_WRITE) != 0;
        span mine = {base + first, base + end, w, command->seq, write};
        if (!w->conflicting && conflicts_with_older(a, &mine, own)) {
            w->conflicting = true;
            a->now.conflicts++;
        }
        if (!mr_vec_push(&a->spans, mine)) return; /* one conflict fewer is seen */
    }
}

/* Drops the spans of what is done once they are many. */
static void tidy(adversarial_chooser *a) {
    size_t kept = 0;
    if (a->spans.count < 4 * WINDOW) return;
    for (size_t i = 0; i < a->spans.count; i++)
        if (a->spans.items[i].work) a->spans.items[kept++] = a->spans.items[i];
    /* Pending work beyond the window is too old to be looked at. */
    size_t surplus = kept > 2 * WINDOW ? kept - 2 * WINDOW : 0;
    memmove(a->spans.items, a->spans.items + surplus, (kept - surplus) * sizeof *a->spans.items);
    a->spans.count = kept - surplus;
}

/* Checks the works submitted since the last time. */
static void find_conflicts(adversarial_chooser *a) {
    work *w = a->gpu->newest;
    tidy(a);
    for (int i = 1; w->older && w->older->command->seq > a->now.seen && i < WINDOW; i++)
        w = w->older;
    for (; w; w = w->newer)
        if (is_body(w->command)) add_spans(a, w);
    a->now.seen = a->gpu->newest->command->seq;
}

static void forget_spans(adversarial_chooser *a, uint64_t seq) {
    size_t low = 0, high = a->spans.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (a->spans.items[middle].seq < seq) low = middle + 1;
        else high = middle;
    }
    for (; low < a->spans.count && a->spans.items[low].seq == seq; low++)
        a->spans.items[low].work = NULL;
}

/* ---- choosing */

static bool writes_host_memory(const work *w) {
    const mr_command *command = w->command;
    for (uint32_t i = 0; i < command->operand_count; i++)
        if (command->operands[i].access & MR_WRITE &&
            command->operands[i].tensor->storage->kind != MR_MEMORY_DEVICE)
            return true;
    return false;
}

/* Whether it is never chosen: a marker, or a member of a meeting, which the last member carries out. */
static bool is_passive(const work *w) {
    return mr_command_is(w->command, MR_TRAIT_MARKER) || mr_command_waits_for_others(w->command);
}

/* The first work to run before `w` can; NULL: it is lazy, or not submitted yet. */
static work *way_to(work *w, bool lazy_too) {
    for (work *before; (before = mr_virtual_newest_predecessor(w)); w = before)
        if (!lazy_too && writes_host_memory(before)) return NULL;
    return mr_command_waits_for_others(w->command) ? NULL : w;
}

static bool is_candidate(const work *w, phase of) {
    const mr_command *command = w->command;
    if (of == CONFLICTING) return w->conflicting;
    switch (command->kind) {
    case MR_COMMAND_OP:
    case MR_COMMAND_COPY: return !writes_host_memory(w);
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_FAULT: return true;
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return false;
}

/* Markers are not candidates, and are completed without being chosen: the cursor must not rest on one. */
static work *skip_markers(work *w) {
    while (w && is_passive(w)) w = w->older;
    return w;
}

static work *next_candidate(adversarial_chooser *a) {
    for (; a->now.cursor; a->now.cursor = skip_markers(a->now.cursor->older)) {
        work *w = is_candidate(a->now.cursor, a->now.phase) ? way_to(a->now.cursor, false) : NULL;
        if (w) return w;
    }
    return NULL;
}

static void enter(adversarial_chooser *a, phase of) {
    a->now.phase = of;
    a->now.cursor = skip_markers(a->gpu->newest);
}

static void look_around(adversarial_chooser *a) {
    if (a->gpu->newest->command->seq <= a->now.seen) return;
    find_conflicts(a);
    enter(a, CONFLICTING);
}

static work *choose(adversarial_chooser *a, work *goal) {
    work *w;
    look_around(a);
    if (a->now.phase == CONFLICTING) {
        if (a->now.conflicts && (w = next_candidate(a))) return w;
        enter(a, GOAL);
    }
    if (goal && (w = way_to(goal, true))) return w;
    if (a->now.phase == GOAL) enter(a, REST);
    if (a->now.phase == REST) {
        if ((w = next_candidate(a))) return w;
        enter(a, LAZY);
    }
    for (w = a->gpu->oldest; w;
         w = w->newer) { /* the oldest, as its predecessors are older; or the first that can */
        work *first = way_to(w, true);
        if (first) return first;
    }
    return NULL;
}

/* ---- the chooser */

static void leave_behind(adversarial_chooser *a, const work *w) {
    if (a->now.cursor == w) a->now.cursor = skip_markers(w->older);
    if (w->conflicting) a->now.conflicts--;
    forget_spans(a, w->command->seq);
}

/* The step of `w`, which with a meeting's last member is that of all members: no other step completes them. */
static void leave_step_behind(adversarial_chooser *a, const work *w) {
    if (!w->command->meeting) {
        leave_behind(a, w);
        return;
    }
    for (const work *member = w->u.member.meet->first; member; member = member->u.member.next)
        leave_behind(a, member);
}

static bool offer(mr_chooser *chooser, const mr_device_step *step) {
    (void)chooser, (void)step; /* what is offered is what is pending and waits for nothing */
    return true;
}

static bool take(mr_chooser *chooser, const mr_moment *moment, mr_device_step *out_step) {
    adversarial_chooser *a = (adversarial_chooser *)chooser;
    if (!a->gpu->oldest || moment->point <= MR_CHOICE_ACCESS) return false;
    if (moment->point == MR_CHOICE_QUERY && moment->taken) return false;
    work *w = choose(a, moment->goal);
    if (!w) return false;
    leave_step_behind(a, w);
    *out_step = (mr_device_step){w->time, w->command, w, NULL};
    return true;
}

static void withdraw(mr_chooser *chooser, const void *gone) {
    leave_behind((adversarial_chooser *)chooser, gone);
}

static void clear(mr_chooser *chooser) {
    adversarial_chooser *a = (adversarial_chooser *)chooser;
    a->now.seen = 0;
    a->now.conflicts = a->spans.count = 0;
    for (work *w = a->gpu->oldest; w; w = w->newer) w->conflicting = false;
    a->now.cursor = NULL;
    a->now.phase = CONFLICTING;
}

MR_CHOOSER_STATE(adversarial_chooser, now, spans)

mr_status mr_virtual_chooser_adversarial(vgpu *gpu, mr_chooser **out_chooser) {
    adversarial_chooser *chooser = calloc(1, sizeof *chooser);
    if (!chooser) return mr_no_memory("for a chooser");
    chooser->base = (mr_chooser){.name = "adversarial",
                                 .whole = true,
                                 .seeks_used_memory = true,
                                 .offer = offer,
                                 .take = take,
                                 .withdraw = withdraw,
                                 .clear = clear,
                                 .destroy = destroy,
                                 .saved_size = saved_size,
                                 .save = save,
                                 .load = load};
    chooser->gpu = gpu;
    *out_chooser = &chooser->base;
    return MR_OK;
}
