-- Inputs for the derivative of every row of the operation table, and of every function that moves, views and joins
-- tensors: what the tests of derivatives share. Random numbers are those of the seed that the test has set.
local mr = require "millrace"
local between = require "lua.support.gradients".between

local function positive(...) return between(0.3, 2, { ... }) end
local function any(...) return between(-2, 2, { ... }) end

-- The inputs of a row of each family: lists of arguments.
local by_family = {
  unary = function() return { { any(2, 3) }, { positive(4) }, { any() }, { any(0, 3) } } end,
  binary = function()
    return { { positive(2, 3), positive(2, 3) }, { any(2, 3), positive(3) }, { positive(2, 1), positive(1, 3) },
      { positive(3), 1.7 }, { positive(), positive(2) }, { positive(0), positive(0) } }
  end,
}

local function mask(...) return any(...):gt(0) end
-- Every third element is 0.
local function with_zeros(...)
  local t = any(...)
  return t * mr.arange(t.numel, { dtype = "f64", device = "cpu" }):remainder(3):ne(1):view(t.shape)
end

local function reductions(x)
  return { { x }, { x, 1 }, { x, 2, true }, { x, { 1, 3 } }, { x, { -1, 1 }, true },
    { x, { dim = 2, keepdim = true } } }
end

local function index(values) return mr.tensor(values, { dtype = "i64", device = "cpu" }) end

-- For single rows.
local by_name = {
  log = function() return { { positive(5) } } end,
  sqrt = function() return { { positive(5) } } end,
  rsqrt = function() return { { positive(5) } } end,
  reciprocal = function() return { { positive(5) } } end,
  pow = function()
    return { { positive(2, 3), any(2, 3) }, { positive(3), any(2, 1) }, { any(4), 3 }, { any(4), 2 }, { any(4), 1 },
      { any(4), 0 }, { positive(4), -1.5 } }
  end,
  clamp = function()
    return { { any(7), -0.5, 0.7 }, { any(7), nil, 0.7 }, { any(7), -0.5, nil }, { any(2, 5), any(5), any(2, 1) },
      { any(6), any(6), 1.5 } }
  end,
  lerp = function() return { { any(2, 3), any(3), 0.3 }, { any(4), any(4), between(0, 1, { 4 }) } } end,
  where = function() return { { mask(2, 3), any(2, 3), any(3) }, { mask(3), any(2, 1), 0.5 } } end,
  fill = function() return { { any(3), 2.5 } } end,
  zero = function() return { { any(3) } } end,
  softmax = function() return { { any(3, 4), 2 }, { any(3, 4), 1 }, { any(2, 3, 2), -2 } } end,
  matmul = function()
    return { { any(2, 3), any(3, 4) }, { any(3), any(3) }, { any(3), any(3, 2) }, { any(2, 3), any(3) },
      { any(2, 2, 3), any(3, 2) }, { any(2, 2, 3), any(2, 3, 2) }, { any(3, 1, 2, 2), any(2, 2, 3) },
      { any(2, 2, 3), any(3) }, { any(3), any(2, 3, 2) }, { any(2, 3), any(4, 3, 2) } }
  end,
  mm = function() return { { any(2, 3), any(3, 4) }, { any(0, 3), any(3, 2) } } end,
  mv = function() return { { any(2, 3), any(3) } } end,
  dot = function() return { { any(4), any(4) } } end,
  bmm = function() return { { any(2, 2, 3), any(2, 3, 2) } } end,
  copy = function() return { { any(2, 3), any(3) } } end,

  log2 = function() return { { positive(5) } } end,
  log10 = function() return { { positive(5) } } end,
  log1p = function() return { { positive(5) } } end,
  asin = function() return { { between(-0.9, 0.9, { 5 }) } } end,
  acos = function() return { { between(-0.9, 0.9, { 5 }) } } end,
  tan = function() return { { between(-1.2, 1.2, { 5 }) } } end,
  softplus = function() return { { any(4) }, { between(19.9, 20.1, { 4 }) } } end,
  leaky_relu = function() return { { any(5) }, { any(2, 3), 0.2 }, { any(2, 3), positive(3) } } end,
  elu = function() return { { any(5) }, { any(2, 3), 0.2 }, { any(2, 3), positive(3) } } end,
  masked_fill = function() return { { any(2, 3), mask(2, 3), 1.5 }, { any(2, 3), mask(3), any() } } end,
  index_select = function()
    return { { any(4, 3), 1, index { 2, 4, 2 } }, { any(2, 3), -1, index { 3, 1, 1, 1 } } }
  end,
  gather = function()
    return { { any(3, 2), 1, index { { 1, 3 }, { 1, 2 }, { 3, 3 }, { 1, 1 } } },
      { any(2, 3), 2, index { { 2 }, { 3 } } } }
  end,
  embedding = function() return { { index { 2, 1, 2 }, any(3, 4) }, { index { { 1, 3 }, { 3, 3 } }, any(3, 2) } } end,
  scatter = function()
    return { { any(3, 2), 1, index { { 1, 3 }, { 3, 1 } }, any(2, 2) }, { any(3, 2), 1, index { { 1, 3 } }, 0.5 },
      { any(2, 3), 2, index { { 2, 2 }, { 1, 3 } }, any(2, 2) } }
  end,
  scatter_add = function() return { { any(3, 2), 1, index { { 1, 3 }, { 1, 1 } }, any(2, 2) } } end,
  index_add = function() return { { any(3, 2), 1, index { 3, 1, 3 }, any(3, 2) } } end,
  masked_select = function() return { { any(2, 3), mask(2, 3) }, { any(2, 1), mask(3) }, { any(2, 3), mask(3) } } end,
  cumsum = function() return { { any(2, 3), 2 }, { any(2, 3), 1 } } end,
  cumprod = function()
    return { { any(2, 4), 2 }, { any(3, 2), -2 }, { with_zeros(2, 5), 2 }, { with_zeros(6, 1), 1 }, { any(1, 2), 1 },
      { any(), 1 } }
  end,
  prod = function()
    local list = reductions(any(2, 3, 2))
    for _, case in ipairs(reductions(with_zeros(2, 3, 2))) do list[#list + 1] = case end
    return list
  end,
  sort = function() return { { any(2, 4) }, { any(3, 2), 1, true }, { any(2, 3), { dim = 1 } } } end,
  topk = function() return { { any(2, 4), 2 }, { any(3, 2), 1, 1, false } } end,
  flip = function() return { { any(2, 3), 1 }, { any(2, 3), 1, 2 }, { any(2, 3), { -1 } } } end,
  roll = function() return { { any(2, 3), 2 }, { any(2, 3), -1, 2 }, { any(2, 3), { 1, 2 }, { 1, 2 } } } end,
  tril = function() return { { any(3, 3) }, { any(2, 3, 2), 1 } } end,
  triu = function() return { { any(3, 3) }, { any(2, 3, 2), -1 } } end,
  conv2d = function()
    return { { any(2, 2, 4, 4), any(3, 2, 3, 3) }, { any(2, 2, 5, 4), any(4, 1, 3, 2), any(4),
      { stride = { 2, 1 }, padding = { 1, 0 }, groups = 2 } }, { any(2, 4, 4), any(1, 2, 2, 2), { dilation = 2 } } }
  end,
  conv2d_input = function()
    return { { { 2, 2, 4, 4 }, any(3, 2, 3, 3), any(2, 3, 4, 4), { padding = 1 } } }
  end,
  conv2d_weight = function()
    return { { any(2, 2, 4, 4), { 3, 2, 3, 3 }, any(2, 3, 4, 4), { padding = 1 } } }
  end,
}
by_name.log_softmax = by_name.softmax

-- Their arguments do not broadcast to each other.
local ONLY_IN_PLACE = { scatter = true, scatter_add = true, index_add = true }

-- ---------------------------------------------------------------- networks

-- All different, and far enough apart that a difference quotient does not change which is the greatest.
local function apart(...)
  local shape = { ... }
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return mr.randperm(n, { device = "cpu" }):to("f64"):mul(0.1):view(shape)
end

local function classes(...) return mr.tensor({ ... }, { dtype = "i64", device = "cpu" }) end

function by_name.max_pool2d()
  return { { apart(2, 2, 4, 5), 2 }, { apart(1, 1, 5, 5), 3, { stride = 1, padding = 1 } },
    { apart(2, 5, 5), { 2, 1 }, { stride = 2, ceil_mode = true, dilation = 2 } } }
end
function by_name.max_pool2d_backward()
  local x = apart(1, 2, 4, 4)
  local _, positions = x:max_pool2d(2, { return_indices = true })
  return { { { 1, 2, 4, 4 }, any(1, 2, 2, 2), positions, 2 } }
end
function by_name.avg_pool2d()
  return { { any(2, 2, 4, 5), 2 }, { any(1, 5, 5), 3, { stride = 2, padding = 1, count_include_pad = false } },
    { any(1, 1, 5, 5), { 2, 3 }, { divisor_override = 3, ceil_mode = true } } }
end
function by_name.avg_pool2d_backward()
  return { { { 1, 2, 5, 5 }, any(1, 2, 3, 3), 3, { stride = 2, padding = 1 } } }
end
function by_name.adaptive_avg_pool2d() return { { any(2, 2, 5, 7), { 3, 4 } }, { any(2, 3, 3), 5 } } end
function by_name.adaptive_avg_pool2d_backward() return { { { 1, 2, 5, 7 }, any(1, 2, 3, 4) } } end
function by_name.nll_loss()
  return { { any(3, 4), classes(2, 4, 1) }, { any(3, 4), classes(2, -100, 1), { reduction = "sum" } },
    { any(4), mr.tensor(3, { device = "cpu" }) },
    { any(3, 4), classes(2, 4, 1), { weight = positive(4) } },
    { any(3, 4), classes(2, 4, 1), { weight = positive(4), reduction = "none" } },
    { any(2, 3, 2), classes(1, 3, 2, 2):view(2, 2), { reduction = "none", ignore_index = 2 } } }
end
function by_name.nll_loss_backward()
  return { { { 3, 4 }, any(3), classes(2, 4, 1), { reduction = "none" } } }
end

-- Random values: the test sets their gradient to 0 by hand, since their difference quotients are noise.
local RANDOM = { uniform = true, normal = true, bernoulli = true }

local function cases_of(row)
  if by_name[row.name] then return by_name[row.name]() end
  if row.family == "reduce" then return reductions(any(2, 3, 2)) end
  local of_family = by_family[row.family]
  return of_family and of_family()
end

-- How scripts call it, without the options.
local function forms_of(row)
  local forms = {}
  if row.forms.method then forms[#forms + 1] = function(x, ...) return x[row.name](x, ...) end end
  if row.forms.mr then forms[#forms + 1] = mr[row.name] end
  return forms
end

-- ---------------------------------------------------------------- what is no row

-- f(x, ...) and its arguments.
local functions = {
  view = { function(x) return x:view(6, 2) end, any(2, 3, 2) },
  reshape = { function(x) return x:transpose(1, 2):reshape(-1) end, any(2, 3, 2) },
  flatten = { function(x) return x:flatten(2) end, any(2, 3, 2) },
  t = { function(x) return x:t() end, any(2, 3) },
  transpose = { function(x) return x:transpose(1, -1) end, any(2, 3, 2) },
  permute = { function(x) return x:permute(3, 1, -2) end, any(2, 3, 2) },
  permute_listed = { function(x) return x:permute({ 2, 3, 1 }) end, any(2, 3, 2) },
  narrow = { function(x) return x:narrow(2, 2, 2) end, any(2, 3) },
  narrow_from_the_end = { function(x) return x:narrow(-1, -2, 1) end, any(2, 3) },
  select = { function(x) return x:select(2, -1) end, any(2, 3) },
  squeeze = { function(x) return x:squeeze() end, any(2, 1, 3) },
  unsqueeze = { function(x) return x:unsqueeze(2) end, any(2, 3) },
  expand = { function(x) return x:expand(4, 2, 3) end, any(2, 1) },
  index = { function(x) return x[2] end, any(2, 3) },
  index_ranges = { function(x) return x[{ { 1, 3, 2 }, 2 }] end, any(3, 3) },
  index_of_a_transposed = { function(x) return x:t()[{ {}, { 2 } }] end, any(3, 2) },
  chunk = { function(x) return table.unpack(x:chunk(2)) end, any(5, 2) },
  chunk_one_unused = { function(x) return x:chunk(3, 2)[2] end, any(2, 7) },
  split = { function(x) return table.unpack(x:split({ 1, 2, 2 }, -1)) end, any(2, 5) },
  clone = { function(x) return x:clone() end, any(3) },
  contiguous = { function(x) return x:t():contiguous() end, any(2, 3) },
  contiguous_already = { function(x) return x:contiguous() * 2 end, any(2, 3) },
  to_device = { function(x) return x:to(0) end, any(3) },
  cuda_and_cpu = { function(x) return (x:cuda() * 2):cpu() end, any(3) },
  pin_memory = { function(x) return x:pin_memory() * 3 end, any(3) },
  cat = { function(x, y) return mr.cat({ x, y, x }, 2) end, any(2, 3), any(2, 1) },
  cat_with_an_empty_vector = { function(x, none) return mr.cat({ none, x, none, x }, 2) end, any(2, 3), any(0) },
  cat_with_a_constant = { function(x) return mr.cat { mr.ones_like(x), x } end, any(2) },
  stack = { function(x, y) return mr.stack({ x, y }, -1) end, any(2, 3), any(2, 3) },
  addmm = { function(x, a, b) return x:addmm(a, b, { beta = 0.5, alpha = -2 }) end, any(2, 1), any(2, 3), any(3, 4) },
  addmm_plain = { function(x, a, b) return x:addmm(a, b:t()) end, any(4), any(2, 3), any(4, 3) },
  conv2d_with_the_bias_among_the_options = { function(x, w, b) return x:conv2d(w, { bias = b, padding = 1 }) end,
    any(1, 1, 3, 3), any(2, 1, 2, 2), any(2) },
  conv1d = { function(x, w, b) return x:conv1d(w, b, { stride = 2, padding = 1 }) end, any(2, 2, 5), any(3, 2, 3),
    any(3) },
  conv1d_of_one = { function(x, w) return mr.conv1d(x, w) end, any(2, 5), any(1, 2, 3) },
  operators = { function(x, y) return -x + 2 * y - x / y ^ 2 + 1 / y end, any(3), positive(3) },
  number_to_the_power = { function(x) return 2 ^ x end, any(3) },
  modulo = { function(x, y) return x % y end, any(5), positive(5) },
  max_over_everything = { function(x) return x:max() end, any(4) },
  max_in_a_dim = { function(x) return (x:max(2)) end, any(2, 4) },
  min_in_dims = { function(x) return x:min({ 1, 2 }) end, any(2, 4) },
  max_of_two = { function(x, y) return x:max(y) end, any(4), any(4) },
  var_of_the_population = { function(x) return x:var(1, { correction = 0 }) end, any(4, 2) },
  used_twice = { function(x) return x * x + x end, any(3) },
  set_element = { function(x, v)
    local y = x * 1
    y[2] = v
    y[{ 1, {} }] = 3
    return y
  end, any(3, 2), any(2) },
  set_elements_of_a_constant = { function(x)
    local y = mr.zeros(2, 3, { dtype = "f64", device = x.device })
    for i = 1, 2 do y[i] = x * i end
    return y
  end, any(3) },
  copy_to_a_part_of_a_constant = { function(x)
    local y = mr.zeros(3, 4, { dtype = "f64", device = x.device })
    y:t():narrow(1, 2, 2):copy_(x)
    return y
  end, any(3) },
  change_of_a_view = { function(x)
    local y = x * 1
    local v = y[1]
    v:mul_(3)
    return y, v
  end, any(2, 3) },
  view_of_what_is_changed_later = { function(x)
    local y = x * 1
    local v, w = y:t(), y[2]
    y:mul_(x)
    w:add_(v[{ {}, 1 }])
    return y, v, w
  end, any(2, 3) },
  change_in_place_that_reads_the_value_before = { function(x, z)
    local y = x * 1
    return y:mul_(z)
  end, any(2, 3), any(3) },
}

return { of = cases_of, forms_of = forms_of, functions = functions, RANDOM = RANDOM, ONLY_IN_PLACE = ONLY_IN_PLACE,
  any = any }
