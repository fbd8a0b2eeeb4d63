/* mr.op and mr.spin: kernels that take a given time. mr.op also reads and writes exactly its operands, and what
 * it writes is the CPU body's hash (ops/body/abstract.c, where the rules are) bit by bit.
 *
 * The launch gives each block all the shared memory that an SM has, so that it has the SM to itself. A block's
 * items are spread over the block's duration: a piece of them is read when its turn comes and written when the next
 * piece's turn comes. So a reader that does not wait sees what was there before, or a part of it. */
#include "cuda/kernels/device.cuh"

MR_DEVICE uint64_t now_ns() {
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

/* The timer ticks in steps of up to a microsecond; sleeping leaves the memory system to others. */
MR_DEVICE void wait_until(uint64_t then) {
    while ((int64_t)(now_ns() - then) < 0) __nanosleep(100);
}

MR_DEVICE uint64_t scramble(uint64_t h) {
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

static __device__ __noinline__ int64_t place_of(const mr_cuda_operand &t, int64_t position) {
    int64_t offset = 0;
    for (int d = t.ndim; d-- > 0;) {
        offset += position % t.size[d] * t.stride[d];
        position /= t.size[d];
    }
    return offset;
}

MR_DEVICE uint64_t load_bits(const mr_cuda_operand &t, int64_t position) {
    int64_t i = place_of(t, position);
    switch (t.dtype) {
    case DTYPE_BOOL:
    case DTYPE_U8: return ((const volatile uint8_t *)t.data)[i];
    case DTYPE_F16:
    case DTYPE_BF16: return ((const volatile uint16_t *)t.data)[i];
    case DTYPE_I32:
    case DTYPE_F32: return ((const volatile uint32_t *)t.data)[i];
    default: return ((const volatile uint64_t *)t.data)[i];
    }
}

MR_DEVICE void store_hash(const mr_cuda_operand &t, int64_t position, uint64_t h) {
    int64_t i = place_of(t, position);
    switch (t.dtype) {
    case DTYPE_F32: ((volatile float *)t.data)[i] = (float)((double)(h >> 40) * 0x1p-24); break;
    case DTYPE_F64: ((volatile double *)t.data)[i] = (double)(h >> 11) * 0x1p-53; break;
    case DTYPE_F16: ((volatile uint16_t *)t.data)[i] = narrow<f16>((float)(h >> 53) * 0x1p-11f).bits; break;
    case DTYPE_BF16: ((volatile uint16_t *)t.data)[i] = narrow<bf16>((float)(h >> 56) * 0x1p-8f).bits; break;
    case DTYPE_U8: ((volatile uint8_t *)t.data)[i] = (uint8_t)(h >> 56); break;
    case DTYPE_BOOL: ((volatile uint8_t *)t.data)[i] = (uint8_t)(h >> 63); break;
    case DTYPE_I32: ((volatile int32_t *)t.data)[i] = (int32_t)(h >> 44); break;
    default: ((volatile int64_t *)t.data)[i] = (int64_t)(h >> 44); break;
    }
}

/* j * m / n without overflow. */
MR_DEVICE int64_t proportional(int64_t j, int64_t m, int64_t n) {
    return m == n ? j : (int64_t)((__int128)j * m / n);
}

static __device__ __noinline__ uint64_t hash_for(const mr_cuda_abstract &p, const mr_cuda_operand *operands,
                                                 const mr_cuda_operand &to, int64_t j) {
    uint64_t h = scramble(p.mix + (uint64_t)j);
    for (uint32_t k = 0; k < p.operand_count; k++) {
        const mr_cuda_operand &from = operands[k];
        if (!from.reads || from.count == 0 || (from.writes && from.count != to.count)) continue;
        h = scramble(h ^ load_bits(from, proportional(j, from.count, to.count))) + k;
    }
    return h;
}

/* Which element of a written operand item i makes; -1: none. */
MR_DEVICE int64_t element_of(const mr_cuda_operand &to, int64_t i, int64_t items) {
    if (!to.writes || to.count == 0) return -1;
    int64_t j = to.count == items ? i : (int64_t)(((__int128)i * to.count + items - 1) / items);
    return j < to.count && proportional(j, items, to.count) == i ? j : -1;
}

extern "C" __global__ void __launch_bounds__(MR_CUDA_THREADS) millrace_op(const __grid_constant__ mr_cuda_abstract p) {
    enum { MAX_TOGETHER = 16 }; /* as in ops/body/abstract.c */
    const mr_cuda_operand *operands = p.many ? p.many : p.few;
    uint64_t start = now_ns();
    /* This block's items, and how many pieces of at most a thread's one item each. */
    int64_t first = (int64_t)((__int128)p.items * blockIdx.x / gridDim.x);
    int64_t end = (int64_t)((__int128)p.items * (blockIdx.x + 1) / gridDim.x);
    int64_t pieces = (end - first + MR_CUDA_THREADS - 1) / MR_CUDA_THREADS;
    for (int64_t piece = 0; piece < pieces; piece++) {
        if (p.duration_ns) wait_until(start + (uint64_t)((double)p.duration_ns * (double)piece / (double)pieces));
        int64_t i = first + piece * MR_CUDA_THREADS + threadIdx.x;
        uint64_t hashes[MAX_TOGETHER];
        uint32_t kept = 0, written = 0;
        if (i < end) {
            for (uint32_t k = 0; k < p.operand_count && kept < MAX_TOGETHER; k++) {
                int64_t j = element_of(operands[k], i, p.items);
                if (j >= 0) hashes[kept++] = hash_for(p, operands, operands[k], j);
            }
        }
        if (p.duration_ns) wait_until(start + (uint64_t)((double)p.duration_ns * (double)(piece + 1) / (double)pieces));
        if (i < end) {
            for (uint32_t k = 0; k < p.operand_count; k++) {
                int64_t j = element_of(operands[k], i, p.items);
                if (j < 0) continue;
                store_hash(operands[k], j, written < kept ? hashes[written] : hash_for(p, operands, operands[k], j));
                written++;
            }
        }
    }
    wait_until(start + p.duration_ns);
}

extern "C" __global__ void millrace_spin(uint64_t duration_ns) {
    wait_until(now_ns() + duration_ns);
}
