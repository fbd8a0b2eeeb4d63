-- Names live as long as their objects: memory does not grow with the number of different ones.
local lu = require "luaunit"
local command = require "host.support.command"

-- Runs `body`, with i counting, a tenth of the times to warm up, then `times`, and says by how many MB the
-- program has grown since. AddressSanitizer keeps what was freed: 256 MB by default, 1 MB here.
local function growth(times, body, ...)
  local arguments = { ... }
  arguments.environment = "export ASAN_OPTIONS=$ASAN_OPTIONS:quarantine_size_mb=1"
  arguments[#arguments + 1] = "-e"
  arguments[#arguments + 1] = ([[
    local mr, pad = require "millrace", ("n"):rep(180)
    local name = function(i) return pad .. i end
    local x, s = mr.zeros(4), mr.stream()
    mr.synchronize()
    local step = load("local mr, name, x, s, i = ...; " .. ARG1)
    local function resident()
      collectgarbage() collectgarbage()
      local pages = io.open("/proc/self/statm"):read("a"):match("%d+ (%d+)")
      return tonumber(pages) * 4096 / 1e6
    end
    local times = TIMES
    for i = 1, times // 10 do step(mr, name, x, s, i) end
    mr.synchronize()
    local before = resident()
    for i = times // 10 + 1, times // 10 + times do step(mr, name, x, s, i) end
    mr.synchronize()
    print(resident() - before)]]):gsub("ARG1", function() return ("%q"):format(body) end):gsub("TIMES", times)
  local result = command.run(arguments)
  lu.assertEquals(result.status, 0, result.err)
  return tonumber(result.out)
end

-- Kept for ever, a million of these would take 200 MB, and a hundred thousand 20 MB.
local function assert_flat(times, ...)
  local grown = growth(times, ...)
  lu.assertTrue(grown < times * 200 / 1e6 / 3, ("grew by %.1f MB"):format(grown))
end

TestNames = {}

function TestNames.test_of_one_tensor_a_million()
  assert_flat(1000000, "x:name(name(i))")
end

function TestNames.test_of_new_tensors()
  assert_flat(100000, "mr.empty(4, {name = name(i)}):name()")
  assert_flat(100000, "mr.empty(4, {name = name(i), device = 'cpu'})[1]:name()")
end

function TestNames.test_of_streams_and_events()
  assert_flat(100000, "mr.stream{name = name(i)}:close()")
  assert_flat(100000, "mr.event{name = name(i)}:record(s)")
end

function TestNames.test_of_operations()
  assert_flat(100000, "mr.op{name = name(i), writes = {x}, stream = s}")
end

function TestNames.test_that_are_refused()
  assert_flat(100000, "pcall(mr.stream, {name = name(i), priority = 'high'})")
  assert_flat(100000, "pcall(mr.zeros, -1, {name = name(i)})")
end

-- The checker keeps what it may still have to tell.
function TestNames.test_of_everything_under_the_checker()
  assert_flat(100000, [[
    local y <close> = mr.zeros(4, {name = name(i), stream = s})
    local e <close> = mr.event{name = name(-i)}
    mr.op{name = name(i), writes = {x}, reads = {y}, stream = s}
    e:record(s)
    s:wait_event(e)
    if i % 1000 == 0 then mr.hazard.ignore{tensor = name(i), where = name(i) .. ".lua:1"} end
    if i % 5000 == 0 then mr.hazard.ignore() end]], "--check=warn")
end

-- The number of files has a bound: what is remembered of a line may outlive everything else.
function TestNames.test_of_files()
  assert_flat(100000, "load('local mr, x = ... x:zero_()', '@' .. name(i))(mr, x)", "--check=warn")
end

function TestNames.test_beyond_the_bound_files_have_no_name()
  local result = command.eval([[
    local mr = require "millrace"
    local x = mr.zeros(4)
    for i = 1, 9000 do load("local x = ... x:zero_()", "@file" .. i .. ".lua")(x) end
    print(pcall(load("local mr = ... mr.zeros(-1)", "@file7.lua"), mr))
    print(pcall(load("local mr = ... mr.zeros(-1)", "@last.lua"), mr))]])
  lu.assertStrMatches(result.out, "false\tfile7.lua:1: [^\n]*\nfalse\t%[string%]:1: [^\n]*\n")
end

function TestNames.test_beyond_the_bound_the_main_chunks_have_theirs()
  local fill = 'for i = 1, 9000 do pcall(load("mr.zeros(-1)", "@file" .. i .. ".lua")) end\n'
  local wrong = "print(pcall(mr.zeros, -1))"
  for _, options in ipairs { {}, { "--sandbox" } } do
    local function said(...)
      local all = table.move({ ... }, 1, select("#", ...), #options + 1, { table.unpack(options) })
      all.input = wrong
      return command.run(all).out
    end
    lu.assertStrMatches(said("-e", fill .. wrong), "false\t%(command line%):2: [^\n]*\n")
    lu.assertStrMatches(said("-e", fill, "-"), "false\tstdin:1: [^\n]*\n")
    command.with_file(wrong, function(path)
      lu.assertStrContains(said("-e", fill, path), "false\t" .. path .. ":1: ")
    end)
  end
end

-- A report outlives all that it names.
function TestNames.test_a_report_keeps_its_names()
  local result = command.eval([[
    local mr = require "millrace"
    do
      local a, b = mr.stream{name = "left " .. 1}, mr.stream{name = "right " .. 2}
      local e = mr.event{name = "early " .. 3}
      local x = mr.zeros(4, {name = "shared " .. 4})
      mr.synchronize()
      e:record(a)
      mr.op{name = "fills " .. 5, writes = {x}, stream = a}
      b:wait_event(e)
      mr.op{name = "reads " .. 6, reads = {x}, stream = b}
      x:free{sync = true}
    end
    collectgarbage() collectgarbage()
    for i = 1, 1000 do mr.stream{name = "other " .. i}:close() end
    collectgarbage()
    local r = mr.hazard.reports()[1]
    print(r.tensor, r.first.stream, r.first.op, r.second.stream, r.second.op)
    print((r.why:find("early 3", 1, true)) ~= nil, (mr.hazard.why(r.first, r.second)):find("left 1", 1, true) ~= nil)]],
    "--check=collect")
  lu.assertStrContains(result.out, "shared 4\tleft 1\tfills 5\tright 2\treads 6\n")
  lu.assertStrMatches(result.out, ".*\ntrue\ttrue\n")
end

os.exit(lu.LuaUnit.run())
