-- timeout: 120
-- Kernels as a script meets them: launches, arguments, variables, and what happens to wrong ones.
local lu = require "luaunit"
local mr = require "millrace"
local T = require "millrace.testing"
local command = require "host.support.command"

local function line() return debug.getinfo(2, "l").currentline end

-- The message of an error, which must begin with the line of this file that raised it.
local function failure(fn, ...)
  local ok, err = pcall(fn, ...)
  lu.assertFalse(ok, "expected an error")
  err = tostring(err)
  lu.assertStrMatches(err, "tests/lua/kernels%.lua:%d+: .*", 1, nil, err)
  return (err:gsub("^.-:%d+: ", "", 1))
end

local function assert_fails(expected, fn, ...)
  local message = failure(fn, ...)
  lu.assertStrContains(message, expected, false, false, message)
end

-- ---------------------------------------------------------------- launches

local where_am_i = mr.kernel([[
extern "C" __global__ void where_am_i(int *block_of, int *thread_of) {
  int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  int i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
  block_of[i] = block;
  thread_of[i] = 10000 * threadIdx.z + 100 * threadIdx.y + threadIdx.x;
}]], "where_am_i")

local function product(size)
  local p = 1
  for _, s in ipairs(type(size) == "table" and size or { size }) do p = p * s end
  return p
end

TestLaunch = {}

local function check_launch(grid, block, launch)
  local threads = product(block)
  local n = product(grid) * threads
  local block_of, thread_of = mr.full({ n }, -1, {dtype = "i32"}), mr.full({ n }, -1, {dtype = "i32"})
  launch(block_of, thread_of)
  local size = type(block) == "table" and block or { block }
  local expected_block, expected_thread = {}, {}
  for i = 0, n - 1 do
    local t = i % threads
    local x, y, z = t % size[1], t // size[1] % (size[2] or 1), t // (size[1] * (size[2] or 1))
    expected_block[i + 1], expected_thread[i + 1] = i // threads, 10000 * z + 100 * y + x
  end
  lu.assertEquals(block_of:totable(), expected_block)
  lu.assertEquals(thread_of:totable(), expected_thread)
end

function TestLaunch.test_grids_and_blocks_of_one_to_three_dims()
  for _, sizes in ipairs{ { 3, 5 }, { { 3 }, { 33 } }, { { 2, 3 }, { 4, 5 } }, { { 2, 3, 2 }, { 3, 2, 7 } },
    { 1, { 1, 1, 64 } }, { { 1, 1, 3 }, 32 }, { 2, 1024 } } do
    local grid, block = sizes[1], sizes[2]
    check_launch(grid, block, function(...) where_am_i[{grid, block}](...) end)
    check_launch(grid, block, function(...) where_am_i[{grid = grid, block = block}](...) end)
    check_launch(grid, block, function(...) where_am_i:launch({grid, block}, ...) end)
    check_launch(grid, block, function(...) where_am_i:launch({block = block, grid = grid}, ...) end)
  end
end

function TestLaunch.test_a_configured_launch_can_be_kept()
  local launch = where_am_i[{2, 3}]
  for _ = 1, 3 do check_launch(2, 3, launch) end
end

function TestLaunch.test_a_launch_returns_nothing()
  lu.assertEquals(select("#", where_am_i[{1, 1}](mr.zeros(1, {dtype = "i32"}), mr.zeros(1, {dtype = "i32"}))), 0)
end

local reversed = mr.kernel([[
extern "C" __global__ void reversed(int *data, int n) {
  extern __shared__ int copy[];
  copy[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = copy[n - 1 - threadIdx.x];
}]])

function TestLaunch.test_dynamic_shared_memory()
  for _, n in ipairs{ 1, 31, 64, 1000 } do
    local x = mr.arange(n, {dtype = "i32"})
    reversed[{1, n, 4 * n}](x, n)
    lu.assertTrue(mr.equal(x, mr.arange(n - 1, -1, -1, {dtype = "i32"})))
  end
end

function TestLaunch.test_the_stream_that_is_named_and_the_current_one()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local x = mr.arange(8, {dtype = "i32"})
  local function expect(stream, fn)
    local report = T.expect_hazard(function()
      mr.with(stream == a and b or a, x.fill_, x, 0)
      fn()
      mr.synchronize()
    end)
    lu.assertEquals(report.second.stream, tostring(stream):match("`(.-)`"))
    lu.assertEquals(report.second.op, "reversed")
  end
  expect(a, function() reversed[{1, 8, 32, a}](x, 8) end)
  expect(b, function() reversed[{1, 8, 32, stream = b}](x, 8) end)
  expect(a, function() reversed:launch({grid = 1, block = 8, shared = 32, stream = a}, x, 8) end)
  expect(b, function() mr.with(b, function() reversed[{1, 8, 32}](x, 8) end) end)
end

function TestLaunch.test_the_name_line_and_values_of_a_launch_in_a_hazard()
  local s, x = mr.stream{name = "s"}, mr.zeros(16, {dtype = "i32", name = "x"})
  mr.synchronize()
  local first
  local report = T.expect_hazard(function()
    first = line() + 1
    reversed[{1, 16, 64, s}](x, 16)
    x:fill_(3)
    mr.synchronize()
  end, { kind = "write-after-write", tensor = "x" })
  lu.assertStrMatches(report.first.where, ".*kernels%.lua:" .. first)
  lu.assertEquals(report.first.op, "reversed")
end

function TestLaunch.test_a_launch_keeps_its_tensors_alive()
  local s = mr.stream()
  for _ = 1, 20 do
    mr.spin{ms = 0.1, stream = s}
    local x = mr.arange(32, {dtype = "i32", stream = s})
    reversed[{1, 32, 128, s}](x, 32)
    x = nil -- luacheck: ignore
    collectgarbage()
  end
  s:synchronize()
end

-- ---------------------------------------------------------------- arguments

local scalars = mr.kernel([[
extern "C" __global__ void scalars(double *out, bool a, char b, unsigned char c, short d, unsigned short e, int f,
                                   unsigned g, long long h, unsigned long long k, float l, double m) {
  out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e; out[5] = f; out[6] = g; out[7] = h; out[8] = k >> 11;
  out[9] = l; out[10] = m;
}]])

TestArguments = {}

function TestArguments.test_scalars_of_every_type()
  local out = mr.zeros(11, {dtype = "f64"})
  scalars[{1, 1}](out, true, -5, 200, -30000, 60000, -7, 4000000000, -(1 << 40), -1, 0.5, 0.1)
  lu.assertEquals(out:totable(),
    { 1, -5, 200, -30000, 60000, -7, 4000000000, -(1 << 40), (1 << 53) - 1, 0.5, 0.1 })
  scalars[{1, 1}](out, 0, 127, 0, 32767, 0, 2147483647, 0, math.mininteger, math.maxinteger, 3, math.huge)
  local t = out:totable()
  lu.assertEquals(t[7 + 1], -0x1p63)
  lu.assertEquals(t[11], math.huge)
  lu.assertEquals({ table.unpack(t, 1, 7) }, { 0, 127, 0, 32767, 0, 2147483647, 0 })
end

function TestArguments.test_numbers_out_of_range()
  local good = { true, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
  local function with(k, value, expected)
    local args = { table.unpack(good) }
    args[k] = value
    assert_fails(expected, function() scalars[{1, 1}](mr.zeros(11, {dtype = "f64"}), table.unpack(args)) end)
  end
  with(1, 2, "scalars: argument 2 (`bool a`): expected an integer from 0 to 1, got 2")
  with(2, 128, "argument 3 (`char b`): expected an integer from -128 to 127, got 128")
  with(3, -1, "argument 4 (`unsigned char c`): expected an integer from 0 to 255, got -1")
  with(5, 65536, "from 0 to 65535, got 65536")
  with(6, 1 << 31, "(`int f`): expected an integer from -2147483648 to 2147483647, got 2147483648")
  with(7, -1, "(`unsigned g`): expected an integer from 0 to 4294967295, got -1")
  with(6, 0.5, "expected an integer, got 0.5")
  with(6, 0 / 0, "expected an integer, got")
  with(6, 1e300, "expected an integer, got 1e+300")
  with(6, "3", "(`int f`): expected an integer, got a string")
  with(10, "3", "(`float l`): expected a number, got a string")
  with(10, true, "expected a number, got true")
  with(11, mr.zeros(1), "expected a number, got a tensor: pass t:item(), its value")
end

local scale = mr.kernel([[
extern "C" __global__ void scale(float *x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}]], "scale")

function TestArguments.test_their_number()
  local x = mr.ones(4)
  assert_fails("scale: expected 3 arguments (float* x, float factor, int n), got 2", function() scale[{1, 4}](x, 2) end)
  assert_fails("scale: expected 3 arguments", function() scale[{1, 4}](x, 2, 4, 5) end)
  assert_fails("got 0", function() scale[{1, 4}]() end)
end

function TestArguments.test_what_is_passed_for_a_pointer()
  assert_fails("scale: argument 1 (`float* x`): expected a tensor or nil, got a number",
    function() scale[{1, 4}](3, 2, 4) end)
  assert_fails("expected a tensor or nil, got a table", function() scale[{1, 4}]({}, 2, 4) end)
  assert_fails("got a stream", function() scale[{1, 4}](mr.stream(), 2, 4) end)
  assert_fails("got a kernel", function() scale[{1, 4}](scale, 2, 4) end)
  assert_fails("expected a tensor of f32, got one of f64: t:to(\"f32\") converts it",
    function() scale[{1, 4}](mr.ones(4, {dtype = "f64"}), 2, 4) end)
  assert_fails("expected a contiguous tensor", function() scale[{1, 4}](mr.ones(4, 4):t(), 2, 4) end)
  local of_addresses = mr.kernel[[extern "C" __global__ void f(float **y) { y[0][threadIdx.x] = 1; }]]
  local x = mr.zeros(4)
  for _, given in ipairs { x, { x } } do
    assert_fails("expected a tensor of addresses, such as mr.tensor({x.data_ptr}, {dtype=\"i64\"}), got ",
      function() of_addresses[{1, 4}](given) end)
    assert_fails("; simpler is one parameter for each tensor, which the checker follows",
      function() of_addresses[{1, 4}](given) end)
  end
  of_addresses[{1, 4}](mr.tensor({ x.data_ptr }, { dtype = "i64" }))
  lu.assertEquals(x:sum():item(), 4)
  scale[{1, 4}](nil, 2, 0) -- NULL
end

function TestArguments.test_a_host_tensor()
  assert_fails("got one in pageable host memory: t:to(0) or t:pin_memory() copies it",
    function() scale[{1, 4}](mr.ones(4, {device = "cpu"}), 2, 4) end)
  local pinned = mr.ones(4, {device = "cpu", pinned = true}) -- mapped memory
  scale[{1, 4}](pinned, 2, 4)
  mr.synchronize()
  lu.assertEquals(pinned:totable(), { 2, 2, 2, 2 })
end

function TestArguments.test_freed_tensors_and_closed_streams()
  local x, s = mr.ones(4), mr.stream()
  x:free()
  s:close()
  assert_fails("was freed at", function() scale[{1, 4}](x, 2, 4) end)
  assert_fails("closed", function() scale[{1, 4, 0, s}](mr.ones(4), 2, 4) end)
  local kept = mr.stream()
  local launch = scale[{1, 4, 0, kept}]
  kept:close()
  assert_fails("closed", function() launch(mr.ones(4), 2, 4) end)
end

function TestArguments.test_a_tensor_of_another_device()
  if mr.device_count() < 2 then return end
  local s = mr.stream{device = 0}
  assert_fails("device 1", function() scale[{1, 4, 0, s}](mr.ones(4, {device = 1}), 2, 4) end)
end

function TestArguments.test_views_are_pointers_to_their_first_element()
  local x = mr.ones(6)
  scale[{1, 32}](x[{{3, 5}}], 5, 3)
  lu.assertEquals(x:totable(), { 1, 1, 5, 5, 5, 1 })
  local m = mr.ones(3, 2)
  scale[{1, 32}](m[2], 7, 2)
  lu.assertEquals(m:totable(), { { 1, 1 }, { 7, 7 }, { 1, 1 } })
end

function TestArguments.test_a_kernel_for_strided_tensors()
  local gather = mr.kernel([[
    extern "C" __global__ void gather(float *out, const float *in, int stride, int n) {
      int i = threadIdx.x;
      if (i < n) out[i] = in[i * stride];
    }]], {name = "gather", strided = true})
  local m, out = mr.arange(12, {dtype = "f32"}):view(3, 4), mr.zeros(3)
  gather[{1, 32}](out, m:t()[2], 4, 3)
  lu.assertEquals(out:totable(), { 1, 5, 9 })
end

function TestArguments.test_structs()
  local kernel = mr.kernel([[
    struct Ball { float x, y; int kind; double mass; };
    extern "C" __global__ void weigh(double *out, Ball ball, float2 v, float4 *many) {
      out[0] = ball.x + 10 * ball.y + 100 * ball.kind + ball.mass;
      out[1] = v.x - v.y;
      many[0].z = 7;
    }]])
  local out, many = mr.zeros(2, {dtype = "f64"}), mr.zeros(4)
  kernel[{1, 1}](out, string.pack("=ffi4xxxxd", 1, 2, 3, 0.25), string.pack("=ff", 5, 1), many)
  lu.assertEquals(out:totable(), { 321.25, 4 })
  lu.assertEquals(many:totable(), { 0, 0, 7, 0 })
  assert_fails("argument 2 (`Ball ball`): expected its 24 bytes as a string (string.pack), got 3 bytes",
    function() kernel[{1, 1}](out, "abc", string.pack("=ff", 5, 1), many) end)
  assert_fails("expected its 8 bytes as a string (string.pack), got a number",
    function() kernel[{1, 1}](out, ("x"):rep(24), 5, many) end)
end

function TestArguments.test_sixty_parameters()
  local names, sum = {}, {}
  for k = 1, 60 do names[k], sum[k] = "long long a" .. k, k .. " * a" .. k end
  local kernel = mr.kernel(("extern \"C\" __global__ void many(long long *out, %s, int *p) { *out = %s + *p; }"):format(
    table.concat(names, ", "), table.concat(sum, " + ")))
  local out, args, expected = mr.zeros(1, {dtype = "i64"}), {}, 5
  for k = 1, 60 do
    args[k] = k * k
    expected = expected + k * k * k
  end
  args[61] = mr.full({ 1 }, 5, {dtype = "i32"})
  kernel[{1, 1}](out, table.unpack(args))
  lu.assertEquals(out:item(), expected)
end

-- ---------------------------------------------------------------- sizes

TestSizes = {}

function TestSizes.test_wrong_grids_and_blocks()
  local x = mr.ones(4)
  local function fails(expected, ...)
    local config = { ... }
    assert_fails(expected, function() scale[config](x, 2, 4) end)
  end
  fails("scale: the grid's x is 0, expected 1 to 2147483647", 0, 4)
  fails("the block's y is 0, expected 1 to 1024", 1, { 4, 0 })
  fails("the grid's y is 65536, expected 1 to 65535", { 1, 65536 }, 4)
  fails("the block's z is 65, expected 1 to 64", 1, { 1, 1, 65 })
  fails("has 2048 threads, at most 1024 are possible", 1, { 32, 64 })
  fails("scale: the grid's x is -1, expected 1 to 2147483647", -1, 4)
  fails("scale: the block's x is 1099511627776, expected 1 to 1024", 1, 1 << 40)
  fails("the grid's x is 4294967295", (1 << 32) - 1, 4)
  fails("option `grid`: 2.5 is no integer", 2.5, 4)
  fails("option `grid`: 0.5", { 1, 0.5 }, 4)
  fails("option `block`: expected a number or a list of one to three, got a string", 1, "4")
  fails("a list of one to three", 1, {})
  fails("a list of one to three", { 1, 1, 1, 1 }, 4)
  fails("option `block`: expected integers, got true", 1, { true })
  fails("a launch needs a grid and a block", 1)
  fails("a launch needs a grid and a block")
  fails("bytes of shared memory a block", 1, 4, 1 << 30)
  fails("option `shared`: -1", 1, 4, -1)
  fails("option `shared`", 1, 4, 1 << 40)
  fails("option `stream`: expected a stream, got a number", 1, 4, 0, 7)
  fails("got a stream, which is the fourth: k[{grid, block, 0, stream}](...)", 1, 4, mr.stream())
  fails("at most 5 values are expected here", 1, 4, 0, nil, false, 5)
end

function TestSizes.test_wrong_ways_to_launch()
  local x = mr.ones(4)
  assert_fails("a launch needs a grid and a block: scale[{grid, block}](...)", function() scale(x, 2, 4) end)
  assert_fails("a launch needs a grid and a block: k[{grid, block}](...)", function() return scale[4] end)
  assert_fails("there is no option `threads` here", function() scale:launch({grid = 1, threads = 4}, x, 2, 4) end)
  assert_fails("did you mean `block`?", function() scale:launch({grid = 1, blok = 4}, x, 2, 4) end)
  assert_fails("a kernel has no `lauch`: did you mean `launch`?", function() scale:lauch({1, 4}, x, 2, 4) end)
end

function TestSizes.test_codes()
  local err = T.raises("invalid-configuration", function() scale[{0, 1}](mr.ones(1), 2, 1) end)
  lu.assertEquals({err.op, err.stream}, {"scale", "default"})
  lu.assertStrContains(err.where, "kernels.lua")
  T.raises("invalid-configuration", function() scale[{1, 1025}](mr.ones(1), 2, 1) end)
end

function TestSizes.test_launch_bounds()
  local kernel = mr.kernel("extern \"C\" __global__ void __launch_bounds__(64) few(int *x) { x[threadIdx.x] = 1; }")
  lu.assertEquals(kernel.max_threads, 64)
  assert_fails("has 65 threads, at most 64 are possible (__launch_bounds__)",
    function() kernel[{1, 65}](mr.zeros(65, {dtype = "i32"})) end)
end

-- ---------------------------------------------------------------- modules, variables, templates

TestModules = {}

local function variables()
  return mr.module([[
    __device__ int counter = 5;
    __device__ float table[8];
    __constant__ double weights[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
    __constant__ unsigned short narrow[2] = { 7, 8 };
    static __device__ int own = 3;
    struct Pair { int a; float b; };
    __device__ Pair pairs[2] = { { 1, 2.0f }, { 3, 4.0f } };
    extern "C" __global__ void count(int n) {
      if (threadIdx.x < n) atomicAdd(&counter, 1);
      atomicAdd(&own, 1);
    }
    extern "C" __global__ void fill() { table[threadIdx.x] = threadIdx.x * narrow[1] + pairs[1].b; }
    extern "C" __global__ void weigh(double *out) {
      double sum = 0;
      for (int i = 0; i < 2; i++) for (int j = 0; j < 3; j++) sum += weights[i][j];
      *out = sum;
    }]])
end

function TestModules.test_device_variables()
  local m = variables()
  lu.assertEquals(m:global("counter"):item(), 5)
  lu.assertEquals(m:global("counter").dtype, "i32")
  lu.assertEquals(m:global("counter").ndim, 0)
  m:get("count")[{3, 32}](4)
  lu.assertEquals(m:global("counter"):item(), 17)
  m:global("counter"):fill_(100)
  m:get("count")[{1, 32}](1)
  lu.assertEquals(m:global("counter"):item(), 101)
  m:get("fill")[{1, 8}]()
  lu.assertEquals(m:global("table"):totable(), { 4, 12, 20, 28, 36, 44, 52, 60 })
end

function TestModules.test_constant_variables()
  local m, out = variables(), mr.zeros(1, {dtype = "f64"})
  m:get("weigh")[{1, 1}](out)
  lu.assertEquals(out:item(), 21)
  local weights = m:global("weights")
  lu.assertEquals(weights.dtype, "f64")
  lu.assertEquals(weights:totable(), { 1, 2, 3, 4, 5, 6 })
  weights:copy_(mr.tensor({ 1, 1, 1, 1, 1, 10 }, {dtype = "f64"}))
  m:get("weigh")[{1, 1}](out)
  lu.assertEquals(out:item(), 15)
end

function TestModules.test_variables_of_other_types()
  local m = variables()
  lu.assertEquals(m:global("narrow"):totable(), { 7, 0, 8, 0 }) -- bytes
  m:get("count")[{1, 2}](0)
  lu.assertEquals(m:global("own"):item(), 5)
  lu.assertEquals(m:global("pairs").dtype, "u8")
  lu.assertEquals(m:global("pairs", "i32")[3]:item(), 3)
  lu.assertEquals(m:global("pairs", "f32")[4]:item(), 4)
  assert_fails("there is no dtype \"f33\"", function() m:global("pairs", "f33") end)
  assert_fails("narrow has 4 bytes, which is no whole number of f64 elements", function() m:global("narrow", "f64") end)
end

function TestModules.test_wrong_variables()
  local m = variables()
  assert_fails("the module has no variable `conter`: did you mean `counter`?", function() m:global("conter") end)
  assert_fails("the module has no __device__ or __constant__ variable `xyz`", function() m:global("xyz") end)
  assert_fails("expected a name (a string), got nothing", function() m:global() end)
end

function TestModules.test_a_variable_cannot_be_freed()
  local m = variables()
  assert_fails("free: `counter` is a variable of a module, which owns its memory",
    function() m:global("counter"):free() end)
  assert_fails("is a variable of a module", function() m:global("counter"):free{sync = true} end)
  do local counter <close> = m:global("counter"); lu.assertEquals(counter:item(), 5) end
  m:get("count")[{1, 1}](1)
  lu.assertEquals(m:global("counter"):item(), 6)
end

function TestModules.test_each_module_has_its_own_variables()
  local a, b = variables(), variables()
  a:get("count")[{1, 1}](1)
  lu.assertEquals(a:global("counter"):item(), 6)
  lu.assertEquals(b:global("counter"):item(), 5)
end

function TestModules.test_kernels_and_variables_outlive_the_module()
  local m = variables()
  local count, counter = m:get("count"), m:global("counter")
  m = nil -- luacheck: ignore
  for _ = 1, 3 do collectgarbage() end
  count[{1, 2}](2)
  lu.assertEquals(counter:item(), 7)
  lu.assertEquals(count.module:global("counter"):item(), 7)
  lu.assertTrue(rawequal(count.module, count.module))
end

function TestModules.test_writes_to_variables_are_seen_by_the_checker()
  local m, s = variables(), mr.stream{name = "s"}
  T.expect_hazard(function()
    m:global("counter"):fill_(1)
    m:get("count")[{1, 1, 0, s}](1)
    mr.synchronize()
  end)
  T.expect_clean(function()
    m:global("counter"):fill_(1)
    s:wait_stream(mr.default_stream())
    m:get("count")[{1, 1, 0, s}](1)
    s:synchronize()
  end)
end

local TEMPLATES = [[
namespace math {
  template <typename T, int N> __global__ void add(T *x, T value) { if (threadIdx.x < N) x[threadIdx.x] += value; }
}
template <int BLOCK> __global__ void block_sum(float *out, const float *in, int n) {
  __shared__ float values[BLOCK];
  int i = blockIdx.x * BLOCK + threadIdx.x;
  values[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, values[0]);
}
__global__ void plain(int *x, int n = 3) { x[threadIdx.x] = n; }]]

function TestModules.test_block_sum_with_templates_and_shared_memory()
  for _, block in ipairs{ 32, 64, 256, 1024 } do
    local kernel = mr.kernel(TEMPLATES, ("block_sum<%d>"):format(block))
    local total = mr.zeros(1)
    kernel[{(10000 + block - 1) // block, block}](total, mr.ones(10000), 10000)
    lu.assertEquals(total:item(), 10000)
    lu.assertEquals(kernel.shared_bytes, 4 * block)
  end
end

function TestModules.test_names_of_the_source()
  local m = mr.module(TEMPLATES, {names = { "math::add<float, 4>", "math::add<int, 2>", "block_sum<64>" }})
  local names = m.kernels
  table.sort(names)
  lu.assertEquals(names, { "block_sum<64>", "math::add<float, 4>", "math::add<int, 2>", "plain" })
  local x, k = mr.ones(6), mr.ones(6, {dtype = "i32"})
  m:get("math::add<float, 4>")[{1, 32}](x, 0.5)
  m:get("math::add<int, 2>")[{1, 32}](k, 2)
  lu.assertEquals(x:totable(), { 1.5, 1.5, 1.5, 1.5, 1, 1 })
  lu.assertEquals(k:totable(), { 3, 3, 1, 1, 1, 1 })
  m:get("plain")[{1, 6}](k, 9)
  lu.assertEquals(k:sum():item(), 54)
  lu.assertEquals(m:get("plain").name, "plain")
  lu.assertEquals(m:get(m:get("plain").symbol).symbol, m:get("plain").symbol)
  lu.assertEquals(tostring(m), "module with 4 kernels")
  lu.assertEquals(tostring(m:get("plain")), "kernel plain(int* x, int n)")
end

function TestModules.test_wrong_names_of_kernels()
  local m = mr.module(TEMPLATES)
  assert_fails("there is no kernel `plane`: did you mean `plain`?", function() m:get("plane") end)
  assert_fails("there is no kernel `something`: the module has plain", function() m:get("something") end)
  assert_fails("plan", function() mr.kernel(TEMPLATES, "plan") end)
  assert_fails("block_sun", function() mr.kernel(TEMPLATES, "block_sun<4>") end)
  assert_fails("the source has 3 kernels (count, fill, weigh): say which one",
    mr.kernel, "__global__ void count() {} __global__ void fill() {} __global__ void weigh() {}")
end

function TestModules.test_what_can_be_asked_of_a_kernel()
  local params = scale.params
  lu.assertEquals(#params, 3)
  lu.assertEquals(params[1], { name = "x", type = "float*", kind = "pointer", bytes = 8 })
  lu.assertEquals(params[2], { name = "factor", type = "float", kind = "number", bytes = 4 })
  lu.assertEquals(params[3], { name = "n", type = "int", kind = "integer", bytes = 4 })
  lu.assertEquals(scale.name, "scale")
  lu.assertEquals(scale.symbol, "scale")
  lu.assertEquals(scale.max_threads, 1024)
  lu.assertEquals(scale.shared_bytes, 0)
  lu.assertEquals(scale.local_bytes, 0)
  lu.assertTrue(scale.num_regs > 0 and scale.num_regs < 64)
end

function TestModules.test_options()
  local source = "extern \"C\" __global__ void f(int *x) { *x = N; }"
  local x = mr.zeros(1, {dtype = "i32"})
  mr.kernel(source, {name = "f", options = "-DN=4"})[{1, 1}](x)
  lu.assertEquals(x:item(), 4)
  mr.module(source, {options = { "-D", "N=5" }}):get("f")[{1, 1}](x)
  lu.assertEquals(x:item(), 5)
  assert_fails("option `options`: expected a string or a list of strings, got a number",
    function() mr.kernel(source, {options = 3}) end)
  assert_fails("option `options`: expected strings, got a number", function() mr.kernel(source, {options = { 3 }}) end)
  assert_fails("there is no option `nam` here", function() mr.kernel(source, {nam = "f"}) end)
  assert_fails("kernel: too many arguments", function() mr.kernel(source, "f", {options = "-DN=4"}) end)
  local many = {}
  for k = 1, 65 do many[k] = "-DX" .. k end
  assert_fails("more than 64 strings", function() mr.kernel(source, {options = many}) end)
end

-- ---------------------------------------------------------------- sources

TestSources = {}

function TestSources.test_ptx()
  local ptx = mr.module("extern \"C\" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }").ptx
  local x = mr.ones(3)
  mr.kernel({ptx = ptx}, "twice")[{1, 3}](x)
  mr.kernel({ptx = ptx})[{1, 3}](x)
  lu.assertEquals(x:totable(), { 4, 4, 4 })
  assert_fails("the text is PTX: write {ptx=text}", function() mr.kernel(ptx) end)
  -- Nothing is known of the types behind pointers, and all kinds of tensors are taken.
  mr.kernel({ptx = ptx})[{1, 3}](mr.ones(3, {dtype = "f64"}))
end

function TestSources.test_files()
  command.with_file("extern \"C\" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }", function(path)
    local x = mr.ones(3)
    mr.kernel({path = path}, "twice")[{1, 3}](x)
    lu.assertEquals(x:totable(), { 2, 2, 2 })
    local ptx = path .. ".ptx"
    command.write(ptx, mr.module({path = path}).ptx)
    mr.kernel({path = ptx})[{1, 3}](x)
    os.remove(ptx)
    lu.assertEquals(x:totable(), { 4, 4, 4 })
  end)
  assert_fails("cannot open /no/such/file.cu: No such file or directory",
    function() mr.kernel{path = "/no/such/file.cu"} end)
  assert_fails("cannot read /tmp: Is a directory", function() mr.kernel{path = "/tmp"} end)
  assert_fails("is larger than 64 MiB", function() mr.kernel{path = "/dev/zero"} end)
  assert_fails("\"saxpy.cu\" is the name of a file: write {path=\"saxpy.cu\"}", function() mr.kernel("saxpy.cu") end)
end

function TestSources.test_errors_of_the_compiler_have_the_lines_of_this_file()
  local begins = line() + 1
  local message = failure(function() mr.kernel([[
    extern "C" __global__ void f(float *x) {
      x[0] = undefined_name;
    }]], "f") end)
  lu.assertStrContains(message, ("kernels.lua:%d:"):format(begins + 2))
  lu.assertStrContains(message, "undefined_name")
  message = failure(mr.kernel, "extern \"C\" __global__ void f( { }")
  lu.assertStrContains(message, "error")
  command.with_file("\n\n__global__ void f() { x = 1; }\n", function(path)
    lu.assertStrContains(failure(mr.kernel, {path = path}), path .. ":3:")
  end)
end

-- Where the text stands is found by the text itself: the line of the call says nothing about it.
function TestSources.test_lines_of_a_text_that_stands_elsewhere()
  local begins = line() + 1
  local source = [[
    extern "C" __global__ void elsewhere(float *x) {
      x[0] = undefined_name;
    }]]
  lu.assertStrContains(failure(mr.kernel, source), ("kernels.lua:%d:"):format(begins + 2))
  for _, ends in ipairs{ "\n", "\r\n" } do
    local wrong = ends == "\n" and "one" or "other"
    local text = ("\nreturn [[\n__global__ void f() {\n  " .. wrong .. " = 1; }]]"):gsub("\n", ends)
    command.with_file(text, function(path)
      lu.assertStrContains(failure(mr.kernel, dofile(path)), path .. ":4:")
    end)
  end
end

-- A text that is built, or that a script has read, stands nowhere: its lines are its own.
function TestSources.test_lines_of_a_text_that_stands_nowhere()
  local built = table.concat({ "extern \"C\" __global__ void f(float *x, int i) {", "", "  x[i] = %s;", "}" }, "\n")
  local begins = "the kernel source has errors:\n<kernel text>:3:"
  lu.assertStrContains(failure(mr.kernel, built:format("undefined_name")), begins)
  command.with_file("\n\n__global__ void f() { x = 1; }\n", function(path)
    local file <close> = assert(io.open(path))
    lu.assertStrContains(failure(mr.kernel, file:read("a")), begins)
  end)
  local twice = { [[
    __global__ void twice() { y = 1; }]], [[
    __global__ void twice() { y = 1; }]] }
  lu.assertStrContains(failure(mr.kernel, twice[1]), "<kernel text>:1:")
  local k = mr.kernel(built:format("1.0f"))
  if mr.backend ~= "virtual" then return end
  k[{ 1, 1 }](mr.zeros(4), 4)
  lu.assertErrorMsgContains("kernel `f` at <kernel text>:3: thread", mr.synchronize)
  mr.reset()
end

-- Such a text includes files that lie beside the script, as one in the script does.
function TestSources.test_a_text_that_stands_nowhere_includes_files()
  command.with_file("__device__ int seven() { return 7; }\n", function(header)
    local folder, name = header:match("^(.*)/([^/]*)$")
    local script = header .. ".lua"
    local file = assert(io.open(script, "w"))
    file:write(([==[
      local mr = require "millrace"
      local text = table.concat({ '#include "%s"', "__global__ void f(int *x) { *x = seven(); }" }, "\n")
      local x = mr.zeros(1, { dtype = "i32" })
      mr.kernel(text)[{ 1, 1 }](x)
      print(x[1]:item())]==]):format(name))
    file:close()
    local result = command.run{ "--device", "virtual", script }
    os.remove(script)
    lu.assertEquals({ result.out, result.status }, { "7\n", 0 }, folder)
  end)
end

function TestSources.test_texts_that_are_no_source()
  assert_fails("the module has no kernel: mark functions with __global__", mr.kernel, "")
  assert_fails("the module has no kernel", mr.kernel, "__device__ int x;")
  assert_fails("expected CUDA C source, {ptx=text} or {path=file}, got a number", mr.kernel, 3)
  assert_fails("expected CUDA C source", mr.kernel, {})
  assert_fails("expected CUDA C source", mr.kernel, {ptx = "a", path = "b"})
  assert_fails("option `ptx`: expected a string, got a number", mr.kernel, {ptx = 3})
  lu.assertFalse((pcall(mr.kernel, "int x\0y;")))
  lu.assertFalse((pcall(mr.kernel, ("("):rep(100000))))
  lu.assertFalse((pcall(mr.kernel, string.char(255, 254, 1, 2, 3))))
end

function TestSources.test_ptx_that_is_wrong()
  local ptx = mr.module("extern \"C\" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }").ptx
  assert_fails("the text, line 1 of the PTX: expected `.version`", mr.kernel, {ptx = "hello"})
  lu.assertFalse((pcall(mr.kernel, {ptx = ""})))
  for cut = 1, #ptx - 1, 97 do -- truncated: an error, or what is left is a module
    local ok, err = pcall(mr.module, {ptx = ptx:sub(1, cut)})
    if not ok then lu.assertTrue(#tostring(err) > 10) end
  end
  local newer = ptx:gsub("%.target sm_%d+%a?", ".target sm_999")
  lu.assertFalse((pcall(mr.kernel, {ptx = newer})))
  lu.assertFalse((pcall(mr.kernel, {ptx = (ptx:gsub("%.address_size 64", ".address_size 32"))})))
  if mr.machine then
    assert_fails("sm_999", mr.kernel, {ptx = newer})
    assert_fails("mul", mr.kernel, {ptx = (ptx:gsub("%f[%w](%a+)%.f32", "mulx.f32", 1))})
  end
end

-- ---------------------------------------------------------------- what a kernel reads and writes

TestAccess = {}

function TestAccess.test_what_the_code_tells()
  lu.assertEquals(scale:access(), { x = "rw" })
  local k = mr.kernel([[
    extern "C" __global__ void f(float *out, const float *in, int *counts, float *unused) {
      out[threadIdx.x] = in[threadIdx.x];
      atomicAdd(counts, 1);
    }]])
  local access, unknown = k:access()
  lu.assertEquals(access, { out = "w", ["in"] = "r", counts = "rw", unused = "none" })
  lu.assertEquals(unknown, {})
end

function TestAccess.test_what_the_code_does_not_tell()
  local module = mr.module [[
    extern "C" __global__ void none(int n) {}
    extern "C" __global__ void follows(float **table, float *x) { table[0][1] = x[0]; }
    __device__ float kept[4];
    extern "C" __global__ void global() { kept[threadIdx.x] = 1; }
  ]]
  local function answer(name) return { module:get(name):access() } end
  lu.assertEquals(answer "none", { {}, {} })
  lu.assertEquals(answer "global", { {}, {} })
  lu.assertEquals(answer "follows", { { table = "r", x = "r" },
    { "it also uses pointers that lie in memory, or that are made from numbers: any memory may be read and written" } })
end

function TestAccess.test_arrays_of_the_module()
  local module = mr.module [[
    __device__ float shared_by_all[16];
    extern "C" __global__ void put(float v) { shared_by_all[threadIdx.x] = v; }
    extern "C" __global__ void take(float *y) { y[threadIdx.x] = shared_by_all[threadIdx.x]; }
    extern "C" __global__ void more(float v) { shared_by_all[threadIdx.x] += v; }
    __device__ float *pointer;
    extern "C" __global__ void keep() { pointer = shared_by_all; }
    extern "C" __global__ void follow(float v) { pointer = shared_by_all; __threadfence(); pointer[threadIdx.x] = v; }
  ]]
  local a, b, y, z = mr.stream(), mr.stream(), mr.zeros(4), mr.zeros(4)
  local function kinds(first, first_argument, second, second_argument)
    mr.synchronize()
    local found = {}
    for i, report in ipairs(mr.hazard.check(function()
      module:get(first)[{1, 4, 0, a}](first_argument)
      module:get(second)[{1, 4, 0, b}](second_argument)
      mr.synchronize()
    end)) do
      found[i] = report.tensor == "shared_by_all" and report.kind or nil
    end
    return table.concat(found, " ")
  end
  lu.assertEquals(kinds("put", 1, "put", 2), "write-after-write")
  lu.assertEquals(kinds("put", 1, "take", y), "read-after-write")
  lu.assertEquals(kinds("take", y, "put", 2), "write-after-read")
  lu.assertEquals(kinds("take", y, "take", z), "")
  lu.assertEquals(kinds("more", 1, "put", 2), "write-after-write")
  lu.assertEquals(kinds("put", 1, "more", 2), "read-after-write")
  lu.assertEquals(kinds("take", y, "follow", 2), "write-after-read")
end

function TestAccess.test_two_halves_by_views_are_no_hazard()
  local x = mr.ones(2000, {name = "x"})
  local a, b = mr.stream(), mr.stream()
  mr.synchronize()
  T.expect_clean(function()
    scale[{4, 256, 0, a}](x[{{1, 1000}}], 2, 1000)
    scale[{4, 256, 0, b}](x[{{1001, 2000}}], 3, 1000)
    mr.synchronize()
  end)
  lu.assertEquals(x:sum():item(), 5000)
end

function TestAccess.test_two_halves_by_an_offset_are_no_hazard()
  local part = mr.kernel([[
    extern "C" __global__ void part(float *x, float factor, int first, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) x[first + i] *= factor;
    }]])
  local x = mr.ones(2000, {name = "x"})
  local a, b = mr.stream(), mr.stream()
  mr.synchronize()
  T.expect_clean(function()
    part[{4, 256, 0, a}](x, 2, 0, 1000)
    part[{4, 256, 0, b}](x, 3, 1000, 1000)
    mr.synchronize()
  end)
  lu.assertEquals(x:sum():item(), 5000)
  local report = T.expect_hazard(function()
    part[{4, 256, 0, a}](x, 2, 0, 1001) -- one element too many
    part[{4, 256, 0, b}](x, 3, 1000, 1000)
    mr.synchronize()
  end)
  lu.assertEquals(report.tensor, "x")
  lu.assertEquals(report.bytes, { 4000, 4003 })
end

function TestAccess.test_what_the_script_says_instead()
  local source = "extern \"C\" __global__ void f(float *y, const float *x) { y[0] = x[0]; }"
  local k = mr.kernel(source, {access = { y = "rw", x = "r" }})
  lu.assertEquals(k:access(), { y = "rw", x = "r" })
  assert_fails("option `access`: f(float* y, const float* x) has no parameter `z`", mr.kernel, source,
    {access = { z = "r" }})
  assert_fails("x is \"x\", expected \"r\", \"w\" or \"rw\"", mr.kernel, source, {access = { x = "x" }})
  assert_fails("expected names of parameters", mr.kernel, source, {access = { "r" }})
  assert_fails("option `access`: expected a table", mr.kernel, source, {access = 3})
end

-- ---------------------------------------------------------------- the program as a whole

TestProgram = {}

function TestProgram.test_printf()
  local code = [==[
    local mr = require "millrace"
    local k = mr.kernel([[extern "C" __global__ void hello(int *x, float f) {
      if (threadIdx.x == 1) printf("block %d: %s %5.2f %x %lld%%\n", blockIdx.x, "text", f, 255, 1LL << 40);
    }]])
    k[{1, 2}](nil, 1.5)
    mr.synchronize()
    print("done")]==]
  local result = command.run{ "-e", code }
  lu.assertEquals(result.err, "")
  lu.assertEquals(result.out, "block 0: text  1.50 ff 1099511627776%\ndone\n")
end

function TestProgram.test_printf_with_wrong_formats()
  local code = [==[
    local k = mr.kernel([[extern "C" __global__ void wrong(const char *f, long long bad) {
      printf(f, bad);
      printf("%d %d %d\n", 1);
      printf("%s\n", (const char *)bad);
      printf("%n %q %", 5);
      printf("%999999999d|%.999999999f\n", 1, 2.0);
      printf(0);
    }]])
    local format = mr.tensor({ 37, 115, 37, 110, 37, 115, 10, 0 }, {dtype = "u8"})
    for _, bad in ipairs{ 0, 1, -1, 1 << 40 } do
      print(pcall(function() k[{1, 1}](format, bad); mr.synchronize() end))
      mr.reset()
      k = mr.kernel([[extern "C" __global__ void wrong(const char *f, long long bad) { printf(f, bad); }]])
      format = mr.tensor({ 37, 115, 0 }, {dtype = "u8"})
    end]==]
  local result = command.run{ "--device", "virtual", "-e", code }
  lu.assertEquals(result.status, 0, result.err)
end

function TestProgram.test_the_sandbox()
  local code = [==[
    local ok, k = pcall(mr.kernel, [[extern "C" __global__ void f(int *x) { *x = 3; }]])
    if not ok then return print((tostring(k):find("sandbox") or tostring(k):find("NVRTC")) and "no compiler" or k) end
    local x = mr.zeros(1, {dtype = "i32"})
    k[{1, 1}](x)
    print(x:item())]==]
  local result = command.run{ "--sandbox", "--device", "virtual", "-e", code }
  lu.assertStrMatches(result.out, "[3n].*", 1, nil, result.err)
  lu.assertTrue(result.out == "3\n" or result.out == "no compiler\n", result.out .. result.err)
  for _, attempt in ipairs{ "mr.kernel{path='/etc/passwd'}", "mr.kernel('#include \"/etc/passwd\"')",
    "mr.kernel('#include \"passwd\"', {options={'-I/etc'}})" } do
    result = command.run{ "--sandbox", "--device", "virtual", "-e",
      ("print(pcall(function() %s end))"):format(attempt) }
    lu.assertStrMatches(result.out, "false.*", 1, nil, attempt)
    lu.assertNotStrContains(result.out, "root:")
  end
end

-- A library that compiles may have a handler of its own for this signal.
function TestProgram.test_ctrl_c_while_a_compiler_works()
  local code = [==[
    print("ready")
    io.stdout:flush()
    mr.kernel([[
      #define TIMES4(x) x x x x
      #define TIMES64(x) TIMES4(TIMES4(TIMES4(x)))
      __global__ void slow(long long *x) { TIMES64(TIMES64(TIMES64(*x = *x * *x + x[*x & 7];))) }]])
    print("compiled")]==]
  local result = command.run{ "-e", code, interrupts = 1, environment = "export MILLRACE_CACHE=off" }
  lu.assertStrContains(result.err, "interrupted at")
  lu.assertEquals(result.status, 130)
  lu.assertEquals(result.out, "ready\n")
end

function TestProgram.test_check_finds_kernels()
  local code = [==[
    local k = mr.kernel([[extern "C" __global__ void f(int *x) { *x = 3; }]])
    local x, s = mr.zeros(1, {dtype = "i32"}), mr.stream()
    mr.synchronize()
    k[{1, 1, 0, s}](x)
    k[{1, 1}](x)
    mr.synchronize()]==]
  lu.assertEquals(command.run{ "--check", "-e", code }.status, 3)
end

-- The programs of docs/kernels.md print what stands beside them.
function TestProgram.test_the_page_about_kernels()
  local page, count = command.read("docs/kernels.md"), 0
  for program in page:gmatch("```lua\n(.-)```") do
    local expected, printed = {}, {}
    for text in program:gmatch("%-%->%s*([^\n]*)") do expected[#expected + 1] = (text:gsub("%s+", " ")) end
    if #expected > 0 then
      local function note(...)
        local words = {}
        for k, word in ipairs{ ... } do words[k] = tostring(word) end
        printed[#printed + 1] = table.concat(words, " ")
      end
      assert(load(program, "=kernels.md", "t", setmetatable({ print = note }, { __index = _G })))()
      lu.assertEquals(printed, expected)
      count = count + 1
    end
  end
  lu.assertTrue(count >= 2)
end

-- ---------------------------------------------------------------- what the kernel names, and what it does not

TestNamed = {}

local NAMED = [[
#include <cstdio>
__device__ int counter;
__global__ void count() { counter = counter + 1; }
__global__ void half(float *y, int n) { int i = threadIdx.x; if (i < n) y[i] *= 0.5f; }
__global__ void say(int n) { if (threadIdx.x == 0) printf("%d\n", n); }
__global__ void early(int *o, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  o[i] = i;
  __syncthreads();
  o[i] += 1;
}
]]

local function hazards_of(kernel, ...)
  local a, b = mr.stream(), mr.stream()
  local args = table.pack(...)
  return mr.hazard.check(function()
    kernel[{ 1, 32, 0, a }](table.unpack(args[1]))
    kernel[{ 1, 32, 0, b }](table.unpack(args[2]))
    mr.synchronize()
  end)
end

function TestNamed.test_a_variable_of_another_kernel_is_no_hazard()
  local m = mr.module(NAMED)
  local x, y = mr.ones(32), mr.ones(32)
  lu.assertEquals(hazards_of(m:get("half"), { x, 32 }, { y, 32 }), {})
  local own = hazards_of(m:get("count"), {}, {})
  local kinds = {}
  for _, r in ipairs(own) do kinds[#kinds + 1] = r.kind .. " " .. r.tensor end
  table.sort(kinds)
  local expected = { "read-after-write counter" }
  -- Threads of one launch race on it as well, which the virtual GPU sees.
  if mr.backend == "virtual" then table.insert(expected, 1, "race-in-kernel counter") end
  lu.assertEquals(kinds, expected)
end

function TestNamed.test_two_streams_may_print()
  lu.assertEquals(hazards_of(mr.module(NAMED):get("say"), { 1 }, { 1 }), {})
end

function TestNamed.test_threads_that_returned_are_not_waited_for()
  local o = mr.zeros(32, { dtype = "i32" })
  mr.module(NAMED):get("early")[{ 1, 32 }](o, 20)
  local got = o:totable()
  for i = 1, 32 do lu.assertEquals(got[i], i <= 20 and i or 0) end
end

os.exit(lu.LuaUnit.run())
