-- Indexing and assignment: t[i], t[{...}], compared with plain loops.
local lu = require "luaunit"
local mr = require "millrace"
local naive = require "lua.support.naive"

local function counting(device, ...)
  local shape = { ... }
  return mr.arange(1, naive.numel(shape) + 1, { device = device, dtype = "i64" }):view(shape)
end

TestNumbers = {}

function TestNumbers:test_an_element_of_a_vector_is_a_0_dim_tensor()
  local t = counting("cpu", 4)
  lu.assertEquals(t[2].ndim, 0)
  lu.assertEquals(t[2]:item(), 2)
  lu.assertEquals(t[-1]:item(), 4)
  lu.assertEquals(t[2.0]:item(), 2)
end

function TestNumbers:test_a_row_is_a_view()
  local t = counting(0, 2, 3)
  lu.assertEquals(t[2]:totable(), { 4, 5, 6 })
  lu.assertEquals(t[2][3]:item(), 6)
  t[1]:fill_(0)
  lu.assertEquals(t:totable(), { { 0, 0, 0 }, { 4, 5, 6 } })
end

function TestNumbers:test_outside()
  local t = mr.zeros(3, 4):name("x")
  for _, i in ipairs { 4, -4, math.maxinteger, math.mininteger } do
    naive.assert_raises({ "`x`", tostring(i), "3x4" }, function() return t[i] end)
  end
  naive.assert_raises({ "`x`", "count from 1" }, function() return t[0] end)
  naive.assert_raises("1.5", function() return t[1.5] end)
  naive.assert_raises("nan", function() return t[0 / 0] end)
  naive.assert_raises("item()", function() return mr.zeros()[1] end)
  naive.assert_raises("outside", function() return mr.zeros(0)[1] end)
  naive.assert_raises("true cannot be an index", function() return t[true] end)
  naive.assert_raises("expected a mask (bool) or positions", function() return t[t] end)
end

TestRanges = {}

function TestRanges:test_forms()
  local t = counting("cpu", 3, 4)
  lu.assertEquals(t[{ 2 }]:totable(), { 5, 6, 7, 8 })
  lu.assertEquals(t[{ 2, 3 }]:item(), 7)
  lu.assertEquals(t[{ {}, 2 }]:totable(), { 2, 6, 10 })
  lu.assertEquals(t[{ { 1, 2 }, 2 }]:totable(), { 2, 6 })
  lu.assertEquals(t[{ { 2 }, 2 }]:totable(), { 6 })
  lu.assertEquals(t[{ { 2, 3 }, { 1, 4, 2 } }]:totable(), { { 5, 7 }, { 9, 11 } })
  lu.assertEquals(t[{ { -2, -1 } }]:totable(), { { 5, 6, 7, 8 }, { 9, 10, 11, 12 } })
  lu.assertEquals(t[{}]:totable(), t:totable())
  lu.assertEquals(t[{ { 3, 2 } }].shape, { 0, 4 })
  lu.assertEquals(t[{ { 4, 3 } }].shape, { 0, 4 })
  lu.assertEquals(t[{ {}, { 1, 4, 100 } }]:totable(), { { 1 }, { 5 }, { 9 } })
  lu.assertEquals(t[{ {}, { 1, 4, math.maxinteger } }]:totable(), { { 1 }, { 5 }, { 9 } })
end

function TestRanges:test_random_ranges_agree_with_loops()
  local r = naive.random(11)
  for _ = 1, 200 do
    local shape = r.shape(r.integer(1, 3), 5)
    local t = counting("cpu", table.unpack(shape))
    local index, pick = {}, {}
    for d = 1, r.integer(0, #shape) do
      local size = shape[d]
      local kind = r.integer(1, 3)
      if kind == 1 then
        local i = r.integer(1, size)
        index[d] = r.integer(0, 1) == 0 and i or i - size - 1
        pick[d] = { i }
      elseif kind == 2 then
        index[d] = {}
      else
        local first = r.integer(1, size)
        local last, step = r.integer(first, size), r.integer(1, 3)
        index[d] = { first, last, step }
        pick[d] = {}
        for i = first, last, step do table.insert(pick[d], i) end
      end
    end
    local expected = {}
    local function walk(dim, offset)
      if dim > #shape then
        expected[#expected + 1] = offset + 1
        return
      end
      for i = 1, shape[dim] do
        local wanted = not pick[dim]
        for _, p in ipairs(pick[dim] or {}) do wanted = wanted or p == i end
        if wanted then walk(dim + 1, offset * shape[dim] + i - 1) end
      end
    end
    walk(1, 0)
    lu.assertEquals(naive.flat(t[index]:totable()), expected)
  end
end

function TestRanges:test_wrong_ones()
  local t = mr.zeros(3, 4):name("x")
  local function index(i) return function() return t[i] end end
  naive.assert_raises("3 indices for a tensor of 2 dims", index { 1, 1, 1 })
  naive.assert_raises("outside", index { { 5 } })
  naive.assert_raises("count from 1", index { { 0, 2 } })
  naive.assert_raises("step", index { { 1, 3, 0 } })
  naive.assert_raises({ "step", "x:flip(1)" }, index { { 3, 1, -1 } })
  naive.assert_raises("one tensor among the entries", index { mr.tensor { 1 }, mr.tensor { 1 } })
  naive.assert_raises("range for dim 1", index { { 1, 2, 3, 4 } })
  naive.assert_raises("range for dim 1", index { { 1.5, 2 } })
  naive.assert_raises("is a string", index { "1" })
  naive.assert_raises("expected an index such as", index { first = 1 })
end

TestAssignment = {}

function TestAssignment:test_numbers_and_tensors()
  for _, device in ipairs { "cpu", 0 } do
    local t = mr.zeros(2, 3, { device = device })
    t[1] = 7
    t[{ 2, 3 }] = 0.5
    lu.assertEquals(t:totable(), { { 7, 7, 7 }, { 0, 0, 0.5 } })
    t[2] = mr.tensor({ 1.0, 2.0, 3.0 }, { device = device })
    lu.assertEquals(t:totable(), { { 7, 7, 7 }, { 1, 2, 3 } })
    t[{ {}, { 1, 2 } }] = mr.tensor({ 9 }, { device = device })
    lu.assertEquals(t:totable(), { { 9, 9, 7 }, { 9, 9, 3 } })
    local b = mr.zeros(2, { dtype = "bool", device = device })
    b[1] = true
    lu.assertEquals(b:totable(), { true, false })
  end
end

function TestAssignment:test_host_values_go_to_the_device()
  local t = mr.zeros(2, 2)
  t[1] = mr.tensor({ 1, 2 }, { device = "cpu" })
  lu.assertEquals(t:totable(), { { 1, 2 }, { 0, 0 } })
end

function TestAssignment:test_wrong_ones()
  local t = mr.zeros(2, 3):name("x")
  naive.assert_raises({ "`x`", "a string" }, function() t[1] = "1" end)
  naive.assert_raises({ "`x`", "nil" }, function() t[1] = nil end)
  naive.assert_raises("outside", function() t[3] = 1 end)
  naive.assert_raises({}, function() t[1] = mr.zeros(4) end)
  lu.assertEquals(t:totable(), { { 0, 0, 0 }, { 0, 0, 0 } })
end

TestTensors = {}

-- The expected t[index], row by row: positions and the place of an element in a row count from 1.
local function rows_of(t, positions)
  local rows, width = {}, t.numel // math.max(t:size(1), 1)
  local all = naive.flat(t:totable())
  for _, p in ipairs(positions) do
    for k = 1, width do rows[#rows + 1] = all[(p - 1) * width + k] end
  end
  return rows
end

local function append(list, size, first)
  for d = first, #size do list[#list + 1] = size[d] end
  return list
end

function TestTensors:test_positions_agree_with_loops()
  local r = naive.random(5)
  for round = 1, 60 do
    local device = round % 2 == 0 and "cpu" or 0
    local shape = r.shape(r.integer(1, 3), 5)
    local t = counting(device, table.unpack(shape))
    local chosen, positions = r.shape(r.integer(0, 2), 4), {}
    for k = 1, naive.numel(chosen) do positions[k] = r.integer(1, shape[1]) end
    local dtype = round % 3 == 0 and "i32" or "i64"
    local index = mr.tensor(positions, { dtype = dtype, device = device }):reshape(chosen)
    local picked = t[index]
    lu.assertEquals(picked.shape, append({ table.unpack(chosen) }, shape, 2))
    lu.assertEquals(naive.flat(picked:totable()), rows_of(t, positions))
    local value = picked + 1000
    t[index] = value
    lu.assertTrue(mr.equal(t[index], value))
    t[index] = 5
    lu.assertTrue(t[index]:eq(5):all():item())
  end
end

function TestTensors:test_masks_agree_with_loops()
  local r = naive.random(6)
  for round = 1, 60 do
    local device = round % 2 == 0 and "cpu" or 0
    local shape = r.shape(r.integer(1, 3), 5)
    local t = counting(device, table.unpack(shape))
    local front, values, positions = {}, {}, {}
    for d = 1, r.integer(1, #shape) do front[d] = shape[d] end
    for k = 1, naive.numel(front) do
      values[k] = r.integer(0, 1) == 1
      if values[k] then positions[#positions + 1] = k end
    end
    local mask = mr.tensor(values, { dtype = "bool", device = device }):reshape(front)
    local flat = t:reshape(append({ #values }, shape, #front + 1))
    lu.assertEquals(naive.flat(t[mask]:totable()), rows_of(flat, positions))
    lu.assertEquals(t[mask].shape, append({ #positions }, shape, #front + 1))
    local value, rest = t[mask] + 1000, t:clone()
    t[mask] = value
    lu.assertTrue(mr.equal(t[mask], value))
    lu.assertTrue(mr.equal(t[mask:logical_not()], rest[mask:logical_not()]))
    t[mask] = 3
    lu.assertTrue(t[mask]:eq(3):all():item())
    t[mask] = mr.tensor(4, { device = device })
    lu.assertTrue(t[mask]:eq(4):all():item())
  end
end

function TestTensors:test_values_broadcast()
  local t = counting(0, 3, 2)
  t[mr.tensor { 1, 3 }] = mr.tensor { 7, 8 }
  lu.assertEquals(t:totable(), { { 7, 8 }, { 3, 4 }, { 7, 8 } })
  t[mr.tensor { false, true, true }] = mr.tensor { 0.5, 1.5 } -- converted, as copy_ does
  lu.assertEquals(t:totable(), { { 7, 8 }, { 0, 1 }, { 0, 1 } })
  t[mr.tensor { true, false, true }] = mr.tensor { { 5, 6 } }
  lu.assertEquals(t:totable(), { { 5, 6 }, { 0, 1 }, { 5, 6 } })
  t:t()[mr.tensor { 2 }] = -1 -- not contiguous
  lu.assertEquals(t:totable(), { { 5, -1 }, { 0, -1 }, { 5, -1 } })
end

function TestTensors:test_gradients()
  local x = mr.tensor({ { 1, 2 }, { 3, 4 }, { 5, 6 } }, { dtype = "f32" }):requires_grad_()
  local y = x * 1
  y[y:gt(4)] = 0
  local sum = y[mr.tensor { 2, 2, 3 }]:sum() + y[mr.tensor { true, false, false }]:sum() * 10
  sum:backward()
  lu.assertEquals(x.grad:totable(), { { 10, 10 }, { 2, 2 }, { 0, 0 } })
  naive.assert_raises("leaf", function() x[x:gt(0)] = 1 end)
  naive.assert_raises("leaf", function() x[mr.tensor { 1 }] = 1 end)
end

function TestTensors:test_wrong_ones()
  local t = counting(0, 3, 2)
  naive.assert_raises("index:to(\"bool\")", function() return t[mr.zeros(3, { dtype = "u8" })] end)
  naive.assert_raises({ "shape 2", "3x2" }, function() return t[mr.tensor { true, false }] end)
  naive.assert_raises({ "shape 2x3", "3x2" }, function() return t[t:t():gt(0)] end)
  naive.assert_raises("item()", function() return mr.zeros()[mr.tensor { 1 }] end)
  naive.assert_raises({ "shape 2", "6 places" }, function() t[t:gt(0)] = mr.tensor { 1, 2 } end)
  naive.assert_raises({}, function() t[mr.tensor { 1, 2 }] = mr.zeros(5) end)
  naive.assert_raises("a string", function() t[mr.tensor { 1 }] = "1" end)
  local host = { device = "cpu" }
  naive.assert_raises("out of range", function() return mr.arange(3, host)[mr.tensor({ 4 }, host)] end)
  lu.assertEquals(t:totable(), { { 1, 2 }, { 3, 4 }, { 5, 6 } })
end

TestLoops = {}

function TestLoops:test_ipairs_ends_behind_the_last_row()
  local x = mr.tensor({ { 1, 2 }, { 3, 4 } }, { dtype = "f32" })
  local seen = {}
  for i, row in ipairs(x) do seen[i] = row:totable() end
  lu.assertEquals(seen, { { 1, 2 }, { 3, 4 } })
  x:requires_grad_()
  local sum
  for i, row in ipairs(x) do sum = sum and sum + row:sum() * i or row:sum() * i end
  sum:backward()
  lu.assertEquals(x.grad:totable(), { { 1, 1 }, { 2, 2 } })
  for _ in ipairs(mr.zeros(0, 3)) do error "no rows" end
  naive.assert_raises("outside", function() return x[3] end)
  naive.assert_raises("0-dim", function() for _ in ipairs(mr.zeros()) do error "no rows" end end)
end

os.exit(lu.LuaUnit.run())
