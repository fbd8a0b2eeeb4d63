-- Functions of tensors that are made of several operations: indexing with tensors, and further functions of PyTorch.
-- They are written with recorded operations, so gradients flow through them without rules of their own.
--
-- All checks come before the first operation is submitted.
--
-- The module is a function of the tools that bind/ops/functional.c hands to it, and of arguments.lua.
--# composite of tensor, mr: Made of several operations.
local mr = require "millrace"
local format = require "millrace.words".format

return function(tools, check)
  local misuse, is_tensor = tools.misuse, tools.is_tensor
  local shape_text, type_text = check.shape_text, check.type_text
  local M = {}

  -- ---------------------------------------------------------------- arguments

  -- The sizes of t from dim `first` on, after those of `shape`.
  local function with_sizes(shape, t, first)
    for d = first, t.ndim do shape[#shape + 1] = t:size(d) end
    return shape
  end

  -- ---------------------------------------------------------------- t[index]

  -- Whether the index is a mask; otherwise it holds positions.
  local function is_mask(x, index)
    check.tensor("t[index]", "t", x)
    check.tensor("t[index]", "the index", index)
    if x.ndim == 0 and index.dtype ~= "bool" then
      misuse "t[index]: a 0-dim tensor cannot be indexed: t:item() reads its value"
    end
    if index.dtype == "i64" or index.dtype == "i32" then return false end
    if index.dtype ~= "bool" then
      misuse(("t[index]: the index is %s: expected a mask (bool) or positions (i64, i32)%s"):format(index.dtype,
        index.dtype == "u8" and "; index:to(\"bool\") makes it a mask" or ""))
    end
    local fits = index.ndim <= x.ndim and (index.ndim > 0 or x.ndim == 0)
    for d = 1, fits and index.ndim or 0 do fits = fits and index:size(d) == x:size(d) end
    if not fits then
      misuse(("t[mask]: the mask has the shape %s, which is not that of the first dims of t, whose shape is %s"):format(
        shape_text(index.shape), shape_text(x.shape)))
    end
    return true
  end

  function M.get_index(x, index)
    if not is_mask(x, index) then
      local picked = x:index_select(1, index:reshape(index.numel))
      return index.ndim == 1 and picked or picked:reshape(with_sizes(index.shape, x, 2))
    end
    if index.ndim == x.ndim then return x:masked_select(index) end
    local rows = x:reshape(with_sizes({ index.numel }, x, index.ndim + 1))
    local positions = index:reshape(index.numel):nonzero()
    return rows:index_select(1, positions:reshape(positions.numel))
  end

  local function check_value(value)
    local kind = type(value)
    if kind == "number" or kind == "boolean" then return end
    if not is_tensor(value) then
      misuse(("t[index]: cannot assign %s: expected a number, a boolean or a tensor"):format(type_text(value)))
    end
    tools.check(value)
  end

  -- Entry k of the value goes to the k-th place where the mask is true.
  local function spread_over_mask(x, mask, value)
    local rest, count = x.ndim - mask.ndim, mask:sum():item()
    if value.ndim > rest + 1 or value:size(1) ~= count and value:size(1) ~= 1 then
      misuse(("t[mask]: the value has the shape %s, but the mask is true at %d places: expected one entry for each " ..
        "of them, or one for all"):format(shape_text(value.shape), count))
    end
    if value:size(1) == 1 then return value:select(1, 1) end
    if count == 0 then return nil end
    local position = mask:reshape(mask.numel):cumsum(1):clamp(1, nil)
    return value:index_select(1, position):reshape(with_sizes(mask.shape, value, 2))
  end

  local function set_masked(x, mask, value)
    local across = mask.shape
    for d = mask.ndim + 1, x.ndim do across[d] = 1 end
    local whole = mask:reshape(across)
    if not is_tensor(value) then
      x:masked_fill_(whole, value)
      return
    end
    if value.ndim > x.ndim - mask.ndim then value = spread_over_mask(x, mask, value) end
    if value then x:copy_(mr.where(whole, value:to(x.dtype), x)) end
  end

  local function set_rows(x, index, value)
    local flat, target = { index.numel }, with_sizes({ index.numel }, x, 2)
    for d = 2, x.ndim do flat[d] = 1 end
    if is_tensor(value) then
      value = value:expand(with_sizes(index.shape, x, 2)):to(x.dtype):reshape(target)
    end
    x:scatter_(1, index:reshape(flat):expand(target), value)
  end

  function M.set_index(x, index, value)
    local masked = is_mask(x, index)
    check_value(value)
    if masked then set_masked(x, index, value) else set_rows(x, index, value) end
  end

  -- ---------------------------------------------------------------- shapes

  --- x:expand_as(other: tensor) -> tensor
  --- Returns x:expand(other.shape), a view.
  function M.expand_as(x, other)
    check.tensor("expand_as", "x", x)
    return x:expand(check.tensor("expand_as", "the other", other).shape)
  end

  --- x:view_as(other: tensor) -> tensor
  --- Returns x:view(other.shape).
  function M.view_as(x, other)
    check.tensor("view_as", "x", x)
    return x:view(check.tensor("view_as", "the other", other).shape)
  end

  --- x:tile(times: integer...) -> tensor
  --- Repeats x along each dim, as a copy (PyTorch's repeat; `repeat` is a keyword in Lua). If there are fewer numbers
  --- than dims, they are for the last dims; if there are more, x gets new dims in front. The numbers can also be one
  --- table.
  -- Each dim becomes two. The first one repeats.
  function M.tile(x, first, ...)
    check.tensor("tile", "x", x)
    local times = type(first) == "table" and { table.unpack(first) } or { first, ... }
    for k = 1, #times do times[k] = check.whole("tile", "argument " .. k, times[k], 0) end
    while #times < x.ndim do table.insert(times, 1, 1) end
    local sizes, apart, repeated, result = x.shape, {}, {}, {}
    while #sizes < #times do table.insert(sizes, 1, 1) end
    for d, size in ipairs(sizes) do
      if times[d] ~= 1 then
        apart[#apart + 1], repeated[#repeated + 1] = 1, times[d]
      end
      apart[#apart + 1], repeated[#repeated + 1] = size, size
      result[d] = size * times[d]
    end
    return x:reshape(apart):expand(repeated):reshape(result):clone()
  end

  --- x:repeat_interleave(times: integer [, dim: integer]) -> tensor
  --- Repeats each element `times` times along the dim, one after the other, as a copy. Without a dim, x counts as a
  --- vector.
  function M.repeat_interleave(x, times, dim)
    check.tensor("repeat_interleave", "x", x)
    times = check.whole("repeat_interleave", "the number of repeats", times, 0)
    if dim == nil then x, dim = x:reshape(x.numel), 1 end
    if x.ndim == 0 then misuse "repeat_interleave: a 0-dim tensor has no dims" end
    dim = check.dim("repeat_interleave", x, dim)
    local repeated, result = x.shape, x.shape
    table.insert(repeated, dim + 1, times)
    result[dim] = result[dim] * times
    return x:unsqueeze(dim + 1):expand(repeated):reshape(result):clone()
  end

  -- Where diagonal k of a matrix lies in row-major order: the first position and the number of elements.
  local function diagonal(rows, columns, k)
    local row, column = math.max(-k, 0), math.max(k, 0)
    return row * columns + column + 1, math.max(math.min(rows - row, columns - column), 0)
  end

  local function positions_of(x, first, count, step)
    return mr.arange(count, { device = x.device, dtype = "i64" }):mul_(step):add_(first)
  end

  --- x:diag([k: integer=0]) -> tensor
  --- Returns diagonal k of a matrix, as a copy. For a vector, returns the matrix with it as that diagonal and 0
  --- elsewhere. Diagonal 1 is the one above the main diagonal.
  function M.diag(x, k)
    check.tensor("diag", "x", x)
    k = k == nil and 0 or check.whole("diag", "the diagonal", k, math.mininteger)
    if x.ndim == 2 then
      local columns = x:size(2)
      local first, count = diagonal(x:size(1), columns, k)
      return x:reshape(x.numel):index_select(1, positions_of(x, first, count, columns + 1))
    end
    if x.ndim ~= 1 then
      misuse(("diag: expected a vector or a matrix, got the shape %s"):format(shape_text(x.shape)))
    end
    local size = x.numel + math.abs(k)
    local first = diagonal(size, size, k)
    local flat = mr.zeros({ size * size }, { dtype = x.dtype, device = x.device })
    return flat:scatter_(1, positions_of(x, first, x.numel, size + 1), x):view(size, size)
  end

  --- index:one_hot([classes: integer]) -> tensor
  --- For each class in `index`, which counts from 1, a row of i64 that is 1 there and 0 elsewhere. Without `classes` it
  --- is the greatest index, and the host waits for it. An index out of range is an error as in index_select.
  function M.one_hot(index, classes)
    check.tensor("one_hot", "the index", index)
    if index.dtype ~= "i64" and index.dtype ~= "i32" then
      misuse(("one_hot: the index is i64 or i32, not %s; convert with index:to(\"i64\")"):format(index.dtype))
    end
    if classes == nil and index.numel == 0 then misuse "one_hot: the index is empty: expected the number of classes" end
    if classes == nil then tools.may_read("one_hot", index) end
    classes = check.whole("one_hot", "the number of classes", classes == nil and index:max():item() or classes, 1)
    local shape = with_sizes({}, index, 1)
    shape[#shape + 1] = classes
    return mr.zeros(shape, { dtype = "i64", device = index.device }):scatter_(-1, index:unsqueeze(-1), 1)
  end

  -- ---------------------------------------------------------------- reductions

  -- max and min over several dims share the gradient between equal elements, and return no positions. A dim of size 1
  -- beside the given ones makes them several.
  local function extreme(name, row)
    M[name] = function(x, dims, keepdim)
      check.tensor(name, "x", x)
      dims, keepdim = check.dims(name, x, dims), check.switch(name, "keepdim", keepdim)
      if x.ndim == 0 then return (x[row](x)) end
      dims[#dims + 1] = x.ndim + 1
      local out = x:unsqueeze(-1)[row](x:unsqueeze(-1), dims, keepdim or false)
      return keepdim and out:squeeze(-1) or out
    end
  end

  --- x:amax([dim: integer|integer[] [, keepdim: boolean=false]]) -> tensor
  --- The greatest element over all elements, a dim or several dims. Unlike max, it returns no positions, and equal
  --- elements share the gradient.
  extreme("amax", "max")

  --- x:amin([dim: integer|integer[] [, keepdim: boolean=false]]) -> tensor
  --- The least element, as amax gives the greatest.
  extreme("amin", "min")

  --- x:logsumexp([dim: integer|integer[] [, keepdim: boolean=false]]) -> tensor
  --- The logarithm of the sum of exp(x), without overflow.
  function M.logsumexp(x, dims, keepdim)
    check.tensor("logsumexp", "x", x)
    check.floats("logsumexp", x)
    dims, keepdim = check.dims("logsumexp", x, dims), check.switch("logsumexp", "keepdim", keepdim)
    if x.ndim == 0 then return x:clone() end
    local dtype = x.dtype
    x = check.wide(x)
    local greatest = mr.no_grad(M.amax, x, dims, true)
    local shift = mr.where(greatest:isfinite(), greatest, 0)
    local out = (x - shift):exp():sum(dims, keepdim or false):log()
    return (out + shift:reshape(out.shape)):to(dtype)
  end

  local NORM = { p = true, dim = true, keepdim = true, out = true }

  -- The sum of the powers, to the power of 1 / p. Where it is 0 the gradient is 0, and not 0 times infinity.
  local function norm_of_powers(a, p, dims, keepdim)
    if p < 1 then
      local zero = mr.no_grad(a.eq, a, 0)
      a = mr.where(zero, 0, mr.where(zero, 1, a) ^ p)
    else
      a = a ^ p
    end
    local sum = a:sum(dims, keepdim)
    local zero = mr.no_grad(sum.eq, sum, 0)
    return mr.where(zero, 0, mr.where(zero, 1, sum) ^ (1 / p))
  end

  -- x:norm(...) with the option p: the row has the norm of p = 2.
  function M.norm(x, ...)
    check.tensor("norm", "x", x)
    local given = table.pack(...)
    local options = check.options("norm", given[given.n], NORM)
    local p, dims, keepdim = options.p, options.dim, options.keepdim
    if given.n > 3 then misuse "norm: expected a dim, keepdim and options" end
    if given.n > 1 then dims = given[1] end
    if given.n > 2 then keepdim = given[2] end
    if type(p) ~= "number" or p ~= p then
      misuse(("norm: p is %s, expected a number such as 1 or math.huge"):format(tostring(p)))
    end
    if p < 0 and p > -math.huge then misuse(format("norm: p is %g, expected a number from 0 on", p)) end
    keepdim = check.switch("norm", "keepdim", keepdim, false)
    if p == 2 then return x:norm { dim = dims, keepdim = keepdim, out = options.out } end
    if options.out then misuse "norm: out= is only for p=2: use out:copy_(x:norm{p=...})" end
    dims = check.dims("norm", x, dims)
    local dtype = x.dtype
    if not dtype:find "f" then x, dtype = x:to "f32", "f32" end
    if p == 0 then return x:ne(0):to(dtype):sum(dims, keepdim) end
    if p == 1 then return x:abs():sum(dims, keepdim) end
    if p == math.huge then return x:abs():amax(dims, keepdim) end
    if p == -math.huge then return x:abs():amin(dims, keepdim) end
    return norm_of_powers(check.wide(x):abs(), p, dims, keepdim):to(dtype)
  end

  -- ---------------------------------------------------------------- options of rows

  local function check_options(name, x, options, option)
    check.tensor(name, "x", x)
    return check.options(name, options, { [option] = true })[option]
  end

  -- x:add(y, {alpha=}): x + alpha * y
  local function scaled(name, row)
    M[name] = function(x, y, options)
      local alpha = check_options(name, x, options, "alpha")
      if type(alpha) ~= "number" then
        misuse(("%s: alpha is %s, expected a number"):format(name, type_text(alpha)))
      end
      if math.type(alpha) == "float" and not x.dtype:find "f" and not (is_tensor(y) and y.dtype:find "f") then
        misuse(("%s: alpha is %s, expected an integer for integers"):format(name, tostring(alpha)))
      end
      return x[row](x, y * alpha)
    end
  end
  for _, row in ipairs { "add", "add_", "sub", "sub_" } do scaled(row, row) end

  -- x:div(y, {rounding_mode="floor" or "trunc"}): integers stay integers.
  local function rounded(name, in_place)
    local divide = in_place and "div_" or "div"
    M[name] = function(x, y, options)
      local mode = check_options(name, x, options, "rounding_mode")
      if mode ~= "floor" and mode ~= "trunc" then
        misuse(("%s: rounding_mode=%s, expected \"floor\" or \"trunc\""):format(name, tostring(mode)))
      end
      if mode == "floor" then return x["floor_" .. (in_place and "divide_" or "divide")](x, y) end
      local whole = not x.dtype:find "f" and (is_tensor(y) and not y.dtype:find "f" or math.type(y) == "integer")
      if not whole then return in_place and x:div_(y):trunc_() or x[divide](x, y):trunc() end
      local exact = x - x:fmod(y) -- a multiple of y
      return in_place and x:copy_(exact:floor_divide(y)) or exact:floor_divide(y)
    end
  end
  rounded("div", false)
  rounded("div_", true)

  -- ---------------------------------------------------------------- comparing

  local CLOSE = { rtol = 1e-5, atol = 1e-8, equal_nan = false }

  --- a:isclose(b: tensor [, {rtol: number=1e-5, atol: number=1e-8, equal_nan: boolean=false}]) -> tensor
  --- True where |a - b| <= atol + rtol * |b|. mr.allclose gives one boolean for all elements.
  function M.isclose(a, b, options)
    check.tensor("isclose", "a", a)
    check.tensor("isclose", "b", b)
    if options ~= nil and type(options) ~= "table" then
      misuse("isclose: expected a table of options, got " .. type_text(options))
    end
    local o = {}
    for key, default in pairs(CLOSE) do o[key] = default end
    for key, value in pairs(options or {}) do
      if type(value) ~= type(CLOSE[key]) then
        misuse(("isclose: option `%s`: expected rtol or atol, a number, or equal_nan, a boolean"):format(tostring(key)))
      end
      o[key] = value
    end
    return mr.no_grad(function()
      if not (a.dtype .. b.dtype):find "f" then a, b = a:to("f64"), b:to("f64") end
      local distance = (a - b):abs()
      local close = distance:le((b * o.rtol):abs() + o.atol):logical_and(distance:isfinite()):logical_or(a:eq(b))
      return o.equal_nan and close:logical_or(a:isnan():logical_and(b:isnan())) or close
    end)
  end

  return M
end
