-- millrace --ranks N: a whole script once for each rank.
-- virtual only: the options choose the device
local lu = require "luaunit"

local HOST = assert(os.getenv("MILLRACE"), "MILLRACE must hold the path of the host")

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

-- AddressSanitizer says it once in each process that leaves a stack.
local WARNING = "==%d+==WARNING: ASan doesn't fully support makecontext[^\n]*\n"

local function run(options, text, arguments)
  local path = os.tmpname()
  write(path, text)
  local pipe = io.popen(("%s %s %s %s 2>&1"):format(HOST, options, path, arguments or ""))
  local output = pipe:read("a"):gsub(path:gsub("%p", "%%%0"), "SCRIPT")
  local _, _, status = pipe:close()
  os.remove(path)
  output = output:gsub(WARNING, "")
  return output, status
end

TestRanks = {}

function TestRanks.test_each_rank_runs_the_whole_script()
  local output, status = run("--ranks 3", [[
    seen = (seen or 0) + 1
    string.mine = mr.dist.rank()
    mr.dist.init()
    local x = mr.ones(2) * (mr.dist.rank() + 1)
    mr.dist.all_reduce(x)
    assert(string.mine == mr.dist.rank() and mr.current_device().index == mr.dist.local_rank())
    print(mr.dist.rank(), mr.dist.world_size(), seen, x:sum():item(), ...)]], "a b")
  local lines = {}
  for line in output:gmatch "[^\n]+" do lines[#lines + 1] = line end
  table.sort(lines)
  lu.assertEquals(lines, { "0\t3\t1\t12.0\ta\tb", "1\t3\t1\t12.0\ta\tb", "2\t3\t1\t12.0\ta\tb" })
  lu.assertEquals(status, 0)
end

-- Which rank comes first makes no difference if all fail alike: the lowest is named, and the status is the error's.
function TestRanks.test_an_error_of_all_ranks_is_one_outcome()
  for _, way in ipairs { 'error("bad config")', "error{ code = 7 }", "mr.zeros(3):view(2)",
                         'mr.dist.barrier() error("bad config")' } do
    local output, status = run("--explore --ranks 3", "mr.dist.init() " .. way)
    lu.assertStrContains(output, "1 outcome: this error; nothing is claimed about what comes after it\n")
    local text = way:find "code" and "error: {code = 7, rank = 0}" or "error: rank 0: SCRIPT:1: "
    lu.assertStrContains(output, text)
    lu.assertEquals(status, 1)
  end
  local output, status = run("--explore --ranks 3",
    'mr.dist.init() if mr.dist.rank() > 0 then error("no", 0) end return "no"')
  lu.assertStrContains(output, "error: rank 1: no\n")
  lu.assertEquals(status, 1)
  for _, way in ipairs { 'error("rank " .. mr.dist.rank())', "error{ mr.dist.rank() }",
                         "error(setmetatable({}, { __tostring = function() return 'no' end }))" } do
    output, status = run("--explore --ranks 2", "mr.dist.init() " .. way)
    lu.assertStrContains(output, way:find "meta" and "1 outcome: this error" or "2 schedules, 2 outcomes\n")
    lu.assertEquals(status, way:find "meta" and 1 or 3)
  end
end

-- os.exit ends a rank, as the end of its script does, and nothing of the script catches it.
function TestRanks.test_os_exit_ends_the_rank_that_calls_it()
  local output, status = run("--check --ranks 2", [[
    if mr.dist.rank() == 1 then pcall(os.exit, 0) print "not here" end
    mr.dist.all_reduce(mr.ones(4))]])
  lu.assertStrContains(output, "deadlock of the ranks (R62)")
  lu.assertNotStrContains(output, "not here")
  lu.assertNotStrContains(output, "no hazards")
  lu.assertEquals(status, 1)
  local script = [[
    local x = mr.ones(1)
    mr.dist.all_reduce(x)
    mr.dist.barrier()
    os.exit(mr.dist.rank() > 0 and mr.dist.rank() + 4 or 0)]]
  output, status = run("--check --ranks 3", script)
  lu.assertEquals({ output:match "no hazard" ~= nil, status }, { true, 5 })
  output, status = run("--explore --ranks 2", script)
  lu.assertStrContains(output, "1 outcome")
  lu.assertStrContains(output, "ends with os.exit(5)")
  lu.assertEquals(status, 1)
  output, status = run("--check --ranks 2", "mr.dist.barrier() os.exit(true)")
  lu.assertStrContains(output, "no hazards")
  lu.assertEquals(status, 0)
end

function TestRanks.test_is_refused_where_another_program_has_started_ranks()
  local path = os.tmpname()
  local pipe = io.popen(("RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 %s --ranks 2 %s 2>&1"):format(HOST, path))
  lu.assertStrContains(pipe:read("a"), "torchrun has started this process as rank 0 of 2 already: leave --ranks out")
  pipe:close()
  os.remove(path)
end

-- Global variables and modules belong to a rank.
function TestRanks.test_modules_are_loaded_for_each_rank()
  local folder = os.tmpname()
  os.remove(folder)
  os.execute("mkdir " .. folder)
  write(folder .. "/counter.lua", "count = (count or 0) + 1 return { rank = mr.dist.rank() }")
  local output = run("--ranks 2", ([[
    package.path = %q .. "/?.lua"
    local counter = require "counter"
    mr.dist.barrier()
    assert(require "counter" == counter and counter.rank == mr.dist.rank() and count == 1)
    assert(load "return mr.dist.rank() == ...and count" (mr.dist.rank()) == 1)
    assert(_G.count == 1 and package.loaded.counter == counter)
    mr.dist.barrier()
    print "fine"]]):format(folder))
  os.execute("rm -r " .. folder)
  lu.assertEquals(output, "fine\nfine\n")
end

-- A rank draws numbers of its own, as a process does: what another rank does in between changes nothing.
function TestRanks.test_random_numbers_of_each_rank()
  local script = [[
    math.randomseed(mr.dist.rank())
    local x = mr.zeros(1)
    for i = 1, 2 do
      mr.synchronize()
      print(mr.dist.rank(), math.random(1000000))
    end]]
  local expected = {}
  for rank = 0, 1 do
    math.randomseed(rank)
    for _ = 1, 2 do expected[#expected + 1] = ("%d\t%d\n"):format(rank, math.random(1000000)) end
  end
  expected = table.concat(expected)
  lu.assertEquals(run("--ranks 2", script), expected)
  local output = run("--ranks 2 --explore", script)
  lu.assertStrContains(output, "1 schedule, 1 outcome: deterministic")
  lu.assertStrContains(output, (expected:gsub("\n", "\n    "):gsub("%s+$", "")))
  -- Without a seed they are other numbers on each rank.
  output = run("--ranks 2 --explore", "print(math.random(1 << 40))")
  local first, second = output:match("\n    (%d+)\n    (%d+)\n")
  lu.assertNotNil(first, output)
  lu.assertNotEquals(first, second)
  output = run("--ranks 2", "print(math.random(1 << 40))")
  first, second = output:match("(%d+)\n(%d+)\n")
  lu.assertNotEquals(first, second)
end

function TestRanks.test_an_error_names_its_rank()
  local output, status = run("--ranks 2", [[
    if mr.dist.rank() == 1 then error "stop" end
    mr.dist.barrier()]])
  lu.assertStrContains(output, "rank 1: SCRIPT:1: stop")
  lu.assertEquals(status, 1)
  output, status = run("--ranks 2", "if mr.dist.rank() == 1 then mr.dist.barrier() end")
  lu.assertStrContains(output, "rank 1 waits in `barrier` at SCRIPT:1")
  lu.assertStrContains(output, "rank 0 has ended")
  lu.assertEquals(status, 1)
  output, status = run("--ranks 2", "x = = 1")
  lu.assertStrContains(output, "SCRIPT:1:")
  lu.assertEquals(status, 1)
end

local ASYNC = [[
  local x = mr.ones(8, {name = "x"})
  local w = mr.dist.all_reduce(x, {async = true})
  %s
  x:add_(1)
  print(x:sum():item())]]

function TestRanks.test_hazards_and_outcomes()
  local output, status = run("--ranks 2 --check", ASYNC:format "")
  lu.assertStrContains(output, "read-after-write on `x`")
  lu.assertStrContains(output, "add   w:wait()")
  lu.assertStrContains(output, "No other line is needed")
  lu.assertEquals(status, 3)
  output, status = run("--ranks 2 --check", ASYNC:format "w:wait()")
  lu.assertStrContains(output, "no hazards")
  lu.assertStrContains(output, "This holds if 2 ranks share nothing but what collectives carry.")
  lu.assertEquals(status, 0)
  output, status = run("--ranks 2 --explore", ASYNC:format "w:wait()")
  lu.assertStrContains(output, "1 outcome: deterministic")
  lu.assertEquals(status, 0)
  output, status = run("--ranks 2 --explore", ASYNC:format "")
  lu.assertStrContains(output, "7 outcomes") -- the addition and the sum before the all_reduce, or behind it
  lu.assertStrContains(output, "with the fix: 1 schedule, 1 outcome: deterministic")
  lu.assertEquals(status, 3)
end

-- Each is explored again with the fix that is proposed. {the fix, what is missing it}
local WORKS = {
  { "works[i]:wait()", [[
    for i = 1, 2 do
      x[i]:mul_(2)
    end]] },
  { "works[i]:wait(s)", [[
    for i = 1, 2 do
      s:run(function()
        x[i]:mul_(2)
      end)
    end
    s:synchronize()]] },
  { "works[2]:wait()", "x[2]:mul_(2)" },
  -- Nothing leads to the work. The line serves all ranks.
  { "mr.synchronize() --", "works = nil\n    x[1]:mul_(2)" },
}

function TestRanks.test_fixes_of_works_are_right_when_they_are_put_in()
  for _, case in ipairs(WORKS) do
    local output, status = run("--ranks 2 --explore", [[
      local x, works, s = {}, {}, mr.stream{name = "s"}
      for i = 1, 2 do
        x[i] = mr.ones(4)
        works[i] = mr.dist.all_reduce(x[i], {async = true})
      end
      mr.synchronize()
      for i = 1, 2 do works[i] = mr.dist.all_reduce(x[i], {async = true}) end
      ]] .. case[2])
    lu.assertStrContains(output, "add   " .. case[1])
    lu.assertStrContains(output, "with the fix: 1 schedule, 1 outcome: deterministic")
    lu.assertEquals(status, 3) -- it prints nothing, so there is one outcome; the hazards count
  end
end

-- A whole training script; the mistake is a gradient that another stream uses before the current one.
local TRAINING = [[
  mr.manual_seed(mr.dist.rank())
  local net = mr.nn.Sequential(mr.nn.Linear(2, 2), mr.nn.Tanh(), mr.nn.Linear(2, 1)):to(mr.current_device())
  local ddp = mr.nn.parallel.DistributedDataParallel(net, {bucket_mb = 0})
  local sgd = mr.optim.SGD(net:parameters(), {lr = 0.5})
  for step = 1, 2 do
    sgd:zero_grad()
    local loss = ddp(mr.full({1, 2}, mr.dist.rank() + 1.0)):sum()
    loss:backward()
    %s
  end
  mr.synchronize()
  print(("%%.6f"):format(net[3].bias:item()))]]

function TestRanks.test_training()
  local output, status = run("--ranks 2 --check", TRAINING:format "sgd:step()")
  lu.assertStrContains(output, "no hazards")
  lu.assertEquals(status, 0)
  local first, second = output:match "(%-?[%d.]+)\n(%-?[%d.]+)\n"
  lu.assertEquals(first, second) -- both ranks have the same bias
  output, status = run("--ranks 2 --explore", TRAINING:format "sgd:step()")
  lu.assertStrContains(output, "1 outcome: deterministic")
  lu.assertEquals(status, 0)
  output, status = run("--ranks 2 --check", TRAINING:format "mr.stream():run(function() sgd:step() end)")
  lu.assertStrContains(output, "read-after-write on `DistributedDataParallel.module.1.weight.grad`")
  lu.assertEquals(status, 3)
end

-- Each rank runs all pieces, with variables of its own, then the script.
function TestRanks.test_code_of_the_command_line()
  local CODE = "-e 'n = mr.dist.rank()' -e 'local x = mr.full(2, n + 1) mr.dist.all_reduce(x) sum = x:sum():item()' "
  local output, status = run("--ranks 2 --explore " .. CODE, "print(n, sum, ...)", "a b")
  lu.assertStrContains(output, "1 schedule, 1 outcome: deterministic\n  outcome 1, in 1 schedule: \n" ..
    "    0\t6\ta\tb\n    1\t6\ta\tb\n")
  lu.assertEquals(status, 0)
  local function only_code(options)
    local pipe = io.popen(("%s --ranks 2 %s 2>&1"):format(HOST, options))
    local text = pipe:read("a"):gsub(WARNING, "")
    return text, select(3, pipe:close())
  end
  output, status = only_code(CODE .. "-e 'print(sum)'")
  lu.assertEquals({ output, status }, { "6\n6\n", 0 })
  output, status = only_code("--device virtual -e 'r = mr.dist.rank() if r == 1 then os.exit(4) end' -e 'print(r)'")
  lu.assertEquals({ output, status }, { "0\n", 4 })
  output, status = only_code("-e 'x ='")
  lu.assertEquals({ output, status }, { "millrace: (command line):1: unexpected symbol near <eof>\n", 1 })
  output, status = only_code("-e 'mr.onse(1)'")
  lu.assertStrContains(output, "rank 0: (command line):1: there is no `mr.onse`: did you mean `mr.ones`?")
  lu.assertEquals(status, 1)
end

-- The condition counts rank 0 of several worlds once.
function TestRanks.test_how_many_ranks_a_condition_names()
  local SCRIPT = [[
    for _ = 1, 3 do
      mr.hazard.check(function() mr.dist.spawn(2, function() mr.dist.all_reduce(mr.ones(2)) end) end)
    end]]
  lu.assertStrContains(run("--device virtual:2 --explore", SCRIPT), "This holds if 2 ranks share nothing but")
end

function TestRanks.test_what_the_option_refuses()
  lu.assertStrContains(run("--ranks 0", ""), "--ranks: expected a number from 1 to 64, got '0'")
  lu.assertStrContains(run("--ranks x", ""), "--ranks: expected a number")
  lu.assertStrContains(run("--ranks 2 --sandbox", ""), "--ranks and --sandbox cannot be used together")
  for _, options in ipairs{ "", "-", "-e 1 -" } do
    local pipe = io.popen(("%s --ranks 2 %s 2>&1 < /dev/null"):format(HOST, options))
    lu.assertStrContains(pipe:read("a"), "--ranks needs a script file, or code behind -e")
  end
  lu.assertStrContains(run("--ranks 2 --step -e 1", ""), "--ranks and --step go through a script file, without -e")
  lu.assertStrContains(run("--ranks 3 --device virtual:2", "print(1)"), "3 ranks need as many devices")
end

os.exit(lu.LuaUnit.run())
