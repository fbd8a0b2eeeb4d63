-- What a report says beside its kind and reason: names of operations, sentences that must be true, cures in
-- words, and the line of keys. Which pairs have which reason is in tests/hazard/.
-- not checked: the checker is what is tested
local lu = require "luaunit"
local mr = require "millrace"
local T = require "millrace.testing"

local function only(fn)
  local reports = mr.hazard.check(fn)
  mr.synchronize()
  lu.assertEquals(#reports, 1, #reports > 0 and reports[1].message or "no report")
  return reports[1]
end

TestNames = {}

-- The operation is the one that the script wrote, not the copy or fill that it comes down to.
function TestNames.test_what_reads_on_the_host()
  local reads = {
    item = function(t) return t[1]:item() end,
    totable = function(t) return t:totable() end,
    cpu = function(t) return t:cpu() end,
    to = function(t) return t:to("f64") end,
    clone = function(t) return t:clone() end,
    cat = function(t) return mr.cat({ t }) end,
    format = function(t) return mr.format(t) end,
  }
  for name, read in pairs(reads) do
    local x, s = mr.zeros(4), mr.stream()
    mr.synchronize()
    local r = only(function()
      s:run(function() x:add_(1) end)
      read(x)
    end)
    lu.assertEquals({ r.first.op, r.second.op }, { "add_", name })
  end
end

function TestNames.test_what_makes_values()
  local makes = { ones = mr.ones, zeros = mr.zeros, randn = mr.randn, rand = mr.rand }
  for name, make in pairs(makes) do
    local s = mr.stream()
    local r = only(function()
      local x = make(4)
      s:run(function() return x:sum() end)
    end)
    lu.assertEquals({ r.first.op, r.second.op }, { name, "sum" })
  end
end

-- A gradient is no variable, but the tensor that it belongs to is. A part of a tensor is shown as a view.
function TestNames.test_a_gradient_and_a_view()
  local w, a, b = mr.ones(4, {requires_grad = true}), mr.stream(), mr.stream()
  mr.synchronize()
  local r = only(function()
    a:run(function() (w * w):sum():backward() end)
    b:run(function() return w.grad:sum() end)
  end)
  lu.assertEquals({ r.tensor, r.second.op }, { "w.grad", "sum" })
  lu.assertStrContains(r.message, "`w.grad` (f32[4], bytes 0..15)")
  r = only(function()
    a:run(function() w:detach():fill_(2) end)
    b:run(function() return w:narrow(1, 2, 2):sum() end)
  end)
  lu.assertEquals(r.tensor, "w")
  lu.assertStrContains(r.message, "`w` (view f32[2], bytes 4..11)")
end

function TestNames.test_an_assignment_by_index()
  local x, s = mr.zeros(4), mr.stream()
  mr.synchronize()
  local r = only(function()
    s:run(function() return x:sum() end)
    x[2] = 1
  end)
  lu.assertEquals(r.second.op, "t[i]=")
  lu.assertEquals(r.kind, "write-after-read")
end

-- The name ends with the call.
function TestNames.test_the_next_operation_has_its_own_name()
  local x, s = mr.ones(4), mr.stream()
  mr.synchronize()
  local r = only(function()
    local y = mr.ones(4)
    y:add_(x)
    s:run(function() x:zero_() end)
  end)
  lu.assertEquals({ r.first.op, r.second.op }, { "add_", "zero_" })
end

TestSentences = {}

function TestSentences.test_one_of_several_names_what_the_other_stream_did()
  local x = mr.zeros(64)
  local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
  mr.synchronize()
  local r = only(function()
    a:run(function() return x:sum() end)
    c:run(function() return x:mean() end)
    b:wait_stream(a)
    b:run(function() x:zero_() end)
  end)
  lu.assertEquals({ r.kind, r.reason }, { "write-after-read", "one-of-several" })
  lu.assertStrContains(r.why, " for a and its `sum`, but not for c and its `mean`")
  local y = mr.zeros(64)
  mr.synchronize()
  r = only(function()
    a:run(function() return y:narrow(1, 1, 32):sum() end)
    c:run(function() return y:mean() end)
    b:wait_stream(a)
    b:run(function() y:zero_() end)
  end)
  lu.assertEquals({ r.kind, r.reason }, { "write-after-read", "one-of-several" })
  -- also where zero_ replaces the access of a
  lu.assertStrContains(r.why, " for a and its `sum`, but not for c and its `mean`")
  r = only(function()
    a:run(function() x:zero_() end)
    c:run(function() x:fill_(1) end)
  end)
  lu.assertEquals(r.reason, "no-path")
end

function TestSentences.test_one_of_several_operands()
  local x, y = mr.zeros(64), mr.zeros(64)
  local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
  mr.synchronize()
  local r = only(function()
    a:run(function() x:fill_(1) end)
    c:run(function() y:zero_() end)
    b:wait_stream(a)
    b:run(function() return y + x end)
  end)
  lu.assertEquals({ r.kind, r.reason }, { "read-after-write", "one-of-several" })
  lu.assertStrContains(r.why, "for a and its `fill_`, but not for c and its `zero_`")
end

-- One wait may be enough for both streams: the first wait of the chain, where it is missing.
function TestSentences.test_one_of_several_does_not_say_that_each_needs_a_wait()
  local x = mr.zeros(64)
  local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
  mr.synchronize()
  local function chain(is_first)
    return mr.hazard.check(function()
      c:run(function() x:zero_() end)
      if is_first then a:wait_stream(c) end
      a:run(function() x:fill_(1) end)
      b:wait_stream(a)
      b:run(function() x:add_(1) end)
      mr.synchronize()
    end)
  end
  local reports = chain(false)
  lu.assertEquals({ #reports, reports[2].reason }, { 2, "one-of-several" })
  lu.assertStrMatches(reports[2].why, "b waits at .* for a and its `fill_`, but not for c and its `zero_`%.")
  lu.assertEquals(chain(true), {})
end

function TestSentences.test_a_wait_for_an_unrelated_stream_is_no_reason()
  local x, y = mr.zeros(64), mr.zeros(64)
  local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
  mr.synchronize()
  local r = only(function()
    a:run(function() x:zero_() end)
    c:run(function() y:zero_() end)
    b:wait_stream(c)
    b:run(function() return x:sum() end)
  end)
  lu.assertEquals(r.reason, "no-path")
end

function TestSentences.test_a_host_wait_is_the_hosts()
  local x, a, b = mr.zeros(4), mr.stream{name = "a"}, mr.stream{name = "b"}
  mr.synchronize()
  local r = only(function()
    local e = a:record_event()
    a:run(function() x:zero_() end)
    e:synchronize()
    b:run(function() return x:sum() end)
  end)
  lu.assertStrContains(r.why, "the host waits for event")
end

function TestSentences.test_a_wait_that_came_too_early_is_named()
  local x, a, b = mr.zeros(4), mr.stream{name = "a"}, mr.stream{name = "b"}
  mr.synchronize()
  local r = only(function()
    b:wait_stream(a)
    a:run(function() x:zero_() end)
    b:run(function() return x:sum() end)
  end)
  lu.assertStrMatches(r.why, "b waits for a at %S+:%d+, but this wait was submitted before `zero_`: .*")
end

function TestSentences.test_a_record_that_was_replaced_is_named()
  local x, a, b, c = mr.zeros(4), mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
  mr.synchronize()
  local r = only(function()
    local e = mr.event{name = "e"}
    a:run(function() x:zero_() end)
    e:record(a)
    e:record(c)
    b:wait_event(e)
    b:run(function() return x:sum() end)
  end)
  lu.assertStrContains(r.why, "the record that covers `zero_`, on a at ")
  lu.assertStrContains(r.why, "The event was recorded again on c")
  r = only(function()
    local e = c:record_event()
    a:run(function() x:zero_() end)
    b:wait_event(e) e:record(a)
    b:run(function() return x:sum() end)
  end)
  lu.assertStrContains(r.why, "and a recorded it again at ")
  lu.assertStrContains(r.why, "That record was made on c")
end

function TestSentences.test_all_tensors_of_a_launch_are_named()
  local t, a, b = {}, mr.stream{name = "a"}, mr.stream{name = "b"}
  for i = 1, 10 do t[i] = mr.zeros(4, {name = "t" .. i}) end
  mr.synchronize()
  local function race()
    mr.op{name = "w", writes = t, stream = a}
    mr.op{name = "r", reads = t, stream = b}
  end
  local r = only(race)
  lu.assertEquals(r.tensor, "t1")
  lu.assertEquals(r.tensors, { "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10" })
  lu.assertStrContains(r.message, "\n  and 9 more: t2, t3, t4, t5, t6, t7, t8, t9, t10\n")
  lu.assertEquals(r.count, 10)
  mr.hazard.mode("error")
  local err = T.raises("hazard", race)
  mr.hazard.mode("off")
  mr.hazard.clear()
  lu.assertStrContains(tostring(err), "and 9 more: t2, ")
end

-- The second command waits for the default stream's read and not for that of `a`. Its own read takes the place of the
-- first, before its write is looked at; in error mode, nothing takes any place.
function TestSentences.test_the_reason_is_that_of_error_mode()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b", nonblocking = false}
  local x = mr.zeros(4, {name = "x"})
  mr.synchronize()
  local function race()
    mr.op{name = "r", reads = {x}, stream = a}
    mr.op{name = "d", reads = {x}, stream = mr.default_stream()}
    mr.op{name = "w", reads = {x}, writes = {x[1]}, stream = b}
  end
  lu.assertEquals(only(race).reason, "one-of-several")
  mr.hazard.mode("error")
  local err = T.raises("hazard", race)
  mr.hazard.mode("off")
  mr.hazard.clear()
  lu.assertStrContains(tostring(err), "reason=one-of-several")
end

TestCures = {}

function TestCures.test_in_words_where_no_line_can_stand()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local function make()
    local t = a:run(function() return mr.ones(100) end)
    b:wait_stream(a)
    return b:run(function() return t:sum() end)
  end
  local r = only(function()
    local _ = make()
    collectgarbage() collectgarbage()
    mr.zeros(1)
  end)
  lu.assertEquals(r.fixes, {})
  lu.assertStrContains(r.fix, "call record_stream on the tensor that was made at")
  lu.assertStrContains(r.message, "fix: call record_stream")
end

function TestCures.test_of_one_line_it_stands_within()
  local s, x = mr.stream{name = "s"}, mr.zeros(4)
  mr.synchronize()
  local r = only(function() local _ = s:run(function() return x:sum() end):item() end)
  lu.assertEquals(r.fixes[1].place, "within")
  lu.assertStrContains(r.message, "fix: split line " .. r.fixes[1].line)
end

-- Such a line has no two parts: it runs again.
function TestCures.test_of_a_loop_on_one_line()
  local s = { mr.stream{name = "a"}, mr.stream{name = "b"} }
  local x = mr.zeros(4)
  mr.synchronize()
  local r = only(function()
    for i = 1, 2 do s[i]:run(function() x:add_(1) end) end
  end)
  lu.assertEquals({ r.fixes[1].place, r.fixes[1].text }, { "within", "s[2]:wait_stream(s[1])" })
  lu.assertStrContains(r.message, ("fix: in the loop of line %d, before `add_`, add   s[2]:wait_stream(s[1])")
    :format(r.fixes[1].line))
end

-- Each line says where the operation of its own pair is.
function TestCures.test_of_two_operations_in_a_loop_on_one_line()
  local s, t = mr.stream{name = "s"}, mr.stream{name = "t"}
  local x, y = mr.ones(64), mr.ones(64)
  mr.synchronize()
  local r = only(function()
    for _ = 1, 3 do s:run(function() x:mul_(2) end) t:run(function() x:add_(1) end) end
  end)
  lu.assertStrContains(r.message, ", before `add_`, add   t:wait_stream(s)\n")
  lu.assertStrContains(r.message, ", before `mul_`, add   s:wait_stream(t)\n")
  r = only(function()
    for _ = 1, 3 do s:run(function() x:copy_(y) end) t:run(function() y:copy_(x) end) end
  end)
  lu.assertStrContains(r.message, ", before the `copy_` on t, add   t:wait_stream(s)\n")
  lu.assertStrContains(r.message, ", before the `copy_` on s, add   s:wait_stream(t)\n")
end

-- A use and the free in one line: what is added behind the line comes after the free. A <close> variable is freed in
-- the line of its block's last statement, and what is added behind that is in the block.
function TestCures.test_of_a_free_in_the_line_of_the_use()
  local a, b, x = mr.stream{ name = "a" }, mr.stream{ name = "b" }, mr.zeros(4)
  mr.synchronize()
  local function fix_of(fn)
    local r = mr.hazard.check(fn)[1]
    mr.synchronize()
    return { r.fixes[1].place, r.fixes[1].text }
  end
  lu.assertEquals(fix_of(function()
    local t = a:run(function() return x + 1 end)
    b:wait_stream(a)
    b:run(function() x:copy_(t) end) t:free()
  end), { "within", "t:record_stream(b)" })
  lu.assertEquals(fix_of(function()
    local t = a:run(function() return x + 1 end)
    b:wait_stream(a)
    if t then b:run(function() x:copy_(t) end) t:free() t = nil end
  end)[1], "within")
  lu.assertEquals(fix_of(function()
    do local t <close> = a:run(function() return x + 1 end) b:wait_stream(a) b:run(function() x:copy_(t) end) end
  end), { "within", "a:wait_stream(b)" })
  lu.assertEquals(fix_of(function()
    local t <close> = a:run(function() return x + 1 end)
    b:wait_stream(a)
    b:run(function() x:copy_(t) end)
  end), { "after", "t:record_stream(b)" })
end

-- A coroutine of one line, which the line of the first operation goes on with: behind that line it is too late.
function TestCures.test_of_a_coroutine_that_the_line_goes_on_with()
  local a, b, x = mr.stream{ name = "a" }, mr.stream{ name = "b" }, mr.zeros(4)
  mr.synchronize()
  local r = only(function()
    local co = coroutine.wrap(function() coroutine.yield() a:run(function() x:mul_(3) end) end)
    co()
    b:run(function() x:add_(5) end) co()
  end)
  lu.assertEquals(r.fixes, {})
  lu.assertStrContains(r.fix, "make a wait for b, after the operation at")
end

-- A local of the first part of such a line is in scope between the parts: nothing else is said of it.
function TestCures.test_of_one_line_that_declares_the_stream()
  local r = only(function()
    local a, b = mr.stream{name = "a"}, mr.zeros(3) mr.synchronize() b:add_(1) a:run(function() b:mul_(2) end)
    mr.synchronize()
  end)
  lu.assertEquals(r.fixes[1].place, "within")
  lu.assertEquals(r.fixes[1].text, "mr.synchronize() -- or a wait for a, if a variable of the line holds it")
end

-- ---- a wait that stands the other way round

TestOtherWay = {}

local function pair_of(fn)
  local a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(4, {name = "x"})
  mr.synchronize()
  return only(function() fn(a, b, x) end)
end

local function write(s, x) s:run(function() x:fill_(1) end) end
local function read(s, x) s:run(function() return x:sum() end) end

function TestOtherWay.test_between_the_two()
  local r = pair_of(function(a, b, x) write(a, x) a:wait_stream(b) read(b, x) end)
  lu.assertEquals({ r.kind, r.reason }, { "read-after-write", "no-path" })
  lu.assertStrMatches(r.why, "nothing makes b wait for a: the wait at .- makes a wait for b, which is the other " ..
    "way round%.")
  r = pair_of(function(a, b, x) write(a, x) read(b, x) end)
  lu.assertEquals(r.why, "nothing makes b wait for a.")
end

-- The fix keeps the order of submission, and so the old value. The report says what to do if that is not meant.
function TestOtherWay.test_the_reader_waits_when_it_has_read()
  local r = pair_of(function(a, b, x) read(a, x) write(b, x) a:wait_stream(b) end)
  lu.assertEquals({ r.kind, r.amended }, { "write-after-read", true })
  lu.assertStrMatches(r.why, "a waits for b at .-, after `sum` was submitted: .* keeps the order of submission; " ..
    "if `sum` is to read what `fill_` writes, submit it after that wait instead%.")
  -- A wait for something else, and one that each round makes.
  r = pair_of(function(a, b, x)
    local c <close> = mr.stream()
    read(a, x) write(b, x) a:wait_stream(c)
  end)
  lu.assertEquals({ r.why, r.amended }, { "nothing makes b wait for a.", false })
  r = pair_of(function(a, b, x)
    for _ = 1, 2 do read(a, x) b:run(function() x:fill_(1) end) a:wait_stream(b) b:synchronize() end
  end)
  lu.assertTrue(r.amended)
end

function TestOtherWay.test_the_reader_waits_before_the_record()
  local r = pair_of(function(a, b, x)
    local e = mr.event{name = "e"}
    a:wait_event(e) read(a, x) write(b, x) e:record(b)
  end)
  lu.assertEquals({ r.kind, r.reason }, { "write-after-read", "never-recorded" })
  lu.assertStrMatches(r.why, "a waits for event `e` at .-, before `sum`, .* if `sum` is to come after `fill_`, " ..
    "submit that and its record before the wait%.")
  -- The event is another stream's.
  r = pair_of(function(a, b, x)
    local e = mr.event{name = "e"}
    a:wait_event(e) e:record(a) read(a, x) write(b, x)
  end)
  lu.assertEquals({ r.kind, r.reason }, { "write-after-read", "no-path" })
end

function TestCures.test_a_close_in_error_mode_raises_at_the_end_of_the_block()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  mr.synchronize()
  mr.hazard.mode("error")
  local err = T.raises("hazard", function()
    local t <close> = a:run(function() return mr.ones(100) end)
    b:wait_stream(a)
    b:run(function() return t:sum() end)
  end)
  mr.hazard.mode("off")
  mr.hazard.clear()
  lu.assertStrContains(tostring(err), "reason=freed-without-record-stream")
end

TestKeys = {}

function TestKeys.test_values_with_blanks_are_quoted()
  local s = mr.stream()
  local r = only(function()
    local x = mr.zeros(4)
    s:run(function() return (x + 1):sum() end)
  end)
  lu.assertNotStrContains(r.message, 'tensor="')
  r = only(function() s:run(function() return mr.zeros(4, {stream = mr.default_stream()}):sum() end) end)
  lu.assertStrMatches(r.message, '.*tensor="tensor #%d+ f32%[4%] made at line %d+" first=%S+ second=%S+\n')
end

os.exit(lu.LuaUnit.run())
