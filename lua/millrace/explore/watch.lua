-- What a function can reach, and whether it has changed since: entries of tables, metatables, variables of closures,
-- objects of millrace, and settings of Lua and of millrace. repeatable.lua asks this of all that an explored function
-- finds, apart.lua of all that several ranks find.
--
-- What cannot be looked into makes the watch `lost`: a coroutine, an object of a C module, or more values than
-- MOST_VALUES. Who asks says what else.
local mr = require "millrace"

local watch = {}

local MOST_VALUES = 20000 -- of all tables and functions that are looked into

local getinfo, getupvalue = debug and debug.getinfo, debug and debug.getupvalue
local getmetatable, getuservalue = debug and debug.getmetatable, debug and debug.getuservalue

watch.is_there = getinfo ~= nil -- not in the sandbox

-- ---------------------------------------------------------------- settings

-- The first result tells whether the setting is another one. The functions are those of before anything is watched.
local SETTINGS = {
  ["io.output"] = io and io.output, ["io.input"] = io and io.input, ["os.setlocale"] = os and os.setlocale,
  ["debug.sethook"] = debug and debug.gethook,
  ["mr.sync_debug"] = mr.sync_debug, ["mr.hazard.mode"] = mr.hazard.mode,
}

-- One value of each kind that has one metatable for all.
local KINDS = { ["nil"] = false, boolean = true, number = 0, string = "", ["function"] = print,
                thread = coroutine and coroutine.running() }

local function metatable_of_kind(kind)
  if kind == "nil" then return getmetatable(nil) end
  return getmetatable(KINDS[kind])
end

-- ---------------------------------------------------------------- values

local function is_of_millrace(metatable)
  local name = type(metatable) == "table" and rawget(metatable, "__name")
  return type(name) == "string" and name:find "^millrace" ~= nil
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

local module_lists = setmetatable({}, { __mode = "k" })

-- A table in the place of package.loaded, for the script.
function watch.add_module_list(list) module_lists[list] = true end

for _, name in ipairs { "loaded", "preload" } do
  if package and package[name] then module_lists[package[name]] = true end
end

-- Modules of millrace are loaded when they are first needed.
local function fields(t) return module_lists[t] and next_of_script or next, t end

local Watch = {}
Watch.__index = Watch

-- Keeps the entries of the value, over which `each` goes. The entries of a library are Lua's or millrace's: what they
-- have is not kept.
local function note_entries(self, value, each)
  local copy, count, is_library = {}, 0, self.libraries[value]
  self.seen[value] = copy
  self.list[#self.list + 1] = value
  for key, entry in each(value) do
    self.values = self.values + 1
    if self.values > MOST_VALUES then break end
    copy[key] = entry
    if entry ~= nil then count = count + 1 end
    if not is_library then
      self:note(key)
      self:note(entry)
    end
  end
  self.sizes[value] = count
end

local function note_table(self, t)
  note_entries(self, t, fields)
  self.metatables[t] = getmetatable(t)
  if not self.libraries[t] then self:note(self.metatables[t]) end
end

local function note_object(self, object)
  if not is_of_millrace(getmetatable(object)) or self.is_closed(object, "userdata") then
    self.is_lost = true
    return
  end
  self.seen[object] = self.tools.facts(object, self.sees_writes)
  self.list[#self.list + 1] = object
  self:note((getuservalue(object, 1)))
end

-- Keeps all that can be reached from the value, as it is now.
function Watch:note(value)
  local kind = type(value)
  if kind ~= "table" and kind ~= "function" and kind ~= "userdata" and kind ~= "thread" then return end
  if self.seen[value] or self.is_lost then return end
  if kind == "thread" or self.values > MOST_VALUES then self.is_lost = true
  elseif kind == "function" and self.is_closed(value, kind) then self.is_lost = true
  elseif self.libraries[value] then return
  elseif kind == "table" then note_table(self, value)
  elseif kind == "userdata" then note_object(self, value)
  elseif not self.is_known(value) then note_entries(self, value, upvalues) end
end

-- Keeps the entries of a library: whether a script changes some.
function Watch:note_library(library)
  if type(library) == "table" then note_table(self, library) end
end

local function shown(key)
  return type(key) == "string" and "`" .. key .. "`" or type(key) == "number" and ("[%s]"):format(key) or "a table"
end

-- What of it is not as it was, as a text; nil: nothing.
local function change_of(self, value)
  local kind, copy, count = type(value), self.seen[value], 0
  if kind == "userdata" then
    local is_same = self.tools.facts(value, self.sees_writes) == copy
    return not is_same and "a property of " .. self.tools.kind(value) or nil
  end
  for key, now in (kind == "table" and fields or upvalues)(value) do
    self.compared = self.compared + 1
    if now ~= nil then count = count + 1 end
    if not rawequal(copy[key], now) and (now == now or copy[key] == copy[key]) then -- NaN
      return kind == "table" and shown(key) or ("`%s`"):format((getupvalue(value, key)))
    end
  end
  if count ~= self.sizes[value] then
    for key in next, copy do
      if kind == "function" or rawget(value, key) == nil then return shown(key) end
    end
  end
  if kind == "table" and self.metatables[value] ~= getmetatable(value) then return "a metatable" end
  return nil
end

-- What has changed, as a text: "`n`"; nil: nothing.
function Watch:change()
  for name, get in next, SETTINGS do
    if get() ~= self.settings[name] then return name end
  end
  if self.tools.settings() ~= self.machine then return "a setting of the machine" end
  for kind in next, KINDS do
    if metatable_of_kind(kind) ~= self.of_kinds[kind] then return ("the metatable of each %s"):format(kind) end
  end
  for _, value in ipairs(self.list) do
    local change = change_of(self, value)
    if change then return change end
  end
  return nil
end

-- `given`: `tools`, those of src/bind/explore.c; `libraries`, tables and functions that are Lua's or millrace's;
-- `is_closed(value, kind)`, a function or an object of millrace that cannot be looked into; `is_known(fn)`, a function
-- that keeps nothing; `sees_writes`, whether a write to a tensor's memory is a change.
function watch.new(given)
  local self = setmetatable({ tools = given.tools, libraries = given.libraries, is_closed = given.is_closed,
    is_known = given.is_known, sees_writes = given.sees_writes, seen = {}, list = {}, sizes = {}, metatables = {},
    settings = {}, of_kinds = {}, values = 0, compared = 0 }, Watch)
  local tools = self.tools
  for name, get in next, SETTINGS do self.settings[name] = get() end
  self.machine = tools.settings()
  for kind in next, KINDS do
    self.of_kinds[kind] = metatable_of_kind(kind)
    if self.of_kinds[kind] then self:note(self.of_kinds[kind]) end
  end
  return self
end

return watch
