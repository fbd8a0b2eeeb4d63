/* Cooperative groups for clang: blocks, tiles of a warp, the threads of a warp that are together, and the grid (without
 * its barrier, which needs a cooperative launch). */
#ifndef MILLRACE_COOPERATIVE_GROUPS_H
#define MILLRACE_COOPERATIVE_GROUPS_H
#pragma clang system_header

#define MR_MEMBER __inline__ __attribute__((device, always_inline, nodebug))
#define MR_STATIC static MR_MEMBER

namespace cooperative_groups {

MR_DEVICE unsigned int mr_lane() {
    return __nvvm_read_ptx_sreg_laneid();
}
MR_DEVICE unsigned int mr_rank_in_block() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
MR_DEVICE unsigned int mr_block_size() {
    return blockDim.x * blockDim.y * blockDim.z;
}

class thread_block {
  public:
    MR_STATIC void sync() { __syncthreads(); }
    MR_STATIC unsigned int thread_rank() { return mr_rank_in_block(); }
    MR_STATIC unsigned int size() { return mr_block_size(); }
    MR_STATIC unsigned int num_threads() { return mr_block_size(); }
    MR_STATIC dim3 group_index() { return blockIdx; }
    MR_STATIC dim3 thread_index() { return threadIdx; }
    MR_STATIC dim3 group_dim() { return blockDim; }
    MR_STATIC dim3 dim_threads() { return blockDim; }
};
MR_DEVICE thread_block this_thread_block() {
    return thread_block();
}

class grid_group {
  public:
    /* The upper and the lower half of the address of the grid's workspace. Its second word is the barrier. */
    MR_STATIC unsigned int *barrier_of_grid() {
        unsigned int high, low;
        asm("mov.u32 %0, %%envreg1;" : "=r"(high));
        asm("mov.u32 %0, %%envreg2;" : "=r"(low));
        unsigned long long at = (unsigned long long)high << 32 | low;
        return at ? (unsigned int *)at + 1 : (unsigned int *)0;
    }
    MR_STATIC bool is_valid() { return barrier_of_grid() != 0; }
    /* The upper bit of the barrier turns over when as many threads as blocks have added to it. */
    MR_STATIC void sync() {
        unsigned int *barrier = barrier_of_grid();
        if (!barrier) __trap();
        __syncthreads();
        if (threadIdx.x + threadIdx.y + threadIdx.z == 0) {
            unsigned int blocks = (unsigned int)num_blocks(), before, now;
            unsigned int mine = block_rank() == 0 ? 0x80000000u - (blocks - 1) : 1;
            asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;"
                         : "=r"(before)
                         : "l"(barrier), "r"(mine)
                         : "memory");
            do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(barrier) : "memory");
            while (!((before ^ now) & 0x80000000u));
        }
        __syncthreads();
    }
    MR_STATIC unsigned long long size() {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z * mr_block_size();
    }
    MR_STATIC unsigned long long num_threads() { return size(); }
    MR_STATIC unsigned long long block_rank() {
        return blockIdx.x + (unsigned long long)gridDim.x *
                                (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
    }
    MR_STATIC unsigned long long num_blocks() {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    }
    MR_STATIC unsigned long long thread_rank() {
        return block_rank() * mr_block_size() + mr_rank_in_block();
    }
    MR_STATIC dim3 group_dim() { return gridDim; }
    MR_STATIC dim3 dim_blocks() { return gridDim; }
    MR_STATIC dim3 block_index() { return blockIdx; }
};
MR_DEVICE grid_group this_grid() {
    return grid_group();
}

/* Size neighbouring threads of a warp. */
template <unsigned int Size, typename Parent = void> class thread_block_tile {
    static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
                  "a tile has 1, 2, 4, 8, 16 or 32 threads");
    MR_STATIC unsigned int first() { return mr_lane() & ~(Size - 1); }
    MR_STATIC unsigned int mask() { return (0xffffffffu >> (32 - Size)) << first(); }

  public:
    thread_block_tile() = default;
    template <typename Other> MR_MEMBER thread_block_tile(const thread_block_tile<Size, Other> &) {}
    MR_STATIC void sync() { __syncwarp(mask()); }
    MR_STATIC constexpr unsigned int size() { return Size; }
    MR_STATIC constexpr unsigned int num_threads() { return Size; }
    MR_STATIC unsigned int thread_rank() { return mr_lane() & (Size - 1); }
    MR_STATIC unsigned int meta_group_rank() { return mr_rank_in_block() / Size; }
    MR_STATIC unsigned int meta_group_size() { return (mr_block_size() + Size - 1) / Size; }
    template <typename T> MR_MEMBER T shfl(T value, int rank) const {
        return __shfl_sync(mask(), value, rank, Size);
    }
    template <typename T> MR_MEMBER T shfl_up(T value, unsigned int by) const {
        return __shfl_up_sync(mask(), value, by, Size);
    }
    template <typename T> MR_MEMBER T shfl_down(T value, unsigned int by) const {
        return __shfl_down_sync(mask(), value, by, Size);
    }
    template <typename T> MR_MEMBER T shfl_xor(T value, unsigned int by) const {
        return __shfl_xor_sync(mask(), value, (int)by, Size);
    }
    MR_STATIC int any(int predicate) { return __any_sync(mask(), predicate); }
    MR_STATIC int all(int predicate) { return __all_sync(mask(), predicate); }
    MR_STATIC unsigned int ballot(int predicate) {
        return __ballot_sync(mask(), predicate) >> first();
    }
    template <typename T> MR_MEMBER unsigned int match_any(T value) const {
        return __match_any_sync(mask(), value) >> first();
    }
    template <typename T> MR_MEMBER unsigned int match_all(T value, int &is_equal) const {
        return __match_all_sync(mask(), value, &is_equal) >> first();
    }
};
template <unsigned int Size, typename Parent>
MR_DEVICE thread_block_tile<Size, Parent> tiled_partition(const Parent &) {
    return thread_block_tile<Size, Parent>();
}

/* Those threads of a warp that reached this point together. */
class coalesced_group {
    unsigned int mask;
    MR_MEMBER unsigned int below() const { return mask & ((1u << mr_lane()) - 1); }
    MR_MEMBER int lane_of(unsigned int rank) const { return (int)__fns(mask, 0, (int)rank + 1); }
    /* The bits of the lanes of the group, packed. */
    MR_MEMBER unsigned int pack(unsigned int bits) const {
        unsigned int packed = 0, left = mask;
        for (unsigned int rank = 0; left; rank++, left &= left - 1)
            packed |= (bits >> (__ffs((int)left) - 1) & 1) << rank;
        return packed;
    }

  public:
    MR_MEMBER explicit coalesced_group(unsigned int threads) : mask(threads) {}
    MR_MEMBER void sync() const { __syncwarp(mask); }
    MR_MEMBER unsigned int size() const { return (unsigned int)__popc(mask); }
    MR_MEMBER unsigned int num_threads() const { return size(); }
    MR_MEMBER unsigned int thread_rank() const { return (unsigned int)__popc(below()); }
    template <typename T> MR_MEMBER T shfl(T value, int rank) const {
        return __shfl_sync(mask, value, lane_of((unsigned int)rank));
    }
    template <typename T> MR_MEMBER T shfl_up(T value, unsigned int by) const {
        unsigned int rank = thread_rank();
        return __shfl_sync(mask, value, rank < by ? (int)mr_lane() : lane_of(rank - by));
    }
    template <typename T> MR_MEMBER T shfl_down(T value, unsigned int by) const {
        unsigned int rank = thread_rank();
        return __shfl_sync(mask, value, rank + by >= size() ? (int)mr_lane() : lane_of(rank + by));
    }
    MR_MEMBER int any(int predicate) const { return __any_sync(mask, predicate); }
    MR_MEMBER int all(int predicate) const { return __all_sync(mask, predicate); }
    MR_MEMBER unsigned int ballot(int predicate) const {
        return pack(__ballot_sync(mask, predicate));
    }
    template <typename T> MR_MEMBER unsigned int match_any(T value) const {
        return pack(__match_any_sync(mask, value));
    }
};
MR_DEVICE coalesced_group coalesced_threads() {
    return coalesced_group(__activemask());
}

template <typename Group> MR_DEVICE void sync(const Group &group) {
    group.sync();
}

} // namespace cooperative_groups

#undef MR_MEMBER
#undef MR_STATIC

#endif
