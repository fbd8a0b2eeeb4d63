-- ?x says what x is, ??x shows where it comes from: the text of a Lua function, the usage of another one.
local _, tools = ...

local inspect = {}
local session = tools.require "session"

-- The lines of a Lua function: of an entry, of a file that can be read, of a module of the program; nil.
local function source_of(info)
  local entry = session.entry_of(info.source:sub(2))
  local text = entry and entry.text
  if not text and info.source:find("^@") then text = tools.read_file(info.source:sub(2)) end
  if not text then return nil end
  local lines, at = {}, 0
  for line in (text .. "\n"):gmatch("(.-)\r?\n") do
    at = at + 1
    if at >= info.linedefined and at <= info.lastlinedefined then lines[#lines + 1] = line end
  end
  return ("-- %s:%d\n%s\n"):format(info.short_src, info.linedefined, table.concat(lines, "\n"))
end

local function describe_function(fn, with_source)
  local info = tools.getinfo(fn, "S")
  if tools.usage(fn) then
    tools.mr.help(fn)
  elseif info.what ~= "C" and with_source and source_of(info) then
    tools.page(source_of(info))
  else
    tools.write(table.concat(tools.require("show").lines(fn), "\n") .. "\n")
  end
end

local function describe(value, with_source)
  if type(value) == "function" then return describe_function(value, with_source) end
  if tools.owner(value) then
    if type(value) == "userdata" then tools.write(tostring(value) .. "\n") end
    return tools.mr.help(value)
  end
  tools.write(("%s: %s\n"):format(type(value), table.concat(tools.require("show").lines(value), "\n")))
end

-- "?x", "x?" has no place in Lua. Returns false and a message if there is no such thing.
function inspect.run(line)
  local marks, what = line:match("^%s*(%?+)%s*(.-)%s*$")
  if what == "" then return tools.call(tools.mr.help) end
  local value = tools.require("complete").value_of(what)
  if value == nil then
    local chunk = tools.load("return " .. what, "?")
    local done, result
    if chunk and not what:find("[%(%{=]") then done, result = tools.call(chunk) end
    if done then value = result end
  end
  if type(value) == "string" then what, value = value, nil end -- ?"R13"
  if value == nil then return tools.call(tools.mr.help, what) end
  return tools.call(describe, value, #marks > 1)
end

return inspect
