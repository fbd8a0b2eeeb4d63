-- Names outcomes by their differences: `loss = 0.41`, `value[3] = 7.0`, the lines of a text. Outcomes that are not
-- alike, such as tables with other keys, have no such names.
local words = require "millrace.words"

return function(tools, values)
  local is_tensor, order_of_keys = tools.is_tensor, values.order_of_keys
  local MOST_COUNTED = 65536 -- elements of a tensor that are compared one by one

  local differs = {}

  -- ---------------------------------------------------------------- leaves: what is compared, by its path

  local function add_leaves(leaves, path, value)
    if type(value) ~= "table" then
      leaves[#leaves + 1] = { path = path, value = value }
      return
    end
    local keys = {}
    for key in next, value do keys[#keys + 1] = key end
    table.sort(keys, order_of_keys)
    for _, key in ipairs(keys) do
      local name = type(key) == "string" and (path == "value" and key or path .. "." .. key)
        or ("%s[%s]"):format(path, tostring(key))
      add_leaves(leaves, name, value[key])
    end
  end

  local function leaves_of(o)
    local leaves = {}
    for i = 1, o.values.n do add_leaves(leaves, o.values.n == 1 and "value" or "value " .. i, o.values[i]) end
    return leaves
  end

  local function alike(a, b)
    if #a ~= #b then return false end
    for i, leaf in ipairs(a) do
      local x, y = leaf.value, b[i].value
      if leaf.path ~= b[i].path or is_tensor(x) ~= is_tensor(y) then return false end
      if is_tensor(x) and (x.dtype ~= y.dtype or x.nbytes ~= y.nbytes or #x.shape ~= #y.shape) then return false end
      for k = 1, is_tensor(x) and #x.shape or 0 do
        if x.shape[k] ~= y.shape[k] then return false end
      end
    end
    return true
  end

  -- ---------------------------------------------------------------- tensors

  -- The first place from `from` on at which the two texts differ, by halves.
  local function first_difference(a, b, from)
    local low, high = from, #a
    if a:sub(low) == b:sub(low) then return nil end
    while low < high do
      local middle = (low + high) // 2
      if a:sub(low, middle) == b:sub(low, middle) then low = middle + 1 else high = middle end
    end
    return low
  end

  -- The elements in which they differ: the first one, and how many there are (nil: not counted).
  local function differing_elements(raws, size)
    local first
    for i = 2, #raws do
      local at = first_difference(raws[1], raws[i], 1)
      local element = at and (at - 1) // size
      if element and (not first or element < first) then first = element end
    end
    local total = #raws[1] // size
    if not first or total > MOST_COUNTED then return first, nil, total end
    local count = 0
    for element = first, total - 1 do
      local from, to = element * size + 1, (element + 1) * size
      local one = raws[1]:sub(from, to)
      for i = 2, #raws do
        if raws[i]:sub(from, to) ~= one then count = count + 1 break end
      end
    end
    return first, count, total
  end

  local function index_text(shape, element)
    local indices = {}
    for k = #shape, 1, -1 do
      table.insert(indices, 1, tostring(element % shape[k] + 1))
      element = element // shape[k]
    end
    return "[" .. table.concat(indices, ", ") .. "]"
  end

  -- For each outcome the text of its tensor, or nil where they are the same.
  local function name_tensors(path, tensors)
    local raws, texts = {}, {}
    for i, t in ipairs(tensors) do raws[i] = tools.bytes(t) end
    local total = tensors[1].numel
    if total == 0 then return nil end
    local first, count = differing_elements(raws, #raws[1] // total)
    if not first then return nil end
    local rest = ""
    if total > 1 then
      rest = not count and (" (the first of %d elements that differs)"):format(total)
        or count == total and (" (all %d elements differ)"):format(total)
        or count == 1 and (" (1 of %d elements differs)"):format(total)
        or (" (%d of %d elements differ)"):format(count, total)
    end
    for i, t in ipairs(tensors) do
      local value = #t.shape == 0 and t or t:flatten()[first + 1]
      texts[i] = ("%s%s = %s%s"):format(path, index_text(t.shape, first), tostring(value:item()), rest)
    end
    return texts
  end

  -- ---------------------------------------------------------------- numbers

  -- The first of the decimal digits in which two numbers differ; nil: in the first one, in sign or in size.
  local function digit_of_difference(a, b)
    if math.type(a) ~= "float" or math.type(b) ~= "float" then return nil end
    if a ~= a or b ~= b or a - a ~= 0 or b - b ~= 0 then return nil end
    local x, y = words.format("%.16e", a), words.format("%.16e", b)
    local head, size = x:match("^(-?%d%.%d+)(e.*)$")
    local other, other_size = y:match("^(-?%d%.%d+)(e.*)$")
    if size ~= other_size or head:sub(1, 1) ~= other:sub(1, 1) then return nil end
    local digits, others = head:gsub("%D", ""), other:gsub("%D", "")
    for i = 1, #digits do
      if digits:byte(i) ~= others:byte(i) then return i > 1 and i or nil end
    end
    return nil
  end

  local ENDINGS = { "st", "nd", "rd" }

  local function ordinal(number)
    local teen = number % 100 // 10 == 1
    return number .. (not teen and ENDINGS[number % 10] or "th")
  end

  local LEAST_DIGIT = 3 -- a difference before this one is seen at a glance

  -- "loss differs from the 3rd digit"; nil: from an earlier one
  local function closeness(path, list)
    local least
    for i = 2, #list do
      local digit = digit_of_difference(list[1], list[i])
      if not digit and list[1] ~= list[i] then return nil end
      if digit and (not least or digit < least) then least = digit end
    end
    return least and least >= LEAST_DIGIT and ("%s differs from the %s digit"):format(path, ordinal(least)) or nil
  end

  -- ---------------------------------------------------------------- outcomes

  local function is_same(a, b)
    if math.type(a) ~= math.type(b) then return false end
    return a == b or (a ~= a and b ~= b)
  end

  local function all_same(list)
    for i = 2, #list do
      if not is_same(list[1], list[i]) then return false end
    end
    return true
  end

  local MOST_NAMED = 3 -- leaves

  -- Names of outcomes that each have values: a list of texts, or nil; and remarks on all of them. `show`: a leaf as
  -- text.
  function differs.name(outcomes, show)
    local lists, names, remarks, more = {}, {}, {}, 0
    for i, o in ipairs(outcomes) do
      if not o.values then return nil, {} end
      lists[i], names[i] = leaves_of(o), {}
      if not alike(lists[1], lists[i]) then return nil, {} end
    end
    for k, leaf in ipairs(lists[1]) do
      local list, texts = {}, nil
      for i = 1, #outcomes do list[i] = lists[i][k].value end
      if is_tensor(leaf.value) then texts = name_tensors(leaf.path, list)
      elseif not all_same(list) then
        texts = {}
        for i, value in ipairs(list) do texts[i] = leaf.path .. " = " .. show(value) end
        remarks[#remarks + 1] = closeness(leaf.path, list)
      end
      if texts and #names[1] == MOST_NAMED then more = more + 1
      elseif texts then
        for i, text in ipairs(texts) do table.insert(names[i], text) end
      end
    end
    if #names[1] == 0 then return nil, {} end
    for i, list in ipairs(names) do
      names[i] = table.concat(list, "; ") .. (more > 0 and ("; and %d more that differ"):format(more) or "")
    end
    return names, remarks
  end

  -- The lines that differ between the texts: a list of lines for each text, and how many are left out. nil: no line can
  -- be left out.
  function differs.lines(texts)
    local lists, same_count = {}, true
    for i, text in ipairs(texts) do
      lists[i] = {}
      for line in (text .. "\n"):gmatch("(.-)\n") do table.insert(lists[i], line) end
      same_count = same_count and #lists[i] == #lists[1]
    end
    if not same_count or #lists < 2 or #lists[1] < 3 then return nil end
    local shown, left_out = {}, 0
    for i in ipairs(lists) do shown[i] = {} end
    for at, line in ipairs(lists[1]) do
      local same = true
      for i = 2, #lists do same = same and lists[i][at] == line end
      left_out = left_out + (same and 1 or 0)
      for i = 1, same and 0 or #lists do table.insert(shown[i], ("line %d: %s"):format(at, lists[i][at])) end
    end
    if left_out < 2 then return nil end
    return shown, left_out
  end

  return differs
end
