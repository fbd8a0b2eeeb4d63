return {
  title = "A wait for an event that nobody has recorded yet",
  part = "Part 2: Events",
  rule = "R13",
  question = {
    program = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(1)
mr.synchronize()
local filled = mr.event()
b:wait_event(filled)
local y = b:run(function() return x * 1 end)
a:run(function() x:fill_(5) end)
filled:record(a)
mr.synchronize()
print(y:item())
]],
    ask = "`b` waits for `filled`; `a` records it later. What can it print?",
    outcomes = { "0.0", "5.0" },
    usual = "always 5.0",
  },
  explanation = [[
An event that was never recorded counts as complete. A wait for it does
nothing, even if it is recorded later: a wait looks at the record that there is
when it is called. It neither hangs nor waits for the later record.

So a wait says nothing about the future. The same holds for wait_stream: it
follows what the other stream has been given so far, not what comes. In the
order of the lines, the read comes first; the missing order in the timeline
keeps that. To read 5, submit the fill before the read.
]],
  exercise = {
    task = "Return y, computed on `b` from what `a` writes to x. The host must not wait.",
    start = [[
return function(a, b, x)
  local written = mr.event()
  b:wait_event(written)
  a:run(function() x:add_(5) end)
  written:record(a)
  return b:run(function() return x * 2 end)
end
]],
    given = function(v)
      return mr.stream { name = "a" }, mr.stream { name = "b" }, mr.full({ 1 }, v, { name = "x" })
    end,
    changes = 3,
    answer = function(v) return { 2 * (v + 5) } end,
    host_waits = false,
    streams = { "a", "b" },
  },
  hints = {
    "Has `written` been recorded when `b` is told to wait?",
    "Only the place of one line has to change.",
    "The wait comes after the record, and before the read.",
  },
  take_home = "First the work, then the record, then the wait.",
  right = {
    { "b:wait_event(written)", "", "written:record(a)", "written:record(a)\nb:wait_event(written)" },
    { "local written = mr.event()\nb:wait_event(written)", "", "written:record(a)", "b:wait_stream(a)" },
  },
  wrong = {
    { "schedule", "local written = mr.event()\nb:wait_event(written)", "b:wait_stream(a)", "written:record(a)", "" },
    { "schedule", "local written = mr.event()",
      "local written = mr.event()\nwritten:record(a)\na:run(function() x:add_(5) end)",
      "a:run(function() x:add_(5) end)\nwritten:record(a)", "" },
    { "wait", "written:record(a)", "written:record(a)\nb:wait_event(written)" },
    { "host",
      "local written = mr.event()\nb:wait_event(written)\na:run(function() x:add_(5) end)\nwritten:record(a)",
      "a:run(function() mr.spin{ms = 1} x:add_(5) end)\na:record_event():synchronize()" },
    { "uses", "return function(a, b, x) return b:run(function() return x:add_(5) * 2 end) end" },
    { "wrong", "return function(a, b, x) return b:run(function() return x * 2 end) end" },
  },
}
