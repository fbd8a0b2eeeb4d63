-- virtual only: runs the host itself
-- scripts/probe.lua: the virtual GPU answers as an H200 did, but where a reason is known.
-- timeout: 180
local lu = require "luaunit"
local command = require "host.support.command"

-- Rows whose answer is another one, and why.
local DIFFERENT = {
  R21b = "a model has one figure for the call of a copy",
  P4g = "depends on the host's memory",
}

local function probe(...)
  local result = command.run{ ... }
  lu.assertEquals(result.err, "")
  lu.assertEquals(result.status, 0)
  return result.out
end

-- The lines of --raw: {id=, verdict=, answer=, recorded=}.
local function ask(device)
  local rows = {}
  for line in probe("--device", device, "scripts/probe.lua", "--raw"):gmatch("[^\n]+") do
    local id, verdict, answer, recorded = line:match("^(.-)\t(.-)\t(.-)\t(.-)$")
    lu.assertNotNil(id, line)
    rows[#rows + 1] = { id = id, verdict = verdict, answer = answer, recorded = recorded }
  end
  return rows
end

TestProbe = {}

function TestProbe.test_the_virtual_gpu_answers_as_the_hardware_did()
  local answered, seen = 0, {}
  for _, row in ipairs(ask "virtual:2") do
    local text = ("%s: %s, recorded %s"):format(row.id, row.answer, row.recorded)
    lu.assertNil(row.answer:find("^error"), text)
    lu.assertNotEquals(row.answer, "needs two devices", text)
    lu.assertNil(seen[row.id], text)
    seen[row.id] = true
    if row.recorded == "-" then
      lu.assertEquals(row.verdict, "open", text)
    else
      lu.assertEquals(row.verdict, DIFFERENT[row.id] and "expected" or "same", text)
      answered = answered + 1
    end
  end
  lu.assertTrue(answered > 50, answered .. " questions")
end

function TestProbe.test_one_device_is_enough_for_the_others()
  local skipped = 0
  for _, row in ipairs(ask "virtual") do
    if row.answer == "needs two devices" then
      skipped = skipped + 1
      lu.assertEquals(row.verdict, "open")
    else
      lu.assertNil(row.answer:find("^error"), row.id .. ": " .. row.answer)
    end
  end
  lu.assertEquals(skipped, 6)
end

function TestProbe.test_the_table_marks_what_differs()
  local marked = {}
  local ids = {}
  for id in pairs(DIFFERENT) do ids[#ids + 1] = id end
  local text = probe("--device", "virtual", "scripts/probe.lua", "P1a", table.unpack(ids))
  for id in text:gmatch("\n%*%s+(%w+)") do marked[id] = true end
  for id, reason in pairs(DIFFERENT) do
    lu.assertTrue(marked[id], id)
    lu.assertStrContains(text, "  " .. id .. ": " .. reason)
    marked[id] = nil
  end
  lu.assertNil(next(marked))
  lu.assertStrContains(text, "P1a")
end

function TestProbe.test_there_is_no_such_question()
  local result = command.run{ "--device", "virtual", "scripts/probe.lua", "P1a", "P99" }
  lu.assertEquals({ result.status, result.out }, { 1, "" })
  lu.assertStrContains(result.err, "there is no question P99")
end

-- Settings under which it is no longer so: the question is really asked.
function TestProbe.test_the_answers_come_from_the_machine()
  local expected = { P4c = "yes", P4e = "no", P5d = "yes", P6a = "100", P12c = "another" }
  local code = [[mr.machine.settings{pageable_h2d_async = false, pageable_d2h_async = true, free_waits = true,
    launch_queue_depth = 100, reuse_event = false}]]
  local ids = {}
  for id in pairs(expected) do ids[#ids + 1] = id end
  local text = probe("--device", "virtual", "-e", code, "scripts/probe.lua", "--raw", table.unpack(ids))
  for line in text:gmatch("[^\n]+") do
    local id, verdict, answer = line:match("^(.-)\t(.-)\t(.-)\t")
    if expected[id] then
      lu.assertEquals(answer, expected[id], id)
      lu.assertEquals(verdict, "differs", id)
      expected[id] = nil
    end
  end
  lu.assertNil(next(expected))
end

os.exit(lu.LuaUnit.run())
