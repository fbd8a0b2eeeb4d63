-- R31: at a synchronise the pool gives unused memory beyond its release threshold back to the system.
-- Guaranteed: CUDA Programming Guide, 4.3 (cudaMemPoolAttrReleaseThreshold). CUDA's default is 0; here it is no
-- limit, as frameworks set it. Setting: release_threshold.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R31"

local N = 1 << 20 -- 4 MiB
local BYTES = 4 * N
local s = mr.stream()
local device = mr.current_device()
mr.synchronize()
mr.memory.empty_cache()
local before = mr.memory.reserved(device)

local function use_and_free()
  local t = mr.empty(N, {stream = s})
  s:run(function() t:fill_(1) end)
  t:free()
end

use_and_free()
s:synchronize()
T.at_least(mr.memory.reserved(device), BYTES, "without a threshold the pool keeps it")
local kept = mr.memory.reserved(device) -- a real pool grows by steps of its own (32 MiB on an H200)
for _ = 1, 3 do use_and_free() end
s:synchronize()
T.equal(mr.memory.reserved(device), kept, "and uses it again")
mr.memory.empty_cache()
T.at_least(before, mr.memory.reserved(device), "until it is asked for")

if mr.machine then
  mr.machine.settings{release_threshold = 0}
  use_and_free()
  T.at_least(mr.memory.reserved(device), BYTES, "nothing goes back before a synchronise")
  s:synchronize()
  T.at_least(before, mr.memory.reserved(device), "threshold 0: a stream's synchronise gives it back")
  use_and_free()
  s:record_event():synchronize()
  T.at_least(before, mr.memory.reserved(device), "so does an event's")
  use_and_free()
  mr.synchronize()
  T.at_least(before, mr.memory.reserved(device), "and the device's")

  mr.machine.settings{release_threshold = math.huge}
  use_and_free()
  mr.synchronize()
  T.at_least(mr.memory.reserved(device), BYTES, "no limit: it stays")
end
