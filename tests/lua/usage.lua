-- What a person who is new here gets wrong, and what the messages then say.
local lu = require "luaunit"
local mr = require "millrace"

-- The message of an error, also of an error object.
local function complaint(f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  return tostring(err)
end

local function says(text, f, ...) lu.assertStrContains(complaint(f, ...), text) end

TestNames = {}

function TestNames.test_of_other_libraries()
  local t, s, e = mr.zeros(2), mr.stream(), mr.event()
  says("t:to(\"f64\")", function() return t.double end)
  says("t.ndim", function() return t.dim end)
  says("t:totable()", function() return t:numpy() end)
  says("t:diag():sum()", function() return t:trace() end)
  says("not in this version", function() return mr.svd() end)
  says("an event has no `enable_timing`: write mr.event{timing=true}", function() return e.enable_timing end)
  says("a stream has no `destroy`: write s:close()", function() return s:destroy() end)
  says("write mr.stream()", function() return mr.Stream() end)
  says("write mr.stream{handle=number}", function() return mr.ExternalStream() end)
  says("write s.handle", function() return s.cuda_stream end)
  says("write t:dlpack()", function() return t:__dlpack__() end)
  says("write mr.event{ipc=handle}", function() return e.from_ipc_handle end)
  says("mr.synchronize", function() return mr.cuda.synchronize() end)
  says("not in this version", function() return mr.svd() end)
end

function TestNames.test_mistyped()
  says("there is no `mr.zeroes`: did you mean `mr.zeros`?", function() return mr.zeroes(3) end)
  says("help(\"mr\")", function() return mr.no_such_thing_at_all end)
  says("mr.help(\"tensor\") lists all names", function() return mr.zeros(1).no_such_thing_at_all end)
  says("mr.help(\"event\")", function() return mr.event().no_such_thing_at_all end)
end

function TestNames.test_the_module_stays_a_table()
  lu.assertNil(mr[1])
  lu.assertEquals(mr.machine ~= nil, mr.backend == "virtual")
  mr.mine = 1
  lu.assertEquals(mr.mine, 1)
  mr.mine = nil
end

TestFunctionNames = {}

function TestFunctionNames.test_a_view_is_called_so()
  says("view: ", function() return mr.zeros(2, 3):view(5) end)
  says("reshape: ", function() return mr.zeros(2, 3):reshape(5) end)
end

function TestFunctionNames.test_in_place_and_counted_as_written()
  local x = mr.zeros(3)
  says("fill_: 2 arguments are too many: expected at most 1", function() return x:fill_(1, 2) end)
  says("add_: 2 arguments are too many: expected at most 1", function() return x:add_(1, 2) end)
  says("mul_: argument 1: expected a tensor or a number, got a string", function() return x:mul_("a") end)
end

function TestFunctionNames.test_through_pcall()
  says("wait_event: argument 2: expected an event, got a number", mr.stream().wait_event, mr.stream(), 1)
  says("add: ", mr.add, {}, 1)
  local renamed = mr.stream
  says("stream: ", function() return renamed(1) end)
end

TestDevices = {}

function TestDevices.test_have_one_name()
  local x = mr.zeros(2)
  lu.assertStrContains(mr.format(x), " on device 0")
  lu.assertStrContains(tostring(x), " device 0")
  says("on device 0", mr.add, x, mr.zeros(2, { device = "cpu" }))
end

function TestDevices.test_are_taken_by_any_of_their_names()
  for _, name in ipairs{ "cuda", "cuda:0", "virtual:0", "device 0", "device:0" } do
    lu.assertIs(mr.device(name), mr.device(0))
    lu.assertIs(mr.zeros(2, { device = name }).device, mr.device(0))
    lu.assertIs(mr.zeros(2, { device = "cpu" }):to(name).device, mr.device(0))
  end
  says("there is no device \"virtual:77\"", mr.device, "virtual:77")
  says("expected a device", mr.device, "gpu")
end

TestArguments = {}

function TestArguments.test_sizes_and_options_stand_apart()
  says("mr.zeros({3, 4}, {dtype=\"f64\"})", function() return mr.zeros{ 3, 4, dtype = "f64" } end)
  says("mr.zeros({3, 4}, {dtype=\"f64\"})", mr.zeros, 3, "f32")
  says("mr.rand({3, 4}, {dtype=\"f64\"})", mr.rand, 3, "f32")
end

function TestArguments.test_numbers_that_make_no_sense()
  says("ms is not a number", mr.spin, 0 / 0)
  says("expected 1 to 2147483647", mr.op, { blocks = 0 })
end

function TestArguments.test_no_dim_is_every_dim()
  local x = mr.ones(2, 3)
  lu.assertEquals(x:sum(nil):item(), 6.0)
  lu.assertEquals(x:sum({ 1, 2 }):item(), 6.0)
end

TestFailures = {}

function TestFailures.test_a_lost_device_says_what_and_what_now()
  if not mr.machine then return end
  mr.machine.fault("illegal-address")
  for _ = 1, 2 do
    local text = complaint(mr.synchronize)
    lu.assertStrContains(text, "illegal-address")
    lu.assertStrContains(text, "every call fails until mr.reset()")
  end
  mr.reset()
  mr.synchronize()
end

function TestFailures.test_one_operation()
  if not mr.machine then return end
  local before = mr.machine.chooser("manual")
  mr.spin(1)
  says("1 operation is pending", mr.machine.model, "t4")
  mr.synchronize()
  mr.machine.chooser(before)
end

os.exit(lu.LuaUnit.run())
