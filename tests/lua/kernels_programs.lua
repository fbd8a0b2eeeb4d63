-- timeout: 240
-- Whole programs of the kind that an introduction to CUDA has, from tests/kernels/*.cu, beside the same computation in
-- plain Lua; through each compiler that this machine has.
local lu = require "luaunit"
local mr = require "millrace"

-- ---------------------------------------------------------------- helpers

local modules = {}

-- A kernel of tests/kernels/FILE.cu.
local function get(file, name)
  modules[file] = modules[file] or {}
  local key = name:find("<") and name or "" -- one module for all kernels that are no templates
  local module = modules[file][key]
  if not module then
    module = mr.module({path = ("tests/kernels/%s.cu"):format(file)}, {names = key ~= "" and { name } or nil})
    modules[file][key] = module
  end
  return module:get(name)
end

local function blocks(n, threads) return (n + threads - 1) // threads end

-- Rounds to single precision, as a kernel's float arithmetic does.
local function f32(x) return (string.unpack("f", string.pack("f", x))) end

-- Numbers from 0 to n - 1, the same on each run.
local function numbers(seed)
  local state = seed
  return function(n)
    state = (state * 1103515245 + 12345) & 0x7fffffff
    return (state >> 8) % n
  end
end

local function list(n, fn)
  local t = {}
  for i = 1, n do t[i] = fn(i) end
  return t
end

local function assert_near(got, expected, tolerance)
  lu.assertEquals(#got, #expected)
  for i = 1, #expected do
    local distance = math.abs(got[i] - expected[i])
    if distance ~= distance or distance > tolerance * math.max(1, math.abs(expected[i])) then
      lu.fail(("element %d is %.9g, expected %.9g"):format(i, got[i], expected[i]))
    end
  end
end

local function i32(t) return mr.tensor(t, {dtype = "i32"}) end

-- ---------------------------------------------------------------- programs

TestPrograms = {}

function TestPrograms.test_vector_add()
  local n, random = 5000, numbers(1)
  local a, b = list(n, function() return random(1000) end), list(n, function() return random(1000) end)
  local expected = list(n, function(i) return a[i] + b[i] end)
  local sum, x, y = mr.zeros(n), mr.tensor(a, {dtype = "f32"}), mr.tensor(b, {dtype = "f32"})
  get("vector_add", "vector_add")[{blocks(n, 256), 256}](sum, x, y, n)
  lu.assertEquals(sum:totable(), expected)
  sum:zero_()
  get("vector_add", "vector_add_stride")[{3, 64}](sum, x, y, n)
  lu.assertEquals(sum:totable(), expected)
end

function TestPrograms.test_saxpy()
  local n, random = 1000, numbers(2)
  local x, y = list(n, function() return random(1000) end), list(n, function() return random(1000) end)
  local expected = list(n, function(i) return 3 * x[i] + y[i] end)
  for name, dtype in pairs{ saxpy = "f32", ["axpy<double>"] = "f64", ["axpy<int>"] = "i32" } do
    local out = mr.tensor(y, {dtype = dtype})
    get("saxpy", name)[{blocks(n, 128), 128}](out, mr.tensor(x, {dtype = dtype}), 3, n)
    lu.assertEquals(out:totable(), expected)
  end
end

function TestPrograms.test_seven_reductions()
  local random, threads = numbers(3), 128
  for _, n in ipairs{ 1, 127, 1000, 4096 } do
    local values, sum = list(n, function() return random(100) end), 0
    for i = 1, n do sum = sum + values[i] end
    local x = mr.tensor(values, {dtype = "f32"})
    for _, kernel in ipairs{ "reduce_divergent", "reduce_strided", "reduce_sequential", "reduce_first_add",
      "reduce_last_warp", "reduce_unrolled<128>", "reduce_grid_stride<256>", "reduce_shuffle" } do
      local size = tonumber(kernel:match("<(%d+)>")) or threads
      local grid = kernel:find("stride<") and 3 or blocks(n, size)
      local partial = mr.zeros(grid)
      get("reduce", kernel)[{grid, size, 4 * (size + 32)}](partial, x, n)
      lu.assertEquals(partial:sum():item(), sum, kernel .. " of " .. n)
    end
  end
end

function TestPrograms.test_the_sum_by_the_last_block()
  local n = 3000
  local out, partial = mr.zeros(1), mr.zeros(8)
  for _ = 1, 3 do
    get("last_block", "sum_all<128>")[{8, 128}](out, partial, mr.ones(n), n)
    lu.assertEquals(out:item(), n)
  end
end

function TestPrograms.test_scans()
  local n, random = 256, numbers(4)
  local values = list(n - 5, function() return random(100) end)
  local inclusive, exclusive, sum = {}, {}, 0
  for i = 1, #values do
    exclusive[i], sum = sum, sum + values[i]
    inclusive[i] = sum
  end
  local x = i32(values)
  local function run(kernel, ...)
    local out = mr.zeros(#values, {dtype = "i32"})
    get("scan", kernel)[{...}](out, x, #values)
    return out:totable()
  end
  lu.assertEquals(run("scan_inclusive", 1, n, 8 * n), inclusive)
  lu.assertEquals(run("scan_warps", 1, n), inclusive)
  local out, totals = mr.zeros(#values, {dtype = "i32"}), mr.zeros(1, {dtype = "i32"})
  get("scan", "scan_exclusive")[{1, n // 2, 4 * n}](out, x, totals, #values)
  lu.assertEquals(out:totable(), exclusive)
  lu.assertEquals(totals:item(), sum)
end

function TestPrograms.test_transpositions()
  local width, height = 70, 45
  local expected = {}
  for x = 0, width - 1 do
    for y = 0, height - 1 do expected[x * height + y + 1] = y * width + x end
  end
  local m = mr.arange(width * height, {dtype = "f32"})
  for _, kernel in ipairs{ "transpose_direct", "transpose_shared", "transpose_padded" } do
    local out = mr.zeros(width * height)
    get("transpose", kernel)[{{blocks(width, 32), blocks(height, 32)}, {32, 8}}](out, m, width, height)
    lu.assertEquals(out:totable(), expected, kernel)
  end
end

local function product(a, b, rows, inner, columns)
  local c = {}
  for row = 0, rows - 1 do
    for column = 0, columns - 1 do
      local sum = 0
      for k = 0, inner - 1 do sum = sum + a[row * inner + k + 1] * b[k * columns + column + 1] end
      c[row * columns + column + 1] = sum
    end
  end
  return c
end

function TestPrograms.test_matrix_products()
  local rows, inner, columns, random = 37, 50, 41, numbers(5)
  local a = list(rows * inner, function() return random(19) - 9 end)
  local b = list(inner * columns, function() return random(19) - 9 end)
  local expected = product(a, b, rows, inner, columns)
  for kernel, size in pairs{ matmul_direct = 16, ["matmul_tiled<16>"] = 16, ["matmul_tiled<32>"] = 32 } do
    local c = mr.zeros(rows * columns)
    get("matmul", kernel)[{{blocks(columns, size), blocks(rows, size)}, {size, size}}](c,
      mr.tensor(a, {dtype = "f32"}), mr.tensor(b, {dtype = "f32"}), rows, inner, columns)
    lu.assertEquals(c:totable(), expected, kernel)
  end
  local n = 20
  local x, c = list(n * n, function(i) return i / 7 end), mr.zeros(n * n, {dtype = "f64"})
  local t = mr.tensor(x, {dtype = "f64"})
  get("matmul", "matmul_double")[{{2, 2}, {16, 16}}](c, t, t, n)
  assert_near(c:totable(), product(x, x, n, n, n), 1e-13)
end

function TestPrograms.test_histograms()
  local n, random = 5000, numbers(6)
  local values, expected = list(n, function() return random(16) * random(16) end), list(256, function() return 0 end)
  for i = 1, n do expected[values[i] + 1] = expected[values[i] + 1] + 1 end
  for _, kernel in ipairs{ "histogram_global", "histogram_shared" } do
    local counts = mr.zeros(256, {dtype = "i32"})
    get("histogram", kernel)[{4, 128}](counts, mr.tensor(values, {dtype = "u8"}), n)
    lu.assertEquals(counts:totable(), expected, kernel)
  end
end

function TestPrograms.test_bitonic_sort()
  local n, random = 256, numbers(7)
  local values = list(n, function() return random(1000) end)
  local sorted = { table.unpack(values) }
  table.sort(sorted)
  local x = mr.tensor(values, {dtype = "f32"})
  get("bitonic_sort", "bitonic_block")[{1, n, 4 * n}](x)
  lu.assertEquals(x:totable(), sorted)
  x = i32(values)
  local size = 2
  while size <= n do
    local distance = size // 2
    while distance > 0 do
      get("bitonic_sort", "bitonic_step")[{blocks(n, 64), 64}](x, distance, size)
      distance = distance // 2
    end
    size = size * 2
  end
  lu.assertEquals(x:totable(), sorted)
end

function TestPrograms.test_radix_sort()
  local n, random = 128, numbers(8)
  local values = list(n, function() return random(1 << 20) * 1000 & 0x7fffffff end)
  local sorted = { table.unpack(values) }
  table.sort(sorted)
  local x = i32(values)
  get("radix_sort", "radix_sort_block")[{1, n, 8 * n}](x)
  lu.assertEquals(x:totable(), sorted)

  -- By digits of 4 bits, across blocks; the host scans the counts.
  n = 300
  values = list(n, function() return random(1 << 16) end)
  sorted = { table.unpack(values) }
  table.sort(sorted)
  local keys, out, grid = i32(values), mr.zeros(n, {dtype = "i32"}), blocks(n, 32)
  for shift = 0, 12, 4 do
    local counts = mr.zeros(16 * grid, {dtype = "i32"})
    get("radix_sort", "count_digits")[{grid, 32}](counts, keys, n, shift)
    local starts, sum = {}, 0
    for i, count in ipairs(counts:totable()) do starts[i], sum = sum, sum + count end
    get("radix_sort", "scatter_digits")[{grid, 32}](out, keys, i32(starts), n, shift)
    keys, out = out, keys
  end
  lu.assertEquals(keys:totable(), sorted)
end

function TestPrograms.test_monte_carlo()
  local threads, points, seed = 64, 50, 7
  local count = 0
  for thread = 0, threads - 1 do
    local state = seed + thread
    local function uniform()
      state = state * 6364136223846793005 + 1442695040888963407
      return f32((state >> 40) * (1 / 16777216))
    end
    uniform()
    for _ = 1, points do
      local x, y = uniform(), uniform()
      -- The compiler may contract to fma(y, y, x * x); both forms agree unless the point lies on the circle.
      local square = x * x + y * y
      lu.assertTrue(math.abs(square - 1) > 1e-6)
      if square < 1 then count = count + 1 end
    end
  end
  local inside = mr.zeros(1, {dtype = "i64"})
  get("monte_carlo", "count_inside")[{2, threads // 2}](inside, seed, points)
  lu.assertEquals(inside:item(), count)
end

function TestPrograms.test_n_body()
  local n, dt, random = 70, 0.01, numbers(9)
  local now = list(4 * n, function(i) return i % 4 == 0 and 1 + random(5) or f32(random(1000) / 100) end)
  local next, velocity = {}, {}
  for i = 0, n - 1 do
    local sum = { 0, 0, 0 }
    for j = 0, n - 1 do
      local d, square = {}, 1e-3
      for k = 1, 3 do
        d[k] = now[4 * j + k] - now[4 * i + k]
        square = square + d[k] * d[k]
      end
      for k = 1, 3 do sum[k] = sum[k] + d[k] * now[4 * j + 4] * square ^ -1.5 end
    end
    for k = 1, 3 do
      velocity[4 * i + k] = sum[k] * dt
      next[4 * i + k] = now[4 * i + k] + sum[k] * dt * dt
    end
    velocity[4 * i + 4], next[4 * i + 4] = 0, now[4 * i + 4]
  end
  local out, v = mr.zeros(4 * n), mr.zeros(4 * n)
  get("nbody", "nbody_step")[{blocks(n, 64), 64}](out, v, mr.tensor(now, {dtype = "f32"}), n, dt)
  assert_near(out:totable(), next, 1e-5)
  assert_near(v:totable(), velocity, 1e-4)
end

function TestPrograms.test_mandelbrot()
  local width, height, limit = 40, 24, 60
  local left, top, scale = -2, -1.2, 0.0625
  local expected = {}
  for y = 0, height - 1 do
    for x = 0, width - 1 do
      local real, imaginary, a, b, n = left + x * scale, top + y * scale, 0, 0, 0
      while n < limit and a * a + b * b <= 4 do
        a, b = a * a - b * b + real, 2 * a * b + imaginary
        n = n + 1
      end
      expected[y * width + x + 1] = n
    end
  end
  local steps = mr.zeros(width * height, {dtype = "i32"})
  local function differences(kernel)
    get("mandelbrot", kernel)[{{blocks(width, 16), blocks(height, 8)}, {16, 8}}](steps, width, height, left, top, scale,
      limit)
    local count = 0
    for i, n in ipairs(steps:totable()) do count = count + (n ~= expected[i] and 1 or 0) end
    return count
  end
  -- Chaotic points at the edge depend on the last bit of a rounding.
  lu.assertTrue(differences("mandelbrot<double>") <= 5)
  lu.assertTrue(differences("mandelbrot<float>") <= 15)
end

function TestPrograms.test_convolutions()
  local width, height, random = 37, 21, numbers(10)
  local image = list(width * height, function() return random(256) end)
  local line, expected = { 1, 4, 6, 4, 1 }, {}
  local function at(x, y)
    x, y = math.max(0, math.min(width - 1, x)), math.max(0, math.min(height - 1, y))
    return image[y * width + x + 1]
  end
  for y = 0, height - 1 do
    for x = 0, width - 1 do
      local sum = 0
      for j = -2, 2 do
        for i = -2, 2 do sum = sum + line[j + 3] * line[i + 3] / 256 * at(x + i, y + j) end
      end
      expected[y * width + x + 1] = sum -- exact in single precision, too
    end
  end
  for _, kernel in ipairs{ "convolve", "convolve_tiled" } do
    local out = mr.zeros(width * height)
    get("convolution", kernel)[{{blocks(width, 16), blocks(height, 16)}, {16, 16}}](out,
      mr.tensor(image, {dtype = "f32"}), width, height)
    lu.assertEquals(out:totable(), expected, kernel)
  end
end

function TestPrograms.test_stencils()
  local n, random = 300, numbers(11)
  local values, expected = list(n, function() return random(1000) end), {}
  for i = 1, n do
    local sum = 0
    for k = -3, 3 do sum = sum + (values[i + k] or 0) end
    expected[i] = sum
  end
  local out = mr.zeros(n, {dtype = "i32"})
  get("stencil", "stencil_line")[{blocks(n, 128), 128}](out, i32(values), n)
  lu.assertEquals(out:totable(), expected)

  local width, height = 20, 15
  local now, next = list(width * height, function() return random(64) end), {}
  for y = 0, height - 1 do
    for x = 0, width - 1 do
      local i = y * width + x + 1
      local edge = x == 0 or y == 0 or x == width - 1 or y == height - 1
      next[i] = edge and now[i] or
        now[i] + 0.25 * (now[i - 1] + now[i + 1] + now[i - width] + now[i + width] - 4 * now[i])
    end
  end
  local result = mr.zeros(width * height)
  get("stencil", "heat_step")[{{2, 2}, {16, 8}}](result, mr.tensor(now, {dtype = "f32"}), width, height, 0.25)
  lu.assertEquals(result:totable(), next)
end

-- The distribution function of the normal distribution, by its series around 0.
local function normal(x)
  local term, sum, k = x, x, 1
  while math.abs(term) > 1e-17 * math.abs(sum) and k < 400 do
    term = term * x * x / (2 * k + 1)
    sum, k = sum + term, k + 1
  end
  return 0.5 + sum * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
end

function TestPrograms.test_black_scholes()
  local n, random, rate, volatility = 100, numbers(12), 0.02, 0.3
  local price = list(n, function() return 5 + random(250) / 10 end)
  local strike = list(n, function() return 5 + random(250) / 10 end)
  local years = list(n, function() return 0.25 + random(40) / 4 end)
  local call, put = {}, {}
  for i = 1, n do
    local spread = volatility * math.sqrt(years[i])
    local d1 = (math.log(price[i] / strike[i]) + (rate + volatility ^ 2 / 2) * years[i]) / spread
    local discounted = strike[i] * math.exp(-rate * years[i])
    call[i] = price[i] * normal(d1) - discounted * normal(d1 - spread)
    put[i] = discounted * normal(spread - d1) - price[i] * normal(-d1)
  end
  local function run(kernel, dtype, tolerance)
    local function tensor(t) return mr.tensor(t, {dtype = dtype}) end
    local c, p = mr.zeros(n, {dtype = dtype}), mr.zeros(n, {dtype = dtype})
    get("black_scholes", kernel)[{blocks(n, 64), 64}](c, p, tensor(price), tensor(strike), tensor(years), rate,
      volatility, n)
    assert_near(c:totable(), call, tolerance)
    assert_near(p:totable(), put, tolerance)
  end
  run("black_scholes<double>", "f64", 1e-11)
  run("black_scholes<float>", "f32", 1e-4)
  local c = mr.zeros(n)
  local function tensor(t) return mr.tensor(t, {dtype = "f32"}) end
  get("black_scholes", "black_scholes_fast")[{2, 64}](c, tensor(price), tensor(strike), tensor(years), rate,
    volatility, n)
  assert_near(c:totable(), call, 0.02)
end

function TestPrograms.test_recursion_and_pointers_to_functions()
  local n = 40
  local function fibonacci(k) return k < 2 and k or fibonacci(k - 1) + fibonacci(k - 2) end
  local function ackermann(m, k)
    if m == 0 then return k + 1 end
    return ackermann(m - 1, k == 0 and 1 or ackermann(m, k - 1))
  end
  local out = mr.zeros(n, {dtype = "i32"})
  get("recursion", "fibonacci")[{1, 64}](out, n)
  lu.assertEquals(out:totable(), list(n, function(i) return fibonacci((i - 1) % 16) end))
  get("recursion", "ackermann")[{1, 64}](out, n)
  lu.assertEquals(out:totable(), list(n, function(i) return ackermann((i - 1) % 3, (i - 1) % 4) end))
  local ends, areas = list(n, function(i) return i / 8 end), mr.zeros(n)
  get("recursion", "integrate")[{1, 64}](areas, mr.tensor(ends, {dtype = "f32"}), n)
  assert_near(areas:totable(), list(n, function(i) return math.atan(ends[i]) end), 1e-5)
  local a, b = list(n, function(i) return i * 3 end), list(n, function(i) return i - 20 end)
  get("recursion", "apply")[{1, 64}](out, i32(a), i32(b), i32(list(n, function(i) return i % 3 end)), n)
  lu.assertEquals(out:totable(), list(n, function(i)
    return i % 3 == 0 and a[i] + b[i] or i % 3 == 1 and a[i] - b[i] or a[i] * b[i]
  end))
end

function TestPrograms.test_switch_tables()
  local text = "a1 b2c!d e9zz"
  local weights = { [" "] = 1, a = 102, b = 1003, c = 11, d = 75, e = 706 }
  local expected = list(#text, function(i)
    local c = text:sub(i, i)
    return weights[c] or (c:find("%d") and 11) or 7007
  end)
  local out = mr.zeros(#text, {dtype = "i32"})
  get("switch_table", "classify")[{1, 32}](out, mr.tensor({ text:byte(1, -1) }, {dtype = "u8"}), #text)
  lu.assertEquals(out:totable(), expected)

  local PUSH, SUBTRACT, MULTIPLY, DUPLICATE, JUMP, LOAD_THREAD, HALT = 0, 2, 3, 5, 8, 9, 10
  local square = { LOAD_THREAD, DUPLICATE, MULTIPLY, PUSH, 3, SUBTRACT, HALT }
  local n = 12
  local results = mr.zeros(n, {dtype = "i32"})
  get("switch_table", "run_programs")[{1, 32}](results, i32(square), mr.zeros(n, {dtype = "i32"}), n, 100)
  lu.assertEquals(results:totable(), list(n, function(i) return (i - 1) * (i - 1) - 3 end))
  get("switch_table", "run_programs")[{1, 32}](results, i32{ JUMP, 0 }, mr.zeros(n, {dtype = "i32"}), n, 100)
  lu.assertEquals(results:totable(), list(n, function() return -1 end)) -- too many steps
end

function TestPrograms.test_cooperative_groups()
  local n, random = 100, numbers(13)
  local values = list(n, function() return random(200) - 100 end)
  for _, size in ipairs{ 4, 16, 32 } do
    local out, expected = mr.zeros(128 // size, {dtype = "i32"}), list(128 // size, function() return 0 end)
    for i = 1, n do expected[(i - 1) // size + 1] = expected[(i - 1) // size + 1] + values[i] end
    get("tiles", ("tile_sums<%d>"):format(size))[{2, 64}](out, i32(values), n)
    lu.assertEquals(out:totable(), expected)
  end
  local kept, used = mr.zeros(n, {dtype = "i32"}), mr.zeros(1, {dtype = "i32"})
  get("tiles", "filter")[{2, 64}](kept, used, i32(values), n)
  local expected = {}
  for _, v in ipairs(values) do if v > 0 then expected[#expected + 1] = v end end
  local got = { table.unpack(kept:totable(), 1, used:item()) }
  table.sort(got)
  table.sort(expected)
  lu.assertEquals(got, expected)
  local most = mr.zeros(1, {dtype = "i32"})
  get("tiles", "block_reduce")[{1, 96}](most, i32(values), n)
  lu.assertEquals(most:item(), math.max(table.unpack(values)))
end

function TestPrograms.test_functions_of_a_warp()
  local values = list(32, function(i) return i % 3 == 0 and 0 or i end)
  local out, kept, expected = mr.zeros(32, {dtype = "i32"}), mr.zeros(1, {dtype = "i32"}), {}
  get("warps", "compact")[{1, 32}](out, kept, i32(values))
  for _, v in ipairs(values) do if v ~= 0 then expected[#expected + 1] = v end end
  lu.assertEquals(kept:item(), #expected)
  lu.assertEquals({ table.unpack(out:totable(), 1, #expected) }, expected)

  local result = mr.zeros(256, {dtype = "i32"})
  get("warps", "shuffles")[{1, 32}](result, i32(list(32, function(i) return 100 + i - 1 end)))
  local function shuffle(lane, width, from) -- of the segment; outside it keeps its own
    local first = lane // width * width
    return 100 + ((from >= first and from < first + width) and from or lane)
  end
  expected = {}
  for lane = 0, 31 do
    local row = { 105, 100 + lane // 8 * 8 + (lane + 3) % 8, shuffle(lane, 32, lane - 3), shuffle(lane, 16, lane - 2),
      shuffle(lane, 32, lane + 7), shuffle(lane, 4, lane + 1), 100 + (lane ~ 9), 100 + (lane ~ 1) }
    for k = 1, 8 do expected[8 * lane + k] = row[k] end
  end
  lu.assertEquals(result:totable(), expected)
end

function TestPrograms.test_classes_and_lambdas()
  local a, b = mr.tensor({ 1, 2, 3, 4, 5, 6 }, {dtype = "f32"}), mr.tensor({ 7, 8, 9, 1, 2, 3 }, {dtype = "f32"})
  local out = mr.zeros(2)
  get("objects", "math::dot<3>")[{1, 32}](out, a, b, 2)
  lu.assertEquals(out:totable(), { 50, 32 })
  local squares = mr.zeros(6)
  get("objects", "transform_lambda")[{1, 4}](squares, a, 2, 6)
  lu.assertEquals(squares:totable(), { 2, 8, 18, 32, 50, 72 })
  local z, power = mr.tensor({ 1, 2, -3, 0.5 }, {dtype = "f64"}), mr.zeros(4, {dtype = "f64"})
  get("objects", "complex_power")[{1, 32}](power, z, 3, 2)
  assert_near(power:totable(), { -11, -2, -24.75, 13.375 }, 1e-14)
end

function TestPrograms.test_vector_types()
  local x, out = mr.arange(40, {dtype = "f32"}), mr.zeros(40)
  get("vectors", "copy_wide")[{1, 32}](out, x, 10)
  lu.assertTrue(mr.equal(out, x))
  local points = mr.arange(9, {dtype = "f32"})
  get("vectors", "move_points")[{1, 32}](points, string.pack("=ffffi4xxxxdd", 1, 2, 3, 10, 1, 0.5, 4), 3)
  lu.assertEquals(points:totable(), { -1, 14, 23, -31, 44, 53, -61, 74, 83 })
end

-- A thread reads other elements of shared memory behind a barrier than it has written before it.
function TestPrograms.test_neighbours()
  local sizes = { by_block = 256, by_count = 256, by_and = 256, by_or = 256, by_warp = 32, by_fence = 32 }
  for name, threads in pairs(sizes) do
    local out = mr.zeros(threads, {dtype = "i32"})
    get("neighbours", name)[{1, threads}](out)
    lu.assertEquals(out:totable(), list(threads, function(i) return i == 1 and 100 or i - 2 end), name)
  end
end

require "lua.support.compilers" "tests/lua/kernels_programs.lua"

os.exit(lu.LuaUnit.run())
