-- Operations beside PyTorch's results (tests/data/torch/make.py), where their meaning is easily mistaken. On the host
-- and on the device.
local lu = require "luaunit"
local mr = require "millrace"

local folder = arg[0]:match "^(.*)/lua/" or "tests"
local NAN, INF = 0 / 0, math.huge

local function described(dtype, shape, data) return { dtype = dtype, shape = shape, data = data } end
local cases = dofile(folder .. "/data/torch/rows.lua")(described, NAN, INF)

local function is_described(v) return type(v) == "table" and v.dtype end

local function made(v, device, plus)
  local t = mr.tensor(v.data, { dtype = v.dtype, device = device })
  if #v.shape ~= 1 then t = t:view(v.shape) end
  return plus and t:add(1) or t
end

local function flat_values(t)
  local values = {}
  local host = t:cpu():contiguous():view { t.numel }
  for i = 1, t.numel do values[i] = host[i]:item() end
  return values
end

local function same(a, b, near)
  if type(a) ~= type(b) then return false end
  if a == b or (a ~= a and b ~= b) then return true end
  return near and type(a) == "number" and math.abs(a - b) <= 3e-7 * math.abs(b)
end

local function check(case, device)
  local name, inputs, results = table.unpack(case, 1, 3)
  local arguments = {}
  for i, v in ipairs(inputs) do arguments[i] = is_described(v) and made(v, device, case.index == i) or v end
  local call = name == "embedding" and mr.embedding or arguments[1][name]
  local got = table.pack(call(table.unpack(arguments, 1, #inputs)))
  for k, expected in ipairs(results) do
    local where = ("%s, result %d on %s"):format(name, k, device or "the device")
    lu.assertEquals(got[k].dtype, expected.dtype, where)
    lu.assertEquals(got[k].shape, expected.shape, where)
    for i, v in ipairs(flat_values(got[k])) do
      local e = expected.data[i]
      if case.position == k then e = e + 1 end
      if not same(v, e, case.near) then lu.fail(("%s: element %d is %s, not %s"):format(where, i, v, e)) end
    end
  end
end

TestRows = {}
for i, case in ipairs(cases) do
  TestRows[("test_%03d_%s"):format(i, case[1])] = function()
    check(case, "cpu")
    check(case)
  end
end

os.exit(lu.LuaUnit.run())
