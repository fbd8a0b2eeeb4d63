/* Makes the handlers of lanes.h. Included by lanes.c and lanes_v3.c, which differ in the flags of their compilation and
 * in PTX_LANES_TABLE, the name of the table. */

#include "ptx/half.h"
#include "ptx/lanes.h"
#include "ptx/warp.h"

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

ptx_run *const PTX_LANES_TABLE[PTX_LANE_COUNT] = {
#define X(name, ...) run_##name,
    PTX_LANES_1(X) PTX_LANES_2(X) PTX_LANES_3(X) PTX_LANES_TEST(X) PTX_LANES_SELECT(X)
        PTX_LANES_4(X)
#undef X
};
