-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- Which accesses of a kernel count that chooses between pointers, compares them, or computes with
-- them. Each body runs on one stream while another stream writes one of the tensors: a hazard if
-- the kernel accesses it.
local lu = require "luaunit"
local mr = require "millrace"
local unchecked = require "lua.support.unchecked"
mr.machine.settings{kernel_checks = 1} -- the tests are about what the code says, not about what a run touches

TestPointers = {}

local PROLOGUE = [=[
struct pair { float *first, *second; };
__device__ __noinline__ float *pick(float *p, float *q, int which) { return which ? p : q; }
__device__ __forceinline__ float *either(float *p, float *q, int which) { return which > 2 ? p : q; }
extern "C" __global__ void k(float *x, float *y, float *z, const int *c, int n, long m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float *p;
  pair two = {x, y};
]=]

local function kernel_of(body) return mr.kernel(PROLOGUE .. body .. "\n}", "k") end

-- The names of the tensors with which the launch races if another stream writes them.
local function accessed(kernel, n)
  local s, t = mr.stream(), mr.stream()
  local races = {}
  for _, name in ipairs { "x", "y", "z", "c" } do
    local tensors = {}
    for _, each in ipairs { "x", "y", "z" } do tensors[each] = mr.zeros(64) end
    tensors.c = mr.zeros(64, { dtype = "i32" })
    mr.synchronize()
    local reports = mr.hazard.check(function()
      kernel[{ 2, 32, 0, s }](tensors.x, tensors.y, tensors.z, tensors.c, n, n)
      mr.with(t, function() tensors[name]:fill_(0) end)
      mr.synchronize()
    end)
    if #reports > 0 then races[#races + 1] = name end
  end
  return table.concat(races)
end

local bodies = {
  { "a selection of values", "if (i < n) z[i] = c[i] ? x[i] : y[i];", "xyzc" },
  { "a selection of pointers", "p = i < n / 2 ? x : y; p[i] = 1;", "xy" },
  { "a selection by memory", "p = c[0] ? x : y; p[i] = 1;", "xyc" },
  { "two branches", "if (i < n) y[i] = x[i]; else y[i] = z[i];", "xy", 64 },
  { "two branches that are both taken", "if (i < n) y[i] = x[i]; else y[i] = z[i];", "xyz", 32 },
  { "one store behind two branches", "if (c[i]) p = x + i; else p = y + 1; *p = z[i];", "xyzc" },
  { "an argument that may be null", "z[i] = x ? x[i] : 0;", "xz" },
  { "a guard", "if (x == nullptr || i >= n) return; x[i] = 1;", "x" },
  { "two guards", "if (!x) return; if (y != nullptr) y[i] = x[i];", "xy" },
  { "pointers compared", "if (x != y) z[i] = 1; else c ? z[i] = 2 : 0;", "z" },
  { "pointers in an order", "if (x < y) x[i] = 1; else y[i] = 1;", "xy" },
  { "an end", "for (p = x + i; p < x + n; p += 32) *p = 1;", "x" },
  { "an end that is not equal", "for (p = x; p != x + n; p++) y[i] += *p;", "xy" },
  { "an address as a number", "if ((size_t)x > 1000) x[i] = 1;", "x" },
  { "an alignment", "if (((size_t)x & 15) == 0) x[i] = 1; else y[i] = 1;", "xy" },
  { "an address that is rounded", "p = (float *)((size_t)(x + i) & ~(size_t)15); *p = 1;", "x" },
  { "a difference", "ptrdiff_t d = y - x; z[i] = x[i + d];", "xyz" },
  { "a difference as a condition", "if (y - x != 0) z[i] = 1;", "z" },
  { "a function's result", "pick(x, y, c[i])[i] = 1;", "xyc" },
  { "an inline function's result", "either(x, y, i)[i] = 1;", "xy" },
  { "a struct of pointers", "p = c[i] ? two.first : two.second; p[i] = 1;", "xyc" },
  { "an array of pointers", "float *t[3] = {x, y, z}; t[i % 3][i] = 1;", "xyz" },
  { "pointers that change places", "p = x; for (int k = 0; k < n; k++) { p[i] = k; p = p == x ? y : x; }",
    "xy" },
  { "a pointer that a loop advances", "p = x; while (c[i] > 0) { *p = 1; p += 2; }", "xc" },
  { "a null that is replaced", "p = c[i] ? x : nullptr; if (p) p[i] = 1;", "xc" },
  { "nothing but a comparison", "if (x == y) z[i] = 1;", "z" },
}

function TestPointers.test_no_access_is_left_out()
  for _, each in ipairs(bodies) do
    local what, body, expected, n = table.unpack(each)
    local found = accessed(kernel_of(body), n or 32)
    for name in expected:gmatch "." do
      lu.assertStrContains(found, name, false, false, ("%s: `%s` misses %s"):format(what, body, name))
    end
  end
end

-- The pointer of a struct that is passed by value is known by its number, as an argument that is a number is.
function TestPointers.test_pointers_in_data()
  local by_struct = mr.kernel [=[struct view { float *data; long size; };
    extern "C" __global__ void k(view v) { if (threadIdx.x < v.size) v.data[threadIdx.x] = 1; }]=]
  local by_number = mr.kernel [=[extern "C" __global__ void k(long p) { ((float *)p)[threadIdx.x] = 1; }]=]
  local either = mr.kernel [=[extern "C" __global__ void k(float *q, long p, int c) {
    float *to = c > (int)threadIdx.x ? q : (float *)p; to[threadIdx.x] = 1; }]=]
  local x, y = mr.zeros(64), mr.zeros(64)
  local s, t = mr.stream(), mr.stream()
  mr.synchronize()
  local function races(launch, tensor)
    return mr.hazard.check(function()
      launch()
      mr.with(t, function() return tensor:sum() end)
      mr.synchronize()
    end)
  end
  local function pass_struct() by_struct[{ 1, 32, 0, s }](string.pack("<i8i8", x.data_ptr + 64, 32)) end
  local function pass_number() by_number[{ 1, 32, 0, s }](x.data_ptr) end
  for _, launch in ipairs { pass_struct, pass_number } do
    local found = races(launch, x)
    lu.assertEquals(#found, 1)
    local first = launch == pass_struct and 64 or 0
    lu.assertEquals(found[1].bytes, { first, first + 127 })
    lu.assertEquals(#races(launch, y), 0)
  end
  local function pass_both() either[{ 1, 32, 0, s }](y, x.data_ptr, 16) end
  lu.assertEquals(#races(pass_both, x), 1)
  lu.assertEquals(#races(pass_both, y), 1)
end

-- Work of two streams side by side is no hazard where every byte has one owner.
function TestPointers.test_strided_accesses_are_told_apart()
  local kernel = mr.kernel [=[extern "C" __global__ void k(float *x, int first, int step, int width, int pitch) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < width) x[blockIdx.y * pitch + first + i * step] = 1;
  }]=]
  local function races(rows, ...)
    local launches = { ... }
    local x = mr.zeros(1024)
    mr.synchronize()
    return #mr.hazard.check(function()
      for _, numbers in ipairs(launches) do kernel[{ { 2, rows }, 16, 0, mr.stream() }](x, table.unpack(numbers)) end
      mr.synchronize()
    end)
  end
  lu.assertEquals(races(1, { 0, 2, 32, 0 }, { 1, 2, 32, 0 }), 0) -- odd and even
  lu.assertEquals(races(1, { 0, 2, 32, 0 }, { 2, 2, 32, 0 }), 1)
  lu.assertEquals(races(8, { 0, 1, 32, 64 }, { 32, 1, 32, 64 }), 0) -- blocks of columns
  lu.assertEquals(races(8, { 0, 1, 32, 64 }, { 31, 1, 32, 64 }), 1)
  lu.assertEquals(races(8, { 0, 2, 32, 64 }, { 1, 2, 32, 64 }), 0)
  lu.assertEquals(races(1, { 0, 1, 32, 0 }, { 63, -1, 32, 0 }), 0) -- two halves that meet
  lu.assertEquals(races(1, { 0, 1, 32, 0 }, { 62, -1, 32, 0 }), 1)
end

-- A number that is null, or that is no pointer, decides a condition.
function TestPointers.test_a_null_argument_is_a_number()
  local kernel = mr.kernel [=[extern "C" __global__ void k(float *x, float *bias) {
    if (bias) x[threadIdx.x] = bias[threadIdx.x];
  }]=]
  local x = mr.zeros(32)
  local s, t = mr.stream(), mr.stream()
  mr.synchronize()
  local reports = mr.hazard.check(function()
    kernel[{ 1, 32, 0, s }](x, nil)
    mr.with(t, function() x:fill_(0) end)
    mr.synchronize()
  end)
  lu.assertEquals(#reports, 0)
end

function TestPointers.test_what_a_guarded_store_writes_is_initialised()
  for _, guard in ipairs { "x != nullptr", "(size_t)x > 1000", "i < n && x", "x + i < x + n" } do
    local kernel = mr.kernel(([=[extern "C" __global__ void k(float *x, int n) {
      int i = threadIdx.x; if (%s) x[i] = 1; }]=]):format(guard))
    local x = mr.empty(32)
    local reports = mr.hazard.check(function()
      kernel[{ 1, 32 }](x, 32)
      lu.assertEquals(x:sum():item(), 32.0)
    end)
    lu.assertEquals(#reports, 0, guard)
  end
end

-- The wait is needed; without it the explorer finds both values.
function TestPointers.test_waits_and_explorer_see_a_guarded_store()
  local kernel = mr.kernel [=[extern "C" __global__ void k(float *out, int n) {
    int i = threadIdx.x; if (out == nullptr || i >= n) return; out[i] = 1; }]=]
  local function program(waits)
    local a, b = mr.stream(), mr.stream()
    local x = mr.zeros(32)
    mr.synchronize()
    kernel[{ 1, 32, 0, a }](x, 32)
    if waits then b:wait_stream(a) end
    local sum = mr.with(b, function() return x:sum() end)
    b:synchronize()
    return sum:item()
  end
  lu.assertEquals(#mr.explore(function() return program(false) end).outcomes, 2)
  lu.assertEquals(#mr.explore(function() return program(true) end).outcomes, 1)
  local waits = mr.waits(function() return program(true) end).waits
  for _, wait in ipairs(waits) do lu.assertEquals(wait.verdict, "needed") end
end

-- A launch runs in one order of its threads: the headline does not claim more.
function TestPointers.test_a_race_inside_a_launch_bounds_the_claim()
  local add = mr.kernel[[__global__ void inc(int *c) { c[0] = c[0] + 1; }]]
  local atomic = mr.kernel[[__global__ void inc(int *c) { atomicAdd(c, 1); }]]
  mr.machine.settings{kernel_checks = 2}
  local function headline(k)
    local c = mr.zeros(1, {dtype = "i32"})
    mr.synchronize()
    local result = mr.explore(function()
      c:zero_()
      k[{4, 32}](c)
      return c:item()
    end)
    return tostring(result):match("^[^\n]*")
  end
  local of_add, of_atomic = headline(add), headline(atomic)
  mr.machine.settings{kernel_checks = 1}
  lu.assertEquals(of_add, "1 schedule, 1 outcome: deterministic but for races inside launches")
  lu.assertEquals(of_atomic, "1 schedule, 1 outcome: deterministic")
end

unchecked(TestPointers, "schedules are explored", "test_waits_and_explorer_see_a_guarded_store",
  "test_a_race_inside_a_launch_bounds_the_claim")

os.exit(lu.LuaUnit.run())
