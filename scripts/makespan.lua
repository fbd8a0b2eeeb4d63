-- What the virtual GPU predicts beside what a GPU takes: for each example, the time that its work needs.
--
--     build/millrace --device cuda scripts/makespan.lua [--model NAME] [EXAMPLE...]
--
-- Each example runs in a process of its own on either backend, with its output thrown away. On a real GPU it runs
-- several times: the first use of kernels and memory costs much there, so that the first run does not count, and of the
-- others the shortest does, since whatever else a machine does only makes things slower. What counts is the time on
-- mr.clock() from one wait for the device (mr.synchronize) to the next, and not where the program makes memory of the
-- host in between: that is getting ready, and pinning pages is not what a device model predicts. --model takes the
-- predicted figures from another model than h200, such as one that scripts/calibrate.lua wrote. Without a GPU there is
-- only the prediction.
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

local function child(name)
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
end

-- ---------------------------------------------------------------- in the parent

-- The milliseconds of one example with these options of the host; nil and why not.
local function measure(name, ...)
  local words = table.pack(...)
  table.move({ arg[0], "--child", name }, 1, 3, words.n + 1, words)
  local ms = tonumber(M.run(table.unpack(words)):match("makespan (%S+)"))
  return ms, not ms and "failed" or nil
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

local function compare(example, model)
  local predicted, problem = measure(example.name, "--device", "virtual:" .. example.devices, "--model", model)
  local measured
  if not M.virtual and example.devices > mr.device_count() then
    problem = ("needs %d devices"):format(example.devices)
  elseif not M.virtual then
    local failure
    measured, failure = measure(example.name, "--device", "cuda")
    problem = problem or failure
  end
  local ratio = predicted and measured and ("%.2f"):format(measured / predicted) or "-"
  return { example.name, cell(predicted), cell(measured), ratio, problem or "" }
end

local function parent(words)
  local wanted, model = {}, mr.machine and mr.machine.model() or "h200"
  local i = 1
  while words[i] do
    if words[i] == "--model" then
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
    if all or wanted[example.name] then rows[#rows + 1] = compare(example, model) end
    wanted[example.name] = nil
  end
  if next(wanted) then error(("there is no example `%s`"):format(next(wanted)), 0) end
  print(("predicted with the model %s%s"):format(model, M.virtual and "; there is no GPU to measure" or ""))
  M.print_table(rows)
end

if arg[1] == "--child" then child(arg[2]) else parent(arg) end
