-- Whether anything is seen by which another call of a function could differ from its first one: it changed a variable
-- of its own or a global one, or it asked for a time, a random number or what somebody typed.
--
-- A function in which one schedule stands for all is called once if nothing is seen. This is no proof that it does the
-- same again: a variable of a variable of a variable is not looked at.
local repeatable = {}

local MOST_ENTRIES = 1000 -- of a table that is looked into
local MOST_DEPTH = 3

-- What answers otherwise at another time: the fields of these libraries.
local ASKED = { os = { "clock", "time", "date", "tmpname", "getenv", "execute", "remove", "rename" },
                math = { "random" }, io = { "read", "lines", "open", "popen" } }

-- ---------------------------------------------------------------- variables

local function is_library(value)
  for name, loaded in next, package and package.loaded or {} do
    if loaded == value then
      return name == "_G" or _G[name] == value or tostring(name):find("^millrace") ~= nil
    end
  end
  return false
end

local note

local function note_table(seen, t, depth)
  local copy, count = {}, 0
  for key, value in next, t do
    count = count + 1
    if count > MOST_ENTRIES then break end
    copy[key] = value
    note(seen, value, depth + 1)
  end
  seen[t] = copy
end

local function note_upvalues(seen, fn, depth)
  local copy = {}
  seen[fn] = copy
  for i = 1, 255 do
    local name, value = debug.getupvalue(fn, i)
    if not name then break end
    copy[i] = value
    note(seen, value, depth + 1)
  end
end

-- Keeps what the value refers to: seen[table or function] = its entries or upvalues.
function note(seen, value, depth)
  local kind = type(value)
  if (kind ~= "table" and kind ~= "function") or seen[value] ~= nil or depth > MOST_DEPTH then return end
  if kind == "function" then note_upvalues(seen, value, depth)
  elseif not is_library(value) then note_table(seen, value, depth) end
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
  local count = 0
  for key, now in next, value do
    count = count + 1
    if count > MOST_ENTRIES then return false end
    if not rawequal(copy[key], now) then return true end
  end
  for key in next, copy do
    if rawget(value, key) == nil then return true end
  end
  return false
end

-- ---------------------------------------------------------------- questions

local function ask(watched)
  for library, names in next, ASKED do
    local fields = _G[library]
    for _, name in ipairs(type(fields) == "table" and names or {}) do
      local fn = rawget(fields, name)
      if fn then
        watched.fields[#watched.fields + 1] = { fields, name, fn }
        fields[name] = function(...)
          watched.asked = true
          return fn(...)
        end
      end
    end
  end
end

-- ---------------------------------------------------------------- from outside

-- `is_script`: its questions are answered by explore/script.lua, as in the first run.
function repeatable.begin(fn, is_script)
  if not debug then return nil end
  local watched = { seen = {}, fields = {} }
  note(watched.seen, fn, 1)
  local globals = {}
  for key, value in next, _G do globals[key] = value end
  watched.seen[_G] = globals
  if not is_script then ask(watched) end
  return watched
end

-- Puts back what `begin` has changed. True: nothing was seen.
function repeatable.finish(watched)
  for _, field in ipairs(watched.fields) do field[1][field[2]] = field[3] end
  if watched.asked then return false end
  for value, copy in next, watched.seen do
    if has_changed(value, copy) then return false end
  end
  return true
end

return repeatable
