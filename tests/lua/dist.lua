-- mr.dist: ranks in one process. Every function on 1 to 4 ranks beside naive values. A rank's own state, and the
-- ownership of tensors. Errors and deadlocks, and calls after them. Calls of the script's own functions on a rank.
-- options: --device virtual:4
-- virtual only: four devices
-- not replayed: ranks have a clock each
local lu = require "luaunit"
local mr = require "millrace"
local dist = mr.dist

local function column(t)
  local host = t:cpu():totable()
  return type(host) == "table" and host or { host }
end

local function refused(code, pattern, fn, ...)
  local ok, err = pcall(fn, ...)
  lu.assertFalse(ok, pattern)
  if code then lu.assertEquals(type(err) == "table" and err.code, code) end
  lu.assertStrContains(tostring(err), pattern)
  return err
end

-- A sum over two fresh ranks: what came before has left nothing behind.
local function assert_clean()
  local sums = dist.spawn(2, function(rank)
    local t = mr.full(3, rank + 1.0)
    dist.all_reduce(t)
    return t:sum():item()
  end)
  lu.assertEquals(sums, { 9.0, 9.0 })
  lu.assertEquals(mr.ones(4):sum():item(), 4.0)
  lu.assertEquals(mr.current_device().index, 0)
  lu.assertEquals(dist.world_size(), 1)
end

-- What a spawn that fails gives; the next one goes well.
local function fails(code, pattern, n, fn)
  local err = refused(code, pattern, dist.spawn, n, fn)
  assert_clean()
  return err
end

TestValues = {}

-- Values of rank k: k * 10 + 1, ...
local function values(rank, count)
  local list = {}
  for i = 1, count do list[i] = rank * 10 + i end
  return list
end

local function tensor(rank, count) return mr.tensor(values(rank, count), { dtype = "i64" }) end

local function sums(n, from, count)
  local list = {}
  for i = 1, count do
    list[i] = 0
    for k = 0, n - 1 do list[i] = list[i] + k * 10 + from + i end
  end
  return list
end

local function whole(n, count)
  local list = {}
  for k = 0, n - 1 do table.move(values(k, count), 1, count, #list + 1, list) end
  return list
end

-- call(rank, n, opts) starts one operation; gives its work, the tensor to look at, and what is expected there.
local OPERATIONS = {
  function(rank, n, opts)
    local t = tensor(rank, 5)
    return dist.all_reduce(t, opts), t, sums(n, 0, 5)
  end,
  function(rank, n, opts)
    local t = tensor(rank, 5)
    return dist.broadcast(t, n - 1, opts), t, values(n - 1, 5)
  end,
  function(rank, n, opts)
    local t = tensor(rank, 5)
    return dist.reduce(t, n - 1, opts), t, rank == n - 1 and sums(n, 0, 5) or values(rank, 5)
  end,
  function(rank, n, opts)
    local t, out = tensor(rank, 5), mr.zeros(5 * n, { dtype = "i64" })
    return dist.all_gather(out, t, opts), out, whole(n, 5)
  end,
  function(rank, n, opts)
    local t, out = tensor(rank, 5 * n), mr.zeros(5, { dtype = "i64" })
    return dist.reduce_scatter(out, t, opts), out, sums(n, rank * 5, 5)
  end,
  function(rank, n, opts)
    local t, out = tensor(rank, 2 * n), mr.zeros(2 * n, { dtype = "i64" })
    local expected = {}
    for k = 0, n - 1 do table.move(values(k, 2 * n), rank * 2 + 1, rank * 2 + 2, #expected + 1, expected) end
    return dist.all_to_all(out, t, opts), out, expected
  end,
}

local function operations(async)
  for n = 1, 4 do
    local came = dist.spawn(n, function(rank)
      lu.assertEquals({ dist.rank(), dist.local_rank(), dist.world_size() }, { rank, rank, n })
      lu.assertEquals(mr.current_device().index, rank)
      for i, call in ipairs(OPERATIONS) do
        local work, t, expected = call(rank, n, async and { async = true } or nil)
        if async then work:wait() else lu.assertNil(work) end
        lu.assertEquals(column(t), expected, ("%d of rank %d of %d"):format(i, rank, n))
      end
      dist.barrier()
      return rank * 2
    end)
    lu.assertEquals(came, table.move({ 0, 2, 4, 6 }, 1, n, 1, {}))
  end
end

function TestValues.test_operations() operations(false) end

function TestValues.test_operations_on_streams_of_their_own() operations(true) end

function TestValues.test_operators()
  local expected = { sum = 10.0, prod = 24.0, min = 1.0, max = 4.0, avg = 2.5 }
  dist.spawn(4, function(rank)
    for op, value in pairs(expected) do
      local t = mr.full(2, rank + 1.0)
      -- Ranks go through the same table in the same order.
      dist.all_reduce(t, { op = op })
      lu.assertEquals(column(t), { value, value }, op)
    end
  end)
end

function TestValues.test_messages()
  dist.spawn(4, function(rank)
    local got = mr.zeros(5, { dtype = "i64" })
    local following, before = (rank + 1) % 4, (rank + 3) % 4
    mr.nccl.group(function()
      dist.send(tensor(rank, 5), following)
      dist.recv(got, before)
    end)
    lu.assertEquals(column(got), values(before, 5))
    for _ = 1, 2 do -- without a group: even ranks send first
      local t = tensor(rank, 5)
      if rank % 2 == 0 then dist.send(t, following) end
      dist.recv(got, before)
      if rank % 2 == 1 then dist.send(t, following) end
      lu.assertEquals(column(got), values(before, 5))
    end
    local other = rank ~ 1
    local back = mr.zeros(3, { dtype = "i64" })
    mr.nccl.group(function() -- both directions between two ranks, two messages each
      dist.recv(back, other)
      dist.send(tensor(rank, 3), other)
      dist.recv(got, other)
      dist.send(tensor(rank, 5), other)
    end)
    lu.assertEquals({ column(back), column(got) }, { values(other, 3), values(other, 5) })
  end)
end

function TestValues.test_groups()
  local came = dist.spawn(4, function(rank)
    local odd, pair, all = dist.new_group{ 1, 3 }, dist.new_group{ 2, 0 }, dist.new_group{ 3, 2, 1, 0 }
    local t = mr.full(1, rank + 1.0)
    lu.assertEquals({ tostring(odd), tostring(pair) }, { "group 1 of ranks 1, 3", "group 2 of ranks 2, 0" })
    dist.all_reduce(t, { group = rank % 2 == 1 and odd or pair })
    local out = mr.zeros(4)
    dist.all_gather(out, t, { group = all })
    lu.assertEquals(column(out), { 6.0, 4.0, 6.0, 4.0 })
    dist.broadcast(t, 2, { group = all }) -- ranks of the world, not of the group
    if rank % 2 == 0 then
      refused(nil, "is not in group", dist.all_reduce, t, { group = odd })
      refused(nil, "rank 1 is not in group", dist.broadcast, t, 1, { group = pair })
      refused(nil, "rank -1 is not in world, which has the ranks 0 to 3", dist.broadcast, t, -1)
    end
    return t:item()
  end)
  lu.assertEquals(came, { 4.0, 4.0, 4.0, 4.0 })
end

function TestValues.test_arguments_and_results()
  lu.assertEquals(dist.spawn(2, function(rank, a, b) return a .. b .. rank end, "x", "y"), { "xy0", "xy1" })
  local list = dist.spawn(3, function(rank) if rank ~= 1 then return rank end end)
  lu.assertEquals({ list[1], list[2], list[3] }, { 0, nil, 2 })
  local outside = mr.ones(3)
  lu.assertEquals(dist.spawn(3, function() return (outside * 2):sum():item() end), { 6.0, 6.0, 6.0 })
end

TestAsync = {}

local function spans_of(trace, name)
  local list = {}
  for _, span in ipairs(trace.spans) do
    if span.name == name then list[#list + 1] = span end
  end
  return list
end

function TestAsync.test_work_goes_on_beside_it()
  local trace = mr.timeline(function()
    dist.spawn(2, function()
      local a, t = mr.ones(1024, 1024), mr.ones(1 << 22)
      local work = dist.all_reduce(t, { async = true })
      local b = a:matmul(a)
      lu.assertFalse(work:is_completed())
      work:synchronize()
      lu.assertTrue(work:is_completed())
      return b
    end)
  end)
  local reduced, multiplied = spans_of(trace, "all_reduce"), spans_of(trace, "matmul")
  lu.assertEquals({ #reduced, #multiplied }, { 2, 2 })
  for _, span in ipairs(multiplied) do
    lu.assertTrue(span.start < reduced[1].finish and reduced[1].start < span.finish)
  end
end

function TestAsync.test_a_use_before_the_wait_is_a_hazard()
  local function run(wait)
    return mr.hazard.check(function()
      dist.spawn(2, function()
        local t = mr.ones(1000)
        local work = dist.all_reduce(t, { async = true })
        if wait then work:wait() end
        t:mul_(0.5)
        mr.synchronize()
      end)
    end)
  end
  lu.assertEquals(#run(true), 0)
  lu.assertTrue(#run(false) > 0)
end

function TestAsync.test_not_inside_a_group()
  dist.spawn(2, function()
    local t = mr.ones(3)
    refused(nil, "async=true inside mr.nccl.group", mr.nccl.group, dist.all_reduce, t, { async = true })
    dist.all_reduce(t)
  end)
end

-- A clock that stands before the end of what another rank's wait has let happen.
function TestAsync.test_questions_follow_the_ranks_own_clock()
  dist.spawn(2, function()
    local work = dist.all_reduce(mr.ones(1 << 22), { async = true })
    local s = mr.stream()
    mr.spin{ ms = 1, stream = s }
    local asked = 0
    while not (work:is_completed() and s:query()) do asked = asked + 1 end
    lu.assertTrue(asked > 10)
  end)
end

-- It says what the host knows, and asks the device nothing: that would decide what an explored function prints.
function TestAsync.test_a_work_says_what_it_is()
  local said = {}
  dist.spawn(2, function(rank)
    local group = dist.new_group{ 1, 0 }
    local function text(work) return (tostring(work)) end
    local t = mr.ones(4)
    local work = dist.broadcast(t, 1, { async = true, group = group })
    said[rank] = { text(work) }
    work:wait()
    said[rank][2] = text(work)
    work:synchronize()
    said[rank][3] = text(work)
    work = dist.all_reduce(t, { async = true })
    mr.synchronize()
    said[rank][4] = tostring(work:is_completed()) .. " " .. text(work)
  end)
  for rank = 0, 1 do
    local first = ("broadcast of rank %d on stream `group 1 of ranks 1, 0`: "):format(rank)
    lu.assertEquals(said[rank], { first .. "nothing waits for it yet", first .. "a stream waits for it",
      first .. "done", ("true all_reduce of rank %d on stream `world`: done"):format(rank) })
  end
end

TestOfItsOwn = {}

function TestOfItsOwn.test_random_numbers()
  mr.manual_seed(5)
  local first = dist.spawn(3, function(rank)
    local list = {}
    for _ = 1, rank + 1 do
      list[#list + 1] = mr.rand(1):item()
      dist.barrier()
    end
    for _ = rank + 2, 3 do dist.barrier() end
    return list
  end)
  lu.assertEquals(first[1][1], first[3][1])
  lu.assertEquals(first[2][2], first[3][2])
  lu.assertEquals(mr.rand(1):item(), first[1][1])
  mr.manual_seed(5)
  dist.spawn(2, function(rank)
    if rank == 0 then mr.manual_seed(9) end
    dist.barrier()
    lu.assertEquals(mr.rand(1):item() == first[1][1], rank == 1)
  end)
end

function TestOfItsOwn.test_devices_streams_and_modes()
  local outer = mr.stream{ name = "outer" }
  mr.with(outer, function()
    dist.spawn(3, function(rank)
      lu.assertNotEquals(mr.current_stream(), outer)
      local s = mr.stream{ name = "s" .. rank }
      mr.with(s, function()
        dist.barrier()
        lu.assertEquals(mr.current_stream(), s)
        s:run(dist.barrier)
      end)
      lu.assertNotEquals(mr.current_stream(), s)
      if rank == 0 then -- a stream of another rank's device, in a scope
        local before, foreign = mr.current_stream(1), mr.stream{ device = 1 }
        mr.with(foreign, function()
          dist.barrier()
          lu.assertEquals(mr.current_stream(1), foreign)
          mr.no_grad(dist.barrier)
          lu.assertEquals(mr.current_device().index, 1)
        end)
        lu.assertEquals(mr.current_stream(1), before)
        mr.set_device(2)
      else
        for _ = 1, 2 do
          dist.barrier()
          lu.assertEquals(mr.current_stream().device.index, rank)
          lu.assertEquals(mr.current_stream().name, "default")
          lu.assertTrue(mr.is_grad_enabled())
        end
      end
      dist.barrier()
      lu.assertEquals(mr.current_device().index, rank == 0 and 2 or rank)
    end)
    lu.assertEquals(mr.current_stream(), outer)
  end)
  assert_clean()
end

-- A tensor of another rank: all that reaches its memory is refused by name, and what only describes it is not.
function TestOfItsOwn.test_tensors_of_another_rank()
  local kernel = mr.kernel[[extern "C" __global__ void f(float *x) { x[threadIdx.x] = 1; }]]
  local pinned = mr.zeros(4, {pinned = true})
  local uses = {
    function(t) t:add_(1) end, function(t) return t:view(4) end, function(t) return t:narrow(1, 1, 1) end,
    function(t) return t:detach() end, function(t) return t[1] end, function(t) t[1] = 5 end,
    function(t) return t + 1 end, function(t) return mr.ones(4) + t end, function(t) return -t end,
    function(t) return t:eq(1) end, function(t) return mr.equal(t, mr.ones(4)) end, function(t) return t:peek() end,
    function(t) return t:totable() end, function(t) t:copy_(mr.ones(4)) end, function(t) mr.ones(4):copy_(t) end,
    function(t) return t:cpu() end, function(t) mr.memcpy(mr.zeros(4), t) end, function(t) mr.memset(t, 0) end,
    function(t) kernel[{1, 4}](t) end, function(t) return mr.cat{t, t} end,
    function(t) mr.op{name = "o", reads = {t}} end, function(t) mr.add(mr.ones(4), 1, {out = t}) end,
    function(t) mr.graph(function() t:add_(1) end) end, function(t) mr.graph.auto(function() t:add_(1) end)() end,
    function(t) t:free() end, function(t) t:record_stream(mr.stream()) end, function(t) return t:dlpack() end,
    function(t) return t.data_ptr end, function(t) return mr.nn.Parameter(t) end, function(t) mr.ones(4).grad = t end,
    function(t) return mr.hazard.readable(t) end, function(t) mr.stream():run(function() t:mul_(2) end) end,
    function(t) mr.stream():host_func(function() pinned:copy_(t) end) mr.synchronize() end,
    function(t) t:requires_grad_(true) (t * 2):sum():backward() end,
  }
  local told = "`theirs` belongs to rank 0, and rank 1 uses it: ranks share no memory; send it"
  local theirs
  local function make(rank)
    if rank == 0 then theirs = mr.ones(4, {name = "theirs"}) end
    dist.barrier()
  end
  for i, use in ipairs(uses) do
    dist.spawn(2, function(rank)
      make(rank)
      if rank == 1 then
        local ok, message = pcall(use, theirs)
        lu.assertFalse(ok, "use " .. i)
        lu.assertStrContains(tostring(message), told)
        lu.assertEquals(#theirs, 4)
        lu.assertFalse(theirs == mr.ones(4))
        lu.assertNotStrContains(tostring(theirs), "1.")
      end
      dist.barrier()
    end)
  end
  for _, call in ipairs{ dist.all_reduce, function(t) dist.broadcast(t, 0) end } do
    lu.assertErrorMsgContains(told, dist.spawn, 2, function(rank)
      make(rank)
      call(theirs)
    end)
  end
  theirs = nil
  assert_clean()
end

-- A group of one rank collects that rank's calls, while the others go on.
function TestOfItsOwn.test_groups_of_calls()
  dist.spawn(3, function(rank)
    local t, u = mr.full(2, rank + 1.0), mr.full(2, rank + 1.0)
    mr.nccl.group(function()
      if rank == 1 then
        pcall(mr.nccl.group, function()
          dist.all_reduce(mr.zeros(7))
          error "dropped"
        end)
      end
      dist.all_reduce(t)
      mr.nccl.group(function() dist.all_reduce(u, { op = "max" }) end)
    end)
    lu.assertEquals(column(t), { 6.0, 6.0 })
    lu.assertEquals(column(u), { 3.0, 3.0 })
  end)
  assert_clean()
end

function TestOfItsOwn.test_tensors()
  local taken
  fails("invalid-handle", "belongs to rank 0, and rank 1 uses it", 2, function(rank)
    if rank == 0 then taken = mr.zeros(3) end
    dist.barrier()
    if rank == 1 then taken:add_(1) end
  end)
  taken:add_(1) -- outside of ranks it is anybody's
  lu.assertEquals(column(taken), { 1.0, 1.0, 1.0 })
end

function TestOfItsOwn.test_clocks()
  local came = dist.spawn(2, function(rank)
    if rank == 0 then mr.spin{ ms = 5 } end
    mr.synchronize()
    local before = mr.clock()
    dist.barrier()
    return { before, mr.clock() }
  end)
  lu.assertTrue(came[2][1] < came[1][1] - 4)
  lu.assertTrue(came[2][2] >= came[1][1])
  lu.assertTrue(mr.clock() >= came[1][2])
end

-- The second world makes its groups anew, whichever rank asks first.
function TestOfItsOwn.test_a_second_world_is_fresh()
  local ids = {}
  for i = 1, 2 do
    dist.spawn(3, function(rank)
      local t = mr.ones(1)
      if rank == 0 then ids[i] = dist.new_group{ 0, 1 }.comm.id end
      if rank > 0 then dist.new_group{ 0, 1 } end
      dist.all_reduce(t)
      lu.assertEquals(t:item(), 3.0)
    end)
  end
  lu.assertNotEquals(ids[1], ids[2])
  local comms = mr.nccl.comms{ 0, 1 }
  for _ = 1, 2 do
    dist.spawn(2, function(rank) -- rank 1 is the first that uses mr.dist
      if rank == 0 then comms[1]:all_reduce(mr.ones(1)) end
      local t, group = mr.ones(1), dist.new_group{ 1, 0 }
      if rank == 1 then comms[2]:all_reduce(mr.ones(1)) end
      dist.all_reduce(t, { group = group })
      lu.assertEquals(t:item(), 2.0)
    end)
  end
end

TestErrors = {}

function TestErrors.test_the_first_error_is_the_callers()
  local err = fails(nil, "rank 1: ", 3, function(rank)
    if rank == 1 then error "boo" end
    dist.barrier()
  end)
  lu.assertStrMatches(err, "rank 1: .*dist%.lua:%d+: boo")
  local own = { text = "x" }
  lu.assertIs(select(2, pcall(dist.spawn, 2, function(rank) if rank == 1 then error(own) end dist.barrier() end)), own)
  lu.assertEquals(own.rank, 1)
  for _, handler in ipairs{ "__tostring", "__newindex", "__index" } do -- none of them is called
    own = setmetatable({}, { [handler] = function() error "called" end })
    local came = select(2, pcall(dist.spawn, 2, function(rank) if rank == 1 then error(own) end dist.barrier() end))
    lu.assertTrue(rawequal(came, own))
    assert_clean()
  end
  for _, value in ipairs{ 7, true, print } do
    lu.assertStrContains(tostring(select(2, pcall(dist.spawn, 2, function(rank)
      dist.barrier()
      if rank == 1 then error(value) end
      dist.barrier()
    end))), tostring(value))
  end
  assert_clean()
end

-- The remedy, where one line is called by all, and where not.
function TestErrors.test_the_remedy_of_a_mismatch()
  local function remedy(fn)
    return (fails("collective-mismatch", "do not match", 2, fn).message:match "%. (All ranks must .*)$")
  end
  local same = "All ranks must give the same "
  lu.assertEquals(remedy(function(rank) dist.all_reduce(mr.ones(3 + rank)) end), same .. "number of elements")
  lu.assertEquals(remedy(function(rank) dist.all_reduce(mr.ones(3, { dtype = rank == 0 and "f32" or "f16" })) end),
    same .. "dtype")
  lu.assertEquals(remedy(function(rank) dist.all_reduce(mr.ones(3), { op = rank == 0 and "max" or "min" }) end),
    same .. "op")
  lu.assertEquals(remedy(function(rank) dist.broadcast(mr.ones(3), rank) end), same .. "root")
  lu.assertEquals(remedy(function(rank)
    if rank == 0 then dist.send(mr.ones(3), 1)
    else dist.recv(mr.ones(4), 0) end
  end), same .. "number of elements")
  lu.assertEquals(remedy(function(rank)
    if rank == 0 then dist.all_reduce(mr.ones(3))
    else dist.all_reduce(mr.ones(4)) end
  end), "All ranks must submit the same operations in the same order")
end

-- A barrier is an all_reduce of one element, and no match for one.
function TestErrors.test_a_barrier_matches_barriers_only()
  for _, count in ipairs{ 1, 4 } do
    local err = fails("collective-mismatch", "rank 0 submits all_reduce (", 2, function(rank)
      if rank == 0 then dist.all_reduce(mr.ones(count)) else dist.barrier() end
    end)
    lu.assertStrMatches(tostring(err), ".*and rank 1 barrier %(%S*dist.lua:%d+%).*")
  end
end

function TestErrors.test_others_may_catch_what_one_rank_did()
  local said = {}
  local err = refused("collective-mismatch", "rank 2 one of 4", dist.spawn, 3, function(rank)
    local ok, e = pcall(dist.all_reduce, mr.zeros(rank == 2 and 4 or 3))
    lu.assertFalse(ok)
    -- The world has failed: no later call of any rank may find a peer among what is left.
    said[rank] = tostring(select(2, pcall(dist.all_reduce, mr.zeros(3))))
    if rank == 1 then error "another error" end
    error(e)
  end)
  lu.assertEquals(err.rank, 0) -- all have it, and the lowest tells it
  for rank = 0, 2 do lu.assertStrContains(said[rank], "do not match") end
  local came = dist.spawn(2, function(rank)
    if rank == 0 then return select(2, pcall(dist.barrier)).code end
  end)
  lu.assertEquals(came[1], "deadlock")
  assert_clean()
end

-- Calls of one group: the first one matches that of rank 2, and the second one does not match that of rank 0.
function TestErrors.test_a_match_beside_a_mismatch_is_not_submitted()
  local came = {}
  refused("collective-mismatch", "rank 0 submits", dist.spawn, 3, function(rank)
    local pair, others = dist.new_group{ 1, 2 }, dist.new_group{ 0, 1 }
    local t = mr.ones(4)
    local function of_pair() dist.all_reduce(t, { group = pair }) end
    local function of_others() dist.all_reduce(mr.ones(3 + rank), { group = others }) end
    local function of_both() mr.nccl.group(function() of_pair() of_others() end) end
    dist.barrier() -- goes on with rank 2, then 0, then 1
    local ok, err = pcall(({ of_others, of_both, of_pair })[rank + 1])
    came[rank + 1] = { ok, t[1]:item() }
    if not ok then error(err, 0) end
  end)
  for rank = 0, 2 do lu.assertEquals(came[rank + 1], { false, 1.0 }) end
  assert_clean()
end

-- A call that another rank's call has submitted was carried out, although that rank has failed since.
function TestErrors.test_a_call_that_was_submitted_before_another_rank_failed()
  local came, said
  local reports = mr.hazard.check(function()
    fails(nil, "rank 1: ", 2, function(rank)
      local t = mr.full(1000, rank + 1.0)
      if rank == 1 then
        dist.all_reduce(t, { async = true }):wait()
        error "boo"
      end
      local ok, work = pcall(dist.all_reduce, t, { async = true })
      if ok then work:wait() end
      came, said = ok and t:sum():item(), tostring(select(2, pcall(dist.all_reduce, t)))
    end)
  end)
  lu.assertEquals(#reports, 0, reports[1] and reports[1].message)
  lu.assertEquals(came, 3000.0)
  lu.assertStrContains(said, "rank 1 has ended by an error")
end

function TestErrors.test_what_spawn_refuses()
  refused(nil, "5 ranks need as many devices", dist.spawn, 5, print)
  refused(nil, "expected 1 to 64 ranks", dist.spawn, 0, print)
  refused(nil, "expected 1 to 64 ranks", dist.spawn, 65, print)
  refused(nil, "a function", dist.spawn, 2, 3)
  refused("not-permitted", "not inside mr.nccl.group", mr.nccl.group, dist.spawn, 2, print)
  fails("not-permitted", "a rank cannot start ranks", 2, function() dist.spawn(2, print) end)
end

function TestErrors.test_a_check_of_a_rank_inside_one_of_all()
  local inner
  lu.assertEquals(#mr.hazard.check(function()
    dist.spawn(2, function() inner = select(2, pcall(mr.hazard.check, dist.barrier)) end)
  end), 0)
  lu.assertStrContains(tostring(inner), "not permitted inside another check")
  assert_clean()
end

function TestErrors.test_what_new_group_and_options_refuse()
  fails(nil, "rank 2 asks for a group of ranks 1, 2", 4, function(rank)
    dist.new_group(rank == 2 and { 1, 2 } or { 1, 3 })
  end)
  fails(nil, "there is no rank 7", 2, function() dist.new_group{ 0, 7 } end)
  fails(nil, "new_group: rank 1 is named twice", 2, function() dist.new_group{ 1, 0, 1 } end)
  fails(nil, "wait_event: argument 1: expected a stream, got a number", 2, function()
    local x = mr.ones(1)
    local work = dist.all_reduce(x, { async = true })
    local _, why = pcall(work.wait, work, 3)
    work:wait()
    error(why, 0)
  end)
end

TestDeadlocks = {}

local function names_lines(err, lines)
  lu.assertEquals(err.code, "deadlock")
  for rank, line in pairs(lines) do
    lu.assertStrMatches(tostring(err), (".*rank %d waits in `[%%l_]+` at [^:]*dist%%.lua:%d.*"):format(rank, line))
  end
end

local function line() return debug.getinfo(2, "l").currentline end

function TestDeadlocks.test_one_never_comes()
  local at
  local err = fails("deadlock", "communicator `world`, for rank 1", 3, function(rank)
    if rank == 1 then return end
    at = line() + 1
    dist.barrier()
  end)
  names_lines(err, { [0] = at, [2] = at })
  lu.assertStrContains(tostring(err), "deadlock of the ranks (R62)")
  lu.assertStrContains(tostring(err),
    "rank 1 has ended without its `barrier` in communicator `world`: it has called no collective. " ..
    "Let rank 1 make this call, too, or rank 0 leave its call out")
end

-- The last call of the rank that has ended.
function TestDeadlocks.test_one_ends_before_the_others()
  local at
  local err = fails("deadlock", "rank 0 waits in `recv`", 3, function(rank)
    local t = mr.zeros(3)
    at = line() + 1
    dist.broadcast(t, 0)
    if rank == 0 then dist.recv(t, 2) end
  end)
  lu.assertStrContains(tostring(err), "deadlock of the ranks (R66)")
  lu.assertStrMatches(tostring(err), ".*ranks 1, 2 have ended, rank 2 without its `send` in communicator `world`: " ..
    "its last call was `broadcast` at %S*dist.lua:" .. at ..
    ". Let rank 2 send this message, or rank 0 leave its call out")
end

function TestDeadlocks.test_the_order_of_communicators_differs()
  local at
  local err = fails("deadlock", "group 1 of ranks 0, 1", 2, function(rank)
    local a, b = dist.new_group{ 0, 1 }, dist.new_group{ 1, 0 }
    local t = mr.zeros(3)
    at = line() + 1
    dist.all_reduce(t, { group = rank == 0 and a or b })
    dist.all_reduce(t, { group = rank == 0 and b or a })
  end)
  names_lines(err, { [0] = at, [1] = at })
  lu.assertStrContains(tostring(err), "group 2 of ranks 1, 0")
  lu.assertStrContains(tostring(err), "deadlock of the ranks (R64)")
  lu.assertStrContains(tostring(err), ". All ranks must use the communicators in the same order")
end

function TestDeadlocks.test_a_barrier_has_its_name()
  local err = fails("deadlock", "rank 0 waits in `barrier` at", 2, function(rank)
    if rank == 0 then dist.barrier() end
  end)
  lu.assertStrContains(tostring(err), "rank 1 has ended")
  local trace = mr.timeline(function() dist.spawn(2, function() dist.barrier() end) end)
  local names = {}
  for _, span in ipairs(trace.spans) do names[span.name] = (names[span.name] or 0) + 1 end
  lu.assertEquals({ names.barrier, names.all_reduce }, { 2, nil })
end

-- Two groups of the same ranks are told apart.
function TestDeadlocks.test_groups_of_equal_ranks()
  local err = fails("deadlock", "communicator `group 1 of ranks 0, 1`, for rank 1", 2, function(rank)
    local a, b = dist.new_group{ 0, 1 }, dist.new_group{ 0, 1 }
    dist.barrier{ group = rank == 0 and a or b }
  end)
  lu.assertStrContains(tostring(err), "communicator `group 2 of ranks 0, 1`, for rank 0")
end

function TestDeadlocks.test_both_send_first()
  local at
  local err = fails("deadlock", "for rank 0", 2, function(rank)
    local t = mr.zeros(3)
    at = line() + 1
    dist.send(t, 1 - rank)
    dist.recv(t, 1 - rank)
  end)
  names_lines(err, { [0] = at, [1] = at })
  lu.assertStrContains(tostring(err), "deadlock of the ranks (R66)")
  lu.assertStrContains(tostring(err), ". Put the send and the recv of each rank in one mr.nccl.group(")
end

function TestDeadlocks.test_a_message_to_oneself()
  for _, name in ipairs { "send", "recv" } do
    local err = fails("deadlock", "rank 0 waits in `" .. name .. "`", 2, function(rank)
      if rank == 0 then dist[name](mr.zeros(3), 0) end
    end)
    lu.assertStrContains(tostring(err), "for rank 0 (itself); rank 1 has ended. A message to the rank itself needs " ..
      "its send and its recv in one mr.nccl.group(")
  end
end

-- The ranks share one checker. An exploration and mr.waits follow all of them.
function TestDeadlocks.test_one_rank_cannot_ask_for_all()
  for tool, words in pairs {
    ["hazard.check"] = "hazard.check: rank 0 is in a check, and it follows all ranks of this process: call " ..
      "mr.hazard.check around mr.dist.spawn, or use --check",
    waits = "waits: rank 0 is in mr.waits, which judges all ranks of this process: call mr.waits around " ..
      "mr.dist.spawn, or use --waits",
    explore = "the function calls mr.dist: the other ranks take part once, and this one runs again and again. Call " ..
      "mr.explore, mr.replay or mr.stress around mr.dist.spawn, or use --ranks N --explore",
  } do
    local said = {}
    dist.spawn(2, function(rank)
      local call = tool == "explore" and mr.explore or tool == "waits" and mr.waits or mr.hazard.check
      local fine, err = pcall(call, function() dist.barrier() end)
      said[rank + 1] = fine and "" or tostring(err)
    end)
    lu.assertStrContains(table.concat(said, "\n"), words)
  end
end

require "lua.support.unchecked"(TestDeadlocks, "under --check=error, mr.explore is refused for that reason",
  "test_one_rank_cannot_ask_for_all")

-- The circle decides, and not the rank that stands outside of it.
function TestDeadlocks.test_two_of_three_are_in_a_circle()
  local err = fails("deadlock", "rank 0 waits in `barrier`", 3, function(rank)
    local t = mr.zeros(3)
    if rank == 0 then dist.barrier() return end
    dist.recv(t, 3 - rank)
    dist.send(t, 3 - rank)
    dist.barrier()
  end)
  lu.assertStrContains(tostring(err), "deadlock of the ranks (R66)")
  lu.assertStrContains(tostring(err), ". Each waits to receive before it sends: let one of them send first")
end

function TestDeadlocks.test_a_message_and_a_collective()
  local err = fails("deadlock", "rank 1 waits in `send`", 2, function(rank)
    local t = mr.zeros(3)
    if rank == 1 then dist.send(t, 0) end
    dist.all_reduce(t)
    if rank == 0 then dist.recv(t, 1) end
  end)
  lu.assertStrContains(tostring(err), "deadlock of the ranks (R62)")
  lu.assertStrContains(tostring(err), ". All ranks must call the same operations in the same order")
end

function TestDeadlocks.test_one_leaves_the_loop_early()
  local at
  local err = fails("deadlock", "rank 0 has ended", 2, function(rank)
    local t = mr.zeros(3)
    at = line() + 1
    for _ = 1, rank == 0 and 3 or 5 do dist.all_reduce(t) end
  end)
  names_lines(err, { [1] = at })
end

TestScripts = {}

-- Wherever Lua calls a function of the script, that may wait for other ranks.
function TestScripts.test_calls_of_lua_that_wait()
  local meta = {
    __add = function() dist.barrier() return 4 end,
    __index = function(_, key) dist.barrier() return key end,
    __lt = function() dist.barrier() return true end,
    __close = function() dist.barrier() end,
  }
  local came = dist.spawn(3, function(rank)
    local object <const> = setmetatable({}, meta)
    local list = { 3, 1, 2 }
    table.sort(list, function(a, b) dist.barrier() return a < b end)
    lu.assertEquals(list, { 1, 2, 3 })
    local sum = ("abc"):gsub(".", function(c)
      local t = mr.full(1, rank + 0.0)
      dist.all_reduce(t)
      return c .. math.tointeger(t:item())
    end)
    pcall(function()
      local _ <close> = setmetatable({}, meta)
      error "x"
    end)
    local walk = coroutine.wrap(function() for i = 1, 3 do dist.barrier() coroutine.yield(i) end end)
    lu.assertEquals({ walk(), walk(), walk() }, { 1, 2, 3 })
    return object < object and sum .. object + 1 .. object.x
  end)
  lu.assertEquals(came, { "a3b3c34x", "a3b3c34x", "a3b3c34x" })
end

function TestScripts.test_threads_of_other_ranks()
  local thread
  for _, how in ipairs{ coroutine.resume, coroutine.close } do -- of a rank that has ended: its result stays
    local came = dist.spawn(2, function(rank)
      if rank == 0 then
        thread = coroutine.running()
        return print
      end
      return (how(thread))
    end)
    lu.assertEquals(came[1], print)
  end
  local said = dist.spawn(2, function(rank)
    if rank == 0 then thread = coroutine.running() end
    local ok, err = true, nil
    if rank == 1 then ok, err = coroutine.resume(thread) end
    dist.barrier()
    return not ok and err
  end)
  lu.assertStrContains(said[2], "non-suspended")
  dist.spawn(2, function(rank) -- begun by one rank, gone on with by another
    if rank == 0 then
      thread = coroutine.create(function() dist.barrier() coroutine.yield() dist.barrier() end)
      lu.assertTrue(coroutine.resume(thread))
    else
      dist.barrier()
    end
    dist.barrier()
    if rank == 1 then lu.assertTrue(coroutine.resume(thread)) else dist.barrier() end
  end)
  fails(nil, "yield", 2, function() coroutine.yield() end)
  lu.assertErrorMsgContains("yield", coroutine.wrap(function() dist.spawn(2, coroutine.yield) end))
  local function spawn() return dist.spawn(2, function(rank) dist.barrier() return rank end)[2] end
  lu.assertEquals(coroutine.wrap(spawn)(), 1)
end

function TestScripts.test_finalizers_cannot_wait()
  local said, made = {}, 0
  dist.spawn(2, function()
    local t = mr.ones(1)
    for _ = 1, 10 do
      setmetatable({}, { __gc = function() said[#said + 1] = tostring(select(2, pcall(dist.all_reduce, t))) end })
      made = made + 1
    end
    collectgarbage()
    collectgarbage()
    dist.barrier()
  end)
  collectgarbage()
  lu.assertTrue(#said >= made - 2)
  lu.assertStrContains(said[1], "a finalizer of a rank cannot call collectives")
  assert_clean()
end

-- A finalizer that Lua calls where its C stack is used up fails, and what it was to release stays: no collection then.
function TestScripts.test_deep_recursion()
  collectgarbage()
  collectgarbage "stop"
  local function deep() return 1 + deep() end
  local function deep_in_c() return (("x"):gsub(".", deep_in_c)) end
  local function threads() return coroutine.wrap(threads)() end
  dist.spawn(2, function()
    for _ = 1, 2 do
      local overflows = { [deep] = "stack overflow", [deep_in_c] = "C stack overflow", [threads] = "C stack overflow" }
      for f, text in pairs(overflows) do
        refused(nil, text, f)
      end
      dist.barrier()
      refused(nil, "too complex", string.find, ("a"):rep(300000), ("a?"):rep(300000) .. "b")
      lu.assertStrContains(select(2, load(("("):rep(300000))), "overflow")
      dist.barrier()
    end
  end)
  collectgarbage "restart"
end

function TestScripts.test_the_collector_while_ranks_wait()
  local mode = collectgarbage "incremental"
  local came = dist.spawn(3, function(rank)
    local list = {}
    for i = 1, 100000 do
      list[i] = { i }
      if i % 20000 == 0 then
        local t = mr.full(1000, rank + 1.0)
        dist.all_reduce(t)
        collectgarbage()
        lu.assertEquals(t:sum():item(), 6000.0)
        collectgarbage(i % 40000 == 0 and "generational" or "incremental")
      end
    end
    return #list + list[77777][1]
  end)
  collectgarbage(mode)
  lu.assertEquals(came, { 177777, 177777, 177777 })
end

function TestScripts.test_what_else_a_rank_does()
  local came = dist.spawn(2, function(rank)
    local called, said = 0, nil
    mr.current_stream():host_func(function()
      called = called + 1
      said = tostring(select(2, pcall(dist.barrier)))
    end)
    mr.synchronize()
    lu.assertStrContains(said, "host function")
    local x = mr.zeros(3)
    local graph = mr.graph(function() x:add_(1) end, { stream = mr.stream() })
    graph:launch()
    dist.barrier()
    graph:launch()
    mr.synchronize()
    lu.assertEquals(x:sum():item(), 6.0)
    local double = mr.autograd.Function{
      forward = function(_, v) return v * 2 end,
      backward = function(_, g)
        local h = g:clone()
        dist.all_reduce(h)
        return h
      end,
    }
    local v = mr.full(3, rank + 1.0):requires_grad_()
    double(v):sum():backward()
    return called + v.grad:sum():item()
  end)
  lu.assertEquals(came, { 7.0, 7.0 })
end

function TestScripts.test_a_reset_is_everybodys()
  fails("invalid-handle", "before mr.reset()", 2, function(rank)
    if rank == 1 then mr.reset() end
    dist.barrier()
  end)
end

function TestScripts.test_ranks_that_leave_and_begin_again()
  local came = dist.spawn(2, function(rank)
    local x, group = mr.full(3, rank + 1.0), dist.new_group{ 0, 1 }
    dist.destroy()
    refused(nil, "all_reduce: this rank has left the others by mr.dist.destroy (", dist.all_reduce, x)
    refused(nil, "call mr.dist.init() first", dist.new_group, { 0, 1 })
    lu.assertEquals({ dist.rank(), dist.world_size() }, { rank, 2 })
    dist.init()
    refused(nil, "has closed group 1 of ranks 0, 1: make it again with mr.dist.new_group", dist.all_reduce, x,
      { group = group })
    dist.all_reduce(x)
    dist.all_reduce(x, { group = dist.new_group{ 0, 1 } })
    return x:sum():item()
  end)
  lu.assertEquals(came, { 18.0, 18.0 })
end

function TestScripts.test_one_rank_that_begins_again_alone()
  local err = fails("collective-mismatch", "submits init", 2, function(rank)
    if rank == 0 then
      dist.destroy()
      dist.init()
    end
    dist.barrier()
  end)
  lu.assertStrContains(tostring(err), "barrier")
  fails("deadlock", "rank 0 waits in `init`", 2, function(rank)
    dist.destroy()
    if rank == 0 then dist.init() end
  end)
end

function TestScripts.test_ranks_that_an_error_has_separated_do_not_begin_again()
  dist.spawn(2, function(rank)
    if rank == 1 then return end
    refused("deadlock", "deadlock of the ranks", dist.barrier)
    refused("deadlock", "deadlock of the ranks", dist.init)
    dist.destroy()
    refused("deadlock", "rank 0 waits in `barrier`", dist.init)
  end)
end

function TestScripts.test_the_script_alone()
  local t = mr.full(3, 2.0)
  dist.init()
  dist.all_reduce(t)
  dist.broadcast(t, 0)
  dist.barrier()
  lu.assertEquals({ dist.rank(), dist.world_size(), t:sum():item() }, { 0, 1, 6.0 })
  mr.reset()
  dist.all_reduce(mr.ones(3))
  dist.destroy()
  refused(nil, "there is no option `x`", dist.init, { x = 1 })
  refused(nil, "there is no option `x`", dist.all_reduce, t, { x = 1 })
end

os.exit(lu.LuaUnit.run())
