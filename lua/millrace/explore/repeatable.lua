-- Whether anything is seen by which another call of a function could differ from its first one. It changed a variable
-- from outside of it, or it asked for a time, a random number or what somebody typed.
--
-- A function in which one schedule stands for all is called once if nothing is seen. What cannot be followed counts as
-- seen: a coroutine, a file, an iterator or another object of a C module, more values than MOST_VALUES. Then the
-- function is called a second time.
local apart = require "millrace.explore.apart"

local repeatable = {}

local MOST_VALUES = 20000 -- of all tables and functions that are looked into

-- What answers otherwise at another time: the fields of these libraries.
local ASKED = { os = { "clock", "time", "date", "tmpname", "getenv", "execute", "remove", "rename" },
                math = { "random" }, io = { "read", "lines", "open", "popen" } }
-- The same, and explore/script.lua does not answer these. The registry has what no table of a script leads to.
local ASKED_ALWAYS = { _G = { "collectgarbage" }, debug = { "getregistry" } }

-- ---------------------------------------------------------------- what belongs to Lua or to millrace

-- The tables of libraries and their functions. Only their own entries are watched: what they lead to is not a script's.
local function find_libraries()
  local libraries = {}
  for name, loaded in next, package and package.loaded or {} do
    local is_ours = tostring(name):find "^millrace" ~= nil
    if type(loaded) == "table" and loaded ~= _G and (is_ours or _G[name] == loaded) then
      libraries[loaded] = true
      for _, value in next, loaded do
        if type(value) == "function" then libraries[value] = true end
      end
    end
  end
  return libraries
end

-- Also the state of an iterator such as string.gmatch returns, which has no metatable.
local function is_foreign_object(userdata)
  local metatable = debug.getmetatable(userdata)
  local name = type(metatable) == "table" and rawget(metatable, "__name")
  return not (type(name) == "string" and name:find "^millrace")
end

local function is_of_millrace(fn)
  return debug.getinfo(fn, "S").source:find "^=millrace" ~= nil
end

-- ---------------------------------------------------------------- variables

local note

local function note_table(watched, t)
  local copy = {}
  watched.seen[t] = copy
  for key, value in next, t do
    watched.values = watched.values + 1
    if watched.values > MOST_VALUES then break end
    copy[key] = value
    note(watched, key)
    if not (t == _G and watched.asks[value]) then note(watched, value) end
  end
  note(watched, debug.getmetatable(t))
end

-- What a script can change of an object of millrace and another call would meet, as a text.
local STATES = {
  tensor = function(t) return tostring(t.requires_grad) end,
  event = function(e) return tostring(e.recorded) end,
  graph = function(g)
    local parts = {}
    for i, node in ipairs(g:nodes()) do parts[i] = tostring(node.enabled) end
    return table.concat(parts, " ")
  end,
}

local function state_of(object)
  local name = tostring(debug.getmetatable(object).__name):match "^millrace%.(%w+)$"
  local fine, state = pcall(STATES[name] or tostring, object)
  return STATES[name] and fine and state or "none"
end

-- Entries only.
local function note_shallowly(watched, t)
  local copy = {}
  for key, value in next, t do copy[key] = value end
  watched.seen[t] = copy
end

local function note_upvalues(watched, fn)
  local copy = {}
  watched.seen[fn] = copy
  for i = 1, 255 do
    local name, value = debug.getupvalue(fn, i)
    if not name then break end
    watched.values = watched.values + 1
    copy[i] = value
    note(watched, value)
  end
end

-- Keeps what the value refers to: seen[table or function] = its entries or upvalues. Sets `lost` where it cannot.
function note(watched, value)
  local kind = type(value)
  local is_closed = kind == "thread" or kind == "userdata" and is_foreign_object(value)
  if is_closed or watched.asks[value] or watched.values > MOST_VALUES then watched.lost = true
  elseif watched.lost or watched.seen[value] or watched.libraries[value] then return
  elseif kind == "table" then note_table(watched, value)
  elseif kind == "userdata" then watched.seen[value] = state_of(value)
  elseif kind == "function" and not is_of_millrace(value) then note_upvalues(watched, value) end
end

local function has_changed(value, copy)
  if type(value) == "function" then
    for i = 1, 255 do
      local name, now = debug.getupvalue(value, i)
      if not name then return false end
      if not rawequal(copy[i], now) then return true end
    end
    return false
  end
  if type(value) == "userdata" then return state_of(value) ~= copy end
  for key, now in next, value do
    if not rawequal(copy[key], now) then return true end
  end
  for key in next, copy do
    if rawget(value, key) == nil then return true end
  end
  return false
end

-- ---------------------------------------------------------------- questions

local function ask(watched, asked)
  apart.each_question(asked, function(fields, name, fn)
    watched.fields[#watched.fields + 1] = { fields, name, fn }
    fields[name] = function(...)
      local option = name == "collectgarbage" and ((...) or "collect")
      if not option or option == "count" or option == "step" then
        watched.asked = true
        apart.ask()
      end
      return fn(...)
    end
    apart.trust(fields[name])
  end)
end

-- Libraries, what `require` has loaded, and the metatables of Lua's own kinds of values.
local function note_common(watched)
  for library in next, watched.libraries do
    if type(library) == "table" then note_shallowly(watched, library) end
  end
  for _, name in ipairs { "loaded", "preload" } do
    local modules = package and package[name]
    if type(modules) == "table" then
      note_shallowly(watched, modules)
      for module, value in next, modules do
        if not tostring(module):find "^millrace" then note(watched, value) end
      end
    end
  end
  for _, value in ipairs { "", 0, true, print } do
    local metatable = debug.getmetatable(value)
    if type(metatable) == "table" then note_shallowly(watched, metatable) end
  end
end

-- ---------------------------------------------------------------- from outside

-- `is_script`: its questions are answered by explore/script.lua, as in the first run.
function repeatable.begin(fn, is_script)
  if not debug then return nil end
  local watched = { seen = {}, fields = {}, asks = {}, libraries = find_libraries(), values = 0 }
  local function closes(_, _, question) watched.asks[question] = true end
  if not is_script then apart.each_question(ASKED, closes) end
  apart.each_question(ASKED_ALWAYS, closes)
  note_common(watched)
  note(watched, fn)
  note(watched, _G) -- where the function has an environment of its own, too
  if not is_script then ask(watched, ASKED) end
  ask(watched, ASKED_ALWAYS)
  return watched
end

-- Puts back what `begin` has changed. True: nothing was seen.
function repeatable.finish(watched)
  for _, field in ipairs(watched.fields) do field[1][field[2]] = field[3] end
  if watched.asked or watched.lost then return false end
  for value, copy in next, watched.seen do
    if has_changed(value, copy) then return false end
  end
  return true
end

return repeatable
