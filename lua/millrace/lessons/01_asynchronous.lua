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
A line such as x:fill_(7) only puts work into the stream's queue. The call
returns at once; the device does the work later. So `query` may find the work
done, or not: both happen.

A query asks and never waits. To be sure, the host has to wait: s:synchronize()
returns when all that the stream has been given so far is done. Then the host
sees what that work wrote. CUDA's guide says it of kernel launches: control
returns to the host before the device has completed the task.
]],
  exercise = {
    task = [[
`s` fills `flag`, pinned memory that the host may read at any time. Return the
number in it, the new one. The function reads too early now.]],
    start = [[
-- Pinned memory is read by the host directly: flag:item() waits for nothing.
-- Make the host wait for what it reads.
return function(s, flag, value)
  mr.op{name = "other", ms = 1, stream = s}
  mr.with(s, function() flag:copy_(value, {non_blocking = true}) end)
  return flag:item()
end
]],
    given = function(v)
      return mr.stream { name = "s" }, mr.zeros(1, { device = "cpu", pinned = true, name = "flag" }),
        mr.full({ 1 }, 6 * v, { name = "value" })
    end,
    changes = 2,
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
    { "endless", [[return function(s, flag, value)
  while flag:item() == 0 do end
  return flag:item()
end]] },
    { "error", [[return require("millrace.testing")]] },
    { "memory", [[local t = {} for i = 1, 1e9 do t[i] = ("x"):rep(100000) .. i end]] },
  },
}
