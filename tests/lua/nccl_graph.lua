-- Collectives in graphs: each launch makes the calls of its nodes again, so the instances meet at the launch.
-- options: --device virtual:3
-- virtual only: several devices
local lu = require "luaunit"
local mr = require "millrace"
local unchecked = require "lua.support.unchecked"

local function refused(code, pattern, fn, ...)
  local ok, err = pcall(fn, ...)
  lu.assertFalse(ok, pattern)
  if code then lu.assertEquals(type(err) == "table" and err.code, code) end
  lu.assertStrContains(tostring(err), pattern)
  return err
end

local function values(t) return t:cpu():totable() end

-- Captures fn(streams), where stream k is on device k - 1 and all are joined.
local function capture(count, fn)
  local streams = {}
  for k = 1, count do streams[k] = mr.stream{ device = k - 1, name = "s" .. k } end
  return mr.graph(function()
    for k = 2, count do streams[k]:wait_stream(streams[1]) end
    fn(streams)
    for k = 2, count do streams[1]:wait_stream(streams[k]) end
  end, { stream = streams[1] }), streams
end

local function synchronize(count)
  for k = 1, count do mr.synchronize(k - 1) end
end

TestOneProcess = {}

function TestOneProcess.test_each_launch_carries_them_out()
  local comms, x, parts, ones = mr.nccl.comms{ 0, 1, 2 }, {}, {}, {}
  for k = 1, 3 do
    x[k], parts[k] = mr.full(6, k, { device = k - 1 }), mr.zeros(2, { device = k - 1 })
    ones[k] = mr.ones(6, { device = k - 1 })
  end
  synchronize(3)
  local g, streams = capture(3, function(s)
    for k = 1, 3 do s[k]:run(function() x[k]:add_(1) end) end
    mr.nccl.group(function()
      for k = 1, 3 do
        comms[k]:all_reduce(x[k], { stream = s[k] })
        comms[k]:reduce_scatter(parts[k], ones[k], { stream = s[k] })
      end
    end)
    for k = 1, 3 do s[k]:run(function() x[k]:mul_(2) end) end
  end)
  local sum = { 1, 2, 3 }
  for _ = 1, 3 do
    g:launch(streams[1])
    local all = 2 * (sum[1] + sum[2] + sum[3] + 3)
    sum = { all, all, all }
  end
  streams[1]:synchronize()
  synchronize(3)
  for k = 1, 3 do
    lu.assertEquals(values(x[k])[1], sum[k] + 0.0)
    lu.assertEquals(values(parts[k]), { 3.0, 3.0 })
  end
  -- Beside a call that is in no graph.
  mr.nccl.group(function()
    for k = 1, 3 do comms[k]:all_reduce(x[k], { op = "max", stream = streams[k] }) end
  end)
  for k = 2, 3 do streams[1]:wait_stream(streams[k]) end
  g:launch(streams[1])
  synchronize(3)
end

function TestOneProcess.test_messages_roots_and_one_rank_alone()
  local comms, alone = mr.nccl.comms{ 0, 1 }, mr.nccl.comms{ 0 }
  local a, b = mr.full(4, 3.0, { device = 0 }), mr.zeros(4, { device = 1 })
  local c = mr.full(4, 5.0)
  synchronize(2)
  local g, streams = capture(2, function(s)
    mr.nccl.group(function()
      comms[1]:send(a, 1, { stream = s[1] })
      comms[2]:recv(b, 0, { stream = s[2] })
    end)
    s[2]:run(function() b:add_(1) end)
    mr.nccl.group(function()
      comms[1]:broadcast(a, { root = 1, stream = s[1] })
      comms[2]:broadcast(b, { root = 1, stream = s[2] })
    end)
    alone[1]:all_reduce(c, { stream = s[1] })
  end)
  for _ = 1, 2 do g:launch(streams[1]) end
  synchronize(2)
  lu.assertEquals({ values(a)[1], values(b)[4], values(c)[1] }, { 5.0, 5.0, 5.0 })
end

function TestOneProcess.test_mistakes_are_found_at_the_capture()
  local comms, x, y = mr.nccl.comms{ 0, 1 }, mr.ones(4, { device = 0 }), mr.ones(3, { device = 1 })
  synchronize(2)
  refused("deadlock", "rank 1 has no call in this group (R63)", capture, 2, function(s)
    comms[1]:all_reduce(x, { stream = s[1] })
  end)
  refused("collective-mismatch", "one of 3", capture, 2, function(s)
    mr.nccl.group(function()
      comms[1]:all_reduce(x, { stream = s[1] })
      comms[2]:all_reduce(y, { stream = s[2] })
    end)
  end)
  local free, z = mr.stream{ device = 1, name = "free" }, mr.ones(4, { device = 1 })
  synchronize(2)
  refused("stream-capture-unsupported", "`free` is not capturing, but another stream is", capture, 2, function(s)
    mr.nccl.group(function()
      comms[1]:all_reduce(x, { stream = s[1] })
      comms[2]:all_reduce(z, { stream = free })
    end)
  end)
end

function TestOneProcess.test_what_a_launch_refuses()
  local comms, x = mr.nccl.comms{ 0, 1 }, { mr.ones(4, { device = 0 }), mr.ones(4, { device = 1 }) }
  synchronize(2)
  local function reduce(s)
    mr.nccl.group(function()
      for k = 1, 2 do comms[k]:all_reduce(x[k], { stream = s[k] }) end
    end)
  end
  local g, streams = capture(2, reduce)
  refused("not-permitted", "launch it before or after the group", mr.nccl.group, function() g:launch(streams[1]) end)
  g:enable(2, false)
  refused("deadlock", "rank 1 has no call", g.launch, g, streams[1])
  g:enable(2, true)
  g:launch(streams[1])
  refused("graph-exec-update-failure", "another operation", g.update, g, function()
    streams[2]:wait_stream(streams[1])
    mr.nccl.group(function()
      for k = 1, 2 do comms[k]:all_reduce(x[k], { stream = streams[k], op = "max" }) end
    end)
    streams[1]:wait_stream(streams[2])
  end, { stream = streams[1] })
  comms[2]:close()
  refused("invalid-handle", "rank 1 of communicator", g.launch, g, streams[1])
  synchronize(2)
end

function TestOneProcess.test_a_graph_in_a_graph()
  local comms, x = mr.nccl.comms{ 0, 1 }, { mr.ones(4, { device = 0 }), mr.ones(4, { device = 1 }) }
  synchronize(2)
  local inner = capture(2, function(s)
    mr.nccl.group(function()
      for k = 1, 2 do comms[k]:all_reduce(x[k], { stream = s[k] }) end
    end)
  end)
  local s = mr.stream()
  local outer = mr.graph(function()
    inner:launch(s)
    inner:launch(s)
  end, { stream = s })
  outer:launch(s)
  s:synchronize()
  lu.assertEquals({ values(x[1])[1], values(x[2])[1] }, { 4.0, 4.0 })
end

-- R64a: half of the communicators have all multiprocessors of one device, the others those of the other device.
function TestOneProcess.test_members_that_wait_for_multiprocessors()
  local half, comms, streams, x = 40, {}, { {}, {} }, { {}, {} }
  for i = 1, 2 * half do
    comms[i] = mr.nccl.comms({ 0, 1 }, { name = "c" .. i })
    for k = 1, 2 do streams[k][i], x[k][i] = mr.stream{ device = k - 1 }, mr.ones(4, { device = k - 1 }) end
  end
  synchronize(2)
  local first = streams[1][1]
  local g = mr.graph(function()
    for i = 1, 2 * half do
      for k = 1, 2 do
        if streams[k][i] ~= first then streams[k][i]:wait_stream(first) end
      end
    end
    for i = 1, half do
      mr.spin{ ms = 50, stream = streams[2][i] }
      mr.spin{ ms = 50, stream = streams[1][half + i] }
    end
    for i = 1, 2 * half do
      mr.nccl.group(function()
        for k = 1, 2 do comms[i][k]:all_reduce(x[k][i], { stream = streams[k][i] }) end
      end)
    end
    for i = 1, 2 * half do
      for k = 1, 2 do
        if streams[k][i] ~= first then first:wait_stream(streams[k][i]) end
      end
    end
  end, { stream = first })
  g:launch(first)
  local err = refused("deadlock", "wait for each other's multiprocessors (R64a)", mr.synchronize, 0)
  lu.assertStrMatches(tostring(err), ".*communicator `c1`: rank 0 %(%S*nccl_graph.lua:%d+, launched at " ..
    "%S*nccl_graph.lua:%d+%) holds its multiprocessors and waits for rank 1 %(.*")
  mr.reset()
end

-- R61: the use behind the launch waits for its stream only, and the other device's for nothing.
function TestOneProcess.test_hazards_name_both_lines()
  local comms, x = mr.nccl.comms{ 0, 1 }, { mr.ones(4, { device = 0 }), mr.ones(4, { device = 1 }) }
  synchronize(2)
  local g, streams = capture(2, function(s)
    mr.nccl.group(function()
      for k = 1, 2 do comms[k]:all_reduce(x[k], { stream = s[k] }) end
    end)
  end)
  local reports = mr.hazard.check(function()
    g:launch(streams[1])
    mr.with(mr.stream{ name = "user" }, function() x[1]:add_(1) end)
  end)
  lu.assertEquals(#reports, 1)
  lu.assertStrContains(reports[1].message, "all_reduce")
  lu.assertStrContains(reports[1].message, "launched")
  synchronize(2)
  lu.assertEquals(#mr.hazard.check(function()
    g:launch(streams[1])
    mr.with(streams[1], function() x[1]:add_(1) end)
    streams[2]:wait_stream(streams[1])
    mr.with(streams[2], function() x[2]:add_(1) end)
  end), 0)
  synchronize(2)
end

-- A wait would not help there, so none is advised.
function TestOneProcess.test_graph_auto_names_the_other_device()
  local near, far = mr.zeros(4), mr.zeros(4, { device = 1 })
  local s = mr.stream{ device = 1 }
  synchronize(2)
  local told = "is on device 1, and the current stream on device 0: a graph of mr.graph.auto has one device"
  for _, waits in ipairs{ false, true } do
    local step = mr.graph.auto(function()
      near:add_(1)
      if waits then s:wait_stream(mr.current_stream(0)) end
      s:run(function() far:add_(1) end)
    end)
    for _ = 1, 3 do step() end
    lu.assertStrContains(mr.graph.why(step), told)
  end
  synchronize(2)
end

function TestOneProcess.test_a_function_of_graph_auto_goes_on_without()
  local comms, x = mr.nccl.comms{ 0 }, mr.ones(4)
  local s = mr.stream()
  mr.synchronize()
  local step = mr.graph.auto(function()
    x:add_(1)
    comms[1]:all_reduce(x)
    x:mul_(2)
  end)
  mr.with(s, function() for _ = 1, 4 do step() end end)
  s:synchronize()
  lu.assertEquals(values(x)[1], 46.0)
  lu.assertStrContains(tostring((mr.graph.why(step))), "all_reduce")
end

unchecked(TestOneProcess, "it races on purpose", "test_hazards_name_both_lines")

os.exit(lu.LuaUnit.run())
