-- An asynchronous copy between host memories is synchronous.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local pinned = mr.zeros(64, {device = "cpu", pinned = true, name = "pinned"})
local pageable = mr.zeros(64, {device = "cpu", name = "pageable"})
local s = mr.stream{name = "s"}
mr.synchronize()
mr.memcpy_async(pageable, pinned, {stream = s})
local _ = pageable[1]:item()
pinned:fill_(1)
