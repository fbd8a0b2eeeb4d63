-- R39: while a non-blocking stream captures, work on the default stream runs at once and is no part of the graph.
-- Seen on an H200.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R39"

local s = mr.stream{name = "s"}
local x, y = mr.zeros(4), mr.zeros(4)
mr.synchronize()

mr.graph.begin(s)
s:run(function() x:fill_(1) end)
y:fill_(2) -- on the default stream
mr.memcpy(y, mr.full({4}, 3, {device = "cpu", dtype = "f32"}))
local g = mr.graph.finish(s)
T.equal(g.node_count, 1, "only what the capturing stream was given")
T.equal(y:sum():item(), 12.0, "the rest was carried out")
T.equal(x:sum():item(), 0.0, "and that was not")
