-- No function ignores an argument that it has no parameter for. The reference page has the usage of each function, and
-- here each is called with one argument more than that. A function without parameters, and without an object before it,
-- may be a callback, which gets what its caller passes.
-- virtual only: what a function takes does not depend on the device
-- not checked: nothing is submitted
local lu = require "luaunit"
local mr = require "millrace"
local command = require "host.support.command"

local has_compiler = pcall(mr.kernel, "extern \"C\" __global__ void f() {}", "f")

-- What stands in front of the colon in a usage line: objects of that letter.
local function samples()
  local x = mr.ones(2)
  local objects = {
    t = { x }, x = { x }, s = { mr.stream() }, e = { mr.event() },
    d = { mr.device(0) }, g = { mr.graph(function() mr.spin { ms = 1 } end), mr.graph.auto(function() end) },
    tr = { mr.timeline(function() end) }, later = { mr.event() }, pool = { mr.graph.pool and mr.graph.pool() },
    comm = { mr.nccl.comms { 0 }[1] }, layer = { mr.nn.Linear(1, 1) },
  }
  if has_compiler then
    local k = mr.kernel("extern \"C\" __global__ void f() {}", "f")
    objects.k, objects.m = { k }, { k.module, mr.nn.Linear(1, 1) }
  end
  return objects
end

-- "dim: integer [, {out: tensor}]" -> 2; nil: any number
local function count_of(parameters)
  local flat = parameters:gsub("%b{}", "table"):gsub("%b()", "")
  if flat:find("...", 1, true) then return nil end
  local _, commas = flat:gsub(",", "")
  return flat:find "%S" and commas + 1 or 0
end

local function at_path(path)
  local value = mr
  for name in path:gmatch "[^.]+" do
    local is_there, inner = pcall(function() return value[name] end)
    value = is_there and inner or nil
    if value == nil then return nil end
  end
  return value
end

-- The functions of a usage line, each with the object that comes first, if there is one.
local function functions_of(head, objects)
  local path = head:match "^mr%.([%w_.]+)$"
  if path then return { { at_path(path) } } end
  local letter, name = head:match "^(%w+):([%w_]+)$"
  local found = {}
  for _, object in ipairs(objects[letter] or {}) do
    local is_there, fn = pcall(function() return object[name] end)
    if is_there and fn ~= nil then found[#found + 1] = { fn, object } end
  end
  return found
end

TestExtra = {}

-- "refused", "taken", or "unclear": something else is wrong with the arguments, whatever they are.
local function answer(one, count)
  local found = "unclear"
  for _, filler in ipairs { 1, mr.ones(2), { 1 } } do
    local arguments = { one[2] }
    local first = #arguments
    for i = 1, count + 1 do arguments[first + i] = filler end
    local done, message = pcall(one[1], table.unpack(arguments))
    if done then return "taken" end
    if tostring(message):find "too many" or tostring(message):find "expected a table of options, got a number" then
      found = "refused"
    end
  end
  return found
end

function TestExtra.test_each_function_refuses_one_more()
  local objects, found = samples(), { refused = {}, taken = {}, unclear = {} }
  for line in command.read "docs/api.md":gmatch "[^\n]+" do
    for usage in line:gmatch "`([%w_.:]+%b())" do
      local head, parameters = usage:match "^([%w_.:]+)(%b())$"
      local count = count_of(parameters:sub(2, -2))
      for _, one in ipairs(count and functions_of(head, objects) or {}) do
        if count > 0 or one[2] then table.insert(found[answer(one, count)], usage) end
      end
    end
  end
  lu.assertEquals(found.taken, {})
  lu.assertTrue(#found.refused > (has_compiler and 400 or 370), tostring(#found.refused))
  lu.assertTrue(#found.unclear < 20, table.concat(found.unclear, "\n")) -- rows that look at shapes first
end

function TestExtra.test_a_callback_without_parameters()
  local suite = { setUp = mr.reset }
  suite:setUp() -- as LuaUnit calls it
end

function TestExtra.test_what_is_nil_is_no_argument()
  local x = mr.ones(1)
  lu.assertEquals(x:item(nil, nil), 1)
  lu.assertErrorMsgContains("item: too many arguments: expected t:item()", x.item, x, 3)
  lu.assertErrorMsgContains("stream: too many arguments: expected mr.stream([opts:", mr.stream, {}, 5)
end

os.exit(lu.LuaUnit.run())
