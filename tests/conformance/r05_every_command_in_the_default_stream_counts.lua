-- R5: any command in the default stream is such a barrier: also an event record, a wait, a copy, a memset.
-- Guaranteed: CUDA Driver API, Stream synchronization behavior; CUDA C++ Programming Guide 12.x, 6.2.8.8.
-- Seen on an H200: synchronising or querying the default stream covers the blocking streams too, even when
-- it has no work of its own.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R5"

local zero = mr.default_stream()
local a, b = mr.stream{nonblocking = false}, mr.stream{nonblocking = false}
local n = mr.stream{nonblocking = true}
local x, y, z = mr.zeros(1), mr.zeros(1), mr.zeros(1)
mr.synchronize()

-- Each of these, alone between a and b, orders b behind a.
local commands = {
  record = function() mr.event():record(zero) end,
  wait = function()
    mr.spin{ms = 1, stream = n}
    zero:wait_event(n:record_event())
  end,
  memset = function() mr.memset(y, 0) end,
  copy = function() mr.memcpy(y, z) end,
  kernel = function() zero:run(function() y:add_(1) end) end,
}
for name, command in pairs(commands) do
  T.always((0 + 3) * 2, function()
    x:zero_()
    mr.synchronize()
    a:run(function() x:add_(3) end)
    command()
    b:run(function() x:mul_(2) end)
    mr.synchronize()
    return x:item()
  end, name .. " in the default stream")
end

-- The event of a record there is not complete before the blocking streams are.
mr.spin{ms = 10, stream = a}
local e = mr.event():record(zero)
T.check(not e:query(), "an event recorded in the default stream waits for a")
T.at_least(T.took(function() e:synchronize() end), 9, "and so does who waits for it")
T.check(a:query(), "which is done by then")

-- A wait there delays the blocking streams by what a non-blocking one does.
local start = T.mark(n)
mr.spin{ms = 20, stream = n}
local end_n = T.mark(n)
zero:wait_event(end_n)
mr.spin{ms = 1, stream = a}
local end_a = T.mark(a)
mr.synchronize()
T.at_least(end_a - start, 20.9, "a waits for n by way of the default stream")

-- Synchronise and query: blocking streams, and only those.
mr.spin{ms = 10, stream = a}
T.check(not zero:query(), "the query of the default stream covers a")
T.at_least(T.took(function() zero:synchronize() end), 9, "its synchronize covers a")
T.check(a:query(), "a is done then")
mr.spin{ms = 10, stream = n}
T.check(zero:query(), "its query leaves n out")
T.less(T.took(function() zero:synchronize() end), 5, "its synchronize leaves n out")
T.check(not n:query(), "n is still busy then")
n:synchronize()
