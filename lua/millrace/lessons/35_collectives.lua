return {
  title = "all_reduce has returned. Is the sum there?",
  part = "Part 6: Further",
  rule = "R61",
  question = {
    program = [[
local c, d = mr.stream{name = "c"}, mr.stream{device = 1, name = "d"}
local comms = mr.nccl.comms{0, 1}
local x = mr.full({1}, 1.0)                    -- the part of rank 0
local y = mr.full({1}, 2.0, {device = 1})      -- the part of rank 1
mr.synchronize(0)
mr.synchronize(1)
mr.nccl.group(function()
  comms[1]:all_reduce(x, {stream = c})
  comms[2]:all_reduce(y, {stream = d})
end)
local z = x * 10                     -- on the default stream of device 0
print(z:item())
]],
    ask = "all_reduce puts the sum, 3, into x and y. What can it print?",
    outcomes = { "10.0", "30.0" },
    usual = "always 30.0",
  },
  explanation = [[
In a collective several devices, the ranks, compute one result together, with
NCCL. comms[1] and comms[2] are the members on device 0 and 1. mr.nccl.group
submits their calls together.

all_reduce adds up the tensors of the ranks. It is work of a stream on each
rank. The call submits it and returns. Another stream that uses the result has
to wait for that stream. The work:wait() of torch.distributed (with
async_op=True) is such a wait: the current stream waits, not the host, and no
third stream.

On a stream of its own it runs beside other work: wait only before the first
use of its result. PyTorch's training on several GPUs (DDP) does this.
]],
  exercise = {
    task = [[
`c` and `d` reduce the gradients g and h of two ranks. Meanwhile `a` has 2 ms
of other work, on the device of g. Then `a` takes a step with the sum in g.
`a` and `c` must work at the same time for 0.9 ms at least. Return the result.]],
    start = [[
return function(a, c, d, comms, g, h, w)
  mr.spin{ms = 1, stream = c}           -- a slow network: leave it here
  mr.nccl.group(function()
    comms[1]:all_reduce(g, {stream = c})
    comms[2]:all_reduce(h, {stream = d})
  end)
  a:run(function() mr.spin{ms = 2} end)
  return a:run(function() return w - g end)
end
]],
    given = function(v)
      local streams = { mr.stream { name = "a" }, mr.stream { name = "c" }, mr.stream { device = 1, name = "d" } }
      return streams[1], streams[2], streams[3], mr.nccl.comms { 0, 1 }, mr.full({ 1 }, v, { name = "g" }),
        mr.full({ 1 }, 2 * v, { device = 1, name = "h" }), mr.full({ 1 }, 10, { name = "w" })
    end,
    changes = { 5, 6 },
    answer = function(v) return { 10 - 3 * v } end,
    overlap = { "a", "c", 0.9 },
    host_waits = false,
    uses = { { name = "spin", stream = "c", ms = 1 }, { name = "all_reduce", stream = "c", after = 1 },
             { name = "spin", stream = "a", ms = 2 },
             { kind = "work", stream = "a", count = 2, text = "two operations on `a`: the other work, and the step" } },
  },
  hints = {
    "Which stream reads g, and which one writes the sum into it?",
    "`a` has to wait for `c`. Before which of its two lines?",
    "In front of the last line: the 2 ms need no gradient.",
  },
  take_home = "A collective is work of a stream: wait for it where its result is used.",
  right = {
    { "a:run(function() mr.spin{ms = 2} end)", "a:run(function() mr.spin{ms = 2} end)\na:wait_stream(c)" },
    { "return function(a, c, d, comms, g, h, w)",
      "return function(a, c, d, comms, g, h, w)\n  a:run(function() mr.spin{ms = 2} end)",
      "a:run(function() mr.spin{ms = 2} end)\nreturn a:run(function() return w - g end)",
      "local reduced = c:record_event()\nreturn a:run(function()\n  reduced:wait()\n  return w - g\nend)" },
  },
  wrong = {
    { "serial", "end)", "end)\na:wait_stream(c)" },
    { "uses", "comms[1]:all_reduce(g, {stream = c})", "comms[1]:all_reduce(g, {stream = a})" },
    { "uses", "mr.spin{ms = 1, stream = c}", "", "a:run(function() mr.spin{ms = 2} end)",
      "a:run(function() mr.spin{ms = 2} end)\na:wait_stream(c)" },
    { "uses", "return a:run(function() return w - g end)", "return c:run(function() return w - g end)" },
    { "schedule", "mr.spin{ms = 1, stream = c}", "mr.spin{ms = 1, stream = c}\na:wait_stream(c)" },
    { "error", "mr.spin{ms = 1, stream = c}\nmr.nccl.group(function()", "",
      "end)\na:run(function() mr.spin{ms = 2} end)", "a:wait_stream(c)" },
  },
}
