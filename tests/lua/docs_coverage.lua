-- virtual only: about the documentation, the same on every backend
-- Every bound function says how it is used and what it does, and is called by some test or example.
--
-- Calls are seen, not searched for in the texts: the runner notes them while the other tests run (coverage/record.lua).
-- Alone, this test has them run for that.
-- after: the others
-- timeout: 300
local lu = require "luaunit"
local mr = require "millrace"

local HOST = assert(os.getenv("MILLRACE"), "MILLRACE must hold the path of the host")

local function key(e) return e.owner .. "." .. e.name end

local function list(command)
  local lines, pipe = {}, assert(io.popen(command))
  for line in pipe:lines() do lines[#lines + 1] = line end
  pipe:close()
  return lines
end

-- The folder with what was noted, and whether it is ours.
local function find_calls()
  local dir = os.getenv("MILLRACE_CALLS")
  if dir and dir ~= "" then return dir, false end
  dir = list("mktemp -d")[1]
  os.execute(("%s tests/run.lua --host %s --calls %s tests/conformance/*.lua scripts/examples/*.lua " ..
    "$(ls tests/lua/*.lua | grep -v docs_coverage) >/dev/null"):format(HOST, HOST, dir))
  return dir, true
end

-- The set of what was called.
local function read_calls()
  local dir, ours = find_calls()
  local called = {}
  for _, path in ipairs(list("ls " .. dir .. "/*")) do
    for line in io.lines(path) do called[line] = true end
  end
  if ours then os.execute("rm -rf '" .. dir .. "'") end
  return called
end

TestDocs = {}

function TestDocs.test_everything_says_how_it_is_used_and_what_it_does()
  for _, e in ipairs((mr.docs())) do
    local usage = e.kind == "property" and e.type or e.usage
    lu.assertTrue(type(usage) == "string" and usage ~= "", key(e) .. " has no usage line")
    lu.assertTrue(#e.text >= 6, key(e) .. " has no text")
    lu.assertStrMatches(e.text, ".*[%.:]", 1, nil, key(e) .. ": the text is not a sentence")
  end
end

function TestDocs.test_everything_is_documented()
  local documented = {}
  for _, e in ipairs((mr.docs())) do documented[key(e)] = true end
  local function check(owner, functions)
    for name, value in pairs(functions) do
      if type(value) == "function" then
        lu.assertTrue(documented[owner .. "." .. name], owner .. "." .. name .. " is not in mr.docs()")
      elseif type(value) == "table" then
        check(owner .. "." .. name, value)
      end
    end
  end
  check("mr", mr)
end

function TestDocs.test_everything_is_called_by_a_test()
  local called = read_calls()
  local missing = {}
  for _, e in ipairs((mr.docs())) do
    if e.kind ~= "property" and not called[key(e)] then missing[#missing + 1] = key(e) end
  end
  lu.assertEquals(table.concat(missing, " "), "", "no test and no example calls these")
end

function TestDocs.test_the_written_pages_are_up_to_date()
  lu.assertTrue(os.execute(HOST .. " scripts/gen_docs.lua --check") == true, "run make docs")
end

-- "tensor.add_" is declared by `function Tensor:add_(`, "mr.nn.Linear" by `function mr.nn.Linear(`.
function TestDocs.test_the_annotations_for_editors_declare_everything()
  local path = os.tmpname()
  lu.assertTrue(os.execute(("%s scripts/gen_docs.lua --editor %s >/dev/null"):format(HOST, path)) == true)
  local f = assert(io.open(path))
  local text = f:read("a")
  f:close()
  local declared = assert(loadfile(path, "t", {}))()
  os.remove(path)
  local missing = {}
  for _, e in ipairs((mr.docs())) do
    local owner = e.owner:gsub("^%l", string.upper)
    local is_call = e.kind ~= "property" and (e.kind == "operation" or e.usage:find "[%w_][({]")
    if not is_call or e.name:find "^__" then goto continue end
    if e.owner:find "^mr" then
      local value = declared
      for name in (e.owner:sub(4) .. "." .. e.name):gmatch "[^.]+" do value = value and value[name] end
      if type(value) ~= "function" then missing[#missing + 1] = key(e) end
    elseif not text:find(("\nfunction %s:%s("):format(owner, e.name), 1, true) then
      missing[#missing + 1] = key(e)
    end
    ::continue::
  end
  lu.assertEquals(table.concat(missing, " "), "", "the file declares no such functions")
  lu.assertStrContains(text, "---@class millrace.Tensor\n")
end

os.exit(lu.LuaUnit.run())
