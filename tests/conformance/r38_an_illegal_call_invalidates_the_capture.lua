-- R38: after an illegal call, everything that is captured fails until the capture ends; then there is no graph, and
-- the streams are as before.
-- Guaranteed: CUDA Runtime API, cudaStreamIsCapturing, cudaStreamEndCapture.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R38"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(4)
mr.synchronize()

mr.graph.begin(a)
b:wait_stream(a)
T.raises("stream-capture-unsupported", function() a:synchronize() end)
local info = a:capture_info()
T.equal(info.status, "invalidated", "its state")
T.equal(info.reason, "synchronize", "the call that did it")
for name, call in pairs{
  kernel = function() a:run(function() x:add_(1) end) end,
  ["kernel on a joined stream"] = function() b:run(function() x:add_(1) end) end,
  record = function() a:record_event() end,
  wait = function() a:wait_stream(b) end,
  allocation = function() a:run(function() mr.empty(4) end) end,
  copy = function() a:run(function() x:copy_(mr.ones_like(x)) end) end,
  synchronize = function() a:synchronize() end,
  ["host function"] = function() a:host_func(function() end) end,
} do
  local err = T.raises("stream-capture-invalidated", call)
  T.check(err.message:find("901", 1, true) and err.message:find("invalidated by synchronize at ", 1, true),
          name .. ": " .. err.message)
end
T.raises("stream-capture-invalidated", mr.graph.finish, a)
for _, s in ipairs{ a, b } do
  T.check(not s:is_capturing(), "it does not capture")
  s:run(function() x:add_(1) end)
  s:synchronize()
end
T.equal(x:sum():item(), 8.0, "and works")

-- An error of the function ends the capture, and is the one that is raised.
local ok, text = pcall(mr.graph, function() x:add_(1); error("my own") end)
T.check(not ok and text:find("my own", 1, true), "the function's error")
local current = mr.current_stream()
T.equal(current, mr.default_stream(), "the current stream is as before")
