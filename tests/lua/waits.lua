-- mr.waits: verdicts with their reasons, costs and cheaper ways, and what it refuses. Random programs are in
-- waits_random.lua.
-- not checked: its programs lose tensors while streams use them, and waits are left out
local lu = require "luaunit"
local mr = require "millrace"
local T = require "millrace.testing"
local unchecked = require "lua.support.unchecked"

local function line() return debug.getinfo(2, "l").currentline end

-- The verdict on the wait of a line.
local function at(result, where)
  for _, w in ipairs(result.waits) do
    if w.where:match(":(%d+)$") == tostring(where) then return w end
  end
  error("no wait at line " .. where .. " in\n" .. tostring(result), 2)
end

local function streams()
  return mr.stream{name = "compute"}, mr.stream{name = "copy"}
end

TestAssumed = {}

-- The checker withdraws what the two launches turn out not to have done; here other indices may meet.
function TestAssumed.test_a_hazard_that_the_code_does_not_tell()
  local scatter = mr.kernel[=[
    extern "C" __global__ void scatter(int *x, const int *at) { x[at[threadIdx.x]] = 1; }]=]
  local compute, copy = streams()
  local x, at_ = mr.zeros(64, {dtype = "i32", name = "x"}), mr.arange(64, {dtype = "i32"})
  mr.synchronize()
  local lines = {}
  local function both()
    scatter[{1, 32, stream = compute}](x, at_) lines[1] = line()
    scatter[{1, 32, stream = copy}](x, at_[{{33, 64}}]) lines[2] = line()
  end
  local sentence = "`scatter` at line %d and `scatter` at line %d, which both write `x`, if both touch the same bytes: "
    .. "the code does not tell"
  local result = mr.waits(both)
  lu.assertEquals({ result.hazards, result.hazards_assumed }, { 1, true })
  lu.assertStrContains(tostring(result), "The program may have hazards with all its waits (1 access; ")
  lu.assertStrContains((tostring(result):gsub("waits.lua:", "line ")), sentence:format(lines[1], lines[2]))
  result = mr.waits(function()
    both()
    copy:wait_stream(compute)
    compute:run(function() x:add_(1) end)
    copy:run(function() x:add_(1) end)
  end)
  lu.assertEquals({ result.hazards > 1, result.hazards_assumed }, { true })
  lu.assertStrContains(tostring(result), "The program has hazards with all its waits")
end

TestVerdicts = {}

function TestVerdicts.test_what_it_refuses()
  lu.assertErrorMsgContains("waits.lua:", function() mr.waits() end)
  lu.assertErrorMsgContains("waits: expected a function, got", function() mr.waits() end)
  lu.assertErrorMsgContains("not inside mr.waits", function()
    mr.waits(function() mr.stress(function() end, { runs = 1 }) end)
  end)
end

function TestVerdicts.test_a_wait_between_write_and_read_is_needed()
  local compute, copy = streams()
  local x = mr.zeros(8, {name = "x"})
  mr.synchronize()
  local wait
  local result = mr.waits(function()
    mr.op{name = "produce", stream = compute, writes = {x}}
    copy:wait_stream(compute) wait = line()
    mr.op{name = "consume", stream = copy, reads = {x}}
  end)
  local w = at(result, wait)
  lu.assertEquals({w.kind, w.verdict, w.who, w.rounds, w.needed_rounds, w.kept},
    {"wait_stream", "needed", "`copy`", 1, 1, true})
  lu.assertStrContains(w.because,
    "without it, `consume` at line " .. wait + 1 .. " may read `x` before `produce` at line ")
  lu.assertEquals({result.total, result.sufficient, result.exact, result.hazards}, {1, 1, true, 0})
  lu.assertStrContains(tostring(result), "1 wait, 1 suffices: line " .. wait)
end

function TestVerdicts.test_the_second_of_two_is_redundant_with_the_chain()
  local compute, copy = streams()
  local x = mr.zeros(8, {name = "x"})
  mr.synchronize()
  local second
  local result = mr.waits(function()
    mr.op{name = "produce", stream = compute, writes = {x}}
    local e = compute:record_event()
    copy:wait_event(e)
    mr.op{name = "consume", stream = copy, reads = {x}}
    copy:wait_event(e) second = line()
    mr.op{name = "again", stream = copy, reads = {x}}
  end)
  lu.assertEquals({result.total, result.sufficient}, {2, 1})
  lu.assertEquals(at(result, second - 2).verdict, "needed")
  lu.assertEquals(at(result, second).verdict, "redundant")
  lu.assertStrContains(at(result, second).because, "before, by event:")
end

-- The host's wait is for work whose data the same stream uses next: that is a use, which needs no wait.
function TestVerdicts.test_the_stream_itself_orders_the_use()
  local compute, copy = streams()
  local x = mr.zeros(8, {name = "x"})
  mr.synchronize()
  local wait
  local result = mr.waits(function()
    mr.op{name = "produce", stream = compute, writes = {x}}
    compute:synchronize() wait = line()
    mr.op{name = "other", stream = copy}
    mr.op{name = "consume", stream = compute, reads = {x}}
  end)
  lu.assertEquals(at(result, wait).verdict, "redundant")
  lu.assertStrMatches(at(result, wait).because,
    "without it, too, `consume` at line %d+ comes after `produce` at line %d+, as both are work of `compute`")
end

-- In a loop the first time has nothing to do yet; the reason is about a time that has.
function TestVerdicts.test_a_reason_is_about_a_time_that_has_work()
  local compute, copy = streams()
  local x = mr.zeros(8, {name = "x"})
  local e = mr.event()
  mr.synchronize()
  local wait
  local result = mr.waits(function()
    for _ = 1, 3 do
      copy:wait_event(e) wait = line()
      compute:wait_stream(copy)
      mr.op{name = "produce", stream = compute, writes = {x}}
      e:record(compute)
      copy:wait_stream(compute)
      mr.op{name = "consume", stream = copy, reads = {x}}
    end
  end)
  lu.assertEquals(at(result, wait).verdict, "redundant")
  lu.assertNotStrContains(at(result, wait).because, "never been recorded")
  lu.assertStrContains(at(result, wait).because, "without it, too, `consume` at line")
end

-- The host's wait may go, whichever comes first; so may that for all of a stream.
function TestVerdicts.test_of_two_that_do_the_same_the_weaker_one_is_kept()
  local function kept(first, second)
    local a, b, x = mr.stream(), mr.stream(), mr.zeros(64)
    local result = mr.waits(function()
      a:run(function() x:fill_(1) end)
      local e = a:record_event()
      a:run(function() mr.spin{ms = 1} end)
      first(a, b, e) second(a, b, e)
      b:run(function() return x:sum() end)
    end)
    local kinds = {}
    for _, w in ipairs(result.waits) do
      lu.assertEquals(w.verdict, "together")
      if w.kept then kinds[#kinds + 1] = w.kind end
    end
    return table.concat(kinds, " ")
  end
  local function host(a)
    a:synchronize()
  end
  local function event(_, b, e)
    b:wait_event(e)
  end
  local function stream(a, b)
    b:wait_stream(a)
  end
  lu.assertEquals({ kept(host, event), kept(event, host), kept(host, stream), kept(stream, event) },
    { "wait_event", "wait_event", "wait_stream", "wait_event" })
end

function TestVerdicts.test_two_that_do_the_same_matter_together()
  local compute, copy = streams()
  local x = mr.zeros(8, {name = "x"})
  mr.synchronize()
  local first
  local result = mr.waits(function()
    mr.op{name = "produce", stream = compute, writes = {x}}
    copy:wait_stream(compute) first = line()
    copy:wait_stream(compute)
    mr.op{name = "consume", stream = copy, reads = {x}}
  end)
  lu.assertEquals({result.total, result.sufficient, result.exact}, {2, 1, true})
  local a, b = at(result, first), at(result, first + 1)
  lu.assertEquals({a.verdict, b.verdict}, {"together", "together"})
  lu.assertTrue(a.kept ~= b.kept)
  lu.assertStrContains(a.because, "it can go alone, but not together with line " .. first + 1 .. ": ")
  lu.assertStrContains(a.because, "may read `x`")
end

function TestVerdicts.test_members_of_a_barrier_are_judged_one_by_one()
  local compute, copy = streams()
  local third = mr.stream{name = "third"}
  local x = mr.zeros(8, {name = "x"})
  mr.synchronize()
  local function with(order)
    return mr.waits(function()
      mr.op{stream = compute, writes = {x}}
      mr.barrier(order)
      mr.op{stream = copy, reads = {x}}
    end)
  end
  for _, order in ipairs{ {compute, copy, third}, {third, copy, compute}, {copy, third, compute} } do
    local result, verdicts = with(order), {}
    mr.synchronize()
    for _, w in ipairs(result.waits) do verdicts[w.who] = w.kind .. " " .. w.verdict end
    lu.assertEquals(verdicts, {["`compute`"] = "barrier needed", ["`copy`"] = "barrier needed",
      ["`third`"] = "barrier redundant"})
    lu.assertEquals({result.total, result.sufficient}, {3, 2})
  end
end

function TestVerdicts.test_rounds_of_a_line_are_one_wait()
  local compute, copy = streams()
  local x = {mr.zeros(8), mr.zeros(8)}
  mr.synchronize()
  local wait
  local result = mr.waits(function()
    for i = 1, 10 do
      compute:wait_stream(copy)
      mr.op{stream = compute, writes = {x[1]}}
      copy:wait_stream(compute) wait = line()
      if i % 3 == 0 then mr.op{stream = copy, reads = {x[1]}} end
    end
  end)
  lu.assertEquals({at(result, wait).rounds, at(result, wait).needed_rounds}, {10, 3})
  lu.assertStrContains(tostring(result), ", 3 of 10 times")
end

-- The variable is gone, and the memory would be given to the next round's tensor.
function TestVerdicts.test_a_wait_that_only_the_collector_needs()
  local compute, copy = streams()
  local wait
  local result = mr.waits(function()
    for _ = 1, 3 do
      local x = copy:run(function() return mr.zeros(8, {name = "x"}) end)
      compute:wait_stream(copy)
      mr.op{stream = compute, name = "use", reads = {x}}
      copy:wait_stream(compute) wait = line()
    end
    mr.synchronize()
  end)
  lu.assertEquals(at(result, wait).verdict, "needed")
  lu.assertStrContains(at(result, wait).because, "Lua's collector may free `x` while `use`")
end

function TestVerdicts.test_the_host_s_reads_count_and_the_end_waits_for_everything()
  local compute = streams()
  local p = mr.zeros(8, {pinned = true, name = "p"})
  mr.synchronize()
  local needed
  local result = mr.waits(function()
    mr.op{stream = compute, writes = {p}}
    compute:synchronize() needed = line()
    local _ = p[1]:item()
    mr.op{stream = compute, writes = {p}}
    mr.synchronize()
  end)
  lu.assertEquals(at(result, needed).verdict, "needed")
  local last = at(result, needed + 3)
  lu.assertEquals(last.verdict, "redundant")
  lu.assertStrContains(last.because, "all work is waited for at the end")
end

function TestVerdicts.test_a_blocking_copy_is_no_wait_of_the_script_s()
  local x, host = mr.zeros(8), mr.zeros(8, {device = "cpu"})
  mr.synchronize()
  local result = mr.waits(function()
    host:copy_(x)
    host:add_(1)
    print(("%.0f"):format(x:sum():item()))
  end)
  lu.assertEquals(result.total, 0)
  lu.assertEquals(tostring(result), "0 waits")
end

function TestVerdicts.test_elapsed_time_needs_its_synchronise()
  local compute = streams()
  local wait
  local result = mr.waits(function()
    local a, b = mr.event{timing = true}, mr.event{timing = true}
    a:record(compute)
    mr.spin{ms = 0.1, stream = compute}
    b:record(compute)
    b:synchronize() wait = line()
    assert(b - a > 0.09)
  end)
  lu.assertEquals(at(result, wait).verdict, "needed")
  lu.assertStrContains(at(result, wait).because, "elapsed_time")
end

function TestVerdicts.test_a_wait_for_an_event_that_was_never_recorded()
  local _, copy = streams()
  local wait
  local result = mr.waits(function()
    copy:wait_event(mr.event()) wait = line()
    mr.spin{ms = 0.01, stream = copy}
  end)
  lu.assertEquals(at(result, wait).verdict, "redundant")
  lu.assertStrContains(at(result, wait).because, "never been recorded")
end

-- Work of the stream that waits comes first without the wait. It is not said that there is none.
function TestVerdicts.test_a_stream_that_waits_for_itself()
  local compute = streams()
  local x = mr.zeros(8, {name = "x"})
  mr.synchronize()
  local waits = {}
  local result = mr.waits(function()
    compute:wait_event(compute:record_event()) waits[1] = line()
    compute:run(x.add_, x, 1)
    compute:wait_event(compute:record_event()) waits[2] = line()
    compute:run(x.add_, x, 1)
    compute:wait_stream(compute) waits[3] = line()
    compute:run(x.add_, x, 1)
  end)
  lu.assertEquals(at(result, waits[1]).because, "there is no work before it that it could wait for")
  for i = 2, 3 do
    lu.assertEquals(at(result, waits[i]).verdict, "redundant")
    lu.assertEquals(at(result, waits[i]).because,
      "`compute` waits for its own earlier work, which comes first anyway")
  end
end

-- The order of memory counts, too: without the wait of `copy`, that of `compute` would be needed.
function TestVerdicts.test_what_it_waits_for_may_be_an_allocation()
  local compute, copy = streams()
  local waits, made = {}, nil
  local result = mr.waits(function()
    local x = mr.empty(8, {name = "x"}) made = line()
    local event = mr.default_stream():record_event()
    copy:wait_event(event) waits[1] = line()
    copy:run(x.fill_, x, 1)
    compute:wait_event(copy:record_event()) waits[2] = line()
    compute:wait_event(event) waits[3] = line()
    compute:run(x.sum, x) waits[4] = line()
    mr.synchronize()
  end)
  for i = 1, 2 do lu.assertEquals(at(result, waits[i]).verdict, "needed") end
  local last = at(result, waits[3])
  lu.assertEquals(last.verdict, "redundant")
  lu.assertStrContains(last.because, ("what it waits for is ordered before already; without it, too, `sum` at line %d "
    .. "comes after the allocation of `x` at line %d:"):format(waits[4], made))
end

-- `second` is given no work, but it waits for work of `first` and passes that on.
function TestVerdicts.test_what_other_streams_pass_on_is_work_before_it_and_after_it()
  local first, second = streams()
  local third = mr.stream{name = "third"}
  local x, waits = mr.zeros(8, {name = "x"}), {}
  mr.synchronize()
  local result = mr.waits(function()
    mr.op{name = "produce", stream = first, writes = {x}}
    third:wait_stream(first)
    second:wait_stream(first) waits[1] = line()
    third:wait_stream(second) waits[2] = line()
    mr.op{name = "consume", stream = third, reads = {x}}
  end)
  for i = 1, 2 do
    lu.assertEquals(at(result, waits[i]).verdict, "together")
    lu.assertNotStrContains(at(result, waits[i]).because, "no work")
  end
  result = mr.waits(function()
    mr.op{name = "produce", stream = first, writes = {x}}
    second:wait_stream(first) waits[1] = line()
    third:wait_stream(second) waits[2] = line()
    mr.op{name = "apart", stream = third}
  end)
  for i = 1, 2 do
    lu.assertEquals(at(result, waits[i]).verdict, "redundant")
    lu.assertStrContains(at(result, waits[i]).because, "uses the data of the work that it waits for")
  end
end

-- A time is no access; that it is read is told.
function TestVerdicts.test_times_that_are_read_after_a_redundant_wait()
  local compute, copy = streams()
  local x = mr.zeros(8, {name = "x"})
  mr.synchronize()
  local wait, sync, last
  local result = mr.waits(function()
    local from, to = mr.event{timing = true}, mr.event{timing = true}
    from:record(compute)
    mr.op{name = "produce", stream = compute, writes = {x}}
    copy:wait_stream(compute) wait = line()
    to:record(copy)
    mr.with(compute, function() return x:sum():item() end)
    to:synchronize()
    compute:synchronize() sync = line()
    lu.assertTrue(from:elapsed_time(to) > 0)
    compute:synchronize() last = line()
    mr.clock()
  end)
  lu.assertEquals(at(result, wait).because, "no work comes after it, in `copy` or in what waits for that. " ..
    "A time that is read after it may then be another")
  lu.assertEquals(at(result, sync).because,
    "the host submits no work and uses no tensor after it, and all work is waited for at the end")
  lu.assertEquals(at(result, last).because, "the host submits no work and uses no tensor after it, and all work is " ..
    "waited for at the end. A time that is read after it may then be another")
end

-- Accesses of a host function are data, too, and freed memory is.
function TestVerdicts.test_the_data_of_host_functions_and_of_frees()
  local compute, copy = streams()
  local p, x = mr.zeros(8, {device = "cpu", pinned = true}), mr.zeros(8, {stream = copy})
  mr.synchronize()
  local waits = {}
  local result = mr.waits(function()
    compute:host_func(function() p:fill_(1) end)
    compute:synchronize()
    compute:synchronize() waits[1] = line()
    p:fill_(2)
    compute:run(x.fill_, x, 1)
    copy:wait_stream(compute)
    copy:wait_event(compute:record_event()) waits[2] = line()
    x:free()
  end)
  for i = 1, 2 do
    lu.assertNotStrContains(at(result, waits[i]).because, "nothing that")
    lu.assertNotStrContains(at(result, waits[i]).because, "no work")
  end
end

function TestVerdicts.test_hazards_that_are_there_already_are_told_first()
  local compute, copy = streams()
  local x, y = mr.zeros(8, {name = "x"}), mr.zeros(8, {name = "y"})
  mr.synchronize()
  local wait
  local result = mr.waits(function()
    mr.op{name = "write", stream = compute, writes = {x}}
    mr.op{name = "race", stream = copy, reads = {x}}
    mr.op{name = "produce", stream = compute, writes = {y}}
    copy:wait_stream(compute) wait = line()
    mr.op{name = "consume", stream = copy, reads = {y}}
  end)
  lu.assertEquals(result.hazards, 1)
  lu.assertEquals(at(result, wait).verdict, "needed")
  lu.assertStrContains(at(result, wait).because, "`y`")
  lu.assertStrContains(tostring(result), "The program has hazards with all its waits (1 access; ")
  lu.assertStrContains(tostring(result), "may read `x`")
end

-- The checker counts pairs of accesses, and mr.waits the later accesses of these.
function TestVerdicts.test_an_access_that_races_with_two_earlier_ones_counts_once()
  local compute, copy = streams()
  local x = mr.zeros(8, {name = "x"})
  mr.synchronize()
  local function fn()
    mr.op{name = "read", stream = compute, reads = {x}}
    mr.op{name = "read", stream = copy, reads = {x}}
    mr.op{name = "write", stream = mr.default_stream(), writes = {x}}
    mr.synchronize()
  end
  mr.hazard.clear()
  mr.hazard.mode("collect")
  fn()
  local _, totals = mr.hazard.summary()
  mr.hazard.clear()
  mr.hazard.mode("off")
  lu.assertEquals(totals.hazards, 2)
  local result = mr.waits(fn)
  lu.assertEquals(result.hazards, 1)
  lu.assertStrContains(tostring(result), "(1 access; --check counts pairs of accesses)")
end

function TestVerdicts.test_many_alternatives_are_solved_exactly()
  local compute, copy = streams()
  local xs, lines = {}, {"local compute, copy, xs = ..."}
  for i = 1, 20 do -- 40 waits; none is needed alone
    xs[i] = mr.zeros(8)
    lines[#lines + 1] = ("mr.op{stream = compute, writes = {xs[%d]}}"):format(i)
    lines[#lines + 1] = "copy:wait_stream(compute)"
    lines[#lines + 1] = "copy:wait_stream(compute)"
    lines[#lines + 1] = ("mr.op{stream = copy, reads = {xs[%d]}}"):format(i)
  end
  mr.synchronize()
  local chunk = assert(load(table.concat(lines, "\n"), "=many.lua", "t", {mr = mr}))
  local result = mr.waits(function() chunk(compute, copy, xs) end)
  lu.assertEquals({result.total, result.sufficient, result.exact}, {40, 20, true})
  for _, w in ipairs(result.waits) do lu.assertEquals(w.verdict, "together") end
end

-- What a wait orders beside tensors: nobody follows whether that matters.
TestUnknown = {}

local function unknown(result, where, because)
  local w = at(result, where)
  lu.assertEquals({w.verdict, w.kept, w.needed_rounds}, {"unknown", true, 0})
  lu.assertStrContains(w.because, "no hazard appears without it, but ")
  lu.assertStrContains(w.because, because)
  lu.assertStrContains(tostring(result), ("waits.lua:%d %s: unknown"):format(where, w.kind))
  lu.assertStrContains(tostring(result), "not known to be needed)")
end

function TestUnknown.test_a_variable_that_a_host_function_sets()
  local compute = streams()
  local v, wait = 1, nil
  local result = mr.waits(function()
    compute:host_func(function() v = 2 end)
    compute:synchronize() wait = line()
    v = v + 1
  end)
  unknown(result, wait, "the host may go on before `host_func` at line " .. wait - 1 .. " has run")
  lu.assertEquals(result.sufficient, 1)
  lu.assertStrContains(tostring(result),
    "1 wait, 1 suffices: line " .. wait .. " (1 of these is not known to be needed)")
end

-- A later wait that the function does not need to be over by, and one that is for it already.
function TestUnknown.test_only_the_wait_that_orders_the_function_first()
  local compute, copy = streams()
  local wait
  local result = mr.waits(function()
    compute:host_func(function() end)
    copy:synchronize()
    compute:synchronize() wait = line()
    mr.synchronize()
  end)
  lu.assertEquals(at(result, wait - 1).verdict, "redundant")
  unknown(result, wait, "the host may go on before")
  lu.assertEquals(at(result, wait + 1).verdict, "redundant")
end

function TestUnknown.test_two_host_functions()
  local compute, copy = streams()
  local third, log, wait = mr.stream{name = "third"}, {}, nil
  local result = mr.waits(function()
    compute:host_func(function() log[#log + 1] = "a" end)
    copy:wait_stream(compute) wait = line()
    copy:host_func(function() log[#log + 1] = "b" end)
    third:wait_stream(copy)
    third:wait_stream(compute)
    third:host_func(function() log[#log + 1] = "c" end)
  end)
  unknown(result, wait, ("nothing then orders `host_func` at line %d and `host_func` at line %d"):format(wait - 1,
    wait + 1))
  unknown(result, wait + 2, "nothing then orders `host_func` at line " .. wait + 1)
  lu.assertEquals(at(result, wait + 3).verdict, "redundant")
  lu.assertEquals(result.not_followed[1]:match("^This holds if 2 host functions") ~= nil, true)
end

function TestUnknown.test_two_waits_for_one_host_function_matter_together()
  local compute, copy = streams()
  local first
  local result = mr.waits(function()
    compute:host_func(function() end)
    copy:wait_stream(compute) first = line()
    copy:wait_stream(compute)
    copy:host_func(function() end)
  end)
  lu.assertEquals({at(result, first).verdict, at(result, first + 1).verdict}, {"together", "together"})
  lu.assertStrContains(at(result, first).because, ": nothing then orders `host_func`")
  lu.assertEquals(result.sufficient, 1)
end

function TestUnknown.test_what_a_query_answers()
  local compute = streams()
  local e, wait = mr.event(), nil
  mr.synchronize()
  local result = mr.waits(function()
    mr.spin{ms = 0.1, stream = compute}
    e:record(compute)
    e:synchronize() wait = line()
    assert(e:query())
  end)
  unknown(result, wait, "`query` at line " .. wait + 1 .. " may then answer no")
  lu.assertNil(result.not_followed) -- with the wait it can say nothing else
  result = mr.waits(function()
    mr.spin{ms = 0.1, stream = compute}
    compute:synchronize() wait = line()
    assert(compute:query())
  end)
  unknown(result, wait, "`query` at line " .. wait + 1 .. " may then answer no")
end

-- The answer may be another one with all waits: the path of the script may depend on it.
function TestUnknown.test_a_query_that_may_say_no_anyway_is_a_condition()
  local compute = streams()
  local asked = 0
  local result = mr.waits(function()
    mr.spin{ms = 0.1, stream = compute}
    repeat asked = asked + 1 until compute:query()
    compute:synchronize()
  end)
  lu.assertEquals(result.waits[1].verdict, "redundant")
  local clause = asked == 1 and "This holds if 1 query answers as in this run."
    or ("This holds if %d queries answer as in this run."):format(asked)
  lu.assertEquals(result.not_followed, { clause })
  lu.assertStrContains(tostring(result), "1 wait, 0 suffice\n" .. clause)
end

-- After a yes, the script would use what the wait is for.
function TestUnknown.test_a_query_that_said_no_is_a_condition()
  for _, of in ipairs{"stream", "event"} do
    local compute, copy = streams()
    local x, e, wait = mr.zeros(2, {name = "x"}), mr.event(), nil
    mr.synchronize()
    local result = mr.waits(function()
      compute:run(function() x:add_(1) end)
      mr.spin{ms = 5, stream = compute}
      e:record(compute)
      copy:wait_event(e) wait = line()
      local asked = of == "stream" and compute or e
      if asked:query() then copy:run(function() x:mul_(3) end) end
    end)
    lu.assertEquals({ at(result, wait).verdict, result.claim }, { "redundant", "conditional" }, of)
    lu.assertEquals(result.not_followed, { "This holds if 1 query answers as in this run." }, of)
  end
end

function TestUnknown.test_the_order_of_atomic_updates()
  local compute, copy = streams()
  local exchange = mr.kernel([[extern "C" __global__ void exchange(int *x, int v) { atomicExch(x, v); }]])
  local x, wait = mr.zeros(1, {dtype = "i32", name = "x"}), nil
  mr.synchronize()
  local result = mr.waits(function()
    exchange[{1, 1, 0, compute}](x, 1)
    copy:wait_stream(compute) wait = line()
    exchange[{1, 1, 0, copy}](x, 2)
  end)
  local orders = "nothing then orders the atomic updates of `x` by `exchange` at line %d and `exchange` at line %d"
  unknown(result, wait, orders:format(wait - 1, wait + 1))
  -- An order that is not there with all waits cannot be lost.
  result = mr.waits(function()
    exchange[{1, 1, 0, compute}](x, 1)
    exchange[{1, 1, 0, copy}](x, 2)
    copy:wait_stream(compute)
  end)
  lu.assertEquals(result.waits[1].verdict, "redundant")
end

-- CUDA lets an asynchronous copy of pageable memory wait or not (R23), so the script's own wait may be the only one.
function TestUnknown.test_a_copy_that_may_wait()
  local compute, copy = streams()
  local x, page = mr.zeros(8, {name = "x"}), mr.zeros(8, {device = "cpu", name = "page"})
  local wait
  mr.synchronize()
  local sentence = "the host's `%s` at line %d then comes after the copy of `page`, `copy_` at line %d, only if "
  local result = mr.waits(function()
    compute:run(function() page:copy_(x, {non_blocking = true}) end)
    compute:synchronize() wait = line()
    page[1]:item()
  end)
  unknown(result, wait, sentence:format("read", wait + 1, wait - 1))
  lu.assertEquals(result.claim, "every-legal-schedule")
  result = mr.waits(function()
    compute:run(function() x:copy_(page, {non_blocking = true}) end)
    compute:synchronize() wait = line()
    page[1] = 2
  end)
  unknown(result, wait, sentence:format("fill_", wait + 1, wait - 1))
  -- As it is, the program relies on that: a condition, and nothing that the wait behind it would keep. The function in
  -- front of the copy is over if the copy waited, as far as the copy read what the function wrote.
  result = mr.waits(function()
    compute:host_func(function() page:fill_(3) end)
    compute:run(function() x:copy_(page, {non_blocking = true}) end)
    page[1] = 2
    copy:wait_stream(compute)
  end)
  lu.assertEquals({ result.hazards, result.claim, result.waits[1].verdict }, { 0, "conditional", "redundant" })
  lu.assertStrContains(tostring(result), "This holds if an asynchronous copy of pageable memory waits")
end

-- A hazard comes first: of such a wait it is known that it is needed.
function TestUnknown.test_a_hazard_is_known()
  local compute = streams()
  local p, wait = mr.zeros(8, {pinned = true, name = "p"}), nil
  mr.synchronize()
  local result = mr.waits(function()
    compute:host_func(function() p[1] = 3 end)
    compute:synchronize() wait = line()
    p[1] = 4
  end)
  lu.assertEquals(at(result, wait).verdict, "needed")
  lu.assertEquals(at(result, wait).needed_rounds, 1)
  lu.assertStrContains(at(result, wait).because, "`p`")
end

TestCosts = {}

function TestCosts.setUp()
  if not mr.machine then lu.skip("times are those of the virtual GPU") end
end

function TestCosts.test_a_wait_for_too_much_has_a_cheaper_way()
  local compute, copy = streams()
  local x = mr.zeros(8, {name = "x"})
  mr.synchronize()
  local wait
  local result = mr.waits(function()
    mr.op{name = "produce", stream = compute, writes = {x}, ms = 0.1}
    mr.op{name = "other", stream = compute, ms = 1}
    copy:wait_stream(compute) wait = line()
    mr.op{name = "consume", stream = copy, reads = {x}, ms = 1}
  end)
  local w = at(result, wait)
  lu.assertAlmostEquals(result.makespan_ms, 2.1, 0.1)
  lu.assertAlmostEquals(w.costs_ms, 1, 0.1)
  lu.assertStrContains(w.instead, "it waits for all of `compute`; an event that `compute` records after line "
    .. wait - 2 .. " and `copy` waits for")
end

-- In the first round the wait is for a record in front of the loop, and not needed. In the others it is for the record
-- that a cheaper wait needs, so only who waits changes.
function TestCosts.test_the_event_that_a_stream_can_wait_for_is_there()
  local compute = streams()
  local x = mr.zeros(8, {name = "x"})
  mr.synchronize()
  local wait, record
  collectgarbage("stop") -- a free of the sum would come before the record
  local result = mr.waits(function()
    local done = compute:record_event()
    for i = 1, 3 do
      done:synchronize() wait = line()
      x:fill_(i)
      compute:wait_stream(mr.current_stream())
      compute:run(function() mr.spin{ms = 0.1} x:sum() end)
      done = compute:record_event() record = line()
    end
  end)
  collectgarbage("restart")
  local w = at(result, wait)
  lu.assertEquals({ w.rounds, w.needed_rounds }, { 3, 2 })
  lu.assertStrContains(w.instead, ("it waits for the record at line %d; if the default stream waits for that event "
    .. "here, it costs "):format(record))
end

-- The same, but the record comes later than what has to be waited for: then a new event is proposed.
function TestCosts.test_the_event_that_is_there_waits_for_too_much()
  local compute = streams()
  local x = mr.zeros(8, {name = "x"})
  mr.synchronize()
  local wait, read, record
  local result = mr.waits(function()
    local done = compute:record_event()
    for i = 1, 2 do
      done:synchronize() wait = line()
      x:fill_(i)
      compute:wait_stream(mr.current_stream())
      compute:run(x.sum, x) read = line()
      mr.spin{ms = 0.1, stream = compute}
      done = compute:record_event() record = line()
    end
  end)
  lu.assertStrContains(at(result, wait).instead, ("it waits for the record at line %d; an event that `compute` records "
    .. "after line %d and the default stream waits for here costs "):format(record, read))
end

-- A graph's lanes are no streams of the script, and it cannot record between the nodes. So the line is the launch's.
function TestCosts.test_a_graph_is_waited_for_as_a_whole()
  local compute, copy, side = mr.stream{name = "compute"}, mr.stream{name = "copy"}, mr.stream{name = "side"}
  local x, y = mr.zeros(8, {name = "x"}), mr.zeros(8, {name = "y"})
  local inside
  local g = mr.graph(function()
    local main = mr.current_stream()
    side:wait_stream(main)
    mr.with(side, function() y:add_(1) end)
    x:add_(1) inside = line()
    main:wait_stream(side)
  end)
  mr.synchronize()
  local launch, wait
  local result = mr.waits(function()
    g:launch(compute) launch = line()
    mr.op{name = "other", stream = compute, ms = 1}
    mr.synchronize() wait = line()
    mr.op{name = "consume", stream = copy, reads = {x, y}, ms = 1}
  end)
  local w = at(result, wait)
  lu.assertStrContains(w.because, ("`add_` at line %d (launched at line %d)"):format(inside, launch))
  lu.assertStrContains(w.instead, ("an event that `compute` records after line %d and `copy` waits for here costs ")
    :format(launch))
end

-- One event may order what another was added for.
function TestCosts.test_no_event_is_proposed_that_another_makes_needless()
  local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
  local x, y = mr.zeros(8, {name = "x"}), mr.zeros(8, {name = "y"})
  mr.synchronize()
  local wait
  local result = mr.waits(function()
    mr.op{name = "produce", stream = a, writes = {x}, ms = 0.1}
    mr.op{name = "other", stream = a, ms = 1}
    mr.synchronize() wait = line()
    mr.op{name = "use", stream = b, reads = {x}, writes = {y}, ms = 0.1}
    local done = b:record_event()
    c:wait_event(done)
    mr.op{name = "last", stream = c, reads = {x, y}, ms = 0.1}
  end)
  local w = at(result, wait)
  lu.assertStrContains(w.instead, "and `b` waits for here costs ")
  lu.assertNotStrContains(w.instead, "`c` waits")
end

-- Numbers that look equal are no reason to change anything.
function TestCosts.test_what_is_proposed_looks_cheaper()
  local compute, copy = streams()
  local x, told = mr.zeros(8, {name = "x"}), 0
  mr.synchronize()
  for i = 1, 30 do
    mr.synchronize()
    local wait
    local result = mr.waits(function()
      mr.op{name = "produce", stream = compute, writes = {x}, ms = 0.01 + i * 0.001}
      mr.op{name = "other", stream = compute, ms = i * 0.0005}
      copy:wait_stream(compute) wait = line()
      mr.op{name = "consume", stream = copy, reads = {x}, ms = 0.02}
    end)
    local text = tostring(result)
    local now, instead = text:match("costs (%S+) ms of"), text:match("instead: .* costs (%S+) ms")
    if instead then
      told = told + 1
      lu.assertTrue(tonumber(instead) < tonumber(now or 0), text)
    end
    lu.assertEquals(at(result, wait).verdict, "needed")
  end
  lu.assertTrue(told > 5, told)
end

-- Two waits on one line are no rounds of a loop.
function TestCosts.test_two_waits_on_one_line_are_counted_as_times()
  local compute, copy = streams()
  local x, y = mr.zeros(8), mr.zeros(8)
  mr.synchronize()
  local function between()
    mr.op{stream = copy, reads = {x}}
    mr.op{stream = compute, writes = {y}}
  end
  local text = tostring(mr.waits(function()
    mr.op{name = "a", stream = compute, writes = {x}, ms = 0.1}
    copy:wait_stream(compute) between() copy:wait_stream(compute)
    mr.op{name = "d", stream = copy, reads = {y}, ms = 0.1}
  end))
  lu.assertStrContains(text, ", 2 of 2 times")
  lu.assertNotStrContains(text, "round")
end

function TestCosts.test_a_double_buffer_wants_an_event_for_each_buffer()
  local compute, copy = streams()
  local buffers = {mr.zeros(8, {name = "one"}), mr.zeros(8, {name = "two"})}
  mr.synchronize()
  local wait
  local result = mr.waits(function()
    for i = 1, 6 do
      local b = buffers[i % 2 + 1]
      copy:wait_stream(compute) wait = line()
      mr.op{name = "load", stream = copy, writes = {b}, ms = 0.1}
      compute:wait_stream(copy)
      mr.op{name = "use", stream = compute, reads = {b}, ms = 0.1}
    end
  end)
  lu.assertEquals(at(result, wait).verdict, "needed")
  lu.assertTrue(at(result, wait).costs_ms > 0.3)
  lu.assertStrContains(at(result, wait).instead, "keep an event for each buffer, or whatever else is used in turn")
end

function TestCosts.test_costs_of_what_is_kept_are_without_the_rest()
  local compute, copy = streams()
  local x = mr.zeros(8)
  mr.synchronize()
  local result = mr.waits(function()
    mr.op{stream = compute, writes = {x}, ms = 0.1}
    mr.op{stream = compute, ms = 1}
    copy:wait_stream(compute)
    copy:wait_stream(compute)
    mr.op{stream = copy, reads = {x}, ms = 1}
  end)
  for _, w in ipairs(result.waits) do
    lu.assertAlmostEquals(w.costs_ms, w.kept and 1 or 0, 0.1)
  end
end

function TestCosts.test_a_wait_that_costs_nothing_gets_no_proposal()
  local compute, copy = streams()
  local x = mr.zeros(8)
  mr.synchronize()
  local result = mr.waits(function()
    mr.op{stream = compute, writes = {x}, ms = 1}
    copy:wait_stream(compute)
    mr.op{stream = copy, reads = {x}, ms = 1}
  end)
  lu.assertNil(result.waits[1].instead)
end

TestUse = {}

function TestUse.test_an_error_inside_is_raised_and_leaves_nothing_behind()
  local ok, err = pcall(mr.waits, function() error("mine", 0) end)
  lu.assertEquals({ok, err}, {false, "mine"})
  lu.assertEquals(mr.waits(function() end).total, 0)
end

function TestUse.test_what_is_refused()
  T.raises("not-permitted", mr.waits, function() mr.waits(function() end) end)
  local s, caught = mr.stream(), nil
  s:host_func(function() caught = select(2, pcall(mr.waits, function() end)) end)
  s:synchronize()
  lu.assertEquals(caught.code, "not-permitted")
  T.raises("invalid-argument", mr.waits)
  T.raises("invalid-argument", mr.waits, 5)
  T.raises("invalid-argument", mr.waits, function() end, {cost = true})
end

function TestUse.test_host_functions_run_before_the_verdict()
  local compute, copy = streams()
  local p = mr.zeros(8, {pinned = true, name = "p"})
  local ran, wait = false, nil
  mr.synchronize()
  local result = mr.waits(function()
    mr.op{stream = compute, writes = {p}}
    copy:wait_stream(compute) wait = line()
    copy:host_func(function() ran = true; p[1] = 3 end)
  end)
  lu.assertTrue(ran)
  lu.assertEquals(at(result, wait).verdict, "needed")
end

function TestUse.test_polling_a_query_orders()
  local compute, copy = streams()
  local x = mr.zeros(8)
  mr.synchronize()
  local wait
  local result = mr.waits(function()
    mr.op{stream = compute, writes = {x}, ms = 0.05}
    while not compute:query() do end
    copy:wait_stream(compute) wait = line()
    mr.op{stream = copy, reads = {x}}
  end)
  lu.assertEquals(at(result, wait).verdict, "redundant")
end

function TestUse.test_a_reset_inside()
  local x
  local result = mr.waits(function()
    local compute = streams()
    x = mr.zeros(8)
    mr.synchronize()
    mr.op{stream = compute, writes = {x}}
    mr.reset()
    local copy
    compute, copy = streams()
    x = mr.zeros(8)
    mr.synchronize()
    mr.op{stream = compute, writes = {x}}
    copy:wait_stream(compute)
    mr.op{stream = copy, reads = {x}}
  end)
  mr.synchronize()
  x:free()
  lu.assertEquals(result.total, 3)
  lu.assertEquals(result.waits[1].verdict, "needed")
  lu.assertEquals(result.waits[3].verdict, "needed")
end

function TestUse.test_a_reset_drops_what_nobody_waited_for()
  local s, p = mr.stream(), mr.zeros(8, {pinned = true})
  local wait
  local result = mr.waits(function()
    mr.op{stream = s, writes = {p}, ms = 0.1}
    mr.synchronize() wait = line()
    mr.reset()
  end)
  lu.assertEquals(at(result, wait).verdict, "needed")
  lu.assertStrContains(at(result, wait).because, "may drop work")
  lu.assertEquals(result.hazards, 0)
end

function TestUse.test_the_other_modes_of_the_checker_stay_as_they_are()
  local before = mr.hazard.mode("collect")
  local compute, copy = streams()
  local x = mr.zeros(8)
  mr.synchronize()
  mr.waits(function()
    mr.op{stream = compute, writes = {x}}
    copy:wait_stream(compute)
    mr.op{stream = copy, reads = {x}}
  end)
  lu.assertEquals(mr.hazard.mode(), "collect")
  lu.assertEquals(#mr.hazard.reports(), 0)
  mr.hazard.mode(before)
end

-- The proposal for a wait must not use a stream in front of the line that makes it.
function TestUse.test_a_wait_in_front_of_the_stream_that_needs_it()
  local x
  local result = mr.waits(function()
    x = mr.ones(4)
    mr.synchronize()
    local s = mr.stream()
    local g = mr.graph(function() x:add_(1) end)
    g:launch(s)
    s:synchronize()
  end)
  lu.assertEquals(result.waits[1].verdict, "needed")
  lu.assertEquals(x:sum():item(), 8.0)
end

TestExpect = {}

function TestExpect.test_a_minimal_program_passes_and_others_do_not()
  local compute, copy = streams()
  local x = mr.zeros(8)
  mr.synchronize()
  local function program(twice)
    return function()
      mr.op{stream = compute, writes = {x}}
      copy:wait_stream(compute)
      if twice then copy:wait_stream(compute) end
      mr.op{stream = copy, reads = {x}}
    end
  end
  T.expect_minimal(program(false), {waits = 1})
  T.expect_minimal(program(false))
  lu.assertErrorMsgContains("1 of 2 suffice", T.expect_minimal, program(true))
  lu.assertErrorMsgContains("expected 2 waits, got 1", T.expect_minimal, program(false), {waits = 2})
  lu.assertErrorMsgContains("expected no hazard", T.expect_minimal, function()
    mr.op{stream = compute, writes = {x}}
    mr.op{stream = copy, reads = {x}}
  end)
end

-- A loader's own record_stream is no line of the script.
function TestVerdicts.test_what_the_loader_does_is_not_judged()
  local xs = mr.randn(32, 4, {device = "cpu"})
  local r = mr.waits(function()
    for x in mr.data.batches(xs, {batch_size = 8}) do x:mul_(2) end
    mr.synchronize()
  end)
  for _, one in ipairs(r) do lu.assertNotEquals(one.kind, "record_stream", tostring(r)) end
  lu.assertNotStrContains(tostring(r), "record_stream")
end

unchecked(TestExpect, "one of the programs races", "test_a_minimal_program_passes_and_others_do_not")

unchecked(TestVerdicts, "its program races", "test_hazards_that_are_there_already_are_told_first")

os.exit(lu.LuaUnit.run())
