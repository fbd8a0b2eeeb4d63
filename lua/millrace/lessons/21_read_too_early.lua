return {
  title = "non_blocking, and the next line reads",
  part = "Part 4: The host",
  rule = "R22",
  question = {
    program = [[
local x = mr.full({1}, 5.0)
mr.synchronize()
local h = x:to("cpu", {non_blocking = true})     -- pinned memory
local early = h:item() == 5
mr.synchronize()
print(early and "in time" or "too early", h:item())
]],
    ask = "One stream, one copy. What can it print?",
    outcomes = { "in time 5.0", "too early 5.0" },
    usual = "always in time 5.0",
  },
  explanation = [[
With non_blocking and pinned memory the call returns when the copy is in the
queue. The tensor exists, but its values have not arrived: the host reads the
old contents of the memory. The read is on the next line, but that is no order:
streams order the work of the device, and the host is not in a stream.

Without non_blocking the call waits. With it, the host has to wait before it
reads: for an event right behind the copy, for the stream, for the device. In
CUDA an asynchronous copy to pinned memory returns at once as well.
]],
  exercise = {
    task = [[
Return the number that the copy brings. Do not wait for the 5 ms of work
behind it: the host may stand still for 2 ms at most.]],
    start = [[
return function(s, x, here)
  s:run(function() here:copy_(x, {non_blocking = true}) end)
  mr.spin{ms = 5, stream = s}          -- leave this line as it is
  return here:item()
end
]],
    given = function(v)
      return mr.stream { name = "s" }, mr.full({ 1 }, 8 * v, { name = "x" }),
        mr.zeros(1, { dtype = "i64", device = "cpu", pinned = true, name = "here" })
    end,
    changes = 3,
    answer = function(v) return 8 * v end,
    host_ms = 2,
    uses = { { name = ".*co?py_.*", kind = "copy", text = "a copy into `here`" },
             { name = "spin", stream = "s", ms = 5 } },
  },
  hints = {
    "The host has to wait. For how much of the work of `s`?",
    "Something must mark the place between the copy and the 5 ms.",
    "An event recorded there can be waited for by the host: e:synchronize().",
  },
  take_home = "A non-blocking copy to the host is a promise: wait for it before you read.",
  right = {
    { "s:run(function() here:copy_(x, {non_blocking = true}) end)",
      "s:run(function() here:copy_(x, {non_blocking = true}) end)\nlocal copied = s:record_event()",
      "mr.spin{ms = 5, stream = s}", "mr.spin{ms = 5, stream = s}\ncopied:synchronize()" },
    { "s:run(function() here:copy_(x, {non_blocking = true}) end)",
      "s:run(function() here:copy_(x, {non_blocking = true}) end)\ns:synchronize()" },
    { "s:run(function() here:copy_(x, {non_blocking = true}) end)", "s:run(function() here:copy_(x) end)" },
  },
  wrong = {
    { "uses", "return function(s, x, here) return x:item() end" },
    { "uses", "mr.spin{ms = 5, stream = s}", "s:synchronize()" },
    { "uses", "mr.spin{ms = 5, stream = s}", "mr.spin{ms = 0.5, stream = s}\ns:synchronize()" },
    { "host", "mr.spin{ms = 5, stream = s}", "mr.spin{ms = 5, stream = s}\ns:synchronize()" },
    { "schedule", "s:run(function() here:copy_(x, {non_blocking = true}) end)",
      "s:run(function() here:copy_(x, {non_blocking = true}) end)\nmr.current_stream():wait_stream(s)" },
  },
}
