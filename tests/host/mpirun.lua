-- timeout: 360
-- mpirun -n N millrace script.lua: ranks in several processes. They compute, report and refuse the same as millrace
-- --ranks N in one process.
-- virtual only: the options choose the device
local lu = require "luaunit"

local HOST = assert(os.getenv("MILLRACE"), "MILLRACE must hold the path of the host")
local LONG, SHORT = os.getenv("MILLRACE_LONG"), os.getenv("MILLRACE_SHORT")

local function read(command)
  local pipe = io.popen(command .. " 2>&1")
  local text = pipe:read("a")
  local _, _, status = pipe:close()
  return text, status
end

local doctor = read(HOST .. " doctor")
if not doctor:find("\nMPI +%S+millrace%-mpi.so, with ") then
  print("skipped: " .. (doctor:match("\n(MPI[^\n]*)") or "doctor does not know of MPI"))
  os.exit(77)
end

-- Shared memory of this machine only. A test that hangs is ended.
local MPIRUN = "MILLRACE_VERIFY_REPLAY= OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " ..
  "timeout " .. (LONG and 600 or 60) .. " mpirun --oversubscribe --bind-to none --mca btl vader,self"

local function write(text)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  return path
end

local environment = "" -- what the shell does in front of the command

-- The output of the script with `options`: by processes, or by ranks of one process.
local function run(n, text, options, in_one)
  local path = write(text)
  local how = in_one and ("%s --ranks %d"):format(HOST, n) or ("%s -n %d %s"):format(MPIRUN, n, HOST)
  local output, status = read(("%s %s %s %s"):format(environment, how, options or "", path))
  os.remove(path)
  return output:gsub(path:gsub("%p", "%%%0"), "SCRIPT"):gsub(path:match("[^/]+$"):gsub("%p", "%%%0"), "SCRIPT"), status
end

local function sorted(text)
  local lines = {}
  for line in text:gmatch("[^\n]+") do lines[#lines + 1] = line end
  table.sort(lines)
  return lines
end

-- Each rank has a file, since mpirun mixes what several processes print. Frees by the collector take time of the host's
-- clock, and in one process all ranks have one collector.
local OWN_FILE = [[
  collectgarbage "stop"
  local file = assert(io.open(%q .. mr.dist.rank(), "w"))
  local function print(...)
    local words = {}
    for i = 1, select("#", ...) do words[i] = tostring((select(i, ...))) end
    file:write(table.concat(words, "\t"), "\n")
  end
]]

local function written(n, text, options, in_one)
  local path = os.tmpname()
  local lines = { (run(n, OWN_FILE:format(path) .. text .. "\nfile:close()", options, in_one)) }
  for rank = 0, n - 1 do
    local file = assert(io.open(path .. rank), lines[1])
    for line in file:lines() do lines[#lines + 1] = line end
    file:close()
    os.remove(path .. rank)
  end
  os.remove(path)
  return lines
end

-- Both ways write the same lines, which are returned.
local function assert_same(n, text, options)
  local lines, expected = written(n, text, options), written(n, text, options, true)
  for i, line in ipairs(expected) do lu.assertEquals(lines[i], line) end -- the first that differs
  lu.assertEquals(#lines, #expected)
  lu.assertTrue(#lines > n)
  return lines
end

TestMpirun = {}

-- OpenBLAS adds in another order with another number of threads: mpirun must not bind the ranks to a core each.
function TestMpirun.test_products_of_floats_are_the_same_with_as_many_threads()
  environment = "unset OPENBLAS_NUM_THREADS;" -- the runner sets it to 1
  assert_same(2, [[
    mr.manual_seed(1)
    local x = mr.randn(512, 512):matmul(mr.randn(512, 512))
    mr.dist.all_reduce(x)
    print(x:sum():item(), x[3][5]:item(), x[512][1]:item())
    print(mr.dist.rank())]])
  environment = ""
end

-- The ranks have one command line, so each puts its number into the name. Rank 0 saves one of all.
function TestMpirun.test_each_rank_saves_a_timeline()
  local path = os.tmpname()
  local text = "local x = mr.ones(4) mr.dist.all_reduce(x) mr.spin{ms = 1 + mr.dist.rank()}"
  for _, ending in ipairs { ".json", ".spans.json" } do
    local output, status = run(2, text, "--trace " .. path .. ending)
    lu.assertEquals(status, 0)
    local said = "--trace: each of the 2 ranks saves a timeline of its own, as " .. path .. ".rank0" .. ending ..
      "; of all: " .. path .. ending
    lu.assertEquals(select(2, output:gsub(said:gsub("%p", "%%%0"), "")), 1)
    for _, rank in ipairs{ ".rank0", ".rank1", "" } do
      local file = assert(io.open(path .. rank .. ending))
      local saved = file:read("a")
      file:close()
      os.remove(path .. rank .. ending)
      lu.assertStrContains(saved, "spin")
      lu.assertStrContains(saved, ending == ".json" and '"name":"all_reduce"' or '"name": "all_reduce"')
      local tells_of_ranks = saved:find(ending == ".json" and "of rank 1" or '"rank": 1', 1, true)
      lu.assertEquals(tells_of_ranks ~= nil, rank == "")
    end
  end
  os.remove(path)
end

-- The rows of a timeline, sorted; without numbers of commands, which are each process's own.
local function rows_of(path)
  local rows, column = {}, {}
  for line in io.lines(path) do
    local row, i = {}, 0
    for field in (line:gsub("\r", "") .. ","):gmatch "([^,]*)," do
      i = i + 1
      row[#row + 1] = not (column[i] == "seq" or column[i] == "waits_for" or column[i] == "holder" or
        column[i] == "held_by" or column[i] == "where") and field or nil
      if #rows == 0 then column[i] = field end
    end
    rows[#rows + 1] = table.concat(row, ",")
  end
  os.remove(path)
  table.sort(rows)
  return rows
end

-- It is what ranks of one process have: the same calls and times, each once.
function TestMpirun.test_the_timeline_of_all_ranks()
  local path = os.tmpname()
  local text = [[
    collectgarbage "stop" -- its frees would be calls of any rank
    local rank, n = mr.dist.rank(), mr.dist.world_size()
    local pair = mr.dist.new_group{0, 2}
    local x, y, side = mr.full(1 << 16, rank + 0.5), mr.zeros(4), mr.stream{name = "side"}
    for i = 1, 3 do
      mr.spin{ms = 0.1 * (1 + (rank * 2 + i) % 3)}
      local work = mr.dist.all_reduce(x, {async = true})
      side:run(function() mr.op{name = "beside", ms = 0.2} end)
      work:wait()
      if rank ~= 1 then mr.dist.broadcast(x, 2, {group = pair}) end
      mr.nccl.group(function()
        mr.dist.send(x[{{1, 4}}], (rank + 1) % n)
        mr.dist.recv(y, (rank - 1) % n)
      end)
      mr.synchronize()
    end]]
  local _, status = run(3, text, "--trace " .. path .. ".csv")
  lu.assertEquals(status, 0)
  local joined = rows_of(path .. ".csv")
  for rank = 0, 2 do os.remove(path .. ".rank" .. rank .. ".csv") end
  run(3, text, "--trace " .. path .. ".csv", true)
  lu.assertEquals(joined, rows_of(path .. ".csv"))
  lu.assertTrue(#joined > 100)
  os.remove(path)
end

-- Where a rank is missing, the others are there.
function TestMpirun.test_the_timeline_of_ranks_that_fail()
  local path = os.tmpname()
  local text = "mr.dist.init() mr.spin{ms = 1} if mr.dist.rank() == 1 then error 'boo' end mr.dist.barrier()"
  local output, status = run(2, text, "--trace " .. path .. ".csv")
  lu.assertEquals(status, 1)
  lu.assertStrContains(output, "rank 1 has ended by an error")
  local saved = table.concat(rows_of(path .. ".csv"), "\n")
  for rank = 0, 1 do lu.assertStrMatches(saved, (".*\nop,spin,[^\n]*,%d\n.*"):format(rank)) end
  output = run(2, "print 'alone'", "--trace " .. path .. ".csv")
  lu.assertStrContains(output, "no timeline of all ranks was saved, since the script has not joined them")
  for rank = 0, 1 do os.remove(path .. ".rank" .. rank .. ".csv") end
  os.remove(path)
end

-- A clock of each rank: when its stream has got here.
local CLOCK = [[
  local begin = mr.event{timing = true}
  begin:record()
  local function time()
    local now = mr.event{timing = true}
    now:record()
    now:synchronize()
    return begin:elapsed_time(now)
  end
]]

-- Each prints what it has, and its clock.
local COLLECTIVES = CLOCK .. [[
  local rank, size = mr.dist.rank(), mr.dist.world_size()
  local function show(what, t)
    local values = t:cpu():flatten():totable()
    local sum = 0
    for i, v in ipairs(values) do sum = sum + i % 7 * (v == true and 1 or v == false and 0 or v) end
    print(rank, what, #values, sum, values[1], values[#values], time())
  end
  for _, dtype in ipairs(DTYPES) do
    for _, n in ipairs(SIZES) do
      local function make(count)
        local t = mr.arange(count, {dtype = "f32"}):mul_(rank + 1):remainder(5):add_(1)
        return t:to(dtype)
      end
      local what = dtype .. " " .. n
      for _, op in ipairs(dtype == "bool" and {"sum", "min"} or {"sum", "prod", "min", "max", "avg"}) do
        local t = make(n)
        mr.dist.all_reduce(t, {op = op})
        show("all_reduce " .. op .. what, t)
        local r = make(n)
        mr.dist.reduce(r, size - 1, {op = op, async = true}):wait()
        show("reduce " .. op .. what, r)
        local part, whole = make(n), make(n * size)
        mr.dist.reduce_scatter(part, whole, {op = op})
        show("reduce_scatter " .. op .. what, part)
      end
      local t, all = make(n), make(n * size)
      mr.dist.broadcast(t, 1)
      show("broadcast " .. what, t)
      mr.dist.all_gather(all, make(n))
      show("all_gather " .. what, all)
      local own = all:narrow(1, rank * n + 1, n) -- in place
      mr.dist.all_gather(all, own)
      show("all_gather in place " .. what, all)
      mr.dist.reduce_scatter(own, all)
      show("reduce_scatter in place " .. what, all)
      local to = make(n * size)
      mr.dist.all_to_all(to, make(n * size))
      show("all_to_all " .. what, to)
      local got = make(n)
      mr.nccl.group(function()
        mr.dist.send(make(n), (rank + 1) % size)
        mr.dist.recv(got, (rank - 1) % size)
      end)
      show("ring " .. what, got)
    end
  end]]

local function collectives(dtypes, sizes)
  return ("local DTYPES, SIZES = %s, %s\n%s"):format(dtypes, sizes, COLLECTIVES)
end

function TestMpirun.test_every_collective()
  local lines = assert_same(2, collectives('{"f32", "f16", "bf16", "f64", "i32", "i64", "u8", "bool"}', "{1, 33}"))
  lu.assertTrue(#lines > 500)
  assert_same(4, collectives('{"f32", "i64"}', "{0, 1, 1000, 70001}"))
end

function TestMpirun.test_rank_numbers_and_devices()
  local lines = sorted(run(3, [[
    local early = mr.ones(2) -- before init
    mr.dist.init()
    mr.dist.all_reduce(early)
    print(mr.dist.rank(), mr.dist.world_size(), mr.dist.local_rank(), mr.current_device().index, early:sum():item())
    mr.dist.barrier()
    mr.dist.destroy()]]))
  lu.assertEquals(lines, { "0\t3\t0\t0\t6.0", "1\t3\t1\t1\t6.0", "2\t3\t2\t2\t6.0" })
end

function TestMpirun.test_works_groups_and_waits()
  assert_same(4, CLOCK .. [[
    local rank = mr.dist.rank()
    local even, odd, two = mr.dist.new_group{0, 2}, mr.dist.new_group{3, 1}, mr.dist.new_group{1, 2}
    local x, y = mr.ones(1000) * (rank + 1), mr.ones(1000) * rank
    local first = mr.dist.all_reduce(x, {async = true})
    mr.spin{ms = rank}                     -- the host of another rank waits for it meanwhile
    local second = mr.dist.all_reduce(y, {async = true, op = "max", group = rank % 2 == 0 and even or odd})
    if rank == 0 then first:synchronize() end
    first:wait() second:wait()
    if rank == 1 or rank == 2 then mr.dist.broadcast(x, 2, {group = two}) end
    x:add_(y)
    if rank == 3 then mr.dist.send(x, 0) elseif rank == 0 then mr.dist.recv(y, 3) end
    local done = mr.dist.all_reduce(y, {async = true})
    while not done:is_completed() do end
    print(rank, x:sum():item(), y:sum():item(), time())]])
end

-- Each captures its own, and the launches meet. One meets a call.
function TestMpirun.test_graphs()
  assert_same(3, CLOCK .. [[
    local rank = mr.dist.rank()
    local x, y, s = mr.full(4, rank + 1.0), mr.zeros(4), mr.stream()
    mr.synchronize()
    local function step()
      x:mul_(2)
      local work = mr.dist.all_reduce(x, {async = true})
      y:add_(1)
      work:wait()
      y:add_(x)
    end
    local g = mr.graph(step, {stream = s})
    for _ = 1, 3 do g:launch(s) end
    if rank == 1 then s:run(step) else g:launch(s) end
    s:synchronize()
    print(rank, x:sum():item(), y:sum():item(), time())]])
  local output = run(2, [[
    local x, s = mr.ones(4), mr.stream()
    mr.synchronize()
    local g = mr.graph(function() mr.dist.all_reduce(x) end, {stream = s})
    if mr.dist.rank() == 0 then g:launch(s) end]])
  lu.assertStrContains(output:gsub("/tmp/", ""), "rank 0 waits in `all_reduce` at SCRIPT:3, launched at SCRIPT:4, " ..
    "in communicator `world`, for rank 1")
  output = run(2, [[
    local x, s = mr.ones(4), mr.stream()
    mr.synchronize()
    local g = mr.graph(function() mr.dist.all_reduce(x) end, {stream = s})
    print(mr.explore(function() pcall(g.launch, g, s) return 1 end))]])
  lu.assertStrContains(output, "other processes do not know in which order this one is carried out")
  lu.assertNil(output:find "deterministic")
end

function TestMpirun.test_other_choosers()
  for _, chooser in ipairs{ "adversarial", "random:3" } do
    local text = [[
      local rank, s = mr.dist.rank(), mr.stream()
      local x = mr.ones(100) * (rank + 1)
      for i = 1, 5 do
        s:wait_stream(mr.current_stream())
        mr.with(s, function() x:add_(i) mr.dist.all_reduce(x, {op = "avg"}) end)
        mr.current_stream():wait_stream(s)
        local work = mr.dist.all_reduce(x, {async = true, op = "max"})
        work:wait()
      end
      print(rank, x:sum():item())]]
    assert_same(2, text, "--chooser " .. chooser)
  end
end

-- A report of the checker without its fixes: --ranks may join those of several ranks.
local function reports(text)
  local found, lines = {}, {}
  for line in text:gmatch("[^\n]+") do
    if line:find("^kind=") and not found[line] then
      found[line] = true
      lines[#lines + 1] = line:gsub("/tmp/", "")
    end
  end
  table.sort(lines)
  return lines
end

local HAZARDS = [[
  mr.dist.init()
  local rank = mr.dist.rank()
  local x = mr.ones(8, {name = "x"})
  local side = mr.stream{name = "side"}
  local work = mr.dist.all_reduce(x, {async = true})
  x:add_(1)
  work:wait()
  local y, z = mr.zeros(4, {name = "y"}), mr.zeros(4, {name = "z"})
  if rank == 0 then mr.dist.send(y, 1) mr.dist.recv(z, 1, {async = true}):wait(side) side:run(function() y:add_(1) end)
  else mr.dist.recv(y, 0) mr.with(side, function() y:add_(1) end) mr.dist.send(z, 0) end
  mr.synchronize()]]

-- On rank 0, the second message orders what comes behind it after the first: the way leads through rank 1.
function TestMpirun.test_hazards()
  local output, status = run(2, HAZARDS, "--check")
  local in_one = run(2, HAZARDS, "--check", true)
  lu.assertEquals(reports(output), reports(in_one))
  lu.assertEquals(#reports(output), 3)
  lu.assertStrContains(output, "add_       reads and writes x on stream default of device 1 at SCRIPT:6")
  lu.assertStrContains(output, "add_       reads and writes x on stream default of device 0 at SCRIPT:6")
  lu.assertEquals(status, 3)
  -- The verdict of each process says whose it is.
  for rank = 0, 1 do
    lu.assertStrMatches(output, (".*\nrank %d: %%d+ hazards? at [^\n]* operations\n.*"):format(rank))
  end
  local json = run(2, HAZARDS, "--report=json")
  for rank = 0, 1 do lu.assertStrContains(json, ('"rank":%d}\n'):format(rank)) end
end

-- The first words about an error, from the word `from` on, by a rank of each way.
local function message(text, from)
  return (text:match(from .. "[^\n]*"))
end

function TestMpirun.test_mismatches_and_deadlocks()
  for _, case in ipairs{
    { "communicator", "mr.dist.all_reduce(mr.ones(mr.dist.rank() == 1 and 4 or 8))" },
    { "communicator", "mr.dist.all_reduce(mr.ones(8, {dtype = mr.dist.rank() == 1 and 'f16' or 'f32'}))" },
    { "communicator", "mr.dist.broadcast(mr.ones(8), mr.dist.rank())" },
    { "communicator", "mr.dist.all_reduce(mr.ones(8), {op = mr.dist.rank() == 1 and 'max' or 'sum'})" },
    { "communicator", "if mr.dist.rank() == 0 then mr.dist.all_reduce(mr.ones(8)) end mr.dist.barrier()" },
    { "communicator", "if mr.dist.rank() == 1 then mr.dist.all_reduce(mr.ones(1)) end mr.dist.barrier()" },
    { "deadlock", "if mr.dist.rank() == 0 then mr.dist.barrier() end" },
    { "deadlock", "mr.dist.send(mr.ones(2), 1 - mr.dist.rank()) mr.dist.recv(mr.ones(2), 1 - mr.dist.rank())" },
    { "deadlock", "local a, b = mr.dist.new_group{0, 1}, mr.dist.new_group{0, 1}\n" ..
      "if mr.dist.rank() == 1 then a, b = b, a end\n" ..
      "mr.dist.all_reduce(mr.ones(2), {group = a})\nmr.dist.all_reduce(mr.ones(2), {group = b})" },
  } do
    local output, status = run(2, case[2])
    local expected = message(run(2, case[2], nil, true), case[1])
    lu.assertNotNil(expected)
    lu.assertEquals(message(output, case[1]), expected)
    lu.assertEquals(status, 1)
  end
end

function TestMpirun.test_groups_that_differ()
  local output = run(2, [[
    local group = mr.dist.new_group(mr.dist.rank() == 0 and {0, 1} or {1, 0})
    mr.dist.all_reduce(mr.ones(2), {group = group})]])
  lu.assertStrContains(output, "all ranks make the same groups in the same order")
end

-- The error can be caught, and later calls have it, too.
function TestMpirun.test_an_error_of_a_rank_reaches_the_others()
  local output, status = run(3, [[
    mr.dist.barrier()
    if mr.dist.rank() == 1 then error "stop" end
    local fine, why = pcall(mr.dist.barrier)
    local again, what = pcall(mr.dist.barrier)
    print(mr.dist.rank(), fine, tostring(why):match "rank 1 has ended by an error: SCRIPT:2: stop" ~= nil,
      tostring(why):match "rank 1 has.*" == tostring(what):match "rank 1 has.*", mr.ones(2):sum():item())]])
  lu.assertStrContains(output, "millrace: rank 1: SCRIPT:2: stop")
  lu.assertStrContains(output:gsub("/tmp/", ""), "0\tfalse\t")
  lu.assertStrContains(output, "2\tfalse\t")
  lu.assertStrContains(output, "true\t2.0")
  lu.assertEquals(status, 1)
end

function TestMpirun.test_a_fault_of_one_device()
  local output = run(2, [[
    local x = mr.ones(4)
    if mr.dist.rank() == 0 then mr.machine.fault "assert" end
    mr.dist.all_reduce(x)
    mr.dist.barrier()]])
  lu.assertStrContains(output, "millrace: rank 0: ")
  lu.assertStrContains(output, "millrace: rank 1: ")
  lu.assertStrContains(output, "this failure was requested by mr.machine.fault")
end

-- One rank works on, in its own program, and never comes.
function TestMpirun.test_a_rank_that_fails_ends_one_that_never_comes()
  local begin = os.time()
  local output, status = run(2, [[
    mr.dist.barrier()
    if mr.dist.rank() == 1 then error "stop" end
    while true do end]])
  lu.assertStrContains(output, "rank 1 has failed, and other ranks did not meet it within 5 s: all are ended")
  lu.assertNotEquals(status, 0)
  lu.assertTrue(os.time() - begin < 30)
end

function TestMpirun.test_time_out()
  local output = run(3, [[
    mr.dist.init{timeout = 0.5}
    mr.dist.barrier()
    if mr.dist.rank() == 2 then local stop = os.time() + 3 while os.time() < stop do end end
    mr.dist.all_reduce(mr.ones(2))]])
  lu.assertStrContains(output, "time-out: rank 0 has waited for rank 2 for 0.5 s: rank 0 waits in")
  lu.assertStrContains(output, "rank 2 has not come, and was seen last at SCRIPT:2")
end

-- mpirun ends the others, and says which rank was killed.
local KILLED = [[
  local file = assert(io.open("/proc/self/stat"))
  local pid = file:read("a"):match "^%d+"
  file:close()
  local x = mr.ones(100)
  mr.dist.barrier()
  if mr.dist.rank() == 1 then
    os.execute(("(sleep %s; kill -9 %s) >/dev/null 2>&1 &"):format(DELAY, pid))
  end
  while true do mr.dist.all_reduce(x, {op = "avg"}) end]]

function TestMpirun.test_a_rank_that_is_killed()
  math.randomseed(1)
  for _ = 1, tonumber(os.getenv("MR_DIST_KILLED")) or (LONG and 50 or 1) do
    local begin = os.time()
    local output, status = run(2, ("local DELAY = %q\n"):format(("%.3f"):format(0.1 * math.random())) .. KILLED)
    lu.assertStrMatches(output, ".*process rank 1 with PID %d+ on node %S+ exited on signal 9.*")
    lu.assertStrContains(output, "rank 0: ended by SIGTERM at ")
    lu.assertNotEquals(status, 0)
    lu.assertTrue(os.time() - begin < 15)
  end
end

function TestMpirun.test_os_exit_is_an_end()
  local output, status = run(2, "mr.dist.barrier() print(mr.dist.rank()) os.exit(true)")
  lu.assertEquals(sorted(output), { "0", "1" })
  lu.assertEquals(status, 0)
end

function TestMpirun.test_what_cannot_be()
  local output = run(2, "mr.dist.init() mr.dist.spawn(2, print)")
  lu.assertStrContains(output, "spawn: a rank cannot start ranks of its own")
  output = run(2, "mr.dist.init()", "--device virtual:1")
  lu.assertStrContains(output, "start millrace with --device virtual:2")
end

function TestMpirun.test_a_lua_that_loads_the_module()
  local path = write("local mr = require 'millrace' mr.dist.init() io.write(mr.current_device().index, '\\n')")
  local function plain(variables)
    return read(("%s LUA_CPATH='%s/?.so' %s -n 2 lua5.4 %s"):format(variables, HOST:match "^(.*)/", MPIRUN, path))
  end
  local output, status = plain "MILLRACE_DEVICE=virtual"
  lu.assertStrContains(output, "MILLRACE_DEVICE=virtual:2")
  lu.assertNotEquals(status, 0)
  output, status = plain "MILLRACE_DEVICE=virtual:2"
  os.remove(path)
  lu.assertEquals(sorted(output), { "0", "1" })
  lu.assertEquals(status, 0)
end

-- Also where the script catches the refusal: it says nothing of other orders.
function TestMpirun.test_no_search_of_processes()
  local REFUSED = "other processes do not know in which order this one is carried out. Use millrace --ranks N"
  for _, case in ipairs{
    { "mr.dist.init()\nprint(mr.explore(function() mr.dist.all_reduce(mr.ones(2)) end))", "" },
    { "mr.dist.init()\nprint(mr.explore(function() pcall(mr.dist.all_reduce, mr.ones(2)) return 1 end))", "" },
    { "print(mr.explore(function() pcall(mr.dist.init) return 1 end))", "" },
    { "pcall(mr.dist.all_reduce, mr.ones(2))\nprint(1)", "--explore" },
    { "print((pcall(mr.dist.rank)))", "--explore" },
  } do
    local output, status = run(2, case[1], case[2])
    lu.assertStrContains(output, REFUSED)
    lu.assertStrContains(output, "SCRIPT:")
    lu.assertNil(output:find "deterministic", output)
    lu.assertEquals(status, 1)
  end
end

-- Another rank may need a wait of this one: here rank 1 reads what it has written before, by way of rank 0's `side`.
function TestMpirun.test_no_verdict_about_waits_of_ranks_that_meet()
  local text = [[
    local rank, side, g = mr.dist.rank(), mr.stream{name = "side"}, mr.dist.new_group{0, 1}
    local x, y = mr.zeros(8), mr.zeros(8)
    local function step()
      if rank == 1 then x:add_(1) end
      mr.dist.all_reduce(y)
      if rank == 0 then side:wait_stream(mr.current_stream()) end
      mr.with(side, function()
        mr.dist.broadcast(mr.zeros(8), 0, {group = g})
        if rank == 1 then x:sum() end
      end)
    end
    mr.synchronize()]]
  local output = run(2, text .. "\nstep()", "--waits", true)
  lu.assertStrContains(output, ":6 wait_stream: needed")
  local REFUSED = "waits: a wait of this rank may order work of ranks in other processes. Use millrace --ranks N " ..
    "instead of mpirun"
  local status
  output, status = run(2, text .. "\nstep()", "--waits")
  for rank = 0, 1 do lu.assertStrContains(output, "millrace: rank " .. rank .. ": " .. REFUSED) end
  lu.assertNil(output:find "redundant")
  lu.assertEquals(status, 1)
  output, status = run(2, text .. "\nprint(select(2, pcall(mr.waits, step))) print(mr.waits(mr.synchronize))")
  lu.assertEquals(select(2, output:gsub(REFUSED:gsub("%p", "%%%0"), "")), 2)
  lu.assertEquals(select(2, output:gsub("1 wait, 0 suffice", "")), 2)
  lu.assertEquals(status, 0)
end

-- R64a: what a process knows of the order inside another rank is not enough to judge it.
function TestMpirun.test_unordered_collectives_of_the_own_device()
  local output = run(2, [[
    local data, model = mr.dist.new_group{0, 1}, mr.dist.new_group{0, 1}
    local a, b = mr.ones(8), mr.ones(8)
    for _ = 1, 3 do
      local work = mr.dist.all_reduce(a, {group = data, async = true})
      mr.dist.all_reduce(b, {group = model})
      work:wait()
    end]], "--check=advice")
  lu.assertEquals(select(2, output:gsub("unordered%-collectives at ", "")), 2)
  for device = 0, 1 do lu.assertStrContains(output, ("Device %d may begin it first"):format(device)) end
  for rank = 0, 1 do lu.assertStrContains(output, ("rank %d: no hazards"):format(rank)) end
end

-- A later message is so.
function TestMpirun.test_ranks_that_could_not_join()
  local output = run(2, [[
    print(pcall(mr.dist.init))
    for _, name in ipairs{"init", "rank", "barrier", "destroy"} do print(name, pcall(mr.dist[name])) end]],
    "--device virtual:1")
  local said = "\tfalse\tSCRIPT:2: mr.dist: this process could not join the other ranks (SCRIPT:1), and MPI joins " ..
    "it once: correct this and start all ranks again. The error was: init: 2 ranks need as many devices, and this " ..
    "machine has 1"
  for _, name in ipairs{ "init", "rank", "barrier", "destroy" } do
    lu.assertStrContains(output:gsub("/tmp/", ""), name .. said)
  end
  -- One has joined, and gets to know it; its own init says so, too.
  output = run(2, [[
    mr.dist.init()
    if mr.dist.rank() == 1 then error "stop" end
    print(pcall(mr.dist.barrier))
    print("again", pcall(mr.dist.init))]])
  lu.assertStrContains(output, "again\tfalse\tSCRIPT:4: rank 1 has ended by an error: SCRIPT:2: stop")
end

function TestMpirun.test_ranks_that_leave_and_begin_again()
  assert_same(2, [[
    local rank = mr.dist.rank()
    local x = mr.ones(2) * (rank + 1)
    local group = mr.dist.new_group{1, 0}
    mr.dist.destroy()
    mr.dist.destroy()
    local function why(...) return (select(2, pcall(...)):gsub("%S*:%d+", "LINE")) end
    print(why(mr.dist.all_reduce, x))
    mr.dist.init()
    print(why(mr.dist.all_reduce, x, {group = group}))
    mr.dist.all_reduce(x)
    mr.dist.all_reduce(x, {group = mr.dist.new_group{1, 0}})
    print(rank, mr.dist.world_size(), x:sum():item())]])
end

-- Never a world of one rank without a word.
function TestMpirun.test_launchers_that_are_not_mpi()
  local path = write("print(mr.dist.world_size())")
  local output, status = read(("RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 %s %s"):format(HOST, path))
  lu.assertStrContains(output, "torchrun has started this process as rank 1 of 4, and MPI connects its ranks on one " ..
    "computer only: use mpirun -n N millrace script.lua")
  lu.assertEquals(status, 1)
  output = read(("MILLRACE_MPI=/none SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 %s %s"):format(HOST, path))
  lu.assertStrContains(output, "srun has started this process as rank 0 of 4, and this build has no MPI")
  output, status = read(("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 %s %s"):format(HOST, path))
  lu.assertStrContains(output, "srun has started this process as rank 0 of 4, and MPI does not know it: use srun " ..
    "--mpi=pmix")
  lu.assertEquals(status, 1)
  output = read(("RANK=0 WORLD_SIZE=1 %s %s"):format(HOST, path))
  lu.assertEquals(output, "1\n")
  os.remove(path)
end

-- As torchrun, which PyTorch brings: variables for each process, and nothing of MPI. It would end the others where one
-- fails; here they must end by themselves. `variables`: as for env. Returns what they print,
-- their exit statuses by rank, and the seconds.
local function torchrun(n, text, options, variables)
  local path, ranks, statuses = write(text), {}, {}
  for rank = 0, n - 1 do
    ranks[#ranks + 1] = ("(export RANK=%d LOCAL_RANK=%d WORLD_SIZE=%d LOCAL_WORLD_SIZE=%d MASTER_ADDR=localhost " ..
      "MASTER_PORT=$$ TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=0; timeout 60 env %s %s %s %s; " ..
      "echo \"status %d: $?\") &"):format(rank, rank, n, n, variables or "", HOST, options or "", path, rank)
  end
  local begin = os.time()
  local output = read("unset OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM; export MILLRACE_VERIFY_REPLAY=; " ..
    "(" .. table.concat(ranks, " ") .. " wait)")
  os.remove(path)
  output = output:gsub("status (%d+): (%d+)\n", function(rank, status)
    statuses[tonumber(rank)] = tonumber(status)
    return ""
  end)
  return output:gsub(path:gsub("%p", "%%%0"), "SCRIPT"), statuses, os.time() - begin
end

TestTorchrun = {}

function TestTorchrun.test_ranks_meet()
  for n = 2, 4 do
    local output, statuses = torchrun(n, [[
      mr.dist.init()
      local x = mr.ones(4) * (mr.dist.rank() + 1)
      mr.dist.all_reduce(x)
      io.write(("%d %d %d %d %g\n"):format(mr.dist.rank(), mr.dist.world_size(), mr.dist.local_rank(),
        mr.current_device().index, x[1]:item()))]])
    local expected = {}
    for rank = 0, n - 1 do
      expected[rank + 1] = ("%d %d %d %d %g"):format(rank, n, rank, rank, n * (n + 1) / 2)
      lu.assertEquals(statuses[rank], 0)
    end
    lu.assertEquals(sorted(output), expected)
  end
end

-- As under mpirun: reports, the timeline of all ranks, errors.
function TestTorchrun.test_what_ranks_say()
  local output, statuses = torchrun(2, HAZARDS, "--check")
  lu.assertEquals(reports(output), reports((run(2, HAZARDS, "--check", true))))
  lu.assertEquals(statuses, { [0] = 3, 3 })
  local path = os.tmpname()
  torchrun(2, "mr.dist.barrier() mr.spin{ms = 1}", "--trace " .. path .. ".csv")
  lu.assertStrContains(table.concat(rows_of(path .. ".csv"), "\n"), "spin")
  for rank = 0, 1 do os.remove(path .. ".rank" .. rank .. ".csv") end
  os.remove(path)
  output, statuses = torchrun(2, "mr.dist.barrier() if mr.dist.rank() == 1 then error 'stop' end mr.dist.barrier()")
  lu.assertStrContains(output, "rank 0: SCRIPT:1: rank 1 has ended by an error: SCRIPT:1: stop")
  lu.assertEquals(statuses, { [0] = 1, 1 })
end

-- If any of them is killed, the other ranks, mpirun and its slots end.
function TestTorchrun.test_a_rank_that_is_killed()
  math.randomseed(2)
  local count = tonumber(os.getenv("MR_DIST_KILLED")) or (LONG and 50 or SHORT and 1 or 2)
  for i = 1, count do
    local killed = i % 3
    local text = ("local DELAY = %q\n"):format(("%.3f"):format(0.1 * math.random())) ..
      KILLED:gsub("rank%(%) == 1", "rank() == " .. killed)
    local output, statuses, seconds = torchrun(3, text)
    lu.assertStrContains(output, ("rank %d was killed, has crashed or aborted: all ranks are ended"):format(killed))
    lu.assertEquals(statuses[killed], 137)
    for rank = 0, 2 do
      lu.assertNotEquals(statuses[rank], 0)
      if rank ~= killed then lu.assertStrContains(output, ("rank %d: ended by SIGTERM at "):format(rank)) end
    end
    lu.assertTrue(seconds <= 10, seconds)
  end
end

function TestTorchrun.test_nothing_stays()
  local path = os.tmpname()
  torchrun(2, ("mr.dist.init() if mr.dist.rank() == 0 then local f = io.open(%q, 'w') " ..
    "f:write(os.getenv 'PMIX_NAMESPACE', ' ', os.getenv 'OMPI_FILE_LOCATION') f:close() end"):format(path))
  local file = assert(io.open(path))
  local namespace, session = file:read "a":match "^(%S+) (%S+)$"
  file:close()
  os.remove(path)
  lu.assertNotNil(namespace)
  lu.assertStrContains(read("ls " .. session), "No such file")
  lu.assertNotStrContains(read("cat /proc/net/unix"), "millrace-")
end

-- One has ended before its first call of mr.dist, or there is no mpirun.
function TestTorchrun.test_a_world_that_cannot_be()
  local output, statuses = torchrun(3, "if os.getenv 'RANK' ~= '1' then mr.dist.init{timeout = 1} end")
  lu.assertStrContains(output, "rank 1 has not come to mr.dist on this computer within 1 s")
  lu.assertStrContains(output, "the others have not all come to mr.dist on this computer within 1 s")
  lu.assertEquals(statuses, { [0] = 1, 0, 1 })
  output = torchrun(2, "mr.dist.init{timeout = 2}", "", "PATH=/none")
  lu.assertStrContains(output, "MPI needs mpirun, which is not there: install openmpi-bin")
  local folder = os.tmpname()
  os.remove(folder)
  read(("mkdir %s; ln -s /bin/false %s/mpirun"):format(folder, folder))
  output = torchrun(2, "mr.dist.init{timeout = 2}", "", "PATH=" .. folder)
  lu.assertStrContains(output, "mpirun could not start MPI for the ranks")
  read("rm -r " .. folder)
end

-- Random programs without races: the same values.
local function random_program(seed, ranks)
  math.randomseed(seed)
  local lines = { "local rank, size = mr.dist.rank(), mr.dist.world_size()", "local t, w = {}, {}",
    "for i = 1, 3 do t[i] = mr.arange(12, {dtype = 'f32'}) * (rank + i) end",
    "local g = { mr.dist.new_group{0, 1}, mr.dist.new_group{1, 0} }" }
  local function add(text, ...) lines[#lines + 1] = text:format(...) end
  for _ = 1, 12 do
    local i, what = math.random(3), math.random(8)
    add("if w[%d] then w[%d]:wait() w[%d] = nil end", i, i, i)
    if what <= 2 then
      add("t[%d]:add_(rank %% 3):remainder_(11)", i)
    elseif what == 3 then
      add("w[%d] = mr.dist.all_reduce(t[%d], {op = 'max', async = true})", i, i)
    elseif what == 4 then
      add("mr.dist.all_reduce(t[%d], {op = 'avg'})", i)
    elseif what == 5 then
      add("mr.dist.broadcast(t[%d], %d)", i, math.random(0, ranks - 1))
    elseif what == 6 then
      add("if rank < 2 then mr.dist.all_reduce(t[%d], {group = g[%d]}) end", i, math.random(2))
    elseif what == 7 then
      local from = math.random(0, ranks - 1)
      local to = (from + math.random(ranks - 1)) % ranks
      add("if rank == %d then mr.dist.send(t[%d], %d) elseif rank == %d then mr.dist.recv(t[%d], %d) end",
        from, i, to, to, i, from)
    else
      add("if rank == %d then mr.current_stream():synchronize() end", math.random(0, ranks - 1))
    end
  end
  add("for i = 1, 3 do if w[i] then w[i]:wait() end print(rank, i, table.concat(t[i]:totable(), ' ')) end")
  return table.concat(lines, "\n")
end

function TestMpirun.test_random_programs()
  for seed = 1, LONG and 100 or SHORT and 2 or 4 do
    local ranks = 2 + seed % 3
    assert_same(ranks, random_program(seed, ranks))
  end
end

-- Those of lua/dist_random.lua, many in one world: each process compares its rank's bytes with those of a script that
-- has the tensors of all ranks.
local MANY = [[
  local spmd = require "lua.support.random_spmd"
  local rank, size = mr.dist.rank(), mr.dist.world_size()
  local count = 0
  for seed = 1, COUNT do
    local p = spmd.make(seed)
    if p.ranks == size then
      local came = assert(load(p.text, "=spmd.lua"))(rank)
      local expected = assert(load(p.alone, "=alone.lua"))()[rank + 1]
      if came ~= expected then
        error(("seed %d, rank %d:\n%s\nexpected\n%s"):format(seed, rank, came, expected))
      end
      count = count + 1
    end
  end
  print(rank, count)]]

function TestMpirun.test_many_random_programs_in_one_world()
  local COUNT = tonumber(os.getenv("MR_DIST_PROGRAMS")) or (LONG and 1000 or SHORT and 15 or 30)
  local spmd, sizes = require "lua.support.random_spmd", {}
  for seed = 1, COUNT do
    local ranks = spmd.make(seed).ranks
    sizes[ranks] = (sizes[ranks] or 0) + 1
  end
  for ranks, count in pairs(sizes) do
    local output, status = run(ranks, ("local COUNT = %d\n"):format(COUNT) .. MANY)
    local expected = {}
    for rank = 0, ranks - 1 do expected[rank + 1] = ("%d\t%d"):format(rank, count) end
    lu.assertEquals(sorted(output), expected)
    lu.assertEquals(status, 0)
  end
end

os.exit(lu.LuaUnit.run())
