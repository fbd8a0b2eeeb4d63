-- Collectives of one process: choosers, splits, times; what NCCL's rules
-- refuse (R62, R63, R65, R66); order (R61).
-- options: --device virtual:4
-- virtual only: four devices
-- not replayed: choosers are switched in the middle
local lu = require "luaunit"
local mr = require "millrace"
local collectives = require "lua.support.collectives"
local devices, column, inputs, reduced, assert_values, together, zeros =
  collectives.devices, collectives.column, collectives.inputs, collectives.reduced, collectives.assert_values,
  collectives.together, collectives.zeros

local CHOOSERS = { "timed", "random:3", "adversarial", "manual" }

TestValues = {}

function TestValues.test_a_ring_of_messages_under_every_chooser()
  for _, chooser in ipairs(CHOOSERS) do
    mr.machine.chooser(chooser)
    local comms = mr.nccl.comms(devices(4))
    local values, t = inputs(4, 9, "i32")
    local got = zeros(4, 9, "i32")
    together(comms, function(c, k)
      c:send(t[k], k % 4)
      c:recv(got[k], (k + 2) % 4)
    end)
    for k = 1, 4 do assert_values(got[k], values[(k + 2) % 4 + 1], chooser) end
    for _ = 1, 5 do together(comms, function(c, k) c:all_reduce(t[k]) end) end
    for k = 1, 4 do
      for i, v in ipairs(column(t[k])) do lu.assertEquals(v, 256 * reduced(values, "sum", "i32", 0, 9)[i]) end
    end
    mr.machine.chooser "timed"
  end
end

function TestValues.test_all_ranks_in_one_call()
  local t = { mr.ones(3, { device = 0 }), mr.full(3, 2.0, { device = 1 }) }
  mr.nccl.all_reduce(t)
  lu.assertEquals(column(t[1]), { 3.0, 3.0, 3.0 })
  lu.assertEquals(column(t[2]), { 3.0, 3.0, 3.0 })
  t[1]:fill_(5)
  mr.nccl.broadcast(t)
  lu.assertEquals(column(t[2]), { 5.0, 5.0, 5.0 })
  local out = { mr.zeros(6, { device = 0 }), mr.zeros(6, { device = 1 }) }
  t[2]:fill_(7)
  mr.nccl.all_gather(t, out)
  lu.assertEquals(column(out[1]), { 5.0, 5.0, 5.0, 7.0, 7.0, 7.0 })
  mr.nccl.reduce_scatter(out, t, { op = "max" })
  lu.assertEquals(column(t[2]), { 7.0, 7.0, 7.0 })
  mr.nccl.reduce(t, { root = 1 })
  lu.assertEquals(column(t[2]), { 12.0, 12.0, 12.0 })
  lu.assertEquals(column(t[1]), { 5.0, 5.0, 5.0 })
  mr.nccl.all_to_all(out, { mr.zeros(6, { device = 0 }), mr.zeros(6, { device = 1 }) })
end

function TestValues.test_split()
  local comms = mr.nccl.comms(devices(4))
  local parts = {}
  for k = 1, 4 do parts[k] = comms[k]:split(k == 4 and -1 or k % 2, -k) end
  for _ = 1, 2 do lu.assertStrContains(tostring(parts[4]), "no communicator (") end -- no error
  lu.assertEquals({ parts[1].size, parts[1].rank, parts[3].rank, parts[2].size }, { 2, 1, 0, 1 })
  lu.assertEquals(parts[1].id, parts[3].id)
  lu.assertErrorMsgContains("negative color", function() return parts[4].rank end)
  local _, t = inputs(4, 5, "i64")
  mr.nccl.group(function()
    parts[1]:all_reduce(t[1])
    parts[3]:all_reduce(t[3])
  end)
  parts[2]:all_reduce(t[2])
  lu.assertEquals(column(t[1]), column(t[3]))
  local first = comms[1]:split(0)
  lu.assertErrorMsgContains("once all ranks have called", function() return first.rank end)
  lu.assertEquals(tostring(first),
    "no communicator (split: the communicator is there once all ranks have called split)")
  lu.assertErrorMsgContains("has already called it", comms[1].split, comms[1], 0)
  for k = 2, 4 do comms[k]:split(1) end
  lu.assertStrContains(tostring(first), ", on device 0")
  lu.assertEquals(first.size, 1)
end

TestTimes = {}

-- R61: ends at the same time on all ranks, after the last rank was ready.
function TestTimes.test_members_end_together()
  local comms = mr.nccl.comms(devices(2))
  local t = { mr.ones(1 << 20, { device = 0 }), mr.ones(1 << 20, { device = 1 }) }
  mr.synchronize(0)
  mr.synchronize(1)
  local trace = mr.timeline(function()
    mr.spin{ ms = 10, stream = mr.current_stream(1) }
    together(comms, function(c, k) c:all_reduce(t[k]) end)
    mr.synchronize(0)
    mr.synchronize(1)
  end)
  local finish, spin = {}, nil
  for _, span in ipairs(trace.spans) do
    if span.name == "all_reduce" then finish[#finish + 1] = span.finish end
    if span.name == "spin" then spin = span.finish end
  end
  lu.assertEquals(#finish, 2)
  lu.assertEquals(finish[1], finish[2])
  lu.assertTrue(finish[1] > spin)
end

-- All operations of a communicator run one after the other, whatever streams they are on (R64a).
function TestTimes.test_a_communicator_is_serial()
  local comms = mr.nccl.comms(devices(2))
  local streams, t = {}, {}
  for k = 1, 2 do
    streams[k] = { mr.stream{ device = k - 1 }, mr.stream{ device = k - 1 } }
    t[k] = { mr.ones(1 << 20, { device = k - 1 }), mr.ones(1 << 20, { device = k - 1 }) }
    mr.synchronize(k - 1)
  end
  local trace = mr.timeline(function()
    for i = 1, 2 do together(comms, function(c, k) c:all_reduce(t[k][i], { stream = streams[k][i] }) end) end
    for k = 1, 2 do mr.synchronize(k - 1) end
  end)
  local spans = {}
  for _, span in ipairs(trace.spans) do
    if span.name == "all_reduce" then spans[#spans + 1] = span end
  end
  table.sort(spans, function(a, b) return a.start < b.start end)
  lu.assertEquals(#spans, 4)
  lu.assertTrue(spans[3].start >= spans[1].finish)
end

TestErrors = {}

local function refused(code, pattern, fn, ...)
  local ok, err = pcall(fn, ...)
  lu.assertFalse(ok)
  if code then lu.assertEquals(err.code, code) end
  lu.assertStrContains(tostring(err), pattern)
end

function TestErrors.test_what_does_not_match()
  local comms = mr.nccl.comms(devices(3), { name = "ring" })
  local t = zeros(3, 8, "f32")
  local function with(other)
    return function()
      mr.nccl.group(function()
        comms[1]:all_reduce(t[1])
        other()
        comms[3]:all_reduce(t[3])
      end)
    end
  end
  refused("collective-mismatch", "rank 1 one of 4", with(function() comms[2]:all_reduce(t[2]:narrow(1, 1, 4)) end))
  refused("collective-mismatch", "rank 1 one with op=\"max\"",
    with(function() comms[2]:all_reduce(t[2], { op = "max" }) end))
  refused("collective-mismatch", "rank 1 broadcast", with(function() comms[2]:broadcast(t[2]) end))
  refused("collective-mismatch", "rank 1 one of i32",
    with(function() comms[2]:all_reduce(mr.zeros(8, { dtype = "i32", device = 1 })) end))
  refused("deadlock", "rank 1 has no call", with(function() end))
  refused("deadlock", "ranks 1, 2 have no call", function() comms[1]:all_reduce(t[1]) end)
  refused("collective-mismatch", "root 0", function()
    mr.nccl.group(function() for k, c in ipairs(comms) do c:broadcast(t[k], { root = k // 3 }) end end)
  end)
  -- Nothing of a refused group was submitted.
  together(comms, function(c, k) c:all_reduce(t[k]) end)
  mr.synchronize(2)
end

function TestErrors.test_messages_without_a_peer()
  local comms = mr.nccl.comms(devices(2))
  local t = zeros(2, 4, "f32")
  refused("deadlock", "no matching recv", function() comms[1]:send(t[1], 1) end)
  refused("deadlock", "no matching send", function() comms[2]:recv(t[2], 0) end)
  refused("deadlock", "it sends to itself, and rank 0 has no matching recv", function() comms[1]:send(t[1], 0) end)
  refused("deadlock", "it receives from itself, and rank 1 has no matching send",
    function() comms[2]:recv(t[2], 1) end)
  refused("collective-mismatch", "send of 4 elements", function()
    mr.nccl.group(function()
      comms[1]:send(t[1], 1)
      comms[2]:recv(t[2]:narrow(1, 1, 2), 0)
    end)
  end)
end

function TestErrors.test_what_a_rank_may_not_pass()
  local comms = mr.nccl.comms(devices(2))
  local a, b = mr.zeros(4, 4, { device = 0 }), mr.zeros(8, { device = 1 })
  refused(nil, "is not on device 0", comms[1].all_reduce, comms[1], b)
  refused(nil, "contiguous", comms[1].all_reduce, comms[1], a:t())
  refused(nil, "expected 4 and 2", comms[2].all_gather, comms[2], b, b:narrow(1, 1, 2):clone())
  refused(nil, "overlaps", comms[2].all_gather, comms[2], b, b:narrow(1, 1, 4))
  refused(nil, "named twice", mr.nccl.comms, { 0, 0 })
  refused(nil, "argument `peer`: expected a rank from 0 to 1, as there are 2, got 5", comms[1].send, comms[1], a, 5)
  local root = "option `root`: expected a rank from 0 to 1, as there are 2, got "
  refused(nil, root .. "-1", comms[1].broadcast, comms[1], a, { root = -1 })
  refused(nil, root .. "2", mr.nccl.broadcast, { a, b }, { root = 2 })
  refused(nil, "bools have no mean", comms[1].all_reduce, comms[1], mr.zeros(2, { dtype = "bool" }), { op = "avg" })
  refused(nil, "on device 1", comms[1].all_reduce, comms[1], a, { stream = mr.stream{ device = 1 } })
  comms[1]:close()
  refused(nil, "is closed", comms[1].all_reduce, comms[1], a)
  comms[2]:abort()
  refused(nil, "was aborted", comms[2].all_reduce, comms[2], b)
end

function TestErrors.test_an_error_inside_a_group_submits_nothing()
  local comms = mr.nccl.comms(devices(2))
  local t = zeros(2, 4, "f32")
  lu.assertErrorMsgContains("stop", mr.nccl.group, function()
    comms[1]:all_reduce(t[1])
    error "stop"
  end)
  lu.assertEquals(mr.nccl.group(function(x) return x + 1 end, 1), 2)
  together(comms, function(c, k) c:all_reduce(t[k]) end)
end

os.exit(lu.LuaUnit.run())
