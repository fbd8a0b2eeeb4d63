-- Reports about programs of several ranks name the rank, say only what is true of it, and have one fix for all.
-- own pace: reports are counted, and memory that is collected early is one more
-- virtual only: the options choose the device
local lu = require "luaunit"

local HOST = assert(os.getenv("MILLRACE"), "MILLRACE must hold the path of the host")

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

local function run(options, text)
  local path = os.tmpname()
  write(path, text)
  local pipe = io.popen(("%s %s %s 2>&1"):format(HOST, options, path))
  local output = pipe:read("a"):gsub(path:gsub("%p", "%%%0"), "SCRIPT")
  output = output:gsub(path:match("[^/]*$"):gsub("%p", "%%%0"), "SCRIPT") -- as sentences name it
  local _, _, status = pipe:close()
  os.remove(path)
  return output, status
end

-- The hazards of a run, as last amended: {reason, why, fixes, json}, by their numbers.
local function reports(ranks, text)
  local output, found = run(("--ranks %d --report=json"):format(ranks), text), {}
  for line in output:gmatch "[^\n]+" do
    local number = tonumber(line:match '^{"type":"hazard","number":(%d+)')
    if number then
      local report = { reason = line:match '"reason":"([^"]+)"', why = line:match '"why":"([^"]+)"', fixes = {},
                       json = line }
      for place, at, fix in line:gmatch '{"place":"(%a+)","file":"[^"]*","line":(%d+),"text":"([^}]*)"}' do
        table.insert(report.fixes, { place = place, line = tonumber(at), text = fix })
      end
      found[number] = report
    end
  end
  lu.assertStrContains(output, '"type":"summary"')
  return found, output
end

local function with_fixes(text, found)
  local lines, done = {}, {}
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = { line } end
  for _, report in ipairs(found) do
    for _, fix in ipairs(report.fixes) do
      local key = fix.place .. fix.line .. fix.text
      lu.assertTrue(fix.place == "before" or fix.place == "after", fix.text)
      if not done[key] and fix.place == "before" then table.insert(lines[fix.line], 1, fix.text)
      elseif not done[key] then table.insert(lines[fix.line], fix.text) end
      done[key] = true
    end
  end
  for i, line in ipairs(lines) do lines[i] = table.concat(line, "\n") end
  return table.concat(lines, "\n")
end

-- `expected`: for each report its reason and its fixes, as "LINE TEXT". With them there is no hazard left.
local function check(ranks, text, expected)
  local found, output = reports(ranks, text)
  local got = {}
  for i, report in ipairs(found) do
    got[i] = { report.reason }
    for _, fix in ipairs(report.fixes) do table.insert(got[i], fix.line .. " " .. fix.text) end
  end
  lu.assertEquals(got, expected, output)
  local fixed = with_fixes(text, found)
  local left, status = run(("--ranks %d --check"):format(ranks), fixed)
  lu.assertStrContains(left, "no hazards", false, fixed .. left)
  lu.assertEquals(status, 0)
  return found
end

TestFixes = {}

function TestFixes.test_a_default_stream_is_that_of_each_rank()
  check(3, [[
local side = mr.stream{name = "side"}
local t = mr.ones(4)
side:run(function() t:fill_(mr.dist.rank()) end)
side:synchronize()]], { { "no-path", "3 side:wait_stream(mr.default_stream())" } })
end

-- A group's stream waits for the current stream of the caller, so that one has to wait. Rank 0 is parked when its
-- part is submitted: its variables are looked for all the same.
function TestFixes.test_a_receive_buffer_is_used_again()
  for _, wait in ipairs{ ", {async = true}):wait()", ")" } do
    local found = check(3, [[
local buffer, sum = mr.zeros(64), mr.zeros(64)
local side = mr.stream{name = "side"}
for i = 1, 3 do
  if mr.dist.rank() == 1 then mr.dist.send(sum, 0) mr.dist.send(sum, 2)
  else
    mr.dist.recv(buffer, 1]] .. wait .. [[

    side:wait_stream(mr.current_stream())
    side:run(function() sum:add_(buffer) end)
  end
end
mr.synchronize()]], { { wait == ")" and "one-way" or "no-path", "6 mr.default_stream():wait_stream(side)" } })
    if wait ~= ")" then
      lu.assertStrContains(found[1].why, "the call at SCRIPT:6 makes world wait for default of device")
      lu.assertStrContains(found[1].why, ", the current stream, but nothing makes that wait for side.")
    end
  end
end

-- The group's table holds its stream, but only from its first asynchronous call on, and not for the script.
function TestFixes.test_the_stream_of_a_new_group_is_no_field()
  local head = [[
local group, side = mr.dist.new_group{0, 1}, mr.stream{name = "side"}
local x = mr.ones(64)
mr.synchronize()
]]
  local again = "mr.dist.all_reduce(x, {async = true, group = group}):wait()\n"
  for _, before in ipairs{ "", again .. "mr.synchronize()\n" } do
    local found = check(2, head .. before .. [[
side:run(function() x:mul_(2) end)
local w = mr.dist.all_reduce(x, {async = true, group = group})
mr.synchronize()]], { { "no-path", (before == "" and 5 or 7) .. " mr.default_stream():wait_stream(side)" } })
    lu.assertStrContains(found[1].why, "makes group 1 of ranks 0, 1 wait for default of device")
  end
  check(2, head .. [[
local w1 = mr.dist.all_reduce(x, {async = true})
local w2 = side:run(function() return mr.dist.all_reduce(x, {async = true, group = group}) end)
mr.synchronize()]], { { "no-path", "5 w1:wait(side)" } })
end

function TestFixes.test_an_input_that_a_stream_has_filled()
  check(3, [[
local side = mr.stream{name = "side"}
local out, t = mr.zeros(12), mr.ones(4)
mr.synchronize()
side:run(function() t:fill_(mr.dist.rank()) end)
local work = mr.dist.all_gather(out, t, {async = true})
work:wait()
print(out:sum():item())]], { { "no-path", "5 mr.default_stream():wait_stream(side)" } })
end

-- The current stream has a variable here.
function TestFixes.test_a_collective_in_a_stream_of_the_script()
  check(2, [[
local side, main = mr.stream{name = "side"}, mr.stream{name = "main"}
local t = mr.ones(4)
mr.synchronize()
side:run(function() t:fill_(1) end)
main:run(function()
  local work = mr.dist.all_reduce(t, {async = true})
  work:synchronize()
end)]], { { "no-path", "6 main:wait_stream(side)" } })
end

-- The variable of the work is gone where the gradient is used: its wait stands behind the call.
function TestFixes.test_the_work_is_a_local_of_a_loop()
  check(2, [[
local params = {mr.ones(64), mr.ones(64)}
for step = 1, 2 do
  for i, p in ipairs(params) do
    local w = mr.dist.all_reduce(p, {async = true})
  end
  for i, p in ipairs(params) do p:mul_(0.1) end
end]], { { "no-path", "4 w:wait()" } })
  check(2, [[
local function average(grads)
  for _, g in ipairs(grads) do
    local work = mr.dist.all_reduce(g, {op = "avg", async = true})
  end
end
local grads, weight = {mr.ones(8), mr.ones(8)}, mr.zeros(8)
average(grads)
for _, g in ipairs(grads) do weight:sub_(g * 0.1) end]], { { "no-path", "3 work:wait()" } })
  check(2, [[
local function step()
  local g = mr.ones(64)
  local work = mr.dist.all_reduce(g, {async = true})
end
step()
collectgarbage() collectgarbage()
mr.synchronize()]], { { "collected-while-pending", "3 work:wait()" } })
end

-- Another stream uses it than the one that was current at the call.
function TestFixes.test_the_work_is_waited_for_by_another_stream()
  check(2, [[
local side, g = mr.stream{name = "side"}, mr.ones(64)
mr.synchronize()
do
  local w = mr.dist.all_reduce(g, {async = true})
end
side:run(function() g:mul_(2) end)
mr.synchronize()]], { { "no-path", "4 w:wait(side)" } })
end

function TestFixes.test_a_function_on_one_line_sets_the_variable_of_the_work()
  check(2, [[
local g, s, w = mr.ones(64), mr.stream{name = "s"}, nil
mr.synchronize()
mr.with(s, function() w = mr.dist.all_reduce(g, {async = true}) end)
w = nil
g:mul_(2)]], { { "no-path", "3 w:wait(mr.default_stream())" } })
end

-- Nothing holds it, or not there.
function TestFixes.test_the_work_is_not_kept()
  local kept = "mr.synchronize() -- or keep what all_reduce returns at line 2, as local e, and write e:wait() here"
  check(2, [[
local g = mr.ones(64)
mr.dist.all_reduce(g, {async = true})
g:mul_(2)]], { { "no-path", "3 " .. kept } })
  check(2, [[
local g, side = mr.ones(64), mr.stream{name = "side"}
mr.dist.all_reduce(g, {async = true})
side:run(function() g:mul_(2) end)]], { { "no-path", "3 " .. kept:gsub("e:wait%(%)", "e:wait(side)") } })
  check(2, [[
local e, g = 0, mr.ones(64)
do
  mr.dist.all_reduce(g, {async = true}) -- a local would end before the line that waits
end
g:mul_(e + 2)]], { { "no-path", "5 mr.synchronize() -- or keep what all_reduce returns, and call its wait() here" } })
  check(2, [[
local g = mr.ones(64)
for i = 1, 2 do local w = mr.dist.all_reduce(g, {async = true}) end
g:mul_(2)]], { { "no-path", "3 mr.synchronize() -- no variable in scope here leads to world" } })
  check(2, [[
local g, s = mr.ones(64), mr.stream{name = "s"}
mr.synchronize()
mr.with(s, function() mr.dist.all_reduce(g, {async = true}) end) -- a local would end with the function
g:mul_(2)]], { { "no-path", "4 mr.synchronize() -- or keep what all_reduce returns, and call its wait() here" } })
end

-- No variable leads to the stream that is current where the collective is called.
function TestFixes.test_a_stream_without_a_name_is_the_current_one()
  local before = [[
local g, side = mr.ones(64), mr.stream{name = "side"}
mr.synchronize()
side:run(function() g:fill_(2) end)
]]
  local waits = { { "no-path", "5 mr.current_stream():wait_stream(side)" } }
  for _, call in ipairs{ "mr.dist.all_reduce(g)", "mr.dist.all_reduce(g, {async = true}):wait()" } do
    check(2, before .. "mr.with(mr.stream(), function()\n  " .. call .. "\nend)\nmr.synchronize()", waits)
  end
  check(2, "local g = mr.ones(64)\nmr.synchronize()\nmr.with(mr.stream(), function()\n" ..
    "  local w = mr.dist.all_reduce(g, {async = true})\n  g:mul_(2)\n  w:wait()\nend)\nmr.synchronize()",
    { { "waited-after-use", "5 w:wait()" } })
  -- In front of that line another stream is current. The comment names the stream of the first rank only.
  local found = reports(2, before .. "mr.with(mr.stream(), function() mr.dist.all_reduce(g) end)")
  lu.assertEquals(#found, 1)
  lu.assertEquals(#found[1].fixes, 1)
  lu.assertStrContains(found[1].fixes[1].text, "mr.synchronize() -- no variable in scope here leads to stream #")
end

-- One pair of lines, whose local has one name.
function TestFixes.test_an_event_for_both_ranks()
  local script = [[
local comm, a, b = mr.stream{name = "comm"}, mr.ones(1024), mr.ones(1024)
local w = mr.zeros(1024)
comm:wait_stream(mr.current_stream())
comm:run(function() mr.dist.all_reduce(a) end)
comm:run(function() mr.dist.all_reduce(b) end)
w:sub_(a)
w:sub_(b)]]
  check(2, script, { { "no-path", "4 local e = comm:record_event()", "6 mr.default_stream():wait_event(e)" },
                     { "no-path", "7 mr.default_stream():wait_stream(comm)" } })
  local output = run("--ranks 2 --check", script)
  lu.assertStrContains(output, "2 pairs of streams. No other lines are needed.")
  local _, count = output:gsub("local e = comm", "")
  lu.assertEquals(count, 1)
end

function TestFixes.test_a_tensor_is_freed_while_it_is_reduced()
  check(3, [[
local x = mr.ones(64)
local work = mr.dist.all_reduce(x, {async = true})
x:free()
mr.synchronize()]], { { "freed-without-record-stream", "3 work:wait()" } })
  check(2, [[
local works, s = {}, mr.stream{name = "s"}
for i = 1, 2 do
  local x = s:run(function() return mr.ones(64) end)
  s:synchronize()
  works[i] = mr.dist.all_reduce(x, {async = true})
  x:free()
end
mr.synchronize()]], { { "freed-without-record-stream", "6 works[i]:wait(s)" } })
end

-- One command uses all gradients: the work of the last all_reduce covers those before it.
function TestFixes.test_a_step_that_needs_several_works()
  check(2, [[
local net = mr.nn.Sequential(mr.nn.Linear(8, 8), mr.nn.Linear(8, 4)):to(mr.current_device())
local opt = mr.optim.SGD(net:parameters(), {lr = 0.1})
for step = 1, 2 do
  opt:zero_grad()
  net(mr.ones(2, 8)):sum():backward()
  local works = {}
  for i, p in ipairs(net:parameters()) do works[i] = mr.dist.all_reduce(p.grad, {async = true}) end
  opt:step()
end
mr.synchronize()]], { { "no-path", "8 works[4]:wait()" } })
end

-- Nothing leads to the stream of the buckets. The current stream has waited for it at the end of backward().
function TestFixes.test_gradients_of_ddp_on_another_stream()
  check(2, [[
local net = mr.nn.Sequential(mr.nn.Linear(8, 8), mr.nn.Linear(8, 4)):to(mr.current_device())
local ddp = mr.nn.parallel.DistributedDataParallel(net)
local side = mr.stream{name = "side"}
for i = 1, 2 do
  ddp(mr.ones(2, 8)):sum():backward()
  side:run(function() net[1].weight.grad:mul_(0.5) end)
end
mr.synchronize()]], { { "wait-on-wrong-stream", "6 side:wait_stream(mr.default_stream())" },
                      { "no-path", "5 mr.default_stream():wait_stream(side)" } })
end

TestReasons = {}

-- Rank 1 has waited for its default stream by then. That is nothing that rank 0 did.
function TestReasons.test_what_another_rank_has_waited_for()
  local found = check(2, [[
local loss = mr.ones(1)
local work = mr.dist.reduce(loss, 0, {async = true})
print(loss:item())]], { { "no-path", "3 work:wait()" } })
  lu.assertStrContains(found[1].why, "nothing makes default of device 0 wait for world")
end

function TestReasons.test_what_another_rank_does_afterwards()
  local fix = "3 mr.synchronize() -- or keep what broadcast returns at line 2, as local e, and write e:wait() here"
  local found = check(2, [[
local y = mr.ones(8)
mr.dist.broadcast(y, 0, {async = true})
y:add_(1)
mr.synchronize()]], { { "no-path", fix }, { "one-way", fix } })
  for _, report in ipairs(found) do lu.assertNotStrContains(report.why, "SCRIPT:4") end
end

-- Its own waits are still a reason.
function TestReasons.test_what_the_rank_itself_has_waited_for()
  local found = check(2, [[
local side, other, x = mr.stream{name = "side"}, mr.stream{name = "other"}, mr.ones(1)
mr.synchronize()
side:run(function() x:add_(1) end)
other:synchronize()
print(x:item())]], {
    { "wait-on-wrong-stream", "5 mr.default_stream():wait_stream(side)" } })
  lu.assertStrContains(found[1].why, "the host waited for other at SCRIPT:4, not for side")
end

TestNames = {}

local RACE = [[
local side, x = mr.stream{name = "side"}, mr.ones(8)
if mr.dist.rank() > 0 then side:run(function() x:add_(1) end) end
mr.synchronize()]]

function TestNames.test_a_report_names_its_ranks()
  local output = run("--ranks 4 --check", RACE)
  lu.assertStrContains(output, "  rank 1: add_ reads and writes x on stream side at SCRIPT:2\n" ..
    "  rank 1: ones writes x on stream default of device 1 at SCRIPT:1\n")
  for ranks, count in pairs { ["rank 2"] = 2, ["ranks 2, 3"] = 3 } do
    lu.assertStrContains(output, ("The same happens on %s, too: %d times so far, for %d pairs of streams. No other "
      .. "line is needed."):format(ranks, count, count))
  end
  local found = reports(4, RACE)
  lu.assertStrContains(found[1].json, '"ranks":[1,2,3],"first":{"op":"ones","access":"write","rank":1,')
  lu.assertStrContains(found[1].json, '"second":{"op":"add_","access":"read-write","rank":1,')
end

function TestNames.test_streams_of_one_rank()
  local output = run("--ranks 2 --check", [[
local a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.ones(8)
mr.synchronize()
for _, s in ipairs{a, b, a} do s:run(function() x:add_(1) end) end
mr.synchronize()]])
  lu.assertStrContains(output, "The same happens on rank 1 and between other streams, too (a after b): ")
end

function TestNames.test_tables_of_reports()
  local output = run("--device virtual:2", [[
local reports = mr.hazard.check(function()
  mr.dist.spawn(2, function()
    local x = mr.ones(8)
    mr.stream():run(function() x:add_(1) end)
  end)
end)
local r = reports[1]
print(#reports, r.first.rank, r.second.rank, table.concat(r.ranks, " "))
reports = mr.hazard.check(function()
  local x = mr.ones(8)
  mr.stream():run(function() x:add_(1) end)
end)
print(reports[1].first.rank, reports[1].second.rank, reports[1].ranks)]])
  lu.assertEquals(output:gsub("==%d+==WARNING: ASan [^\n]+\n", ""), "1\t0\t0\t0 1\nnil\tnil\tnil\n")
end

os.exit(lu.LuaUnit.run())
