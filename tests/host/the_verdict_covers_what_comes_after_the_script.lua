-- timeout: 120
-- When the script has returned, it still has host functions, `<close>` variables and finalizers. Their operations are
-- part of the verdict. A free by the collector from then on is not: nobody wrote that.
local lu = require "luaunit"
local command = require "host.support.command"

local BEGIN = [[
local s = mr.stream{name = "s"}
local x, P = mr.zeros(64, {name = "x"}), mr.zeros(4, {pinned = true, name = "P"})
mr.synchronize()
local function race()
  mr.with(s, function() x:add_(1) end)
  x:mul_(2)
end
local function collect() collectgarbage() collectgarbage() end
]]

local function run(code, ...)
  local options = { "--device", "virtual:2", ... }
  return command.with_file(BEGIN .. code, function(path)
    options[#options + 1] = path
    return command.run(options)
  end)
end

local function assert_clean(result)
  lu.assertEquals(result.status, 0, result.err)
  lu.assertStrMatches(result.err, "no hazards: every legal schedule [^\n]*\n.*")
end

local function assert_race(result)
  lu.assertEquals(result.status, 3, result.err)
  lu.assertStrContains(result.err, "kind=read-after-write")
  lu.assertStrMatches(result.err, ".*\n1 hazard at 1 pair of places in 3 operations\n")
end

TestCollected = {}

-- The first host function collects what only `y` holds. The second goes on, so that something comes after the free. It
-- is on another device, which is waited for next: memory freed in host functions goes when such a wait ends.
local COLLECTED = [[
local y = coroutine.wrap(function()
  local made = mr.zeros(64)
  s:wait_stream(mr.default_stream())
  mr.op{name = "use", reads = {made}, stream = s}
  return made
end)()
s:host_func(collect)
local t = mr.stream{device = 1}
mr.with(t, function() mr.spin{ms = 1} end)
t:host_func(function() P:fill_(1) end)
]]

function TestCollected.test_after_the_script()
  assert_clean(run(COLLECTED, "--check"))
end

function TestCollected.test_where_os_exit_left_it()
  assert_clean(run(COLLECTED .. "y = nil os.exit(0)", "--check"))
end

function TestCollected.test_after_the_function_of_a_check()
  local result = run("print(#mr.hazard.check(function()\n" .. COLLECTED .. "end))")
  lu.assertEquals({ result.status, result.out }, { 0, "0\n" })
end

-- A command has to follow, or nothing comes after the free.
local EARLIER = COLLECTED .. "y = nil collect() mr.synchronize()\n"

function TestCollected.test_before_that_it_counts()
  local result = run(EARLIER, "--check")
  lu.assertEquals(result.status, 3)
  lu.assertStrContains(result.err, "reason=collected-while-pending")
  result = run("print(mr.hazard.check(function()\n" .. EARLIER .. "end)[1].reason)")
  lu.assertEquals(result.out, "collected-while-pending\n")
end

function TestCollected.test_after_a_check_the_script_goes_on()
  local result = run("mr.hazard.check(function() end)\n" .. EARLIER, "--check")
  lu.assertEquals(result.status, 3)
  lu.assertStrContains(result.err, "reason=collected-while-pending")
end

TestSubmitted = {}

function TestSubmitted.test_by_a_close_variable_that_os_exit_closes()
  assert_race(run("local v <close> = setmetatable({}, {__close = race})\nos.exit(0, true)", "--check"))
end

-- The same race, once found while the script's variables are there, and once when it has returned.
function TestSubmitted.test_by_a_host_function_whose_variables_are_gone()
  local code = [[
mr.op{name = "w", writes = {P}, stream = s}
local t = mr.stream()
t:host_func(function() P:fill_(4) end)
]]
  local result = run(code .. "t:synchronize()", "--check")
  lu.assertStrContains(result.err, "add   t:wait_stream(s)\n")
  result = run(code, "--check")
  lu.assertStrMatches(result.err, ".*mr.synchronize%(0%) %-%- stream #%d+ has no name here; " ..
    "use its variable\n.*")
end

function TestSubmitted.test_by_a_finalizer()
  for _, last in ipairs { "", "os.exit(0)" } do
    assert_race(run("keep = setmetatable({}, {__gc = race})\n" .. last, "--check"))
  end
end

function TestSubmitted.test_by_a_finalizer_that_leaves()
  local code = "keep = setmetatable({}, {__gc = function() race() os.exit(%s) end})"
  assert_race(run(code:format(""), "--check"))
  lu.assertEquals(run(code:format("5"), "--check").status, 5)
end

function TestSubmitted.test_a_race_of_the_script_is_not_lost_where_a_finalizer_leaves()
  assert_race(run("race()\nkeep = setmetatable({}, {__gc = function() os.exit(0) end})", "--check"))
end

function TestSubmitted.test_a_host_function_of_a_finalizer_is_told_to_have_not_run()
  local result = run("keep = setmetatable({}, {__gc = function() s:host_func(collect) end})", "--check")
  lu.assertEquals(result.status, 0)
  lu.assertStrContains(result.err, "not checked: the accesses of 1 host function that has not run")
end

os.exit(lu.LuaUnit.run())
