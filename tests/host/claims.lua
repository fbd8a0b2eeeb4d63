-- timeout: 120
-- Claims of the verdict of --check: for each thing that is not followed, a program with its count and its line. The
-- rows are those of hazard/claims.h, and each has a program here.
local lu = require "luaunit"
local mr = require "millrace"
local command = require "host.support.command"

local KERNEL = [=[
local kernel = mr.kernel([[extern "C" __global__ void f(int *a, int n) { if (threadIdx.x == 0) a[n] = 1; }]])
local a = mr.zeros(8, {dtype = "i32"})
]=]

-- By row: the code; further options. The line is the row's own clause.
local PROGRAMS = {
  failed = { KERNEL .. "kernel[{1, 32}](a, 1 << 28) assert(not pcall(mr.synchronize)) mr.reset()" },
  stopped = { "mr.zeros(4):add_(1) error 'broken'", status = 1 },
  reset = { [[
    local x, p = mr.ones(4), mr.zeros(4, {device = "cpu", pinned = true})
    mr.synchronize() p:copy_(x, {non_blocking = true}) mr.reset()]] },
  not_run = { [[
    local s = mr.stream() mr.zeros(4)
    s:host_func(function() os.exit(0) end) s:host_func(print) s:synchronize()]] },
  unfinished = { KERNEL .. "kernel[{1, 32}](a, 1) text, totals = mr.hazard.summary()", at_call = true },
  pointers_as_data = { [=[
    local kernel = mr.kernel([[extern "C" __global__ void f(float **list, int n) {
      if (threadIdx.x < n) list[0][threadIdx.x] = 1; }]])
    local x = mr.zeros(32)
    local list = mr.tensor({x.data_ptr}, {dtype = "i64"}) mr.synchronize()
    kernel[{1, 32}](list, 32)]=] },
  unordered_updates = { [=[
    local function kernel(name)
      return mr.kernel(([[extern "C" __global__ void f(int *x) { %s(x, 1); }]]):format(name))
    end
    local x = mr.zeros(1, {dtype = "i32"}) mr.synchronize()
    kernel "atomicAdd"[{1, 32, stream = mr.stream()}](x) kernel "atomicMax"[{1, 32, stream = mr.stream()}](x)]=] },
  withdrawn = { [=[
    local kernel = mr.kernel([[extern "C" __global__ void f(int *x, const int *at) {
      int i = at[threadIdx.x]; x[i] = 1; }]])
    local x, at = mr.zeros(64, {dtype = "i32"}), mr.arange(64, {dtype = "i32"}) mr.synchronize()
    kernel[{1, 32, stream = mr.stream()}](x, at) kernel[{1, 32, stream = mr.stream()}](x, at[{{33, 64}}])]=] },
  drawn_by_host_functions = { [[
    local s, p = mr.stream(), mr.zeros(4, {device = "cpu", pinned = true})
    s:host_func(function() p:uniform_() end)]] },
  dropped = { [[
    local lines = {}
    for i = 1, 1001 do
      lines[i] = "do local s, t = mr.stream(), mr.stream() " ..
        "mr.with(s, function() x:fill_(1) end) mr.with(t, function() x:fill_(2) end) end mr.synchronize()"
    end
    x = mr.zeros(4) mr.synchronize()
    assert(#mr.hazard.check(load(table.concat(lines, "\n"))) == 1000) x:fill_(1)]] },
  ignored = { [[
    mr.hazard.ignore{tensor = "x"}
    local s, x = mr.stream(), mr.zeros(4, {name = "x"}) s:run(function() x:add_(1) end)]] },
  cleared = { [[
    local s, x = mr.stream(), mr.zeros(4) s:run(function() x:add_(1) end)
    mr.hazard.clear() mr.zeros(4) text, totals = mr.hazard.summary()]], at_call = true, status = 3 },
  switched_off = { "mr.zeros(4) mr.hazard.mode 'off' mr.zeros(4) mr.hazard.mode 'warn'" },
  order_of_ranks = { [[
    local x = mr.zeros(4) mr.synchronize()
    mr.dist.spawn(2, function(rank) x:fill_(rank) end)]], devices = 2 },
  room_for_collectives = { [[
    local s = {}
    for i = 1, 2 do
      s[i] = { mr.stream{device = 0}, mr.stream{device = 1} }
      local x = { mr.ones(1, {device = 0, stream = s[i][1]}), mr.ones(1, {device = 1, stream = s[i][2]}) }
      local c = mr.nccl.comms{0, 1}
      mr.nccl.group(function() for k = 1, 2 do c[k]:all_reduce(x[k], {stream = s[i][k]}) end end)
    end
    mr.synchronize(0) mr.synchronize(1)]], devices = 2 },
  ranks = { "mr.dist.spawn(1, function() mr.ones(4) end)" },
  host_reads = { "assert(mr.ones(4):sum():item() == 4)" },
  queries = { "local s = mr.stream() s:run(function() mr.zeros(4) end) s:query()" },
  short_of_memory = { [[
    mr.machine.settings{memory_bytes = 8 << 20}
    local a = mr.stream()
    a:run(function() mr.ones(2 << 18):free() end)
    local x = a:run(mr.ones, 3 << 18)
    assert(not pcall(a.run, a, mr.ones, 4 << 18)) mr.synchronize()]] },
  host_functions = { "local s = mr.stream() s:host_func(function() end) mr.zeros(4)" },
  unspecified = { [[
    local s, x, q = mr.stream(), mr.ones(4), mr.zeros(4, {device = "cpu"}) mr.synchronize()
    s:run(function() q:copy_(x, {non_blocking = true}) end) q:add_(1)]] },
  collected = { [[
    local s, x = mr.stream(), mr.ones(4)
    s:wait_stream(mr.default_stream()) s:run(function() x:add_(1) end) s:synchronize()
    x = nil collectgarbage() collectgarbage()]] },
  strayed = { [=[
    local kernel = mr.kernel([[extern "C" __global__ void f(int *x) { x[threadIdx.x]++; }]], {access = {x = "r"}})
    kernel[{1, 32}](mr.zeros(32, {dtype = "i32"}))]=] },
  shared_outside = { "local c = mr.ones(4, {device = 'cpu'}):dlpack() mr.zeros(4)" },
  finalizers = { [[
    local s, x = mr.stream(), mr.zeros(4) s:wait_stream(mr.default_stream())
    setmetatable({}, {__gc = function() s:run(function() x:add_(1) end) end}) collectgarbage() s:synchronize()]] },
  learned = { "local x = mr.zeros(4) assert(x.data_ptr > 0)" },
  declared_accesses = { [=[
    local kernel = mr.kernel([[extern "C" __global__ void f(int *x, int n) { if (n) x[threadIdx.x] = 1; }]],
      {access = {x = "r"}})
    kernel[{1, 32}](mr.zeros(32, {dtype = "i32"}), 0)]=] },
  addresses_as_numbers = { [=[
    local kernel = mr.kernel([[extern "C" __global__ void f(long long *o, int *x) { *o = (long long)x; }]])
    kernel[{1, 1}](mr.zeros(1, {dtype = "i64"}), mr.zeros(1, {dtype = "i32"}))]=] },
  order_of_threads = { [=[
    local kernel = mr.kernel([[extern "C" __global__ void f(int *o, int *n) { o[atomicAdd(n, 1)] = threadIdx.x; }]])
    kernel[{1, 32}](mr.zeros(32, {dtype = "i32"}), mr.zeros(1, {dtype = "i32"}))]=] },
  not_looked_inside = { "mr.machine.settings{kernel_checks = 1}\n" .. KERNEL .. "kernel[{1, 32}](a, 1)" },
}

-- Claims that no program can show here, and the tests that show them.
local ELSEWHERE = { interrupted = "host/interrupt.lua", forgotten = "c/test_hazard_parts.c",
  ranks_in_one_stream = "lua/ranks_explored.lua", collectives_end_together = "lua/ranks_explored.lua" }

local function rows()
  local found = {}
  for _, word in ipairs((select(3, mr.docs()))) do
    if word.kind == "limit" or word.kind == "condition" then found[#found + 1] = word end
  end
  return found
end

local function run(program, ...)
  local options = { "--check", ... }
  if program.devices then options[#options + 1] = "--device=virtual:" .. program.devices end
  local code = program[1]
  if program.at_call then code = code .. "\nio.stderr:write('at the call: ', text, totals.claim, '\\n')" end
  return command.with_file(code, function(path)
    options[#options + 1] = path
    return command.run(options)
  end)
end

-- What the clause for one has in common with that for several, which the row has: its beginning or its end.
local function common(row)
  if row.kind == "limit" then return row.text:match("^[^#@]*") end
  return row.text:match("%S+ %S+ %S+$")
end

TestRows = {}

function TestRows.test_each_row_has_a_program_or_a_place()
  for _, row in ipairs(rows()) do
    lu.assertEquals(PROGRAMS[row.name] ~= nil, ELSEWHERE[row.name] == nil, row.name)
  end
end

function TestRows.test_each_program_shows_its_row()
  for _, row in ipairs(rows()) do
    local program = PROGRAMS[row.name]
    if program then
      local result = run(program)
      local text = result.err
      lu.assertEquals(result.status, program.status or 0, row.name .. ": " .. text)
      if program.at_call then text = text:match("at the call: (.*)") end
      lu.assertStrContains(text, row.kind == "limit" and "but not every schedule is covered" or
        "no hazards: every legal schedule of", false, row.name .. ": " .. text)
      lu.assertStrContains(text, common(row), false, row.name)
    end
  end
end

-- The numbers and the word in JSON are those of the text.
function TestRows.test_json_has_the_same()
  for _, row in ipairs(rows()) do
    local program = PROGRAMS[row.name]
    if program and not program.at_call then
      local summary = run(program, "--report=json").err:match('{"type":"summary".*')
      lu.assertNotEquals(summary:match('"' .. row.name .. '":(%d+)'), "0", row.name)
      lu.assertEquals(summary:match('"claim":"(.-)"'), row.kind == "limit" and "none" or "conditional", row.name)
    end
  end
end

function TestRows.test_what_is_followed_is_claimed_without_a_condition()
  local result = run({ "local s, x = mr.stream(), mr.zeros(4) s:wait_stream(mr.default_stream()) " ..
    "s:run(function() x:add_(1) end) s:synchronize()" }, "--report=json")
  lu.assertStrContains(result.err, '"claim":"every-legal-schedule"')
end

-- Garbage goes before the host waits. Where record_stream has named the stream, an earlier free does no harm.
function TestRows.test_garbage_that_another_stream_used_is_a_condition()
  local function said(code)
    return run({ ([[
      local side, sum = mr.stream{name = "side"}, mr.zeros(4)
      for i = 1, 3 do
        local x = side:run(function() return mr.full({4}, i) end)
        mr.current_stream():wait_stream(side)
        sum:add_(x)
        %s
      end
      mr.synchronize()]]):format(code) }, "--check")
  end
  local recorded, waits, forgotten = said "x:record_stream(mr.current_stream())",
    said "side:wait_stream(mr.current_stream())", said ""
  lu.assertEquals({ recorded.status, waits.status, forgotten.status }, { 0, 0, 3 })
  lu.assertNil(recorded.err:find("This holds if", 1, true), recorded.err)
  lu.assertStrContains(waits.err, "This holds if Lua's collector does not free 3 tensors earlier")
  lu.assertStrContains(forgotten.err, "reason=collected-while-pending")
end

-- A query that says no decides as much as one that says yes.
function TestRows.test_a_query_that_says_no_is_a_condition()
  local result = run{ [[
    local s, x = mr.stream(), mr.zeros(4)
    s:wait_stream(mr.default_stream()) s:run(function() mr.spin{ms = 5} x:fill_(1) end)
    assert(not s:query())]] }
  lu.assertStrContains(result.err, "This holds if 1 query answers as in this run.")
end

-- A host function is a condition if the host did anything while it could run: it may share variables with that.
function TestRows.test_a_host_function_that_is_waited_for_at_once_is_no_condition()
  local function claim(code)
    local out = run({ "local s, b, v = mr.stream(), mr.stream(), 1 " .. code .. " print(mr.hazard.summary())" }).out
    return out:match("This holds if (%d+) host functions?") or 0
  end
  lu.assertEquals(claim "s:host_func(function() v = 2 end) s:synchronize() v = v + 1", 0)
  lu.assertEquals(claim "s:host_func(function() v = 2 end) b:synchronize() v = v + 1 s:synchronize()", "1")
  lu.assertEquals(claim "for i = 1, 3 do s:host_func(function() v = i end) s:synchronize() end", 0)
  lu.assertEquals(claim "local t = {s} t[1]:host_func(function()\nv = 2 end); -- and\n mr.synchronize(0) v = 3", 0)
  lu.assertEquals(claim "for i = 1, 3 do s:host_func(function() v = i end) end s:synchronize() mr.zeros(4)", "3")
  lu.assertEquals(claim "s:host_func(function() v = 2 end)\nb:host_func(function() v = 3 end) mr.synchronize()", "1")
end

-- Code of Lua alone counts, too: the function may have run by then or not.
function TestRows.test_code_between_a_host_function_and_the_wait_is_a_condition()
  local function claim(code)
    local out = run({ "local s, v, t = mr.stream(), 1, {} " .. code .. " print(mr.hazard.summary())" }).out
    return out:match("This holds if (%d+) host functions?") or 0
  end
  for _, code in ipairs {
    "s:host_func(function() v = 2 end) local w = v s:synchronize()",
    "s:host_func(function() v = 2 end)\nif v == 2 then s:synchronize() else mr.synchronize() end",
    "s:host_func(function() v = 2 end) t[v]=3 s:synchronize()",
    "local function go() s:host_func(function() v = 2 end) end go() s:synchronize()",
    "t[1], t[2] = s:host_func(function() v = 2 end), v s:synchronize()",
    "s:host_func(function() v = 2 end) mr.synchronize(t[v])",
    "pcall(s.host_func, s, function() v = 2 end) s:synchronize()",
    "s:host_func(function() v = 2 end) mr.ones(1):item() s:synchronize()",
  } do lu.assertEquals(claim(code), "1", code) end
end

-- Nobody waits: the code behind it may see it or not, and where the script ends there is none.
function TestRows.test_code_behind_a_host_function_that_nobody_waits_for_is_a_condition()
  local function said(code) return run({ "local s, v = mr.stream(), 1 " .. code }, "--check").err end
  local CONDITION = "This holds if 1 host function and other code share nothing"
  lu.assertStrContains(said "mr.ones(1) s:host_func(function() v = 2 end) local w = v return w", CONDITION)
  lu.assertStrContains(said "mr.ones(1) do s:host_func(function() v = 2 end) end", CONDITION)
  lu.assertNotStrContains(said "mr.ones(1) s:host_func(function() v = 2 end) -- and it ends\n", CONDITION)
end

-- The kernel's race and its fault are known only once it has run.
function TestRows.test_a_kernel_that_nobody_waits_for_is_judged()
  local race = KERNEL:gsub("if %(threadIdx.x == 0%) ", "") .. "kernel[{1, 32}](a, 1)"
  lu.assertEquals(run({ race }).status, 3)
  local result = run{ KERNEL .. "kernel[{1, 32}](a, 1 << 28)" }
  lu.assertEquals(result.status, 1)
  lu.assertStrContains(result.err, "the run failed at ")
  lu.assertNotStrContains(result.err, "every legal schedule of")
end

-- Other operations that can fail on the device, such as one with an index out of range, are judged, too.
function TestRows.test_what_can_fail_is_judged()
  for _, code in ipairs {
    "local x, at = mr.zeros(4), mr.tensor({9}, {dtype = 'i64'}) mr.synchronize() x:index_add_(1, at, mr.ones(1))",
    "mr.zeros(4) mr.machine.fault('assert', mr.stream())",
  } do
    local result = run{ code }
    lu.assertEquals(result.status, 1, code)
    lu.assertStrContains(result.err, "the run failed at ", false, code)
  end
end

-- A failure may show first in a call that gives the device nothing to do, and a reset may come before it shows at all.
function TestRows.test_a_failure_that_no_command_tells()
  local result = run{ [[
    local a, from, to = mr.stream(), mr.event{timing = true}, mr.event{timing = true}
    from:record(a) to:record(a) mr.machine.fault('assert', a) mr.machine.pass(9)
    assert(not pcall(from.elapsed_time, from, to)) mr.reset()]] }
  lu.assertStrContains(result.err, "the run failed at ")
  for _, code in ipairs { KERNEL .. "kernel[{1, 32}](a, 1 << 28) mr.reset()",
                          KERNEL .. "kernel[{1, 32}](a, 0) mr.reset()",
                          "mr.zeros(4) mr.machine.fault('assert', mr.stream()) mr.reset()" } do
    result = run{ code }
    lu.assertEquals(result.status, 0, code)
    lu.assertStrContains(result.err, "not checked: 1 stream whose kernels may not have finished", false, code)
  end
end

-- Some drivers, and the virtual GPU, wait when they load a module. CUDA does not say so.
function TestRows.test_the_load_of_a_module_orders_nothing()
  local result = run{ [=[
    local a, b, x = mr.stream(), mr.stream{nonblocking = false}, mr.zeros(8)
    mr.synchronize()
    b:run(function() x:add_(1) end)
    local m = mr.module[[__device__ int n[4] = {1, 2, 3, 4};
      extern "C" __global__ void f(float *x) { x[threadIdx.x] = n[threadIdx.x & 3]; }]]
    m:get("f")[{1, 8, stream = a}](x)]=] }
  lu.assertStrContains(result.err, "hazard: write-after-write on `x`")
  lu.assertEquals(result.err:match("(%d) hazards?"), "1")
end

-- A failure that the script caught is no hazard. It is no success either, while each call still fails.
function TestRows.test_the_exit_status_after_a_failure()
  local code = KERNEL .. "kernel[{1, 32}](a, 1 << 28) assert(not pcall(mr.synchronize))"
  lu.assertEquals(run({ code }).status, 1)
  lu.assertEquals(run({ code .. " mr.reset()" }).status, 0)
  lu.assertEquals(run({ code .. " os.exit(7)" }).status, 7)
end

-- mr.explore and mr.waits claim no more than what was followed.
TestOthers = {}

local function pointers(f)
  return [=[
    local kernel = mr.kernel([[extern "C" __global__ void f(float **list, int n) {
      if (threadIdx.x < n) list[0][threadIdx.x] = 1; }]])
    local function work()
      local a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(32)
      local list = mr.zeros(1, {dtype = "i64"})
      mr.synchronize()
      kernel[{1, 32, 0, a}](list, 0)
      b:wait_stream(a)
      local sum = b:run(function() return x:sum() end)
      b:synchronize()
      return sum:item()
    end
    ]=] .. f
end

-- Runs inside mr.explore, mr.stress and mr.replay are no part of the verdict: neither their hazards nor what was not
-- followed.
TestApart = {}

local RACE = [[
  local function work()
    local a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(4)
    mr.synchronize()
    a:run(function() x:add_(1) end)
    b:run(function() x:mul_(2) end)
    a:host_func(function() end)
    b:query()
    mr.synchronize()
    return x:sum():item()
  end
]]
local EXPLORED = "not counted: %d operations ran inside mr.explore and are reported there\n"
local STRESSED = "not counted: %d operations ran inside mr.stress or mr.replay, which report no hazards\n"

function TestApart.test_nothing_of_it_is_in_the_verdict()
  for code, expected in pairs {
    ["mr.explore(work)"] = "nothing was checked outside mr.explore\n" .. EXPLORED:format(36),
    ["local _ = mr.explore(work).outcomes[2].trace"] = "nothing was checked outside mr.explore\n" ..
      EXPLORED:format(36),
    ["mr.explore(work).hazards[1]:witness()"] = "nothing was checked outside mr.explore\n" .. EXPLORED:format(66),
    ["mr.stress(work, {runs = 2})"] = "nothing was checked outside mr.stress and mr.replay\n" .. STRESSED:format(12),
    ["mr.replay(mr.explore(work).outcomes[1].schedule, work)"] = "nothing was checked outside mr.explore, mr.stress " ..
      "and mr.replay\n" .. EXPLORED:format(36) .. STRESSED:format(6),
    ["mr.explore(function() work() error 'mine' end)"] = "nothing was checked outside mr.explore\n" ..
      EXPLORED:format(36),
  } do
    local result = run{ RACE .. code }
    lu.assertEquals({ result.err:gsub("%d+ operations", "N operations") },
      { expected:gsub("%d+ operations", "N operations") }, code)
    lu.assertEquals(result.status, 0, code)
  end
  local result = run{ RACE .. "local n, r = 0 mr.explore(function() n = n + 1 return work() end) print(n)" }
  lu.assertStrContains(result.err, EXPLORED:format(6 * tonumber(result.out)))
end

function TestApart.test_the_work_around_it_is_judged_as_without_it()
  local AROUND = [[
    local s, t, y, e = mr.stream(), mr.stream(), mr.zeros(4, {name = "y"}), mr.empty(4, {name = "e"})
    mr.synchronize()
    s:run(function() y:add_(1) end) t:run(function() y:mul_(2) end)
    mr.synchronize()
    %s
    s:run(function() y:add_(1) end) t:run(function() y:mul_(2) end)
    mr.synchronize()
    e:add_(1)
    local totals = {}
    for line in tostring(mr.hazard.summary()):gmatch "[^\n]+" do if not line:find "not counted" then print(line) end end
    for _, r in ipairs(mr.hazard.reports()) do print(r.kind, r.tensor, r.first.where, r.count) end
  ]]
  local plain = run{ RACE .. AROUND:format("") }
  lu.assertStrContains(plain.out, "3 hazards at 3 pairs of places")
  for _, code in ipairs { "mr.explore(work)", "mr.stress(work, {runs = 2})",
                          "mr.explore(function() mr.hazard.clear() return work() end)",
                          "mr.explore(function() mr.hazard.mode 'off' return work() end) mr.hazard.mode 'collect'",
                          "mr.explore(function() return t:run(function() return y:add_(1) end) end)" } do
    local result = run{ RACE .. AROUND:format(code) }
    if code:find "'off'" then
      lu.assertStrContains(result.out, "y", code) -- from then on the checker is off, until it is on again
    else
      lu.assertEquals((result.out:gsub("/tmp/[^:]+", "FILE")), (plain.out:gsub("/tmp/[^:]+", "FILE")), code)
    end
    lu.assertEquals(result.status, 3)
  end
end

-- The bytes of memory from outside are put back, and what nothing had written counts as that again.
function TestApart.test_what_only_an_explored_function_has_written()
  for _, options in ipairs { "{}", "{pinned = true}", "{device = 'cpu'}" } do
    for written, bytes in pairs { [0] = "bytes 0..15", [2] = "bytes 8..15", [4] = false } do
      local result = run{ ([[
        local x = mr.empty(4, %s)
        if %d > 0 then x[{{1, %d}}]:fill_(1) end
        mr.synchronize()
        mr.explore(function() x:fill_(1) mr.synchronize() return x[2]:item() end)
        x:sum()]]):format(options, written, written) }
      if bytes then lu.assertStrContains(result.err, bytes, false, options .. written)
      else lu.assertNotStrContains(result.err, "uninitialised-read", options) end
    end
  end
end

function TestApart.test_inside_a_check_the_explorer_has_its_own()
  local result = run{ RACE .. [[
    local r
    local reports, totals = mr.hazard.check(function() mr.zeros(2) r = mr.explore(work) mr.zeros(2) end)
    print(#reports, totals.operations, totals.hazards, totals.host_functions, totals.queries)
    print(#r.hazards, #r.not_followed, r.hazards[1]:witness().benign)]] }
  lu.assertEquals(result.out, "0\t2\t0\t0\t0\n1\t2\tfalse\n")
  lu.assertStrContains(result.err, "ran inside mr.explore and are reported there")
  lu.assertEquals(result.status, 0)
end

function TestApart.test_a_script_that_ends_inside()
  local result = run{ RACE .. "mr.zeros(4) mr.stress(function() work() os.exit(0) end)" }
  lu.assertStrContains(result.err, "every legal schedule of this 1 operation gives the same values\nnot counted: ")
  lu.assertEquals(result.status, 0)
end

function TestOthers.test_explore_calls_nothing_deterministic_whose_accesses_are_missing()
  local result = run{ pointers "local r = mr.explore(work) print(r, r.deterministic, #r.not_followed)" }
  lu.assertStrContains(result.out, "1 schedule, 1 outcome\n")
  lu.assertStrContains(result.out, "not checked: what 1 launch accesses through a pointer")
  lu.assertStrContains(result.out, "\tfalse\t1\n")
  lu.assertStrContains(result.err, "ran inside mr.explore and are reported there")
end

-- A change that a host function makes in Lua is no outcome: the explorer says what it has not looked at.
function TestOthers.test_explore_says_what_host_functions_may_share()
  local function explored(code)
    return run{ "print(mr.explore(function() local s, b, v = mr.stream(), mr.stream(), 1 " .. code .. " end))" }
  end
  local clause = "  This holds if 1 host function and other code share nothing that changes, except values of tensors."
  for _, code in ipairs {
    "s:host_func(function() v = 2 end) b:synchronize() local now = v mr.synchronize() return now",
    "s:host_func(function() mr.allow_tf32(true) end) b:query() local now = mr.allow_tf32() mr.synchronize() return now",
    "local x = mr.zeros(2) s:host_func(function() x:name 'late' end) b:record_event() return x:name()",
  } do
    local result = explored(code)
    lu.assertStrContains(result.out,
      "1 schedule, 1 outcome: deterministic but for what host functions share with other code\n")
    lu.assertStrContains(result.out, clause, code)
  end
  lu.assertNotStrContains(explored("s:host_func(function() v = 2 end) s:synchronize() return v").out, "This holds if")
  lu.assertNotStrContains(explored("b:synchronize() local now = v mr.synchronize() return now").out, "This holds if")
end

-- Code of the script runs before the host waits, or after the last line.
function TestOthers.test_code_between_a_host_function_and_its_wait()
  local clause = "This holds if 1 host function and other code share nothing that changes"
  local begin = "local s, n = mr.stream(), 0 "
  for _, code in ipairs {
    "local list = setmetatable({}, {__index = function() n = n + 5 return s end})\n" ..
      "s:host_func(function() n = n * 2 end)\nlist[1]:synchronize()",
    "local k <close> = setmetatable({}, {__close = function() print(n) end})\ns:host_func(function() n = 1 end)",
  } do
    lu.assertStrContains(run{ begin .. code }.err, clause, false, code)
  end
  lu.assertNotStrContains(run{ begin .. "\ns:host_func(function() n = 1 end)" }.err, "This holds if")
  command.with_file("local s = require('millrace').stream() s:host_func(function() N = 1 end)", function(path)
    lu.assertStrContains(run{ ("N = 0 dofile(%q) print(N)"):format(path) }.err, clause)
  end)
end

-- Two launches update a variable of their module, which no argument names.
function TestOthers.test_atomic_updates_of_a_variable_of_the_module()
  local result = run{ [=[
    local m = mr.module[[__device__ int turn;
      extern "C" __global__ void add() { atomicAdd(&turn, 1); }
      extern "C" __global__ void largest() { atomicMax(&turn, 1); }]]
    local a, b = mr.stream(), mr.stream() mr.synchronize()
    m:get("add")[{1, 1, 0, a}]() m:get("largest")[{1, 1, 0, b}]()]=] }
  lu.assertStrContains(result.err, "depends on the order of the atomic updates of 1 pair of launches")
  lu.assertNotStrContains(result.err, "touched no byte in common")
end

function TestOthers.test_the_number_of_a_launch()
  local result = run{ [=[
    local k = mr.kernel[[extern "C" __global__ void f(unsigned long long *c) {
      unsigned long long g; asm volatile("mov.u64 %0, %%gridid;" : "=l"(g)); *c = g; }]]
    k[{1, 1}](mr.zeros(1, {dtype = "i64"}))]=] }
  lu.assertStrContains(result.err, "This holds if 1 launch does the same in whatever order its threads run")
end

function TestOthers.test_waits_says_what_was_not_followed()
  local result = run{ pointers "print(mr.waits(work))" }
  lu.assertStrContains(result.out, "Not everything was followed, so a redundant wait may be needed:\n" ..
    "not checked: what 1 launch accesses through a pointer")
  result = run{ "print(mr.waits(function() mr.zeros(4) mr.synchronize() end))" }
  lu.assertNotStrContains(result.out, "followed")
end

os.exit(lu.LuaUnit.run())
