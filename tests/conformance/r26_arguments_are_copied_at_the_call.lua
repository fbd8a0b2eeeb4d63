-- R26: the arguments of an operation are copied when it is submitted; what they point to is not.
-- Guaranteed: CUDA Runtime API, cudaLaunchKernel; CUDA Programming Guide, 4.2.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R26"

local s = mr.stream()
local x = mr.zeros(1)
local pinned = mr.zeros(1, {pinned = true})
mr.synchronize()

-- A number, and the table that describes an operation: free to change when the call returns.
T.always(1, function()
  local value = 1
  mr.spin{ms = 5, stream = s}
  s:run(function() x:fill_(value) end)
  value = 2
  s:synchronize()
  return x:item() + 0 * value
end, "a number")

local function mix(value)
  pinned[1] = value
  mr.op{name = "mix", reads = {pinned}, writes = {x}, ms = 1, stream = s}
  s:synchronize()
  return x:item()
end
local of_one, of_two = mix(1), mix(2)
T.check(of_one ~= of_two, "the operation depends on what it reads")

T.always(of_one, function()
  pinned[1] = 1
  local options = {name = "mix", reads = {pinned}, writes = {x}, ms = 1, stream = s}
  mr.op(options)
  options.name, options.reads = "another", {}
  s:synchronize()
  return x:item()
end, "the table of options")

-- Memory that an argument points to is read when the operation runs.
T.either({of_one, of_two}, function()
  pinned[1] = 1
  mr.spin{ms = 5, stream = s}
  mr.op{name = "mix", reads = {pinned}, writes = {x}, ms = 1, stream = s}
  pinned[1] = 2
  s:synchronize()
  return x:item()
end, "memory behind an argument")
