-- R49: what fails while it runs is reported by some later call, at the latest by a wait.
-- Guaranteed: CUDA Runtime API ("may return error codes from previous, asynchronous launches"). The virtual GPU
-- reports at the first wait or query that comes by it, and names the line that submitted the work.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R49"
if not mr.machine then T.skip("only the virtual GPU can fail on purpose") end

local waits = {
  ["the stream's wait"] = function(s) s:synchronize() end,
  ["the device's wait"] = function() mr.synchronize() end,
  ["another stream's wait"] = function(s)
    local other = mr.stream()
    other:wait_stream(s)
    other:synchronize()
  end,
  ["a query"] = function(s) repeat until s:query() end,
}
for chooser in ("timed adversarial random:1"):gmatch("%S+") do
  mr.machine.chooser(chooser)
  for name, wait in pairs(waits) do
    local s = mr.stream{name = "failing"}
    local x = mr.zeros(1)
    mr.synchronize()
    mr.spin{ms = 10, stream = s}
    mr.machine.fault("illegal-address", s)
    local line = debug.getinfo(1, "l").currentline - 1
    s:run(function() x:fill_(1) end) -- the host goes on: it cannot know yet
    local err = T.raises("illegal-address", wait, s)
    T.check(err.stream:find("failing"), name .. " names the stream")
    T.check(err.where:find(":" .. line .. "$"), name .. " names the line that submitted the work")
    mr.reset()
  end
end
