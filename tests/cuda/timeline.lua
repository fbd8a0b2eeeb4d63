-- Traces of the CUDA backend, through the whole program, on the tests' own driver (tests/fake_cuda): with CUPTI's
-- records, and by events.
local luaunit = require "luaunit"
local fake = require "cuda.support.fake"

local SCRIPT = [[
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local x = mr.zeros(64)
  mr.synchronize()
  local tr = mr.timeline(function()
    a:run(function() x:fill_(1) end)
    local e = a:record_event()
    b:wait_event(e)
    b:run(function() x:add_(1) end)
    b:synchronize()
  end)
  local spans = {}
  for _, s in ipairs(tr.spans) do spans[s.name] = s end
  assert(spans.fill_.engine == "sm" and spans.add_.stream == "b")
  assert(spans.fill_.start <= spans.fill_.finish and spans.add_.start >= spans.add_.called - 0.001)
  assert(spans.wait_event.record == spans.record_event.index)
  assert(tr:why("fill_", "add_").cause == "event" or tr:why("fill_", "add_").overlapped)
  assert(#tr:critical_path() > 0)
  tr:print{width = 80, ascii = true}
  print("how: " .. tr.facts.how)]]

local function run(library)
  return fake.run{ "--device", "cuda", "-e", SCRIPT, variables = "MILLRACE_LIBCUPTI='" .. library .. "'", limit = 20 }
end

TestTimeline = {}

function TestTimeline.test_with_cupti()
  local output, status = run(fake.driver)
  luaunit.assertEquals(status, 0, output)
  luaunit.assertStrContains(output, "how: by CUPTI")
end

function TestTimeline.test_by_events()
  local output, status = run("/none")
  luaunit.assertEquals(status, 0, output)
  luaunit.assertStrContains(output, "how: by events")
end

os.exit(luaunit.LuaUnit.run())
