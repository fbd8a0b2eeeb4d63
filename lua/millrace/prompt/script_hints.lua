-- Hints for a script that has failed, which stand after its message. There is no session then: the modules that ask
-- for one find a script's globals only.
local _, tools = ...

tools.modules.session = {
  has_local = function() return false end,
  get_local = function() return nil end,
  locals = function() return {} end,
}

local script_hints = {}
local hints = tools.require "hints"

-- "...ders/script.lua" is how Lua shortens a long path.
local function is_name_of(shown, path)
  local tail = shown:match "^%.%.%.(.*)$"
  return shown == path or tail ~= nil and path:sub(-#tail) == tail
end

-- A block of Python shows only where it ends, or nowhere: Lua takes its colon for a call of a method.
local function block_hint(lines, message)
  for _, line in ipairs(lines) do
    if hints.is_python_block(line) then return hints.of(line, message) end
  end
  return nil
end

-- `text` is that of the script, which messages call `path`.
function script_hints.of(path, text, message)
  local shown, number, rest = message:match "^(.-):(%d+): (.*)$"
  -- error(message) puts a place in front of the one where it began
  while rest and is_name_of(shown, path) do
    local inner, line, further = rest:match "^([^\n]-):(%d+): (.*)$"
    if not inner or not is_name_of(inner, path) then break end
    number, rest = line, further
  end
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  if not shown or not is_name_of(shown, path) then return hints.of("", message) end
  local hint = message:find(" near ", 1, true) and block_hint(lines, message)
  return hint or hints.of(lines[tonumber(number)] or "", message, text)
end

return script_hints
