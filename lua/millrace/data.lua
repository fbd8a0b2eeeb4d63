-- mr.data: batches of host tensors on their way to the device, ahead of the loop that uses them.
--
-- A batch goes through a slot: the rows are gathered into pinned memory of the slot, a copy stream takes them from
-- there to new device tensors, and an event is recorded. When the loop gets the batch, its stream waits for the
-- event, and the allocator is told that it uses the tensors. Easiest to break: the host writes into a slot's memory
-- again only after the event of the slot's last copy.
local mr = require "millrace"

return function(tools)
  local misuse = tools.misuse
  local data = {}

  local DEFAULTS = { batch_size = 1, shuffle = false, drop_last = false, depth = 2 }
  local KNOWN = { batch_size = true, shuffle = true, drop_last = true, depth = true, device = true, stream = true }

  local function check(tensors, options)
    if tools.is_tensor(tensors) then tensors = { tensors } end
    if type(tensors) ~= "table" or #tensors == 0 then misuse("batches: expected a tensor or a list of tensors") end
    for i, t in ipairs(tensors) do
      if not tools.is_tensor(t) then
        misuse(("batches: entry %d is %s, expected a tensor"):format(i, tools.type_of(t)))
      end
      if tostring(t.device) ~= "cpu" then
        misuse(("batches: tensor %d is on a device: expected host tensors"):format(i))
      end
      if t.ndim == 0 or t:size(1) ~= tensors[1]:size(1) then
        misuse(("batches: tensor %d does not have as many rows as the first one"):format(i))
      end
    end
    if options ~= nil and type(options) ~= "table" then
      misuse("batches: expected a table of options, got " .. tools.type_of(options))
    end
    local o = {}
    for name, value in pairs(DEFAULTS) do o[name] = value end
    for name, value in pairs(options or {}) do
      if not KNOWN[name] then misuse(("batches: there is no option `%s`"):format(tostring(name))) end
      o[name] = value
    end
    for _, name in ipairs { "batch_size", "depth" } do
      if math.type(o[name]) ~= "integer" or o[name] < 1 then
        misuse(("batches: %s is %s, expected an integer from 1 on"):format(name, tostring(o[name])))
      end
    end
    for _, name in ipairs { "shuffle", "drop_last" } do
      if type(o[name]) ~= "boolean" then
        misuse(("batches: %s is %s, expected true or false"):format(name, tostring(o[name])))
      end
    end
    if o.stream ~= nil and tools.type_of(o.stream) ~= "a stream" then
      misuse("batches: stream is " .. tools.type_of(o.stream) .. ", expected a stream")
    end
    -- Gradients do not go through batches: the memory between is written again and again.
    local values = {}
    for i, t in ipairs(tensors) do values[i] = t:detach() end
    return values, o
  end

  -- Rows `first` to `last` of `t`, or those that `order` lists there, into the beginning of `pinned`: that part.
  local function gather(t, order, first, last, pinned)
    local count = last - first + 1
    local part = pinned:narrow(1, 1, count)
    if not order then return part:copy_(t:narrow(1, first, count)) end
    return part:copy_(t:index_select(1, order:narrow(1, first, count)))
  end

  -- A slot's memory for batches of all tensors.
  local function new_slot(tensors, rows)
    local slot = { pinned = {}, event = mr.event() }
    for i, t in ipairs(tensors) do
      local shape = t.shape
      shape[1] = rows
      slot.pinned[i] = mr.empty(shape, { dtype = t.dtype, pinned = true })
    end
    return slot
  end

  -- Puts a batch on its way.
  local function send(tensors, order, first, last, slot, stream, device)
    if slot.copied then slot.event:synchronize() end
    local there = {}
    for i, t in ipairs(tensors) do there[i] = gather(t, order, first, last, slot.pinned[i]) end
    mr.with(stream, function()
      for i, part in ipairs(there) do there[i] = part:to(device, { non_blocking = true }) end
      slot.event:record(stream)
    end)
    slot.copied, slot.batch = true, there
  end

  function data.batches(tensors, options)
    local o
    tensors, o = check(tensors, options)
    local rows = tensors[1]:size(1)
    local size = math.max(math.min(o.batch_size, rows), 1)
    local count = rows // o.batch_size
    if rows % o.batch_size > 0 and not o.drop_last then count = count + 1 end
    local stream = o.stream or mr.stream { device = o.device }
    local device, slots = stream.device, {}
    local order = o.shuffle and mr.randperm(rows, { device = "cpu" }) or nil
    local sent, got = 0, 0

    local function send_next()
      local at = sent % o.depth + 1
      slots[at] = slots[at] or new_slot(tensors, size)
      local first = sent * size + 1
      send(tensors, order, first, math.min(first + size - 1, rows), slots[at], stream, device)
      sent = sent + 1
    end

    return function()
      if got == count then return nil end
      while sent < count and sent < got + o.depth do send_next() end
      local slot = slots[got % o.depth + 1]
      got = got + 1
      local batch, current = slot.batch, mr.current_stream(device)
      slot.batch = nil
      current:wait_event(slot.event)
      for _, t in ipairs(batch) do t:record_stream(current) end
      return table.unpack(batch)
    end
  end

  return data
end
