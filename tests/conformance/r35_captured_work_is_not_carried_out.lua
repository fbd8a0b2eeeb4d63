-- R35: commands of a capturing stream become part of a graph and are not carried out. The default stream cannot
-- be captured; the per-thread stream can. The capture ends on the stream on which it began.
-- Guaranteed: CUDA Runtime API, cudaStreamBeginCapture, cudaStreamEndCapture.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R35"

local s = mr.stream{name = "s"}
local x = mr.zeros(4)
mr.synchronize()

mr.graph.begin(s)
T.check(s:is_capturing(), "it captures")
s:run(function() x:add_(1) end)
T.equal(s:capture_info().nodes, 1, "one node so far")
local g = mr.graph.finish(s)
T.check(not s:is_capturing(), "it has ended")
T.equal(x:sum():item(), 0.0, "nothing was carried out")
g:launch(s)
g:launch(s)
s:synchronize()
T.equal(x:sum():item(), 8.0, "each launch carries it out")

local err = T.raises("stream-capture-unsupported", mr.graph.begin, mr.default_stream())
T.check(tostring(err):find("900", 1, true), "CUDA's number")
T.raises("illegal-state", mr.graph.finish, s)

local per_thread = mr.per_thread_stream()
mr.graph.begin(per_thread)
per_thread:run(function() x:zero_() end)
local zero = mr.graph.finish(per_thread)
T.equal(zero:nodes()[1].name, "zero_", "the per-thread stream can be captured")

-- Twice on one stream, and an end on a stream that only joined.
local other = mr.stream{name = "other"}
mr.graph.begin(s)
T.raises("illegal-state", mr.graph.begin, s)
other:wait_stream(s)
T.check(other:is_capturing(), "it has joined")
T.raises("illegal-state", mr.graph.finish, other)
T.equal(s:capture_info().status, "active", "and the capture goes on")
s:wait_stream(other)
mr.graph.finish(s)

-- The function form: a stream of its own, and the results of the function.
local g2, y, five = mr.graph(function() return x * 2, 5 end)
T.equal(five, 5, "what the function returned")
x:fill_(3)
g2:launch()
T.equal(y:sum():item(), 24.0, "a tensor of the graph has its values after a launch")
