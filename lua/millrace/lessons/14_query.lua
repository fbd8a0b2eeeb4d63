return {
  title = "A query says yes. And if it says no?",
  part = "Part 2: Events",
  rule = "R10",
  question = {
    program = [[
local s = mr.stream{name = "s"}
local one = mr.ones(1)
local here = mr.zeros(1, {device = "cpu", pinned = true})
mr.synchronize()
s:run(function() here:copy_(one, {non_blocking = true}) end)
local copied = s:record_event()
if copied:query() then print(here:item()) else print("not yet") end
]],
    ask = "The host asks once, and waits for nothing. What can it print?",
    outcomes = { "1.0", "not yet" },
    others = { "0.0" },
    usual = "0.0, 1.0 or not yet",
  },
  explanation = [[
A query never waits. Yes means that the work in front of the record is done,
and that the host now sees what it wrote: 0.0 cannot be printed after a yes. So
a yes orders as much as a wait does.

No says only that it was not done when the host asked. It may be done a moment
later. The answer `no` gives no order. If the host reads after it without a
wait, that is a race. CUDA returns cudaErrorNotReady for no. That is an answer,
not a failure.
]],
  exercise = {
    task = [[
`s` copies x to `here`, pinned memory. Ask in a loop until the copy is done,
and return the number then. The function asks twice at most now.]],
    start = [[
return function(s, x, here)
  s:run(function() here:copy_(x, {non_blocking = true}) end)
  local copied = s:record_event()
  if not copied:query() then copied:query() end
  return here:item()
end
]],
    given = function(v)
      return mr.stream { name = "s" }, mr.full({ 1 }, 4 * v, { name = "x" }),
        mr.zeros(1, { dtype = "i64", device = "cpu", pinned = true, name = "here" })
    end,
    changes = 3,
    answer = function(v) return 4 * v end,
    uses = { { name = "query", text = "a question (query)" }, { kind = "copy", stream = "s" } },
  },
  hints = {
    "After which answer may the host read?",
    "A loop ends when the query says yes.",
    "The loop has nothing to do but ask. The stream has a query, too.",
  },
  take_home = "The answer yes orders like a wait. The answer no orders nothing.",
  right = {
    { "if not copied:query() then copied:query() end", "while not copied:query() do end" },
    { "local copied = s:record_event()\nif not copied:query() then copied:query() end",
      "repeat local is_done = s:query() until is_done" },
  },
  wrong = {
    { "schedule", "return function(s, x, here)", "return function(s, x, here)\n  local copied = s:record_event()",
      "local copied = s:record_event()\nif not copied:query() then copied:query() end",
      "while not copied:query() do end" },
    { "schedule", "local copied = s:record_event()\nif not copied:query() then copied:query() end",
      "for i = 1, 3 do if s:query() then break end end" },
    { "schedule", "local copied = s:record_event()\nif not copied:query() then copied:query() end",
      "for i = 1, 100 do if s:query() then break end end" },
    { "schedule", "if not copied:query() then copied:query() end",
      "local asked = 0\nwhile not copied:query() and asked < 20000 do asked = asked + 1 end" },
    { "uses", "if not copied:query() then copied:query() end", "copied:synchronize()" },
    { "wrong", "local copied = s:record_event()\nif not copied:query() then copied:query() end\nreturn here:item()",
      "while not s:query() do end\nreturn here" },
  },
}
