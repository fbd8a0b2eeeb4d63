-- A received part is still being read when the next message is received into the same memory.
-- options: --device virtual:2
-- expect: kind=write-after-read reason=one-way tensor=inbox first=14 second=18
if require "hazard_pair" () then return end
local mr = require "millrace"

local comms = mr.nccl.comms{0, 1}
local communicate = mr.stream{name = "communicate"}
local inbox, sum, parcel = mr.zeros(64), mr.zeros(64), mr.ones(64, {device = 1})
mr.synchronize(0)
mr.synchronize(1)
mr.nccl.group(function() comms[2]:send(parcel, 0) comms[1]:recv(inbox, 1, {stream = communicate}) end)
mr.default_stream(0):wait_stream(communicate)
sum:add_(inbox)
-- fix: communicate:wait_stream(mr.default_stream(0))
-- The second message.

mr.nccl.group(function() comms[2]:send(parcel, 0) comms[1]:recv(inbox, 1, {stream = communicate}) end)
mr.synchronize(0)
