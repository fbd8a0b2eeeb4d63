-- Captures that a program does not end. The host says so at the end of a script, nothing is left over, and a run of an
-- exploration does not hand them on to the next.
local lu = require "luaunit"
local command = require "host.support.command"

local function run(options, code)
  return command.say{ options = "--device virtual " .. options, "-e", code }
end

TestLeftOpen = {}

local OPEN = [[
kept = {}
function open()
  local s, t, x = mr.stream{name = "lost"}, mr.stream(), mr.zeros(3)
  mr.synchronize()
  kept[#kept + 1] = s
  mr.graph.begin(s)
  t:wait_stream(s)
  t:run(function() x:add_(1) end)
  s:run(function() y = mr.ones(4) end)
  return x
end
]]

local LINE = "the capture on stream `lost` was not ended"

function TestLeftOpen.test_at_the_end_of_a_script()
  for _, options in ipairs{"", "--check", "--waits"} do
    local text, status = run(options, OPEN .. "open()")
    lu.assertStrContains(text, LINE)
    lu.assertEquals(status, 0, options .. text)
  end
  for code, expected in pairs{["os.exit(0)"] = 0, ["os.exit(3)"] = 3, ["error 'oh no'"] = 1} do
    local text, status = run("", OPEN .. "open() " .. code)
    lu.assertEquals(text:find(LINE, 1, true) ~= nil, expected == 0, text)
    lu.assertEquals(status, expected, text)
  end
end

function TestLeftOpen.test_a_capture_that_was_ended_is_no_news()
  local text, status = run("", OPEN .. "open() pcall(mr.graph.finish, kept[1])")
  lu.assertEquals({text, status}, {"", 0})
  text, status = run("", OPEN .. "open() mr.reset()")
  lu.assertEquals({text, status}, {"", 0})
end

function TestLeftOpen.test_in_an_exploration()
  for _, search in ipairs{"mr.explore", "mr.stress"} do
    local text, status = run("", OPEN .. "print(" .. search .. "(open)) mr.synchronize() print(mr.ones(3):sum())")
    lu.assertStrContains(text, LINE)
    lu.assertStrContains(text, "1 outcome")
    lu.assertStrContains(text, "3.")
    lu.assertEquals(status, 0)
  end
end

os.exit(lu.LuaUnit.run())
