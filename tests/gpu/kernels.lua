-- Programs of tests/kernels on a GPU. A second process computes the same values on the virtual GPU, and all are
-- compared bit for bit. Values that a few lines of Lua can tell are compared with these, too. Results that PTX leaves
-- open (its approximations, and functions that are built on them) are only compared to a tolerance.
-- timeout: 120
-- not replayed: a second process computes what this one is compared with
--
--     millrace --device cuda tests/gpu/kernels.lua [FILE]      needs a compiler of kernels there: NVRTC or clang
--     millrace --device cuda tests/gpu/kernels.lua say [FILE]  only prints the values [of one file]
--
-- No operation but copies and kernels is used.
local mr = require "millrace"

local says = arg and arg[1] == "say"
local only = arg and arg[says and 2 or 1]

-- ---------------------------------------------------------------- data

-- Small integers that look random: sums of them are exact in f32, in any order.
local function small(i) return (i * 2654435761 >> 9 & 127) - 50 end
local function fraction(i) return (i * 2654435761 >> 7 & 0xffff) / 4096 + 0.001 end

local function list(n, fn)
  local t = {}
  for i = 1, n do t[i] = fn(i) end
  return t
end
local function tensor(dtype, values) return mr.tensor(values, { dtype = dtype }) end
-- Copied there: what fills memory on a device is a kernel of the backend.
local function zeros(dtype, n) return tensor(dtype, list(n, function() return 0 end)) end

-- ---------------------------------------------------------------- programs

-- By file: run(get) launches kernels and returns what they made: {name, tensor, expected list, tolerance, sum}, where
-- all but the first two may be nil.
local programs = {}

function programs.vector_add(get)
  local n = 1000
  local a, b = list(n, fraction), list(n, function(i) return fraction(i + n) end)
  local x, y, one, strided = tensor("f32", a), tensor("f32", b), zeros("f32", n), zeros("f32", n)
  get "vector_add"[{ 4, 256 }](one, x, y, n)
  get "vector_add_stride"[{ 2, 128 }](strided, x, y, n)
  local function rounded(v) return (string.unpack("f", string.pack("f", v))) end
  local sum = list(n, function(i) return rounded(rounded(a[i]) + rounded(b[i])) end)
  return { { "one", one, sum }, { "strided", strided, sum } }
end

function programs.saxpy(get)
  local n = 500
  local x = list(n, small)
  local results = {}
  for name, dtype in pairs{ saxpy = "f32", ["axpy<double>"] = "f64", ["axpy<int>"] = "i32" } do
    local y = tensor(dtype, list(n, function(i) return small(i + n) end))
    get(name)[{ 4, 128 }](y, tensor(dtype, x), 3, n)
    results[#results + 1] = { name, y, list(n, function(i) return 3 * small(i) + small(i + n) end) }
  end
  return results
end

function programs.reduce(get)
  local n, total = 2000, 0
  local values = list(n, small)
  for _, v in ipairs(values) do total = total + v end
  local input, results = tensor("f32", values), {}
  local function run(name, grid, block, shared)
    local partial = zeros("f32", grid)
    get(name)[{ grid, block, shared }](partial, input, n)
    results[#results + 1] = { name, partial, nil, nil, total }
  end
  run("reduce_divergent", 8, 256, 1024)
  run("reduce_strided", 8, 256, 1024)
  run("reduce_sequential", 8, 256, 1024)
  run("reduce_first_add", 4, 256, 1024)
  run("reduce_last_warp", 4, 256, 1024)
  run("reduce_unrolled<128>", 8, 128)
  run("reduce_unrolled<256>", 4, 256)
  run("reduce_grid_stride<256>", 3, 256)
  run("reduce_shuffle", 8, 256)
  return results
end

function programs.scan(get)
  local n = 256
  local values, inclusive, exclusive, sum = list(n, small), {}, {}, 0
  for i, v in ipairs(values) do
    exclusive[i] = sum
    sum = sum + v
    inclusive[i] = sum
  end
  local input = tensor("i32", values)
  local a, b, c, totals = zeros("i32", n), zeros("i32", n), zeros("i32", n), zeros("i32", 1)
  get "scan_inclusive"[{ 1, n, 8 * n }](a, input, n)
  get "scan_exclusive"[{ 1, n // 2, 4 * n }](b, input, totals, n)
  get "scan_warps"[{ 1, n }](c, input, n)
  return { { "inclusive", a, inclusive }, { "exclusive", b, exclusive }, { "totals", totals, { sum } },
    { "warps", c, inclusive } }
end

function programs.histogram(get)
  local n = 5000
  local counts, data = list(256, function() return 0 end), list(n, function(i) return small(i) + 50 end)
  for _, v in ipairs(data) do counts[v + 1] = counts[v + 1] + 1 end
  local bytes, one, shared = tensor("u8", data), zeros("i32", 256), zeros("i32", 256)
  get "histogram_global"[{ 6, 128 }](one, bytes, n)
  get "histogram_shared"[{ 6, 128 }](shared, bytes, n)
  return { { "global", one, counts }, { "shared", shared, counts } }
end

function programs.transpose(get)
  local width, height = 70, 45
  local input, expected = tensor("f32", list(width * height, fraction)), {}
  local from = input:totable()
  for x = 0, width - 1 do
    for y = 0, height - 1 do expected[x * height + y + 1] = from[y * width + x + 1] end
  end
  local results = {}
  for _, name in ipairs{ "transpose_direct", "transpose_shared", "transpose_padded" } do
    local out = zeros("f32", width * height)
    get(name)[{ { 3, 2 }, { 32, 8 } }](out, input, width, height)
    results[#results + 1] = { name, out, expected }
  end
  return results
end

function programs.matmul(get)
  local rows, inner, columns = 33, 20, 40
  local a, b, product = list(rows * inner, small), list(inner * columns, small), {}
  for r = 0, rows - 1 do
    for c = 0, columns - 1 do
      local sum = 0
      for k = 0, inner - 1 do sum = sum + a[r * inner + k + 1] * b[k * columns + c + 1] end
      product[r * columns + c + 1] = sum
    end
  end
  local results = {}
  local function run(name, size)
    local out = zeros("f32", rows * columns)
    local grid = { (columns + size - 1) // size, (rows + size - 1) // size }
    get(name)[{ grid, { size, size } }](out, tensor("f32", a), tensor("f32", b), rows, inner, columns)
    results[#results + 1] = { name, out, product }
  end
  run("matmul_direct", 16)
  run("matmul_tiled<16>", 16)
  run("matmul_tiled<32>", 32)
  local n = 24
  local x, out = tensor("f64", list(n * n, fraction)), zeros("f64", n * n)
  get "matmul_double"[{ { 2, 2 }, { 16, 16 } }](out, x, x, n)
  results[#results + 1] = { "matmul_double", out }
  return results
end

function programs.bitonic_sort(get)
  local n = 256
  local values, all = list(n, fraction), list(4 * n, small)
  local block, steps = tensor("f32", values), tensor("i32", all)
  get "bitonic_block"[{ 1, n, 4 * n }](block)
  local step, size = get "bitonic_step", 2
  while size <= 4 * n do
    local distance = size // 2
    while distance > 0 do
      step[{ 4, n }](steps, distance, size)
      distance = distance // 2
    end
    size = size * 2
  end
  local sorted = tensor("f32", values):totable()
  table.sort(sorted)
  table.sort(all)
  return { { "block", block, sorted }, { "steps", steps, all } }
end

function programs.stencil(get)
  local n, radius = 300, 3
  local values, expected = list(n, small), {}
  for i = 1, n do
    local sum = 0
    for k = -radius, radius do sum = sum + (values[i + k] or 0) end
    expected[i] = sum
  end
  local out = zeros("i32", n)
  get "stencil_line"[{ 3, 128 }](out, tensor("i32", values), n)
  local width, height = 40, 30
  local now, next = tensor("f32", list(width * height, fraction)), zeros("f32", width * height)
  get "heat_step"[{ { 3, 2 }, { 16, 16 } }](next, now, width, height, 0.1)
  return { { "line", out, expected }, { "heat", next } }
end

function programs.mandelbrot(get)
  local width, height = 48, 32
  local results = {}
  for name, dtype in pairs{ ["mandelbrot<float>"] = "f32", ["mandelbrot<double>"] = "f64" } do
    local steps = zeros("i32", width * height)
    get(name)[{ { 3, 2 }, { 16, 16 } }](steps, width, height, -2.0, -1.0, 0.0625, 200)
    results[#results + 1] = { dtype, steps }
  end
  return results
end

function programs.monte_carlo(get)
  local inside = zeros("i64", 1)
  get "count_inside"[{ 4, 64 }](inside, 12345, 50)
  return { { "inside", inside } }
end

function programs.convolution(get)
  local width, height = 40, 30
  local image, a, b = tensor("f32", list(width * height, small)), zeros("f32", width * height),
    zeros("f32", width * height)
  get "convolve"[{ { 3, 2 }, { 16, 16 } }](a, image, width, height)
  get "convolve_tiled"[{ { 3, 2 }, { 16, 16 } }](b, image, width, height)
  return { { "direct", a }, { "tiled", b } }
end

function programs.nbody(get)
  local n = 100
  local now = tensor("f32", list(4 * n, fraction))
  local next, velocity = zeros("f32", 4 * n), zeros("f32", 4 * n)
  get "nbody_step"[{ 2, 64 }](next, velocity, now, n, 0.01)
  return { { "positions", next, nil, 1e-5 }, { "velocities", velocity, nil, 1e-4 } }
end

function programs.black_scholes(get)
  local n = 200
  local function column(first, scale) return list(n, function(i) return first + fraction(i + first) * scale end) end
  local results = {}
  local function run(name, dtype, tolerance)
    local call, put = zeros(dtype, n), zeros(dtype, n)
    local price, strike = tensor(dtype, column(40, 2)), tensor(dtype, column(41, 2))
    local years = tensor(dtype, column(1, 0.3))
    if name == "black_scholes_fast" then get(name)[{ 2, 128 }](call, price, strike, years, 0.02, 0.3, n)
    else get(name)[{ 2, 128 }](call, put, price, strike, years, 0.02, 0.3, n) end
    results[#results + 1] = { name .. " call", call, nil, tolerance }
    results[#results + 1] = { name .. " put", put, nil, tolerance }
  end
  run("black_scholes<float>", "f32", 1e-4)
  run("black_scholes<double>", "f64", 1e-10)
  run("black_scholes_fast", "f32", 1e-3)
  return results
end

function programs.radix_sort(get)
  local n = 128
  local values = list(n, function(i) return i * 2654435761 >> 3 & 0x7fffffff end)
  local keys = tensor("i32", values)
  get "radix_sort_block"[{ 1, n, 8 * n }](keys)
  table.sort(values)
  return { { "block", keys, values } }
end

function programs.warps(get)
  local input, shuffled, votes, matches = tensor("i32", list(64, small)), zeros("i32", 8 * 64), zeros("i32", 4 * 32),
    zeros("i32", 3 * 32)
  get "shuffles"[{ 1, 64 }](shuffled, input)
  get "votes"[{ 1, 32 }](votes, input)
  get "matches"[{ 1, 32 }](matches, tensor("i32", list(32, function(i) return small(i) % 5 end)))
  return { { "shuffles", shuffled }, { "votes", votes }, { "matches", matches } }
end

function programs.integers(get)
  local n = 100
  local function word(i) return ((i * 2654435761) ~ (i << 40)) * 0x9e3779b1 end
  local function half(i) return (word(i) & 0xffffffff) - 0x80000000 end
  local bits, products, divisions = zeros("i32", 10 * n), zeros("i64", 7 * n), zeros("i32", 6 * n)
  get "bit_functions"[{ 1, 128 }](bits, tensor("i32", list(n, half)), n)
  get "products"[{ 1, 128 }](products, tensor("i64", list(n, word)), n)
  local by = tensor("i32", list(n, function(i) return i - 50 end))
  get "divisions"[{ 1, 128 }](divisions, tensor("i32", list(n, half)), by, n)
  return { { "bits", bits }, { "products", products }, { "divisions", divisions } }
end

function programs.last_block(get)
  local n, sum = 3000, 0
  local values = list(n, small)
  for _, v in ipairs(values) do sum = sum + v end
  local out, partial, input = zeros("f32", 1), zeros("f32", 8), tensor("f32", values)
  for _ = 1, 3 do get "sum_all<128>"[{ 8, 128 }](out, partial, input, n) end
  return { { "sum", out, { sum } } }
end

function programs.neighbours(get)
  local results = {}
  for _, name in ipairs{ "by_block", "by_count", "by_and", "by_or", "by_warp", "by_fence" } do
    local threads = (name == "by_warp" or name == "by_fence") and 32 or 256
    local out = zeros("i32", threads)
    get(name)[{ 1, threads }](out)
    results[#results + 1] = { name, out, list(threads, function(i) return i == 1 and 100 or i - 2 end) }
  end
  return results
end

-- ---------------------------------------------------------------- running

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

-- A function that gives the kernels of a file by their names. Without -fmad=false the driver may fuse a product and a
-- sum.
local function kernels_of(name, text)
  local names = {}
  for kernel in text:gmatch "\n// kernel: ([^\n]+)" do names[#names + 1] = kernel end
  local m = mr.module({ path = "tests/kernels/" .. name .. ".cu" }, { names = names, options = "-fmad=false" })
  return function(kernel) return m:get(kernel) end
end

local function words_of(t)
  local words = t:totable()
  for i, v in ipairs(words) do words[i] = math.type(v) == "integer" and ("%d"):format(v) or ("%a"):format(v) end
  return words
end

local failures, checks = 0, 0
local function fail(text, ...)
  failures = failures + 1
  print(text:format(...))
end

local function check_expected(where, words, result)
  local expected, total = result[3], result[5]
  local sum = 0
  for i, word in ipairs(words) do
    sum = sum + tonumber(word)
    if expected and tonumber(word) ~= expected[i] then
      return fail("%s, element %d: got %s, expected %s", where, i, word, tostring(expected[i]))
    end
  end
  if total and sum ~= total then fail("%s: the sum is %s, expected %s", where, sum, total) end
  checks = checks + ((expected or total) and 1 or 0)
end

-- {name of a result = {words, tolerance}}, in the order of the program.
local function run_program(name, text)
  local results = programs[name](kernels_of(name, text))
  local said = {}
  for _, result in ipairs(results) do
    local where, words = name .. ": " .. result[1], words_of(result[2])
    if not says then check_expected(where, words, result) end
    said[#said + 1] = { where, words, result[4] }
  end
  return said
end

local function is_near(a, b, tolerance)
  a, b = tonumber(a), tonumber(b)
  return a == b or math.abs(a - b) <= tolerance * math.max(1, math.abs(a))
end

local function compare(where, words, others, tolerance)
  if not others then return fail("%s: the virtual GPU gives nothing", where) end
  for i, word in ipairs(words) do
    local same = word == others[i] or (tolerance and others[i] and is_near(word, others[i], tolerance))
    if not same then return fail("%s, element %d: got %s, the virtual GPU %s", where, i, word, others[i]) end
  end
  checks = checks + 1
end

local function on_the_virtual_gpu()
  local quoted = "'" .. (os.getenv "MILLRACE" or "build/millrace"):gsub("'", "'\\''") .. "'"
  local pipe = io.popen(("%s --device virtual '%s' say%s"):format(quoted, arg[0], only and " " .. only or ""))
  local said = {}
  for line in pipe:lines() do
    local where, words = line:match "^([^\t]+)\t(.*)$"
    if where then
      said[where] = {}
      for word in words:gmatch "%S+" do table.insert(said[where], word) end
    end
  end
  pipe:close()
  return said
end

local names = {}
for name in pairs(programs) do names[#names + 1] = name end
table.sort(names)

local all = {}
for _, name in ipairs(names) do
  local text = read("tests/kernels/" .. name .. ".cu")
  if text and (not only or only == name) then
    local ok, said = pcall(run_program, name, text)
    if not ok and type(said) == "table" and said.code == "not-supported" and tostring(said):find "no compiler" then
      print("not available: " .. tostring(said))
      os.exit(77, true)
    end
    if not ok then error(said, 0) end
    for _, entry in ipairs(said) do all[#all + 1] = entry end
  end
end
if says then
  for _, entry in ipairs(all) do print(entry[1] .. "\t" .. table.concat(entry[2], " ")) end
  return
end
local others = on_the_virtual_gpu()
for _, entry in ipairs(all) do compare(entry[1], entry[2], others[entry[1]], entry[3]) end
print(("%d results of %d, %s beside the virtual GPU: %d comparisons"):format(#all, #names, mr.backend, checks))
print(("%d passed, %d failed"):format(checks, failures))
if failures > 0 then os.exit(1, true) end
