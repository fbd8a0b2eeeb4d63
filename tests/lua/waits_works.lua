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

waits = judged(function(x)
  local w = dist.all_reduce(x, { async = true })
  w:synchronize() at = line()
end)
T.equal(waits[at].kind, "synchronize", "w:synchronize()")
T.equal(waits[at].verdict, "together", "the device is waited for after it")

waits, result = judged(function() dist.barrier() at = line() end)
T.check(not waits[at], "the host's wait in a barrier cannot go: " .. tostring(result))
