-- The time of your own kernels, predicted and measured: the kernels of scripts/examples, on sizes with which a GPU is
-- busy for 20 microseconds or more.
--
--     millrace --device cuda scripts/bench/gpu/kernel_times.lua [PATTERN]       predicted, measured, and the ratio
--     millrace --device virtual scripts/bench/gpu/kernel_times.lua say          only the predictions, as lines of words
--     millrace --device cuda scripts/bench/gpu/kernel_times.lua once            each kernel once, for a profiler
--
-- Predicted are the time that k:profile() tells after one launch on the virtual GPU, and how long the virtual GPU
-- takes for a launch. Measured is the time between two events around many launches: the median of some rounds. The
-- model of the virtual GPU is MODEL of the environment, or h200. Run from the folder that holds scripts/.
local mr = require "millrace"

local mode, pattern = "compare", nil
for _, word in ipairs(arg) do
  if word == "say" or word == "once" then mode = word else pattern = word end
end

-- ---------------------------------------------------------------- the examples' kernels

-- Runs an example and keeps what it compiles: get(name); of several kernels of that name, the one that came last.
local function kernels_of(example)
  local kernel, module, said, modules = mr.kernel, mr.module, print, {}
  mr.kernel = function(...)
    local k = kernel(...)
    modules[#modules + 1] = k.module
    return k
  end
  mr.module = function(...)
    local m = module(...)
    modules[#modules + 1] = m
    return m
  end
  rawset(_G, "print", function() end)
  dofile("scripts/examples/" .. example .. ".lua")
  mr.kernel, mr.module = kernel, module
  rawset(_G, "print", said)
  return function(name)
    for i = #modules, 1, -1 do
      local ok, k = pcall(modules[i].get, modules[i], name)
      if ok then return k end
    end
    error(example .. " has no kernel " .. name)
  end
end

-- ---------------------------------------------------------------- cases

local MILLION = 1 << 20
local cases = {}
-- `make` gives the kernel, the shape of its launch, and its arguments.
local function case(name, make) cases[#cases + 1] = { name = name, make = make } end

local function blocks_of(n, threads) return (n + threads - 1) // threads end

case("saxpy, 2^24", function()
  local n = 16 * MILLION
  return kernels_of "saxpy" "saxpy", { blocks_of(n, 256), 256 }, mr.ones(n), mr.ones(n), 2.0, n
end)

local function product(kernel, n)
  return kernels_of "tiled_matmul"(kernel), { { n // 16, n // 16 }, { 16, 16 } }, mr.empty(n, n), mr.rand(n, n),
    mr.rand(n, n), n, n, n
end
case("matrix product, direct, 512^3", function() return product("direct", 512) end)
case("matrix product, tiled, 512^3", function() return product("tiled<16>", 512) end)

local function sum(kernel, n, blocks, threads)
  return kernels_of "tree_reduction"(kernel), { blocks, threads, threads * 8 }, mr.empty(blocks, { dtype = "i64" }),
    mr.ones(n, { dtype = "i32" }), n
end
case("sum in shared memory, 2^25", function() return sum("with_shared_memory", 32 * MILLION, 1056, 256) end)
case("sum with shuffles, 2^25", function() return sum("with_shuffles", 32 * MILLION, 1056, 256) end)
case("sum with shuffles, 2^20, 8 blocks", function() return sum("with_shuffles", MILLION, 8, 128) end)

local function histogram(kernel, n, blocks)
  return kernels_of "histogram"(kernel), { blocks or n // 128, 128 }, mr.zeros(16, { dtype = "i32" }),
    mr.randint(0, 16, { n }, { dtype = "u8" }), n
end
case("histogram, atomics, 2^22", function() return histogram("with_atomics", 4 * MILLION) end)
case("histogram, shared memory, 2^25", function() return histogram("in_shared_memory", 32 * MILLION, 2112) end)

case("transpose with sleeps, 1024^2", function()
  return kernels_of "shared_transpose" "transpose", { 32, { 32, 32 } }, mr.empty(1024, 1024), mr.rand(1024, 1024), 1024,
    1024
end)

case("stencil, 2^24", function()
  local n = 16 * MILLION
  return kernels_of "halo_stencil" "step", { blocks_of(n, 64), 64 }, mr.empty(n), mr.ones(n + 2), n
end)

case("smooth step, 2^24", function()
  local n = 16 * MILLION
  return kernels_of "elementwise_by_hand" "smooth_step", { blocks_of(n, 256), 256 }, mr.empty(n), mr.rand(n), n
end)

case("doubling, 100 blocks of 512, 2^24", function()
  local n = 16 * MILLION
  return kernels_of "cuda_guide_loop" "MyKernel", { 100, 512 }, mr.empty(n), mr.rand(n), n
end)

-- ---------------------------------------------------------------- times

local function median(list)
  table.sort(list)
  return list[#list // 2 + 1]
end

-- Microseconds a launch, from start to start. The spin lets the host get ahead of the device.
local function time_of(launch, launches, rounds)
  local from, to = mr.event{ timing = true }, mr.event{ timing = true }
  local times = {}
  for round = 1, rounds + 1 do
    mr.spin{ ms = 1 }
    from:record()
    for _ = 1, launches do launch() end
    to:record()
    to:synchronize()
    if round > 1 or rounds == 1 then times[#times + 1] = from:elapsed_time(to) * 1e3 / launches end
  end
  return median(times)
end

-- {kernel, shape, a function that launches it}
local function made(c)
  local list = table.pack(c.make())
  local k, shape = list[1], list[2]
  local launch = k[shape]
  mr.synchronize()
  return k, shape, function() launch(table.unpack(list, 3, list.n)) end
end

local function threads_of(shape)
  local block, threads = shape[2], 1
  for _, n in ipairs(type(block) == "table" and block or { block }) do threads = threads * n end
  return threads
end

local function predict(c)
  local k, shape, launch = made(c)
  k:profile{ reset = true }
  launch()
  mr.synchronize()
  local profile = k:profile{ block = threads_of(shape), shared = shape[3] or 0 }
  return profile.ms * 1e3, time_of(launch, 1, 1), profile.bound_by:gsub(" ", "-")
end

local function measure(c)
  local _, _, launch = made(c)
  local few = time_of(launch, 3, 1)
  return time_of(launch, math.max(3, math.min(200, math.ceil(3000 / few))), 9)
end

local function wanted(c) return not pattern or c.name:find(pattern, 1, true) end

local function predictions()
  local quoted = "'" .. (os.getenv "MILLRACE" or "build/millrace"):gsub("'", "'\\''") .. "'"
  local model = os.getenv "MODEL" or "h200"
  local pipe = assert(io.popen(("%s --device virtual --model '%s' '%s' say '%s'"):format(quoted, model, arg[0],
    pattern or "")))
  local said = {}
  for line in pipe:lines() do
    local name, profile, launch, bound = line:match "^(.-)\t(%S+)\t(%S+)\t(%S+)$"
    if name then said[name] = { tonumber(profile), tonumber(launch), bound } end
  end
  pipe:close()
  return said
end

if mode == "compare" then
  local said = predictions()
  print(("| %-36s | %9s | %9s | %9s | %9s | %9s | %s |"):format("kernel", "profile", "launch", "measured",
    "m/profile", "m/launch", "bound by"))
  print("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
  for _, c in ipairs(cases) do
    if wanted(c) then
      local p, m = said[c.name], measure(c)
      if not p then error("no prediction of " .. c.name) end
      print(("| %-36s | %9.1f | %9.1f | %9.1f | %9.2f | %9.2f | %s |"):format(c.name, p[1], p[2], m, m / p[1], m / p[2],
        (p[3]:gsub("-", " "))))
      collectgarbage()
    end
  end
  return
end
for _, c in ipairs(cases) do
  if wanted(c) then
    if mode == "say" then
      print(("%s\t%.4f\t%.4f\t%s"):format(c.name, predict(c)))
    else
      local _, _, launch = made(c)
      launch()
      mr.synchronize()
    end
    collectgarbage()
  end
end
