-- The calls of test_cuda_costs.c: for each row of the operation table one that is large enough to be counted.

-- measure(f) returns the bytes that the rows state of the calls in f, and those that their kernels accessed.
-- gather_grads(x, y) submits the row of that name, which no function of scripts has by itself.
local measure, gather_grads = ...

local ROWS, COLUMNS = 128, 256

-- Rows whose kernels access more than they state, since caches serve the rest: as a multiple, and why.
local MORE = {
  -- Each block reads the rows and columns of its tile, so an element is read once for each tile across.
  matmul = 40, mm = 40, mv = 4, dot = 2, bmm = 40,
  -- Each element asks for its index, which stays in the cache.
  index_select = 2.1, embedding = 2.1, index_add = 4,
  nonzero = 1.15, masked_select = 1.2, -- each thread reads where its tile begins, and how many there are
  scatter_add = 4, -- as index_add
  tan = 1.4, -- as sin
  randperm = 40, -- keys are sorted in memory of the stream, in several passes
  -- An image is read once for each output that it is part of, and the weights by each block.
  conv2d = 4, conv2d_input = 6, conv2d_weight = 3,
  adaptive_avg_pool2d_backward = 1.2, -- an element of the gradient goes to several
  nll_loss_backward = 3.2, -- all is set to 0 first
  sin = 1.4, cos = 1.4, -- in f64: a table of coefficients, which stays in the cache
}

local function numbers(dtype, shape)
  if dtype == "bool" then return mr.rand(shape or { ROWS, COLUMNS }):lt(0.5) end
  return mr.rand(shape or { ROWS, COLUMNS }):mul(9):add(1):to(dtype)
end

-- An input, weights, and what a gradient of the result looks like.
local function images() return mr.rand(2, 8, 16, 16), mr.rand(16, 8, 3, 3), mr.rand(2, 16, 16, 16) end

local function optimiser_step(class, x, gradient, options)
  x:requires_grad_()
  x.grad = gradient
  local optimiser = mr.optim[class]({ x }, options)
  optimiser:step() -- makes its state
  return function() optimiser:step() end
end

-- How rows of a family are called; x, y and z are tensors of one dtype.
local BY_FAMILY = {
  unary = function(row, x) return function() return x[row.name](x) end end,
  binary = function(row, x, y) return function() return x[row.name](x, y) end end,
  compare = function(row, x, y) return function() return x[row.name](x, y) end end,
  reduce = function(row, x) return function() return x[row.name](x, 2) end end,
  softmax = function(row, x) return function() return x[row.name](x, 2) end end,
  ternary = function(row, x, y, z) return function() return x[row.name](x, y, z) end end,
}

local function index(count, size) return mr.randint(1, size + 1, { count }) end

-- Rows of bits take no floats, so their calls are the same for both dtypes.
local function of_bits(name)
  return function()
    local x, y = numbers("i32"), numbers("i32")
    return function() return x[name](x, y) end
  end
end

local CALLS = {
  bitwise_and = of_bits "bitwise_and", bitwise_or = of_bits "bitwise_or", bitwise_xor = of_bits "bitwise_xor",
  bitwise_left_shift = of_bits "bitwise_left_shift", bitwise_right_shift = of_bits "bitwise_right_shift",
  bitwise_not = function()
    local x = numbers("i32")
    return function() return x:bitwise_not() end
  end,
  masked_fill = function(x, y) local c = x:lt(5) return function() return x:masked_fill(c, y) end end,
  index_select = function(x) local i = index(COLUMNS, COLUMNS) return function() return x:index_select(2, i) end end,
  gather = function(x)
    local i = index(ROWS * COLUMNS, COLUMNS):view(ROWS, COLUMNS)
    return function() return x:gather(2, i) end
  end,
  embedding = function(x) local i = index(ROWS, ROWS) return function() return mr.embedding(i, x) end end,
  cumsum = function(x) return function() return x:cumsum(2) end end,
  cumprod = function(x) return function() return x:cumprod(2) end end,
  sort = function(x) return function() return x:sort() end end,
  argsort = function(x) return function() return x:argsort() end end,
  topk = function(x) return function() return x:topk(9) end end,
  flip = function(x) return function() return x:flip(1, 2) end end,
  roll = function(x) return function() return x:roll(5, 2) end end,
  tril = function(x) return function() return x:tril(3) end end,
  triu = function(x) return function() return x:triu(-9) end end,
  nonzero = function(x) local c = x:lt(5) return function() return c:nonzero() end end,
  masked_select = function(x) local c = x:lt(5) return function() return x:masked_select(c) end end,
  where = function(x, y) local c = x:lt(5) return function() return c:where(x, y) end end,
  fill = function(x) return function() x:fill_(2) end end,
  zero = function(x) return function() x:zero_() end end,
  arange = function() return function() return mr.arange(32768) end end,
  linspace = function() return function() return mr.linspace(0, 1, 32768) end end,
  eye = function() return function() return mr.eye(256) end end,
  uniform = function(x) return function() x:uniform_() end end,
  normal = function(x) return function() x:normal_() end end,
  bernoulli = function(x) return function() x:bernoulli_() end end,
  randint = function() return function() return mr.randint(100, { ROWS, COLUMNS }) end end,
  randperm = function() return function() return mr.randperm(4096) end end,
  copy = function(x) local y = mr.empty(COLUMNS, ROWS):t() return function() y:copy_(x) end end,
  matmul = function(x) local y = x:t():contiguous() return function() return x:matmul(y) end end,
  mm = function(x) local y = x:t():contiguous() return function() return x:mm(y) end end,
  mv = function(x) local y = x:select(1, 1):clone() return function() return x:mv(y) end end,
  dot = function(x) local y = x:flatten() return function() return y:dot(y:clone()) end end,
  conv2d = function() local x, w = images() return function() return x:conv2d(w, { padding = 1 }) end end,
  conv2d_input = function()
    local x, w, g = images()
    return function() return mr.conv2d_input(x.shape, w, g, { padding = 1 }) end
  end,
  conv2d_weight = function()
    local x, w, g = images()
    return function() return mr.conv2d_weight(x, w.shape, g, { padding = 1 }) end
  end,
  max_pool2d = function() local x = images() return function() return x:max_pool2d(2) end end,
  max_pool2d_backward = function()
    local x = images()
    local y, at = x:max_pool2d(2, { return_indices = true })
    return function() return mr.max_pool2d_backward(x.shape, y, at, 2) end
  end,
  avg_pool2d = function() local x = images() return function() return x:avg_pool2d(2) end end,
  avg_pool2d_backward = function()
    local x = images()
    local y = x:avg_pool2d(2)
    return function() return mr.avg_pool2d_backward(x.shape, y, 2) end
  end,
  adaptive_avg_pool2d = function() local x = images() return function() return x:adaptive_avg_pool2d(4) end end,
  adaptive_avg_pool2d_backward = function()
    local x = images()
    local y = x:adaptive_avg_pool2d(4)
    return function() return mr.adaptive_avg_pool2d_backward(x.shape, y) end
  end,
  nll_loss = function(x)
    local target = mr.randint(1, COLUMNS + 1, { ROWS }, { dtype = "i64" })
    return function() return x:nll_loss(target, { reduction = "none" }) end
  end,
  nll_loss_backward = function(x)
    local target = mr.randint(1, COLUMNS + 1, { ROWS }, { dtype = "i64" })
    local y = x:nll_loss(target, { reduction = "none" })
    return function() return mr.nll_loss_backward(x.shape, y, target, { reduction = "none" }) end
  end,
  sgd_step = function(x, y) return optimiser_step("SGD", x, y, { lr = 0.1 }) end,
  momentum_step = function(x, y) return optimiser_step("SGD", x, y, { lr = 0.1, momentum = 0.9 }) end,
  adam_step = function(x, y) return optimiser_step("Adam", x, y, { lr = 0.1 }) end,
  rmsprop_step = function(x, y) return optimiser_step("RMSprop", x, y, { lr = 0.1 }) end,
  rmsprop_momentum_step = function(x, y) return optimiser_step("RMSprop", x, y, { lr = 0.1, momentum = 0.9 }) end,
  gather_grads = function(x, y) return function() gather_grads(x, y) end end,
  bmm = function()
    local x, y = mr.rand(4, 16, 24), mr.rand(4, 24, 16)
    return function() return x:bmm(y) end
  end,
}

-- Not kernels of ours, or what they access is up to the script.
local NOT_COUNTED = { memset = true, op = true, spin = true, kernel = true }

for _, name in ipairs { "scatter", "scatter_add", "index_add" } do
  CALLS[name] = function(x)
    local lines = x:view(-1, 16)
    local i = name == "index_add" and index(16, 16) or index(lines.numel, 16):view(-1, 16)
    return function() lines[name .. "_"](lines, 2, i, lines:clone()) end
  end
end

local function call_of(row, dtype)
  local x, y, z = numbers(dtype), numbers(dtype), numbers(dtype)
  local special = CALLS[row.name]
  if special then return special(x, y, z) end
  local general = BY_FAMILY[row.family]
  return general and general(row, x, y, z)
end

-- A long line is sorted in another way than a short one.
local LONG = {
  sort = function(x) return function() return x:view(-1):sort() end end,
  argsort = function(x) return function() return x:view(-1):argsort() end end,
  topk = function(x) return function() return x:view(-1):topk(9) end end,
}

local wrong = {}

local function compare(name, dtype, call)
  local stated, counted = measure(call)
  local most = 1.05 * stated * (MORE[name] or 1) + 256
  if stated <= 0 or counted < 0.95 * stated - 256 or counted > most then
    wrong[#wrong + 1] = ("%s of %s: states %d bytes, its kernels accessed %d"):format(name, dtype, stated, counted)
  end
end

for _, row in ipairs(mr.ops()) do
  if not NOT_COUNTED[row.name] then
    for _, dtype in ipairs { "f32", "f64" } do
      local call = call_of(row, dtype)
      if not call then
        wrong[#wrong + 1] = row.name .. ": costs.lua has no call of this row"
        break
      end
      compare(row.name, dtype, call)
      if LONG[row.name] then compare(row.name .. " of a long line", dtype, LONG[row.name](numbers(dtype))) end
    end
  end
end
if #wrong > 0 then error(table.concat(wrong, "\n"), 0) end
