-- The virtual GPU's predictions beside a GPU's times: for each example its makespan, and for kernels their launches.
--
--     build/millrace --device cuda scripts/makespan.lua [--model NAME] [--lines] [--only examples|kernels] [EXAMPLE...]
--
-- Each example runs in a process of its own on either backend, with its output thrown away and a limit of its time. The
-- time counts on mr.clock() from the first call to the end of all work, the host's time included. Preparations do not
-- count on either backend: compiling kernels, making graphs, and allocating host memory. The devices are waited for
-- before the first call. On a real GPU an example runs several times. The first run does not count, since the first use
-- of kernels and memory costs much. The shortest of the others does, since whatever else a machine does only makes
-- things slower.
--
-- The virtual GPU also predicts the time of Lua itself, with the library's part in it. The model
-- has a price for each instruction of Lua (lua_ns), and for each call of C that submits nothing
-- (lua_call_ns). It has one for the memory that Lua allocates (lua_kib_ns), and one for full
-- collections (lua_collect_ns). All of these are counted, so the prediction is the same in every
-- run.
--
-- --model takes the predicted figures from another model than h200, such as one that scripts/calibrate.lua wrote.
-- Without a GPU there is only the prediction. --lines says where the time of each example goes. A trace of one more run
-- (mr.timeline) tells for each line and operation how long the device was busy with it.
local mr = require "millrace"
local M = dofile((arg[0]:match("^(.*)/") or ".") .. "/measure.lua")

local LIMIT_S = 60 -- of an example, and of the kernels, on one backend
local RUNS, ENOUGH_MS = 9, 1500 -- on a real GPU, that count; no further one after so long

-- ---------------------------------------------------------------- in the child: one example

-- Functions that prepare: always, or where their options ask for memory of the host.
local ALWAYS = { "kernel", "module", "elementwise", "graph" }
local ON_HOST = { "empty", "zeros", "ones", "full", "arange", "linspace", "tensor", "zeros_like", "ones_like",
  "empty_like", "full_like", "eye", "rand", "randn", "randint" }

local function on_host(...)
  local opts = select("#", ...) > 0 and select(-1, ...)
  return type(opts) == "table" and (opts.pinned or opts.device == "cpu")
end

-- On the virtual GPU the time of Lua passes, too: begins with what is to come. A call of C is charged when the next
-- thing happens, and only if the clock stands where it stood: a call that submits has its price in the model. The hook
-- sees each instruction, since the instructions of a hook count, too: with a larger step they would take turns away.
local function begin_lua_time(lua)
  if not M.virtual or not lua.lua_ns then return end
  local clock, pass, getinfo, count = mr.clock, mr.machine.pass, debug.getinfo, collectgarbage
  local each, at_least = lua.lua_ns / 100, lua.lua_ns
  local kib, call_at, owed = count("count"), nil, 0
  debug.sethook(function(event)
    if call_at then
      if call_at == clock() then owed = owed + lua.lua_call_ns end
      call_at = nil
    end
    if event == "count" then
      owed = owed + each
      if owed < at_least then return end
    end
    local now = count("count")
    if now > kib then owed = owed + (now - kib) * lua.lua_kib_ns end
    if owed > 0 then
      pass(owed * 1e-6)
      owed = 0
    end
    if event ~= "count" and getinfo(2, "S").what == "C" then call_at = clock() end
    kib = count("count") -- what is made here does not count
  end, "c", 1)
end

-- The script's collectgarbage: a full collection takes as long as what is in use is large.
local function collect_in_time(lua)
  return function(what, ...)
    if M.virtual and lua.lua_ns and (what or "collect") == "collect" then
      mr.machine.pass(lua.lua_collect_ns * collectgarbage("count") * 1e-6)
    end
    return collectgarbage(what or "collect", ...)
  end
end

-- The milliseconds of one run. The example sees a machine that it cannot step, so that it does the same everywhere.
local function run_once(path, lua)
  local total, began, depth = 0, 0, 0
  local function stop()
    debug.sethook()
    M.wait_for_all()
    total = total + mr.clock() - began
  end
  local function go_on(ok, ...)
    depth = depth - 1
    M.wait_for_all()
    began = mr.clock()
    begin_lua_time(lua)
    if not ok then error((...), 0) end
    return ...
  end
  local function get_ready(fn, ...)
    if depth > 0 then return fn(...) end
    stop()
    depth = depth + 1
    return go_on(pcall(fn, ...))
  end
  local function kernel(...)
    local made = mr.kernel(...)
    made:access() -- else the first launch finds it out
    return made
  end
  local watched = {}
  for _, name in ipairs(ALWAYS) do
    local fn = name == "kernel" and kernel or mr[name]
    if type(fn) == "function" then
      watched[name] = function(...) return get_ready(fn, ...) end
    elseif fn then -- a table that can be called
      watched[name] = setmetatable({}, { __index = fn, __call = function(_, ...) return get_ready(fn, ...) end })
    end
  end
  for _, name in ipairs(ON_HOST) do
    watched[name] = function(...)
      if on_host(...) then return get_ready(mr[name], ...) end
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
    collectgarbage = collect_in_time(lua),
    mr = module,
  }
  local chunk = assert(loadfile(path, "t", setmetatable(quiet, { __index = _G })))
  began = mr.clock()
  begin_lua_time(lua)
  chunk()
  stop()
  return total
end

-- Where the device's time of one run goes, as lines for the parent.
local function print_lines(path, lua)
  local sums, order = {}, {}
  for _, span in ipairs(mr.timeline(run_once, path, lua).spans) do
    if span.engine and span.engine ~= "host" and span.start and span.where then
      local key = ("%s %s"):format(span.where:match("[^/]*$"), span.name)
      if not sums[key] then order[#order + 1] = key end
      sums[key] = (sums[key] or 0) + span.finish - span.start
    end
  end
  for _, key in ipairs(order) do print(("line %.9g %s"):format(sums[key], key)) end
end

local function child(name, model, lines)
  local path, lua = M.folder .. "/examples/" .. name .. ".lua", M.model_figures(model)
  run_once(path, lua)
  local ms, spent, runs = math.huge, 0, 0
  repeat
    collectgarbage()
    M.wait_for_all()
    local one = run_once(path, lua)
    ms, spent, runs = math.min(ms, one), spent + one, runs + 1
  until M.virtual or runs == RUNS or spent > ENOUGH_MS
  print(("makespan %.9g"):format(ms))
  if lines then print_lines(path, lua) end
end

-- ---------------------------------------------------------------- in the parent

local with_lines, model = false, "h200"

-- The milliseconds of one example with these options of the host, and those of its lines; nil and why not.
local function measure(name, ...)
  local words = table.pack(...)
  for _, word in ipairs{ arg[0], "--child", name, model, with_lines and "lines" or nil } do
    words[#words + 1] = word
  end
  local output, _, problem = M.run_within(LIMIT_S, M.host(), table.unpack(words))
  local ms = tonumber(output:match("makespan (%S+)"))
  if not ms then return nil, problem or output:match("millrace: ([^\n]+)") or "failed" end
  local lines = {}
  for time, key in output:gmatch("line (%S+) ([^\n]+)") do
    lines[#lines + 1] = { key = key, ms = tonumber(time) }
    lines[key] = tonumber(time)
  end
  return ms, nil, lines
end

-- Why an example is left out, if it is.
local function why_not(text)
  for _, what in ipairs{ "mr%.explore", "mr%.waits", "mr%.stress", "mr%.steer", "millrace%.testing" } do
    if text:find(what) then
      return ("it tries schedules (%s): its time is that of the search"):format((what:gsub("%%", "")))
    end
  end
end

-- Names of the examples, how many devices each needs (what its header asks for), and why it is left out.
local function find_examples()
  local list = {}
  local listing = assert(io.popen("ls " .. M.quote(M.folder .. "/examples") .. "/*.lua"))
  for path in listing:lines() do
    local file = assert(io.open(path))
    local text = file:read("a")
    file:close()
    list[#list + 1] = { name = path:match("([^/]+)%.lua$"), why_not = why_not(text),
      devices = tonumber(text:match("%-%- options: %-%-device virtual:(%d+)")) or 1 }
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

-- How many examples are as near as they should be: from 1 ms on a tenth, below it a fifth.
local near = { [true] = { 0, 0, "of 1 ms or more", 0.1 }, [false] = { 0, 0, "of less than 1 ms", 0.2 } }

local function note(predicted, measured)
  local is_long = measured >= 1 -- a variable: Lua 5.4.4 compiles `near[measured >= 1]` wrongly
  local class = near[is_long]
  class[2] = class[2] + 1
  if math.abs(measured / predicted - 1) <= class[4] then class[1] = class[1] + 1 end
end

local function add_example(rows, example)
  if example.why_not then
    rows[#rows + 1] = { example.name, "-", "-", "-", example.why_not }
    return
  end
  local predicted, problem, lines = measure(example.name, "--device", "virtual:" .. example.devices, "--model", model)
  local measured, measured_lines
  if not M.virtual and example.devices > mr.device_count() then
    problem = ("needs %d devices, and there %s %d"):format(example.devices, mr.device_count() == 1 and "is" or "are",
      mr.device_count())
  elseif not M.virtual then
    local failure
    measured, failure, measured_lines = measure(example.name, "--device", "cuda")
    problem = problem or failure
  end
  if predicted and measured and predicted > 0 then note(predicted, measured) end
  rows[#rows + 1] =
    { example.name, cell(predicted), cell(measured), ratio_of(predicted, measured), problem or "" }
  if with_lines then add_lines(rows, lines or {}, measured_lines) end
end

local function print_kernels()
  local script = M.folder .. "/bench/gpu/kernel_times.lua"
  local backend, mode = M.virtual and "virtual" or "cuda", M.virtual and "say" or nil
  local output, _, problem = M.run_within(3 * LIMIT_S, "env", "MILLRACE=" .. M.host(), "MODEL=" .. model, M.host(),
    "--device", backend, script, mode)
  print("\nkernels, in microseconds: what k:profile() tells, the virtual launch, and the GPU")
  io.write(output)
  if problem then print(problem) end
end

local function parent(words)
  local wanted, only = {}, nil
  if mr.machine then model = mr.machine.model() end
  local i = 1
  local function value(what)
    i = i + 1
    return words[i] or error(("%s: expected %s"):format(words[i - 1], what), 0)
  end
  while words[i] do
    if words[i] == "--lines" then
      with_lines = true
    elseif words[i] == "--model" then
      model = value("a name or a file")
    elseif words[i] == "--only" then
      only = value("examples or kernels")
    else
      wanted[words[i]] = true
    end
    i = i + 1
  end
  print(("predicted with the model %s%s"):format(model, M.virtual and "; there is no GPU to measure" or
    ", measured on " .. mr.device(0).name))
  local all = not next(wanted)
  local rows = { { "example", "predicted ms", "measured ms", "measured / predicted", "" } }
  for _, example in ipairs(find_examples()) do
    if only ~= "kernels" and (all or wanted[example.name]) then add_example(rows, example) end
    wanted[example.name] = nil
  end
  if next(wanted) then error(("there is no example `%s`"):format(next(wanted)), 0) end
  if only ~= "kernels" then M.print_table(rows) end
  for _, class in pairs(near) do
    if class[2] > 0 then
      print(("%d of %d examples %s are within %d %%"):format(class[1], class[2], class[3], class[4] * 100))
    end
  end
  if all and only ~= "examples" then print_kernels() end
end

if arg[1] == "--child" then child(arg[2], arg[3], arg[4]) else parent(arg) end
