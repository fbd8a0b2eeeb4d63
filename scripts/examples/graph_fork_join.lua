-- A graph of three streams: two branches that may run at once, forked from one stream and joined to it again.
local mr = require "millrace"

local origin, left, right = mr.stream{name = "origin"}, mr.stream{name = "left"}, mr.stream{name = "right"}
local x, a, b = mr.ones(4, {name = "x"}), mr.zeros(4, {name = "a"}), mr.zeros(4, {name = "b"})
mr.synchronize()

mr.graph.begin(origin)
origin:run(function() x:mul_(2) end)
left:wait_stream(origin)                        -- both join the capture by waiting for it
right:wait_stream(origin)
left:run(function() a:add_(x) end)
right:run(function() b:add_(x); b:mul_(10) end)
origin:wait_stream(left)                        -- and are joined again; without this the end is error 904
origin:wait_stream(right)
origin:run(function() x:copy_(a); x:add_(b) end)
local g = mr.graph.finish(origin)

for _, node in ipairs(g:nodes()) do
  print(node.index, node.name, "after {" .. table.concat(node.after, ", ") .. "}")
end
g:launch(origin)
origin:synchronize()
print("lanes:", g.lanes, "x:", x[1]:item())     -- 2 + 20
