-- k:profile(): counts that can be worked out by hand, and what occupancy is by the programming guide's tables.
local lu = require "luaunit"
local mr = require "millrace"
local unchecked = require "lua.support.unchecked"

if mr.backend ~= "virtual" then os.exit(0) end

local copy = mr.kernel([[
__global__ void copy(float *y, const float *x, int step, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i * step];
}]])

local banks = mr.kernel([[
__global__ void banks(float *y, int stride) {
  __shared__ float s[1024];
  s[threadIdx.x * stride % 1024] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = s[threadIdx.x * stride % 1024];
}]])

TestProfile = {}

-- Each block is counted, where a test does not say otherwise.
function TestProfile.setUp() mr.machine.settings{ kernel_profile_every = 1 } end

local function profile_of(kernel, options, ...)
  kernel:profile{ reset = true }
  kernel[options](...)
  mr.synchronize()
  return kernel:profile{ block = options[2] }
end

function TestProfile.test_consecutive_floats_need_four_sectors_a_request()
  local y, x = mr.zeros(1024), mr.ones(1024)
  local p = profile_of(copy, { 4, 256 }, y, x, 1, 1024)
  lu.assertEquals({ p.blocks, p.launched_blocks, p.classes.f32 }, { 4, 4, nil })
  local memory = p.classes["global memory"]
  lu.assertEquals({ memory.requests, memory.sectors, memory.bytes, memory.efficiency }, { 64, 256, 8192, 1.0 })
end

function TestProfile.test_a_stride_of_eight_floats_needs_a_sector_each()
  local y, x = mr.zeros(1024), mr.ones(8192)
  local memory = profile_of(copy, { 4, 256 }, y, x, 8, 1024).classes["global memory"]
  lu.assertEquals(memory.sectors, 32 * 32 + 32 * 4) -- loads, stores
end

function TestProfile.test_half_of_a_warp()
  local y, x = mr.zeros(16), mr.ones(16)
  local memory = profile_of(copy, { 1, 32 }, y, x, 1, 16).classes["global memory"]
  lu.assertEquals({ memory.active_lanes, memory.requests, memory.sectors }, { 16.0, 2, 4 })
end

-- Lanes are counted over the instructions that some lane executes: a branch that nobody takes is executed by all.
function TestProfile.test_branches_that_are_not_taken()
  local plain = mr.kernel([[
    extern "C" __global__ void f(float *y, int n) {
      if (n < 0) y[0] = 1;
      if (n < 1) y[1] = 2;
      y[threadIdx.x] = 3;
    }]])
  local p = profile_of(plain, { 1, 64 }, mr.zeros(64), 64)
  lu.assertEquals(p.active_lanes, 32.0)
  for class, counts in pairs(p.classes) do lu.assertEquals({ class, counts.active_lanes }, { class, 32.0 }) end
end

function TestProfile.test_bank_conflicts()
  local y = mr.zeros(32)
  for stride, passes in pairs { [1] = 1, [2] = 2, [8] = 8, [32] = 32, [33] = 1 } do
    local shared = profile_of(banks, { 1, 32 }, y, stride).classes["shared memory"]
    lu.assertEquals({ stride, shared.bank_passes }, { stride, passes + 0.0 })
  end
end

function TestProfile.test_lines_add_up()
  local y, x = mr.zeros(1024), mr.ones(1024)
  local p = profile_of(copy, { 4, 256 }, y, x, 1, 1024)
  local sum, requests = 0, 0
  for _, line in ipairs(p:lines()) do
    sum, requests = sum + line.instructions, requests + (line.requests or 0)
  end
  lu.assertEquals(sum, p.instructions)
  lu.assertEquals(requests, p.classes["global memory"].requests)
end

-- Averages are those of the requests that they are about: a line with a load of another memory dilutes nothing.
function TestProfile.test_loads_and_stores_of_a_line()
  local k = mr.kernel([=[
    extern "C" __global__ void f(float *o, const float *x) {
      __shared__ float s[2048];
      int t = threadIdx.x;
      s[2 * t] = x[t];
      __syncthreads();
      o[32 * t] = s[4 * t];
    }]=])
  local p = profile_of(k, { 1, 32 }, mr.zeros(1024), mr.zeros(32))
  local found = {}
  for _, line in ipairs(p:lines()) do
    if line.requests then
      found[#found + 1] = { line.bank_passes, line.loads.sectors, line.stores.sectors, line.sectors_per_request,
        line.loads.bank_passes, line.stores.bank_passes }
    end
  end
  lu.assertEquals(found, { { 2, 4, nil, 4, nil, 2 }, { 4, nil, 32, 32, 4, nil } })
  local shared = p.classes["shared memory"]
  lu.assertEquals({ shared.bank_passes, shared.loads.bank_passes, shared.stores.bank_passes }, { 3, 4, 2 })
end

-- By default a sample stands for all blocks, and is the same each time.
function TestProfile.test_a_sample_of_the_blocks()
  local y, x = mr.zeros(1 << 16), mr.ones(1 << 16)
  local all = profile_of(copy, { 256, 256 }, y, x, 1, 1 << 16)
  mr.machine.settings{ kernel_profile_every = 64 }
  local sample = profile_of(copy, { 256, 256 }, y, x, 1, 1 << 16)
  lu.assertEquals({ all.blocks, sample.blocks, sample.launched_blocks }, { 256, 8 + 3, 256 })
  for bound, ms in pairs(all.times) do
    if bound ~= "atomics" then lu.assertAlmostEquals(sample.times[bound], ms, 1e-9) end
  end
  for _ = 1, 100 do copy[{ 1, 256 }](y, x, 1, 256) end -- one block a launch: some of them are counted
  mr.synchronize()
  local p = copy:profile()
  lu.assertEquals({ p.launches, p.launched_blocks }, { 101, 356 })
  lu.assertTrue(p.blocks >= 11 + 1 and p.blocks <= 11 + 3, p.blocks)
end

function TestProfile.test_nothing_has_run()
  copy:profile{ reset = true }
  local nothing, why = copy:profile()
  lu.assertNil(nothing)
  lu.assertStrContains(why, "no launch was counted yet: launch the kernel and synchronize")
end

function TestProfile.test_print_shows_a_table_by_line()
  copy:profile{ reset = true }
  copy[{ 1, 32 }](mr.zeros(32), mr.ones(32), 1, 32)
  mr.synchronize()
  local p = copy:profile()
  local rows = p:lines()
  lu.assertStrMatches(tostring(p), "launches: 1; blocks: 1, 1 of them counted\na launch takes 0%.%d+ ms, bound by .*")
  lu.assertStrContains(tostring(p), tostring(rows), nil)
  for _, row in ipairs(rows) do
    lu.assertStrContains(tostring(rows), tostring(row))
    lu.assertStrMatches(tostring(row), ("%%S+:%d +%d +32%%.0.*"):format(row.line, row.instructions))
  end
end

function TestProfile.test_it_can_be_off()
  mr.machine.settings{ kernel_profile = false }
  copy:profile{ reset = true }
  copy[{ 1, 32 }](mr.zeros(32), mr.ones(32), 1, 32)
  mr.synchronize()
  lu.assertNil(copy:profile())
  mr.machine.settings{ kernel_profile = true }
end

-- An SM of the h200 has 2048 threads, 32 blocks, 228 KB of shared memory; each block costs 1 KB more.
function TestProfile.test_occupancy()
  local y, x = mr.zeros(1024), mr.ones(1024)
  profile_of(copy, { 4, 256 }, y, x, 1, 1024)
  local full = copy:profile{ block = 256 }
  lu.assertEquals({ full.blocks_per_sm, full.occupancy, full.limited_by }, { 8, 1.0, "threads" })
  local small = copy:profile{ block = 32 }
  lu.assertEquals({ small.blocks_per_sm, small.occupancy, small.limited_by }, { 32, 0.5, "blocks" })
  local shared = copy:profile{ block = 256, shared = 100 * 1024 }
  lu.assertEquals({ shared.blocks_per_sm, shared.limited_by }, { 2, "shared memory" })
end

-- Lines are 64 times as many as with a stride of one, and nothing else is near them.
function TestProfile.test_what_bounds_it()
  local y, x = mr.zeros(1 << 16), mr.ones(1 << 21)
  local p = profile_of(copy, { 256, 256 }, y, x, 32, 1 << 16)
  local moved = 32 * p.classes["global memory"].sectors
  lu.assertAlmostEquals(p.times.memory, moved / (0.9 * mr.device(0).memory_bandwidth) * 1e3, 1e-9)
  local most, name = 0, nil
  for bound, ms in pairs(p.times) do
    if ms > most then most, name = ms, bound end
  end
  lu.assertEquals({ p.ms, p.bound_by }, { most, name })
end

-- One block of one warp waits for each of its loads in turn: the chain has `n` links.
function TestProfile.test_a_chain_of_loads_is_bound_by_latency()
  local chase = mr.kernel([=[
    extern "C" __global__ void chase(int *next, int n) {
      int at = 0;
      for (int i = 0; i < n; i++) at = next[at];
      next[0] = at;
    }]=])
  local function ms(n)
    local p = profile_of(chase, { 1, 1 }, mr.zeros(1024, { dtype = "i32" }), n)
    lu.assertEquals(p.bound_by, "latency")
    return p.ms
  end
  local link = (ms(2000) - ms(1000)) / 1000 * 1e6
  lu.assertTrue(link > 100 and link < 300, "nanoseconds of a link: " .. link)
end

-- All threads of a launch add to one of 16 neighbours, or each to a place of its own.
function TestProfile.test_atomics_on_few_places_take_turns()
  local count = mr.kernel([=[
    extern "C" __global__ void count(int *counts, int places) {
      atomicAdd(&counts[(blockIdx.x * blockDim.x + threadIdx.x) * 7 % places], 1);
    }]=])
  local counts = mr.zeros(1 << 16, { dtype = "i32" })
  local function atomics(places) return profile_of(count, { 256, 256 }, counts, places).times.atomics end
  lu.assertTrue(atomics(16) > 5 * atomics(1 << 16))
end

-- Per launch, whatever was launched before.
function TestProfile.test_time_is_that_of_a_launch()
  local y, x = mr.zeros(1 << 16), mr.ones(1 << 16)
  copy:profile{ reset = true }
  local function ms(launches)
    for _ = 1, launches do copy[{ 256, 256 }](y, x, 1, 1 << 16) end
    mr.synchronize()
    return copy:profile().ms
  end
  local one = ms(1)
  lu.assertAlmostEquals(ms(5), one, 1e-9)
  lu.assertEquals(copy:profile().launches, 6)
end

-- The virtual GPU takes about that long for a launch, also if a loop does the work.
function TestProfile.test_a_launch_takes_about_as_long()
  local loop = mr.kernel([=[
    extern "C" __global__ void twice(float *y, const float *x, int n) {
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 2 * x[i];
    }]=])
  local y, x = mr.zeros(1 << 20), mr.ones(1 << 20)
  local p = profile_of(loop, { 16, 256 }, y, x, 1 << 20)
  local from, to = mr.event{ timing = true }, mr.event{ timing = true }
  mr.spin{ ms = 1 }
  from:record()
  loop[{ 16, 256 }](y, x, 1 << 20)
  to:record()
  to:synchronize()
  local ratio = from:elapsed_time(to) / p.ms
  lu.assertTrue(ratio > 0.8 and ratio < 1.3, "launch / profile: " .. ratio)
end

unchecked(TestProfile, "it reads shared memory that nothing has written", "test_loads_and_stores_of_a_line")

os.exit(lu.LuaUnit.run())
