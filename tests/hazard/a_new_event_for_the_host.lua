-- The stream has been given other work since: the host need not wait for that.
-- expect: kind=read-after-write first=9 second=13 fix=local_e_=_a:record_event()_e:synchronize()
if require "hazard_pair" () then return end
local mr = require "millrace"

local x, y = mr.zeros(64, {device = "cpu", pinned = true, name = "x"}), mr.zeros(64, {name = "y"})
local a = mr.stream{name = "a"}
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
-- fix: local written = a:record_event()
mr.op{name = "unrelated", writes = {y}, stream = a}
-- fix: written:synchronize()
local _ = x:totable()
