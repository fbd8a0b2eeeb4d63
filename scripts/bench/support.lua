-- Shared by the benchmarks: time, medians, tables, and the host that they run under.
local M = {}

-- Where this file is, and the host that runs it.
M.folder = arg[0]:match("^(.*)/") or "."
M.host = arg[-1] or "build/millrace"

function M.read(path)
  local file = io.open(path)
  if not file then return nil end
  local text = file:read("a")
  file:close()
  return text
end

function M.output_of(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read("a")
  pipe:close()
  return (text:gsub("%s+$", ""))
end

-- Wall-clock time in seconds. os.clock() counts the time of all threads together, and mr.clock() is virtual.
function M.now() return tonumber(M.output_of("date +%s%N")) / 1e9 end

-- Kilobytes of this process that are in memory.
function M.resident_kb() return tonumber(M.read("/proc/self/status"):match("VmRSS:%s*(%d+)")) end

function M.median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

-- The cost of asking for the time.
local asking
local function cost_of_asking()
  if asking then return asking end
  local costs = {}
  for i = 1, 21 do
    local began = M.now()
    costs[i] = M.now() - began
  end
  asking = M.median(costs)
  return asking
end

-- Seconds of one call of `work`, which is called until `seconds` have passed.
function M.time(work, seconds)
  local calls, batch, asked = 0, 1, cost_of_asking()
  work()
  local elapsed = 0
  repeat
    local began = M.now()
    for _ = 1, batch do work() end
    local last = math.max(M.now() - began - asked, 1e-6)
    calls, elapsed = calls + batch, elapsed + last
    batch = math.max(1, math.ceil(batch * math.min(16, (seconds - elapsed) / last)))
  until elapsed >= seconds
  return elapsed / calls
end

-- Prints rows of cells as a Markdown table whose source lines up; the first row is the head.
function M.print_table(rows)
  local widths = {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do widths[i] = math.max(widths[i] or 3, #cell) end
  end
  for r, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do
      cells[i] = i == 1 and cell .. (" "):rep(widths[i] - #cell) or (" "):rep(widths[i] - #cell) .. cell
    end
    print("| " .. table.concat(cells, " | ") .. " |")
    if r == 1 then
      for i, width in ipairs(widths) do cells[i] = ("-"):rep(width - (i > 1 and 1 or 0)) .. (i > 1 and ":" or "") end
      print("| " .. table.concat(cells, " | ") .. " |")
    end
  end
  print()
  io.flush()
end

return M
