-- The environment of a solution: copies of Lua's functions, and `mr` without the judge's functions. `seen` is a table
-- of the judge, in which the view notes the solution's calls.

local view = {}

-- Names of `mr` that judge, that look behind the order of things, or that change how everything runs.
local HIDDEN = {}
for name in ([[explore replay stress waits timeline trace hazard machine program reset launch_blocking sync_debug help
  save load docs]]):gmatch("%S+") do HIDDEN[name] = true end

-- mr.barrier for a solution. `seen.barriers` counts the members of each line that calls it. If `seen.left_out` names a
-- line and a member, that one does not wait, while the others wait for it.
local function barrier_of(seen)
  return function(streams, ...)
    local _, where = pcall(error, "", 3)
    if type(streams) ~= "table" then return mr.barrier(streams, ...) end
    seen.barriers[where] = math.max(seen.barriers[where] or 0, #streams)
    local out = seen.left_out
    if not out or out.where ~= where then return mr.barrier(streams, ...) end
    local events = {}
    for i, stream in ipairs(streams) do events[i] = stream:record_event() end
    for i, stream in ipairs(streams) do
      if i == out.member then out.name = stream.name end
      for k, event in ipairs(events) do
        if i ~= out.member and i ~= k then stream:wait_event(event) end
      end
    end
  end
end

-- mr.run for a solution. `seen.tasks`: it has been called.
local function run_of(seen)
  return function(...)
    seen.tasks = true
    return mr.run(...)
  end
end

-- mr.kernel for a solution. `seen.kernels` has the texts of the kernels, each once.
local function kernel_of(seen)
  return function(text, ...)
    local is_known = type(text) ~= "string"
    for _, one in ipairs(seen.kernels) do is_known = is_known or one == text end
    if not is_known then table.insert(seen.kernels, text) end
    return mr.kernel(text, ...)
  end
end

-- mr.graph for a solution. `seen.captured` has the names of the streams that have been in a capture at its end: among
-- those that the solution was given, seen.streams.
local function graph_of(seen)
  local function note()
    for _, stream in ipairs(seen.streams or {}) do
      if stream:is_capturing() then seen.captured[stream.name] = true end
    end
  end
  local function noted(fn)
    if type(fn) ~= "function" then return fn end
    return function(...)
      local results = table.pack(fn(...))
      note()
      return table.unpack(results, 1, results.n)
    end
  end
  return setmetatable({
    capture = function(fn, ...) return mr.graph.capture(noted(fn), ...) end,
    finish = function(...)
      note()
      return mr.graph.finish(...)
    end,
  }, { __index = mr.graph, __call = function(_, fn, ...) return mr.graph(noted(fn), ...) end, __metatable = false })
end

local function view_of_mr(seen)
  local own = { barrier = barrier_of(seen), run = run_of(seen), kernel = kernel_of(seen), graph = graph_of(seen) }
  return setmetatable({}, {
    __index = function(_, name)
      if own[name] then return own[name] end
      if HIDDEN[name] then error(("mr.%s is not for an exercise: write streams and waits"):format(name), 2) end
      return mr[name]
    end,
    __newindex = function(_, name) error(("an exercise cannot change mr.%s"):format(tostring(name)), 2) end,
    __metatable = false,
  })
end

local function copy(library)
  local fresh = {}
  for name, value in pairs(library) do fresh[name] = value end
  return fresh
end

local function is_on_a_device(value)
  local ok, is_there = pcall(function() return value.numel and value.device ~= "cpu" end)
  return type(value) == "userdata" and ok and is_there
end

-- `seen.printed` and `seen.caught`: whether the solution has printed, and whether it has asked for pcall.
-- `seen.waiting_print`: the line of a print that waits.
function view.environment(seen)
  local fresh = {
    assert = assert, error = error, ipairs = ipairs, next = next, pairs = pairs, select = select,
    tonumber = tonumber, tostring = tostring, type = type,
    string = copy(string), table = copy(table), math = copy(math), mr = view_of_mr(seen),
  }
  fresh._G = fresh
  -- Writes nothing. To print a tensor copies it and waits, here, too.
  function fresh.print(...)
    seen.printed = true
    for _, value in pairs { ... } do
      if is_on_a_device(value) then
        local _, where = pcall(error, "", 3)
        seen.waiting_print = seen.waiting_print or where:match(":(%d+):")
        value:cpu()
      end
    end
  end
  function fresh.require(name)
    if name == "millrace" then return fresh.mr end
    error(("an exercise can only require millrace, not %s"):format(tostring(name)), 2)
  end
  local function catch()
    seen.caught = true
    error("an exercise may not catch errors", 2)
  end
  fresh.pcall, fresh.xpcall = catch, catch
  function fresh.collectgarbage()
    error("collectgarbage is not for an exercise: end a variable with <close>, or free the tensor", 2)
  end
  return fresh
end

return view
