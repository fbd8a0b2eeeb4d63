-- virtual only: about the documentation, the same on every backend
-- Every bound function says how it is used and what it does, and is called by some test or example.
--
-- What is called is seen, not searched for in the texts: the scripts run again under a hook
-- (coverage/record.lua). Those with a time limit of their own are long, and are left out.
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

-- The options for the host; nil for a script that is not to be run here.
local function options_of(path)
  local options, n = "", 0
  for line in io.lines(path) do
    n = n + 1
    if line:find("^%-%- timeout:") then return nil end
    options = line:match("^%-%- options: *(.*)$") or options
    if n == 15 then break end
  end
  return options
end

-- Runs the scripts under the hook, some at once, and returns the set of what was called.
local function record()
  local dir = list("mktemp -d")[1]
  local jobs = {}
  for _, path in ipairs(list("ls tests/conformance/*.lua tests/lua/*.lua tests/host/*.lua scripts/examples/*.lua " ..
    "2>/dev/null")) do
    local options = not path:find("docs_coverage") and options_of(path)
    if options then
      local number = #jobs + 1
      jobs[number] = ("%s %s tests/lua/coverage/record.lua %s/%d.calls %s"):format(HOST, options, dir, number, path)
    end
  end
  local file = assert(io.open(dir .. "/jobs", "w"))
  for _, job in ipairs(jobs) do file:write(job, " >/dev/null 2>&1 </dev/null\n") end
  file:close()
  os.execute(("xargs -P \"$(nproc)\" -d '\\n' -I {} timeout 60 sh -c '{}' <%s/jobs"):format(dir))
  local called = {}
  for number = 1, #jobs do
    local calls = io.open(("%s/%d.calls"):format(dir, number))
    if calls then
      for line in calls:lines() do called[line] = true end
      calls:close()
    end
  end
  os.execute("rm -rf '" .. dir .. "'")
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
      elseif type(value) == "table" and owner == "mr" then
        check("mr." .. name, value)
      end
    end
  end
  check("mr", mr)
end

function TestDocs.test_everything_is_called_by_a_test()
  local called = record()
  local missing = {}
  for _, e in ipairs((mr.docs())) do
    if e.kind ~= "property" and not called[key(e)] then missing[#missing + 1] = key(e) end
  end
  lu.assertEquals(table.concat(missing, " "), "", "no test and no example calls these")
end

function TestDocs.test_the_written_pages_are_up_to_date()
  lu.assertTrue(os.execute(HOST .. " scripts/gen_docs.lua --check") == true, "run make docs")
end

os.exit(lu.LuaUnit.run())
