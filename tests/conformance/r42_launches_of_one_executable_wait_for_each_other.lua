-- R42: an executable is a snapshot. A launch comes after the earlier work of its stream and after earlier launches
-- of the same executable on any stream. Nodes have no stream: what no edge orders may run at once.
-- Guaranteed: CUDA Runtime API, cudaGraphLaunch, cudaGraphInstantiate; CUDA Programming Guide 4.2.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R42"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(4)
mr.synchronize()
local g = mr.graph(function() mr.spin{ms = 10} end)
local function took(first, second)
  return T.took(function()
    first:launch(a)
    second:launch(b)
    mr.synchronize()
  end)
end
took(g, g)
T.at_least(took(g, g), 19, "one after the other, on two streams")
local other = g:instantiate()
took(g, other)
T.less(took(g, other), 17, "two executables run at once")

-- After the earlier work of the stream, before the later.
local add = mr.graph(function() x:add_(1) end)
T.always(8 + 3, function()
  mr.synchronize()
  local y
  a:run(function()
    mr.spin{ms = 2}
    x:fill_(10)
    add:launch()
    y = x:clone()
  end)
  a:synchronize()
  x:zero_()
  mr.synchronize()
  return y[1]:item()
end, "in its place of the stream")

-- Unordered nodes run at once, though one stream captured each of them.
local fork = mr.graph(function()
  local origin = mr.current_stream()
  b:wait_stream(origin)
  mr.spin{ms = 10}
  b:run(function() mr.spin{ms = 10} end)
  origin:wait_stream(b)
end)
local function launch() fork:launch(a); a:synchronize() end
launch()
T.less(T.took(launch), 17, "two chains at once")

-- Its order is the same in the default stream, which is a barrier.
local blocking = mr.stream{nonblocking = false}
T.always(7, function()
  blocking:run(function() mr.spin{ms = 2}; x:fill_(6) end)
  add:launch(mr.default_stream())
  local y = blocking:run(function() return x:clone() end)
  blocking:synchronize()
  return y[1]:item()
end, "a barrier before and after")
