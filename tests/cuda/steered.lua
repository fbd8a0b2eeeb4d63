-- mr.stress with a schedule, on a GPU (here the tests' own driver, tests/fake_cuda): a process with the virtual GPU
-- explores random programs, and one with the driver follows each schedule. They consist of copies, since the driver may
-- run no kernels, and of all that orders and looks: events, waits, queries, host functions, values that the host reads.
-- timeout: 120
local luaunit = require "luaunit"
local command = require "host.support.command"
local fake = require "cuda.support.fake"

local script, found = os.tmpname(), os.tmpname()


local function run(device, text, environment)
  command.write(script, text)
  return fake.run{ "--device", device, script, input = command.read(found), variables = environment, limit = 60 }
end

local PROGRAMS = [[
local function generator(seed)
  local state = seed * 2654435761 % 4294967296 + 1
  return function(n)
    state = (state * 1103515245 + 12345) % 2147483648
    return state // 65536 % n + 1
  end
end

local function make(seed)
  return function()
    local draw = generator(seed)
    local streams, events, tensors, hosts = {}, {}, {}, {}
    for i = 1, 3 do
      streams[i] = i == 3 and draw(3) == 1 and mr.default_stream() or mr.stream{nonblocking = draw(2) == 1}
      events[i] = mr.event()
      tensors[i] = mr.empty(2)
      hosts[i] = mr.full({2}, i + 0.0, {device = "cpu", pinned = true})
      tensors[i]:copy_(hosts[i])
    end
    mr.synchronize()
    local seen, calls = {}, ""
    for i = 1, 5 + draw(3) do
      local s, what = streams[draw(3)], draw(12)
      if what <= 5 then s:run(function() tensors[draw(3)]:copy_(tensors[draw(3)], {non_blocking = true}) end)
      elseif what == 6 then s:run(function() hosts[draw(3)]:copy_(tensors[draw(3)], {non_blocking = true}) end)
      elseif what == 7 then s:run(function() tensors[draw(3)]:copy_(hosts[draw(3)], {non_blocking = true}) end)
      elseif what == 8 then events[draw(3)]:record(s)
      elseif what == 9 then s:wait_event(events[draw(3)])
      elseif what == 10 then seen[#seen + 1] = hosts[draw(3)][1]:item()
      elseif what == 11 then if draw(2) == 1 then s:synchronize() else seen[#seen + 1] = tostring(s:query()) end
      else s:host_func(function() calls = calls .. i end) end
    end
    mr.synchronize()
    for i = 1, 3 do
      seen[#seen + 1] = tensors[i]:cpu():totable()[1]
      seen[#seen + 1] = hosts[i]:totable()[1]
    end
    return table.concat(seen, " ") .. " " .. calls
  end
end
]]

local EXPLORE = PROGRAMS .. [[
for seed = 1, 120 do
  for _, o in ipairs(mr.explore(make(seed), {max = 200}).outcomes) do
    print(seed .. "|" .. o.schedule .. "|" .. o.value)
  end
end
]]

local FOLLOW = PROGRAMS .. [[
local count = 0
for line in io.lines() do
  local seed, schedule, value = line:match "^(%d+)|(.*)|(.*)$"
  local r = mr.stress(make(tonumber(seed)), {runs = 2, schedule = schedule})
  assert(#r.outcomes == 1 and r.followed == 2 and r.outcomes[1].value == value, line .. "\n" .. tostring(r))
  count = count + 1
end
print(mr.backend, count)
]]

-- All operations are done, and still each query may say no: a record, a wait or a free may come behind it.
local IDLE = [[
local kind = ...
local function program()
  local a, b, e = mr.stream(), mr.stream(), mr.event()
  local x = a:run(function() return mr.empty(4) end)
  local seen = {}
  mr.synchronize()
  if kind == "record" then e:record(a) seen[1] = e:query() seen[2] = a:query()
  elseif kind == "stream" then e:record(a) seen[1] = a:query() seen[2] = e:query()
  elseif kind == "other" then b:record_event() e:record(a) b:wait_event(e) seen[1] = b:query() seen[2] = a:query()
  elseif kind == "wait" then e:record(a) e:synchronize() b:wait_event(e) seen[1] = b:query()
  else a:run(function() x:free() end) seen[1] = a:query() end
  for i = 1, #seen do seen[i] = tostring(seen[i]) end
  mr.synchronize()
  return table.concat(seen, " ")
end
if mr.backend == "virtual" then
  for _, o in ipairs(mr.explore(program).outcomes) do print(o.schedule .. "|" .. o.value) end
else
  for line in io.lines() do
    local schedule, value = line:match "^(.*)|(.*)$"
    local r = mr.stress(program, {runs = 3, schedule = schedule})
    assert(#r.outcomes == 1 and r.followed == 3 and r.outcomes[1].value == value, line .. "\n" .. tostring(r))
  end
end
]]

-- On stream b nothing orders the second copy; the host waits for it in front of the third one.
local WAITING = [[
local schedule = "SCHEDULE"
local function program()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local one = mr.full({4}, 1.0, {device = "cpu", pinned = true})
  local x, y = mr.empty(4), mr.empty(4)
  mr.synchronize()
  a:run(function() x:copy_(one, {non_blocking = true}) end)
  WAIT
  b:run(function() y:copy_(one, {non_blocking = true}) end)
  mr.synchronize()
  return x:cpu():totable()[1]
end
if mr.backend == "virtual" then print(mr.explore(program).outcomes[1].schedule)
else
  local r = mr.stress(program, {runs = 1, schedule = schedule})
  assert(r.outcomes[1].value == 1.0, tostring(r))
  print(r)
end
]]

local function waiting(wait, schedule)
  return (WAITING:gsub("%u%u%u%u+", { SCHEDULE = schedule, WAIT = wait }))
end

-- The schedule of the program, and the same with the copy on b in front of the one on a.
local function schedules(wait)
  local text = run("virtual", waiting(wait, ""))
  local before, first, at, second = text:match "^(mr1 g1.-)@%d+ (%d+) @(%d+) (%d+)"
  luaunit.assertNotNil(second, text)
  return text:match "[^\n]+", ("%s@%s %s %s .99"):format(before, at, second, first)
end

TestSteered = {}

function TestSteered.tearDownClass()
  os.remove(script)
  os.remove(found)
end

function TestSteered.test_each_schedule_gives_its_outcome()
  local schedules_found, status = run("virtual", EXPLORE)
  luaunit.assertEquals(status, 0, schedules_found)
  local _, count = schedules_found:gsub("\n", "")
  luaunit.assertTrue(count > 200, schedules_found)
  command.write(found, schedules_found)
  local output
  output, status = run("cuda", FOLLOW)
  luaunit.assertEquals(status, 0, output)
  luaunit.assertEquals(output, "cuda\t" .. count .. "\n")
end

function TestSteered.test_queries_of_idle_streams_say_what_the_schedule_says()
  local answers = { record = { "false false", "false true", "true true" },
    stream = { "false false", "false true", "true true" }, other = { "false false", "false true", "true true" },
    wait = { "false", "true" }, free = { "false", "true" } }
  for kind, expected in pairs(answers) do
    local text = IDLE:gsub("%.%.%.", '"' .. kind .. '"', 1)
    command.write(found, "")
    local output = run("virtual", text)
    local values = {}
    for value in output:gmatch "|([^\n]*)" do values[#values + 1] = value end
    table.sort(values)
    luaunit.assertEquals(values, expected, kind)
    command.write(found, output)
    local said, status = run("cuda", text)
    luaunit.assertEquals(said, "", kind)
    luaunit.assertEquals(status, 0)
  end
end

function TestSteered.test_a_wait_that_would_not_end_is_named()
  local right, wrong = schedules "a:synchronize()"
  luaunit.assertStrContains(run("cuda", waiting("a:synchronize()", right)), "1 in the order of the schedule")
  local output = run("cuda", waiting("a:synchronize()", wrong))
  luaunit.assertStrContains(output, "0 in the order of the schedule")
  luaunit.assertStrContains(output, ":8 waits for work of stream `a` that the schedule puts behind work")
end

function TestSteered.test_the_patience_ends_other_waits()
  local _, wrong = schedules "a:record_event():synchronize()"
  local output = run("cuda", waiting("a:record_event():synchronize()", wrong))
  luaunit.assertStrContains(output, "nothing went on for 5 seconds")
  local began = os.time()
  local less = waiting("a:record_event():synchronize()", wrong):gsub("{runs = 1,", "{runs = 1, patience = 250,")
  output = run("cuda", less)
  luaunit.assertStrContains(output, "nothing went on for 0.25 seconds")
  luaunit.assertTrue(os.time() - began < 5)
end

function TestSteered.test_what_a_gpu_cannot_follow()
  local function refused(schedule, text, environment)
    local output, status = run("cuda", waiting("", schedule), environment)
    luaunit.assertEquals(status, 1, output)
    luaunit.assertStrContains(output, text)
  end
  refused("mr1 g2 @1 1 .3", "grain")
  refused("mr1 g1 +3 @1 1 .9", "unspecified")
  refused("mr1 g1 -3 @1 1 .9", "unspecified")
  refused("mr1 g1" .. (" @1" .. (" 1"):rep(5000)) .. " .3", "up to 4096")
  refused("mr1 @", "no schedule of mr.explore")
  refused("mr1 g1 @1 1 .3", "cannot wait for a value in memory", "MILLRACE_HOST_FUNCTIONS=callback")
end

function TestSteered.test_schedules_of_other_functions()
  for schedule, text in pairs{ ["mr1 g1 @1 1 .3"] = "before it submits what the schedule puts first",
    ["mr1 g1 @50 3 .60"] = "made for another function", ["mr1 g1 @0 9 9 9 .60"] = "for another function",
    ["mr1 g1 @0 4000000000 .4294967294"] = "for another function" } do
    local output, status = run("cuda", waiting("", schedule))
    luaunit.assertEquals(status, 0, output)
    luaunit.assertStrContains(output, "the schedule could not be followed")
    luaunit.assertStrContains(output, text)
  end
end

os.exit(luaunit.LuaUnit.run())
