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
events is the time between these two moments, and it is in milliseconds. What
the stream waited for in between counts, too, and so does work of others that
kept the device busy. So events measure a piece of a stream, not a kernel.

Three things are needed, and each is an error of its own: both events are made
with timing = true, both were recorded, and both are complete. So the host
waits for the second one before it asks. CUDA has the same three.
]],
  exercise = {
    task = [[
Return the time that the work of `b` takes, without the wait in front of it:
in whole milliseconds, rounded by math.floor(ms + 0.5). `b` still has to come
after `a`.]],
    start = [[
return function(a, b, ms)
  local first, last = mr.event{timing = true}, mr.event{timing = true}
  mr.spin{ms = 4, stream = a}
  first:record(b)
  b:wait_stream(a)
  mr.spin{ms = ms, stream = b}
  last:record(b)
  return math.floor(first:elapsed_time(last) + 0.5)
end
]],
    given = function(v) return mr.stream { name = "a" }, mr.stream { name = "b" }, v end,
    answer = function(v) return v end,
    once = true,
    minimal = false,
  },
  hints = {
    "The error says what is missing: the host asks before `last` is complete.",
    "When is the record of `first` done: before or after `b` has waited?",
    "Record `first` behind the wait, and let the host wait for `last`.",
  },
  take_home = "Events measure what lies between two records of a stream, waits included.",
  right = {
    [[return function(a, b, ms)
  local first, last = mr.event{timing = true}, mr.event{timing = true}
  mr.spin{ms = 4, stream = a}
  b:wait_stream(a)
  first:record(b)
  mr.spin{ms = ms, stream = b}
  last:record(b)
  last:synchronize()
  return math.floor(first:elapsed_time(last) + 0.5)
end]],
    [[return function(a, b, ms)
  local first, last = mr.event{timing = true}, mr.event{timing = true}
  mr.spin{ms = 4, stream = a}
  first:record(a)
  b:wait_event(first)
  mr.spin{ms = ms, stream = b}
  last:record(b)
  mr.synchronize()
  return math.floor(last - first + 0.5)
end]],
  },
  wrong = {
    { "wrong", [[return function(a, b, ms)
  local first, last = mr.event{timing = true}, mr.event{timing = true}
  mr.spin{ms = 4, stream = a}
  first:record(b)
  b:wait_stream(a)
  mr.spin{ms = ms, stream = b}
  last:record(b)
  mr.synchronize()
  return math.floor(first:elapsed_time(last) + 0.5)
end]] },
    { "error", [[return function(a, b, ms)
  local first, last = mr.event(), mr.event()
  first:record(b)
  mr.spin{ms = ms, stream = b}
  last:record(b)
  mr.synchronize()
  return math.floor(first:elapsed_time(last) + 0.5)
end]] },
    { "wrong", [[return function(a, b, ms)
  local before = mr.clock()
  mr.spin{ms = ms, stream = b}
  return math.floor(mr.clock() - before + 0.5)
end]] },
  },
}
