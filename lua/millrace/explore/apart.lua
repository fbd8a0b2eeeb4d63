-- Whether ranks of mr.dist.spawn share something that one of them changes, beside what collectives carry. Between two
-- of their turns, all that they can reach in common is compared with what it was at their beginning. If nothing has
-- changed in a run, each rank does the same in every order of the hosts, since it finds the same.
--
-- What cannot be looked into counts as changed: a coroutine, a stream, an event, an object or a function of a C module,
-- a closure that millrace has made. So do more values than MOST_VALUES, and more comparisons than MOST_COMPARED.
local apart = {}

local MOST_VALUES = 20000
local MOST_COMPARED = 4000000 -- of one call of the function

local getinfo, getupvalue = debug and debug.getinfo, debug and debug.getupvalue
local getmetatable, getuservalue = debug and debug.getmetatable, debug and debug.getuservalue

-- What answers otherwise at another time, or is everybody's: the fields of these libraries.
local ASKED = { os = { "clock", "time", "date", "tmpname", "getenv", "execute", "remove", "rename", "setlocale" },
                math = { "random", "randomseed" }, io = { "read", "lines", "open", "popen", "input", "output" } }

-- ---------------------------------------------------------------- what is trusted

local trusted = setmetatable({}, { __mode = "k" }) -- functions that share nothing that matters
local questions = setmetatable({}, { __mode = "k" }) -- those of ASKED, and what stands in their place

for _, value in next, _G do
  if type(value) == "function" and getinfo and getinfo(value, "S").what == "C" then trusted[value] = true end
end

local function is_ours(fn)
  local info = getinfo(fn, "S")
  return info.what == "C" or info.source:find "^=millrace" ~= nil
end

-- Trusts the functions of Lua and of millrace in the value. `seen`: all tables in it, and these functions. `others`:
-- functions that a script has put there.
local function trust_all(value, seen, others)
  local kind = type(value)
  if seen[value] or value == _G or kind ~= "table" and kind ~= "function" then return end
  if kind == "function" and not is_ours(value) then
    others[#others + 1] = value
    return
  end
  seen[value] = true
  if kind == "function" then
    trusted[value] = true
    return
  end
  for _, field in next, value do trust_all(field, seen, others) end
  trust_all(getmetatable(value), seen, others)
end

-- Functions in the value, which mr.explore has made for the script: they change nothing, or call apart.ask.
function apart.trust(value)
  if getinfo then trust_all(value, {}, {}) end
end

local module_lists = setmetatable({}, { __mode = "k" })

-- A table in the place of package.loaded, for the script.
function apart.modules(list) module_lists[list] = true end

local LIBRARIES = { "string", "table", "math", "io", "os", "utf8", "coroutine", "debug" }

-- The libraries of Lua and of millrace, and all tables in them; and what scripts have put there.
local function find_libraries()
  local libraries, others = {}, {}
  for _, name in ipairs(LIBRARIES) do trust_all(_G[name], libraries, others) end
  for _, part in next, package or {} do -- the tables in it change, as modules are loaded
    if type(part) == "function" then trust_all(part, libraries, others) end
  end
  trust_all(package and package.searchers, {}, others)
  trust_all(package and package.preload, {}, others)
  trust_all(getmetatable "", {}, others)
  for name, loaded in next, package and package.loaded or {} do
    if tostring(name):find "^millrace" then trust_all(loaded, libraries, others) end
  end
  return libraries, others
end

-- ---------------------------------------------------------------- what ranks can reach

local note

local function note_fields(watch, of, each)
  local copy, count = {}, 0
  watch.seen[of] = copy
  for key, value in each(of) do
    watch.values = watch.values + 1
    if watch.values > MOST_VALUES then break end
    copy[key] = value
    if value ~= nil then count = count + 1 end
    note(watch, key)
    note(watch, value)
  end
  watch.sizes[of] = count
end

-- Whether a script adds fields to it; what is in them is known.
local function note_library(watch, library)
  if type(library) ~= "table" then return end
  local copy, count = {}, 0
  for key, value in next, library do copy[key], count = value, count + 1 end
  watch.seen[library], watch.sizes[library] = copy, count
end

local function next_upvalue(fn, i)
  local name, value = getupvalue(fn, i + 1)
  if name then return i + 1, value end
end

local function upvalues(fn) return next_upvalue, fn, 0 end

local function next_of_script(loaded, key)
  local value
  repeat key, value = next(loaded, key) until key == nil or not tostring(key):find "^millrace"
  return key, value
end

-- Modules of millrace are loaded when they are first needed.
local function fields(t)
  return (t == (package and package.loaded) or module_lists[t]) and next_of_script or next, t
end

-- Classes of modules and their methods are closures of millrace, too. What these keep beside the modules is each
-- module's own. Other closures of millrace, as iterators, may go on for all.
local OF_EACH_RANK = { ["=millrace.spmd"] = true, ["=millrace.loading"] = true }

local function note_function(watch, fn)
  local info = getinfo(fn, "S")
  if trusted[fn] or info.source:find "^=millrace%.nn" then return end
  if info.what == "C" then watch.is_lost = not watch.tools.is_own(fn)
  elseif info.source:find "^=millrace" and not OF_EACH_RANK[info.source] then watch.is_lost = true
  else note_fields(watch, fn, upvalues) end
end

-- `kind_of`: of an object of millrace, as "a tensor".
local STATELESS = { ["a kernel"] = true, ["a module"] = true, ["a device"] = true }

local function note_object(watch, object)
  local kind = watch.tools.kind(object)
  if kind == "a tensor" then
    watch.facts[object] = watch.tools.tensor_facts(object)
    watch.seen[object] = {}
    note(watch, getuservalue(object, 1))
  elseif not STATELESS[kind] then watch.is_lost = true end
end

function note(watch, value)
  local kind = type(value)
  if kind == "thread" or questions[value] or watch.values > MOST_VALUES then watch.is_lost = true
  elseif watch.is_lost or watch.seen[value] or watch.libraries[value] then return
  elseif kind == "table" then
    note_fields(watch, value, fields)
    note(watch, getmetatable(value))
  elseif kind == "function" then note_function(watch, value)
  elseif kind == "userdata" then note_object(watch, value) end
end

local function has_changed(watch, value, copy)
  local kind, count = type(value), 0
  if kind == "userdata" then return watch.facts[value] ~= watch.tools.tensor_facts(value) end
  for key, now in (kind == "table" and fields or upvalues)(value) do
    watch.compared = watch.compared + 1
    if now ~= nil then count = count + 1 end
    if not rawequal(copy[key], now) then return true end
  end
  return count ~= watch.sizes[value]
end

-- ---------------------------------------------------------------- questions

-- Calls visit(library, name, function) for each function that `asked` names, as ASKED does.
function apart.each_question(asked, visit)
  for library, names in next, asked do
    local of = _G[library]
    for _, name in ipairs(type(of) == "table" and names or {}) do
      local fn = rawget(of, name)
      if fn then visit(of, name, fn) end
    end
  end
end

local active -- the watch of ranks that run
local are_apart = false

-- A rank asks for what is everybody's.
function apart.ask()
  if active then active.is_lost = true end
end

local function put_back(watch)
  for _, field in ipairs(watch.replaced) do field[1][field[2]] = field[3] end
end

local function replace_questions(watch)
  apart.each_question(ASKED, function(of, name, fn)
    watch.replaced[#watch.replaced + 1] = { of, name, fn }
    questions[fn] = true
    local function asked(...)
      apart.ask()
      return fn(...)
    end
    trusted[asked] = true
    of[name] = asked
  end)
end

-- ---------------------------------------------------------------- what spawn calls, protected

local spawn = {}

-- Ranks are about to begin: their function, and its other arguments.
function spawn.begin(...)
  if not getinfo then
    are_apart = false
    return
  end
  active = { tools = spawn.tools, seen = {}, sizes = {}, facts = {}, replaced = {}, values = 0, compared = 0 }
  local others
  active.libraries, others = find_libraries()
  apart.each_question(ASKED, function(_, _, fn) questions[fn] = true end)
  for _, value in ipairs(others) do note(active, value) end
  for i = 1, select("#", ...) do note(active, (select(i, ...))) end
  note(active, getmetatable "")
  note(active, _G) -- also where the function has an environment of its own
  replace_questions(active)
  for _, name in ipairs(LIBRARIES) do note_library(active, _G[name]) end
end

-- Between two turns.
function spawn.turn()
  local watch = active
  if not watch or watch.is_lost or watch.has_changed then return end
  for value, copy in next, watch.seen do
    if has_changed(watch, value, copy) then watch.has_changed = true end
    if watch.has_changed then return end
  end
  if watch.compared > MOST_COMPARED then watch.is_lost = true end
end

-- They have ended; `failed`: some by an error, and which one is the first may depend on their order.
function spawn.finish(failed)
  if active then
    put_back(active)
    are_apart = are_apart and not (failed or active.is_lost or active.has_changed)
  end
  active = nil
end

-- A call of the function begins, whose ranks are watched, with the tools of src/bind/explore.c. Returns what
-- mr.dist.spawn calls.
function apart.begin(tools)
  are_apart, active, spawn.tools = true, nil, tools
  return spawn
end

function apart.finish() return are_apart end

return apart
