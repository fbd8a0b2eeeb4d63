/* Loads and stores of registers and vectors, and cp.async, which is carried out at once. */
#include "ptx/run/fault.h"
#include "ptx/run/memory.h"
#include "ptx/run/runs.h"
#include "ptx/run/warp.h"
#include "ptx/watch/watch.h"

#include <string.h>

/* ---- parts of each pair of widths */

/* name, type in memory, type of the register, is the former signed */
// clang-format off
#define LOADS(X) \
    X(u8_2, ptx_u8, ptx_u16, false) \
    X(u8_4, ptx_u8, ptx_u32, false) \
    X(u8_8, ptx_u8, ptx_u64, false) \
    X(s8_2, ptx_s8, ptx_s16, true) \
    X(s8_4, ptx_s8, ptx_s32, true) \
    X(s8_8, ptx_s8, ptx_s64, true) \
    X(u16_2, ptx_u16, ptx_u16, false) \
    X(u16_4, ptx_u16, ptx_u32, false) \
    X(u16_8, ptx_u16, ptx_u64, false) \
    X(s16_4, ptx_s16, ptx_s32, true) \
    X(s16_8, ptx_s16, ptx_s64, true) \
    X(u32_4, ptx_u32, ptx_u32, false) \
    X(u32_8, ptx_u32, ptx_u64, false) \
    X(s32_8, ptx_s32, ptx_s64, true) \
    X(u64_8, ptx_u64, ptx_u64, false)
#define STORES(X) \
    X(u8_2, ptx_u8, ptx_u16) \
    X(u8_4, ptx_u8, ptx_u32) \
    X(u8_8, ptx_u8, ptx_u64) \
    X(u16_2, ptx_u16, ptx_u16) \
    X(u16_4, ptx_u16, ptx_u32) \
    X(u16_8, ptx_u16, ptx_u64) \
    X(u32_4, ptx_u32, ptx_u32) \
    X(u32_8, ptx_u32, ptx_u64) \
    X(u64_8, ptx_u64, ptx_u64)
// clang-format on

#define X(name, M, R, is_signed)                                                                   \
    static void load_##name(const ptx_reach *r, size_t offset, void *to, uint32_t mask) {          \
        R *d = to;                                                                                 \
        if (r->shape == PTX_SAME) {                                                                \
            const R value = *(const M *)(const void *)(r->base + offset);                          \
            if (mask == PTX_ALL) {                                                                 \
                for (unsigned i = 0; i < PTX_LANES; i++) d[i] = value;                             \
            } else {                                                                               \
                for (unsigned i = 0; i < PTX_LANES; i++) d[i] = mask >> i & 1 ? value : d[i];      \
            }                                                                                      \
        } else if (r->shape == PTX_ROW && mask == PTX_ALL && r->stride == sizeof(M)) {             \
            const M *from = (const M *)(const void *)r->base;                                      \
            for (unsigned i = 0; i < PTX_LANES; i++) d[i] = from[i];                               \
        } else if (r->shape == PTX_ROW && mask == PTX_ALL) {                                       \
            const char *from = r->base + offset;                                                   \
            size_t stride = r->stride;                                                             \
            for (unsigned i = 0; i < PTX_LANES; i++) {                                             \
                d[i] = *(const M *)(const void *)(from + i * stride);                              \
            }                                                                                      \
        } else if (mask == PTX_ALL) {                                                              \
            for (unsigned i = 0; i < PTX_LANES; i++) {                                             \
                d[i] = *(const M *)(const void *)(r->lane[i] + offset);                            \
            }                                                                                      \
        } else {                                                                                   \
            for (uint32_t left = mask; left; left &= left - 1) {                                   \
                unsigned i = ptx_first_lane(left);                                                 \
                d[i] = *(const M *)(const void *)(ptx_lane_at(r, i) + offset);                     \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void strong_load_##name(const ptx_reach *r, size_t offset, void *to, uint32_t mask) {   \
        R *d = to;                                                                                 \
        for (uint32_t left = mask; left; left &= left - 1) {                                       \
            unsigned i = ptx_first_lane(left);                                                     \
            d[i] = __atomic_load_n((const M *)(const void *)(ptx_lane_at(r, i) + offset),          \
                                   __ATOMIC_SEQ_CST);                                              \
        }                                                                                          \
    }
LOADS(X)
#undef X

#define X(name, M, R)                                                                              \
    static void store_##name(const ptx_reach *r, size_t offset, const void *from, uint32_t mask) { \
        const R *s = from;                                                                         \
        if (r->shape == PTX_ROW && mask == PTX_ALL && r->stride == sizeof(M)) {                    \
            M *to = (M *)(void *)r->base;                                                          \
            for (unsigned i = 0; i < PTX_LANES; i++) to[i] = (M)s[i];                              \
            return;                                                                                \
        }                                                                                          \
        for (uint32_t left = mask; left; left &= left - 1) {                                       \
            unsigned i = ptx_first_lane(left);                                                     \
            *(M *)(void *)(ptx_lane_at(r, i) + offset) = (M)s[i];                                  \
        }                                                                                          \
    }                                                                                              \
    static void strong_store_##name(const ptx_reach *r, size_t offset, const void *from,           \
                                    uint32_t mask) {                                               \
        const R *s = from;                                                                         \
        for (uint32_t left = mask; left; left &= left - 1) {                                       \
            unsigned i = ptx_first_lane(left);                                                     \
            __atomic_store_n((M *)(void *)(ptx_lane_at(r, i) + offset), (M)s[i],                   \
                             __ATOMIC_SEQ_CST);                                                    \
        }                                                                                          \
    }
STORES(X)
#undef X

typedef struct {
    uint8_t part, reg;
    bool is_signed;
    ptx_load *plain, *strong;
} load_row;
typedef struct {
    uint8_t part, reg;
    ptx_store *plain, *strong;
} store_row;

static const load_row loads[] = {
#define X(name, M, R, is_signed) {sizeof(M), sizeof(R), is_signed, load_##name, strong_load_##name},
    LOADS(X)
#undef X
};
static const store_row stores[] = {
#define X(name, M, R) {sizeof(M), sizeof(R), store_##name, strong_store_##name},
    STORES(X)
#undef X
};

static const load_row *find_load(unsigned part, bool is_signed, unsigned reg) {
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        const load_row *row = &loads[i];
        if (row->part == part && row->reg == reg && (row->is_signed == is_signed || part == reg)) {
            return row;
        }
    }
    return NULL;
}
static const store_row *find_store(unsigned part, unsigned reg) {
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++) {
        if (stores[i].part == part && stores[i].reg == reg) return &stores[i];
    }
    return NULL;
}
ptx_load *ptx_find_load(unsigned part, bool is_signed, unsigned reg) {
    const load_row *row = find_load(part, is_signed, reg);
    return row ? row->plain : NULL;
}
ptx_load *ptx_find_load_strong(unsigned part, bool is_signed, unsigned reg) {
    const load_row *row = find_load(part, is_signed, reg);
    return row ? row->strong : NULL;
}
ptx_store *ptx_find_store(unsigned part, unsigned reg) {
    const store_row *row = find_store(part, reg);
    return row ? row->plain : NULL;
}
ptx_store *ptx_find_store_strong(unsigned part, unsigned reg) {
    const store_row *row = find_store(part, reg);
    return row ? row->strong : NULL;
}

/* ---- handlers */

/* A strong access is told to the watch and carried out with no other in between. */
static mr_ptx_watch *hold(const ptx_warp *warp, const ptx_memory_code *m) {
    mr_ptx_watch *watch = m->order == PTX_WEAK ? NULL : warp->run->launch->watch;
    if (watch) ptx_watch_hold(watch);
    return watch;
}
static const ptx_code *let_go(mr_ptx_watch *watch, const ptx_code *next) {
    if (watch) ptx_watch_let_go(watch);
    return next;
}

const ptx_code *ptx_run_load(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    const ptx_memory_code *m = code->memory;
    ptx_reach reach;
    mr_ptx_watch *watch = hold(warp, m);
    if (!ptx_reach_lanes(warp, code, m, code->a, mask, &reach)) return let_go(watch, NULL);
    for (unsigned i = 0; i < m->count; i++) {
        if (m->parts[i] == PTX_NO_PART) continue;
        m->load(&reach, i * m->part_bytes, PTX_AT(char, warp, m->parts[i]), mask);
    }
    return let_go(watch, code + 1);
}

/* What the lanes write, for reports of races. */
static void note_values(ptx_warp *warp, const ptx_memory_code *m, const ptx_code *code,
                        uint64_t values[PTX_LANES]) {
    unsigned reg = (unsigned)code->more; /* bytes of the register */
    for (unsigned i = 0; i < PTX_LANES; i++) {
        uint64_t value = reg == 2   ? PTX_AT(const ptx_u16, warp, m->parts[0])[i]
                         : reg == 4 ? PTX_AT(const ptx_u32, warp, m->parts[0])[i]
                                    : PTX_AT(const ptx_u64, warp, m->parts[0])[i];
        values[i] = m->part_bytes < 8 ? value & (((uint64_t)1 << (8 * m->part_bytes)) - 1) : value;
    }
    warp->run->values = values;
}

const ptx_code *ptx_run_store(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    const ptx_memory_code *m = code->memory;
    ptx_reach reach;
    uint64_t values[PTX_LANES];
    if (warp->run->tells && m->count == 1) note_values(warp, m, code, values);
    mr_ptx_watch *watch = hold(warp, m);
    bool found = ptx_reach_lanes(warp, code, m, code->a, mask, &reach);
    warp->run->values = NULL;
    if (!found) return let_go(watch, NULL);
    for (unsigned i = 0; i < m->count; i++) {
        m->store(&reach, i * m->part_bytes, PTX_AT(const char, warp, m->parts[i]), mask);
    }
    return let_go(watch, code + 1);
}

/* The bytes are there at once. The watch decides that they need not be. */
static void tell_copy(ptx_warp *warp, const ptx_code *code, uint32_t mask, const ptx_reach *to) {
    mr_ptx_watch *watch = warp->run->launch->watch;
    const ptx_watched copy = {.block = warp->block->linear,
                              .warp = warp->number,
                              .mask = mask,
                              .space = PTX_SHARED,
                              .address = to->address,
                              .bytes = code->memory->bytes,
                              .access = MR_PTX_WRITES,
                              .instruction = code->source};
    if (watch) ptx_watch_copy(watch, &copy);
}

const ptx_code *ptx_run_copy_commit(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    mr_ptx_watch *watch = warp->run->launch->watch;
    if (watch) ptx_watch_commit(watch, warp->block->linear, warp->number, mask);
    return code + 1;
}

const ptx_code *ptx_run_copy_wait(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    mr_ptx_watch *watch = warp->run->launch->watch;
    if (watch) ptx_watch_wait(watch, warp->block->linear, warp->number, mask, code->bits);
    return code + 1;
}

/* d: how many bytes are copied (a number), c: how many of them come from memory, the rest being zeros, or
 * PTX_NO_PART */
const ptx_code *ptx_run_copy_async(ptx_warp *warp, const ptx_code *code, uint32_t mask) {
    const ptx_memory_code *to = code->memory, *from = to + 1;
    ptx_reach there, here;
    uint32_t reads = mask;
    if (code->c != PTX_NO_PART) {
        const ptx_u32 *size = PTX_AT(const ptx_u32, warp, code->c);
        for (unsigned i = 0; i < PTX_LANES; i++) reads &= size[i] == 0 ? ~(1u << i) : PTX_ALL;
    }
    if (!ptx_reach_lanes(warp, code, to, code->a, mask, &there)) return NULL;
    if (reads && !ptx_reach_lanes(warp, code, from, code->b, reads, &here)) return NULL;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = ptx_first_lane(left);
        uint32_t bytes = to->bytes;
        if (code->c != PTX_NO_PART) bytes = PTX_AT(const ptx_u32, warp, code->c)[i];
        if (bytes > to->bytes) bytes = to->bytes;
        char *at = ptx_lane_at(&there, i);
        if (bytes) memcpy(at, ptx_lane_at(&here, i), bytes);
        memset(at + bytes, 0, to->bytes - bytes);
    }
    tell_copy(warp, code, mask, &there);
    return code + 1;
}
