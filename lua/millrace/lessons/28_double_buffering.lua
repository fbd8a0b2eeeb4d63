return {
  title = "Two buffers, and the way back",
  part = "Part 5: Overlap",
  rule = "R2",
  question = {
    program = [[
local c, k = mr.stream{name = "c"}, mr.stream{name = "k"}
local buffers = {mr.zeros(1), mr.zeros(1)}
local sum = mr.zeros(1)
mr.synchronize()
for i = 1, 3 do
  local buffer = buffers[(i - 1) % 2 + 1]
  c:run(function() buffer:fill_(i) end)         -- the next batch
  k:wait_stream(c)
  k:run(function() sum:add_(buffer) end)        -- its work
end
mr.synchronize()
print(sum:item())
]],
    ask = "Each batch is waited for before it is used. What can it print?",
    outcomes = { "6.0", "8.0" },
    usual = "always 6.0",
  },
  explanation = [[
The wait in the loop orders the use of a batch after its copy. The opposite
order is missing: batch 3 goes into the buffer of batch 1, and nothing orders
this copy after the use of batch 1. If the copy comes first, 3 is added twice.

A ring of buffers needs both orders for each buffer: the reader after the
writer, the next writer after the reader. With two buffers, batch i waits for
the use of batch i - 2: an event, recorded behind it, is what `c` waits for. A
wait for batch i - 1 would be right, too, but then nothing overlaps any more.
]],
  exercise = {
    task = [[
Return the sum of all batches. `c` brings batch i + 1 while `k` works on batch
i: both must work at the same time for 2 ms at least.]],
    start = [[
return function(c, k, batches, sum)
  local buffers = {mr.empty_like(sum), mr.empty_like(sum)}
  c:wait_stream(mr.current_stream())             -- the buffers are there
  for i = 1, #batches do
    local buffer = buffers[(i - 1) % 2 + 1]
    c:run(function() mr.spin{ms = 1} buffer:fill_(batches[i]) end)
    k:wait_stream(c)
    k:run(function() mr.spin{ms = 1} sum:add_(buffer) end)
  end
  return sum
end
]],
    given = function(v)
      return mr.stream { name = "c" }, mr.stream { name = "k" }, { v, 2 * v, 3 * v, 4 * v },
        mr.zeros(1, { dtype = "i64", name = "sum" })
    end,
    changes = 4,
    answer = function(v) return { 10 * v } end,
    overlap = { "c", "k", 2 },
    uses = { { kind = "op", stream = "c", count = 8, text = "1 ms of work and a fill on `c` for each batch" },
             { kind = "op", stream = "k", count = 8, text = "1 ms of work and an addition on `k` for each batch" } },
  },
  hints = {
    "When may `c` write into a buffer again?",
    "After the work on the batch that was in it: batch i - 2.",
    "Keep an event of `k` for each batch. From batch 3 on, `c` waits for one.",
  },
  take_home = "A buffer that is used again needs a second order: the writer waits for the reader.",
  right = {
    { "local buffers = {mr.empty_like(sum), mr.empty_like(sum)}",
      "local buffers, used = {mr.empty_like(sum), mr.empty_like(sum)}, {}",
      "local buffer = buffers[(i - 1) % 2 + 1]",
      "local buffer = buffers[(i - 1) % 2 + 1]\nif i > 2 then c:wait_event(used[i - 2]) end",
      "k:run(function() mr.spin{ms = 1} sum:add_(buffer) end)",
      "k:run(function() mr.spin{ms = 1} sum:add_(buffer) end)\nused[i] = k:record_event()" },
    { "local buffers = {mr.empty_like(sum), mr.empty_like(sum)}",
      "local buffers, used = {mr.empty_like(sum), mr.empty_like(sum)}, {}",
      "local buffer = buffers[(i - 1) % 2 + 1]",
      "local buffer = buffers[(i - 1) % 2 + 1]\nif i > 2 then c:wait_event(used[i - 2]) end",
      "k:run(function() mr.spin{ms = 1} sum:add_(buffer) end)",
      "k:run(function() mr.spin{ms = 1} sum:add_(buffer) end)\nused[i] = k:record_event()\nbuffer:record_stream(k)" },
    { "local buffers = {mr.empty_like(sum), mr.empty_like(sum)}\nc:wait_stream(mr.current_stream())", "",
      "local buffer = buffers[(i - 1) % 2 + 1]\nc:run(function() mr.spin{ms = 1} buffer:fill_(batches[i]) end)",
      "local buffer\nc:run(function() mr.spin{ms = 1} buffer = mr.full({1}, batches[i]) end)",
      "k:run(function() mr.spin{ms = 1} sum:add_(buffer) end)",
      "k:run(function() mr.spin{ms = 1} sum:add_(buffer) end)\nbuffer:record_stream(k)\nbuffer:free()" },
  },
  wrong = {
    { "serial", "local buffer = buffers[(i - 1) % 2 + 1]",
      "local buffer = buffers[(i - 1) % 2 + 1]\nc:wait_stream(k)" },
    { "schedule", "local buffers = {mr.empty_like(sum), mr.empty_like(sum)}",
      "local buffers, used = {mr.empty_like(sum), mr.empty_like(sum)}, {}",
      "local buffer = buffers[(i - 1) % 2 + 1]",
      "local buffer = buffers[(i - 1) % 2 + 1]\nif i > 3 then c:wait_event(used[i - 3]) end",
      "k:run(function() mr.spin{ms = 1} sum:add_(buffer) end)",
      "k:run(function() mr.spin{ms = 1} sum:add_(buffer) end)\nused[i] = k:record_event()" },
    { "uses", [[return function(c, k, batches, sum)
  for i = 1, #batches do
    mr.spin{ms = 2, stream = k}
    k:run(function() sum:add_(batches[i]) end)
  end
  return sum
end]] },
  },
}
