-- The CPU bodies of the operations, beside loops in C over the same numbers with the same threads (OpenMP) and,
-- for the matrix product, beside a plain call of the same CBLAS. By turns; the best of seven, as whatever else
-- the machine does only makes things slower.
local mr = require "millrace"
local bench = dofile((arg[0]:match("^(.*)/") or ".") .. "/support.lua")

local SECONDS, ROUNDS = 0.15, 7

local function compile()
  local path = os.tmpname()
  local command = "cc -O3 -march=native -ffast-math -fopenmp -o %s '%s/bodies.c' -ldl -lm"
  return os.execute(command:format(path, bench.folder)) and path
end

local reference = compile()
if not reference then
  print("(no C compiler with OpenMP: nothing to compare with)\n")
  os.exit(0)
end

local function in_c(name, n) -- seconds a call; nil where it cannot
  return tonumber(bench.output_of(("OMP_WAIT_POLICY=passive %s %s %d %g"):format(reference, name, n, SECONDS)))
end

-- name -> function(n, options) that returns the work to be timed
local work = {
  add = function(n, place)
    local x, y, z = mr.rand(n):to(place), mr.rand(n):to(place), mr.zeros(n):to(place)
    return function() x:add(y, {out = z}) end
  end,
  relu_ = function(n, place)
    local x = mr.randn(n):to(place)
    return function() x:relu_() end
  end,
  exp = function(n, place)
    local x, z = mr.randn(n):to(place), mr.zeros(n):to(place)
    return function() x:exp({out = z}) end
  end,
  sum = function(n, place)
    local x = mr.randn(n):to(place)
    return function() x:sum() end
  end,
  softmax = function(n, place)
    local x, z = mr.randn(n // 1000, 1000):to(place), mr.zeros(n // 1000, 1000):to(place)
    return function() x:softmax(2, {out = z}) end
  end,
  copy_ = function(n, place)
    local x, z = mr.randn(n):to(place), mr.zeros(n):to(place)
    return function() z:copy_(x) end
  end,
  matmul = function(n, place)
    local a, b, c = mr.randn(n, n):to(place), mr.randn(n, n):to(place), mr.zeros(n, n):to(place)
    return function() a:matmul(b, {out = c}) end
  end,
}

-- What one call moves or computes, for the column that a person can judge.
local function figure(name, n, seconds)
  if name == "matmul" then return ("%.0f GFLOP/s"):format(2 * n ^ 3 / seconds / 1e9) end
  local arrays = ({ add = 3, relu_ = 2, exp = 2, sum = 1, softmax = 2, copy_ = 2 })[name]
  return ("%.1f GB/s"):format(4 * arrays * n / seconds / 1e9)
end

local rows = { { "operation", "n", "C", "host tensors", "of C", "virtual GPU", "of C" } }
for _, case in ipairs{ { "add", 1000000 }, { "add", 10000000 }, { "relu_", 1000000 }, { "relu_", 10000000 },
  { "copy_", 10000000 }, { "exp", 1000000 }, { "sum", 1000000 }, { "sum", 10000000 }, { "softmax", 1000000 },
  { "matmul", 256 }, { "matmul", 1024 } } do
  local name, n = case[1], case[2]
  local on_host, on_device = work[name](n, "cpu"), work[name](n, mr.device(0))
  local c, host, device = {}, {}, {}
  for i = 1, ROUNDS do
    c[i] = in_c(name, n)
    host[i] = bench.time(on_host, SECONDS)
    device[i] = bench.time(function()
      on_device()
      mr.synchronize()
    end, SECONDS)
  end
  local h, d = math.min(table.unpack(host)), math.min(table.unpack(device))
  local reference_time = #c == ROUNDS and math.min(table.unpack(c))
  rows[#rows + 1] = { "`" .. name .. "`", ("%d"):format(n),
    reference_time and figure(name, n, reference_time) or "", figure(name, n, h),
    reference_time and ("%.2f"):format(reference_time / h) or "", figure(name, n, d),
    reference_time and ("%.2f"):format(reference_time / d) or "" }
end
os.remove(reference)
bench.print_table(rows)
