-- Runs one script and notes which of millrace's functions were called while it ran.
--
--     millrace tests/lua/coverage/record.lua OUTPUT SCRIPT
--
-- Writes "owner.name" lines to OUTPUT. A hook sees every call, also those that Lua makes by itself for
-- operators, pcall(f), and `<close>`; it sees them as calls of the function itself, whatever the name under
-- which it was called. It changes nothing for the script. Coroutines made by the script are not seen.
local mr = require "millrace"

local output, script = arg[1], arg[2]
local key_of, called = {}, {}

do
  local mr_tables = { mr = mr }
  for name, value in pairs(mr) do
    if type(value) == "table" then mr_tables["mr." .. name] = value end
  end
  local stream = mr.stream()
  local samples = {
    stream = stream, event = mr.event(), tensor = mr.zeros(1, {device = "cpu"}), device = mr.device(0),
    scope = stream:scope(),
  }
  debug.getmetatable(samples.scope).__close(samples.scope)
  for _, e in ipairs((mr.docs())) do
    if e.kind ~= "property" then
      local f
      if mr_tables[e.owner] then
        f = rawget(mr_tables[e.owner], e.name)
      elseif samples[e.owner] then
        f = debug.getmetatable(samples[e.owner])[e.name]
        if not f and e.name:sub(1, 2) ~= "__" then f = samples[e.owner][e.name] end
      end
      if type(f) == "boolean" then f = debug.getmetatable(f).__call end -- t.contiguous and t:contiguous()
      if f then
        key_of[f] = key_of[f] or {}
        table.insert(key_of[f], e.owner .. "." .. e.name)
      end
    end
  end
  stream:close()
end

local function save()
  debug.sethook()
  local file = assert(io.open(output, "w"))
  for f in pairs(called) do
    for _, key in ipairs(key_of[f]) do file:write(key, "\n") end
  end
  file:close()
end

local exit = os.exit
os.exit = function(...) -- luacheck: ignore 122
  save()
  exit(...)
end

arg = { [0] = script } -- luacheck: ignore 121
local main = assert(loadfile(script))
local getinfo = debug.getinfo
debug.sethook(function()
  local f = getinfo(2, "f").func
  if key_of[f] then called[f] = true end
end, "c")
local ok, problem = pcall(main)
save()
if not ok then
  io.stderr:write(tostring(problem), "\n")
  exit(1)
end
