-- Checks of the arguments of functions that are made of several operations: functional.lua, composites.lua and their
-- neighbours. Each raises at the script's line, names the function and says what was expected. Those that find no error
-- return the value, or its default.
--
-- The module is a function of the tools that bind/ops/functional.c hands to it.
local words = require "millrace.words"
local format = words.format

return function(tools)
  local misuse, is_tensor = tools.misuse, tools.is_tensor
  local check = {}

  function check.shape_text(shape) return #shape == 0 and "scalar" or table.concat(shape, "x") end

  function check.type_text(value)
    if value == nil then return "nothing" end
    return is_tensor(value) and "a tensor" or "a " .. type(value)
  end

  local shape_text, type_text = check.shape_text, check.type_text

  function check.tensor(name, what, value)
    if not is_tensor(value) then misuse(("%s: %s: expected a tensor, got %s"):format(name, what, type_text(value))) end
    tools.check(value)
    return value
  end

  function check.floats(name, x)
    if not x.dtype:find "f" then
      misuse(("%s: takes floats, not %s; convert with x:to(\"f32\")"):format(name, x.dtype))
    end
  end

  -- The tensor with which a function of several operations computes: f16 and bf16 as f32, so that only the result is
  -- rounded.
  function check.wide(x) return x and x.dtype:find "16" and x:to "f32" or x end

  -- A copy of the table of options, whose names are all keys of `known`.
  function check.options(name, options, known)
    if options == nil then return {} end
    if type(options) ~= "table" then
      misuse(("%s: expected a table of options, got %s"):format(name, type_text(options)))
    end
    local copy = {}
    for key, value in pairs(options) do
      if not known[key] then
        misuse(name .. ": " .. tools.no_option(key, words.keys(known)))
      end
      copy[key] = value
    end
    return copy
  end

  local function has_shape(t, shape)
    if t.ndim ~= #shape then return false end
    for d, size in ipairs(shape) do
      if t:size(d) ~= size then return false end
    end
    return true
  end

  -- t is where x is.
  function check.place(name, what, t, x)
    if t.device == x.device or tostring(t.device) == tostring(x.device) then return end
    misuse(("%s: %s is on %s, but x is on %s: move one of them with to()"):format(name, what, tostring(t.device),
      tostring(x.device)))
  end

  -- t is where x is, has x's dtype and this shape; nil passes.
  function check.like(name, what, t, x, shape)
    if t == nil then return end
    check.tensor(name, what, t)
    check.place(name, what, t, x)
    if t.dtype ~= x.dtype then
      misuse(("%s: %s is %s, but x is %s; convert one of them with to()"):format(name, what, t.dtype, x.dtype))
    end
    if shape and not has_shape(t, shape) then
      misuse(("%s: %s must have the shape %s, but it is %s"):format(name, what, shape_text(shape), shape_text(t.shape)))
    end
  end

  function check.number(name, what, value, otherwise, low, high)
    if value == nil then return otherwise end
    if type(value) ~= "number" or not (value >= low and value <= high) then
      misuse(format("%s: %s must be a number from %g to %g, got %s", name, what, low, high, tostring(value)))
    end
    return value
  end

  function check.whole(name, what, value, least)
    local whole = type(value) == "number" and math.tointeger(value)
    if not whole or whole < least then
      misuse(("%s: %s must be a whole number of at least %d, got %s"):format(name, what, least,
        type(value) == "number" and tostring(value) or type_text(value)))
    end
    return whole
  end

  -- True or false; nil stands for `otherwise`.
  function check.switch(name, what, value, otherwise)
    if value == nil then return otherwise end
    if type(value) ~= "boolean" then
      misuse(("%s: %s: expected true or false, got %s"):format(name, what, type_text(value)))
    end
    return value
  end

  -- The dim as a number from 1. A tensor without dims counts as one with a dim of one element, as in the rows.
  function check.dim(name, x, dim)
    local ndim = math.max(x.ndim, 1)
    local whole = math.type(dim) == "integer" and dim or check.whole(name, "the dim", dim, math.mininteger)
    if whole == 0 or whole > ndim or whole < -ndim then
      misuse(("%s: there is no dim %d: x has the shape %s"):format(name, whole, shape_text(x.shape)))
    end
    return whole < 0 and whole + ndim + 1 or whole
  end

  -- The dims as a list of numbers from 1; nil: all of them.
  function check.dims(name, x, dims)
    local list, seen = {}, {}
    if dims == nil then
      for d = 1, x.ndim do list[d] = d end
      return list
    end
    for k, dim in ipairs(type(dims) == "table" and dims or { dims }) do
      list[k] = check.dim(name, x, dim)
      if seen[list[k]] then misuse(("%s: dim %d is listed twice"):format(name, list[k])) end
      seen[list[k]] = true
    end
    if #list == 0 then misuse(name .. ": expected a dim or a list of dims, got an empty list") end
    return list
  end

  return check
end
