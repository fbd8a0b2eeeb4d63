return {
  title = "Where does the time go?",
  part = "Part 1: Streams",
  rule = "R10",
  question = {
    program = [[
local t0 = mr.clock()
mr.spin{ms = 5}                     -- 5 ms of work for the device
local t1 = mr.clock()
mr.synchronize()
local t2 = mr.clock()
local call, wait = math.floor(t1 - t0), math.floor(t2 - t1)
print(("call %d ms / wait %d ms"):format(call, wait))
]],
    ask = "The clock is the host's. What does it print?",
    once = true,
    outcomes = { "call 0 ms / wait 5 ms" },
    others = { "call 5 ms / wait 0 ms" },
    usual = "always call 5 ms / wait 0 ms",
  },
  explanation = [[
The call returns as soon as the work is in the queue: that takes microseconds.
The host pays the 5 ms later, at the first line that waits. So a slow line of a
profile need not be the line with the work. It is often the next one that
waits: `synchronize`, `item`, `print` of a tensor.

Two habits follow. Measure with a wait on both sides, or with events. And wait
only where the host needs a result: until then it can submit more work.
]],
  exercise = {
    task = [[
The host waits after each line, 4 ms in all. Return the same tensor, but let
nothing in the function make the host wait. The caller waits before it reads
the tensor.]],
    start = [[
return function(s, x)
  local y
  s:run(function() mr.spin{ms = 2} y = x * 2 end)
  s:synchronize()
  s:run(function() mr.spin{ms = 2} y:add_(1) end)
  s:synchronize()
  return y
end
]],
    given = function(v) return mr.stream { name = "s" }, mr.full({ 3 }, v, { name = "x" }) end,
    answer = function(v) return { 2 * v + 1, 2 * v + 1, 2 * v + 1 } end,
    host_waits = false,
  },
  hints = {
    "Does the result need either of the two waits?",
    "Work of one stream runs in the order of the calls, without a wait.",
    "Neither wait is needed: `s` keeps the order, and the caller waits.",
  },
  take_home = "The call is cheap, the wait is expensive: the time shows up where you wait.",
  right = {
    { "s:run(function() mr.spin{ms = 2} y = x * 2 end)\ns:synchronize()",
      "s:run(function() mr.spin{ms = 2} y = x * 2 end)",
      "s:run(function() mr.spin{ms = 2} y:add_(1) end)\ns:synchronize()",
      "s:run(function() mr.spin{ms = 2} y:add_(1) end)" },
    [[return function(s, x)
  return s:run(function() return x:mul(2):add(1) end)
end]],
  },
  wrong = {
    { "host", "s:run(function() mr.spin{ms = 2} y = x * 2 end)\ns:synchronize()",
      "s:run(function() mr.spin{ms = 2} y = x * 2 end)",
      "s:run(function() mr.spin{ms = 2} y:add_(1) end)\ns:synchronize()",
      "s:run(function() mr.spin{ms = 2} y:add_(1) end)\nmr.synchronize()" },
    { "host", "s:synchronize()\ns:run(function() mr.spin{ms = 2} y:add_(1) end)\ns:synchronize()",
      "while not s:query() do end\ns:run(function() y:add_(1) end)" },
    { "schedule", "s:synchronize()\ns:run(function() mr.spin{ms = 2} y:add_(1) end)\ns:synchronize()", "y:add_(1)" },
    { "input", [[return function(s, x)
  s:run(function() x:mul_(2) x:add_(1) end)
  return x
end]] },
    { "wrong", "return function(s, x) return s:run(function() return x + 1 end) end" },
    { "wait", [[return function(s, x)
  local y = s:run(function() return x * 2 end)
  s:wait_event(s:record_event())
  s:run(function() y:add_(1) end)
  return y
end]] },
  },
}
