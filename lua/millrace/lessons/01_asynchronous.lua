return {
  title = "The line has returned. Is the work done?",
  part = "Part 1: Streams",
  rule = "R10",
  question = {
    program = [[
local s = mr.stream{name = "s"}
local x = mr.zeros(4)
mr.synchronize()
mr.with(s, function()
  mr.spin{ms = 2}          -- the device is busy for 2 ms
  x:fill_(7)
end)
print(s:query())           -- has `s` done all its work?
]],
    ask = "All lines above the last one have returned. What can the last one print?",
    outcomes = { "false", "true" },
    usual = "always true",
  },
  explanation = [[
The host runs this program. The device, a GPU, does the work on tensors, which
are arrays of numbers. A stream is a queue of such work: mr.with(s, f), or
s:run(f), calls f, and what f submits goes into the queue of `s`.

A line such as x:fill_(7) only puts work there. The call returns at once; the
device does the work later. So `query` may find it done, or not. A query asks
and never waits. To be sure, the host has to wait: s:synchronize() returns when
all that `s` has been given so far is done, and the host sees what it wrote.
CUDA is NVIDIA's system to program GPUs; PyTorch builds on it. In CUDA, too,
launching a kernel (a program for the device) returns before it is done.
]],
  exercise = {
    task = [[
`s` copies the tensor `value` into `flag`, host memory that the device can
write (pinned). With non_blocking the call does not wait for the copy. Return
the new number in `flag`. The function reads too early now.]],
    start = [[
-- item() returns the number. For pinned memory it waits for nothing.
-- Make the host wait for what it reads.
return function(s, flag, value)
  mr.op{name = "other", ms = 1, stream = s}      -- 1 ms of other work
  mr.with(s, function() flag:copy_(value, {non_blocking = true}) end)
  return flag:item()
end
]],
    given = function(v)
      return mr.stream { name = "s" },
        mr.zeros(1, { dtype = "i64", device = "cpu", pinned = true, name = "flag" }),
        mr.full({ 1 }, 6 * v, { name = "value" })
    end,
    changes = 2,
    uses = { { name = ".*co?py_.*", stream = "s", text = "a copy into `flag` on `s`" } },
    answer = function(v) return 6 * v end,
  },
  hints = {
    "The copy is in the queue of `s` when the host reads `flag`.",
    "Put a wait of the host between the copy and the read.",
    "A stream has a method that waits for all its work so far.",
  },
  take_home = "A call that returned has only been submitted. Before the host reads, it waits.",
  right = {
    [[return function(s, flag, value)
  s:run(function() flag:copy_(value, {non_blocking = true}) end)
  s:synchronize()
  return flag:item()
end]],
    [[return function(s, flag, value)
  s:run(function() flag:copy_(value, {non_blocking = true}) end)
  local done = s:record_event()
  done:synchronize()
  return flag:item()
end]],
    [[return function(s, flag, value)
  s:run(function() flag:copy_(value) end)
  return flag:item()
end]],
    { "mr.with(s, function() flag:copy_(value, {non_blocking = true}) end)",
      "mr.memcpy_async(flag, value, {stream = s})\ns:synchronize()" },
  },
  wrong = {
    { "schedule", [[return function(s, flag, value)
  s:run(function() flag:copy_(value, {non_blocking = true}) end)
  s:query()
  return flag:item()
end]] },
    { "wait", [[return function(s, flag, value)
  s:run(function() flag:copy_(value, {non_blocking = true}) end)
  s:synchronize()
  mr.synchronize()
  return flag:item()
end]] },
    { "input", [[return function(s, flag, value)
  value:fill_(0) mr.synchronize() return 6
end]] },
    { "uses", "return function(s, flag, value) return value:item() end" },
    { "endless", [[return function(s, flag, value)
  while flag:item() == 0 do end
  return flag:item()
end]] },
    { "wrong", "return flag:item()", "s:synchronize()\nreturn flag" },
    { "error", 'return require("millrace.testing")' },
    { "memory", 'local t = {} for i = 1, 1e9 do t[i] = ("x"):rep(10000000) .. i end' },
  },
}
