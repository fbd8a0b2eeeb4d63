// Each thread writes its element of shared memory, then the next thread's; what it reads at the end is the other thread's.
// A compiler that takes a barrier for nothing to memory gives a thread what it wrote itself: 100.
// kernel: by_block
// kernel: by_count
// kernel: by_and
// kernel: by_or
// kernel: by_warp
// kernel: by_fence

#define EXCHANGE(name, barrier)                                                                    \
    extern "C" __global__ void name(int *out) {                                                    \
        __shared__ int s[257];                                                                     \
        int t = threadIdx.x, on = 1;                                                               \
        s[t] = 100;                                                                                \
        barrier;                                                                                   \
        s[t + 1] = t;                                                                              \
        barrier;                                                                                   \
        out[t] = s[t] + (on - 1);                                                                  \
    }

EXCHANGE(by_block, __syncthreads())
EXCHANGE(by_count, on = __syncthreads_count(on) == blockDim.x)
EXCHANGE(by_and, on = __syncthreads_and(on) != 0)
EXCHANGE(by_or, on = __syncthreads_or(on) != 0)
EXCHANGE(by_warp, __syncwarp())
EXCHANGE(by_fence, __threadfence_block(); __syncwarp())
