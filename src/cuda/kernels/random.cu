/* Values made of their positions: random numbers, sequences, the identity. The numbers are those of the CPU
 * bodies (ops/random.c, ops/generator.c); only the normal ones of f32 may differ, by 2 units in the last
 * place, as they are computed with fused multiply-adds. */
#include "cuda/kernels/device.cuh"

/* ------------------------------------------------------------------------- Philox */

/* Philox-4x32-10, as base/philox.h. The key is the same for all threads, so its ten values cost next to
 * nothing; a product's two halves come from one instruction. */
struct four {
    uint32_t v[4];
};
MR_DEVICE four philox(uint64_t seed, uint64_t offset, uint32_t low, uint32_t high) {
    uint32_t c0 = low, c1 = high, c2 = (uint32_t)offset, c3 = (uint32_t)(offset >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

/* [0, 1): as many bits as the type holds exactly. */
MR_DEVICE float unit_f32(uint32_t bits) { return (float)(bits >> 8) * 0x1p-24f; }
MR_DEVICE double unit_f64(uint32_t low, uint32_t high) {
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

/* ------------------------------------------------------------------------- the loop */

/* G makes values number PER * block to PER * block + PER - 1 of type T. Blocks are counted in two halves: the
 * higher is the same for all threads. */
template <class G> MR_DEVICE void generate(const mr_cuda_generate &p) {
    typedef typename G::T T;
    constexpr int PER = G::PER;
    uint64_t blocks = (p.count + PER - 1) / PER;
    for (uint32_t high = 0; high <= (uint32_t)((blocks - 1) >> 32); high++) {
        uint64_t rest = blocks - ((uint64_t)high << 32), end = rest < (1ull << 32) ? rest : 1ull << 32;
        for (uint64_t low = thread_number(); low < end; low += thread_count()) {
            vector<T, PER> r;
            G::make(p, (uint32_t)low, high, r.v);
            uint64_t i = (((uint64_t)high << 32) + low) * PER;
            if (p.dense && i + PER <= p.count) {
                store_vector(p.out, i, r);
                continue;
            }
#pragma unroll
            for (int j = 0; j < PER; j++)
                if (i + j < p.count) ((T *)p.out)[p.dense ? (int64_t)(i + j) : far_offset(p.shape, p.stride, i + j)] = r.v[j];
        }
    }
}

#define GENERATOR(name, tag)                                                                       \
    extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS)                                  \
        millrace_##name##_##tag(const __grid_constant__ mr_cuda_generate p) {                      \
        generate<name##_##tag>(p);                                                                 \
    }

/* ------------------------------------------------------------------------- uniform, normal */

struct uniform_f32 {
    typedef float T;
    static constexpr int PER = 4;
    MR_DEVICE_MEMBER void make(const mr_cuda_generate &p, uint32_t low, uint32_t high, T *v) {
        four r = philox(p.seed, p.offset, low, high);
        float from = (float)p.real[0], width = (float)(p.real[1] - p.real[0]);
#pragma unroll
        for (int j = 0; j < 4; j++) v[j] = unit_f32(r.v[j]) * width + from;
    }
};
GENERATOR(uniform, f32)

struct uniform_f64 {
    typedef double T;
    static constexpr int PER = 2;
    MR_DEVICE_MEMBER void make(const mr_cuda_generate &p, uint32_t low, uint32_t high, T *v) {
        four r = philox(p.seed, p.offset, low, high);
        double width = p.real[1] - p.real[0];
#pragma unroll
        for (int j = 0; j < 2; j++) v[j] = unit_f64(r.v[2 * j], r.v[2 * j + 1]) * width + p.real[0];
    }
};
GENERATOR(uniform, f64)

/* sqrt(-2 log(u)) for u in [2^-24, 1]: mr_log_f32 without the cases that cannot occur, and a square root of
 * one correction, which is exact but for about one value in a hundred. */
MR_DEVICE float normal_radius(float u) {
    uint32_t shifted = __float_as_uint(u) - 0x3f3504f3u;
    float k = (float)((int32_t)shifted >> 23);
    float x = __uint_as_float((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float z = x * x, p = 7.0376836292e-2f;
    p = __fmaf_rn(p, x, -1.1514610310e-1f);
    p = __fmaf_rn(p, x, 1.1676998740e-1f);
    p = __fmaf_rn(p, x, -1.2420140846e-1f);
    p = __fmaf_rn(p, x, 1.4249322787e-1f);
    p = __fmaf_rn(p, x, -1.6668057665e-1f);
    p = __fmaf_rn(p, x, 2.0000714765e-1f);
    p = __fmaf_rn(p, x, -2.4999993993e-1f);
    p = __fmaf_rn(p, x, 3.3333331174e-1f);
    float y = __fmaf_rn(x * z, p, __fmaf_rn(k, -2.12194440e-4f, -0.5f * z));
    float t = -2.0f * __fmaf_rn(k, 0.693359375f, x + y);
    float inverse;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(t + 1e-30f)); /* t is 0 or above 1e-7 */
    float s = t * inverse;
    return __fmaf_rn(__fmaf_rn(-s, s, t), 0.5f * inverse, s);
}

/* Cosine and sine of an angle in [0, 2 pi]: mr_cos_near_f32 and mr_sin_near_f32 at once, in double precision,
 * so that they round as those do. */
MR_DEVICE void circle(float angle, float *cosine, float *sine) {
    double x = (double)angle, t = __fma_rn(x, 6.36619772367581382433e-01, MR_ROUND_F64), k = t - MR_ROUND_F64;
    double r = __fma_rn(k, -6.07710050650619224932e-11, __fma_rn(k, -1.57079632673412561417e+00, x)), z = r * r, w = z * z;
    double s = __fma_rn(z, 0x111110896efbb2.0p-59, -0x15555554cbac77.0p-55);
    s = __fma_rn(w, __fma_rn(z, 0x16cd878c3b46a7.0p-71, -0x1a00f9e2cae774.0p-65), s);
    s = __fma_rn(r * z, s, r);
    double c = __fma_rn(z, 0x199342e0ee5069.0p-68, -0x16c087e80f1e27.0p-62);
    c = __fma_rn(w, __fma_rn(z, c, 0x155553e1053a42.0p-57), __fma_rn(z, -0x1ffffffd0c5e81.0p-54, 1.0));
    float near = (float)s, far = (float)c;
    uint32_t quarter = (uint32_t)__double2loint(t);
    bool odd = quarter & 1;
    *cosine = __uint_as_float(__float_as_uint(odd ? near : far) ^ ((quarter + 1) << 30 & 0x80000000u));
    *sine = __uint_as_float(__float_as_uint(odd ? far : near) ^ (quarter << 30 & 0x80000000u));
}

struct normal_f32 {
    typedef float T;
    static constexpr int PER = 4;
    MR_DEVICE_MEMBER void make(const mr_cuda_generate &p, uint32_t low, uint32_t high, T *v) {
        four r = philox(p.seed, p.offset, low, high);
        float mean = (float)p.real[0], deviation = (float)p.real[1];
#pragma unroll
        for (int j = 0; j < 4; j += 2) {
            float cosine, sine, radius = normal_radius(__fmaf_rn((float)(r.v[j] >> 8), -0x1p-24f, 1.0f));
            circle((float)(r.v[j + 1] >> 8) * (6.283185307179586f * 0x1p-24f), &cosine, &sine);
            v[j] = __fmaf_rn(radius * cosine, deviation, mean);
            v[j + 1] = __fmaf_rn(radius * sine, deviation, mean);
        }
    }
};
GENERATOR(normal, f32)

struct normal_f64 {
    typedef double T;
    static constexpr int PER = 2;
    MR_DEVICE_MEMBER void make(const mr_cuda_generate &p, uint32_t low, uint32_t high, T *v) {
        four r = philox(p.seed, p.offset, low, high);
        double radius = sqrt(-2.0 * mr_log_f64(1.0 - unit_f64(r.v[0], r.v[1])));
        double angle = unit_f64(r.v[2], r.v[3]) * 6.283185307179586477;
        v[0] = radius * mr_cos_near_f64(angle) * p.real[1] + p.real[0];
        v[1] = radius * mr_sin_near_f64(angle) * p.real[1] + p.real[0];
    }
};
GENERATOR(normal, f64)

/* ------------------------------------------------------------------------- for outputs of all types */

/* MAKE(name, statements that set v[0] to v[3]): they see p, the number of the block in `low` and `high`, and in
 * `first` the position of v[0]; output_of(x) is x as the output's type. */
#define UNROLL _Pragma("unroll")
#define MAKE_ONE(name, tag, T_, to_output, ...)                                                    \
    struct name##_##tag {                                                                          \
        typedef T_ T;                                                                              \
        static constexpr int PER = 4;                                                              \
        MR_DEVICE_MEMBER T output_of(int64_t x) { return to_output; }                              \
        MR_DEVICE_MEMBER T output_of(double x) { return to_output; }                               \
        MR_DEVICE_MEMBER void values(const mr_cuda_generate &p, uint32_t low, uint32_t high,       \
                                     uint64_t first, T *v) {                                       \
            __VA_ARGS__                                                                            \
        }                                                                                          \
        MR_DEVICE_MEMBER void make(const mr_cuda_generate &p, uint32_t low, uint32_t high, T *v) { \
            values(p, low, high, ((uint64_t)high << 32 | low) * PER, v);                           \
        }                                                                                          \
    };                                                                                             \
    GENERATOR(name, tag)
#define MAKE(name, ...)                                                                            \
    MAKE_ONE(name, u8, uint8_t, convert<T>(x), __VA_ARGS__)                                        \
    MAKE_ONE(name, i32, int32_t, convert<T>(x), __VA_ARGS__)                                       \
    MAKE_ONE(name, i64, int64_t, convert<T>(x), __VA_ARGS__)                                       \
    MAKE_ONE(name, f32, float, convert<T>(x), __VA_ARGS__)                                         \
    MAKE_ONE(name, f64, double, convert<T>(x), __VA_ARGS__)                                        \
    MAKE_ONE(name, b8, uint8_t, (T)(x != 0), __VA_ARGS__)

MAKE(bernoulli, {
    four r = philox(p.seed, p.offset, low, high);
    UNROLL
    for (int j = 0; j < 4; j++) v[j] = (T)((double)unit_f32(r.v[j]) < p.real[0]);
})

/* 64 bits a value: two blocks for four of them. */
MAKE(randint, {
    uint64_t range = (uint64_t)p.integer[1] - (uint64_t)p.integer[0], block = first / 2;
    UNROLL
    for (int j = 0; j < 4; j += 2) {
        four r = philox(p.seed, p.offset, (uint32_t)(block + j / 2), (uint32_t)((block + j / 2) >> 32));
        uint64_t even = (uint64_t)r.v[1] << 32 | r.v[0], odd = (uint64_t)r.v[3] << 32 | r.v[2];
        v[j] = output_of((int64_t)((uint64_t)p.integer[0] + __umul64hi(even, range)));
        v[j + 1] = output_of((int64_t)((uint64_t)p.integer[0] + __umul64hi(odd, range)));
    }
})

/* Integers as i64, which wraps; floats as f64. */
MAKE(arange, {
    UNROLL
    for (int j = 0; j < 4; j++) {
        if constexpr (is_integer<T>)
            v[j] = output_of((int64_t)((uint64_t)p.integer[0] + (first + j) * (uint64_t)p.integer[1]));
        else
            v[j] = output_of(p.real[0] + (double)(int64_t)(first + j) * p.real[1]);
    }
})

/* Counted from the nearer end, so that both ends are exact and the values symmetric. */
MAKE(linspace, {
    UNROLL
    for (int j = 0; j < 4; j++) {
        int64_t k = (int64_t)first + j, count = (int64_t)p.count;
        v[j] = output_of(k < (count + 1) / 2 ? p.real[0] + p.real[2] * (double)k
                                             : p.real[1] - p.real[2] * (double)(count - 1 - k));
    }
})

/* Ones are at row * columns + row, for as many rows as there are columns. */
MAKE(eye, {
    UNROLL
    for (int j = 0; j < 4; j++) {
        uint64_t step = (uint64_t)p.integer[0] + 1, row = (first + j) / step;
        v[j] = output_of((int64_t)((first + j) % step == 0 && row < (uint64_t)p.integer[0]));
    }
})

/* ------------------------------------------------------------------------- randperm */

/* The positions in the order of 64 random bits, then of the positions themselves: a bitonic network, whose
 * result does not depend on the order in which its exchanges are done. What fills up to a power of two
 * comes last. */
extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS) millrace_sort_begin(const __grid_constant__ mr_cuda_sort p) {
    for (uint64_t i = thread_number(); i < p.padded; i += thread_count()) {
        four r = philox(p.seed, p.offset, (uint32_t)(i / 2), (uint32_t)(i / 2 >> 32));
        uint64_t key = i % 2 ? (uint64_t)r.v[3] << 32 | r.v[2] : (uint64_t)r.v[1] << 32 | r.v[0];
        p.keys[i] = i < p.count ? key : ~0ull;
        p.positions[i] = i;
    }
}

MR_DEVICE void exchange(uint64_t &key, uint64_t &position, uint64_t &other_key, uint64_t &other_position, bool up) {
    bool greater = key > other_key || (key == other_key && position > other_position);
    if (greater != up) return;
    uint64_t k = key, q = position;
    key = other_key, position = other_position;
    other_key = k, other_position = q;
}

/* One step whose partners are further apart than a block's share. */
extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS) millrace_sort_step(const __grid_constant__ mr_cuda_sort p) {
    for (uint64_t t = thread_number(); t < p.padded / 2; t += thread_count()) {
        uint64_t i = t / p.step * 2 * p.step + t % p.step, j = i + p.step;
        exchange(p.keys[i], p.positions[i], p.keys[j], p.positions[j], (i & p.block) == 0);
    }
}

/* All steps from p.step on down inside pieces of 2 * MR_CUDA_THREADS elements; and, from p.block 0, all
 * stages that fit there. */
extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS) millrace_sort_near(const __grid_constant__ mr_cuda_sort p) {
    constexpr uint32_t PIECE = 2 * MR_CUDA_THREADS;
    __shared__ uint64_t keys[PIECE], positions[PIECE];
    uint64_t base = (uint64_t)blockIdx.x * PIECE;
    uint32_t size = p.padded < PIECE ? (uint32_t)p.padded : PIECE;
    for (uint32_t i = threadIdx.x; i < size; i += MR_CUDA_THREADS) {
        keys[i] = p.keys[base + i];
        positions[i] = p.positions[base + i];
    }
    uint64_t block = p.block ? p.block : 2, last = p.block ? p.block : size;
    for (; block <= last; block *= 2) {
        for (uint32_t step = block / 2 < size / 2 ? (uint32_t)(block / 2) : size / 2; step > 0; step /= 2) {
            __syncthreads();
            if (threadIdx.x < size / 2) {
                uint32_t i = threadIdx.x / step * 2 * step + threadIdx.x % step;
                exchange(keys[i], positions[i], keys[i + step], positions[i + step], ((base + i) & block) == 0);
            }
        }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < size; i += MR_CUDA_THREADS) {
        p.keys[base + i] = keys[i];
        p.positions[base + i] = positions[i];
    }
}

extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS) millrace_sort_end(const __grid_constant__ mr_cuda_sort p) {
    for (uint64_t i = thread_number(); i < p.count; i += thread_count())
        store_any<int64_t>(p.out, p.dtype, offset_of(p.shape, p.stride, i), (int64_t)p.positions[i] + 1);
}
