-- Random stream programs with everything that a script can do, for tests of what verdicts claim. A program is a list
-- of numbers, so it is the same in each run. Each uses a few kinds of steps, drawn at random: the rarest kinds then
-- meet each other as often as the common ones.
--
-- The kinds stand in random_streams.lua (streams, tensors, host functions), random_kernels.lua (kernels, graphs) and
-- random_answers.lua (what a script asks, failures, resets).
local mr = require "millrace"

local N = 32 -- elements of each tensor

local programs = { N = N }
local KINDS, STEPS, WEIGHTS = {}, {}, {}

-- add(weight, name, run): run(w, n) carries the step out; `w` is the world below, `n` the numbers of the step.
local function add(weight, name, run)
  assert(not STEPS[name], name)
  KINDS[#KINDS + 1], STEPS[name], WEIGHTS[name] = name, run, weight
end

require "lua.support.random_streams" (add, N)
local kernels = require "lua.support.random_kernels"
kernels.steps(add, N)
require "lua.support.random_answers" (add, function(w)
  mr.reset()
  kernels.forget()
  programs.open(w)
end)

-- Each program has orders between streams, else each would race.
local ORDERS = { "wait_stream", "wait_stream", "barrier", "record", "wait_event", "wait_event", "synchronize",
  "synchronize_all" }

-- `without`: a set of kinds that shall not occur.
function programs.make(seed, without)
  math.randomseed(seed)
  local kinds, one_of = {}, math.random(3) == 1 and 5 or math.random(10, 30)
  for _, name in ipairs(KINDS) do
    if math.random(one_of) == 1 and not (without and without[name]) then
      for _ = 1, WEIGHTS[name] do kinds[#kinds + 1] = name end
    end
  end
  local orders = math.random(2, 6) -- of 8 steps, about so many order streams
  local program = { streams = math.random(5) }
  for i = 1, math.random(2, 11) do
    local from = (#kinds == 0 or math.random(8) <= orders) and ORDERS or kinds
    local kind = from[math.random(#from)]
    program[i] = { kind = kind, s = math.random(3), z = math.random(3), x = math.random(3), y = math.random(3),
      h = math.random(2), e = math.random(2), v = math.random(5) }
  end
  return program
end

-- The device's part of a world: s streams, t tensors, m a tensor nobody has written, e events, k the module's variable.
function programs.open(w)
  local kind = w.program.streams
  w.e, w.own, w.graphs = { mr.event(), mr.event() }, { mr.stream(), mr.stream() }, {}
  w.timing = { mr.event{timing = true}, mr.event{timing = true} }
  w.s = { mr.stream(), mr.stream{nonblocking = kind ~= 1, priority = kind == 5 and -1 or 0} }
  w.s[3] = kind == 2 and mr.stream() or kind == 3 and mr.per_thread_stream() or mr.default_stream()
  w.t = {}
  for i = 1, 3 do w.t[i] = mr.full(N, i, {dtype = "f32"}) end
  w.choice = mr.arange(N, {dtype = "i32"}):remainder(2)
  if mr.device_count() > 1 then
    mr.with(mr.device(1), function() w.far, w.far_stream = mr.full(N, 7, {dtype = "f32"}), mr.stream() end)
  end
  kernels.clear()
  mr.manual_seed(1)
end

local function text(t) return table.concat(t:contiguous():totable(), ",") end

-- Runs the program. Returns its result as a text (the values of all tensors, and how each step
-- ended), and its world. There `said` has the answers of queries. `broken` counts, by the row's
-- key, how often the program did what a condition of a claim excludes.
function programs.run(program)
  local w = { program = program, p = {}, q = {}, number = 1, broken = {}, seen = {}, errors = {}, said = "" }
  for i = 1, 2 do
    w.p[i] = mr.full(N, i, {dtype = "f32", device = "cpu", pinned = true})
    w.q[i] = mr.full(N, i, {dtype = "f32", device = "cpu"})
  end
  programs.open(w)
  mr.synchronize()
  local function carry_out(name, run, n)
    local ok, err = pcall(run, w, n)
    if not ok then
      w.seen[#w.seen + 1] = name .. " failed"
      w.errors[#w.errors + 1] = name .. ": " .. tostring(err)
    end
  end
  for _, n in ipairs(program) do carry_out(n.kind, STEPS[n.kind], n) end
  for i = 0, mr.device_count() - 1 do carry_out("the last wait", function() mr.synchronize(i) end) end
  local was = {}
  carry_out("the device", function() -- lost after a failure
    for i = 1, 3 do was[#was + 1] = text(w.t[i]) end
    if w.far then was[#was + 1] = text(w.far) end
  end)
  for i = 1, 2 do was[#was + 1] = text(w.p[i]) was[#was + 1] = text(w.q[i]) end
  return table.concat(was, "\n") .. "\n" .. table.concat(w.seen, ", "), w
end

function programs.describe(program)
  local lines = { ("streams %d"):format(program.streams) }
  for _, n in ipairs(program) do
    lines[#lines + 1] = ("%-14s s=%d z=%d x=%d y=%d h=%d e=%d v=%d"):format(n.kind, n.s, n.z, n.x, n.y, n.h, n.e, n.v)
  end
  return table.concat(lines, "\n")
end

-- The smallest part of the program of which is_wrong(program) still holds.
function programs.smallest(program, is_wrong)
  local i = #program
  while i >= 1 do
    local fewer = { streams = program.streams }
    for k, n in ipairs(program) do if k ~= i then fewer[#fewer + 1] = n end end
    if #fewer > 0 and is_wrong(fewer) then program = fewer end
    i = i - 1
  end
  return program
end

-- After a program: whatever it has left, the next one finds nothing of it.
function programs.clean()
  pcall(mr.synchronize)
  mr.set_device(0)
  if pcall(mr.zeros, 1) then return end
  mr.reset()
  kernels.forget()
end

programs.kinds, programs.load_kernels = KINDS, kernels.load
return programs
