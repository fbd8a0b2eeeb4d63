-- Timelines of several ranks: each is a host of its own, with a clock of its own.
-- options: --device virtual:3
-- virtual only: three devices
-- not checked: the collector frees tensors of ranks in any order
-- not replayed: ranks have a clock each
local lu = require "luaunit"
local mr = require "millrace"
local dist = mr.dist

TestRanks = {}

-- The calls of each host, by its rank; nil is the host that started them.
local function calls_of(trace)
  local calls = {}
  for _, span in ipairs(trace.spans) do
    if span.called then
      local rank = span.rank or "none"
      calls[rank] = calls[rank] or {}
      table.insert(calls[rank], span)
    end
  end
  return calls
end

-- A host is in one call at a time, or in one inside another.
local function assert_nested(calls)
  table.sort(calls, function(a, b)
    if a.called ~= b.called then return a.called < b.called end
    return a.returned > b.returned
  end)
  local open = {}
  for _, call in ipairs(calls) do
    lu.assertTrue(call.returned >= call.called)
    while #open > 0 and open[#open].returned <= call.called do table.remove(open) end
    local outer = open[#open]
    if outer and call.returned > outer.returned then
      lu.fail(("%s (%f to %f) begins in %s (%f to %f)"):format(call.name, call.called, call.returned, outer.name,
        outer.called, outer.returned))
    end
    open[#open + 1] = call
  end
end

-- The rank that comes last submits a collective for all, and frees what the collector finds of all.
local function train(rank)
  local x = mr.ones(1 << 14) * (rank + 1)
  for i = 1, 12 do
    mr.spin{ ms = 0.01 * (1 + (rank * 7 + i) % 3) }
    local work = dist.all_reduce(x, { async = true })
    local y = (mr.ones(1 << 10) + 1) * 2
    work:wait()
    if i % 4 == 0 then collectgarbage() end
    x:mul_(y:sum():item() > 0 and 0.5 or 1)
  end
end

function TestRanks.test_calls_of_a_rank_do_not_overlap()
  local trace = mr.timeline(function()
    mr.ones(4)
    dist.spawn(3, train)
    mr.ones(4):sum():item()
  end)
  local calls = calls_of(trace)
  for _, rank in ipairs { "none", 0, 1, 2 } do
    lu.assertTrue(#calls[rank] > 0, rank)
    assert_nested(calls[rank])
  end
end

function TestRanks.test_a_rank_is_named_where_there_are_several()
  local one = mr.timeline(function() dist.spawn(1, train) end)
  lu.assertNil(calls_of(one)[0])
  lu.assertNil(tostring(one:critical_path()):find "of rank")
  local two = mr.timeline(function() dist.spawn(2, train) end)
  lu.assertStrContains(tostring(two:critical_path()), "host of rank ")
end

-- A name means an operation of the same rank as the other one.
function TestRanks.test_why_asks_about_one_rank()
  local trace = mr.timeline(function()
    dist.spawn(2, function(rank)
      local x = mr.ones(1 << 20)
      mr.op{ name = "back", ms = 1 + rank }
      local work = dist.all_reduce(x, { async = true })
      mr.op{ name = "other", ms = 0.5 }
      work:wait()
      x:mul_(2)
      mr.synchronize()
    end)
  end)
  local function find(name, rank)
    for _, span in ipairs(trace.spans) do
      if span.name == name and span.rank == rank and span.ran ~= false then return span end
    end
  end
  for rank = 0, 1 do
    local why = trace:why(find("all_reduce", rank), "mul_")
    lu.assertStrContains(why.text, ("stream `default stream of device %d` waits for an event"):format(rank))
  end
  lu.assertStrContains(trace:why("all_reduce", "mul_").text, "is behind `all_reduce`")
  -- Where they are of two ranks, what held up the later one is named, and not what is on another stream.
  local why = trace:why(find("all_reduce", 0), find("mul_", 1))
  lu.assertStrMatches(why.text, "`mul_` %b() comes after `other` %b() on stream `default stream of device 1`: .*")
end

-- What one rank's host has waited for orders nothing that another rank submits.
function TestRanks.test_the_host_of_each_rank_orders_its_own_work()
  local shared = mr.zeros(1 << 20, { pinned = true })
  local trace = mr.timeline(function()
    dist.spawn(2, function(rank)
      local mine = mr.ones(1 << 20)
      local s = mr.stream{ name = "s" .. rank }
      mr.synchronize()
      if rank == 0 then
        s:run(function() mine:copy_(shared, { non_blocking = true }) end)
        s:synchronize()
        mr.op{ name = "tail", ms = 0.1 }
      else
        shared:copy_(mine, { non_blocking = true })
      end
    end)
  end)
  local copy
  for _, span in ipairs(trace.spans) do
    if span.rank == 0 and span.kind == "copy" then copy = span end
  end
  local why = trace:why(copy, "tail")
  lu.assertEquals(why.cause, "synchronize")
  lu.assertNil(why.needed_by)
end

os.exit(lu.LuaUnit.run())
