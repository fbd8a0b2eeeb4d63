-- Compute, communicate, and the fence between them.
--
-- The backward pass makes the gradients of the layers one after the other. A second stream sums each
-- of them over the workers as soon as it is there, while the next is being computed: this is what
-- DistributedDataParallel does. Before the weights are changed there must be one fence: the compute
-- stream waits for all communication. Here the all-reduce over 4 workers with equal gradients is a
-- delay and a multiplication by 4.
-- not checked: one of its programs races
local mr = require "millrace"

local WORKERS = 4
local compute, comm = mr.stream{name = "compute"}, mr.stream{name = "comm"}

local function training_step(n, layers, fence)
  local weight, gradient = {}, {}
  for i = 1, layers do weight[i], gradient[i] = mr.zeros(n), mr.zeros(n) end
  mr.synchronize()

  local began = mr.clock()
  for i = layers, 1, -1 do -- the last layer's gradient is there first
    mr.with(compute, function()
      mr.spin{ms = 1}
      gradient[i]:fill_(i)
    end)
    comm:wait_stream(compute) -- this gradient, and not the next ones: they are not submitted yet
    mr.with(comm, function()
      mr.spin{ms = 1}
      gradient[i]:mul_(WORKERS)
    end)
  end

  if fence then compute:wait_stream(comm) end -- the fence
  mr.with(compute, function()
    for i = 1, layers do weight[i]:sub_(gradient[i]) end
  end)
  mr.synchronize()

  local elapsed, sum = mr.clock() - began, 0
  for i = 1, layers do sum = sum + weight[i]:sum():item() end
  return sum, -WORKERS * n * layers * (layers + 1) // 2, elapsed
end

local sum, right, elapsed = training_step(100, 4, true)
print(("with the fence:    the weights sum up to %g, right is %g"):format(sum, right))
print(("without the fence: the weights sum up to %g, right is %g"):format(training_step(100, 4, false)))
print("4 ms of computing and 4 ms of communication take less than 6 ms: " .. tostring(elapsed < 6))

return { -- for the tests
  fixed = function(n) return training_step(n, 3, true) end,
  racy = function(n) return training_step(n, 3, false) end,
}
