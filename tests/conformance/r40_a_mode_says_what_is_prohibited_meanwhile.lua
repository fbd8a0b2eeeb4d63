-- R40: in the modes global and thread, calls that may wait for any stream are prohibited while a capture is under way.
-- In the mode relaxed only those are that concern the captured streams. Guaranteed: CUDA Runtime API,
-- cudaStreamBeginCapture, cudaThreadExchangeStreamCaptureMode.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R40"

local s, t = mr.stream{name = "s"}, mr.stream{name = "t"}
local e = t:record_event()
local unused = mr.zeros(4, {stream = t})
mr.synchronize()
local unsafe = {
  free = function() unused:free{sync = true} end,
  synchronize = function() t:synchronize() end,
  query = function() t:query() end,
  event = function() e:synchronize() end,
}
for _, mode in ipairs{ "global", "thread", "relaxed" } do
  for name, call in pairs(unsafe) do
    mr.graph.begin(s, {mode = mode})
    T.equal(s:capture_info().mode, mode, "the mode")
    if mode == "relaxed" then
      call()
      mr.graph.finish(s)
    else
      local err = T.raises("stream-capture-unsupported", call)
      T.check(err.message:find("900", 1, true) and err.message:find("relaxed", 1, true), name .. ": " .. err.message)
      T.raises("stream-capture-invalidated", mr.graph.finish, s)
    end
  end
  -- Questions to the captured stream itself are illegal in each mode.
  for _, call in ipairs{ function() s:synchronize() end, function() s:query() end, function() mr.synchronize() end } do
    mr.graph.begin(s, {mode = mode})
    T.raises("stream-capture-unsupported", call)
    T.raises("stream-capture-invalidated", mr.graph.finish, s)
  end
end
T.check(not pcall(mr.graph.begin, s, {mode = "strict"}), "there is no other mode")
T.check(not s:is_capturing(), "and then nothing has begun")
