/* threadIdx, blockIdx, blockDim, gridDim, warpSize: each member reads a special register. */
#ifndef MILLRACE_INDEX_H
#define MILLRACE_INDEX_H
#pragma clang system_header

#define MR_INDEX(variable, type, reg)                                                              \
    struct mr_##variable {                                                                         \
        __declspec(property(get = get_x)) unsigned int x;                                          \
        __declspec(property(get = get_y)) unsigned int y;                                          \
        __declspec(property(get = get_z)) unsigned int z;                                          \
        MR_DEVICE unsigned int get_x() { return __nvvm_read_ptx_sreg_##reg##_x(); }                \
        MR_DEVICE unsigned int get_y() { return __nvvm_read_ptx_sreg_##reg##_y(); }                \
        MR_DEVICE unsigned int get_z() { return __nvvm_read_ptx_sreg_##reg##_z(); }                \
        __inline__ __attribute__((device, always_inline, nodebug)) operator uint3() const {        \
            return {get_x(), get_y(), get_z()};                                                    \
        }                                                                                          \
        __inline__ __attribute__((device, always_inline, nodebug)) operator dim3() const {         \
            return dim3(get_x(), get_y(), get_z());                                                \
        }                                                                                          \
        mr_##variable(const mr_##variable &) = delete;                                             \
        mr_##variable &operator=(const mr_##variable &) = delete;                                  \
    };                                                                                             \
    extern const __device__ __attribute__((weak)) mr_##variable variable;
MR_INDEX(threadIdx, uint3, tid)
MR_INDEX(blockIdx, uint3, ctaid)
MR_INDEX(blockDim, dim3, ntid)
MR_INDEX(gridDim, dim3, nctaid)
#undef MR_INDEX

static constexpr int warpSize = 32;

#endif
