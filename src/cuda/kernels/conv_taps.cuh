/* The value that a tap reads at a position of a convolution's grid: an element of the source, or 0 outside of it. Both
 * kinds of taps have the same interface: near_taps with three instructions where coordinates and offsets are small
 * (family/conv.c decides), any_taps for the rest. */
#ifndef MR_CUDA_KERNELS_CONV_TAPS_CUH
#define MR_CUDA_KERNELS_CONV_TAPS_CUH

#include "cuda/kernels/device.cuh"

MR_DEVICE uint32_t quotient(const mr_cuda_divisor &d, uint32_t n) {
    return (__umulhi(n, d.multiplier) + n) >> d.shift;
}

/* at[offset], or 0 and no access. Written out as predicated instructions, since the compiler makes a branch of an `if`.
 * Volatile, since it moves loads down to where their values are used, behind the products that they should run
 * beside. */
template <class T> MR_DEVICE T load_if(bool exists, const T *at, int64_t offset) {
    at += offset;
    if constexpr (sizeof(T) == 4) {
        T v;
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.f32 %0, 0f00000000; @p ld.global.f32 %0, [%1]; }"
                     : "=f"(v)
                     : "l"(at), "r"((uint32_t)exists));
        return v;
    } else {
        T v;
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.f64 %0, 0d0000000000000000; @p ld.global.f64 %0, [%1]; }"
                     : "=d"(v)
                     : "l"(at), "r"((uint32_t)exists));
        return v;
    }
}
/* The same with the address in one instruction, where the compiler makes two. */
MR_DEVICE float load_if(bool exists, const float *at, int32_t offset) {
    float v;
    asm volatile("{ .reg .pred p; .reg .u64 a; setp.ne.u32 p, %3, 0; mad.wide.s32 a, %2, 4, %1; mov.f32 %0, 0f00000000; "
                 "@p ld.global.f32 %0, [a]; }"
                 : "=f"(v)
                 : "l"(at), "r"(offset), "r"((uint32_t)exists));
    return v;
}

/* A position: the image, and where the grid is; and the element (y, x) of the source, perhaps outside, at which the first
 * tap looks. */
struct grid_position {
    uint32_t image, row, column;
    int y, x;
};
MR_DEVICE grid_position position_at(const mr_cuda_conv &p, uint32_t number) {
    uint32_t line = quotient(p.columns, number), image = quotient(p.rows, line);
    uint32_t row = line - image * p.rows.value, column = number - line * p.columns.value;
    return {image, row, column, (int)row * p.step[0] + p.start[0], (int)column * p.step[1] + p.start[1]};
}

/* The place of tap k of an output: its channel, and its row and column in the window. */
struct window_tap {
    uint32_t channel, a, b;
};
MR_DEVICE window_tap tap_at(const mr_cuda_conv &p, uint32_t k) {
    uint32_t channel = quotient(p.taps, k), tap = k - channel * p.taps.value, a = quotient(p.tap_columns, tap);
    return {channel, a, tap - a * p.tap_columns.value};
}

/* Row and column are the halves of a word, as its signed sum: (row << 16) + column. All of them are within
 * +-MR_CUDA_CONV_NEAR, so half a word has room for any sum of two, and a sign tells that one is outside. */
template <class Type> struct near_taps {
    typedef Type T;
    typedef int32_t offset;
    struct tap {
        int32_t at, place;
    };
    static constexpr uint32_t SIGNS = 0x80008000, NOWHERE = 0x80000000, FAR = (uint32_t)-MR_CUDA_CONV_NEAR << 16;

    const T *first; /* the element that the first tap of channel 0 reads */
    uint32_t place, last;

    __device__ __forceinline__ near_taps(const mr_cuda_conv &p, const T *source, const grid_position &at, bool exists) {
        first = source + at.image * p.source_image + at.y * p.source_stride[0] + at.x * p.source_stride[1];
        place = exists ? ((uint32_t)at.y << 16) + (uint32_t)at.x : FAR;
        last = ((p.source_size[0] - 1) << 16) + (p.source_size[1] - 1);
    }

    MR_DEVICE_MEMBER tap describe(const mr_cuda_conv &p, const window_tap &k, bool exists) {
        if (!exists) return {0, (int32_t)NOWHERE};
        int dy = (int)k.a * p.tap_step[0], dx = (int)k.b * p.tap_step[1];
        return {(int32_t)(k.channel * p.source_channel + dy * p.source_stride[0] + dx * p.source_stride[1]),
                (int32_t)(((uint32_t)dy << 16) + (uint32_t)dx)};
    }

    __device__ __forceinline__ T see(const tap &k) const {
        uint32_t seen = place + (uint32_t)k.place;
        return load_if(((seen | (last - seen)) & SIGNS) == 0, first, k.at);
    }
};

template <class Type> struct any_taps {
    typedef Type T;
    typedef int64_t offset;
    struct tap {
        int64_t at;
        int32_t dy, dx;
    };

    const T *first;
    int y, x;
    uint32_t rows, columns;

    __device__ __forceinline__ any_taps(const mr_cuda_conv &p, const T *source, const grid_position &at, bool exists) {
        first = source + at.image * p.source_image + at.y * p.source_stride[0] + at.x * p.source_stride[1];
        y = exists ? at.y : INT32_MIN / 2;
        x = at.x;
        rows = p.source_size[0];
        columns = p.source_size[1];
    }

    MR_DEVICE_MEMBER tap describe(const mr_cuda_conv &p, const window_tap &k, bool exists) {
        int dy = exists ? (int)k.a * p.tap_step[0] : INT32_MIN / 2, dx = (int)k.b * p.tap_step[1];
        if (!exists) return {0, dy, 0};
        return {k.channel * p.source_channel + dy * p.source_stride[0] + dx * p.source_stride[1], dy, dx};
    }

    __device__ __forceinline__ T see(const tap &k) const {
        bool inside = (uint32_t)y + (uint32_t)k.dy < rows && (uint32_t)x + (uint32_t)k.dx < columns;
        return load_if(inside, first, k.at);
    }
};

#endif
