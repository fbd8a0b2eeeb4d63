-- What the virtual GPU predicts beside what a GPU takes: for each example, the time that its work needs.
--
--     build/millrace --device cuda scripts/makespan.lua [--model NAME] [--lines] [EXAMPLE...]
--
-- Each example runs in a process of its own on either backend, with its output thrown away. On a real GPU it runs
-- several times: the first use of kernels and memory costs much there, so that the first run does not count, and of the
-- others the shortest does, since whatever else a machine does only makes things slower. What counts is the time on
-- mr.clock() from one wait for the device (mr.synchronize) to the next, and not where the program makes memory of the
-- host in between: that is getting ready, and pinning pages is not what a device model predicts. --model takes the
-- predicted figures from another model than h200, such as one that scripts/calibrate.lua wrote. Without a GPU there is
-- only the prediction.
--
-- --lines says where the time of each example goes: for each line and operation, how long the device was busy with it,
-- as a trace of one run tells (mr.timeline), which is not the run that the makespan is of.
local mr = require "millrace"
local M = dofile((arg[0]:match("^(.*)/") or ".") .. "/measure.lua")

local RUNS = 9 -- on a real GPU, that count

-- What is done after the last synchronize counts too, where an example waits for its events only.
local WITH_TAIL = { event_timing = true }

-- ---------------------------------------------------------------- in the child: one example

-- What makes memory of the host if its options say so.
local MAKERS = { "empty", "zeros", "ones", "full", "arange", "linspace", "tensor", "zeros_like", "ones_like",
  "empty_like", "full_like", "eye" }

local function on_host(...)
  local opts = select(-1, ...)
  return type(opts) == "table" and (opts.pinned or opts.device == "cpu")
end

-- Runs the example once; the milliseconds between its waits. It sees a machine that it cannot step, so that it does
-- the same everywhere.
local function run_once(path, tail)
  local total, began, prepared = 0, mr.clock(), true -- before the first wait there is nothing to count
  local watched = {}
  local function wait(...)
    mr.synchronize(...)
    if not prepared then total = total + mr.clock() - began end
    began, prepared = mr.clock(), false
  end
  watched.synchronize = wait
  for _, name in ipairs(MAKERS) do
    watched[name] = function(...)
      if select("#", ...) > 0 and on_host(...) then prepared = true end
      return mr[name](...)
    end
  end
  local module = setmetatable(watched, { __index = function(_, key)
    if key ~= "machine" then return mr[key] end
  end })
  local quiet = {
    print = function() end,
    require = function(name) return name == "millrace" and module or require(name) end,
    io = setmetatable({ write = function() end }, { __index = io }),
    mr = module,
  }
  assert(loadfile(path, "t", setmetatable(quiet, { __index = _G })))()
  if tail then wait() else M.wait_for_all() end
  return total
end

-- Where the device's time of one run goes, as lines for the parent.
local function print_lines(path, tail)
  local sums, order = {}, {}
  for _, span in ipairs(mr.timeline(run_once, path, tail).spans) do
    if span.engine and span.engine ~= "host" and span.start and span.where then
      local key = ("%s %s"):format(span.where:match("[^/]*$"), span.name)
      if not sums[key] then order[#order + 1] = key end
      sums[key] = (sums[key] or 0) + span.finish - span.start
    end
  end
  for _, key in ipairs(order) do print(("line %.9g %s"):format(sums[key], key)) end
end

local function child(name, lines)
  local path, tail = M.folder .. "/examples/" .. name .. ".lua", WITH_TAIL[name]
  if not M.virtual then run_once(path, tail) end
  M.wait_for_all()
  local ms = math.huge
  for _ = 1, M.virtual and 1 or RUNS do
    ms = math.min(ms, run_once(path, tail))
    collectgarbage()
    M.wait_for_all()
  end
  print(("makespan %.9g"):format(ms))
  if lines then print_lines(path, tail) end
end

-- ---------------------------------------------------------------- in the parent

local with_lines = false

-- The milliseconds of one example with these options of the host, and those of its lines; nil and why not.
local function measure(name, ...)
  local words = table.pack(...)
  table.move({ arg[0], "--child", name, with_lines and "lines" or nil }, 1, 4, words.n + 1, words)
  local output = M.run(table.unpack(words))
  local ms = tonumber(output:match("makespan (%S+)"))
  if not ms then return nil, "failed" end
  local lines = {}
  for time, key in output:gmatch("line (%S+) ([^\n]+)") do
    lines[#lines + 1] = { key = key, ms = tonumber(time) }
    lines[key] = tonumber(time)
  end
  return ms, nil, lines
end

-- Names of the examples, and how many devices each needs: what its header asks for.
local function find_examples()
  local list = {}
  local listing = assert(io.popen("ls " .. M.quote(M.folder .. "/examples") .. "/*.lua"))
  for path in listing:lines() do
    local file = assert(io.open(path))
    local devices = file:read("a"):match("%-%- options: %-%-device virtual:(%d+)")
    file:close()
    list[#list + 1] = { name = path:match("([^/]+)%.lua$"), devices = tonumber(devices) or 1 }
  end
  listing:close()
  return list
end

local function cell(ms) return ms and ("%.3f"):format(ms) or "-" end

local function ratio_of(predicted, measured)
  return predicted and measured and predicted > 0 and ("%.2f"):format(measured / predicted) or "-"
end

-- One row for each line of the example, those of the prediction first.
local function add_lines(rows, predicted, measured)
  for _, line in ipairs(predicted) do
    local other = measured and measured[line.key]
    rows[#rows + 1] = { "  " .. line.key, cell(line.ms), cell(other), ratio_of(line.ms, other), "" }
  end
  for _, line in ipairs(measured or {}) do
    if not predicted[line.key] then rows[#rows + 1] = { "  " .. line.key, "-", cell(line.ms), "-", "" } end
  end
end

local function add_example(rows, example, model)
  local predicted, problem, lines = measure(example.name, "--device", "virtual:" .. example.devices, "--model", model)
  local measured, measured_lines
  if not M.virtual and example.devices > mr.device_count() then
    problem = ("needs %d devices"):format(example.devices)
  elseif not M.virtual then
    local failure
    measured, failure, measured_lines = measure(example.name, "--device", "cuda")
    problem = problem or failure
  end
  rows[#rows + 1] =
    { example.name, cell(predicted), cell(measured), ratio_of(predicted, measured), problem or "" }
  if with_lines then add_lines(rows, lines or {}, measured_lines) end
end

local function parent(words)
  local wanted, model = {}, mr.machine and mr.machine.model() or "h200"
  local i = 1
  while words[i] do
    if words[i] == "--lines" then
      with_lines = true
    elseif words[i] == "--model" then
      i = i + 1
      model = words[i] or error("--model: expected a name or a file", 0)
    else
      wanted[words[i]] = true
    end
    i = i + 1
  end
  local all = not next(wanted)
  local rows = { { "example", "predicted ms", "measured ms", "measured / predicted", "" } }
  for _, example in ipairs(find_examples()) do
    if all or wanted[example.name] then add_example(rows, example, model) end
    wanted[example.name] = nil
  end
  if next(wanted) then error(("there is no example `%s`"):format(next(wanted)), 0) end
  print(("predicted with the model %s%s"):format(model, M.virtual and "; there is no GPU to measure" or ""))
  M.print_table(rows)
end

if arg[1] == "--child" then child(arg[2], arg[3]) else parent(arg) end
