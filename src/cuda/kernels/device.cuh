/* Shared by the kernels: the element types and the conversions between them, positions in strided shapes, vectors of
 * elements, and the functions that expressions of the operation table call. */
#ifndef MR_CUDA_KERNELS_DEVICE_CUH
#define MR_CUDA_KERNELS_DEVICE_CUH

#include "cuda/kernels/args.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <type_traits>

#define MR_DEVICE        static __device__ __forceinline__
#define MR_DEVICE_MEMBER static __device__ __forceinline__

/* ------------------------------------------------------------------------- functions of the table */

/* ops/expr.h and ops/math.h are plain C. Compiled here for the device they give the CPU bodies' bits: neither side
 * fuses a multiply with an add where fma is not written (nvcc: --fmad=false). */
#define inline inline __device__
#include "base/half.h"
#include "ops/expr.h"
#undef inline

/* The device's own functions, where the CPU's way is slow on a GPU: it uses double precision, or has more bits than the
 * result. They differ by at most 4 units in the last place. */
MR_DEVICE float mr_native_sin_f32(float a) { return sinf(a); }
MR_DEVICE float mr_native_cos_f32(float a) { return cosf(a); }
MR_DEVICE double mr_native_sin_f64(double a) { return sin(a); }
MR_DEVICE double mr_native_cos_f64(double a) { return cos(a); }
MR_DEVICE double mr_native_tan_f64(double a) { return tan(a); }
MR_DEVICE float mr_native_pow_f32(float a, float b) { return powf(a, b); }
MR_DEVICE double mr_native_pow_f64(double a, double b) { return b == 2 ? a * a : pow(a, b); }
#define mr_sin_f32 mr_native_sin_f32
#define mr_sin_f64 mr_native_sin_f64
#define mr_cos_f32 mr_native_cos_f32
#define mr_cos_f64 mr_native_cos_f64
#define mr_tan_f64 mr_native_tan_f64
#define mr_pow_f32 mr_native_pow_f32
#define mr_pow_f64 mr_native_pow_f64

/* C picks a function of its family by the argument's type with _Generic; C++ by overloading. A function that
 * is added to expr.h works here without a line of its own. */
#define MR_PICK(T, i)                                                                              \
    template <class F0, class F1, class F2, class F3, class F4>                                    \
    MR_DEVICE auto mr_pick(T, F0 f0, F1 f1, F2 f2, F3 f3, F4 f4) {                                 \
        return f##i;                                                                               \
    }
MR_PICK(uint8_t, 0)
MR_PICK(int32_t, 1)
MR_PICK(int64_t, 2)
MR_PICK(float, 3)
MR_PICK(double, 4)
#undef MR_PICK
#undef MR_BY_TYPE
#define MR_BY_TYPE(name, x) mr_pick(x, name##_u8, name##_i32, name##_i64, name##_f32, name##_f64)
#undef MR_BY_FLOAT
#define MR_BY_FLOAT(name, x) mr_pick(x, 0, 0, 0, name##_f32, name##_f64)
#undef MR_BY_WHOLE
#define MR_BY_WHOLE(name, x) mr_pick(x, name##_u8, name##_i32, name##_i64, 0, 0)

/* ------------------------------------------------------------------------- element types */

/* As in MR_DTYPE_LIST (tensor/dtype.h), whose order cuda/family/launch.c checks. */
enum { DTYPE_BOOL, DTYPE_U8, DTYPE_I32, DTYPE_I64, DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16 };

/* Elements of f16 and bf16 as they are in memory. Computing with them gives a float. */
struct f16 {
    uint16_t bits;
};
struct bf16 {
    uint16_t bits;
};

template <class T> constexpr bool is_half = false;
template <> constexpr bool is_half<f16> = true;
template <> constexpr bool is_half<bf16> = true;

template <class T> struct computed_type {
    typedef T type;
};
template <> struct computed_type<f16> {
    typedef float type;
};
template <> struct computed_type<bf16> {
    typedef float type;
};
/* The type in which an element of memory is computed with. */
template <class T> using computed = typename computed_type<T>::type;

template <class T> constexpr bool is_integer = (T)0.5 == (T)0;
template <> constexpr bool is_integer<f16> = false;
template <> constexpr bool is_integer<bf16> = false;

/* To and from a float by the device's instructions, which give the numbers of base/half.h. */
template <class T> MR_DEVICE computed<T> widen(T v) {
    if constexpr (sizeof(computed<T>) == sizeof(T)) {
        return v;
    } else if constexpr (std::is_same_v<T, f16>) {
        float x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(v.bits));
        return x;
    } else {
        return __uint_as_float((uint32_t)v.bits << 16);
    }
}
template <class T> MR_DEVICE T narrow(float x) {
    T v;
    if constexpr (std::is_same_v<T, f16>) {
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(v.bits) : "f"(x));
    } else {
#if __CUDA_ARCH__ >= 800
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(v.bits) : "f"(x));
#else
        v.bits = mr_bf16_from_f32(x);
#endif
    }
    return v;
}

/* The rules of ops/body/convert.c. Float to i32 and i64 truncates and saturates, to u8 it truncates and wraps; NaN gives 0.
 * Integers wrap. Conversions to f16 and bf16 round once. A conversion to bool is `!= 0`, written where it is needed, as
 * bool has no C type of its own. The device's conversions saturate by themselves, and only that of NaN differs from
 * type to type. */
template <class To, class From> MR_DEVICE To convert(From v) {
    if constexpr (is_half<From>) {
        return convert<To>(widen(v));
    } else if constexpr (is_half<To>) {
        constexpr bool IS_F16 = std::is_same_v<To, f16>;
        if constexpr (std::is_same_v<From, float>) return narrow<To>(v);
        else if constexpr (is_integer<From>) return To{IS_F16 ? mr_f16_from_i64((int64_t)v) : mr_bf16_from_i64((int64_t)v)};
        else return To{IS_F16 ? mr_f16_from_f64(v) : mr_bf16_from_f64(v)};
    } else if constexpr (is_integer<From> || !is_integer<To>) {
        return (To)v;
    } else if constexpr (sizeof(To) == 1) {
        const From limit = sizeof(From) == 4 ? (From)0x1p31 : (From)0x1p63; /* from there on, multiples of 256 */
        return v >= -limit && v < limit ? (To)(int64_t)v : 0;
    } else if constexpr (sizeof(To) == 4) {
        if constexpr (sizeof(From) == 4) return v != v ? 0 : __float2int_rz(v);
        else return v != v ? 0 : __double2int_rz(v);
    } else {
        if constexpr (sizeof(From) == 4) return v != v ? 0 : __float2ll_rz(v);
        else return v != v ? 0 : __double2ll_rz(v);
    }
}

/* Element i of memory of any dtype. Not inlined: the kernels for the common case, in which all types are
 * the same, and the binary stay small. */
template <class T> static __device__ __noinline__ T load_any(const void *data, int dtype, int64_t i) {
    switch (dtype) {
    case DTYPE_BOOL: return (T)(((const uint8_t *)data)[i] != 0);
    case DTYPE_U8: return convert<T>(((const uint8_t *)data)[i]);
    case DTYPE_I32: return convert<T>(((const int32_t *)data)[i]);
    case DTYPE_I64: return convert<T>(((const int64_t *)data)[i]);
    case DTYPE_F32: return convert<T>(((const float *)data)[i]);
    case DTYPE_F16: return convert<T>(((const f16 *)data)[i]);
    case DTYPE_BF16: return convert<T>(((const bf16 *)data)[i]);
    default: return convert<T>(((const double *)data)[i]);
    }
}

template <class T> static __device__ __noinline__ void store_any(void *data, int dtype, int64_t i, T v) {
    switch (dtype) {
    case DTYPE_BOOL: ((uint8_t *)data)[i] = v != 0; break;
    case DTYPE_U8: ((uint8_t *)data)[i] = convert<uint8_t>(v); break;
    case DTYPE_I32: ((int32_t *)data)[i] = convert<int32_t>(v); break;
    case DTYPE_I64: ((int64_t *)data)[i] = convert<int64_t>(v); break;
    case DTYPE_F32: ((float *)data)[i] = convert<float>(v); break;
    case DTYPE_F16: ((f16 *)data)[i] = convert<f16>(v); break;
    case DTYPE_BF16: ((bf16 *)data)[i] = convert<bf16>(v); break;
    default: ((double *)data)[i] = convert<double>(v); break;
    }
}

/* V elements that are loaded and stored as one, or in pieces of 16 bytes: more is not promised of any address. */
template <class T, int V> struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) vector {
    T v[V];
};

template <class T, int V> MR_DEVICE vector<T, V> load_vector(const void *data, uint64_t i) {
    return *(const vector<T, V> *)((const T *)data + i);
}

/* The elements as they are computed with. */
template <class T, int V> MR_DEVICE vector<computed<T>, V> widen_vector(const vector<T, V> &v) {
    if constexpr (is_half<T>) {
        vector<float, V> w;
#pragma unroll
        for (int j = 0; j < V; j++) w.v[j] = widen(v.v[j]);
        return w;
    } else {
        return v;
    }
}

template <class T, int V> MR_DEVICE void store_vector(void *data, uint64_t i, const vector<T, V> &v) {
    *(vector<T, V> *)((T *)data + i) = v;
}

/* Loads vectors that are not needed again soon, so L1 need not keep them. Loads 16 bytes at once where there are so
 * many; the compiler alone does not always do so in loops. */
template <class T, int V> MR_DEVICE vector<T, V> load_past_l1(const T *at) {
    static_assert(sizeof(vector<T, V>) == 16);
    uint4 bits;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
                 : "l"(at)
                 : "memory");
    vector<T, V> v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
template <class T, int V> MR_DEVICE void store_past_l1(T *at, const vector<T, V> &v) {
    if constexpr (sizeof v % 16 != 0) {
        store_vector(at, 0, v);
    } else {
        uint4 bits[sizeof v / 16];
        memcpy(bits, &v, sizeof v);
#pragma unroll
        for (uint32_t k = 0; k < sizeof v / 16; k++)
            asm volatile("st.global.L1::no_allocate.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"((uint4 *)at + k), "r"(bits[k].x),
                         "r"(bits[k].y), "r"(bits[k].z), "r"(bits[k].w)
                         : "memory");
    }
}

/* ------------------------------------------------------------------------- positions */

static __device__ __noinline__ int64_t wide_offset(const mr_cuda_shape &shape, const mr_cuda_strides &strides,
                                                   uint64_t position) {
    int64_t offset = 0;
    for (uint32_t d = 0; d + 1 < shape.ndim; d++) {
        uint64_t rest = position / (uint64_t)shape.size[d];
        offset += (int64_t)(position - rest * (uint64_t)shape.size[d]) * strides.stride[d];
        position = rest;
    }
    return offset + (int64_t)position * strides.stride[shape.ndim - 1];
}

/* The index in dim d of a position below 2^31, which becomes the position in the dims that are left. */
MR_DEVICE uint32_t next_index(const mr_cuda_shape &shape, uint32_t d, uint32_t &position) {
    uint32_t rest = (__umulhi(position, shape.multiplier[d]) + position) >> shape.shift[d];
    uint32_t index = position - rest * (uint32_t)shape.size[d];
    position = rest;
    return index;
}

/* Where the element at a row-major position is. */
MR_DEVICE int64_t offset_of(const mr_cuda_shape &shape, const mr_cuda_strides &strides, uint64_t position) {
    if (shape.ndim == 1) return (int64_t)position * strides.stride[0];
    if (shape.wide) return wide_offset(shape, strides, position);
    uint32_t rest = (uint32_t)position;
    int64_t offset = 0;
    for (uint32_t d = 0; d + 1 < shape.ndim; d++)
        offset += (int64_t)next_index(shape, d, rest) * strides.stride[d];
    return offset + (int64_t)rest * strides.stride[shape.ndim - 1];
}

/* The same, not inlined: where it is rare. */
static __device__ __noinline__ int64_t far_offset(const mr_cuda_shape &shape, const mr_cuda_strides &strides,
                                                  uint64_t position) {
    return offset_of(shape, strides, position);
}

/* This thread's number in the grid, and how many there are. */
MR_DEVICE uint64_t thread_number() {
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
MR_DEVICE uint64_t thread_count() {
    return (uint64_t)gridDim.x * blockDim.x;
}

#endif
