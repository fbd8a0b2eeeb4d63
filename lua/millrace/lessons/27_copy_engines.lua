return {
  title = "Which copies run side by side?",
  part = "Part 5: Overlap",
  rule = "R25",
  question = {
    program = [[
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x, y = mr.zeros(300000), mr.zeros(300000)
local p, q = x:cpu():pin_memory(), y:cpu():pin_memory()
local function time(to_a, from_a, to_b, from_b)
  mr.synchronize()
  local before = mr.clock()
  a:run(to_a.copy_, to_a, from_a, {non_blocking = true})
  b:run(to_b.copy_, to_b, from_b, {non_blocking = true})
  mr.synchronize()
  return mr.clock() - before
end
local ratio = time(x, p, y, q) / time(x, p, q, y)
print(ratio < 1.5 and "equally long" or "the first takes longer")
]],
    ask = "Two copies to the device, or one each way: how long do the pairs take?",
    once = true,
    outcomes = { "the first takes longer" },
    others = { "equally long" },
    usual = "always equally long",
  },
  explanation = [[
Copy engines do the copies between host and device. A large GPU has a few of
them: one copy to the device, one to the host, and kernels can run at the same
time. Two copies in one direction share the line to the host. They run one
after the other, on however many streams.

Two things are needed: pinned memory, since other copies are staged or make the
host wait, and different streams for what should run side by side. CUDA tells
how many engines there are in asyncEngineCount; here it is
device.async_engine_count.
]],
  exercise = {
    task = [[
Copy `p` to x, and y to `q`. Let both copies run at the same time, for 0.005 ms
at least. Return {x[1], q[1]} as numbers.]],
    start = [[
return function(a, b, p, q, x, y)
  a:run(function() x:copy_(p, {non_blocking = true}) end)
  a:run(function() q:copy_(y, {non_blocking = true}) end)
  a:synchronize()
  return {x[1]:item(), q[1]:item()}
end
]],
    given = function(v)
      local host = { dtype = "i64", device = "cpu", pinned = true }
      return mr.stream { name = "a" }, mr.stream { name = "b" }, mr.full({ 100000 }, v, host),
        mr.zeros(100000, host), mr.zeros(100000, { dtype = "i64", name = "x" }),
        mr.full({ 100000 }, 3 * v, { name = "y" })
    end,
    changes = { 3, 4, 5, 6 },
    answer = function(v) return { v, 3 * v } end,
    overlap = { "a", "b", 0.005 },
    numbers = true,
    uses = { { name = ".*co?py_.*", engine = "copy-in", text = "a copy to the device" },
             { name = ".*co?py_.*", engine = "copy-out", text = "a copy to the host" } },
  },
  hints = {
    "What orders the two copies now?",
    "They need no order, but a stream each.",
    "Both have to be done before the host reads: wait for `a` and for `b`.",
  },
  take_home = "One copy each way and a kernel: that is what can run at once.",
  right = {
    { "a:run(function() q:copy_(y, {non_blocking = true}) end)",
      "b:run(function() q:copy_(y, {non_blocking = true}) end)", "a:synchronize()",
      "a:synchronize()\nb:synchronize()" },
    [[return function(a, b, p, q, x, y)
  b:run(function() q:copy_(y, {non_blocking = true}) end)
  a:run(function() x:copy_(p) end)
  b:synchronize()
  return {x[1]:item(), q[1]:item()}
end]],
  },
  wrong = {
    { "wrong", "a:run(function() q:copy_(y, {non_blocking = true}) end)",
      "b:run(function() q:copy_(y, {non_blocking = true}) end)", "a:synchronize()", "",
      "return {x[1]:item(), q[1]:item()}", "return {x[1], q[1]}" },
    { "serial", "a:run(function() q:copy_(y, {non_blocking = true}) end)\na:synchronize()",
      "b:wait_stream(a)\nb:run(function() q:copy_(y, {non_blocking = true}) end)\nb:synchronize()" },
    { "schedule", "a:run(function() q:copy_(y, {non_blocking = true}) end)",
      "b:run(function() q:copy_(y, {non_blocking = true}) end)" },
    { "serial", [[return function(a, b, p, q, x, y)
  a:run(function() x:copy_(p) end)
  b:run(function() q:copy_(y) end)
  return {x[1]:item(), q[1]:item()}
end]] },
  },
}
