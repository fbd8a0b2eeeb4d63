-- Results as text: outcomes, named by their differences (differs.lua), the differences of their schedules from the
-- order of submission, and the hazards.
local mr = require "millrace"
local words = require "millrace.words"
local plural = words.plural
local new_differs = require "millrace.explore.differs"

return function(tools, values)
  -- How outcomes are shown in which nothing can differ.
  local show = { NO_VALUE = "no value", NOTHING_PRINTED = "nothing printed" }
  local differs = new_differs(tools, values)
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

  local function show_values(o)
    if o.values.n == 0 then return show.NO_VALUE end
    local texts = {}
    for i = 1, o.values.n do texts[i] = show_value(o.values[i]) end
    return table.concat(texts, ", ")
  end

  function show.is_nothing(o)
    return o ~= nil and o.values ~= nil and o.values.n == 0 and (o.printed or "") == "" and not o.written
  end

  function show.error(o)
    return "error: " .. (o.raised ~= nil and show_value(o.raised) or o.error)
  end

  local function show_outcome(o)
    return o.text or o.error and show.error(o) or show_values(o)
  end

  local SHOWN = 8 -- outcomes, with their steps

  -- ---------------------------------------------------------------- what differs

  local SHORT = 40 -- bytes: a value that is shown whole, whatever of it differs

  -- Several outcomes by their differences; one outcome, and short ones, in full. Returns a list of texts and remarks.
  local function name_outcomes(outcomes)
    local texts, long = {}, false
    for i, o in ipairs(outcomes) do
      texts[i] = show_outcome(o)
      long = long or #texts[i] > SHORT
    end
    if #outcomes < 2 or outcomes[1].text then return texts, {} end
    local names, remarks = differs.name(outcomes, show_value)
    return long and names or texts, remarks
  end

  -- The lines of each difference that not all of them have.
  local function own_lines(outcomes)
    local counts, lists = {}, {}
    for _, o in ipairs(outcomes) do
      for _, line in ipairs(o.difference) do counts[line] = (counts[line] or 0) + 1 end
    end
    for i, o in ipairs(outcomes) do
      lists[i] = {}
      for _, line in ipairs(o.difference) do
        if counts[line] < #outcomes then table.insert(lists[i], line) end
      end
    end
    return lists
  end

  local MOST_LINES = 6

  local function add_difference(out, o, own)
    if #o.difference == 0 then
      out[#out + 1] = "      in the order of submission"
      return
    end
    local lines = #own > 0 and own or o.difference
    for i = 1, math.min(#lines, MOST_LINES) do
      local last = i == #lines or i == MOST_LINES
      local rest = last and (#lines > MOST_LINES and ("; and %d more, in difference"):format(#lines - MOST_LINES)
        or "; the rest as submitted") or ""
      out[#out + 1] = "      " .. lines[i] .. rest
    end
  end

  -- ---------------------------------------------------------------- results

  local function show_count(count) -- a float is more than 2^53
    return math.type(count) == "integer" and tostring(count) or words.format("%.3g", count)
  end

  -- Also of those that are not listed.
  local function count_outcomes(r)
    return r.combined and r.combined.outcomes or #r.outcomes
  end

  local function count_text(r)
    local count = count_outcomes(r)
    local text = ("%s, %s"):format(plural(r.schedules, "schedule"), plural(count == 1 and 1 or show_count(count),
      "outcome"))
    local left = r.not_followed or {}
    if left.races_inside then return text .. ": deterministic but for races inside launches" end
    if r.complete and count == 1 and r.claim == "conditional" then
      if left.parts then return text .. ": deterministic but for parts of operations that race" end
      if left.shared then return text .. ": deterministic but for what host functions share with other code" end
      local differs_by_memory = not show.is_nothing(r.outcomes[1])
      if left.unwritten and differs_by_memory then
        return text .. ": deterministic but for memory that nothing has written"
      end
      if left.prints then return text .. ": deterministic but for what kernels print" end
      if left.collector and differs_by_memory then
        return text .. ": deterministic but for when Lua's collector frees memory"
      end
    end
    if r.deterministic then
      local outcome = r.outcomes[1] and #r.hazards > 0 and show_outcome(r.outcomes[1])
      if outcome == show.NO_VALUE then
        return text .. ": the function returns nothing that the hazards could change"
      elseif outcome == show.NOTHING_PRINTED then
        return text .. ": the script prints nothing that the hazards could change"
      end
      return text .. ": deterministic"
    end
    if not r.complete then text = text .. "; not all schedules: " .. (r.incomplete or "?") end
    if r.estimate == math.huge then return text .. " (more than 1e308 in all, by an estimate)" end
    if r.estimate then text = text .. words.format(" (about %.3g in all)", r.estimate) end
    return text
  end

  -- The fix may be what fails, or not.
  local function add_error(r, out)
    local failed, first = 0, nil
    for _, o in ipairs(r.outcomes) do
      if o.error then failed, first = failed + 1, first or o end
    end
    if not first then return end
    local all = #r.outcomes == 1 and "" or ("%d of these outcomes: "):format(failed)
    out[#out + 1] = "    " .. all .. show.error(first):match "[^\n]*"
  end

  local function only_error(r)
    local only = count_outcomes(r) == 1 and r.outcomes[1]
    return only and only.error and only
  end

  -- An error is not called deterministic: the code after it was not followed.
  local function headline(r)
    local text = count_text(r)
    if not only_error(r) then return text end
    return text:gsub(": deterministic", ": this error", 1) .. "; nothing is claimed about what comes after it"
  end

  -- Where the time was over.
  local function alone(r)
    local tried = r.alone.tried == r.alone.groups and "each was" or ("%d of them were"):format(r.alone.tried)
    local text = ("  %s in %d independent groups: %s tried alone, all others as submitted; at least %s"):format(
      plural(r.alone.races, "race"), r.alone.groups, tried, plural(#r.outcomes, "outcome"))
    if not r.alone.reads then return text end
    return text .. "\n  the function reads their values: where it returns the tensors instead, groups can be combined"
  end

  local UNSEEN = "  and all others, which were not tried: nothing that is read or returned depends on the races"

  -- "A bug of depth 2" is one that shows where two given orders hold.
  local function by_priority(r)
    local text = ("  and %s at random, by priorities"):format(plural(r.by_priority, "schedule"))
    if r.chance < 0.01 then return text end
    return text .. (": a bug of depth 2 would have been found with >= %d %%"):format(math.floor(100 * r.chance))
  end

  local MOST_FACTORS = 6 -- that are shown one by one

  -- "2 * 2 * 3", or "2^18 * 3"
  local function show_product(groups)
    local counts, order, factors = {}, {}, {}
    for i, group in ipairs(groups) do
      factors[i] = tostring(group.outcomes)
      if not counts[group.outcomes] then order[#order + 1] = group.outcomes end
      counts[group.outcomes] = (counts[group.outcomes] or 0) + 1
    end
    if #groups <= MOST_FACTORS then return table.concat(factors, " * ") end
    for i, count in ipairs(order) do
      order[i] = counts[count] > 1 and count .. "^" .. counts[count] or tostring(count)
    end
    return table.concat(order, " * ")
  end

  -- Outcomes that are combined, not carried out: see `combined` in docs/explorer.md.
  local function combination(r)
    local races = 0
    for _, group in ipairs(r.combined.groups) do races = races + group.races end
    return ("  %s in %d independent groups: %s = %s from %s"):format(plural(races, "race"), #r.combined.groups,
      show_product(r.combined.groups), plural(show_count(r.combined.outcomes), "outcome"),
      plural(r.schedules, "schedule"))
  end

  -- Outcomes behind those that are shown.
  local function rest_of(r)
    local more = #r.outcomes - SHOWN
    if count_outcomes(r) > #r.outcomes then
      local listed = more > 0 and ("%d more of them in field `outcomes`, and "):format(more) or ""
      return "  in each of these at most one group is not as submitted; " .. listed .. "all others combine them"
    end
    return more > 0 and ("  and %d more (field `outcomes`; json lists all)"):format(more) or nil
  end

  local SHOWN_HAZARDS = 2

  -- Their reports, with the fix; without the line of keys, which is for programs.
  local function add_hazards(out, r)
    if #r.hazards == 0 then return end
    local count = plural(r.hazard_count, "hazard")
    if r.hazard_count > #r.hazards then count = ("%s at %s of places"):format(count, plural(#r.hazards, "pair")) end
    out[#out + 1] = ("  %s:"):format(count)
    for i = 1, math.min(SHOWN_HAZARDS, #r.hazards) do
      for line in r.hazards[i].message:gmatch("[^\n]+") do
        if not line:find("^kind=") then out[#out + 1] = "    " .. line:gsub("^hazard: ", "") end
      end
    end
    local more = #r.hazards - SHOWN_HAZARDS
    if more > 0 then
      out[#out + 1] = ("    and %s: %s"):format(plural(more, "more report"), r.shows_hazards or "in hazards")
    end
  end

  -- Whether it would have ended is not known.
  local function add_unended(out, u)
    out[#out + 1] = ("  a run was stopped%s before its end: it had taken %s s, and the first run took %s s"):format(
      u.where and " at " .. u.where or "", words.format("%.2g", u.seconds), words.format("%.2g", u.first))
    add_difference(out, u, {})
  end

  local result_meta = {}
  result_meta.__index = result_meta
  result_meta.__name = "millrace.explored"

  function result_meta.__tostring(r)
    local out, shown = { headline(r) }, table.move(r.outcomes, 1, math.min(SHOWN, #r.outcomes), 1, {})
    if only_error(r) then table.insert(out, 1, (show.error(r.outcomes[1]):match "[^\n]*")) end
    local names, remarks = name_outcomes(shown)
    local own = own_lines(shown)
    if r.warning then out[#out + 1] = "  " .. r.warning end
    if r.combined then out[#out + 1] = combination(r) end
    if r.unseen then out[#out + 1] = UNSEEN end
    for _, remark in ipairs(remarks) do out[#out + 1] = "  " .. remark end
    for i, o in ipairs(shown) do
      out[#out + 1] = ("  outcome %d, in %s: %s"):format(i, plural(o.count, r.drawn and "sample" or "schedule"),
        names[i])
      if #r.outcomes > 1 then add_difference(out, o, own[i]) end
    end
    out[#out + 1] = rest_of(r)
    if r.unended then add_unended(out, r.unended) end
    if r.untried then
      local rest = r.untried.count - #r.untried
      out[#out + 1] = "  not tried: " .. table.concat(r.untried, "\n             ")
        .. (rest > 0 and ("\n             and %s"):format(plural(rest, "more choice")) or "")
    end
    if r.alone then out[#out + 1] = alone(r) end
    if r.by_priority then out[#out + 1] = by_priority(r) end
    for _, line in ipairs(r.not_followed or {}) do out[#out + 1] = "  " .. line end
    add_hazards(out, r)
    if r.with_fix then
      local left = r.with_fix.hazard_count
      local fixes = r.with_fix.fixes == 1 and "fix" or "fixes"
      out[#out + 1] = ("  with the %s: %s%s"):format(fixes, headline(r.with_fix), left > 0
        and ("; %s left"):format(plural(left, "hazard")) or "")
      add_error(r.with_fix, out)
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

  show.value, show.outcome, show.differs = show_value, show_outcome, differs
  show.result_meta, show.stress_meta, show.SHOWN, show.count_outcomes = result_meta, stress_meta, SHOWN, count_outcomes
  return show
end
