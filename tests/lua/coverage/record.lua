-- Notes which of millrace's functions a script calls. The runner loads it in front of a script:
--
--     MILLRACE_CALLS=OUTPUT millrace -e 'require "lua.coverage.record"' SCRIPT
--
-- When the state closes, "owner.name" lines are written to OUTPUT. A hook in C (coverage/calls.c, which make builds
-- beside the program) sees every call, also those that Lua makes by itself for operators, pcall(f), and `<close>`. It
-- sees them as calls of the function itself, whatever the name under which it was called. Coroutines that the script
-- makes are seen, too. For the script nothing changes: no object is made.
local mr = require "millrace"

local output = assert(os.getenv "MILLRACE_CALLS")
local folder = (os.getenv "MILLRACE" or "build/millrace"):match "^(.*)/" or "."
local calls = assert(package.loadlib(folder .. "/calls.so", "luaopen_calls"))()
local key_of = {}

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
  for f, keys in pairs(key_of) do
    for _, key in ipairs(calls.called(f) and keys or {}) do file:write(key, "\n") end
  end
  file:close()
end })

calls.watch(key_of)
