/* Runs a block: builds its warps, and gives each its turn until all are done.
 *
 * A warp runs until it is done or must wait, or for SLICE instructions: so a warp that spins on a value of another warp
 * does not wait for ever. After a full slice comes a short one: there the warp is watched, and may turn out to only
 * wait (spin.h). Limits and interruptions are looked at between slices. */
#include <stdlib.h>
#include <string.h>

#include "ptx/run/barrier.h"
#include "ptx/run/fault.h"
#include "ptx/run/memory.h"
#include "ptx/run/paths.h"
#include "ptx/run/counts.h"
#include "ptx/run/run.h"
#include "ptx/run/runs.h"
#include "ptx/run/spin.h"
#include "ptx/watch/watch.h"

#define SLICE 8192
#define PROBE 512
#define POLL  64 /* of one that is known to wait */

/* ---- vectors of the launch and of the warps */

static void fill_32(char *at, uint32_t value) {
    for (unsigned i = 0; i < PTX_LANES; i++) ((ptx_u32 *)(void *)at)[i] = value;
}
static void fill_64(char *at, uint64_t value) {
    for (unsigned i = 0; i < PTX_LANES; i++) ((ptx_u64 *)(void *)at)[i] = value;
}
static char *launch_vector(ptx_run_state *run, unsigned which) {
    return run->launch_area + (size_t)which * 4 * PTX_LANES;
}

/* Zero where only another kernel of the module has such a parameter. */
static uint64_t param_of(const ptx_run_state *run, const ptx_address_slot *slot) {
    uint64_t value = 0;
    if (slot->variable + slot->bytes <= run->launch->kernel->param_bytes) {
        memcpy(&value, run->params + slot->variable, slot->bytes);
    }
    return value;
}

static uint64_t address_of(const ptx_run_state *run, const ptx_address_slot *slot) {
    if (slot->function == PTX_SLOT_PARAM) return param_of(run, slot);
    const mr_ptx_launch *launch = run->launch;
    const ptx_tree *tree = &run->module->tree;
    const ptx_shared_layout *layout = &run->module->layouts[launch->kernel - run->module->kernels];
    const ptx_variable *variable = slot->function < 0
                                       ? &tree->variables[slot->variable]
                                       : &tree->functions[slot->function].variables[slot->variable];
    if (variable->space != PTX_SHARED) {
        return launch->variables[slot->variable] + (uint64_t)slot->addend;
    }
    const uint64_t *at =
        slot->function < 0 ? layout->shared_of_module : layout->shared_of_function[slot->function];
    uint64_t offset = at ? at[slot->variable] : 0;
    return offset + (uint64_t)slot->addend + (slot->generic ? PTX_WINDOW(PTX_TOP_SHARED) : 0);
}

static void fill_launch_area(ptx_run_state *run) {
    const mr_ptx_launch *launch = run->launch;
    for (unsigned i = 0; i < 3; i++) {
        fill_32(launch_vector(run, PTX_LAUNCH_NTID + i), launch->block[i]);
        fill_32(launch_vector(run, PTX_LAUNCH_NCTAID + i), launch->grid[i]);
    }
    fill_32(launch_vector(run, PTX_LAUNCH_NWARPID), run->warp_count);
    fill_32(launch_vector(run, PTX_LAUNCH_NSMID), launch->device.sm_count);
    fill_32(launch_vector(run, PTX_LAUNCH_TOTAL_SHARED), run->block.shared_bytes);
    fill_32(launch_vector(run, PTX_LAUNCH_DYNAMIC_SHARED), launch->dynamic_shared);
    uint64_t workspace = launch->workspace ? MR_PTX_WORKSPACE : 0;
    fill_32(launch_vector(run, PTX_LAUNCH_WORKSPACE), (uint32_t)(workspace >> 32));
    fill_32(launch_vector(run, PTX_LAUNCH_WORKSPACE + 1), (uint32_t)workspace);
    for (size_t i = 0; i < run->module->slots.count; i++) {
        const ptx_address_slot *slot = &run->module->slots.items[i];
        char *at = run->launch_area + slot->offset;
        if (slot->bytes == 8) fill_64(at, address_of(run, slot));
        else fill_32(at, (uint32_t)address_of(run, slot));
    }
}

static void fill_warp_area(ptx_run_state *run, ptx_warp *warp) {
    const uint32_t *size = run->launch->block;
    for (unsigned i = 0; i < PTX_LANES; i++) {
        uint32_t thread = warp->number * PTX_LANES + i;
        ptx_u32 *to = (ptx_u32 *)(void *)warp->vectors + i;
        to[PTX_LANES * 0] = thread % size[0];
        to[PTX_LANES * 1] = thread / size[0] % size[1];
        to[PTX_LANES * 2] = thread / size[0] / size[1];
        to[PTX_LANES * PTX_WARP_WARPID] = warp->number;
    }
}

/* ---- beginning and end of a run */

static void *aligned_zeros(size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    void *memory = aligned_alloc(64, bytes ? bytes : 64);
    if (memory) memset(memory, 0, bytes ? bytes : 64);
    return memory;
}

static bool make_warps(ptx_run_state *run) {
    run->warps = calloc(run->warp_count, sizeof *run->warps);
    if (!run->warps) return false;
    for (uint32_t w = 0; w < run->warp_count; w++) {
        ptx_warp *warp = &run->warps[w];
        warp->number = w;
        warp->run = run;
        warp->block = &run->block;
        warp->vectors = aligned_zeros(PTX_WARP_VECTORS * 4 * PTX_LANES);
        warp->first_frame = ptx_frame_take(run, run->routine);
        if (!warp->vectors || !warp->first_frame) return false;
        uint32_t left = run->threads - w * PTX_LANES;
        warp->present = left >= PTX_LANES ? PTX_ALL : (1u << left) - 1;
        warp->area[PTX_AREA_CONSTANT] = run->module->constants;
        warp->area[PTX_AREA_WARP] = warp->vectors;
        warp->area[PTX_AREA_LAUNCH] = run->launch_area;
        fill_warp_area(run, warp);
    }
    return true;
}

bool ptx_run_begin(ptx_run_state *run, const mr_ptx_launch *launch) {
    const mr_ptx_module *module = launch->kernel->module;
    run->launch = launch;
    run->module = module;
    run->routine = &module->routines[launch->kernel->function - module->tree.functions];
    run->checks = launch->check;
    run->follows_unset = launch->check && launch->unset_read;
    run->threads = launch->block[0] * launch->block[1] * launch->block[2];
    run->warp_count = (run->threads + PTX_LANES - 1) / PTX_LANES;
    const ptx_shared_layout *layout = &module->layouts[launch->kernel - module->kernels];
    run->block.shared_bytes = layout->static_shared + launch->dynamic_shared;
    run->block.shared = aligned_zeros(run->block.shared_bytes);
    if (run->follows_unset)
        run->block.shared_unset = aligned_zeros(run->block.shared_bytes / 8 + 1);
    run->launch_area = aligned_zeros(module->launch_bytes);
    run->params = aligned_zeros(launch->kernel->param_bytes);
    run->last = malloc((module->access_count + 1) * sizeof *run->last);
    run->told_unset = calloc(module->access_count + 1, sizeof *run->told_unset);
    run->free_frames = calloc(module->tree.function_count + 1, sizeof *run->free_frames);
    if (launch->profile) run->counts = ptx_counts_create(module);
    if (!run->block.shared || (run->follows_unset && !run->block.shared_unset) ||
        !run->launch_area || !run->params || !run->last || !run->told_unset || !run->free_frames ||
        (launch->profile && !run->counts)) {
        return false;
    }
    for (uint32_t i = 0; i <= module->access_count; i++) run->last[i] = &run->nowhere;
    if (launch->kernel->param_bytes) {
        memcpy(run->params, launch->params, launch->kernel->param_bytes);
    }
    fill_launch_area(run);
    return make_warps(run);
}

void ptx_run_finish(ptx_run_state *run) {
    for (uint32_t w = 0; run->warps && w < run->warp_count; w++) {
        free(run->warps[w].vectors);
        if (run->warps[w].run) ptx_local_give_back(&run->warps[w]);
    }
    for (uint32_t i = 0; i < run->ranges.count; i++) free(run->ranges.items[i]);
    for (size_t i = 0; i < run->owned.count; i++) free(run->owned.items[i]);
    mr_vec_free(&run->owned);
    if (run->counts) ptx_counts_merge(run->launch->profile, run->counts);
    mr_vec_free(&run->ranges);
    free(run->warps);
    free(run->block.shared);
    free(run->block.shared_unset);
    free(run->launch_area);
    free(run->params);
    free(run->last);
    free(run->told_unset);
    free(run->free_frames);
}

/* ---- a block */

static bool begin_warp(ptx_run_state *run, ptx_warp *warp) {
    uint32_t bytes = run->routine->local_bytes;
    if (warp->local_used) { /* data of the last block must not be visible to this one */
        memset(warp->local, 0xff, (size_t)(warp->local_used + 15) / 16 * 16 * PTX_LANES);
    }
    warp->frame = warp->first_frame;
    if (!ptx_local_grow(warp, run->routine->codes, warp->present, bytes)) return false;
    ptx_local_forget(warp, 0, bytes, PTX_ALL);
    warp->local_used = bytes;
    warp->alive = warp->present;
    warp->active = 0;
    warp->join = NULL;
    warp->carry = 0;
    warp->executed = warp->since_join = 0;
    warp->is_probed = false;
    warp->idle_slices = 0;
    warp->repeat = (ptx_repeat){0};
    warp->state = PTX_WARP_READY;
    warp->path_count = 1;
    warp->paths[0] = (ptx_path){.code = run->routine->codes,
                                .mask = warp->present,
                                .state = PTX_PATH_READY,
                                .frame = warp->first_frame};
    return true;
}

bool ptx_block_begin(ptx_run_state *run, uint64_t linear) {
    ptx_block_run *block = &run->block;
    const uint32_t *grid = run->launch->grid;
    block->linear = linear;
    block->index[0] = (uint32_t)(linear % grid[0]);
    block->index[1] = (uint32_t)(linear / grid[0] % grid[1]);
    block->index[2] = (uint32_t)(linear / grid[0] / grid[1]);
    block->alive = run->threads;
    if (block->open_barriers) memset(block->barriers, 0, sizeof block->barriers);
    block->open_barriers = 0;
    /* Unwritten bytes have the same value for every block, and one that does not look like a valid number. */
    memset(block->shared, 0xff, block->shared_bytes);
    if (block->shared_unset) {
        memset(block->shared_unset, 0xff, block->shared_bytes / 8 + 1);
        block->shared_unset_left = block->shared_bytes;
    }
    for (unsigned i = 0; i < 3; i++) {
        fill_32(launch_vector(run, PTX_LAUNCH_CTAID + i), block->index[i]);
    }
    uint32_t sms = run->launch->device.sm_count;
    fill_32(launch_vector(run, PTX_LAUNCH_SMID), sms ? (uint32_t)(linear % sms) : 0);
    run->clock = 0;
    run->is_counted = run->counts && mr_ptx_block_is_counted(run->launch, linear);
    run->tells = run->launch->watch || run->is_counted;
    if (run->launch->watch) ptx_watch_block(run->launch->watch, linear, block->shared_bytes);
    for (uint32_t w = 0; w < run->warp_count; w++) {
        if (!begin_warp(run, &run->warps[w])) return false;
    }
    if (run->is_counted) ptx_counts_block(run->counts);
    return true;
}

static inline uint32_t guarded(const ptx_warp *warp, const ptx_code *code) {
    return warp->active & (ptx_predicate(warp, code->guard) ^ code->guard_flip);
}

/* Returns where the warp stands if its slice is over, else NULL. */
static const ptx_code *run_codes(ptx_warp *warp, const ptx_code *code) {
    while (code) {
        if (--warp->budget < 0) return code;
        uint32_t mask = guarded(warp, code);
        code = mask ? code->run(warp, code, mask) : code + 1;
    }
    return NULL;
}

static const ptx_code *run_counted_codes(ptx_warp *warp, const ptx_code *code) {
    while (code) {
        if (--warp->budget < 0) return code;
        uint32_t mask = guarded(warp, code);
        /* A branch is executed by the lanes that do not take it, too. */
        bool is_branch = code->run == ptx_run_branch;
        if (ptx_counts_here(warp, code, mask))
            ptx_counts_add(warp->run->counts, warp->frame->routine, code,
                           is_branch ? warp->active : mask);
        code = mask ? code->run(warp, code, mask) : code + 1;
    }
    return NULL;
}

static void check_limits(ptx_warp *warp, const ptx_code *code) {
    ptx_run_state *run = warp->run;
    const mr_ptx_launch *launch = run->launch;
    uint64_t limit = launch->device.instruction_limit;
    if (limit && warp->executed >= limit) {
        ptx_fault(warp, code, ptx_first_lane(warp->active), MR_CODE_LAUNCH_TIMEOUT,
                  "is still running after %llu instructions of its warp: a loop that does not end, "
                  "or that waits for a block which has not begun?",
                  (unsigned long long)limit);
    } else if (launch->interrupted && launch->interrupted(launch->context)) {
        warp->state = PTX_WARP_FAILED;
        run->failure =
            mr_fail(MR_CODE_INTERRUPTED, "kernel `%s` was interrupted", launch->kernel->name);
    }
}

/* A slice was used up: after a whole one the warp is watched, for as long as it does nothing but wait. */
static void note_slice(ptx_warp *warp, uint64_t polls, uint64_t changes) {
    const ptx_run_state *run = warp->run;
    bool is_idle = warp->is_probed && run->polls > polls && run->changes == changes;
    warp->idle_slices = is_idle ? warp->idle_slices + 1 : 0;
    warp->is_probed = is_idle || !warp->is_probed;
}

static void run_slice(ptx_warp *warp) {
    ptx_run_state *run = warp->run;
    uint64_t limit = run->launch->device.instruction_limit;
    uint64_t slice = !warp->is_probed ? SLICE : warp->idle_slices ? POLL : PROBE;
    uint64_t polls = run->polls, changes = run->changes;
    if (limit && limit - warp->executed < slice) slice = limit - warp->executed;
    warp->slice = warp->budget = (int64_t)slice;
    const ptx_code *code = ptx_next_path(warp);
    code = warp->is_probed   ? ptx_run_probe(warp, code)
           : run->is_counted ? run_counted_codes(warp, code)
                             : run_codes(warp, code);
    uint64_t used = slice - (uint64_t)(warp->budget > 0 ? warp->budget : 0);
    warp->executed += used;
    run->clock += used;
    if (!code) {
        warp->is_probed = false;
        warp->idle_slices = 0;
        return;
    }
    check_limits(warp, code);
    if (warp->state == PTX_WARP_FAILED) return;
    note_slice(warp, polls, changes);
    ptx_pause(warp, code);
    ptx_lose_patience(warp);
}

/* Each of its paths has had a slice in which it only waited. */
static bool is_idle(const ptx_warp *warp) {
    return warp->state == PTX_WARP_READY && warp->idle_slices >= warp->path_count;
}

ptx_turn_end ptx_block_turn(ptx_run_state *run) {
    while (run->block.alive) {
        bool any = false, all_idle = true;
        for (uint32_t w = 0; w < run->warp_count; w++) {
            ptx_warp *warp = &run->warps[w];
            if (warp->state != PTX_WARP_READY) continue;
            any = true;
            run_slice(warp);
            if (run->failure) return PTX_TURN_FAILED;
            all_idle = all_idle && is_idle(warp);
        }
        if (!any) {
            ptx_fault_deadlock(run);
            return PTX_TURN_FAILED;
        }
        if (all_idle) return PTX_TURN_WAITS;
    }
    return PTX_TURN_DONE;
}
