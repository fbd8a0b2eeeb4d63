/* Branches, calls, ends, and fences. */
#include "ptx/run/barrier.h"
#include "ptx/run/fault.h"
#include "ptx/run/memory.h"
#include "ptx/run/paths.h"
#include "ptx/run/runs.h"
#include "ptx/watch/watch.h"

#include <string.h>

const ptx_code *ptx_run_branch(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    if (mask == warp->active) return code->target;
    return ptx_diverge(warp, mask, code->target, code + 1, code->join);
}

/* Lanes with an index outside of the list: PTX leaves it open; the first of them is an error. */
const ptx_code *ptx_run_branch_index(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    const ptx_u32 *index = PTX_AT(const ptx_u32, warp, code->a);
    unsigned first = ptx_first_lane(mask);
    if (index[first] >= code->b) {
        return ptx_fault(warp, code, first, MR_CODE_LAUNCH_FAILURE,
                         "jumps to target %u of a list that has %u", index[first], code->b);
    }
    uint32_t same = 0;
    for (unsigned i = 0; i < PTX_LANES; i++) same |= index[i] == index[first] ? 1u << i : 0;
    same &= mask;
    const ptx_code *target = code->targets[index[first]];
    if (same == warp->active) return target;
    /* The others come here again. */
    return ptx_diverge(warp, same, target, code, code->join);
}

const ptx_code *ptx_run_join(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    (void)mask;
    return warp->join ? ptx_arrive(warp, code) : code + 1;
}

const ptx_code *ptx_run_nothing(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    (void)warp, (void)mask;
    return code + 1;
}

/* ---- calls */

/* How many of `bytes` bytes lie together from `offset` on: after 16 of them comes another lane's copy (local.c). */
static uint32_t together(uint32_t offset, uint32_t bytes) {
    uint32_t rest = 16 - offset % 16;
    return bytes < rest ? bytes : rest;
}

static void copy_local(ptx_warp *warp, uint32_t from, uint32_t to, uint32_t bytes, uint32_t mask) {
    for (uint32_t i = 0, part; i < bytes; i += part) {
        part = together(from + i, together(to + i, bytes - i));
        for (uint32_t left = mask; left; left &= left - 1) {
            unsigned lane = ptx_first_lane(left);
            memcpy(ptx_local_at(warp, to + i, lane), ptx_local_at(warp, from + i, lane), part);
        }
    }
    if (!warp->local_set) return;
    for (uint32_t i = 0; i < bytes; i++) {
        uint32_t *set = warp->local_set;
        set[to + i] = (set[to + i] & ~mask) | (set[from + i] & mask);
    }
}

static const ptx_code *call(ptx_warp *warp, const ptx_code *code, const ptx_routine *routine,
                            const ptx_code *back) {
    const ptx_call_code *c = code->call;
    uint32_t mask = warp->active;
    uint32_t from = warp->frame->local_base;
    const ptx_code *first = ptx_enter(warp, code, routine, back);
    if (!first) return NULL;
    for (uint32_t i = 0; i < c->argument_count; i++) {
        copy_local(warp, from + c->arguments[i],
                   warp->frame->local_base + routine->parameter_offset[i], c->argument_bytes[i],
                   mask);
    }
    return first;
}

const ptx_code *ptx_run_call(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    (void)mask; /* of a call with a guard, decode makes a branch around it */
    return call(warp, code, code->call->callee, code + 1);
}

static bool same_parameters(const ptx_call_code *c, const ptx_routine *callee) {
    const ptx_signature *s = &callee->function->signature;
    if (s->parameter_count != c->argument_count || s->result_count != c->result_count) return false;
    for (uint32_t i = 0; i < c->argument_count; i++) {
        if (s->parameters[i].bytes != c->argument_bytes[i]) return false;
    }
    for (uint32_t i = 0; i < c->result_count; i++) {
        if (s->results[i].bytes != c->result_bytes[i]) return false;
    }
    return true;
}

const ptx_code *ptx_run_call_indirect(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    const ptx_u64 *address = PTX_AT(const ptx_u64, warp, code->a);
    unsigned first = ptx_first_lane(mask);
    uint64_t at = address[first];
    const mr_ptx_module *module = warp->run->module;
    uint64_t index = (at & ~PTX_WINDOW(7)) / 16;
    if (at >> PTX_WINDOW_SHIFT != PTX_TOP_FUNCTION || at % 16 != 0 ||
        index >= module->tree.function_count || !module->routines[index].codes ||
        module->routines[index].function->is_entry) {
        return ptx_fault(warp, code, first, MR_CODE_LAUNCH_FAILURE,
                         "calls address 0x%llx, where no function is", (unsigned long long)at);
    }
    const ptx_routine *routine = &module->routines[index];
    if (!same_parameters(code->call, routine)) {
        return ptx_fault(warp, code, first, MR_CODE_LAUNCH_FAILURE,
                         "calls `%s` with parameters of other sizes than it has",
                         routine->function->name);
    }
    uint32_t same = 0;
    for (unsigned i = 0; i < PTX_LANES; i++) same |= address[i] == at ? 1u << i : 0;
    same &= mask;
    if (same == warp->active) return call(warp, code, routine, code + 1);
    /* The others wait after the call, and come here again first. */
    const ptx_code *next = ptx_diverge(warp, warp->active & ~same, code, code, code + 1);
    return next ? call(warp, code, routine, code + 1) : NULL;
}

/* The results of the lanes lie in the callee's frame until now. */
static void copy_results(ptx_warp *warp, uint32_t mask) {
    const ptx_frame *frame = warp->frame;
    const ptx_call_code *c = frame->call;
    const ptx_routine *routine = frame->routine;
    for (uint32_t i = 0; i < c->result_count; i++) {
        uint32_t at = routine->parameter_offset[routine->function->signature.parameter_count + i];
        copy_local(warp, frame->local_base + at, frame->caller->local_base + c->results[i],
                   c->result_bytes[i], mask);
    }
}

const ptx_code *ptx_run_return(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    if (!warp->frame->call) return ptx_run_exit(warp, code, mask);
    copy_results(warp, mask);
    return ptx_leave(warp, code + 1, mask);
}

const ptx_code *ptx_run_exit(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    const ptx_code *next = ptx_exit_lanes(warp, code + 1, mask);
    if (warp->block->open_barriers) ptx_barriers_settle(warp->run);
    /* The barrier may have waited for these lanes only, and other lanes of this warp for the barrier. */
    if (!next && warp->state == PTX_WARP_READY) return ptx_next_path(warp);
    return next;
}

const ptx_code *ptx_run_end(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    return ptx_run_return(warp, code, mask);
}

/* cooperative_groups: grid.sync() of a grid without a barrier traps. */
static bool asks_for_grid(const ptx_function *f) {
    for (uint32_t i = 0; i < f->instruction_count; i++)
        for (uint32_t k = 0; k < f->instructions[i].operand_count; k++) {
            const ptx_operand *o = &f->instructions[i].operands[k];
            if (o->kind == PTX_SPECIAL && o->index == PTX_SREG_envreg) return true;
        }
    return false;
}

const ptx_code *ptx_run_trap(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    bool may_be_sync =
        !warp->run->launch->workspace && asks_for_grid(warp->frame->routine->function);
    return ptx_fault(warp, code, ptx_first_lane(mask), MR_CODE_LAUNCH_FAILURE, "executes `trap`%s",
                     may_be_sync ? ": grid.sync() needs a cooperative launch: "
                                   "k[{grid, block, cooperative = true}](...)"
                                 : "");
}

const ptx_code *ptx_run_fence(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    mr_ptx_watch *watch = warp->run->launch->watch;
    if (watch) {
        ptx_watch_fence(watch, warp->block->linear, warp->number, mask,
                        (ptx_order)(code->bits & 255), (ptx_scope)(code->bits >> 8));
    }
    return code + 1;
}
