-- options: --device virtual:3
-- Tensors on several devices: millrace --device virtual:3 scripts/examples/device_placement.lua
--
-- A tensor lives on the device that was current when it was made, or on the one that it was told.
-- Operations run where their tensors are, on the current stream of that device; tensors of two devices
-- do not mix. Streams of different devices have no order: an event makes one, across devices too.
-- not checked: one of its programs races
local mr = require "millrace"

if mr.device_count() < 3 then
  print("this example needs three devices: millrace --device virtual:3 ...")
  os.exit(77)
end

local function where(t) return "device " .. t.device.index end
print("made while device 1 is current: " .. mr.with(mr.device(1), function() return where(mr.zeros(3)) end))
print("made with device=2:             " .. where(mr.zeros(3, {device = 2})))
print("moved from there:               " .. where(mr.zeros(3, {device = 2}):to(0)))

local ok, message = pcall(function() return mr.ones(3, {device = 0, name = "here"}) +
  mr.ones(3, {device = 1, name = "there"}) end)
print("mixing devices:                 " .. (ok and "works" or tostring(message):gsub("^.-:%d+: ", "")))

-- Each device sums its share; device 0 gathers, once the share's event says that it is there.
local function gather(n, wait)
  local part, ready = {}, {}
  for d = 1, 2 do
    local s = mr.stream{device = d, name = "work " .. d}
    local x = mr.zeros(n, {device = d})
    part[d] = mr.zeros(1, {device = d})
    mr.synchronize(d)
    mr.with(s, function()
      mr.spin{ms = d}
      part[d]:add_(x:fill_(d):sum())
      x:record_stream(s) -- x is freed in the order of its own stream, which does not wait for s
    end)
    ready[d] = s:record_event()
  end
  local home = mr.stream{device = 0, name = "home"}
  local total = mr.zeros(1, {device = 0})
  mr.synchronize(0)
  mr.with(home, function()
    for d = 1, 2 do
      if wait then home:wait_event(ready[d]) end -- an event of another device
      total:add_(part[d]:to(0))
    end
  end)
  for d = 0, 2 do mr.device(d):synchronize() end
  return total:item(), 3 * n
end

print(("gathered on device 0:           %g, right is %g"):format(gather(1000, true)))
print(("gathered without the waits:     %g, right is %g"):format(gather(1000, false)))

return { -- for the tests
  fixed = function(n) return gather(n, true) end,
  racy = function(n) return gather(n, false) end,
}
