-- mpirun -n N millrace --device cuda script.lua: ranks with real devices in several processes. NCCL's part is played by
-- tests/fake_cuda/nccl.c, which moves bytes through files.
-- timeout: 200
local lu = require "luaunit"
local fake = require "cuda.support.fake"
local command = require "host.support.command"

if not command.run{ "doctor" }.out:find "\nMPI +%S+millrace%-mpi.so, with " then
  print "skipped: doctor does not know of MPI"
  os.exit(77)
end

local MPIRUN = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " ..
  "timeout 90 mpirun --oversubscribe --bind-to none --mca btl vader,self"

-- What n processes print, and the exit status of mpirun. opts: variables (that the shell of each rank sets), device,
-- script.
local function run(n, text, opts)
  opts = opts or {}
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
  command.write(folder .. "/script.lua", text)
  local rank = ("export %s; exec %s --device %s %s"):format(opts.variables or "RANKS", command.host,
    opts.device or "cuda", opts.script or "script.lua")
  local pipe = io.popen(("cd %s; unset CUDA_VISIBLE_DEVICES; " ..
    "export TMPDIR=%s MILLRACE_LIBCUDA=%s MILLRACE_LIBNCCL=%s FAKE_CUDA_KERNELS=1 " ..
    "MILLRACE_LIBCUBLAS=/none FAKE_CUDA_DEVICES=3 MILLRACE_VERIFY_REPLAY=; %s -n %d sh -c %s 2>&1")
    :format(folder, folder, fake.driver, fake.driver, MPIRUN, n, command.quote(rank)))
  local output = pipe:read "a"
  local _, _, status = pipe:close()
  os.execute("rm -r " .. folder)
  return output, status
end

local function assert_has(output, ...)
  for _, text in ipairs{ ... } do lu.assertStrContains(output, text) end
end

TestProcesses = {}

-- Each rank checks by itself: collectives, groups, messages, data-parallel training.
function TestProcesses.test_values()
  local pwd = io.popen("pwd")
  local here = pwd:read "l"
  pwd:close()
  for n = 2, 3 do
    local output, status = run(n, "", { script = here .. "/tests/cuda/support/ranks.lua" })
    lu.assertEquals(status, 0, output)
    for rank = 0, n - 1 do assert_has(output, ("rank %d of %d on device %d is done"):format(rank, n, rank)) end
  end
end

function TestProcesses.test_the_checker_follows_the_rank()
  local output = run(2, [[
    print(#mr.hazard.check(function()
      local t = mr.ones(8)
      local work = mr.dist.all_reduce(t, {async = true})
      t:add_(1)
      work:wait()
    end) > 0 and "found" or "nothing")]])
  local _, count = output:gsub("found", "")
  lu.assertEquals(count, 2, output)
end

function TestProcesses.test_a_mismatch_is_an_error_with_both_lines()
  local output, status = run(2, "local t = mr.ones(4)\nif mr.dist.rank() == 0 then mr.dist.all_reduce(t)\n" ..
    "else mr.dist.broadcast(t, 0) end")
  lu.assertNotEquals(status, 0)
  assert_has(output, "the ranks do not match (R62)", "script.lua:2", "script.lua:3")
  output = run(2, "local t = mr.ones(1)\nif mr.dist.rank() == 0 then mr.dist.all_reduce(t)\n" ..
    "else mr.dist.new_group{0, 1} end")
  assert_has(output, "the ranks do not match (R62)", "new_group", "script.lua:2", "script.lua:3")
  output = run(2, "mr.dist.new_group{mr.dist.rank()}")
  assert_has(output, "all ranks make the same groups in the same order")
end

function TestProcesses.test_deadlocks()
  local output, status = run(2, "local t = mr.ones(4)\nif mr.dist.rank() == 0 then mr.dist.all_reduce(t) end")
  lu.assertNotEquals(status, 0)
  assert_has(output, "deadlock of the ranks (R62)", "rank 0 waits in `all_reduce`", "script.lua:2", "rank 1 has ended")
  output = run(2, "local t, peer = mr.ones(4), 1 - mr.dist.rank()\nmr.dist.send(t, peer)\nmr.dist.recv(t, peer)")
  assert_has(output, "deadlock of the ranks", "rank 0 waits in `send`", "rank 1 waits in `send`")
end

function TestProcesses.test_a_failing_rank_ends_the_others()
  local output, status = run(2, [[
    local t = mr.ones(4)
    if mr.dist.rank() == 1 then error "boom" end
    mr.dist.all_reduce(t)]])
  lu.assertNotEquals(status, 0)
  assert_has(output, "rank 1 has ended by an error", "boom")
end

-- Rank 1 submits its part behind a kernel that takes four seconds.
local LATE = { variables = "FAKE_CUDA_KERNEL_MS=$((OMPI_COMM_WORLD_RANK * 4000))" }
local SLOW = [[
  local rank, t = mr.dist.rank(), mr.ones(4)
  mr.dist.init{timeout = %d}
  t:add_(1)
  mr.dist.all_reduce(t)
  %s
  mr.synchronize()
  print("rank " .. rank .. " came through")
]]

function TestProcesses.test_a_wait_ends_at_the_timeout()
  local output, status = run(2, SLOW:format(1, ""), LATE)
  lu.assertNotEquals(status, 0)
  assert_has(output, "time-out: rank", "has waited for its device for 1 s", "communicator `world` has not ended",
    "script.lua:4")
  lu.assertNotStrContains(output, "came through")
  output, status = run(2, SLOW:format(50, ""), LATE)
  lu.assertEquals(status, 0, output)
  assert_has(output, "rank 0 came through", "rank 1 came through")
end

function TestProcesses.test_a_wait_ends_when_another_rank_fails()
  local output, status = run(2, SLOW:format(50, "if rank == 1 then error 'boom' end"), LATE)
  lu.assertNotEquals(status, 0)
  assert_has(output, "rank 1 has ended by an error")
  lu.assertNotStrContains(output, "came through")
end

function TestProcesses.test_two_ranks_on_one_device()
  local output, status = run(2, "mr.dist.init()", { device = "cuda:1" })
  lu.assertNotEquals(status, 0)
  assert_has(output, "NCCL takes one rank a GPU (R67)", "this rank has device 1", "--device cuda:I")
  -- NCCL takes them for ranks of two computers.
  output, status = run(2, "mr.dist.init() print('joined ' .. mr.dist.rank())",
    { device = "cuda:1", variables = "NCCL_HOSTID=$OMPI_COMM_WORLD_RANK" })
  lu.assertEquals(status, 0, output)
  assert_has(output, "joined 0", "joined 1")
end

function TestProcesses.test_no_nccl()
  local output, status = run(2, "mr.dist.init()", { variables = "MILLRACE_LIBNCCL=/none" })
  lu.assertNotEquals(status, 0)
  assert_has(output, "init: NCCL cannot be opened", "--device virtual")
end

function TestProcesses.test_a_launcher_that_mpi_has_not_heard_of()
  local variables = "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=1 FAKE_CUDA_DEVICES=2 MILLRACE_LIBNCCL=" ..
    fake.driver
  local output, status = fake.run{ variables = variables, "--device", "cuda", "-e",
    "print('device ' .. mr.current_device().index) mr.dist.init()" }
  lu.assertEquals(status, 1)
  assert_has(output, "device 1", "srun has started this process as rank 0 of 2", "use srun --mpi=pmix")
end

os.exit(lu.LuaUnit.run())
