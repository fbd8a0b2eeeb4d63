-- Whether a function's call used a source of difference, so that another call could differ from the first one. It
-- changed state outside itself (watch.lua), or it read a time, a random number or keyboard input. Or it went through a
-- table in an order of addresses: where a table, a function or an object is a key, `pairs` comes to it by its address.
--
-- A function in which one schedule stands for all is called once if nothing is seen. An object that cannot be inspected
-- counts as one: a coroutine, a file, an iterator or another object of a C module. Then the function is called a second
-- time.
local apart = require "millrace.explore.apart"
local watch = require "millrace.explore.watch"

local repeatable = {}

-- The fields of these libraries that answer otherwise at another time.
local ASKED = { os = { "clock", "time", "date", "tmpname", "getenv", "execute", "remove", "rename" },
                math = { "random" }, io = { "read", "lines", "open", "popen" } }
-- The same, and explore/script.lua does not answer these. The registry has values that no table of the script contains.
local ASKED_ALWAYS = { _G = { "collectgarbage", "setmetatable" }, debug = { "getregistry" } }
local CHANGES_NOTHING = { collect = true, isrunning = true } -- of collectgarbage

-- The time of a finalizer is not repeatable.
local function is_harmless(name, first, metatable)
  if name == "collectgarbage" then return CHANGES_NOTHING[first or "collect"] end
  return name == "setmetatable" and (type(metatable) ~= "table" or rawget(metatable, "__gc") == nil)
end

local WEAK, WEAK_KEYS = { __mode = "kv" }, { __mode = "k" }

-- The tables of libraries and their functions. Only their own entries are watched, since other values in them do not
-- belong to the script. `tables`: the tables of the last search, with their entries at that time. All references are
-- weak.
local function find_libraries(tools)
  local libraries, tables = setmetatable({}, WEAK_KEYS), setmetatable({}, WEAK_KEYS)
  local function note(t)
    local copy = setmetatable({}, WEAK)
    tables[t] = { copy = copy, count = tools.copy_entries(t, copy, math.maxinteger - 1) }
  end
  for name, loaded in next, package and package.loaded or {} do
    local is_ours = tostring(name):find "^millrace" ~= nil
    if type(loaded) == "table" and loaded ~= _G and (is_ours or _G[name] == loaded) then
      libraries[loaded] = true
      note(loaded)
      for _, value in next, loaded do
        if type(value) == "function" then libraries[value] = true end
      end
    end
  end
  if package and package.loaded then note(package.loaded) end
  if package and package.searchers then libraries[package.searchers] = true end
  note(_G)
  return { libraries = libraries, tables = tables, searchers = package and package.searchers }
end

local function is_as_it_was(tools, found)
  if found.searchers ~= (package and package.searchers) then return false end
  for t, kept in next, found.tables do
    if select(2, tools.changed_entry(t, kept.copy, kept.count)) then return false end
  end
  return found.tables[_G] ~= nil and (not package or found.tables[package.loaded] ~= nil)
end

local found -- by the last watch

local function libraries_of(tools)
  if not found or not is_as_it_was(tools, found) then found = find_libraries(tools) end
  return found.libraries
end

local Watched = {}
Watched.__index = Watched

local active -- whose call is being made
local askings = setmetatable({}, WEAK_KEYS) -- by function: its replacement, by its name

-- The replacement of a function, which notes its calls. It is the same in each watch.
local function asking(name, library, fn)
  local shown = library == "_G" and name or library .. "." .. name
  if name == "setmetatable" then shown = "setmetatable with __gc" end
  local by_name = askings[fn] or {}
  askings[fn] = by_name
  if by_name[shown] then return by_name[shown] end
  local function asked(...)
    if not is_harmless(name, ...) then
      if active then active.asked = active.asked or shown end
      apart.ask()
    end
    return fn(...)
  end
  by_name[shown] = asked
  apart.trust(asked)
  return asked
end

-- `next` and `pairs` of Lua, and their replacements, which note orders of addresses.
local walks, is_walk, has_walked

local function make_walks(tools)
  if walks then return end
  local walk_next, walk_pairs
  walk_next, walk_pairs, has_walked = tools.walk()
  walks = { [next] = walk_next, [pairs] = walk_pairs }
  is_walk = { [walk_next] = true, [walk_pairs] = true }
  apart.trust(walk_next)
  apart.trust(walk_pairs)
end

-- From now on calls of these functions are noted.
function Watched:ask()
  active = self
  has_walked()
  for _, q in ipairs(self.questions) do q.fields[q.name] = q.asked end
  for _, u in ipairs(self.upvalues) do debug.setupvalue(u.of, u.index, walks[u.fn]) end
end

local function put_back(self)
  active = nil
  for _, q in ipairs(self.questions) do q.fields[q.name] = q.fn end
  for _, u in ipairs(self.upvalues) do
    if select(2, debug.getupvalue(u.of, u.index)) == walks[u.fn] then debug.setupvalue(u.of, u.index, u.fn) end
  end
end

-- Restores the functions. Returns the first source of difference since `ask`, as a text: "calls os.clock"; nil:
-- nothing.
function Watched:seen()
  local change = not self.state.is_lost and self.state:change()
  put_back(self)
  local walked = has_walked() and "goes through a table in the order of addresses, as its keys are tables or objects"
  return change and "changes " .. change or self.asked and "calls " .. self.asked or walked or nil
end

function Watched:is_lost() return self.state.is_lost end

-- Watches the function, whose calls begin and end with `ask` and `seen`. `is_script`: its questions are answered by
-- explore/script.lua, as in the first run. nil: nothing can be watched.
function repeatable.watch(tools, fn, is_script)
  if not watch.is_there then return nil end
  make_walks(tools)
  local self, asked_of = setmetatable({ questions = {}, upvalues = {} }, Watched), {}
  local libraries = libraries_of(tools)
  for _, asked in ipairs(is_script and { ASKED_ALWAYS } or { ASKED, ASKED_ALWAYS }) do
    apart.each_question(asked, function(fields, name, question, library)
      asked_of[question] = true
      self.questions[#self.questions + 1] = { fields = fields, name = name, fn = question,
                                              asked = asking(name, library, question) }
    end)
  end
  for _, name in ipairs { "next", "pairs" } do
    local walk = rawget(_G, name)
    if walks[walk] then
      self.questions[#self.questions + 1] = { fields = _G, name = name, fn = walk, asked = walks[walk] }
    end
  end
  self:ask() -- what is put in the place of a question is not a change
  local state = watch.new{ tools = tools, libraries = libraries,
    is_closed = function(value) return asked_of[value] end,
    replace = function(of, index, value)
      if not walks[value] then return value end
      self.upvalues[#self.upvalues + 1] = { of = of, index = index, fn = value }
      debug.setupvalue(of, index, walks[value])
      return walks[value]
    end,
    is_known = function(f) return is_walk[f] or debug.getinfo(f, "S").source:find "^=millrace" ~= nil end }
  self.state = state
  state:note(fn) -- first, so that it is named first
  for library in next, libraries do state:note_library(library) end
  state:note(package and package.loaded)
  state:note(package and package.preload)
  state:note(_G) -- where the function has an environment of its own, too
  put_back(self)
  return self
end

return repeatable
