-- Functions that are made of several operations (amax, logsumexp, tile, diag ...), compared with plain loops, and their
-- gradients with difference quotients. Values that are easy to get wrong are PyTorch's.
local lu = require "luaunit"
local mr = require "millrace"
local gradients = require "lua.support.gradients"
local naive = require "lua.support.naive"

local inf, nan = math.huge, 0 / 0

local function distinct(r, shape)
  local values = {}
  for k = 1, naive.numel(shape) do values[k] = k * 0.25 - 3 end
  for k = #values, 2, -1 do
    local other = r.integer(1, k)
    values[k], values[other] = values[other], values[k]
  end
  return mr.tensor(values, { dtype = "f64", device = "cpu" }):reshape(shape)
end

TestReductions = {}

function TestReductions.test_amax_and_amin_are_max_and_min_without_positions()
  local r = naive.random(3)
  for _ = 1, 40 do
    local x = distinct(r, r.shape(r.integer(1, 3), 4))
    local dim = r.integer(1, x.ndim)
    for _, keepdim in ipairs { false, true } do
      lu.assertTrue(mr.equal(x:amax(dim, keepdim), (x:max(dim, keepdim))))
      lu.assertTrue(mr.equal(mr.amin(x, dim - x.ndim - 1, keepdim), (x:min(dim, keepdim))))
      lu.assertEquals(select("#", x:amax(dim, keepdim)), 1)
    end
    lu.assertEquals(x:amax():item(), x:max():item())
    gradients.check("amax", function(t) return t:amax(dim) end, x)
  end
  lu.assertEquals(mr.tensor({ { 1, 7 }, { 3, 4 } }):amax({ 1, 2 }):item(), 7)
  lu.assertEquals(mr.tensor(2.5):amin():item(), 2.5)
end

-- From PyTorch 1.13: torch.amax(x, 0) of [[1, 5], [5, 5]] has the gradient [[0, .5], [1, .5]].
function TestReductions.test_equal_elements_share_the_gradient()
  local x = mr.tensor({ { 1.0, 5.0 }, { 5.0, 5.0 } }, { requires_grad = true })
  x:amax(1):sum():backward()
  lu.assertEquals(x.grad:totable(), { { 0, 0.5 }, { 1, 0.5 } })
end

function TestReductions.test_logsumexp()
  local r = naive.random(4)
  for _ = 1, 20 do
    local x = distinct(r, r.shape(r.integer(1, 3), 4))
    local dim = r.integer(1, x.ndim)
    lu.assertTrue(mr.allclose(x:logsumexp(dim), x:exp():sum(dim):log()))
    lu.assertEquals(x:logsumexp(dim, true).shape, x:sum(dim, true).shape)
    gradients.check("logsumexp", function(t) return t:logsumexp(dim) end, x)
  end
  -- PyTorch's values for rows without a finite greatest element, and for those that overflow.
  local x = mr.tensor { { -inf, -inf }, { inf, 1 }, { 1000, 1000 }, { nan, 0 }, { -inf, 2 } }
  local y = x:logsumexp(2):totable()
  lu.assertEquals({ y[1], y[2], y[5] }, { -inf, inf, 2 })
  lu.assertAlmostEquals(y[3], 1000.6931, 1e-3)
  lu.assertNotEquals(y[4], y[4])
  lu.assertAlmostEquals(mr.ones(2, 3):logsumexp():item(), 1 + math.log(6), 1e-6)
  lu.assertAlmostEquals(mr.tensor(0.5):logsumexp():item(), 0.5, 1e-7)
end

function TestReductions.test_wrong_arguments()
  local x = mr.ones(2, 3)
  naive.assert_raises({ "amax", "dim 3", "2x3" }, function() x:amax(3) end)
  naive.assert_raises({ "amax", "listed twice" }, function() x:amax { 1, -2 } end)
  naive.assert_raises({ "amin", "keepdim" }, function() x:amin(1, 1) end)
  naive.assert_raises({ "logsumexp", "i64" }, function() mr.tensor { 1 }:logsumexp(1) end)
  naive.assert_raises({ "amax", "expected a tensor" }, function() mr.amax(3) end)
end

TestShapes = {}

function TestShapes.test_tile()
  local x = mr.tensor { { 1, 2 }, { 3, 4 } }
  lu.assertEquals(x:tile(2):totable(), { { 1, 2, 1, 2 }, { 3, 4, 3, 4 } })
  lu.assertEquals(x:tile(2, 1):totable(), { { 1, 2 }, { 3, 4 }, { 1, 2 }, { 3, 4 } })
  lu.assertEquals(x:tile({ 2, 1, 1 }).shape, { 2, 2, 2 })
  lu.assertEquals(x:tile(0, 1).shape, { 0, 2 })
  lu.assertEquals(mr.tensor(7):tile(3):totable(), { 7, 7, 7 })
  local copy = x:tile(1, 1)
  copy:zero_()
  lu.assertEquals(x[1]:totable(), { 1, 2 })
  gradients.check("tile", function(t) return t:tile(2, 3) end, distinct(naive.random(1), { 2, 3 }))
  naive.assert_raises({ "tile", "argument 1" }, function() x:tile(-1) end)
end

function TestShapes.test_repeat_interleave()
  local x = mr.tensor { { 1, 2 }, { 3, 4 } }
  lu.assertEquals(x:repeat_interleave(2):totable(), { 1, 1, 2, 2, 3, 3, 4, 4 })
  lu.assertEquals(x:repeat_interleave(2, 1):totable(), { { 1, 2 }, { 1, 2 }, { 3, 4 }, { 3, 4 } })
  lu.assertEquals(x:repeat_interleave(2, -1):totable(), { { 1, 1, 2, 2 }, { 3, 3, 4, 4 } })
  gradients.check("repeat_interleave", function(t) return t:repeat_interleave(3, 2) end,
    distinct(naive.random(2), { 2, 3 }))
  naive.assert_raises({ "repeat_interleave", "a tensor" }, function() x:repeat_interleave(x) end)
end

function TestShapes.test_diag_agrees_with_loops()
  local r = naive.random(7)
  for _ = 1, 40 do
    local rows, columns, k = r.integer(1, 5), r.integer(1, 5), r.integer(-5, 5)
    local x, expected = distinct(r, { rows, columns }), {}
    for i = 1, rows do
      if i + k >= 1 and i + k <= columns then expected[#expected + 1] = x[{ i, i + k }]:item() end
    end
    lu.assertEquals(x:diag(k):totable(), expected)
    gradients.check("diag", function(t) return t:diag(k) end, x)
    local v = x[1]:clone()
    local m = v:diag(k)
    lu.assertEquals(m.shape, { columns + math.abs(k), columns + math.abs(k) })
    lu.assertTrue(mr.equal(m:diag(k), v))
    lu.assertEquals(m:sum():item(), v:sum():item())
    gradients.check("diag of a vector", function(t) return t:diag(k) end, v)
  end
  naive.assert_raises({ "diag", "2x2x2" }, function() mr.ones(2, 2, 2):diag() end)
end

function TestShapes.test_like_another()
  local x = mr.arange(6)
  lu.assertEquals(x:view_as(mr.ones(2, 3)):totable(), { { 0, 1, 2 }, { 3, 4, 5 } })
  lu.assertEquals(mr.ones(3, 1):expand_as(mr.ones(3, 4)).stride, { 1, 0 })
  lu.assertEquals(mr.ones(1):view_as(mr.ones()).ndim, 0)
  naive.assert_raises({ "view_as", "expected a tensor" }, function() x:view_as(3) end)
end

function TestShapes.test_one_hot()
  local x = mr.tensor { { 1, 3 }, { 2, 1 } }
  lu.assertEquals(x:one_hot():totable(), { { { 1, 0, 0 }, { 0, 0, 1 } }, { { 0, 1, 0 }, { 1, 0, 0 } } })
  lu.assertEquals(x:one_hot(5).shape, { 2, 2, 5 })
  lu.assertEquals(x:one_hot().dtype, "i64")
  lu.assertEquals(mr.tensor(2):one_hot(3):totable(), { 0, 1, 0 })
  naive.assert_raises({ "one_hot", "f32" }, function() mr.ones(2):one_hot(3) end)
  naive.assert_raises({ "one_hot", "at least 1" }, function() x:one_hot(0) end)
  naive.assert_raises("out of range", function() x:cpu():one_hot(2) end)
end

-- Each waits for values on the host, which a capture refuses: before anything is submitted.
function TestShapes.test_what_waits_in_a_capture()
  local x, p = mr.tensor { 1, 2 }, mr.ones(2)
  local function allocations() return mr.memory.stats().total_allocations end
  for name, fn in pairs { one_hot = function() x:one_hot() end, unique = function() x:unique() end,
    multinomial = function() p:multinomial(1) end } do
    local before = allocations()
    naive.assert_raises({ name, "is capturing" }, mr.graph, fn)
    lu.assertEquals(allocations(), before)
  end
end

TestChoosing = {}

function TestChoosing.test_wrong_arguments()
  local x = mr.ones(2, 3)
  naive.assert_raises({ "median", "dim 3", "2x3" }, function() x:median(3) end)
  naive.assert_raises({ "median", "no elements" }, function() mr.ones(0):median() end)
  naive.assert_raises({ "median", "dim 2 has no elements" }, function() mr.ones(3, 0):median(2) end)
  naive.assert_raises({ "median", "keepdim" }, function() x:median(1, 2) end)
  naive.assert_raises({ "unique", "`dim`" }, function() x:unique { dim = 1 } end)
  naive.assert_raises({ "unique", "return_counts" }, function() x:unique { return_counts = 1 } end)
  naive.assert_raises({ "unique", "derivative" }, function() x:clone():requires_grad_():unique() end)
  naive.assert_raises({ "scatter", "the index" }, function() x:scatter(1, x, 1) end)
  naive.assert_raises({ "scatter_add", "expected" }, function() x:scatter_add(1, mr.tensor { 1 }, x) end)
  naive.assert_raises("out of range", function() mr.ones({ 2 }, { device = "cpu" }):scatter(1, mr.tensor({ 3 },
    { device = "cpu" }), 1) end)
end

-- The order of a line by Lua's sort; equal elements stay in theirs.
local function naive_order(list, descending)
  local order = {}
  for k = 1, #list do order[k] = k end
  table.sort(order, function(a, b)
    if list[a] == list[b] then return a < b end
    if descending then return list[a] > list[b] end
    return list[a] < list[b]
  end)
  return order
end

local function check_sorted(x, descending, what)
  local list, values, positions = x:totable(), x:sort(1, descending)
  local order, sorted = naive_order(list, descending), {}
  for k, i in ipairs(order) do sorted[k] = list[i] end
  lu.assertTrue(mr.equal(positions, mr.tensor(order, { dtype = "i64", device = x.device })), what)
  lu.assertTrue(mr.equal(values, mr.tensor(sorted, { dtype = x.dtype, device = x.device })), what)
  lu.assertTrue(mr.equal(positions, x:argsort(1, descending)), what)
  local different = {}
  for k, v in ipairs(sorted) do
    if sorted[k + (descending and 1 or -1)] ~= v then table.insert(different, descending and 1 or #different + 1, v) end
  end
  lu.assertTrue(mr.equal(x:unique(), mr.tensor(different, { dtype = x.dtype, device = x.device })), what)
end

-- Lines long and short, of numbers that are near each other, that reach from end to end of their type, that are equal.
function TestChoosing.test_sort_against_lua()
  local least, greatest = math.mininteger, math.maxinteger
  local ranges = { i64 = { { 0, 1000 }, { -5, 5 }, { least, least + 70000 }, { -3 * 2 ^ 33 // 1 | 0, 2 ^ 34 // 1 | 0 },
    { 7, 8 } }, i32 = { { -1000, 1000 }, { -2 ^ 31 // 1 | 0, 2 ^ 31 // 1 | 0 } }, u8 = { { 0, 256 } } }
  mr.manual_seed(3)
  for dtype, list in pairs(ranges) do
    for _, range in ipairs(list) do
      for _, length in ipairs { 1, 2, 65, 700, 9000 } do
        local what = ("%s from %d to %d, %d of them"):format(dtype, range[1], range[2], length)
        local x = mr.randint(range[1], range[2], { length }, { dtype = dtype, device = "cpu" })
        check_sorted(x, length % 2 == 0, what)
        check_sorted(mr.stack({ x, x }, 2):select(2, 2), length % 2 == 1, what .. ", apart")
      end
    end
  end
  local whole = mr.randint(least, greatest, { 9000 }, { device = "cpu" })
  whole:narrow(1, 100, 3):copy_(mr.tensor({ greatest, least, least }, { dtype = "i64", device = "cpu" }))
  check_sorted(whole, false, "all of i64")
  check_sorted(whole:to(mr.device(0)), true, "all of i64 on the device")
  for _, dtype in ipairs { "f32", "f64", "f16" } do
    check_sorted(mr.randn(9000, { device = "cpu" }):to(dtype), dtype == "f64", dtype)
  end
end

-- PyTorch's values for integers; floats are in network_torch.lua.
function TestChoosing.test_median_of_integers()
  local values, positions = mr.tensor({ { 5, 2 }, { 1, 2 }, { 4, 9 }, { 3, 0 } }):median(1)
  lu.assertEquals({ values:totable(), values.dtype, positions[1]:item() }, { { 3, 2 }, "i64", 4 })
  lu.assertEquals(mr.tensor({ true, false }):median():item(), false)
  lu.assertEquals(mr.tensor({ 3, 1, 2 }):median { dim = 1, keepdim = true }:totable(), { 2 })
end

-- The result is a new tensor, also of an expanded view, and where the source is the tensor itself.
function TestChoosing.test_scatter_returns_a_copy()
  local x, index = mr.arange(4), mr.tensor { 4, 3 }
  lu.assertEquals(x:scatter(1, index, x):totable(), { 0, 1, 1, 0 })
  lu.assertEquals(x:totable(), { 0, 1, 2, 3 })
  lu.assertEquals(mr.zeros(1):expand(3):scatter(1, mr.tensor { 2 }, 5):totable(), { 0, 5, 0 })
  lu.assertEquals(mr.zeros(3):index_add(1, mr.tensor { 2, 2 }, mr.ones(2)):totable(), { 0, 2, 0 })
  local none = mr.tensor({}, { dtype = "i64" })
  lu.assertEquals(x:scatter(1, none, 1):totable(), x:totable())
  local a, b = distinct(naive.random(5), { 3, 4 }), distinct(naive.random(6), { 2, 4 })
  local at = mr.tensor({ { 1, 3, 2, 1 }, { 2, 1, 1, 3 } }, { device = "cpu" })
  gradients.check("scatter", function(t, u) return t:scatter(1, at, u) end, a, b)
  gradients.check("scatter_add", function(t, u) return t:scatter_add(1, at, u) end, a, b)
  local rows = mr.tensor({ 3, 1 }, { device = "cpu" })
  gradients.check("index_add", function(t, u) return t:index_add(1, rows, u) end, a, b)
end

TestNorms = {}

function TestNorms.test_the_number_in_parentheses_is_a_dim()
  local x = mr.tensor { { 3.0, -4.0 }, { 0.0, 2.0 } }
  lu.assertEquals(x:norm(2):totable(), { 5, 2 })
  lu.assertEquals(x:norm(2, { p = 1 }):totable(), { 7, 2 })
  lu.assertEquals(x:norm(1, true, { p = inf }):totable(), { { 3, 4 } })
  lu.assertEquals(x:norm({ p = 2, dim = 2, keepdim = true }):totable(), { { 5 }, { 2 } })
  lu.assertEquals(mr.norm(x, { p = 0 }):item(), 3)
  lu.assertEquals(mr.tensor({ 3, -4 }):norm({ p = 1 }):item(), 7)
  local out = mr.zeros(2)
  x:norm(2, { p = 2, out = out })
  lu.assertEquals(out:totable(), { 5, 2 })
  lu.assertEquals(mr.tensor({ 1, 2 }, { dtype = "f16" }):norm({ p = 3 }).dtype, "f16")
  lu.assertTrue(mr.tensor({ nan, 1 }):norm({ p = inf }):isnan():item())
end

function TestNorms.test_wrong_arguments()
  local x = mr.ones(2, 3)
  naive.assert_raises({ "norm", "p is fro" }, function() x:norm { p = "fro" } end)
  naive.assert_raises({ "norm", "p is -1" }, function() x:norm { p = -1 } end)
  naive.assert_raises({ "norm", "dim 3" }, function() x:norm(3, { p = 1 }) end)
  naive.assert_raises({ "norm", "`q`" }, function() x:norm { p = 1, q = 1 } end)
  naive.assert_raises({ "norm", "out=" }, function() x:norm { p = 1, out = x } end)
end

TestEinsum = {}

-- Sums over all values of all letters, one after the other.
local function by_hand(inputs, result, operands)
  local sizes, letters = {}, {}
  for i, input in ipairs(inputs) do
    for d = 1, #input do
      local letter = input:sub(d, d)
      if not sizes[letter] then letters[#letters + 1] = letter end
      sizes[letter] = operands[i]:size(d)
    end
  end
  local shape, at = {}, {}
  for d = 1, #result do shape[d] = sizes[result:sub(d, d)] end
  local sums = mr.zeros(shape, { dtype = "f64", device = "cpu" })
  local function indices(labels)
    local list = {}
    for d = 1, #labels do list[d] = at[labels:sub(d, d)] end
    return list
  end
  local function visit(k)
    if k <= #letters then
      for value = 1, sizes[letters[k]] do
        at[letters[k]] = value
        visit(k + 1)
      end
      return
    end
    local product = 1
    for i, input in ipairs(inputs) do
      product = product * (#input == 0 and operands[i] or operands[i][indices(input)]):item()
    end
    local place = #result == 0 and sums or sums[indices(result)]
    place:add_(product)
  end
  visit(1)
  return sums
end

-- Two or three operands with letters of their own and in common, in any order, some of them twice.
function TestEinsum.test_random_equations()
  local r = naive.random(11)
  for _ = 1, 60 do
    local sizes, inputs, operands, known = {}, {}, {}, {}
    for letter in ("abcd"):gmatch "." do sizes[letter] = r.integer(1, 3) end
    for i = 1, r.integer(1, 3) do
      local labels, shape = "", {}
      for d = 1, r.integer(1, 3) do
        local letter = ("abcd"):sub(r.integer(1, 4)):sub(1, 1)
        labels, shape[d], known[letter] = labels .. letter, sizes[letter], true
      end
      inputs[i], operands[i] = labels, distinct(r, shape)
    end
    local result = ""
    for letter in ("dbac"):gmatch "." do
      if known[letter] and r.integer(1, 2) == 1 then result = result .. letter end
    end
    local equation = table.concat(inputs, ",") .. "->" .. result
    local got, expected = mr.einsum(equation, operands), by_hand(inputs, result, operands)
    lu.assertEquals(got.shape, expected.shape, equation)
    lu.assertTrue(mr.allclose(got, expected), equation)
    gradients.check(equation, function(...) return mr.einsum(equation, ...) end, table.unpack(operands))
  end
end

function TestEinsum.test_wrong_equations()
  local x = mr.ones(2, 3)
  for equation, piece in pairs { ["ij,jk"] = "2 operands, but 1", ["i"] = "2 dims", ["ijk"] = "names 3",
    ["ij->k"] = "`k`",
    ["ij->ii"] = "twice", ["i1->i"] = "letters", ["ii"] = "sizes 2 and 3", ["i.j"] = "letters",
    ["......ij"] = "at most one", ["...ijk->i"] = "at least 3" } do
    naive.assert_raises({ "einsum", piece }, function() mr.einsum(equation, x) end)
  end
  naive.assert_raises({ "einsum", "size 3", "2 in another" }, function() mr.einsum("ij,jk", x, x) end)
  naive.assert_raises({ "einsum", "equation" }, function() mr.einsum(x, x) end)
  naive.assert_raises({ "einsum", "operand 2", "f64" }, function() mr.einsum("ij,ij", x, x:to "f64") end)
  naive.assert_raises({ "einsum", "operand 2", "number" }, function() mr.einsum("ij,ij", x, 2) end)
end

TestMultinomial = {}

local function count_of(positions, classes)
  return positions:reshape(-1):one_hot(classes):sum(1):totable()
end

-- Each category within 6 standard deviations of its share.
function TestMultinomial.test_each_is_drawn_as_often_as_it_is_likely()
  mr.manual_seed(4)
  local weights, samples, whole = { 0, 1, 5, 0, 2, 0 }, 20000, 8
  for _, dtype in ipairs { "f32", "f64", "f16" } do
    local p = mr.tensor(weights, { dtype = dtype })
    local again = count_of(p:multinomial(samples, true), 6)
    local once = count_of(p:expand(samples, 6):multinomial(1), 6)
    for k, weight in ipairs(weights) do
      local share = weight / whole
      local most = 6 * math.sqrt(samples * share * (1 - share))
      lu.assertTrue(math.abs(again[k] - samples * share) <= most, dtype .. ", again")
      lu.assertTrue(math.abs(once[k] - samples * share) <= most, dtype .. ", once")
    end
  end
end

-- The first category up to which the probabilities come to the random part of all of them, one after the other.
local function naive_draws(row, parts)
  local greatest, sums, drawn = math.max(table.unpack(row)), {}, {}
  local sum = 0
  for k, p in ipairs(row) do
    sum = sum + p / greatest
    sums[k] = sum
  end
  for i, u in ipairs(parts) do
    drawn[i] = 1
    while sums[drawn[i]] < u * sum do drawn[i] = drawn[i] + 1 end
  end
  return drawn
end

local function check_draws(p, count, what)
  mr.manual_seed(count)
  local shape = p.ndim == 1 and { count } or { p:size(1), count }
  local parts = (1 - mr.rand(shape, { dtype = "f64" })):view(-1, count):totable()
  mr.manual_seed(count)
  local drawn = p:multinomial(count, true)
  lu.assertEquals(drawn.dtype, "i64")
  lu.assertEquals(drawn.shape, shape, what)
  local rows = p:to("f64"):reshape(-1, p:size(-1)):totable()
  drawn = drawn:view(-1, count):totable()
  for r, row in ipairs(rows) do
    lu.assertEquals(drawn[r], naive_draws(row, parts[r]), what)
    for _, k in ipairs(drawn[r]) do lu.assertTrue(row[k] > 0, what) end
  end
end

function TestMultinomial.test_with_replacement_against_a_loop()
  local r = naive.random(11)
  for _, device in ipairs { "cpu", mr.device(0) } do
    for _, categories in ipairs { 1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 1000, 1023, 1024, 1025 } do
      local p = mr.rand(3, categories, { device = "cpu" })
      p:masked_fill_(mr.rand(3, categories, { device = "cpu" }):lt(0.3), 0)
      p:select(2, r.integer(1, categories)):add_(0.5)
      p = p:to(device)
      for _, dtype in ipairs { "f32", "f64", "f16", "bf16" } do
        local what = ("%d categories, %s"):format(categories, dtype)
        check_draws(p:to(dtype), r.integer(1, 40), what)
        check_draws(p:to(dtype)[2], 25, what)
        check_draws(p:to(dtype):t():contiguous():t(), 9, what)
      end
      check_draws(p[1]:expand(4, categories), 7, "expanded")
    end
  end
end

-- Sums that overflow their dtype, and probabilities that are lost beside others or are the least there are.
function TestMultinomial.test_with_replacement_of_extremes()
  for dtype, list in pairs { f32 = { 3.4e38, 0, 3.4e38, 1e-45, 1e38 }, f64 = { 0, 1.7e308, 1.7e308, 5e-324 },
    f16 = { 65504, 65504, 0, 6e-8 }, bf16 = { 0, 3e38, 3e38 } } do
    local p = mr.tensor(list, { dtype = dtype })
    check_draws(p, 200, dtype)
    lu.assertTrue(p:multinomial(200, true):unique().numel >= 2, dtype)
    check_draws(mr.tensor({ 0, dtype == "f64" and 5e-324 or 1e-7, 0 }, { dtype = dtype }), 50, dtype)
  end
  check_draws(mr.tensor({ 0, 1e-45, 0, 1e-45 }), 50, "the least")
  -- As one bool for each draw and category this would be 2 TB.
  lu.assertEquals(mr.ones(2000000, { device = "cpu" }):multinomial(1000000, true).numel, 1000000)
end

function TestMultinomial.test_without_replacement_nothing_is_drawn_twice()
  local positions = mr.tensor({ 0.1, 0, 3, 0.2, 1e-6, 1 }):expand(200, 6):multinomial(5)
  lu.assertEquals(positions.shape, { 200, 5 })
  lu.assertEquals(positions.dtype, "i64")
  for row = 1, 200 do
    local sorted = positions[row]:sort(1)
    lu.assertEquals(sorted:totable(), { 1, 3, 4, 5, 6 })
  end
end

function TestMultinomial.test_wrong_arguments()
  local p = mr.tensor { 1.0, 0, 2 }
  for _, bad in ipairs { { -1.0, 2 }, { nan, 1 }, { inf, 1 } } do
    naive.assert_raises({ "multinomial", "negative" }, function() mr.tensor(bad):multinomial(1) end)
  end
  naive.assert_raises({ "multinomial", "fewer than 3" }, function() p:multinomial(3) end)
  naive.assert_raises({ "multinomial", "are 0" }, function() mr.zeros(2, 3):multinomial(1, true) end)
  naive.assert_raises({ "multinomial", "4 samples of 3" }, function() p:multinomial(4) end)
  naive.assert_raises({ "multinomial", "i64" }, function() mr.tensor { 1 }:multinomial(1) end)
  naive.assert_raises({ "multinomial", "2x2x2" }, function() mr.ones(2, 2, 2):multinomial(1) end)
  naive.assert_raises({ "multinomial", "replacement" }, function() p:multinomial(1, 1) end)
end

TestComparing = {}

function TestComparing.test_isclose()
  local a = mr.tensor { 1, inf, -inf, nan, 1e-9, 100, inf }
  local b = mr.tensor { 1.000001, inf, inf, nan, 0, 101, 1 }
  lu.assertEquals(a:isclose(b):totable(), { true, true, false, false, true, false, false })
  lu.assertTrue(a:isclose(b, { equal_nan = true })[4]:item())
  lu.assertTrue(a:isclose(b, { rtol = 0.1 })[6]:item())
  lu.assertEquals(mr.tensor({ 1, 2 }, { dtype = "u8" }):isclose(mr.tensor({ 2, 2 }, { dtype = "u8" })):totable(),
    { false, true })
  naive.assert_raises("rtol", function() a:isclose(b, { rtol = "1" }) end)
end

-- Dense tensors have a loop of their own in equal and allclose; strided ones go element by element.
function TestComparing.test_dense_tensors_compare_as_strided_ones()
  local r = naive.random(9)
  local special = { 0, -0.0, inf, -inf, nan, 1e300, 1e-300, 1, 1.000001, -1, 3e38 }
  for round = 1, 300 do
    local n, same = r.integer(1, 3000), r.integer(1, 3)
    local dtype = ({ "f32", "f64", "f16", "bf16" })[round % 4 + 1]
    local a, b = {}, {}
    for k = 1, n do
      a[k] = 1
      b[k] = 1
    end
    for _ = 1, same do
      local k = r.integer(1, n)
      a[k], b[k] = special[r.integer(1, #special)], special[r.integer(1, #special)]
    end
    local host = { dtype = dtype, device = "cpu" }
    local x, y = mr.tensor(a, host), mr.tensor(b, host)
    local wide = mr.stack({ y, y }, 2):select(2, 1)
    lu.assertFalse(n > 1 and wide.contiguous)
    lu.assertEquals(mr.equal(x, y), mr.equal(x, wide))
    lu.assertEquals(x:equal(y), mr.equal(x, y))
    for _, options in ipairs { { rtol = 1e-5 }, { rtol = 0, atol = 0 }, { equal_nan = true },
      { rtol = 1e300, atol = inf } } do
      lu.assertEquals(mr.allclose(x, y, options), mr.allclose(x, wide, options))
      lu.assertEquals(x:allclose(y, options), mr.allclose(x, y, options))
    end
  end
  local i, k = mr.tensor { 1, 2 }, mr.tensor { 1, 3 }
  lu.assertFalse(mr.equal(i, k))
  lu.assertTrue(mr.equal(i, i:clone()))
  lu.assertTrue(mr.equal(mr.ones(0), mr.zeros(0)))
end

TestCreation = {}

function TestCreation.test_gradients_can_be_required_at_creation()
  local options = { requires_grad = true }
  local made = { mr.zeros(2, options), mr.tensor({ 1.0 }, options), mr.rand(3, options), mr.randn({ 3 }, options),
    mr.full({ 2 }, 0.5, options), mr.ones_like(mr.zeros(2), options), mr.linspace(0, 1, 3, options),
    mr.tensor({ 1.0 }, { requires_grad = true, device = "cpu" }), mr.empty(2, options), mr.eye(2, options) }
  for k, t in ipairs(made) do
    lu.assertTrue(t.requires_grad, k)
    lu.assertTrue(t.is_leaf, k)
  end
  made[1]:sum():backward()
  lu.assertEquals(made[1].grad:totable(), { 1, 1 })
  lu.assertFalse(mr.zeros(2, { requires_grad = false }).requires_grad)
  naive.assert_raises({ "requires_grad", "i64" }, function() mr.tensor({ 1 }, options) end)
  naive.assert_raises("requires_grad", function() mr.zeros(2, { requires_grad = 1 }) end)
end

TestBounds = {}

function TestBounds.test_bounds_of_clamp_can_be_named()
  local x = distinct(naive.random(8), { 3, 4 })
  for _, o in ipairs { { min = -1.1 }, { max = 0.6 }, { min = -1.1, max = 0.6 } } do
    lu.assertTrue(mr.equal(x:clamp(o), x:clamp(o.min, o.max)))
    lu.assertTrue(mr.equal(mr.clamp(x, o), x:clone():clamp_(o)))
    gradients.check("clamp", function(t) return t:clamp(o) end, x)
  end
  gradients.check("clamp", function(t, least) return t:clamp { min = least } end, x, x[1] * 0.3 + 0.01)
  naive.assert_raises("a least or a greatest value", function() x:clamp {} end)
  naive.assert_raises("`least`", function() x:clamp { least = 1 } end)
  naive.assert_raises("too many", function() x:clamp({ min = 1 }, 2) end)
end

TestMemory = {}

function TestMemory.test_the_peak_begins_again()
  local kept = mr.zeros(1000)
  do
    local big <close> = mr.zeros(100000)
    lu.assertTrue(big.nbytes > 0)
  end
  lu.assertTrue(mr.memory.max_allocated() >= 400000)
  mr.memory.reset_peak()
  lu.assertEquals(mr.memory.max_allocated(), mr.memory.allocated())
  lu.assertTrue(mr.memory.allocated() >= kept.nbytes)
  local more <close> = mr.zeros(5000)
  mr.memory.reset_peak(0)
  lu.assertTrue(mr.memory.max_allocated(0) >= more.nbytes + kept.nbytes)
end

-- Each is a function as well as a method.
TestForms = {}

function TestForms.test_functions_are_the_methods()
  local x = mr.tensor({ { 1.0, 2.0 }, { 3.0, 4.0 } }, { device = "cpu" })
  local same = function(a, b) lu.assertTrue(mr.equal(a, b)) end
  same(mr.logsumexp(x, 1), x:logsumexp(1))
  same(mr.isclose(x, x + 1e-9), x:isclose(x + 1e-9))
  same(mr.expand_as(x[1], x), x[1]:expand_as(x))
  same(mr.view_as(x, mr.zeros({ 4 }, { device = "cpu" })), x:view(4))
  same(mr.tile(x, 2, 1), x:tile(2, 1))
  same(mr.repeat_interleave(x, 2, 1), x:repeat_interleave(2, 1))
  same(mr.diag(x), x:diag())
  local classes = mr.tensor({ 2, 1 }, { dtype = "i64", device = "cpu" })
  same(mr.one_hot(classes, 3), classes:one_hot(3))
  same(mr.median(x), x:median())
  same(mr.unique(x), x:unique())
  same(mr.scatter(x[1], 1, classes, 1), x[1]:scatter(1, classes, 1))
  same(mr.scatter_add(x[1], 1, classes, x[2]), x[1]:scatter_add(1, classes, x[2]))
  same(mr.index_add(x[1], 1, classes, x[2]), x[1]:index_add(1, classes, x[2]))
  mr.manual_seed(1)
  local drawn = mr.multinomial(x, 2)
  mr.manual_seed(1)
  same(drawn, x:multinomial(2))
end

os.exit(lu.LuaUnit.run())
