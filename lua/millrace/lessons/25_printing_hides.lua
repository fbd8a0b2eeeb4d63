return {
  title = "With a print it works",
  part = "Part 4: The host",
  rule = "R10",
  question = {
    program = [[
local s = mr.stream{name = "s"}
local x = mr.zeros(1)
mr.synchronize()
s:run(function() x:fill_(4) end)
s:run(function() print("debug: x is " .. x:item()) end)
local y = x * 2                          -- on the default stream
mr.synchronize()
print(y:item())
]],
    ask = "Without line 5 the last line can print 0.0 and 8.0. And with it?",
    outcomes = { "debug: x is 4.0, 8.0" },
    others = { "debug: x is 4.0, 0.0" },
    usual = "debug: x is 4.0, 0.0 or debug: x is 4.0, 8.0",
  },
  explanation = [[
To print a value, the host needs it: x:item() copies it in the current stream,
and waits for that stream. So the line that should show the mistake orders the
fill before all that the host submits later. The mistake is gone, and comes
back when the line is taken out.

item, totable, a copy without non_blocking, a debugger that looks at a value,
and CUDA_LAUNCH_BLOCKING=1 do the same. mr.sync_debug("warn") names such hidden
waits. Look for what orders two accesses, not for what happens when you look.
]],
  exercise = {
    task = [[
The debugging line goes. Without it y is wrong in some orders: mend that. The
host must not wait. Return y.]],
    start = [[
return function(s, x)
  s:run(function() mr.spin{ms = 1} x:add_(4) end)
  s:run(function() print(x:item()) end)
  local y = x * 2
  return y
end
]],
    given = function(v) return mr.stream { name = "s" }, mr.full({ 1 }, v, { name = "x" }) end,
    changes = 2,
    answer = function(v) return { 2 * (v + 4) } end,
    host_waits = false,
  },
  hints = {
    "What does the print wait for, besides printing?",
    "A stream has to wait now, not the host. Which one, and for which?",
    "The current stream computes y. It has a method wait_stream.",
  },
  take_home = "Looking waits. Code that works only while you look is not right.",
  right = {
    { "s:run(function() print(x:item()) end)", "mr.current_stream():wait_stream(s)" },
    { "s:run(function() print(x:item()) end)\nlocal y = x * 2", "local y = s:run(function() return x * 2 end)" },
  },
  wrong = {
    { "schedule", "s:run(function() print(x:item()) end)", "" },
    { "host", "s:run(function() print(x:item()) end)\nlocal y = x * 2\nreturn y",
      "local seen = s:run(function() return x:totable() end)\nreturn x * 2" },
    { "schedule", "s:run(function() print(x:item()) end)\nlocal y = x * 2\nreturn y",
      "print(x:item())\nreturn x * 2" },
  },
}
