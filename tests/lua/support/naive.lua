-- Tensors as plain Lua loops: what the real ones are compared with. An array is
-- {shape = {2, 3}, data = {1, 2, 3, 4, 5, 6}}, row-major.
local lu = require "luaunit"

local naive = {}

local function numel(shape)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return n
end
naive.numel = numel

function naive.array(shape, data)
  assert(#data == numel(shape))
  return { shape = shape, data = data }
end

-- `make(i)` gives element i.
function naive.generate(shape, make)
  local data = {}
  for i = 1, numel(shape) do data[i] = make(i) end
  return { shape = shape, data = data }
end

-- Nested tables, as mr.tensor takes them and totable gives them.
function naive.nested(a)
  local next = 0
  local function level(dim)
    if dim > #a.shape then
      next = next + 1
      return a.data[next]
    end
    local list = {}
    for i = 1, a.shape[dim] do list[i] = level(dim + 1) end
    return list
  end
  return level(1)
end

function naive.flat(nested)
  local data = {}
  local function level(value)
    if type(value) ~= "table" then
      data[#data + 1] = value
    else
      for _, v in ipairs(value) do level(v) end
    end
  end
  level(nested)
  return data
end

-- What a tensor holds, as an array.
function naive.of(t)
  return { shape = t.shape, data = naive.flat(t:totable()) }
end

-- The position from 0 of index i (from 0, in `shape`) in `a`, whose dims of size 1 repeat.
local function position(a, shape, i)
  local pos, step = 0, 1
  for d = 0, #shape - 1 do
    local size = shape[#shape - d]
    local own = a.shape[#a.shape - d]
    if own then
      if own ~= 1 then pos = pos + (i % size) * step end
      step = step * own
    end
    i = i // size
  end
  return pos
end

local function broadcast(a, b)
  local shape = {}
  local n = math.max(#a, #b)
  for d = 0, n - 1 do
    local x, y = a[#a - d] or 1, b[#b - d] or 1
    shape[n - d] = x == 1 and y or x
  end
  return shape
end

local function as_array(x)
  return type(x) == "table" and x or { shape = {}, data = { x } }
end

-- f over one to three arrays or numbers, broadcast.
function naive.map(f, a, b, c)
  a = as_array(a)
  b = b ~= nil and as_array(b) or nil
  c = c ~= nil and as_array(c) or nil
  local shape = a.shape
  if b then shape = broadcast(shape, b.shape) end
  if c then shape = broadcast(shape, c.shape) end
  local data = {}
  for i = 0, numel(shape) - 1 do
    data[i + 1] = f(a.data[position(a, shape, i) + 1], b and b.data[position(b, shape, i) + 1],
      c and c.data[position(c, shape, i) + 1])
  end
  return { shape = shape, data = data }
end

-- f(list of values) for every group that the dims (from 1) join; nil: all values.
function naive.reduce(f, a, dims, keepdim)
  local reduced = {}
  for _, d in ipairs(dims or {}) do reduced[d < 0 and #a.shape + 1 + d or d] = true end
  if not dims then for d = 1, #a.shape do reduced[d] = true end end
  local full, shape = {}, {}
  for d, size in ipairs(a.shape) do
    full[d] = reduced[d] and 1 or size
    if keepdim or not reduced[d] then shape[#shape + 1] = full[d] end
  end
  local groups = {}
  for i = 1, numel(full) do groups[i] = {} end
  local out = { shape = full }
  for i = 0, #a.data - 1 do
    local group = groups[position(out, a.shape, i) + 1]
    group[#group + 1] = a.data[i + 1]
  end
  local data = {}
  for i, group in ipairs(groups) do data[i] = f(group) end
  return { shape = shape, data = data }
end

function naive.matmul(a, b)
  local m, k, n = a.shape[1], a.shape[2], b.shape[2]
  local data = {}
  for i = 1, m do
    for j = 1, n do
      local sum = 0
      for l = 1, k do sum = sum + a.data[(i - 1) * k + l] * b.data[(l - 1) * n + j] end
      data[(i - 1) * n + j] = sum
    end
  end
  return { shape = { m, n }, data = data }
end

-- The tensor has the array's shape and, within `margin` relative to their size, its values.
function naive.assert_same(t, expected, margin, what)
  what = what or "values"
  lu.assertEquals(t.shape, expected.shape, what .. ": shape")
  local got = naive.flat(t:totable())
  lu.assertEquals(#got, #expected.data, what .. ": count")
  for i, want in ipairs(expected.data) do
    local have = got[i]
    local same
    if type(want) ~= "number" or type(have) ~= "number" then
      same = have == want
    elseif want ~= want then
      same = have ~= have
    elseif want == math.huge or want == -math.huge then
      same = have == want
    else
      same = math.abs(have - want) <= (margin or 0) * math.max(1, math.abs(want))
    end
    if not same then
      lu.fail(("%s: element %d is %s, expected %s"):format(what, i, tostring(have), tostring(want)))
    end
  end
end

-- The message of what f raises, or a failure when it raises nothing.
function naive.message(f, ...)
  local ok, err = pcall(f, ...)
  if ok then lu.fail("expected an error, got none") end
  return tostring(err), err
end

-- f must raise a message that has all of these pieces in it.
function naive.assert_raises(pieces, f, ...)
  local text = naive.message(f, ...)
  if type(pieces) == "string" then pieces = { pieces } end
  for _, piece in ipairs(pieces) do
    if not text:find(piece, 1, true) then
      lu.fail(("the message\n  %s\ndoes not say \"%s\""):format(text, piece))
    end
  end
end

-- A sequence of random numbers of our own, so that a failure can be repeated.
function naive.random(seed)
  local r = {}
  math.randomseed(seed)
  function r.integer(low, high) return math.random(low, high) end
  function r.real(low, high) return low + (high - low) * math.random() end
  -- Values that f32 holds exactly, so that sums of a few of them are exact too.
  function r.quarter() return math.random(-64, 64) / 4 end
  function r.shape(dims, most)
    local shape = {}
    for d = 1, dims do shape[d] = math.random(1, most) end
    return shape
  end
  function r.pick(list) return list[math.random(#list)] end
  return r
end

return naive
