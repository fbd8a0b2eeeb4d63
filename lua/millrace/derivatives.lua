-- The derivative of each row of the operation table, and of the functions that move and join tensors: one place for
-- each, read by autograd/recording.lua. mr.ops() shows `formula`.
--
-- An entry is "none" (the result does not depend smoothly on anything, or holds no floats), or a table:
--
--   formula   for people; and where there is no `back`, the code: an expression for each input, with ";" between. In
--             it g is the gradient of the result, a, b and c are the inputs as they were given (tensors or numbers),
--             out is the result. Values that an expression names are kept from the forward pass, and no others. Its
--             value has the shape to which the inputs broadcast; autograd sums it back to the shape of the input.
--   back      in place of that: a function(g, n, i) that returns the gradient of input i, with its shape and dtype.
--             n is the node; it has what `keep` and `needs` have kept.
--   needs     with `back`: for each input, the names among a, b, c, d and out that its gradient reads
--   keep      optional: a function(n, out, ...) that keeps other facts of the call in n, never tensors
--   arguments optional: a function(...) that returns a, b, c and d from the arguments of the call, where they do not
--             stand in this order or are options. Inputs with gradients come first
--   second    d is the second result
--   constant  the name of an option, a tensor, that has no derivative: it must not require gradients
--   view      the result shares the memory of its input
--   list      the inputs are the list that is the first argument
--   moves     the function may return its input itself, or a tensor of integers
--   parts     it returns a list of views
--   arrange   optional: a function(...) that returns the arguments with which the function is called in place of the
--             script's; then `asked`, a function of the script's: whether it wants the second result
--   of_two    the row that the function is where its second argument is a tensor
--
-- A gradient that is returned is g, a view of g, or a new tensor; never one that was kept.
local mr = require "millrace"

local H = require "millrace.autograd.helpers"

local sum_to = H.sum_to
local R = {}

local function zeros_of(shape, g) return mr.zeros(shape, { dtype = g.dtype, device = g.device }) end

-- ---------------------------------------------------------------- elementwise

local function formulas(list)
  for name, formula in pairs(list) do R[name] = formula == "none" and "none" or { formula = formula } end
end

formulas {
  neg = "-g",
  abs = "g * a:sign()",
  sign = "zeros(g)",
  exp = "g * out",
  log = "g / a",
  sqrt = "g / (2 * out)",
  rsqrt = "-0.5 * g * out ^ 3",
  sin = "g * a:cos()",
  cos = "-g * a:sin()",
  tanh = "g:tanh_backward(out)",
  sigmoid = "g:sigmoid_backward(out)",
  relu = "g:relu_backward(out)",
  gelu = "g * gelu_slope(a)",
  floor = "zeros(g)",
  ceil = "zeros(g)",
  round = "zeros(g)",
  reciprocal = "-g * out:square()",
  square = "2 * g * a",
  logical_not = "none",

  add = "g; g",
  sub = "g; -g",
  mul = "g * b; g * a",
  div = "g / b; -g * (a / b / b)",
  pow = "pow_base(g, a, b); pow_exponent(g, a, b, out)",
  maximum = "share(g, lt(a, b), eq(a, b)); share(g, gt(a, b), eq(a, b))",
  minimum = "share(g, gt(a, b), eq(a, b)); share(g, lt(a, b), eq(a, b))",
  remainder = "g; -g * floor_of(a, b)",
  relu_backward = "g:relu_backward(b); zeros(g)",
  tanh_backward = "g:tanh_backward(b); -2 * g * a * b",
  sigmoid_backward = "g:sigmoid_backward(b); g * a * (1 - 2 * b)",

  exp2 = "g * out * 0.6931471805599453",
  expm1 = "g * (out + 1)",
  log2 = "g / (a * 0.6931471805599453)",
  log10 = "g / (a * 2.302585092994046)",
  log1p = "g / (a + 1)",
  tan = "g * (out:square() + 1)",
  asin = "g / (1 - a:square()):sqrt()",
  acos = "-g / (1 - a:square()):sqrt()",
  atan = "g / (a:square() + 1)",
  sinh = "g * a:cosh()",
  cosh = "g * a:sinh()",
  erf = "g * (-a:square()):exp() * 1.1283791670955126",
  trunc = "zeros(g)",
  frac = "g",
  silu = "g * silu_slope(a)",
  softplus = "where(a:gt(20), g, g * a:sigmoid())",
  isnan = "none", isinf = "none", isfinite = "none",

  fmod = "g; -g * trunc_of(a, b)",
  floor_divide = "zeros(g); zeros(g)",
  atan2 = "g * b / (a * a + b * b); -g * a / (a * a + b * b)",
  masked_fill = "where(b, 0, g); -; where(b, g, 0)",

  bitwise_not = "none", bitwise_and = "none", bitwise_or = "none", bitwise_xor = "none",
  bitwise_left_shift = "none", bitwise_right_shift = "none",
  logical_and = "none", logical_or = "none", logical_xor = "none",

  eq = "none", ne = "none", lt = "none", le = "none", gt = "none", ge = "none",

  clamp = "clamped(g, a, b, c); clamped_least(g, a, b, c); clamped_greatest(g, a, b, c)",
  lerp = "g * (1 - c); g * c; g * (b - a)",
  where = "-; where(a, g, 0); where(a, 0, g)",

  fill = "zeros(g)", zero = "zeros(g)", uniform = "zeros(g)", normal = "zeros(g)", bernoulli = "zeros(g)",
  arange = "none", linspace = "none", eye = "none", randint = "none", randperm = "none",

  any = "none", all = "none", argmax = "none", argmin = "none",
  argsort = "none", nonzero = "none",
  memset = "none", op = "none", spin = "none", kernel = "none",
  sgd_step = "none", momentum_step = "none", adam_step = "none",
  rmsprop_step = "none", rmsprop_momentum_step = "none", gather_grads = "none",
}

-- The second argument may be left out.
local function with_default(default)
  return function(x, parameter)
    if type(parameter) == "table" or parameter == nil then parameter = default end
    return x, parameter
  end
end

-- x:clamp(least, greatest) or x:clamp{min=, max=}
R.clamp.arguments = function(x, least, greatest)
  if type(least) == "table" then return x, least.min, least.max end
  return x, least, greatest
end

R.leaky_relu = {
  formula = "where(a:gt(0), g, g * b); where(a:gt(0), 0, g * a)", arguments = with_default(0.01),
}
R.elu = {
  formula = "where(a:gt(0), g, g * b * a:exp()); where(a:gt(0), 0, g * a:expm1())", arguments = with_default(1),
}

-- ---------------------------------------------------------------- reductions

-- The dims of a reduction as it was called: x:sum(), x:sum(2, true), x:sum({1, 2}), x:sum{dim = 1, keepdim = true}.
local function keep_reduction(n, out, x, dims, keepdim, options)
  if type(dims) == "table" and #dims == 0 and next(dims) ~= nil then dims, options = nil, dims end
  if type(keepdim) == "table" then keepdim, options = nil, keepdim end
  if options then
    if options.dim ~= nil then dims = options.dim end
    if options.keepdim ~= nil then keepdim = options.keepdim end
    n.correction = options.correction
  end
  n.shape, n.keepdim = x.shape, keepdim
  n.count = out.numel > 0 and x.numel // out.numel or 0
  if dims == nil then return end
  n.dims = {}
  local ndim = math.max(#n.shape, 1)
  for k, dim in ipairs(type(dims) == "table" and dims or { dims }) do n.dims[k] = dim < 0 and dim + ndim + 1 or dim end
  table.sort(n.dims)
end

-- A result of the reduction with size 1 in each dim that was reduced, so that it broadcasts to the input.
local function as_kept(t, n)
  if n.keepdim or #n.shape == 0 then return t end
  local shape = {}
  for d = 1, #n.shape do shape[d] = n.dims and n.shape[d] or 1 end
  for _, d in ipairs(n.dims or {}) do shape[d] = 1 end
  return t:reshape(shape)
end

local function spread(g, n) return as_kept(g, n):expand(n.shape) end

R.sum = { formula = "g, repeated over the reduced dims", keep = keep_reduction, needs = { "" }, back = spread }

R.mean = {
  formula = "g / count, repeated over the reduced dims",
  keep = keep_reduction, needs = { "" },
  back = function(g, n) return spread(g / n.count, n) end,
}

-- A pass that is recorded has derivatives of its own: there nothing is divided by an element, which may be 0.

-- t moved by `distance` places towards the end of the dim (or the begin, below 0), and `fill` in the free ones.
local function moved_along(t, dim, distance, fill)
  local shape, by = t.shape, math.abs(distance)
  local rest = shape[dim] - by
  shape[dim] = by
  local free = mr.full(shape, fill, { dtype = t.dtype, device = t.device })
  if distance > 0 then return mr.cat({ free, t:narrow(dim, 1, rest) }, dim) end
  return mr.cat({ t:narrow(dim, by + 1, rest), free }, dim)
end

-- The products of the elements before each one.
local function products_before(a, dim) return moved_along(a, dim, 1, 1):cumprod(dim) end

-- The dims `dims` of a as the last one, and the function that undoes it.
local function as_last_dim(a, dims)
  local order, seen, sizes = {}, {}, {}
  for _, d in ipairs(dims) do seen[d] = true end
  for d = 1, a.ndim do
    if not seen[d] then order[#order + 1], sizes[#sizes + 1] = d, a:size(d) end
  end
  sizes[#sizes + 1] = -1
  for _, d in ipairs(dims) do order[#order + 1] = d end
  local moved, inverse = a:permute(order), {}
  for at, d in ipairs(order) do inverse[d] = at end
  return moved:reshape(sizes), function(t) return t:reshape(moved.shape):permute(inverse) end
end

local function products_of_others(n)
  if n.a.numel == 0 or n.a.ndim == 0 then return mr.ones_like(n.a) end
  local dims = n.dims
  if not dims then
    dims = {}
    for d = 1, n.a.ndim do dims[d] = d end
  end
  local line, back = as_last_dim(n.a, dims)
  local dim = line.ndim
  return back(products_before(line, dim) * products_before(line:flip(dim), dim):flip(dim))
end

-- The product of all others is out / a, unless there is a 0.
R.prod = {
  formula = "g * (the product of all other elements)",
  keep = keep_reduction, needs = { "a out" },
  back = function(g, n)
    if mr.is_grad_enabled() then return as_kept(g, n) * products_of_others(n) end
    local a, zero = n.a, n.a:eq(0)
    local function reduce(t, name)
      return n.dims and t[name](t, n.dims, true) or as_kept(t[name](t), { shape = n.shape })
    end
    local zeros_there, rest = reduce(zero, "sum"), reduce(mr.where(zero, 1, a), "prod")
    local at_zero = mr.where(zeros_there:eq(1), rest, 0)
    local others = mr.where(zeros_there:eq(0), as_kept(n.out, n) / a, 0)
    return as_kept(g, n) * mr.where(zero, at_zero, others)
  end,
}

-- Over one dim, the element that was found has the gradient; else all that are equal to the result share it, or all
-- that are NaN if it is. The result
-- is not kept, and with one dim the input is not, either: they may be changed in place.
local function keep_extreme(n, ...)
  keep_reduction(n, ...)
  n.one = n.d ~= nil
  if n.one then n.a, n.va = nil, nil end
end

local function extreme_back(name)
  return function(g, n)
    if #n.shape == 0 then return g end
    if n.one then return zeros_of(n.shape, g):scatter_(n.dims[1], as_kept(n.d, n), as_kept(g, n)) end
    local found = n.dims and n.a[name](n.a, n.dims, true) or n.a[name](n.a)
    local same = n.a:eq(found) + (n.a:isnan() * found:isnan()) -- of bools: or, and
    local count = n.dims and same:sum(n.dims, true) or same:sum()
    return mr.where(same, as_kept(g, n) / count:to(g.dtype), 0)
  end
end

-- x:max(y) of two tensors is another row.
for name, of_two in pairs { max = "maximum", min = "minimum" } do
  R[name] = {
    formula = "g at the element that was found; over everything or several dims, shared by all that are equal",
    keep = keep_extreme, needs = { "a d" }, second = true, back = extreme_back(name), of_two = of_two,
  }
end

R.norm = {
  formula = "g * a / out, 0 where out is 0",
  keep = keep_reduction, needs = { "a out" },
  back = function(g, n) return n.a * as_kept(mr.where(n.out:eq(0), 0, g / n.out), n) end,
}

local function var_back(g, n)
  local a = n.a
  local mean = n.dims and a:mean(n.dims, true) or a:mean()
  return as_kept(g * (2 / (n.count - (n.correction or 1))), n) * (a - mean)
end

R.var = { formula = "g * 2 / (count - correction) * (a - mean)", keep = keep_reduction, needs = { "a" },
  back = var_back }
R.std = {
  formula = "g / (2 * out) * (the derivative of var), 0 where out is 0",
  keep = keep_reduction, needs = { "a out" },
  back = function(g, n) return var_back(mr.where(n.out:eq(0), 0, g / (2 * n.out)), n) end,
}

local function keep_dim(n, _, _, dim) n.dim = dim end

R.softmax = {
  formula = "out * (g - (g * out):sum(dim, true))",
  keep = keep_dim, needs = { "out" },
  back = function(g, n) return n.out * (g - (g * n.out):sum(n.dim, true)) end,
}
R.log_softmax = {
  formula = "g - out:exp() * g:sum(dim, true)",
  keep = keep_dim, needs = { "out" },
  back = function(g, n) return g - n.out:exp() * g:sum(n.dim, true) end,
}

-- ---------------------------------------------------------------- products

local function turned(t) return t:transpose(-2, -1) end

local function keep_product(n, _, a, b)
  n.shape_a, n.shape_b, n.dtype_a, n.dtype_b = a.shape, b.shape, a.dtype, b.dtype
  n.b_turned = b.ndim == 2 and not b.contiguous and b:t().contiguous
end

-- The gradient of a matrix that lies transposed is made transposed, too: then that of its t() is contiguous.
local function product(a, g, b_turned)
  if b_turned then return turned(turned(g):matmul(a)) end
  return turned(a):matmul(g)
end

-- A vector counts as a row on the left and as a column on the right.
local function matmul_back(g, n, i)
  local shape = i == 1 and n.shape_a or n.shape_b
  local dtype = i == 1 and n.dtype_a or n.dtype_b
  local row, column = #n.shape_a == 1, #n.shape_b == 1
  if row and column then return sum_to(g * (i == 1 and n.b or n.a), shape, dtype) end
  if row then g = g:unsqueeze(-2) end
  if column then g = g:unsqueeze(-1) end
  local grad
  if i == 1 then
    grad = g:matmul(column and n.b:unsqueeze(1) or turned(n.b))
    shape = row and { 1, shape[1] } or shape
  else
    local a = row and n.a:unsqueeze(1) or n.a
    if #shape <= 2 and a.ndim > 2 then -- one product over all batches
      a, g = a:flatten(1, -2), g:flatten(1, -2)
    end
    grad = product(a, g, n.b_turned)
    shape = column and { shape[1], 1 } or shape
  end
  grad = sum_to(grad, shape, dtype)
  if i == 1 and row or i == 2 and column then grad = grad:flatten() end
  return grad
end

local matmul = {
  formula = "g @ b^T; a^T @ g",
  keep = keep_product, needs = { "b", "a" }, back = matmul_back,
}
R.matmul, R.mm, R.mv, R.dot, R.bmm = matmul, matmul, matmul, matmul, matmul

R.addmm = {
  formula = "beta * g; alpha * g @ c^T; alpha * b^T @ g",
  needs = { "", "c", "b" },
  keep = function(n, _, x, a, b, options)
    n.beta, n.alpha = options and options.beta or 1, options and options.alpha or 1
    n.shape_x, n.dtype_x, n.dtype_a, n.dtype_b = x.shape, x.dtype, a.dtype, b.dtype
    n.b_turned = not b.contiguous and b:t().contiguous
  end,
  back = function(g, n, i)
    local function times(t, factor) return factor == 1 and t or t * factor end
    if i == 1 then return sum_to(times(g, n.beta), n.shape_x, n.dtype_x) end
    if i == 2 then return times(g:matmul(n.c:t()), n.alpha):to(n.dtype_a) end
    return times(product(n.b, g, n.b_turned), n.alpha):to(n.dtype_b)
  end,
}

-- ---------------------------------------------------------------- convolutions

-- x:conv2d(w [, bias] [, {bias=, stride=, ...}])
local function conv_arguments(x, w, bias, options)
  if type(bias) == "table" then bias, options = nil, bias end
  return x, w, bias or options and options.bias or nil
end

local function pair(value, otherwise)
  if type(value) == "table" then return { value[1], value[2] or value[1] } end
  return { value or otherwise, value or otherwise }
end

-- The window as options of conv2d_input and conv2d_weight.
local function window_of(options)
  options = options or {}
  return { stride = pair(options.stride, 1), padding = pair(options.padding, 0), dilation = pair(options.dilation, 1),
    groups = options.groups or 1 }
end

R.conv2d = {
  formula = "conv2d_input(shape, b, g); conv2d_weight(a, shape, g); g:sum({1, 3, 4})",
  arguments = conv_arguments, needs = { "b", "a", "" },
  keep = function(n, _, x, w, bias, options)
    n.window, n.single = window_of(type(bias) == "table" and bias or options), x.ndim < w.ndim
    n.shape_x, n.shape_w = x.shape, w.shape
    if n.single then table.insert(n.shape_x, 1, 1) end -- an image without a batch
  end,
  back = function(g, n, i)
    if n.single then g = g:unsqueeze(1) end
    if i == 3 then return g:sum({ 1, 3, 4 }) end
    if i == 2 then return mr.conv2d_weight(n.single and n.a:unsqueeze(1) or n.a, n.shape_w, g, n.window) end
    local grad = mr.conv2d_input(n.shape_x, n.b, g, n.window)
    return n.single and grad:squeeze(1) or grad
  end,
}

-- Both are linear in both of their tensors: their gradients are convolutions again.
R.conv2d_input = {
  formula = "conv2d_weight(g, shape, b); g:conv2d(a)",
  arguments = function(_, w, gradient) return w, gradient end, needs = { "b", "a" },
  keep = function(n, _, _, w, _, options) n.shape, n.window = w.shape, window_of(options) end,
  back = function(g, n, i)
    return i == 1 and mr.conv2d_weight(g, n.shape, n.b, n.window) or g:conv2d(n.a, n.window)
  end,
}
R.conv2d_weight = {
  formula = "conv2d_input(shape, g, b); a:conv2d(g)",
  arguments = function(x, _, gradient) return x, gradient end, needs = { "b", "a" },
  keep = function(n, _, x, _, _, options) n.shape, n.window = x.shape, window_of(options) end,
  back = function(g, n, i)
    return i == 1 and mr.conv2d_input(n.shape, g, n.b, n.window) or n.a:conv2d(g, n.window)
  end,
}

-- ---------------------------------------------------------------- copies

local function keep_home(n, _, x) n.device, n.dtype = x.device, x.dtype end
local function home(g, n) return g:to(n.device, n.dtype) end

local moved = { formula = "g, moved back", moves = true, keep = keep_home, needs = { "" }, back = home }
R.clone = { formula = "g", moves = true, needs = { "" }, back = function(g) return g end }
R.contiguous = R.clone
R.to, R.cpu, R.cuda, R.pin_memory = moved, moved, moved, moved

-- x:copy_(y): the old values of x have no effect.
R.copy = {
  formula = "zeros(g); g, moved back and summed over broadcast dims",
  needs = { "", "" },
  keep = function(n, _, _, y) n.shape, n.device, n.dtype = y.shape, y.device, y.dtype end,
  back = function(g, n, i)
    if i == 1 then return mr.zeros_like(g) end
    return sum_to(g:to(n.device, n.dtype), n.shape)
  end,
}

-- ---------------------------------------------------------------- views

local function keep_shape(n, _, x) n.shape = x.shape end
local function reshape_back(g, n) return g:reshape(n.shape) end

-- A tensor of zeros of the input's shape, in which g fills a part.
local function around(g, n, part)
  local whole = mr.zeros(n.shape, { dtype = g.dtype, device = g.device })
  part(whole):copy_(g)
  return whole
end

local reshaped = {
  formula = "g in the shape of a", view = true,
  keep = keep_shape, needs = { "" }, back = reshape_back,
}
R.view, R.reshape, R.flatten, R.squeeze, R.unsqueeze = reshaped, reshaped, reshaped, reshaped, reshaped

R.expand = {
  formula = "g, summed over the repeated dims", view = true,
  keep = keep_shape, needs = { "" },
  back = function(g, n) return sum_to(g, n.shape) end,
}

R.t = { formula = "g:t()", needs = { "" }, view = true, back = function(g) return g:t() end }

R.transpose = {
  formula = "g:transpose(dim1, dim2)", needs = { "" }, view = true,
  keep = function(n, _, _, first, second) n.first, n.second = first, second end,
  back = function(g, n) return g:transpose(n.first, n.second) end,
}

R.permute = {
  formula = "g:permute(the inverse order)", needs = { "" }, view = true,
  keep = function(n, out, _, first, ...)
    n.inverse = {}
    for at, dim in ipairs(type(first) == "table" and first or { first, ... }) do
      n.inverse[dim < 0 and dim + out.ndim + 1 or dim] = at
    end
  end,
  back = function(g, n) return #n.inverse == 0 and g or g:permute(n.inverse) end,
}

R.narrow = {
  formula = "zeros, with g in the part", needs = { "" }, view = true,
  keep = function(n, _, x, dim, start, length) n.shape, n.dim, n.start, n.length = x.shape, dim, start, length end,
  back = function(g, n) return around(g, n, function(t) return t:narrow(n.dim, n.start, n.length) end) end,
}

R.select = {
  formula = "zeros, with g at the index", needs = { "" }, view = true,
  keep = function(n, _, x, dim, index) n.shape, n.dim, n.index = x.shape, dim, index end,
  back = function(g, n) return around(g, n, function(t) return t:select(n.dim, n.index) end) end,
}

-- t[key], whose tables the script may change later.
local function copy_key(key)
  if type(key) ~= "table" then return key end
  local copy = {}
  for i, entry in ipairs(key) do copy[i] = copy_key(entry) end
  return copy
end

R.__index = {
  formula = "zeros, with g at the index", needs = { "" }, view = true,
  keep = function(n, _, x, key) n.shape, n.key = x.shape, copy_key(key) end,
  back = function(g, n) return around(g, n, function(t) return t[n.key] end) end,
}

-- ---------------------------------------------------------------- joining and parting

local function keep_list(n, list)
  n.shapes, n.dtypes = {}, {}
  for i, t in ipairs(list) do n.shapes[i], n.dtypes[i] = t.shape, t.dtype end
end

R.cat = {
  formula = "g, the part of each tensor", list = true, needs = { "" },
  keep = function(n, _, list, dim)
    keep_list(n, list)
    n.dim, n.start, n.sizes = type(dim) == "number" and dim or 1, {}, {} -- a table: options
    local at = 1
    for i, t in ipairs(list) do
      n.start[i], n.sizes[i] = at, t.numel > 0 and t:size(n.dim) or 0
      at = at + n.sizes[i]
    end
  end,
  back = function(g, n, i)
    if n.sizes[i] == 0 then return mr.zeros(n.shapes[i], { dtype = n.dtypes[i], device = g.device }) end
    return g:narrow(n.dim, n.start[i], n.sizes[i]):to(n.dtypes[i])
  end,
}

R.stack = {
  formula = "g:select(dim, i), for tensor i", list = true, needs = { "" },
  keep = function(n, _, list, dim)
    keep_list(n, list)
    n.dim = type(dim) == "number" and dim or 1
  end,
  back = function(g, n, i) return g:select(n.dim, i):to(n.dtypes[i]) end,
}

-- ---------------------------------------------------------------- by index

-- f(x, dim, index): the gradients of several elements that came from one place are added.
local function keep_picking(n, _, x, dim) n.shape, n.dim = x.shape, dim end
local function picked(x, _, index) return x, index end

R.index_select = {
  formula = "zeros:index_add_(dim, index, g)",
  arguments = picked, keep = keep_picking, needs = { "b" },
  back = function(g, n) return zeros_of(n.shape, g):index_add_(n.dim, n.b, g) end,
}

R.gather = {
  formula = "zeros:scatter_add_(dim, index, g)",
  arguments = picked, keep = keep_picking, needs = { "b" },
  back = function(g, n) return zeros_of(n.shape, g):scatter_add_(n.dim, n.b, g) end,
}

R.embedding = {
  formula = "zeros:index_add_(1, index, g)",
  arguments = function(index, rows) return rows, index end,
  keep = function(n, _, _, rows) n.shape = rows.shape end, needs = { "b" },
  back = function(g, n)
    return zeros_of(n.shape, g):index_add_(1, n.b:flatten(), g:reshape(n.b.numel, n.shape[2]))
  end,
}

-- x:scatter_(dim, index, source) and those that add. The source may be larger than the index.
local function keep_placing(n, _, _, dim, index, source)
  n.dim = dim
  if type(source) ~= "userdata" then return end
  n.shape, n.dtype = source.shape, source.dtype
  n.larger = table.concat(n.shape, " ") ~= table.concat(index.shape, " ")
end

local function placed(x, _, index, source) return x, source, index end

local function to_source(g, n)
  if n.larger then
    local part = {}
    for d, size in ipairs(g.shape) do part[d] = { 1, size } end
    local whole = zeros_of(n.shape, g)
    whole[part]:copy_(g)
    g = whole
  end
  return g:to(n.dtype)
end

-- Where several elements were set to one place, the last one stayed.
local function winners(g, index, dim)
  local numbers = mr.arange(index.numel, { device = g.device }):view(index.shape)
  local there = mr.zeros(g.shape, { dtype = "i64", device = g.device }):scatter_(dim, index, numbers)
  return there:gather(dim, index):eq(numbers)
end

R.scatter = {
  formula = "g, 0 at the index; g:gather(dim, index), 0 where another element was set later",
  arguments = placed, keep = keep_placing, needs = { "c", "c" },
  back = function(g, n, i)
    if i == 1 then return g:clone():scatter_(n.dim, n.c, 0) end
    return to_source(mr.where(winners(g, n.c, n.dim), g:gather(n.dim, n.c), 0), n)
  end,
}

R.scatter_add = {
  formula = "g; g:gather(dim, index)",
  arguments = placed, keep = keep_placing, needs = { "", "c" },
  back = function(g, n, i) return i == 1 and g or to_source(g:gather(n.dim, n.c), n) end,
}

R.index_add = {
  formula = "g; g:index_select(dim, index)",
  arguments = placed, needs = { "", "c" },
  keep = function(n, _, _, dim, _, source) n.dim, n.shape, n.dtype = dim, source.shape, source.dtype end,
  back = function(g, n, i) return i == 1 and g or g:index_select(n.dim, n.c):to(n.dtype):reshape(n.shape) end,
}

R.masked_select = {
  formula = "g, at the elements where the mask is true",
  keep = function(n, _, x, mask)
    n.shape, n.whole = x.shape, (x:detach():ne(x:detach()) + mask).shape
  end,
  needs = { "b" },
  back = function(g, n)
    if g.numel == 0 then return zeros_of(n.shape, g) end
    local mask = n.b:expand(n.whole):reshape(-1)
    local position = mask:cumsum(1):clamp(1, nil) -- which element of g: no wait for their number
    local whole = mr.where(mask, g:index_select(1, position), 0)
    return sum_to(whole:reshape(n.whole), n.shape)
  end,
}

-- ---------------------------------------------------------------- along a dim, in another order

local function reversed_sums(g, dim) return g:flip(dim):cumsum(dim):flip(dim) end

R.cumsum = {
  formula = "the sums of g from the end", keep = keep_dim, needs = { "" },
  back = function(g, n) return reversed_sums(g, n.dim) end,
}

-- sums[i] = g[i] + a[i + 1] * sums[i + 1], in as many steps as the length has bits.
local function carried_sums(g, a, dim)
  local sums, factors, length = g, moved_along(a, dim, -1, 0), a:size(dim)
  local distance = 1
  while distance < length do
    sums = sums + factors * moved_along(sums, dim, -distance, 0)
    factors = factors * moved_along(factors, dim, -distance, 0)
    distance = distance * 2
  end
  return sums
end

-- Before the first 0 the derivative is out / a; at it, the products without it count; after it, nothing.
R.cumprod = {
  formula = "the sums of g * out from the end, / a; exact also where a has zeros",
  keep = keep_dim, needs = { "a out" },
  back = function(g, n)
    local a, dim = n.a, n.dim
    if a.numel == 0 or a.ndim == 0 then return g end
    if mr.is_grad_enabled() then
      dim = dim < 0 and dim + a.ndim + 1 or dim
      return products_before(a, dim) * carried_sums(g, a, dim)
    end
    local zero = a:eq(0)
    local seen = zero:cumsum(dim)
    local first = zero * seen:eq(1)
    local without = mr.where(first, 1, a):cumprod(dim)
    local at_first = mr.where(first, reversed_sums(g * without, dim), 0)
    return mr.where(seen:eq(0), reversed_sums(g * n.out, dim) / a, at_first)
  end,
}

-- The dim of x:sort(dim, descending, {dim=}) and x:topk(k, dim, largest, {dim=}); default: the last.
local function keep_sorting(position)
  return function(n, _, x, ...)
    local dim, options = select(position, ...), nil
    for k = 1, select("#", ...) do
      local value = select(k, ...)
      if type(value) == "table" then options = value end
    end
    if type(dim) == "table" then dim = nil end
    n.shape, n.dim = x.shape, options and options.dim or dim or -1
  end
end

local function sorting_back(g, n)
  if #n.shape == 0 then return g end
  return zeros_of(n.shape, g):scatter_(n.dim, n.d, g)
end

R.sort = { formula = "zeros:scatter_(dim, positions, g)", keep = keep_sorting(1), needs = { "d" }, second = true,
  back = sorting_back }
R.topk = { formula = "zeros:scatter_(dim, positions, g)", keep = keep_sorting(2), needs = { "d" }, second = true,
  back = sorting_back }

R.flip = {
  formula = "g:flip(dims)", needs = { "" },
  keep = function(n, _, _, first, ...)
    n.dims = {}
    for k, dim in ipairs(type(first) == "table" and first or { first, ... }) do n.dims[k] = dim end
  end,
  back = function(g, n) return #n.dims > 0 and g:flip(n.dims) or g end,
}

R.roll = {
  formula = "g:roll(-shifts, dims)", needs = { "" },
  keep = function(n, _, _, shifts, dims)
    n.dims = type(dims) == "table" and { table.unpack(dims) } or dims
    n.shifts = {}
    for k, shift in ipairs(type(shifts) == "table" and shifts or { shifts }) do n.shifts[k] = -shift end
  end,
  back = function(g, n) return n.dims and g:roll(n.shifts, n.dims) or g:roll(n.shifts) end,
}

local function keep_diagonal(n, _, _, k) n.k = type(k) == "number" and k or 0 end
R.tril = { formula = "g:tril(k)", keep = keep_diagonal, needs = { "" }, back = function(g, n) return g:tril(n.k) end }
R.triu = { formula = "g:triu(k)", keep = keep_diagonal, needs = { "" }, back = function(g, n) return g:triu(n.k) end }

R.outer = {
  formula = "g:mv(b); g:t():mv(a)", needs = { "b", "a" },
  keep = function(n, _, a, b) n.dtype_a, n.dtype_b = a.dtype, b.dtype end,
  back = function(g, n, i)
    if i == 1 then return g:mv(n.b:to(g.dtype)):to(n.dtype_a) end
    return g:t():mv(n.a:to(g.dtype)):to(n.dtype_b)
  end,
}

-- Each part is a view of its own: see autograd/recording.lua.
R.chunk = { formula = "zeros, with g in the part", needs = { "" }, parts = true, view = true, back = R.narrow.back }
R.split = R.chunk

-- ---------------------------------------------------------------- networks

for name, entry in pairs(require "millrace.autograd.network") do R[name] = entry end

return R
