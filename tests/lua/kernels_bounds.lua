-- virtual only: a GPU does not notice an access that lands in another tensor
-- Accesses that leave their tensor: a kernel may access the allocation of a pointer that it computed the address from,
-- and no other one. With the setting packed_memory tensors are neighbours, as in CUDA's pool, and it may hit them.
local lu = require "luaunit"
local mr = require "millrace"
local T = require "millrace.testing"

TestBounds = {}

function TestBounds.tearDown()
  mr.reset()
  collectgarbage()
  mr.machine.settings{ packed_memory = false }
end

-- What synchronising raises, and that its text has all of these.
local function assert_outside(fn, ...)
  local err = T.raises("illegal-address", function()
    fn()
    mr.synchronize()
  end)
  for _, text in ipairs{ ... } do lu.assertStrContains(tostring(err), text) end
end

local FILL = [[extern "C" __global__ void fill(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) x[i] = 7;
}]]

-- The size is a multiple of the pool's granule, so that nothing but the gap lies behind it.
function TestBounds.test_one_element_past_the_end()
  local k = mr.kernel(FILL)
  local a, b = mr.zeros(1024, {name = "a"}), mr.zeros(1024, {name = "b"})
  assert_outside(function() k[{5, 256}](a, 1024) end, "thread (0,0,0) of block (4,0,0)", "just past the end of a")
  lu.assertNotNil(b)
end

function TestBounds.test_other_threads_of_the_warp_are_counted()
  local k = mr.kernel(FILL)
  assert_outside(function() k[{1, 128}](mr.zeros(100, {name = "a"}), 126) end, "thread (100,0,0)",
    "just past the end of a", ", as do 26 more threads of its warp")
end

-- Elements that are taken for larger ones end in the gap, whatever lies behind it.
function TestBounds.test_elements_of_another_size()
  local k = mr.kernel[[extern "C" __global__ void widen(void *p, int n) {
    ((double *)p)[n - 1] = 1;
  }]]
  local bytes, behind = mr.zeros(4096, {dtype = "u8", name = "bytes"}), mr.zeros(4096, {dtype = "u8", name = "behind"})
  assert_outside(function() k[{1, 1}](bytes, 4096) end, "28664 bytes past the end of bytes")
  lu.assertNotNil(behind)
end

-- An address in another tensor, which is computed from the first one.
local JUMP = [[extern "C" __global__ void jump(float *a, float *b, long long by) {
  a[threadIdx.x + by] = 7;
  b[threadIdx.x] = 1;
}]]

function TestBounds.test_a_jump_into_another_tensor()
  local k = mr.kernel(JUMP)
  local a, b = mr.zeros(64, {name = "a"}), mr.zeros(64, {name = "b"})
  local by = (b.data_ptr - a.data_ptr) // 4
  assert_outside(function() k[{1, 32}](a, b, by + 3) end, "bytes past the end of a", "where element [4] of b")
  mr.reset()
  k, a, b = mr.kernel(JUMP), mr.zeros(64, {name = "a"}), mr.zeros(64, {name = "b"})
  assert_outside(function() k[{1, 32}](b, a, -by) end, "bytes before b", "where element [1] of a")
end

function TestBounds.test_an_index_that_overflows()
  local k = mr.kernel[[extern "C" __global__ void f(float *a, unsigned n) { a[(int)(n * n)] = 1; }]]
  assert_outside(function() k[{1, 1}](mr.zeros(64, {name = "a"}), 46341) end, "8589916060 bytes before a")
end

-- One of several pointers: any of them will do, and no other.
local CHOOSE = [[extern "C" __global__ void choose(float *a, float *b, float *c, int which, long long by) {
  float *p = which ? a : b;
  p[threadIdx.x + by] = 7;
  c[threadIdx.x] = 1;
}]]

function TestBounds.test_a_pointer_that_is_chosen()
  local k = mr.kernel(CHOOSE)
  local a, b, c = mr.zeros(64, {name = "a"}), mr.zeros(64, {name = "b"}), mr.zeros(64, {name = "c"})
  k[{1, 32}](a, b, c, 1, 0)
  k[{1, 32}](a, b, c, 0, 0)
  lu.assertEquals({ a[1]:item(), b[1]:item(), c[1]:item() }, { 7, 7, 1 })
  assert_outside(function() k[{1, 32}](a, b, c, 1, (c.data_ptr - a.data_ptr) // 4) end, "where element [1] of c")
end

-- Addresses that come from elsewhere are as good as any.
function TestBounds.test_pointers_in_memory_numbers_and_structs()
  local k = mr.kernel([=[
    struct pair { float *p; long n; };
    extern "C" __global__ void f(float **table, struct pair s, unsigned long long number, float *x, float *y) {
      table[0][threadIdx.x] = 1;
      s.p[threadIdx.x] = 2;
      ((float *)number)[threadIdx.x] = 3;
      x[threadIdx.x + (y - x)] = 4;
      __shared__ float *kept[2];
      if (threadIdx.x < 2) kept[threadIdx.x] = threadIdx.x ? x : y;
      __syncthreads();
      kept[0][threadIdx.x + 32] = 5;
    }]=])
  local t = {}
  for i = 1, 5 do t[i] = mr.zeros(64) end
  local table_ = mr.tensor({ t[1].data_ptr }, {dtype = "i64"})
  k[{1, 32}](table_, string.pack("<i8i8", t[2].data_ptr, 32), t[3].data_ptr, t[4], t[5])
  mr.synchronize()
  lu.assertEquals({ t[1][1]:item(), t[2][1]:item(), t[3][1]:item(), t[4][1]:item(), t[5][1]:item(), t[5][33]:item() },
    { 1, 2, 3, 0, 4, 5 })
end

-- Functions that are not copied into the kernel, and variables of the module.
function TestBounds.test_functions_and_variables()
  local k = mr.kernel([=[
    __device__ float kept[64];
    __device__ __noinline__ void put(float *p, int depth) { if (depth) put(p, depth - 1); else p[threadIdx.x] = 5; }
    typedef void (*putter)(float *, int);
    extern "C" __global__ void f(float *x, float *y, int depth) {
      put(x, depth);
      put(kept, 1);
      putter p = depth > 100 ? nullptr : put;
      p(y, 1);
      y[threadIdx.x] += kept[threadIdx.x];
    }]=])
  local x, y = mr.zeros(64), mr.zeros(64)
  k[{1, 32}](x, y, 2)
  lu.assertEquals({ x[1]:item(), y[1]:item() }, { 5, 10 })
end

-- CUDA has no views: a pointer into the middle of a tensor reaches all of it, and the checker sees the bytes.
function TestBounds.test_a_view_may_be_left_and_the_tensor_not()
  local k = mr.kernel(FILL)
  local a = mr.zeros(1024, {name = "a"})
  local before = #mr.hazard.reports()
  k[{4, 256}](a[{{1, 512}}], 900)
  lu.assertEquals({ a[901]:item(), a[902]:item() }, { 7, 0 })
  lu.assertEquals(#mr.hazard.reports(), before)
  assert_outside(function() k[{5, 256}](a[{{1, 512}}], 1024) end, "just past the end of a")
end

function TestBounds.test_the_checker_sees_bytes_outside_of_a_view()
  local k, s = mr.kernel(FILL), mr.stream{name = "s"}
  local a = mr.zeros(1024, {name = "a"})
  mr.synchronize()
  local reports = mr.hazard.check(function()
    k[{4, 256, 0, s}](a[{{1, 512}}], 900)
    a[{{800, 850}}]:fill_(1)
  end)
  lu.assertEquals(#reports, 1)
  mr.synchronize()
end

-- ---- packed

local function packed()
  collectgarbage()
  mr.machine.settings{ packed_memory = true }
end

function TestBounds.test_packed_memory_shows_the_neighbour()
  packed()
  local k = mr.kernel(FILL)
  local a, b = mr.zeros(1024, {name = "a"}), mr.zeros(1024, {name = "b"})
  lu.assertEquals(b.data_ptr - a.data_ptr, 4096)
  k[{5, 256}](a, 1024)
  lu.assertEquals({ b[1]:item(), b[2]:item() }, { 7, 0 })
end

function TestBounds.test_the_setting_needs_empty_memory()
  local a = mr.zeros(4)
  local err = T.raises("not-permitted", function() mr.machine.settings{ packed_memory = true } end)
  lu.assertStrContains(tostring(err), "packed_memory")
  lu.assertNotNil(a)
end

-- Gaps take no memory: as much can be allocated with them as without.
function TestBounds.test_gaps_are_no_memory()
  local figures = {}
  for i, is_packed in ipairs{ false, true } do
    collectgarbage()
    mr.machine.settings{ packed_memory = is_packed, memory_bytes = 1 << 20 }
    local a, b = mr.zeros(1 << 17), mr.zeros(1 << 17)
    local err = T.raises("out-of-memory", function() mr.zeros(1) end)
    local stats = mr.memory.stats()
    figures[i] = { stats.live, stats.reserved, tostring(err) }
    a:free()
    b:free()
    mr.reset()
    collectgarbage()
    mr.machine.settings{ memory_bytes = 0 }
  end
  lu.assertEquals(figures[1], figures[2])
end

os.exit(lu.LuaUnit.run())
