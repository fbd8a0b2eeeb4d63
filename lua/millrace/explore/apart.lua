-- Whether ranks of mr.dist.spawn share data that one of them changes, besides the data of collectives. Wherever another
-- rank could go on, all values that several ranks can reach are compared with their state at the beginning. If nothing
-- has changed in a run, each rank does the same in every order of the hosts, since it reads the same values.
--
-- An object that cannot be inspected counts as changed: a coroutine, a stream, an event, an object or a function of a C
-- module, a closure that millrace has made. Too many values count, too (watch.lua), and more comparisons than
-- MOST_COMPARED.
local watch = require "millrace.explore.watch"

local apart = {}
local spawn = {} -- the functions that mr.dist.spawn calls

local MOST_COMPARED = 4000000 -- of one call of the function

local getinfo, getmetatable = debug and debug.getinfo, debug and debug.getmetatable

-- Fields of these libraries that answer otherwise at another time, or act on things that all ranks share.
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

local LIBRARIES = { "string", "table", "math", "io", "os", "utf8", "coroutine", "debug" }

-- The libraries of Lua and of millrace, and all tables in them; and entries that scripts have added.
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

local OF_EACH_RANK = { ["=millrace.spmd"] = true, ["=millrace.loading"] = true }
local STATELESS = { ["a kernel"] = true, ["a module"] = true, ["a device"] = true }

-- A function that keeps nothing. Classes of modules and their methods are closures of millrace, too: each module keeps
-- its own data, apart from shared modules.
local function is_known(fn)
  if trusted[fn] then return true end
  local info = getinfo(fn, "S")
  return info.what == "C" and spawn.tools.is_own(fn) or info.source:find "^=millrace%.nn" ~= nil
end

-- Objects that cannot be inspected: streams, events and graphs; C functions of other modules; other closures of
-- millrace, such as iterators, whose state several ranks may share.
local function is_closed(value, kind)
  if kind == "userdata" then
    local name = spawn.tools.kind(value)
    return name ~= "a tensor" and not STATELESS[name]
  end
  if questions[value] then return true end
  if is_known(value) then return false end
  local info = getinfo(value, "S")
  return info.what == "C" or info.source:find "^=millrace" ~= nil and not OF_EACH_RANK[info.source]
end

-- ---------------------------------------------------------------- questions

-- Calls visit(table, name, function, name of the table) for each function that `asked` names, as ASKED does.
function apart.each_question(asked, visit)
  for library, names in next, asked do
    local of = _G[library]
    for _, name in ipairs(type(of) == "table" and names or {}) do
      local fn = rawget(of, name)
      if fn then visit(of, name, fn, library) end
    end
  end
end

local active -- the watch of ranks that run
local are_apart = false

-- Notes that a rank reads state that all ranks share.
function apart.ask()
  if active then active.asks = true end
end

local function put_back(watched)
  for _, field in ipairs(watched.replaced) do field[1][field[2]] = field[3] end
end

local function replace_questions(watched)
  apart.each_question(ASKED, function(of, name, fn)
    watched.replaced[#watched.replaced + 1] = { of, name, fn }
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

-- Ranks are about to begin: their function, and its other arguments.
function spawn.begin(...)
  if not watch.is_there then
    are_apart = false
    return
  end
  local libraries, others = find_libraries()
  active = { replaced = {} }
  replace_questions(active) -- the watch's own replacements are not changes
  local state = watch.new{ tools = spawn.tools, libraries = libraries, is_closed = is_closed, is_known = is_known,
                           sees_writes = true }
  active.state = state
  for _, value in ipairs(others) do state:note(value) end
  for i = 1, select("#", ...) do state:note((select(i, ...))) end
  state:note(_G) -- also where the function has an environment of its own
  for _, name in ipairs(LIBRARIES) do state:note_library(_G[name]) end
end

-- Another rank could go on now.
function spawn.turn()
  local state = active and not active.asks and not active.has_changed and active.state
  if not state or state.is_lost then return end
  active.has_changed = state:change() ~= nil
  if state.compared > MOST_COMPARED then state.is_lost = true end
end

spawn.ask = apart.ask

-- They have ended; `failed`: some by an error, and which one is the first may depend on their order.
function spawn.finish(failed)
  if active then
    put_back(active)
    are_apart = are_apart and not (failed or active.asks or active.state.is_lost or active.has_changed)
  end
  active = nil
end

-- A call of the function begins, whose ranks are watched, with the tools of src/bind/explore/explore.c. Returns the
-- functions that mr.dist.spawn calls.
function apart.begin(tools)
  are_apart, active, spawn.tools = true, nil, tools
  return spawn
end

function apart.finish() return are_apart end

return apart
