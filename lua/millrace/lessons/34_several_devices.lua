return {
  title = "Two devices: which one is waited for?",
  part = "Part 6: Further",
  rule = "R10, R58",
  question = {
    program = [[
local t = mr.stream{device = 1, name = "t"}
local five = mr.full({1}, 5.0, {device = 1})
local here = mr.zeros(1, {device = "cpu", pinned = true})
mr.synchronize(1)
t:run(function() here:copy_(five, {non_blocking = true}) end)
mr.synchronize()                     -- waits for the current device: 0
print(here:item())
]],
    ask = "The program synchronizes before it reads. What can it print?",
    outcomes = { "0.0", "5.0" },
    usual = "always 5.0",
  },
  explanation = [[
mr.synchronize() waits for the current device, as cudaDeviceSynchronize does,
and for no other. Device 0 has nothing to do here, so the host goes on while
device 1 still copies. mr.synchronize(1), t:synchronize() or an event of `t`
would be right.

Each device has its own default stream, and they know nothing of each other.
Waits cross devices: a stream of one device can wait for an event, or for a
stream, of another. So devices can pass tensors on without the host.
mr.memcpy_async, like cudaMemcpyPeerAsync, is ordered by its own stream only
(R60). y:copy_(x) is work of the current stream of x's device, and also orders
the current streams of both devices.
]],
  exercise = {
    task = [[
`t`, on device 1, doubles x, which is there. `s`, on device 0, copies it to y.
Return y. The host must not wait.]],
    start = [[
return function(s, t, x, y)
  t:run(function() mr.spin{ms = 1} x:mul_(2) end)
  mr.memcpy_async(y, x, {stream = s})
  return y
end
]],
    given = function(v)
      local s, t = mr.stream { device = 0, name = "s" }, mr.stream { device = 1, name = "t" }
      return s, t, mr.full({ 1 }, v, { device = 1, name = "x" }),
        mr.zeros(1, { dtype = "i64", device = 0, name = "y" })
    end,
    changes = { 3, 4 },
    answer = function(v) return { 2 * v } end,
    host_waits = false,
    streams = { "t", "s" },
  },
  hints = {
    "Does a copy between devices wait for work of other streams?",
    "`s` has to come after the doubling on `t`.",
    "A stream can wait for a stream of another device: wait_stream, as always.",
  },
  take_home = "Devices know nothing of each other: events and waits connect them.",
  right = {
    { "t:run(function() mr.spin{ms = 1} x:mul_(2) end)",
      "t:run(function() mr.spin{ms = 1} x:mul_(2) end)\ns:wait_stream(t)" },
    { "t:run(function() mr.spin{ms = 1} x:mul_(2) end)",
      "t:run(function() mr.spin{ms = 1} x:mul_(2) end)\nlocal doubled = t:record_event()\ns:wait_event(doubled)" },
  },
  wrong = {
    { "uses", "mr.memcpy_async(y, x, {stream = s})", "mr.memcpy_async(y, x, {stream = t})" },
    { "schedule", "mr.memcpy_async(y, x, {stream = s})", "mr.memcpy_async(y, x, {stream = s})\ns:wait_stream(t)" },
    { "host", "t:run(function() mr.spin{ms = 1} x:mul_(2) end)",
      "t:run(function() mr.spin{ms = 1} x:mul_(2) end)\nmr.synchronize(1)" },
    { "schedule", "t:run(function() mr.spin{ms = 1} x:mul_(2) end)",
      "t:run(function() mr.spin{ms = 1} x:mul_(2) end)\nmr.synchronize(0)" },
    { "schedule", "return function(s, t, x, y)", "return function(s, t, x, y)\n  t:wait_stream(s)" },
  },
}
