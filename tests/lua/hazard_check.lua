-- mr.hazard.check and what is about it: its own list, what was found or submitted before it, leaving it for
-- good; and coroutines that are gone.
-- not checked: the checker is what is tested
local lu = require "luaunit"
local mr = require "millrace"
local fresh = require "lua.support.hazard".fresh

local HOST = assert(os.getenv("MILLRACE"), "MILLRACE must hold the path of the host")

TestCheck = { setUp = fresh, tearDown = fresh }

local function race_at_new_places(count)
  local s, t, lines = mr.stream(), mr.stream(), {}
  for i = 1, count do
    lines[i] = "mr.synchronize() x = mr.zeros(4) mr.synchronize() " ..
      "mr.with(s, function() x:fill_(1) end) mr.with(t, function() x:fill_(2) end)"
  end
  -- Not garbage until then: the collector would free it in the middle of the call that waits for its last use.
  local _ <close> =
    load("local mr, s, t, x = ...\n" .. table.concat(lines, "\n") .. "\nreturn x", "=places" .. count)(mr, s, t)
  mr.synchronize()
end

local function one_race()
  local s, t = mr.stream(), mr.stream()
  local y = mr.zeros(4, {stream = s})
  mr.op{name = "late", writes = {y}, stream = t}
end

function TestCheck.test_a_check_finds_what_it_finds_however_much_was_found_before()
  mr.hazard.mode("collect")
  race_at_new_places(1010)
  lu.assertEquals(#mr.hazard.reports(), 1000)
  lu.assertEquals(#mr.hazard.check(one_race), 1)
  lu.assertEquals(select(2, mr.hazard.summary()).dropped, 10)
end

function TestCheck.test_what_a_check_has_no_room_for_is_counted()
  lu.assertEquals(#mr.hazard.check(race_at_new_places, 1003), 1000)
  lu.assertEquals(select(2, mr.hazard.summary()).dropped, 3)
end

function TestCheck.test_what_the_collector_showed_before_a_check_is_kept()
  local a, b = mr.stream(), mr.stream()
  mr.hazard.mode("collect")
  local t = mr.ones(100, {stream = a})
  mr.synchronize()
  mr.op{name = "use", reads = {t}, stream = b}
  t = nil -- luacheck: ignore
  collectgarbage() collectgarbage()
  lu.assertEquals(#mr.hazard.check(function() mr.zeros(4) end), 0)
  lu.assertEquals(#mr.hazard.reports(), 1)
  lu.assertEquals(mr.hazard.reports()[1].reason, "collected-while-pending")
end

function TestCheck.test_in_error_mode_a_check_raises_it()
  local a, b = mr.stream(), mr.stream()
  mr.hazard.mode("error")
  local t = mr.ones(100, {stream = a})
  mr.synchronize()
  mr.op{name = "use", reads = {t}, stream = b}
  t = nil -- luacheck: ignore
  collectgarbage() collectgarbage()
  local ok, err = pcall(mr.hazard.check, function() end)
  lu.assertFalse(ok)
  lu.assertStrContains(tostring(err), "use-after-free")
  lu.assertEquals(mr.hazard.mode(), "error")
end

for _, mode in ipairs { "off", "collect" } do
  TestCheck["test_a_host_function_of_before_counts_as_ordered_" .. mode] = function()
    local s, o = mr.stream(), mr.stream()
    local d, p, q = mr.ones(4), mr.zeros(4, {device = "cpu", pinned = true}), mr.ones(4)
    mr.synchronize()
    mr.hazard.mode(mode)
    local seen
    s:host_func(function() seen = p[1]:item() end)
    local reports = mr.hazard.check(function()
      mr.with(s, function() p:copy_(d, {non_blocking = true}) end)
      mr.with(o, function() q:fill_(2) end)
      o:synchronize()
      s:synchronize()
    end)
    lu.assertEquals({ seen, #reports, #mr.hazard.reports() }, { 0.0, 0, 0 })
  end
end

function TestCheck.test_pending_work_of_before_counts_as_ordered()
  local a, b, x = mr.stream(), mr.stream(), mr.zeros(4)
  mr.synchronize()
  mr.hazard.mode("collect")
  mr.op{name = "pending", writes = {x}, stream = a}
  lu.assertEquals(#mr.hazard.check(function() mr.op{name = "use", reads = {x}, stream = b} end), 0)
end

-- A free by the collector after the function has returned is not the function's doing.
function TestCheck.test_what_is_collected_after_the_function_returned_is_not_judged()
  local a, b, c = mr.stream(), mr.stream(), mr.stream()
  local garbage
  local function leave_garbage(collects_inside)
    garbage = mr.zeros(4, {stream = a})
    b:wait_stream(a)
    mr.op{name = "use", reads = {garbage}, stream = b}
    c:host_func(function()
      garbage = nil
      collectgarbage() collectgarbage()
    end)
    if collects_inside then c:synchronize() end
  end
  lu.assertEquals(#mr.hazard.check(leave_garbage, false), 0)
  mr.synchronize()
  lu.assertNil(garbage)
  local reports = mr.hazard.check(function() leave_garbage(true) mr.op{name = "more", stream = a} end)
  lu.assertEquals({ #reports, reports[1].kind }, { 1, "use-after-free" })
end

-- A script in a process of its own: its exit status, and what it wrote.
local function run(options, script)
  local name = os.tmpname()
  local file = assert(io.open(name, "w"))
  file:write(script)
  file:close()
  local pipe = assert(io.popen(("%s %s %s 2>&1"):format(HOST, options, name)))
  local text = pipe:read("a")
  local _, _, status = pipe:close()
  os.remove(name)
  return status, text
end

local leaves = [[
  local mr = require "millrace"
  local s, t = mr.stream(), mr.stream()
  mr.hazard.check(function()
    local x = mr.zeros(100)
    mr.with(s, function() x:fill_(1) end)
    mr.with(t, function() x:fill_(1) end)
    os.exit(%s, true)
  end)]]

function TestCheck.test_leaving_a_check_by_os_exit_ends_it()
  for _, options in ipairs { "", "--check", "--check=error" } do
    local status, text = run(options, leaves:format(0))
    lu.assertEquals(status, 0, text)
    lu.assertNotStrContains(text, "write-after-write")
    lu.assertEquals((run(options, leaves:format(5))), 5)
  end
end

-- Other host functions cannot run then: what they touch would never be known, or would count as ordered.
function TestCheck.test_a_host_function_cannot_begin_a_check_nor_change_the_mode()
  local s = mr.stream()
  local p = mr.zeros(4, {pinned = true, name = "p"})
  mr.hazard.mode("collect")
  s:host_func(function()
    lu.assertEquals(mr.hazard.mode(), "collect")
    for _, call in ipairs { function() mr.hazard.mode("off") end, function() mr.hazard.check(print) end } do
      local ok, problem = pcall(call)
      lu.assertFalse(ok)
      lu.assertEquals(problem.code, "not-permitted")
    end
    p:fill_(1)
  end)
  p:fill_(2)
  s:synchronize()
  lu.assertEquals(select(2, mr.hazard.summary()).not_run, 0)
  lu.assertEquals(mr.hazard.reports()[1].kind, "write-after-write")
end

-- A question about a coroutine that the collector has taken would be about freed memory.
function TestCheck.test_a_finalizer_asks_nothing_of_a_coroutine_that_is_gone()
  local status, text = run("", [[
    local mr = require "millrace"
    mr.hazard.advice(true)
    mr.hazard.mode("collect")
    local s = mr.stream()
    for _ = 1, 200 do
      local co = coroutine.wrap(function()
        for _ = 1, 50 do local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end f(150) end
        local e = mr.event() e:record(s) s:synchronize()
      end)
      co() co = nil
      collectgarbage() collectgarbage()
      local pad = {} for k = 1, 100 do pad[k] = ("x"):rep(1000 + k) end
    end
    print(#mr.hazard.advice())]])
  lu.assertEquals({ status, text }, { 0, "2\n" })
end

-- The host really waits: so under no schedule does the work of before come late.
function TestCheck.test_a_check_begins_with_a_wait_for_all_devices()
  local a, b, x = mr.stream(), mr.stream(), mr.zeros(1)
  mr.synchronize()
  for _, chooser in ipairs(mr.machine and { "timed", "adversarial", "random:3" } or { "a GPU has none" }) do
    local before = mr.machine and mr.machine.chooser(chooser)
    a:run(function() mr.spin(1) x:fill_(1) end)
    mr.hazard.check(function() end)
    lu.assertTrue(a:query())
    b:run(function() x:mul_(3) end)
    mr.synchronize()
    lu.assertEquals(x:item(), 3)
    if mr.machine then mr.machine.chooser(before) end
  end
end

local two_writes = [[
  local a, b, x = mr.stream(), mr.stream(), mr.zeros(1) mr.synchronize()
  a:run(function() x:add_(1) end)
  %s
  b:run(function() x:mul_(3) end)]]

function TestCheck.test_switched_on_while_work_is_pending_is_a_condition()
  local _, text = run("--check", two_writes:format("mr.hazard.mode 'off' mr.hazard.mode 'warn'"))
  lu.assertStrContains(text, "others were pending or submitted while the checker was off")
  _, text = run("--check", two_writes:format("mr.synchronize() mr.hazard.mode 'off' mr.hazard.mode 'warn'"))
  lu.assertNotStrContains(text, "while the checker was off")
  _, text = run("--check", two_writes:format("mr.hazard.check(function() end)"))
  lu.assertNotStrContains(text, "while the checker was off")
  lu.assertStrContains(text, "no hazards")
end

-- What a check submits has no wait behind it: it may race with what follows.
function TestCheck.test_the_work_of_a_check_is_pending_behind_it()
  local status, text = run("--check", [[
    local a, b, x = mr.stream(), mr.stream(), mr.zeros(1) mr.synchronize()
    mr.hazard.check(function() a:run(function() x:add_(1) end) end)
    b:run(function() x:mul_(3) end)]])
  lu.assertEquals({ status, text:find "%-after%-write" ~= nil }, { 3, true })
end

os.exit(lu.LuaUnit.run())
