-- The settings of a person for all sessions: `:set times 5`. A file beside init.lua keeps it, a line "name value" for
-- each.
local _, tools = ...

local settings = {}

local function switch(word)
  if word == "on" or word == "off" then return word end
  return nil, "on or off"
end

local function milliseconds(word)
  local ms = tonumber(word)
  if word == "off" then return "off" end
  if ms and ms >= 0 and ms < math.huge then return ms end
  return nil, "a number of milliseconds, or off"
end

-- In the order in which :set lists them.
local KNOWN = {
  { name = "times", value = 10, read = milliseconds, text = "an entry that takes longer says how long (ms)" },
  { name = "colours", value = "on", read = switch, text = "the colours of what is typed" },
  { name = "hints", value = "on", read = switch, text = "the arguments of a function after its opening bracket" },
  { name = "live", value = "on", read = switch, text = "what is pending, in a line above the prompt" },
}

local by_name = {}
for _, one in ipairs(KNOWN) do by_name[one.name] = one end

local has_files = io ~= nil and io.open ~= nil -- not in a sandbox

function settings.get(name) return by_name[name].value end

local function apply(one)
  if one.read == switch then tools.set_shown(one.name, one.value == "on") end
end

-- The folder of the user's own files, or nil.
function settings.folder()
  local home = tools.getenv("HOME")
  local folder = tools.getenv("XDG_CONFIG_HOME") or home and home .. "/.config"
  return folder and folder .. "/millrace"
end

local function path() return settings.folder() and settings.folder() .. "/settings" end

-- Nil and a message.
local function set(name, word)
  local one = by_name[name]
  if not one then return nil, (":set: there is no setting `%s`; :set lists them"):format(name) end
  local value, expected = one.read(word)
  if value == nil then return nil, (":set %s: expected %s, got `%s`"):format(name, expected, word) end
  one.value, one.is_set = value, true
  apply(one)
  return true
end

local function write()
  local folder = settings.folder()
  if not has_files or not folder then return nil, "it holds for this session only: there is no folder for settings" end
  os.execute(("mkdir -p '%s' 2>/dev/null"):format((folder:gsub("'", "'\\''"))))
  local file, message = io.open(path(), "w")
  if not file then return nil, message end
  for _, one in ipairs(KNOWN) do
    if one.is_set then file:write(one.name, " ", tostring(one.value), "\n") end
  end
  file:close()
  return true
end

-- The settings of earlier sessions. A line that is not understood is reported.
function settings.read()
  local text = has_files and path() and tools.read_file(path()) or ""
  for line in text:gmatch("[^\n]+") do
    local name, word = line:match("^(%S+)%s+(%S+)%s*$")
    local done, message = set(name or line, word or "")
    if not done then tools.complain(path() .. message:gsub("^:set", "")) end
  end
end

-- The lines of `:set`, or the answer to `:set name value`.
function settings.run(words)
  if not words[1] then
    local rows = {}
    for i, one in ipairs(KNOWN) do rows[i] = { one.name, tostring(one.value), one.text } end
    local draw = tools.require("draw")
    return draw.columns(draw.style(), { "name", "value", "what" }, rows)
  end
  if not words[2] or words[3] then return nil, ":set needs a name and a value, as in :set times off" end
  local done, message = set(words[1], words[2])
  if not done then return nil, message end
  done, message = write()
  if not done then return { message } end
  return {}
end

function settings.complete(words, last)
  local is_value = #words > 1 or #words == 1 and last == ""
  if is_value then return { "on", "off" } end
  local names = {}
  for i, one in ipairs(KNOWN) do names[i] = one.name end
  return names
end

return settings
