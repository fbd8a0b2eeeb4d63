-- mr.data: batches of host tensors on their way to the device, ahead of the loop that uses them.
--
-- A batch goes through a slot. The rows are gathered into pinned memory of the slot, a copy stream takes them from
-- there to new device tensors, and an event is recorded. When the loop gets the batch, its stream waits for the
-- event, and the allocator is told that it uses the tensors. Easiest to break: the host writes into a slot's memory
-- again only after the event of the slot's last copy.
--# data of mr.data: Batches on their way to the device.
local mr = require "millrace"
local keys = require "millrace.words".keys

return function(tools)
  local misuse = tools.misuse
  local data = {}

  local DEFAULTS = { batch_size = 1, shuffle = false, drop_last = false, depth = 2 }
  local KNOWN = { batch_size = true, shuffle = true, drop_last = true, depth = true, device = true, stream = true,
    sampler = true }

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
      if not KNOWN[name] then misuse("batches: " .. tools.no_option(name, keys(KNOWN))) end
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
    if o.sampler ~= nil then
      if type(o.sampler) ~= "table" or not o.sampler.indices then
        misuse(("batches: sampler is %s, expected one of mr.data.DistributedSampler"):format(tools.type_of(o.sampler)))
      end
      if o.shuffle then
        misuse "batches: shuffle=true beside a sampler, which has an order of its own: give shuffle=true to the sampler"
      end
      if o.sampler.rows ~= tensors[1]:size(1) then
        misuse(("batches: the sampler was made for %d rows, and the tensors have %d"):format(o.sampler.rows,
          tensors[1]:size(1)))
      end
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

  --- mr.data.batches(tensors: tensor|tensor[] [, {batch_size: integer=1, shuffle: boolean=false, drop_last:
  ---   boolean=false, device: device, depth: integer=2, stream: stream, sampler: table}]) -> iterator: function
  --- For loops over the rows of host tensors: for x, y in mr.data.batches({xs, ys}, {batch_size=64}) do. The batches
  --- are copied to the device on a stream of their own, `depth` of them ahead, from pinned memory. The current stream
  --- waits for a batch when the loop gets it. With a sampler, the rows are those of this rank.
  function data.batches(tensors, options)
    local o
    tensors, o = check(tensors, options)
    local order = o.sampler and o.sampler:indices() or
      o.shuffle and mr.randperm(tensors[1]:size(1), { device = "cpu" }) or nil
    local rows = order and order.numel or tensors[1]:size(1)
    local size = math.max(math.min(o.batch_size, rows), 1)
    local count = rows // o.batch_size
    if rows % o.batch_size > 0 and not o.drop_last then count = count + 1 end
    local stream = o.stream or mr.stream { device = o.device, name = "loader" }
    local device, slots = stream.device, {}
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

  -- ---------------------------------------------------------------- rows among ranks

  -- The numbers 1 to n in an order that depends on the seed alone (splitmix64), whatever random numbers a rank has
  -- drawn.
  local function shuffled(n, seed)
    local list = {}
    for i = 1, n do list[i] = i end
    for i = n, 2, -1 do
      seed = seed + 0x9E3779B97F4A7C15
      local z = (seed ~ (seed >> 30)) * 0xBF58476D1CE4E5B9
      z = (z ~ (z >> 27)) * 0x94D049BB133111EB
      local k = ((z ~ (z >> 31)) >> 1) % i + 1
      list[i], list[k] = list[k], list[i]
    end
    return list
  end

  local sampler = {}
  sampler.__index = sampler

  -- The rows of this rank: every n-th, so that all ranks have equally many. If some are missing, the first rows are
  -- repeated.
  function sampler.indices(s)
    local order, n = {}, s.num_replicas
    if s.shuffle then order = shuffled(s.rows, s.seed + s.epoch) end
    local count = s.drop_last and s.rows // n or (s.rows + n - 1) // n
    local mine = {}
    for i = 1, count do
      local at = ((i - 1) * n + s.rank) % s.rows + 1
      mine[i] = order[at] or at
    end
    return mr.tensor(mine, { dtype = "i64", device = "cpu" })
  end

  local function check_whole(name, value, least)
    if math.type(value) ~= "integer" or value < least then
      misuse(("%s is %s, expected an integer from %d on"):format(name, tostring(value), least))
    end
  end

  function sampler.set_epoch(s, epoch)
    check_whole("set_epoch: epoch", epoch, 0)
    s.epoch = epoch
  end

  local SAMPLER = { num_replicas = true, rank = true, shuffle = true, seed = true, drop_last = true }

  local function check_sampler(s)
    check_whole("DistributedSampler: num_replicas", s.num_replicas, 1)
    check_whole("DistributedSampler: rank", s.rank, 0)
    check_whole("DistributedSampler: seed", s.seed, 0)
    if s.rank >= s.num_replicas then
      misuse(("DistributedSampler: rank is %d, but ranks are 0 to %d"):format(s.rank, s.num_replicas - 1))
    end
    for _, name in ipairs { "shuffle", "drop_last" } do
      if type(s[name]) ~= "boolean" then
        misuse(("DistributedSampler: %s is %s, expected true or false"):format(name, tostring(s[name])))
      end
    end
    if s.rows // (s.drop_last and s.num_replicas or 1) == 0 then
      misuse(("DistributedSampler: %d rows are too few for %d ranks"):format(s.rows, s.num_replicas))
    end
  end

  --- mr.data.DistributedSampler(rows: tensor|integer [, {num_replicas: integer, rank: integer, shuffle: boolean=true,
  ---   seed: integer=0, drop_last: boolean=false}]) -> sampler: table
  --- Gives each rank its own part of the rows of a tensor, for mr.data.batches{sampler=}. All parts have the same size:
  --- some rows occur twice, or with drop_last the remaining rows are left out. All ranks shuffle by `seed` and the
  --- epoch: sampler:set_epoch(n) before each epoch gives another order. sampler:indices() has the rows. By default, the
  --- ranks are those of mr.dist.
  function data.DistributedSampler(rows, options)
    if tools.is_tensor(rows) then rows = rows.ndim > 0 and rows:size(1) or 0 end
    check_whole("DistributedSampler: the number of rows", rows, 0)
    if options ~= nil and type(options) ~= "table" then
      misuse("DistributedSampler: expected a table of options, got " .. tools.type_of(options))
    end
    local s = setmetatable({ rows = rows, epoch = 0, shuffle = true, seed = 0, drop_last = false }, sampler)
    for name, value in pairs(options or {}) do
      if not SAMPLER[name] then misuse("DistributedSampler: " .. tools.no_option(name, keys(SAMPLER))) end
      s[name] = value
    end
    s.num_replicas = s.num_replicas or mr.dist.world_size()
    s.rank = s.rank or mr.dist.rank()
    check_sampler(s)
    return s
  end

  return data
end
