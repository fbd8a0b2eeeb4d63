-- timeout: 300
-- Races whose effects reach nobody: what is left out where time is over is said to come to the same outcome. Random
-- programs are explored to the end, too, and with memory that is freed while somebody uses it.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: functions that race
local mr = require "millrace"
local T = require "millrace.testing"

local BRIEF = { max = 1 } -- the first schedule, and what follows from the program

local function brief(fn) return mr.explore(fn, BRIEF) end

-- ---------------------------------------------------------------- which programs

local function racing(ends)
  return function()
    local a, b = mr.stream(), mr.stream()
    local x, y = mr.zeros(4), mr.ones(4)
    mr.synchronize()
    for _ = 1, 3 do
      a:run(function() x:add_(1) end)
      b:run(function() x:mul_(3) end)
    end
    mr.synchronize()
    return ends(x, y)
  end
end

local r = brief(racing(function() return 7 end))
T.check(r.complete and r.unseen and r.deterministic ~= nil and #r.outcomes == 1, tostring(r))
T.check(tostring(r):find("all others, which were not tried", 1, true), tostring(r))
r = brief(racing(function(_, y) return y end))
T.check(r.complete and r.unseen, "another tensor: " .. tostring(r))
r = brief(racing(function(x) return x end))
T.check(not r.complete and not r.unseen, "the tensor")
r = brief(racing(function(x) return x:sum() end))
T.check(not r.unseen, "what is made of it")
r = brief(racing(function(x) local _ = x[1]:item() end))
T.check(not r.unseen, "a value that the host reads, whatever it does with it")
r = brief(racing(function(x, y) y:index_select(1, x:to("i64")) end))
T.check(not r.unseen, "an index: it may be out of range")
r = brief(racing(function(x, y) return y:add(x):sub(x) end))
T.check(not r.unseen, "whatever it is for")
local r_all = mr.explore(racing(function() return 7 end))
T.check(r_all.complete and not r_all.unseen and r_all.schedules == 20, "all are tried where there is time")

-- Memory that is written after its free may be another tensor's.
local function freed(late)
  return function()
    local a, b = mr.stream(), mr.stream()
    local kept, out
    a:run(function() kept, out = mr.ones(256), mr.zeros(256) end)
    mr.synchronize()
    a:run(function()
      b:run(function() late(kept, out) end)
      kept:free()
    end)
    local new
    a:run(function() new = mr.full({ 256 }, 5, { dtype = "f32" }) end)
    mr.synchronize()
    return new
  end
end

r = brief(freed(function(kept, out) out:copy_(kept) end))
T.check(r.unseen, "it is read then, and nobody sees that: " .. tostring(r))
r = brief(freed(function(kept) kept:fill_(9) end))
T.check(not r.unseen, "it is written then")
T.check(#mr.explore(freed(function(kept) kept:fill_(9) end)).outcomes > 1, "and is the new tensor")

-- ---------------------------------------------------------------- random programs

local state = 1
local function below(n)
  state = (state * 6364136223846793005 + 1442695040888963407) & math.maxinteger
  return (state >> 33) % n + 1
end

-- A list of steps, so that each call does the same.
local function random_program()
  local steps, count = {}, 4 + below(5)
  for i = 1, count do
    steps[i] = { kind = below(9), stream = below(2), to = below(4), from = below(4), value = below(3) }
  end
  return steps, below(5), below(3)
end

local function runner(steps, returned, reads)
  return function()
    local s, t, free = { mr.stream(), mr.stream() }, {}, {}
    local e = mr.event()
    for i = 1, 4 do t[i] = mr.full({ 2 }, i, { dtype = "f32" }) end
    mr.synchronize()
    local read
    for _, step in ipairs(steps) do
      local to, from, kind = t[step.to], t[step.from], step.kind
      s[step.stream]:run(function()
        if kind == 9 and not free[step.to] then
          to:free()
          free[step.to], t[step.to] = false, mr.full({ 2 }, 7, { dtype = "f32" })
        elseif kind == 1 then to:fill_(step.value)
        elseif kind == 2 and to ~= from then to:copy_(from)
        elseif kind == 3 then to:mul_(2):add_(step.value)
        elseif kind == 4 and to ~= from then to:add_(from)
        elseif kind == 5 then e:record()
        elseif kind == 6 then s[step.stream]:wait_event(e)
        elseif kind == 7 then t[step.to] = from:clone()
        elseif kind == 8 and reads == 1 then read = from[1]:item()
        end
      end)
    end
    mr.synchronize()
    return t[returned], reads == 1 and read and read > 3
  end
end

local PROGRAMS = os.getenv("MILLRACE_LONG") and 20000 or os.getenv("MILLRACE_SHORT") and 200 or 400
local racy, unseen, hidden = 0, 0, 0
for i = 1, PROGRAMS do
  local steps, returned, reads = random_program()
  local fn = runner(steps, returned, reads)
  local all = mr.explore(fn, { max = 20000 })
  if all.complete and all.schedules > 1 then
    racy = racy + 1
    local short = brief(fn)
    if short.unseen then
      unseen = unseen + 1
      T.equal(#all.outcomes, 1, ("program %d is said to have one outcome: %s"):format(i, tostring(all)))
      T.check(short.outcomes[1].error == all.outcomes[1].error, "the same")
    elseif #all.outcomes == 1 then hidden = hidden + 1 end
  end
end
T.check(racy > PROGRAMS / 10 and unseen > PROGRAMS / 40,
  ("%d racy programs, %d unseen, %d more of one outcome"):format(racy, unseen, hidden))
print(("%d programs, %d racy, %d unseen, %d more of one outcome"):format(PROGRAMS, racy, unseen, hidden))
