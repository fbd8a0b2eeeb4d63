-- The values that a function can reach, and whether they have changed since: entries of tables, metatables, variables
-- of closures, objects of millrace, and settings of Lua and of millrace. repeatable.lua uses it for the values that an
-- explored function reaches, apart.lua for those that several ranks reach.
--
-- An object that cannot be inspected makes the watch `lost`: a coroutine, an object of a C module, or more values than
-- MOST_VALUES. The caller adds more kinds.
local mr = require "millrace"

local watch = {}

local MOST_VALUES = 20000 -- of all inspected tables and functions

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

local module_lists = setmetatable({}, { __mode = "k" })

-- A table in the place of package.loaded, for the script.
function watch.add_module_list(list) module_lists[list] = true end

for _, name in ipairs { "loaded", "preload" } do
  if package and package[name] then module_lists[package[name]] = true end
end

-- The beginnings of names that are not watched: modules of millrace are loaded when they are first needed.
local function left_out(t) return module_lists[t] and "millrace" or nil end

-- Copies of libraries and lists of modules are kept from watch to watch, as few scripts change one. They keep nothing
-- alive.
local kept = setmetatable({}, { __mode = "k" })
local WEAK = { __mode = "kv" }

-- The copy of a table without entries that were collected since; nil: the table has changed.
local function kept_copy(tools, t)
  local k = kept[t]
  if not k then return nil end
  local _, is_changed = tools.changed_entry(t, k.copy, k.count, left_out(t))
  return not is_changed and k or nil
end

local function keep_copy(tools, t)
  local copy = setmetatable({}, WEAK)
  local count = tools.copy_entries(t, copy, MOST_VALUES, left_out(t))
  kept[t] = { copy = copy, count = count }
  return kept[t]
end

local Watch = {}
Watch.__index = Watch

local function note_entries_of(self, t)
  if not module_lists[t] then
    for key, entry in next, t do
      self:note(key)
      self:note(entry)
    end
    return
  end
  for key, entry in next, self.seen[t] do
    self:note(key)
    self:note(entry)
  end
end

-- Keeps the entries of the table. The entries of a library are Lua's or millrace's: what they have is not kept.
local function note_table(self, t)
  local tools, copy, count = self.tools
  if self.libraries[t] or module_lists[t] then
    local k = kept_copy(tools, t) or keep_copy(tools, t)
    copy, count = k.copy, k.count
  else
    copy = {}
    count = tools.copy_entries(t, copy, MOST_VALUES - self.values, left_out(t))
  end
  self.seen[t], self.sizes[t], self.metatables[t] = copy, count, getmetatable(t)
  self.list[#self.list + 1] = t
  self.values = self.values + count
  if self.values > MOST_VALUES then self.is_lost = true end
  if self.libraries[t] then return end
  note_entries_of(self, t)
  self:note(self.metatables[t])
end

local function note_upvalues(self, fn)
  local copy, count = {}, 0
  self.seen[fn] = copy
  self.list[#self.list + 1] = fn
  for i, value in upvalues(fn) do
    self.values = self.values + 1
    if self.values > MOST_VALUES then break end
    if self.replace then value = self.replace(fn, i, value) end
    copy[i] = value
    if value ~= nil then count = count + 1 end
    self:note(value)
  end
  self.sizes[fn] = count
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
  elseif not self.is_known(value) then note_upvalues(self, value) end
end

-- Keeps the entries of a library: whether a script changes some.
function Watch:note_library(library)
  if type(library) == "table" then note_table(self, library) end
end

local function shown(key)
  return type(key) == "string" and "`" .. key .. "`" or type(key) == "number" and ("[%s]"):format(key) or "a table"
end

local function change_of_table(self, t)
  local compared, is_changed, key = self.tools.changed_entry(t, self.seen[t], self.sizes[t], left_out(t))
  self.compared = self.compared + compared
  if is_changed then return shown(key) end
  return self.metatables[t] ~= getmetatable(t) and "a metatable" or nil
end

local function change_of_function(self, fn)
  local copy, count = self.seen[fn], 0
  for i, now in upvalues(fn) do
    self.compared = self.compared + 1
    if now ~= nil then count = count + 1 end
    if not rawequal(copy[i], now) and (now == now or copy[i] == copy[i]) then -- NaN
      return ("`%s`"):format((getupvalue(fn, i)))
    end
  end
  return count ~= self.sizes[fn] and "a variable" or nil
end

-- The part of it that is not as it was, as a text; nil: nothing.
local function change_of(self, value)
  local kind = type(value)
  if kind == "table" then return change_of_table(self, value) end
  if kind == "function" then return change_of_function(self, value) end
  local is_same = self.tools.facts(value, self.sees_writes) == self.seen[value]
  return not is_same and "a property of " .. self.tools.kind(value) or nil
end

-- The change, as a text: "`n`"; nil: none.
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

-- `given` has `tools`, those of bind/explore/explore.c, and `libraries`, tables and functions of Lua or millrace.
-- `is_closed(value, kind)`: a function or an object of millrace that cannot be looked into. `is_known(fn)`: a function
-- that keeps nothing. `sees_writes`: whether a write to a tensor's memory is a change. `replace(fn, i, value)`: puts
-- the value in the place of an upvalue.
function watch.new(given)
  local self = setmetatable({ tools = given.tools, libraries = given.libraries, is_closed = given.is_closed,
    is_known = given.is_known, sees_writes = given.sees_writes, replace = given.replace, seen = {}, list = {},
    sizes = {}, metatables = {}, settings = {}, of_kinds = {}, values = 0, compared = 0 }, Watch)
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
