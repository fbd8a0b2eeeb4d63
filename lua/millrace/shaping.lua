-- Functions that give tensors other shapes: pad, unbind, meshgrid, and t[{...}] with a tensor among its entries. They
-- are made of recorded operations, so gradients flow through them without rules of their own.
--
-- All that can be wrong is checked before the first operation is submitted.
--
-- The module is a function of the tools that bind/ops/functional.c hands to it, of arguments.lua, and of `rows`:
-- get_index and set_index of a tensor alone, which composites.lua has.
--# composite
local mr = require "millrace"

return function(tools, check, rows)
  local misuse, is_tensor = tools.misuse, tools.is_tensor
  local shape_text, type_text = check.shape_text, check.type_text
  local M = {}

  -- ---------------------------------------------------------------- padding

  local MODES = { constant = true, reflect = true, replicate = true, circular = true }

  -- The element of a dim with `size` of them that is at place i, which may be in front of it or after it.
  local function source_of(mode, i, size)
    if mode == "replicate" then return math.max(1, math.min(size, i)) end
    if mode == "circular" then return (i - 1) % size + 1 end
    if i < 1 then return 2 - i end
    return i > size and 2 * size - i or i
  end

  local function check_padding(x, dim, before, behind, mode)
    local size = x:size(dim)
    if size + before + behind < 0 then
      misuse(("pad: %d and %d would remove more elements than dim %d has: %d"):format(before, behind,
        dim, size))
    end
    local most = mode == "reflect" and size - 1 or mode == "circular" and size or nil
    if mode ~= "constant" and size == 0 or most and math.max(before, behind) > most then
      misuse(("pad: mode=\"%s\" needs more than %d elements in dim %d to give %d and %d more"):format(mode, size, dim,
        before, behind))
    end
  end

  -- Negative numbers take elements away.
  local function cut(x, dim, before, behind)
    local first, last = math.max(-before, 0), math.max(-behind, 0)
    if first == 0 and last == 0 then return x end
    return x:narrow(dim, 1 + first, x:size(dim) - first - last)
  end

  local function with_constant(x, dim, before, behind, value)
    local function piece(count)
      local shape = x.shape
      shape[dim] = count
      return mr.full(shape, value, { dtype = x.dtype, device = x.device })
    end
    local parts = { x }
    if before > 0 then table.insert(parts, 1, piece(before)) end
    if behind > 0 then parts[#parts + 1] = piece(behind) end
    return #parts > 1 and mr.cat(parts, dim) or x
  end

  local function with_elements(x, dim, before, behind, mode)
    local positions = {}
    for i = 1 - before, x:size(dim) + behind do positions[#positions + 1] = source_of(mode, i, x:size(dim)) end
    return x:index_select(dim, mr.tensor(positions, { dtype = "i64", device = x.device }))
  end

  --- x:pad(sizes: integer[] [, mode: string="constant" [, value: number=0]]) -> tensor
  --- Adds elements around x. The sizes are the numbers of elements before and after, for each dim from the last one on:
  --- {left, right, top, bottom}. The modes are "constant", "reflect", "replicate" and "circular"; with "constant", a
  --- size below 0 takes elements away. {mode=, value=} can be given instead.
  function M.pad(x, sizes, options, value)
    check.tensor("pad", "x", x)
    if type(options) == "table" then
      local o = check.options("pad", options, { mode = true, value = true })
      options, value = o.mode, o.value
    end
    local mode = options or "constant"
    if not MODES[mode] then
      misuse(("pad: mode=%s, expected \"constant\", \"reflect\", \"replicate\" or \"circular\""):format(tostring(mode)))
    end
    if mode ~= "constant" and value ~= nil then misuse(("pad: mode=\"%s\" takes no value"):format(mode)) end
    if type(sizes) ~= "table" or #sizes == 0 or #sizes % 2 ~= 0 or #sizes > 2 * x.ndim then
      misuse(("pad: expected a list of sizes, before and after for each dim from the last one on, " ..
        "at most %d numbers"):format(2 * x.ndim))
    end
    local list = {}
    for k, size in ipairs(sizes) do
      list[k] = check.whole("pad", "size " .. k, size, mode == "constant" and -(1 << 53) or 0)
    end
    for k = 1, #list, 2 do check_padding(x, x.ndim - k // 2, list[k], list[k + 1], mode) end
    local y = x
    for k = 1, #list, 2 do
      local dim, before, behind = x.ndim - k // 2, list[k], list[k + 1]
      if mode == "constant" then y = with_constant(cut(y, dim, before, behind), dim, before, behind, value or 0)
      elseif before > 0 or behind > 0 then y = with_elements(y, dim, before, behind, mode) end
    end
    return y == x and x:clone() or y
  end

  -- ---------------------------------------------------------------- lists of views

  --- x:unbind([dim: integer=1]) -> views: tensor[]
  --- A list of x:select(dim, i) for each index of the dim.
  function M.unbind(x, dim)
    check.tensor("unbind", "x", x)
    if x.ndim == 0 then misuse "unbind: a 0-dim tensor has no dims" end
    dim = check.dim("unbind", x, dim or 1)
    local list = {}
    for i = 1, x:size(dim) do list[i] = x:select(dim, i) end
    return list
  end

  --- mr.meshgrid(vector: tensor... [, {indexing: string="ij"}]) -> grids: tensor[]
  --- For each vector a view: its elements are along its own dim, and are repeated along the dims of the other vectors.
  --- With the indexing "xy" the first two dims change places.
  function M.meshgrid(first, ...)
    local given = type(first) == "table" and { first, ... } or { { first, ... }, nil }
    local list, options = given[1], given[2]
    if type(list[#list]) == "table" then
      options = list[#list]
      list = { table.unpack(list, 1, #list - 1) }
    end
    local indexing = check.options("meshgrid", options, { indexing = true }).indexing or "ij"
    if indexing ~= "ij" and indexing ~= "xy" then
      misuse(("meshgrid: indexing=%s, expected \"ij\" or \"xy\""):format(tostring(indexing)))
    end
    if #list == 0 then misuse "meshgrid: expected vectors" end
    local shape, grids = {}, {}
    for k, t in ipairs(list) do
      check.like("meshgrid", "argument " .. k, t, check.tensor("meshgrid", "argument 1", list[1]))
      if t.ndim > 1 then
        misuse(("meshgrid: argument %d has the shape %s, expected a vector"):format(k, shape_text(t.shape)))
      end
      shape[k] = t.numel
    end
    for k, t in ipairs(list) do
      local across = {}
      for d = 1, #list do across[d] = d == k and shape[d] or 1 end
      grids[k] = t:reshape(across):expand(shape)
      if indexing == "xy" and #list > 1 then grids[k] = grids[k]:transpose(1, 2) end
    end
    return grids
  end

  -- ---------------------------------------------------------------- t[{..., index, ...}]

  -- The view that the other entries make, with the whole dim in place of the index; that dim; and the index.
  local function split_entries(x, entries)
    local others, index, place = {}, nil, nil
    for k, entry in ipairs(entries) do
      others[k] = entry
      if is_tensor(entry) then
        if index then
          misuse("t[{...}]: expected one tensor among the entries: t[{index, {}}][{{}, other}] chooses one after " ..
            "the other")
        end
        index, place, others[k] = entry, k, {}
      end
    end
    local view, dim = x[others], place
    for k = 1, place - 1 do
      if type(entries[k]) == "number" then dim = dim - 1 end -- the dim is gone
    end
    tools.check(index)
    if index.dtype == "bool" and (index.ndim ~= 1 or index:size(1) ~= view:size(dim)) then
      misuse(("t[{...}]: the mask for dim %d has the shape %s, expected %d"):format(place, shape_text(index.shape),
        view:size(dim)))
    end
    return view, dim, index
  end

  -- Dim `dim` of the view as the first one.
  local function in_front(view, dim)
    if dim == 1 then return view end
    local order = { dim }
    for d = 1, view.ndim do
      if d ~= dim then order[#order + 1] = d end
    end
    return view:permute(order)
  end

  -- The dims of the index stand where the dim was that they choose from.
  function M.get_entries(x, entries)
    check.tensor("t[{...}]", "t", x)
    local view, dim, index = split_entries(x, entries)
    local picked = rows.get(in_front(view, dim), index)
    local first = index.dtype == "bool" and 1 or index.ndim
    if dim == 1 then return picked end
    local order = {}
    for d = 1, dim - 1 do order[d] = first + d end
    for d = 1, first do order[#order + 1] = d end
    for d = first + dim, picked.ndim do order[#order + 1] = d end
    return picked:permute(order)
  end

  function M.set_entries(x, entries, value)
    check.tensor("t[{...}]", "t", x)
    local view, dim, index = split_entries(x, entries)
    if is_tensor(value) and value.ndim > 0 and dim > 1 then
      local first = index.dtype == "bool" and 1 or index.ndim
      local missing = view.ndim - 1 + first - value.ndim
      if missing > 0 then
        local shape = value.shape
        for _ = 1, missing do table.insert(shape, 1, 1) end
        value = value:reshape(shape)
      end
      local order = {}
      for d = dim, dim + first - 1 do order[#order + 1] = d end
      for d = 1, value.ndim do
        if d < dim or d >= dim + first then order[#order + 1] = d end
      end
      value = value:permute(order)
    elseif not is_tensor(value) and type(value) ~= "number" and type(value) ~= "boolean" then
      misuse(("t[{...}]: cannot assign %s: expected a number, a boolean or a tensor"):format(type_text(value)))
    end
    rows.set(in_front(view, dim), index, value)
  end

  return M
end
