// Cooperative groups: tiles of a warp, threads that are together, and reductions of them.
// kernel: tile_sums<4>
// kernel: tile_sums<16>
// kernel: tile_sums<32>
// kernel: filter
// kernel: block_reduce

#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// Each tile adds its elements; the first thread of it writes the sum.
template <int SIZE> __global__ void tile_sums(int *out, const int *in, int count) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<SIZE> tile = cg::tiled_partition<SIZE>(block);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = i < count ? in[i] : 0;
    for (int offset = tile.size() / 2; offset > 0; offset /= 2) sum += tile.shfl_down(sum, offset);
    if (tile.thread_rank() == 0) out[i / SIZE] = sum;
}

// Copies the positive elements, in any order: one atomic operation for all threads of a warp that have one.
extern "C" __global__ void filter(int *out, unsigned int *used, const int *in, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && in[i] > 0) {
        cg::coalesced_group active = cg::coalesced_threads();
        unsigned int first = 0;
        if (active.thread_rank() == 0) first = atomicAdd(used, active.size());
        first = active.shfl(first, 0);
        out[first + active.thread_rank()] = in[i];
    }
}

extern "C" __global__ void block_reduce(int *out, const int *in, int count) {
    __shared__ int of_warp[32];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    int most = -2147483647 - 1;
    for (int i = block.thread_rank(); i < count; i += block.size()) most = max(most, in[i]);
    for (int offset = 16; offset > 0; offset /= 2) most = max(most, warp.shfl_xor(most, offset));
    if (warp.thread_rank() == 0) of_warp[warp.meta_group_rank()] = most;
    block.sync();
    if (warp.meta_group_rank() == 0) {
        most = warp.thread_rank() < warp.meta_group_size() ? of_warp[warp.thread_rank()] : -2147483647 - 1;
        for (int offset = 16; offset > 0; offset /= 2) most = max(most, warp.shfl_xor(most, offset));
        if (warp.any(warp.thread_rank() == 0 && most < 0)) most = 0;
        if (warp.thread_rank() == 0) *out = most;
    }
}
