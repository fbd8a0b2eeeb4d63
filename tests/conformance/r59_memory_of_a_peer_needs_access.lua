-- R59: a kernel may use another device's memory after peer access has been enabled, in that direction. Copies work
-- without it, more slowly.
-- options: --device virtual:2
-- Guaranteed: CUDA Runtime API, cudaDeviceEnablePeerAccess (errors 704, 101), cudaMemcpyPeer.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R59"
if mr.device_count() < 2 then T.skip("needs two devices") end
local d0, d1 = mr.device(0), mr.device(1)

T.raises("invalid-device", function() d0:enable_peer_access(d0) end)

local s0 = mr.stream{device = d0}
local SIZE = 16 << 20 -- 64 MiB
local big0, big1 = mr.zeros(SIZE, {device = d0}), mr.ones(SIZE, {device = d1})
mr.synchronize(d0)
mr.synchronize(d1)

local function copy_time()
  local start = T.mark(s0)
  mr.memcpy_async(big0, big1, {stream = s0})
  local finish = T.mark(s0)
  s0:synchronize()
  return finish - start
end

local through_host = copy_time()
T.equal(big0[SIZE]:item(), 1, "a copy needs no access")
if not d0:can_access_peer(d1) then T.skip("these devices cannot access each other") end

if mr.machine then -- a real GPU would need a new process after it
  mr.op{writes = {big1[{ {1, 1} }]}, stream = s0}
  T.raises("illegal-address", function() s0:synchronize() end)
  mr.reset()
  s0 = mr.stream{device = d0}
  big0, big1 = mr.zeros(SIZE, {device = d0}), mr.ones(SIZE, {device = d1})
  mr.synchronize(d0)
  mr.synchronize(d1)
end

d0:enable_peer_access(d1)
T.raises("peer-access-already-enabled", function() d0:enable_peer_access(d1) end)
mr.op{writes = {big1[{ {1, 1} }]}, stream = s0}
s0:synchronize()
T.check(big1[1]:item() ~= 1, "a kernel of device 0 has written memory of device 1")
T.less(copy_time(), 0.7 * through_host, "a copy no longer goes through the host")

if mr.machine then -- the other direction is a matter of its own
  local s1 = mr.stream{device = d1}
  mr.op{reads = {big0[{ {1, 1} }]}, stream = s1}
  T.raises("illegal-address", function() s1:synchronize() end)
  mr.reset()
end
