-- Views share memory; their values are compared with plain loops.
local lu = require "luaunit"
local mr = require "millrace"
local naive = require "lua.support.naive"

-- The tensor on the host that counts 1, 2, 3 ... in row-major order.
local function counting(...)
  local shape = { ... }
  return mr.arange(1, naive.numel(shape) + 1, { device = "cpu", dtype = "f32" }):view(shape)
end

TestReshape = {}

function TestReshape:test_view()
  local t = counting(2, 3)
  lu.assertEquals(t:view(3, 2):totable(), { { 1, 2 }, { 3, 4 }, { 5, 6 } })
  lu.assertEquals(t:view({ 6 }):totable(), { 1, 2, 3, 4, 5, 6 })
  lu.assertEquals(t:view(-1).shape, { 6 })
  lu.assertEquals(t:view(2, -1, 1).shape, { 2, 3, 1 })
  lu.assertEquals(counting(1):view().ndim, 0)
  lu.assertEquals(t:view(3, 2).storage_id, t.storage_id)
end

function TestReshape:test_a_view_that_is_not_possible_raises_and_reshape_copies()
  local t = counting(2, 3):t()
  naive.assert_raises("view", t.view, t, 6)
  local copy = t:reshape(6)
  lu.assertEquals(copy:totable(), { 1, 4, 2, 5, 3, 6 })
  lu.assertNotEquals(copy.storage_id, t.storage_id)
  lu.assertEquals(counting(2, 3):reshape(3, 2).shape, { 3, 2 })
  local d = counting(2, 3):cuda():t()
  lu.assertEquals(d:reshape(6):totable(), { 1, 4, 2, 5, 3, 6 })
end

function TestReshape:test_flatten()
  local t = counting(2, 3, 4)
  lu.assertEquals(t:flatten().shape, { 24 })
  lu.assertEquals(t:flatten(2).shape, { 2, 12 })
  lu.assertEquals(t:flatten(1, 2).shape, { 6, 4 })
  lu.assertEquals(t:flatten(-2, -1).shape, { 2, 12 })
  lu.assertEquals(counting(1):view():flatten().shape, { 1 })
  lu.assertEquals(counting(2, 3):t():flatten():totable(), { 1, 4, 2, 5, 3, 6 })
end

TestDims = {}

function TestDims:test_transpose_t_permute()
  local t = counting(2, 3)
  lu.assertEquals(t:t():totable(), { { 1, 4 }, { 2, 5 }, { 3, 6 } })
  lu.assertEquals(t:transpose(1, 2):totable(), t:t():totable())
  lu.assertEquals(t:transpose(-1, -2):totable(), t:t():totable())
  lu.assertEquals(t:permute(2, 1):totable(), t:t():totable())
  lu.assertEquals(counting(2, 3, 4):permute({ 3, 1, 2 }).shape, { 4, 2, 3 })
  lu.assertEquals(counting(3):t().shape, { 3 })
  lu.assertFalse(t:t().contiguous)
  lu.assertTrue(t:t():contiguous().contiguous)
  lu.assertIs(t:contiguous(), t)
end

function TestDims:test_permute_agrees_with_loops()
  local r = naive.random(3)
  for _ = 1, 30 do
    local dims = r.integer(1, 4)
    local order = {}
    for d = 1, dims do table.insert(order, r.integer(1, #order + 1), d) end
    local t = counting(table.unpack(r.shape(dims, 4)))
    local p = t:permute(order)
    local back = {}
    for i, d in ipairs(order) do back[d] = i end
    lu.assertEquals(p:permute(back):totable(), t:totable())
    for i, d in ipairs(order) do lu.assertEquals(p:size(i), t:size(d)) end
  end
end

function TestDims:test_squeeze_unsqueeze()
  local t = counting(1, 3, 1)
  lu.assertEquals(t:squeeze().shape, { 3 })
  lu.assertEquals(t:squeeze(1).shape, { 3, 1 })
  lu.assertEquals(t:squeeze(2).shape, { 1, 3, 1 })
  lu.assertEquals(t:squeeze(-1).shape, { 1, 3 })
  lu.assertEquals(counting(3):unsqueeze(1).shape, { 1, 3 })
  lu.assertEquals(counting(3):unsqueeze(2).shape, { 3, 1 })
  lu.assertEquals(counting(3):unsqueeze(-1).shape, { 3, 1 })
  lu.assertEquals(counting(3):unsqueeze(-2).shape, { 1, 3 })
end

function TestDims:test_expand()
  local t = counting(3):view(3, 1):expand(3, 2)
  lu.assertEquals(t:totable(), { { 1, 1 }, { 2, 2 }, { 3, 3 } })
  lu.assertEquals(counting(3):expand({ 2, -1 }):totable(), { { 1, 2, 3 }, { 1, 2, 3 } })
  lu.assertEquals(t.stride[2], 0)
  naive.assert_raises({}, t.fill_, t, 0)
end

TestParts = {}

function TestParts:test_narrow_select()
  local t = counting(3, 4)
  lu.assertEquals(t:narrow(1, 2, 2):totable(), { { 5, 6, 7, 8 }, { 9, 10, 11, 12 } })
  lu.assertEquals(t:narrow(2, -2, 2):totable(), { { 3, 4 }, { 7, 8 }, { 11, 12 } })
  lu.assertEquals(t:narrow(1, 4, 0).shape, { 0, 4 })
  lu.assertEquals(t:select(1, 2):totable(), { 5, 6, 7, 8 })
  lu.assertEquals(t:select(-1, -1):totable(), { 4, 8, 12 })
  t:narrow(2, 2, 1):fill_(0)
  lu.assertEquals(t:totable(), { { 1, 0, 3, 4 }, { 5, 0, 7, 8 }, { 9, 0, 11, 12 } })
end

function TestParts:test_chunk_split()
  local function sizes(parts, dim)
    local list = {}
    for i, p in ipairs(parts) do list[i] = p:size(dim or 1) end
    return list
  end
  local t = counting(7, 2)
  lu.assertEquals(sizes(t:chunk(3)), { 3, 3, 1 })
  lu.assertEquals(sizes(t:chunk(100)), { 1, 1, 1, 1, 1, 1, 1 })
  lu.assertEquals(sizes(t:chunk(2, 2), 2), { 1, 1 })
  lu.assertEquals(sizes(t:split(3)), { 3, 3, 1 })
  lu.assertEquals(sizes(t:split({ 1, 0, 6 })), { 1, 0, 6 })
  lu.assertEquals(t:split(3)[3]:totable(), { { 13, 14 } })
  lu.assertEquals(sizes(mr.zeros(0):chunk(3)), { 0 })
  naive.assert_raises("the sum of the sizes is not", t.split, t, { 3, 3 })
  naive.assert_raises("the sum of the sizes is not", t.split, t, { 3, math.maxinteger })
  naive.assert_raises("size is 0", t.split, t, 0)
  naive.assert_raises("count is 0", t.chunk, t, 0)
end

function TestParts:test_clone_has_memory_of_its_own()
  local t = counting(2, 2)
  local c = t:clone()
  c:fill_(0)
  lu.assertEquals(t:totable(), { { 1, 2 }, { 3, 4 } })
  lu.assertEquals(t:t():clone():totable(), { { 1, 3 }, { 2, 4 } })
  lu.assertEquals(t:cuda():t():clone():totable(), { { 1, 3 }, { 2, 4 } })
end

TestFacts = {}

function TestFacts:test_facts()
  local t = mr.zeros(2, 3, { dtype = "f64" })
  lu.assertEquals(t.shape, { 2, 3 })
  lu.assertEquals(t.stride, { 3, 1 })
  lu.assertEquals(t:t().stride, { 1, 3 })
  lu.assertEquals({ t.numel, t.ndim, t.itemsize, t.nbytes }, { 6, 2, 8, 48 })
  lu.assertEquals(#t, 2)
  lu.assertEquals(t:size(), { 2, 3 })
  lu.assertEquals({ t:size(1), t:size(2), t:size(-1) }, { 2, 3, 3 })
  lu.assertEquals(math.type(t.data_ptr), "integer")
  lu.assertEquals(t:select(1, 2).data_ptr, t.data_ptr + 24)
  lu.assertEquals(t[1].storage_id, t.storage_id)
  lu.assertTrue(t.contiguous)
  lu.assertFalse(t.pinned)
end

function TestFacts:test_contiguous_is_a_fact_and_a_method()
  local t = counting(2, 3):t()
  lu.assertIs(t.contiguous, false)
  lu.assertIs(t:contiguous().contiguous, true)
  lu.assertEquals(t:contiguous():totable(), t:totable())
  naive.assert_raises("attempt to call a boolean value", function() return (true)(1) end)
  lu.assertFalse(getmetatable(true))
end

function TestFacts:test_names()
  local t = mr.zeros(2)
  lu.assertNil(t:name())
  lu.assertIs(t:name("weights"), t)
  lu.assertEquals(t:name(), "weights")
  lu.assertStrContains(tostring(t), "`weights` f32[2] device 0")
end

function TestFacts:test_tostring_says_what_it_is_and_waits_for_nothing()
  local s = mr.stream()
  local t = mr.zeros(100, 100)
  s:run(function() mr.spin(5) end)
  lu.assertStrContains(tostring(t), "f32[100,100]")
  lu.assertFalse(s:query())
  lu.assertStrContains(tostring(mr.zeros(2, { device = "cpu" })), "cpu")
  lu.assertStrContains(tostring(mr.zeros(2, { pinned = true })), "pinned")
  lu.assertStrContains(tostring(mr.zeros(2, { dtype = "bool" })), "bool[2]")
end

function TestFacts:test_unknown_names_are_answered_with_the_nearest()
  local t = mr.zeros(2)
  naive.assert_raises({ "shpe", "shape" }, function() return t.shpe end)
  naive.assert_raises({ "addd_", "add_" }, function() return t:addd_(1) end)
  naive.assert_raises("field `color` of a tensor cannot be assigned", function() t.color = 1 end)
end

os.exit(lu.LuaUnit.run())
