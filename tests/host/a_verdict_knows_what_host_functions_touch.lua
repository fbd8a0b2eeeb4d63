-- timeout: 120
-- A host function that the script does not wait for runs before the verdict, and one that cannot run is named. So a
-- clean verdict never depends on whether a function happened to run.
local lu = require "luaunit"
local command = require "host.support.command"

local BEGIN = [[
local s1, s2 = mr.stream{name = "s1"}, mr.stream{name = "s2"}
local P = mr.zeros(4, {pinned = true, name = "P"})
local d = mr.zeros(4)
mr.synchronize()
]]
local CHOOSERS = { "timed", "adversarial", "random:1", "random:2" }

-- Runs the code as a file under each chooser; the last line of the verdict and the status must be one.
local function verdict(code, ...)
  local options, first = { ... }, nil
  return command.with_file(BEGIN .. code, function(path)
    for _, chooser in ipairs(CHOOSERS) do
      local all = table.move(options, 1, #options, 1, {})
      table.move({ "--chooser", chooser, path }, 1, 3, #all + 1, all)
      local result = command.run(all)
      first = first or result
      lu.assertEquals({ result.status, result.out }, { first.status, first.out }, chooser .. result.err)
      lu.assertEquals(result.err:match("no hazards?") or result.err:match("kind=%S+"),
        first.err:match("no hazards?") or first.err:match("kind=%S+"), chooser)
    end
    return first
  end)
end

TestVerdict = {}

function TestVerdict.test_a_function_that_nobody_waits_for()
  local result = verdict([[
mr.op{name = "w", writes = {P}, stream = s2}
s1:host_func(function() P:fill_(4) end)]], "--check")
  lu.assertEquals(result.status, 3)
  lu.assertStrContains(result.err, "kind=write-after-write")
end

function TestVerdict.test_a_wait_for_another_stream()
  local result = verdict([[
s1:host_func(function() P:fill_(4) end)
mr.memcpy_async(d, P, {stream = s2})
s2:synchronize()]], "--check")
  lu.assertEquals(result.status, 3)
  lu.assertStrContains(result.err, "kind=read-after-write")
end

function TestVerdict.test_functions_that_race_with_nothing_are_clean()
  local result = verdict([[
s1:host_func(function() P:fill_(4) print("ran") end)
mr.memcpy_async(d, P, {stream = s1})]], "--check")
  lu.assertEquals({ result.status, result.out }, { 0, "ran\n" })
  lu.assertStrContains(result.err, "no hazards: every legal schedule of these")
end

function TestVerdict.test_os_exit_does_not_skip_them()
  local result = verdict([[
mr.op{name = "w", writes = {P}, stream = s2}
s1:host_func(function() P:fill_(4) end)
os.exit()]], "--check")
  lu.assertEquals(result.status, 3)
end

function TestVerdict.test_a_check_of_a_function_where_the_mode_is_off()
  local result = verdict [[
local reports = mr.hazard.check(function()
  s1:host_func(function() P:fill_(4) end)
  mr.memcpy_async(d, P, {stream = s2})
  s2:synchronize()
end)
print(#reports, reports[1] and reports[1].kind)]]
  lu.assertEquals(result.out, "1\tread-after-write\n")
end

function TestVerdict.test_what_is_pending_when_a_check_begins_is_the_outer_modes()
  local result = verdict([[
s1:host_func(function() P:fill_(4) end)
mr.memcpy_async(d, P, {stream = s2})
s2:synchronize()
mr.hazard.check(function() end)]], "--check")
  lu.assertEquals(result.status, 3)
end

function TestVerdict.test_what_is_pending_when_the_mode_goes_off()
  local result = verdict([[
s1:host_func(function() P:fill_(4) end)
mr.memcpy_async(d, P, {stream = s2})
s2:synchronize()
mr.hazard.mode("off")]], "--check")
  lu.assertEquals(result.status, 3)
end

function TestVerdict.test_an_error_of_a_function_is_told()
  local result = verdict([[s1:host_func(function() error("late") end)]], "--check")
  lu.assertEquals(result.status, 1)
  lu.assertStrContains(result.err, "late")
  result = verdict [[
print(pcall(mr.hazard.check, function() s1:host_func(function() error("late") end) end))
print(mr.hazard.mode())]]
  lu.assertStrContains(result.out, "late")
  lu.assertStrContains(result.out, "\noff\n")
end

function TestVerdict.test_error_mode_refuses_in_them()
  local result = verdict([[
mr.op{name = "w", writes = {P}, stream = s2}
s1:host_func(function() P:fill_(4) end)]], "--check=error")
  lu.assertEquals(result.status, 3)
  lu.assertStrContains(result.err, "kind=write-after-write")
end

-- The machine is at work below a host function, so nothing else can run there.
function TestVerdict.test_what_cannot_run_is_named_and_nothing_claimed()
  local code = BEGIN .. [[
s1:host_func(function() os.exit() end)
s1:host_func(function() P:fill_(4) end)
s1:synchronize()]]
  command.with_file(code, function(path)
    local result = command.run{ "--check", path }
    lu.assertStrContains(result.err, "no hazard was found")
    lu.assertStrContains(result.err, "not checked: the accesses of 2 host functions that have not run")
    lu.assertNotStrContains(result.err, "every legal schedule")
  end)
end

function TestVerdict.test_a_summary_on_the_way_does_not_claim()
  local result = command.run{ "--check", "--chooser", "adversarial", "-e", BEGIN:gsub("\n", " ") .. [[
    s1:host_func(function() P:fill_(4) end)
    io.write((mr.hazard.summary()))
    print(select(2, mr.hazard.summary()).not_run)
    s1:synchronize()
    print(select(2, mr.hazard.summary()).not_run)]] }
  lu.assertStrContains(result.out, "no hazard was found")
  lu.assertStrContains(result.out,
    "not checked: the accesses of 1 host function that has not run; wait for it\n1\n0\n")
  lu.assertStrContains(result.err, "no hazards: every legal schedule")
end

os.exit(lu.LuaUnit.run())
