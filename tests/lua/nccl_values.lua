-- Values of collectives beside a naive reference: each operation, dtype and reduction, in place and apart, on as many
-- devices as there are, up to 8.
-- options: --device virtual:8
local lu = require "luaunit"
local mr = require "millrace"
local collectives = require "lua.support.collectives"
local devices, column, inputs, reduced, assert_values, together, zeros =
  collectives.devices, collectives.column, collectives.inputs, collectives.reduced, collectives.assert_values,
  collectives.together, collectives.zeros

local DTYPES = { "f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool" }
local OPS = { "sum", "prod", "min", "max", "avg" }
local SIZES = { 0, 1, 7, 1000 }
local MOST = math.min(8, mr.device_count())
local COUNTS = os.getenv "MILLRACE_LONG" and { 1, 2, 3, 4, 5, 6, 7, 8 } or { 1, 2, 3, 8 }

-- fn(n, dtype, size, label) for each.
local function for_all(fn)
  for _, n in ipairs(COUNTS) do
    if n > MOST then break end
    for _, dtype in ipairs(DTYPES) do
      for _, size in ipairs(SIZES) do fn(n, dtype, size, ("%d ranks, %s, %d"):format(n, dtype, size)) end
    end
  end
end

TestValues = {}

function TestValues.test_all_reduce_and_reduce()
  for_all(function(n, dtype, size, label)
    local comms = mr.nccl.comms(devices(n))
    for _, op in ipairs(OPS) do
      if not (op == "avg" and dtype == "bool") then
        local values, t = inputs(n, size, dtype)
        local out = zeros(n, size, dtype)
        local expected = reduced(values, op, dtype, 0, size)
        together(comms, function(c, k) c:all_reduce(t[k], { op = op, out = out[k] }) end)
        for k = 1, n do assert_values(out[k], expected, label .. op) end
        for k = 1, n do assert_values(t[k], values[k], label .. op .. " input") end
        together(comms, function(c, k) c:reduce(t[k], { op = op, root = n - 1 }) end)
        for k = 1, n do assert_values(t[k], k == n and expected or values[k], label .. op .. " reduce") end
        if size > 0 then
          values, t = inputs(n, size, dtype)
          together(comms, function(c, k) c:all_reduce(t[k], { op = op }) end)
          for k = 1, n do assert_values(t[k], reduced(values, op, dtype, 0, size), label .. op .. " in place") end
        end
      end
    end
  end)
end

function TestValues.test_broadcast_gather_scatter_all_to_all()
  for_all(function(n, dtype, size, label)
    local comms = mr.nccl.comms(devices(n))
    local values, t = inputs(n, size, dtype)
    local whole = {}
    for k = 1, n do table.move(values[k], 1, size, #whole + 1, whole) end

    local out = zeros(n, n * size, dtype)
    together(comms, function(c, k) c:all_gather(out[k], t[k]) end)
    for k = 1, n do assert_values(out[k], whole, label .. " all_gather") end

    if size > 0 then -- in place: the rank's own part (R65)
      local parts = zeros(n, n * size, dtype)
      for k = 1, n do parts[k]:narrow(1, (k - 1) * size + 1, size):copy_(t[k]) end
      together(comms, function(c, k) c:all_gather(parts[k], parts[k]:narrow(1, (k - 1) * size + 1, size)) end)
      for k = 1, n do assert_values(parts[k], whole, label .. " all_gather in place") end
    end

    local many, from = inputs(n, n * size, dtype)
    local parts = zeros(n, size, dtype)
    together(comms, function(c, k) c:reduce_scatter(parts[k], from[k], { op = "max" }) end)
    for k = 1, n do
      assert_values(parts[k], reduced(many, "max", dtype, (k - 1) * size, size), label .. " reduce_scatter")
    end

    together(comms, function(c, k) c:all_to_all(out[k], from[k]) end)
    for k = 1, n do
      local expected = {}
      for j = 1, n do table.move(many[j], (k - 1) * size + 1, k * size, #expected + 1, expected) end
      assert_values(out[k], expected, label .. " all_to_all")
    end

    together(comms, function(c, k) c:broadcast(t[k], { root = n - 1 }) end)
    for k = 1, n do assert_values(t[k], values[n], label .. " broadcast") end
  end)
end

-- A million elements, with the sums of another way to compute them: each collective once.
function TestValues.test_large_ones()
  local n, size = MOST, 1 << (os.getenv "MILLRACE_LONG" and 20 or 18)
  local comms = mr.nccl.comms(devices(n))
  local base = mr.arange(size, { device = "cpu", dtype = "i32" }) % 1000
  local function own(k) return (base + 7 * k):to(k - 1) end
  local t = {}
  for k = 1, n do t[k] = own(k) end
  local function assert_same(got, expected, what) lu.assertTrue(got:cpu():eq(expected):all():item(), what) end

  local out = zeros(n, size, "i32")
  together(comms, function(c, k) c:all_reduce(t[k], { op = "sum", out = out[k] }) end)
  local sum = base * n + 7 * n * (n + 1) // 2
  for k = 1, n do assert_same(out[k], sum, "all_reduce") end

  local whole = zeros(n, n * size, "i32")
  together(comms, function(c, k) c:all_gather(whole[k], t[k]) end)
  for k = 1, n do
    for j = 1, n do assert_same(whole[k]:narrow(1, (j - 1) * size + 1, size), base + 7 * j, "all_gather") end
  end
  together(comms, function(c, k) c:reduce_scatter(out[k], whole[k], { op = "max" }) end)
  for k = 1, n do assert_same(out[k], base + 7 * k, "reduce_scatter") end

  local mixed = zeros(n, n * size, "i32")
  for k = 1, n do whole[k]:add_(k) end
  together(comms, function(c, k) c:all_to_all(mixed[k], whole[k]) end)
  for k = 1, n do
    for j = 1, n do assert_same(mixed[k]:narrow(1, (j - 1) * size + 1, size), base + 7 * k + j, "all_to_all") end
  end

  together(comms, function(c, k) c:broadcast(out[k], { root = n - 1 }) end)
  for k = 1, n do assert_same(out[k], base + 7 * n, "broadcast") end
  together(comms, function(c, k) c:reduce(t[k], { op = "min", root = 0 }) end)
  for k = 1, n do assert_same(t[k], base + 7 * k, "reduce") end
end

function TestValues.test_a_ring_of_messages()
  local n = MOST
  local comms = mr.nccl.comms(devices(n))
  local values, t = inputs(n, 9, "i32")
  local got = zeros(n, 9, "i32")
  together(comms, function(c, k)
    c:send(t[k], k % n)
    c:recv(got[k], (k + n - 2) % n)
  end)
  for k = 1, n do assert_values(got[k], values[(k + n - 2) % n + 1], "ring") end
end

-- Two messages of one pair arrive in the order of the calls.
function TestValues.test_messages_of_one_pair()
  local comms = mr.nccl.comms(devices(MOST))
  local last = MOST - 1
  local a, b = mr.full(4, 1.0, { device = 0 }), mr.full(2, 2.0, { device = 0 })
  local x, y = mr.zeros(4, { device = last }), mr.zeros(2, { device = last })
  mr.nccl.group(function()
    comms[1]:send(a, last)
    comms[1]:send(b, last)
    comms[MOST]:recv(x, 0)
    comms[MOST]:recv(y, 0)
  end)
  lu.assertEquals(column(x), { 1.0, 1.0, 1.0, 1.0 })
  lu.assertEquals(column(y), { 2.0, 2.0 })
end

-- Streams of their own, an event behind each, many operations without a wait of the host.
function TestValues.test_many_on_own_streams()
  local n = MOST
  local comms, streams = mr.nccl.comms(devices(n)), {}
  local t = {}
  for k = 1, n do
    streams[k] = mr.stream{ device = k - 1 }
    t[k] = mr.full(1000, k, { device = k - 1, dtype = "i64" })
    streams[k]:wait(mr.current_stream(k - 1):record_event())
  end
  local expected = {}
  for k = 1, n do expected[k] = k end
  for _ = 1, 20 do
    together(comms, function(c, k) c:all_reduce(t[k], { op = "max", stream = streams[k] }) end)
    for k = 1, n do mr.with(streams[k], function() t[k]:add_(k) end) end
    local most = math.max(table.unpack(expected))
    for k = 1, n do expected[k] = most + k end
  end
  for k = 1, n do
    streams[k]:synchronize()
    lu.assertEquals(t[k]:sum():item(), 1000 * expected[k])
  end
end

os.exit(lu.LuaUnit.run())
