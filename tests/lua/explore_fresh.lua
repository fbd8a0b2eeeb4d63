-- virtual only: mr.explore
-- Host memory that nothing has written reads as zero in a function that is called again and again, whatever the C
-- library has there. So an early read of it is one outcome, the same in each run and in each process.
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: functions that read too early
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("explore_fresh")

-- Memory that the C library hands out next for so many bytes is not zero.
local function litter(options)
  local used = {}
  for i = 1, 8 do used[i] = mr.full({ 64 }, 7, options) end
  for i = 1, 8 do used[i]:free() end
end

local function is_zero(t)
  for _, value in ipairs(t:totable()) do if value ~= 0 then return false end end
  return true
end

for what, options in pairs{ pinned = { pinned = true }, pageable = { device = "cpu" } } do
  local function fresh() return mr.empty(64, options) end
  litter(options)
  local r = mr.explore(fresh, { full = true })
  T.equal(#r.outcomes, 1, what .. " memory: one outcome")
  T.check(is_zero(r.outcomes[1].value), what .. " memory is zero: " .. tostring(r))
  litter(options)
  T.check(is_zero(mr.replay(r.outcomes[1].schedule, fresh)), what .. " memory is zero in a replay")
  litter(options)
  r = mr.stress(fresh, { runs = 3 })
  T.equal(#r.outcomes, 1, what .. " memory: the same in each run")
  T.check(is_zero(r.outcomes[1].value), what .. " memory is zero under delays: " .. tostring(r))
end

-- The common mistake: the copy is read before it is done.
litter{ pinned = true }
local x = mr.ones(64)
mr.synchronize()
local r = mr.explore(function() return x:cpu{ non_blocking = true }[1]:item() end)
local values = {}
for i, o in ipairs(r.outcomes) do values[i] = o.value end
table.sort(values)
T.equal(table.concat(values, " "), "0.0 1.0", "read before the copy, and after it")

-- Device memory that another call has written reads as zero in the next one, little of it or much.
for _, n in ipairs{ 8, 8000, 9000, 200000 } do
  local function used(count)
    local t = mr.full({ count }, 7)
    mr.synchronize()
    return t
  end
  mr.explore(function() return used(n) end)
  mr.explore(function() return used(8) end)
  local o = mr.explore(function() return mr.empty(n) end).outcomes[1]
  T.equal(o.value:sum():item(), 0.0, n .. " elements of the device")
end

-- The result says on what it rests, also where no command has read such memory.
local CONDITION = "This holds if memory that nothing has written reads as in this run."
local function rests_on(fn)
  local result = mr.explore(fn)
  local text = table.concat(result.not_followed or {}, "\n")
  return text:find(CONDITION, 1, true) and result.claim == "conditional"
end
T.check(rests_on(function() return mr.empty(2) end), "returned")
T.check(rests_on(function() return { inside = mr.empty(2, { device = "cpu" }) } end), "returned in a table")
T.check(rests_on(function() return mr.zeros(2):copy_(mr.empty(2)) end), "copied")
T.check(rests_on(function() local t = mr.empty(2) t[1]:fill_(1) return t end), "in part")
T.check(not rests_on(function() return mr.empty(2):fill_(1) end), "written")
T.check(not rests_on(function() local t = mr.empty(2) t[1]:fill_(1) return t[1] end), "the part that is written")

-- So it does where a read races with the first write of its bytes: coming first, it finds what new memory holds. What
-- comes before the read for certain may have written them in parts; a kernel may have written less than it could.
local some = mr.kernel[[extern "C" __global__ void some(float *t) { if (threadIdx.x < 1) t[threadIdx.x] = 0; }]]
local function race(options, before, write)
  return function()
    local a, b, t, y = mr.stream(), mr.stream(), mr.empty(2, options), mr.zeros(2)
    if before then before(t) end
    mr.synchronize()
    write(a, t)
    b:run(function() y:copy_(t, { non_blocking = true }) end)
    mr.synchronize()
    return y
  end
end
local zero = mr.zeros(2)
mr.synchronize()
local function zeros(a, t) a:run(function() t:copy_(zero, { non_blocking = true }) end) end
local function halves(t) t[{{1, 1}}]:zero_() t[{{2, 2}}]:zero_() end
for what, options in pairs{ device = {}, pinned = { pinned = true } } do
  T.check(rests_on(race(options, nil, zeros)), what .. ": read before the only write")
  T.check(rests_on(race(options, function(t) t[{{1, 1}}]:zero_() end, zeros)), what .. ": a half was written")
  T.check(not rests_on(race(options, halves, zeros)), what .. ": both halves were written")
  T.check(rests_on(race(options, nil, function(a, t) zeros(a, t) zeros(a, t) end)), what .. ": written twice")
end
T.check(rests_on(race({}, function(t) some[{1, 2}](t) end, zeros)), "a kernel")
T.check(rests_on(race({ pinned = true }, nil, function(a, t) a:host_func(function() t:zero_() end) end)), "a function")
T.check(not rests_on(race({ pinned = true }, function(t) mr.default_stream():host_func(function() halves(t) end) end,
  zeros)), "a function has written both halves")
-- The host's read decides: the race is behind one of two values.
T.check(rests_on(function()
  local a, b, n = mr.stream(), mr.stream(), mr.zeros(1)
  mr.synchronize()
  a:run(function() n:add_(1) end)
  if b:run(function() return n:item() end) > 0 then return 1 end
  return race({}, nil, zeros)()
end), "behind a value")

-- The one outcome holds only for these bytes: another run may find those of an earlier tensor there.
do
  local one = mr.explore(function() return mr.empty(1, {dtype = "f32"}):item() end)
  T.equal(#one.outcomes, 1)
  T.equal(tostring(one):match("^[^\n]+"),
    "1 schedule, 1 outcome: deterministic but for memory that nothing has written")
end
