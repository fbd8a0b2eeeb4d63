-- virtual only: a GPU does not say which thread failed, and its driver may need a new process
-- Kernels that go wrong: each failure has CUDA's code, and names the kernel, the line of its source, and the thread.
local lu = require "luaunit"
local mr = require "millrace"
local T = require "millrace.testing"

local function line() return debug.getinfo(2, "l").currentline end

TestFaults = {}

local INSTRUCTIONS = mr.machine.settings().kernel_instructions

function TestFaults.tearDown()
  mr.reset()
  mr.machine.settings{ kernel_instructions = INSTRUCTIONS }
end

-- What synchronising raises, and that its text has all of these.
local function assert_lost(code, fn, ...)
  local err = T.raises(code, function()
    fn()
    mr.synchronize()
  end)
  for _, text in ipairs{ ... } do lu.assertStrContains(tostring(err), text) end
  return err
end

function TestFaults.test_a_tensor_has_the_name_of_its_variable()
  local function launch(x, n)
    local kernel = mr.kernel [[extern "C" __global__ void f(float *x, int n) { x[threadIdx.x + n] = 1; }]]
    return function() kernel[{1, 8}](x, n) end
  end
  for wrong, text in pairs{
    [1] = "just past the end of `image` (128 bytes, made at ",
    [2] = "just past the end of `other` (128 bytes, made at ",
    [3] = "just past the end of `kept.weights` (64 bytes, made at ", [4] = "just past the end of a tensor (32 bytes",
  } do
    local image, other = mr.zeros{ 4, 8 }, mr.zeros{ 4, 8 }
    local kept = { weights = mr.zeros(16) }
    if wrong == 1 then assert_lost("illegal-address", launch(image, 30), text)
    elseif wrong == 2 then assert_lost("illegal-address", launch(other, 30), text)
    elseif wrong == 3 then assert_lost("illegal-address", launch(kept.weights, 12), text)
    else assert_lost("illegal-address", function() launch(mr.zeros(8), 8)() end, text) end
    mr.reset()
  end
end

function TestFaults.test_a_write_past_the_end_names_thread_and_line()
  local at = line() + 4
  local kernel = mr.kernel([[
    extern "C" __global__ void fill(float *x, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i <= n) x[i] = 1;
    }]])
  local x = mr.empty(100, {name = "x"})
  local launched = line() + 1
  local err = assert_lost("illegal-address", function() kernel[{1, 128}](x, 100) end,
    "fill", ("kernels_faults.lua:%d"):format(at), "thread (100,0,0)", "past the end of x")
  lu.assertStrContains(err.where, ("kernels_faults.lua:%d"):format(launched))
end

function TestFaults.test_null()
  local kernel = mr.kernel("extern \"C\" __global__ void scale(float *x) { x[threadIdx.x] *= 2; }")
  assert_lost("illegal-address", function() kernel[{1, 4}](nil) end, "scale")
end

function TestFaults.test_dynamic_shared_memory_that_the_launch_did_not_ask_for()
  local kernel = mr.kernel([[
    extern "C" __global__ void reverse(int *y) {
      __shared__ int first[2];
      extern __shared__ int s[];
      if (threadIdx.x < 2) first[threadIdx.x] = 0;
      s[threadIdx.x] = threadIdx.x;
      __syncthreads();
      y[threadIdx.x] = s[31 - threadIdx.x] + first[0];
    }]])
  local y = mr.zeros(32, {dtype = "i32"})
  assert_lost("illegal-address", function() kernel[{1, 32}](y) end, "thread (0,0,0)", "`s` is extern __shared__",
    "gave it 0 bytes", "k[{grid, block, BYTES}](...)", "this access needs 4")
  mr.reset()
  kernel, y = mr.kernel([[
    extern "C" __global__ void fill(int *y) { extern __shared__ int s[]; s[threadIdx.x] = 1; y[0] = s[0]; }]]),
    mr.zeros(1, {dtype = "i32"})
  assert_lost("illegal-address", function() kernel[{1, 32, 64}](y) end, "thread (16,0,0)", "gave it 64 bytes",
    "this access needs 68")
end

function TestFaults.test_an_endless_loop()
  local kernel = mr.kernel([[
    extern "C" __global__ void forever(volatile int *x) {
      while (x[0] == 0) {}
    }]])
  mr.machine.settings{ kernel_instructions = 100000 }
  assert_lost("launch-timeout", function() kernel[{1, 32}](mr.zeros(1, {dtype = "i32"})) end, "forever")
end

function TestFaults.test_endless_recursion()
  local kernel = mr.kernel([[
    __device__ __noinline__ int down(int n, int *x) {
      int local[8];
      for (int i = 0; i < 8; i++) local[i] = x[i % 2] + n;
      int below = n >= 0 ? down(n + 1, x) : 0;
      return below + local[below & 7];
    }
    extern "C" __global__ void recurse(int *x) { x[0] = down(0, x); }]])
  assert_lost("launch-failure", function() kernel[{1, 32}](mr.zeros(8, {dtype = "i32"})) end, "recurse")
end

function TestFaults.test_trap_and_assert()
  local trap = mr.kernel("extern \"C\" __global__ void f(int n) { if (threadIdx.x == n) __trap(); }")
  assert_lost("launch-failure", function() trap[{1, 32}](3) end)
  mr.reset()
  local check = mr.kernel([[
    #include <assert.h>
    extern "C" __global__ void f(int n) { assert(n > 3); }]])
  assert_lost("assert", function() check[{1, 1}](3) end, "n > 3")
end

function TestFaults.test_a_barrier_that_not_all_reach()
  local kernel = mr.kernel([[
    extern "C" __global__ void f(int *x) {
      if (threadIdx.x < 16) __syncthreads();
      x[threadIdx.x] = 1;
    }]])
  lu.assertFalse((pcall(function()
    kernel[{1, 32}](mr.zeros(32, {dtype = "i32"}))
    mr.synchronize()
  end)))
end

function TestFaults.test_modules_must_be_loaded_again_after_a_reset()
  local kernel = mr.kernel("extern \"C\" __global__ void f(int *x) { *x = 3; }")
  mr.reset()
  local err = T.raises("invalid-handle", function() kernel[{1, 1}](mr.zeros(1, {dtype = "i32"})) end)
  lu.assertStrContains(tostring(err), "load it again")
  local double = mr.elementwise("float x -> float y", "y = 2 * x")
  lu.assertEquals(double(mr.ones(2)):totable(), { 2, 2 })
  mr.reset()
  lu.assertEquals(double(mr.ones(2)):totable(), { 2, 2 }) -- it loads its kernel again
end

-- What a launch has found before it fails counts.
function TestFaults.test_a_race_before_a_fault()
  local k = mr.kernel([[extern "C" __global__ void f(int *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[0] += i;
    if (i == 200) a[n] = 1;
  }]])
  local failed
  local reports = mr.hazard.check(function()
    local a = mr.zeros(100, {dtype = "i32", name = "a"})
    k[{4, 64}](a, 100)
    failed = not pcall(mr.synchronize)
  end)
  local r = reports[1]
  lu.assertEquals({ failed, #reports > 0, r and r.kind, r and r.tensor }, { true, true, "race-in-kernel", "a" })
end

-- An access that fails does not happen: it is no race, whichever way the addresses of its lanes lie.
function TestFaults.test_an_access_that_fails_is_no_race()
  local statements =
    { "y[-1] = 3;", "y[-1 - i % 3] = i;", "y[-1] += 1;", "if (i < 40) y[-1] = i; else y[i] = 1;" }
  for _, statement in ipairs(statements) do
    local k = mr.kernel(([[extern "C" __global__ void f(int *y) {
      int i = threadIdx.x;
      %s
    }]]):format(statement))
    local err
    local reports = mr.hazard.check(function()
      local y = mr.zeros(256, {dtype = "i32", name = "y"})
      k[{1, 256}](y)
      err = T.raises("illegal-address", mr.synchronize)
    end)
    lu.assertEquals(#reports, 0, statement)
    lu.assertStrContains(tostring(err), "before y")
    mr.reset()
  end
end

os.exit(lu.LuaUnit.run())
