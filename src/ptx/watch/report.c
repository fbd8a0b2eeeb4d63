/* Describes a pair of accesses that race, with an advice; races.c collects them. Also notes whether the order of
 * threads matters, and why the watch has stopped. Text for a person is made in text.c. */
#include "ptx/watch/state.h"

#include <string.h>

/* ---- the end before the end */

void ptx_watch_stop(mr_ptx_watch *watch, const char *why) {
    pthread_mutex_lock(&watch->lock);
    if (!watch->why_stopped) watch->why_stopped = why;
    pthread_mutex_unlock(&watch->lock);
    atomic_store(&watch->is_stopped, true);
}

const char *mr_ptx_watch_stopped(const mr_ptx_watch *watch) {
    return atomic_load(&watch->is_stopped) ? watch->why_stopped : NULL;
}

/* ---- the order of threads */

void ptx_order_matters(mr_ptx_watch *watch) {
    atomic_store_explicit(&watch->order_matters, true, memory_order_relaxed);
}

bool mr_ptx_watch_order_matters(const mr_ptx_watch *watch) {
    return atomic_load_explicit(&watch->order_matters, memory_order_relaxed);
}

/* ---- numbers of instructions, from 1 */

static uint32_t number_of(mr_ptx_watch *w, const ptx_instruction *instruction) {
    uint32_t *number = mr_map_add(&w->numbers, (uintptr_t)instruction);
    if (!number || *number) return number ? *number : 0;
    bool has_room = w->instructions.count < PTX_SAMPLE_NUMBER(UINT32_MAX);
    if (has_room && mr_vec_push(&w->instructions, instruction))
        *number = (uint32_t)w->instructions.count;
    return *number;
}

uint32_t ptx_instruction_number(mr_ptx_watch *watch, ptx_running *running,
                                const ptx_instruction *instruction) {
    uint64_t hash = (uintptr_t)instruction * 0x9e3779b97f4a7c15u;
    uint32_t i = (uint32_t)(hash >> 32) % PTX_RECENT;
    if (running->recent[i].number && running->recent[i].instruction == instruction)
        return running->recent[i].number;
    pthread_mutex_lock(&watch->lock);
    uint32_t number = number_of(watch, instruction);
    pthread_mutex_unlock(&watch->lock);
    if (!number) {
        ptx_watch_stop(watch, "memory is out");
        return 1;
    }
    running->recent[i].instruction = instruction;
    running->recent[i].number = number;
    return number;
}

/* ---- advice */

static bool same_line(const ptx_instruction *a, const ptx_instruction *b) {
    if (a == b) return true;
    return a && b && a->place.file && a->place.file == b->place.file &&
           a->place.line == b->place.line;
}

static const ptx_operand *address_of(const ptx_instruction *i) {
    for (uint32_t k = 0; k < i->operand_count; k++)
        if (i->operands[k].is_address) return &i->operands[k];
    return NULL;
}

static bool same_address(const ptx_instruction *a, const ptx_instruction *b) {
    const ptx_operand *of_a = address_of(a), *of_b = address_of(b);
    return of_a && of_b && of_a->kind == of_b->kind && of_a->index == of_b->index &&
           of_a->offset == of_b->offset;
}

static const ptx_function *function_of(const mr_ptx_watch *w, const ptx_instruction *i) {
    const ptx_tree *tree = w->module ? mr_ptx_module_tree(w->module) : NULL;
    for (uint32_t k = 0; tree && k < tree->function_count; k++) {
        const ptx_function *f = &tree->functions[k];
        if (i >= f->instructions && i < f->instructions + f->instruction_count) return f;
    }
    return NULL;
}

/* An atomic operation, or a load or store of a line that first reads a place and then writes it (x += ...). In
 * `s[t] += s[t + d]`, the load of s[t + d] is none. */
static bool is_of_update(const mr_ptx_watch *w, const ptx_instruction *i) {
    const ptx_function *f = i ? function_of(w, i) : NULL;
    if (!f) return false;
    if (ptx_is_atomic(i)) return true;
    bool loads = i->opcode == PTX_OP_ld;
    if (!loads && i->opcode != PTX_OP_st) return false;
    const ptx_instruction *at = loads ? i : f->instructions;
    const ptx_instruction *end = loads ? f->instructions + f->instruction_count : i;
    for (; at < end; at++)
        if (at->opcode == (loads ? PTX_OP_st : PTX_OP_ld) && same_line(at, i) &&
            same_address(at, i))
            return true;
    return false;
}

/* Only then does an atomic operation help: elsewhere it would order nothing that the threads need. */
static bool both_update(const mr_ptx_watch *w, const ptx_race *race) {
    return is_of_update(w, race->first.instruction) && is_of_update(w, race->second.instruction);
}

static bool both_write_one_place(const ptx_race *race, bool update) {
    bool both_write = (race->first.access & race->second.access & MR_PTX_WRITES) != 0;
    return both_write && (update || race->first.instruction == race->second.instruction);
}

static const char *advise_atomics(const ptx_race *race, bool sizes_differ) {
    if (sizes_differ)
        return "both are atomic, but not on the same bytes: atomic operations protect each other "
               "only at the same address and with the same size";
    if (race->first.block != race->second.block)
        return "both are atomic, but the scope of one is its own block: give both device scope "
               "(atomicAdd, not atomicAdd_block)";
    return "both are atomic, but neither scope holds the other thread: give both device scope";
}

static bool is_between(const ptx_place *at, const ptx_place *a, const ptx_place *b) {
    uint32_t low = a->outer_line < b->outer_line ? a->outer_line : b->outer_line;
    return a->outer_file && at->outer_file == a->outer_file && at->outer_file == b->outer_file &&
           at->outer_line > low && at->outer_line < a->outer_line + b->outer_line - low;
}

/* A barrier of the block stands between the two lines in the source, or in the code. So one of them is of another round
 * of a loop, which may be unrolled, or the barrier was passed by. A copy in the background goes on after a barrier. */
static bool has_barrier_between(const mr_ptx_watch *w, const ptx_race *race) {
    const ptx_instruction *a = race->first.instruction, *b = race->second.instruction;
    if (!a || !b || a->place.outer_line == b->place.outer_line) return false;
    if (a->opcode == PTX_OP_cp || b->opcode == PTX_OP_cp) return false;
    const ptx_function *f = function_of(w, a);
    if (!f || f != function_of(w, b)) return false;
    for (uint32_t i = 0; i < f->instruction_count; i++) {
        const ptx_instruction *at = &f->instructions[i];
        bool is_barrier = at->opcode == PTX_OP_bar || at->opcode == PTX_OP_barrier;
        if (is_barrier && (is_between(&at->place, &a->place, &b->place) ||
                           (at > (a < b ? a : b) && at < (a < b ? b : a))))
            return true;
    }
    return false;
}

static const char *advise_in_block(const mr_ptx_watch *w, const ptx_race *race) {
    bool same_warp = race->first.warp == race->second.warp;
    bool update = both_update(w, race);
    bool is_one_line = same_line(race->first.instruction, race->second.instruction);
    if ((race->first.atomic || race->second.atomic) && update)
        return same_warp ? "only one of the two is atomic: make the other one atomic, too, or put "
                           "__syncwarp() between them"
                         : "only one of the two is atomic: make the other one atomic, too, or put "
                           "__syncthreads() between them";
    if (is_one_line && both_write_one_place(race, update))
        return "several threads write the same place at once: let one of them write it, or use an "
               "atomic operation (atomicAdd ...)";
    if (is_one_line && update) /* it may be one statement, or a whole kernel */
        return "both are on one line: if it updates one place (x += ...), use an atomic operation "
               "(atomicAdd ...); else put __syncthreads() between what reads and what writes";
    if (is_one_line) /* a loop that the compiler unrolled cannot be seen */
        return "both are on one line. In a loop, put __syncthreads() at the end of its body: the "
               "next iteration may begin before this one is over. Without a loop, or if one is "
               "there, put it between the two";
    if (same_warp)
        return "the threads of a warp are not in step: __syncwarp() between the two orders them";
    if (has_barrier_between(w, race))
        return "a __syncthreads() stands between the two lines, but the next iteration of the loop "
               "may begin before this one is over. Put another one at the end of the loop's body";
    return race->first.atomic || race->second.atomic
               ? "only one of the two is atomic: put __syncthreads() between them"
               : "__syncthreads() between the two orders them";
}

static const char *advise_between_blocks(const mr_ptx_watch *w, const ptx_race *race) {
    bool update = both_update(w, race);
    bool is_one_line = same_line(race->first.instruction, race->second.instruction);
    bool has_fence = atomic_load_explicit(&w->any_fence, memory_order_relaxed);
    if (race->first.atomic != race->second.atomic)
        return update ? "only one of the two is atomic: make the other one atomic, too, or split "
                        "the kernel in two launches"
                      : "only one of the two is atomic: split the kernel in two launches; or, if "
                        "any of the values may be seen, make the other one atomic, too";
    if (is_one_line && both_write_one_place(race, update))
        return "blocks write the same place in no order: let one block write it, or use an atomic "
               "operation (atomicAdd ...)";
    if (is_one_line && update)
        return "both are on one line: if it updates one place (x += ...), use an atomic operation "
               "(atomicAdd ...); else split the kernel in two launches, one that reads and one "
               "that writes";
    if (has_fence)
        return "a fence alone is not enough. The first thread has to write a flag after its "
               "__threadfence() (atomically or volatile). The second one has to read that value, "
               "then call __threadfence(), then access the data. Or split the kernel in two "
               "launches";
    return "__syncthreads() does not reach another block: split the kernel in two launches, or put "
           "cooperative_groups::this_grid().sync() between the two and launch it with "
           "cooperative=true";
}

static const char *advise(const mr_ptx_watch *w, const ptx_race *race, bool sizes_differ) {
    if (race->first.atomic && race->second.atomic) return advise_atomics(race, sizes_differ);
    if (race->first.block == race->second.block) return advise_in_block(w, race);
    return advise_between_blocks(w, race);
}

/* ---- races */

static ptx_race_side earlier_side(const ptx_turn *turn, const ptx_earlier *e) {
    const mr_ptx_watch *w = turn->watch;
    bool is_named = e->lanes >> e->named & 1;
    return (ptx_race_side){.block = turn->is_shared ? turn->access->block
                                                    : (e->epoch >> w->block_shift) - 1,
                           .warp = ptx_epoch_warp(e->epoch),
                           .lane = is_named ? e->named : (uint32_t)__builtin_ctz(e->lanes),
                           .access = e->access,
                           .atomic = e->atomic,
                           .instruction = w->instructions.items[e->at - 1]};
}

/* True: this pair of accesses was not counted yet, at another of its cells. */
static bool is_new_pair(ptx_turn *turn, uint32_t lane, const ptx_earlier *e) {
    if (turn->counted_epoch == e->epoch && turn->counted_at == e->at && turn->counted_lane == lane)
        return false;
    turn->counted_epoch = e->epoch;
    turn->counted_at = e->at;
    turn->counted_lane = lane;
    return true;
}

static ptx_apart apart(const ptx_race *race) {
    if (race->first.block != race->second.block) return PTX_APART_BLOCKS;
    return race->first.warp != race->second.warp ? PTX_APART_WARPS : PTX_APART_LANES;
}

void ptx_report(ptx_turn *turn, uint32_t lane, uint64_t address, uint32_t bytes,
                const ptx_earlier *e) {
    mr_ptx_watch *w = turn->watch;
    const ptx_watched *a = turn->access;
    turn->cell_bytes = bytes;
    pthread_mutex_lock(&w->lock);
    ptx_race race = {.space = a->space,
                     .address = address,
                     .bytes = bytes,
                     .least = address,
                     .end = address + bytes,
                     .first = earlier_side(turn, e),
                     .second = {.block = a->block,
                                .warp = a->warp,
                                .lane = lane,
                                .access = a->access,
                                .atomic = !e->exchanged && (a->atomic || a->order >= PTX_VOLATILE),
                                .instruction = a->instruction},
                     .same_value = e->same_value};
    race.apart = race.most_apart = apart(&race);
    race.advice = e->copies ? "cp.async copies in the background: its thread must wait for it "
                              "(__pipeline_wait_prior), then __syncthreads()"
                  : e->exchanged
                      ? "since Volta the lanes of a warp do not run in step, volatile or not: "
                        "__syncwarp() between the two orders them"
                      : advise(w, &race, e->sizes_differ);
    bool is_collected = ptx_race_collect(turn, &race, e, is_new_pair(turn, lane, e));
    pthread_mutex_unlock(&w->lock);
    if (!is_collected) ptx_watch_stop(w, "memory is out");
}
