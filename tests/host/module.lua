-- The module in a Lua state: there is one machine, however often and from where it is required, and it ends
-- with the state.
local lu = require "luaunit"
local command = require "host.support.command"

-- The same in the host and in a plain lua5.4 that loads the module.
local function both(text, expected)
  local result = command.eval(text)
  lu.assertEquals({ result.status, result.out, result.err }, { 0, expected, "" })
  local said, ok = command.run_plain(text)
  if not said then return end
  lu.assertEquals(said, expected)
  lu.assertTrue(ok)
end

TestRequire = {}

function TestRequire.test_again_gives_the_same_module()
  both([[
    local mr = require "millrace"
    local x, s = mr.ones(4, {name = "x"}), mr.stream{name = "s"}
    s:host_func(function() end)
    for _ = 1, 3 do
      package.loaded.millrace = nil
      assert(require "millrace" == mr)
      collectgarbage()
      collectgarbage()
    end
    print(x:sum():item(), x:name(), tostring(s), require "millrace".current_stream() == mr.current_stream())
    s:synchronize()]], "4.0\tx\tstream `s`\ttrue\n")
end

function TestRequire.test_again_gives_the_same_machine_although_nothing_of_it_was_left()
  both([[
    mr = require "millrace"
    mr.manual_seed(7)
    local first = mr.rand(3):totable()
    mr.manual_seed(7)
    mr, package.loaded.millrace = nil, nil
    collectgarbage()
    collectgarbage()
    local second = require "millrace".rand(3):totable()
    print(first[1] == second[1], first[3] == second[3])]], "true\ttrue\n")
end

function TestRequire.test_again_in_a_coroutine_and_after_preload_was_cleared()
  both([[
    local mr = coroutine.wrap(function() return require "millrace" end)()
    collectgarbage()
    print(mr.ones(2):sum():item())
    package.loaded.millrace = nil
    local other = coroutine.wrap(function() return require "millrace" end)()
    print(other == mr, #mr.hazard.reports())]], "2.0\ntrue\t0\n")
end

function TestRequire.test_again_through_the_shared_library()
  local said = command.run_plain([[
    local mr = require "millrace"
    local x = mr.ones(4)
    package.loaded.millrace, package.preload.millrace = nil, nil
    local path = package.searchpath("millrace", package.cpath)
    assert(package.loadlib(path, "luaopen_millrace")() == mr)
    assert(require "millrace" == mr)
    collectgarbage()
    collectgarbage()
    print(x:sum():item())]])
  if said then lu.assertEquals(said, "4.0\n") end
end

-- Live objects still reach things that the registry no longer names.
function TestRequire.test_a_registry_that_was_emptied()
  both([[
    local mr = require "millrace"
    local x, s = mr.ones(4), mr.stream()
    local sum = x.sum
    local registry = debug.getregistry()
    for key, value in pairs(registry) do
      local tag = type(key) == "userdata" and debug.getmetatable(value)
      if type(value) == "userdata" and tag then registry[key] = nil end
    end
    collectgarbage()
    collectgarbage()
    s:synchronize()
    print(sum(x).numel)]], "1\n")
end

TestEnd = {}

-- Finalizers of what was there before the module run when the machine is closed.
function TestEnd.test_nothing_makes_a_second_machine()
  local said, ok = command.run_plain([[
    keep = setmetatable({}, {__gc = function()
      package.loaded.millrace = nil
      local again = require "millrace"
      print(again == mr, pcall(again.zeros, 3))
      print("plain values", 1, nil, pcall(print, x))
    end})
    mr = require "millrace"
    x = mr.ones(4)]])
  if not said then return end
  lu.assertTrue(ok)
  lu.assertStrMatches(said, "true\tfalse\t[^\n]*the machine is closed: the script has ended\n"
    .. "plain values\t1\tnil\tfalse\t[^\n]+\n")
end

function TestEnd.test_help_and_messages_still_name_functions()
  local said, ok = command.run_plain([[
    keep = setmetatable({}, {__gc = function()
      print(pcall(mr.help, "zeross"))
      print(pcall(event.query, 3))
      print(#mr.docs() > 100)
    end})
    mr = require "millrace"
    event = mr.event()]])
  if not said then return end
  lu.assertTrue(ok)
  lu.assertStrMatches(said, "false\thelp: [^\n]*did you mean `zeros`[^\n]*\nfalse\t[^\n]+\ntrue\n")
end

os.exit(lu.LuaUnit.run())
