-- Results as JSON, one line, for --explore=json.
local words = require "millrace.words"

return function(tools, values)
  local is_tensor, order_of_keys = tools.is_tensor, values.order_of_keys
  local MOST_ELEMENTS = 4096 -- of a tensor whose values are written

  local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r" }

  -- Bytes that are no UTF-8 become the sign for that.
  local function clean(text)
    local good, at = utf8.len(text)
    local out = {}
    while not good do
      out[#out + 1] = text:sub(1, at - 1) .. "\u{fffd}"
      text = text:sub(at + 1)
      good, at = utf8.len(text)
    end
    return table.concat(out) .. text
  end

  local function write_text(text)
    return '"' .. clean(text):gsub('[%c"\\\127]', function(c)
      return ESCAPES[c] or ("\\u%04x"):format(c:byte())
    end) .. '"'
  end

  -- JSON has no number for these: "nan", "inf", "-inf".
  local function write_number(number)
    if math.type(number) == "integer" then return tostring(number) end
    if number ~= number then return '"nan"' end
    if number - number ~= 0 then return number > 0 and '"inf"' or '"-inf"' end
    return words.format("%.17g", number)
  end

  local write
  local written_meta = {} -- of a table with a text that is JSON already

  local function write_table(value)
    if getmetatable(value) == written_meta then return value.text end
    local parts, keys = {}, {}
    for key in next, value do keys[#keys + 1] = key end
    if #keys == #value then
      for i, part in ipairs(value) do parts[i] = write(part) end
      return "[" .. table.concat(parts, ",") .. "]"
    end
    table.sort(keys, order_of_keys)
    for _, key in ipairs(keys) do
      if type(value[key]) ~= "function" then
        parts[#parts + 1] = write_text(tostring(key)) .. ":" .. write(value[key])
      end
    end
    return "{" .. table.concat(parts, ",") .. "}"
  end

  local function write_tensor(t)
    local out = { dtype = t.dtype, shape = table.move(t.shape, 1, #t.shape, 1, {}), elements = t.numel }
    if t.numel <= MOST_ELEMENTS then
      out.values = t:flatten():totable()
    end
    return write_table(out)
  end

  function write(value)
    local kind = type(value)
    if kind == "string" then return write_text(value) end
    if kind == "number" then return write_number(value) end
    if kind == "boolean" then return tostring(value) end
    if kind == "table" then return write_table(value) end
    if is_tensor(value) then return write_tensor(value) end
    return kind == "nil" and "null" or write_text(tostring(value)) -- a complex number
  end

  -- Most tensors are the same in most outcomes.
  local function new_memory()
    local texts, count = {}, 0
    return function(dtype, shape, bytes)
      local key = ("%s %s\0"):format(dtype, table.concat(shape, " ")) .. bytes
      if not texts[key] then
        if count == 4096 then texts, count = {}, 0 end
        local t = values.new_tensor(dtype, shape, bytes)
        texts[key] = setmetatable({ text = write_tensor(t) }, written_meta)
        count = count + 1
      end
      return texts[key]
    end
  end

  local function of_outcome(o, make_tensor)
    local out = { error = o.error, value = o.printed, written = o.written, count = o.count, difference = o.difference,
                  schedule = o.schedule, exit = o.exit }
    local list = o.values_with and not o.exit and o.values_with(make_tensor)
    if list and list.n > 0 then
      out.values = { o.printed }
      for i = 1, list.n do out.values[i + 1] = list[i] == nil and "nil" or list[i] end
    end
    return out
  end

  local FIELDS = { "schedules", "runs", "complete", "incomplete", "deterministic", "claim", "interrupted", "estimate",
                   "not_followed", "untried", "hazards", "hazard_count", "by_priority", "chance",
                   "combined", "alone", "unseen",
                   "unended" }

  local function of_result(r)
    local out = { outcomes = {} }
    for _, name in ipairs(FIELDS) do out[name] = r[name] end
    out.not_followed = r.not_followed and table.move(r.not_followed, 1, #r.not_followed, 1, {})
    if r.untried then
      out.untried = table.move(r.untried, 1, #r.untried, 1, {})
      out.untried_count = r.untried.count
    end
    -- One after the other: there may be thousands, whose tensors are made here.
    local make_tensor = new_memory()
    for i, o in ipairs(r.outcomes) do
      out.outcomes[i] = setmetatable({ text = write(of_outcome(o, make_tensor)) }, written_meta)
      r.outcomes[i] = nil
    end
    if r.with_fix then
      out.with_fix = { schedules = r.with_fix.schedules, complete = r.with_fix.complete,
                       outcomes = r.with_fix.combined and r.with_fix.combined.outcomes or #r.with_fix.outcomes,
                       deterministic = r.with_fix.deterministic,
                       hazard_count = r.with_fix.hazard_count }
    end
    return out
  end

  -- Takes the outcomes out of the result.
  return function(r) return write(of_result(r)) end
end
