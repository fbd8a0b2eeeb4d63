-- Facts about a tensor, found without a read or a wait: the streams that can read it now, and its values if the host
-- can.
local _, tools = ...

local mr = tools.mr

local tensors = {}

-- The streams of the variables, each once.
function tensors.streams()
  local commands = tools.require("commands")
  local streams, seen = { { name = "default", stream = mr.default_stream() } }, { [mr.default_stream()] = true }
  for _, name in ipairs(commands.names_of("stream")) do
    local stream = commands.value_of(name)
    if not seen[stream] and not tostring(stream):find("closed", 1, true) then
      seen[stream] = true
      streams[#streams + 1] = { name = name, stream = stream }
    end
  end
  return streams
end

-- A text in which a stream without a name has that of its variable: "stream #3" is "stream `s`" where `s` holds it.
function tensors.name_streams(text)
  if not text:find("stream #", 1, true) then return text end
  local names = {}
  for _, one in ipairs(tensors.streams()) do
    local number = tostring(one.stream):match("^stream #(%d+)$")
    if number then names[number] = names[number] or one.name end
  end
  return (text:gsub("stream #(%d+)%f[^%d]", function(number)
    return names[number] and ("stream `%s`"):format(names[number])
  end))
end

-- "host, p; not c": the readers that need no wait now.
function tensors.readers(tensor, streams)
  if mr.hazard.readable(tensor) == nil then return "the checker is off" end
  local may, may_not = {}, {}
  table.insert(mr.hazard.readable(tensor) and may or may_not, "host")
  for _, one in ipairs(streams) do
    local of_device = tensor.device == "cpu" or one.stream.device == tensor.device
    -- A stream of before mr.reset() is an error, and reads nothing any more.
    local is_there, is_readable = pcall(mr.hazard.readable, tensor, one.stream)
    if of_device and is_there then table.insert(is_readable and may or may_not, one.name) end
  end
  if #may_not == 0 then return "all" end
  return (#may > 0 and table.concat(may, ", ") or "none") .. "; not " .. table.concat(may_not, ", ")
end

-- "freed", "lost in mr.reset()": the state of an unusable tensor, from its text; nil: it is usable.
function tensors.gone(text)
  local gone = text:match("%((%l+)%)$") or text:match("%((lost in mr%.reset%(%))%)$")
  return gone == "closed" and "freed" or gone
end

-- The values of a larger one are not copied only to be shown.
local MOST_SHOWN = 1000000

-- "fill_ at mr:3:1", which the host would have to wait for; nil: it can read the tensor now.
local function not_yet(tensor)
  local may, op, where = mr.hazard.readable(tensor)
  if may == nil then return tostring(tensor):find("pending", 1, true) and "what is pending" or nil end
  if may then return nil end
  return (op or "an operation") .. (where and " at " .. where or "")
end

-- Lines for a tensor that is named at the prompt.
function tensors.lines(tensor)
  local text = tostring(tensor)
  local lines = { text }
  if tensors.gone(text) then return lines end
  if tensor.device == "cpu" then
    local before = not_yet(tensor)
    if before then lines[2] = tools.style("dim", "  a read by the host now races with " .. before)
    elseif tensor.numel <= MOST_SHOWN then
      lines = { (tools.format(tensor:peek()):gsub("\n[^\n]*$", "")), text }
    end
    return lines
  end
  local readers = tensors.readers(tensor, tensors.streams())
  if readers ~= "all" and readers ~= "the checker is off" then
    lines[2] = tools.style("dim", "  safe to read now: " .. readers)
  end
  return lines
end

return tensors
