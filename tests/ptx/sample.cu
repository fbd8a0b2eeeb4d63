// Code that makes compilers emit as much different PTX as few lines can. make_samples.sh compiles it; test_ptx_samples.c reads
// what came out. It is never run.
#ifdef __clang__
#define __device__      __attribute__((device))
#define __global__      __attribute__((global))
#define __constant__    __attribute__((constant))
#define __shared__      __attribute__((shared))
#define __noinline__    __attribute__((noinline))
#define __forceinline__ __attribute__((always_inline)) inline
#define THREAD          __nvvm_read_ptx_sreg_tid_x()
#define BLOCK           __nvvm_read_ptx_sreg_ctaid_x()
#define THREADS         __nvvm_read_ptx_sreg_ntid_x()
#define SHUFFLE(v, d)   __nvvm_shfl_sync_down_i32(~0u, v, d, 31)
#define FOURTH          numbers // clang 14 cannot compile the address of an element
extern "C" __device__ int vprintf(const char *format, const void *arguments);
static __device__ __forceinline__ void add_to(int *at, int v) { __nvvm_atom_add_gen_i(at, v); }
static __device__ __forceinline__ void say(int i, double d) {
    struct { int i; double d; } arguments = {i, d};
    vprintf("thread %d: %f\n", &arguments);
}
#else
#include <cassert>
#include <cstdio>
#define THREAD        threadIdx.x
#define BLOCK         blockIdx.x
#define THREADS       blockDim.x
#define SHUFFLE(v, d) __shfl_down_sync(~0u, v, d)
#define FOURTH        (numbers + 4)
static __device__ __forceinline__ void add_to(int *at, int v) { atomicAdd(at, v); }
static __device__ __forceinline__ void say(int i, double d) {
    assert(i >= 0);
    printf("thread %d: %f\n", i, d);
}
#endif

struct Pair {
    int first;
    double second;
    float *third;
};

__constant__ float table[4] = {1.0f, 2.5f, -3.0f, 4.0f};
__constant__ short shorts[2][3] = {{1, -2, 3}, {4, 5, -6}};
__device__ int counter;
__device__ int numbers[8] = {1, 2, 3};
__device__ int *middle = FOURTH;
__device__ double scale = 0.1;
__device__ float plus_one(float x) { return x + 1.0f; }
__device__ float twice(float x) { return x * 2.0f; }
__device__ float (*functions[2])(float) = {plus_one, twice};

__device__ __noinline__ float combine(float a, Pair p) { return a * (float)p.second + (float)p.first; }
__device__ __noinline__ Pair swap(Pair p) { return Pair{(int)p.second, (double)p.first, p.third}; }
__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

static __device__ __forceinline__ int warp_sum(int v) {
    for (int d = 16; d; d /= 2) v += SHUFFLE(v, d);
    return v;
}
static __device__ __forceinline__ int block_sum(int v, int *parts) {
    int warp = THREAD / 32;
    v = warp_sum(v);
    if (THREAD % 32 == 0) parts[warp] = v;
    __syncthreads();
    return warp == 0 ? warp_sum(parts[THREAD]) : 0;
}

// Labels of the same name in scopes of their own, as the assembler's text of a library has them.
static __device__ __forceinline__ int spin(int n) {
    int turns;
    asm volatile("{\n\t.reg .pred done;\n\t.reg .b32 %%left, %%turns<2>;\n\tmov.b32 %%left, %1;\n\tmov.b32 %%turns1, 0;\n"
                 "AGAIN:\n\tadd.s32 %%left, %%left, -1;\n\tadd.s32 %%turns1, %%turns1, 1;\n"
                 "\tsetp.le.s32 done, %%left, 0;\n\t@done bra DONE;\n\tbra AGAIN;\nDONE:\n\tmov.b32 %0, %%turns1;\n\t}"
                 : "=r"(turns) : "r"(n));
    return turns;
}

extern "C" __global__ void everything(float *x, Pair p, const int *in, long long n, unsigned char mode) {
    __shared__ int parts[32];
    extern __shared__ float dynamic[];
    long long i = (long long)BLOCK * THREADS + THREAD;
    if (i >= n) return;
    dynamic[THREAD] = x[i];
    for (long long k = i; k < n; k += THREADS) x[k] = combine(x[k], swap(p)) + table[k & 3] + functions[k & 1](x[k]);
    int sum = block_sum(in[i], parts);
    switch (mode) {
    case 0: x[i] += sum; break;
    case 1: x[i] -= dynamic[0]; break;
    case 2: x[i] *= scale; break;
    case 3: x[i] /= (float)p.second; break;
    case 4: add_to(&counter, sum); break;
    case 5: x[i] = fibonacci(sum) + *middle; break;
    case 6: say(sum, p.second); break;
    case 7: x[i] = (float)shorts[i & 1][sum % 3]; break;
    case 8: x[i] = (float)(spin(sum) + spin((int)n)); break;
    case 9: p.third[i] = (float)(1.0 / p.second); break;
    }
}

// Many ways.
extern "C" __global__ void choose(int *x, int how) {
    int v = x[THREAD];
    switch (how) {
    case 0: v += 17; break;
    case 1: v *= v; break;
    case 2: v = v << 5 ^ v; break;
    case 3: v /= 3; break;
    case 4: v %= 7; break;
    case 5: x[v & 31] = v; break;
    case 6: v = spin(v); break;
    case 7: v = -v; break;
    case 8: v ^= x[0]; break;
    case 9: v &= x[1]; break;
    case 10: v |= x[2]; break;
    case 11: v -= x[3] * 3; break;
    case 12: v = v > 4 ? x[4] : 5; break;
    case 13: return;
    }
    x[THREAD] = v;
}
