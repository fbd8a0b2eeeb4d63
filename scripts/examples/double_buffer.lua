-- Double buffering: the next batch is copied in while this one is computed.
--
-- Two buffers on the device, two streams, two events a buffer:
--     full   the copy stream has filled it: compute may read it
--     free   compute has read it: the copy stream may fill it again
-- Everybody remembers "full". Without "free" the third batch lands on the first one while that is
-- still in use: see the last line of the output.
--
-- How much is gained depends on how long a copy takes beside a product on the device.
-- prints figures of the device
-- not checked: one of its programs races
local mr = require "millrace"

local copy, compute = mr.stream{name = "copy"}, mr.stream{name = "compute"}

-- Returns the sum over all batches, what it should be, and the milliseconds that it took.
local function pipeline(n, count, opts)
  local input = opts.one_stream and compute or copy
  local batch, buffer, full, free = {}, {}, {}, {}
  for i = 1, count do batch[i] = mr.full({ n }, i, {dtype = "f32", pinned = true}) end
  for slot = 1, 2 do
    buffer[slot] = mr.zeros(n)
    full[slot], free[slot] = mr.event(), mr.event()
  end
  local total = mr.zeros(1)
  mr.synchronize()

  local began = mr.clock()
  for i = 1, count do
    local slot = (i - 1) % 2 + 1
    if not opts.forget_free then input:wait_event(free[slot]) end -- never recorded yet: waits for nothing
    mr.with(input, function() buffer[slot]:copy_(batch[i], {non_blocking = true}) end)
    full[slot]:record(input)

    compute:wait_event(full[slot])
    mr.with(compute, function()
      mr.spin{ms = opts.ms or 0.3}
      total:add_(buffer[slot]:sum())
    end)
    free[slot]:record(compute)
  end
  mr.synchronize()
  return total:item(), n * count * (count + 1) // 2, mr.clock() - began
end

local N, COUNT = 4000000, 8 -- 16 MB a batch: about 0.3 ms on PCIe 5
local sum, right, serial = pipeline(N, COUNT, {one_stream = true})
print("one stream:             the sum is right: " .. tostring(sum == right))
local overlapped
sum, right, overlapped = pipeline(N, COUNT, {})
print("two streams:            the sum is right: " .. tostring(sum == right))
print("                        and it takes less than 0.7 of the time: " .. tostring(overlapped < 0.7 * serial))
sum, right = pipeline(N, COUNT, {forget_free = true, ms = 1})
print("not waiting for \"free\": the sum is right: " .. tostring(sum == right))

return { -- for the tests
  fixed = function(n) return pipeline(n, 5, {}) end,
  racy = function(n) return pipeline(n, 5, {forget_free = true}) end,
}
