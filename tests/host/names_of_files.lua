-- Sentences leave the script's folder out of the names of files; stable words and fields have all of the name.
-- not replayed: the scripts run in processes of their own
local lu = require "luaunit"
local command = require "host.support.command"

TestFiles = {}

local RACE = [[
local mr = require "millrace"
local s = mr.stream{name = "s"}
local x = mr.ones(8)
local use = dofile(%q)
use(s, x)
for _, place in ipairs{ %q, "lib/use.lua:2", "use.lua:2" } do
  local text, ordered = mr.hazard.why("race.lua:3", place)
  print(text, ordered)
end
print(pcall(mr.hazard.why, "ace.lua:3", "use.lua:2"))
]]
local USE = [[
return function(s, x)
  s:run(function() x:add_(1) end)
end
]]

local folder

function TestFiles.setUp()
  folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir -p " .. folder .. "/lib " .. folder .. "/elsewhere"))
  command.write(folder .. "/lib/use.lua", USE)
  command.write(folder .. "/race.lua", RACE:format(folder .. "/lib/use.lua", folder .. "/lib/use.lua:2"))
end

function TestFiles.tearDown()
  os.execute("rm -r " .. folder)
end

function TestFiles.test_a_report_names_the_files_from_the_folder_of_the_script()
  local result = command.run{ "--check", folder .. "/race.lua" }
  lu.assertEquals(result.status, 3)
  lu.assertStrContains(result.err, "on stream s at lib/use.lua:2\n")
  lu.assertStrContains(result.err, "on stream default at race.lua:3\n")
  lu.assertStrContains(result.err, (" first=%s/race.lua:3 second=%s/lib/use.lua:2\n"):format(folder, folder))
  -- two files are named above, so the fix says which one it is for
  lu.assertStrContains(result.err, "fix: before lib/use.lua:2 add   s:wait_stream(mr.default_stream())\n")
end

function TestFiles.test_fields_have_the_whole_name()
  local result = command.run{ "--check", "--report=json", folder .. "/race.lua" }
  lu.assertStrContains(result.err, ('"where":"%s/race.lua:3"'):format(folder))
  lu.assertStrContains(result.err, ('"file":"%s/lib/use.lua","line":2'):format(folder))
end

function TestFiles.test_a_place_is_found_by_the_end_of_its_name()
  local result = command.run{ "--check", folder .. "/race.lua" }
  local _, found = result.out:gsub("nothing orders `ones` by the default stream at race.lua:3 %(#%d+%) " ..
    "before `add_` by stream s at lib/use.lua:2 %(#%d+%)\tfalse\n", "")
  lu.assertEquals(found, 3)
  lu.assertStrContains(result.out, "no operation at ace.lua:3 among those that are remembered")
end

function TestFiles.test_a_reason_names_them_too()
  command.write(folder .. "/reason.lua", [[
    local a, b, x = mr.stream(), mr.stream(), mr.zeros(4)
    mr.synchronize()
    b:wait_stream(a)
    a:run(function() x:add_(1) end)
    b:run(function() x:sum() end)
  ]])
  local result = command.run{ "--check", folder .. "/reason.lua" }
  lu.assertStrContains(result.err, "b waits for a at reason.lua:3, but this wait was submitted before `add_`")
end

function TestFiles.test_the_verdict_names_them_too()
  command.write(folder .. "/fails.lua", [[
    mr.zeros(4)
    mr.current_stream():host_func(function() error "stop" end)
    pcall(mr.synchronize)
  ]])
  local result = command.run{ "--check", folder .. "/fails.lua" }
  lu.assertStrContains(result.err, "the run failed at fails.lua:2 (")
end

local TRACED = [[
local mr = require "millrace"
local folder = arg[0]:match "^.*/"
local use = dofile(folder .. "lib/use.lua")
local s, x = mr.stream{name = "s"}, mr.ones(1000)
mr.synchronize()
local tr = mr.timeline(function()
  use(s, x)
  mr.default_stream():wait_stream(s)
  return x:sum():item()
end)
tr:print{width = 100}
local function show(t)
  for _, v in pairs(t) do
    if type(v) == "table" then show(v) else print(v) end
  end
end
show(tr:why("add_", "sum"))
show(tr.spans[1])
show(tr:compare(tr))
for _, ending in ipairs{ "html", "json", "svg", "dot", "csv", "spans.json" } do tr:save(folder .. "out." .. ending) end
]]

-- What each form of a trace says of a place, and what it shows of the text of a file.
function TestFiles.test_a_trace_names_them_too()
  command.write(folder .. "/traced.lua", TRACED)
  local result = command.run{ folder .. "/traced.lua" }
  lu.assertEquals({ result.status, result.err }, { 0, "" })
  lu.assertStrContains(result.out, "lib/use.lua:2")
  lu.assertStrContains(result.out, "traced.lua:")
  lu.assertNotStrContains(result.out, folder)
  for ending, place in pairs { html = '"name":"lib/use.lua","text":"return function', json = '"file":"lib/use.lua"',
    svg = "lib/use.lua:2", dot = "lib/use.lua:2", csv = "lib/use.lua:2", ["spans.json"] = "lib/use.lua:2" } do
    local text = command.read(folder .. "/out." .. ending)
    lu.assertStrContains(text, place)
    lu.assertNotStrContains(text, folder)
  end
  lu.assertEquals(command.run{ "--trace", folder .. "/whole.html", folder .. "/traced.lua" }.status, 0)
  local whole = command.read(folder .. "/whole.html"):gsub('"text":"[^"\\]*\\?[^\n]*', "") -- the script itself names it
  lu.assertStrContains(whole, '"name":"lib/use.lua",')
  lu.assertNotStrContains(whole, folder)
end

-- Another file has the name that would be left: neither is shortened.
function TestFiles.test_a_short_name_of_another_file_is_not_used()
  command.write(folder .. "/elsewhere/race.lua", "mr.ones(4)\n")
  command.write(folder .. "/race.lua", [[
    dofile "race.lua"
    local s, x = mr.stream(), mr.ones(4)
    s:run(function() x:add_(1) end)
  ]])
  local result = command.run{ "--check", folder .. "/race.lua", environment = "cd " .. folder .. "/elsewhere" }
  lu.assertStrContains(result.err, ("on stream s at %s/race.lua:3\n"):format(folder))
end

os.exit(lu.LuaUnit.run())
