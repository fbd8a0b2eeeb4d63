return {
  title = "A host function: in whose order?",
  part = "Part 4: The host",
  rule = "R46",
  question = {
    program = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local h = mr.zeros(1, {device = "cpu", pinned = true})
local x = mr.zeros(1)
mr.synchronize()
a:host_func(function() h:fill_(5) end)
b:run(function() x:copy_(h, {non_blocking = true}) end)
mr.synchronize()
print(x:item())
]],
    ask = "The function is given to `a`, the copy to `b`. What can it print?",
    outcomes = { "0.0", "5.0" },
    usual = "always 5.0",
  },
  explanation = [[
a:host_func(f) puts f into the queue of `a`. It runs on the host, after the
earlier work of `a` and before the later work. For all other streams it is like
any work of `a`: nothing orders it, unless they wait. It does not run at the
line of the call: the call returns at once.

A host function may compute on the host and write pinned memory. It must not
use the device: no launch, no copy, no wait. In CUDA such a call may return an
error, wait for ever, or seem to work; here it is always an error.
]],
  exercise = {
    task = [[
A host function of `a` writes `h`, pinned memory; `b` copies it to x. Return x
with the new value. The host must not wait.]],
    start = [[
return function(a, b, h, x, value)
  a:host_func(function() h:fill_(value) end)
  b:run(function() x:copy_(h, {non_blocking = true}) end)
  return x
end
]],
    given = function(v)
      return mr.stream { name = "a" }, mr.stream { name = "b" },
        mr.zeros(1, { dtype = "i64", device = "cpu", pinned = true, name = "h" }),
        mr.zeros(1, { dtype = "i64", name = "x" }), 6 * v
    end,
    changes = { 3, 4 },
    answer = function(v) return { 6 * v } end,
    host_waits = false,
    streams = { "b" },
    uses = { { kind = "host-function", stream = "a" } },
  },
  hints = {
    "When does the function run, and what is `b` told of that?",
    "For `b` the function is work of `a`.",
    "One wait is missing: of `b` for `a`, behind the host function.",
  },
  take_home = "A host function is work of its stream: others have to wait for it.",
  right = {
    { "a:host_func(function() h:fill_(value) end)", "a:host_func(function() h:fill_(value) end)\nb:wait_stream(a)" },
    { "a:host_func(function() h:fill_(value) end)",
      "a:host_func(function() h:fill_(value) end)\nb:wait_event(a:record_event())" },
  },
  wrong = {
    { "uses", "b:run(function() x:copy_(h, {non_blocking = true}) end)",
      "a:run(function() x:copy_(h, {non_blocking = true}) end)" },
    { "uses", "a:host_func(function() h:fill_(value) end)", "h:fill_(value)" },
    { "uses", "a:host_func(function() h:fill_(value) end)", "b:host_func(function() h:fill_(value) end)" },
    { "error",
      "a:host_func(function() h:fill_(value) end)\nb:run(function() x:copy_(h, {non_blocking = true}) end)",
      "a:host_func(function()\n  h:fill_(value)\n  x:copy_(h)\nend)" },
    { "schedule", "return function(a, b, h, x, value)", "return function(a, b, h, x, value)\n  b:wait_stream(a)" },
    { "wrong", "return function(a, b, h, x, value)",
      "return function(a, b, h, x, value)\n  a:run(function() x:copy_(h, {non_blocking = true}) end)",
      "b:run(function() x:copy_(h, {non_blocking = true}) end)", "" },
  },
}
