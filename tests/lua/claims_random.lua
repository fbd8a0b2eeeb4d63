-- The heart of the checker: whenever a random program comes to two results under any chooser, its verdict has not
-- claimed that every legal schedule gives the same values. The programs have streams of all kinds, events, barriers,
-- kernels with guards and selections, host functions, queries, graphs, copies of pinned and pageable memory, frees,
-- record_stream, collected tensors, resets and failures. A condition of a claim must be one that the program keeps.
-- timeout: 300
-- virtual only: other schedules are made by choosers
-- not replayed: choosers are switched in the middle
-- not checked: its programs race
local lu = require "luaunit"
local mr = require "millrace"

local PROGRAMS = tonumber(os.getenv("MR_CLAIMS_PROGRAMS")) or 250
local FIRST = tonumber(os.getenv("MR_CLAIMS_FIRST")) or 1
local SHOW = tonumber(os.getenv("MR_CLAIMS_SHOW")) -- prints this program and its results
local CHOOSERS = { "timed", "adversarial" }
for seed = 1, tonumber(os.getenv("MR_CLAIMS_SEEDS")) or 8 do CHOOSERS[#CHOOSERS + 1] = "random:" .. seed end

local N = 32 -- elements of each tensor

local SOURCE = [[
extern "C" __global__ void select(float *y, const float *a, const float *b, const int *c) {
  int i = threadIdx.x; y[i] = c[i] ? a[i] : b[i];
}
extern "C" __global__ void guard(float *y, float v, int n) { int i = threadIdx.x; if (i < n) y[i] = v; }
extern "C" __global__ void maybe(float *y, const float *x) {
  int i = threadIdx.x; if (x) y[i] += x[i]; else y[i] = 1;
}
extern "C" __global__ void either(float *y, float *x, int n) {
  int i = threadIdx.x; float *p = i < n ? y : x; p[i] = 5;
}
extern "C" __global__ void add(float *y, float v) { atomicAdd(y + threadIdx.x % 4, v); }
extern "C" __global__ void shift(float *y, const float *x) { int i = threadIdx.x; y[i] = x[(i + 1) % 32] + 1; }
struct S { float *p; };
extern "C" __global__ void by_struct(S s, float v) { s.p[threadIdx.x] = v; }
]]
local KERNELS = setmetatable({}, { __index = function(all, name)
  all[name] = mr.kernel(SOURCE, name)
  return all[name]
end })

-- ---------------------------------------------------------------- programs

-- What the steps can be, and how often. A step is a list of numbers, so it is the same in each run.
local KINDS = {}
local STEPS = {}
local function step(weight, name, run)
  STEPS[name] = run
  for _ = 1, weight do KINDS[#KINDS + 1] = name end
end

-- The state `w`: s streams, t device tensors, p pinned, q pageable, e events; n the step's own numbers.
local function on(w, n, f) w.s[n.s]:run(f) end

step(5, "scale", function(w, n) on(w, n, function() w.t[n.x]:mul_(n.v) end) end)
step(5, "add", function(w, n) on(w, n, function() w.t[n.x]:add_(w.t[n.y]) end) end)
step(3, "half", function(w, n) on(w, n, function() w.t[n.x]:narrow(1, n.v % 2 * 16 + 1, 16):fill_(n.v) end) end)
step(2, "op", function(w, n) on(w, n, function() mr.op{name = "mix", reads = {w.t[n.x]}, writes = {w.t[n.y]}} end) end)
step(2, "spin", function(w, n) on(w, n, function() mr.spin{ms = 0.01 * n.v} end) end)
step(2, "random", function(w, n) on(w, n, function() w.t[n.x]:uniform_() end) end)
step(2, "temporary", function(w, n)
  on(w, n, function()
    local sum = w.t[n.x] + 1
    w.s[n.z]:wait_stream(w.s[n.s])
    w.s[n.z]:run(function() w.t[n.y]:copy_(sum) end)
    if n.v % 2 == 0 then sum:record_stream(w.s[n.z]) end
    if n.v % 3 == 0 then sum:free() end
    w.garbage = w.garbage or n.v % 3 ~= 0
  end)
end)
step(1, "collect", function(w) w.garbage = nil collectgarbage() collectgarbage() end)
step(1, "free_at_once", function(w, n)
  on(w, n, function()
    local other = w.t[n.x] * 2
    other:free{sync = n.v % 2 == 0}
  end)
end)
step(4, "wait_stream", function(w, n) if n.s ~= n.z then w.s[n.s]:wait_stream(w.s[n.z]) end end)
step(2, "barrier", function(w, n) if n.s ~= n.z then mr.barrier{w.s[n.s], w.s[n.z]} end end)
step(3, "record", function(w, n) w.e[n.e]:record(w.s[n.s]) end)
step(4, "wait_event", function(w, n) w.s[n.s]:wait_event(w.e[n.e]) end)
step(2, "synchronize", function(w, n) w.s[n.s]:synchronize() end)
step(1, "synchronize_event", function(w, n) w.e[n.e]:synchronize() end)
step(1, "synchronize_all", function() mr.synchronize() end)
step(2, "ask", function(w, n) local _ = n.v % 2 == 0 and w.s[n.s]:query() or w.e[n.e]:query() end)
step(1, "ask_and_go", function(w, n)
  w.decided = true
  if w.s[n.s]:query() then on(w, n, function() w.t[n.x]:add_(1) end) end
end)
step(1, "read_and_go", function(w, n)
  w.decided = true
  if w.p[1][1]:item() > 1 then on(w, n, function() w.t[n.x]:add_(1) end) end
end)
local function copy(w, n, to, from, is_asynchronous)
  on(w, n, function() to:copy_(from, {non_blocking = is_asynchronous}) end)
end
step(2, "to_pinned", function(w, n) copy(w, n, w.p[n.h], w.t[n.x], n.v % 3 > 0) end)
step(2, "from_pinned", function(w, n) copy(w, n, w.t[n.x], w.p[n.h], n.v % 3 > 0) end)
step(2, "to_pageable", function(w, n) copy(w, n, w.q[n.h], w.t[n.x], n.v % 4 == 0) end)
step(2, "from_pageable", function(w, n) copy(w, n, w.t[n.x], w.q[n.h], n.v % 4 == 0) end)
step(2, "memcpy", function(w, n)
  local memory = { w.t, w.p, w.q }
  local to, from = memory[n.v % 3 + 1], memory[n.h + 1]
  local a, b = to[(n.x - 1) % #to + 1], from[(n.y - 1) % #from + 1]
  if a ~= b then if n.v > 3 then mr.memcpy(a, b) else mr.memcpy_async(a, b, {stream = w.s[n.s]}) end end
end)
step(1, "memset", function(w, n) mr.memset_async(w.t[n.x], n.v, {stream = w.s[n.s]}) end)
step(2, "host_adds", function(w, n) w.p[n.h]:add_(n.v) end)
step(5, "host_function", function(w, n)
  local p, q, v = w.p[n.h], w.q[n.h], n.v
  w.s[n.s]:host_func(function() if v > 2 then p:mul_(v) else q:fill_(v) end end)
end)
step(3, "host_draws", function(w, n) local p = w.p[n.h] w.s[n.s]:host_func(function() p:uniform_() end) end)
step(1, "host_variable", function(w, n)
  w.shared = true
  local v = n.v
  w.s[n.s]:host_func(function() w.number = w.number * 2 + v end)
end)
step(1, "uses_variable", function(w, n) on(w, n, function() w.t[n.x]:fill_(w.number) end) end)
step(2, "select", function(w, n)
  KERNELS.select[{1, N, 0, w.s[n.s]}](w.t[n.x], w.t[n.y], w.t[n.z % 3 + 1], w.choice)
end)
step(2, "guard", function(w, n) KERNELS.guard[{1, N, 0, w.s[n.s]}](w.t[n.x], n.v, n.v * 8) end)
step(2, "maybe", function(w, n)
  KERNELS.maybe[{1, N, 0, w.s[n.s]}](w.t[n.x], n.v > 2 and n.x ~= n.y and w.t[n.y] or nil)
end)
step(2, "either", function(w, n)
  if n.x ~= n.y then KERNELS.either[{1, N, 0, w.s[n.s]}](w.t[n.x], w.t[n.y], n.v * 4) end
end)
step(1, "atomic", function(w, n) KERNELS.add[{1, N, 0, w.s[n.s]}](w.t[n.x], n.v) end)
step(1, "shift", function(w, n) if n.x ~= n.y then KERNELS.shift[{1, N, 0, w.s[n.s]}](w.t[n.x], w.t[n.y]) end end)
step(1, "by_struct", function(w, n)
  KERNELS.by_struct[{1, N, 0, w.s[n.s]}](string.pack("<i8", w.t[n.x].data_ptr), n.v)
end)
step(2, "graph", function(w, n)
  local a, b = w.own[1], w.own[2]
  local g = mr.graph(function()
    w.t[n.x]:add_(n.v)
    b:wait_stream(mr.current_stream())
    b:run(function() w.t[n.y]:mul_(2) end)
    mr.current_stream():wait_stream(b)
  end, {stream = a})
  g:launch(w.s[n.s])
  if n.v > 3 then g:launch(w.s[n.z]) end
end)

local LAST = {} -- what a program may end with: the device is gone, host memory stays
local function reset()
  mr.reset()
  for name in pairs(KERNELS) do KERNELS[name] = nil end -- their modules are gone, too
end
LAST[1] = reset
LAST[2] = function(w, n)
  KERNELS.guard[{1, N, 0, w.s[n.s]}](w.t[n.x], 1, 1)
  KERNELS.by_struct[{1, N, 0, w.s[n.s]}](string.pack("<i8", 64), n.v)
  pcall(mr.synchronize)
  reset()
end

local function make(seed)
  math.randomseed(seed)
  local program = { last = math.random(12), streams = math.random(4) }
  for i = 1, math.random(2, 9) do
    program[i] = { kind = KINDS[math.random(#KINDS)], s = math.random(3), z = math.random(3), x = math.random(3),
      y = math.random(3), h = math.random(2), e = math.random(2), v = math.random(5) }
  end
  return program
end

local function open(program)
  local w = { t = {}, p = {}, q = {}, e = { mr.event(), mr.event() }, number = 1, own = { mr.stream(), mr.stream() } }
  w.s = { mr.stream(), mr.stream{nonblocking = program.streams ~= 1} }
  w.s[3] = program.streams == 2 and mr.stream() or mr.default_stream()
  for i = 1, 3 do w.t[i] = mr.full(N, i, {dtype = "f32"}) end
  for i = 1, 2 do
    w.p[i] = mr.full(N, i, {dtype = "f32", device = "cpu", pinned = true})
    w.q[i] = mr.full(N, i, {dtype = "f32", device = "cpu"})
  end
  w.choice = mr.arange(N, {dtype = "i32"}):remainder(2)
  mr.manual_seed(1)
  return w
end

local function text(t) return table.concat(t:contiguous():totable(), ",") end

-- -> the result as a text, and with `checked` what the checker says
local function run(program, chooser, checked)
  mr.machine.chooser(chooser)
  local w
  local was = {}
  local function work()
    w = open(program)
    mr.synchronize()
    for _, n in ipairs(program) do STEPS[n.kind](w, n) end
    if LAST[program.last] then LAST[program.last](w, program[1]) end
  end
  local reports, totals
  if checked then -- in a coroutine, since no report needs the variables of this file
    reports, totals = coroutine.wrap(function() return mr.hazard.check(work) end)()
  else
    work()
  end
  mr.synchronize()
  if not LAST[program.last] then for i = 1, 3 do was[#was + 1] = text(w.t[i]) end end
  for i = 1, 2 do was[#was + 1] = text(w.p[i]) was[#was + 1] = text(w.q[i]) end
  return table.concat(was, "\n"), reports, totals, w
end

-- Whether the sentence claims anything of other schedules of this program, read word by word.
local function claims(reports, totals, w)
  if #reports > 0 or totals.claim == "none" then return false end
  if w.decided and (totals.queries > 0 or totals.host_reads > 0) then return false end
  if w.shared and totals.host_functions > 0 then return false end
  return true -- copies of pageable memory wait here under each chooser, and the collector does not run by itself
end

local function describe(program)
  local lines = { ("streams %d, last %d"):format(program.streams, program.last) }
  for _, n in ipairs(program) do
    lines[#lines + 1] = ("%-14s s=%d z=%d x=%d y=%d h=%d e=%d v=%d"):format(n.kind, n.s, n.z, n.x, n.y, n.h, n.e, n.v)
  end
  return table.concat(lines, "\n")
end

-- The first chooser whose result is another one, although the first run's verdict has claimed; else nil.
local function broken(program)
  local first, reports, totals, w = run(program, CHOOSERS[1], true)
  local claimed = claims(reports, totals, w)
  local differs
  for i = 2, #CHOOSERS do
    if run(program, CHOOSERS[i]) ~= first then differs = CHOOSERS[i] break end
  end
  return differs and claimed and differs, claimed, differs
end

-- The smallest part of the program that is broken, too.
local function smallest(program)
  local i = #program
  while i >= 1 do
    local fewer = { last = program.last, streams = program.streams }
    for k, n in ipairs(program) do if k ~= i then fewer[#fewer + 1] = n end end
    if #fewer > 0 and broken(fewer) then program = fewer end
    i = i - 1
  end
  return program
end

TestClaims = {}

function TestClaims.test_two_results_and_a_claim_never_meet()
  local claimed, several, found = 0, 0, {}
  collectgarbage("stop")
  for seed = FIRST, FIRST + PROGRAMS - 1 do
    local program = make(seed)
    local by, did_claim, differs = broken(program)
    if did_claim then claimed = claimed + 1 end
    if differs then several = several + 1 end
    if by then
      found[#found + 1] = ("program %d, %s:\n%s"):format(seed, by, describe(smallest(program)))
      if SHOW then print(found[#found]) end
    end
    collectgarbage()
  end
  mr.machine.chooser("timed")
  collectgarbage("restart")
  if SHOW then print(("%d programs: %d with a claim, %d with several results"):format(PROGRAMS, claimed, several)) end
  lu.assertEquals(#found, 0, found[1])
  lu.assertTrue(claimed > PROGRAMS // 20 and several > PROGRAMS // 20, claimed .. " " .. several)
end

os.exit(lu.LuaUnit.run())
