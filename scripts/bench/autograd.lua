-- The cost of gradients to the host. A chain of a thousand small operations runs without recording, recorded, and with
-- its backward pass. A call that records nothing runs where other tensors require gradients, and where none does.
local mr = require "millrace"
local bench = dofile((arg[0]:match("^(.*)/") or ".") .. "/support.lua")

local LENGTH, ROUNDS, CALLS = 1000, 21, 200000

local chains = {
  { "`y * 1.001 + 0.1`", function(y) return y * 1.001 + 0.1 end, 2 },
  { "`y:tanh()`", function(y) return y:tanh() end, 1 },
  { "`y * w`, both require gradients", function(y, w) return y * w end, 1 },
}

local function run_chain(chain, x, w)
  local y, step = x, chain[2]
  for _ = 1, LENGTH // chain[3] do y = step(y, w) end
  return y:sum()
end

-- Microseconds of an operation; one thread works, so its time is the time.
local function timed(work, ...)
  collectgarbage()
  local began = os.clock()
  local result = work(...)
  mr.synchronize()
  return 1e6 * (os.clock() - began) / LENGTH, result
end

local rows = { { "chain of 1000", "device", "plain, us each", "recorded", "backward", "backward / forward" } }
for _, place in ipairs { "cpu", 0 } do
  for _, chain in ipairs(chains) do
    local x = mr.rand(16, { device = place }):requires_grad_()
    local w = mr.ones(16, { device = place }):requires_grad_()
    local plain, forward, backward, ratios = {}, {}, {}, {}
    for round = 1, ROUNDS do
      plain[round] = timed(mr.no_grad, run_chain, chain, x, w)
      local loss
      forward[round], loss = timed(run_chain, chain, x, w)
      backward[round] = timed(loss.backward, loss)
      ratios[round] = backward[round] / forward[round]
      x.grad, w.grad = nil, nil
    end
    rows[#rows + 1] = { chain[1], place == "cpu" and "host" or "virtual",
      ("%.2f"):format(bench.median(plain)), ("%.2f"):format(bench.median(forward)),
      ("%.2f"):format(bench.median(backward)), ("%.2f"):format(bench.median(ratios)) }
  end
end
bench.print_table(rows)

-- Nanoseconds of a call that takes no part in gradients.
local function of_a_call(t)
  local times = {}
  for round = 1, ROUNDS do
    local began = os.clock()
    for _ = 1, CALLS // 10 do t:add_(1) end
    times[round] = 1e9 * (os.clock() - began) / (CALLS // 10)
  end
  return bench.median(times)
end

local t = mr.zeros(4, { device = "cpu" })
collectgarbage()
local without = of_a_call(t)
local other = mr.zeros(4):requires_grad_()
local with = of_a_call(t)
other:requires_grad_(false)
bench.print_table {
  { "`add_` of a host tensor", "ns" },
  { "no tensor requires gradients", ("%.0f"):format(without) },
  { "another one does", ("%.0f"):format(with) },
}
