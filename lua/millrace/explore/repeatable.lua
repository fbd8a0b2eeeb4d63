-- Whether anything is seen by which another call of a function could differ from its first one. It changed a variable
-- from outside of it, or it asked for a time, a random number or what somebody typed.
--
-- A function in which one schedule stands for all is called once if nothing is seen. What cannot be followed counts as
-- seen: a coroutine, a file, an iterator or another object of a C module, more values than MOST_VALUES. Then the
-- function is called a second time.
local repeatable = {}

local MOST_VALUES = 20000 -- of all tables and functions that are looked into

-- What answers otherwise at another time: the fields of these libraries.
local ASKED = { os = { "clock", "time", "date", "tmpname", "getenv", "execute", "remove", "rename" },
                math = { "random" }, io = { "read", "lines", "open", "popen" } }

-- ---------------------------------------------------------------- what belongs to Lua or to millrace

-- The tables of libraries and their functions, which scripts use and do not change.
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
    note(watched, value)
  end
  note(watched, debug.getmetatable(t))
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
  for key, now in next, value do
    if not rawequal(copy[key], now) then return true end
  end
  for key in next, copy do
    if rawget(value, key) == nil then return true end
  end
  return false
end

-- ---------------------------------------------------------------- questions

-- Calls visit(library, name, function) for each function that ASKED names.
local function each_question(visit)
  for library, names in next, ASKED do
    local fields = _G[library]
    for _, name in ipairs(type(fields) == "table" and names or {}) do
      local fn = rawget(fields, name)
      if fn then visit(fields, name, fn) end
    end
  end
end

local function ask(watched)
  each_question(function(fields, name, fn)
    watched.fields[#watched.fields + 1] = { fields, name, fn }
    fields[name] = function(...)
      watched.asked = true
      return fn(...)
    end
  end)
end

-- ---------------------------------------------------------------- from outside

-- `is_script`: its questions are answered by explore/script.lua, as in the first run.
function repeatable.begin(fn, is_script)
  if not debug then return nil end
  local watched = { seen = {}, fields = {}, asks = {}, libraries = find_libraries(), values = 0 }
  if not is_script then each_question(function(_, _, question) watched.asks[question] = true end) end
  note(watched, fn)
  note(watched, _G) -- where the function has an environment of its own, too
  if not is_script then ask(watched) end
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
