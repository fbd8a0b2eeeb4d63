-- mr.dist: the functions that a rank calls, as in torch.distributed. mr.dist.spawn (bind/ranks/dist.c) runs ranks in
-- this process; a script outside ranks is a world of one.
--
-- All ranks share this module: each rank's own data are in `states`, by its number. Streams as in PyTorch since 2.8: a
-- collective runs on the current stream; with `async` on a stream of the group, which waits for the current one first.
--# dist of mr.dist: Collectives between ranks, as in torch.distributed.
local mr = require "millrace"

local unpack = table.unpack

return function(tools)
  local dist = {}
  local misuse = tools.misuse

  -- ---------------------------------------------------------------- ranks and groups

  -- states: by rank, and "alone". shared: of the world with the id `of`; by how many groups a rank has made: the
  -- communicators of all ranks.
  local all = { states = {}, shared = {} }

  -- Changes here by a function that is called again and again are put back before the next call, the newest first.
  local changes = {}

  local function set(t, key, value)
    if tools.is_called_again() then changes[#changes + 1] = { t, key, t[key] } end
    t[key] = value
  end

  tools.when_put_back(function()
    for i = #changes, 1, -1 do
      local t, key, before = unpack(changes[i], 1, 3)
      t[key], changes[i] = before, nil
    end
  end)

  local is_alone = false -- no launcher started this process as one of several

  local function state()
    local rank, count = tools.rank()
    if not rank and not is_alone then
      tools.join()
      rank, count = tools.rank()
      is_alone = not rank
    end
    local key = rank or "alone"
    local s, epoch = all.states[key], tools.epoch()
    if s and (rank and s.world.comm.id == tools.world().id or not rank and s.epoch == epoch) then return s end
    s = { rank = rank or 0, count = count or 1, made = 0, epoch = epoch, groups = setmetatable({}, { __mode = "k" }) }
    if rank then
      s.world = { comm = tools.world(), ranks = {}, name = "world" }
      for k = 1, count do s.world.ranks[k] = k - 1 end
    else
      s.world = { comm = mr.nccl.comms({ mr.current_device() }, { name = "world" })[1], ranks = { 0 }, name = "world" }
    end
    if all.shared.of ~= s.world.comm.id then set(all, "shared", { of = s.world.comm.id }) end
    set(all.states, key, s)
    return s
  end

  -- Raises for a rank that has left the others.
  local function own_state(name)
    local s = state()
    if s.left then
      misuse(("%s: this rank has left the others by mr.dist.destroy (%s): call mr.dist.init() first"):format(name,
        s.left))
    end
    if not s.has_met then set(s, "has_met", true) end
    return s
  end

  -- The tensor with which ranks meet if they exchange no other data.
  local function token_of(s)
    if not s.token then set(s, "token", mr.zeros(1, { device = s.world.comm.device })) end -- another may be current
    return s.token
  end

  -- The ranks start again together: a rank that goes on without this call does not match.
  local function rejoin(s)
    if tools.rank() then
      tools.reopen(s.world.comm)
      tools.barrier(s.world.comm, token_of(s), "init")
    else
      set(s.world, "comm", mr.nccl.comms({ mr.current_device() }, { name = "world" })[1])
    end
    set(s, "left", nil)
  end

  --- mr.dist.init([opts: {timeout: number}])
  --- Joins the ranks; each other function of mr.dist does so, too. Under mpirun, torchrun and srun the ranks are the
  --- processes that it has started. Under mr.dist.spawn they are joined already; otherwise the script is the only rank.
  --- After mr.dist.destroy, all ranks call it to begin again. `timeout`: seconds that a call waits for ranks in other
  --- processes, 600 if it is not given. On real GPUs it also limits how long the host waits for a device whose last
  --- collective has not ended. Ranks in one process need no time-out: they report a deadlock at once.
  function dist.init(opts)
    if opts ~= nil and type(opts) ~= "table" then misuse("init: expected a table of options") end
    for key in pairs(opts or {}) do
      if key ~= "timeout" then misuse("init: " .. tools.no_option(key, "timeout")) end
    end
    local timeout = opts and opts.timeout
    if timeout ~= nil and (type(timeout) ~= "number" or timeout <= 0) then
      misuse("init: `timeout` is a number of seconds above 0")
    end
    -- Ranks of spawn are joined before they begin, so an error of another one cannot come before the first `init`.
    local is_joined = tools.rank() and not tools.local_rank()
    if not is_joined or state().has_met then tools.join(timeout) end
    local s = state()
    if s.left then rejoin(s) end
  end

  --- mr.dist.rank() -> rank: integer
  --- Returns the number of the rank that calls, from 0.
  function dist.rank() return state().rank end

  --- mr.dist.local_rank() -> rank: integer
  --- Returns the number of the rank among those of this computer.
  function dist.local_rank()
    local rank = state().rank
    return tools.local_rank() or rank
  end

  --- mr.dist.world_size() -> ranks: integer
  --- Returns how many ranks there are.
  function dist.world_size() return state().count end

  local group_metatable = { __name = "group", __tostring = function(group) return group.name end }

  --- mr.dist.new_group(ranks: list) -> group: table
  --- Makes a group of these ranks, with a communicator and a stream of its own. All ranks call it, in the same
  --- order, also those that are not in it. It prints as `group 1 of ranks 0, 1`. In processes with real GPUs it waits
  --- for all of them.
  function dist.new_group(ranks)
    local s = own_state("new_group")
    if type(ranks) ~= "table" or #ranks == 0 then misuse("new_group: expected a list of ranks") end
    local seen = {}
    for _, rank in ipairs(ranks) do
      if math.type(rank) ~= "integer" or rank < 0 or rank >= s.count then
        misuse(("new_group: there is no rank %s: ranks are 0 to %d"):format(tostring(rank), s.count - 1))
      end
      if seen[rank] then misuse(("new_group: rank %d is named twice"):format(rank)) end
      seen[rank] = true
    end
    set(s, "made", s.made + 1)
    local text = table.concat(ranks, ", ")
    -- The name distinguishes groups of the same ranks.
    local name = ("group %d of %s"):format(s.made, #ranks > 16 and #ranks .. " ranks" or "ranks " .. text)
    local group = setmetatable({ ranks = table.move(ranks, 1, #ranks, 1, {}), name = name }, group_metatable)
    if tools.meets_for_groups() then tools.barrier(s.world.comm, token_of(s), "new_group") end
    if tools.local_rank() then
      group.comm = tools.group(s.made, ranks)
      set(s.groups, group, true)
      return group
    end
    local shared = all.shared[s.made]
    if not shared then
      local devices = {}
      for i, rank in ipairs(ranks) do devices[i] = tools.rank() and rank or mr.current_device() end
      shared = { text = text, name = name, comms = mr.nccl.comms(devices, { name = name }) }
      set(all.shared, s.made, shared)
    elseif shared.text ~= text then
      misuse(("new_group: rank %d asks for a group of ranks %s, and another rank for one of %s: " ..
        "all ranks make the same groups in the same order"):format(s.rank, text, shared.text))
    end
    for i, rank in ipairs(ranks) do
      if rank == s.rank then group.comm = shared.comms[i] end
    end
    set(s.groups, group, true)
    return group
  end

  --- mr.dist.destroy()
  --- Closes the communicators of this rank, also those of its groups, and lets go of the element of device memory that
  --- its barriers use. Submitted work is carried out. After it the rank calls no collectives before mr.dist.init().
  function dist.destroy()
    local s = state()
    if s.left then return end
    set(s, "left", tools.place())
    set(s, "token", nil)
    s.world.comm:close()
    for group in pairs(s.groups) do
      set(group, "left", s.left)
      if group.comm then group.comm:close() end
    end
    set(s, "groups", setmetatable({}, { __mode = "k" }))
  end

  -- ---------------------------------------------------------------- collectives

  local KNOWN = { op = true, group = true, async = true }

  local function group_of(name, opts)
    if opts ~= nil and type(opts) ~= "table" then misuse(name .. ": expected a table of options") end
    for key in pairs(opts or {}) do
      if not KNOWN[key] then
        misuse(name .. ": " .. tools.no_option(key, "op group async"))
      end
    end
    local s = own_state(name)
    local group = opts and opts.group or s.world
    if group ~= s.world and getmetatable(group) ~= group_metatable then
      misuse(name .. ": `group` is no group: make one with mr.dist.new_group")
    end
    if not group.comm then
      misuse(("%s: rank %d is not in %s"):format(name, s.rank, group.name))
    end
    if group.left then
      misuse(("%s: mr.dist.destroy (%s) has closed %s: make it again with mr.dist.new_group"):format(name, group.left,
        group.name))
    end
    return group
  end

  -- The rank's number in the group.
  local function in_group(name, group, rank)
    for i, r in ipairs(group.ranks) do
      if r == rank then return i - 1 end
    end
    if math.type(rank) ~= "integer" then
      misuse(("%s: argument 2: expected the number of a rank, got %s: write mr.dist.%s(t, 0)"):format(name,
        rank == nil and "nothing" or "a " .. type(rank), name))
    end
    local count = #group.ranks
    misuse(("%s: rank %d is not in %s%s"):format(name, rank, group.name,
      group.name == "world" and (", which has the ranks 0 to %d"):format(count - 1) or ""))
  end

  -- The device of the tensors that this rank gives to the group's collectives. For DistributedDataParallel, which is
  -- `name`; nil: the group of all ranks.
  function dist.device_of(name, group) return group_of(name, { group = group }).comm.device end

  local work = {}

  -- The host's knowledge of the work. It does not query the device, because the output would then depend on the
  -- schedule.
  local function describe(w)
    return ("%s of rank %d on stream `%s`: %s"):format(w.operation, w.rank, w.group_name,
      w.is_done and "done" or w.tensors and "nothing waits for it yet" or "a stream waits for it")
  end

  local work_metatable = { __index = work, __name = "work", __tostring = describe }

  --# work of mr.dist.Work: The result of a collective with `async=true`, which runs on the group's own stream.

  --- w:wait([s: stream])
  --- `s` (default: the current stream) waits for the collective; the host goes on. The tensors are kept until then.
  function work.wait(w, s)
    local current = mr.current_stream()
    current.wait_event(s or current, w.event) -- whose error names the type of `s`
    w.tensors = nil
  end

  --- w:synchronize()
  --- The host waits for the collective.
  function work.synchronize(w)
    w.event:synchronize()
    w.tensors, w.is_done = nil, true
  end

  --- w:is_completed() -> done: boolean
  --- Returns whether the collective is done. Never waits.
  function work.is_completed(w)
    w.is_done = w.event:query()
    return w.is_done
  end

  --# dist

  dist.Work = work
  tools.waits_for_caller(work.wait)
  tools.waits_for_caller(work.synchronize)

  -- Calls run(comm, options of the call), with the work that `async` needs around it.
  local function carry_out(name, group, opts, tensors, run)
    local call = { op = opts and opts.op }
    if not (opts and opts.async) then
      run(group.comm, call)
      return nil
    end
    if tools.in_group() then
      misuse("async=true inside mr.nccl.group: nothing is in a stream before the group ends; use one of the two")
    end
    if not group.stream then
      set(group, "stream", mr.stream{ device = group.comm.device, name = group.name })
    end
    group.stream:wait_stream(mr.current_stream())
    call.stream = group.stream
    run(group.comm, call)
    return setmetatable({ event = group.stream:record_event(), tensors = tensors, operation = name,
      rank = state().rank, group_name = group.name }, work_metatable)
  end

  --- mr.dist.all_reduce(t: tensor [, opts: {op: string="sum", group: table, async: boolean}]) -> work: table?
  --- Combines `t` of all ranks in place: c:all_reduce of the group's communicator.
  --- With `async`, returns a work, and the collective runs on the group's own stream.
  function dist.all_reduce(t, opts)
    local group = group_of("all_reduce", opts)
    return carry_out("all_reduce", group, opts, { t }, function(comm, call) comm:all_reduce(t, call) end)
  end

  --- mr.dist.broadcast(t: tensor, root: integer [, opts: {group: table, async: boolean}]) -> work: table?
  --- Copies `t` of rank `root` to `t` of the others.
  function dist.broadcast(t, root, opts)
    local group = group_of("broadcast", opts)
    local from = in_group("broadcast", group, root)
    return carry_out("broadcast", group, opts, { t }, function(comm, call)
      comm:broadcast(t, { root = from, stream = call.stream })
    end)
  end

  --- mr.dist.reduce(t: tensor, root: integer [, opts: {op: string="sum", group: table, async: boolean}])
  ---   -> work: table?
  --- Combines `t` of all ranks, in `t` of rank `root`.
  function dist.reduce(t, root, opts)
    local group = group_of("reduce", opts)
    local to = in_group("reduce", group, root)
    return carry_out("reduce", group, opts, { t }, function(comm, call)
      comm:reduce(t, { root = to, op = call.op, stream = call.stream })
    end)
  end

  --- mr.dist.all_gather(out: tensor, t: tensor [, opts: {group: table, async: boolean}]) -> work: table?
  --- Writes `t` of all ranks to `out`, one behind the other.
  function dist.all_gather(out, t, opts)
    local group = group_of("all_gather", opts)
    return carry_out("all_gather", group, opts, { out, t }, function(comm, call)
      comm:all_gather(out, t, { stream = call.stream })
    end)
  end

  --- mr.dist.reduce_scatter(out: tensor, t: tensor [, opts: {op: string="sum", group: table, async: boolean}])
  ---   -> work: table?
  --- Combines `t` of all ranks; each gets its part in `out`.
  function dist.reduce_scatter(out, t, opts)
    local group = group_of("reduce_scatter", opts)
    return carry_out("reduce_scatter", group, opts, { out, t }, function(comm, call)
      comm:reduce_scatter(out, t, call)
    end)
  end

  --- mr.dist.all_to_all(out: tensor, t: tensor [, opts: {group: table, async: boolean}]) -> work: table?
  --- Part k of `t` goes to rank k of the group.
  function dist.all_to_all(out, t, opts)
    local group = group_of("all_to_all", opts)
    return carry_out("all_to_all", group, opts, { out, t }, function(comm, call)
      comm:all_to_all(out, t, { stream = call.stream })
    end)
  end

  --- mr.dist.send(t: tensor, peer: integer [, opts: {group: table, async: boolean}]) -> work: table?
  --- Sends `t` to rank `peer`, which calls recv. Two ranks that both send first wait for each other (R66), unless both
  --- calls of each are in one mr.nccl.group.
  function dist.send(t, peer, opts)
    local group = group_of("send", opts)
    local to = in_group("send", group, peer)
    return carry_out("send", group, opts, { t }, function(comm, call) comm:send(t, to, { stream = call.stream }) end)
  end

  --- mr.dist.recv(t: tensor, peer: integer [, opts: {group: table, async: boolean}]) -> work: table?
  --- Receives in `t` what rank `peer` sends.
  function dist.recv(t, peer, opts)
    local group = group_of("recv", opts)
    local from = in_group("recv", group, peer)
    return carry_out("recv", group, opts, { t }, function(comm, call) comm:recv(t, from, { stream = call.stream }) end)
  end

  --- mr.dist.barrier([opts: {group: table}])
  --- Waits until all ranks have called it and their devices have reached it.
  function dist.barrier(opts)
    local group = group_of("barrier", opts)
    tools.barrier(group.comm, token_of(state()))
    mr.current_stream(group.comm.device):synchronize()
  end

  return dist
end
