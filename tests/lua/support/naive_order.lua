-- A hazard checker that forgets nothing, for the programs of waits_random.lua: it runs their text with objects that
-- only note the order, as sets of all earlier operations. It shares no code with the checker of millrace.
--
-- Easiest to break: the default stream and the blocking stream `d` wait for each other (R3); the others do not.

local function join(set, other)
  for node in pairs(other) do set[node] = true end
  return set
end

-- text -> set of accesses ("p.lua:5 x") that have a hazard, how many they are, and a set of unordered things. These are
-- two host functions, or a host function and a moment of the host. `mr.tick()` in the text is such a moment.
return function(text)
  local lane = { a = {}, b = {}, d = {}, default = {} }
  local host, released, nodes, found, count = {}, {}, {}, {}, 0
  local functions, loose, met = {}, {}, {}

  -- The predecessors of anything that the stream is given now.
  local function before(stream)
    local set = join(join({}, host), lane[stream])
    if stream == "default" then join(set, lane.d) elseif stream == "d" then join(set, released) end
    return set
  end

  local function give(stream, set)
    lane[stream] = set
    if stream == "default" then released = join({}, set) end
  end

  -- The line of the program that is running.
  local function where()
    for level = 2, 20 do
      local info = debug.getinfo(level, "Sl")
      if info.source == "=p.lua" then return "p.lua:" .. info.currentline end
    end
  end

  -- The line, and which time it is that it runs.
  local function moment()
    local place = where()
    met[place] = (met[place] or 0) + 1
    return place .. "#" .. met[place]
  end

  local function note_loose(set, name)
    for _, f in ipairs(functions) do
      if not set[f.node] then loose[f.name .. " " .. name] = true end
    end
  end

  local function overlap(x, y) return x.tensor == y.tensor and x.first <= y.last and y.first <= x.last end

  -- accesses: {{tensor=, first=, last=, writes=}, ...}
  local function enter(set, accesses)
    local node = { accesses = accesses }
    for _, old in ipairs(nodes) do
      for _, x in ipairs(set[old] and {} or old.accesses) do
        for _, y in ipairs(accesses) do
          local key = y.where .. " " .. y.tensor
          if (x.writes or y.writes) and overlap(x, y) and not found[key] then
            found[key] = true
            count = count + 1
          end
        end
      end
    end
    nodes[#nodes + 1] = node
    set[node] = true
    return set
  end

  local function access(tensor, writes, element)
    return { tensor = tensor, writes = writes, first = element or 1, last = element or 4, where = where() }
  end

  local function stream_of(name)
    local s = { name = name }
    function s:wait_stream(other)
      give(other.name, before(other.name)) -- the record is work of that stream
      give(self.name, join(before(self.name), lane[other.name]))
    end
    function s:wait_event(event) give(self.name, join(before(self.name), event.set)) end
    -- Only work that is submitted meets the other streams of R3.
    function s:synchronize() join(host, lane[self.name]) end
    function s:host_func(fn)
      local accesses = {}
      nodes.inside = accesses
      fn()
      nodes.inside = nil
      local called, set = moment(), before(self.name)
      note_loose(set, called)
      give(self.name, enter(set, accesses))
      functions[#functions + 1] = { name = called, node = nodes[#nodes] }
    end
    return s
  end

  local function event()
    local e = { set = {} }
    function e:record(s)
      self.set = before(s.name)
      give(s.name, join({}, self.set))
    end
    function e:synchronize() join(host, self.set) end
    return e
  end

  local function tensor(name)
    local function item(element)
      if name == "p" then -- the host reads its own memory, at once
        enter(join({}, host), { access(name, false, element) })
        host[nodes[#nodes]] = true
      else
        local set = enter(before("default"), { access(name, false, element) })
        give("default", set)
        join(host, set)
      end
      return 0
    end
    return setmetatable({ name = name }, {
      __index = function(_, element) return { item = function() return item(element) end } end,
      __newindex = function(_, element)
        local one = access(name, true, element)
        if nodes.inside then table.insert(nodes.inside, one) return end
        enter(join({}, host), { one })
        host[nodes[#nodes]] = true
      end })
  end

  local mr = {}
  function mr.op(o)
    local accesses, stream = {}, o.stream and o.stream.name or "default"
    for _, t in ipairs(o.reads or {}) do accesses[#accesses + 1] = access(t.name, false) end
    for _, t in ipairs(o.writes or {}) do accesses[#accesses + 1] = access(t.name, true) end
    give(stream, enter(before(stream), accesses))
  end
  function mr.synchronize() for _, set in pairs(lane) do join(host, set) end end
  function mr.barrier(members)
    local all = {}
    for _, s in ipairs(members) do join(all, before(s.name)) end
    for _, s in ipairs(members) do give(s.name, join({}, all)) end
  end

  function mr.tick() note_loose(host, moment()) end

  local chunk = assert(load(text, "=p.lua", "t", { mr = mr }))
  chunk(stream_of "a", stream_of "b", stream_of "d", event(), event(), tensor "x", tensor "y", tensor "p")
  return found, count, loose
end
