-- The virtual time of a launch: at least what its own counts say, the same for the same launch, and by the arguments.
local lu = require "luaunit"
local mr = require "millrace"

if mr.backend ~= "virtual" then os.exit(0) end

local module = mr.module([[
extern "C" __global__ void count(int *bins, int mask, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(bins + (i & mask), 1);
}
extern "C" __global__ void again(float *y, const float *x, int passes) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < passes; k++) sum = sum * 0.5f + x[(i + k) & 255];
  y[i] = sum;
}]])

-- Milliseconds of each launch that fn makes.
local function times(fn)
  local list = {}
  for _, span in ipairs(mr.timeline(fn).spans) do
    if span.engine == "sm" then list[#list + 1] = span.finish - span.start end
  end
  return list
end

TestTime = {}

function TestTime.test_atomics_on_few_addresses()
  local bins, count = mr.zeros(1024, { dtype = "i32" }), module:get("count")
  mr.synchronize()
  local function launch(mask) count[{ 1024, 256 }](bins, mask, 1024 * 256) end
  local list = times(function()
    launch(3)
    launch(1023)
    launch(3)
  end)
  lu.assertTrue(list[1] > 5 * list[2])
  lu.assertEquals(list[3], list[1])
  count:profile{ reset = true }
  launch(3)
  mr.synchronize()
  lu.assertAlmostEquals(list[1], count:profile().ms + 0.0018, 1e-5) -- and what a kernel takes to begin and end
end

-- The bytes are the same; only the loop is longer.
function TestTime.test_loops_that_come_back()
  local threads = os.getenv "MILLRACE_LONG" and 256 or 64
  local y, x, again = mr.zeros(264 * threads), mr.zeros(256), module:get("again")
  mr.synchronize()
  local list = times(function()
    again[{ 264, threads }](y, x, 10)
    again[{ 264, threads }](y, x, 1000)
  end)
  lu.assertTrue(list[2] > 10 * list[1])
end

-- Several waves of blocks, and more than are counted.
function TestTime.test_a_launch_of_many_waves()
  local bins, count = mr.zeros(4, { dtype = "i32" }), module:get("count")
  mr.synchronize()
  local function launch(blocks) count[{ blocks, 256 }](bins, 3, blocks * 256) end
  local list = times(function()
    launch(512)
    launch(8192)
  end)
  lu.assertAlmostEquals(list[2] / list[1], 15, 1)
  lu.assertEquals(bins:totable(), { 557056, 557056, 557056, 557056 })
end

os.exit(lu.LuaUnit.run())
