-- Events as scripts see them: records, waits, times, and the three errors of elapsed_time.
local lu = require "luaunit"
local mr = require "millrace"

TestEvent = {}

function TestEvent:test_properties()
  local e = mr.event{name = "ready", timing = true}
  lu.assertEquals(tostring(e), "event `ready` (never recorded)")
  lu.assertTrue(e.timing)
  lu.assertFalse(e.blocking)
  lu.assertTrue(mr.event{blocking = true}.blocking)
  lu.assertFalse(e.recorded)
  lu.assertNil(e.device)
  e:record()
  lu.assertTrue(e.recorded)
  lu.assertTrue(rawequal(e.device, mr.current_device()))
  lu.assertEquals(tostring(e), "event `ready`")
  lu.assertFalse(mr.event().timing)
end

function TestEvent:test_never_recorded_is_complete()
  local e, s = mr.event(), mr.stream()
  lu.assertTrue(e:query())
  e:synchronize()
  e:wait(s)
  s:synchronize()
end

function TestEvent:test_record_returns_the_event()
  local e, s = mr.event(), mr.stream()
  lu.assertTrue(rawequal(e:record(s), e))
  lu.assertTrue(rawequal(s:record_event(e), e))
  lu.assertStrContains(tostring(s:record_event()), "event #")
end

function TestEvent:test_elapsed_time_and_its_errors()
  local s = mr.stream()
  local untimed, never = mr.event{name = "untimed"}, mr.event{name = "never", timing = true}
  local a, b = mr.event{name = "a", timing = true}, mr.event{name = "b", timing = true}
  a:record(s)
  mr.spin{ms = 10, stream = s}
  b:record(s)
  untimed:record(s)
  a:synchronize()
  local texts = {}
  for _, case in ipairs{
    {"invalid-handle", "event `untimed` takes no time stamps", a, untimed},
    {"invalid-handle", "event `never` has never been recorded", a, never},
    {"not-ready", "event `b`", a, b},
  } do
    local ok, err = pcall(case[3].elapsed_time, case[3], case[4])
    lu.assertFalse(ok)
    lu.assertEquals(err.code, case[1])
    lu.assertStrContains(tostring(err), case[2])
    texts[#texts + 1] = err.message
  end
  lu.assertNotEquals(texts[1], texts[2])
  lu.assertNotEquals(texts[2], texts[3])
  s:synchronize()
  lu.assertAlmostEquals(a:elapsed_time(b), 10, 0.5)
  lu.assertAlmostEquals(b - a, 10, 0.5)
  lu.assertAlmostEquals(a - b, -10, 0.5)
end

function TestEvent:test_closing()
  local e, s, after = mr.event{name = "gone"}, mr.stream(), mr.stream()
  local began, ended = mr.event{timing = true}, mr.event{timing = true}
  began:record(s)
  mr.spin{ms = 5, stream = s}
  e:record(s)
  e:wait(after)
  e:close()
  e:close()
  ended:record(after)
  mr.synchronize()
  lu.assertTrue(ended - began >= 4.9) -- R19: the wait outlives its event
  for _, method in ipairs{"record", "wait", "synchronize", "query"} do
    local ok, err = pcall(e[method], e)
    lu.assertFalse(ok)
    lu.assertStrContains(tostring(err), "event `gone` is closed")
  end
end

function TestEvent:test_bad_arguments()
  local e = mr.event()
  lu.assertErrorMsgContains("did you mean `timing`", function() mr.event{timming = true} end)
  lu.assertErrorMsgContains("option `timing`: expected true or false, got a number",
    function() mr.event{timing = 1} end)
  lu.assertErrorMsgContains("expected a stream, got an event", function() e:record(e) end)
  lu.assertErrorMsgContains("expected an event, got nothing", function() e:elapsed_time() end)
  lu.assertErrorMsgContains("did you mean `record`", function() e:recrod() end)
end

os.exit(lu.LuaUnit.run())
