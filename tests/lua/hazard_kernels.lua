-- virtual only: only a virtual GPU tells which bytes a launch has touched
-- Launches of kernels under the checker: atomic updates, and accesses that the code does not tell for certain.
local lu = require "luaunit"
local mr = require "millrace"

local kernels = mr.module[=[
extern "C" __global__ void count(int *bins, int n) { if (threadIdx.x < n) atomicAdd(bins + threadIdx.x % 4, 1); }
extern "C" __global__ void store(int *bins, int n) { if (threadIdx.x < n) bins[threadIdx.x] = 7; }
extern "C" __global__ void scatter(int *out, const int *at, int n) { if (threadIdx.x < n) out[at[threadIdx.x]] = 1; }
extern "C" __global__ void tally(int *out, const int *at, int n) {
  if (threadIdx.x < n) atomicAdd(out + at[threadIdx.x], 1);
}
extern "C" __global__ void reverse(int *x, int first, int end, int n) {
  int i = first + threadIdx.x;
  if (i < end) { int t = x[i]; x[i] = x[n - 1 - i]; x[n - 1 - i] = t; }
}
]=]
local count, store = kernels:get("count"), kernels:get("store")
local scatter, reverse, tally = kernels:get("scatter"), kernels:get("reverse"), kernels:get("tally")

local function check(fn)
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local x = mr.zeros(64, {dtype = "i32", name = "x"})
  mr.synchronize()
  local reports, totals = mr.hazard.check(function() fn(a, b, x) end)
  mr.synchronize()
  return reports, totals
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
  end)), { "read-after-write count sum certain" })
  lu.assertEquals(kinds(check(function(a, b, x)
    store[{1, 4, stream = a}](x, 4)
    count[{1, 32, stream = b}](x, 32)
  end)), { "read-after-write store count certain" })
end

-- The update of stream a stands for what came before it only towards plain accesses.
function TestAtomics.test_what_an_update_follows_still_counts()
  local reports = check(function(a, b, x)
    a:run(function() x:fill_(1) end)
    count[{1, 32, stream = a}](x, 32)
    count[{1, 32, stream = b}](x, 32)
  end)
  lu.assertEquals(kinds(reports), { "read-after-write fill_ count certain" })
  lu.assertTrue(reports[1].second.atomic)
  lu.assertStrContains(reports[1].message, "updates x on stream b")
end

local updates = mr.module[=[
extern "C" __global__ void add(int *x, int n) { atomicAdd(x, n); }
extern "C" __global__ void most(int *x, int n) { atomicMax(x, n); }
extern "C" __global__ void most_unsigned(unsigned *x, unsigned n) { atomicMax(x, n); }
extern "C" __global__ void up_down(int *x, int n) { atomicAdd(x, n); atomicMax(x, 0); atomicAdd(x, -n); }
extern "C" __global__ void draw(int *x, int n) { x[1] = atomicAdd(x, n); }
extern "C" __global__ void add_float(int *x, int n) { atomicAdd((float *)x, (float)n); }
]=]

-- Those of one kind may come in any order, and so the verdict needs no condition.
function TestAtomics.test_updates_that_commute()
  local function counted(on_a, on_b)
    local _, totals = check(function(a, b, x)
      for _, name in ipairs(on_a) do updates:get(name)[{1, 1, stream = a}](x, 3) end
      for _, name in ipairs(on_b) do updates:get(name)[{1, 1, stream = b}](x, 3) end
    end)
    return totals.unordered_updates
  end
  lu.assertEquals(counted({ "add" }, { "add" }), 0)
  lu.assertEquals(counted({ "most", "most" }, { "most" }), 0)
  lu.assertEquals(counted({ "add" }, { "most" }), 1)
  lu.assertEquals(counted({ "most" }, { "most_unsigned" }), 1)
  lu.assertEquals(counted({ "up_down" }, { "up_down" }), 1)
  lu.assertEquals(counted({ "add_float" }, { "add_float" }), 1)
  lu.assertEquals(counted({ "add", "most" }, { "most" }), 1) -- the last launch of `a` stands for both
  lu.assertEquals(counted({ "most", "add" }, { "add" }), 1)
end

TestAssumed = {}

function TestAssumed.test_an_index_from_memory()
  local at = mr.arange(32, {dtype = "i32"})
  mr.machine.settings{kernel_checks = 0}
  local reports = check(function(a, b, x)
    scatter[{1, 16, stream = a}](x, at, 16)
    scatter[{1, 16, stream = b}](x, at[{{17, 32}}], 16)
  end)
  mr.machine.settings{kernel_checks = 2}
  lu.assertEquals(kinds(reports), { "write-after-write scatter scatter assumed" })
  lu.assertStrContains(reports[1].message, "It is assumed that scatter (")
  lu.assertStrContains(reports[1].message, "accesses these bytes, because the address depends on a value in memory.\n")
  lu.assertStrContains(reports[1].message, " assumed=yes\n")
end

-- A scatter that may have missed the bytes does not hide the write that surely touched them.
function TestAssumed.test_what_is_assumed_hides_nothing_that_is_certain()
  local at = mr.arange(32, {dtype = "i32"})
  mr.machine.settings{kernel_checks = 0}
  local reports = kinds(check(function(a, b, x)
    a:run(function() x:fill_(1) end)
    scatter[{1, 16, stream = a}](x, at, 16)
    b:run(function() x:sum() end)
  end))
  mr.machine.settings{kernel_checks = 2}
  table.sort(reports)
  lu.assertEquals(reports, { "read-after-write fill_ sum certain", "read-after-write scatter sum assumed" })
end

-- The bytes that launches touched decide once they have run.
TestWithdrawn = {}

-- The verdict has the condition if nothing else was found.
local function withdrawn(fn)
  local reports, totals = check(fn)
  if #reports == 0 then
    lu.assertTrue(totals.withdrawn > 0)
    lu.assertEquals(totals.claim, "conditional")
  end
  return kinds(reports)
end

local function indices(first)
  return mr.arange(16, {dtype = "i32"}):add_(first)
end

function TestWithdrawn.test_disjoint_scatters()
  local low, high = indices(0), indices(16)
  lu.assertEquals(withdrawn(function(a, b, x)
    scatter[{1, 16, stream = a}](x, low, 16)
    scatter[{1, 16, stream = b}](x, high, 16)
  end), {})
end

function TestWithdrawn.test_scatters_that_meet_in_one_element_are_certain()
  local low, high = indices(0), indices(15)
  lu.assertEquals(withdrawn(function(a, b, x)
    scatter[{1, 16, stream = a}](x, low, 16)
    scatter[{1, 16, stream = b}](x, high, 16)
  end), { "write-after-write scatter scatter certain" })
end

function TestWithdrawn.test_an_ordinary_operation()
  local high = indices(16)
  for _, order in ipairs{ "scatter first", "sum first" } do
    local function pair(rows)
      return withdrawn(function(a, b, x)
        local function add() b:run(function() x[{rows}]:add_(1) end) end
        if order == "sum first" then add() end
        scatter[{1, 16, stream = a}](x, high, 16)
        if order ~= "sum first" then add() end
      end)
    end
    lu.assertEquals(pair{1, 16}, {}, order)
    lu.assertEquals(pair{33, 64}, {}, order)
    local found = pair{1, 17}
    lu.assertEquals(#found, 1, order)
    lu.assertStrContains(found[1], " certain", false, order)
  end
end

function TestWithdrawn.test_of_merged_pairs_one_that_meets_is_enough()
  local low, at = indices(0), { indices(16), indices(32), indices(15) }
  local function run(rounds)
    return withdrawn(function(a, b, x)
      scatter[{1, 16, stream = a}](x, low, 16)
      for i = 1, rounds do
        b:synchronize()
        scatter[{1, 16, stream = b}](x, at[i], 16)
      end
    end)
  end
  lu.assertEquals(run(2), {})
  lu.assertEquals(run(3), { "write-after-write scatter scatter certain" })
end

-- An entry stands for two launches of a stream; the first one touches the same bytes.
function TestWithdrawn.test_what_stands_for_several_launches_stays_assumed()
  local low, high = indices(0), indices(16)
  lu.assertEquals(withdrawn(function(a, b, x)
    scatter[{1, 16, stream = a}](x, low, 16)
    scatter[{1, 16, stream = a}](x, high, 16)
    scatter[{1, 16, stream = b}](x, low, 16)
  end), { "write-after-write scatter scatter assumed" })
  lu.assertEquals(withdrawn(function(a, b, x)
    scatter[{1, 16, stream = a}](x, low, 16)
    a:synchronize()
    scatter[{1, 16, stream = a}](x, high, 16)
    scatter[{1, 16, stream = b}](x, low, 16)
  end), {})
end

-- A pair that is withdrawn has hidden nothing: what its fix would order, or a missing order after an allocation.
function TestWithdrawn.test_what_is_withdrawn_hides_nothing()
  local low, high = indices(0), indices(16)
  lu.assertEquals(withdrawn(function(a, b, x)
    local y = a:run(function() return mr.empty(4) end)
    a:synchronize()
    a:run(function() y:fill_(1) end)
    scatter[{1, 16, stream = a}](x, low, 16)
    scatter[{1, 16, stream = b}](x, high, 16)
    b:run(function() y:sum() end)
    b:wait_stream(a)
    y:record_stream(b)
  end), { "read-after-write fill_ sum certain" })
  local found = withdrawn(function(a, b)
    local y = a:run(function() return mr.empty(64, {dtype = "i32"}) end)
    scatter[{1, 16, stream = a}](y, low, 16)
    scatter[{1, 16, stream = b}](y, high, 16)
    mr.synchronize()
  end)
  lu.assertEquals(#found, 1)
  lu.assertStrContains(found[1], "use-before-alloc alloc scatter")
end

-- A variable of a module counts as a whole until its launches have run.
function TestWithdrawn.test_a_variable_of_the_module()
  local module = mr.module[=[
    __device__ int values[64]; __constant__ int fixed[4];
    extern "C" __global__ void put(int i, int v) { values[i] = v; }
    extern "C" __global__ void get(int *out, int i) { out[0] = fixed[i]; }
  ]=]
  local put, get = module:get("put"), module:get("get")
  local function pair(i, k)
    return withdrawn(function(a, b)
      put[{1, 1, stream = a}](i, 5)
      put[{1, 1, stream = b}](k, 6)
    end)
  end
  lu.assertEquals(pair(1, 2), {})
  lu.assertStrContains(table.concat(pair(2, 2)), " put put certain")
  local of_constant = withdrawn(function(a, b, x)
    get[{1, 1, stream = a}](x, 1)
    b:run(function() module:global("fixed"):fill_(1) end)
  end)
  lu.assertEquals(of_constant, { "write-after-read get fill_ assumed" })
end

function TestWithdrawn.test_updates_and_plain_accesses()
  local low, high = indices(0), indices(16)
  local function pair(at)
    return withdrawn(function(a, b, x)
      tally[{1, 16, stream = a}](x, low, 16)
      scatter[{1, 16, stream = b}](x, at, 16)
    end)
  end
  lu.assertEquals(pair(high), {})
  lu.assertEquals(pair(low), { "write-after-write tally scatter certain" })
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

TestWords = {}

-- Operands of launches are bytes: a report shows elements, as the tensor has them that was passed.
function TestWords.test_reports_have_the_dtype_of_the_parameter()
  local fill = mr.kernel [=[extern "C" __global__ void fill(double *x, int n, int step) {
    if (threadIdx.x < n) x[threadIdx.x * step] = 1; }]=]
  local bytes = mr.kernel [=[extern "C" __global__ void bytes(void *x, int n) {
    if (threadIdx.x < n) ((char *)x)[threadIdx.x] = 1; }]=]
  local function first_line(kernel, ...)
    local arguments = table.pack(...)
    return check(function(a, b)
      local x = mr.zeros({ 8, 8 }, { dtype = "f64", name = "matrix" })
      mr.synchronize()
      a:run(function() x:add_(1) end)
      kernel[{ 1, 32, 0, b }](x, table.unpack(arguments))
      mr.synchronize()
    end)[1].message:match("^[^\n]*")
  end
  lu.assertStrContains(first_line(fill, 20, 1), "`matrix` (f64[20], bytes 0..159)")
  lu.assertStrContains(first_line(fill, 4, 3), "`matrix` (f64[4,1], 32 bytes in 0..79)")
  lu.assertStrContains(first_line(bytes, 12), "`matrix` (u8[12], bytes 0..11)")
end

os.exit(lu.LuaUnit.run())
