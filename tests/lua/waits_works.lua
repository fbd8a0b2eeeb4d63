-- mr.waits: the waits of a collective's work are waits of the line that calls them; those that mr.dist makes itself are
-- not judged.
-- options: --device virtual:2
-- virtual only: two ranks
-- not checked: waits are left out
-- not replayed: ranks have a clock each
local mr = require "millrace"
local T = require "millrace.testing"
local dist = mr.dist

T.rule "waits_works"

local function line() return debug.getinfo(2, "l").currentline end

local function judged(work)
  local result = mr.waits(function()
    dist.spawn(2, function(rank)
      local x = mr.ones(1)
      work(x, rank)
      mr.synchronize()
      x:cpu()
    end)
  end)
  local by_line = {}
  for _, w in ipairs(result.waits) do by_line[tonumber(w.where:match(":(%d+)$"))] = w end
  return by_line, result
end

local at
local waits, result = judged(function(x)
  local w = dist.all_reduce(x, { async = true })
  w:wait() at = line()
  x:add_(1)
end)
T.check(waits[at], "w:wait() is counted: " .. tostring(result))
T.equal(waits[at].kind, "wait_event", "its kind")
T.equal(waits[at].verdict, "needed", "x is used after it")
T.equal(waits[at].rounds, 2, "of two ranks")
T.check(waits[at].because:find("`add_` at line " .. at + 1 .. " may read `x` before `all_reduce` at line " .. at - 1, 1,
  true), waits[at].because)
T.check(not waits[at - 1], "the wait inside all_reduce is no wait of the script's")

-- Only rank 0 uses its tensor again, and rank 1, which comes last, submits the collective.
waits, result = judged(function(mine, rank)
  local w = dist.all_reduce(mine, { async = true })
  w:wait() at = line()
  if rank == 0 then mine:add_(1) end
end)
T.check(waits[at] and waits[at].because:find("`add_` at line " .. at + 1 .. " may read `[mx]", 1), tostring(result))

waits = judged(function(x)
  local w = dist.all_reduce(x, { async = true })
  w:synchronize() at = line()
end)
T.equal(waits[at].kind, "synchronize", "w:synchronize()")
T.equal(waits[at].verdict, "together", "the device is waited for after it")

waits, result = judged(function() dist.barrier() at = line() end)
T.check(not waits[at], "the host's wait in a barrier cannot go: " .. tostring(result))

-- A look that finds a hazard ends there, which may be between two members of a collective. The looks after it must see
-- all hazards nevertheless.
local lines = {}
result = mr.waits(function()
  local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
  local f = mr.stream{name = "f", device = 1}
  local x, z, far = mr.zeros(4, {name = "x"}), mr.zeros(4, {name = "z"}), mr.zeros(4, {device = 1, name = "far"})
  local comms = mr.nccl.comms{0, 1}
  mr.synchronize(1)
  mr.synchronize(0)
  a:run(function() z:sum() end)
  b:run(function() z:sum() end)
  mr.barrier{a, b}
  c:run(function() x:mul_(2) end)
  local done = c:record_event()
  c:wait_stream(a) lines[1] = line()
  c:wait_stream(b) lines[2] = line()
  c:run(function() z:mul_(8) end)
  b:wait_event(done) lines[3] = line()
  mr.nccl.group(function()
    comms[1]:all_reduce(x, {stream = b})
    comms[2]:all_reduce(far, {stream = f})
  end)
end)
local verdicts = {}
for _, w in ipairs(result.waits) do verdicts[tonumber(w.where:match(":(%d+)$"))] = w.verdict end
T.equal(table.concat({ verdicts[lines[1]], verdicts[lines[2]], verdicts[lines[3]] }, " "), "together together needed",
  tostring(result))
T.equal(result.sufficient, 5, "two of the host, two of `c`, and that of `b`: " .. tostring(result))
