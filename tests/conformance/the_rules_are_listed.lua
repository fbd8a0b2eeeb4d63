-- docs/semantics.md names every script of this folder, and no other; its table of settings is the machine's.
local mr = require "millrace"
local T = require "millrace.testing"

local function read(path)
  local f <close> = assert(io.open(path))
  return f:read("a")
end

local folder = arg[0]:match("^(.*)/") or "."
local text = read(folder .. "/../../docs/semantics.md")

local scripts = {}
local listing <close> = io.popen("ls '" .. folder .. "'")
for file in listing:lines() do
  local name = file:match("^(r%d%d_.*)%.lua$")
  if name then
    scripts[name] = true
    T.check(text:find("`" .. name .. "`", 1, true), name .. " is not in docs/semantics.md")
    local rule = "R" .. tonumber(name:match("%d+"))
    T.check(read(folder .. "/" .. file):find('T.rule "' .. rule .. '"', 1, true), file .. " does not name its rule")
  end
end
for name in text:gmatch("`(r%d%d_[%w_]+)`") do
  T.check(scripts[name], "docs/semantics.md names a script that does not exist: " .. name)
end

if mr.machine then
  local settings, listed = mr.machine.settings(), 0
  for name, default in text:gmatch("\n| `([%l%d_]+)` | ([%w]+) |") do
    local value = settings[name]
    if value == math.maxinteger then value = "unlimited" end
    if value ~= nil then
      listed = listed + 1
      T.equal(default, tostring(value), "the documented default of " .. name)
    end
  end
  for _ in pairs(settings) do listed = listed - 1 end
  T.equal(listed, 0, "settings that are documented, less those that exist")
end
