-- `:watch x:peek()`: expressions that are shown after each entry, and where a script has stopped.
local _, tools = ...

local watching = { texts = {} }

local function lines_of(text, evaluate)
  local results = table.pack(evaluate(text))
  if not results[1] then return { ((results[2] or ""):match("^[^\n]*"):gsub("^%l+:1: ", "")) } end
  local lines = {}
  for i = 2, math.max(results.n, 2) do
    local shown, value_lines = tools.call(tools.require("show").lines, results[i])
    for _, line in ipairs(shown and value_lines or { value_lines }) do
      for one in (line .. "\n"):gmatch("(.-)\n") do lines[#lines + 1] = one end
    end
  end
  return lines
end

local function add_lines(text, evaluate, out)
  local lines = lines_of(text, evaluate)
  if #lines == 1 then
    out[#out + 1] = ("%s: %s"):format(text, lines[1])
    return
  end
  out[#out + 1] = text .. ":"
  for _, line in ipairs(lines) do out[#out + 1] = "  " .. line end
end

-- After an entry. evaluate(text) -> true and the values, or false and why not; nil: the session's.
function watching.show(evaluate)
  if #watching.texts == 0 then return end
  evaluate = evaluate or tools.require("session").evaluate
  local out = {}
  for _, text in ipairs(watching.texts) do add_lines(text, evaluate, out) end
  for i, line in ipairs(out) do out[i] = tools.style("dim", line) end
  tools.write(table.concat(out, "\n") .. "\n")
end

-- `:watch`, `:watch expression`, `:watch off [n]`
function watching.run(words, rest)
  local texts = watching.texts
  if rest == "" then
    local lines = {}
    for i, text in ipairs(texts) do lines[i] = ("%d: %s"):format(i, text) end
    return #lines > 0 and lines or { "no expression is watched: :watch x:peek() shows one after each entry" }
  end
  if words[1] == "off" then
    local n = words[2] and math.tointeger(tonumber(words[2]))
    if words[2] and not texts[n or 0] then return nil, (":watch off: there is no number `%s`"):format(words[2]) end
    if n then table.remove(texts, n) else watching.texts = {} end
    return {}
  end
  local chunk, message = tools.load("return " .. rest, "watch")
  if not chunk then return nil, ":watch: " .. message:gsub("^watch:1: ", "") end
  texts[#texts + 1] = rest
  return {}
end

return watching
