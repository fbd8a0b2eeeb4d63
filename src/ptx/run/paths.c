/* Paths, joins and frames: see warp.h and paths.h. */
#include "ptx/run/paths.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/run/fault.h"
#include "ptx/run/memory.h"

/* A path that waits for lanes of its own warp may wait for ones that wait at a join for it. After so many pauses in a
 * row they go on without it. */
#define PATIENCE      64
#define IDLE_PATIENCE 2 /* where it is known that the path only waits */

/* ---- frames and joins, which are used again */

static void *own(ptx_run_state *run, size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory) return NULL;
    if (!mr_vec_push(&run->owned, memory)) {
        free(memory);
        return NULL;
    }
    return memory;
}

ptx_frame *ptx_frame_take(ptx_run_state *run, const ptx_routine *routine) {
    ptx_frame **list = &run->free_frames[routine - run->module->routines];
    ptx_frame *frame = *list;
    if (frame) {
        *list = frame->next_free;
    } else {
        size_t head = (sizeof *frame + 63) / 64 * 64;
        frame = own(run, head + routine->frame_bytes);
        if (!frame) return NULL;
        memset(frame, 0, head + routine->frame_bytes);
        frame->registers = (char *)frame + head;
        frame->routine = routine;
    }
    frame->caller = NULL;
    frame->call = NULL;
    frame->local_base = frame->depth = 0;
    return frame;
}

static void give_frame(ptx_run_state *run, ptx_frame *frame) {
    ptx_frame **list = &run->free_frames[frame->routine - run->module->routines];
    frame->next_free = *list;
    *list = frame;
}

static ptx_join *take_join(ptx_warp *warp) {
    ptx_run_state *run = warp->run;
    if (!run->free_joins) {
        enum { CHUNK = 64 };
        ptx_join *chunk = own(run, CHUNK * sizeof *chunk);
        if (!chunk) {
            ptx_fault_memory(warp);
            return NULL;
        }
        for (int i = 0; i < CHUNK; i++) {
            chunk[i].outer = run->free_joins;
            run->free_joins = &chunk[i];
        }
    }
    ptx_join *join = run->free_joins;
    run->free_joins = join->outer;
    return join;
}

static void give_join(ptx_warp *warp, ptx_join *join) {
    if (join->callee) give_frame(warp->run, join->callee);
    join->outer = warp->run->free_joins;
    warp->run->free_joins = join;
}

/* ---- paths */

static void add_path(ptx_warp *warp, ptx_path path) {
    warp->paths[warp->path_count++] = path;
}

static const ptx_code *resume(ptx_warp *warp, uint32_t index) {
    ptx_path path = warp->paths[index];
    warp->path_count--;
    memmove(&warp->paths[index], &warp->paths[index + 1], (warp->path_count - index) * sizeof path);
    warp->active = path.mask;
    warp->frame = path.frame;
    warp->area[PTX_AREA_FRAME] = path.frame->registers;
    warp->join = path.join;
    warp->state = PTX_WARP_READY;
    return path.code;
}

void ptx_park(ptx_warp *warp, const ptx_code *code, ptx_path_state state) {
    add_path(warp, (ptx_path){.code = code,
                              .mask = warp->active,
                              .state = state,
                              .frame = warp->frame,
                              .join = warp->join});
    warp->active = 0;
}

void ptx_pause(ptx_warp *warp, const ptx_code *code) {
    ptx_park(warp, code, PTX_PATH_READY);
    ptx_path path = warp->paths[warp->path_count - 1];
    memmove(&warp->paths[1], &warp->paths[0], (warp->path_count - 1) * sizeof path);
    warp->paths[0] = path;
    warp->state = PTX_WARP_READY;
}

/* The lanes that have arrived go on after the join, which is no longer needed. */
static void complete(ptx_warp *warp, ptx_join *join) {
    add_path(warp, (ptx_path){.code = join->code,
                              .mask = join->arrived,
                              .state = PTX_PATH_READY,
                              .frame = join->frame,
                              .join = join->outer});
    give_join(warp, join);
    warp->since_join = 0;
}

/* Lanes that will not come to the joins from `join` on outwards, up to `end`. */
static void expect_no_more(ptx_warp *warp, ptx_join *join, const ptx_join *end, uint32_t lanes) {
    while (join != end) {
        ptx_join *outer = join->outer;
        join->expected &= ~lanes;
        if (join->expected == 0) give_join(warp, join);
        else if (join->expected == join->arrived) complete(warp, join);
        join = outer;
    }
}

static const ptx_code *continue_at(ptx_warp *warp, const ptx_code *code) {
    return warp->active ? code : ptx_next_path(warp);
}

/* Lanes of the path that runs arrive at its innermost join. */
static void arrive(ptx_warp *warp, uint32_t lanes) {
    ptx_join *join = warp->join;
    join->arrived |= lanes;
    warp->active &= ~lanes;
    if (join->arrived == join->expected) complete(warp, join);
}

const ptx_code *ptx_diverge(ptx_warp *warp, uint32_t to_target, const ptx_code *target,
                            const ptx_code *other, const ptx_code *join) {
    ptx_join *inner = warp->join;
    if (join && !(inner && inner->code == join && inner->frame == warp->frame)) {
        ptx_join *made = take_join(warp);
        if (!made) return NULL;
        *made = (ptx_join){
            .code = join, .frame = warp->frame, .expected = warp->active, .outer = inner};
        warp->join = made;
    }
    if (join && target == join) {
        arrive(warp, to_target);
        return other;
    }
    uint32_t rest = warp->active & ~to_target;
    if (join && other == join) {
        arrive(warp, rest);
        return target;
    }
    add_path(warp, (ptx_path){.code = target,
                              .mask = to_target,
                              .state = PTX_PATH_READY,
                              .frame = warp->frame,
                              .join = warp->join});
    warp->active = rest;
    return other;
}

const ptx_code *ptx_arrive(ptx_warp *warp, const ptx_code *code) {
    while (warp->join && warp->join->code == code && warp->join->frame == warp->frame) {
        ptx_join *join = warp->join;
        uint32_t lanes = warp->active;
        if ((join->arrived | lanes) != join->expected) {
            arrive(warp, lanes);
            return ptx_next_path(warp);
        }
        /* The usual end: the last lanes come, and all go on as one path. */
        warp->active = join->expected;
        warp->join = join->outer;
        warp->since_join = 0;
        give_join(warp, join);
    }
    return code + 1;
}

const ptx_code *ptx_enter(ptx_warp *warp, const ptx_code *code, const ptx_routine *routine,
                          const ptx_code *back) {
    ptx_frame *frame = ptx_frame_take(warp->run, routine), *caller = warp->frame;
    ptx_join *join = frame ? take_join(warp) : NULL;
    if (!join) return ptx_fault_memory(warp);
    *join = (ptx_join){.code = back,
                       .frame = caller,
                       .callee = frame,
                       .expected = warp->active,
                       .outer = warp->join};
    frame->caller = caller;
    frame->call = code->call;
    frame->depth = caller->depth + 1;
    frame->local_base = caller->local_base + caller->routine->local_bytes;
    warp->join = join;
    warp->frame = frame;
    warp->area[PTX_AREA_FRAME] = frame->registers;
    uint64_t top = (uint64_t)frame->local_base + routine->local_bytes;
    uint64_t most = warp->run->launch->device.stack_bytes;
    /* A frame without variables still takes room, as a return address does. */
    if (frame->depth > (most ? most : 64 * 1024) / 16) {
        ptx_fault(warp, code, ptx_first_lane(warp->active), MR_CODE_LAUNCH_FAILURE,
                  "has no stack left: its calls are %u deep; a recursion that does not end?",
                  frame->depth);
        return NULL;
    }
    if (!ptx_local_grow(warp, code, warp->active, top)) return NULL;
    if (top > warp->local_used) warp->local_used = (uint32_t)top;
    ptx_local_forget(warp, frame->local_base, routine->local_bytes, warp->active);
    return routine->codes;
}

/* The join of the call in whose frame the path runs. */
static ptx_join *join_of_call(const ptx_warp *warp) {
    ptx_join *join = warp->join;
    while (join->callee != warp->frame) join = join->outer;
    return join;
}

const ptx_code *ptx_leave(ptx_warp *warp, const ptx_code *next, uint32_t mask) {
    ptx_join *call = join_of_call(warp);
    if (warp->join == call && (call->arrived | mask) == call->expected && mask == warp->active) {
        warp->active = call->expected;
        warp->frame = call->frame;
        warp->area[PTX_AREA_FRAME] = call->frame->registers;
        warp->join = call->outer;
        const ptx_code *back = call->code;
        give_join(warp, call);
        return back;
    }
    expect_no_more(warp, warp->join, call, mask);
    if (warp->active == mask) warp->join = call;
    call->arrived |= mask;
    warp->active &= ~mask;
    if (call->arrived == call->expected) complete(warp, call);
    return continue_at(warp, next);
}

const ptx_code *ptx_exit_lanes(ptx_warp *warp, const ptx_code *next, uint32_t mask) {
    warp->alive &= ~mask;
    warp->active &= ~mask;
    warp->block->alive -= ptx_lane_count(mask);
    expect_no_more(warp, warp->join, NULL, mask);
    return continue_at(warp, next);
}

/* ---- what runs next */

uint32_t ptx_members(const ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    const ptx_u32 *members = PTX_AT(const ptx_u32, warp, code->c);
    uint32_t all = 0;
    for (unsigned i = 0; i < PTX_LANES; i++) all |= mask >> i & 1 ? members[i] : 0;
    return all & warp->alive;
}

static bool is_warp_barrier(const ptx_code *code) {
    return code->source->opcode == PTX_OP_bar || code->source->opcode == PTX_OP_barrier;
}

/* Two paths may carry out their instructions together: the same one, or two that only wait. */
static bool goes_with(const ptx_path *a, const ptx_path *b) {
    return a->state == PTX_PATH_AT_SYNC && b->state == PTX_PATH_AT_SYNC &&
           ((a->code == b->code && a->frame == b->frame) ||
            (is_warp_barrier(a->code) && is_warp_barrier(b->code)));
}

/* The lanes that wait with path `index`, if they are all that one of them names; else 0. */
static uint32_t together(ptx_warp *warp, uint32_t index) {
    uint32_t here = 0, needed = 0;
    char *registers = warp->area[PTX_AREA_FRAME];
    for (uint32_t i = 0; i < warp->path_count; i++) {
        const ptx_path *path = &warp->paths[i];
        if (!goes_with(&warp->paths[index], path)) continue;
        warp->area[PTX_AREA_FRAME] = path->frame->registers;
        here |= path->mask;
        needed |= ptx_members(warp, path->code, path->mask);
    }
    warp->area[PTX_AREA_FRAME] = registers;
    return needed & ~here ? 0 : here;
}

/* Carries out an instruction of the warp for which several paths wait. Each goes on for itself. False: none can. */
static bool run_together(ptx_warp *warp) {
    for (uint32_t i = 0; i < warp->path_count; i++) {
        if (warp->paths[i].state != PTX_PATH_AT_SYNC) continue;
        uint32_t mask = together(warp, i);
        if (!mask) continue;
        ptx_path first = warp->paths[i];
        warp->active = mask;
        warp->frame = first.frame;
        warp->area[PTX_AREA_FRAME] = first.frame->registers;
        warp->gathered = true;
        const ptx_code *next = first.code->run(warp, first.code, mask);
        warp->gathered = false;
        warp->active = 0;
        if (!next) return true; /* it failed */
        for (uint32_t k = 0; k < warp->path_count; k++) {
            if (k == i || !goes_with(&first, &warp->paths[k])) continue;
            warp->paths[k].code++;
            warp->paths[k].state = PTX_PATH_READY;
        }
        warp->paths[i].code = next;
        warp->paths[i].state = PTX_PATH_READY;
        /* Lanes that meet in front of the same join become one path again. */
        for (uint32_t k = warp->path_count; k-- > 0;) {
            ptx_path *other = &warp->paths[k];
            if (k == i || other->code != next || other->join != first.join ||
                other->frame != first.frame || other->state != PTX_PATH_READY) {
                continue;
            }
            warp->paths[i].mask |= other->mask;
            *other = warp->paths[--warp->path_count];
            if (i == warp->path_count) i = k;
        }
        return true;
    }
    return false;
}

/* The thread ends after the join. */
static bool is_end(const ptx_join *join) {
    const ptx_instruction *next = join->code->source;
    if (!next || join->frame->caller) return false;
    return next->opcode == PTX_OP_ret || next->opcode == PTX_OP_exit;
}

/* Lanes that have arrived at a join go on without those for which they wait; `to_end`: only to the thread's end. */
static bool release_early(ptx_warp *warp, bool to_end) {
    for (uint32_t i = 0; i < warp->path_count; i++) {
        for (ptx_join *join = warp->paths[i].join; join; join = join->outer) {
            if (!join->arrived || (to_end && !is_end(join))) continue;
            uint32_t lanes = join->arrived;
            join->expected &= ~lanes;
            join->arrived = 0;
            add_path(warp, (ptx_path){.code = join->code,
                                      .mask = lanes,
                                      .state = PTX_PATH_READY,
                                      .frame = join->frame,
                                      .join = join->outer});
            return true;
        }
    }
    return false;
}

/* With checks: lanes of a warp that wait at a barrier of the block, while others of it wait after the branch for
 * them. */
static bool fail_divergent_barrier(ptx_warp *warp) {
    if (!warp->run->checks) return false;
    for (uint32_t i = 0; i < warp->path_count; i++) {
        const ptx_path *path = &warp->paths[i];
        if (path->state != PTX_PATH_AT_BARRIER || !path->code->bits) continue;
        for (const ptx_join *join = path->join; join; join = join->outer) {
            if (!join->arrived) continue;
            char thread[40], place[256];
            ptx_thread_text(warp->run, warp->number * PTX_LANES + ptx_first_lane(join->arrived),
                            thread);
            ptx_fault(warp, path->code, ptx_first_lane(path->mask), MR_CODE_LAUNCH_FAILURE,
                      "waits at a barrier that thread %s of the same warp does not come to (it is "
                      "at %s). All threads of the block must reach a barrier, so move it out of "
                      "the condition",
                      thread, ptx_code_text(warp->run, join->code, place, sizeof place));
            return true;
        }
    }
    return false;
}

/* The usual reason to wait: all lanes are at one barrier of the block, so none is at a join. */
static bool is_at_barrier(const ptx_warp *warp) {
    const ptx_path *path = &warp->paths[0];
    return warp->path_count == 1 && path->state == PTX_PATH_AT_BARRIER && path->mask == warp->alive;
}

const ptx_code *ptx_next_path(ptx_warp *warp) {
    for (;;) {
        for (uint32_t i = warp->path_count; i-- > 0;) {
            if (warp->paths[i].state == PTX_PATH_READY) return resume(warp, i);
        }
        if (warp->path_count == 0) {
            warp->state = PTX_WARP_DONE;
            return NULL;
        }
        if (is_at_barrier(warp)) break;
        if (run_together(warp)) {
            if (warp->state == PTX_WARP_FAILED) return NULL;
            continue;
        }
        /* Threads that return early are not waited for by barriers. */
        if (release_early(warp, true)) continue;
        if (fail_divergent_barrier(warp)) return NULL;
        if (!release_early(warp, false)) break;
    }
    warp->state = PTX_WARP_BLOCKED;
    return NULL;
}

static void drop_path(ptx_warp *warp, uint32_t index) {
    warp->path_count--;
    memmove(&warp->paths[index], &warp->paths[index + 1],
            (warp->path_count - index) * sizeof *warp->paths);
}

void ptx_unite_paths(ptx_warp *warp) {
    for (uint32_t i = 0; i < warp->path_count; i++) {
        ptx_path *path = &warp->paths[i];
        for (uint32_t k = warp->path_count; k-- > i + 1;) {
            const ptx_path *other = &warp->paths[k];
            if (path->state != PTX_PATH_READY || other->state != PTX_PATH_READY ||
                other->code != path->code || other->frame != path->frame ||
                other->join != path->join)
                continue;
            path->mask |= other->mask;
            drop_path(warp, k);
        }
    }
}

void ptx_unite_with_active(ptx_warp *warp, const ptx_code *code) {
    for (uint32_t k = warp->path_count; k-- > 0;) {
        const ptx_path *other = &warp->paths[k];
        if (other->state != PTX_PATH_READY || other->code != code || other->frame != warp->frame ||
            other->join != warp->join)
            continue;
        warp->active |= other->mask;
        drop_path(warp, k);
    }
}

bool ptx_lose_patience(ptx_warp *warp) {
    if (++warp->since_join < (warp->idle_slices ? IDLE_PATIENCE : PATIENCE)) return false;
    warp->since_join = 0;
    return release_early(warp, false);
}
