-- Mistakes of a person who is new here, and the messages about them.
local lu = require "luaunit"
local mr = require "millrace"

-- The message of an error, also of an error object.
local function complaint(f, ...)
  local ok, err = pcall(f, ...)
  lu.assertFalse(ok)
  return tostring(err)
end

local function says(text, f, ...) lu.assertStrContains(complaint(f, ...), text) end

TestColons = {}

-- A dot leaves the object out, so the first argument, or the last, is not there.
function TestColons.test_a_dot_for_a_colon()
  local s, e, t = mr.stream(), mr.event(), mr.ones(2)
  says("synchronize: argument 1: expected a stream, got nothing: write a colon, object:synchronize(...)",
    function() s.synchronize() end)
  says("wait_stream: argument 2: expected a stream, got nothing: write a colon, object:wait_stream(...)",
    function() s.wait_stream(mr.current_stream()) end)
  says("expected an event, got nothing: write a colon, object:record(...)", function() e.record() end)
  says("expected a tensor, got a number: write a colon, object:add_(...)", function() t.add_(1) end)
end

-- Where there is no dot, or no object is missing, a colon would not help.
function TestColons.test_other_arguments()
  local s, t = mr.stream(), mr.ones(2)
  local function is_silent(f, ...) lu.assertNotStrContains(complaint(f, ...), "colon") end
  is_silent(function() mr.memcpy_async(1) end)
  is_silent(function() mr.sum(1) end)
  is_silent(function() s:wait_stream() end)
  is_silent(function() t.add_(t, "a") end)
  is_silent(s.synchronize)
end

-- In the error itself, which a script may catch and print.
function TestColons.test_what_lua_has_no_operator_for()
  local t, s = mr.ones(2), mr.stream()
  says("attempt to concatenate a tensor: write tostring(x), or x:item() for the value of one element",
    function() return "v=" .. t end)
  says("attempt to concatenate a tensor", function() return t .. 1 end)
  says("attempt to concatenate a stream: write tostring(x)", function() return "s=" .. s end)
  says("attempt to compare a tensor with a number: comparisons of tensors are methods: x:gt(y), ge, lt, le, eq, ne",
    function() return t < 3 end)
  says("attempt to compare a tensor with a tensor", function() return t >= t end)
end

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

function TestNames.test_of_collectives_and_graphs()
  local g = mr.graph(function() mr.spin(1) end)
  says("there is no `mr.dist.init_process_group`: write mr.dist.init()", function() mr.dist.init_process_group() end)
  says("write mr.dist.rank()", function() return mr.dist.get_rank() end)
  says("{op=\"sum\"}", function() return mr.dist.ReduceOp.SUM end)
  says("{async=true}", function() return mr.dist.isend end)
  says("write mr.dist.all_gather(out, t)", function() return mr.dist.all_gather_into_tensor end)
  says("write mr.dist.world_size()", function() return mr.get_world_size() end) -- of another table
  says("a graph has no `replay`: write g:launch()", function() g:replay() end)
  says("write g = mr.graph(fn)", function() return mr.CUDAGraph() end)
  says("write mr.graph.auto(fn)", function() return mr.make_graphed_callables end)
  says("mr.nn.parallel.DataParallel(module)", function() return mr.nn.DataParallel end)
  says("mr.nn.parallel.DataParallel(module)", function() return mr.DataParallel end)
  g:close()
end

function TestNames.test_of_memory_and_devices()
  says("write mr.memory.allocated()", function() return mr.memory_allocated() end)
  says("write mr.memory.max_allocated()", function() return mr.max_memory_allocated() end)
  says("write mr.memory.empty_cache()", function() return mr.empty_cache() end)
  says("write mr.memory.stats()", function() return mr.memory_summary() end)
  says("write mr.device(0).name", function() return mr.get_device_name(0) end)
  says("write tr = mr.timeline(fn)", function() return mr.profiler end)
  says("write mr.no_grad(fn)", function() return mr.inference_mode() end)
end

function TestNames.test_of_cuda()
  local s = mr.stream()
  says("write mr.empty(n)", function() return mr.cudaMalloc(4) end)
  says("write s:synchronize()", function() return mr.cudaStreamSynchronize(s) end)
  says("write s:wait_event(e)", function() return mr.cudaStreamWaitEvent(s) end)
  says("pinned=true", function() return mr.cudaHostAlloc(4) end)
  says("write s:host_func(fn)", function() return s:launch_host_func(print) end)
  says("e = s:record_event()", function() return s:record() end)
end

function TestNames.test_of_modules()
  local Net = mr.nn.Module.class("Net")
  says("a module has no `register_forward_hook`: not in this version",
    function() mr.nn.ReLU():register_forward_hook(print) end)
  says("Net: `__init__` is never called: write function Net:init(...)", function() function Net:__init__() end end)
  says("Net: `__call__` is never called: write function Net:forward(x)", function() function Net:__call__() end end)
  function Net:init() self.no_such_field = self.nothing end
  lu.assertNil(Net().nothing)
end

function TestNames.test_of_the_module_for_tests()
  says("millrace.testing has no `expect_no_hazards`: it has expect_clean, ",
    function() return require "millrace.testing".expect_no_hazards end)
end

TestOptions = {}

function TestOptions.test_of_other_libraries()
  local t, net = mr.zeros(3), mr.nn.Linear(2, 2)
  says("there is no option `pin_memory` here: write `pinned`", mr.zeros, 3, { device = "cpu", pin_memory = true })
  says("there is no option `enable_timing` here: write `timing`", mr.event, { enable_timing = true })
  says("write `nonblocking`", mr.stream, { non_blocking = true })
  says("nonblocking=false makes one that is not", mr.stream, { blocking = true })
  says("all_reduce: there is no option `async_op` here: write `async`", mr.dist.all_reduce, t, { async_op = true })
  says("write `group`", mr.nn.parallel.DistributedDataParallel, net, { process_group = 1 })
  says("move it by m:to(device) first", mr.nn.parallel.DistributedDataParallel, net, { device_ids = { 0 } })
  says("write `devices`", mr.nn.parallel.DataParallel, net, { device_ids = { 0 } })
  says("SGD: there is no option `learning_rate` here: write `lr`", mr.optim.SGD, { mr.ones(1) }, { learning_rate = 1 })
  says("`depth` says how many are ready", mr.data.batches, t:cpu(), { num_workers = 2 })
  says("write `reduction`", mr.nn.MSELoss, { size_average = true })
  says("--ranks N", mr.dist.init, { world_size = 2 })
end

function TestOptions.test_that_are_mistyped_and_that_are_missing()
  says("SGD: there is no option `momentun` here: did you mean `momentum`?", mr.optim.SGD, { mr.ones(1) },
    { momentun = 1 })
  says("expected one of op, group, async", mr.dist.all_reduce, mr.zeros(1), { x = 1 })
  says("init: there is no option `x` here: expected timeout", mr.dist.init, { x = 1 })
end

function TestOptions.test_without_their_table()
  local t, net = mr.zeros(3), mr.nn.Linear(2, 2)
  says("zero_grad: write zero_grad(true)", net.zero_grad, net, { set_to_none = true })
  local sgd = mr.optim.SGD(net:parameters())
  says("zero_grad: write zero_grad(false)", sgd.zero_grad, sgd, { set_to_none = false })
  says("{non_blocking=true}", function() t:to("cuda", true) end)
  says("{non_blocking=true}", function() t:copy_(t, true) end)
  says("mr.zeros({3, 4}, {device=\"cuda\"})", mr.zeros, 3, "cuda")
  says("write {device=\"cuda\"}", mr.tensor, { 1 }, "cuda")
  says("write {dtype=\"f64\"}", mr.tensor, { 1 }, "f64")
  says("broadcast: argument 2: expected the number of a rank, got a table", mr.dist.broadcast, t, { src = 0 })
end

function TestNames.test_mistyped()
  says("there is no `mr.host_fn`: write s:host_func(fn)", function() return mr.host_fn(print) end)
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

TestShapes = {}

function TestShapes.test_are_lists_that_can_be_read()
  local x = mr.zeros(64, 2)
  lu.assertEquals(tostring(x.shape), "{64, 2}")
  lu.assertEquals(tostring(x:size()), "{64, 2}")
  lu.assertEquals(tostring(x.stride), "{2, 1}")
  lu.assertEquals(tostring(mr.tensor(1.0).shape), "{}")
  lu.assertEquals(x.shape, { 64, 2 })
  lu.assertEquals({ #x.shape, table.unpack(x.shape) }, { 2, 64, 2 })
  lu.assertEquals(mr.zeros(x.shape).shape, { 64, 2 })
  lu.assertEquals(x:view(x.shape):size(1), 64)
  local count = 0
  for i, size in ipairs(x.shape) do count = count + i * size end
  lu.assertEquals(count, 68)
end

function TestShapes.test_are_compared_by_their_sizes()
  local x = mr.zeros(64, 2)
  lu.assertTrue(x.shape == mr.ones(64, 2).shape)
  lu.assertFalse(x.shape == mr.ones(2, 64).shape)
  lu.assertFalse(x.shape == mr.ones(64, 2, 1).shape)
  lu.assertFalse(x.shape == 64)
end

-- As in other tables: code that aligns shapes at their ends asks for such sizes.
function TestShapes.test_what_is_not_there_is_nil()
  local shape = mr.zeros(64, 2).shape
  lu.assertNil(shape[0])
  lu.assertNil(shape[3])
  lu.assertNil(shape.rows)
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
