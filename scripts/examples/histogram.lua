-- A histogram: threads that count into the same bins.
--
-- counts[value] += 1 is three steps: load, add, store. Two threads with the same value may both load before one
-- stores, and one count is lost. atomicAdd does the three steps as one. Threads of one block that count into shared
-- memory first get in each other's way less, and touch global memory once for each bin.
--
-- On the virtual GPU, the checker names both lines of a race between threads of one launch.
-- not checked: one of its programs races
local mr = require "millrace"

local BINS = 16

-- [=[ and not [[, since the kernels contain ]].
local module = mr.module([=[
  #define BINS 16

  extern "C" __global__ void lost_counts(int *counts, const unsigned char *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) counts[data[i]] += 1; // a race: other threads count into the same bin
  }

  extern "C" __global__ void with_atomics(int *counts, const unsigned char *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&counts[data[i]], 1);
  }

  extern "C" __global__ void in_shared_memory(int *counts, const unsigned char *data, int n) {
    __shared__ int of_block[BINS];
    if (threadIdx.x < BINS) of_block[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
      atomicAdd(&of_block[data[i]], 1);
    __syncthreads();
    if (threadIdx.x < BINS) atomicAdd(&counts[threadIdx.x], of_block[threadIdx.x]);
  }]=])

local function count(name, data, blocks)
  local counts = mr.zeros(BINS, {dtype = "i32"})
  module:get(name)[{blocks or (#data + 127) // 128, 128}](counts, data, #data)
  return counts
end

local function random_bytes(n)
  mr.manual_seed(3)
  return mr.randint(0, BINS, { n }, {dtype = "u8"})
end

local N = 20000
local data = random_bytes(N)
local right = {}
for value = 0, BINS - 1 do right[value + 1] = data:eq(value):sum():item() end
right = mr.tensor(right, {dtype = "i32"})

print("lost_counts is right:      " .. tostring(mr.equal(count("lost_counts", data), right)))
print("with_atomics is right:     " .. tostring(mr.equal(count("with_atomics", data), right)))
print("in_shared_memory is right: " .. tostring(mr.equal(count("in_shared_memory", data, 8), right)))

return { -- for the tests
  fixed = function(n)
    local bytes = random_bytes(20 * n)
    return count("with_atomics", bytes):sum():item() + count("in_shared_memory", bytes, 2):sum():item(), 40 * n
  end,
  racy = function(n) return count("lost_counts", random_bytes(20 * n)):sum():item(), 20 * n end,
}
