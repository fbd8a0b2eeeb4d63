-- timeout: 100
-- Output that cannot be written is an error of the program, whoever wrote it; after a reader that has gone it ends
-- quietly.
local lu = require "luaunit"
local command = require "host.support.command"

local FULL = "cannot write to standard output: No space left on device\n"

-- Runs the program in a shell line, where HOST stands for it; returns status, output and errors.
local function shell(line)
  local out, err = os.tmpname(), os.tmpname()
  local host = command.quote(command.host) .. " --device virtual"
  local script = line:gsub("HOST", (host:gsub("%%", "%%%%")))
  local _, _, status = os.execute(("timeout -k 5 30 sh -c %s >%s 2>%s"):format(command.quote(script), out, err))
  local result = { status = status, out = command.read(out), err = command.read(err) }
  os.remove(out)
  os.remove(err)
  return result
end

TestLostOutput = {}

function TestLostOutput.test_every_writer_to_a_full_device_fails()
  for _, arguments in ipairs{
    "-e 'print(1)'", "-e 'io.write(1)'", "-e 'mr.help()'", "-e 'mr.help(\"R1\")'", "-e 'print(mr.ones(3))'",
    "-e 'os.exit(0, io.write(1))'", "-e 'while true do pcall(print, 1) end'", "--sandbox -e 'print(1)'",
    "--help", "--version", "doctor",
  } do
    local result = shell("HOST " .. arguments .. " >/dev/full")
    lu.assertEquals(result.status, 1, arguments)
    lu.assertEquals(result.err:sub(-#FULL), FULL, arguments)
    lu.assertEquals(select(2, result.err:gsub("\n", "")), 1, result.err)
  end
end

function TestLostOutput.test_the_prompt()
  local result = shell("echo '1 + 1' | HOST -i >/dev/full")
  lu.assertStrContains(result.err, "cannot write to standard output")
  lu.assertEquals(result.status, 1)
end

function TestLostOutput.test_reports_of_the_checker()
  for _, form in ipairs{ "text", "json" } do
    lu.assertEquals(shell("HOST --check --report=" .. form .. " -e 'x = mr.ones(3)' 2>/dev/full").status, 1)
  end
end

function TestLostOutput.test_a_closed_stream()
  lu.assertEquals(shell("HOST -e 'print(1)' >&-").status, 1)
  lu.assertEquals(shell("HOST -e 'x = 1' >&-"), { status = 0, out = "", err = "" })
end

function TestLostOutput.test_a_failed_script_keeps_its_status()
  lu.assertEquals(shell("HOST -e 'io.write(1) os.exit(7)' >/dev/full").status, 7)
end

function TestLostOutput.test_a_reader_that_has_gone_ends_the_script_quietly()
  local line = "HOST -e 'while true do pcall(print, 1) end' | head -1"
  lu.assertEquals(shell(line), { status = 0, out = "1\n", err = "" })
  lu.assertEquals(shell("trap '' PIPE; " .. line), { status = 0, out = "1\n", err = "" })
  lu.assertEquals(shell("trap '' PIPE; (HOST -e 'while true do print(1) end'; echo $? >&2) | head -1"),
    { status = 0, out = "1\n", err = "1\n" })
end

TestBoundedOutput = {}

local function bounded(bytes, code, ...)
  return command.eval(code, "--device", "virtual", "--sandbox", "--output", tostring(bytes), ...)
end

function TestBoundedOutput.test_a_script_stops_where_the_bound_is()
  local message = "millrace: stopped at (command line):1: --sandbox allows a script to write 10 bytes " ..
    "(--output BYTES raises the limit)\n"
  lu.assertEquals(bounded(10, "for i = 1, 9 do pcall(print, i) end"),
    { status = 1, out = "1\n2\n3\n4\n5\n", err = message })
  lu.assertEquals(bounded(10, "for i = 1, 5 do print(i) end").status, 0)
  lu.assertEquals(bounded(0, "for i = 1, 1000 do print(i) end").status, 0)
  lu.assertEquals(bounded(10, "while true do pcall(mr.help) end"), { status = 1, out = "", err = message })
end

function TestBoundedOutput.test_reports_count()
  local result = bounded(3000, [[
    local a, b, x = mr.stream(), mr.stream(), mr.zeros(4)
    for i = 1, 1000 do
      load("local mr, a, b, x = ... mr.with(a, function() x:fill_(1) end)\nmr.with(b, function() x:add_(1) end)",
        "@" .. i)(mr, a, b, x)
    end]], "--check")
  lu.assertStrContains(result.err, "--sandbox allows a script to write 3000 bytes")
  lu.assertTrue(#result.err < 3400, #result.err)
  lu.assertEquals(result.status, 1)
end

function TestBoundedOutput.test_the_error_that_ends_the_script()
  for _, code in ipairs{
    "error(('x'):rep(1 << 23))", "error(setmetatable({}, { __tostring = function() return ('x'):rep(1 << 23) end }))",
    "mr['x' .. ('x'):rep(1 << 23)]()", "print(('x'):rep(900)) error(('x'):rep(1 << 23))",
  } do
    local result = bounded(1000, code)
    lu.assertEquals(result.status, 1)
    lu.assertStrContains(result.err:sub(1, 10), "millrace: ")
    lu.assertStrContains(result.err:sub(-80), "xxx... (the rest of this message is left out)\n")
    lu.assertTrue(#result.err < 4300, #result.err)
  end
  for _, bytes in ipairs{ 100000, 0 } do
    local said = bounded(bytes, "error(('x'):rep(50000))").err
    lu.assertStrContains(said:sub(1, 10), "millrace: ")
    lu.assertTrue(said:find(("x"):rep(50000) .. "\n", 1, true) ~= nil, #said)
  end
end

function TestBoundedOutput.test_there_is_a_bound_by_default()
  local result = shell("HOST --sandbox -e 'local s = (\"x\"):rep(1 << 20) while true do print(s) end' | wc -c")
  lu.assertEquals(tonumber(result.out), 63 * ((1 << 20) + 1))
  lu.assertStrContains(result.err, "--sandbox allows a script to write 67108864 bytes")
end

os.exit(lu.LuaUnit.run())
