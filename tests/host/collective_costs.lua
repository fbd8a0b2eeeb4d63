-- The durations of collectives on virtual devices: a ring or a tree, over the links of the device's model.
-- virtual only: the options choose the model
local lu = require "luaunit"

local HOST = assert(os.getenv("MILLRACE"), "MILLRACE must hold the path of the host")

-- Microseconds of one collective of so many elements among so many devices.
local function cost(model, ranks, call, count)
  local script = ([[
    local devices, x, y = {}, {}, {}
    for k = 1, %d do
      devices[k], x[k] = k - 1, mr.ones(%d, {device = k - 1})
      y[k] = mr.zeros(%d * %d, {device = k - 1})
    end
    local comms, from, to = mr.nccl.comms(devices), mr.event{timing = true}, mr.event{timing = true}
    for k = 1, %d do mr.synchronize(k - 1) end
    mr.spin{ms = 5}
    from:record()
    mr.nccl.group(function() for k, c in ipairs(comms) do %s end end)
    to:record()
    mr.synchronize()
    print(from:elapsed_time(to) * 1000)]]):format(ranks, count, ranks, count, ranks, call)
  local command = ("%s --model %s --device virtual:%d -e '%s' 2>&1 </dev/null"):format(HOST, model, ranks, script)
  local pipe = io.popen(command)
  local output = pipe:read "a"
  pipe:close()
  return assert(tonumber(output), output)
end

local ALL_REDUCE, ALL_GATHER = "c:all_reduce(x[k])", "c:all_gather(y[k], x[k])"

TestCosts = {}

-- 2, 4, 6 and 6 steps, where a ring has 2, 6, 10 and 14.
function TestCosts.test_a_small_all_reduce_goes_through_a_tree()
  for model, step in pairs{ h200 = 1.5, t4 = 2.5, rtx4090 = 5 } do
    local two = cost(model, 2, ALL_REDUCE, 1)
    for ranks, steps in pairs{ [4] = 2, [6] = 4, [8] = 4 } do
      lu.assertAlmostEquals(cost(model, ranks, ALL_REDUCE, 1) - two, steps * step, 0.2)
    end
  end
end

function TestCosts.test_others_go_round_a_ring()
  local two = cost("h200", 2, ALL_GATHER, 1)
  lu.assertAlmostEquals(cost("h200", 8, ALL_GATHER, 1) - two, 6 * 1.5, 0.2)
end

-- 2 (n - 1) / n of the bytes by a link, and not all of them twice.
function TestCosts.test_a_large_all_reduce_goes_round_a_ring()
  local count = 1 << 20
  for model, gbs in pairs{ h200 = 399 * 0.81, t4 = 11 * 0.81, rtx4090 = 12.5 } do
    local step = ({ h200 = 1.5, t4 = 2.5, rtx4090 = 5 })[model]
    for _, ranks in ipairs{ 2, 4 } do
      local others = ranks - 1
      local more = cost(model, ranks, ALL_REDUCE, 4 * count) - cost(model, ranks, ALL_REDUCE, count)
      lu.assertAlmostEquals(more, 2 * others / ranks * 12 * count / gbs / 1000, step)
    end
  end
end

os.exit(lu.LuaUnit.run())
