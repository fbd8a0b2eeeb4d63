-- timeout: 120
-- virtual only: races inside launches, and what a trap says, are the virtual GPU's
-- Cooperative launches: blocks that meet in grid.sync().
local lu = require "luaunit"
local mr = require "millrace"

local function kernel(body)
  return mr.kernel(([[
    #include <cooperative_groups.h>
    extern "C" __global__ void k(int *x, int *y) {
      cooperative_groups::grid_group grid = cooperative_groups::this_grid();
      int i = grid.thread_rank(), n = grid.size();
      %s
    }]]):format(body), "k")
end

local function races(k, config, ...)
  local arguments, list = { ... }, {}
  local reports = mr.hazard.check(function()
    k[config](table.unpack(arguments))
    mr.synchronize()
  end)
  for _, r in ipairs(reports) do list[#list + 1] = r.kind end
  return list
end

TestCooperative = {}

function TestCooperative.test_the_barrier_orders_blocks()
  local x, y = mr.zeros(6 * 96, {dtype = "i32"}), mr.zeros(6 * 96, {dtype = "i32"})
  local ordered = kernel "x[i] = i; grid.sync(); y[i] = x[n - 1 - i];"
  for _, config in ipairs{ { 6, 96, cooperative = true }, { { 3, 2 }, { 8, 4, 3 }, cooperative = true } } do
    lu.assertEquals(races(ordered, config, x, y), {})
    for i, value in ipairs(y:totable()) do lu.assertEquals(value, 6 * 96 - i) end
  end
  local unordered = kernel "x[i] = i; if (i < 0) grid.sync(); y[i] = x[n - 1 - i];"
  lu.assertEquals(races(unordered, { 6, 96, cooperative = true }, x, y)[1], "race-in-kernel")
  local late = kernel "grid.sync(); x[i] = i; y[i] = x[n - 1 - i]; grid.sync();"
  lu.assertEquals(races(late, { 6, 96, cooperative = true }, x, y)[1], "race-in-kernel")
end

-- Volatile accesses that the barrier orders meet in one order; the barrier's own do not count.
function TestCooperative.test_the_barrier_orders_volatile_accesses()
  local function counted(body)
    local k, x, y = kernel(body), mr.zeros(6 * 96, {dtype = "i32"}), mr.zeros(6 * 96, {dtype = "i32"})
    mr.synchronize()
    local reports, totals = mr.hazard.check(function()
      k[{ 6, 96, cooperative = true }](x, y)
      mr.synchronize()
    end)
    lu.assertEquals(#reports, 0)
    return totals.order_of_threads
  end
  local ordered = [[volatile int *v = x; v[i] = i; grid.sync(); int seen = v[n - 1 - i]; grid.sync();
    v[n - 1 - i] = seen; grid.sync(); y[i] = v[i];]]
  lu.assertEquals(counted(ordered), 0)
  lu.assertEquals(counted((ordered:gsub("seen; grid.sync%(%);", "seen;"))), 1)
end

function TestCooperative.test_many_rounds_and_launches()
  local k = kernel "for (int r = 0; r < 20; r++) { if (i == r) x[0] += r; grid.sync(); }"
  local x = mr.zeros(1, {dtype = "i32"})
  for _ = 1, 3 do k:launch({ grid = 4, block = 32, cooperative = true }, x, nil) end
  lu.assertEquals(x:item(), 3 * 190)
end

-- Blocks that wait do no work: a barrier takes about a microsecond, however long the interpreter lets them ask.
function TestCooperative.test_a_barrier_takes_about_a_microsecond()
  local function time_of(barriers, blocks)
    local timed = mr.kernel(([[
      #include <cooperative_groups.h>
      extern "C" __global__ void steps(int *y) {
        y[blockIdx.x * blockDim.x + threadIdx.x] = 1;
        %s
      }]]):format(("cooperative_groups::this_grid().sync();\n"):rep(barriers)))
    local y = mr.zeros(blocks * 64, { dtype = "i32" })
    mr.synchronize()
    local tr = mr.timeline(function() timed[{ blocks, 64, cooperative = true }](y) end)
    return 1000 * timed:profile().ms, 1000 * (tr.spans[1].finish - tr.spans[1].start)
  end
  for _, blocks in ipairs{ 4, 64 } do
    local counted, traced = time_of(0, blocks)
    for _, barriers in ipairs{ 1, 5 } do
      local counted_with, traced_with = time_of(barriers, blocks)
      local each, each_traced = (counted_with - counted) / barriers, (traced_with - traced) / barriers
      lu.assertTrue(each > 0.5 and each < 3, each)
      lu.assertTrue(each_traced > 0.5 and each_traced < 3, each_traced)
    end
  end
end

function TestCooperative.test_a_barrier_that_not_all_blocks_reach()
  local some = kernel("if (blockIdx.x < 2) grid.sync(); if (i < n) y[i] = 1;")
  local x = mr.zeros(256, { dtype = "i32" })
  local ok, err = pcall(function()
    some[{ 4, 64, cooperative = true }](x, x)
    mr.synchronize()
  end)
  mr.reset()
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "launch-timeout")
  lu.assertStrContains(err.message, "thread (0,0,0) of block (0,0,0) waits for ever: what it asks for is not " ..
    "written by any thread that can still run; if it waits in grid.sync(), not all blocks of the grid reach that: " ..
    "move it out of")
end

-- A loop that asks for something else each time works.
function TestCooperative.test_volatile_reads_in_a_loop_are_counted()
  local summed = mr.kernel([[
    extern "C" __global__ void sum(volatile int *x, int *out, int n) {
      int sum = 0;
      for (int i = 0; i < n; i++) sum += x[i];
      *out = sum;
    }]])
  local x, out = mr.ones(1000, { dtype = "i32" }), mr.zeros(1, { dtype = "i32" })
  summed[{ 1, 1 }](x, out, 1000)
  lu.assertEquals(out:item(), 1000)
  lu.assertTrue(summed:profile().classes["global memory"].instructions >= 1000)
end

function TestCooperative.test_what_it_reads_and_writes_is_known()
  local k = kernel "x[i] = i; grid.sync(); y[i] = x[n - 1 - i];"
  lu.assertEquals(k:access(), { x = "rw", y = "w" })
end

-- The header has a thousand constants that no kernel here uses: the load of the module copies none of them.
function TestCooperative.test_variables_that_no_kernel_uses_are_made_when_they_are_asked_for()
  local m
  local tr = mr.timeline(function()
    m = mr.module([[
      #include <cooperative_groups.h>
      __device__ int used[2] = {4, 5};
      extern "C" __global__ void two(int *y) { y[0] = used[1]; }]])
  end)
  lu.assertTrue(#tr.spans <= 40, #tr.spans) -- the collector may free what earlier tests lost
  local y = mr.zeros(1, { dtype = "i32" })
  m:get("two")[{ 1, 1 }](y)
  lu.assertEquals(y:item(), 5)
  lu.assertEquals(m:global("used"):totable(), { 4, 5 })
  local chain = mr.module([[
    __device__ int target = 7, *first = &target, **second = &first;
    extern "C" __global__ void keep(int *y) { y[0] = 1; }
    extern "C" __global__ void follow(int *y) { y[0] = **second; }]])
  chain:get("follow")[{ 1, 1 }](y)
  lu.assertEquals(y:item(), 7)
end

-- The barrier of the grid is found through an address that no parameter has, and that is no memory of the script.
function TestCooperative.test_the_barrier_is_no_pointer_in_data()
  local function pointers_as_data(fn)
    mr.hazard.mode("collect")
    mr.hazard.clear()
    fn()
    mr.synchronize()
    local _, totals = mr.hazard.summary()
    mr.hazard.mode("off")
    return totals.pointers_as_data
  end
  local x, y = mr.zeros(64, {dtype = "i32"}), mr.zeros(64, {dtype = "i32"})
  local k = kernel "x[i] = i; grid.sync(); y[i] = x[n - 1 - i];"
  lu.assertEquals(pointers_as_data(function() k[{ 2, 32, cooperative = true }](x, y) end), 0)
  local follows = mr.kernel([[
    #include <cooperative_groups.h>
    extern "C" __global__ void follows(int **list, int *y) {
      cooperative_groups::grid_group grid = cooperative_groups::this_grid();
      int i = grid.thread_rank(), *p = list[0];
      grid.sync();
      p[i] = i;
    }]])
  local list = mr.tensor({ y.data_ptr }, {dtype = "i64"})
  lu.assertEquals(pointers_as_data(function() follows[{ 2, 32, cooperative = true }](list, y) end), 1)
  lu.assertEquals(y:totable()[64], 63)
end

-- The header has more than a thousand variables; that they get their values is no operation of the script.
function TestCooperative.test_variables_of_a_module_are_no_operations()
  mr.hazard.mode("collect")
  mr.hazard.clear()
  local _, before = mr.hazard.summary()
  local k = mr.kernel[[
    #include <cooperative_groups.h>
    __device__ int start = 7;
    extern "C" __global__ void k(int *x) { x[threadIdx.x] = start; }]]
  local x, y = mr.empty(32, {dtype = "i32"}), mr.empty(32, {dtype = "i32"})
  k[{ 1, 32 }](x)
  k[{ 1, 32 }](y)
  mr.synchronize()
  local _, after = mr.hazard.summary()
  mr.hazard.mode("off")
  lu.assertEquals(after.operations - before.operations, 2)
  lu.assertEquals(x:totable()[32], 7)
end

function TestCooperative.test_a_grid_that_does_not_fit()
  local k = kernel "grid.sync();"
  local ok, err = pcall(k[{ 100000, 1024, cooperative = true }], nil, nil)
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "invalid-configuration")
  lu.assertStrMatches(tostring(err), ".*k: a cooperative launch of 100000 blocks is too large: the device runs %d+ " ..
    "such blocks at once.*")
  k[{ 4, 1024, cooperative = true }](nil, nil)
  mr.synchronize()
end

function TestCooperative.test_without_it_there_is_no_barrier()
  local k = kernel "grid.sync();"
  local ok, err = pcall(function()
    k[{ 2, 32 }](nil, nil)
    mr.synchronize()
  end)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(err),
    "grid.sync() needs a cooperative launch: k[{grid, block, cooperative = true}](...)")
  mr.reset()
  k = mr.kernel[[extern "C" __global__ void k() { __trap(); }]]
  ok, err = pcall(function()
    k[{ 2, 32 }]()
    mr.synchronize()
  end)
  lu.assertFalse(ok)
  lu.assertNotStrContains(tostring(err), "grid.sync")
  mr.reset()
end

function TestCooperative.test_it_is_a_boolean()
  local k = kernel "grid.sync();"
  local ok, err = pcall(function() return k[{ 2, 32, cooperative = 1 }] end)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(err), "cooperative")
end

require "lua.support.compilers" "tests/lua/kernels_cooperative.lua"
os.exit(lu.LuaUnit.run())
