-- When the collector runs because of tensors: on the virtual GPU and on a small GPU after 64 MiB, on a large GPU after
-- a 128th of its memory. The driver is the tests' own (tests/fake_cuda), so this runs everywhere.
local lu = require "luaunit"
local fake = require "cuda.support.fake"

-- How often it runs while a script makes 40 tensors of 16 MiB and drops them.
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
for _ = 1, 40 do mr.empty(4 << 20) end
print(collections)
]]

local function collections(variables, device)
  return tonumber(select(3, fake.run{ variables = variables, "--device", device, "-e", PROGRAM }).out)
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
