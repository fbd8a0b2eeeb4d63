-- A kernel of your own, in CUDA C: y = a * x + y.
--
-- mr.kernel compiles the source when the script runs, and finds out from the code what the kernel reads and writes, so
-- that the hazard checker knows. A launch names the grid and the block, as in CUDA:
--
--     saxpy<<<blocks, threads>>>(y, x, a, n);       CUDA C++
--     saxpy[{blocks, threads}](y, x, a, n)          here
--
-- Arguments are checked against the kernel's declaration: their number, types, and where tensors are.
local mr = require "millrace"

local saxpy = mr.kernel([[
  extern "C" __global__ void saxpy(float *y, const float *x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; // each thread computes one element
    if (i < n) y[i] = a * x[i] + y[i];             // the last block may have threads to spare
  }]], "saxpy")

local THREADS = 256

local function program(n)
  local x, y = mr.arange(n, {dtype = "f32"}), mr.ones(n)
  local blocks = (n + THREADS - 1) // THREADS
  saxpy[{blocks, THREADS}](y, x, 2.0, n)
  return y
end

local N = 100000
print(saxpy)
local access = saxpy:access()
print(("the code tells: it %s y and %s x"):format(access.y == "rw" and "reads and writes" or access.y,
  access.x == "r" and "reads" or access.x))
print("y is right: " .. tostring(mr.equal(program(N), mr.arange(N, {dtype = "f32"}) * 2 + 1)))

local ok, message = pcall(function() saxpy[{1, THREADS}](mr.ones(4), mr.ones(4, {dtype = "f64"}), 2.0, 4) end)
print(ok or (message:gsub("^.-:%d+: ", "")))

return { -- for the tests
  fixed = function(n) return program(n):sum():item(), n * (n - 1) + n end,
}
