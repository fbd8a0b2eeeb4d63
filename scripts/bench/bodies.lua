-- The CPU bodies of the operations beside NumPy and PyTorch (peers_cpu.py, where python3 has them). Beside loops in C
-- over the same numbers, too (bodies.c, OpenMP; for the matrix product a plain call of the same CBLAS). They run in
-- turns. The best of several runs counts, as other work of the machine only makes things slower.
--
--     build/millrace scripts/bench/bodies.lua [PATTERN [processor]]     rows whose name and dtype match the Lua pattern
--
-- With MILLRACE_THREADS=1 processor time is compared instead of the time that passes: a machine that does other work
-- has an influence on the caches only. With `processor`, the processor time of all threads is divided by their number
-- (NumPy has one): what a call would take on an idle machine if its threads ended together.
local mr = require "millrace"
local bench = dofile((arg[0]:match("^(.*)/") or ".") .. "/support.lua")

local THREADS = os.getenv("MILLRACE_THREADS") or bench.output_of("nproc")
local OF_PROCESSOR = THREADS == "1" or arg[2] == "processor"
local SECONDS, ROUNDS = 0.03, arg[2] == "processor" and 4 or 7

-- Seconds of one call: the best, or, where only the time that passes can be told, the mean of a run of them.
local function seconds_of(work)
  if not OF_PROCESSOR then return bench.time(work, SECONDS) end
  work()
  local best, began = math.huge, os.clock()
  repeat
    local before = os.clock()
    work()
    local now = os.clock()
    best = math.min(best, now - before)
  until now - began > SECONDS
  return best / tonumber(THREADS)
end

-- ------------------------------------------------------------------------- loops in C

local function compile()
  local path = os.tmpname()
  local command = "cc -O3 -march=native -ffast-math -fopenmp -o %s '%s/bodies.c' -ldl -lm"
  return os.execute(command:format(path, bench.folder)) and path
end

local reference = (THREADS == "1" or not OF_PROCESSOR) and compile()
if reference == nil then print("(no C compiler with OpenMP: nothing in the column `C`)\n") end

-- Seconds a call; nil where there is no such loop.
local function in_c(row, dtype, n)
  if not reference or dtype ~= "f32" or row:find(" ") then return nil end
  local command = "OMP_NUM_THREADS=%s OMP_WAIT_POLICY=passive %s %s %d %g 2> /dev/null"
  return tonumber(bench.output_of(command:format(THREADS, reference, row, n, SECONDS)))
end

-- ------------------------------------------------------------------------- NumPy and PyTorch

-- One process answers for all rows; `io.popen` goes one way only, so the answers come through a named pipe.
local questions, answers
local function ask(...)
  if not questions then
    local path = os.tmpname()
    os.remove(path)
    assert(os.execute("mkfifo " .. path))
    local command = "OMP_WAIT_POLICY=passive python3 '%s/peers_cpu.py' %s %s > %s 2> /dev/null"
    local clock = OF_PROCESSOR and "processor" or "wall"
    questions = assert(io.popen(command:format(bench.folder, THREADS, clock, path), "w"))
    answers = assert(io.open(path))
    os.remove(path)
  end
  questions:write(table.concat({ ... }, "\t"), "\n")
  questions:flush()
  return answers:read("l")
end

local PEERS = { { name = "NumPy", module = "numpy" }, { name = "PyTorch", module = "torch" } }
for _, peer in ipairs(PEERS) do
  local version = os.execute("command -v python3 > /dev/null") and ask(peer.module) or "-"
  peer.present = version ~= "-"
  local missing = ("(python3 has no %s: nothing in its column)"):format(peer.name)
  print(peer.present and peer.name .. " " .. version or missing)
end
print(("threads: %s%s\n"):format(THREADS, OF_PROCESSOR and ", processor time" or ""))
io.flush()

local function in_peer(peer, row, dtype, n)
  return peer.present and tonumber(ask(peer.module, row, dtype, ("%d"):format(n), SECONDS)) or nil
end

-- ------------------------------------------------------------------------- the rows

-- Each makes, of (n, options of tensors), the function that is timed, and says how many arrays of n elements it moves.
local work, arrays = {}, {}

local function randn(n, place) return mr.randn(n, { dtype = place.dtype }):to(place.place) end
local function matrix(n, place, columns)
  local side = math.floor(n ^ 0.5)
  return mr.randn(side, (columns or 1) * side, { dtype = place.dtype }):to(place.place)
end
local function zeros(like) return like:contiguous():clone():zero_() end

for _, name in ipairs{ "add", "mul", "div", "maximum", "remainder", "fmod", "floor_divide" } do
  arrays[name] = 3
  work[name] = function(n, place)
    local x, y = randn(n, place), randn(n, place)
    local z = zeros(x)
    return function() x[name](x, y, { out = z }) end
  end
end
for _, name in ipairs{ "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "sigmoid", "gelu", "softplus" } do
  arrays[name] = 2
  work[name] = function(n, place)
    local x = randn(n, place)
    if name == "sqrt" or name == "log" then x = x:abs() end
    local z = zeros(x)
    return function() x[name](x, { out = z }) end
  end
end
function work.pow(n, place)
  local x, y = mr.rand(n, { dtype = place.dtype }):to(place.place), randn(n, place)
  local z = zeros(x)
  return function() x:pow(y, { out = z }) end
end
work["pow number"] = function(n, place)
  local x = mr.rand(n, { dtype = place.dtype }):to(place.place)
  local z = zeros(x)
  return function() x:pow(2.5, { out = z }) end
end
work["pow 3"] = function(n, place)
  local x = randn(n, place)
  local z = zeros(x)
  return function() x:pow(3, { out = z }) end
end
function work.clamp(n, place)
  local x = randn(n, place)
  local z = zeros(x)
  return function() x:clamp(-0.5, 0.5, { out = z }) end
end
for _, name in ipairs{ "equal", "allclose" } do
  arrays[name] = 2
  work[name] = function(n, place)
    local x = randn(n, place)
    local y = x:clone()
    return function() mr[name](x, y) end
  end
end
arrays.pow, arrays["pow number"], arrays["pow 3"], arrays.clamp = 3, 2, 2, 2
function work.relu_(n, place)
  local x = randn(n, place)
  return function() x:relu_() end
end
function work.where(n, place)
  local x, y = randn(n, place), randn(n, place)
  local c, z = x:gt(y), zeros(x)
  return function() mr.where(c, x, y, { out = z }) end
end
work["to f64"] = function(n, place)
  local x = randn(n, place)
  local z = zeros(x:to("f64"))
  return function() z:copy_(x) end
end
function work.copy_(n, place)
  local x = randn(n, place)
  local z = zeros(x)
  return function() z:copy_(x) end
end
arrays.relu_, arrays.where, arrays["to f64"], arrays.copy_ = 2, 3.25, 3, 2

work["copy_ transposed"] = function(n, place)
  local x = matrix(n, place)
  local z = zeros(x)
  return function() z:copy_(x:t()) end
end
local function add_of(view, columns) -- of y, and how many columns x and y have for each of the result's
  return function(n, place)
    local x, y = matrix(n, place, columns), matrix(n, place, columns)
    if columns then x = view(x) end
    y = view(y)
    local z = zeros(matrix(n, place))
    return function() x:add(y, { out = z }) end
  end
end
work["add transposed"] = add_of(function(y) return y:t() end)
work["add row"] = add_of(function(y) return y:narrow(1, 1, 1) end)
work["add column"] = add_of(function(y) return y:narrow(2, 1, 1):contiguous() end)
work["add strided"] = add_of(function(y) return y:view(y:size(1), -1, 2):select(3, 1) end, 2)
arrays["copy_ transposed"], arrays["add transposed"], arrays["add strided"] = 2, 3, 3
arrays["add row"], arrays["add column"] = 2, 2

for _, name in ipairs{ "sum", "max", "argmax", "var", "norm" } do
  for _, dim in ipairs{ 0, 1, 2 } do
    local row = dim == 0 and name or ("%s %d"):format(name, dim)
    arrays[row] = 1
    work[row] = function(n, place)
      local x = matrix(n, place)
      if dim == 0 then return function() x[name](x) end end
      return function() x[name](x, dim) end
    end
  end
end
for _, name in ipairs{ "softmax", "log_softmax" } do
  for _, dim in ipairs{ 1, 2 } do
    local row = ("%s %d"):format(name, dim)
    arrays[row] = 2
    work[row] = function(n, place)
      local x = matrix(n, place)
      local z = zeros(x)
      return function() x[name](x, dim, { out = z }) end
    end
  end
end
-- Rows of a few elements: "sum of 64".
local SHORT = { 16, 64, 256 }
for _, name in ipairs{ "sum", "mean", "max", "argmax", "var", "softmax", "layer_norm", "cumsum" } do
  for _, length in ipairs(SHORT) do
    local row = ("%s of %d"):format(name, length)
    local maps = name == "softmax" or name == "cumsum"
    arrays[row] = (maps or name == "layer_norm") and 2 or 1
    work[row] = function(n, place)
      local x = randn(n // length * length, place):view(-1, length)
      local z = maps and { out = zeros(x) } or nil
      local last = name == "layer_norm" and length or 2
      return function() x[name](x, last, z) end
    end
  end
end

-- What finds or draws elements: it gives i64 positions, or as many values as it finds.
function work.sort(n, place)
  local x = randn(n, place)
  return function() x:sort(1) end
end
function work.unique(n, place)
  local x = place.dtype == "i64" and mr.randint(1000, { n }):to(place.place) or randn(n, place)
  return function() x:unique() end
end
for _, categories in ipairs{ 10, 1000 } do
  local row = "multinomial of " .. categories
  arrays[row] = 2
  work[row] = function(n, place)
    local p = mr.rand(categories, { dtype = place.dtype }):to(place.place)
    return function() p:multinomial(n, true) end
  end
end
arrays.sort, arrays.unique = 4, 2

for _, name in ipairs{ "uniform_", "normal_", "bernoulli_" } do
  arrays[name] = 1
  work[name] = function(n, place)
    local z = randn(n, place)
    return function() z[name](z) end
  end
end
function work.randperm(n, place)
  return function() mr.randperm(n, { device = place.place }) end
end
arrays.randperm = 2
function work.matmul(n, place)
  local a, b = matrix(n * n, place), matrix(n * n, place)
  local c = zeros(a)
  return function() a:matmul(b, { out = c }) end
end

-- The convolutions of the network of scripts/examples, and their gradients; n is the batch.
local CONVOLUTIONS = { ["3 to 64"] = { 3, 32, 64, 1 }, ["64 to 128"] = { 64, 16, 128, 1 } }
CONVOLUTIONS["256 to 256"] = { 256, 16, 256, 1 }
CONVOLUTIONS["64 to 64 by 64"] = { 64, 32, 64, 64 } -- depthwise: in 64 groups
local function convolution(row, n, place)
  local channels, size, outputs, groups = table.unpack(CONVOLUTIONS[row:match "%d+ to.*"])
  local function normal(...) return mr.randn({ ... }, { dtype = place.dtype }):to(place.place) end
  return normal(n, channels, size, size), normal(outputs, channels // groups, 3, 3),
    normal(n, outputs, size, size), normal(outputs)
end
for shape, sizes in pairs(CONVOLUTIONS) do
  local same_size = { padding = 1, groups = sizes[4] }
  local row = "conv2d " .. shape
  work[row] = function(n, place)
    local x, w, _, bias = convolution(row, n, place)
    return function() x:conv2d(w, bias, same_size) end
  end
  work["conv2d_input " .. shape] = function(n, place)
    local x, w, g = convolution(row, n, place)
    return function() mr.conv2d_input(x.shape, w, g, same_size) end
  end
  work["conv2d_weight " .. shape] = function(n, place)
    local x, w, g = convolution(row, n, place)
    return function() mr.conv2d_weight(x, w.shape, g, same_size) end
  end
end
local function flops_of_convolution(row, n)
  local channels, size, outputs, groups = table.unpack(CONVOLUTIONS[row:match "%d+ to.*"])
  return 2 * n * outputs * size * size * channels // groups * 9
end

-- The bytes or operations of one call, for the column that a person can judge.
local function figure(row, dtype, n, seconds)
  if row == "matmul" then return ("%.0f GFLOP/s"):format(2 * n ^ 3 / seconds / 1e9) end
  if row:find "conv2d" then return ("%.0f GFLOP/s"):format(flops_of_convolution(row, n) / seconds / 1e9) end
  return ("%.1f GB/s"):format((dtype == "f32" and 4 or 8) * arrays[row] * n / seconds / 1e9)
end

local MILLION, TEN_MILLION = 1000000, 10000000
local CASES = {} -- of row, dtype, n
local function case(dtype, n, ...)
  for _, row in ipairs{ ... } do CASES[#CASES + 1] = { row, dtype, n } end
end
case("f32", MILLION, "add", "mul", "div", "maximum", "relu_", "where", "to f64", "copy_", "add row", "add column",
  "add strided", "add transposed", "copy_ transposed", "clamp", "remainder", "fmod", "floor_divide", "sqrt", "exp",
  "log", "sin", "cos", "tan", "tanh", "sigmoid", "gelu", "softplus", "pow", "pow number", "pow 3", "equal", "allclose",
  "sum", "sum 1", "sum 2", "max", "max 1", "max 2", "argmax", "argmax 1", "argmax 2", "var",
  "var 1", "norm", "softmax 1", "softmax 2", "log_softmax 2", "uniform_", "normal_", "bernoulli_", "randperm")
case("f64", MILLION, "add", "clamp", "remainder", "fmod", "floor_divide", "exp", "log", "sin", "cos", "tan", "tanh",
  "softplus", "pow", "pow 3", "sum", "sum 1", "sum 2", "max", "softmax 2",
  "uniform_", "normal_")
case("f32", TEN_MILLION, "add", "relu_", "copy_", "add row", "add strided", "add transposed", "copy_ transposed", "exp",
  "sum", "sum 1", "sum 2", "max", "softmax 1", "softmax 2", "uniform_", "normal_")
case("f32", MILLION, "sort", "unique", "multinomial of 10", "multinomial of 1000")
case("i64", MILLION, "unique")
for _, name in ipairs{ "sum", "mean", "max", "argmax", "var", "softmax", "layer_norm", "cumsum" } do
  for _, length in ipairs(SHORT) do case("f32", MILLION, ("%s of %d"):format(name, length)) end
end
case("f32", 512, "matmul")
case("f32", 1024, "matmul")
case("f64", 512, "matmul")
local BATCH = { ["3 to 64"] = 64, ["64 to 128"] = 64, ["256 to 256"] = 16, ["64 to 64 by 64"] = 16 }
for _, shape in ipairs{ "3 to 64", "64 to 128", "256 to 256", "64 to 64 by 64" } do
  case("f32", BATCH[shape], "conv2d " .. shape, "conv2d_input " .. shape, "conv2d_weight " .. shape)
end

-- ------------------------------------------------------------------------- measuring

local function best(list) return #list == ROUNDS and math.min(table.unpack(list)) or nil end
local function ratio(other, own) return other and ("%.2f"):format(other / own) or "" end

local function measure(row, dtype, n)
  local on_host = work[row](n, { dtype = dtype, place = "cpu" })
  local on_device = work[row](n, { dtype = dtype, place = mr.device(0) })
  local times = { host = {}, device = {}, c = {}, NumPy = {}, PyTorch = {} }
  for i = 1, ROUNDS do
    times.c[i] = in_c(row, dtype, n)
    times.host[i] = seconds_of(on_host)
    for _, peer in ipairs(PEERS) do times[peer.name][i] = in_peer(peer, row, dtype, n) end
    times.device[i] = seconds_of(function()
      on_device()
      mr.synchronize()
    end)
  end
  local host, device = best(times.host), best(times.device)
  return { "`" .. row .. "`", dtype, ("%d"):format(n), figure(row, dtype, n, host), ratio(best(times.c), host),
    ratio(best(times.NumPy), host), ratio(best(times.PyTorch), host), figure(row, dtype, n, device),
    ratio(host, device) }
end

local rows = { { "operation", "dtype", "n", "host tensors", "of C", "of NumPy", "of PyTorch", "virtual GPU",
  "of host's" } }
for _, one in ipairs(CASES) do
  local row, dtype, n = table.unpack(one)
  if (row .. " " .. dtype):find(arg[1] or "") then
    rows[#rows + 1] = measure(row, dtype, n)
    collectgarbage()
    io.stderr:write(table.concat(rows[#rows], "  "), "\n")
  end
end
if reference then os.remove(reference) end
if questions then questions:close() end
bench.print_table(rows)
