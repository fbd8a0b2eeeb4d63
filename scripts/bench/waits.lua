-- How long mr.waits takes, from small programs to one of ten thousand commands with a thousand waits.
--
--     build/millrace scripts/bench/waits.lua
--
-- Each wait is a line of its own. "chain": each is needed. "double": each is there twice, so none is needed alone.
-- "loop": one line with many rounds.

local mr = require "millrace"

local function source(kind, waits, between)
  local out = {
    "local mr, s, t = ...",
    "local n = #s",
  }
  local function add(text) out[#out + 1] = text end
  for i = 1, kind == "loop" and 1 or kind == "double" and waits // 2 or waits do
    local a, b = i % 4 + 1, (i + 1) % 4 + 1
    if kind == "loop" then
      add(("for i = 1, %d do"):format(waits))
      add("local a, b = i % n + 1, (i + 1) % n + 1")
      add(("for k = 1, %d do mr.op{stream = s[a], reads = {t[a]}, writes = {t[a]}, ms = 0.001} end"):format(between))
      add("s[b]:wait_stream(s[a])")
      add("mr.op{stream = s[b], reads = {t[a]}, writes = {t[b]}, ms = 0.001}")
      add("s[a]:wait_stream(s[b])")
      add("end")
    else
      local here = kind == "double" and 2 * between or between
      add(("for k = 1, %d do mr.op{stream = s[%d], reads = {t[%d]}, writes = {t[%d]}, ms = 0.001} end"):format(here,
        a, a, a))
      add(("s[%d]:wait_stream(s[%d])"):format(b, a))
      if kind == "double" then add(("s[%d]:wait_stream(s[%d])"):format(b, a)) end
      add(("mr.op{stream = s[%d], reads = {t[%d]}, writes = {t[%d]}, ms = 0.001}"):format(b, a, b))
    end
  end
  return table.concat(out, "\n")
end

local rows = {
  { "chain", 10, 5 }, { "chain", 100, 5 }, { "chain", 1000, 6 }, { "double", 100, 5 }, { "double", 1000, 6 },
  { "loop", 500, 14 },
}
print(("%-8s %6s %9s %9s %6s %11s %9s"):format("program", "waits", "commands", "suffice", "exact", "verdicts s",
  "costs s"))
for _, row in ipairs(rows) do
  local kind, waits, between = table.unpack(row)
  local s, t = {}, {}
  for i = 1, 4 do
    s[i] = mr.stream{name = "s" .. i}
    t[i] = mr.zeros(16, {name = "t" .. i})
  end
  mr.synchronize()
  local chunk = assert(load(source(kind, waits, between), "=bench.lua"))
  local function measure(costs)
    local before = os.clock()
    local result = mr.waits(function()
      chunk(mr, s, t)
    end, { costs = costs })
    return os.clock() - before, result
  end
  local took, result = measure(false)
  local all = measure(true)
  local commands = kind == "loop" and waits * (between + 3) or kind == "double" and waits // 2 * (2 * between + 4)
      or waits * (between + 3)
  print(("%-8s %6d %9d %9d %6s %11.2f %9.2f"):format(kind, result.total, commands, result.sufficient,
    tostring(result.exact), took, all))
end
