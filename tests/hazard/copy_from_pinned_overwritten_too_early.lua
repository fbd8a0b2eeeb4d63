-- The source of an asynchronous copy must stay as it is until the copy is done (R22).
-- expect: kind=write-after-read reason=host-did-not-wait tensor=pinned first=10 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local pinned = mr.zeros(64, {device = "cpu", pinned = true, name = "pinned"})
local s = mr.stream{name = "s"}
mr.synchronize()
mr.memcpy_async(d, pinned, {stream = s})
-- fix: s:synchronize()
pinned:fill_(1)
