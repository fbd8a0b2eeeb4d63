-- Bad input: each mistake raises one sentence that names the object and the line, and leaves nothing
-- behind: no memory, no pending work.
local lu = require "luaunit"
local mr = require "millrace"
local naive = require "lua.support.naive"

local function live()
  local stats = mr.memory.stats()
  return { stats.live, stats.allocations, stats.host.live, stats.host.allocations }
end

-- The pieces must be in the message, with this file's name; nothing may have been enqueued or kept.
local function refused(pieces, f)
  collectgarbage()
  collectgarbage()
  mr.synchronize()
  local before, s = live(), mr.current_stream()
  collectgarbage("stop")
  local text, err = naive.message(f)
  lu.assertEquals(live(), before, text)
  collectgarbage("restart")
  lu.assertTrue(s:query(), text)
  for _, piece in ipairs(type(pieces) == "table" and pieces or { pieces }) do
    lu.assertStrContains(text, piece)
  end
  lu.assertStrContains(text, "tensor_errors.lua:")
  lu.assertNil(text:find("\n"), text)
  return err
end

local x = mr.zeros(2, 3):name("x")
local host = mr.zeros(2, 3, { device = "cpu" }):name("host")
-- Made here, since a tensor made in a refused call would count as left behind.
local four, five, mask = x:view(6):narrow(1, 1, 4), x:view(6):narrow(1, 1, 5), x:gt(0):name("mask")
local single, truth, whole = mr.zeros(), mr.zeros(2, { dtype = "bool" }), mr.zeros(2, { dtype = "i32" })

TestSizes = {}

function TestSizes:test_sizes_that_are_none()
  for _, name in ipairs { "zeros", "ones", "empty", "rand", "randn" } do
    local make = mr[name]
    refused({ name, "-1" }, function() make(-1) end)
    refused({ name, "-1" }, function() make({ 2, -1 }) end)
    refused({ name, "1.5" }, function() make(1.5) end)
    refused({ name, "nan" }, function() make(0 / 0) end)
    refused({ name, "inf" }, function() make(math.huge) end)
    refused({ name, "a string" }, function() make("3") end)
    refused({ name, "nil" }, function() make(3, nil) end)
    refused({ name, "9 sizes" }, function() make(1, 1, 1, 1, 1, 1, 1, 1, 1) end)
    refused({ name, "a table" }, function() make({ { 3 } }) end)
    refused("memory", function() make(math.maxinteger) end)
    refused("memory", function() make(1 << 40, 1 << 40) end)
    refused("memory", function() make(1 << 50) end)
  end
  refused({ "full", "expected sizes and a value" }, function() mr.full({ 2 }) end)
  refused("a number", function() mr.full({ 2 }, "x") end)
  refused('full: sizes and options are separate tables: mr.full({3, 4}, 0.5, {device="cuda"})',
    function() mr.full({ 2 }, 3, "cuda") end)
  refused('mr.full({3, 4}, 0.5, {dtype="f64"})', function() mr.full({ 2 }, 3, "f32") end)
  refused({ "eye", "3 sizes" }, function() mr.eye(1, 2, 3) end)
  refused("linspace", function() mr.linspace(0, 1, -1) end)
  refused("memory", function() mr.eye(math.maxinteger) end)
  refused("randperm", function() mr.randperm(-1) end)
  refused("no integer", function() mr.randint(3, 3, { 2 }) end)
  refused("bounds and sizes", function() mr.randint(3) end)
end

function TestSizes:test_arange()
  refused("step is 0", function() mr.arange(0, 3, 0) end)
  refused("the wrong sign", function() mr.arange(0, 3, -1) end)
  refused("finite", function() mr.arange(0 / 0) end)
  refused("finite", function() mr.arange(math.huge) end)
  refused("1 to 3 numbers", function() mr.arange() end)
  refused("a number", function() mr.arange("3") end)
  refused("memory", function() mr.arange(math.mininteger, math.maxinteger) end)
  refused("memory", function() mr.arange(0, 1e300, 0.5) end)
  refused("cannot represent", function() mr.arange(1e300, 1e300 + 1e290, 1e290, { dtype = "i32" }) end)
end

TestOptions = {}

function TestOptions:test_options()
  refused({ "dtyp", "dtype" }, function() mr.zeros(2, { dtyp = "f32" }) end)
  refused({ "there is no dtype \"f33\"", "f32, f64" }, function() mr.zeros(2, { dtype = "f33" }) end)
  refused({ "f8", "known are", "bf16" }, function() mr.zeros(2, { dtype = "f8" }) end)
  refused("option `dtype`", function() mr.zeros(2, { dtype = 5 }) end)
  refused("there is no device \"gpu\"", function() mr.zeros(2, { device = "gpu" }) end)
  refused("cuda:7", function() mr.zeros(2, { device = "cuda:7" }) end)
  refused("cuda:x", function() mr.zeros(2, { device = "cuda:x" }) end)
  refused({}, function() mr.zeros(2, { device = 7 }) end)
  refused({}, function() mr.zeros(2, { device = {} }) end)
  refused("pinned", function() mr.zeros(2, { pinned = true, device = 0 }) end)
  refused("pinned", function() mr.zeros(2, { pinned = 1 }) end)
  refused("a tensor in host memory has no stream", function()
    mr.zeros(2, { device = "cpu", stream = mr.default_stream() })
  end)
  refused("stream", function() mr.zeros(2, { stream = 3 }) end)
  refused("NUL", function() mr.zeros(2, { name = "a\0b" }) end)
  refused("NUL", function() x:name("a\0b") end)
  refused("dtype i32 cannot represent", function() mr.rand(2, { dtype = "i32" }) end)
  refused("dtype bool cannot represent", function() mr.randn(2, { dtype = "bool" }) end)
  refused({}, function() mr.zeros_like(3) end)
  refused({}, function() mr.zeros_like(x, 3) end)
end

TestShapes = {}

function TestShapes:test_shapes_that_do_not_match()
  refused({ "add", "2x3", "4" }, function() return x + four end)
  refused({ "add", "2x3", "4" }, function() return x:add(four) end)
  refused({ "matmul", "2x3" }, function() return x:matmul(x) end)
  refused({}, function() return x:view(6):narrow(1, 1, 2):add_(x) end)
  refused({}, function() return x:add(1, { out = x:view(6) }) end)
  refused({}, function() return x:view(4) end)
  refused({}, function() return x:view(-1, -1) end)
  refused({}, function() return x:view(-2, 3) end)
  refused({}, function() return x:reshape(5) end)
  refused({}, function() return x:expand(2, 4) end)
  refused({}, function() return x:expand(3) end)
  refused({}, function() return x:copy_(four) end)
end

function TestShapes:test_dims()
  refused({ "sum", "3" }, function() return x:sum(3) end)
  refused({ "sum", "dim 0", "count from 1" }, function() return x:sum(0) end)
  refused({ "sum", "-3" }, function() return x:sum(-3) end)
  refused({ "sum", "listed twice" }, function() return x:sum({ 1, -2 }) end)
  refused("1.5", function() return x:sum(1.5) end)
  refused({}, function() return x:sum("1") end)
  refused("keepdim", function() return x:sum(1, 1) end)
  refused("argmax", function() return x:argmax({ 1, 2 }) end)
  refused("size", function() return x:size(3) end)
  refused("transpose", function() return x:transpose(1, 3) end)
  refused({ "permute", "1 dims given" }, function() return x:permute(1) end)
  refused({ "permute", "twice" }, function() return x:permute(1, 1) end)
  refused("narrow", function() return x:narrow(1, 1, 3) end)
  refused("narrow", function() return x:narrow(1, 0, 1) end)
  refused("narrow", function() return x:narrow(1, 1, -1) end)
  refused("narrow", function() return x:narrow(1, 1, math.maxinteger) end)
  refused("narrow", function() return x:narrow(1, math.mininteger, 1) end)
  refused("outside", function() return x:select(2, 4) end)
  refused("unsqueeze", function() return x:unsqueeze(4) end)
  refused("flatten", function() return x:flatten(2, 1) end)
  refused("0-dim", function() return single:narrow(1, 1, 1) end)
end

TestPlaces = {}

function TestPlaces:test_host_and_device_do_not_mix()
  refused({ "`x`", "`host`" }, function() return x + host end)
  refused({ "`x`", "`host`" }, function() return host:add_(x) end)
  refused({ "`mask`", "`host`" }, function() return mr.where(mask, host, 0) end)
  refused({ "`x`", "`host`" }, function() return mr.equal(x, host) end)
  refused({ "`x`", "`host`" }, function() return mr.allclose(x, host) end)
end

TestTypes = {}

function TestTypes:test_arguments_of_the_wrong_type()
  refused({ "add", "a tensor or a number", "a string" }, function() return x:add("1") end)
  refused({ "add", "nothing" }, function() return x:add() end)
  refused({}, function() return x + {} end)
  refused({}, function() return x + nil end)
  refused({ "add", "a stream" }, function() return x:add(mr.default_stream()) end)
  refused("numbers only", function() return mr.add(1, 2) end)
  refused("options", function() return x:add(1, 2) end)
  refused("too many", function() return x:add(1, {}, 2) end)
  refused("too many", function() return x:add_(1, {}) end)
  refused("ou", function() return x:add(1, { ou = x }) end)
  refused("option `out`", function() return x:add(1, { out = 3 }) end)
  refused({}, function() return mr.relu(3) end)
  refused({}, function() return x.relu(3) end)
  refused("clamp", function() return x:clamp() end)
  refused({ "fill_", "a number" }, function() return x:fill_() end)
  refused({ "fill_", "a number" }, function() return x:fill_("1") end)
  refused("probability", function() return x:bernoulli_(2) end)
  refused("probability", function() return x:bernoulli_(0 / 0) end)
  refused("deviation", function() return x:normal_(0, -1) end)
  refused("range", function() return x:uniform_(1, 0) end)
  refused("is not a dtype or a device", function() return x:to("f8") end)
  refused("an argument is missing", function() return x:to() end)
  refused({}, function() return x:to(nil) end)
  refused({}, function() return x:to(99) end)
  refused({}, function() return x:copy_(3) end)
  refused("non_blocking", function() return x:cpu({ non_blocking = 1 }) end)
  refused("non_bloking", function() return x:cpu({ non_bloking = true }) end)
  refused("item", function() return x:item() end)
  refused({}, function() return x:record_stream(3) end)
  refused({}, function() return mr.format(3) end)
end

function TestTypes:test_dtypes_that_an_operation_does_not_take()
  refused("bool", function() return truth:neg() end)
  refused("bool", function() return truth - truth end)
  refused({}, function() return mr.where(x, x, x) end)
  refused({}, function() return whole:add_(1.5) end)
  refused({}, function() return whole:uniform_() end)
end

-- An object that a script finalised by hand raises an error that says so, whatever is done with it.
function TestTypes:test_what_the_debug_library_has_finalised()
  local t, s, e = mr.zeros(2), mr.stream(), mr.event()
  for _, object in ipairs { t, s, e } do debug.getmetatable(object).__gc(object) end
  local gone = "was already collected"
  refused({ "tensor", gone }, function() return t:sum() end)
  refused({ "tensor", gone }, function() return 1 + t end)
  refused({ "tensor", gone }, function() return t.shape end)
  refused({ "tensor", gone }, function() return mr.cat { x, t } end)
  refused({ "tensor", gone }, function() print(t) end)
  refused({ "stream", gone }, function() s:synchronize() end)
  refused({ "stream", gone }, function() mr.with(s, print) end)
  refused({ "event", gone }, function() e:record() end)
end

TestForms = {}

function TestForms:test_cuda_forms()
  refused("memset", function() mr.memset(x, 256) end)
  refused("memset", function() mr.memset(x, -1) end)
  refused({}, function() mr.memset(x) end)
  refused({}, function() mr.memset(x:t(), 0) end)
  refused({}, function() mr.memcpy(x, five) end)
  refused({}, function() mr.memcpy(x, 3) end)
  refused({}, function() mr.memcpy_async(x, x, { stream = 3 }) end)
  refused("ms", function() mr.spin(-1) end)
  refused("ms", function() mr.spin(0 / 0) end)
  refused("ms", function() mr.spin(math.huge) end)
  refused("the duration is missing", function() mr.spin {} end)
  refused("spin", function() mr.spin() end)
  refused("mr.op", function() mr.op() end)
  refused("reads", function() mr.op { reads = 3 } end)
  refused("entry 2 is a number", function() mr.op { reads = { x, 3 } } end)
  refused("blocks", function() mr.op { blocks = 0 } end)
  refused("wrties", function() mr.op { wrties = { x } } end)
  refused("ms", function() mr.op { ms = -1 } end)
end

TestFreed = {}

function TestFreed:test_every_use_says_where_it_was_freed()
  local t = mr.zeros(2, 3):name("gone")
  local row, again = t[1], mr.zeros(2, 3)
  t:free()
  for _, use in ipairs {
    function() return t + 1 end, function() return t:sum() end, function() return again:add_(t) end,
    function() return t:cpu() end, function() return t:item() end, function() return t:totable() end,
    function() return t[1] end, function() t[1] = 0 end, function() return t:view(6) end,
    function() return t:fill_(0) end, function() return again:copy_(t) end, function() return t:clone() end,
    function() return mr.zeros_like(t) end, function() return t:record_stream(mr.default_stream()) end,
    function() return mr.memset(t, 0) end, function() return mr.op { reads = { t } } end,
    function() return mr.format(t) end, function() return again:add(1, { out = t }) end,
    function() return t:to("cpu") end, function() return t:free() end,
  } do
    refused({ "gone", "freed", "tensor_errors.lua:" }, use)
  end
  refused({ "freed at" }, function() return row:sum() end)
  lu.assertEquals(t.shape, { 2, 3 })
  lu.assertStrContains(tostring(t), "freed")
end

function TestFreed:test_host_memory_too()
  local t = mr.zeros(2, { device = "cpu" }):name("gone")
  t:free()
  refused({ "gone", "freed" }, function() return t + 1 end)
  refused({ "gone", "freed" }, function() return t:free() end)
end

function TestFreed:test_closed_ones()
  local kept
  do
    local t <close> = mr.zeros(2):name("gone")
    kept = t
  end
  refused({ "gone", "closed", "<close>" }, function() return kept:sum() end)
  lu.assertStrContains(tostring(kept), "closed")
  lu.assertEquals(kept.shape, { 2 })
end

os.exit(lu.LuaUnit.run())
