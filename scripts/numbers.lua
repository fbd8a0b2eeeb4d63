-- Finds floats that are formatted or parsed by the rules of the locale that a script has chosen. Usage: numbers.lua
-- In C, base/number.h does both; in Lua, words.format of millrace/words.lua formats.
local found = 0

local function complain(path, text, at, what)
  local _, line = text:sub(1, at):gsub("\n", "")
  print(("%s:%d: %s"):format(path, line + 1, what))
  found = found + 1
end

local function files(pattern)
  local list = io.popen("find src lua -name '" .. pattern .. "' | sort")
  return function() return list:read() end
end

local FLOAT = "%%[-+ #0-9.*]*l?[aefgAEFG]"

-- Calls whose format has a conversion of a float.
local function check_calls(path, text, name, instead)
  for at, arguments in text:gmatch("()%f[%w_]" .. name .. "(%b())") do
    if arguments:find(FLOAT) then complain(path, text, at, name .. " formats a float: " .. instead) end
  end
end

for path in files("*.[ch]") do
  local text = assert(io.open(path)):read("a")
  if not path:find("^src/base/number") and not path:find("^src/compile/device/") then
    for _, name in ipairs { "snprintf", "fprintf", "printf", "lua_pushfstring", "luaL_error" } do
      check_calls(path, text, name, "use mr_number_format")
    end
    for _, name in ipairs { "strtod", "strtof", "atof", "vsnprintf", "vfprintf" } do
      for at in text:gmatch("()%f[%w_]" .. name .. "%(") do
        complain(path, text, at, name .. " follows the locale: use base/number.h")
      end
    end
  end
end

for path in files("*.lua") do
  local text = assert(io.open(path)):read("a")
  for at, format in text:gmatch("()%(\"([^\"\n]*)\"%):%s*format") do
    if format:gsub("%%%%", ""):find(FLOAT) then
      complain(path, text, at, "string.format follows the locale: use words.format")
    end
  end
end

os.exit(found == 0)
