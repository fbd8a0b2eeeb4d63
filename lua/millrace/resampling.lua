-- Functions of networks that change the size of images, or look elements up by others: conv_transpose2d, interpolate,
-- scaled_dot_product_attention. They are made of recorded operations, so gradients flow through them without rules of
-- their own.
--
-- All that can be wrong is checked before the first operation is submitted.
--
-- The module is a function of the tools that bind/ops/functional.c hands to it, and of arguments.lua.
--# functional
local mr = require "millrace"

return function(tools, check)
  local misuse, is_tensor = tools.misuse, tools.is_tensor
  local shape_text = check.shape_text
  local M = {}

  -- A number or {rows, columns}, as a pair of whole numbers.
  local function pair(name, what, value, otherwise, least)
    if value == nil then value = otherwise end
    local list = type(value) == "table" and value or { value, value }
    if #list ~= 2 then misuse(("%s: %s has %d numbers, expected {rows, columns}"):format(name, what, #list)) end
    return { check.whole(name, what, list[1], least), check.whole(name, what, list[2], least) }
  end

  -- ---------------------------------------------------------------- transposed convolution

  local TRANSPOSED = { bias = true, stride = true, padding = true, output_padding = true, dilation = true,
    groups = true }

  --- x:conv_transpose2d(w: tensor [, bias: tensor] [, {bias: tensor, stride: integer|table=1, padding:
  ---   integer|table=0, output_padding: integer|table=0, dilation: integer|table=1, groups: integer=1}]) -> tensor
  --- The transposed convolution of images (images, inputs, rows, columns) with weights (inputs, outputs / groups,
  --- rows, columns): the gradient of conv2d with the same options.
  -- The input from which conv2d with these weights would have made x: the gradient of conv2d, with x as that of the
  -- result.
  function M.conv_transpose2d(x, w, bias, options)
    local name = "conv_transpose2d"
    if bias ~= nil and not is_tensor(bias) then bias, options = nil, bias end
    check.tensor(name, "x", x)
    check.like(name, "the weights", check.tensor(name, "the weights", w), x)
    options = check.options(name, options, TRANSPOSED)
    bias = bias or options.bias
    local groups = check.whole(name, "groups", options.groups or 1, 1)
    if x.ndim ~= 4 or w.ndim ~= 4 or x:size(2) ~= w:size(1) or w:size(1) % groups ~= 0 then
      misuse(("%s: x of shape %s needs weights of shape (inputs, outputs / groups, rows, columns), got %s"):format(name,
        shape_text(x.shape), shape_text(w.shape)))
    end
    local stride, dilation = pair(name, "stride", options.stride, 1, 1), pair(name, "dilation", options.dilation, 1, 1)
    local padding = pair(name, "padding", options.padding, 0, 0)
    local more = pair(name, "output_padding", options.output_padding, 0, 0)
    local shape = { x:size(1), w:size(2) * groups }
    for k = 1, 2 do
      if more[k] >= math.max(stride[k], dilation[k]) then
        misuse(("%s: output_padding is %d, expected less than the stride or the dilation"):format(name, more[k]))
      end
      shape[k + 2] = (x:size(k + 2) - 1) * stride[k] - 2 * padding[k] + dilation[k] * (w:size(k + 2) - 1) + more[k] + 1
      if shape[k + 2] < 1 then
        misuse(("%s: the result would have no elements: its padding is too large"):format(name))
      end
    end
    check.like(name, "the bias", bias, x, { shape[2] })
    local y = mr.conv2d_input(shape, w, x, { stride = stride, padding = padding, dilation = dilation, groups = groups })
    return bias and y + bias:view(1, -1, 1, 1) or y
  end

  -- ---------------------------------------------------------------- other sizes

  local INTERPOLATE = { size = true, scale_factor = true, mode = true, align_corners = true }

  local function positions_of(list, x) return mr.tensor(list, { dtype = "i64", device = x.device }) end

  local function nearest(x, dim, count, scale)
    local size, list = x:size(dim), {}
    for i = 1, count do list[i] = math.min(math.floor((i - 1) * scale), size - 1) + 1 end
    return x:index_select(dim, positions_of(list, x))
  end

  -- Each element is between two of x, in proportion to its distance from both.
  local function linear(x, dim, count, scale, align)
    local size, low, high, part = x:size(dim), {}, {}, {}
    for i = 1, count do
      local at = align and (count > 1 and (i - 1) * (size - 1) / (count - 1) or 0) or
        math.max((i - 0.5) * scale - 0.5, 0)
      local first = math.min(math.floor(at), size - 1)
      low[i], high[i], part[i] = first + 1, math.min(first + 1, size - 1) + 1, at - first
    end
    local across = {}
    for d = 1, x.ndim do across[d] = d == dim and count or 1 end
    local weight = mr.tensor(part, { dtype = x.dtype, device = x.device }):view(across)
    return x:index_select(dim, positions_of(low, x)):lerp(x:index_select(dim, positions_of(high, x)), weight)
  end

  local MODES = { nearest = 0, linear = 1, bilinear = 2 }

  --- x:interpolate({size: integer|table, scale_factor: number|table, mode: string="nearest", align_corners:
  ---   boolean=false}) -> tensor
  --- Resizes the dims after items and channels, to size= or by scale_factor=. The modes are "nearest", "linear"
  --- for sequences and "bilinear" for images.
  function M.interpolate(x, options)
    local name = "interpolate"
    check.floats(name, check.tensor(name, "x", x))
    options = check.options(name, options, INTERPOLATE)
    local mode, dims = options.mode or "nearest", x.ndim - 2
    if not MODES[mode] then
      misuse(("%s: mode=%s, expected \"nearest\", \"linear\" or \"bilinear\""):format(name, tostring(mode)))
    end
    if dims < 1 or MODES[mode] > 0 and MODES[mode] ~= dims then
      misuse(("%s: x has the shape %s, expected (items, channels, %s)"):format(name, shape_text(x.shape),
        mode == "linear" and "elements" or mode == "bilinear" and "rows, columns" or "..."))
    end
    local align = check.switch(name, "align_corners", options.align_corners, false)
    if align and mode == "nearest" then misuse(name .. ": align_corners is for the linear modes") end
    if (options.size == nil) == (options.scale_factor == nil) then
      misuse(name .. ": expected either size= or scale_factor=")
    end
    local given, counts, scales = options.size or options.scale_factor, {}, {}
    if type(given) == "table" and #given ~= dims then
      misuse(("%s: expected one number, or one for each of %d dims, got %d"):format(name, dims, #given))
    end
    for k = 1, dims do
      local value, size = type(given) == "table" and given[k] or given, x:size(k + 2)
      if options.size then
        counts[k] = check.whole(name, "the size", value, 1)
        scales[k] = size / counts[k]
      else
        value = check.number(name, "scale_factor", value, nil, 1e-9, 1e9)
        counts[k], scales[k] = math.floor(size * value), 1 / value
      end
      if size == 0 or counts[k] == 0 then misuse(("%s: dim %d would have no elements"):format(name, k + 2)) end
    end
    local y = mode == "nearest" and x or check.wide(x)
    for k = 1, dims do
      if mode == "nearest" then y = nearest(y, k + 2, counts[k], scales[k])
      else y = linear(y, k + 2, counts[k], scales[k], align) end
    end
    return y:to(x.dtype)
  end

  -- ---------------------------------------------------------------- attention

  local ATTENTION = { attn_mask = true, dropout_p = true, is_causal = true, scale = true }

  --- q:scaled_dot_product_attention(k: tensor, v: tensor [, {attn_mask: tensor, dropout_p: number=0, is_causal:
  ---   boolean=false, scale: number}]) -> tensor
  --- softmax(q @ k^T * scale + mask) @ v. A mask of bools says which keys a query sees; a mask of floats is added.
  --- is_causal lets query i see the keys up to i. The scale is 1 / sqrt(the last size of q) by default.
  -- softmax(q @ k^T * scale + mask) @ v
  function M.scaled_dot_product_attention(q, k, v, options)
    local name = "scaled_dot_product_attention"
    check.floats(name, check.tensor(name, "the queries", q))
    for _, t in ipairs { { "the keys", k }, { "the values", v } } do
      check.like(name, t[1], check.tensor(name, t[1], t[2]), q)
    end
    options = check.options(name, options, ATTENTION)
    if q.ndim < 2 or k.ndim < 2 or v.ndim < 2 or q:size(-1) ~= k:size(-1) or k:size(-2) ~= v:size(-2) then
      misuse(("%s: queries of shape %s need keys (..., positions, %d) and values (..., positions, size), got %s and %s")
        :format(name, shape_text(q.shape), q.ndim > 0 and q:size(-1) or 0, shape_text(k.shape), shape_text(v.shape)))
    end
    local mask, causal = options.attn_mask, check.switch(name, "is_causal", options.is_causal, false)
    if mask and causal then misuse(name .. ": expected either attn_mask= or is_causal=") end
    if mask then check.place(name, "the mask", check.tensor(name, "the mask", mask), q) end
    local scale = check.number(name, "scale", options.scale, 1 / math.sqrt(math.max(q:size(-1), 1)), -1e30, 1e30)
    local p = check.number(name, "dropout_p", options.dropout_p, 0, 0, 1)
    local scores = check.wide(q):matmul(check.wide(k):transpose(-2, -1)) * scale
    if causal then
      local later = mr.ones({ q:size(-2), k:size(-2) }, { dtype = "bool", device = q.device }):triu(1)
      scores = scores:masked_fill(later, -math.huge)
    elseif mask and mask.dtype == "bool" then scores = scores:masked_fill(mask:logical_not(), -math.huge)
    elseif mask then scores = scores + check.wide(mask) end
    local weights = scores:softmax(-1)
    if p > 0 then weights = weights:dropout(p) end
    return weights:matmul(check.wide(v)):to(q.dtype)
  end

  return M
end
