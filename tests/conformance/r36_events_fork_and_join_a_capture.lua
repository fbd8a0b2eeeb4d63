-- R36: an event recorded in a capturing stream stands for nodes. A stream that waits for it joins the capture, and
-- must be joined to the origin again before the end.
-- Guaranteed: CUDA Runtime API, cudaStreamBeginCapture; CUDA Programming Guide 4.2, cross-stream dependencies.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R36"

local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
local x, y, z = mr.zeros(4), mr.zeros(4), mr.zeros(4)
mr.synchronize()

local function edges(g)
  local list = {}
  for i, n in ipairs(g:nodes()) do list[i] = n.name .. "<" .. table.concat(n.after, ",") end
  return table.concat(list, " ")
end

mr.graph.begin(a)
a:run(function() x:fill_(1) end)
local e = a:record_event()
b:wait_event(e)
T.check(b:is_capturing(), "the waiting stream joins")
T.equal(b:capture_info().id, a:capture_info().id, "the same capture")
b:run(function() y:add_(x) end)
a:wait_event(b:record_event())
a:run(function() z:add_(y) end)
local g = mr.graph.finish(a)
T.equal(edges(g), "fill_< add_<1 add_<1,2", "edges: those of the events, and the stream's own")
T.check(not b:is_capturing(), "all leave at the end")
g:launch(a)
a:synchronize()
T.equal(z:sum():item(), 4.0, "carried out in that order")

-- Three streams, and the launch on a fourth.
mr.graph.begin(a)
a:run(function() x:fill_(2) end)
b:wait_stream(a)
c:wait_stream(a)
b:run(function() y:copy_(x) end)
c:run(function() z:copy_(x) end)
a:wait_stream(b)
a:wait_stream(c)
a:run(function() x:add_(y):add_(z) end)
local tree = mr.graph.finish(a)
T.equal(tree.lanes, 2, "two chains can run at once")
local d = mr.stream()
tree:launch(d)
d:synchronize()
T.equal(x:sum():item(), 24.0, "2 + 2 + 2, four times")

-- An event is what it was at the record: what comes later on its stream is not behind it.
mr.graph.begin(a)
local early = a:record_event()
a:run(function() x:fill_(1) end)
b:wait_event(early)
b:run(function() y:fill_(1) end)
a:wait_stream(b)
T.equal(edges(mr.graph.finish(a)), "fill_< fill_<", "the second node comes after nothing")

-- Not joined: no graph, and the error names the stream and the line.
mr.graph.begin(a)
a:run(function() x:fill_(1) end)
b:wait_stream(a)
b:run(function() y:fill_(1) end)
local err = T.raises("stream-capture-unjoined", mr.graph.finish, a)
T.check(err.message:find("904", 1, true) and err.message:find("stream `b`", 1, true), err.message)
T.check(not a:is_capturing() and not b:is_capturing(), "both are usable again")
b:run(function() y:fill_(7) end)
b:synchronize()
T.equal(y:sum():item(), 28.0, "and work")

-- A stream that joined and was given nothing needs no join.
mr.graph.begin(a)
a:run(function() x:fill_(1) end)
b:wait_stream(a)
T.equal(mr.graph.finish(a).node_count, 1, "nothing was left out")
