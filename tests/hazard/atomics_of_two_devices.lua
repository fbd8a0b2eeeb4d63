-- options: --device virtual:2
-- virtual only: two devices
-- An atomic operation of scope .gpu is none for another device (PTX, "Scope"); one of scope .sys is.
local lu = require "luaunit"
local mr = require "millrace"

local function hazards(suffix, devices, indirect)
  local k = mr.kernel(("__global__ void k(int *x, const int *at) { atomicAdd%s(x + (at ? *at : 0), 1); }"):format(suffix))
  local x = mr.zeros(1, { device = "cpu", pinned = true, dtype = "i32" })
  local zero = {}
  for d = 0, 1 do zero[d] = mr.zeros(1, { device = mr.device(d), dtype = "i32" }) end
  local count = #mr.hazard.check(function()
    for i, d in ipairs(devices) do
      mr.set_device(d)
      k[{ 1, 1, stream = mr.stream{ device = d, name = "s" .. i } }](x, indirect and zero[d] or nil)
    end
    for d = 0, 1 do mr.synchronize(d) end
  end)
  mr.set_device(0)
  return count
end

TestScopes = {}

function TestScopes.test_of_two_devices()
  lu.assertEquals(hazards("", { 0, 1 }), 1)
  lu.assertEquals(hazards("", { 0, 1 }, true), 1)
  lu.assertEquals(hazards("_system", { 0, 1 }), 0)
  lu.assertEquals(hazards("_system", { 0, 1 }, true), 0)
end

os.exit(lu.LuaUnit.run())
