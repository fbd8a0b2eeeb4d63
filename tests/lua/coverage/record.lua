-- Notes which of millrace's functions a script calls. The runner loads it in front of a script:
--
--     MILLRACE_CALLS=OUTPUT millrace -e 'require "lua.coverage.record"' SCRIPT
--
-- When the state closes, "owner.name" lines are written to OUTPUT. A hook sees every call, also those that Lua makes by
-- itself for operators, pcall(f), and `<close>`. It sees them as calls of the function itself, whatever the name under
-- which it was called. For the script nothing changes: no object is made, and after its first calls, which are what
-- counts, the hook is gone, as it costs a microsecond. Coroutines made by the script are not seen.
local MOST_CALLS = 10000000

local mr = require "millrace"

local output = assert(os.getenv "MILLRACE_CALLS")
local key_of, called = {}, {}

-- The functions by owner: tables of mr, and the methods and metamethods of a class.
local tables = {}
local function add_tables(owner, t)
  tables[owner] = t
  for name, value in pairs(t) do
    if type(value) == "table" then add_tables(owner .. "." .. name, value) end
  end
end
add_tables("mr", mr)

-- The metatables of the classes, by the class's name.
local classes = {}
for _, value in pairs(debug.getregistry()) do
  local name = type(value) == "table" and rawget(value, "__name")
  if type(name) == "string" then classes[name:match("^millrace%.(.*)$") or ""] = value end
end

local function of_class(class, name)
  local metatable = classes[class]
  local f = metatable and (metatable[name] or metatable.methods[name])
  -- t.contiguous is a boolean, which can be called.
  if class == "tensor" and name == "contiguous" then f = debug.getmetatable(true).__call end
  return f
end

for _, e in ipairs((mr.docs())) do
  if e.kind ~= "property" then
    local f
    if tables[e.owner] then f = rawget(tables[e.owner], e.name) else f = of_class(e.owner, e.name) end
    if f then
      key_of[f] = key_of[f] or {}
      table.insert(key_of[f], e.owner .. "." .. e.name)
    end
  end
end

-- Kept by the registry to the end.
debug.getregistry().coverage = setmetatable({}, { __gc = function()
  debug.sethook()
  local file = assert(io.open(output, "w"))
  for f in pairs(called) do
    for _, key in ipairs(key_of[f]) do file:write(key, "\n") end
  end
  file:close()
end })

local getinfo, sethook, calls = debug.getinfo, debug.sethook, 0
sethook(function()
  local f = getinfo(2, "f").func
  if key_of[f] then called[f] = true end
  calls = calls + 1
  if calls == MOST_CALLS then sethook() end
end, "c")
