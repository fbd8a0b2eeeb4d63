/* The vector types (float4, uint3, ...), dim3, and make_float4 and its kin. */
#ifndef MILLRACE_TYPES_H
#define MILLRACE_TYPES_H
#pragma clang system_header

/* name, type of an element, alignment of the types with two and four elements */
#define MR_VECTORS(X)                                                                              \
    X(char, signed char, 2, 4)                                                                     \
    X(uchar, unsigned char, 2, 4)                                                                  \
    X(short, short, 4, 8)                                                                          \
    X(ushort, unsigned short, 4, 8)                                                                \
    X(int, int, 8, 16)                                                                             \
    X(uint, unsigned int, 8, 16)                                                                   \
    X(long, long, 16, 16)                                                                          \
    X(ulong, unsigned long, 16, 16)                                                                \
    X(longlong, long long, 16, 16)                                                                 \
    X(ulonglong, unsigned long long, 16, 16)                                                       \
    X(float, float, 8, 16)                                                                         \
    X(double, double, 16, 16)

#define X(name, type, align2, align4)                                                              \
    struct name##1 {                                                                               \
        type x;                                                                                    \
    };                                                                                             \
    struct __align__(align2) name##2 {                                                             \
        type x, y;                                                                                 \
    };                                                                                             \
    struct name##3 {                                                                               \
        type x, y, z;                                                                              \
    };                                                                                             \
    struct __align__(align4) name##4 {                                                             \
        type x, y, z, w;                                                                           \
    };                                                                                             \
    MR_DEVICE name##1 make_##name##1(type x) {                                                     \
        return {x};                                                                                \
    }                                                                                              \
    MR_DEVICE name##2 make_##name##2(type x, type y) {                                             \
        return {x, y};                                                                             \
    }                                                                                              \
    MR_DEVICE name##3 make_##name##3(type x, type y, type z) {                                     \
        return {x, y, z};                                                                          \
    }                                                                                              \
    MR_DEVICE name##4 make_##name##4(type x, type y, type z, type w) {                             \
        return {x, y, z, w};                                                                       \
    }
MR_VECTORS(X)
#undef X

struct dim3 {
    unsigned int x, y, z;
    __host__ __device__ constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1)
        : x(x), y(y), z(z) {}
    __host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    __host__ __device__ constexpr operator uint3() const { return {x, y, z}; }
};

#endif
