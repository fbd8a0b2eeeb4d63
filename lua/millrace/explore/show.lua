-- Results as a person reads them: outcomes, the steps in which they differ, and the texts of mr.explore and mr.stress.
local mr = require "millrace"
local words = require "millrace.words"
local plural = words.plural

return function(tools, values)
  local is_tensor, order_of_keys = tools.is_tensor, values.order_of_keys

  local function show_value(value)
    if type(value) == "string" then return '"' .. value:gsub("[\n\t]", { ["\n"] = "\\n", ["\t"] = "\\t" }) .. '"' end
    if type(value) == "table" then
      local texts, keys = {}, {}
      for key in next, value do keys[#keys + 1] = key end
      table.sort(keys, order_of_keys)
      for _, key in ipairs(keys) do
        local text = show_value(value[key])
        texts[#texts + 1] = math.type(key) == "integer" and text or tostring(key) .. " = " .. text
      end
      return "{" .. table.concat(texts, ", ") .. "}"
    end
    if is_tensor(value) then return (mr.format(value):gsub("%s*\n%s*", " ")) end
    return tostring(value)
  end

  local function show_outcome(o)
    if o.text then return o.text end
    if o.error then return "error: " .. o.error end
    if #o.values == 0 then return "no value" end
    local texts = {}
    for i = 1, o.values.n do texts[i] = show_value(o.values[i]) end
    return table.concat(texts, ", ")
  end

  local SHOWN = 8 -- outcomes, with their steps

  local function lines_of(text)
    local lines = {}
    for line in text:gmatch("[^\n]+") do lines[#lines + 1] = line end
    return lines
  end

  -- How many lines all outcomes begin with, and end with.
  local function common_ends(lists)
    local first, front, rear = lists[1], 0, 0
    local function all_have(from_front, i)
      for _, list in ipairs(lists) do
        local at = from_front and i or #list + 1 - i
        local same = first[from_front and i or #first + 1 - i]
        if not same or list[at] ~= same then return false end
      end
      return true
    end
    while all_have(true, front + 1) do front = front + 1 end
    while all_have(false, rear + 1) do rear = rear + 1 end
    for _, list in ipairs(lists) do -- of each something is shown
      if front + rear >= #list then rear = 0 end
      if front >= #list then front = 0 end
    end
    return front, rear
  end

  -- The steps in which an outcome differs from others; steps that repeat are one line.
  local function add_steps(out, list, front, rear)
    local i = front + 1
    if front > 0 then out[#out + 1] = ("      ... (%s that all have)"):format(plural(front, "step")) end
    while i <= #list - rear do
      local times = 1
      while i + times <= #list - rear and list[i + times] == list[i] do times = times + 1 end
      out[#out + 1] = "      " .. list[i]:gsub("%s+$", "") .. (times > 1 and "  (" .. times .. " times)" or "")
      i = i + times
    end
  end

  local function headline(r)
    local text = ("%s, %s"):format(plural(r.schedules, "schedule"), plural(#r.outcomes, "outcome"))
    if r.deterministic then
      for _, h in ipairs(r.hazards) do
        -- A launch runs in one order of its threads.
        if h.kind == "race-in-kernel" then return text .. ": deterministic but for races inside launches" end
      end
      return text .. ": deterministic"
    end
    if not r.complete then text = text .. "; not all schedules: " .. (r.incomplete or "?") end
    if r.estimate then text = text .. words.format(" (about %.3g in all)", r.estimate) end
    return text
  end

  local result_meta = {}
  result_meta.__index = result_meta
  result_meta.__name = "millrace.explored"

  function result_meta.__tostring(r)
    local out, lists = { headline(r) }, {}
    for i = 1, math.min(SHOWN, #r.outcomes) do lists[i] = lines_of(r.outcomes[i].steps) end
    local front, rear = 0, 0
    if #lists > 1 then front, rear = common_ends(lists) end
    for i, list in ipairs(lists) do
      local o = r.outcomes[i]
      out[#out + 1] = ("  outcome %d, in %s: %s"):format(i, plural(o.count, r.drawn and "sample" or "schedule"),
        show_outcome(o))
      if #r.outcomes > 1 then add_steps(out, list, front, rear) end
    end
    if #r.outcomes > SHOWN then out[#out + 1] = ("  and %d more, in outcomes"):format(#r.outcomes - SHOWN) end
    if r.untried then
      local rest = r.untried.count - #r.untried
      out[#out + 1] = "  not tried: " .. table.concat(r.untried, "\n             ")
        .. (rest > 0 and ("\n             and %s"):format(plural(rest, "more choice")) or "")
    end
    for _, line in ipairs(r.not_followed or {}) do out[#out + 1] = "  " .. line end
    if #r.hazards > 0 then
      local count = plural(r.hazard_count, "hazard")
      if r.hazard_count > #r.hazards then count = ("%s at %s of places"):format(count, plural(#r.hazards, "pair")) end
      out[#out + 1] = ("  %s: %s"):format(count, r.shows_hazards
        or "print(result.hazards[1]) shows " .. (#r.hazards == 1 and "it" or "the first"))
    end
    return table.concat(out, "\n")
  end

  local stress_meta = { __name = "millrace.stressed" }

  function stress_meta.__tostring(r)
    local lines = { ("%s, %s"):format(plural(r.runs, "run"), plural(#r.outcomes, "outcome")) }
    if r.schedule then lines[1] = lines[1] .. (", %d in the order of the schedule"):format(r.followed) end
    if r.interrupted then lines[1] = lines[1] .. "; it was interrupted" end
    for i, o in ipairs(r.outcomes) do
      local seed = o.seed and (", first with seed %d"):format(o.seed) or ""
      lines[#lines + 1] = ("  outcome %d, in %s%s: %s"):format(i, plural(o.count, "run"), seed, show_outcome(o))
    end
    if r.unfollowed then lines[#lines + 1] = "  the schedule could not be followed: " .. r.unfollowed end
    return table.concat(lines, "\n")
  end

  return { value = show_value, outcome = show_outcome, result_meta = result_meta, stress_meta = stress_meta,
           SHOWN = SHOWN }
end
