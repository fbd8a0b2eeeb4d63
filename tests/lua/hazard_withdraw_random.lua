-- virtual only: only a virtual GPU tells which bytes a launch has touched
-- Compares random scatters, gathers and ordinary operations on several streams with a model. The
-- model knows each element that they touch and each order between them. A program in which two of
-- them meet is never without a hazard, and one in which none meet has no report that is certain.
-- MILLRACE_WITHDRAW_PROGRAMS and MILLRACE_WITHDRAW_SEED: other programs.
local lu = require "luaunit"
local mr = require "millrace"

local kernels = mr.module[=[
extern "C" __global__ void scatter(int *x, const int *at) { x[at[threadIdx.x]] = 1; }
extern "C" __global__ void tally(int *x, const int *at) { atomicAdd(x + at[threadIdx.x], 1); }
extern "C" __global__ void gather(const int *x, const int *at, int *out) { out[threadIdx.x] = x[at[threadIdx.x]]; }
]=]

local SIZE, STREAMS, LANES = 16, 3, 3

local function random_step(random)
  local pick, s = random(1, 10), random(1, STREAMS)
  if pick <= 2 then return { "wait", s, random(1, STREAMS) } end
  if pick == 3 then return { "synchronize", s } end
  if pick == 4 then
    local first = random(1, SIZE)
    return { random(1, 2) == 1 and "add" or "sum", s, first, random(first, math.min(SIZE, first + 3)) }
  end
  local at, step = { random(0, SIZE - 1) }, random(1, 5) -- no two lanes have the same element
  for i = 2, LANES do at[i] = (at[i - 1] + step) % SIZE end
  return { ({ "scatter", "tally", "gather" })[random(1, 3)], s, at }
end

-- ---- the model: an access is { stream, number, elements, what }

local WHAT = { scatter = "write", add = "write", gather = "read", sum = "read", tally = "update" }

local function elements_of(step)
  local set = {}
  if step[4] then
    for i = step[3], step[4] do set[i] = true end
  else
    for _, i in ipairs(step[3]) do set[i + 1] = true end
  end
  return set
end

local function conflicts(a, b)
  if a.what == b.what and a.what ~= "write" then return false end
  for i in pairs(a.elements) do
    if b.elements[i] then return true end
  end
  return false
end

local function meets_in_model(steps)
  local knows, accesses = {}, {}
  for s = 1, STREAMS do knows[s] = {} end
  local function learn(to, from, number)
    for s = 1, STREAMS do
      knows[to][s] = math.max(knows[to][s] or 0, s == from and number or knows[from][s] or 0)
    end
  end
  for number, step in ipairs(steps) do
    local kind, s = step[1], step[2]
    if kind == "wait" then
      learn(s, step[3], number)
    elseif kind == "synchronize" then
      for to = 1, STREAMS do learn(to, s, number) end
    else
      local access = { stream = s, number = number, elements = elements_of(step), what = WHAT[kind] }
      for _, earlier in ipairs(accesses) do
        local is_ordered = earlier.stream == s or (knows[s][earlier.stream] or 0) >= earlier.number
        if not is_ordered and conflicts(earlier, access) then return true end
      end
      accesses[#accesses + 1] = access
    end
  end
  return false
end

-- ---- the checker

local function run(steps)
  local streams, x = {}, mr.zeros(SIZE, {dtype = "i32"})
  for s = 1, STREAMS do streams[s] = mr.stream() end
  local at, out = {}, {}
  for i, step in ipairs(steps) do
    if WHAT[step[1]] and not step[4] then at[i] = mr.tensor(step[3], {dtype = "i32"}) end
    out[i] = mr.zeros(LANES, {dtype = "i32"})
  end
  mr.synchronize()
  local reports, totals = mr.hazard.check(function()
    for i, step in ipairs(steps) do
      local kind, s = step[1], streams[step[2]]
      if kind == "wait" then s:wait_stream(streams[step[3]])
      elseif kind == "synchronize" then s:synchronize()
      elseif kind == "add" then s:run(function() x[{{step[3], step[4]}}]:add_(1) end)
      elseif kind == "sum" then s:run(function() x[{{step[3], step[4]}}]:sum() end)
      elseif kind == "gather" then kernels:get(kind)[{1, LANES, stream = s}](x, at[i], out[i])
      else kernels:get(kind)[{1, LANES, stream = s}](x, at[i]) end
    end
  end)
  mr.synchronize()
  return reports, totals
end

local function describe(steps)
  local lines = {}
  for i, step in ipairs(steps) do
    local words = {}
    for k = 1, #step do words[k] = type(step[k]) == "table" and "{" .. table.concat(step[k], ",") .. "}" or step[k] end
    lines[i] = table.concat(words, " ")
  end
  return table.concat(lines, "\n")
end

TestRandom = {}

function TestRandom.test_against_the_model()
  local programs = tonumber(os.getenv "MILLRACE_WITHDRAW_PROGRAMS") or 300
  math.randomseed(tonumber(os.getenv "MILLRACE_WITHDRAW_SEED") or 7)
  local withdrawn, met, assumed = 0, 0, 0
  for _ = 1, programs do
    local program = {} -- { kind, stream, ... } each
    for i = 1, math.random(2, 9) do program[i] = random_step(math.random) end
    local meets = meets_in_model(program)
    local reports, totals = run(program)
    if meets then
      met = met + 1
      lu.assertTrue(#reports > 0, describe(program))
    end
    for _, report in ipairs(reports) do
      local is_assumed = report.first.assumed or report.second.assumed
      lu.assertTrue(meets or is_assumed ~= nil, describe(program) .. "\n" .. report.message)
      if is_assumed then assumed = assumed + 1 end
    end
    if #reports == 0 and totals.withdrawn > 0 then withdrawn = withdrawn + 1 end
  end
  -- The programs are of all sorts.
  lu.assertTrue(withdrawn * 20 > programs and met * 20 > programs, ("%d %d %d"):format(withdrawn, met, assumed))
end

os.exit(lu.LuaUnit.run())
