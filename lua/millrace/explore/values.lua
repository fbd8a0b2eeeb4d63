-- Turns the results of a function into bytes that can be compared, and back: a text, and behind it the bytes of its
-- tensors.
local mr = require "millrace"

local MOST_DEPTH = 16 -- of tables in tables

return function(tools)
  local misuse, is_tensor = tools.misuse, tools.is_tensor

  local pack

  local function order_of_keys(a, b)
    local x, y = type(a), type(b)
    if x ~= y then return x < y end
    if x == "boolean" then return not a and b end
    return a < b
  end

  local function pack_table(value, out, tensors, depth)
    if depth > MOST_DEPTH then
      misuse(("the function returns tables in tables, more than %d deep, or a table that contains itself"):format(
        MOST_DEPTH))
    end
    local keys = {}
    for key in next, value do
      local kind = type(key)
      if kind ~= "string" and kind ~= "number" and kind ~= "boolean" then
        misuse(("the function returns a table with a %s as a key; keys may be numbers, strings and "
          .. "booleans"):format(kind))
      end
      keys[#keys + 1] = key
    end
    table.sort(keys, order_of_keys)
    out[#out + 1] = "{" .. string.pack("<I4", #keys)
    for _, key in ipairs(keys) do
      pack(key, out, tensors, depth + 1)
      pack(value[key], out, tensors, depth + 1)
    end
  end

  local function pack_tensor(value, out, tensors)
    local shape = value.shape
    out[#out + 1] = "T" .. string.pack("<s1B", value.dtype, #shape)
    for _, size in ipairs(shape) do out[#out + 1] = string.pack("<i8", size) end
    tensors[#tensors + 1] = value
  end

  function pack(value, out, tensors, depth)
    local kind = math.type(value) or type(value)
    if kind == "nil" then out[#out + 1] = "n"
    elseif kind == "boolean" then out[#out + 1] = value and "t" or "f"
    elseif kind == "integer" then out[#out + 1] = "i" .. string.pack("<i8", value)
    elseif kind == "float" then out[#out + 1] = "d" .. string.pack("<d", value)
    elseif kind == "string" then out[#out + 1] = "s" .. string.pack("<s4", value)
    elseif kind == "table" then pack_table(value, out, tensors, depth)
    elseif is_tensor(value) then pack_tensor(value, out, tensors)
    else
      misuse(("the function returns %s; an outcome consists of numbers, strings, booleans, tensors, and "
        .. "tables of them"):format(tools.kind(value)))
    end
  end

  -- A table without __tostring or another text of its own.
  local function is_plain_table(err)
    return type(err) == "table" and not getmetatable(err)
  end

  local function text_of_table(err)
    local keys, parts = {}, {}
    for key in next, err do keys[#keys + 1] = key end
    table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
    for i, key in ipairs(keys) do parts[i] = ("%s = %s"):format(tostring(key), tostring(err[key])) end
    return "{" .. table.concat(parts, ", ") .. "}"
  end

  -- The text of an error, without addresses, which differ between two runs. A tensor without a name is known by the
  -- line that made it, and a communicator by the line of the call. Numbers of other objects are the same in each run of
  -- an exploration with one host and without tasks, and not under mr.stress (`counts_on`). Numbers of commands are not.
  -- An error of millrace may have either, and loses both.
  -- A tensor or a table is compared as one that is returned. One with values that no outcome has is known by its text.
  local function pack_error(err, counts_on)
    local text = is_plain_table(err) and text_of_table(err) or tostring(err)
    text = text:gsub("(tensor) #%d+", "%1"):gsub("(communicator) #%d+", "%1"):gsub("0x%x%x%x%x%x%x%x%x%x+", "0x...")
    if counts_on or type(err) == "userdata" or type(err) == "table" and getmetatable(err) then
      text = text:gsub(" ?%(#%d+%)", ""):gsub(" ?#%d+", "")
    end
    local out, tensors = { "e" .. string.pack("<s4", text) }, {}
    local is_value = is_plain_table(err) or is_tensor(err)
    if not is_value or not pcall(pack, err, out, tensors, 1) then return out[1], {} end
    return table.concat(out), tensors
  end

  local item_size = setmetatable({}, { __index = function(sizes, dtype)
    sizes[dtype] = mr.empty(0, { dtype = dtype, device = "cpu" }).itemsize
    return sizes[dtype]
  end })

  local function new_tensor(dtype, shape, bytes)
    local t = mr.empty(shape, { dtype = dtype, device = "cpu" })
    tools.fill(t, bytes)
    return t
  end

  -- A cursor over the bytes of an outcome: the text, and behind it the bytes of the tensors.
  local function reader(raw, text_size)
    return { raw = raw, at = 1, tensors_at = text_size + 1, make_tensor = new_tensor }
  end

  local function take(r, format)
    local value
    value, r.at = string.unpack(format, r.raw, r.at)
    return value
  end

  local function take_tensor(r)
    local dtype, shape, from = take(r, "<s1"), {}, r.tensors_at
    local size = item_size[dtype]
    for i = 1, take(r, "<B") do
      shape[i] = take(r, "<i8")
      size = size * shape[i]
    end
    r.tensors_at = from + size
    return r.make_tensor(dtype, shape, r.raw:sub(from, from + size - 1))
  end

  local function take_value(r)
    local tag = take(r, "<c1")
    if tag == "t" then return true end
    if tag == "f" then return false end
    if tag == "i" then return take(r, "<i8") end
    if tag == "d" then return take(r, "<d") end
    if tag == "s" then return take(r, "<s4") end
    if tag == "T" then return take_tensor(r) end
    if tag ~= "{" then return nil end
    local value = {}
    for _ = 1, take(r, "<I4") do
      local key = take_value(r)
      value[key] = take_value(r)
    end
    return value
  end

  -- Fields that are made when they are first asked for: `later` of the metatable has a function for each.
  local function make_later(o, key)
    local make = getmetatable(o).later[key]
    local value = make and make(o)
    rawset(o, key, value)
    return value
  end

  -- make(o): the field's value.
  local function add_later(o, key, make) getmetatable(o).later[key] = make end

  local function make(o) return o.value, o.values end

  local function pairs_with_values(o)
    make(o)
    return next, o
  end

  -- Values are made later: a search may end with thousands of outcomes that have many tensors each.
  local function read_outcome(o)
    local r = reader(o.raw, o.text_size)
    local tag = take(r, "<c1")
    local later = {}
    local out = setmetatable({ count = o.count, schedule = o.schedule, steps = o.steps, switches = o.switches },
      { later = later, __index = make_later, __pairs = pairs_with_values })
    if tag == "o" then
      out.printed, out.written, tag = take(r, "<s4"), take(r, "<s4"), take(r, "<c1")
      if out.written == "" then out.written = nil end
    end
    if o.difference_lines then -- a delay at random (mr.stress) has none
      out.difference = {}
      for line in o.difference_lines:gmatch("[^\n]+") do table.insert(out.difference, line) end
    end
    if tag == "e" then
      out.error = take(r, "<s4")
      if r.at <= o.text_size then out.raised = take_value(r) end
      return out
    end
    local values_at = r.at
    local function values_with(make_tensor)
      r.at, r.tensors_at, r.make_tensor = values_at, o.text_size + 1, make_tensor
      local values = { n = take(r, "<I4") }
      for i = 1, values.n do values[i] = take_value(r) end
      return values
    end
    function later.values() return values_with(new_tensor) end
    function later.values_with() return values_with end -- for the explorer: values with other tensors
    function later.value(whole) return whole.values[1] end
    return out
  end

  -- The results of pcall of the function: a text, and a list of tensors. `output`: of a script, what it has printed and
  -- written, also before an error.
  local function pack_results(results, counts_on, output)
    local before = output and "o" .. string.pack("<s4s4", output.printed, output.written or "") or ""
    if not results[1] then
      local text, tensors = pack_error(results[2], counts_on)
      return before .. text, tensors
    end
    local out, tensors = { before .. "v" .. string.pack("<I4", results.n - 1) }, {}
    for i = 2, results.n do pack(results[i], out, tensors, 1) end
    return table.concat(out), tensors
  end

  -- The same with the tensors' bytes behind the text; and the size of the text.
  local function pack_whole(results)
    local text, tensors = pack_results(results, true)
    for i, t in ipairs(tensors) do tensors[i] = tools.bytes(t:cpu()) end
    return text .. table.concat(tensors), #text
  end

  return { pack_results = pack_results, pack_whole = pack_whole, read_outcome = read_outcome, make = make,
           add_later = add_later, new_tensor = new_tensor, MOST_DEPTH = MOST_DEPTH, order_of_keys = order_of_keys }
end
