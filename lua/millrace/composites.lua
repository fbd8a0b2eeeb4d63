-- Functions of tensors that are made of several operations: indexing with tensors. They are written with recorded
-- operations, so gradients flow through them without rules of their own.
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

  return M
end
