-- When the collector runs because of tensors: on the virtual GPU and on a small GPU after 64 MiB, on a large GPU after
-- a 128th of its memory. The driver is the tests' own (tests/fake_cuda), so this runs everywhere.
local lu = require "luaunit"
local fake = require "cuda.support.fake"

-- How often it runs while a script makes COUNT tensors of BYTES and drops them.
local PROGRAM = [[
local mr, collections = require "millrace", 0
local again = {}
function again.__gc()
  collections = collections + 1
  setmetatable({}, again)
end
setmetatable({}, again)
collectgarbage()
collections = 0
for _ = 1, COUNT do mr.empty(BYTES, {dtype = "u8"}) end
print(collections)
]]

local function collections(variables, device, count, bytes)
  local program = PROGRAM:gsub("%u%u%u%u+", { COUNT = count or 40, BYTES = bytes or 16 << 20 })
  return tonumber(select(3, fake.run{ variables = variables, "--device", device, "-e", program }).out)
end

if collections("", "virtual", 1, 1) > 0 then
  print "not available: this build collects in each call"
  os.exit(77)
end

TestCollector = {}

function TestCollector.test_a_small_device()
  local virtual = collections("", "virtual")
  lu.assertTrue(virtual >= 5 and virtual <= 10, tostring(virtual))
  lu.assertEquals(collections("FAKE_CUDA_GIB=1", "cuda"), virtual)
end

function TestCollector.test_a_large_device()
  lu.assertEquals(collections("FAKE_CUDA_GIB=128", "cuda"), 0)
  lu.assertEquals(collections("FAKE_CUDA_GIB=128 FAKE_CUDA_DEVICES=2", "cuda"), 0)
end

os.exit(lu.LuaUnit.run())
