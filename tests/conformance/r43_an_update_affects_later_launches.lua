-- R43: an update affects the launches after it. Nodes and edges must be the same; else it fails and the executable
-- is as it was. Nodes can be disabled, and single nodes be given other tensors and numbers.
-- Guaranteed: CUDA Runtime API, cudaGraphExecUpdate, cudaGraphNodeSetEnabled, cudaGraphExecKernelNodeSetParams.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R43"

local s = mr.stream{name = "s"}
local x, y = mr.zeros(4), mr.zeros(4)
mr.synchronize()
local g = mr.graph(function() mr.spin{ms = 2}; x:fill_(1) end)
g:launch(s)
local early = s:run(function() return x:clone() end)
g:update(function() mr.spin{ms = 1}; x:fill_(2) end)
g:launch(s)
s:synchronize()
T.equal(early:sum():item(), 4.0, "the first launch has the old number")
T.equal(x:sum():item(), 8.0, "the second has the new one")
g:update(function() mr.spin{ms = 1}; y:fill_(3) end)
g:launch(s)
s:synchronize()
T.equal(y:sum():item(), 12.0, "other tensors")

for name, fn in pairs{
  ["another operation"] = function() mr.spin{ms = 1}; x:neg_() end,
  ["a node more"] = function() mr.spin{ms = 1}; x:fill_(1); x:fill_(2) end,
  ["a node less"] = function() mr.spin{ms = 1} end,
  ["other edges"] = function()
    local origin = mr.current_stream()
    s:wait_stream(origin)
    mr.spin{ms = 1}
    s:run(function() x:fill_(1) end)
    origin:wait_stream(s)
  end,
} do
  local err = T.raises("graph-exec-update-failure", g.update, g, fn)
  T.check(err.message:find("910", 1, true) and err.message:find("r43", 1, true), name .. ": " .. err.message)
end
y:zero_()
mr.synchronize()
g:launch(s)
s:synchronize()
T.equal(y:sum():item(), 12.0, "it is as it was")

local add = mr.graph(function() x:fill_(1); x:mul_(10); x:add_(1) end)
add:enable(2, false)
add:launch(s)
s:synchronize()
T.equal(x:sum():item(), 8.0, "without the second node")
T.check(not add:nodes()[2].enabled, "it is shown")
add:enable(2)
add:launch(s)
s:synchronize()
T.equal(x:sum():item(), 44.0, "and with it again")

local slow = mr.graph(function() mr.spin{ms = 2}; x:fill_(1) end)
slow:launch(s)
early = s:run(function() return x:clone() end)
slow:set(2, function() y:fill_(5) end)
slow:launch(s)
s:synchronize()
T.equal(early:sum():item(), 4.0, "the pending launch has the old parameters")
T.equal(x:sum():item() + y:sum():item(), 24.0, "the next one has the new ones")
local err = T.raises("invalid-argument", slow.set, slow, 2, function() y:mul_(5) end)
T.check(err:find("R43", 1, true) and err:find("r43", 1, true), err)
