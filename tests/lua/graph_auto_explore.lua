-- mr.explore and its relatives inside of a function of mr.graph.auto. At their end they put back the state after the
-- call's earlier operations, whether these had been submitted or were held back.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("auto-explore")

local inner = {
  explore = function(x) mr.explore(function() return x[1]:item() end) end,
  failing = function() pcall(mr.explore, function() error("stop") end) end,
  deterministic = function() T.expect_deterministic(function() return 1 end) end,
  outcomes = function() T.expect_outcomes(function() return 1 end, {1}) end,
  replay = function(x) pcall(mr.replay, "1", function() return x[1]:item() end) end,
  stress = function() mr.stress(function() return 1 end, {runs = 2}) end,
}

-- The values after each of five calls; the third runs `call`.
local function values(wrap, call)
  local x, n, out = mr.zeros(8), 0, {}
  local f = wrap(function()
    n = n + 1
    x:add_(1)
    if n == 3 then call(x) end
    x:add_(1)
  end)
  for i = 1, 5 do
    f()
    out[i] = x[1]:item()
  end
  return table.concat(out, " ")
end

for name, call in pairs(inner) do
  T.equal(values(function(fn) return fn end, call), "2.0 4.0 6.0 8.0 10.0", name .. ", without mr.graph.auto")
  T.equal(values(mr.graph.auto, call), "2.0 4.0 6.0 8.0 10.0", name)
end

local x, n, seen = mr.zeros(8), 0, nil
mr.synchronize()
local f = mr.graph.auto(function()
  n = n + 1
  x:add_(1)
  if n == 3 then seen = mr.explore(function() return x[1]:item() end).outcomes[1].value end
end)
for _ = 1, 3 do f() end
T.equal(seen, 3.0, "the explored function sees what was held back")
T.check(mr.graph.why(f):match("`explore` at .*graph_auto_explore.lua:%d"), "why names the line")
