-- Functions of tensors that are made of several operations: indexing with tensors, and what PyTorch's users expect
-- beside the operation table. They are written with recorded operations, so gradients flow through them without rules
-- of their own. bind/composites.c has their usage lines.
--
-- All that can be wrong is checked before the first operation is submitted.
--
-- The module is a function of the tools that bind/functional.c hands to it.
local mr = require "millrace"

return function(tools)
  local misuse, is_tensor = tools.misuse, tools.is_tensor
  local M = {}

  -- ---------------------------------------------------------------- arguments

  local function shape_text(shape) return #shape == 0 and "scalar" or table.concat(shape, "x") end

  local function type_text(value)
    if value == nil then return "nothing" end
    return is_tensor(value) and "a tensor" or "a " .. type(value)
  end

  local function check_tensor(name, what, value)
    if not is_tensor(value) then misuse(("%s: %s: expected a tensor, got %s"):format(name, what, type_text(value))) end
    tools.check(value)
    return value
  end

  -- The sizes of t from dim `first` on, behind those of `shape`.
  local function with_sizes(shape, t, first)
    for d = first, t.ndim do shape[#shape + 1] = t:size(d) end
    return shape
  end

  -- ---------------------------------------------------------------- t[index]

  -- Whether the index is a mask; otherwise it holds positions.
  local function is_mask(x, index)
    check_tensor("t[index]", "t", x)
    check_tensor("t[index]", "the index", index)
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

  function M.expand_as(x, other)
    check_tensor("expand_as", "x", x)
    return x:expand(check_tensor("expand_as", "the other", other).shape)
  end

  function M.view_as(x, other)
    check_tensor("view_as", "x", x)
    return x:view(check_tensor("view_as", "the other", other).shape)
  end

  local function check_whole(name, what, value, least)
    local whole = type(value) == "number" and math.tointeger(value)
    if not whole or whole < least then
      misuse(("%s: %s must be a whole number of at least %d, got %s"):format(name, what, least,
        type(value) == "number" and tostring(value) or type_text(value)))
    end
    return whole
  end

  -- The dim as a number from 1.
  local function check_dim(name, x, dim)
    local whole = check_whole(name, "the dim", dim, -x.ndim)
    if whole == 0 or whole > x.ndim then
      misuse(("%s: there is no dim %d: x has the shape %s"):format(name, whole, shape_text(x.shape)))
    end
    return whole < 0 and whole + x.ndim + 1 or whole
  end

  -- Each dim becomes two, of which the first one repeats.
  function M.tile(x, first, ...)
    check_tensor("tile", "x", x)
    local times = type(first) == "table" and { table.unpack(first) } or { first, ... }
    for k = 1, #times do times[k] = check_whole("tile", "argument " .. k, times[k], 0) end
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

  function M.repeat_interleave(x, times, dim)
    check_tensor("repeat_interleave", "x", x)
    times = check_whole("repeat_interleave", "the number of repeats", times, 0)
    if dim == nil then x, dim = x:reshape(x.numel), 1 end
    dim = check_dim("repeat_interleave", x, dim)
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

  function M.diag(x, k)
    check_tensor("diag", "x", x)
    k = k == nil and 0 or check_whole("diag", "the diagonal", k, math.mininteger)
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

  function M.one_hot(index, classes)
    check_tensor("one_hot", "the index", index)
    if index.dtype ~= "i64" and index.dtype ~= "i32" then
      misuse(("one_hot: the index is i64 or i32, not %s; convert with index:to(\"i64\")"):format(index.dtype))
    end
    if classes == nil and index.numel == 0 then misuse "one_hot: of no index: expected the number of classes" end
    classes = check_whole("one_hot", "the number of classes", classes == nil and index:max():item() or classes, 1)
    local shape = with_sizes({}, index, 1)
    shape[#shape + 1] = classes
    return mr.zeros(shape, { dtype = "i64", device = index.device }):scatter_(-1, index:unsqueeze(-1), 1)
  end

  -- ---------------------------------------------------------------- reductions

  -- The dims as a list of numbers from 1; nil: all of them.
  local function check_dims(name, x, dims)
    local list, seen = {}, {}
    if dims == nil then
      for d = 1, x.ndim do list[d] = d end
      return list
    end
    for k, dim in ipairs(type(dims) == "table" and dims or { dims }) do
      list[k] = check_dim(name, x, dim)
      if seen[list[k]] then misuse(("%s: dim %d is listed twice"):format(name, list[k])) end
      seen[list[k]] = true
    end
    if #list == 0 then misuse(name .. ": expected a dim or a list of dims, got an empty list") end
    return list
  end

  local function check_keepdim(name, keepdim)
    if keepdim ~= nil and type(keepdim) ~= "boolean" then
      misuse(("%s: keepdim: expected true or false, got %s"):format(name, type_text(keepdim)))
    end
    return keepdim
  end

  -- max and min over several dims share the gradient between equal elements, and return no positions. A dim of size 1
  -- beside the given ones makes them several.
  local function extreme(name, row)
    M[name] = function(x, dims, keepdim)
      check_tensor(name, "x", x)
      dims, keepdim = check_dims(name, x, dims), check_keepdim(name, keepdim)
      if x.ndim == 0 then return (x[row](x)) end
      dims[#dims + 1] = x.ndim + 1
      local out = x:unsqueeze(-1)[row](x:unsqueeze(-1), dims, keepdim or false)
      return keepdim and out:squeeze(-1) or out
    end
  end
  extreme("amax", "max")
  extreme("amin", "min")

  function M.logsumexp(x, dims, keepdim)
    check_tensor("logsumexp", "x", x)
    if not x.dtype:find "f" then
      misuse(("logsumexp: takes floats, not %s; convert with x:to(\"f32\")"):format(x.dtype))
    end
    dims, keepdim = check_dims("logsumexp", x, dims), check_keepdim("logsumexp", keepdim)
    if x.ndim == 0 then return x:clone() end
    local greatest = mr.no_grad(M.amax, x, dims, true)
    local shift = mr.where(greatest:isfinite(), greatest, 0)
    local out = (x - shift):exp():sum(dims, keepdim or false):log()
    return out + shift:reshape(out.shape)
  end

  -- ---------------------------------------------------------------- comparing

  local CLOSE = { rtol = 1e-5, atol = 1e-8, equal_nan = false }

  function M.isclose(a, b, options)
    check_tensor("isclose", "a", a)
    check_tensor("isclose", "b", b)
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
