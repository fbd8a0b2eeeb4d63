-- Collectives beside a naive reference: what the tests of mr.nccl share.
local lu = require "luaunit"
local mr = require "millrace"

local M = {}

function M.devices(n)
  local list = {}
  for k = 1, n do list[k] = k - 1 end
  return list
end

-- Small whole numbers: every dtype holds them and their products exactly.
local function value(rank, i, dtype)
  local v = (rank * 7 + i * 3) % 4
  if dtype == "bool" then return v > 1 end
  return v
end

function M.column(t)
  local host = t:cpu():totable()
  return type(host) == "table" and host or { host }
end

local function tensor_of(values, dtype, rank)
  if #values == 0 then return mr.empty(0, { dtype = dtype, device = rank }) end
  return mr.tensor(values, { dtype = dtype, device = rank })
end

function M.inputs(n, size, dtype)
  local values, tensors = {}, {}
  for k = 1, n do
    values[k] = {}
    for i = 1, size do values[k][i] = value(k, i, dtype) end
    tensors[k] = tensor_of(values[k], dtype, k - 1)
  end
  return values, tensors
end

local function combine(op, dtype, list)
  local r = list[1]
  for k = 2, #list do
    local v = list[k]
    if dtype == "bool" then
      if op == "sum" or op == "max" then r = r or v else r = r and v end
    elseif op == "sum" or op == "avg" then r = r + v
    elseif op == "prod" then r = r * v
    elseif op == "min" then r = math.min(r, v)
    else r = math.max(r, v) end
  end
  if op ~= "avg" then return r end
  if dtype:sub(1, 1) == "i" or dtype == "u8" then return r // #list end
  local mean = r / #list
  if dtype == "f32" then return string.unpack("f", string.pack("f", mean)) end
  return mean
end

function M.reduced(values, op, dtype, from, count)
  local out = {}
  for i = 1, count do
    local at = {}
    for k = 1, #values do at[k] = values[k][from + i] end
    out[i] = combine(op, dtype, at)
  end
  return out
end

function M.assert_values(t, expected, what)
  local got = M.column(t)
  lu.assertEquals(#got, #expected, what)
  local margin = t.dtype:find "16" and 0.02
  for i = 1, #expected do
    local g, e = got[i], expected[i]
    if g ~= e and not (margin and math.type(e) == "float" and math.abs(g - e) <= margin) then
      lu.fail(("%s: element %d is %s, expected %s"):format(what, i, g, e))
    end
  end
end

function M.together(comms, fn)
  mr.nccl.group(function() for k, c in ipairs(comms) do fn(c, k) end end)
end

function M.zeros(n, size, dtype)
  local list = {}
  for k = 1, n do list[k] = mr.zeros(size, { dtype = dtype, device = k - 1 }) end
  return list
end

return M
