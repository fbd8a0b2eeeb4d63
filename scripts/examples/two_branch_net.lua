-- A network of two branches, one for images and one for motion, on one stream and on two.
--
-- The branches have nothing in common until their outputs are added, so each can have a stream of its own. This holds
-- backward, too: a gradient is computed on the stream of its forward operation. Where one branch alone does not fill
-- the GPU, the branches run side by side. The losses are the same to the last bit, because the order in which numbers
-- are added does not depend on streams.
--
--     millrace scripts/examples/two_branch_net.lua [STEPS [BATCH]]
--
-- With batches of 64 a virtual GPU has the sizes that are usual on a real one; computing their values takes seconds.
-- own pace: prints figures of the device
local mr = require "millrace"
local nn = mr.nn

local STEPS, BATCH = tonumber(arg and arg[1]) or 2, tonumber(arg and arg[2]) or 16

local function branch()
  return nn.Sequential(
    nn.Conv2d(3, 64, 3, {padding = 1}), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(64, 128, 3, {padding = 1}), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(128 * 8 * 8, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 10))
end

local main, side = mr.stream{name = "image"}, mr.stream{name = "motion"}

-- What the network says of a batch: the motion branch runs on `stream`.
local function forward(image_net, motion_net, image, motion, stream)
  stream:wait_stream(main) -- the inputs and the parameters are ready
  local by_motion = mr.with(stream, motion_net, motion)
  local by_image = image_net(image)
  main:wait_stream(stream)
  by_motion:record_stream(main)
  return by_image + by_motion
end

-- Trains for some steps with the motion branch on `stream`; returns the losses, and the milliseconds of the last
-- forward pass and of the last step.
local function train(stream, steps, size)
  mr.manual_seed(1)
  local image_net, motion_net = branch():to(0), branch():to(0)
  local parameters = image_net:parameters()
  table.move(motion_net:parameters(), 1, #motion_net:parameters(), #parameters + 1, parameters)
  local optimiser = mr.optim.SGD(parameters, {lr = 0.01, momentum = 0.9})
  local image, motion = mr.randn(size, 3, 32, 32), mr.randn(size, 3, 32, 32)
  local labels = mr.randint(1, 11, {size}, {dtype = "i64"})
  local losses, forward_ms, step_ms = {}, nil, nil
  for i = 1, steps do
    collectgarbage() -- here, and not inside of what is measured
    collectgarbage "stop"
    mr.synchronize()
    local began = mr.clock()
    mr.no_grad(forward, image_net, motion_net, image, motion, stream)
    mr.synchronize()
    forward_ms, began = mr.clock() - began, mr.clock()
    optimiser:zero_grad()
    local loss = forward(image_net, motion_net, image, motion, stream):cross_entropy(labels)
    loss:backward()
    optimiser:step()
    mr.synchronize()
    step_ms = mr.clock() - began
    losses[i] = loss:item()
    collectgarbage "restart"
  end
  return losses, forward_ms, step_ms
end

local function on(stream, steps, size) return mr.with(main, train, stream, steps, size) end

local one, one_forward, one_step = on(main, STEPS, BATCH)
local two, two_forward, two_step = on(side, STEPS, BATCH)
print(("batch of %d            one stream   two streams"):format(BATCH))
print(("forward, ms          %12.3f  %12.3f"):format(one_forward, two_forward))
print(("training step, ms    %12.3f  %12.3f"):format(one_step, two_step))
for i = 1, STEPS do
  local verdict = one[i] == two[i] and "the same" or "differ"
  print(("loss of step %d       %12.6f  %12.6f  %s"):format(i, one[i], two[i], verdict))
end
