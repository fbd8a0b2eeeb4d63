-- The line above the prompt: pending work, for each stream its oldest operation and the reason why it waits.
local _, tools = ...

local live = {}

-- "producer: fill_ 2/4 can run, 3 more"
local function stream_text(queue)
  local named = tools.require("tensors").name_streams
  local shown = named(tostring(queue.stream))
  local name = shown:match("`(.-)`") or shown:gsub("^the ", "")
  local at = 1 -- an allocation says little, as long as nothing holds it up
  local pending = queue.pending
  while pending[at].op == "alloc" and pending[at].state ~= "waiting" and pending[at + 1] do at = at + 1 end
  local first = pending[at]
  local op = first.parts > 1 and ("%s %d/%d"):format(first.op, first.part, first.parts) or first.op
  local why = named(first.why or "")
  local is_held = why ~= "" and not why:find("^starts at") and not why:find("^waits for the operation before")
  local what = is_held and why or (first.state == "running" and "is running" or "can run")
  if first.state == "running" and tools.mr.machine.chooser() ~= "timed" then what = "can go on" end
  local more = #pending - at
  return ("%s: %s %s%s"):format(name, op, what, more > 0 and (", %d more"):format(more) or "")
end

-- On hardware only the busy streams are known, not the pending work.
local function busy_text()
  local busy = {}
  for _, one in ipairs(tools.require("tensors").streams()) do
    live.is_asking = true -- host functions that are due run in it, and may print
    local called, is_busy, message = pcall(tools.is_busy, one.stream)
    live.is_asking = false
    if not called then is_busy = false end
    if is_busy == nil then return nil, message end
    if is_busy then busy[#busy + 1] = one.name end
  end
  return #busy > 0 and "busy: " .. table.concat(busy, ", ") or nil
end

local told -- the failure that was said last

-- The line, in one row; nil: there is nothing to say. On hardware it is asked for again and again: a failure of the
-- device is the second value, once.
function live.text()
  if tools.require("settings").get("live") == "off" then return nil end
  local text, message
  if tools.mr.machine then
    local parts = {}
    local queues = tools.mr.machine.queues()
    for i, queue in ipairs(queues) do parts[i] = stream_text(queue) end
    local is_plain = #queues == 1 and queues[1].stream == tools.mr.default_stream() -- the prompt says how many
    text = #parts > 0 and not is_plain and table.concat(parts, "; ") or nil
  else
    text, message = busy_text()
  end
  if message == told then message = nil else told = message end
  if not text then return nil, message end
  local draw = tools.require("draw")
  local style = draw.style()
  return tools.style("dim", draw.cut(style, text, style.width - 1), true), message
end

return live
