-- mr.explore: outcomes, counts, the programs of the page, and functions that cannot be explored.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("explore")

local function values(r)
  local seen = {}
  for _, o in ipairs(r.outcomes) do seen[#seen + 1] = tostring(o.error or o.value) end
  table.sort(seen)
  return table.concat(seen, " ")
end

local function two(make)
  return function()
    local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
    local x = mr.zeros(1)
    mr.synchronize()
    return make(a, b, x)
  end
end

-- ---------------------------------------------------------------- two operations that nothing orders

local lost_update = two(function(a, b, x)
  a:run(function() x:add_(1) end)
  b:run(function() x:mul_(3) end)
  mr.synchronize()
  return x:item()
end)

local r = mr.explore(lost_update)
T.equal(values(r), "1.0 3.0", "both orders")
T.equal(r.schedules, 2, "one schedule of each class")
T.check(r.complete and not r.deterministic, "all of them, and they differ")
T.equal(#r.hazards, 1, "the checker says so, too")
T.check(tostring(r):find("2 schedules, 2 outcomes", 1, true), "it is shown")
for _, o in ipairs(r.outcomes) do
  T.equal(mr.replay(o.schedule, lost_update), o.value, "a schedule can be repeated")
  T.check(o.steps:find("add_", 1, true), "its steps are told")
end

r = mr.explore(two(function(a, b, x)
  a:run(function() x:add_(1) end)
  b:wait_stream(a)
  b:run(function() x:mul_(3) end)
  mr.synchronize()
  return x:item()
end))
T.equal(values(r), "3.0", "ordered")
T.check(r.deterministic, "ordered work has one class")
T.equal(r.schedules, 1, "ordered work has one class")

-- ---------------------------------------------------------------- what the host reads decides what it does

r = mr.explore(two(function(a, b, x)
  local y = mr.zeros(1)
  mr.synchronize()
  a:run(function() x:fill_(5) end)
  b:run(function() y:copy_(x) end)
  b:synchronize()
  local seen = y:item()
  if seen == 5 then a:run(function() x:add_(1) end) else b:run(function() x:add_(2) end) end
  mr.synchronize()
  return { seen = seen, x = x:item() }
end))
local found = {}
for _, o in ipairs(r.outcomes) do found[o.value.seen .. ":" .. o.value.x] = true end
T.check(found["5.0:6.0"] and found["0.0:7.0"] and found["0.0:5.0"], "three ways to go on")
T.equal(#r.outcomes, 3, "and no other")

-- ---------------------------------------------------------------- queries

local function poll(a, _, x)
  a:run(function() x:fill_(5) end)
  local times = 0
  while not a:query() do times = times + 1 end
  return times
end
r = mr.explore(two(poll))
T.equal(values(r), "0 1 2", "asked until it says yes")
T.check(not r.complete and r.incomplete:find("at most 2 times", 1, true), "asking more often is another schedule")
r = mr.explore(two(poll), { polls = 4 })
T.equal(values(r), "0 1 2 3 4", "asked more often")

r = mr.explore(two(function(a, b, x)
  a:run(function() x:fill_(5) end)
  local done = a:record_event()
  if not done:query() then b:wait_event(done) end
  b:run(function() x:add_(1) end)
  mr.synchronize()
  return x:item()
end))
T.equal(values(r), "6.0", "a query that is followed by a wait")
T.check(r.deterministic, "is fine")

-- ---------------------------------------------------------------- tensors, parts of operations

local function torn()
  local a = mr.stream{name = "a"}
  local x = mr.zeros(4)
  mr.synchronize()
  a:run(function() x:fill_(5) end)
  local y = x:clone()
  mr.synchronize()
  return y
end
r = mr.explore(torn)
T.equal(#r.outcomes, 2, "operations are whole")
r = mr.explore(torn, { grain = 2 })
T.equal(#r.outcomes, 4, "or cut in two")
T.equal(r.schedules, 6, "the interleavings of two and two parts")
for _, o in ipairs(r.outcomes) do
  T.check(mr.equal(mr.replay(o.schedule, torn):cpu(), o.value), "the parts can be repeated")
end
-- A copy that the host waits for is cut, too: its first part is nothing that had to be done before the call.
for _, read in ipairs { function(x) return x:sum():item() end, function(x) return x:cpu() end } do
  r = mr.explore(function()
    local x = mr.zeros(8)
    return read(x)
  end, { grain = 2 })
  T.check(r.complete and r.schedules == 1, "a blocking copy in parts: " .. tostring(r))
end

-- ---------------------------------------------------------------- memory that was there before

local outer = mr.zeros(2)
outer:fill_(7)
r = mr.explore(function()
  local a, b = mr.stream(), mr.stream()
  a:wait_stream(mr.default_stream())
  b:wait_stream(mr.default_stream())
  a:run(function() outer:add_(1) end)
  b:run(function() outer:mul_(2) end)
  mr.synchronize()
  return outer
end)
T.equal(#r.outcomes, 2, "each run begins with the same bytes")
T.equal(outer:sum():item(), 14.0, "which are put back")

local pinned = mr.zeros(1, { device = "cpu", pinned = true })
r = mr.explore(function()
  local a = mr.stream()
  local x = mr.ones(1)
  mr.synchronize()
  a:run(function() pinned:copy_(x, { non_blocking = true }) end)
  local early = pinned[1]:item()
  a:synchronize()
  return early
end)
T.equal(values(r), "0.0 1.0", "the host reads too early")

-- ---------------------------------------------------------------- host functions

r = mr.explore(function()
  local a, b = mr.stream(), mr.stream()
  local order = ""
  a:host_func(function() order = order .. "a" end)
  b:host_func(function() order = order .. "b" end)
  mr.synchronize()
  return #order
end)
T.equal(values(r), "2", "host functions run once in each schedule")

r = mr.explore(function()
  local a, b = mr.stream(), mr.stream()
  local order = ""
  a:host_func(function() order = order .. "a" end)
  b:host_func(function() order = order .. "b" end)
  mr.synchronize()
  return order
end)
T.equal(values(r), "ab ba", "the variables that they change are seen")

r = mr.explore(function()
  local a, b = mr.stream(), mr.stream()
  local x, seen = mr.zeros(1, { pinned = true }), nil
  local one = mr.ones(1)
  mr.synchronize()
  a:run(function() x:copy_(one, { non_blocking = true }) end)
  b:host_func(function() seen = x:item() end)
  mr.synchronize()
  return seen
end)
T.equal(values(r), "0.0 1.0", "and what they read")

-- ---------------------------------------------------------------- what CUDA leaves open, and memory

local function read_at_once()
  local s = mr.stream()
  local x, host = mr.zeros(4), mr.zeros(4, { device = "cpu" })
  mr.synchronize()
  s:run(function()
    x:fill_(5)
    host:copy_(x, { non_blocking = true })
  end)
  local early = host:sum():item()
  mr.synchronize()
  return early
end
T.equal(values(mr.explore(read_at_once)), "20.0", "an async copy to pageable memory waits by default (R23)")
r = mr.explore(read_at_once, { unspecified = true })
T.equal(values(r), "0.0 20.0", "but it need not")
for _, o in ipairs(r.outcomes) do T.equal(mr.replay(o.schedule, read_at_once), o.value, "and that can be repeated") end

local function freed_while_read(tell)
  return function()
    local main, side = mr.stream(), mr.stream()
    local sum
    main:run(function()
      local x = mr.full(4, 2)
      side:wait_stream(main)
      sum = side:run(function() return x:sum() end)
      if tell then x:record_stream(side) end
      x:free()
      mr.full(4, 100)
    end)
    mr.synchronize()
    return sum:item()
  end
end
T.equal(#mr.explore(freed_while_read(false)).outcomes, 2, "memory that is freed while it is read")
T.check(mr.explore(freed_while_read(true)).deterministic, "with record_stream")

r = mr.explore(function()
  local s, t = mr.stream(), mr.stream()
  local x = s:run(function() return mr.full(4, 1) end)
  mr.synchronize()
  s:run(function() x:free() end)
  s:run(function() mr.spin{ms = 1} end)
  local y = t:run(function() return mr.full(4, 9) end)
  mr.synchronize()
  return y:sum():item()
end)
T.check(r.deterministic, "memory of another stream is taken safely")

-- ---------------------------------------------------------------- random numbers of ours

mr.manual_seed(3)
r = mr.explore(function() return mr.rand(2):sum():item() end)
T.check(r.deterministic, "random tensors are repeated")

-- ---------------------------------------------------------------- errors are outcomes

r = mr.explore(function() error("no luck", 0) end)
T.equal(r.outcomes[1].error, "no luck", "an error")
r = mr.explore(two(function(a, b, x)
  a:run(function() x:add_(1) end)
  b:run(function() x:mul_(3) end)
  mr.synchronize()
  assert(x:item() == 3, "lost")
end))
T.equal(#r.outcomes, 2, "an assertion that fails in one schedule")
T.check(values(r):find("lost", 1, true) and values(r):find("nil", 1, true), "and not in the other")
r = mr.explore(function()
  mr.machine.fault("illegal-address", mr.stream())
  mr.synchronize()
end)
T.check(r.outcomes[1].error:find("illegal", 1, true), "a lost device")
T.equal(mr.ones(3):sum():item(), 3.0, "the machine works afterwards")

-- ---------------------------------------------------------------- bounds

local function many()
  local x = mr.zeros(1)
  mr.synchronize()
  for i = 1, 6 do mr.stream():run(function() x:mul_(2); x:add_(i) end) end
  mr.synchronize()
  return x
end
r = mr.explore(many, { max = 50 })
T.check(not r.complete and r.schedules == 50, "max")
T.check(r.incomplete:find("max = 50", 1, true), "and why")
T.check(r.estimate > 1000, "and about how many there are")
T.check(tostring(r):find("(about ", 1, true), "told")
r = mr.explore(function()
  local s, x = { mr.stream(), mr.stream(), mr.stream() }, mr.zeros(1)
  mr.synchronize()
  for _ = 1, 120 do
    for k = 1, 3 do s[k]:run(function() x:mul_(k + 1) x:add_(k) end) end
  end
  mr.synchronize()
  return x
end, { max = 2 })
T.check(tostring(r):find("(more than 1e308 in all, by an estimate)", 1, true), "more than a number can say")
r = mr.explore(many, { time = 0.05 })
T.check(not r.complete and r.incomplete:find("time", 1, true), "time")
r = mr.explore(many, { seeds = 40, seed = 3 })
T.equal(r.schedules, 40, "samples")
T.check(not r.complete and r.estimate > 40, "with an estimate of their number")
r = mr.explore(lost_update, { preempt = 0 })
T.equal(r.schedules, 1, "the order of submission")
T.check(not r.complete, "is not all")
T.check(r.incomplete:find("at most 0 pairs run against the order of submission", 1, true), "and why")
r = mr.explore(lost_update, { preempt = 1 })
T.check(r.complete and r.schedules == 2, "a bound that excludes nothing leaves nothing out")
-- Four streams write one tensor: as many pairs run against the order of submission as a permutation has inversions.
local function permuted()
  local x = mr.zeros(1)
  mr.synchronize()
  for i = 1, 4 do mr.with(mr.stream(), function() x:fill_(i) end) end
  mr.synchronize()
  return x:item()
end
for inversions, permutations in ipairs { 4, 9, 15, 20, 23, 24 } do
  r = mr.explore(permuted, { preempt = inversions })
  T.equal(r.schedules, permutations, "at most so many inversions: " .. inversions)
  T.equal(r.complete, inversions == 6, "and then it is complete: " .. inversions)
end
r = mr.explore(permuted, { preempt = 6, max = 4 })
T.equal(#r.outcomes, 2, "the fewest come first: " .. tostring(r))

-- ---------------------------------------------------------------- what cannot be explored

local function refused(text, ...)
  local ok, err = pcall(...)
  T.check(not ok, "refused: " .. text)
  T.check(tostring(err):find(text, 1, true), ("expected %q in: %s"):format(text, tostring(err)))
end

local calls = 0
refused("not repeatable", mr.explore, function() calls = calls + 1; return calls end)
calls = 0
refused("first `1`, then `2`", mr.explore, function() calls = calls + 1; return "the same", calls end)
refused("not repeatable", mr.explore, function()
  calls = calls + 1
  local x = mr.zeros(1)
  if calls % 2 == 0 then x:add_(1) end
  return x
end)
refused("another object", mr.explore, function() -- the second event of a time, which only the call names
  calls = calls + 1
  local first, second, third = mr.event{timing = true}, mr.event{timing = true}, mr.event{timing = true}
  for _, event in ipairs{first, second, third} do event:record() end
  mr.synchronize()
  first:elapsed_time(calls % 2 == 0 and second or third)
end)
-- The decisive value is hidden from the function's own variables: no hazard, and still not called once.
local function fills(next_value)
  return function()
    local x = mr.zeros(1)
    x:fill_(next_value())
    return x
  end
end
local asked = 0
local random, deep, hidden = math.random, { { { { { { n = 0 } } } } } }, setmetatable({}, {
  __index = function()
    asked = asked + 1
    return asked
  end })
local draws = coroutine.wrap(function() while true do coroutine.yield(random(1e9)) end end)
_G.explored = { n = 0 } -- luacheck: ignore
refused("not repeatable", mr.explore, fills(function() return random(1e9) end))
refused("not repeatable", mr.explore, fills(draws))
refused("not repeatable", mr.explore, fills(function() return hidden.n end))
refused("not repeatable", mr.explore, fills(function()
  local last = deep[1][1][1][1][1]
  last.n = last.n + 1
  return last.n
end))
refused("not repeatable", mr.explore, fills(function()
  _G.explored.n = _G.explored.n + 1
  return _G.explored.n
end))
_G.explored = nil -- luacheck: ignore
local kept = {} -- so that no address is given to the next object
refused("the address of a table (`table: 0x...`)", mr.explore, function()
  kept[#kept + 1] = {}
  return "got " .. tostring(kept[#kept])
end)
refused("the address of a function", mr.explore, function()
  kept[#kept + 1] = function() return kept end
  return { tostring(kept[#kept]) }
end)
refused("it returns another value", mr.explore, function() -- a number that is no address
  calls = calls + 1
  return ("table: %d"):format(calls)
end)
refused("returns a stream", mr.explore, function() return mr.stream() end)
refused("returns a function", mr.explore, function() return print end)
refused("expected a function", mr.explore, 3)
refused("no option `maximum`", mr.explore, lost_update, { maximum = 3 })
refused("time: expected", mr.explore, lost_update, { time = 0 })
refused("grain", mr.explore, lost_update, { grain = 0 })
refused("mr.machine.step", mr.explore, function() mr.ones(1); mr.machine.step() end)
refused("mr.reset", mr.explore, function() mr.reset() end)
refused("chooser", mr.explore, function() mr.machine.chooser("random:3") end)
refused("no schedule", mr.replay, "abc", lost_update)
for _, text in ipairs { "", "mr1", "mr1 ", "mr1 g", "mr1 @", "mr1 g1 .", "mr1 g1 5 .6", "mr1 g1 @5 @4 .6",
  "mr1 g1 .6 5", "mr1 g99999 .3", "mr1 g1 @99999999999 .3",
  "mr1 g1 @-3 .3", "mr2 g1 .3", "mr1 g1 ..3",
  "mr1 g1 ^1 .3", "mr1 g1 +2 ^1 .3", "mr1 g1 -2 ^2 .3", "mr1 g1 -2 ^1 ^1 .3", "mr1 g1 @1 @2 @3 x .3" } do
  refused("no schedule", mr.replay, text, lost_update)
end
for i = 1, 40 do -- schedules of something else: an error, or a value
  local text = ("mr1 g%d @%d %d @%d %d %d .%d"):format(i % 3, i % 7, i % 5, i % 7 + i % 4, i % 11, i % 3, i)
  local ok, err = pcall(mr.replay, text, lost_update)
  T.check(ok or tostring(err):find("does not follow", 1, true), "a schedule that does not fit: " .. tostring(err))
end
refused("does not follow", mr.replay, "mr1 g1 @4 3 @7 99 .14", lost_update)
refused("the function calls mr.explore", mr.explore, function() return mr.explore(lost_update) end)

-- An error that is a table counts by what it has.
T.check(mr.explore(function() error({ 1 }) end).outcomes[1].error == "{1 = 1}", "an error without a text")
-- The delays of mr.stress leave the error of a host function to the function's own call.
local failing = mr.stress(function()
  mr.default_stream():host_func(function() error("in it", 0) end)
  mr.synchronize()
end, { runs = 8 })
T.check(#failing.outcomes == 1 and failing.outcomes[1].error:find("in it", 1, true), "a failing host function: "
  .. tostring(failing))

-- ---------------------------------------------------------------- a hazard's two orders, and tests by all schedules

local w = mr.explore(lost_update).hazards[1]:witness()
T.equal(w.in_order.value, 3.0, "the order of submission")
T.equal(w.reversed.value, 1.0, "and the other one")
T.check(not w.benign and tostring(w):find("before", 1, true), "differ")
do -- both schedules are drawn, and the pair is marked: the marks change places
  local columns = {}
  for line in tostring(w):gmatch("[^\n]+") do columns[#columns + 1] = line:match("^    .-()!") end
  T.check(#columns == 4 and columns[1] < columns[2] and columns[3] > columns[4],
    "two lanes of each schedule with a mark: " .. tostring(w))
  local first, path = w.in_order.trace.hazards, os.tmpname()
  T.equal(#first, 1, "the pair alone is marked in the timeline")
  T.equal(first[1].kind, "read-after-write", "with what the report says")
  for _, saved in ipairs { w, mr.explore(lost_update) } do
    saved:save(path .. ".html")
    local file <close> = assert(io.open(path .. ".html"))
    local page = file:read("a")
    T.check(page:find('"switches":true', 1, true), "a page of outcomes")
    local _, labels = page:gsub('"label":"[^"]*3%.0"', "")
    local _, others = page:gsub('"label":"[^"]*1%.0"', "")
    T.check(labels == 1 and others == 1, "which names both")
    local fine, err = pcall(saved.save, saved, path .. ".svg")
    T.check(not fine and tostring(err):find("ends with .html", 1, true), "no picture: " .. tostring(err))
  end
  os.remove(path)
  os.remove(path .. ".html")
end
local function long_names() -- the steps between the two have no room in a line
  local a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(1)
  mr.synchronize()
  mr.op{name = ("x"):rep(60), writes = {x}, stream = a}
  mr.op{name = ("y"):rep(60), writes = {x}, stream = b}
  mr.synchronize()
  return x:item()
end
T.check(not tostring(mr.explore(long_names).hazards[1]:witness()):find("!", 1, true), "then both sentences stay")
w = mr.explore(two(function(a, b, x)
  a:run(function() x:fill_(2) end)
  b:run(function() x:fill_(2) end)
  mr.synchronize()
  return x:item()
end)).hazards[1]:witness()
T.check(w.benign, "a benign race")

T.check(tostring(mr.explore(lost_update).hazards[1]):find("hazard: read-after-write", 1, true),
  "a hazard prints itself")

local function use_after_free()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local x, y = mr.full({256}, 1), nil
  mr.synchronize()
  b:run(function() y = x:sum() end)
  a:run(function()
    x:free()
    x = mr.full({256}, 7)
  end)
  mr.synchronize()
  return y:item()
end
r = mr.explore(use_after_free)
T.equal(#r.outcomes, 2, "memory that is freed too early")
w = r.hazards[1]:witness()
T.equal(w.in_order.value, 256.0, "the use before the memory is used again")
T.equal(w.reversed.value, 1792.0, "and after that")
T.check(tostring(w):find("is used again", 1, true), "says so: " .. tostring(w))
w = mr.explore(function()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local x, y = mr.full({256}, 1), nil
  mr.synchronize()
  b:run(function() y = x:sum() end)
  x:free{stream = a}
  mr.synchronize()
  return y:item()
end).hazards[1]:witness()
T.check(w.in_order and not w.reversed and tostring(w):find("does not use the memory again", 1, true),
  "memory that nobody uses again: " .. tostring(w))

-- A stream has one number in the steps of all outcomes, though each run makes one of its own.
local function unnamed()
  local a, b, x = mr.stream(), mr.stream(), mr.zeros(1)
  mr.synchronize()
  mr.with(a, function() x:add_(1) end)
  mr.with(b, function() x:mul_(3) end)
  mr.synchronize()
  return x:item()
end
r = mr.explore(unnamed)
local numbers = {}
for _, o in ipairs(r.outcomes) do
  for number in o.steps:gmatch("stream (#%d+)") do numbers[number] = true end
end
local count = 0
for _ in pairs(numbers) do count = count + 1 end
T.equal(count, 2, "two streams have two numbers: " .. tostring(r))

-- Two operations at one line, on streams without a name; and two of several rounds of the same two lines.
local function one_line()
  local x = mr.zeros(1)
  mr.synchronize()
  for i = 1, 2 do mr.with(mr.stream(), function() x:mul_(i + 1); x:add_(i) end) end
  mr.synchronize()
  return x:item()
end
w = mr.explore(one_line).hazards[1]:witness()
T.check(w.in_order and w.reversed, "one line: " .. tostring(w))
T.equal(w.in_order.value, 5.0, "one line, in the order of submission")
T.equal(w.reversed.value, 3.0, "and the other way round")
local function late_round()
  local a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(1)
  mr.synchronize()
  for i = 1, 3 do
    b:wait_stream(a)
    mr.with(b, function() x:mul_(2) end)
    if i < 3 then a:wait_stream(b) end
    mr.with(a, function() x:add_(i) end)
  end
  mr.synchronize()
  return x:item()
end
r = mr.explore(late_round)
T.equal(r.schedules, 2, "the last round races")
T.check(r.outcomes[2].difference[1]:find("^`%S+` %(%S+, the 3rd time%) before `%S+` %(%S+, the 3rd time%)$"),
  "which round it is: " .. r.outcomes[2].difference[1])
w = r.hazards[1]:witness()
T.equal(w.in_order.value, (1 * 2 + 2) * 2 + 3.0, "the third round of both lines: " .. tostring(w))
T.equal(w.reversed.value, ((1 * 2 + 2) + 3) * 2.0, "and the other way round")

r = mr.explore(function() return mr.empty(4):sum():item() end)
T.equal(r.hazards[1].kind, "uninitialised-read", "a read of what nothing has written")
T.equal(r.claim, "conditional", "the claim depends on what is read there")
T.equal(r.not_followed[1], "This holds if memory that nothing has written reads as in this run.", "the condition")
w = r.hazards[1]:witness()
T.check(not w.benign and not w.in_order and #w.outcomes == 1, "has no two orders")
T.check(tostring(w):find("the memory that is read was not written", 1, true)
  and tostring(w):find("comes to 1 outcome", 1, true), "says so: " .. tostring(w))

r = mr.explore(function()
  local a, b, z = mr.stream{name = "a"}, mr.stream{name = "b"}, nil
  a:run(function()
    local x = mr.full({2}, 1)
    x:free()
  end)
  b:run(function() z = mr.empty(2) end)
  mr.synchronize()
  return z
end)
T.check(#r.hazards == 0 and #r.outcomes == 2, "unset memory that depends on the allocation")
local steps = r.outcomes[1].steps .. r.outcomes[2].steps
T.check(steps:find("reuses the memory of the tensor of [^\n]*explore.lua:%d+ %(freed at [^\n]*explore.lua:%d+%) host"),
  "and the steps tell it: " .. steps)
T.check(steps:find("\nalloc  ", 1, true), "other memory is an allocation: " .. steps)

-- A choice of the pool that comes to the same memory is no choice.
local function two_frees(own)
  return function()
    local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
    local x, y = mr.with(a, mr.full, 2, 1), mr.with(b, mr.full, 2, 1)
    x:name("left")
    mr.with(a, function() x:free() end)
    if own then mr.with(b, function() y:free() end) end
    local z = mr.with(b, mr.full, 2, 3)
    mr.synchronize()
    return z
  end
end
r = mr.explore(two_frees(true), { full = true })
T.equal(r.schedules, 1, "its own stream's memory is there at once")
r = mr.explore(two_frees(false), { full = true })
T.check(r.schedules == 2 and r.deterministic, "another stream's is there when the free is over")
r = mr.explore(two_frees(false))
T.check(r.schedules == 1 and r.deterministic, "and no value depends on it")

local timeline = mr.explore(lost_update).outcomes[1].trace
T.check(#timeline.spans > 2, "an outcome has a timeline")

T.expect_outcomes(lost_update, { 1.0, 3.0 })
T.raises("invalid-argument", T.expect_outcomes, lost_update, { 1.0 })
T.raises("invalid-argument", T.expect_outcomes, lost_update, { 1.0, 3.0, 4.0 })
T.raises("invalid-argument", T.expect_deterministic, lost_update)
T.equal(T.expect_deterministic(function() return mr.ones(3):sum():item() end), 3.0, "deterministic")
T.expect_overlap(function()
  mr.stream{name = "left"}:run(function() mr.spin{ms = 2} end)
  mr.stream{name = "right"}:run(function() mr.spin{ms = 2} end)
  mr.synchronize()
end, "left", "right", 1)

-- ---------------------------------------------------------------- delays at random

local stressed = mr.stress(lost_update, { runs = 60, seed = 5 })
T.equal(stressed.runs, 60, "runs")
T.equal(values(stressed), "1.0 3.0", "delays show both orders")
for _, o in ipairs(stressed.outcomes) do
  local again = mr.stress(lost_update, { runs = 1, seed = o.seed })
  T.equal(again.outcomes[1].value, o.value, "a seed can be repeated")
end
T.check(tostring(stressed):find("60 runs, 2 outcomes", 1, true), "it is shown")
stressed = mr.stress(function()
  local a, b = mr.stream(), mr.stream()
  local x = mr.zeros(2)
  mr.synchronize()
  a:run(function() x:add_(1) end)
  b:wait_stream(a)
  b:run(function() x:mul_(3) end)
  return x
end, { runs = 20 })
T.equal(#stressed.outcomes, 1, "ordered work has one value")
T.equal(stressed.outcomes[1].value:sum():item(), 6.0, "the right one")
T.equal(mr.stress(function() error("no", 0) end, { runs = 2 }).outcomes[1].error, "no", "an error")
refused("no option", mr.stress, lost_update, { run = 3 })
refused("runs", mr.stress, lost_update, { runs = 0 })
refused("ms", mr.stress, lost_update, { ms = -1 })
refused("schedule", mr.stress, lost_update, { schedule = 3 })
refused("schedule: no delays", mr.stress, lost_update, { schedule = "mr1 g1 .0", seed = 3 })
refused("no schedule of mr.explore", mr.stress, lost_update, { schedule = "mr1" })
refused("patience: only a schedule", mr.stress, lost_update, { patience = 5 })
refused("patience: expected 1 to", mr.stress, lost_update, { schedule = "mr1 g1 .0", patience = 0 })
refused("patience: expected 1 to", mr.stress, lost_update, { schedule = "mr1 g1 .0", patience = "5" })
refused("patience: expected 1 to", mr.stress, lost_update, { schedule = "mr1 g1 .0", patience = 0 / 0 })

-- ---------------------------------------------------------------- one schedule in each run

for _, o in ipairs(mr.explore(lost_update).outcomes) do
  local steered = mr.stress(lost_update, { runs = 5, schedule = o.schedule })
  T.equal(#steered.outcomes, 1, "a schedule has one outcome")
  T.equal(steered.outcomes[1].value, o.value, "the one that the search found")
  T.equal(steered.outcomes[1].count, 5, "in each run")
  T.equal(steered.followed, 5, "it was followed")
  T.equal(steered.unfollowed, nil, "always")
  T.check(tostring(steered):find("5 runs, 1 outcome, 5 in the order of the schedule", 1, true), "it is shown")
  steered = mr.stress(function() return mr.ones(2) end, { runs = 2, schedule = o.schedule })
  T.equal(steered.followed, 0, "another function")
  T.check(tostring(steered):find("could not be followed", 1, true), "that is shown")
  T.equal(steered.outcomes[1].value:sum():item(), 2.0, "a tensor is the outcome")
end

-- peek is no access that the search could order

local function peeks(a, b, x)
  a:run(function() x:add_(1) end)
  b:run(function() x:mul_(3) end)
  a:synchronize()
  return x:peek():item()
end
for _, fn in ipairs { two(peeks), two(function(...) return (pcall(peeks, ...)) end) } do
  local fine, err = pcall(mr.explore, fn)
  T.check(not fine and tostring(err):find("the function calls t:peek()", 1, true), "refused, also where it is caught")
end
T.check(mr.ones(1):peek():item(), "permitted afterwards")
T.equal(#mr.stress(two(peeks), { runs = 1 }).outcomes, 1, "permitted in stress")

-- functions that cannot be called again: the error names the reason

local function ended_by(what, expected, work)
  local fine, err = pcall(work)
  T.check(not fine and tostring(err):find(expected, 1, true), what .. ": " .. tostring(err))
end

local y, s = mr.ones(4), mr.stream()
mr.synchronize()
ended_by("free", "frees a tensor from outside (", function() mr.explore(function() y:free() end) end)
ended_by("close", "closes a stream from outside (", function() mr.stress(function() s:close() end, { runs = 2 }) end)
ended_by("capture", "while a stream is captured", function() mr.graph(function() mr.explore(lost_update) end) end)
local mode = mr.hazard.mode("error")
ended_by("mode", "not with hazard mode", function() mr.explore(lost_update) end)
mr.hazard.mode(mode)
local z = mr.ones(4)
mr.synchronize()
local g = mr.graph(function() z:add_(1) end)
local function launch()
  g:launch()
  mr.synchronize()
  return z:sum():item()
end
ended_by("graph", "A graph from outside must have been launched before", function()
  mr.explore(launch, { full = true }) -- else it is called once, as nothing in it depends on the order
end)
T.equal(mr.explore(launch).outcomes[1].value, 8.0, "a graph that was launched")
r = mr.explore(function()
  mr.stream():close()
  mr.ones(4):free()
end)
T.check(r.deterministic, "its own may be freed and closed")
T.equal(#mr.explore(lost_update).outcomes, 2, "explored after an error")

-- A time that another order changes is no query that said no.
do
  local a, b, x = mr.stream(), mr.stream(), mr.zeros(64)
  local told = tostring(mr.explore(function()
    local from, to = mr.event{timing = true}, mr.event{timing = true}
    from:record(a)
    a:run(function() mr.spin{ms = 1} x:fill_(1) end)
    b:run(function() mr.spin{ms = 2} x:add_(2) end)
    to:record(b)
    mr.synchronize()
    return from:elapsed_time(to)
  end))
  T.check(told:find("`elapsed_time` has another answer", 1, true), told)
  T.check(not told:find("says no", 1, true), told)
end

T.equal(mr.machine.chooser(), "timed", "the chooser is put back")
