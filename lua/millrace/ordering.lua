-- Functions that find elements by their order, or draw them: median, unique, multinomial. They are made of several
-- operations, so gradients flow through median without a rule of its own.
--
-- All that can be wrong is checked before the first operation is submitted. Only the probabilities of multinomial are
-- in the device's memory, and are checked there before a number is drawn.
--
-- The module is a function of the tools that bind/ops/functional.c hands to it, and of arguments.lua.
--# composite
local mr = require "millrace"

return function(tools, check)
  local misuse = tools.misuse
  local M = {}

  local function has_nan(x) return x.dtype:find "f" ~= nil end

  local function as_vector(x) return x:reshape(x.numel) end

  -- ---------------------------------------------------------------- median

  -- The place of the median among the `count` elements in order, for each line: the lower one of two; or the first NaN.
  -- NaNs are in order after all others.
  local function median_place(x, dim, count)
    local middle = (count + 1) // 2
    if not has_nan(x) then return nil, middle end
    local numbers = x:isnan():logical_not():sum(dim, true)
    return mr.where(numbers:lt(count), numbers + 1, middle), middle
  end

  local function median_along(x, dim, keepdim)
    dim = check.dim("median", x, dim)
    if x.ndim == 0 then x, keepdim = x:reshape(1), false end
    local count = x:size(dim)
    if count == 0 then misuse(("median: dim %d has no elements"):format(dim)) end
    local values, positions = x:sort(dim)
    local place, middle = mr.no_grad(median_place, x, dim, count)
    if place then values, positions = values:gather(dim, place), positions:gather(dim, place)
    else values, positions = values:narrow(dim, middle, 1):clone(), positions:narrow(dim, middle, 1):clone() end
    if keepdim then return values, positions end
    return values:squeeze(dim), positions:squeeze(dim)
  end

  -- Over everything, all elements that are equal to the median share the gradient: the greatest of those up to it.
  local function median_of_all(x)
    local flat = as_vector(x)
    local median = mr.no_grad(function() return (median_along(flat, 1, false)) end)
    if not x.requires_grad then return median end
    return mr.where(flat:gt(median), -math.huge, flat):amax()
  end

  local MEDIAN = { dim = true, keepdim = true }

  --- x:median([dim: integer [, keepdim: boolean=false]]) -> values: tensor, positions: tensor
  --- The median; for an even number of elements, the lower one of the two in the middle. NaN if any element is NaN.
  --- Without a dim it is the median of all elements, and there are no positions.
  function M.median(x, dim, keepdim)
    check.tensor("median", "x", x)
    if type(dim) == "table" then
      local options = check.options("median", dim, MEDIAN)
      dim, keepdim = options.dim, options.keepdim
    end
    keepdim = check.switch("median", "keepdim", keepdim, false)
    if dim ~= nil then return median_along(x, dim, keepdim) end
    if x.numel == 0 then misuse "median: there are no elements" end
    return median_of_all(x)
  end

  -- ---------------------------------------------------------------- unique

  local UNIQUE = { return_inverse = true, return_counts = true }

  -- Whether each element of a sorted vector differs from the one before it.
  local function is_first(sorted)
    local count = sorted.numel
    local start = mr.ones(1, { dtype = "bool", device = sorted.device })
    if count == 1 then return start end
    return mr.cat { start, sorted:narrow(1, 2, count - 1):ne(sorted:narrow(1, 1, count - 1)) }
  end

  -- How far each position is from the next one; `last` is the number of elements.
  local function distances(positions, last)
    local stop = mr.full({ 1 }, last + 1, { dtype = "i64", device = positions.device })
    return mr.cat { positions:narrow(1, 2, positions.numel - 1), stop } - positions
  end

  -- Integers that lie near each other are looked up in a table, which has a place for each number from the least to the
  -- greatest. It costs a few passes over the elements; sorting costs several times as much.
  local LEAST_FOR_TABLE = 4096 -- elements: few are sorted before their least and greatest are known
  local AT_ONCE = 1 << 16      -- elements on the CPU: their places then stay in its caches

  -- The least element and the number of places from it to the greatest one; nil where a table does not pay.
  local function table_of(flat)
    if flat.numel < LEAST_FOR_TABLE or not flat.dtype:find "^[iu]" then return nil end
    local least, greatest = flat:amin():item(), flat:amax():item()
    if math.ult(greatest - least, flat.numel) then return least, greatest - least + 1 end
  end

  -- Calls fn(places, first, length) for the elements' places in the table, part by part. The next call overwrites
  -- `places`.
  local function each_place(flat, least, fn)
    local count = flat.numel
    local most = flat.device == "cpu" and math.min(AT_ONCE, count) or count
    local buffer = mr.empty({ most }, { dtype = "i64", device = flat.device })
    for first = 1, count, most do
      local length = math.min(most, count - first + 1)
      fn(buffer:narrow(1, 1, length):copy_(flat:narrow(1, first, length)):sub_(least - 1), first, length)
    end
  end

  local function unique_by_table(flat, least, places, options)
    local like = { dtype = "i64", device = flat.device }
    local seen = mr.zeros({ places }, { dtype = "bool", device = flat.device })
    local found, inverse, counts = mr.ones({ flat.numel }, { dtype = "bool", device = flat.device }), nil, nil
    each_place(flat, least, function(at, _, length) seen:scatter_(1, at, found:narrow(1, 1, length)) end)
    local at = as_vector(seen:nonzero())
    if options.return_inverse then
      local number = seen:cumsum(1)
      inverse = mr.empty({ flat.numel }, like)
      each_place(flat, least, function(places_of, first, length)
        number:gather(1, places_of, { out = inverse:narrow(1, first, length) })
      end)
    end
    if options.return_counts then
      local all, one = mr.zeros({ places }, like), mr.ones({ flat.numel }, like)
      each_place(flat, least, function(places_of, _, length)
        all:index_add_(1, places_of, one:narrow(1, 1, length))
      end)
      counts = all:gather(1, at)
    end
    return (at + (least - 1)):to(flat.dtype), inverse, counts
  end

  local function unique(x, options)
    local flat = as_vector(x)
    if flat.numel == 0 then
      local none = mr.empty({ 0 }, { dtype = "i64", device = x.device })
      local inverse = options.return_inverse and none:reshape(x.shape) or nil
      return flat:clone(), inverse, options.return_counts and none or nil
    end
    local least, places = table_of(flat)
    if least then
      local values, inverse, counts = unique_by_table(flat, least, places, options)
      return values, inverse and inverse:reshape(x.shape), counts
    end
    local sorted, order = flat:sort(1)
    local first = is_first(sorted)
    local inverse, counts
    if options.return_inverse then
      inverse = mr.zeros_like(order):scatter_(1, order, first:cumsum(1)):reshape(x.shape)
    end
    if options.return_counts then counts = distances(as_vector(first:nonzero()), flat.numel) end
    return sorted:masked_select(first), inverse, counts
  end

  --- x:unique([{return_inverse: boolean=false, return_counts: boolean=false}]) -> values: tensor, inverse: tensor,
  ---   counts: tensor
  --- The different values of x in order, as a vector. The inverse has for each element of x its position among the
  --- values, and the counts say how often each value occurs in x. Results that were not requested are left out. The
  --- host waits for the number of values.
  -- Returns the values, then what was asked for.
  function M.unique(x, options)
    check.tensor("unique", "x", x)
    options = check.options("unique", options, UNIQUE)
    for name, value in pairs(options) do check.switch("unique", name, value) end
    if x.requires_grad and mr.is_grad_enabled() then
      misuse "unique: it has no derivative: call it on x:detach(), or inside mr.no_grad"
    end
    tools.may_read("unique", x)
    local values, inverse, counts = unique(x, options)
    if not options.return_inverse then return values, counts end
    return values, inverse, counts
  end

  -- ---------------------------------------------------------------- multinomial

  local MULTINOMIAL = { replacement = true }

  -- Numbers above 0 up to 1: 1 is as likely as each other, and 0 is not among them.
  local function above_zero(shape, dtype, device)
    return 1 - mr.rand(shape, { dtype = dtype, device = device })
  end

  -- How many of the `sums`, which ascend along the last dim, are below each part. The steps are powers of two: as many
  -- infinite ones stand after the sums as let each step end among them.
  local function count_below(sums, part)
    local categories, shape, step = sums:size(-1), sums.shape, 1
    while 2 * step <= categories do step = 2 * step end
    shape[#shape] = 2 * step - 1 - categories
    local padding = mr.full(shape, math.huge, { dtype = sums.dtype, device = sums.device })
    sums = mr.cat({ sums, padding }, -1)
    local count = mr.zeros(part.shape, { dtype = "i32", device = part.device })
    local further, probe, below = mr.empty_like(count), mr.empty_like(part), mr.empty_like(part, { dtype = "bool" })
    while step >= 1 do
      count:add(step, { out = further }) -- as a position from 1, the last of so many sums
      sums:gather(-1, further, { out = probe })
      probe:lt(part, { out = below })
      mr.where(below, further, count, { out = count })
      step = step // 2
    end
    return count
  end

  -- The first category up to which the probabilities come to at least a part of all of them: its own is never 0. In f64
  -- and with 1 as the greatest, sums neither overflow nor lose small probabilities.
  local function drawn_again(p, count)
    p = p:to "f64"
    local sums = (p / p:amax(-1, true)):cumsum(-1)
    local shape = p.shape
    shape[#shape] = count
    local part = above_zero(shape, "f64", p.device):mul_(sums:narrow(-1, sums:size(-1), 1))
    return (count_below(sums, part) + 1):to "i64"
  end

  -- A category waits an exponential time, the shorter the more likely it is; the first ones are drawn.
  local function drawn_once(p, count)
    local time = -above_zero(p.shape, p.dtype, p.device):log()
    local _, positions = (p / time:clamp(1e-30, nil)):topk(count, -1)
    return positions
  end

  local function check_probabilities(p, count, again)
    local fine = p:ge(0):logical_and(p:isfinite()):all()
    local enough = p:gt(0):sum(-1):ge(again and 1 or count):all()
    if not fine:item() then misuse "multinomial: a probability is negative, infinite or not a number" end
    if enough:item() then return end
    misuse(again and "multinomial: all probabilities of a row are 0" or
      ("multinomial: a row has fewer than %d categories of a probability above 0: draw fewer, or set replacement=true")
      :format(count))
  end

  --- x:multinomial(count: integer [, replacement: boolean=false]) -> positions: tensor
  --- Draws `count` positions (from 1) from each row of x. The probability of a position is proportional to its element
  --- of x. Without replacement no position is drawn twice. The host waits until the probabilities have been checked.
  function M.multinomial(x, count, again)
    check.tensor("multinomial", "x", x)
    check.floats("multinomial", x)
    count = check.whole("multinomial", "the number of samples", count, 1)
    if type(again) == "table" then again = check.options("multinomial", again, MULTINOMIAL).replacement end
    again = check.switch("multinomial", "replacement", again, false)
    if x.ndim ~= 1 and x.ndim ~= 2 or x.numel == 0 then
      misuse(("multinomial: expected a vector of probabilities, or a row of them for each result, got the shape %s")
        :format(check.shape_text(x.shape)))
    end
    if not again and count > x:size(-1) then
      misuse(("multinomial: %d samples of %d categories: set replacement=true"):format(count, x:size(-1)))
    end
    tools.may_read("multinomial", x)
    return mr.no_grad(function()
      local p = x.dtype:find "16" and x:to "f32" or x
      check_probabilities(p, count, again)
      return again and drawn_again(p, count) or drawn_once(p, count)
    end)
  end

  return M
end
