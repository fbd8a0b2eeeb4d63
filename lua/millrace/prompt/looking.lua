-- The commands that look and change nothing: queues, timeline, hazards, tensors, memory, time, and where a name is
-- explained.
local format = require "millrace.words".format
local _, tools = ...

local draw = tools.require("draw")
local tensors = tools.require("tensors")
local mr = tools.mr

local has_files = io ~= nil and io.open ~= nil -- not in a sandbox

local MOST_IN_QUEUE = 20

-- ---------------------------------------------------------------- queues

local function named(text) return tools.require("tensors").name_streams(text) end

local function queue_name(stream)
  return named((tostring(stream):gsub("^the ", "")))
end

-- One line: a mark, the operation and its progress, its line, and the reason why it waits.
local function operation_lines(style, one, widths, is_timed, lines)
  local can_run = one.state ~= "waiting"
  local mark = can_run and draw.glyph(style, "▶", ">") or draw.glyph(style, "·", ".")
  local part = one.parts > 1 and (" %d/%d"):format(one.part, one.parts) or ""
  local head = ("  %s %s  %s  "):format(mark, draw.fit(style, one.op .. part, widths.op),
    draw.fit(style, draw.cut_place(style, one.where or "", widths.where), widths.where))
  local why = one.why and named(one.why)
  if why and why:find("before it in its stream", 1, true) then why = nil end
  if not why and one.state == "ready" and not one.why then why = "can run" end
  if one.state == "running" and not one.why then why = is_timed and "running" or "can go on" end
  local indent = draw.width(head)
  local room = style.width - indent
  if room < 30 and why then -- the reason is on the next line
    lines[#lines + 1] = draw.paint(style, can_run and "bold" or "dim", (head:gsub("%s+$", "")))
    for _, text in ipairs(draw.wrap(why, style.width - 6)) do lines[#lines + 1] = "      " .. text end
    return
  end
  local wrapped = draw.wrap(why or "", room)
  for i, text in ipairs(wrapped) do
    local line = ((i == 1 and head or (" "):rep(indent)) .. text):gsub("%s+$", "")
    lines[#lines + 1] = can_run and draw.paint(style, "bold", line) or line
  end
end

-- A place takes a quarter of the line at most, and then has no folders.
local function column_widths(style, queues)
  local widths, most_where = { op = 4, where = 4 }, style.width // 4
  for _, queue in ipairs(queues) do
    for _, one in ipairs(queue.pending) do
      local part = one.parts > 1 and (" %d/%d"):format(one.part, one.parts) or ""
      widths.op = math.max(widths.op, draw.width(one.op .. part))
      widths.where = math.max(widths.where, draw.width(draw.cut_place(style, one.where or "", most_where)))
    end
  end
  widths.op = math.min(widths.op, style.width // 3)
  return widths
end

local function queues(commands, width)
  local machine, message = commands.machine("queues")
  if not machine then return nil, message end
  local list, style, lines = machine.queues(), draw.style(), {}
  style.width = width or style.width
  if #list == 0 then return { format("nothing is pending; the device is at %.6g ms", machine.time()) } end
  local widths = column_widths(style, list)
  for _, queue in ipairs(list) do
    lines[#lines + 1] = ("%s: %d pending"):format(queue_name(queue.stream), #queue.pending)
    for i, one in ipairs(queue.pending) do
      if i > MOST_IN_QUEUE then
        lines[#lines + 1] = ("    ... %d more"):format(#queue.pending - MOST_IN_QUEUE)
        break
      end
      operation_lines(style, one, widths, machine.chooser() == "timed", lines)
    end
  end
  local clocks = format("host at %.6g ms, device at %.6g ms", mr.clock(), machine.time())
  clocks = ("chooser %s; %s"):format(machine.chooser(), clocks)
  if width then clocks = draw.cut(style, clocks, width) end
  lines[#lines + 1] = draw.paint(style, "dim", clocks)
  return lines
end

-- ---------------------------------------------------------------- timeline

-- The number of the first span of an entry. `base`: of the first one of the trace.
local function first_span(trace, entry, base)
  local session = tools.require("session")
  for i, span in ipairs(trace.spans) do
    local of = session.entry_at(span.where or "")
    if of and of.n >= entry then return base + i - 1 end
  end
  return nil
end

-- The number of the entry that a word says, or of the last one.
local function entry_of(word)
  local entries = tools.require("session").entries
  local entry = word == nil and #entries or math.tointeger(tonumber(word))
  if entries[entry or 0] then return entry end
  if #entries == 0 then return nil, "the session has no entries" end
  return nil, ("there is no entry `%s`; :timeline shows the last one, :timeline 3 those from 3 on"):format(word)
end

-- Operations that have no time yet: for each stream, in their order.
local function pending_lines()
  local lines, style = {}, draw.style()
  for _, queue in ipairs(mr.machine and mr.machine.queues() or {}) do
    local texts = {}
    for i, one in ipairs(queue.pending) do
      if i > MOST_IN_QUEUE then
        texts[i] = ("... %d more"):format(#queue.pending - MOST_IN_QUEUE)
        break
      end
      texts[i] = one.op .. (one.where and (" (%s)"):format(one.where) or "")
    end
    local arrow = draw.glyph(style, " → ", " > ")
    local text = ("pending on %s: %s"):format(queue_name(queue.stream), table.concat(texts, arrow))
    for _, line in ipairs(draw.wrap(text, style.width, 4)) do lines[#lines + 1] = draw.paint(style, "dim", line) end
  end
  return lines
end

-- The file of a picture for Graphviz, or its text.
local function dot(words)
  local base = tools.require("session").first_span or 0
  local trace = tools.timeline(base)
  if not trace then return { "the timeline begins now: run something, then :dot shows it" } end
  if not has_files then return nil, "there are no files in a sandbox" end
  local path = words[1] or os.tmpname() .. ".dot"
  if not path:find("%.dot$") then return nil, (":dot: `%s` does not end in .dot"):format(path) end
  trace:save(path)
  if words[1] then return { "wrote " .. path .. "; dot -Tsvg draws it" } end
  local text = tools.read_file(path)
  os.remove(path)
  os.remove((path:gsub("%.dot$", "")))
  tools.write(text)
  return {}
end

local function timeline(words)
  local base = tools.require("session").first_span or 0 -- what is before it belongs to the device of before a reset
  local trace = tools.timeline(base)
  if not trace then return { "the timeline begins now: run something, then :timeline shows it" } end
  if words[1] == "save" then
    if not words[2] then return nil, "name a file: :timeline save x.html (or .json, .svg, .csv, .dot)" end
    if not has_files then return nil, "there are no files in a sandbox" end
    trace:save(words[2])
    return { "wrote " .. words[2] }
  end
  if words[1] ~= "all" then
    local entry, message = entry_of(words[1])
    if not entry then return nil, message end
    local first = first_span(trace, entry, base)
    if not first then return { ("entry %d has asked the device for nothing; :tl all shows all"):format(entry) } end
    trace = tools.timeline(first)
  end
  local lines = pending_lines()
  if #trace == 0 and #lines == 0 then return { "no work was submitted to the device" } end
  if #trace > 0 then trace:print() end
  return lines
end

-- ---------------------------------------------------------------- hazards

local function hazards(words)
  local list = mr.hazard.reports()
  if words[1] == "clear" then
    mr.hazard.clear()
    return { "the reports are forgotten" }
  end
  if words[1] then
    local report = list[math.tointeger(tonumber(words[1])) or 0]
    if not report then return nil, ("there is no report `%s`: there are %d"):format(words[1], #list) end
    local lines = {}
    for line in report.message:gmatch("[^\n]+") do lines[#lines + 1] = line end
    return lines
  end
  if #list == 0 then
    local off = mr.hazard.mode() == "off" and " (the checker is off: mr.hazard.mode(\"warn\"))" or ""
    return { "no hazards so far" .. off }
  end
  local rows = {}
  for i, report in ipairs(list) do
    local first, second = report.first or {}, report.second or {}
    rows[i] = { tostring(i), report.kind, report.tensor or "", ("%s %s"):format(first.op or "?", first.where or ""),
      ("%s %s"):format(second.op or "?", second.where or ""), (report.fix:gsub("\n", "; ")) }
  end
  local lines = draw.columns(draw.style(), { "#", "kind", "tensor", "first", "second", "fix" }, rows)
  lines[#lines + 1] = ":hazards 1 shows one in full, :fix 1 replays the session with its fix"
  return lines
end

local function why(words)
  if not words[2] then return nil, ":why needs two operations: mr:4 mr:7, or their numbers (#)" end
  for i = 1, 2 do
    local is_operation = words[i]:find("^#?%d+$") or words[i]:find(":%d+$")
    if not is_operation then
      return nil,
        (":why: `%s` is no operation: expected its line, as in mr:4, or its number, as in #7"):format(words[i])
    end
  end
  local function operation(word) return math.tointeger(tonumber((word:gsub("^#", "")))) or word end
  local text = mr.hazard.why(operation(words[1]), operation(words[2]))
  local number = text:match "%((#%d+)%)"
  return { text, number and ("%s is the number of a call in this session; :why takes it, too"):format(number) }
end

-- ---------------------------------------------------------------- tensors

-- The row of a tensor that can be used; nil: it was freed or closed.
local function tensor_row(name, tensor, streams)
  local text = tostring(tensor)
  local gone = tensors.gone(text)
  if gone then return { name, "", "", "", gone, "" } end
  local device = tensor.device
  local place = device == "cpu" and (tensor.pinned and "pinned" or "cpu") or "dev " .. device.index
  return { name, ("%s[%s]"):format(tensor.dtype, table.concat(tensor:size(), ", ")), draw.bytes(tensor.nbytes), place,
    text:match("last written by (.+)$") or "", tensors.readers(tensor, streams) }
end

local function who(commands, words)
  local names = #words > 0 and words or commands.names_of("tensor")
  local rows, streams = {}, tensors.streams()
  for _, name in ipairs(names) do
    local value = commands.value_of(name)
    if commands.kind_of(value) ~= "tensor" then return nil, ("`%s` is no tensor"):format(name) end
    rows[#rows + 1] = tensor_row(name, value, streams)
  end
  if #rows == 0 then return { "no variable holds a tensor" } end
  return draw.columns(draw.style(), { "name", "type", "size", "where", "last writer", "who can read it now" }, rows)
end

local function count_text(count) return count == 1 and "1 tensor" or count .. " tensors" end

local function memory()
  local stats, lines = mr.memory.stats(), {}
  for i, one in ipairs(stats.devices) do
    lines[i] = ("device %d: %s in %s, at most %s; the pool holds %s"):format(i - 1, draw.bytes(one.live),
      count_text(one.allocations), draw.bytes(one.peak), draw.bytes(one.reserved))
  end
  local host = stats.host
  lines[#lines + 1] = ("host: %s in %s, at most %s"):format(draw.bytes(host.live), count_text(host.allocations),
    draw.bytes(host.peak))
  return lines
end

-- ---------------------------------------------------------------- time

-- Under "manual" a wait would run everything: only the host's part is measured then.
local function time(commands, rest)
  local alone = rest:match("^%-%-no%-wait%s+(.*)$")
  rest = alone or rest
  if rest == "" then return nil, ":time needs an expression or a statement, as in :time x:sum()" end
  local waits = not alone and (not mr.machine or mr.machine.chooser() ~= "manual")
  local function wait()
    if waits then return commands.run(":wait") end
    return true
  end
  local waited, message = wait()
  if not waited then return nil, message end
  local cpu, start = os.clock(), mr.clock()
  local entry = tools.require("session").run(rest, { echo = true })
  local called = mr.clock()
  if entry.failed then return {} end
  waited, message = wait()
  if not waited then return nil, message end
  local kind = mr.machine and " (virtual)" or ""
  local lines = { format("host: %.6g ms in the call%s, %.3g ms of this computer", called - start, kind,
    (os.clock() - cpu) * 1000) }
  if waits then lines[#lines + 1] = format("all done: %.6g ms after it began%s", mr.clock() - start, kind)
  elseif alone then lines[#lines + 1] = "device: not waited for"
  else lines[#lines + 1] = "device: not measured, since under the chooser manual :time does not run it; :run does" end
  return lines
end

-- ---------------------------------------------------------------- where a name is explained

-- Entries that mention the word: { usage =, text = }. First those with this name, then those with the word in their
-- name, then others; among these, the most used in the examples first.
local function mentions(word)
  local uses, found, seen = tools.uses(), {}, {}
  for i, one in ipairs((mr.docs())) do
    local usage = one.usage or ("%s.%s: %s"):format(one.owner, one.name, one.type)
    local name = one.name:lower()
    local rank = name == word and 1 or name:find(word, 1, true) and 2 or
      (usage .. one.text):lower():find(word, 1, true) and 3
    if rank and not seen[usage] then
      seen[usage] = true
      found[#found + 1] = { usage = usage, text = one.text:match("^(.-%.)%s") or one.text, rank = rank,
        uses = uses[one.name] or 0, at = i }
    end
  end
  for i, one in ipairs((select(4, mr.docs()))) do
    local name = one.name:lower()
    if name:find(word, 1, true) then
      found[#found + 1] = { usage = ("`%s` of PyTorch or CUDA"):format(one.name), text = one.text,
        rank = name == word and 1 or 4, uses = 0, at = i }
    end
  end
  table.sort(found, function(a, b)
    if a.rank ~= b.rank then return a.rank < b.rank end
    if a.uses ~= b.uses then return a.uses > b.uses end
    return a.at < b.at
  end)
  return found
end

-- A terminal shows one screen of them, unless all are asked for.
local function apropos(words)
  local word, style, lines = (words[1] or ""):lower(), draw.style(), {}
  if word == "" then return nil, ":apropos needs a word" end
  local found = mentions(word)
  if #found == 0 then return nil, ("nothing mentions `%s`; help(\"%s\") may know a similar name"):format(word, word) end
  local most = words[2] ~= "all" and tools.rows() or math.huge
  for i, one in ipairs(found) do
    local next_lines = draw.wrap(one.usage, style.width, 4)
    for _, line in ipairs(draw.wrap(one.text, style.width - 2)) do
      next_lines[#next_lines + 1] = draw.paint(style, "dim", "  " .. line)
    end
    if i > 1 and #lines + #next_lines > most - 3 then
      lines[#lines + 1] = ("%d more: :apropos %s all"):format(#found - i + 1, word)
      break
    end
    table.move(next_lines, 1, #next_lines, #lines + 1, lines)
  end
  return lines
end

local function files(_, last) return tools.require("complete").files_of(last) end

return function(commands)
  local add = commands.add
  function commands.queue_lines(width) return queues(commands, width) end
  add{ name = "queues", short = "qu", text = "Draws each stream's queue: what can run, and what the rest waits for.",
    run = function() return queues(commands) end }
  add{ name = "timeline", short = "tl", usage = "[entry|all|save file]",
    text = "Draws the timeline of the last entry, of entries from a number on, or of all since a reset; or saves it.",
    complete = function() return { "all", "save" } end,
    run = timeline }
  add{ name = "dot", usage = "[file.dot]",
    text = "Shows the order of the session's operations as a graph for Graphviz.",
    complete = files, run = dot }
  add{ name = "hazards", usage = "[n|clear]", text = "Lists the hazards found so far, or shows one in full.",
    complete = function() return { "clear" } end, run = hazards }
  add{ name = "why", usage = "a b",
    text = "Shows what orders two operations (mr:4 mr:7, or numbers), or that nothing orders them.",
    run = why }
  add{ name = "who", usage = "[name ...]",
    text = "Lists tensors: type, place, last writer, and who can read them now without a hazard.",
    complete = function() return commands.names_of("tensor") end,
    run = function(words) return who(commands, words) end }
  add{ name = "mem", text = "Memory of each device and of the host.", run = memory }
  add{ name = "time", usage = "[--no-wait] expression",
    text = "Runs it as an entry, and says how long host and device took; --no-wait: the host's call only.",
    run = function(_, rest) return time(commands, rest) end }
  add{ name = "apropos", usage = "word [all]", is_paged = true,
    text = "Lists the functions, methods and properties that mention the word, those that are used most first.",
    run = apropos }
end
