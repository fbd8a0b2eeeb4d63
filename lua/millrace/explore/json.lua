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

  local function write_table(value)
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
      local data, flat = {}, t:flatten()
      for i = 1, t.numel do data[i] = flat[i]:item() end
      out.values = data
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

  local function of_outcome(o)
    local out = { error = o.error, value = o.printed, written = o.written, count = o.count, difference = o.difference,
                  schedule = o.schedule, exit = o.exit }
    if o.values and o.values.n > 0 and not o.exit then
      out.values = { o.printed }
      for i = 1, o.values.n do out.values[i + 1] = o.values[i] == nil and "nil" or o.values[i] end
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
    for i, o in ipairs(r.outcomes) do out.outcomes[i] = of_outcome(o) end
    if r.with_fix then
      out.with_fix = { schedules = r.with_fix.schedules, complete = r.with_fix.complete,
                       outcomes = r.with_fix.combined and r.with_fix.combined.outcomes or #r.with_fix.outcomes,
                       deterministic = r.with_fix.deterministic,
                       hazard_count = r.with_fix.hazard_count }
    end
    return out
  end

  return function(r) return write(of_result(r)) end
end
