return {
  title = "Two events: which time lies between them?",
  part = "Part 2: Events",
  rule = "R17",
  question = {
    program = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local first, last = mr.event{timing = true}, mr.event{timing = true}
mr.spin{ms = 4, stream = a}
first:record(b)
b:wait_stream(a)
mr.spin{ms = 1, stream = b}            -- the work that is measured
last:record(b)
mr.synchronize()
print(math.floor(first:elapsed_time(last) + 0.5) .. " ms")
]],
    ask = "The events stand around 1 ms of work. What does it print?",
    once = true,
    outcomes = { "5 ms" },
    others = { "1 ms" },
    usual = "always 1 ms",
  },
  explanation = [[
A record is done when the work in front of it is done. The time between two
events is the time between these two moments, and it is in milliseconds. The
time also includes waits of the stream in between, and work of other streams
that kept the device busy. So events measure a piece of a stream, not a kernel.

Four things are needed: both timed, recorded and complete, and of one device
(R17). Each one that is missing is an error. So the host waits for the second
event before it asks. Events of CUDA are timed unless that is switched off
(R18); here, as in PyTorch, timing = true asks for it.
]],
  exercise = {
    task = [[
before() and work() each submit some milliseconds of work on x to the current
stream. Return {ms, x}: ms is the time that work() takes on `b`, without the
wait for `a`. It is in whole milliseconds: math.floor(ms + 0.5). work() must
still come after before().]],
    start = [[
return function(a, b, before, work, x)
  local first, last = mr.event{timing = true}, mr.event{timing = true}
  a:run(before)
  first:record(b)
  b:wait_stream(a)
  b:run(work)
  last:record(b)
  return {math.floor(first:elapsed_time(last) + 0.5), x}
end
]],
    given = function(v)
      local x = mr.full({ 1 }, v, { name = "x" })
      local function before() mr.spin { ms = 3 + v } x:add_(1) end
      local function work() mr.spin { ms = v } x:mul_(2) end
      return mr.stream { name = "a" }, mr.stream { name = "b" }, before, work, x
    end,
    changes = 5,
    answer = function(v) return { v, { (v + 1) * 2 } } end,
    once = true,
    uses = { { kind = "record", name = "record_event", count = 2, text = "two records of an event" },
             { kind = "op", stream = "b", count = 2, elsewhere = true, text = "work() on `b`" } },
    minimal = false,
  },
  hints = {
    "The error says what is missing: the host asks before `last` is complete.",
    "When is the record of `first` done: before or after `b` has waited?",
    "Record `first` behind the wait, and let the host wait for `last`.",
  },
  take_home = "Events measure what lies between two records of a stream, waits included.",
  right = {
    { "first:record(b)\nb:wait_stream(a)", "b:wait_stream(a)\nfirst:record(b)", "last:record(b)",
      "last:record(b)\nlast:synchronize()" },
    { "first:record(b)\nb:wait_stream(a)", "first:record(a)\nb:wait_event(first)",
      "return {math.floor(first:elapsed_time(last) + 0.5), x}",
      "mr.synchronize()\nreturn {math.floor(last - first + 0.5), x}" },
  },
  wrong = {
    { "uses", [[return function(a, b, before, work, x)
  a:run(before)
  b:wait_stream(a)
  b:synchronize()
  local start = mr.clock()
  b:run(work)
  b:synchronize()
  return {math.floor(mr.clock() - start + 0.5), x}
end]] },
    { "hazard", "first:record(b)\nb:wait_stream(a)", "mr.spin{ms = 6, stream = b}\nfirst:record(b)",
      "last:record(b)", "last:record(b)\nlast:synchronize()" },
    { "wrong", "last:record(b)", "last:record(b)\nmr.synchronize()" },
    { "constant", "last:record(b)", "last:record(b)\nlast:synchronize()",
      "return {math.floor(first:elapsed_time(last) + 0.5), x}",
      "return {math.floor(first:elapsed_time(last) + 0.5) - 4, x}" },
    { "wrong", "a:run(before)\nfirst:record(b)\nb:wait_stream(a)", "first:record(b)",
      "last:record(b)", "last:record(b)\na:run(before)\nmr.synchronize()" },
    { "uses", "a:run(before)\nfirst:record(b)\nb:wait_stream(a)\nb:run(work)\nlast:record(b)",
      "before()\nfirst:record()\nwork()\nlast:record()\nlast:synchronize()" },
    { "error", "local first, last = mr.event{timing = true}, mr.event{timing = true}",
      "local first, last = mr.event(), mr.event()", "last:record(b)", "last:record(b)\nmr.synchronize()" },
    { "wrong", [[return function(a, b, before, work, x)
  local start = mr.clock()
  a:run(before)
  b:wait_stream(a)
  b:run(work)
  return {math.floor(mr.clock() - start + 0.5), x}
end]] },
  },
}
