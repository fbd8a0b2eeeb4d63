/* The bits of floating-point numbers, in functions from which a loop over them becomes vectors. Plain C, which is
 * compiled for the device, too (cuda/kernels/device.cuh). */
#ifndef MR_BASE_BITS_H
#define MR_BASE_BITS_H

#include <stdint.h>
#include <string.h>

/* A loop with a call that is not inlined does not become vectors. */
#define MR_INLINE static inline __attribute__((always_inline))

MR_INLINE uint32_t mr_bits_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
MR_INLINE float mr_from_bits_f32(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
MR_INLINE uint64_t mr_bits_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
MR_INLINE double mr_from_bits_f64(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
