-- Changes of a function of mr.explore beside tensors are undone before it is called again, and after the last call.
-- They are peer access, the ranks of a world of one, a trace that it starts, the way of launching.
-- options: --device virtual:2
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: functions that race
local mr = require "millrace"
local T = require "millrace.testing"
local dist = mr.dist

T.rule "explore_put_back"

-- Two outcomes by a race, and what `work` returns.
local function racing(work)
  return function()
    local a, b = mr.stream{ name = "a" }, mr.stream{ name = "b" }
    local x = mr.zeros(1)
    mr.synchronize()
    a:run(function() x:add_(1) end)
    b:run(function() x:mul_(3) end)
    mr.synchronize()
    return x, work(x)
  end
end

local function check(what, work)
  local fine, r = pcall(mr.explore, racing(work))
  T.check(fine, what .. ": " .. tostring(r))
  if fine then T.equal(#r.outcomes, 2, what) end
  return fine and r
end

-- ---------------------------------------------------------------- peer access

local function enable() return (pcall(function() mr.device(0):enable_peer_access(1) end)) end

local r = check("peer access", enable)
for _, o in ipairs(r.outcomes) do T.equal(o.values[2], true, "it is not enabled before") end
for _, line in ipairs(r.not_followed or {}) do T.check(not line:find "a setting", line) end
T.equal(mr.stress(function() return enable() end, { runs = 3 }).outcomes[1].value, true, "nor in a stress")
T.check(enable(), "nor after")
T.check(not enable(), "now it is")
r = check("peer access of before", enable)
for _, o in ipairs(r.outcomes) do T.equal(o.values[2], false, "that of before stays") end

-- ---------------------------------------------------------------- launch-blocking

check("mr.launch_blocking(false)", function() return mr.launch_blocking(false) end)
T.equal(#mr.stress(function() return mr.launch_blocking(true) end, { runs = 3 }).outcomes, 1, "as before in each run")
T.check(not mr.launch_blocking(), "as before after the runs")

-- ---------------------------------------------------------------- a world of one

local RANKS = {
  barrier = function() dist.barrier() end,
  all_reduce = function(x) dist.all_reduce(x) end,
  async = function(x) dist.all_reduce(x, { async = true }):wait() end,
  group = function(x) dist.all_reduce(x, { group = dist.new_group{ 0 } }) end,
  ["destroy and init"] = function(x)
    dist.init()
    dist.barrier()
    dist.destroy()
    dist.init()
    dist.all_reduce(x)
  end,
}
for name, work in pairs(RANKS) do check("a world of one, new: " .. name, work) end
local outer = dist.new_group{ 0 }
for name, work in pairs(RANKS) do check("a world of one, of before: " .. name, work) end
check("a group of before", function(x) dist.all_reduce(x, { group = outer, async = true }):wait() end)
dist.all_reduce(mr.ones(1), { group = outer })

-- ---------------------------------------------------------------- a trace

check("mr.trace.start", function() mr.trace.start() end)
check("mr.trace", function()
  mr.trace.start()
  mr.spin{ ms = 1 }
  return #mr.trace.stop().spans
end)
T.check(not pcall(mr.trace.stop), "no trace is left")
mr.trace.start()
check("a trace of before", function()
  local fine, err = pcall(mr.trace.stop)
  T.check(not fine and tostring(err):find("a trace from outside", 1, true), tostring(err))
end)
T.check(#mr.trace.stop().spans > 0, "it goes on")

-- ---------------------------------------------------------------- what the checker says

check("mr.hazard.mode", function() return mr.hazard.mode() end)
check("mr.hazard.reports", function() return #mr.hazard.reports() end)
check("mr.hazard.readable", function(x) return mr.hazard.readable(x) == nil end)
T.equal(mr.explore(function() return mr.hazard.mode() end).outcomes[1].value, "off", "the mode of a plain call")

-- ---------------------------------------------------------------- counts of a kernel

local k = mr.kernel([[extern "C" __global__ void count(float *x) { x[0] += 1; }]], "count")
local function count(reset)
  return function(x)
    if reset then k:profile{ reset = true } end
    k[{ 1, 1 }](x)
    mr.synchronize()
    return k:profile().launches
  end
end
local fine, err = pcall(mr.explore, racing(count(false)))
T.check(not fine and tostring(err):find("The function calls k:profile(), which counts the launches of all runs: call "
  .. "k:profile{reset = true} before the launches (", 1, true), tostring(err))
check("k:profile after a reset", count(true))

-- ---------------------------------------------------------------- a full launch queue (R56)

local function behind(launches)
  local a = mr.stream{ name = "a" }
  local p, one, y = mr.zeros(1, { device = "cpu", pinned = true }), mr.ones(1), mr.zeros(1)
  mr.synchronize()
  mr.memcpy_async(p, one, { stream = a })
  a:run(function() for _ = 1, launches do y:add_(1) end end)
  return p:item()
end
local depth = mr.machine.settings().launch_queue_depth
mr.machine.settings{ launch_queue_depth = 20 }
r = mr.explore(function() return behind(30) end)
T.equal(#r.outcomes, 2, "the host is in front of the copy, or behind it: " .. tostring(r))
for _, o in ipairs(r.outcomes) do
  T.equal(mr.replay(o.schedule, function() return behind(30) end), o.value, "replayed: " .. o.schedule)
end
T.equal(mr.machine.settings().launch_queue_depth, 20, "the setting is put back")
mr.machine.settings{ launch_queue_depth = depth }
