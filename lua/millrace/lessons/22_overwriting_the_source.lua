return {
  title = "The copy is submitted. May its source change?",
  part = "Part 4: The host",
  rule = "R22",
  question = {
    program = [[
local function try(pinned)
  local source = mr.full({1}, 1.0, {device = "cpu", pinned = pinned})
  local x = mr.zeros(1)
  mr.synchronize()
  x:copy_(source, {non_blocking = true})
  source:fill_(9)                       -- the host writes
  return x:item()
end
print("pageable " .. try(false) .. " / pinned " .. try(true))
]],
    ask = "The source is overwritten after the call that copies. What can it print?",
    outcomes = { "pageable 1.0 / pinned 1.0", "pageable 1.0 / pinned 9.0" },
    usual = "always pageable 1.0 / pinned 1.0",
  },
  explanation = [[
Pinned memory cannot be moved by the operating system, so the device reads it
by itself, later. Until then the source belongs to the copy: a write to it may
change what arrives. Ordinary memory is pageable. Its bytes are first copied to
a buffer of the driver (staged), or the call waits. When the call is back, such
a source was free again on every GPU tried: 9 in it changes nothing. CUDA's
documents do not promise it (R23).

So only pinned memory gives a copy that runs beside the host, and only it has
this trap. A loop that fills one pinned buffer again and again needs a wait for
the copy before each fill, or more than one buffer.
]],
  exercise = {
    task = [[
The host sends two numbers through `stage`, pinned memory. Return {x, y} with
the first number in x, and the second in y. Operations on host tensors run on
the host at once, also inside s:run.]],
    start = [[
return function(s, stage, x, y, first, second)
  stage:fill_(first)
  s:run(function() x:copy_(stage, {non_blocking = true}) end)
  stage:fill_(second)
  s:run(function() y:copy_(stage, {non_blocking = true}) end)
  return {x, y}
end
]],
    given = function(v)
      return mr.stream { name = "s" },
        mr.zeros(1, { dtype = "i64", device = "cpu", pinned = true, name = "stage" }),
        mr.zeros(1, { dtype = "i64", name = "x" }), mr.zeros(1, { dtype = "i64", name = "y" }), v, 10 * v
    end,
    changes = { 2, 3, 4 },
    uses = { { kind = "copy", engine = "copy-in", count = 2, text = "two copies to the device" } },
    answer = function(v) return { { v }, { 10 * v } } end,
  },
  hints = {
    "When does the device read `stage` for the first copy?",
    "The second fill has to come after the first copy. Or it fills something else.",
    "The host can wait in front of the second fill, or use a second buffer.",
  },
  take_home = "A pinned source belongs to the copy until the copy is done.",
  right = {
    { "s:run(function() x:copy_(stage, {non_blocking = true}) end)",
      "s:run(function() x:copy_(stage, {non_blocking = true}) end)\ns:synchronize()" },
    [[return function(s, stage, x, y, first, second)
  local other = mr.full({1}, second, {device = "cpu", pinned = true})
  stage:fill_(first)
  s:run(function() x:copy_(stage, {non_blocking = true}) end)
  s:run(function() y:copy_(other, {non_blocking = true}) end)
  return {x, y}
end]],
  },
  wrong = {
    { "uses", [[return function(s, stage, x, y, first, second)
  x:fill_(first)
  y:fill_(second)
  return {x, y}
end]] },
    { "schedule", "s:run(function() x:copy_(stage, {non_blocking = true}) end)",
      "s:run(function() x:copy_(stage, {non_blocking = true}) end)\ns:wait_event(s:record_event())" },
    { "wrong", "stage:fill_(first)", "stage:fill_(second)", "stage:fill_(second)", "" },
    { "wait", "s:run(function() x:copy_(stage, {non_blocking = true}) end)",
      "s:run(function() x:copy_(stage, {non_blocking = true}) end)\ns:synchronize()",
      "s:run(function() y:copy_(stage, {non_blocking = true}) end)",
      "s:run(function() y:copy_(stage, {non_blocking = true}) end)\ns:synchronize()" },
  },
}
