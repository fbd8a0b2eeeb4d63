/* Barriers: see barrier.h. Threads are counted, as on devices since Volta; a thread that has exited is not waited
 * for. */
#include "ptx/run/barrier.h"

#include <stdio.h>
#include <string.h>

#include "ptx/run/fault.h"
#include "ptx/run/paths.h"
#include "ptx/run/runs.h"
#include "ptx/watch/watch.h"

static uint32_t reduced(const ptx_barrier *barrier, ptx_modifier operation) {
    switch (operation) {
    case PTX_MOD_and: return barrier->zeros == 0 ? PTX_ALL : 0;
    case PTX_MOD_or: return barrier->ones ? PTX_ALL : 0;
    default: return barrier->ones;
    }
}

static void write_reduced(ptx_warp *warp, const ptx_barrier *barrier, ptx_frame *frame,
                          const ptx_code *code, uint32_t mask) {
    if (code->run != ptx_run_barrier_red) return;
    uint32_t value = reduced(barrier, (ptx_modifier)code->more);
    char *before = warp->area[PTX_AREA_FRAME];
    warp->area[PTX_AREA_FRAME] = frame->registers;
    if (code->more == PTX_MOD_popc) {
        ptx_u32 *d = PTX_AT(ptx_u32, warp, code->d);
        for (unsigned i = 0; i < PTX_LANES; i++) d[i] = mask >> i & 1 ? value : d[i];
    } else {
        ptx_set_predicate(warp, code->d, value, mask);
    }
    warp->area[PTX_AREA_FRAME] = before;
}

static void open_barrier(ptx_run_state *run, uint32_t id) {
    ptx_barrier *barrier = &run->block.barriers[id];
    mr_ptx_watch *watch = run->launch->watch;
    if (watch) {
        ptx_watch_barrier(watch, run->block.linear, barrier->wanted ? barrier->warps : NULL,
                          run->warp_count);
        if (barrier->wanted) {
            ptx_watch_arrived(watch, run->block.linear, id, barrier->warps, run->warp_count);
        }
    }
    for (uint32_t w = 0; w < run->warp_count; w++) {
        ptx_warp *warp = &run->warps[w];
        for (uint32_t i = 0; i < warp->path_count; i++) {
            ptx_path *path = &warp->paths[i];
            if (path->state != PTX_PATH_AT_BARRIER || path->barrier != id) continue;
            write_reduced(warp, barrier, path->frame, path->code, path->mask);
            path->state = PTX_PATH_READY;
            path->code++;
            if (warp->state == PTX_WARP_BLOCKED) warp->state = PTX_WARP_READY;
        }
        if (warp->path_count > 1) ptx_unite_paths(warp);
    }
    memset(barrier, 0, sizeof *barrier);
    run->block.open_barriers--;
}

static bool is_complete(const ptx_run_state *run, const ptx_barrier *barrier) {
    return barrier->wanted ? barrier->arrived >= barrier->wanted
                           : barrier->arrived >= run->block.alive;
}

void ptx_barriers_settle(ptx_run_state *run) {
    for (uint32_t id = 0; id < PTX_BARRIERS; id++) {
        ptx_barrier *barrier = &run->block.barriers[id];
        if (barrier->open && run->block.alive && is_complete(run, barrier)) open_barrier(run, id);
    }
}

/* With checks: other lanes of the warp wait at another barrier. */
static bool differs_in_warp(ptx_warp *warp, const ptx_code *code) {
    for (uint32_t i = 0; i < warp->path_count; i++) {
        const ptx_path *path = &warp->paths[i];
        if (path->state != PTX_PATH_AT_BARRIER || path->code == code) continue;
        if (!path->code->bits && !code->bits) continue;
        char thread[40], place[256];
        ptx_thread_text(warp->run, warp->number * PTX_LANES + ptx_first_lane(path->mask), thread);
        ptx_fault(warp, code, ptx_first_lane(warp->active), MR_CODE_LAUNCH_FAILURE,
                  "waits at this barrier, while thread %s of the same warp waits at the one at %s. "
                  "All threads of the block must reach a barrier, so move it out of the condition",
                  thread, ptx_code_text(warp->run, path->code, place, sizeof place));
        return true;
    }
    return false;
}

/* The usual barrier is named by constants. */
static bool is_same_for_all(const ptx_code *code) {
    return (code->a & 3) == PTX_AREA_CONSTANT && (code->b & 3) == PTX_AREA_CONSTANT;
}

/* The lanes of `mask` come to a barrier. NULL: it failed. */
static ptx_barrier *come(ptx_warp *warp, const ptx_code *code, uint32_t mask, uint32_t *out_id) {
    unsigned first = ptx_first_lane(mask);
    uint32_t id = PTX_AT(const ptx_u32, warp, code->a)[first];
    uint32_t wanted = PTX_AT(const ptx_u32, warp, code->b)[first];
    ptx_block_run *block = warp->block;
    for (uint32_t left = is_same_for_all(code) ? 0 : mask; left; left &= left - 1) {
        unsigned lane = ptx_first_lane(left);
        uint32_t other = PTX_AT(const ptx_u32, warp, code->a)[lane];
        if (other == id && PTX_AT(const ptx_u32, warp, code->b)[lane] == wanted) continue;
        char thread[40];
        ptx_fault(warp, code, first, MR_CODE_LAUNCH_FAILURE,
                  "names barrier %u, and thread %s of the same warp names barrier %u, or another "
                  "number of threads",
                  id, ptx_thread_text(warp->run, warp->number * PTX_LANES + lane, thread), other);
        return NULL;
    }
    if (id >= PTX_BARRIERS) {
        ptx_fault(warp, code, first, MR_CODE_LAUNCH_FAILURE,
                  "waits at barrier %u; a block has barriers 0 to 15", id);
        return NULL;
    }
    if (wanted % PTX_LANES != 0) {
        ptx_fault(warp, code, first, MR_CODE_LAUNCH_FAILURE,
                  "waits at a barrier of %u threads; the number must be a multiple of 32", wanted);
        return NULL;
    }
    ptx_barrier *barrier = &block->barriers[id];
    if (warp->run->checks && differs_in_warp(warp, code)) return NULL;
    if (!barrier->open) {
        *barrier = (ptx_barrier){.open = true, .wanted = wanted, .first = code};
        block->open_barriers++;
    } else if (barrier->wanted != wanted) {
        char place[256];
        ptx_fault(warp, code, first, MR_CODE_LAUNCH_FAILURE,
                  "waits at barrier %u for %u threads, while others wait there for %u (at %s); 0 "
                  "means all of the block",
                  id, wanted, barrier->wanted,
                  ptx_code_text(warp->run, barrier->first, place, sizeof place));
        return NULL;
    }
    /* Where lanes take part in a barrier of a number of threads, the whole warp counts if it is .aligned. */
    bool whole = wanted && code->bits && mask == warp->alive;
    barrier->arrived += whole ? PTX_LANES : ptx_lane_count(mask);
    if (code->run != ptx_run_barrier_arrive) {
        barrier->warps[warp->number / 64] |= (uint64_t)1 << (warp->number % 64);
    }
    *out_id = id;
    return barrier;
}

static const ptx_code *wait_at(ptx_warp *warp, const ptx_code *code, uint32_t mask,
                               ptx_barrier *barrier, uint32_t id) {
    if (is_complete(warp->run, barrier)) {
        write_reduced(warp, barrier, warp->frame, code, mask);
        open_barrier(warp->run, id);
        if (warp->path_count && warp->active == mask) ptx_unite_with_active(warp, code + 1);
        return code + 1;
    }
    ptx_park(warp, code, PTX_PATH_AT_BARRIER);
    warp->paths[warp->path_count - 1].barrier = id;
    return ptx_next_path(warp);
}

const ptx_code *ptx_run_barrier(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    uint32_t id;
    ptx_barrier *barrier = come(warp, code, mask, &id);
    return barrier ? wait_at(warp, code, mask, barrier, id) : NULL;
}

const ptx_code *ptx_run_barrier_arrive(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    uint32_t id;
    ptx_barrier *barrier = come(warp, code, mask, &id);
    if (!barrier) return NULL;
    /* Lanes that only arrive are not among those that the barrier orders: they do not wait. */
    mr_ptx_watch *watch = warp->run->launch->watch;
    if (watch) ptx_watch_arrive(watch, warp->block->linear, warp->number, id);
    if (is_complete(warp->run, barrier)) open_barrier(warp->run, id);
    return code + 1;
}

const ptx_code *ptx_run_barrier_red(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    uint32_t id, on = ptx_predicate(warp, code->c) & mask;
    ptx_barrier *barrier = come(warp, code, mask, &id);
    if (!barrier) return NULL;
    barrier->ones += (uint32_t)__builtin_popcount(on);
    barrier->zeros += (uint32_t)__builtin_popcount(mask & ~on);
    return wait_at(warp, code, mask, barrier, id);
}

/* ---- within a warp */

/* The lanes that each lane of a path syncs with. */
static void add_members(ptx_warp *warp, const ptx_code *code, uint32_t mask,
                        uint32_t members[PTX_LANES]) {
    const ptx_u32 *from = PTX_AT(const ptx_u32, warp, code->c);
    for (uint32_t left = mask; left; left &= left - 1) {
        members[ptx_first_lane(left)] = from[ptx_first_lane(left)];
    }
}

/* Lanes that come together here may belong to several groups, as tiles of a warp: each group is a sync of its own. */
static void tell_sync(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    uint32_t members[PTX_LANES] = {0};
    char *registers = warp->area[PTX_AREA_FRAME];
    add_members(warp, code, mask, members);
    for (uint32_t i = 0; warp->gathered && i < warp->path_count; i++) {
        const ptx_path *path = &warp->paths[i];
        if (path->state != PTX_PATH_AT_SYNC || !(path->mask & mask)) continue;
        warp->area[PTX_AREA_FRAME] = path->frame->registers;
        add_members(warp, path->code, path->mask, members);
    }
    warp->area[PTX_AREA_FRAME] = registers;
    for (uint32_t left = mask; left;) {
        unsigned first = ptx_first_lane(left);
        uint32_t group = 1u << first;
        for (unsigned i = first + 1; i < PTX_LANES; i++) {
            if (left >> i & 1 && members[i] == members[first]) group |= 1u << i;
        }
        ptx_watch_warp_sync(warp->run->launch->watch, warp->block->linear, warp->number, group);
        left &= ~group;
    }
}

const ptx_code *ptx_run_warp_barrier(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    if (!warp->gathered && (ptx_members(warp, code, mask) & ~mask)) {
        ptx_park(warp, code, PTX_PATH_AT_SYNC);
        return ptx_next_path(warp);
    }
    if (warp->run->launch->watch) tell_sync(warp, code, mask);
    return code + 1;
}

/* ---- deadlocks */

static void add_waiting(ptx_run_state *run, char *out, size_t size, const ptx_warp *warp,
                        const ptx_path *path) {
    char thread[40], place[256];
    size_t used = strlen(out);
    snprintf(out + used, size - used, "%sthread %s at %s", used ? ", " : "",
             ptx_thread_text(run, warp->number * PTX_LANES + ptx_first_lane(path->mask), thread),
             ptx_code_text(run, path->code, place, sizeof place));
}

void ptx_fault_deadlock(ptx_run_state *run) {
    enum { MOST = 6 };
    const ptx_code *told[MOST];
    uint32_t count = 0;
    char waiting[1024] = "";
    ptx_warp *first = NULL;
    for (uint32_t w = 0; w < run->warp_count; w++) {
        ptx_warp *warp = &run->warps[w];
        for (uint32_t i = 0; i < warp->path_count; i++) {
            const ptx_path *path = &warp->paths[i];
            bool is_told = false;
            for (uint32_t k = 0; k < count; k++) is_told |= told[k] == path->code;
            if (is_told || count == MOST) continue;
            told[count++] = path->code;
            if (!first) first = warp;
            add_waiting(run, waiting, sizeof waiting, warp, path);
        }
    }
    char block[40];
    ptx_fault_block(first, told[0], MR_CODE_LAUNCH_TIMEOUT,
                    "block %s waits for ever: %s; %u of its %u threads have exited, and the others "
                    "will not come to these barriers",
                    ptx_block_text(run, block), waiting, run->threads - run->block.alive,
                    run->threads);
}
