-- Rows with an index: calls that are refused, and an index in device memory that is out of range (R50).
local lu = require "luaunit"
local mr = require "millrace"

local function index(list, device) return mr.tensor(list, { dtype = "i64", device = device }) end

TestIndexing = {}

function TestIndexing.test_an_index_on_the_host_is_checked_by_the_call()
  local x = mr.zeros({ 3, 4 }, { device = "cpu" }):name "x"
  for _, bad in ipairs { 0, 5, -1, math.mininteger, math.maxinteger } do
    local i = index({ 1, bad }, "cpu"):name "i"
    lu.assertErrorMsgContains("element [2] of `i` is " .. bad, x.index_select, x, 2, i)
    lu.assertErrorMsgContains("expected 1 to 4", x.index_add_, x, 2, i, mr.ones({ 3, 2 }, { device = "cpu" }))
  end
  lu.assertEquals(x:sum():item(), 0)
end

-- After a failed assertion the driver of a GPU may give the process no fresh context (mr.reset says so).
local function needs_a_reset()
  if mr.backend == "cuda" then lu.skip("mr.reset may need a new process on a GPU") end
end

local function fails(call)
  local x = mr.zeros(3, 4):name "x"
  local i = index { 1, 9 }:name "i"
  call(x, i)
  local ok, e = pcall(mr.synchronize)
  lu.assertFalse(ok)
  lu.assertEquals(e.code, "assert")
  local message = tostring(e)
  lu.assertStrContains(message, "is out of range")
  lu.assertStrContains(message, "9")
  lu.assertStrContains(message, "expected 1 to ")
  lu.assertFalse((pcall(mr.zeros, 3)), "the device is lost until mr.reset()")
  mr.reset()
  lu.assertEquals(mr.ones(3):sum():item(), 3)
  return e
end

function TestIndexing.test_an_index_on_the_device_loses_the_device()
  needs_a_reset()
  for name, call in pairs {
    index_select = function(x, i) return x:index_select(1, i) end,
    gather = function(x, i) return x:gather(2, i:view { 1, 2 }) end,
    embedding = function(x, i) return mr.embedding(i, x) end,
    scatter_ = function(x, i) return x:scatter_(1, i:view { 1, 2 }, 5) end,
    scatter_add_ = function(x, i) return x:scatter_add_(2, i:view { 1, 2 }, mr.ones(1, 2)) end,
    index_add_ = function(x, i) return x:index_add_(1, i, mr.ones(2, 4)) end,
  } do
    local e = fails(call)
    lu.assertEquals(e.op, name)
    lu.assertStrContains(tostring(e.where), "indexing.lua:")
  end
end

function TestIndexing.test_long_indices_too()
  needs_a_reset()
  for _, n in ipairs { 300, 70000 } do
    local x, values = mr.zeros(50), {}
    for k = 1, n do values[k] = k % 50 + 1 end
    values[n - 7] = 51
    x:index_add_(1, index(values), mr.ones(n))
    local ok, e = pcall(mr.synchronize)
    lu.assertFalse(ok)
    lu.assertEquals(e.code, "assert")
    lu.assertStrContains(tostring(e), "51")
    mr.reset()
  end
end

function TestIndexing.test_sums_are_made_in_the_order_of_the_index()
  -- 2^24 + 1 + 1 in this order is 2^24 in f32; 1 + 1 + 2^24 is 2^24 + 2.
  local big = 2.0 ^ 24
  for _, device in ipairs { "cpu", 0 } do
    local at = index({ 1, 1, 1, 2, 2, 2 }, device)
    local source = mr.tensor({ big, 1, 1, 1, 1, big }, { device = device })
    local x = mr.zeros({ 2 }, { device = device }):index_add_(1, at, source)
    lu.assertEquals(x:totable(), { big, big + 2 })
  end
end

function TestIndexing.test_sizes_that_depend_on_data()
  local x = mr.tensor { { 0, 2 }, { 3, 0 } }
  lu.assertEquals(x:nonzero():totable(), { { 1, 2 }, { 2, 1 } })
  lu.assertEquals(x:masked_select(x:gt(1)):totable(), { 2, 3 })
  lu.assertEquals(x:masked_select(x:gt(9)).shape, { 0 })
  lu.assertErrorMsgContains("bool", x.masked_select, x, x)
end

function TestIndexing.test_wrong_arguments()
  local x = mr.arange(12):view { 3, 4 }
  lu.assertErrorMsgContains("dim", x.index_select, x, 3, index { 1 })
  lu.assertErrorMsgContains("expected i64 or i32", x.index_select, x, 1, mr.tensor { 1.5 })
  lu.assertErrorMsgContains("too many", x.gather, x, 1, index { 1 }, nil, 5)
  lu.assertErrorMsgContains("5 elements are wanted, but dim 2 has 4", x.topk, x, 5)
  lu.assertErrorMsgContains("listed twice", x.flip, x, 1, -2)
  lu.assertErrorMsgContains("as many", x.roll, x, { 1, 2 }, { 1 })
  lu.assertErrorMsgContains("2 dims", mr.ones(3).tril, mr.ones(3))
  lu.assertErrorMsgContains("two vectors", x.outer, x, mr.ones(3))
  lu.assertErrorMsgContains("cannot hold", x.masked_fill, x, x:gt(1), 0.5)
  lu.assertErrorMsgContains("f32 tensors have no bitwise_and", function() return mr.ones(3) & 1 end)
end

os.exit(lu.LuaUnit.run())
