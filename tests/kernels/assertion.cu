// assert: a thread that fails ends the kernel.
// kernel: check_positive

#include <assert.h>

extern "C" __global__ void check_positive(int *checked, const int *values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    assert(values[i] > 0);
    checked[i] = 1;
}
