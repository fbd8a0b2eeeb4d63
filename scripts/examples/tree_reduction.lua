-- The sum of an array, as a tree: with shared memory, and with warp shuffles.
--
-- Threads of a block can add in parallel if they do it in rounds: in each round half of the values are added to the
-- other half. With shared memory each round needs __syncthreads(), since threads read what others wrote. The 32 threads
-- of a warp can read each other's registers instead (__shfl_down_sync), without memory and without a barrier; then only
-- the sums of the warps go through shared memory.
--
-- Blocks cannot wait for each other, so each one writes its own sum, and a second launch with one block adds these.
local mr = require "millrace"

local module = mr.module([[
  // Each thread first adds up every (gridDim.x * blockDim.x)-th element.
  __device__ long long of_thread(const int *in, int n) {
    long long sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    return sum;
  }

  // blockDim.x must be a power of two. The size of `values` is the third number of the launch.
  extern "C" __global__ void with_shared_memory(long long *out, const int *in, int n) {
    extern __shared__ long long values[];
    values[threadIdx.x] = of_thread(in, n);
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
      __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = values[0];
  }

  __device__ long long of_warp(long long sum) {
    for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffff, sum, half);
    return sum; // lane 0 has the sum of all
  }

  // blockDim.x must be a multiple of 32.
  extern "C" __global__ void with_shuffles(long long *out, const int *in, int n) {
    __shared__ long long sums[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    long long sum = of_warp(of_thread(in, n));
    if (lane == 0) sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {
      sum = of_warp(lane < blockDim.x / 32 ? sums[lane] : 0);
      if (lane == 0) out[blockIdx.x] = sum;
    }
  }

  extern "C" __global__ void last_step(long long *out, const long long *in, int n) {
    long long sum = 0;
    for (int i = threadIdx.x; i < n; i += 32) sum += in[i];
    sum = of_warp(sum);
    if (threadIdx.x == 0) out[0] = sum;
  }]])

local last_step = module:get("last_step")

local function sum(kernel, x)
  local blocks, threads = 8, 128
  local partial, total = mr.empty(blocks, {dtype = "i64"}), mr.empty(1, {dtype = "i64"})
  kernel[{blocks, threads, threads * 8}](partial, x, #x)
  last_step[{1, 32}](total, partial, blocks)
  return total:item()
end

local N = 100000
local x = mr.arange(N, {dtype = "i32"})
for _, name in ipairs{ "with_shared_memory", "with_shuffles" } do
  print(("%-20s the sum is right: %s"):format(name .. ":", tostring(sum(module:get(name), x) == N * (N - 1) // 2)))
end

return { -- for the tests
  fixed = function(n)
    local t = mr.arange(n, {dtype = "i32"})
    return sum(module:get("with_shared_memory"), t) + sum(module:get("with_shuffles"), t), n * (n - 1)
  end,
}
