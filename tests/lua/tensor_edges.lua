-- Edges of the tensor functions that easily differ from one function to the next. They are dims of a tensor without
-- dims, empty vectors, numbers that a dtype cannot hold, and how often a result of 16 bits is rounded.
local lu = require "luaunit"
local mr = require "millrace"
local refused = require "lua.support.naive".assert_raises

TestDims = {}

-- Functions along a dim take dim 1 or -1 of a tensor without dims.
function TestDims.test_a_tensor_without_dims_counts_as_one_with_a_dim_of_one_element()
  local x, index, one = mr.tensor(2.5), mr.tensor(1), mr.tensor(1.0)
  local along = {
    roll = function(d) return x:roll(1, d) end,
    topk = function(d) return (x:topk(1, d)) end,
    transpose = function(d) return x:transpose(d, d) end,
    gather = function(d) return x:gather(d, index) end,
    scatter = function(d) return x:scatter(d, index, 2.5) end,
    scatter_add = function(d) return x:scatter_add(d, index, one) end,
    norm_1 = function(d) return x:norm { p = 1, dim = d } end,
    norm_3 = function(d) return x:norm { p = 3, dim = d } end,
  }
  for _, name in ipairs { "sum", "mean", "prod", "max", "min", "argmax", "argmin", "amax", "amin", "any", "all", "norm",
    "var", "std", "logsumexp", "softmax", "log_softmax", "cumsum", "cumprod", "sort", "argsort", "median", "flip",
    "squeeze" } do
    along[name] = function(d) return (x[name](x, d)) end
  end
  for name, f in pairs(along) do
    for _, dim in ipairs { 1, -1 } do lu.assertEquals(f(dim).shape, {}, name) end
    for _, dim in ipairs { 0, 2, -2 } do lu.assertFalse(pcall(f, dim), ("%s, dim %d"):format(name, dim)) end
  end
  for _, name in ipairs { "amax", "amin", "logsumexp", "sum", "mean", "prod" } do
    lu.assertEquals(x[name](x, -1):item(), 2.5, name)
  end
  local value, position = x:median(1, true)
  lu.assertEquals({ value:item(), position:item(), value.ndim }, { 2.5, 1, 0 })
end

-- Those that take or join parts of a dim do not: there is no dim.
function TestDims.test_there_are_no_parts_of_a_tensor_without_dims()
  local x, index = mr.tensor(2.5), mr.tensor({ 1 })
  for name, f in pairs {
    size = function(d) return x:size(d) end, select = function(d) return x:select(d, 1) end,
    narrow = function(d) return x:narrow(d, 1, 1) end, chunk = function(d) return x:chunk(1, d) end,
    split = function(d) return x:split(1, d) end, cat = function(d) return mr.cat({ x, x }, d) end,
    index_select = function(d) return x:index_select(d, index) end,
    index_add = function(d) return x:index_add(d, index, mr.ones(1)) end,
    repeat_interleave = function(d) return x:repeat_interleave(2, d) end,
  } do
    for _, dim in ipairs { 1, -1 } do lu.assertFalse(pcall(f, dim), ("%s, dim %d"):format(name, dim)) end
  end
end

TestJoining = {}

function TestJoining.test_an_empty_vector_joins_with_anything()
  local none, x = mr.empty { 0 }, mr.ones(2, 3)
  for dim = 1, 2 do
    lu.assertEquals(mr.cat({ none, x }, dim).shape, { 2, 3 })
    lu.assertTrue(mr.equal(mr.cat({ x, none, x, none }, dim), mr.cat({ x, x }, dim)))
  end
  lu.assertEquals(mr.cat({ none, none }).shape, { 0 })
  lu.assertEquals(mr.cat({ none, mr.ones(2) }).shape, { 2 })
  lu.assertEquals(mr.cat({ mr.empty({ 0 }, { dtype = "f64" }), x }).dtype, "f64")
  refused({ "dim" }, mr.cat, { none, x }, 3)
  refused({ "does not match" }, mr.cat, { none, x, mr.ones(2, 2) })
  refused({ "does not match" }, mr.stack, { none, x })
end

TestFills = {}

-- The dtype stays that of x, and what it cannot hold is an error, in both forms alike.
function TestFills.test_masked_fill_keeps_the_dtype()
  local mask = mr.tensor { true, false, true }
  local taken = { u8 = { true, 2, 255 }, i32 = { 2, -1 }, i64 = { 1 << 40 }, bool = { true }, f16 = { 2, 1.5, true } }
  local not_taken = { u8 = { 300, -1, 1.5 }, i32 = { 1 << 40, 1.5 }, i64 = { 0.5 }, bool = { 2 }, f16 = {} }
  for dtype, values in pairs(taken) do
    local x = mr.ones(3, { dtype = dtype })
    for _, value in ipairs(values) do
      lu.assertEquals(x:masked_fill(mask, value).dtype, dtype)
      lu.assertEquals(x:clone():masked_fill_(mask, value):totable(), x:masked_fill(mask, value):totable())
    end
    for _, value in ipairs(not_taken[dtype]) do
      refused({ "masked_fill", dtype }, x.masked_fill, x, mask, value)
      refused({ "masked_fill_", dtype }, x.masked_fill_, x, mask, value)
    end
  end
end

TestConversions = {}

-- Floats to u8 wrap as integers do; to i32 and i64 they saturate. In memory as with one number.
function TestConversions.test_floats_to_integers()
  local values = { -1.5, -129, 255.7, 256, 300, 1e10, -1e10, 2 ^ 31, 2 ^ 32 + 256, 1e300, -1e300, math.huge,
    -math.huge, 0 / 0 }
  local whole = { 255, 127, 255, 0, 44, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
  for _, device in ipairs { "cpu", 0 } do
    for _, dtype in ipairs { "f32", "f64" } do
      local x = mr.tensor(values, { dtype = dtype, device = device })
      lu.assertEquals(x:to "u8":totable(), whole)
      lu.assertEquals(x:to "i32":totable(), { -1, -129, 255, 256, 300, 0x7fffffff, -0x80000000, 0x7fffffff, 0x7fffffff,
        0x7fffffff, -0x80000000, 0x7fffffff, -0x80000000, 0 })
      lu.assertEquals(x[10]:to "i64":item(), math.maxinteger)
    end
  end
  lu.assertEquals(mr.tensor({ 300, -1 }, { dtype = "f16" }):to "u8":totable(), { 44, 255 })
  lu.assertEquals(mr.tensor({ 300, -1 }):to "u8":totable(), { 44, 255 })
end

TestRandom = {}

-- With 3 * 2^62 numbers: if 2^64 random words are spread over them, every third number comes twice as often.
function TestRandom.test_wide_ranges_are_uniform()
  mr.manual_seed(1)
  local low = -(1 << 62) - 1
  for _, device in ipairs { "cpu", 0 } do
    local x, counts = mr.randint(low, math.maxinteger, { 20000 }, { device = device }), { [0] = 0, 0, 0 }
    for _, v in ipairs(x:totable()) do
      local distance = v - low -- without a sign
      local rest = ((distance >> 1) % 3 * 2 + (distance & 1)) % 3
      counts[rest] = counts[rest] + 1
    end
    for rest = 0, 2 do lu.assertAlmostEquals(counts[rest] / 20000, 1 / 3, 0.02) end
  end
end

TestHalves = {}

-- Functions of several operations round as one does: once.
function TestHalves.test_functions_of_several_operations_round_once()
  mr.manual_seed(3)
  for _, dtype in ipairs { "f16", "bf16" } do
    local function random(...) return mr.randn(...):mul(3):add(1):to(dtype) end
    local x, w, b = random(7, 33), random(33), random(33)
    local rows = { mean = random(7), var = mr.rand(7):add(0.5):to(dtype), weight = random(7), bias = random(7) }
    local images, classes = random(5, 7, 4), mr.randint(1, 34, { 7 })
    local function both(f) -- f(convert): in f32, rounded, and as it is
      return f(function(t) return t:to "f32" end):to(dtype), f(function(t) return t end)
    end
    local cases = {
      layer_norm = function(c) return c(x):layer_norm(33, { weight = c(w), bias = c(b) }) end,
      batch_norm = function(c)
        return c(images):batch_norm(c(rows.mean), c(rows.var), { weight = c(rows.weight), bias = c(rows.bias) })
      end,
      batch_norm_trained = function(c)
        return c(images):batch_norm(nil, nil, { weight = c(rows.weight), bias = c(rows.bias), training = true })
      end,
      running_mean = function(c)
        local mean = c(rows.mean):clone()
        c(images):batch_norm(mean, c(rows.var):clone(), { training = true })
        return mean
      end,
      logsumexp = function(c) return c(x):logsumexp(2) end,
      norm = function(c) return c(x):norm { p = 3, dim = 1 } end,
      mse_loss = function(c) return c(x):mse_loss(c(b)) end,
      cross_entropy = function(c) return c(x):cross_entropy(classes, { weight = c(w):abs() }) end,
      smoothed = function(c) return c(x):cross_entropy(classes, { label_smoothing = 0.1 }) end,
      probabilities = function(c) return c(x):cross_entropy(c(x):softmax(2):to(dtype):to(c(x).dtype)) end,
    }
    for name, f in pairs(cases) do
      local expected, got = both(f)
      lu.assertEquals(got.dtype, dtype, name)
      lu.assertTrue(mr.equal(got, expected), ("%s of %s is rounded more than once"):format(name, dtype))
    end
  end
end

os.exit(lu.LuaUnit.run())
