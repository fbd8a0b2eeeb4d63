-- Shared by the scripts that measure a device: medians, the two clocks, and running the host once more. mr.clock() and
-- timed events are virtual time on the virtual GPU and real time on a real one, so the same code measures both.
--
--     local M = dofile(arg[0]:match("^(.*)/") .. "/measure.lua")
local mr = require "millrace"
local T = require "millrace.testing"

local M = { took = T.took } -- took(fn, ...): how long fn(...) keeps the host, in ms

M.folder = arg[0]:match("^(.*)/") or "."
M.virtual = mr.machine ~= nil

-- Measurements use the cost model.
if mr.machine then mr.machine.chooser("timed") end

function M.median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

-- The median of so many results of `fn`; one is enough where time is virtual.
function M.median_of(rounds, fn)
  local list = {}
  for i = 1, M.virtual and 1 or rounds do list[i] = fn() end
  return M.median(list)
end

-- Waits for all devices; an unused device has no work to wait for.
function M.wait_for_all()
  for i = 0, mr.device_count() - 1 do mr.synchronize(i) end
end

-- Milliseconds on the device that work() adds to `stream`. It is submitted behind a kernel of `behind` ms, so that
-- the device has never to wait for the host.
function M.on_device(stream, behind, work)
  local from, to = mr.event{timing = true}, mr.event{timing = true}
  mr.spin{ms = behind, stream = stream}
  from:record(stream)
  work()
  to:record(stream)
  to:synchronize()
  return to - from
end

-- ---------------------------------------------------------------- children

function M.quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- The program that runs this script: the first word of its command line.
function M.host()
  local first = 0
  while arg[first - 1] do first = first - 1 end
  local word = arg[first]
  if word:find("lua[%d.]*$") then word = os.getenv("MILLRACE") or "build/millrace" end
  return word
end

local function run(words)
  for i, word in ipairs(words) do words[i] = M.quote(word) end
  local pipe = assert(io.popen(table.concat(words, " ") .. " </dev/null" .. (words.rest or "")))
  local text = pipe:read("a")
  local ok, _, status = pipe:close()
  return text, ok == true, status
end

-- Starts the host with these words. Returns its output, and whether it ended well.
function M.run(...)
  local text, ok = run{ M.host(), ... }
  return text, ok
end

-- Likewise of any program, errors included, ended after so many seconds. Returns the text, whether it ended well, and
-- that it was ended, in words.
function M.run_within(seconds, program, ...)
  local text, ok, status = run{ rest = " 2>&1", "timeout", "-k", "5", tostring(seconds), program, ... }
  local ended = status == 124 or status == 137
  return text, ok, ended and ("ended after %d s"):format(seconds) or nil
end

-- ---------------------------------------------------------------- models

-- The figures of a model file, by key; numbers where they are some.
function M.read_model(path)
  local model = { path = path }
  for line in io.lines(path) do
    local key, value = line:gsub("#.*", ""):match("^%s*([%w_]+)%s*=%s*(.-)%s*$")
    if key then model[key] = tonumber(value) or value end
  end
  return model
end

-- Those of a shipped model or of a file; nothing where the sources are not at hand.
function M.model_figures(name)
  local path = name:find("[/.]") and name or ("%s/../src/virtual/models/%s.model"):format(M.folder, name)
  local file = io.open(path)
  if not file then return {} end
  file:close()
  return M.read_model(path)
end

-- ---------------------------------------------------------------- printing

-- Lines up the cells of `rows` under each other; the last column is as long as it is.
function M.print_table(rows)
  local widths = {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do widths[i] = math.max(widths[i] or 0, utf8.len(cell) or #cell) end
  end
  for _, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do
      cells[i] = cell .. (" "):rep(i < #row and widths[i] - (utf8.len(cell) or #cell) or 0)
    end
    print((table.concat(cells, "  "):gsub(" +$", "")))
  end
end

return M
