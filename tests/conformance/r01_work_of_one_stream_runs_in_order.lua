-- R1: the operations of one stream run in the order of submission; each sees what those before it wrote.
-- Guaranteed: CUDA Programming Guide, 2.3.2 and 2.3.5.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R1"

local s = mr.stream()
local x = mr.zeros(1)
mr.synchronize()

-- The device is all but empty, and yet the second operation begins only when the first has ended.
local start = T.mark(s)
mr.spin{ms = 10, stream = s}
local middle = T.mark(s)
mr.spin{ms = 10, stream = s}
local finish = T.mark(s)
s:synchronize()
T.at_least(middle - start, 9.9, "the first takes its time")
T.at_least(finish - middle, 9.9, "the second begins after the first")

T.always((0 + 3) * 2, function()
  x:zero_()
  mr.synchronize()
  s:run(function() x:add_(3); x:mul_(2) end)
  s:synchronize()
  return x:item()
end, "the second sees what the first wrote")

-- Also between kinds of work: a copy, a kernel, a copy.
local source, result = mr.zeros(1, {pinned = true}), mr.zeros(1, {pinned = true})
T.always(5 * 2, function()
  source[1] = 5
  mr.memcpy_async(x, source, {stream = s})
  s:run(function() x:mul_(2) end)
  mr.memcpy_async(result, x, {stream = s})
  s:synchronize()
  return result:item()
end, "copies and kernels of one stream")

-- And through pageable memory, whenever the calls return: what is staged is what the stream has left there.
local function through_pageable_memory()
  local host, y = mr.zeros(4, {device = "cpu"}), mr.zeros(4)
  local other = mr.stream()
  T.always(28, function()
    host:zero_()
    local sevens = mr.full(4, 7, {dtype = "f32"})
    mr.synchronize()
    mr.memcpy_async(host, sevens, {stream = s})
    mr.memcpy_async(y, host, {stream = s})
    s:synchronize()
    return y:sum():item()
  end, "two copies through one pageable buffer")
  T.always(28, function()
    host:zero_()
    local sevens = mr.full(4, 7, {dtype = "f32"})
    mr.synchronize()
    mr.memcpy_async(host, sevens, {stream = s})
    other:wait_stream(s)
    mr.memcpy_async(y, host, {stream = other})
    other:synchronize()
    return y:sum():item()
  end, "the same in two streams, with an event between them")
  T.always(16, function()
    host:zero_()
    s:host_func(function() host:fill_(4) end)
    mr.memcpy_async(y, host, {stream = s})
    s:synchronize()
    return y:sum():item()
  end, "a host function, and a copy of what it writes")
end
through_pageable_memory()
if mr.machine then
  for _, to_host in ipairs { false, true } do
    for _, to_device in ipairs { false, true } do
      mr.machine.settings{pageable_d2h_async = to_host, pageable_h2d_async = to_device}
      through_pageable_memory()
    end
  end
end
