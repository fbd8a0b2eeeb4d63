/* Makes the handlers of lanes.h. Included by lanes.c and lanes_v3.c, which differ in the flags of their compilation and
 * in PTX_LANES_TABLE, the name of the table. */

#include "ptx/run/half.h"
#include "ptx/run/lanes.h"
#include "ptx/run/runs.h"
#include "ptx/run/warp.h"
#include "ptx/watch/watch.h"

typedef ptx_u16 u16;
typedef ptx_u32 u32;
typedef ptx_u64 u64;
typedef ptx_s8 s8;
typedef ptx_s16 s16;
typedef ptx_s32 s32;
typedef ptx_s64 s64;
typedef ptx_f32 f32;
typedef ptx_f64 f64;

/* A result may lie where an operand does, then at the same lane: so no lane depends on another. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* some operations have no vector form */
#define EACH_LANE                                                                                  \
    _Pragma("clang loop vectorize(assume_safety)") for (unsigned i = 0; i < PTX_LANES; i++)
#else
#define EACH_LANE _Pragma("GCC ivdep") for (unsigned i = 0; i < PTX_LANES; i++)
#endif

static const uint32_t bit[PTX_LANES] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

static __attribute__((noinline)) void blend_2(u16 *d, const u16 *from, uint32_t mask) {
    EACH_LANE d[i] = mask & bit[i] ? from[i] : d[i];
}
static __attribute__((noinline)) void blend_4(u32 *d, const u32 *from, uint32_t mask) {
    EACH_LANE d[i] = mask & bit[i] ? from[i] : d[i];
}
static __attribute__((noinline)) void blend_8(u64 *d, const u64 *from, uint32_t mask) {
    EACH_LANE d[i] = mask & bit[i] ? from[i] : d[i];
}
static inline void blend(void *d, const void *from, size_t size, uint32_t mask) {
    if (size == 2) blend_2(d, from, mask);
    else if (size == 4) blend_4(d, from, mask);
    else blend_8(d, from, mask);
}

/* All lanes are computed; where some are inactive, into a buffer at first. */
#define BEGIN(D)                                                                                   \
    D buffer[PTX_LANES];                                                                           \
    D *d = PTX_AT(D, warp, code->d);                                                               \
    D *out = mask == PTX_ALL ? d : buffer;
#define END                                                                                        \
    if (mask != PTX_ALL) blend(d, buffer, sizeof *d, mask);                                        \
    return code + 1;

#define X(name, D, A, value)                                                                       \
    static const ptx_code *run_##name(ptx_warp *warp, const ptx_code *code, uint32_t mask) {       \
        const A *x = PTX_AT(const A, warp, code->a);                                               \
        const uint64_t n = code->bits;                                                             \
        (void)n;                                                                                   \
        BEGIN(D)                                                                                   \
        EACH_LANE {                                                                                \
            A a = x[i];                                                                            \
            out[i] = (D)(value);                                                                   \
        }                                                                                          \
        END                                                                                        \
    }
PTX_LANES_1(X)
#undef X

#define X(name, D, A, B, value)                                                                    \
    static const ptx_code *run_##name(ptx_warp *warp, const ptx_code *code, uint32_t mask) {       \
        const A *x = PTX_AT(const A, warp, code->a);                                               \
        const B *y = PTX_AT(const B, warp, code->b);                                               \
        const uint64_t n = code->bits;                                                             \
        (void)n;                                                                                   \
        BEGIN(D)                                                                                   \
        EACH_LANE {                                                                                \
            A a = x[i];                                                                            \
            B b = y[i];                                                                            \
            out[i] = (D)(value);                                                                   \
        }                                                                                          \
        END                                                                                        \
    }
PTX_LANES_2(X)
#undef X

#define X(name, D, A, B, C, value)                                                                 \
    static const ptx_code *run_##name(ptx_warp *warp, const ptx_code *code, uint32_t mask) {       \
        const A *x = PTX_AT(const A, warp, code->a);                                               \
        const B *y = PTX_AT(const B, warp, code->b);                                               \
        const C *z = PTX_AT(const C, warp, code->c);                                               \
        const uint64_t n = code->bits;                                                             \
        (void)n;                                                                                   \
        BEGIN(D)                                                                                   \
        EACH_LANE {                                                                                \
            A a = x[i];                                                                            \
            B b = y[i];                                                                            \
            C c = z[i];                                                                            \
            out[i] = (D)(value);                                                                   \
        }                                                                                          \
        END                                                                                        \
    }
PTX_LANES_3(X)
#undef X

#define X(name, A, condition)                                                                      \
    static const ptx_code *run_##name(ptx_warp *warp, const ptx_code *code, uint32_t mask) {       \
        const A *x = PTX_AT(const A, warp, code->a), *y = PTX_AT(const A, warp, code->b);          \
        uint32_t found = 0;                                                                        \
        for (unsigned i = 0; i < PTX_LANES; i++) {                                                 \
            A a = x[i], b = y[i];                                                                  \
            (void)b;                                                                               \
            found |= (condition) ? bit[i] : 0;                                                     \
        }                                                                                          \
        ptx_set_predicate(warp, code->d, found, mask);                                             \
        return code + 1;                                                                           \
    }
PTX_LANES_TEST(X)
#undef X

#define X(name, T)                                                                                 \
    static const ptx_code *run_##name(ptx_warp *warp, const ptx_code *code, uint32_t mask) {       \
        const T *x = PTX_AT(const T, warp, code->a), *y = PTX_AT(const T, warp, code->b);          \
        uint32_t chosen = ptx_predicate(warp, code->c);                                            \
        BEGIN(T)                                                                                   \
        EACH_LANE out[i] = chosen & bit[i] ? x[i] : y[i];                                          \
        END                                                                                        \
    }
PTX_LANES_SELECT(X)
#undef X

#define X(name, T, value)                                                                          \
    static const ptx_code *run_##name(ptx_warp *warp, const ptx_code *code, uint32_t mask) {       \
        const T *x = PTX_AT(const T, warp, code->a), *y = PTX_AT(const T, warp, code->b);          \
        const u32 *z = PTX_AT(const u32, warp, code->c);                                           \
        const u32 *last = PTX_AT(const u32, warp, (ptx_place_of)code->more);                       \
        BEGIN(T)                                                                                   \
        EACH_LANE {                                                                                \
            T a = x[i], b = y[i];                                                                  \
            u32 c = z[i], e = last[i];                                                             \
            out[i] = value;                                                                        \
        }                                                                                          \
        END                                                                                        \
    }
PTX_LANES_4(X)
#undef X

/* ---- loads and stores
 *
 * The usual case, without counts: all bytes lie in the range that the access found last (or in shared memory), and all
 * of them are written. Then they are reached here; everything else is the matter of ptx_run_load and ptx_run_store,
 * which do the same step by step. */

typedef struct {
    char *host;     /* of offset 0 */
    uint64_t first; /* the address of offset 0 */
    uint64_t bytes; /* 0: go the long way */
} window;

static inline window window_global(const ptx_warp *warp, const ptx_memory_code *m, bool writes) {
    const ptx_known_range *known = warp->run->last[m->index];
    window w = {known->range.host, known->range.first, known->range.end - known->range.first};
    bool may = !warp->run->is_counted && !known->range.unset && (!writes || known->may_write);
    if (!may) w.bytes = 0;
    return w;
}
static inline window window_shared(const ptx_warp *warp, const ptx_memory_code *m, bool writes) {
    (void)m, (void)writes;
    const ptx_block_run *block = warp->block;
    window w = {block->shared, 0, block->shared_bytes};
    if (warp->run->is_counted || block->shared_unset_left) w.bytes = 0;
    return w;
}

/* Tells the watch about the accesses of all lanes from `address` on, in a row or at one place. `from`: the stored
 * values. */
static __attribute__((noinline)) void tell_together(ptx_warp *warp, const ptx_code *code,
                                                    uint64_t address, bool is_row,
                                                    const void *from) {
    const ptx_memory_code *m = code->memory;
    if (m->space == PTX_CONST) return;
    uint64_t addresses[PTX_LANES], values[PTX_LANES], step = is_row ? m->bytes : 0;
    EACH_LANE addresses[i] = address + i * step;
    if (from && m->bytes == 4) {
        EACH_LANE values[i] = ((const u32 *)from)[i];
    } else if (from) {
        EACH_LANE values[i] = ((const u64 *)from)[i];
    }
    ptx_watched watched = {.block = warp->block->linear,
                           .warp = warp->number,
                           .mask = PTX_ALL,
                           .space = (ptx_space)m->space,
                           .address = addresses,
                           .bytes = m->bytes,
                           .access = m->access,
                           .value = from ? values : NULL,
                           .instruction = code->source,
                           .is_row = is_row,
                           .is_same = !is_row};
    ptx_watch_access(warp->run->launch->watch, &watched);
}

/* Offsets of the lanes in the window, and whether each lies in it and is aligned. */
#define OFFSETS(T, A)                                                                              \
    uint64_t delta = (uint64_t)m->offset - win.first, at[PTX_LANES], outside = 0;                  \
    if (win.bytes < sizeof(T) || warp->run->tells) goto slow;                                      \
    for (unsigned i = 0; i < PTX_LANES; i++) {                                                     \
        uint64_t offset = sizeof(A) == 8 ? lanes[i] + delta : (A)(lanes[i] + (A)delta);            \
        uint64_t on = mask & bit[i] ? ~(uint64_t)0 : 0;                                            \
        at[i] = offset & on;                                                                       \
        outside |= at[i] & ((uint64_t)-1 << 63 | (sizeof(T) - 1));                                 \
        outside |= (win.bytes - sizeof(T) - at[i]) & (uint64_t)1 << 63;                            \
    }                                                                                              \
    if (outside) goto slow;

/* All lanes in a row, or all at one place: one comparison with the window, and `there` is where lane 0 is. An offset in
 * the window is below 2^63, and in shared memory below 2^32; so what begins in it and does not end beyond it does not
 * wrap. */
#define FIND_TOGETHER(T, A)                                                                        \
    const A *lanes = PTX_AT(const A, warp, code->a);                                               \
    A apart = mask == PTX_ALL ? 0 : 1, unequal = apart;                                            \
    for (unsigned i = 0; i < PTX_LANES; i++) {                                                     \
        apart |= lanes[i] ^ (A)(lanes[0] + i * sizeof(T));                                         \
        unequal |= lanes[i] ^ lanes[0];                                                            \
    }                                                                                              \
    uint64_t start = (A)(lanes[0] + (A)((uint64_t)m->offset - win.first));                         \
    uint64_t length = unequal ? sizeof(T) * PTX_LANES : sizeof(T);                                 \
    bool is_inside = win.bytes >= length && start <= win.bytes - length && start % sizeof(T) == 0; \
    char *there = is_inside ? win.host + start : NULL;

#define X(name, T, A, space)                                                                       \
    static const ptx_code *run_##name(ptx_warp *warp, const ptx_code *code, uint32_t mask) {       \
        const ptx_memory_code *m = code->memory;                                                   \
        const window win = window_##space(warp, m, false);                                         \
        T *d = PTX_AT(T, warp, code->d);                                                           \
        FIND_TOGETHER(T, A)                                                                        \
        if ((!apart || !unequal) && is_inside && warp->run->tells)                                 \
            tell_together(warp, code, win.first + start, !apart, NULL);                            \
        if (!apart && is_inside) {                                                                 \
            memcpy(d, there, sizeof(T) * PTX_LANES);                                               \
            return code + 1;                                                                       \
        }                                                                                          \
        if (!unequal && is_inside) {                                                               \
            const T value = *(const T *)(const void *)there;                                       \
            EACH_LANE d[i] = value;                                                                \
            return code + 1;                                                                       \
        }                                                                                          \
        OFFSETS(T, A)                                                                              \
        if (mask == PTX_ALL) {                                                                     \
            for (unsigned i = 0; i < PTX_LANES; i++) {                                             \
                d[i] = *(const T *)(const void *)(win.host + at[i]);                               \
            }                                                                                      \
        } else {                                                                                   \
            for (unsigned i = 0; i < PTX_LANES; i++) {                                             \
                T value = *(const T *)(const void *)(win.host + at[i]);                            \
                d[i] = mask & bit[i] ? value : d[i];                                               \
            }                                                                                      \
        }                                                                                          \
        return code + 1;                                                                           \
    slow:                                                                                          \
        return ptx_run_load(warp, code, mask);                                                     \
    }
PTX_LANES_LOAD(X)
#undef X

#define X(name, T, A, space)                                                                       \
    static const ptx_code *run_##name(ptx_warp *warp, const ptx_code *code, uint32_t mask) {       \
        const ptx_memory_code *m = code->memory;                                                   \
        const window win = window_##space(warp, m, true);                                          \
        const T *s = PTX_AT(const T, warp, m->parts[0]);                                           \
        FIND_TOGETHER(T, A)                                                                        \
        if (!apart && is_inside) {                                                                 \
            if (warp->run->tells) tell_together(warp, code, win.first + start, true, s);           \
            memcpy(there, s, sizeof(T) * PTX_LANES);                                               \
            return code + 1;                                                                       \
        }                                                                                          \
        OFFSETS(T, A)                                                                              \
        for (uint32_t left = mask; left; left &= left - 1) {                                       \
            unsigned i = (unsigned)__builtin_ctz(left);                                            \
            *(T *)(void *)(win.host + at[i]) = s[i];                                               \
        }                                                                                          \
        return code + 1;                                                                           \
    slow:                                                                                          \
        return ptx_run_store(warp, code, mask);                                                    \
    }
PTX_LANES_STORE(X)
#undef X

#define X(name, T)                                                                                 \
    static const ptx_code *run_##name(ptx_warp *warp, const ptx_code *code, uint32_t mask) {       \
        T value;                                                                                   \
        memcpy(&value, warp->run->params + code->memory->offset, sizeof value);                    \
        T *d = PTX_AT(T, warp, code->d);                                                           \
        if (mask == PTX_ALL) {                                                                     \
            EACH_LANE d[i] = value;                                                                \
        } else {                                                                                   \
            EACH_LANE d[i] = mask & bit[i] ? value : d[i];                                         \
        }                                                                                          \
        return code + 1;                                                                           \
    }
PTX_LANES_PARAM(X)
#undef X

ptx_run *const PTX_LANES_TABLE[PTX_LANE_COUNT] = {
#define X(name, ...) run_##name,
    PTX_LANES_1(X) PTX_LANES_2(X) PTX_LANES_3(X) PTX_LANES_TEST(X) PTX_LANES_SELECT(X)
        PTX_LANES_4(X) PTX_LANES_LOAD(X) PTX_LANES_STORE(X) PTX_LANES_PARAM(X)
#undef X
};
