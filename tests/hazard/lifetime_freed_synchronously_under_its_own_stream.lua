-- The order of the stream that the memory was allocated in does not help, either: cudaFree is in none (R27).
-- expect: kind=use-after-free reason=host-did-not-wait first=8 second=10 fix=a:synchronize()
if require "hazard_pair" () then return end
local mr = require "millrace"

local a = mr.stream{name = "a"}
local x = mr.empty(64, {stream = a, name = "x"})
a:run(function() x:fill_(1) end)
-- fix: a:synchronize()
x:free{sync = true}
