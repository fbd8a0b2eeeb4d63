-- mr.hazard.why and copies. (Against the graph of random programs: tests/c/test_hazard_why.c.)
-- options: --device virtual:2
-- not checked: the checker is what is tested
local lu = require "luaunit"
local mr = require "millrace"
local support = require "lua.support.hazard"

local function fresh()
  support.fresh()
  mr.hazard.mode("collect")
end

local function line(back) return ":" .. debug.getinfo(2, "l").currentline - back end
local function ordered(first, second) return select(2, mr.hazard.why(first, second)) end

TestWhy = { setUp = fresh }

function TestWhy.test_memcpy_within_the_device_returns_at_once()
  local s, x, y = mr.stream(), mr.zeros(64), mr.zeros(64)
  mr.synchronize()
  mr.memcpy(x, y)
  mr.op{name = "w", writes = {x}, stream = s}
  lu.assertFalse(ordered(line(2), line(1)))
  lu.assertEquals(#mr.hazard.reports(), 1)
end

function TestWhy.test_memcpy_from_pageable_memory_returns_when_staged()
  local s, x, h, q = mr.stream(), mr.zeros(64), mr.zeros(64, {device = "cpu"}), mr.zeros(64)
  mr.synchronize()
  mr.op{name = "before", writes = {q}, stream = mr.default_stream()}
  mr.memcpy(x, h)
  mr.op{name = "after", writes = {q, x}, stream = s}
  lu.assertFalse(ordered(line(2), line(1)))
  lu.assertTrue(ordered(line(4), line(2))) -- the host waited for that before staging
  lu.assertEquals(#mr.hazard.reports(), 1)
end

function TestWhy.test_memcpy_to_the_host_waits()
  local s, x, h = mr.stream(), mr.zeros(64), mr.zeros(64, {device = "cpu"})
  mr.synchronize()
  mr.memcpy(h, x)
  mr.op{name = "w", writes = {x}, stream = s}
  lu.assertTrue(ordered(line(2), line(1)))
end

function TestWhy.test_a_synchronous_copy_between_devices_is_a_barrier_for_both()
  local s, t = mr.stream{device = 0}, mr.stream{device = 1}
  local x, y = mr.zeros(16, {device = 0}), mr.zeros(16, {device = 1})
  fresh()
  mr.op{name = "first", stream = s}
  mr.memcpy(x, y)
  mr.op{name = "second", stream = t}
  local text, is_ordered = mr.hazard.why(line(3), line(1))
  lu.assertTrue(is_ordered)
  lu.assertStrContains(text, "copy between devices")
end

function TestWhy.test_an_operation_is_not_before_itself()
  mr.op{name = "w"}
  local text, is_ordered = mr.hazard.why(line(1), line(1))
  lu.assertFalse(is_ordered)
  lu.assertStrContains(text, "the same operation")
end

function TestWhy.test_an_access_in_a_host_function_is_at_that_function_s_place()
  local s, t = mr.stream(), mr.stream()
  local p = mr.zeros(4, {device = "cpu", pinned = true})
  mr.op{name = "w", writes = {p}, stream = t}
  t:synchronize()
  s:host_func(function() local _ = p[1]:item() end)
  mr.op{name = "w", writes = {p}, stream = t}
  s:synchronize()
  lu.assertTrue(ordered(line(5), line(3)))
  lu.assertFalse(ordered(line(4), line(3)))
  lu.assertEquals(#mr.hazard.reports(), 1)
end

-- R33: the free itself comes after nothing of `b`, but its memory is kept.
function TestWhy.test_record_stream_keeps_the_memory_of_a_free()
  for _, how in ipairs{{}, {sync = true}} do
    local a, b = mr.stream(), mr.stream{name = "b"}
    local x = mr.zeros(64, {stream = a})
    mr.synchronize()
    mr.op{name = "use", reads = {x}, stream = b}
    x:record_stream(b)
    x:free(how)
    local text, is_ordered = mr.hazard.why(line(3), line(1))
    lu.assertTrue(is_ordered)
    lu.assertStrContains(text, "is ordered before the reuse of the memory of `free`")
    lu.assertStrContains(text, "before, by record_stream of its stream (R33):")
    lu.assertEquals(#mr.hazard.reports(), 0)
  end
end

function TestWhy.test_record_stream_does_not_cover_other_streams()
  local a, b, c = mr.stream(), mr.stream(), mr.stream()
  local x = mr.zeros(64, {stream = a})
  mr.synchronize()
  mr.op{name = "use", reads = {x}, stream = c}
  x:record_stream(b)
  x:free()
  lu.assertFalse(ordered(line(3), line(1)))
  lu.assertEquals(#mr.hazard.reports(), 1)
end

-- R9: it is freed in the default stream, which does not wait for the closed one.
function TestWhy.test_memory_of_a_closed_stream_is_kept()
  local s = mr.stream()
  local x = mr.zeros(64, {stream = s})
  mr.synchronize()
  mr.op{name = "use", writes = {x}, stream = s}
  s:close()
  x:free()
  local text, is_ordered = mr.hazard.why(line(3), line(1))
  lu.assertTrue(is_ordered)
  lu.assertStrContains(text, "before, by memory of a stream that was closed (R9):")
  lu.assertEquals(#mr.hazard.reports(), 0)
end

-- R28: a free is work of its stream.
function TestWhy.test_what_its_stream_does_later_comes_after_a_free()
  local a, b = mr.stream(), mr.stream()
  local x = mr.zeros(64, {stream = a})
  mr.synchronize()
  x:free()
  mr.op{name = "later", stream = a}
  mr.op{name = "apart", stream = b}
  lu.assertTrue(ordered(line(3), line(2)))
  lu.assertFalse(ordered(line(4), line(2)))
end

os.exit(lu.LuaUnit.run())
