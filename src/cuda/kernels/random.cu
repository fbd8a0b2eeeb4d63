/* Values made of their positions: random numbers, sequences, the identity. They are those of the CPU bodies
 * (ops/body/random.c, ops/body/generator.c), bit for bit. */
#include "cuda/kernels/device.cuh"

/* ------------------------------------------------------------------------- Philox */

/* Philox-4x32-10, as base/philox.h. One instruction gives both halves of a product, and one mixes them: the key of a
 * round comes from the arguments, so it is an operand like any other. */
struct four {
    uint32_t v[4];
};
MR_DEVICE four philox(const mr_cuda_philox &p, uint64_t block) {
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = p.offset[0], c3 = p.offset[1];
#pragma unroll
    for (int round = 0; round < MR_CUDA_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ p.key[round][0];
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ p.key[round][1];
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
    }
    return {{c0, c1, c2, c3}};
}

/* [0, 1): as many bits as the type holds exactly. */
MR_DEVICE float unit_f32(uint32_t bits) { return (float)(bits >> 8) * 0x1p-24f; }
MR_DEVICE double unit_f64(uint32_t low, uint32_t high) {
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

/* ------------------------------------------------------------------------- from positions to kernels */

/* G makes elements 4 quad to 4 quad + 3, of type T. The quads of a thread are MR_CUDA_GENERATORS apart and made side by
 * side, as a round of Philox waits for the one before it. All quads of a block have the same higher half, as a
 * block's first is a multiple of their number. */
template <class G> MR_DEVICE void generate_from(const mr_cuda_generate &p, const mr_cuda_philox &from) {
    typedef typename G::T T;
    constexpr uint32_t QUADS = MR_CUDA_GENERATED / 4;
    uint64_t begin = (uint64_t)blockIdx.x * QUADS;
    uint32_t high = (uint32_t)(begin >> 32), low = (uint32_t)begin + threadIdx.x;
    if (p.dense && (begin + QUADS) * 4 <= p.count) {
        T *out = (T *)p.out + (begin + threadIdx.x) * 4;
#pragma unroll
        for (uint32_t u = 0; u < QUADS; u += MR_CUDA_GENERATORS) {
            vector<T, 4> r;
            G::make(p, from, (uint64_t)high << 32 | (low + u), r.v);
            store_past_l1(out + u * 4, r);
        }
        return;
    }
    /* The last block, and other layouts. */
#pragma unroll 1
    for (uint32_t u = 0; u < QUADS; u += MR_CUDA_GENERATORS) {
        uint64_t quad = (uint64_t)high << 32 | (low + u);
        if (quad * 4 >= p.count) return;
        T v[4];
        G::make(p, from, quad, v);
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (quad * 4 + j < p.count) ((T *)p.out)[far_offset(p.shape, p.stride, quad * 4 + j)] = v[j];
    }
}

/* What a launch of a graph draws from. */
MR_DEVICE mr_cuda_philox of_launch(const mr_cuda_philox &p) {
    mr_cuda_philox from = *p.launch;
    uint64_t own = (uint64_t)p.offset[1] << 32 | p.offset[0],
             first = (uint64_t)from.offset[1] << 32 | from.offset[0];
    from.offset[0] = (uint32_t)(first + own);
    from.offset[1] = (uint32_t)((first + own) >> 32);
    return from;
}

/* Two copies of the code: outside of graphs the keys are operands that need no register. */
template <class G> MR_DEVICE void generate(const mr_cuda_generate &p) {
    if (p.philox.launch) generate_from<G>(p, of_launch(p.philox));
    else generate_from<G>(p, p.philox);
}

/* With 64 registers a thread, half of an SM's threads are resident. Fewer threads have too little to do; with more,
 * each would make too few quads side by side. */
#define GENERATOR_KERNEL(name) extern "C" __global__ void __launch_bounds__(MR_CUDA_GENERATORS, 8) name(const __grid_constant__ mr_cuda_generate p)

#define GENERATOR(name, tag)                                                                       \
    GENERATOR_KERNEL(millrace_##name##_##tag) { generate<name##_##tag>(p); }
#define SEQUENCE(name, tag)                                                                        \
    GENERATOR_KERNEL(millrace_##name##_##tag) { generate_from<name##_##tag>(p, p.philox); }

/* ------------------------------------------------------------------------- uniform, normal */

/* p.real and p.single are the least number and the bound that is not reached, or the mean and the deviation. */

/* Rounding may carry a number up to the bound: it becomes the least one. */
template <class T> MR_DEVICE T uniform_in(T unit, T low, T high) {
    T x = unit * (high - low) + low;
    return x < high ? x : low;
}

struct uniform_f32 {
    typedef float T;
    MR_DEVICE_MEMBER void make(const mr_cuda_generate &p, const mr_cuda_philox &from, uint64_t quad, T *v) {
        four r = philox(from, quad);
#pragma unroll
        for (int j = 0; j < 4; j++) v[j] = uniform_in(unit_f32(r.v[j]), p.single[0], p.single[1]);
    }
};
GENERATOR(uniform, f32)

struct uniform_f64 {
    typedef double T;
    MR_DEVICE_MEMBER void make(const mr_cuda_generate &p, const mr_cuda_philox &from, uint64_t quad, T *v) {
#pragma unroll
        for (int j = 0; j < 4; j += 2) {
            four r = philox(from, quad * 2 + j / 2);
            v[j] = uniform_in(unit_f64(r.v[0], r.v[1]), p.real[0], p.real[1]);
            v[j + 1] = uniform_in(unit_f64(r.v[2], r.v[3]), p.real[0], p.real[1]);
        }
    }
};
GENERATOR(uniform, f64)

/* Halves are rounded from f32, and the bound is looked at after that. A value that is rounded up to the bound becomes
 * the number below. */
template <class S> struct uniform_half {
    typedef S T;
    MR_DEVICE_MEMBER void make(const mr_cuda_generate &p, const mr_cuda_philox &from, uint64_t quad, T *v) {
        four r = philox(from, quad);
        float low = p.single[0], high = p.single[1];
        T most = {mr_half_below(narrow<T>(high).bits)};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            T x = narrow<T>(unit_f32(r.v[j]) * (high - low) + low);
            v[j] = widen(x) < high ? x : most;
        }
    }
};
typedef uniform_half<f16> uniform_f16;
typedef uniform_half<bf16> uniform_bf16;
GENERATOR(uniform, f16)
GENERATOR(uniform, bf16)

/* The square root of a result of mr_normal_square, rounded as in IEEE 754. One correction of the estimate is enough for
 * numbers that are neither 0 nor near the ends of the exponents. */
MR_DEVICE float normal_root(float square) {
    float inverse;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(square));
    float root = square * inverse;
    return __fmaf_rn(__fmaf_rn(-root, root, square), 0.5f * inverse, root);
}

/* STANDARD: the deviation is 1, which is most common and spares a multiplication. */
template <bool STANDARD, class S> struct normal_single {
    typedef S T;
    MR_DEVICE_MEMBER void make(const mr_cuda_generate &p, const mr_cuda_philox &from, uint64_t quad, T *v) {
        four r = philox(from, quad);
#pragma unroll
        for (int j = 0; j < 4; j += 2) {
            float radius = normal_root(mr_normal_square(r.v[j]));
            if (!STANDARD) radius *= p.single[1];
            mr_direction d = mr_normal_direction(r.v[j + 1]);
            v[j] = convert<T>(__fmaf_rn(radius, d.cosine, p.single[0]));
            v[j + 1] = convert<T>(__fmaf_rn(radius, d.sine, p.single[0]));
        }
    }
};
#define NORMAL(tag, T)                                                                             \
    GENERATOR_KERNEL(millrace_normal_##tag) {                                                      \
        if (p.single[1] == 1) generate<normal_single<true, T>>(p);                                 \
        else generate<normal_single<false, T>>(p);                                                 \
    }
NORMAL(f32, float)
NORMAL(f16, f16)
NORMAL(bf16, bf16)

struct normal_f64 {
    typedef double T;
    MR_DEVICE_MEMBER void make(const mr_cuda_generate &p, const mr_cuda_philox &from, uint64_t quad, T *v) {
#pragma unroll
        for (int j = 0; j < 4; j += 2) {
            four r = philox(from, quad * 2 + j / 2);
            double radius = sqrt(-2.0 * mr_log_f64(1.0 - unit_f64(r.v[0], r.v[1]))) * p.real[1];
            double angle = unit_f64(r.v[2], r.v[3]) * 6.283185307179586477;
            v[j] = radius * mr_cos_near_f64(angle) + p.real[0];
            v[j + 1] = radius * mr_sin_near_f64(angle) + p.real[0];
        }
    }
};
GENERATOR(normal, f64)

/* ------------------------------------------------------------------------- for outputs of all types */

/* MAKE(kernel, name, statements that set v[0] to v[3]): they see p, `from` and `quad`; output_of(x) is x as the output's
 * type. The kernel is GENERATOR, which draws, or SEQUENCE. */
#define UNROLL _Pragma("unroll")
#define MAKE_ONE(kernel, name, tag, T_, to_output, ...)                                            \
    struct name##_##tag {                                                                          \
        typedef T_ T;                                                                              \
        MR_DEVICE_MEMBER T output_of(int64_t x) { return to_output; }                              \
        MR_DEVICE_MEMBER T output_of(double x) { return to_output; }                               \
        MR_DEVICE_MEMBER void make(const mr_cuda_generate &p, const mr_cuda_philox &from,          \
                                   uint64_t quad, T *v) { __VA_ARGS__ }                            \
    };                                                                                             \
    kernel(name, tag)
#define MAKE(kernel, name, ...)                                                                    \
    MAKE_ONE(kernel, name, u8, uint8_t, convert<T>(x), __VA_ARGS__)                                \
    MAKE_ONE(kernel, name, i32, int32_t, convert<T>(x), __VA_ARGS__)                               \
    MAKE_ONE(kernel, name, i64, int64_t, convert<T>(x), __VA_ARGS__)                               \
    MAKE_ONE(kernel, name, f32, float, convert<T>(x), __VA_ARGS__)                                 \
    MAKE_ONE(kernel, name, f64, double, convert<T>(x), __VA_ARGS__)                                \
    MAKE_ONE(kernel, name, f16, f16, convert<T>(x), __VA_ARGS__)                                   \
    MAKE_ONE(kernel, name, bf16, bf16, convert<T>(x), __VA_ARGS__)                                 \
    MAKE_ONE(kernel, name, b8, uint8_t, (T)(x != 0), __VA_ARGS__)

MAKE(GENERATOR, bernoulli, {
    four r = philox(from, quad);
    UNROLL
    for (int j = 0; j < 4; j++) v[j] = output_of((int64_t)(r.v[j] < (uint64_t)p.integer[0]));
})

/* 64 bits a value, two blocks for four of them; 128 bits for ranges above 2^32, as in ops/body/random.c. */
MAKE(GENERATOR, randint, {
    uint64_t range = (uint64_t)p.integer[1] - (uint64_t)p.integer[0];
    if (range >> 32) {
        UNROLL
        for (int j = 0; j < 4; j++) {
            four r = philox(from, quad * 4 + j);
            uint64_t fine = (uint64_t)r.v[1] << 32 | r.v[0], coarse = (uint64_t)r.v[3] << 32 | r.v[2];
            uint64_t carry = __umul64hi(fine, range), sum = coarse * range + carry;
            v[j] = output_of((int64_t)((uint64_t)p.integer[0] + __umul64hi(coarse, range) + (sum < carry)));
        }
        return;
    }
    UNROLL
    for (int j = 0; j < 4; j += 2) {
        four r = philox(from, quad * 2 + j / 2);
        uint64_t even = (uint64_t)r.v[1] << 32 | r.v[0], odd = (uint64_t)r.v[3] << 32 | r.v[2];
        v[j] = output_of((int64_t)((uint64_t)p.integer[0] + __umul64hi(even, range)));
        v[j + 1] = output_of((int64_t)((uint64_t)p.integer[0] + __umul64hi(odd, range)));
    }
})

/* Integers as i64, which wraps; floats as f64. */
MAKE(SEQUENCE, arange, {
    UNROLL
    for (int j = 0; j < 4; j++) {
        if constexpr (is_integer<T>)
            v[j] = output_of((int64_t)((uint64_t)p.integer[0] + (quad * 4 + j) * (uint64_t)p.integer[1]));
        else
            v[j] = output_of(p.real[0] + (double)(int64_t)(quad * 4 + j) * p.real[1]);
    }
})

/* Counted from the nearer end, so that both ends are exact and the values symmetric. */
MAKE(SEQUENCE, linspace, {
    UNROLL
    for (int j = 0; j < 4; j++) {
        int64_t k = (int64_t)(quad * 4) + j, count = (int64_t)p.count;
        v[j] = output_of(k < (count + 1) / 2 ? p.real[0] + p.real[2] * (double)k
                                             : p.real[1] - p.real[2] * (double)(count - 1 - k));
    }
})

/* Ones are at row * columns + row, for as many rows as there are columns. */
MAKE(SEQUENCE, eye, {
    UNROLL
    for (int j = 0; j < 4; j++) {
        uint64_t step = (uint64_t)p.integer[0] + 1, row = (quad * 4 + j) / step;
        v[j] = output_of((int64_t)((quad * 4 + j) % step == 0 && row < (uint64_t)p.integer[0]));
    }
})

/* ------------------------------------------------------------------------- randperm */

/* Sorts the positions by 64 random bits, then by the positions themselves. The result of this bitonic network does not
 * depend on the order of its exchanges. The padding up to a power of two comes last. */
extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS) millrace_sort_begin(const __grid_constant__ mr_cuda_sort p) {
    const mr_cuda_philox from = p.philox.launch ? of_launch(p.philox) : p.philox;
    for (uint64_t i = thread_number(); i < p.padded; i += thread_count()) {
        four r = philox(from, i / 2);
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
