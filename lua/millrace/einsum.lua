-- mr.einsum: sums of products over named dims, made of permute, reshape, matmul and sum, so that gradients flow through
-- it. The operands are joined from left to right; a dim that no later operand and no result has is summed as early as
-- possible.
--
-- A term is { t = a tensor, labels = a name for each of its dims }. A name is a letter, or for a dim that "..." stands
-- for, its number from the end, so that these dims are aligned as in broadcasting. Easiest to break: after `diagonals`
-- no name occurs twice in a term.
--
-- The module is a function of the tools that bind/ops/functional.c hands to it, and of arguments.lua.
--# composite
local mr = require "millrace"

return function(tools, check)
  local misuse = tools.misuse

  -- ---------------------------------------------------------------- the equation

  local function refuse(text, ...) misuse(("einsum: " .. text):format(...)) end

  -- "b...i" as { "b", "...", "i" }
  local function parse_labels(text)
    local labels, rest, dots = {}, text, 0
    while rest ~= "" do
      local label = rest:match "^%.%.%." or rest:match "^%a"
      if not label then refuse("`%s`: expected letters and at most one `...`", text) end
      dots = dots + (label == "..." and 1 or 0)
      labels[#labels + 1] = label
      rest = rest:sub(#label + 1)
    end
    if dots > 1 then refuse("`%s`: expected letters and at most one `...`", text) end
    return labels
  end

  -- The labels of each operand, and those of the result or nil.
  local function parse(equation)
    if type(equation) ~= "string" then
      refuse("expected an equation such as \"ij,jk->ik\", got %s", check.type_text(equation))
    end
    local text = equation:gsub("%s", "")
    local left, right = text:match "^(.-)%->(.*)$"
    local inputs = {}
    for part in ((left or text) .. ","):gmatch "(.-)," do inputs[#inputs + 1] = parse_labels(part) end
    return inputs, right and parse_labels(right)
  end

  -- Each `...` becomes the numbers of `count` dims.
  local function without_dots(labels, count)
    local list = {}
    for _, label in ipairs(labels) do
      if label == "..." then
        for k = count, 1, -1 do list[#list + 1] = k end
      else
        list[#list + 1] = label
      end
    end
    return list
  end

  local function has_dots(labels)
    for _, label in ipairs(labels) do
      if label == "..." then return true end
    end
    return false
  end

  -- The labels of the operand, as many as it has dims; and how many `...` stands for.
  local function labels_of(i, labels, t)
    local dots = has_dots(labels)
    local rest = t.ndim - #labels + (dots and 1 or 0)
    if rest < 0 or rest > 0 and not dots then
      refuse("operand %d has %d dims, but its part of the equation names %s%d", i, t.ndim, dots and "at least " or "",
        #labels - (dots and 1 or 0))
    end
    return without_dots(labels, rest), rest
  end

  -- ---------------------------------------------------------------- sizes

  local function note_size(sizes, label, size)
    local known = sizes[label]
    if known == nil or known == 1 then
      sizes[label] = size
    elseif size ~= 1 and size ~= known then
      refuse("dim `%s` has the size %d in one operand and %d in another", type(label) == "string" and label or "...",
        known, size)
    end
  end

  -- Without an arrow: the dims of `...`, then all names that occur once, in their order.
  local function default_result(terms, most)
    local count, letters = {}, {}
    for _, term in ipairs(terms) do
      for _, label in ipairs(term.labels) do
        if type(label) == "string" then count[label] = (count[label] or 0) + 1 end
      end
    end
    for label, times in pairs(count) do
      if times == 1 then letters[#letters + 1] = label end
    end
    table.sort(letters)
    local result = without_dots({ "..." }, most)
    table.move(letters, 1, #letters, #result + 1, result)
    return result
  end

  local function check_result(result, sizes)
    local seen = {}
    for _, label in ipairs(result) do
      if seen[label] then refuse("`%s` occurs twice after the arrow", label) end
      if not sizes[label] then refuse("`%s` after the arrow is not a dim of any operand", label) end
      seen[label] = true
    end
  end

  -- ---------------------------------------------------------------- terms

  local function set_of(list)
    local set = {}
    for _, entry in ipairs(list) do set[entry] = true end
    return set
  end

  local function place_of(labels, wanted)
    for d, label in ipairs(labels) do
      if label == wanted then return d end
    end
    return nil
  end

  -- The term with its dims in this order; those that it lacks get the size 1.
  local function arranged(term, labels)
    local order, present = {}, {}
    for _, label in ipairs(labels) do
      local d = place_of(term.labels, label)
      if d then order[#order + 1] = d end
      present[#present + 1] = d and term.t:size(d) or 1
    end
    local t = #order > 1 and term.t:permute(order) or term.t
    return #order == #labels and t or t:reshape(present)
  end

  -- The elements of two dims with one name whose positions agree.
  local function diagonals(term)
    for d, label in ipairs(term.labels) do
      local other = place_of({ table.unpack(term.labels, d + 1) }, label)
      if other then
        local size, order, shape, labels = term.t:size(d), {}, {}, {}
        for k = 1, term.t.ndim do
          if k ~= d and k ~= d + other then
            order[#order + 1], shape[#shape + 1], labels[#labels + 1] = k, term.t:size(k), term.labels[k]
          end
        end
        order[#order + 1], order[#order + 2], shape[#shape + 1] = d, d + other, size * size
        labels[#labels + 1] = label
        local places = mr.arange(1, size * size + 1, size + 1, { dtype = "i64", device = term.t.device })
        local flat = term.t:permute(order):reshape(shape)
        return diagonals { t = flat:index_select(#shape, places), labels = labels }
      end
    end
    return term
  end

  -- Sums over the dims whose names are not in `kept`.
  local function summed(term, kept)
    local dims, labels = {}, {}
    for d, label in ipairs(term.labels) do
      if kept[label] then labels[#labels + 1] = label else dims[#dims + 1] = d end
    end
    if #dims == 0 then return term end
    return { t = term.t:sum(dims), labels = labels }
  end

  local function product_of_sizes(labels, sizes)
    local product = 1
    for _, label in ipairs(labels) do product = product * sizes[label] end
    return product
  end

  -- A dim of size 1 becomes as large as in the other operand.
  local function widened(term, labels, sizes)
    local shape, wide = term.t.shape, set_of(labels)
    for d, label in ipairs(term.labels) do
      if wide[label] then shape[d] = sizes[label] end
    end
    return { t = term.t:expand(shape), labels = term.labels }
  end

  local function joined(...)
    local list = {}
    for _, part in ipairs { ... } do table.move(part, 1, #part, #list + 1, list) end
    return list
  end

  -- The names of both terms: those of both that stay and that are summed, those of one of them.
  local function sorted_labels(a, b, kept)
    local batch, contracted, of_a, of_b = {}, {}, {}, {}
    local in_a, in_b = set_of(a.labels), set_of(b.labels)
    for _, label in ipairs(a.labels) do
      local list = not in_b[label] and of_a or kept[label] and batch or contracted
      list[#list + 1] = label
    end
    for _, label in ipairs(b.labels) do
      if not in_a[label] then of_b[#of_b + 1] = label end
    end
    return batch, contracted, of_a, of_b
  end

  -- The product of two terms, summed over the names that are not in the list `kept`.
  local function multiplied(a, b, kept)
    a, b = summed(a, set_of(joined(kept, b.labels))), summed(b, set_of(joined(kept, a.labels)))
    local batch, contracted, of_a, of_b = sorted_labels(a, b, set_of(kept))
    local labels, sizes = joined(batch, of_a, of_b), {}
    for _, term in ipairs { a, b } do
      for d, label in ipairs(term.labels) do note_size(sizes, label, term.t:size(d)) end
    end
    if #contracted == 0 then return { t = arranged(a, labels) * arranged(b, labels), labels = labels } end
    local both = joined(batch, contracted)
    a, b = widened(a, both, sizes), widened(b, both, sizes)
    local count, rows = product_of_sizes(batch, sizes), product_of_sizes(of_a, sizes)
    local inner, columns = product_of_sizes(contracted, sizes), product_of_sizes(of_b, sizes)
    local left = arranged(a, joined(batch, of_a, contracted))
    local right = arranged(b, joined(batch, contracted, of_b))
    local product
    if #batch == 0 then product = left:reshape(rows, inner):matmul(right:reshape(inner, columns))
    else product = left:reshape(count, rows, inner):matmul(right:reshape(count, inner, columns)) end
    local shape = {}
    for d, label in ipairs(labels) do shape[d] = sizes[label] end
    return { t = product:reshape(shape), labels = labels }
  end

  -- ---------------------------------------------------------------- the whole

  -- The names of the result and of the terms after i.
  local function kept_behind(i, terms, result)
    local kept = joined(result)
    for k = i + 1, #terms do kept = joined(kept, terms[k].labels) end
    return kept
  end

  -- Two dims of an operand that have one name have one size.
  local function check_diagonals(i, labels, t)
    for d, label in ipairs(labels) do
      local other = place_of(labels, label)
      if t:size(d) ~= t:size(other) then
        refuse("operand %d: dim `%s` has the sizes %d and %d", i, label, t:size(other), t:size(d))
      end
    end
  end

  local function check_operands(inputs, operands)
    if #operands ~= #inputs or operands.n and operands.n ~= #inputs then
      refuse("the equation has %d operands, but %d are given", #inputs, operands.n or #operands)
    end
    for i, t in ipairs(operands) do
      check.tensor("einsum", "operand " .. i, t)
      check.like("einsum", "operand " .. i, t, operands[1])
    end
  end

  --- mr.einsum(equation: string, operand: tensor...) -> tensor
  --- Products of the operands, summed over all dims that are not in the result: mr.einsum("ij,jk->ik", a, b) is the
  --- matrix product. A letter names a dim; the same letter twice in one operand takes its diagonal; `...` stands for
  --- further dims, which broadcast. Without an arrow, the result has the letters that occur once, in alphabetical
  --- order.
  -- einsum(equation, a, b, ...) or einsum(equation, {a, b, ...})
  local function einsum(equation, first, ...)
    local inputs, result = parse(equation)
    local operands = type(first) == "table" and first or table.pack(first, ...)
    check_operands(inputs, operands)
    local terms, most, sizes = {}, 0, {}
    for i, labels in ipairs(inputs) do
      local full, rest = labels_of(i, labels, operands[i])
      terms[i], most = { t = operands[i], labels = full }, math.max(most, rest)
      check_diagonals(i, full, operands[i])
      for d, label in ipairs(full) do note_size(sizes, label, operands[i]:size(d)) end
    end
    result = result and without_dots(result, most) or default_result(terms, most)
    check_result(result, sizes)
    for i, term in ipairs(terms) do terms[i] = diagonals(term) end
    local term = terms[1]
    for i = 2, #terms do term = multiplied(term, terms[i], kept_behind(i, terms, result)) end
    term = summed(term, set_of(result))
    return arranged(term, result)
  end

  return einsum
end
