/* Shared by the kernels that put or pick elements by an index. Reads and checks an index; sets an element of each
 * dtype, or adds to it. */
#ifndef MR_CUDA_KERNELS_INDEX_CUH
#define MR_CUDA_KERNELS_INDEX_CUH

#include "cuda/kernels/device.cuh"
#include "cuda/kernels/order_args.h"

#define inline inline __device__
#include "base/half.h"
#undef inline

#include <assert.h>

enum { PLAIN, INDEX, CHOSEN };

/* ------------------------------------------------------------------------- out of range */

/* The first thread that finds one reports the index; then the device is lost, as by any failed assertion. */
static __device__ __noinline__ void complain(const mr_cuda_index &p, int64_t value) {
    mr_cuda_complaint *c = p.complaint;
    if (atomicCAS(&c->taken, 0u, 1u) == 0) {
        c->seq = p.seq;
        c->value = value;
        c->size = p.size;
        __threadfence_system();
        c->complete = 1;
        __threadfence_system();
    }
    assert(!"an index is out of range");
}

MR_DEVICE int64_t index_at(const mr_cuda_index &p, int64_t offset) {
    return p.wide ? ((const int64_t *)p.index)[offset] : ((const int32_t *)p.index)[offset];
}

/* The position that an index chooses, counted from 0, and checked. */
MR_DEVICE uint64_t choice_of(const mr_cuda_index &p, int64_t value) {
    if ((uint64_t)value - 1 >= (uint64_t)p.size) complain(p, value);
    return (uint64_t)value - 1;
}
MR_DEVICE uint64_t choice(const mr_cuda_index &p, int64_t offset) {
    return choice_of(p, index_at(p, offset));
}

/* ------------------------------------------------------------------------- setting, adding */

template <class T_> struct set {
    typedef T_ T, A;
    static constexpr bool last_only = true;
    MR_DEVICE_MEMBER A load(T v) { return v; }
    MR_DEVICE_MEMBER A move(A, T v) { return v; }
    MR_DEVICE_MEMBER T store(A a) { return a; }
};
/* A: the type of the sum. */
template <class T_> struct add {
    typedef T_ T, A;
    static constexpr bool last_only = false;
    MR_DEVICE_MEMBER A load(T v) { return v; }
    MR_DEVICE_MEMBER A move(A a, T v) { return (A)mr_add(a, v); }
    MR_DEVICE_MEMBER T store(A a) { return a; }
};
struct add_f16 {
    typedef uint16_t T;
    typedef float A;
    static constexpr bool last_only = false;
    MR_DEVICE_MEMBER A load(T v) { return mr_f32_from_f16(v); }
    MR_DEVICE_MEMBER A move(A a, T v) { return a + mr_f32_from_f16(v); }
    MR_DEVICE_MEMBER T store(A a) { return mr_f16_from_f32(a); }
};
struct add_bf16 {
    typedef uint16_t T;
    typedef float A;
    static constexpr bool last_only = false;
    MR_DEVICE_MEMBER A load(T v) { return mr_f32_from_bf16(v); }
    MR_DEVICE_MEMBER A move(A a, T v) { return a + mr_f32_from_bf16(v); }
    MR_DEVICE_MEMBER T store(A a) { return mr_bf16_from_f32(a); }
};
struct add_b8 : set<uint8_t> {
    static constexpr bool last_only = false;
    MR_DEVICE_MEMBER uint8_t move(uint8_t a, uint8_t v) { return (a | v) != 0; }
};

/* Where the source of a position is: at `j` of a line, which is at `line` among the others. */
template <class T> MR_DEVICE T source_at(const mr_cuda_index &p, int64_t line, int64_t j) {
    if (!p.plain) {
        T v;
        memcpy(&v, &p.number, sizeof v);
        return v;
    }
    return ((const T *)p.plain)[offset_of(p.shape, p.stride[PLAIN], line) + j * p.along[PLAIN]];
}

#endif
