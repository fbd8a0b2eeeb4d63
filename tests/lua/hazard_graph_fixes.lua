-- The fixes of reports about nodes of graphs, put into the script: of host functions, of graphs that are launched in a
-- capture, and of nodes that g:set replaced. Then no hazard is left.
-- not recorded: a fix is put into a script's text, which is run once more
-- not checked: the checker is what is tested
local lu = require "luaunit"
local mr = require "millrace"

local HEAD = [[
local mr = require "millrace"
local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
local h, x, y = mr.zeros(4, {pinned = true}), mr.ones(4), mr.zeros(4)
mr.synchronize()
]]

local function run(text)
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  local reports = mr.hazard.check(assert(loadfile(path)))
  os.remove(path)
  mr.synchronize()
  return reports
end

local function lines_of(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

-- `place`: the text of the line that the fix stands in front of.
local function check(body, place, fix)
  local text = HEAD .. body .. "\nmr.synchronize()\n"
  local reports, lines = run(text), lines_of(text)
  lu.assertEquals(#reports, 1, reports[1] and reports[#reports].message or text)
  local fixes, message = reports[1].fixes, reports[1].message
  lu.assertEquals(#fixes, 1, message)
  lu.assertEquals({ fixes[1].place, lines[fixes[1].line], fixes[1].text }, { "before", place, fix }, message)
  table.insert(lines, fixes[1].line, fix)
  lu.assertEquals(run(table.concat(lines, "\n")), {}, message)
  return reports[1]
end

TestHostFunctions = {}

function TestHostFunctions.test_a_launch_waits_for_work_before_it()
  local r = check([[
mr.graph.begin(a)
a:host_func(function() h:add_(3) end)
local g = mr.graph.finish(a)
b:run(function() h:copy_(x, {non_blocking = true}) end)
g:launch(c)]], "g:launch(c)", "c:wait_stream(b)")
  lu.assertStrMatches(r.second.where, ".*:6")
  lu.assertStrMatches(r.second.launched, ".*:9")
  lu.assertStrContains(r.message, "in a graph launched at ")
end

function TestHostFunctions.test_work_waits_for_a_launch_before_it()
  check([[
mr.graph.begin(a)
a:host_func(function()
  h:add_(3)
end)
local g = mr.graph.finish(a)
g:launch(c)
b:run(function() h:copy_(x, {non_blocking = true}) end)]],
    "b:run(function() h:copy_(x, {non_blocking = true}) end)", "b:wait_stream(c)")
end

function TestHostFunctions.test_two_launches_of_two_instances()
  check([[
local g = mr.graph(function() mr.current_stream():host_func(function() h:add_(3) end) end)
local other = g:instantiate()
g:launch(b)
other:launch(c)]], "other:launch(c)", "c:wait_stream(b)")
end

function TestHostFunctions.test_two_functions_of_one_graph()
  check([[
mr.graph.begin(a)
b:wait_stream(a)
b:run(function() x:add_(1) end)
a:host_func(function()
  h:fill_(3)
end)
b:host_func(function() h:fill_(4) end)
a:wait_stream(b)
local g = mr.graph.finish(a)
g:launch(b)]], "b:host_func(function() h:fill_(4) end)", "b:wait_stream(a)")
end

-- The stream of the first node exists no longer when the functions run.
function TestHostFunctions.test_a_graph_that_is_gone()
  local reports = run(HEAD .. [[
do
  local origin = mr.stream()
  mr.graph.begin(origin)
  b:wait_stream(origin)
  origin:host_func(function() h:fill_(3) end)
  b:host_func(function() h:fill_(4) end)
  origin:wait_stream(b)
  local g = mr.graph.finish(origin)
  g:launch(c)
  g:close()
  origin:close()
end
collectgarbage()
collectgarbage()
mr.synchronize()
]])
  lu.assertEquals(#reports, 1)
  for _, fix in ipairs(reports[1].fixes) do lu.assertNotStrContains(fix.text, "synchronize") end
end

-- Puts the fixes of several reports into the text, the last line first. `places`: the lines that they stand before.
local function check_all(body, places, fix)
  local text = HEAD .. body .. "\nmr.synchronize()\n"
  local reports, lines, at = run(text), lines_of(text), {}
  for _, r in ipairs(reports) do
    for _, f in ipairs(r.fixes) do
      lu.assertEquals({ f.place, f.text }, { "before", fix }, r.message)
      at[#at + 1] = f.line
    end
  end
  table.sort(at)
  lu.assertEquals(at, places)
  for i = #at, 1, -1 do table.insert(lines, at[i], fix) end
  lu.assertEquals(run(table.concat(lines, "\n")), {})
  return reports
end

TestLaunches = {}

-- The fix belongs at the launch, so each line that launches the graph has a report.
function TestLaunches.test_one_graph_is_launched_on_two_lines()
  local reports = check_all([[
local g = mr.graph(function() x:mul_(2) end)
for i = 1, 4 do
  a:run(function() x:fill_(i) end)
  if i % 2 == 1 then
    g:launch(b)
  else
    g:launch(b)
  end
  mr.synchronize()
end]], { 9, 11 }, "b:wait_stream(a)")
  lu.assertEquals({ #reports, reports[1].count, reports[2].count }, { 2, 2, 2 })
end

-- The fix is in the capture, so all launches have one report.
function TestLaunches.test_nodes_of_one_launch_on_two_lines()
  local reports = check_all([[
mr.graph.begin(a)
b:wait_stream(a)
a:run(function() x:add_(1) end)
b:run(function() x:mul_(3) end)
a:wait_stream(b)
local g = mr.graph.finish(a)
g:launch(c)
mr.synchronize()
g:launch(c)]], { 8 }, "b:wait_stream(a)")
  lu.assertEquals({ #reports, reports[1].count }, { 1, 2 })
end

TestChildren = {}

function TestChildren.test_a_node_after_a_child()
  check([[
local child = mr.graph(function() x:add_(1) end)
mr.graph.begin(b)
a:wait_stream(b)
child:launch(b)
a:run(function() x:mul_(3) end)
b:wait_stream(a)
local g = mr.graph.finish(b)
g:launch(c)]], "a:run(function() x:mul_(3) end)", "a:wait_stream(b)")
end

function TestChildren.test_a_child_after_a_node()
  check([[
mr.graph.begin(a)
a:run(function() x:add_(1) end)
local child = mr.graph.finish(a)
for i = 1, 2 do
  mr.graph.begin(b)
  a:wait_stream(b)
  a:run(function() y:add_(x) end)
  child:launch(b)
  b:wait_stream(a)
  mr.graph.finish(b):launch(b)
end]], "  child:launch(b)", "b:wait_stream(a)")
end

function TestChildren.test_two_children()
  check([[
mr.graph.begin(a)
a:run(function() x:add_(1) end)
local child = mr.graph.finish(a)
mr.graph.begin(b)
c:wait_stream(b)
child:launch(b)
child:launch(c)
b:wait_stream(c)
local g = mr.graph.finish(b)
g:launch(b)]], "child:launch(c)", "c:wait_stream(b)")
end

function TestChildren.test_a_child_on_two_lines()
  local reports = check_all([[
mr.graph.begin(b)
b:run(function() x:add_(1) end)
local child = mr.graph.finish(b)
mr.graph.begin(a)
b:wait_stream(a)
for i = 1, 2 do
  a:run(function() x:fill_(i) end)
  if i == 1 then
    child:launch(b)
  else
    child:launch(b)
  end
  a:wait_stream(b)
end
local g = mr.graph.finish(a)
g:launch(a)]], { 13, 15 }, "b:wait_stream(a)")
  lu.assertEquals(#reports, 2)
end

-- The edge is missing in the child.
function TestChildren.test_two_nodes_of_a_child()
  check([[
mr.graph.begin(a)
b:wait_stream(a)
a:run(function() x:add_(1) end)
b:run(function() x:mul_(3) end)
a:wait_stream(b)
local child = mr.graph.finish(a)
mr.graph.begin(c)
child:launch(c)
local g = mr.graph.finish(c)
g:launch(c)]], "b:run(function() x:mul_(3) end)", "b:wait_stream(a)")
end

TestSet = {}

local REPLACED = [[
mr.graph.begin(a)
b:wait_stream(a)
a:run(function() x:add_(1) end)
b:run(function() y:add_(1) end)
a:wait_stream(b)
local g = mr.graph.finish(a)
g:set(2, function() x:add_(1) end)
]]

-- The place of the new command is that of the node, whose line is in the capture.
function TestSet.test_a_replaced_node()
  check(REPLACED .. "g:launch(c)", "b:run(function() y:add_(1) end)", "b:wait_stream(a)")
end

function TestSet.test_a_replaced_node_of_a_child()
  check(REPLACED .. [[
mr.graph.begin(c)
g:launch(c)
local outer = mr.graph.finish(c)
outer:launch(c)]], "b:run(function() y:add_(1) end)", "b:wait_stream(a)")
end

-- No line is known: the new command is in no capture of the child.
function TestSet.test_a_node_of_a_child_replaced_in_the_outer_graph()
  local reports = run(HEAD .. [[
mr.graph.begin(a)
b:wait_stream(a)
a:run(function() x:add_(1) end)
b:run(function() y:add_(1) end)
a:wait_stream(b)
local child = mr.graph.finish(a)
mr.graph.begin(c)
child:launch(c)
local g = mr.graph.finish(c)
g:set(2, function() x:add_(1) end)
g:launch(c)
mr.synchronize()
]])
  lu.assertEquals(#reports, 1)
  lu.assertEquals(reports[1].fixes, {})
  lu.assertStrContains(reports[1].fix, "in what is captured, let the stream of `add_` wait for that of `add_`")
end

os.exit(lu.LuaUnit.run())
