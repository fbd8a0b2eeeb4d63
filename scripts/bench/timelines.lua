-- The cost of writing the trace of a million commands, in each format: seconds of this process, and the size.
local mr = require "millrace"
local bench = dofile((arg[0]:match("^(.*)/") or ".") .. "/support.lua")

local COUNT = tonumber(arg[1]) or 1000000
local FORMATS = { "html", "json", "csv", "spans.json", "svg" }

-- Four streams in turn: an operation, a record, and a wait of the next stream.
local function run(commands)
  local streams, tensors = {}, {}
  for i = 1, 4 do streams[i], tensors[i] = mr.stream{name = "stream " .. i}, mr.zeros(4) end
  mr.synchronize()
  for i = 0, commands // 3 - 1 do
    local s, other = streams[i % 4 + 1], streams[(i + 1) % 4 + 1]
    mr.set_stream(s)
    tensors[i % 4 + 1]:add_(1)
    other:wait_event(s:record_event())
  end
  mr.set_stream(mr.default_stream())
  mr.synchronize()
end

mr.trace.start()
run(COUNT)
local trace = mr.trace.stop()

local rows = { { "format", "seconds", "MB", "ns a command" } }
local function add(title, seconds, bytes)
  rows[#rows + 1] = { title, ("%.2f"):format(seconds), ("%.1f"):format(bytes / 1e6),
    ("%.0f"):format(seconds / COUNT * 1e9) }
end

for _, format in ipairs(FORMATS) do
  local base = os.tmpname()
  local path, times = base .. "." .. format, {}
  for i = 1, 3 do
    local began = os.clock()
    trace:save(path)
    times[i] = os.clock() - began
  end
  local file = assert(io.open(path, "rb"))
  local size = file:seek("end")
  file:close()
  os.remove(path)
  os.remove(base)
  add("`" .. format .. "`", bench.median(times), size)
end

bench.print_table(rows)
