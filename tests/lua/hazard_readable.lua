-- Streams that may read a tensor now: the answer agrees with the checker's verdict on the read itself.
-- not checked: the checker is what is tested
local lu = require "luaunit"
local mr = require "millrace"

TestReadable = {}

function TestReadable:setUp() mr.hazard.mode("collect") end

function TestReadable:tearDown()
  mr.synchronize()
  mr.hazard.mode("off")
  mr.hazard.clear()
end

local function line() return debug.getinfo(2, "l").currentline end

function TestReadable:test_the_writer_is_named()
  local p, c = mr.stream{name = "p"}, mr.stream{name = "c"}
  local x = mr.zeros(8)
  mr.synchronize()
  p:run(function() x:fill_(1) end)
  local at = line() - 1
  lu.assertTrue(mr.hazard.readable(x, p))
  local readable, writer, where = mr.hazard.readable(x, c)
  lu.assertFalse(readable)
  lu.assertEquals(writer, "fill_")
  lu.assertStrContains(where, "hazard_readable.lua:" .. at)
  lu.assertFalse(mr.hazard.readable(x))
  c:wait_stream(p)
  lu.assertTrue(mr.hazard.readable(x, c))
  lu.assertTrue(mr.hazard.readable(x:narrow(1, 1, 4), c))
  lu.assertFalse(mr.hazard.readable(x))
  p:synchronize()
  lu.assertTrue(mr.hazard.readable(x))
  lu.assertEquals(#mr.hazard.reports(), 0) -- asking is no access
  mr.hazard.mode("off")
  lu.assertNil(mr.hazard.readable(x, c))
end

-- A program of a seed: writes to halves of tensors on four streams, events, waits. Accesses that
-- would race are refused.
local function program(seed)
  math.randomseed(seed)
  local streams = { mr.default_stream(), mr.stream{nonblocking = false}, mr.stream(), mr.stream() }
  local tensors, events = {}, {}
  for i = 1, 3 do
    tensors[i] = mr.zeros(8)
    events[i] = mr.event()
  end
  mr.synchronize()
  for _ = 1, 14 do
    local s, t, e = streams[math.random(4)], tensors[math.random(3)], events[math.random(3)]
    local what = math.random(9)
    if what <= 3 then
      local part = math.random(3) == 1 and t or t:narrow(1, math.random(2) == 1 and 1 or 5, 4)
      pcall(mr.with, s, function() part:fill_(1) end)
    elseif what == 4 then s:record_event(e)
    elseif what <= 6 then s:wait_event(e)
    elseif what == 7 then s:wait_stream(streams[math.random(4)])
    elseif what == 8 then s:synchronize()
    else e:synchronize() end
  end
  local views = { table.unpack(tensors) }
  for i = 1, 3 do views[3 + i] = tensors[i]:narrow(1, 5, 4) end
  return streams, views
end

-- Whether the checker refuses the read that comes behind the program.
local function read_is_refused(seed, view, stream)
  local streams, views = program(seed)
  local passed = pcall(mr.op, { name = "the read", reads = { views[view] }, ms = 0.001, stream = streams[stream] })
  mr.synchronize() -- before anything is collected
  return not passed
end

function TestReadable:test_it_is_what_the_read_itself_would_be_told()
  local answers = { [true] = 0, [false] = 0 }
  mr.hazard.mode("error")
  for seed = 1, 6 do
    local said, streams, views = {}, program(seed)
    for view = 1, 6 do
      for stream = 1, 4 do said[#said + 1] = { view, stream, (mr.hazard.readable(views[view], streams[stream])) } end
    end
    mr.synchronize()
    for _, one in ipairs(said) do
      local view, stream, readable = table.unpack(one)
      lu.assertEquals({ seed, view, stream, readable }, { seed, view, stream, not read_is_refused(seed, view, stream) })
      answers[readable] = answers[readable] + 1
    end
  end
  lu.assertTrue(answers[true] > 20 and answers[false] > 20)
end

os.exit(lu.LuaUnit.run())
