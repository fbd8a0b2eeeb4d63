-- Keeps a GPU busy from a process of its own until a file is gone (scripts/gpu_check.sh, part `shared`). It runs
-- kernels of several sizes, copies both ways, sorts and products on three streams. It never takes more than a few
-- hundred megabytes.
local mr = require "millrace"

local path = assert(arg[1], "the path of a file that exists while the GPU is to be kept busy")

local function exists()
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

local a, b, c = mr.stream(), mr.stream(), mr.stream()
local large, small = mr.ones(1 << 24, { stream = a }), mr.ones(1 << 10, { stream = b })
local square, keys = mr.ones(512, 512, { stream = b }), mr.rand(1 << 20, { stream = c })
local page = mr.zeros(1 << 20, { device = "cpu", pinned = true })
local rounds = 0
while exists() do
  a:run(function() for _ = 1, 20 do large:mul_(1) end end)
  b:run(function()
    for _ = 1, 50 do small:add_(1) end
    for _ = 1, 5 do local _ <close> = square:mm(square) end
  end)
  c:run(function()
    local values, at = keys:sort()
    page:copy_(values, { non_blocking = true })
    values:free()
    at:free()
  end)
  mr.synchronize()
  rounds = rounds + 1
end
print(rounds .. " rounds")
