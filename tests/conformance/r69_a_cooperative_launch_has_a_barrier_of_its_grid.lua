-- R69: all blocks of a cooperative launch run at once and can wait for each other (grid.sync()). More blocks than the
-- device runs at once are an error of the call. Guaranteed: CUDA Programming Guide (cooperative groups, grid
-- synchronization); RT cudaLaunchCooperativeKernel (error 720).
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R69"

local ok, turn = pcall(mr.kernel, [[
#include <cooperative_groups.h>
extern "C" __global__ void turn(int *x, int *y, int rounds) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  for (int i = 0; i < rounds; i++) {
    if (threadIdx.x == 0) x[blockIdx.x] = x[blockIdx.x] + i;
    grid.sync();
    if (threadIdx.x == 0) y[blockIdx.x] = x[(blockIdx.x + 1) % gridDim.x];
    grid.sync();
    if (threadIdx.x == 0) x[blockIdx.x] = y[blockIdx.x];
  }
}]], "turn")
if not ok then
  print("no compiler: " .. tostring(turn))
  os.exit(77)
end

local blocks = 8
local x = mr.arange(blocks, {dtype = "i32"}):to(0)
local y = mr.zeros(blocks, {dtype = "i32"})
turn[{blocks, 64, cooperative = true}](x, y, 3)
local got = x:totable()
for i = 1, blocks do T.equal(got[i], (i - 1 + 3) % blocks + 3, "block " .. i) end

local before = x:totable()
local worked, message = pcall(turn[{1000000, 64, cooperative = true}], x, y, 1)
T.equal(worked, false, "a grid that is too large")
T.check(tostring(message):find("too large", 1, true), tostring(message))
T.equal(table.concat(x:totable(), " "), table.concat(before, " "), "nothing was launched")
