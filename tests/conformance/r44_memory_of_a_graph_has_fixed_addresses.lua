-- R44: memory that is allocated in a capture has the same address in each launch. It can be freed in the capture, or
-- after a launch. A second launch while it is not freed is an error, unless the graph frees it by itself. Such a
-- graph has one executable.
-- Guaranteed: CUDA Programming Guide 4.2, graph memory nodes; CUDA Runtime API, cudaGraphInstantiate.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R44"

local s = mr.stream{name = "s"}
local x = mr.ones(4)
mr.synchronize()

local function kinds(g)
  local list = {}
  for i, n in ipairs(g:nodes()) do list[i] = n.kind end
  return table.concat(list, " ")
end

local g, y = mr.graph(function() return x + 1 end)
T.equal(kinds(g), "alloc kernel", "an allocation is a node")
local address = y.data_ptr
for i = 1, 3 do
  x:fill_(i)
  mr.synchronize()
  g:launch(s)
  s:synchronize()
  T.equal(y:sum():item(), 4.0 * (i + 1), "the values of the last launch")
  T.equal(y.data_ptr, address, "the same address")
end

-- Freed in the capture: a node, and the tensor is gone.
local temporary
local h = mr.graph(function()
  temporary = x * 10
  x:copy_(temporary)
  temporary:free()
end)
T.equal(kinds(h), "alloc kernel copy free", "a free is a node, too")
T.check(not pcall(function() return temporary + 1 end), "it cannot be used after its life")
h:launch(s)
h:launch(s)
s:synchronize()
T.equal(x:sum():item(), 1200.0, "3 * 10 * 10, four times")

-- As in CUDA without AutoFreeOnLaunch.
local kept
local k = mr.graph(function() kept = x + 1 end, {auto_free = false})
k:launch(s)
local ok, err = pcall(k.launch, k, s)
T.check(not ok and tostring(err):find("cudaErrorInvalidValue, 1", 1, true), tostring(err))
kept:free()
k:launch(s)
s:synchronize()
T.equal(kept:sum():item(), 1204.0, "after the free it can be launched, and the tensor is there again")

-- Only memory of the graph can be freed in its capture.
mr.graph.begin(s)
T.check(not pcall(x.free, x, {stream = s}), "memory of outside")
T.equal(s:capture_info().status, "active", "the capture goes on")
mr.graph.finish(s)

T.raises("not-supported", function() g:instantiate() end)

-- The end of a graph does not free memory that a tensor refers to.
g:close()
collectgarbage()
T.equal(y:sum():item(), 16.0, "it lives as long as the tensor")
