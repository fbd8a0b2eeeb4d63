-- Orders between the hosts of ranks in mr.explore: what they share in Lua, which of them goes on where one waits, and
-- when one order stands for all.
--
-- MR_RANKS_PROGRAMS sets how many programs brute force judges (30), MR_RANKS_SEED the first seed.
-- options: --device virtual:3
-- virtual only: schedules are explored there
-- not checked: schedules are explored
-- not replayed: schedules are explored, by a chooser that no name tells
local lu = require "luaunit"
local mr = require "millrace"

local COUNT = tonumber(os.getenv("MR_RANKS_PROGRAMS")) or (os.getenv("MILLRACE_LONG") and 600 or
  os.getenv("MILLRACE_SHORT") and 15 or 30)
local FIRST = tonumber(os.getenv("MR_RANKS_SEED")) or 1

-- Not by the clock of a busy machine.
local function explore(fn, options)
  return mr.explore(fn, { time = 1000, max = options and options.max })
end

local function outcomes(result)
  local texts = {}
  for i, outcome in ipairs(result.outcomes) do
    texts[i] = outcome.error and outcome.error:match "deadlock" or outcome.error or tostring(outcome.value)
  end
  table.sort(texts)
  return table.concat(texts, " ")
end

-- Its host waits once.
local function wait(rank)
  local x = mr.ones(4):mul_(rank + 1)
  return x[1]:item()
end

local function check_replays(result, fn)
  for _, outcome in ipairs(result.outcomes) do
    local fine, value = pcall(mr.replay, outcome.schedule, fn)
    if outcome.error then lu.assertFalse(fine) else lu.assertEquals(value, outcome.value) end
  end
end

local CONDITION = "This holds if 2 ranks share nothing but what collectives carry."

-- Whoever comes first: the lowest rank tells it.
TestMismatches = {}

function TestMismatches.test_a_mismatch_is_one_outcome()
  for _, root in ipairs{ false, true } do
    local result = explore(function()
      mr.dist.spawn(3, function(rank)
        if root then mr.dist.broadcast(mr.ones(4), rank == 1 and 1 or 0) end
        mr.dist.all_reduce(mr.ones(rank == 0 and 3 or 4))
      end)
    end)
    local texts = {}
    for _, outcome in ipairs(result.outcomes) do
      local first = outcome.error:match "do not match %(R62%): rank (%d)"
      lu.assertNotNil(first, outcome.error)
      texts[first] = true
    end
    lu.assertTrue(texts["0"] or texts["1"])
    lu.assertNil(texts["2"])
  end
  local result = explore(function()
    mr.dist.spawn(2, function(rank) mr.dist.all_reduce(mr.ones(3 + rank)) end)
  end)
  lu.assertEquals(#result.outcomes, 1)
  lu.assertStrContains(result.outcomes[1].error, "rank 0 submits all_reduce of 3 elements")
end

TestTold = {}

-- Both ranks run the same lines: a difference says whose.
function TestTold.test_a_difference_names_the_rank()
  local result = explore(function()
    local sums = {}
    mr.dist.spawn(2, function(rank)
      local s, t = mr.stream(), mr.stream()
      local x = mr.zeros(1)
      mr.synchronize()
      s:run(function() x:add_(1) end)
      t:run(function() x:mul_(3) end)
      mr.synchronize()
      sums[rank + 1] = x:item()
    end)
    return table.concat(sums, " ")
  end)
  local told = {}
  for _, outcome in ipairs(result.outcomes) do told[outcome.value] = table.concat(outcome.difference, "\n") end
  local function pattern(rank)
    return ("^`mul_` %%(ranks_explored.lua:%%d+, rank %d%%) before `add_` %%(ranks_explored.lua:%%d+, rank %d%%)$")
      :format(rank, rank)
  end
  lu.assertStrMatches(told["1.0 3.0"], pattern(0))
  lu.assertStrMatches(told["3.0 1.0"], pattern(1))
end

TestShared = {}

function TestShared.test_a_variable_that_both_change()
  local function fn()
    local n = 0
    mr.dist.spawn(2, function(rank)
      wait(rank)
      n = n * 10 + rank
    end)
    return n
  end
  local result = explore(fn)
  lu.assertEquals(outcomes(result), "1 10")
  lu.assertTrue(result.complete)
  lu.assertNil(result.not_followed)
  check_replays(result, fn)
  lu.assertStrContains(tostring(result), "rank 1 goes on before rank 0")
end

-- Without a wait, who begins decides.
function TestShared.test_who_begins()
  lu.assertEquals(outcomes(explore(function()
    local order = ""
    mr.dist.spawn(3, function(rank) order = order .. rank end)
    return order
  end)), "012 021 102 120 201 210")
end

-- The last one that comes to a collective does not go on first at all events.
function TestShared.test_behind_a_collective()
  local function fn()
    local order = ""
    mr.dist.spawn(2, function(rank)
      local x = mr.ones(4)
      mr.dist.all_reduce(x)
      order = order .. rank
    end)
    return order
  end
  local result = explore(fn)
  lu.assertEquals(outcomes(result), "01 10")
  check_replays(result, fn)
end

function TestShared.test_a_deadlock_of_one_order()
  local function fn()
    local is_ready = false
    mr.dist.spawn(2, function(rank)
      wait(rank)
      if rank == 0 then is_ready = true
      elseif is_ready then mr.dist.all_reduce(mr.ones(4)) end
    end)
    return "fine"
  end
  local result = explore(fn)
  lu.assertEquals(outcomes(result), "deadlock fine")
  lu.assertTrue(result.complete)
  check_replays(result, fn)
end

function TestShared.test_whose_error_is_the_first()
  local result = explore(function()
    mr.dist.spawn(2, function(rank)
      wait(rank)
      error(rank == 0 and "mine" or "yours", 0)
    end)
  end)
  lu.assertEquals(outcomes(result), "rank 0: mine rank 1: yours")
end

-- Where something may be shared, the orders are tried; each of these is another way to share.
local box, counter = { n = 0 }, { value = 0 }
local WAYS = {
  function(rank) box.n = box.n * 10 + rank end,
  function(rank) rawset(box, "n", box.n * 10 + rank) end,
  function(rank) _G.shared_by_ranks = (_G.shared_by_ranks or 0) * 10 + rank end,
  function(rank) getmetatable(counter).n = (getmetatable(counter).n or 0) * 10 + rank end,
  function(rank) rawset(string, "shared", (rawget(string, "shared") or 0) * 10 + rank) end,
}
setmetatable(counter, {})

function TestShared.test_ways_to_share()
  for i, way in ipairs(WAYS) do
    local result = explore(function()
      box.n, _G.shared_by_ranks, getmetatable(counter).n = 0, nil, nil
      rawset(string, "shared", nil)
      mr.dist.spawn(2, function(rank)
        wait(rank)
        way(rank)
      end)
      local n = box.n + (_G.shared_by_ranks or 0) + (getmetatable(counter).n or 0) + (rawget(string, "shared") or 0)
      box.n, _G.shared_by_ranks, getmetatable(counter).n = 0, nil, nil
      rawset(string, "shared", nil)
      return n
    end)
    lu.assertEquals(outcomes(result), "1 10", "way " .. i)
  end
end

-- A variable that is as before again when another rank has had its turn.
function TestShared.test_a_variable_that_is_put_back()
  local result = explore(function()
    local is_busy, seen = false, {}
    mr.dist.spawn(2, function(rank)
      if rank == 0 then
        is_busy = true
        wait(rank)
        is_busy = false
      else
        seen[1] = is_busy
        wait(rank)
      end
    end)
    return seen[1]
  end)
  lu.assertEquals(outcomes(result), "false true")
end

-- A coroutine and an iterator go on for all, and cannot be looked into.
function TestShared.test_what_cannot_be_looked_into()
  local result = explore(function()
    local numbers = coroutine.wrap(function() for i = 1, 9 do coroutine.yield(i) end end)
    local words = ("a b c"):gmatch "%a"
    local got = mr.dist.spawn(2, function(rank)
      wait(rank)
      return numbers() .. words()
    end)
    return table.concat(got, " ")
  end)
  table.sort(result.outcomes, function(a, b) return a.value < b.value end)
  lu.assertEquals(result.outcomes[1].value, "1a 2b")
  lu.assertEquals(result.outcomes[2].value, "2b 1a")
end

-- The random numbers of Lua are everybody's.
function TestShared.test_random_numbers()
  local result = explore(function()
    math.randomseed(1)
    return mr.dist.spawn(2, function(rank)
      wait(rank)
      return math.random(1000000)
    end)
  end)
  lu.assertEquals(#result.outcomes, 2)
end

-- Memory that was there before the ranks: their hosts' writes are not ordered.
function TestShared.test_tensors_of_before()
  local pinned, there = mr.zeros(1, { pinned = true }), mr.zeros(1)
  local function last(t) return t:item() end
  for _, body in ipairs {
    function(rank) pinned[1] = rank end,
    function(rank) there:fill_(rank) end,
  } do
    local result = explore(function()
      mr.dist.spawn(2, function(rank)
        wait(rank)
        body(rank)
      end)
      return last(pinned) + last(there)
    end)
    lu.assertEquals(outcomes(result), "0.0 1.0")
  end
  local result = explore(function()
    mr.dist.spawn(2, function(rank) return wait(rank) + there:item() end)
  end)
  lu.assertEquals(result.schedules, 1) -- they only read
  lu.assertEquals(result.claim, "every-legal-schedule")
  lu.assertNil(result.not_followed)
end

-- A variable is put back before the rank's turn ends, but not before another rank could go on.
function TestShared.test_what_is_put_back()
  local result = explore(function()
    local t = { v = 0 }
    local seen = mr.dist.spawn(2, function(rank)
      wait(rank)
      local before = t.v
      t.v = rank + 1
      wait(rank)
      t.v = 0
      return before
    end)
    return seen[1] .. " " .. seen[2]
  end)
  lu.assertEquals(outcomes(result), "0 0 0 1 2 0")
end

function TestShared.test_settings_metatables_and_numbers()
  local function two(fn)
    return function()
      local results = mr.dist.spawn(2, function(rank)
        wait(rank)
        return fn()
      end)
      return tostring(results[1]) .. " " .. tostring(results[2])
    end
  end
  local function metatable()
    local t = {}
    return two(function()
      local before = getmetatable(t) ~= nil
      setmetatable(t, {})
      return before
    end)()
  end
  local function of_numbers()
    debug.setmetatable(0, nil)
    local text = two(function()
      local before = debug.getmetatable(0) ~= nil
      debug.setmetatable(0, {})
      return before
    end)()
    debug.setmetatable(0, nil)
    return text
  end
  for _, fn in ipairs { metatable, of_numbers, two(function() return mr.allow_tf32(true) end),
                        two(function() return mr.stream().id end), two(function() return tostring(mr.event()) end) } do
    lu.assertTrue(#explore(fn).outcomes >= 2)
  end
end

function TestShared.test_streams_and_gradients()
  local result = explore(function()
    local w = mr.ones(1, { requires_grad = true })
    mr.dist.spawn(2, function(rank)
      if rank == 0 then (w * 2):sum():backward() end
      wait(rank)
    end)
    return "fine"
  end)
  lu.assertTrue(result.schedules > 1)
  result = explore(function()
    local s = mr.stream()
    mr.dist.spawn(2, function(rank)
      if rank == 0 then s:synchronize() end
      wait(rank)
    end)
    return "fine"
  end)
  lu.assertTrue(result.schedules > 1)
end

TestApart = {}

local function check_one(result)
  lu.assertEquals(result.schedules, 1)
  lu.assertTrue(result.deterministic)
  lu.assertNil(result.not_followed)
end

function TestApart.test_one_order_stands_for_all()
  local scale, tables = 2, { a = { 1, 2 }, f = function(v) return v + 1 end }
  check_one(explore(function()
    return mr.dist.spawn(2, function(rank, more)
      local x = mr.ones(4):mul_(rank + scale)
      local sum = x[1]:item()
      mr.dist.all_reduce(x)
      mr.dist.barrier()
      return sum + x[1]:item() + tables.f(tables.a[1]) + more
    end, 7)
  end))
end

function TestApart.test_training()
  check_one(explore(function()
    return mr.dist.spawn(2, function(rank)
      mr.manual_seed(1)
      local net = mr.nn.Sequential(mr.nn.Linear(4, 2), mr.nn.Tanh()):to(mr.current_device())
      local ddp = mr.nn.parallel.DistributedDataParallel(net)
      local sgd, loss = mr.optim.SGD(ddp:parameters(), { lr = 0.1 }), nil
      for _ = 1, 3 do
        sgd:zero_grad()
        loss = ddp(mr.randn(8, 4) + rank):square():mean()
        loss:backward()
        sgd:step()
      end
      return loss:item()
    end)
  end))
end

-- In every order all ranks wait for each other in the same way.
function TestApart.test_a_deadlock_of_all_orders()
  local result = explore(function()
    mr.dist.spawn(2, function(rank)
      local x = mr.ones(4)
      wait(rank)
      mr.dist.send(x, 1 - rank)
      mr.dist.recv(x, 1 - rank)
    end)
  end)
  lu.assertEquals(result.schedules, 1)
  lu.assertStrContains(result.outcomes[1].error, "rank 0 waits")
  lu.assertNil(result.not_followed)
end

-- The orders make a difference to the work of a device, not to Lua: what a rank submits is not ordered by what another
-- one has waited for.
function TestApart.test_waits_with_a_hazard()
  local function fn()
    local came = mr.dist.spawn(2, function(rank)
      local s, x = mr.stream{ nonblocking = true }, mr.full(1, 1, { dtype = "i64" })
      mr.synchronize()
      if rank == 0 then
        s:run(function() x:add_(1) end)
        s:synchronize()
        mr.dist.broadcast(x, 0)
      else
        s:run(function() x:mul_(5) end)
        mr.dist.broadcast(x, 0)
        mr.synchronize()
      end
      return x
    end)
    mr.synchronize(1)
    return came[2]:item()
  end
  local result = explore(fn)
  lu.assertEquals(outcomes(result), "10 2")
  lu.assertTrue(result.complete)
  lu.assertEquals(result.not_followed[1], CONDITION) -- only the first call was looked at
  check_replays(result, fn)
end

TestBudget = {}

-- As people write it: each rank has a place of its own. Nothing proves that no other one reads it.
local function places(steps)
  return function()
    local losses = {}
    mr.dist.spawn(2, function(rank)
      for _ = 1, steps do losses[rank + 1] = wait(rank) end
    end)
    return losses
  end
end

function TestBudget.test_all_orders_are_followed()
  local result = explore(places(2))
  lu.assertTrue(result.deterministic)
  lu.assertNil(result.not_followed)
  lu.assertEquals(result.schedules, 20)
end

-- The usual order is what is known, and the condition says so.
function TestBudget.test_not_all_orders_are_followed()
  local result = explore(places(40), { max = 5 })
  lu.assertTrue(result.deterministic)
  lu.assertEquals(result.not_followed, { CONDITION })
  lu.assertNil(result.untried)
end

function TestBudget.test_more_outcomes_than_one()
  local result = explore(function()
    local n = 0
    mr.dist.spawn(2, function(rank)
      for _ = 1, 6 do
        wait(rank)
        n = n * 2 + rank
      end
    end)
    return n
  end, { max = 30 })
  lu.assertFalse(result.complete)
  lu.assertFalse(result.deterministic)
  lu.assertEquals(result.schedules, 30)
end

-- ---------------------------------------------------------------- by brute force

TestBruteForce = {}

-- A list of steps for each rank: {kind, variable, variable or number}.
local function new_program(ranks)
  local program = {}
  for r = 1, ranks do
    program[r] = {}
    for i = 1, math.random(2, 5) do
      local kinds = { "wait", "wait", "change", "copy", "meet", "if" }
      program[r][i] = { kinds[math.random(#kinds)], math.random(2), math.random(2) }
    end
  end
  -- As many meetings on each rank, so that most programs come to their ends.
  local most = 0
  for r = 1, ranks do
    local count = 0
    for _, step in ipairs(program[r]) do count = count + (step[1] == "meet" and 1 or 0) end
    program[r].count, most = count, math.max(most, count)
  end
  for r = 1, ranks do
    for _ = program[r].count + 1, most do table.insert(program[r], { "meet" }) end
  end
  return program
end

-- `wait_for(rank)` and `meet(rank)`: what the host does there.
local function run_rank(rank, steps, shared, wait_for, meet)
  for _, step in ipairs(steps) do
    local kind, a, b = step[1], step[2], step[3]
    if kind == "wait" then wait_for(rank)
    elseif kind == "change" then shared[a] = shared[a] * 3 + rank + b
    elseif kind == "copy" then shared[a] = shared[b] + 1
    elseif kind == "meet" then meet(rank)
    elseif kind == "if" and shared[a] % 2 == b % 2 then wait_for(rank) end
  end
end

local function explored(program)
  return explore(function()
    local shared = { 0, 0 }
    mr.dist.spawn(#program, function(rank)
      local x = mr.ones(2)
      run_rank(rank, program[rank + 1], shared, function() x[1]:item() end, function() mr.dist.all_reduce(x) end)
    end)
    return shared[1] .. "," .. shared[2]
  end)
end

-- One order of the hosts: choices[k] is who goes on at the k-th choice, 1 behind its end. Returns what it comes to, and
-- of how many each choice was.
local function in_order(program, choices)
  local shared, hosts, counts = { 0, 0 }, {}, {}
  for r, steps in ipairs(program) do
    hosts[r] = { co = coroutine.create(function()
      run_rank(r - 1, steps, shared, function() coroutine.yield() end, function()
        hosts[r].met = (hosts[r].met or 0) + 1
        coroutine.yield()
      end)
    end) }
  end
  while true do
    local ready, left, met = {}, 0, math.huge
    for _, h in ipairs(hosts) do met = math.min(met, h.met or 0) end
    for _, h in ipairs(hosts) do
      local is_over = coroutine.status(h.co) == "dead"
      if not is_over then left = left + 1 end
      if not is_over and (h.met or 0) <= met then ready[#ready + 1] = h end
    end
    if left == 0 then return shared[1] .. "," .. shared[2], counts end
    if #ready == 0 then return "deadlock", counts end
    counts[#counts + 1] = #ready
    assert(coroutine.resume(ready[choices[#counts] or 1].co))
  end
end

local function by_brute_force(program)
  local found, choices = {}, {}
  while true do
    local outcome, counts = in_order(program, choices)
    found[outcome] = true
    for k = #counts, 1, -1 do
      if (choices[k] or 1) < counts[k] then
        choices[k] = (choices[k] or 1) + 1
        for i = k + 1, #choices do choices[i] = nil end
        break
      end
      if k == 1 then
        local list = {}
        for text in pairs(found) do list[#list + 1] = text end
        table.sort(list)
        return table.concat(list, " ")
      end
      choices[k] = nil
    end
  end
end

function TestBruteForce.test_all_interleavings()
  local several = 0
  for seed = FIRST, FIRST + COUNT - 1 do
    math.randomseed(seed)
    local program = new_program(seed % 5 == 0 and 3 or 2)
    if #program == 3 then
      for r = 1, 3 do program[r] = table.move(program[r], 1, 2, 1, {}) end
    end
    local result = explored(program)
    lu.assertTrue(result.complete, "seed " .. seed)
    lu.assertEquals(outcomes(result), by_brute_force(program), "seed " .. seed)
    several = several + (#result.outcomes > 1 and 1 or 0)
  end
  lu.assertTrue(several >= COUNT // 4)
end

-- The root of a broadcast comes after nobody (R61), and the explorer ends it on all ranks together.
function TestShared.test_what_rests_on_ends_together_is_said()
  local function fn(collective)
    local h = mr.zeros(4, { device = "cpu", pinned = true })
    mr.dist.spawn(2, function(rank)
      local a = mr.full(4, rank + 1.0)
      mr.synchronize()
      if rank == 1 then h:copy_(a, { non_blocking = true }) end
      mr.dist[collective](a, collective == "broadcast" and 0 or nil)
      if rank == 0 then h:copy_(a, { non_blocking = true }) end
      mr.synchronize()
    end)
    return h[1]:item()
  end
  for _, collective in ipairs{ "broadcast", "all_reduce" } do
    local result = mr.explore(function() return fn(collective) end)
    local rests = collective == "broadcast"
    lu.assertEquals(#result.hazards, rests and 1 or 0)
    lu.assertEquals(tostring(result):find("ends on all ranks at the same time", 1, true) ~= nil, rests)
    lu.assertEquals(result.claim, rests and "conditional" or "every-legal-schedule")
  end
end

-- The hosts of ranks take turns in front of waits and accesses. Two submissions to one stream have others between them,
-- which are not tried.
function TestShared.test_ranks_that_submit_to_one_stream()
  local function fn(shared)
    local x = mr.zeros(1, { device = 0 })
    mr.synchronize(0)
    mr.dist.spawn(2, function(rank)
      local own = shared and x or mr.zeros(1)
      if rank == 0 then own:add_(1) own:sub_(1) else own:clamp_{ min = 1 } end
    end)
    return x
  end
  for _, shared in ipairs{ true, false } do
    local result = mr.explore(function() return fn(shared) end)
    lu.assertEquals(result.not_followed, shared and { "This holds if ranks that use 1 tensor in the same stream " ..
      "submit one after the other all that is between two waits." } or nil)
  end
end

-- The usual order of the hosts is fine, and others are not: then all of the time is theirs. On a busy computer a
-- quarter of a second may be over before the first of them has run.
function TestShared.test_other_orders_have_the_whole_time_once_they_differ()
  local time, result = 0.5
  repeat
    time = 2 * time
    result = mr.explore(function()
      local n = 0
      mr.dist.spawn(2, function(rank)
        for _ = 1, 40 do
          mr.ones(1):item()
          n = (n * 3 + rank) % 7
        end
      end)
      return n
    end, { time = time })
  until #result.outcomes > 1 or time > 60
  lu.assertTrue(#result.outcomes > 1)
  lu.assertEquals(result.incomplete, ("it stopped after time = %d s"):format(time))
  lu.assertTrue(result.seconds > 0.9 * time, tostring(result.seconds))
end

os.exit(lu.LuaUnit.run())
