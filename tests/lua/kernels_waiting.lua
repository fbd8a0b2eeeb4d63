-- virtual only: on a GPU a kernel that waits for ever cannot be ended
-- Blocks that wait for each other: those that a device runs at once make progress together, as on hardware.
local lu = require "luaunit"
local mr = require "millrace"
local unchecked = require "lua.support.unchecked"

TestWaiting = {}

function TestWaiting.tearDown() mr.reset() end

-- A barrier of the whole grid, made by hand.
function TestWaiting.test_a_barrier_of_the_grid()
  local m = mr.module[=[
    __device__ unsigned arrived;
    __device__ volatile unsigned phase;
    __device__ void grid_barrier() {
      __syncthreads();
      if (threadIdx.x == 0) {
        __threadfence();
        unsigned before = phase;
        if (atomicAdd(&arrived, 1) == gridDim.x - 1) {
          arrived = 0;
          __threadfence();
          phase = before + 1;
        } else {
          while (phase == before) {}
        }
        __threadfence();
      }
      __syncthreads();
    }
    extern "C" __global__ void pass(int *to, int *from, int rounds) {
      int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
      for (int r = 0; r < rounds; r++) {
        to[i] = from[n - 1 - i] + 1; // another block has written it in the round before
        grid_barrier();
        int *other = to; to = from; from = other;
      }
    }]=]
  local function passes(blocks, threads, rounds)
    local a, b = mr.zeros(blocks * threads, { dtype = "i32" }), mr.zeros(blocks * threads, { dtype = "i32" })
    local reports = mr.hazard.check(function()
      m:get("pass")[{ blocks, threads }](a, b, rounds)
      mr.synchronize()
    end)
    lu.assertEquals(#reports, 0, reports[1] and reports[1].message)
    lu.assertEquals({ b:min():item(), b:max():item() }, { rounds, rounds })
  end
  for _, blocks in ipairs{ 1, 2, 33, not os.getenv "MILLRACE_SHORT" and 132 or nil } do
    passes(blocks, 64, os.getenv "MILLRACE_LONG" and 6 or 4)
  end
  passes(132, 512, 2) -- enough work for several threads of the host
end

function TestWaiting.test_a_lock_that_all_lanes_want()
  local m = mr.module[[
    __device__ int lock;
    extern "C" __global__ void count(volatile int *total, int rounds) {
      for (int r = 0; r < rounds; r++) {
        while (atomicCAS(&lock, 0, 1) != 0) {}
        __threadfence();
        *total = *total + 1;
        __threadfence();
        atomicExch(&lock, 0);
      }
    }]]
  local total = mr.zeros(1, { dtype = "i32" })
  m:get("count")[{ 3, 64 }](total, 4)
  lu.assertEquals(total:item(), 3 * 64 * 4)
end

local turns = [[
  extern "C" __global__ void turns(volatile int *turn) {
    int me = gridDim.x - 1 - blockIdx.x;
    while (*turn != me) {}
    *turn = me + 1;
  }]]

function TestWaiting.test_the_last_block_goes_first()
  local kernel, turn = mr.kernel(turns), mr.zeros(1, { dtype = "i32" })
  kernel[{ 200, 1 }](turn)
  lu.assertEquals(turn:item(), 200)
end

-- On the GPU with the fewest multiprocessors, as each block that runs is watched.
function TestWaiting.test_more_blocks_than_the_device_runs_at_once()
  local usual = mr.machine.model()
  mr.machine.model("t4")
  local kernel, turn = mr.kernel(turns), mr.zeros(1, { dtype = "i32" })
  local resident = mr.current_device().sm_count * 16
  kernel[{ resident + 7, 1 }](turn)
  local ok, err = pcall(mr.synchronize)
  lu.assertFalse(ok)
  lu.assertEquals(err.code, "launch-timeout")
  lu.assertStrContains(tostring(err), "waits for ever")
  lu.assertStrContains(tostring(err), "7 blocks have not begun, as the device runs at most " .. resident)
  mr.reset()
  mr.machine.model(usual)
end

-- The state of a launch is part of a checkpoint: what has begun does not begin again.
function TestWaiting.test_under_all_choosers()
  for _, chooser in ipairs{ "timed", "adversarial", "random:3" } do
    mr.machine.chooser(chooser)
    local kernel, turn = mr.kernel(turns), mr.zeros(1, { dtype = "i32" })
    kernel[{ 64, 1 }](turn)
    lu.assertEquals({ chooser, turn:item() }, { chooser, 64 })
  end
  mr.machine.chooser("timed")
end

unchecked(TestWaiting, "the watch of its waits takes half a minute", "test_more_blocks_than_the_device_runs_at_once")

os.exit(lu.LuaUnit.run())
