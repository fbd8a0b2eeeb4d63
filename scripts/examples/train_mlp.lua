-- Trains a small network to tell the arms of three spirals apart.
--
-- The points lie in pinned host memory. While the network computes, the next batch is on its way: it is copied on a
-- stream of its own.
local mr = require "millrace"
local nn = mr.nn

local ARMS, POINTS, BATCH, MOST_EPOCHS = 3, 400, 100, 60

-- The points of the arms, shuffled, and to which arm each belongs.
local function spirals()
  local order = mr.randperm(ARMS * POINTS, {device = "cpu"}):totable()
  local noise = mr.randn({ARMS * POINTS}, {device = "cpu"}):totable()
  local points, arms = {}, {}
  for i, place in ipairs(order) do
    local arm, radius = place % ARMS, (place // ARMS + 1) / POINTS
    local angle = 2 * math.pi * (arm / ARMS + radius) + 0.1 * noise[i]
    points[i] = {radius * math.cos(angle), radius * math.sin(angle)}
    arms[i] = arm + 1
  end
  return mr.tensor(points, {device = "cpu"}), mr.tensor(arms, {device = "cpu", dtype = "i64"})
end

local function network()
  return nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, ARMS)):to(0)
end

-- The share of points whose arm the network names.
local function accuracy(net, points, arms)
  return mr.no_grad(function() return net(points):argmax(2):eq(arms):to("f32"):mean():item() end)
end

local progress = os.execute("test -t 2") == true

local function train(epochs, wanted)
  mr.manual_seed(7)
  local points, arms = spirals()
  local all_points, all_arms = points:to(0), arms:to(0)
  local net = network()
  local optimiser = mr.optim.Adam(net:parameters(), {lr = 0.01})
  for epoch = 1, epochs do
    local loss
    for x, y in mr.data.batches({points, arms}, {batch_size = BATCH, depth = 2}) do
      optimiser:zero_grad()
      loss = net(x):cross_entropy(y)
      loss:backward()
      optimiser:step()
    end
    local right = accuracy(net, all_points, all_arms)
    if progress then
      io.stderr:write(("\repoch %d: loss %.3f, %.1f %% right "):format(epoch, loss:item(), 100 * right))
    end
    if right >= wanted or epoch == epochs then
      if progress then io.stderr:write("\n") end
      return right, epoch
    end
  end
end

local right, epochs = train(MOST_EPOCHS, 0.99)
print(("%.1f %% of the points are right after %d epochs"):format(100 * right, epochs))
