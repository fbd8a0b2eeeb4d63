/* Waiting warps: see spin.h. Easiest to break: a code that has an effect outside of registers and local memory must
 * count as a change. Otherwise a working block counts as one that waits for ever. */
#include "ptx/run/spin.h"

#include "ptx/run/counts.h"
#include "ptx/run/runs.h"
#include "ptx/watch/watch.h"

/* ---- what a code does */

/* Not by the code's memory: an instruction may have several codes, and one of them is the access. */
static bool is_private(const ptx_instruction *i) {
    return ptx_has(i, PTX_MOD_local) || ptx_has(i, PTX_MOD_param);
}

static void look_at(ptx_run_state *run, const ptx_code *code) {
    if (!code->source) return;
    switch ((ptx_opcode)code->source->opcode) {
    case PTX_OP_ld:
        if (code->run == ptx_run_load && code->memory->order != PTX_WEAK) run->polls++;
        return;
    case PTX_OP_atom:
    case PTX_OP_red: run->polls++; return; /* changes are counted by the operation itself */
    case PTX_OP_st: run->changes += !is_private(code->source); return;
    case PTX_OP_cp:
    case PTX_OP_bar:
    case PTX_OP_barrier: run->changes++; return;
    case PTX_OP_call: /* into the device's functions, as printf */
        run->changes += code->run != ptx_run_call && code->run != ptx_run_call_indirect;
        return;
    default: run->changes += code->run == ptx_run_clock; return;
    }
}

const ptx_code *ptx_run_probe(ptx_warp *warp, const ptx_code *code) {
    ptx_run_state *run = warp->run;
    while (code) {
        if (--warp->budget < 0) return code;
        uint32_t mask = warp->active & (ptx_predicate(warp, code->guard) ^ code->guard_flip);
        if (run->is_counted && ptx_counts_here(warp, code, mask))
            ptx_counts_add(run->counts, warp->frame->routine, code,
                           code->run == ptx_run_branch ? warp->active : mask);
        if (mask) look_at(run, code);
        code = mask ? code->run(warp, code, mask) : code + 1;
    }
    return NULL;
}

/* ---- what counts as work */

#define MOST_FRESH 32 /* more: it works through a list, and its state is no longer compared */

typedef enum { OTHER, ASKS, CHANGES } effect;

static effect effect_of(const ptx_code *code) {
    if (!code->source) return OTHER;
    switch ((ptx_opcode)code->source->opcode) {
    case PTX_OP_ld:
        return code->run == ptx_run_load && code->memory->order != PTX_WEAK ? ASKS : OTHER;
    case PTX_OP_atom: return ASKS;
    case PTX_OP_st: return is_private(code->source) ? OTHER : CHANGES;
    case PTX_OP_red:
    case PTX_OP_cp:
    case PTX_OP_bar:
    case PTX_OP_barrier: return CHANGES;
    default: return OTHER;
    }
}

static uint64_t mix(uint64_t h, uint64_t value) {
    h = (h ^ value) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint64_t word_at(const char *bytes) {
    return *(const ptx_u64 *)(const void *)bytes;
}

/* Four chains, since a multiplication has to wait only for the one before it in its own. A launch that waits spends
 * most of its time here. */
static uint64_t mix_bytes(uint64_t h, const char *bytes, size_t size) {
    uint64_t a = h, b = h + 1, c = h + 2, d = h + 3;
    size_t i = 0;
    for (; i + 32 <= size; i += 32) {
        a = mix(a, word_at(bytes + i));
        b = mix(b, word_at(bytes + i + 8));
        c = mix(c, word_at(bytes + i + 16));
        d = mix(d, word_at(bytes + i + 24));
    }
    for (; i + 8 <= size; i += 8) a = mix(a, word_at(bytes + i));
    return mix(mix(mix(a, b), c), d);
}

static void ask(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    ptx_repeat *r = &warp->repeat;
    bool again = r->poll == code;
    if (again && r->fresh > MOST_FRESH) return;
    uint64_t state = mix((uint64_t)warp->active << 32 | mask, warp->run->changes);
    state = mix_bytes(state, warp->frame->registers, warp->frame->routine->frame_bytes);
    r->is_idle = again && state == r->state;
    r->fresh = again && !r->is_idle ? r->fresh + 1 : 0;
    r->state = state;
    if (r->is_idle) return; /* once more through the codes between low and high */
    r->poll = r->low = r->high = code;
}

bool ptx_counts_here(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    ptx_repeat *r = &warp->repeat;
    if (r->is_idle && (code < r->low || code > r->high)) *r = (ptx_repeat){0};
    switch (mask ? effect_of(code) : OTHER) {
    case ASKS: ask(warp, code, mask); break;
    case CHANGES: r->poll = NULL; break;
    case OTHER: break;
    }
    if (!r->is_idle && r->poll) {
        if (code < r->low) r->low = code;
        if (code > r->high) r->high = code;
    }
    return !r->is_idle;
}

/* ---- the state of a block */

static uint64_t mix_path(uint64_t h, const ptx_path *path) {
    h = mix(h, (uintptr_t)path->code);
    h = mix(h, (uint64_t)path->mask << 32 | (uint64_t)path->state << 8 | path->barrier);
    for (const ptx_join *join = path->join; join; join = join->outer)
        h = mix(mix(h, (uintptr_t)join->code), (uint64_t)join->expected << 32 | join->arrived);
    for (const ptx_frame *frame = path->frame; frame; frame = frame->caller)
        h = mix_bytes(mix(h, frame->depth), frame->registers, frame->routine->frame_bytes);
    return h;
}

uint64_t ptx_block_state(const ptx_run_state *run) {
    uint64_t h = run->block.linear;
    for (uint32_t w = 0; w < run->warp_count; w++) {
        const ptx_warp *warp = &run->warps[w];
        h = mix(h, (uint64_t)warp->alive << 32 | warp->carry);
        for (uint32_t i = 0; i < warp->path_count; i++) h = mix_path(h, &warp->paths[i]);
        if (warp->alive)
            h = mix_bytes(h, warp->local, (size_t)(warp->local_used + 15) / 16 * 16 * PTX_LANES);
    }
    return h;
}
