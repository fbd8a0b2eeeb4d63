-- Launches of kernels under the checker: atomic updates, and accesses that the code does not tell for certain.
local lu = require "luaunit"
local mr = require "millrace"

local kernels = mr.module[=[
extern "C" __global__ void count(int *bins, int n) { if (threadIdx.x < n) atomicAdd(bins + threadIdx.x % 4, 1); }
extern "C" __global__ void store(int *bins, int n) { if (threadIdx.x < n) bins[threadIdx.x] = 7; }
extern "C" __global__ void scatter(int *out, const int *at, int n) { if (threadIdx.x < n) out[at[threadIdx.x]] = 1; }
extern "C" __global__ void reverse(int *x, int first, int end, int n) {
  int i = first + threadIdx.x;
  if (i < end) { int t = x[i]; x[i] = x[n - 1 - i]; x[n - 1 - i] = t; }
}
]=]
local count, store = kernels:get("count"), kernels:get("store")
local scatter, reverse = kernels:get("scatter"), kernels:get("reverse")

local function check(fn)
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local x = mr.zeros(64, {dtype = "i32", name = "x"})
  mr.synchronize()
  local reports = mr.hazard.check(function() fn(a, b, x) end)
  mr.synchronize()
  return reports
end

local function kinds(reports)
  local list = {}
  for i, r in ipairs(reports) do
    list[i] = ("%s %s %s %s"):format(r.kind, r.first.op, r.second.op,
      (r.first.assumed or r.second.assumed) and "assumed" or "certain")
  end
  return list
end

TestAtomics = {}

function TestAtomics.test_two_streams_may_count_in_the_same_bins()
  lu.assertEquals(kinds(check(function(a, b, x)
    for _ = 1, 3 do count[{1, 32, stream = a}](x, 32) count[{1, 32, stream = b}](x, 32) end
  end)), {})
end

function TestAtomics.test_a_plain_access_races_with_an_update()
  lu.assertEquals(kinds(check(function(a, b, x)
    count[{1, 32, stream = a}](x, 32)
    b:run(function() x:sum() end)
  end)), { "read-after-write count sum assumed" })
  lu.assertEquals(kinds(check(function(a, b, x)
    store[{1, 4, stream = a}](x, 4)
    count[{1, 32, stream = b}](x, 32)
  end)), { "read-after-write store count assumed" })
end

-- The update of stream a stands for what came before it only towards plain accesses.
function TestAtomics.test_what_an_update_follows_still_counts()
  local reports = check(function(a, b, x)
    a:run(function() x:fill_(1) end)
    count[{1, 32, stream = a}](x, 32)
    count[{1, 32, stream = b}](x, 32)
  end)
  lu.assertEquals(kinds(reports), { "read-after-write fill_ count assumed" })
  lu.assertTrue(reports[1].second.atomic)
  lu.assertStrContains(reports[1].message, "updates x on stream b")
end

TestAssumed = {}

function TestAssumed.test_an_index_from_memory()
  local at = mr.arange(32, {dtype = "i32"})
  local reports = check(function(a, b, x)
    scatter[{1, 16, stream = a}](x, at, 16)
    scatter[{1, 16, stream = b}](x, at[{{17, 32}}], 16)
  end)
  lu.assertEquals(kinds(reports), { "write-after-write scatter scatter assumed" })
  lu.assertStrContains(reports[1].message, "It is assumed that scatter (")
  lu.assertStrContains(reports[1].message, "accesses these bytes, because the address depends on a value in memory.\n")
  lu.assertStrContains(reports[1].message, " assumed=yes\n")
end

-- A scatter that may have missed the bytes does not hide the write that surely touched them.
function TestAssumed.test_what_is_assumed_hides_nothing_that_is_certain()
  local at = mr.arange(32, {dtype = "i32"})
  local reports = kinds(check(function(a, b, x)
    a:run(function() x:fill_(1) end)
    scatter[{1, 16, stream = a}](x, at, 16)
    b:run(function() x:sum() end)
  end))
  table.sort(reports)
  lu.assertEquals(reports, { "read-after-write fill_ sum certain", "read-after-write scatter sum assumed" })
end

TestExact = {}

function TestExact.test_halves_that_are_reversed_in_place()
  local function swap(a, b, x, second)
    reverse[{1, 16, stream = a}](x, 0, 16, 64)
    reverse[{1, 16, stream = b}](x, second, second + 16, 64)
  end
  lu.assertEquals(kinds(check(function(a, b, x) swap(a, b, x, 16) end)), {})
  lu.assertEquals(#check(function(a, b, x) swap(a, b, x, 15) end), 1)
end

os.exit(lu.LuaUnit.run())
