-- timeout: 240
-- Steps through a script: `:load` under the chooser manual, and `millrace --step`.
local lu = require "luaunit"
local command = require "host.support.command"

local RACE = [[
local mr = require "millrace"
local p, c = mr.stream{name = "producer"}, mr.stream{name = "consumer"}
local x = mr.zeros(4)
mr.synchronize()
p:run(function()
  x:fill_(1)
end)
local sum = c:run(function() return x:sum() end)
c:synchronize()
print(sum:item())
]]

-- What is shown and complained of for these lines, with the file in the place of FILE. `step`: by --step.
local function stepped(text, input, options)
  options = options or {}
  return command.with_file(text, function(path)
    local arguments = options.step and { "--step", path } or { "--chooser", "manual", "-i" }
    arguments.input = input:gsub("FILE", path)
    arguments.environment = "export LC_ALL=C.UTF-8; export COLUMNS=" .. (options.columns or 80)
    local result = command.run(arguments)
    lu.assertEquals(result.status, options.status or 0)
    return result.out, result.err, path:match("[^/]*$")
  end)
end

TestSteps = {}

function TestSteps.test_it_stops_before_waits_and_goes_on()
  local out = stepped(RACE, ":load FILE\n:continue\n:continue\n'behind'\n")
  lu.assertStrContains(out, ":4: `synchronize` waits for the device\n")
  lu.assertStrContains(out, ":9: `synchronize` waits for the device\n")
  lu.assertStrContains(out, "behind\n")
  lu.assertNotStrContains(out, "`item` waits") -- nothing is pending then
end

-- Both outcomes of the race, by steps taken where the script stands.
function TestSteps.test_the_device_is_stepped_forward_and_back_at_a_stop()
  local out = stepped(RACE, ":load FILE\n:continue\n:step c\nsum:peek():item()\n:back\n:run p\n:step c\n" ..
    "sum:peek():item()\nx:peek()\n:continue\n")
  lu.assertStrContains(out, "sum on stream `consumer` at mr:1:8")
  lu.assertStrContains(out, "> 0.0\n")
  lu.assertStrContains(out, "1 step undone")
  lu.assertStrContains(out, "> 4.0\n")
  lu.assertStrContains(out, "[1., 1., 1., 1.]")
end

function TestSteps.test_breakpoints()
  local out, err = stepped(RACE, ":break 8\n:break fill_\n:break 0\n:break\n:load FILE\n:c\n:c\n:c\n:c\n:c\n")
  lu.assertStrContains(out, "breakpoints: 8, fill_\n")
  lu.assertStrContains(err, ":break needs a line from 1 on")
  -- the line behind the one that submits it
  lu.assertStrContains(out, ":7: `fill_` was submitted\n")
  out = stepped(RACE, ":break 6\n:load FILE\n:c\nx.shape\n:c\n:c\n:c\n")
  lu.assertStrContains(out, ":6: a breakpoint\n") -- in a function that C has called
  lu.assertStrContains(out, "▶*   6    x:fill_(1)\n")
end

function TestSteps.test_next_goes_from_line_to_line()
  local out = stepped("local a = 1\nlocal b = a + 1\nprint(a + b)\n", ":next\na\n\nb\n\n'end'\n", { step = true })
  lu.assertStrContains(out, ":1: the next line\n")
  lu.assertStrContains(out, ":2> 1\n")
  lu.assertStrContains(out, ":3> 2\n")
  lu.assertStrContains(out, "> 3\n")
  lu.assertStrContains(out, "> end\n")
end

function TestSteps.test_two_panes_on_a_wide_terminal()
  local out = stepped(RACE, ":c\n:c\n:c\n", { step = true, columns = 110 })
  lu.assertStrContains(out, "▶    9  c:synchronize() ")
  lu.assertStrContains(out, " │ stream `consumer`: 1 pending\n")
  for line in out:gmatch("[^\n]+") do
    if line:find("│") then lu.assertTrue(utf8.len(line) <= 110) end
  end
  out = stepped(RACE, ":c\n:c\n:c\n", { step = true, columns = 40 })
  lu.assertNotStrContains(out, "│")
  lu.assertStrContains(out, "    10  print(sum:item())\nstream `producer`: 1 pending\n")
end

function TestSteps.test_a_script_can_be_left()
  local out, err = stepped(RACE, ":c\n:q\n'be' .. 'hind'\nmr.current_stream():query()\n", { step = true })
  lu.assertStrContains(err, "the script was left")
  lu.assertStrContains(out, "behind\n")
  out, err = stepped(RACE, ":c\n", { step = true }) -- the input ends
  lu.assertStrContains(err, "the script was left")
  lu.assertNotStrContains(out, "4.0")
end

-- All is as it was when the script has ended, also by an error.
function TestSteps.test_nothing_stays_behind()
  local out, err = stepped("mr.zeros(3)\nerror('broken')",
    ":load FILE\nmr.synchronize()\nhelp(mr.synchronize)\n'al' .. 'ive'\n")
  lu.assertStrContains(err, "broken")
  lu.assertNotStrContains(out, "waits for the device\n")
  lu.assertStrContains(out, "mr.synchronize(")
  lu.assertStrContains(out, "alive\n")
end

function TestSteps.test_mistakes_at_a_stop()
  local out, err = stepped(RACE, ":c\nnothing.at\n1 +\n:nosuch\n:break x y\n:load FILE\nerror{}\n'still'\n:c\n:c\n",
    { step = true })
  lu.assertStrContains(err, "attempt to index a nil value (global 'nothing')")
  lu.assertStrContains(err, "there is no command :nosuch")
  lu.assertStrContains(err, "a script has stopped")
  lu.assertStrContains(out, "still\n")
  local _, message = stepped("1", ":next\n:continue\n")
  lu.assertStrContains(message, ":next: no script has stopped")
  lu.assertStrContains(message, ":continue: no script has stopped")
end

-- Under other choosers the device does not wait for steps.
function TestSteps.test_other_choosers_do_not_stop()
  local out = stepped(RACE, ":chooser timed\n:load FILE\n'end'\n")
  lu.assertNotStrContains(out, "waits for the device")
end

function TestSteps.test_the_option()
  for _, arguments in ipairs{ { "--step" }, { "--step", "--sandbox", "x.lua" }, { "--step", "--explore", "x.lua" } } do
    local result = command.run(arguments)
    lu.assertEquals(result.status, 2)
    lu.assertStrContains(result.err, "--step ")
  end
  local result = command.run{ "--step", "no_such_file.lua", input = "1\n" }
  lu.assertStrContains(result.err, "no_such_file.lua cannot be read")
end

os.exit(lu.LuaUnit.run())
