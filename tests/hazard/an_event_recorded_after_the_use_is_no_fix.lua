-- A host function races with work submitted before it ran; the event that covers it was recorded after that work.
-- expect: kind=write-after-write reason=no-path tensor=p fix=b:wait_stream(a) place=before:13
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local p, d = mr.zeros(4, {name = "p", pinned = true}), mr.zeros(4)
local e = mr.event()
mr.synchronize()

a:host_func(function() p:fill_(1) end)
-- fix: b:wait_stream(a)
mr.with(b, function() p:copy_(d, {non_blocking = true}) end)
e:record(a)
mr.synchronize()
